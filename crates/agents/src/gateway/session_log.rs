//! What the operator of a gateway hears of others: sessions that begin and end, and what was refused.

use super::network::Network;
use crate::service::rate_limited_log::RateLimitedLog;
use lasthop_signals::Node;
use lasthop_units::{Time, count};
use std::net::SocketAddr;

/// What has happened and not been told yet.
#[derive(Debug, Default)]
pub(super) struct SessionLog {
    begun: RateLimitedLog<(Node, SocketAddr)>,
    silent: RateLimitedLog<Node>,
    forbidden: RateLimitedLog<(Node, SocketAddr)>,
    refused: RateLimitedLog<()>,
}

impl SessionLog {
    /// A session has begun with the owner of this key, which is at this address.
    pub(super) fn begun(&mut self, now: Time, node: Node, at: SocketAddr) {
        self.begun.add(now, (node, SocketAddr::new(at.ip().to_canonical(), at.port())));
    }

    /// A session has ended, since nothing was heard for long.
    pub(super) fn silent(&mut self, now: Time, node: Node) {
        self.silent.add(now, node);
    }

    /// Another gateway wanted to be connected to where it may not.
    pub(super) fn forbidden(&mut self, now: Time, node: Node, to: SocketAddr) {
        self.forbidden.add(now, (node, to));
    }

    /// A local program was refused, since the other gateway is not heard.
    pub(super) fn refused(&mut self, now: Time) {
        self.refused.add(now, ());
    }

    /// Tells what is due. `allow`: where others may be connected, if not everywhere.
    pub(super) fn tell(&mut self, now: Time, allow: &[Network], say: impl Fn(&str)) {
        if let Some((number, (Node(key), at))) = self.begun.take(now) {
            say(&format!("{} begun, the last with the gateway of key {key} at {at}", count(number, "session")));
        }
        if let Some((number, Node(key))) = self.silent.take(now) {
            say(&format!("{} ended in silence, the last of key {key}", count(number, "session")));
        }
        if let Some((number, (Node(key), to))) = self.forbidden.take(now) {
            let connections = count(number, "connection");
            let why = match allow.iter().any(|network| network.contains(to.ip())) || allow.is_empty() {
                true => "which is this machine (--allow-local)",
                false => "which is in no network of --allow",
            };
            say(&format!("{connections} refused, the last of key {key} to {to}, {why}"));
        }
        if let Some((number, ())) = self.refused.take(now) {
            say(&format!("{} refused: the other gateway is not heard", count(number, "connection")));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;

    #[test]
    fn sessions_that_come_and_go_are_logged_in_few_lines() {
        let (mut session_log, said) = (SessionLog::default(), RefCell::new(Vec::new()));
        let at: SocketAddr = "[::ffff:192.0.2.9]:4000".parse().expect("an address");
        let allow = ["10.2.0.0/16".parse().expect("a network")];
        for ms in 0..600_000u64 {
            let now = Time::from_nanos((5_000_000 + ms) * 1_000_000);
            if ms % 10 == 0 {
                session_log.begun(now, Node(3), at);
                session_log.silent(now, Node(4));
                session_log.forbidden(now, Node(3), at);
                session_log.refused(now);
            }
            session_log.tell(now, &allow, |line| said.borrow_mut().push(line.to_owned()));
        }
        let said = said.into_inner();
        assert_eq!(said.len(), 4 * 4, "{said:?}");
        assert_eq!(said[0], "101 sessions begun, the last with the gateway of key 3 at 192.0.2.9:4000");
        assert_eq!(said[1], "101 sessions ended in silence, the last of key 4");
        assert!(said[2].ends_with("which is in no network of --allow"), "{}", said[2]);
        assert_eq!(said[3], "101 connections refused: the other gateway is not heard");
    }
}
