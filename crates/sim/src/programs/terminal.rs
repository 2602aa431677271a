//! The middleware on a station: it bounds the windows of the station's own uploads and counts other sending terminals.

use crate::agenda::Component;
use crate::context::Context;
use crate::payload::{Payload, ProgramId};
use crate::program::{Heard, Program};
use crate::programs::tcp;
use crate::sockets::flow_id;
use lasthop_laws::terminal::{NOTICE_INTERVAL, Params};
use lasthop_laws::{Bounds, BuildError, Choice, HopLaw};
use lasthop_signals::{Feedback, HostId, MacAddress, Node, Notice, Signal, SocketReport};
use lasthop_units::{Bytes, Rate, Seed, Span, Time};
use lasthop_wire::notice::signed::SIGNED_LEN;
use rand::RngExt;

/// One station's.
#[derive(Clone)]
pub(crate) struct Terminal {
    /// The station on the last hop, and as a host.
    station: Node,
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
    timer: Component,
}

impl Terminal {
    /// The middleware with this law on a station of `access_point`. Terminals do not act at the same moments.
    ///
    /// # Errors
    /// If the choice makes no law of a hop.
    pub(crate) fn new(
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
            timer: Component(0),
        })
    }

    fn set_timer(&self, context: &mut Context) {
        context.agenda.set(self.timer, Some(self.look.min(self.notice)));
    }

    /// Tells the neighbours that the station sends, by a packet on the hop.
    fn tell(&mut self, context: &mut Context, flows: usize) {
        let Terminal { bssid, number, sequence, rate, drains, .. } = *self;
        self.sequence = sequence.wrapping_add(1);
        let flows = u16::try_from(flows).unwrap_or(u16::MAX);
        let notice = Notice { bssid, terminal: number, sequence, flows, rate, drains };
        context.broadcast(self.station, SIGNED_LEN, number as u32, Payload::own(notice));
    }

    /// Looks at the connections through which the station sends. Returns the bounds of each, and of those that are let go.
    fn look(&mut self, now: Time, sockets: &[(usize, SocketReport)]) -> Vec<(usize, Option<Bounds<Bytes>>)> {
        let sends = |number: &usize| sockets.binary_search_by_key(number, |(number, _)| *number).is_ok();
        let gone: Vec<usize> = self.managed.iter().copied().filter(|number| !sends(number)).collect();
        gone.iter().for_each(|number| self.law.sense(now, &Signal::FlowGone(flow_id(*number))));
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

impl Program for Terminal {
    fn begin(&mut self, context: &mut Context, own: ProgramId) {
        self.timer = context.timer(own, 0);
        self.set_timer(context);
        context.listen(own, self.station);
        context.sockets.counted.insert(self.station);
    }

    fn wake(&mut self, context: &mut Context, _: u32) {
        let now = context.now;
        let sockets: Vec<(usize, SocketReport)> = context
            .sockets
            .connections
            .iter()
            .enumerate()
            .filter(|(_, connection)| connection.sends_from(self.host, now))
            .map(|(number, connection)| {
                let stats = connection.sender().stats();
                let report = SocketReport {
                    flow: flow_id(number),
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
        if self.look <= now {
            for (number, bounds) in self.look(now, &sockets) {
                let connection = &mut context.sockets.connections[number];
                let end = connection.data();
                connection.end(end).bound(now, bounds);
                tcp::pump(context, number, end);
            }
        }
        if self.notice <= now {
            self.notice = now + NOTICE_INTERVAL;
            if !sockets.is_empty() {
                self.tell(context, sockets.len());
            }
        }
        self.set_timer(context);
    }

    /// A notice of another terminal.
    fn overheard(&mut self, context: &mut Context, at: Time, _: Node, heard: &Heard<'_>) {
        let Heard::Packet(packet) = heard else { return };
        let Some(notice) = packet.payload.content.message::<Notice>() else { return };
        if self.bssid != notice.bssid || self.number == notice.terminal {
            return;
        }
        self.law.sense(at, &Signal::Neighbour(*notice));
        if notice.drains && !self.drains {
            self.look = at;
            context.agenda.set(self.timer, Some(at));
        }
    }
}
