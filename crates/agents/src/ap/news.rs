//! What the operator of an access point's agent hears while it runs: what it accepts, refuses and lacks.
//!
//! Stations and drivers can make most of it happen again and again, so lines are few ([`LogLimiter`]) and of bounded length.

use super::Contradiction;
use crate::service::Say;
use crate::service::rate_limited_log::{LogLimiter, RateLimitedLog};
use lasthop_signals::Node;
use lasthop_units::{Span, Time, count};
use std::io;
use std::net::IpAddr;

/// What has happened and not been told yet.
pub(super) struct News {
    say: Say,
    /// Kinds of contradiction that have been told.
    contradictions: [bool; Contradiction::KINDS],
    /// A message that is no record has been told.
    unreadable: bool,
    silence: LogLimiter,
    /// The silence that goes on was told.
    silence_told: bool,
    stale: RateLimitedLog<()>,
    accepted: RateLimitedLog<(Node, IpAddr)>,
    strangers: RateLimitedLog<IpAddr>,
    crowded: RateLimitedLog<()>,
    missed: RateLimitedLog<()>,
    /// Flows without a place in the table that have been counted.
    places: u64,
}

impl News {
    pub(super) fn new(say: Say) -> News {
        News {
            say,
            contradictions: [false; Contradiction::KINDS],
            unreadable: false,
            silence: LogLimiter::new(Span::ZERO),
            silence_told: false,
            stale: RateLimitedLog::new(),
            accepted: RateLimitedLog::new(),
            strangers: RateLimitedLog::new(),
            crowded: RateLimitedLog::new(),
            missed: RateLimitedLog::new(),
            places: 0,
        }
    }

    /// A record of the driver is refused; of each kind of reason the first is told.
    pub(super) fn contradicts(&mut self, why: Contradiction) {
        if !std::mem::replace(&mut self.contradictions[why.kind()], true) {
            (self.say)(&format!("a record of the driver is refused: {why}; further ones like it are only counted"));
        }
    }

    /// A message of the driver is no record; the first is told.
    pub(super) fn unreadable(&mut self, why: &io::Error) {
        if !std::mem::replace(&mut self.unreadable, true) {
            (self.say)(&format!(
                "a message of the driver is refused: {why}; further ones that cannot be read are only counted"
            ));
        }
    }

    /// The driver has said nothing that counts for so long that all windows are released.
    pub(super) fn silent(&mut self, now: Time, age_limit: Span) {
        self.silence.goes_on(now);
        if self.silence.is_due(now) {
            self.silence_told = true;
            (self.say)(&format!("no record of the driver counted for {age_limit}: all windows are released"));
        }
    }

    /// The driver is heard again.
    pub(super) fn heard(&mut self) {
        if std::mem::take(&mut self.silence_told) {
            (self.say)("the driver is heard again");
        }
    }

    /// A record came too late.
    pub(super) fn stale(&mut self, now: Time) {
        self.stale.add(now, ());
    }

    /// A flow is managed from now on.
    pub(super) fn accepted(&mut self, now: Time, station: Node, address: IpAddr) {
        self.accepted.add(now, (station, address));
    }

    /// A flow of an unknown station is seen for the first time.
    pub(super) fn stranger(&mut self, now: Time, address: IpAddr) {
        self.strangers.add(now, address);
    }

    /// Events of the program were lost before they were read.
    pub(super) fn missed(&mut self, now: Time, events: u64) {
        self.missed.add_many(now, events, ());
    }

    /// So many flows in all lost their place in the table, or found none.
    pub(super) fn places(&mut self, now: Time, lacking: u64) {
        let new = lacking.saturating_sub(self.places);
        self.places = lacking;
        if new > 0 {
            self.crowded.add_many(now, new, ());
        }
    }

    /// Tells what is due.
    pub(super) fn tell(&mut self, now: Time) {
        if let Some((number, (Node(station), address))) = self.accepted.take(now) {
            let flows = count(number, "flow");
            (self.say)(&format!("{flows} more taken on, the last of station {station} at {address}"));
        }
        if let Some((number, address)) = self.strangers.take(now) {
            let flows = count(number, "flow");
            (self.say)(&format!(
                "{flows} more left alone, the last of {address}: neither the driver nor --station says whose"
            ));
        }
        if let Some((number, ())) = self.crowded.take(now) {
            let flows = count(number, "flow");
            (self.say)(&format!("{flows} more without a place in the table, which is full: see --max-flows"));
        }
        if let Some((number, ())) = self.missed.take(now) {
            let events = count(number, "event");
            (self.say)(&format!(
                "{events} more of the program lost before they were read: nothing is learned from the time around them"
            ));
        }
        if let Some((number, ())) = self.stale.take(now) {
            let records = count(number, "record");
            (self.say)(&format!("{records} more of the driver ignored: older than the age limit when they came"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;

    #[test]
    fn a_flood_is_told_in_few_lines_and_nothing_is_left_out() {
        static SAID: Mutex<Vec<String>> = Mutex::new(Vec::new());
        let mut news = News::new(|line| SAID.lock().expect("not poisoned").push(line.to_owned()));
        let at = |ms: u64| Time::from_nanos((9_000_000 + ms) * 1_000_000);
        for ms in 0..600_000 {
            news.accepted(at(ms), Node(3), IpAddr::from([10, 0, 0, 3]));
            news.stranger(at(ms), IpAddr::from([10, 0, 0, 9]));
            news.places(at(ms), ms * 2);
            news.missed(at(ms), 3);
            news.stale(at(ms));
            news.silent(at(ms), Span::from_millis(500));
            news.heard();
            news.contradicts(Contradiction::Twice(Node(4)));
            news.tell(at(ms));
        }
        let said = SAID.lock().expect("not poisoned").clone();
        assert!((25..=36).contains(&said.len()), "{said:?}");
        for part in [
            "1001 flows more taken on, the last of station 3 at 10.0.0.3",
            "1001 flows more left alone, the last of 10.0.0.9: neither",
            "2002 flows more without a place",
            "3003 events more of the program lost",
            "1001 records more of the driver ignored",
            "no record of the driver counted for 500 ms",
            "the driver is heard again",
            "station 4 is listed twice",
        ] {
            assert!(said.iter().any(|line| line.contains(part)), "{part}: {said:?}");
        }
    }
}
