//! OLSR: optimised link state routing for meshes.
//! Source:     RFC 3626, sections 3.4, 6 to 10; wire formats in `lasthop_wire::olsr`.
//!
//! Nodes find their neighbours by HELLOs, which go one hop. From these a node learns which nodes are two hops away, and
//! chooses multipoint relays (MPRs) among its neighbours so that all those are reached. Relays tell the whole mesh by
//! TCs for which nodes they forward; TCs are forwarded by relays alone. Neighbours, two-hop neighbours and TCs give the
//! routes: the shortest by hops.
//!
//! [`Olsr`] is one node. It owns no socket and no clock:
//!
//! ```text
//! on_packet(now, from, bytes)   for each datagram that comes
//! poll_transmit(now)            after that, and at next_timeout(): datagrams for the broadcast address, until there is none
//! routes()                      as of the last poll_transmit
//! ```
//!
//! Deviations:
//! - One interface a node. Its address is the node's main address, so no MID messages are made.
//! - MID and HNA messages, and those of unknown types, are forwarded and have no other effect.
//! - No link hysteresis and no link-layer notification (sections 13 and 14, options). TC_REDUNDANCY is 0, MPR_COVERAGE 1 (15, 16).
//! - Nothing is believed for longer than [`LONGEST`], whatever a message claims.
//! - A node that lists this one and has not chosen it is no selector any more at once, not only when its choice is too old (section 8.4.1).
//! - A TC comes earlier than at its interval, but no earlier than a quarter of that after the last, whenever the node forwards for others
//!   than before; the RFC suggests it for broken links (section 9.3).
//!
//! OLSR believes whatever it hears. Forged messages can turn routes, but memory stays bounded: [`MOST_LINKS`], [`MOST_TWO_HOP`],
//! [`MOST_TOPOLOGY`], [`MOST_DUPLICATES`], [`MOST_FORWARDS`], [`MOST_FORWARD_OCTETS`]; there are no more relays and selectors than links. What
//! is known keeps its place, and what finds none is counted ([`Account`]).

mod duplicates;
mod forwards;
mod links;
mod params;
pub mod relays;
mod routes;
mod topology;
mod two_hop;

pub use duplicates::MOST_DUPLICATES;
pub use forwards::{MOST_FORWARD_OCTETS, MOST_FORWARDS};
pub use links::{MOST_LINKS, Neighbour};
pub use params::{Params, ParamsError};
pub use routes::{Route, Routes};
pub use topology::MOST_TOPOLOGY;
pub use two_hop::MOST_TWO_HOP;

use duplicates::{Duplicates, Seen};
use forwards::Forwards;
use lasthop_units::{Span, Stream, Time};
use lasthop_wire::Error;
use lasthop_wire::olsr::{
    Header, Hello, MESSAGE_HEADER_LEN, Message, NeighbourType, PACKET_HEADER_LEN, Packet, Sequence, TopologyControl,
    Validity, kind,
};
use links::Links;
use rand::{Rng, RngExt};
use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;
use topology::Topology;
use two_hop::TwoHop;

/// Octets of a datagram that an Ethernet frame carries whole. Only a longer message of another node makes a longer one.
pub const PAYLOAD: usize = 1472;
/// Octets of a TC at most.
const LONGEST_TC: usize = MESSAGE_HEADER_LEN + 4 + 4 * MOST_LINKS;
// A packet holds any TC, and any HELLO: that has some octets more for up to 11 groups.
const _: () = assert!(PACKET_HEADER_LEN + LONGEST_TC + 4 * 11 <= PAYLOAD);
/// Nothing is believed for longer.
pub const LONGEST: Span = Span::from_secs(600);

/// What a node has done and refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Account {
    /// Packets sent.
    pub sent: u64,
    /// Packets of others that could be read.
    pub heard: u64,
    /// Messages of others forwarded.
    pub forwarded: u64,
    /// Packets that could not be read.
    pub broken_packets: u64,
    /// Messages in other packets that could not be read.
    pub broken_messages: u64,
    /// Links, neighbours of neighbours, pairs of TCs, and messages to be remembered or forwarded, for which there was no room.
    pub refused: u64,
}

/// A node.
#[derive(Clone, Debug)]
pub struct Olsr {
    own: Ipv4Addr,
    params: Params,
    stream: Stream,
    links: Links,
    two_hop: TwoHop,
    /// The nodes that have chosen this one as relay, and until when that holds.
    selectors: BTreeMap<Ipv4Addr, Time>,
    topology: Topology,
    duplicates: Duplicates,
    forwards: Forwards,
    /// What follows from these, as of the last `settle`.
    neighbours: BTreeMap<Ipv4Addr, Neighbour>,
    addresses: BTreeSet<Ipv4Addr>,
    relays: BTreeSet<Ipv4Addr>,
    routes: Routes,
    stale: Stale,
    /// What was advertised last, under which number, and when it went.
    advertised: BTreeSet<Ipv4Addr>,
    ansn: Sequence,
    told: Option<Time>,
    /// Until then it is told that nothing is advertised any more.
    withdrawn: Time,
    hello_due: Time,
    tc_due: Time,
    /// Nothing of the sets ends before.
    sweep: Time,
    packet_sequence: Sequence,
    message_sequence: Sequence,
    account: Account,
}

/// What has to be computed anew.
#[derive(Clone, Copy, Debug, Default)]
struct Stale {
    /// Neighbours may be others.
    links: bool,
    /// Neighbours or theirs are others.
    relays: bool,
    /// Any set that routes come from is another.
    routes: bool,
}

impl Olsr {
    /// A node with the address `own` on its interface. It draws jitter and its first numbers from `stream`.
    ///
    /// # Errors
    /// [`ParamsError`].
    pub fn new(own: Ipv4Addr, params: Params, mut stream: Stream, now: Time) -> Result<Olsr, ParamsError> {
        params.check()?;
        let mut number = || Sequence(stream.next_u32() as u16);
        let (packet_sequence, message_sequence, ansn) = (number(), number(), number());
        let hello_due = now + params.jitter.scale(stream.random());
        Ok(Olsr {
            own,
            params,
            stream,
            links: Links::default(),
            two_hop: TwoHop::default(),
            selectors: BTreeMap::new(),
            topology: Topology::default(),
            duplicates: Duplicates::default(),
            forwards: Forwards::default(),
            neighbours: BTreeMap::new(),
            addresses: BTreeSet::new(),
            relays: BTreeSet::new(),
            routes: Routes::new(),
            stale: Stale::default(),
            advertised: BTreeSet::new(),
            ansn,
            told: None,
            withdrawn: Time::ZERO,
            hello_due,
            tc_due: Time::MAX,
            sweep: Time::MAX,
            packet_sequence,
            message_sequence,
            account: Account::default(),
        })
    }

    /// A datagram has come from the interface with the address `from`. [`Olsr::poll_transmit`] must follow, though not after each.
    ///
    /// # Errors
    /// If it is no packet. It has no effect then, but that it is counted.
    pub fn on_packet(&mut self, now: Time, from: Ipv4Addr, bytes: &[u8]) -> Result<(), Error> {
        // What a node broadcasts may come back to it.
        if from == self.own {
            return Ok(());
        }
        let packet = Packet::decode(bytes).inspect_err(|_| self.account.broken_packets += 1)?;
        self.account.heard += 1;
        for message in &packet.messages {
            let Header { kind, ttl, originator, .. } = message.header;
            let counts = ttl > 0 && originator != self.own;
            if counts && self.on_message(now, (from, kind), message).is_err() {
                self.account.broken_messages += 1;
            }
        }
        Ok(())
    }

    /// The next datagram to be sent at this moment to UDP port 698 of the broadcast address, with IP TTL 1; `None`: no more now.
    pub fn poll_transmit(&mut self, now: Time) -> Option<Vec<u8>> {
        if self.sweep <= now {
            self.expire(now);
        }
        self.settle(now);
        let forward_is_due = self.forwards.next().is_some_and(|due| due <= now);
        if self.hello_due > now && self.tc_due > now && !forward_is_due {
            return None;
        }
        let mut messages = Vec::new();
        if self.hello_due <= now {
            self.hello_due = now + self.params.hello_interval.saturating_sub(self.jitter());
            messages.push(self.hello(now));
        }
        let mut octets = PACKET_HEADER_LEN + messages.iter().map(Vec::len).sum::<usize>();
        let fits = |octets: usize| octets + LONGEST_TC <= PAYLOAD;
        if self.tc_due <= now && fits(octets) {
            let tc = self.tc(now);
            octets += tc.len();
            messages.push(tc);
        }
        // What waits goes along, as far as there is room, or else alone.
        while let Some(message) = self.forwards.pop(PAYLOAD.saturating_sub(octets)) {
            octets += message.len();
            self.account.forwarded += 1;
            messages.push(message);
        }
        if messages.is_empty() {
            messages.extend(self.forwards.pop(usize::MAX));
            self.account.forwarded += 1;
        }
        self.account.sent += 1;
        self.packet_sequence = self.packet_sequence.next();
        Some(packet(self.packet_sequence, &messages))
    }

    /// When [`Olsr::poll_transmit`] has something to do again, if nothing comes before.
    pub fn next_timeout(&self) -> Time {
        let forward = self.forwards.next().unwrap_or(Time::MAX);
        self.hello_due.min(self.tc_due).min(self.sweep).min(forward)
    }

    /// The routes to all nodes that are known, as of the last [`Olsr::poll_transmit`].
    pub fn routes(&self) -> &Routes {
        &self.routes
    }

    /// Neighbours with symmetric links, by main address, likewise.
    pub fn neighbours(&self) -> &BTreeMap<Ipv4Addr, Neighbour> {
        &self.neighbours
    }

    /// The neighbours that this node has chosen as relays, likewise.
    pub fn relays(&self) -> &BTreeSet<Ipv4Addr> {
        &self.relays
    }

    /// The neighbours that have chosen this node, likewise.
    pub fn selectors(&self) -> &BTreeSet<Ipv4Addr> {
        &self.advertised
    }

    /// What it has done and refused.
    pub fn account(&self) -> Account {
        self.account
    }

    /// Entries of the sets that others' messages fill: links, pairs of two-hop neighbours, pairs of the topology, remembered messages, and
    /// messages that wait. Each has its bound.
    pub fn sizes(&self) -> [usize; 5] {
        let Olsr { links, two_hop, topology, duplicates, forwards, .. } = self;
        [links.len(), two_hop.len(), topology.len(), duplicates.len(), forwards.len()]
    }

    fn on_message(&mut self, now: Time, (from, kind): (Ipv4Addr, u8), message: &Message<'_>) -> Result<(), Error> {
        let until = now + message.header.validity.span().min(LONGEST);
        if kind == kind::HELLO {
            let hello = Hello::decode(message.body)?;
            self.on_hello(now, (from, message.header.originator), &hello, until);
            return Ok(());
        }
        // From others than neighbours nothing is taken.
        let Some(sender) = self.links.main_of(from).filter(|_| self.links.is_symmetric(now, from)) else {
            return Ok(());
        };
        let name = (message.header.originator, message.header.sequence);
        let remembered = now + self.params.duplicate_hold;
        self.sweep = self.sweep.min(remembered);
        match self.duplicates.see(now, name, remembered) {
            Seen::Before => return Ok(()),
            Seen::Unknown => self.account.refused += 1,
            // Whether it can be read or not, others may.
            Seen::New => self.forward(now, sender, message),
        }
        if kind == kind::TC {
            let heard = self.topology.hear(name.0, &TopologyControl::decode(message.body)?, until);
            self.account.refused += heard.refused;
            self.stale.routes |= heard.changed;
            self.sweep = self.sweep.min(until);
        }
        Ok(())
    }

    fn on_hello(&mut self, now: Time, (from, main): (Ipv4Addr, Ipv4Addr), hello: &Hello, until: Time) {
        let holds = (until.since(now), self.params.neighbour_hold);
        if !self.links.hear(now, (from, main, self.own), hello, holds) {
            self.account.refused += 1;
            return;
        }
        self.stale.links = true;
        self.sweep = self.sweep.min(until);
        if !self.links.is_symmetric(now, from) {
            return;
        }
        let (changed, refused) = self.two_hop.hear(main, self.own, hello, until);
        self.account.refused += refused;
        self.stale.relays |= changed;
        let ours = hello.groups.iter().filter(|(_, neighbours)| neighbours.contains(&self.own));
        for (code, _) in ours {
            if code.neighbour() == NeighbourType::Relay {
                self.selectors.insert(main, until);
            } else {
                self.selectors.remove(&main);
            }
        }
    }

    /// Puts a message among those that wait, if the neighbour that sent it has chosen this node.
    fn forward(&mut self, now: Time, sender: Ipv4Addr, message: &Message<'_>) {
        if !self.selectors.contains_key(&sender) || message.header.ttl <= 1 {
            return;
        }
        let due = now + self.jitter();
        let mut message = *message;
        message.header.ttl -= 1;
        message.header.hops = message.header.hops.saturating_add(1);
        if !self.forwards.push(due, &message) {
            self.account.refused += 1;
        }
    }

    /// Forgets what is too old.
    fn expire(&mut self, now: Time) {
        self.links.expire(now);
        self.stale.links = true;
        self.stale.relays |= self.two_hop.expire(now);
        self.selectors.retain(|_, until| *until > now);
        self.stale.routes |= self.topology.expire(now);
        self.duplicates.expire(now);
        let selected = self.selectors.values().copied().min();
        let next = [self.links.next(now), self.two_hop.next(), selected, self.topology.next(), self.duplicates.next()];
        // Not for each entry of a flood: what is too old may stay for a sixteenth of an interval.
        let earliest = now + self.params.hello_interval / 16;
        self.sweep = next.into_iter().flatten().min().map_or(Time::MAX, |next| next.max(earliest));
    }

    /// Computes what follows from the sets.
    fn settle(&mut self, now: Time) {
        if self.stale.links {
            self.stale.links = false;
            let (neighbours, addresses) = (self.links.neighbours(now), self.links.addresses(now));
            if neighbours != self.neighbours || addresses != self.addresses {
                (self.neighbours, self.addresses) = (neighbours, addresses);
                self.two_hop.keep_of(&self.neighbours);
                self.selectors.retain(|main, _| self.neighbours.contains_key(main));
                self.stale.relays = true;
            }
            if !self.selectors.keys().eq(&self.advertised) {
                self.advertise(now);
            }
        }
        if self.stale.relays {
            self.stale.relays = false;
            self.stale.routes = true;
            let willing = self.neighbours.iter().map(|(main, neighbour)| (*main, neighbour.willingness)).collect();
            self.relays = relays::select(&willing, self.two_hop.pairs());
        }
        if self.stale.routes {
            self.stale.routes = false;
            let Olsr { own, neighbours, addresses, two_hop, topology, .. } = self;
            self.routes = routes::compute(*own, neighbours, addresses, two_hop, topology);
        }
    }

    /// The selectors are others: it is told soon.
    fn advertise(&mut self, now: Time) {
        if self.selectors.is_empty() {
            self.withdrawn = now + self.params.topology_hold;
        }
        self.advertised = self.selectors.keys().copied().collect();
        self.ansn = self.ansn.next();
        let earliest = self.told.map_or(now, |told| now.max(told + self.params.tc_interval / 4));
        self.tc_due = self.tc_due.min(earliest + self.jitter());
    }

    fn hello(&mut self, now: Time) -> Vec<u8> {
        let interval = Validity::at_least(self.params.hello_interval);
        let groups = self.links.groups(now, &self.relays);
        let hello = Hello { interval, willingness: self.params.willingness, groups };
        let body = hello.encode().expect("links are few enough");
        self.message(kind::HELLO, self.params.neighbour_hold, 1, &body)
    }

    /// The nodes that this one forwards for. It goes on to say that there are none until what was said before is
    /// forgotten everywhere.
    fn tc(&mut self, now: Time) -> Vec<u8> {
        self.told = Some(now);
        let next = now + self.params.tc_interval.saturating_sub(self.jitter());
        let ends = self.advertised.is_empty() && next > self.withdrawn;
        self.tc_due = if ends { Time::MAX } else { next };
        let tc = TopologyControl { ansn: self.ansn, neighbours: self.advertised.iter().copied().collect() };
        self.message(kind::TC, self.params.topology_hold, 255, &tc.encode())
    }

    /// A message of this node.
    fn message(&mut self, kind: u8, valid: Span, ttl: u8, body: &[u8]) -> Vec<u8> {
        self.message_sequence = self.message_sequence.next();
        let validity = Validity::at_least(valid);
        let header = Header { kind, validity, originator: self.own, ttl, hops: 0, sequence: self.message_sequence };
        let mut octets = Vec::new();
        let written = Message { header, body }.encode(&mut octets).is_ok();
        debug_assert!(written, "no set is larger than a message holds");
        octets
    }

    fn jitter(&mut self) -> Span {
        self.params.jitter.scale(self.stream.random())
    }
}

/// A packet of messages that are octets already, and together fit into a datagram.
fn packet(sequence: Sequence, messages: &[Vec<u8>]) -> Vec<u8> {
    let len = PACKET_HEADER_LEN + messages.iter().map(Vec::len).sum::<usize>();
    let said = u16::try_from(len).expect("what came in a packet fits into one");
    let mut out = Vec::with_capacity(len);
    out.extend_from_slice(&said.to_be_bytes());
    out.extend_from_slice(&sequence.0.to_be_bytes());
    messages.iter().for_each(|message| out.extend_from_slice(message));
    out
}

#[cfg(test)]
mod tests;
