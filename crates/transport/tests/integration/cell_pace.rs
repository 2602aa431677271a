//! PBE-CC in the tunnel: a proxy serves a station in a simulated LTE cell, which tells what it sees of the control channel. 10 ms of wire, a carrier
//! of 50 PRB at the best quality: 36.696 Mbit/s in blocks of one layer.

use lasthop_laws::pbe::{Params, Pbe, Receiver};
use lasthop_laws::tcp::Setup;
use lasthop_laws::{SenderLaw, Why};
use lasthop_radio::cell::mcs::Cqi;
use lasthop_radio::cell::{Cell, Params as CellParams, StationParams};
use lasthop_radio::{AccessClass, Dest, Ecn, Hop, NextEvent, Outbox, Packet, RxInfo};
use lasthop_signals::{Arrival, CellCapacity, Node, Signal};
use lasthop_transport::ReceiverFeedback;
use lasthop_transport::tunnel::{AckRule, CellFigures, Config, Delay, Endpoint, Event};
use lasthop_units::brief::at;
use lasthop_units::{Bytes, Rate, Seed, Span, Time};
use lasthop_wire::tunnel::{Frame, OpenResult, open_packet, packet_header};
use proptest::prelude::*;
use rand::RngExt;
use std::collections::BTreeMap;

const WIRE: Span = Span::from_millis(10);
/// Bits that the carrier's blocks have in a second.
const CARRIER: f64 = 36.696e6;
/// Full IP packets.
const FULL: u64 = 1500;

/// A packet of the tunnel with its number.
type Sealed = (u64, Vec<u8>);

/// What becomes of what the station tells.
type Change = Box<dyn FnMut(CellCapacity) -> Option<CellCapacity>>;

/// What the cell hands out.
#[derive(Default)]
struct Out {
    delivered: Vec<(Node, Packet<Option<Sealed>>)>,
    shown: Vec<Signal>,
}

impl Outbox<Option<Sealed>> for Out {
    fn deliver(&mut self, _: Time, to: Node, packet: Packet<Option<Sealed>>, _: &RxInfo) {
        self.delivered.push((to, packet));
    }

    fn driver(&mut self, _: Time, of: Node, signal: &Signal) {
        if of == STATION && matches!(signal, Signal::Subframe(_)) {
            self.shown.push(signal.clone());
        }
    }
}

const BASE: Node = Node(0);
const STATION: Node = Node(1);
/// Another terminal, for which something always waits when it is there.
const OTHER: Node = Node(2);

struct World {
    now: Time,
    /// Station and proxy.
    ends: [Endpoint; 2],
    cell: Cell<Option<Sealed>>,
    receiver_feedback: ReceiverFeedback,
    round_trip: Option<Span>,
    /// On the wire: by arrival, to the cell or to the proxy.
    wire: BTreeMap<(Time, u64), (bool, Sealed, usize)>,
    /// A narrower place before the cell: its rate, and when it is free.
    narrow: Option<Rate>,
    free: Time,
    hears: bool,
    other: bool,
    change: Change,
    pinged: Time,
    count: u64,
    events: Vec<(usize, Event)>,
    delays: Vec<Span>,
    /// Octets that the station has read.
    read: u64,
}

fn law() -> Box<dyn SenderLaw> {
    Box::new(Pbe::new(Params::default(), Setup::new(Bytes::new(FULL), Seed(1).stream("law"))))
}

impl World {
    fn new() -> World {
        let best = Cqi::new(15).expect("the best");
        let stations = vec![StationParams::new(best), StationParams { decodes: false, ..StationParams::new(best) }];
        let plan = CellParams::new(vec![50], stations).validate().expect("a cell");
        let mut station = Endpoint::new(Config { acks: AckRule::PROMPT, ..Config::station() });
        station.tell_cell(CellCapacity::UNKNOWN);
        station.ping();
        let mut proxy = Endpoint::new(Config::proxy());
        proxy.set_pacing(Time::ZERO, Rate::from_mbit(1), Bytes::new(100_000));
        World {
            now: Time::ZERO,
            ends: [station, proxy],
            cell: Cell::new(plan, Seed(1)),
            receiver_feedback: ReceiverFeedback::new(Box::new(Receiver::new(Params::default()))),
            round_trip: None,
            wire: BTreeMap::new(),
            narrow: None,
            free: Time::ZERO,
            hears: true,
            other: false,
            change: Box::new(Some),
            pinged: Time::ZERO,
            count: 0,
            events: Vec::new(),
            delays: Vec::new(),
            read: 0,
        }
    }

    fn put(&mut self, at: Time, to_cell: bool, sealed: Sealed, len: usize) {
        self.count += 1;
        self.wire.insert((at, self.count), (to_cell, sealed, len));
    }

    fn send(&mut self, out: &mut Out) {
        let (now, mut packet) = (self.now, Vec::new());
        while let Some(departure) = self.ends[1].poll_transmit(now, &mut packet) {
            let len = packet.len() + 60;
            let left = match self.narrow {
                None => now,
                // A queue of 150 ms before the narrow place.
                Some(_) if self.free.since(now) > Span::from_millis(150) => continue,
                Some(rate) => {
                    self.free = self.free.max(now) + rate.time_for(Bytes::new(len as u64)).expect("not zero");
                    self.free
                }
            };
            self.put(left + WIRE, true, (departure.number, packet.clone()), len);
        }
        while let Some(departure) = self.ends[0].poll_transmit(now, &mut packet) {
            let len = packet.len() + 60;
            let sealed = (departure.number, changed(&packet, &mut self.change));
            self.cell.enqueue(now, across(STATION, BASE, len, Some(sealed)), out);
        }
    }

    /// Goes on to the next thing that happens, not beyond `until`; false if that is where it stopped.
    fn step(&mut self, until: Time) -> bool {
        let mut out = Out::default();
        if self.other {
            while self.cell.backlog(OTHER).1 < Bytes::new(50_000) {
                self.cell.enqueue(self.now, across(BASE, OTHER, 1500, None), &mut out);
            }
        }
        self.send(&mut out);
        let now = self.now;
        let timers = self.ends.iter().filter_map(|end| end.next_timeout(now));
        let wire = self.wire.keys().next().map(|(at, _)| *at);
        let others = [wire, self.cell.next_event(), Some(self.receiver_feedback.next_timeout())];
        let next = timers.chain(others.into_iter().flatten()).min().unwrap_or(until).max(now).min(until);
        self.count += 1;
        assert!(self.count < 20_000_000, "the world stands still at {now:?}");
        self.now = next;
        self.cell.advance(next, &mut out);
        while let Some(entry) = self.wire.first_entry().filter(|entry| entry.key().0 <= next) {
            let (to_cell, sealed, len) = entry.remove();
            match to_cell {
                true => self.cell.enqueue(next, across(BASE, STATION, len, Some(sealed)), &mut out),
                false => drop(self.ends[1].on_packet(next, sealed.0, &sealed.1).expect("an honest peer")),
            }
        }
        self.take(out);
        next < until
    }

    fn take(&mut self, out: Out) {
        let now = self.now;
        for signal in out.shown.iter().filter(|_| self.hears) {
            self.receiver_feedback.sense(now, signal);
        }
        for (to, packet) in out.delivered {
            let Some((number, bytes)) = packet.payload else { continue };
            if to == BASE {
                self.put(now + WIRE, false, (number, bytes), 0);
                continue;
            }
            let sent = self.ends[0].on_packet(now, number, &bytes).expect("an honest peer");
            let arrival = Arrival { at: now, sent: Some(sent), len: packet.len };
            self.receiver_feedback.sense(now, &Signal::Arrival(arrival));
        }
        let round_trip = self.ends[0].latest_round_trip();
        if let Some(round_trip) = round_trip.filter(|new| self.round_trip.replace(*new) != Some(*new)) {
            self.receiver_feedback.sense(now, &Signal::RoundTrip(round_trip));
        }
        self.receiver_feedback.on_timeout(now);
        if let Some(told) = self.receiver_feedback.latest() {
            self.ends[0].tell_cell(told);
        }
        if now.since(self.pinged) >= Span::from_millis(500) {
            self.pinged = now;
            self.ends[0].ping();
        }
        for end in 0..2 {
            self.ends[end].on_timeout(now);
            while let Some(event) = self.ends[end].next_event() {
                match event {
                    Event::Cell(_) if end == 1 => self.ends[1].follow_cell(now, law()),
                    event => self.events.push((end, event)),
                }
            }
        }
        for delay in self.ends[0].delays() {
            if let Delay::Hop(span) = delay {
                self.delays.push(span);
            }
        }
    }

    /// A stream for a download.
    fn stream(&mut self) -> u32 {
        let number = self.ends[0].open("server", 80);
        while self.step(at(10_000)) {
            for (end, event) in std::mem::take(&mut self.events) {
                match event {
                    Event::Open { stream, .. } if end == 1 => self.ends[1].opened(stream, OpenResult::Connected),
                    Event::Opened { result, .. } => {
                        assert_eq!(result, OpenResult::Connected);
                        return number;
                    }
                    other => panic!("{other:?}"),
                }
            }
        }
        panic!("no stream in ten seconds");
    }

    /// Downloads until `until`; `each` sees the proxy's figures at every step. Returns octets that were read.
    fn download(&mut self, number: u32, until: Time, mut each: impl FnMut(Time, CellFigures)) -> u64 {
        let before = self.read;
        loop {
            let wanted = self.ends[1].wants(self.now, number);
            self.ends[1].write(number, &vec![7; wanted], self.now);
            self.ends[1].fed(self.now);
            let goes_on = self.step(until);
            let ready = self.ends[0].readable(number).len();
            self.ends[0].consume(self.now, number, ready);
            self.read += ready as u64;
            self.ends[1].cell_figures(self.now).into_iter().for_each(|figures| each(self.now, figures));
            if !goes_on {
                return self.read - before;
            }
        }
    }

    fn figures(&self) -> CellFigures {
        self.ends[1].cell_figures(self.now).expect("a cell is told of")
    }

    /// The q-th quantile of delays since the last call.
    fn delay(&mut self, q: f64) -> Span {
        let mut delays = std::mem::take(&mut self.delays);
        delays.sort_unstable();
        delays[((delays.len() - 1) as f64 * q) as usize]
    }
}

fn across(src: Node, dst: Node, len: usize, payload: Option<Sealed>) -> Packet<Option<Sealed>> {
    let len = Bytes::new(len as u64);
    let (dst, class, ecn) = (Dest::Node(dst), AccessClass::BestEffort, Ecn::NotEct);
    Packet { len, src, dst, class, flow_hash: 0, ecn, payload }
}

/// The packet with other words about the cell, or none.
fn changed(packet: &[u8], change: &mut Change) -> Vec<u8> {
    let (sent, frames) = open_packet(packet).expect("made here");
    let mut out = packet_header(sent).to_vec();
    for frame in frames {
        let frame = match frame.expect("made here") {
            Frame::Cell(told) => change(told).map(Frame::Cell),
            other => Some(other),
        };
        frame.iter().for_each(|frame| frame.encode(&mut out).expect("as short as before"));
    }
    out
}

/// A rate of octets.
fn rate(octets: u64, ms: u64) -> f64 {
    octets as f64 * 8.0 / ms as f64 * 1000.0
}

fn is_pbe(why: Why) -> bool {
    matches!(why, Why::PbeStart | Why::PbeWireless | Why::PbeInternet | Why::PbeDrain)
}

#[test]
fn the_proxy_goes_at_what_the_cell_has_and_nothing_waits() {
    let mut world = World::new();
    let number = world.stream();
    let began = world.now;
    assert!(began < at(200), "{began:?}");
    assert!(is_pbe(world.figures().why), "the first packet says that the station will tell: {:?}", world.figures());
    world.download(number, began + Span::from_millis(600), |_, _| {});
    assert_eq!(world.figures().why, Why::PbeWireless);
    world.delays.clear();
    let mut paces = Vec::new();
    let until = world.now + Span::from_secs(3);
    let got = rate(world.download(number, until, |_, figures| paces.push(figures.rate.as_bps() as f64)), 3000);
    // 1413 of 1500 octets are the stream's; the cell's own headers take some more.
    assert!(got > 0.93 * CARRIER * 1413.0 / 1500.0, "{got}");
    assert!(paces.iter().all(|pace| *pace > 0.93 * CARRIER && *pace <= CARRIER), "{paces:?}");
    let (median, most) = (world.delay(0.5), world.ends[1].min_rtt().expect("known"));
    // 10 ms of wire, 4 ms of the cell at least.
    assert!(median < Span::from_millis(18), "{median} of {most}");
    assert_eq!(world.ends[1].lost_packets(), 0);
}

#[test]
fn it_follows_another_terminal_that_comes_and_goes() {
    let mut world = World::new();
    let number = world.stream();
    world.download(number, at(1000), |_, _| {});
    let mut got = Vec::new();
    for (other, until) in [(true, 3000), (false, 5000)] {
        world.other = other;
        let settled = world.now + Span::from_millis(500);
        world.download(number, settled, |_, _| {});
        world.delays.clear();
        let octets = world.download(number, at(until), |_, figures| assert!(is_pbe(figures.why), "{figures:?}"));
        got.push(rate(octets, 1500) * 1500.0 / 1413.0 / CARRIER);
        let late = world.delay(0.95);
        assert!(late < Span::from_millis(25), "other: {other}: {late}");
    }
    assert!(got[0] > 0.42 && got[0] < 0.52 && got[1] > 0.92, "{got:?}");
}

#[test]
fn a_silent_cell_is_left_to_bbr_until_it_reports_again() {
    let mut world = World::new();
    let number = world.stream();
    world.download(number, at(1000), |_, _| {});
    world.hears = false;
    let silent = world.now;
    // 200 ms until the receiver says so, and the way up.
    world.download(number, at(1300), |_, _| {});
    let got = world.download(number, at(3300), |now, figures| {
        assert!(!is_pbe(figures.why), "{:?} after {:?}: {figures:?}", now, silent);
    });
    assert!(rate(got, 2000) > 0.85 * CARRIER * 1413.0 / 1500.0, "{}", rate(got, 2000));
    world.hears = true;
    world.download(number, at(4000), |_, _| {});
    assert_eq!(world.figures().why, Why::PbeWireless);
}

#[test]
fn acknowledgements_that_stop_telling_age_into_bbr() {
    let mut world = World::new();
    let number = world.stream();
    world.download(number, at(1000), |_, _| {});
    let pace = world.figures().rate;
    world.change = Box::new(|_| None);
    let (silent, mut slower, mut plain) = (world.now, None, None);
    world.download(number, at(3000), |now, figures| {
        if is_pbe(figures.why) {
            assert!(plain.is_none(), "for good");
            slower = slower.or((figures.rate.as_bps() < pace.as_bps() * 3 / 5).then_some(now));
        } else {
            plain.get_or_insert(now);
        }
    });
    // Three round trips of at least 24 ms it holds, then it halves, and after six it is BBR.
    let (slower, plain) = (slower.expect("halved").since(silent), plain.expect("plain").since(silent));
    assert!(slower > Span::from_millis(72) && slower < Span::from_millis(250), "{slower}");
    assert!(plain > slower && plain < Span::from_millis(500), "{plain}");
    assert!(world.figures().rate > Rate::from_mbit(20), "{:?}", world.figures());
}

#[test]
fn a_forged_capacity_is_believed_within_bounds() {
    let mut world = World::new();
    world.change = Box::new(|told| {
        let most = Rate::from_bps(u64::from(u32::MAX) * 1000);
        (!told.available.is_zero()).then_some(CellCapacity { available: most, fair: most, elsewhere: false, ..told })
    });
    let number = world.stream();
    let mut fastest = Rate::ZERO;
    world.download(number, at(1000), |_, _| {});
    world.download(number, at(4000), |_, figures| fastest = fastest.max(figures.rate));
    // Twice what was delivered, and ten packets in a round trip on top.
    let most = 2.0 * CARRIER + 10.0 * 1500.0 * 8.0 / 0.024;
    assert!(fastest.as_bps() as f64 <= most, "{fastest}");
    assert!(fastest.as_bps() as f64 > CARRIER, "it is believed, that far: {fastest}");
}

#[test]
fn a_bottleneck_before_the_cell_is_found_with_a_short_queue() {
    let mut world = World::new();
    let number = world.stream();
    world.download(number, at(1000), |_, _| {});
    world.narrow = Some(Rate::from_mbit(10));
    world.download(number, at(3000), |_, _| {});
    assert!(world.figures().told.elsewhere, "{:?}", world.figures());
    world.delays.clear();
    let mut inside = [0u32; 2];
    let got = rate(world.download(number, at(8000), |_, figures| inside[usize::from(is_pbe(figures.why))] += 1), 5000);
    assert!(got > 0.8 * 10e6 * 1413.0 / 1500.0, "{got}");
    assert!(inside[1] > inside[0], "{inside:?}");
    // Of 150 ms that it has room for.
    let late = world.delay(0.95);
    assert!(late < Span::from_millis(60), "{late}");
    world.narrow = None;
    world.download(number, at(12_000), |_, _| {});
    assert_eq!(world.figures().why, Why::PbeWireless);
    assert!(world.figures().rate.as_bps() as f64 > 0.9 * CARRIER, "{:?}", world.figures());
}

/// A packet that says no more than this.
fn packet(told: CellCapacity) -> Vec<u8> {
    let mut packet = packet_header(Time::ZERO).to_vec();
    Frame::Cell(told).encode(&mut packet).expect("short");
    packet
}

#[test]
fn overtaken_reports_are_ignored_and_the_first_is_an_event() {
    let told =
        |mbit| CellCapacity { available: Rate::from_mbit(mbit), fair: Rate::from_mbit(mbit), ..CellCapacity::UNKNOWN };
    let mut proxy = Endpoint::new(Config::proxy());
    for (number, mbit) in [(3, 5), (7, 6), (5, 7), (7, 8)] {
        proxy.on_packet(at(number), number, &packet(told(mbit))).expect("an honest peer");
    }
    assert_eq!(proxy.next_event(), Some(Event::Cell(told(5))));
    assert_eq!((proxy.next_event(), proxy.cell_figures(at(8))), (None, None));
    proxy.follow_cell(at(8), law());
    assert_eq!(proxy.cell_figures(at(8)).map(|figures| figures.told), Some(told(6)));
    proxy.on_packet(at(9), 6, &packet(told(9))).expect("an honest peer");
    proxy.on_packet(at(9), 8, &packet(told(10))).expect("an honest peer");
    assert_eq!(proxy.cell_figures(at(9)).map(|figures| figures.told), Some(told(10)));
    assert_eq!(proxy.next_event(), None);
    // Nobody acknowledges what only tells.
    let mut out = Vec::new();
    proxy.on_timeout(at(1000));
    while proxy.poll_transmit(at(1000), &mut out).is_some() {
        let (_, frames) = open_packet(&out).expect("whole");
        assert!(frames.flatten().all(|frame| !matches!(frame, Frame::Ack { .. })));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn any_station_report_gives_a_bounded_pace_and_data_arrives(seed: u64) {
        let mut world = World::new();
        let mut random = Seed(seed).stream("what is told");
        world.change = Box::new(move |told| {
            let mut rate = || {
                let bits = random.random_range(0..32);
                Rate::from_bps(u64::from(random.random::<u32>() >> bits) * 1000)
            };
            let (available, fair) = (rate(), rate());
            let [elsewhere, restart, coarse] = random.random();
            match random.random_range(0..4) {
                0 => None,
                1 => Some(told),
                _ => Some(CellCapacity { available, fair, elsewhere, restart, coarse }),
            }
        });
        let number = world.stream();
        let mut fastest = Rate::ZERO;
        let until = world.now + Span::from_secs(3);
        let got = world.download(number, until, |_, figures| {
            if is_pbe(figures.why) {
                fastest = fastest.max(figures.rate);
            }
        });
        prop_assert!(got > 100_000, "{got}");
        prop_assert!(fastest <= Params::default().most, "{fastest}");
    }
}
