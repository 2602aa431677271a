//! The edge proxy: it ends the servers' TCP connections at the access point's end of the wire and carries their streams on
//! to the stations, paced by a law.
//!
//! Packets to a station are numbered, acknowledged and, if they are lost, sent again: the station names what is missing, and
//! a probe asks when it says nothing. What waits here is bounded by the receive windows of the TCP connections
//! ([`lasthop_laws::Intake`]): a queue that has merely moved is still a queue.

use crate::cargo::{FULL_PACKET, TUNNEL_OVERHEAD, Tunnel, tunnel_packet};
use lasthop_laws::aggregation::{Control, Controller, flow_of};
use lasthop_laws::{HopLaw, ParamError};
use lasthop_signals::{Node, Signal, StationFeedback, StreamReport};
use lasthop_units::{Bytes, Rate, Span, Time};
use std::collections::{BTreeMap, VecDeque};

/// The proxy.
pub struct Proxy {
    controller: Controller,
    lanes: Vec<Lane>,
    revisit: Option<Time>,
}

/// The tunnel to one station, on the proxy's side.
#[derive(Default)]
struct Lane {
    rate: Option<Rate>,
    /// When the next packet may leave.
    next_at: Time,
    /// Streams that have something to send, in their turn.
    ready: VecDeque<Stream>,
    /// Numbers to be sent again.
    again: VecDeque<u64>,
    next_number: u64,
    unacknowledged: BTreeMap<u64, Part>,
    /// When the station was last heard, or a packet was last sent to an idle one.
    heard: Time,
    packets: u64,
    bytes: Bytes,
}

/// What a tunnel packet carried, and when it last left.
#[derive(Clone, Copy)]
struct Part {
    connection: usize,
    len: Bytes,
    sent: Time,
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
    /// A UDP packet of this source.
    Udp(usize),
}

/// A station that acknowledges nothing for so long is asked by a repetition of the oldest packet.
const SILENCE: Span = Span::from_millis(400);
/// A packet is not sent again within this time of its last departure: it may still wait at the access point.
const PATIENCE: Span = Span::from_millis(20);

impl Proxy {
    /// A proxy for `stations` stations.
    ///
    /// # Errors
    /// Those of [`Control::validate`].
    pub fn new(control: &Control, stations: usize) -> Result<Proxy, ParamError> {
        let lanes = std::iter::repeat_with(Lane::default).take(stations).collect();
        Ok(Proxy { controller: control.build()?, lanes, revisit: None })
    }

    /// The law.
    pub fn controller(&self) -> &Controller {
        &self.controller
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
            let report = lane.report(station);
            self.controller.sense(now, &Signal::Stream(report));
            self.obey(now);
        }
    }

    /// `stream` of `station` has ended.
    pub fn withdraw(&mut self, station: Node, stream: Stream) {
        self.lane_mut(station).ready.retain(|ready| *ready != stream);
    }

    /// When the next packet to `station` may leave; `None` if there is none.
    pub fn next_departure(&self, station: Node) -> Option<Time> {
        let lane = self.lane(station);
        if lane.is_idle() {
            return (!lane.unacknowledged.is_empty()).then_some(lane.heard + SILENCE);
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
        if lane.is_idle() && !lane.unacknowledged.is_empty() && now >= lane.heard + SILENCE {
            lane.heard = now;
            lane.again.extend(lane.unacknowledged.keys().next());
        }
        let rate = lane.rate?;
        if lane.is_idle() || now < lane.next_at {
            return None;
        }
        let (departure, len) = lane.take(now, &mut read)?;
        lane.packets += 1;
        lane.bytes += len;
        lane.next_at = lane.next_at.max(now) + rate.time_for(len).unwrap_or(SILENCE);
        Some((departure, len))
    }

    /// The station has acknowledged.
    pub fn acknowledged(&mut self, now: Time, station: Node, next: u64, missing: &[u64]) {
        let lane = self.lane_mut(station);
        lane.heard = now;
        lane.unacknowledged = lane.unacknowledged.split_off(&next);
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
            let report = self.lanes[place].report(node(place));
            self.controller.sense(now, &Signal::Stream(report));
        }
        self.controller.sense(now, &Signal::Wakeup);
        self.obey(now);
    }

    fn obey(&mut self, now: Time) {
        let (mut revisit, mut at) = (None, 0);
        let (controller, lanes) = (&self.controller, &mut self.lanes);
        controller.decide(now, &mut |flow, decision| {
            revisit = decision.revisit;
            // Flows are told in order, and every flow is a station's.
            while lanes.get(at).is_some() && flow_of(node(at)) < flow {
                at += 1;
            }
            if let Some(lane) = lanes.get_mut(at).filter(|_| flow_of(node(at)) == flow) {
                lane.rate = decision.pacing;
            }
        });
        self.revisit = revisit;
    }

    fn lane(&self, station: Node) -> &Lane {
        &self.lanes[station.index() - 1]
    }

    fn lane_mut(&mut self, station: Node) -> &mut Lane {
        &mut self.lanes[station.index() - 1]
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

    fn report(&self, station: Node) -> StreamReport {
        StreamReport { station, packets: self.packets, bytes: self.bytes, waiting: !self.is_idle() }
    }

    fn take(&mut self, now: Time, read: &mut impl FnMut(usize, Bytes) -> Bytes) -> Option<(Departure, Bytes)> {
        while let Some(number) = self.again.pop_front() {
            if let Some(part) = self.unacknowledged.get_mut(&number) {
                part.sent = now;
                let tunnel = Tunnel::Data { number, connection: part.connection, len: part.len };
                let len = tunnel_packet(&tunnel);
                return Some((Departure::Tunnel(tunnel), len));
            }
        }
        while let Some(stream) = self.ready.pop_front() {
            match stream {
                Stream::Udp(source) => {
                    self.ready.push_back(stream);
                    return Some((Departure::Udp(source), FULL_PACKET));
                }
                Stream::Connection(connection) => {
                    let len = read(connection, FULL_PACKET.saturating_sub(TUNNEL_OVERHEAD));
                    if len.is_zero() {
                        continue;
                    }
                    self.ready.push_back(stream);
                    if self.unacknowledged.is_empty() {
                        self.heard = now;
                    }
                    let number = self.next_number;
                    self.next_number += 1;
                    self.unacknowledged.insert(number, Part { connection, len, sent: now });
                    let tunnel = Tunnel::Data { number, connection, len };
                    let len = tunnel_packet(&tunnel);
                    return Some((Departure::Tunnel(tunnel), len));
                }
            }
        }
        None
    }
}
