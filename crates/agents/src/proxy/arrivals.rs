//! What the operator of a proxy hears of stations: sessions that begin and end, and servers that they may not be connected to.

use crate::service::rate_limited_log::RateLimitedLog;
use lasthop_signals::Node;
use lasthop_units::{Time, count};
use std::net::SocketAddr;

/// What has happened and not been told yet.
#[derive(Debug, Default)]
pub(crate) struct Arrivals {
    begun: RateLimitedLog<(Node, SocketAddr)>,
    silent: RateLimitedLog<Node>,
    forbidden: RateLimitedLog<(Node, SocketAddr)>,
    tells: RateLimitedLog<(Node, bool)>,
}

impl Arrivals {
    /// A station's session has begun, from there.
    pub(crate) fn begun(&mut self, now: Time, station: Node, from: SocketAddr) {
        let from = SocketAddr::new(from.ip().to_canonical(), from.port());
        self.begun.add(now, (station, from));
    }

    /// A station's session has ended, since nothing was heard of it for long.
    pub(crate) fn silent(&mut self, now: Time, station: Node) {
        self.silent.add(now, station);
    }

    /// A station wanted to be connected to this machine.
    pub(crate) fn forbidden(&mut self, now: Time, station: Node, to: SocketAddr) {
        self.forbidden.add(now, (station, to));
    }

    /// A station tells of its cell, and is served by that, or is not.
    pub(crate) fn tells(&mut self, now: Time, station: Node, served: bool) {
        self.tells.add(now, (station, served));
    }

    /// Tells what is due.
    pub(crate) fn tell(&mut self, now: Time, say: impl Fn(&str)) {
        if let Some((number, (Node(station), from))) = self.begun.take(now) {
            say(&format!("{} begun, the last of station {station} at {from}", count(number, "session")));
        }
        if let Some((number, Node(station))) = self.silent.take(now) {
            say(&format!("{} ended in silence, the last of station {station}", count(number, "session")));
        }
        if let Some((number, (Node(station), to))) = self.forbidden.take(now) {
            let connections = count(number, "connection");
            say(&format!(
                "{connections} refused, the last of station {station} to {to}, which is this machine (--allow-local)"
            ));
        }
        if let Some((number, (Node(station), served))) = self.tells.take(now) {
            let sessions = count(number, "session");
            let what = if served { "pbe serves it" } else { "it is served at the rate of all the same (--rate)" };
            say(&format!("{sessions} of stations that tell of their cell, the last of station {station}: {what}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;

    #[test]
    fn stations_that_come_and_go_are_told_in_few_lines() {
        let (mut arrivals, said) = (Arrivals::default(), RefCell::new(Vec::new()));
        let from: SocketAddr = "[::ffff:192.0.2.9]:4000".parse().expect("an address");
        for ms in 0..600_000u64 {
            let now = Time::from_nanos((5_000_000 + ms) * 1_000_000);
            if ms % 10 == 0 {
                arrivals.begun(now, Node(3), from);
                arrivals.silent(now, Node(4));
                arrivals.forbidden(now, Node(3), from);
                arrivals.tells(now, Node(5), ms % 20 == 0);
            }
            arrivals.tell(now, |line| said.borrow_mut().push(line.to_owned()));
        }
        let said = said.into_inner();
        assert_eq!(said.len(), 4 * 4, "{said:?}");
        assert_eq!(said[0], "101 sessions begun, the last of station 3 at 192.0.2.9:4000");
        assert_eq!(said[1], "101 sessions ended in silence, the last of station 4");
        assert!(said[2].starts_with("101 connections refused, the last of station 3 to "), "{}", said[2]);
        let tells = "101 sessions of stations that tell of their cell, the last of station 5: pbe serves it";
        assert_eq!(said[3], tells);
    }
}
