//! What an operator may choose, and what there is to say at the end.

use super::network::Network;
use crate::service::{Error, Say};
use crate::station::Forward;
use crate::tunnel::keys::Key;
use crate::tunnel::path::Unsent;
use lasthop_laws::atp::{LONGEST_DELAY, Variant};
use lasthop_signals::Node;
use lasthop_units::Span;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;

/// The gateway that is called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peer {
    /// Number of the key that both have; `None`: the only one of the file.
    pub key: Option<Node>,
    /// Where it may be (UDP): tried in turn until one has answered.
    pub addresses: Vec<SocketAddr>,
}

/// A gateway's configuration.
#[derive(Clone, Debug)]
pub struct Config {
    /// Where it is (UDP): calls come here, and everything is sent from here.
    pub bind: SocketAddr,
    /// The file of keys, one for each other gateway.
    pub keys: PathBuf,
    /// The gateway that it calls.
    pub peer: Option<Peer>,
    /// Number of the key of the gateway to which the doors lead, if that is not the one that is called, nor the only one.
    pub via: Option<Node>,
    /// Where local programs find SOCKS5 and HTTP CONNECT.
    pub listen: Option<SocketAddr>,
    /// Ports that lead to one target each.
    pub forwards: Vec<Forward>,
    /// Transparent mode: connections of the processes in this cgroup (version 2) are led to the other gateway.
    pub transparent: Option<PathBuf>,
    /// How often the other gateway is told of D.
    pub variant: Variant,
    /// D of this end's interface is at least this.
    pub least_delay: Span,
    /// Networks to which others may be connected; none: all.
    pub allow: Vec<Network>,
    /// They may be connected to addresses of this machine and of its links, too.
    pub allow_local: bool,
    /// Keys are renewed when they are as old as this.
    pub renew: Span,
    /// Ask for real-time scheduling.
    pub realtime: bool,
    /// Give up all privileges once the sockets are open.
    pub drop_privileges: bool,
    /// The user, by name or number, that the process becomes then; `None` to keep its own. Only with `drop_privileges`.
    pub user: Option<String>,
    /// Receives messages about what happens meanwhile.
    pub say: Say,
}

/// The gateway that is called, with its key, and the one that the doors lead to.
pub(super) struct Roles {
    pub(super) calls: Option<(Node, Key)>,
    pub(super) via: Option<Node>,
}

impl Config {
    /// A configuration with the defaults.
    pub fn new(bind: SocketAddr, keys: PathBuf) -> Config {
        Config {
            bind,
            keys,
            peer: None,
            via: None,
            listen: None,
            forwards: Vec::new(),
            transparent: None,
            variant: Variant::Adaptive,
            least_delay: Span::ZERO,
            allow: Vec::new(),
            allow_local: false,
            renew: crate::tunnel::keyring::RENEW_AFTER,
            realtime: false,
            drop_privileges: true,
            user: None,
            say: |_| {},
        }
    }

    pub(super) fn validate(&self) -> Result<(), Error> {
        let wrong = |key, got: String, bound| Err(Error::Config { key, got, bound });
        for address in self.peer.iter().flat_map(|peer| &peer.addresses) {
            if address.port() == 0 {
                return wrong("peer", address.to_string(), "an address with a port other than 0");
            }
            if address.is_ipv6() && self.bind.is_ipv4() {
                let bound = "of the family of --bind (an IPv6 address such as [::]:4900 is for both)";
                return wrong("peer", address.to_string(), bound);
            }
        }
        if self.least_delay > LONGEST_DELAY {
            return wrong("least-delay", self.least_delay.to_string(), "at most 4 s");
        }
        if !(Span::from_secs(1)..=crate::tunnel::keyring::RENEW_AFTER).contains(&self.renew) {
            return wrong("renew", self.renew.to_string(), "from 1 s to 120 s");
        }
        Ok(())
    }

    /// Assigns the roles by these keys.
    ///
    /// # Errors
    /// [`Error::Config`] if a key is named that there is not, or none is where there are several.
    pub(super) fn roles(&self, keys: &BTreeMap<Node, Key>) -> Result<Roles, Error> {
        let wrong = |key, got: String, bound| Err(Error::Config { key, got, bound });
        let only = keys.keys().next().copied().filter(|_| keys.len() == 1);
        let calls = match &self.peer {
            None => None,
            Some(peer) => match peer.key.or(only) {
                None => {
                    return wrong(
                        "peer",
                        "without a number".into(),
                        "NUMBER=HOST:PORT where the file has several keys",
                    );
                }
                Some(node) => match keys.get(&node) {
                    None => return wrong("peer", format!("{}=…", node.0), "the number of a key of the file"),
                    Some(key) => Some((node, key.clone())),
                },
            },
        };
        let via = self.via.or(calls.as_ref().map(|(node, _)| *node)).or(only);
        let doors = self.listen.is_some() || !self.forwards.is_empty() || self.transparent.is_some();
        match via {
            Some(node) if !keys.contains_key(&node) => {
                wrong("via", node.0.to_string(), "the number of a key of the file")
            }
            None if doors => wrong("via", "none".into(), "the number of a key: the file has several"),
            via => Ok(Roles { calls, via }),
        }
    }
}

/// What a gateway did.
#[derive(Debug, Default)]
pub struct Summary {
    /// Sessions with others.
    pub sessions: u64,
    /// Sessions that went on with other keys, counted as often as they did.
    pub renewals: u64,
    /// Connections of local programs that came through.
    pub connections: u64,
    /// Connections that were made for others.
    pub served: u64,
    /// Packets sent, and those of them that were found lost.
    pub packets: u64,
    /// Of those, found lost.
    pub lost: u64,
    /// Packets received.
    pub received: u64,
    /// Datagrams that were refused: wrong key, repeated, or no datagram of ours.
    pub refused: u64,
    /// Datagrams that the kernel did not take.
    pub unsent: Unsent,
    /// D as the other ends told it last, the largest.
    pub delay: Option<Span>,
    /// The most that they have told.
    pub most_delay: Option<Span>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(numbers: &[u16]) -> BTreeMap<Node, Key> {
        numbers.iter().map(|number| (Node(*number), Key::new([7; 32]))).collect()
    }

    fn config() -> Config {
        Config::new("0.0.0.0:4900".parse().expect("an address"), PathBuf::from("keys"))
    }

    fn called(key: Option<u16>) -> Config {
        let addresses = vec!["192.0.2.1:4900".parse().expect("an address")];
        Config { peer: Some(Peer { key: key.map(Node), addresses }), ..config() }
    }

    #[test]
    fn a_key_is_named_where_there_are_several_and_only_then() {
        let roles = |config: &Config, numbers: &[u16]| {
            let roles = config.roles(&keys(numbers)).map_err(|error| error.to_string())?;
            Ok::<_, String>((roles.calls.map(|(Node(number), _)| number), roles.via.map(|Node(number)| number)))
        };
        assert_eq!(roles(&config(), &[3]), Ok((None, Some(3))));
        assert_eq!(roles(&config(), &[3, 4]), Ok((None, None)), "it has no doors");
        assert_eq!(roles(&called(None), &[3]), Ok((Some(3), Some(3))));
        assert_eq!(roles(&called(Some(4)), &[3, 4]), Ok((Some(4), Some(4))));
        assert_eq!(roles(&Config { via: Some(Node(3)), ..called(Some(4)) }, &[3, 4]), Ok((Some(4), Some(3))));
        let doors = Config { listen: Some("127.0.0.1:1080".parse().expect("an address")), ..config() };
        for (config, numbers, says) in [
            (called(None), &[3, 4][..], "peer = without a number must be NUMBER=HOST:PORT"),
            (called(Some(5)), &[3, 4], "peer = 5=… must be the number of a key"),
            (doors, &[3, 4], "via = none must be the number of a key"),
            (Config { via: Some(Node(5)), ..config() }, &[3], "via = 5 must be the number of a key"),
        ] {
            let told = roles(&config, numbers).expect_err(says);
            assert!(told.contains(says), "{told}");
        }
    }

    #[test]
    fn what_cannot_be_is_refused() {
        called(None).validate().expect("the defaults");
        for (wrong, says) in [
            (Config { least_delay: Span::from_secs(5), ..config() }, "least-delay = 5 s must be at most 4 s"),
            (Config { renew: Span::ZERO, ..config() }, "renew"),
            (
                Config {
                    peer: Some(Peer { key: None, addresses: vec!["[2001:db8::1]:1".parse().expect("an address")] }),
                    ..config()
                },
                "of the family of --bind",
            ),
        ] {
            let told = wrong.validate().expect_err(says).to_string();
            assert!(told.contains(says), "{told}");
        }
    }
}
