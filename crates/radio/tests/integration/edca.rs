//! Shares and collisions of saturated access categories against an analytic model that knows nothing of this simulator.
//! Source:     J. W. Robinson, T. S. Randhawa, "Saturation throughput analysis of IEEE 802.11e enhanced distributed
//!             coordination function", IEEE JSAC 22(5), 2004: contention zones after a busy medium; the backoff as in
//!             G. Bianchi, IEEE JSAC 18(3), 2000, with a retry limit (H. Wu et al., INFOCOM 2002); collisions within a
//!             station as in Y. Xiao, IEEE Trans. Wireless Commun. 4(4), 2005. Parameters: IEEE 802.11-2020, table 9-155.
//! Equations:  tau_c = sum p_c^i / sum p_c^i ((W_ci - 1)/2 + 1),  W_ci = min{2^i (CWmin + 1), CWmax + 1},  i = 0..6;
//!             pi_{j+1} = pi_j q_j,  q_j = product of (1 - tau_c)^{n_c} over the classes with AIFSN_c - 2 < j;
//!             p_c = 1 - sum_j pi_j q_j / (1 - tau_c) / sum_j pi_j  over the slots j in which c may send
//! Symbols:    tau -> `tau`, p -> `collides`, pi_j -> `slot`, the probability that the j-th slot after AIFSN 2 is reached
//! Deviations: a slot at which somebody else sends is counted down, too: that is the boundary rule of EDCA (10.23.2.4).
//! Validity:   everybody hears everybody, frames of equal length, one frame an access. The model takes collisions to be
//!             independent of the backoff stage and of the past, and all to resume at the same slot, while after a
//!             collision the stations that heard it wait for EIFS and those that made it for the Ack timeout, five
//!             slots less; with windows of 4 and 8 that counts. It is held to a tenth in collisions and a quarter in
//!             shares, and not asked where all categories share a station. What the rules themselves give decides
//!             closer: [`by_the_rules`] plays 10.23.2.4 and the EIFS of 10.3.2.3.7 from boundary to boundary in a few
//!             lines that share nothing with the simulator.
//! Checked by: this file

use lasthop_radio::wifi::{
    Air, Background, GuardInterval, Load, Mcs, NodeParams, Params, PpduKind, PpduRecord, Role, Standard, Width, Wifi,
};
use lasthop_radio::{AccessClass, Hop, Outbox, Packet, RxInfo};
use lasthop_signals::Node;
use lasthop_units::{Bytes, Seed, Span, Time};

/// The categories from the highest priority down, with AIFSN, CWmin + 1 and CWmax + 1: those of a station, and then those of an
/// access point (annex C, dot11QAPEDCATable).
const CLASSES: [(AccessClass, u32, f64, f64); 2 * STATION] = [
    (AccessClass::Voice, 2, 4.0, 8.0),
    (AccessClass::Video, 2, 8.0, 16.0),
    (AccessClass::BestEffort, 3, 16.0, 1024.0),
    (AccessClass::Background, 7, 16.0, 1024.0),
    (AccessClass::Voice, 1, 4.0, 8.0),
    (AccessClass::Video, 1, 8.0, 16.0),
    (AccessClass::BestEffort, 3, 16.0, 64.0),
    (AccessClass::Background, 7, 16.0, 1024.0),
];
const STATION: usize = 4;
const ATTEMPTS: i32 = 7;

/// What a class gets: share of all successful accesses, and how often one of its frames collides on the air.
#[derive(Clone, Copy, Default, Debug)]
struct Got {
    share: f64,
    collides: f64,
}

/// The contenders: so many stations with each class, or all four in every station; or so many stations with a class
/// beside an access point with the same.
#[derive(Clone, Copy, Debug)]
enum Who {
    Apart([u16; STATION]),
    Together(u16),
    Beside(usize, u16),
}

impl Who {
    /// How many have each class.
    fn counts(self) -> [u16; CLASSES.len()] {
        let has = |class: &usize| self.nodes().iter().filter(|classes| classes.contains(class)).count() as u16;
        std::array::from_fn(|class| has(&class))
    }

    /// The classes of every node that contends; the access point is first where it does.
    fn nodes(self) -> Vec<Vec<usize>> {
        match self {
            Who::Apart(counts) => (0..STATION).flat_map(|class| (0..counts[class]).map(move |_| vec![class])).collect(),
            Who::Together(stations) => (0..stations).map(|_| (0..STATION).collect()).collect(),
            Who::Beside(class, stations) => {
                std::iter::once(vec![STATION + class]).chain((0..stations).map(|_| vec![class])).collect()
            }
        }
    }
}

/// Attempts a slot in which a class may send, at collision probability `p`.
fn attempts(class: usize, p: f64) -> f64 {
    let (_, _, least, most) = CLASSES[class];
    let (mut slots, mut tries) = (0.0, 0.0);
    for attempt in 0..ATTEMPTS {
        let reached = p.powi(attempt);
        slots += reached * (((least * 2f64.powi(attempt)).min(most) - 1.0) / 2.0 + 1.0);
        tries += reached;
    }
    tries / slots
}

/// The model's answer, for stations.
fn model(who: Who) -> [Got; STATION] {
    let counts: [f64; STATION] = std::array::from_fn(|class| f64::from(who.counts()[class]));
    let present = |class: usize| counts[class] > 0.0;
    let mut failures = [0.3; STATION];
    let mut got = [Got::default(); STATION];
    // Damped, since a class that attempts more makes the others attempt less.
    for _ in 0..2_000 {
        let tau: Vec<f64> = (0..4).map(|class| attempts(class, failures[class])).collect();
        let may = |class: usize, slot: u32| present(class) && slot > CLASSES[class].1 - 2;
        // A station in a slot: silent with what it may send.
        let station = |slot: u32, classes: &dyn Fn(usize) -> bool| -> f64 {
            (0..4).filter(|&c| may(c, slot) && classes(c)).map(|c| 1.0 - tau[c]).product()
        };
        let idle = |slot: u32| match who {
            Who::Together(stations) => station(slot, &|_| true).powf(f64::from(stations)),
            _ => (0..4).filter(|&c| may(c, slot)).map(|c| (1.0 - tau[c]).powf(counts[c])).product::<f64>(),
        };
        let (mut reached, mut slot) = (1.0, 1);
        // For each class: slots in which it may send; those in which nobody else would, on the air or within; and those in
        // which it would get out of its station.
        let mut sums = [[0.0f64; 3]; 4];
        while reached > 1e-12 {
            for class in (0..4).filter(|&class| may(class, slot)) {
                // Within the station a lower class yields.
                let (above, others) = match who {
                    Who::Together(stations) => {
                        let above = station(slot, &|c| c < class);
                        (above, station(slot, &|_| true).powf(f64::from(stations - 1)))
                    }
                    _ => (1.0, idle(slot) / (1.0 - tau[class])),
                };
                sums[class][0] += reached;
                sums[class][1] += reached * above * others;
                sums[class][2] += reached * above;
            }
            reached *= idle(slot);
            slot += 1;
        }
        for class in (0..4).filter(|&class| present(class)) {
            let [all, alone, out] = sums[class];
            failures[class] += 0.1 * (1.0 - alone / all - failures[class]);
            got[class] = Got { share: counts[class] * tau[class] * alone, collides: 1.0 - alone / out };
        }
    }
    let whole: f64 = got.iter().map(|got| got.share).sum();
    got.map(|got| Got { share: got.share / whole, ..got })
}

/// One access category of one station, as [`by_the_rules`] plays it; times in nanoseconds.
struct Function {
    station: usize,
    class: usize,
    window: u64,
    failed: i32,
    slots: u64,
    /// When its backoff began.
    from: u64,
}

/// Slot and SIFS at 5 GHz; what EIFS adds, which is SIFS and an Ack of 14 octets at 6 Mbit/s; Ack timeout, which is SIFS, a slot
/// and 20 us until a preamble is known; a frame and its Ack.
const SLOT: u64 = 9_000;
const SIFS: u64 = 16_000;
const EIFS: u64 = SIFS + 44_000;
const TIMEOUT: u64 = SIFS + SLOT + 20_000;
const FRAME: u64 = 1_920_000;

/// What comes of the rules themselves in so many accesses.
fn by_the_rules(who: Who, accesses: u64) -> [Got; CLASSES.len()] {
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    let mut random = |below: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    let mut functions = Vec::new();
    let stations = who.nodes().len();
    for (station, classes) in who.nodes().into_iter().enumerate() {
        for class in classes {
            let window = CLASSES[class].2 as u64;
            functions.push(Function { station, class, window, failed: 0, slots: random(window), from: 0 });
        }
    }
    // Since when the medium counts as idle for a station, and since when it may send.
    let (mut idle, mut free) = (vec![0; stations], vec![0; stations]);
    let (mut sent, mut lost) = ([0u64; CLASSES.len()], [0u64; CLASSES.len()]);
    for _ in 0..accesses {
        let first = |f: &Function, idle: &[u64], at: u64| {
            let base = idle[f.station] + SIFS + SLOT * u64::from(CLASSES[f.class].1);
            base + at.saturating_sub(base).next_multiple_of(SLOT)
        };
        let access = |f: &Function| first(f, &idle, (first(f, &idle, f.from) + SLOT * f.slots).max(free[f.station]));
        let now = functions.iter().map(access).min().expect("somebody");
        let ready: Vec<usize> = (0..functions.len()).filter(|&i| access(&functions[i]) == now).collect();
        // Of a station the highest category sends, which stands first.
        let winners: Vec<usize> = ready
            .iter()
            .copied()
            .filter(|&i| ready.iter().find(|&&j| functions[j].station == functions[i].station) == Some(&i))
            .collect();
        let collided = winners.len() > 1;
        // A function that has not sent has counted every boundary up to this one.
        for i in (0..functions.len()).filter(|i| !ready.contains(i)) {
            let start = first(&functions[i], &idle, functions[i].from);
            if now >= start {
                functions[i].slots -= ((now - start) / SLOT + 1).min(functions[i].slots);
            }
        }
        let end = now + FRAME;
        let answered = end + if collided { 0 } else { EIFS };
        for station in 0..stations {
            let sends = winners.iter().any(|&i| functions[i].station == station);
            idle[station] = if collided && sends { end } else { end + EIFS };
            free[station] = if collided && sends { end + TIMEOUT } else { answered };
        }
        for i in ready {
            let function = &mut functions[i];
            let won = winners.contains(&i);
            if won {
                sent[function.class] += 1;
                lost[function.class] += u64::from(collided);
            }
            let (least, most) = (CLASSES[function.class].2 as u64, CLASSES[function.class].3 as u64);
            function.failed = if won && !collided { 0 } else { (function.failed + 1) % ATTEMPTS };
            function.window = if function.failed == 0 { least } else { (function.window * 2).min(most) };
            function.slots = random(function.window);
            function.from = if won { free[function.station] } else { now };
        }
    }
    got(sent, lost)
}

/// Shares and collisions of so many frames sent and lost.
fn got<const N: usize>(sent: [u64; N], lost: [u64; N]) -> [Got; N] {
    let delivered = |class: usize| (sent[class] - lost[class]) as f64;
    let whole: f64 = (0..N).map(delivered).sum();
    std::array::from_fn(|class| Got {
        share: delivered(class) / whole,
        collides: if sent[class] > 0 { lost[class] as f64 / sent[class] as f64 } else { 0.0 },
    })
}

/// Frames by class, told by their length.
#[derive(Default)]
struct Frames {
    sent: [u64; CLASSES.len()],
    lost: [u64; CLASSES.len()],
}

/// Packets of a class: the lengths differ, and all fill the same number of symbols.
fn packet(class: usize) -> Bytes {
    Bytes::new(1_490 - (class % STATION) as u64)
}

impl Outbox<()> for Frames {
    fn deliver(&mut self, _at: Time, _to: Node, _packet: Packet<()>, _rx: &RxInfo) {}
}

impl Air<()> for Frames {
    fn ppdu(&mut self, _at: Time, ppdu: &PpduRecord) {
        if ppdu.kind == PpduKind::Data {
            assert_eq!((ppdu.mpdus, ppdu.packets), (1, 1), "one packet an access");
            // Headers are the same for all.
            let of = |class: &usize| (ppdu.psdu.get() - packet(*class).get()) == HEADERS;
            let class = (0..STATION).find(of).expect("one of four") + if ppdu.from == AP { STATION } else { 0 };
            self.sent[class] += 1;
            self.lost[class] += u64::from(ppdu.received == 0);
        }
    }
}

const AP: Node = Node(0);
/// QoS header, LLC/SNAP header and check sequence.
const HEADERS: u64 = 26 + 8 + 4;

/// The simulator's answer: 802.11n at 6.5 Mbit/s, where a frame takes longer than a transmission opportunity lets a second one
/// follow.
fn simulated(who: Who, seconds: u64) -> [Got; CLASSES.len()] {
    let mcs = Mcs::new(0, 1);
    let mut nodes = vec![NodeParams::new(Role::Ap, mcs)];
    let mut background = Vec::new();
    for classes in who.nodes() {
        let ap = classes[0] >= STATION;
        let place = Node(u16::try_from(nodes.len()).expect("few nodes"));
        // What an access point sends is for a station that has nothing to say.
        nodes.push(NodeParams::new(Role::Station { ap: AP }, mcs));
        let (from, to) = if ap { (AP, place) } else { (place, AP) };
        for class in classes {
            let (load, active) = (Load::Saturated, Vec::new());
            background.push(Background { from, to, class: CLASSES[class].0, packet: packet(class), load, active });
        }
    }
    let standard = Standard::Dot11n(lasthop_radio::wifi::Band::Ghz5);
    let mut params = Params::new(standard, Width::Mhz20, GuardInterval::Ns800, nodes);
    params.beacons = None;
    params.max_ampdu_mpdus = 1;
    params.background = background;
    let mut hop: Wifi<()> = Wifi::new(params.validate().expect("legal"), Seed(1));
    let mut frames = Frames::default();
    hop.advance(Time::ZERO + Span::from_secs(seconds), &mut frames);
    got(frames.sent, frames.lost)
}

#[test]
fn edca_shares_and_collisions_match_the_rules_and_the_model() {
    for who in [
        Who::Apart([1, 1, 1, 1]),
        Who::Apart([0, 2, 2, 0]),
        Who::Apart([0, 0, 5, 5]),
        Who::Apart([2, 2, 2, 2]),
        Who::Apart([0, 5, 5, 5]),
        Who::Together(1),
        Who::Together(2),
        Who::Together(5),
    ] {
        let (ours, theirs) = (against_the_rules(who), model(who));
        for (class, (ours, theirs)) in ours.into_iter().zip(theirs).enumerate() {
            let what = format!("{who:?} {:?}: {ours:.4?}, model {theirs:.4?}", CLASSES[class].0);
            println!("{what}");
            // Of classes that hardly ever send too few collisions are seen.
            if matches!(who, Who::Apart(_)) && ours.share >= 0.1 {
                assert!((ours.share / theirs.share - 1.0).abs() <= 0.25, "{what}");
                assert!((ours.collides / theirs.collides - 1.0).abs() <= 0.1, "{what}");
            }
        }
    }
}

#[test]
fn an_access_point_has_the_share_of_its_own_edca_parameters() {
    // So many stations that it often collides several times in a row: only then CWmax counts.
    for who in [Who::Beside(0, 3), Who::Beside(1, 5), Who::Beside(2, 20), Who::Beside(3, 20)] {
        against_the_rules(who);
    }
}

/// What the simulator gives each class, which must be what the rules give it.
fn against_the_rules(who: Who) -> [Got; CLASSES.len()] {
    let (ours, rules) = (simulated(who, 400), by_the_rules(who, 400_000));
    for class in (0..CLASSES.len()).filter(|&class| who.counts()[class] > 0) {
        let (ours, rules) = (ours[class], rules[class]);
        let what = format!("{who:?} {class} {:?}: {ours:.4?}, rules {rules:.4?}", CLASSES[class].0);
        println!("{what}");
        assert!((ours.share - rules.share).abs() <= 0.01, "{what}");
        assert!(rules.share < 0.1 || (ours.collides - rules.collides).abs() <= 0.03 * rules.collides, "{what}");
    }
    ours
}
