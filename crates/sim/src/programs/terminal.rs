//! The middleware on a station: it bounds the windows of the station's own uploads and counts other sending terminals.

use crate::agenda::Component;
use crate::net::Net;
use crate::payload::{Payload, udp_packet};
use crate::world::World;
use lasthop_laws::terminal::{NOTICE_INTERVAL, Params};
use lasthop_laws::{Bounds, BuildError, Choice, HopLaw};
use lasthop_radio::{AccessClass, Dest, Packet};
use lasthop_signals::{Feedback, FlowId, HostId, MacAddress, Node, Notice, Signal, SocketReport};
use lasthop_units::{Bytes, Rate, Seed, Span, Time};
use lasthop_wire::notice::signed::SIGNED_LEN;
use rand::RngExt;

/// One station's.
#[derive(Clone)]
pub struct Terminal {
    /// The station on the last hop, and as a host.
    pub(crate) station: Node,
    host: HostId,
    bssid: MacAddress,
    /// Its number among terminals.
    number: u64,
    law: Box<dyn HopLaw>,
    interval: Span,
    /// When it looks at its connections next, and when it tells next that it sends.
    look: Time,
    notice: Time,
    /// Notices that it has sent.
    sequence: u32,
    /// Connections that its law knows, by their number, rising.
    managed: Vec<usize>,
    /// What it tells: the rate of its uploads, and that it empties the hop.
    rate: Rate,
    drains: bool,
}

impl Terminal {
    /// The middleware with this law on a station of `access_point`. Terminals do not act at the same moments.
    ///
    /// # Errors
    /// If the choice makes no law of a hop.
    pub fn new(
        choice: &Choice,
        (station, host): (Node, HostId),
        access_point: Node,
        seed: Seed,
    ) -> Result<Terminal, BuildError> {
        let interval = choice.interval().unwrap_or(Params::default().interval);
        let mut random = seed.stream(&format!("station{}/terminal", station.0));
        let [high, low] = access_point.0.to_be_bytes();
        Ok(Terminal {
            station,
            host,
            bssid: MacAddress([2, 0, 0, 0, high, low]),
            number: random.random(),
            law: choice.hop()?,
            interval,
            look: Time::ZERO + interval.scale(random.random::<f64>()),
            notice: Time::ZERO + NOTICE_INTERVAL.scale(random.random::<f64>()),
            sequence: 0,
            managed: Vec::new(),
            rate: Rate::ZERO,
            drains: false,
        })
    }

    fn next_event(&self) -> Time {
        self.look.min(self.notice)
    }

    /// Looks at the connections through which the station sends. Returns the bounds of each, and of those that are let go.
    fn look(&mut self, now: Time, sockets: &[(usize, SocketReport)]) -> Vec<(usize, Option<Bounds<Bytes>>)> {
        let sends = |number: &usize| sockets.binary_search_by_key(number, |(number, _)| *number).is_ok();
        let gone: Vec<usize> = self.managed.iter().copied().filter(|number| !sends(number)).collect();
        gone.iter().for_each(|number| self.law.sense(now, &Signal::FlowGone(flow(*number))));
        sockets.iter().for_each(|(_, report)| self.law.sense(now, &Signal::Socket(*report)));
        self.law.sense(now, &Signal::Wakeup);
        self.managed = sockets.iter().map(|(number, _)| *number).collect();
        let mut bounds: Vec<(usize, Option<Bounds<Bytes>>)> = gone.into_iter().map(|number| (number, None)).collect();
        let (mut rate, mut drains, mut look) = (Rate::ZERO, false, now + self.interval);
        self.law.decide(now, &mut |flow, decision| {
            bounds.push((flow.0 as usize, decision.cwnd));
            look = decision.revisit.map_or(look, |at| look.min(at));
            if let Some(Feedback::Upload(upload)) = decision.feedback {
                rate += upload.rate.unwrap_or(Rate::ZERO);
                drains |= upload.drains;
            }
        });
        if drains && !self.drains {
            self.notice = now;
        }
        (self.look, self.rate, self.drains) = (look, rate, drains);
        bounds
    }
}

/// A connection as its terminal's law knows it.
fn flow(number: usize) -> FlowId {
    FlowId(number as u32)
}

impl World {
    /// Puts the terminals into the agenda.
    pub(crate) fn begin_terminals(&mut self) {
        for place in 0..self.terminals.len() {
            self.agenda.set(self.terminal(place), Some(self.terminals[place].next_event()));
        }
    }

    fn terminal(&self, place: usize) -> Component {
        Component(self.first_terminal() + place as u32)
    }

    /// A terminal is due.
    pub(crate) fn wake_terminal(&mut self, place: usize) {
        let (now, host) = (self.now, self.terminals[place].host);
        let sockets: Vec<(usize, SocketReport)> = self
            .connections
            .iter()
            .enumerate()
            .filter(|(_, connection)| connection.sends_from(host, now))
            .map(|(number, connection)| {
                let stats = connection.sender().stats();
                let report = SocketReport {
                    flow: flow(number),
                    rtt: stats.srtt,
                    deviation: stats.rttvar,
                    min_rtt: stats.min_rtt,
                    mss: stats.mss,
                    cwnd: stats.cwnd,
                    in_flight: stats.in_flight,
                    delivered: stats.delivered,
                    queued: Some(connection.sender().queued()),
                    destination: u64::from(connection.way(connection.data()).1.0),
                };
                (number, report)
            })
            .collect();
        let terminal = &mut self.terminals[place];
        if terminal.look <= now {
            for (number, bounds) in terminal.look(now, &sockets) {
                let end = self.connections[number].data();
                self.connections[number].end(end).bound(now, bounds);
                self.pump(number, end);
            }
        }
        let terminal = &mut self.terminals[place];
        if terminal.notice <= now {
            terminal.notice = now + NOTICE_INTERVAL;
            if !sockets.is_empty() {
                self.tell(place, sockets.len());
            }
        }
        self.agenda.set(self.terminal(place), Some(self.terminals[place].next_event()));
    }

    /// A terminal tells its neighbours that it sends, by a packet on the hop.
    fn tell(&mut self, place: usize, flows: usize) {
        let terminal = &mut self.terminals[place];
        let Terminal { station, host, bssid, number, sequence, rate, drains, .. } = *terminal;
        terminal.sequence = sequence.wrapping_add(1);
        let flows = u16::try_from(flows).unwrap_or(u16::MAX);
        let notice = Notice { bssid, terminal: number, sequence, flows, rate, drains };
        let len = udp_packet(Bytes::new(SIGNED_LEN as u64));
        let packet = self.packet((host, host), len, number as u32, Payload::Notice(Box::new(notice)));
        // Where there is QoS it does not wait behind the station's own data.
        let packet = Packet { src: station, dst: Dest::Group, class: AccessClass::Voice, ..packet };
        let next = self.net.enqueue(self.last_hop, self.now, packet, &mut self.effects);
        self.agenda.set(Net::component(self.last_hop), next);
    }

    /// A notice has come to a node of the last hop.
    pub(crate) fn heard(&mut self, at: Time, to: Node, notice: &Notice) {
        let here = self.terminals.iter().position(|terminal| terminal.station == to);
        let Some(place) = here else { return };
        let own = &mut self.terminals[place];
        if own.bssid != notice.bssid || own.number == notice.terminal {
            return;
        }
        own.law.sense(at, &Signal::Neighbour(*notice));
        if notice.drains && !own.drains {
            own.look = at;
            self.agenda.set(self.terminal(place), Some(at));
        }
    }
}
