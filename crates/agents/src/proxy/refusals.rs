//! Datagrams that the proxy refuses, and sessions that end each other, as its operator hears of them: how many, for which reason, and where the
//! last came from.
//!
//! Whoever may send datagrams can make it refuse them, so that lines are few ([`LogLimiter`]) and of bounded length.

use crate::service::rate_limited_log::LogLimiter;
use lasthop_signals::Node;
use lasthop_units::{Span, Time, count};
use std::fmt::Write as _;
use std::net::SocketAddr;

/// Refusals that have not been told yet.
#[derive(Debug)]
pub(crate) struct Refusals {
    limiter: LogLimiter,
    /// Requests of stations that are known, under other keys than theirs.
    wrong_key: Tally<Node>,
    /// Requests of stations that have no key.
    unknown: Tally<Node>,
    /// Packets under keys that are in use, from a sender without those keys.
    forged: Tally<()>,
    /// What is no datagram of ours.
    foreign: Tally<()>,
    /// Sessions that ended one of the same station that was in use, and the last such.
    twins: Tally<Node>,
    replaced: Option<(Node, Time)>,
}

/// How many there were, and the last of them.
#[derive(Debug)]
struct Tally<T> {
    count: u64,
    last: Option<(T, SocketAddr)>,
}

/// Why a datagram was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// A request of this station under another key.
    WrongKey(Node),
    /// A request of a station that has none.
    Unknown(Node),
    /// A packet that was changed, or sealed by somebody else.
    Forged,
    /// Nothing of ours.
    Foreign,
}

/// Sessions of one station that end each other within this time do so in a row.
const IN_A_ROW: Span = Span::from_secs(60);
/// What comes within this time is told together.
const GATHER: Span = Span::from_secs(1);

impl Refusals {
    pub(crate) fn new() -> Refusals {
        Refusals {
            limiter: LogLimiter::new(GATHER),
            wrong_key: Tally::none(),
            unknown: Tally::none(),
            forged: Tally::none(),
            foreign: Tally::none(),
            twins: Tally::none(),
            replaced: None,
        }
    }

    /// A datagram from there has been refused.
    pub(crate) fn add(&mut self, now: Time, from: SocketAddr, why: Refusal) {
        self.limiter.goes_on(now);
        match why {
            Refusal::WrongKey(station) => self.wrong_key.add(station, from),
            Refusal::Unknown(station) => self.unknown.add(station, from),
            Refusal::Forged => self.forged.add((), from),
            Refusal::Foreign => self.foreign.add((), from),
        }
    }

    /// A new session of this station, from there, has ended one that was in use. An agent that was killed and started again at once does that,
    /// but not twice in a row.
    pub(crate) fn replaced(&mut self, now: Time, from: SocketAddr, station: Node) {
        let before = self.replaced.replace((station, now));
        if before.is_some_and(|(of, at)| of == station && now.since(at) < IN_A_ROW) {
            self.limiter.goes_on(now);
            self.twins.add(station, from);
        }
    }

    /// A line about those since the last one, if it is time for one.
    pub(crate) fn take(&mut self, now: Time) -> Option<String> {
        if !self.limiter.is_due(now) {
            return None;
        }
        let mut line = String::new();
        let mut part = |number: u64, what: &str, why: &str, from: SocketAddr| {
            let comma = if line.is_empty() { "" } else { "; " };
            let _ = write!(line, "{comma}{} {why}, the last from {from}", count(number, what));
        };
        if let (number, Some((Node(station), from))) = self.wrong_key.take() {
            part(
                number,
                "request",
                &format!("refused, under a wrong key (of station {station}: pair it anew, or copy its key again)"),
                from,
            );
        }
        if let (number, Some((Node(station), from))) = self.unknown.take() {
            part(
                number,
                "request",
                &format!("refused, of stations without a key (number {station}: `lasthop pair` makes one)"),
                from,
            );
        }
        if let (number, Some(((), from))) = self.forged.take() {
            part(number, "packet", "refused, which failed authentication", from);
        }
        if let (number, Some(((), from))) = self.foreign.take() {
            part(number, "datagram", "refused, which are none of a station's", from);
        }
        if let (number, Some((Node(station), from))) = self.twins.take() {
            let why = format!("of station {station} ended by a new one of its own: do two agents have its key?");
            part(number, "session", &why, from);
        }
        Some(line)
    }
}

impl<T> Tally<T> {
    const fn none() -> Tally<T> {
        Tally { count: 0, last: None }
    }

    fn add(&mut self, of: T, from: SocketAddr) {
        // A socket for both families shows IPv4 addresses as IPv6 ones.
        let from = SocketAddr::new(from.ip().to_canonical(), from.port());
        (self.count, self.last) = (self.count + 1, Some((of, from)));
    }

    fn take(&mut self) -> (u64, Option<(T, SocketAddr)>) {
        (std::mem::take(&mut self.count), self.last.take())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Time {
        Time::from_nanos((5_000_000 + ms) * 1_000_000)
    }

    #[test]
    fn refusals_are_logged_with_reasons_and_floods_in_few_lines() {
        let (mut refusals, home) = (Refusals::new(), "[::ffff:192.0.2.9]:4000".parse().expect("an address"));
        assert_eq!(refusals.take(at(0)), None);
        for ms in 0..3 {
            refusals.add(at(ms), home, Refusal::WrongKey(Node(3)));
        }
        refusals.add(at(3), home, Refusal::Foreign);
        assert_eq!(refusals.take(at(999)), None);
        let line = refusals.take(at(1_000)).expect("a second is over");
        assert!(line.starts_with("3 requests refused, under a wrong key (of station 3: "), "{line}");
        assert!(
            line.ends_with("; 1 datagram refused, which are none of a station's, the last from 192.0.2.9:4000"),
            "{line}"
        );
        let (mut lines, mut count) = (0, 0);
        for ms in 2_000..600_000 {
            refusals.add(at(ms), home, if ms % 2 == 0 { Refusal::Forged } else { Refusal::Unknown(Node(7)) });
            count += 1;
            if let Some(line) = refusals.take(at(ms)) {
                (lines, count) = (lines + 1, 0);
                assert!(line.contains(" packets refused, which failed authentication") && line.len() < 300, "{line}");
            }
        }
        assert!(lines <= 4 && count > 0, "{lines} lines");
    }

    #[test]
    fn two_agents_with_one_key_are_logged_but_a_restart_is_not() {
        let (mut refusals, home) = (Refusals::new(), "192.0.2.9:4000".parse().expect("an address"));
        for (ms, station) in [(0, 1), (1_000, 2), (2_000, 3), (90_000, 3)] {
            refusals.replaced(at(ms), home, Node(station));
            assert_eq!(refusals.take(at(ms + 5_000)), None, "once in a while");
        }
        refusals.replaced(at(92_000), home, Node(3));
        let line = refusals.take(at(93_000)).expect("twice in a row");
        assert!(line.starts_with("1 session of station 3 ended by a new one of its own: "), "{line}");
    }
}
