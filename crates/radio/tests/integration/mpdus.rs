//! MPDU records agree with the PPDUs that they are parts of, and the aggregation meter makes of what the receiver heard
//! what was sent.

use crate::common;

use common::{Cbr, run};
use lasthop_laws::aggregation::meter::{Frame, Grouping, Meter, Tally};
use lasthop_radio::wifi::{
    Air, Band, Db, GuardInterval, Hearing, Link, Mcs, MpduRecord, NodeParams, Params, Plan, PpduKind, PpduRecord,
    Reach, Role, Snr, Standard, Strength, Width,
};
use lasthop_radio::{Outbox, Packet, RxInfo};
use lasthop_signals::phy::Format;
use lasthop_signals::{MacAddress, Node, ReceivedMpdu, Subframe};
use lasthop_units::{Bytes, Seed, Span, Time};
use std::collections::BTreeSet;

const STATION: Node = Node(1);

type Record = MpduRecord<'static, (u32, u64)>;

/// Listens to everything.
#[derive(Default)]
struct Listener {
    /// MPDUs of the PPDU without a record yet, without their payloads.
    pending: Vec<(Time, Record)>,
    /// Downlink: PPDUs with their MPDUs.
    ppdus: Vec<(PpduRecord, Vec<Record>)>,
    delivered: Vec<u64>,
    /// Payloads of MPDUs that came whole for the first time, by sequence number.
    first_seen: Vec<u64>,
    heard: Vec<(Time, ReceivedMpdu)>,
}

impl Outbox<(u32, u64)> for Listener {
    fn deliver(&mut self, _at: Time, to: Node, packet: Packet<(u32, u64)>, _rx: &RxInfo) {
        if to == STATION {
            self.delivered.push(packet.payload.1);
        }
    }
}

impl Air<(u32, u64)> for Listener {
    fn wants_mpdus(&self) -> bool {
        true
    }

    fn mpdu(&mut self, at: Time, mpdu: &MpduRecord<'_, (u32, u64)>) {
        if mpdu.to != STATION {
            return;
        }
        if mpdu.received {
            self.first_seen.extend(mpdu.payloads.iter().map(|payload| payload.1));
            self.heard.push((at, received(mpdu)));
        }
        assert_eq!(mpdu.hearers.iter().find(|hearing| hearing.node == STATION).map(|h| h.whole), Some(mpdu.received));
        self.pending.push((at, MpduRecord { payloads: Vec::new(), hearers: &[], ..mpdu.clone() }));
    }

    fn ppdu(&mut self, at: Time, ppdu: &PpduRecord) {
        if ppdu.kind == PpduKind::Data && ppdu.to == Some(STATION) {
            assert!(self.pending.iter().all(|(mpdu_at, mpdu)| (*mpdu_at, mpdu.start) == (at, ppdu.start)));
            let mpdus = self.pending.drain(..).map(|(_, mpdu)| mpdu).collect();
            self.ppdus.push((ppdu.clone(), mpdus));
        }
    }
}

fn address(node: Node) -> MacAddress {
    let [high, low] = node.0.to_be_bytes();
    MacAddress([2, 0, 0, 0, high, low])
}

fn received(mpdu: &MpduRecord<'_, (u32, u64)>) -> ReceivedMpdu {
    ReceivedMpdu {
        transmitter: address(mpdu.from),
        receiver: address(mpdu.to),
        ampdu: mpdu.ampdu.map(|reference| Subframe { reference, last: Some(mpdu.last) }),
        tid: 0,
        sequence: mpdu.sequence,
        retry: mpdu.retry,
        msdus: mpdu.packets,
        fcs_good: true,
        tsf: Some(mpdu.start),
        tx: Some(mpdu.tx),
        len: mpdu.len,
    }
}

/// One second of downlink at 100 Mbit/s with `error` of the MPDUs lost.
fn listen(standard: Standard, error: f64) -> Listener {
    let (width, mcs) = match standard {
        Standard::Dot11a => (Width::Mhz20, Mcs::new(7, 1)),
        Standard::Dot11n(_) => (Width::Mhz40, Mcs::new(5, 1)),
        _ => (Width::Mhz80, Mcs::new(4, 1)),
    };
    let mut nodes = vec![NodeParams::new(Role::Ap, mcs), NodeParams::new(Role::Station { ap: Node(0) }, mcs)];
    nodes[1].mpdu_error = error;
    let plan = Params::new(standard, width, GuardInterval::Ns800, nodes).validate().expect("legal");
    let source = Cbr { from: Node(0), to: STATION, len: Bytes::new(1_500), first: Time::ZERO, gap_ns: 120_000.0 };
    let mut listener = Listener::default();
    run(plan, Seed(3), &[source], Time::ZERO + Span::from_secs(1), &mut listener);
    listener
}

#[test]
fn the_records_of_a_ppdu_add_up_to_it() {
    for (standard, error) in [
        (Standard::Dot11ac, 0.0),
        (Standard::Dot11ac, 0.2),
        (Standard::Dot11n(Band::Ghz5), 0.1),
        (Standard::Dot11a, 0.1),
    ] {
        let listener = listen(standard, error);
        assert!(listener.ppdus.len() > 100, "{standard:?}");
        for (ppdu, mpdus) in &listener.ppdus {
            assert_eq!(mpdus.len(), usize::from(ppdu.mpdus), "{standard:?}: {ppdu:?}");
            assert_eq!(mpdus.iter().filter(|mpdu| mpdu.received).count(), usize::from(ppdu.received), "{ppdu:?}");
            let (last, others) = mpdus.split_last().expect("no empty PPDU");
            assert!(last.last && others.iter().all(|mpdu| !mpdu.last));
            assert!(mpdus.iter().all(|mpdu| mpdu.ampdu == last.ampdu && mpdu.tx.rate() == Some(ppdu.rate)));
            let rising = mpdus.windows(2).all(|pair| (pair[1].sequence + 4_096 - pair[0].sequence) % 4_096 <= 64);
            assert!(rising, "{mpdus:?}");
        }
        let lone = listener.ppdus.iter().flat_map(|(_, mpdus)| mpdus).filter(|mpdu| mpdu.ampdu.is_none()).count();
        match standard {
            Standard::Dot11a => assert_eq!(lone, listener.ppdus.len(), "no A-MPDUs in 802.11a"),
            Standard::Dot11ac => assert_eq!(lone, 0, "VHT sends nothing else"),
            _ => (),
        }
        // Each packet that was handed up came whole in exactly one MPDU that had not been handed up before. With losses
        // some wait behind a hole at the end, and one repeated before its BlockAck was heard shows twice.
        let mut seen = listener.first_seen.clone();
        seen.sort_unstable();
        seen.dedup();
        assert!(listener.delivered.iter().all(|packet| seen.binary_search(packet).is_ok()), "{standard:?}");
        let repeats = listener.ppdus.iter().flat_map(|(_, mpdus)| mpdus).filter(|mpdu| mpdu.retry).count();
        assert_eq!(repeats > 0, error > 0.0, "{standard:?}");
    }
}

#[test]
fn the_window_of_802_11ax_holds_256_mpdus_whatever_is_lost() {
    let mcs = Mcs::new(11, 2);
    let mut nodes = vec![NodeParams::new(Role::Ap, mcs), NodeParams::new(Role::Station { ap: Node(0) }, mcs)];
    nodes[1].mpdu_error = 0.2;
    let he = Standard::Dot11ax(Band::Ghz5);
    let mut params = Params::new(he, Width::Mhz160, GuardInterval::Ns800, nodes);
    params.max_ampdu_mpdus = 256;
    // 3 Gbit/s: more than it carries.
    let source = Cbr { from: Node(0), to: STATION, len: Bytes::new(1_500), first: Time::ZERO, gap_ns: 4_000.0 };
    let mut listener = Listener::default();
    let end = Time::ZERO + Span::from_millis(200);
    run(params.validate().expect("legal"), Seed(3), &[source], end, &mut listener);
    let mut whole = BTreeSet::new();
    let (mut oldest, mut widest, mut numbers) = (0u64, 0, 0u64);
    for (_, mpdus) in &listener.ppdus {
        for mpdu in mpdus {
            // The number that was meant, of those that are the same modulo 4096.
            let ahead = (u64::from(mpdu.sequence) + 4_096 - oldest % 4_096) % 4_096;
            assert!(ahead < 256, "{mpdu:?} is {ahead} after the oldest that is missing");
            widest = widest.max(ahead);
            numbers = numbers.max(oldest + ahead);
            if mpdu.received {
                whole.insert(oldest + ahead);
            }
        }
        while whole.contains(&oldest) {
            oldest += 1;
        }
    }
    assert!(widest == 255 && numbers > 3 * 4_096, "{widest}, {numbers}");
    assert!(listener.ppdus.iter().any(|(ppdu, _)| ppdu.mpdus > 150), "frames are long between repeats");
    assert!(listener.delivered.is_sorted() && listener.delivered.len() as u64 > 3 * 4_096);
}

#[test]
fn the_meter_finds_what_was_sent_from_what_was_heard() {
    for error in [0.0, 0.05, 0.2] {
        let listener = listen(Standard::Dot11ac, error);
        let (mut meter, mut tally) = (Meter::new(Grouping::Air), Tally::default());
        let mut add = |frame: &Frame| tally.add(frame);
        for (at, mpdu) in &listener.heard {
            assert_eq!(mpdu.tx.map(|tx| tx.format), Some(Format::Vht));
            meter.receive(*at, mpdu, &mut add);
        }
        meter.finish(&mut add);
        // Of a PPDU of which nothing came through, nobody can know.
        let heard: Vec<&PpduRecord> =
            listener.ppdus.iter().map(|(ppdu, _)| ppdu).filter(|ppdu| ppdu.received > 0).collect();
        assert_eq!(tally.packets.frames(), heard.len() as u64, "error {error}");
        let sent = heard.iter().map(|ppdu| f64::from(ppdu.mpdus)).sum::<f64>() / heard.len() as f64;
        let found = tally.packets.mean().expect("frames");
        let raw = tally.received.mean().expect("frames");
        eprintln!("error {error}: sent {sent:.3}, heard {raw:.3}, inferred {found:.3} MPDUs a frame");
        assert!((found / sent - 1.0).abs() < 0.01, "error {error}: {found} of {sent}");
        assert_eq!(tally.packets.max(), heard.iter().map(|ppdu| u32::from(ppdu.mpdus)).max(), "error {error}");
    }
}

/// Counts what each node hears of the first station's frames, or does not listen at all.
#[derive(Default)]
struct Bystanders {
    listens: bool,
    ppdus: Vec<PpduRecord>,
    /// By node.
    heard: [Ear; 4],
}

/// What a node received of what was for the first station.
#[derive(Clone, Copy, Default, Debug)]
struct Ear {
    mpdus: u32,
    whole: u32,
    last: Option<Strength>,
}

impl Outbox<(u32, u64)> for Bystanders {
    fn deliver(&mut self, _at: Time, _to: Node, _packet: Packet<(u32, u64)>, _rx: &RxInfo) {}
}

impl Air<(u32, u64)> for Bystanders {
    fn wants_mpdus(&self) -> bool {
        self.listens
    }

    fn mpdu(&mut self, _at: Time, mpdu: &MpduRecord<'_, (u32, u64)>) {
        assert!(self.listens);
        for Hearing { node, whole, strength } in mpdu.hearers.iter().filter(|_| mpdu.to == STATION) {
            let ear = &mut self.heard[node.index()];
            ear.mpdus += 1;
            ear.whole += u32::from(*whole);
            ear.last = *strength;
        }
    }

    fn ppdu(&mut self, _at: Time, ppdu: &PpduRecord) {
        self.ppdus.push(ppdu.clone());
    }
}

/// Three stations at MCS 7: the first with 40 dB and a tenth lost, the second with 8 dB, the third out of the access
/// point's reach.
fn three_stations() -> Plan {
    let mcs = Mcs::new(7, 1);
    let mut nodes = vec![NodeParams::new(Role::Ap, mcs)];
    nodes.extend((0..2).map(|_| NodeParams::new(Role::Station { ap: Node(0) }, mcs)));
    nodes.push(NodeParams::new(Role::Neighbour, mcs));
    nodes[1].mpdu_error = 0.1;
    for (node, db) in [(1, 40.0), (2, 8.0)] {
        nodes[node].link = Some(Link { snr: Snr::Trace(vec![(Time::ZERO, Db(db))]), fading: None });
    }
    let mut params = Params::new(Standard::Dot11ac, Width::Mhz80, GuardInterval::Ns800, nodes);
    params.reach.set_both(Node(0), Node(3), Reach::Senses);
    params.validate().expect("legal")
}

#[test]
fn monitors_hear_by_their_own_links_and_change_nothing() {
    let source =
        |to: u16, gap_ns: f64| Cbr { from: Node(0), to: Node(to), len: Bytes::new(1_500), first: Time::ZERO, gap_ns };
    let of = |listens: bool| {
        let mut out = Bystanders { listens, ..Bystanders::default() };
        let sources = [source(1, 120_000.0), source(2, 2_000_000.0)];
        run(three_stations(), Seed(3), &sources, Time::ZERO + Span::from_secs(1), &mut out);
        out
    };
    let (listening, deaf) = (of(true), of(false));
    assert_eq!(listening.ppdus, deaf.ppdus, "a monitor changed the world");
    let [ap, first, second, neighbour] = listening.heard;
    assert_eq!((ap.mpdus, neighbour.mpdus), (0, 0), "nobody hears itself, or what it cannot decode");
    assert!(first.mpdus > 8_000 && second.mpdus == first.mpdus, "{first:?} {second:?}");
    let lost = 1.0 - f64::from(first.whole) / f64::from(first.mpdus);
    assert!((lost - 0.1).abs() < 0.015, "{lost}");
    // 64-QAM at rate 5/6 needs some 23 dB.
    assert_eq!(second.whole, 0, "MCS 7 came through at 8 dB");
    // -174 dBm/Hz, 80 MHz, a noise figure of 7 dB.
    for (ear, db) in [(first, 40.0), (second, 8.0)] {
        let Strength { signal, noise } = ear.last.expect("a link");
        assert!((noise.0 + 87.97).abs() < 0.01 && (signal.0 - noise.0 - db).abs() < 1e-9, "{ear:?}");
    }
}
