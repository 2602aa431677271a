//! The edge proxy: it ends the servers' TCP connections at the access point's end of the wire and carries their streams on
//! to the stations, paced by a law.
//!
//! Packets to a station are numbered, acknowledged and, if they are lost, sent again: the station names what is missing, and
//! a probe asks when it says nothing. What waits here is bounded by the receive windows of the TCP connections, and what is
//! read and not yet acknowledged by time at the rate ([`lasthop_laws::ReceiveWindow`]): a queue that has merely moved is still a
//! queue.

use crate::payload::{FULL_PACKET, TUNNEL_PAYLOAD, Tunnel, tunnel_packet};
use lasthop_laws::aggregation::{REST, flow_of};
use lasthop_laws::{BuildError, Choice, HopLaw, ReceiveWindow};
use lasthop_signals::{Node, Signal, StationFeedback, StreamReport};
use lasthop_units::{Bytes, Rate, Span, Time};
use std::collections::{BTreeMap, VecDeque};

/// The proxy.
#[derive(Clone)]
pub struct Proxy {
    controller: Box<dyn HopLaw>,
    /// One for each of its stations.
    lanes: Vec<Lane>,
    /// Their places among all stations, rising.
    members: Vec<usize>,
    revisit: Option<Time>,
}

/// The tunnel to one station, on the proxy's side.
#[derive(Clone, Default)]
struct Lane {
    rate: Option<Rate>,
    /// When the next packet may leave.
    next_at: Time,
    /// Streams that have something to send, in their turn.
    ready: VecDeque<Stream>,
    /// Numbers to be sent again.
    again: VecDeque<u32>,
    next_number: u32,
    unacknowledged: BTreeMap<u32, Part>,
    /// Octets of the streams in them.
    held: Bytes,
    /// The least round trip seen, time at the access point included.
    round_trip: Option<Span>,
    /// When the station was last heard, or a packet was last sent to an idle one.
    heard: Time,
    packets: u64,
    bytes: Bytes,
    waits: Waits,
}

/// What the law knows of what waits for a station.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
enum Waits {
    /// Nothing does, and it was told.
    #[default]
    Nothing,
    /// What has just come may leave at once.
    Passes,
    /// Something has had to wait, and it was told.
    Something,
    /// Nothing has since then.
    NothingSince(Time),
}

/// What a tunnel packet carried, and when it last left.
#[derive(Clone, Copy)]
struct Part {
    connection: usize,
    len: Bytes,
    sent: Time,
    /// It has left more than once: its acknowledgement says nothing about the round trip.
    repeated: bool,
}

/// What can be sent to a station.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stream {
    /// What a TCP connection has brought.
    Connection(usize),
    /// A UDP source that always has more.
    Udp(usize),
}

/// What leaves next.
#[derive(Debug)]
pub enum Departure {
    /// A packet of the tunnel.
    Tunnel(Tunnel),
    /// A UDP packet of this source, and its number among what leaves for the station.
    Udp(usize, u32),
}

/// A station that acknowledges nothing for so long is asked by a repetition of the oldest packet.
const SILENCE: Span = Span::from_millis(400);
/// A packet is not sent again within this time of its last departure: it may still wait at the access point.
const PATIENCE: Span = Span::from_millis(20);

impl Proxy {
    /// A proxy for the stations at these places, in rising order.
    ///
    /// # Errors
    /// If what was set makes no law of a proxy.
    pub fn new(choice: &Choice, members: Vec<usize>) -> Result<Proxy, BuildError> {
        let lanes = std::iter::repeat_with(Lane::default).take(members.len()).collect();
        Ok(Proxy { controller: choice.hop()?, lanes, members, revisit: None })
    }

    /// Its stations.
    pub fn stations(&self) -> impl Iterator<Item = Node> + '_ {
        self.members.iter().copied().map(node)
    }

    /// The law.
    pub fn controller(&self) -> &dyn HopLaw {
        &*self.controller
    }

    /// When the law wants to be woken.
    pub fn revisit(&self) -> Option<Time> {
        self.revisit
    }

    /// How fast `station` is served: not at all before the law has spoken.
    pub fn rate(&self, station: Node) -> Rate {
        self.lane(station).rate.unwrap_or(Rate::ZERO)
    }

    /// `stream` of `station` has something to send.
    pub fn offer(&mut self, now: Time, station: Node, stream: Stream) {
        let lane = self.lane_mut(station);
        if lane.ready.contains(&stream) {
            return;
        }
        let idle = lane.is_idle();
        lane.ready.push_back(stream);
        if idle {
            lane.next_at = lane.next_at.max(now);
            let passes = lane.rate.is_some() && lane.next_at <= now;
            match lane.waits {
                Waits::Nothing if passes => lane.waits = Waits::Passes,
                Waits::Nothing | Waits::Passes => self.tell_waiting(now, station),
                Waits::Something | Waits::NothingSince(_) => lane.waits = Waits::Something,
            }
        }
    }

    /// Something has to wait for a station for which nothing did.
    fn tell_waiting(&mut self, now: Time, station: Node) {
        let lane = self.lane_mut(station);
        lane.waits = Waits::Something;
        let report = lane.report(station);
        self.controller.sense(now, &Signal::Stream(report));
        self.obey(now);
    }

    /// Nothing has waited for a station for as long as the law wants to be told of.
    fn tell_idle(&mut self, now: Time, station: Node) {
        self.lane_mut(station).waits = Waits::Nothing;
        self.controller.sense(now, &Signal::Idle(station));
        self.obey(now);
    }

    /// `stream` of `station` has ended.
    pub fn withdraw(&mut self, now: Time, station: Node, stream: Stream) {
        let lane = self.lane_mut(station);
        lane.ready.retain(|ready| *ready != stream);
        lane.runs_dry(now);
    }

    /// When the next packet to `station` may leave; `None` if there is none.
    pub fn next_departure(&self, station: Node) -> Option<Time> {
        let lane = self.lane(station);
        if lane.is_quiet() {
            let silence = (!lane.unacknowledged.is_empty()).then_some(lane.heard + SILENCE);
            return [silence, lane.rests_at()].into_iter().flatten().min();
        }
        lane.rate.map(|_| lane.next_at)
    }

    /// The packet to `station` that may leave now. `read` takes up to so much from a connection's stream; what it cannot
    /// give ends the stream's turn.
    pub fn depart(
        &mut self,
        now: Time,
        station: Node,
        mut read: impl FnMut(usize, Bytes) -> Bytes,
    ) -> Option<(Departure, Bytes)> {
        let lane = self.lane_mut(station);
        if lane.is_quiet() && !lane.unacknowledged.is_empty() && now >= lane.heard + SILENCE {
            lane.heard = now;
            lane.again.extend(lane.unacknowledged.keys().next());
        }
        let rate = lane.rate?;
        if lane.rests_at().is_some_and(|at| at <= now) {
            self.tell_idle(now, station);
            return None;
        }
        if lane.is_quiet() || now < lane.next_at {
            return None;
        }
        let Some((departure, len)) = lane.take(now, &mut read) else {
            lane.runs_dry(now);
            return None;
        };
        lane.packets += 1;
        lane.bytes += len;
        lane.next_at = lane.next_at.max(now) + rate.time_for(len).unwrap_or(SILENCE);
        match lane.waits {
            Waits::Nothing => lane.waits = Waits::Passes,
            // The first has left at once; this one had to wait for its turn.
            Waits::Passes => self.tell_waiting(now, station),
            Waits::Something | Waits::NothingSince(_) => {}
        }
        Some((departure, len))
    }

    /// The station has acknowledged.
    pub fn acknowledged(&mut self, now: Time, station: Node, next: u32, missing: &[u32]) {
        let lane = self.lane_mut(station);
        lane.heard = now;
        if let Some(newest) = next.checked_sub(1).and_then(|newest| lane.unacknowledged.get(&newest))
            && !newest.repeated
        {
            let took = now.since(newest.sent);
            lane.round_trip = Some(lane.round_trip.map_or(took, |least| least.min(took)));
        }
        let left = lane.unacknowledged.split_off(&next);
        let arrived = std::mem::replace(&mut lane.unacknowledged, left);
        lane.held = arrived.values().fold(lane.held, |held, part| held.saturating_sub(part.len));
        for number in missing {
            let Some(part) = lane.unacknowledged.get(number) else { continue };
            if part.sent + PATIENCE <= now && !lane.again.contains(number) {
                lane.again.push_back(*number);
            }
        }
    }

    /// A station's account has arrived.
    pub fn feedback(&mut self, now: Time, feedback: &StationFeedback) {
        let report = self.lane(feedback.station).report(feedback.station);
        self.controller.sense(now, &Signal::Stream(report));
        self.controller.sense(now, &Signal::Station(*feedback));
        self.obey(now);
    }

    /// The law wanted to be woken.
    pub fn wake(&mut self, now: Time) {
        for place in 0..self.lanes.len() {
            let report = self.lanes[place].report(node(self.members[place]));
            self.controller.sense(now, &Signal::Stream(report));
        }
        self.controller.sense(now, &Signal::Wakeup);
        self.obey(now);
    }

    fn obey(&mut self, now: Time) {
        let (mut revisit, mut at) = (None, 0);
        let (controller, lanes, members) = (&self.controller, &mut self.lanes, &self.members);
        controller.decide(now, &mut |flow, decision| {
            revisit = decision.revisit;
            // Flows are told in order, and every flow is a station's.
            while members.get(at).is_some_and(|&member| flow_of(node(member)) < flow) {
                at += 1;
            }
            if members.get(at).is_some_and(|&member| flow_of(node(member)) == flow) {
                lanes[at].rate = decision.pacing;
            }
        });
        self.revisit = revisit;
    }

    fn lane(&self, station: Node) -> &Lane {
        &self.lanes[self.place(station)]
    }

    fn lane_mut(&mut self, station: Node) -> &mut Lane {
        let place = self.place(station);
        &mut self.lanes[place]
    }

    fn place(&self, station: Node) -> usize {
        self.members.binary_search(&(station.index() - 1)).expect("a station of this proxy")
    }
}

/// Stations follow the access point.
fn node(place: usize) -> Node {
    lasthop_scenario::Scenario::station_node(place)
}

impl Lane {
    fn is_idle(&self) -> bool {
        self.ready.is_empty() && self.again.is_empty()
    }

    /// Nothing could leave: perhaps there is nothing.
    fn runs_dry(&mut self, now: Time) {
        self.waits = match self.waits {
            Waits::Something if self.is_idle() => Waits::NothingSince(now),
            Waits::Passes if self.is_idle() => Waits::Nothing,
            other => other,
        };
    }

    /// When the law is to be told that nothing waits; `None` if something does, or it knows.
    fn rests_at(&self) -> Option<Time> {
        match self.waits {
            Waits::NothingSince(since) if self.is_idle() => Some(since + REST),
            _ => None,
        }
    }

    /// True if no packet may leave: there is nothing to send, or too much is under way already.
    fn is_quiet(&self) -> bool {
        let udp = || self.ready.iter().any(|stream| matches!(stream, Stream::Udp(_)));
        self.is_idle() || (self.again.is_empty() && self.is_full() && !udp())
    }

    /// True if no more may be read from the servers before something is acknowledged.
    fn is_full(&self) -> bool {
        let most = ReceiveWindow::under_way(self.rate.unwrap_or(Rate::ZERO), self.round_trip.unwrap_or(Span::ZERO));
        self.held >= most
    }

    fn report(&self, station: Node) -> StreamReport {
        StreamReport {
            station,
            packets: self.packets,
            bytes: self.bytes,
            waiting: !self.is_idle() && self.waits != Waits::Passes,
        }
    }

    /// The number of the next packet.
    fn number(&self) -> u32 {
        u32::try_from(self.packets).expect("a simulation of fewer packets")
    }

    fn take(&mut self, now: Time, read: &mut impl FnMut(usize, Bytes) -> Bytes) -> Option<(Departure, Bytes)> {
        while let Some(number) = self.again.pop_front() {
            let packet = self.number();
            if let Some(part) = self.unacknowledged.get_mut(&number) {
                (part.sent, part.repeated) = (now, true);
                let tunnel = Tunnel::data(now, (number, packet), part.connection, part.len);
                let len = tunnel_packet(&tunnel);
                return Some((Departure::Tunnel(tunnel), len));
            }
        }
        let mut waiting = Vec::new();
        let full = self.is_full();
        let mut taken = None;
        while let Some(stream) = self.ready.pop_front() {
            match stream {
                Stream::Udp(source) => {
                    self.ready.push_back(stream);
                    taken = Some((Departure::Udp(source, self.number()), FULL_PACKET));
                    break;
                }
                Stream::Connection(_) if full => waiting.push(stream),
                Stream::Connection(connection) => {
                    let len = read(connection, TUNNEL_PAYLOAD);
                    if len.is_zero() {
                        continue;
                    }
                    self.ready.push_back(stream);
                    if self.unacknowledged.is_empty() {
                        self.heard = now;
                    }
                    let number = self.next_number;
                    self.next_number += 1;
                    self.unacknowledged.insert(number, Part { connection, len, sent: now, repeated: false });
                    self.held += len;
                    let tunnel = Tunnel::data(now, (number, self.number()), connection, len);
                    let len = tunnel_packet(&tunnel);
                    taken = Some((Departure::Tunnel(tunnel), len));
                    break;
                }
            }
        }
        // The stream that had its turn keeps its place.
        waiting.into_iter().rev().for_each(|stream| self.ready.push_front(stream));
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lasthop_laws::aggregation::LAW;

    /// Lets everything leave for a station from `from` to `until`: numbers and lengths.
    fn departures(proxy: &mut Proxy, from: u64, until: u64) -> Vec<(u32, Bytes)> {
        let at = |ms: u64| Time::ZERO + Span::from_millis(ms);
        let mut left = Vec::new();
        while let Some(now) = proxy.next_departure(node(0)).map(|due| due.max(at(from))).filter(|due| *due < at(until))
        {
            let Some((departure, _)) = proxy.depart(now, node(0), |_, len| len) else { continue };
            let Departure::Tunnel(Tunnel::Data { number, len, .. }) = departure else { panic!("{departure:?}") };
            left.push((number, Bytes::new(u64::from(len))));
        }
        left
    }

    #[test]
    fn unacked_data_of_a_silent_station_is_limited_then_probed() {
        let mut proxy = Proxy::new(&Choice::of(&LAW), vec![0]).expect("legal");
        proxy.offer(Time::ZERO, node(0), Stream::Connection(0));
        let rate = proxy.rate(node(0));
        assert!(rate > Rate::ZERO, "the law begins with a rate");
        let first = departures(&mut proxy, 0, 20);
        // The round trip of the one that is acknowledged is 10 ms at most.
        let next = first.len() as u32 / 2 + 1;
        proxy.acknowledged(Time::ZERO + Span::from_millis(20), node(0), next, &[]);
        let more = departures(&mut proxy, 20, 419);
        let all: Vec<(u32, Bytes)> = first.into_iter().chain(more).collect();
        assert!(all.iter().map(|(number, _)| *number).eq(0..all.len() as u32), "everything once, in order");
        let held: u64 = all.iter().filter(|(number, _)| *number >= next).map(|(_, len)| len.get()).sum();
        let bounds =
            [Span::ZERO, Span::from_millis(20)].map(|round_trip| ReceiveWindow::under_way(rate, round_trip).get());
        assert!((bounds[0]..bounds[1] + FULL_PACKET.get()).contains(&held), "{held} octets, of {bounds:?}");
        // 400 ms after it was heard the oldest packet asks it, and that again every 400 ms.
        let probes: Vec<u32> = departures(&mut proxy, 419, 1_300).into_iter().map(|(number, _)| number).collect();
        assert_eq!(probes, [next; 3]);
    }
}
