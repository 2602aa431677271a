//! What an operator may choose, and what there is to say at the end.

use crate::service::{Error, Say};
use crate::tunnel::path::Unsent;
use lasthop_laws::{Choice, Place, ReceiveWindow, pbe};
use lasthop_signals::Doubt;
use lasthop_units::{Rate, Span};
use std::collections::BTreeMap;
use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;

/// How fast each station is served.
#[derive(Clone, Debug, PartialEq)]
pub enum Rule {
    /// All at a fixed rate of IP packets.
    Fixed(Rate),
    /// As a law decides.
    Law(Choice),
}

/// A proxy's configuration.
#[derive(Clone, Debug)]
pub struct Config {
    /// Where stations reach it (UDP).
    pub listen: SocketAddr,
    /// The file of keys.
    pub keys: PathBuf,
    /// How fast stations are served.
    pub rule: Rule,
    /// The law by which stations are served that tell of their cells, in place of `rule`. `None`: like all others.
    pub cells: Option<Choice>,
    /// What may wait for a station beyond what fills the wire from its servers, as time at its rate.
    pub allowance: Span,
    /// Stations may be connected to addresses of this machine and of its links.
    pub allow_local: bool,
    /// Connections that others make to stations' addresses are taken over.
    pub transparent: Option<crate::transparent::Config>,
    /// Where the controller's log goes.
    pub log: Option<PathBuf>,
    /// Ask for real-time scheduling.
    pub realtime: bool,
    /// Give up all privileges once the sockets are open.
    pub drop_privileges: bool,
    /// The user, by name or number, that the process becomes then; `None` to keep its own. Only with `drop_privileges`.
    pub user: Option<String>,
    /// Receives messages about what happens meanwhile.
    pub say: Say,
}

impl Config {
    /// A configuration with the defaults: stations that tell of their cells are served by PBE-CC, unless all have one rate.
    pub fn new(listen: SocketAddr, keys: PathBuf, rule: Rule) -> Config {
        let cells = matches!(rule, Rule::Law(_)).then(|| Choice::named(Place::Sender, pbe::NAME)).flatten();
        Config {
            listen,
            keys,
            rule,
            cells,
            allowance: ReceiveWindow::ALLOWANCE,
            allow_local: false,
            transparent: None,
            log: None,
            realtime: true,
            drop_privileges: true,
            user: None,
            say: |_| {},
        }
    }

    pub(super) fn validate(&self) -> Result<(), Error> {
        let wrong = |key, got: String, bound| Err(Error::Config { key, got, bound });
        match &self.rule {
            Rule::Fixed(rate) if *rate < Rate::from_bps(10_000) => {
                return wrong("rate", rate.to_string(), "at least 10 kbit/s");
            }
            Rule::Fixed(_) => {}
            Rule::Law(choice) => choice.check()?,
        }
        self.cells.iter().try_for_each(Choice::check)?;
        let mut numbers = BTreeMap::new();
        for (address, station) in self.transparent.iter().flat_map(|transparent| &transparent.stations) {
            if let Some(other) = numbers.insert(address, station).filter(|other| *other != station) {
                let got = format!("{address}={} and {address}={}", other.0, station.0);
                return wrong("station", got, "one number for each address");
            }
        }
        if !(Span::from_millis(1)..=Span::from_secs(10)).contains(&self.allowance) {
            return wrong("allowance", self.allowance.to_string(), "from 1 ms to 10 s");
        }
        Ok(())
    }
}

/// Stations' accounts that cannot be true. They are refused: the law does not see them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Doubted {
    /// How many.
    pub count: u64,
    /// Why the last of them cannot.
    pub why: Option<Doubt>,
}

impl Doubted {
    pub(super) fn add(&mut self, why: Doubt) {
        (self.count, self.why) = (self.count + 1, Some(why));
    }

    pub(super) fn merge(&mut self, later: Doubted) {
        (self.count, self.why) = (self.count + later.count, later.why.or(self.why));
    }
}

impl fmt::Display for Doubted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} accounts of stations were refused", self.count)?;
        self.why.map_or(Ok(()), |why| write!(f, ", the last because of {why}"))
    }
}

/// What a proxy did.
#[derive(Debug, Default)]
pub struct Summary {
    /// Sessions with stations.
    pub sessions: u64,
    /// Sessions that went on with other keys, counted as often as they did.
    pub renewals: u64,
    /// Initiations that were answered with keys, each of which took exponentiations.
    pub handshakes: u64,
    /// Initiations that were answered with a challenge: not of now, or of a station that had none yet.
    pub challenges: u64,
    /// Connections to servers.
    pub connections: u64,
    /// IP packets sent to stations, and their octets.
    pub packets: u64,
    /// Octets of those.
    pub octets: u64,
    /// Packets found lost.
    pub lost: u64,
    /// Datagrams that the kernel did not take.
    pub unsent: Unsent,
    /// Datagrams that were refused: wrong key, repeated, or no datagram of ours.
    pub refused: u64,
    /// Stations' accounts that were not believed.
    pub doubted: Doubted,
    /// Median and 99th percentile of the time between when a packet should have left and when it did.
    pub pacing_error: Option<(Span, Span)>,
    /// The log is incomplete for this reason.
    pub log_error: Option<Error>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use lasthop_signals::Node;
    use std::net::Ipv4Addr;

    #[test]
    fn an_address_leads_to_one_station() {
        let config = |stations: &[(u8, u16)]| {
            let stations = stations.iter().map(|(end, node)| (Ipv4Addr::new(192, 0, 2, *end), Node(*node))).collect();
            let listen = "192.0.2.1:4848".parse().expect("an address");
            Config {
                transparent: Some(crate::transparent::Config { iface: "p0".into(), stations }),
                ..Config::new(listen, PathBuf::from("keys"), Rule::Fixed(Rate::from_mbit(1)))
            }
        };
        for right in [&[(5, 1), (6, 2)][..], &[(5, 1), (6, 1)], &[(5, 1), (5, 1)]] {
            config(right).validate().expect("one number for each");
        }
        let error = config(&[(5, 1), (6, 1), (5, 2)]).validate().expect_err("two numbers");
        let wanted = "station = 192.0.2.5=1 and 192.0.2.5=2 must be one number for each address";
        assert_eq!(error.to_string(), wanted);
    }
}
