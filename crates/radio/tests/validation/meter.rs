//! Runs a case and measures it as the reference does: delays of packets *sent* in the window, PPDUs that start in it,
//! packets delivered in it; each figure by station and seed first, then averaged.

use super::cases::Case;
use crate::common::Cbr;
use lasthop_radio::wifi::{Air, PpduKind, PpduRecord, Profile, Wifi};
use lasthop_radio::{Hop, Outbox, Packet, RxInfo};
use lasthop_signals::Node;
use lasthop_units::{Bytes, Seed, Span, Stream, Time};
use rand::Rng;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// What one class of stations saw, averaged over its stations.
#[derive(Clone, Copy, Debug, Default)]
pub struct Figures {
    /// Mbit/s of IP packets to one station.
    pub throughput: f64,
    /// MPDUs a data PPDU: mean and standard deviation.
    pub mpdus: f64,
    pub mpdus_sd: f64,
    /// Send to delivery, milliseconds.
    pub delay: f64,
    pub delay_p95: f64,
    /// Send to the end of the Ack or BlockAck, milliseconds.
    pub acked: f64,
    pub acked_p95: f64,
}

impl Figures {
    /// Applies `of` figure by figure.
    fn zip(self, other: Figures, of: impl Fn(f64, f64) -> f64) -> Figures {
        Figures {
            throughput: of(self.throughput, other.throughput),
            mpdus: of(self.mpdus, other.mpdus),
            mpdus_sd: of(self.mpdus_sd, other.mpdus_sd),
            delay: of(self.delay, other.delay),
            delay_p95: of(self.delay_p95, other.delay_p95),
            acked: of(self.acked, other.acked),
            acked_p95: of(self.acked_p95, other.acked_p95),
        }
    }

    pub fn mean(of: impl ExactSizeIterator<Item = Figures>) -> Figures {
        let count = of.len() as f64;
        of.fold(Figures::default(), |sum, one| sum.zip(one, |a, b| a + b / count))
    }
}

/// One run of a case: the figures of each of its classes.
pub fn run(case: &Case, profile: Profile, seed: u64) -> Vec<Figures> {
    let plan = case.plan(profile);
    let mut random = Seed(seed).stream("validation");
    // ns-3 starts its beacons at a random time; here they have a fixed one and everything else moves.
    let start = Time::ZERO + Span::from_secs_f64(uniform(&mut random) * 0.1024);
    let opens = start + case.lead;
    let closes = opens + case.measured;
    let rates = case.classes.iter().flat_map(|class| std::iter::repeat_n(class.rate, usize::from(class.stations)));
    let sources: Vec<Cbr> = (1..)
        .zip(rates)
        .map(|(station, rate)| {
            let gap_ns = 1e9 / rate;
            let phase = if case.phases { uniform(&mut random) * gap_ns / 1e9 } else { 0.0 };
            let first = start + Span::from_secs_f64(phase);
            Cbr { from: Node(0), to: Node(station), len: Bytes::new(1_500), first, gap_ns }
        })
        .collect();
    let opening = match case.pending {
        Some(pending) => Opening::after_resolution(start, pending, &mut random),
        None => Opening::at(start),
    };
    let mut meter = Meter { opens, closes, stations: sources.iter().map(|_| Station::default()).collect() };
    drive(&mut Wifi::new(plan, Seed(seed)), &sources, opening, closes + Span::from_millis(600), &mut meter);
    let mut stations = meter.stations.into_iter();
    let class = |stations: u16, each: &mut std::vec::IntoIter<Station>| {
        let all: Vec<Figures> =
            each.take(usize::from(stations)).map(|station| station.figures(case.measured)).collect();
        Figures::mean(all.into_iter())
    };
    case.classes.iter().map(|of| class(of.stations, &mut stations)).collect()
}

fn uniform(random: &mut Stream) -> f64 {
    f64::from(random.next_u32()) / 4_294_967_296.0
}

/// When the packets of a source reach the access point's MAC queue for the first time.
#[derive(Clone, Copy)]
struct Opening {
    /// Until then the station's address is unknown, and only so many packets are kept.
    resolved: Time,
    pending: usize,
    /// Until then the MAC holds everything back: the BlockAck agreement is not there.
    agreed: Time,
}

impl Opening {
    /// Everything is known from the start.
    fn at(start: Time) -> Opening {
        Opening { resolved: start, pending: 0, agreed: start }
    }

    /// ns-3's ARP request waits for whole milliseconds below 10 (`RequestJitter`). The request, the agreement that the
    /// station sets up for its reply, and the reply take six frames at the lowest rate and five channel accesses, 0.7 ms;
    /// the agreement for the data then takes four frames and three accesses, 0.55 ms.
    fn after_resolution(start: Time, pending: usize, random: &mut Stream) -> Opening {
        let resolved = start + Span::from_millis((uniform(random) * 10.0) as u64) + Span::from_micros(700);
        Opening { resolved, pending, agreed: resolved + Span::from_micros(550) }
    }
}

fn drive(hop: &mut Wifi<u64>, sources: &[Cbr], opening: Opening, end: Time, out: &mut Meter) {
    let mut agenda: BinaryHeap<Reverse<(Time, usize)>> =
        sources.iter().enumerate().map(|(index, source)| Reverse((source.first, index))).collect();
    let mut sent = vec![0u64; sources.len()];
    let mut pending: Vec<usize> = Vec::new();
    while let Some(Reverse((at, index))) = agenda.pop() {
        // Sources go on after the window, as the reference's did: its last packets meet the same competition.
        if at >= end {
            break;
        }
        if at >= opening.agreed {
            for early in pending.drain(..) {
                hop.enqueue(opening.agreed, sources[early].packet(0), out);
            }
            hop.enqueue(at, sources[index].packet(0), out);
        } else if at >= opening.resolved || pending.len() < opening.pending {
            pending.push(index);
        }
        sent[index] += 1;
        let next = sources[index].first + Span::from_nanos((sent[index] as f64 * sources[index].gap_ns) as u64);
        agenda.push(Reverse((next, index)));
    }
    hop.advance(end, out);
}

/// Counts what comes out.
struct Meter {
    opens: Time,
    closes: Time,
    stations: Vec<Station>,
}

#[derive(Default)]
struct Station {
    bytes: u64,
    ppdus: f64,
    mpdus: f64,
    mpdus_squared: f64,
    delays: Vec<f64>,
    acked: Vec<f64>,
    /// Packets of the frame on the air: when they were sent.
    unacked: Vec<Time>,
}

impl Meter {
    fn counts(&self, at: Time) -> bool {
        (self.opens..self.closes).contains(&at)
    }
}

impl Outbox<u64> for Meter {
    fn deliver(&mut self, at: Time, to: Node, packet: Packet<u64>, rx: &RxInfo) {
        let (delivered, sent) = (self.counts(at), self.counts(rx.queued_at));
        let station = &mut self.stations[to.index() - 1];
        if delivered {
            station.bytes += packet.len.get();
        }
        if sent {
            station.delays.push(at.since(rx.queued_at).as_millis_f64());
            station.unacked.push(rx.queued_at);
        }
    }
}

impl Air<u64> for Meter {
    fn ppdu(&mut self, at: Time, ppdu: &PpduRecord) {
        let counted = self.counts(ppdu.start);
        match (ppdu.kind, ppdu.to) {
            (PpduKind::Data, Some(to)) if counted => {
                let (station, mpdus) = (&mut self.stations[to.index() - 1], f64::from(ppdu.mpdus));
                station.ppdus += 1.0;
                station.mpdus += mpdus;
                station.mpdus_squared += mpdus * mpdus;
            }
            (PpduKind::Ack | PpduKind::BlockAck, _) => {
                let station = &mut self.stations[ppdu.from.index() - 1];
                station.acked.extend(station.unacked.drain(..).map(|sent| at.since(sent).as_millis_f64()));
            }
            _ => (),
        }
    }
}

impl Station {
    fn figures(self, measured: Span) -> Figures {
        let mean = self.mpdus / self.ppdus;
        let variance = (self.mpdus_squared - self.ppdus * mean * mean) / (self.ppdus - 1.0);
        let (delay, delay_p95) = mean_and_p95(self.delays);
        let (acked, acked_p95) = mean_and_p95(self.acked);
        Figures {
            throughput: self.bytes as f64 * 8.0 / measured.as_secs_f64() / 1e6,
            mpdus: mean,
            mpdus_sd: variance.max(0.0).sqrt(),
            delay,
            delay_p95,
            acked,
            acked_p95,
        }
    }
}

fn mean_and_p95(mut of: Vec<f64>) -> (f64, f64) {
    of.sort_unstable_by(f64::total_cmp);
    (of.iter().sum::<f64>() / of.len() as f64, of[of.len() * 95 / 100])
}
