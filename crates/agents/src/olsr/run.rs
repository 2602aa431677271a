//! The agent's loop: packets to the node, its packets to the link, its routes to the kernel.

use super::config::{Config, Prefix, Summary};
use super::error::Error;
use super::interface::{self, Interface};
use super::kernel::KernelRoutes;
use super::sockets::Sockets;
use crate::service::poll::Poll;
use crate::service::privileges::{self, Account};
use crate::service::{self, Stop, clock, random, system};
use lasthop_routing::olsr::{Olsr, Route, Routes};
use lasthop_units::{Seed, Span, Time, count};
use serde::Serialize;
use std::io;
use std::net::Ipv4Addr;

/// How often it is looked whether interface and routes are as they were left.
const BEAT: Span = Span::from_secs(1);
/// The token of the sockets.
const HEARD: u64 = 0;

/// A route that is another one now. Its fields are those of `lasthop olsr --json` (docs/reference/logs.md).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct Change {
    /// When, by `CLOCK_MONOTONIC`.
    pub t_ns: Time,
    /// Where it leads.
    pub destination: Ipv4Addr,
    /// The next hop; `None`: there is no route any more.
    pub next: Option<Ipv4Addr>,
    /// Over how many hops.
    pub hops: Option<u16>,
}

/// An agent with everything open and its privileges given up.
pub struct Agent {
    config: Config,
    interface: Interface,
    own: Ipv4Addr,
    within: Prefix,
    node: Olsr,
    sockets: Sockets,
    poll: Poll,
    kernel: KernelRoutes,
    /// Those of the node that count, as they were told last.
    routes: Routes,
    /// Why routes are refused, if they are; said once.
    refusal: Option<(Ipv4Addr, i32)>,
    beat: Time,
    summary: Summary,
}

impl Agent {
    /// Opens everything that needs privileges, removes what a killed agent has left, and gives up all privileges but the one to change routes.
    ///
    /// # Errors
    /// [`Error`].
    pub fn open(config: &Config) -> Result<Agent, Error> {
        config.validate()?;
        let account = config.user.as_deref().map(Account::find).transpose()?;
        let gone = || service::Error::NoInterface { name: config.iface.clone() };
        let interface = Interface::of(&config.iface).ok_or_else(gone)?;
        let found = match config.address {
            Some(wanted) => interface.addresses.iter().find(|found| found.own == wanted),
            None => interface.addresses.first(),
        };
        let Some(address) = found.copied() else {
            return Err(Error::NoAddress { iface: config.iface.clone(), wanted: config.address });
        };
        let within = config.within.unwrap_or(address.network);
        if within.is_host() {
            return Err(Error::NoNetwork { iface: config.iface.clone(), own: address.own });
        }
        // A right that lacks is better told now than with the first neighbour.
        if !privileges::has(privileges::NET_ADMIN) {
            return Err(Error::Right);
        }
        let poll = Poll::new().map_err(system("epoll"))?;
        let sockets = Sockets::open(&config.iface, address, (&poll, HEARD))?;
        let mut kernel = KernelRoutes::open(interface.index, address.own).map_err(system("reading routes"))?;
        let leavings = kernel.len();
        kernel.apply(&Routes::new()).map_err(refused)?;
        if leavings > 0 {
            let leavings = count(leavings as u64, "route");
            (config.say)(&format!("{}: removed {leavings} that an agent before had left", config.iface));
        }
        warn_of_switches(config);
        if config.drop_privileges {
            privileges::become_with(account.as_ref(), &[privileges::NET_ADMIN])?;
        }
        let now = clock::now();
        let stream = Seed(u64::from_ne_bytes(random()?)).stream("olsr");
        let node = Olsr::new(address.own, config.params, stream, now).expect("checked above");
        Ok(Agent {
            config: config.clone(),
            interface,
            own: address.own,
            within,
            node,
            sockets,
            poll,
            kernel,
            routes: Routes::new(),
            refusal: None,
            beat: now + BEAT,
            summary: Summary::default(),
        })
    }

    /// The node's address.
    pub fn address(&self) -> Ipv4Addr {
        self.own
    }

    /// Only addresses of this network count.
    pub fn within(&self) -> Prefix {
        self.within
    }

    /// Works until `stop` is set. `tell` hears of every change of a route.
    ///
    /// # Errors
    /// [`Error`], if the interface or its address has gone; and what `tell` returns.
    pub fn run<E: From<Error>>(
        mut self,
        stop: &Stop,
        mut tell: impl FnMut(&Change) -> Result<(), E>,
    ) -> Result<Summary, E> {
        while !stop.is_asked() {
            let now = clock::now();
            while let Some(packet) = self.node.poll_transmit(now) {
                self.summary.unsent += u64::from(!self.sockets.tell(&packet));
            }
            self.renew(now, &mut tell)?;
            if self.beat <= now {
                self.beat = now + BEAT;
                self.look()?;
            }
            let wait = self.node.next_timeout().min(self.beat).since(clock::now());
            if self.poll.wait(wait).map_err(|error| Error::from(system("waiting for packets")(error)))? > 0 {
                self.hear();
            }
        }
        let summary = Summary { node: self.node.account(), ..self.summary };
        self.kernel.apply(&Routes::new()).map_err(refused)?;
        Ok(summary)
    }

    fn hear(&mut self) {
        let now = clock::now();
        let Agent { node, summary, within, sockets, .. } = self;
        sockets.hear(|from, packet| {
            if within.contains(from) {
                // What is broken is counted, and has no effect.
                let _ = node.on_packet(now, from, packet);
            } else {
                summary.strangers += 1;
            }
        });
    }

    /// Brings the node's routes into the kernel, and tells which are others.
    fn renew<E>(&mut self, now: Time, tell: &mut impl FnMut(&Change) -> Result<(), E>) -> Result<(), E> {
        let counts = |destination: &Ipv4Addr| {
            let unicast = !destination.is_multicast() && !destination.is_broadcast() && !destination.is_unspecified();
            self.within.contains(*destination) && unicast && !destination.is_loopback()
        };
        let wanted = self.node.routes().iter().filter(|(destination, _)| counts(destination));
        if wanted.clone().eq(self.routes.iter()) {
            return Ok(());
        }
        let wanted: Routes = wanted.map(|(destination, route)| (*destination, *route)).collect();
        let before = std::mem::replace(&mut self.routes, wanted);
        // First the kernel: a program that reads of a route may use it at once.
        self.install();
        let t_ns = clock::monotonic(now);
        let gone = before.keys().filter(|destination| !self.routes.contains_key(destination)).map(|gone| (gone, None));
        let new = self.routes.iter().filter(|(destination, route)| before.get(destination) != Some(route));
        for (destination, route) in gone.chain(new.map(|(destination, route)| (destination, Some(route)))) {
            let (next, hops) = (route.map(|route: &Route| route.next), route.map(|route| route.hops));
            self.summary.changes += 1;
            tell(&Change { t_ns, destination: *destination, next, hops })?;
        }
        self.summary.routes = self.summary.routes.max(self.routes.len());
        Ok(())
    }

    /// Makes the kernel's routes ours; what it refuses is tried again at the next beat.
    fn install(&mut self) {
        let refusal = self.kernel.apply(&self.routes).err();
        let now = refusal.as_ref().map(|(destination, error)| (*destination, error.raw_os_error().unwrap_or(0)));
        if let Some((destination, error)) = refusal.filter(|_| now != self.refusal) {
            (self.config.say)(&format!("the kernel refuses the route to {destination}: {error}; it is tried again"));
        }
        self.refusal = now;
    }

    /// Looks whether interface and routes are as they were left.
    fn look(&mut self) -> Result<(), Error> {
        let iface = &self.config.iface;
        let is_same = |found: &Interface| found.index == self.interface.index;
        let Some(found) = Interface::of(iface).filter(is_same) else {
            return Err(Error::InterfaceGone(iface.clone()));
        };
        if !found.addresses.iter().any(|found| found.own == self.own) {
            return Err(Error::AddressGone { iface: iface.clone(), own: self.own });
        }
        self.kernel.look().map_err(system("reading routes"))?;
        self.install();
        Ok(())
    }
}

fn refused((destination, source): (Ipv4Addr, io::Error)) -> Error {
    Error::Refused { destination, source }
}

/// Says what of the kernel's settings keeps packets from being forwarded, or turns them.
fn warn_of_switches(config: &Config) {
    let iface = &config.iface;
    if interface::switch(iface, "forwarding") == Some(false) {
        (config.say)(&format!(
            "{iface} does not forward: neighbours will send packets through this node, which drops them; \
             `sysctl -w net.ipv4.conf.{iface}.forwarding=1`, or --willingness 0"
        ));
    }
    if [iface, "all"].iter().any(|of| interface::switch(of, "send_redirects") == Some(true)) {
        (config.say)(&format!(
            "this node sends ICMP redirects, which turn packets away from it to nodes out of reach; \
             `sysctl -w net.ipv4.conf.all.send_redirects=0 net.ipv4.conf.{iface}.send_redirects=0`"
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::documented::{OLSR, lists_exactly};

    #[test]
    fn the_page_on_logs_lists_every_field_and_no_other() {
        let (destination, next) = (Ipv4Addr::new(10, 0, 0, 3), Ipv4Addr::new(10, 0, 0, 2));
        let t_ns = Time::from_nanos(5);
        let change = Change { t_ns, destination, next: Some(next), hops: Some(2) };
        let line = serde_json::to_value(change).expect("JSON");
        assert_eq!(line.to_string(), r#"{"destination":"10.0.0.3","hops":2,"next":"10.0.0.2","t_ns":5}"#);
        lists_exactly(OLSR, &line);
    }
}
