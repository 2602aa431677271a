//! What an agent says while it hears nothing of the tunnel's other end: for how long, and what it knows of the reason.

use crate::service::rate_limited_log::LogLimiter;
use crate::tunnel::path::Unsent;
use lasthop_units::{Span, Time};
use std::net::SocketAddr;

/// Silence, as it is told.
#[derive(Debug)]
pub(crate) struct SilenceReporter {
    limiter: LogLimiter,
    /// What is listened to, and what this is to it.
    roles: [&'static str; 2],
    /// Since when nothing has been heard; since the agent began, before the proxy has answered for the first time.
    since: Time,
    told: bool,
    /// Datagrams that had been refused, and others that could not be sent, by then.
    refused: u64,
    unsent: Unsent,
}

/// What is known when it is looked.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LastReception {
    /// Where the proxy is asked.
    pub(crate) proxy: SocketAddr,
    /// When something was last heard in the session, if there is one.
    pub(crate) heard: Option<Time>,
    /// Datagrams that came and were refused, since the agent began.
    pub(crate) refused: u64,
    /// Datagrams that could not be sent, likewise.
    pub(crate) unsent: Unsent,
}

/// A silence of so long is told: the proxy has been asked ten times, or pinged six times.
const TOLD_AFTER: Span = Span::from_secs(3);

impl SilenceReporter {
    /// Of a proxy, at a station.
    pub(crate) fn new(now: Time) -> SilenceReporter {
        SilenceReporter::between(now, ["proxy", "station"])
    }

    /// Of the other end, by what it is, and what this one is.
    pub(crate) fn between(now: Time, roles: [&'static str; 2]) -> SilenceReporter {
        let limiter = LogLimiter::new(Span::ZERO);
        SilenceReporter { limiter, roles, since: now, told: false, refused: 0, unsent: Unsent::default() }
    }

    /// A line, if it is time for one: about the silence, or its end.
    pub(crate) fn look(&mut self, now: Time, last_reception: LastReception) -> Option<String> {
        let LastReception { proxy, heard, refused, unsent } = last_reception;
        if let Some(heard) = heard.filter(|heard| *heard > self.since) {
            let told = std::mem::take(&mut self.told);
            let line = told.then(|| format!("{proxy} has answered"));
            (self.since, self.refused, self.unsent) = (heard, refused, unsent);
            return line;
        }
        let silent = now.since(self.since);
        if silent < TOLD_AFTER {
            return None;
        }
        self.limiter.goes_on(now);
        if !self.limiter.is_due(now) {
            return None;
        }
        self.told = true;
        let mut line = format!("nothing heard from {proxy} for {} s", silent.as_nanos() / 1_000_000_000);
        if heard.is_none() {
            let [other, own] = self.roles;
            line += &format!(": no {other} there, UDP does not pass, or it has another key for this {own}, or none");
        }
        let wrong = refused - self.refused;
        if wrong > 0 {
            line += &format!(
                "; {wrong} datagrams that came were refused, since they are repeated or sealed with another key"
            );
        }
        let count = unsent.count - self.unsent.count;
        if count > 0 {
            line += &format!("; {}", Unsent { count, ..unsent });
        }
        Some(line)
    }

    /// When it has to be looked at the latest.
    pub(crate) fn next(&self) -> Time {
        self.limiter.not_before().max(self.since + TOLD_AFTER)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::errno::Errno;

    fn at(ms: u64) -> Time {
        Time::from_nanos((5_000_000 + ms) * 1_000_000)
    }

    fn last_reception(heard: Option<Time>) -> LastReception {
        let proxy = "192.0.2.1:4848".parse().expect("an address");
        LastReception { proxy, heard, refused: 0, unsent: Unsent::default() }
    }

    #[test]
    fn a_silent_proxy_is_reported_in_time_and_then_its_answer() {
        let mut silence = SilenceReporter::new(at(0));
        let alone = LastReception {
            refused: 2,
            unsent: Unsent { count: 5, why: Some(Errno::ENETUNREACH) },
            ..last_reception(None)
        };
        assert_eq!(silence.next(), at(3_000));
        assert_eq!(silence.look(at(2_999), alone), None);
        let line = silence.look(at(3_000), alone).expect("three seconds");
        assert!(line.starts_with("nothing heard from 192.0.2.1:4848 for 3 s: no proxy there, "), "{line}");
        assert!(
            line.contains("; 2 datagrams that came were refused") && line.contains("; 5 datagrams could not be sent"),
            "{line}"
        );
        assert_eq!(silence.next(), at(13_000));
        assert!((3_001..10_000).all(|ms| silence.look(at(ms), alone).is_none()), "not again and again");
        assert!(silence.look(at(13_000), alone).is_some());
        assert_eq!(
            silence.look(at(20_000), last_reception(Some(at(20_000)))).as_deref(),
            Some("192.0.2.1:4848 has answered")
        );
        assert_eq!(silence.look(at(20_010), last_reception(Some(at(20_010)))), None);
    }

    #[test]
    fn a_live_tunnel_logs_nothing_and_a_pausing_one_few_lines() {
        let mut silence = SilenceReporter::new(at(0));
        assert!((0..100_000).step_by(500).all(|ms| silence.look(at(ms), last_reception(Some(at(ms)))).is_none()));
        let mut lines = 0;
        for ms in (100_000..3_700_000).step_by(100) {
            // Four seconds in ten it is silent.
            let heard = if ms % 10_000 < 6_000 { ms } else { ms / 10_000 * 10_000 + 5_900 };
            lines += u64::from(silence.look(at(ms), last_reception(Some(at(heard)))).is_some());
        }
        assert!((8..=20).contains(&lines), "{lines} lines in an hour");
    }
}
