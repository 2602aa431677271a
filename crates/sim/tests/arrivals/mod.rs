//! Packets of a paced stream as the kernel of a station stamps them: what the timestamp estimator is trained with and
//! judged by. The radio is the Wi-Fi model; the host behind it is modelled here.
//!
//! *Radio*: an access point (802.11n at 20 or 40 MHz, 802.11ac at 40 or 80, 802.11ax at 80; the shortest guard interval)
//! serves 1 to 8 stations in turn, each with a stream paced so that frames have 1 packet (at half the rate that would
//! give them that or more) to three quarters of their limit; any MCS, 1 to 3 spatial streams, up to 5 % of MPDUs lost to noise, in one case out of three a neighbouring BSS
//! that offers 5 to 40 Mbit/s.
//!
//! *Host*: most devices (three out of four here) hand a frame up when it has ended and the BlockAck's reordering lets its
//! packets go; the others pass MPDUs on as they end on the air. Behind them is the host of the simulated stations
//! ([`lasthop_sim::host`]), with interrupts at once or 20 to 100 us apart and 0.7 to 4 us a packet.

#![allow(dead_code)]

pub mod capture;
pub mod judge;
pub mod training;

use lasthop_radio::queue::Kind;
use lasthop_radio::wifi::{
    self, Background, Band, GuardInterval, Load, Mcs, NodeParams, Params, Reception, Role, Standard, Width, Wifi,
};
use lasthop_radio::{AccessClass, Dest, Ecn, Hop, Outbox, Packet, RxInfo};
use lasthop_signals::Node;
use lasthop_signals::phy::TxVector;
use lasthop_sim::host::Host;
use lasthop_units::{Bytes, Rate, Seed, Span, Stream, Time};
use rand::Rng;
use std::collections::BTreeSet;

/// What one trace was made with.
#[derive(Clone, Debug)]
pub struct Case {
    pub seed: u64,
    pub standard: Standard,
    pub width: Width,
    pub mcs: Mcs,
    pub stations: u16,
    pub error: f64,
    pub neighbour: Option<Rate>,
    /// MPDUs are passed on as they end on the air.
    pub early: bool,
    /// Packets a second of each stream.
    pub pace: f64,
    pub moderation: Span,
    pub packet_us: f64,
    /// From when on packets are recorded.
    pub start: Time,
    /// The station sleeps and hears of its packets, which the access point keeps for it, so often only.
    pub doze: Option<Span>,
}

/// What the first station's kernel saw.
#[derive(Clone, Debug, Default)]
pub struct Trace {
    pub stamps: Vec<Time>,
    /// The packet is the first of a frame that had not been seen before.
    pub begins: Vec<bool>,
    /// The frame that each packet came in.
    pub frames: Vec<u32>,
    /// When each left its sender, where that is known.
    pub sent: Vec<Option<Time>>,
}

/// A packet as the radio hands it to the host.
#[derive(Clone, Copy, Debug)]
pub struct Received {
    pub at: Time,
    pub frame: u32,
    pub sent: Option<Time>,
}

pub const LENGTH: Span = Span::from_millis(1_150);
const WARM_UP: Span = Span::from_millis(100);

fn uniform(dice: &mut Stream, from: f64, to: f64) -> f64 {
    from + (to - from) * (f64::from(dice.next_u32()) + 0.5) / 4_294_967_296.0
}

impl Case {
    /// Everything that differs between traces, drawn from the seed.
    pub fn draw(seed: u64) -> Case {
        let mut dice = Seed(seed).stream("arrivals/case");
        let one_in = |dice: &mut Stream, n: u32| dice.next_u32().is_multiple_of(n);
        let nss = 1 + (dice.next_u32() % 3) as u8;
        let (standard, width) = [
            (Standard::Dot11n(Band::Ghz5), Width::Mhz20),
            (Standard::Dot11n(Band::Ghz5), Width::Mhz40),
            (Standard::Dot11ac, Width::Mhz40),
            (Standard::Dot11ac, Width::Mhz80),
            (Standard::Dot11ac, Width::Mhz80),
            (Standard::Dot11ax(Band::Ghz5), Width::Mhz80),
        ][(dice.next_u32() % 6) as usize];
        let indices = match standard {
            Standard::Dot11ac => 10,
            Standard::Dot11ax(_) => 12,
            _ => 8,
        };
        // VHT has no MCS 6 with three streams at 80 MHz.
        let index = match (dice.next_u32() % indices) as u8 {
            6 if standard == Standard::Dot11ac && width == Width::Mhz80 && nss == 3 => 7,
            index => index,
        };
        let stations = [1, 1, 2, 3, 5, 8][(dice.next_u32() % 6) as usize];
        let error = if one_in(&mut dice, 2) { 0.0 } else { uniform(&mut dice, 0.0, 0.05) };
        let neighbour = one_in(&mut dice, 3).then(|| Rate::from_mbit(1).scale(uniform(&mut dice, 5.0, 40.0)));
        let early = one_in(&mut dice, 4);
        let moderation = match dice.next_u32() % 2 {
            0 => Span::ZERO,
            _ => Span::from_micros(1).scale(uniform(&mut dice, 20.0, 100.0)),
        };
        let packet_us = uniform(&mut dice, 0.7, 4.0);
        let mut case = Case {
            seed,
            standard,
            width,
            mcs: Mcs::new(index, nss),
            stations,
            error,
            neighbour,
            early,
            pace: 0.0,
            moderation,
            packet_us,
            start: Time::ZERO + WARM_UP,
            doze: None,
        };
        // x = mu / (c + n w mu): the model of the regulator, with c = 200 us a station.
        let airtime = case.phy().time_for(Bytes::new(1_548)).expect("a rate").as_secs_f64();
        let most = (0.75 * (5.484e-3 / airtime).floor()).clamp(1.6, 48.0);
        // Below 1 frames hold one packet, and rounds pass without one.
        let target = (uniform(&mut dice, 0.5f64.ln(), most.ln())).exp();
        let others = f64::from(stations);
        case.pace = target / (others * 200e-6 + others * airtime * target);
        case
    }

    /// Rate of the PHY.
    pub fn phy(&self) -> Rate {
        let (format, guard_interval) = (self.standard.format(), self.guard_interval());
        let vector = TxVector { format, mcs: self.mcs.index, nss: self.mcs.nss, width: self.width, guard_interval };
        vector.rate().expect("drawn from the standard")
    }

    /// The shortest that the standard has.
    fn guard_interval(&self) -> GuardInterval {
        match self.standard {
            Standard::Dot11ax(_) => GuardInterval::Ns800,
            _ => GuardInterval::Ns400,
        }
    }

    fn params(&self) -> Params {
        let mut nodes = vec![NodeParams::new(Role::Ap, self.mcs)];
        nodes.extend((0..self.stations).map(|_| NodeParams::new(Role::Station { ap: Node(0) }, self.mcs)));
        nodes.iter_mut().for_each(|node| (node.mpdu_error, node.mpdu_by_mpdu) = (self.error, self.early));
        let (from, to) = (Node(self.stations + 1), Node(self.stations + 2));
        if self.neighbour.is_some() {
            nodes.extend([0, 1].map(|_| NodeParams::new(Role::Neighbour, Mcs::new(4, 1))));
        }
        let mut params = Params::new(self.standard, self.width, self.guard_interval(), nodes);
        params.ap_queue = Kind::RoundRobin { packets: 1_000 };
        params.background = self
            .neighbour
            .map(|rate| Background {
                from,
                to,
                class: AccessClass::BestEffort,
                packet: Bytes::new(1_500),
                load: Load::Offered(rate),
                active: Vec::new(),
            })
            .into_iter()
            .collect();
        params
    }

    /// Runs the radio, then the host.
    pub fn trace(&self) -> Trace {
        let plan = self.params().validate().expect("cases are legal");
        let mut hop: Wifi<()> = Wifi::new(plan, Seed(self.seed));
        let mut air = Air::default();
        let gap_ns = 1e9 / self.pace;
        let stations = u64::from(self.stations);
        for number in 0.. {
            // The stations' packets one after the other, evenly apart.
            let mut at = Time::from_nanos((gap_ns * number as f64 / stations as f64) as u64);
            if let Some(doze) = self.doze {
                at = Time::ZERO + doze * at.since(Time::ZERO).as_nanos().div_ceil(doze.as_nanos());
            }
            if at > Time::ZERO + LENGTH {
                break;
            }
            let to = Node(1 + (number % stations) as u16);
            let packet = Packet {
                len: Bytes::new(1_500),
                src: Node(0),
                dst: Dest::Node(to),
                class: AccessClass::BestEffort,
                flow_hash: u32::from(to.0),
                ecn: Ecn::NotEct,
                payload: (),
            };
            hop.enqueue(at, packet, &mut air);
        }
        self.host(&air.arrivals)
    }

    /// When the driver hands each packet up, `arrivals` being the packets in order.
    pub fn host(&self, arrivals: &[Received]) -> Trace {
        let mut trace = Trace::default();
        let mut host = Host::new(Seed(self.seed).stream("arrivals/host"), self.moderation, self.packet_us);
        let mut newest = None;
        for packet in arrivals {
            let at = host.stamp(packet.at);
            if at > self.start {
                trace.note(at, packet, newest);
            }
            newest = newest.max(Some(packet.frame));
        }
        trace
    }
}

impl Trace {
    /// Of packets that were stamped as they arrived, with the numbers of their frames.
    pub fn stamped(arrivals: &[Received]) -> Trace {
        let mut trace = Trace::default();
        let mut newest = None;
        for packet in arrivals {
            trace.note(packet.at, packet, newest);
            newest = newest.max(Some(packet.frame));
        }
        trace
    }

    /// A packet that was stamped `at`, after others of frames up to `newest`.
    fn note(&mut self, at: Time, packet: &Received, newest: Option<u32>) {
        self.stamps.push(at);
        self.begins.push(newest.is_none_or(|newest| packet.frame > newest));
        self.frames.push(packet.frame);
        self.sent.push(packet.sent);
    }

    /// Packets of slots of this length, in order.
    pub fn slots(&self, length: Span) -> Vec<std::ops::Range<usize>> {
        let mut slots = Vec::new();
        let mut first = 0;
        let Some(&start) = self.stamps.first() else { return slots };
        let mut end = start + length;
        for (index, at) in self.stamps.iter().enumerate() {
            if *at >= end {
                slots.push(first..index);
                (first, end) = (index, end + length);
            }
        }
        slots
    }

    /// Mean packets a frame, as radiotap would show it.
    pub fn mean(&self, packets: std::ops::Range<usize>) -> f64 {
        let frames: BTreeSet<u32> = self.frames[packets.clone()].iter().copied().collect();
        packets.len() as f64 / frames.len().max(1) as f64
    }
}

/// What reaches the first station, with the number of the A-MPDU.
#[derive(Default)]
struct Air {
    arrivals: Vec<Received>,
    /// The A-MPDU of the packet that is delivered next.
    ampdu: Option<u32>,
}

impl Outbox<()> for Air {
    fn deliver(&mut self, at: Time, to: Node, _packet: Packet<()>, rx: &RxInfo) {
        if to == Node(1) {
            self.arrivals.push(Received { at, frame: self.ampdu.unwrap_or_default(), sent: Some(rx.queued_at) });
        }
    }
}

impl wifi::Air<()> for Air {
    fn received(&mut self, _at: Time, _to: Node, reception: &Reception) {
        self.ampdu = reception.ampdu;
    }
}
