//! The sender's law in eBPF and in Rust, on the same events: the same states, and the same rates and windows but for rounding.
//!
//! Needs root (BPF_PROG_TEST_RUN); says so loudly and passes where that is missing.
#![cfg(feature = "bpf")]

use crate::support::machine;
use lasthop_laws::pbe::{Params, Pbe, SHARED};
use lasthop_laws::tcp::Setup;
use lasthop_laws::{SenderLaw as _, Why};
use lasthop_signals::{Ack, CellCapacity, DeliverySample, Loss, Sent, Signal};
use lasthop_units::{Bytes, Rate, Seed, Span, Time};
use lasthop_wire::tcp::LogRate;
use libbpf_rs::ProgramInput;
use libbpf_rs::skel::{OpenSkel, SkelBuilder};
use std::io::Write as _;
use std::mem::MaybeUninit;

#[allow(clippy::undocumented_unsafe_blocks, clippy::all, missing_docs, unsafe_op_in_unsafe_fn, dead_code)]
mod skeleton {
    include!(concat!(env!("OUT_DIR"), "/pbe_law.skel.rs"));
}

use skeleton::{PbeLawSkel, PbeLawSkelBuilder};

const MSS: u64 = 1448;
const RTT: Span = Span::from_millis(40);
/// An ACK in each.
const STEP: Span = Span::from_millis(1);
/// States of `bpf/pbe_law.h`.
const PLAIN: u8 = 0;
const WAITING: u8 = 1;
const START: u8 = 2;
const WIRELESS: u8 = 3;
const INTERNET: u8 = 4;
/// Events of `tests/bpf/pbe_law.bpf.c`.
const CELL: u32 = 0;
const ACK: u32 = 1;
const IDLE: u32 = 2;
const TIMEOUT: u32 = 3;

fn loaded() -> Option<PbeLawSkel<'static>> {
    if !nix::unistd::Uid::effective().is_root() {
        // Past the capture of test output.
        let _ = writeln!(std::io::stderr(), "SKIPPED: the sender's law in eBPF: not root");
        return None;
    }
    let object = Box::leak(Box::new(MaybeUninit::uninit()));
    let open = PbeLawSkelBuilder::default().open(object).expect("a program");
    Some(open.load().expect("a kernel that takes it"))
}

/// Both laws, and the path that they see.
struct Pair<'a> {
    bpf: &'a mut PbeLawSkel<'static>,
    rust: Pbe,
    now: Time,
    sent: u64,
    delivered: u64,
    /// What had been delivered a round trip ago, and before.
    history: Vec<u64>,
    round: u32,
    round_ends: u64,
    /// The most that was delivered so far: rates only grow, so that no window of rounds matters.
    most: u64,
    rate: u64,
    /// Events after which both were compared, by state.
    compared: [u32; 5],
}

impl<'a> Pair<'a> {
    fn new(bpf: &'a mut PbeLawSkel<'static>, params: Params) -> Pair<'a> {
        let data = bpf.maps.bss_data.as_deref_mut().expect("memory");
        data.pbe = skeleton::types::pbe { initial: 10, ..skeleton::types::pbe::default() };
        data.words.copy_from_slice(&SHARED.words(&params));
        let rust = Pbe::new(params, Setup::new(Bytes::new(MSS), Seed(1).stream("parity")));
        let now = Time::ZERO + Span::from_secs(1);
        let mut pair = Pair {
            bpf,
            rust,
            now,
            sent: 0,
            delivered: 0,
            history: vec![],
            round: 0,
            round_ends: 0,
            most: 0,
            rate: 0,
            compared: [0; 5],
        };
        pair.look(false);
        pair
    }

    /// What the kernel knows.
    fn look(&mut self, ack: bool) {
        let known = self.delivered > 0;
        let path = &mut self.bpf.maps.bss_data.as_deref_mut().expect("memory").path;
        path.now = self.now.as_nanos() / 1000;
        path.delivered = self.most / 8;
        path.newest = if ack { self.rate / 8 } else { 0 };
        path.sent = self.sent;
        path.rtt = if known { (RTT.as_nanos() / 1000) as u32 } else { 100_000 };
        path.mss = MSS as u32;
        path.round = self.round;
        path.in_flight = 20;
        path.newly_delivered = 0;
    }

    fn run(&mut self, event: u32) {
        self.bpf.maps.bss_data.as_deref_mut().expect("memory").event = event;
        let output = self.bpf.progs.step.test_run(ProgramInput::default()).expect("root");
        assert_eq!(output.return_value, 0);
    }

    fn cell(&mut self, told: CellCapacity) {
        self.look(false);
        let data = self.bpf.maps.bss_data.as_deref_mut().expect("memory");
        (data.available, data.fair) = (told.available.as_bps() / 8, told.fair.as_bps() / 8);
        data.flags = u32::from(told.elsewhere) | u32::from(told.restart) << 1 | u32::from(told.coarse) << 2;
        self.run(CELL);
        self.rust.sense(self.now, &Signal::Cell(told));
    }

    fn send(&mut self, from_idle: bool) {
        let len = Bytes::new(MSS);
        if from_idle {
            self.look(false);
            self.run(IDLE);
        }
        let sent = Sent { len, in_flight: len, retransmission: false, from_idle };
        self.rust.sense(self.now, &Signal::Sent(sent));
        self.sent += MSS;
    }

    /// An ACK after a millisecond, in which `rate` was delivered.
    fn ack(&mut self, rate: Rate, in_recovery: bool) {
        self.now += STEP;
        self.rate = rate.as_bps() / 8 * 8;
        self.most = self.most.max(self.rate);
        let newly = (self.rate / 8 / 1000 / MSS).max(1);
        self.delivered += newly * MSS;
        self.history.push(self.delivered);
        let before = self.history.len().saturating_sub(40).checked_sub(1).map_or(0, |at| self.history[at]);
        let begins = before >= self.round_ends;
        if begins {
            self.round_ends = self.delivered;
            self.round += 1;
        }
        self.look(true);
        let path = &mut self.bpf.maps.bss_data.as_deref_mut().expect("memory").path;
        path.round_began = u8::from(begins);
        path.in_recovery = u8::from(in_recovery);
        path.newly_delivered = newly as u32;
        // The same round trip as before: nothing is renewed but at the first one.
        path.rtt_renewed = u8::from(self.history.len() == 1);
        self.run(ACK);
        let len = Bytes::new(newly * MSS);
        self.rust.sense(
            self.now,
            &Signal::Ack(Ack {
                newly_delivered: len,
                newly_acked: len,
                newly_lost: Bytes::ZERO,
                rtt: Some(RTT),
                min_rtt: Some(RTT),
                srtt: Some(RTT),
                prior_in_flight: Bytes::new(20 * MSS),
                in_flight: Bytes::new(20 * MSS),
                delivered: Bytes::new(self.delivered),
                delivery: Some(DeliverySample {
                    rate: Rate::from_bps(self.rate),
                    interval: RTT,
                    prior_delivered: Bytes::new(before),
                    sent_at: self.now.saturating_sub(RTT),
                    app_limited: false,
                }),
                mss: Bytes::new(MSS),
                cwnd_limited: true,
                in_recovery,
            }),
        );
        self.compare();
    }

    fn timeout(&mut self) {
        self.look(false);
        self.bpf.maps.bss_data.as_deref_mut().expect("memory").cwnd = 6;
        self.run(TIMEOUT);
        let (mss, none) = (Bytes::new(MSS), Bytes::ZERO);
        let loss = Loss { prior_in_flight: mss * 20, in_flight: mss * 5, lost: none, delivered: none, mss };
        self.rust.sense(self.now, &Signal::Timeout(loss));
        self.compare();
    }

    fn compare(&mut self) {
        let decision = self.rust.decide(self.now);
        let pbe = self.bpf.maps.bss_data.as_deref().expect("memory").pbe;
        self.compared[usize::from(pbe.state)] += 1;
        let state = match decision.why {
            Why::PbeStart => [WAITING, START],
            Why::PbeWireless => [WIRELESS; 2],
            Why::PbeDrain | Why::PbeInternet => [INTERNET; 2],
            _ => [PLAIN; 2],
        };
        assert!(state.contains(&pbe.state), "{:?} beside state {} at {:?}", decision.why, pbe.state, self.now);
        if pbe.state == PLAIN {
            return;
        }
        let window = decision.cwnd.expect("it has a window").upper.get() / MSS;
        assert!(window.abs_diff(u64::from(pbe.cwnd)) <= 1, "{window} beside {pbe:?} {:?}", decision.why);
        let (ours, theirs) = (pbe.rate * 8, decision.pacing.expect("it paces").as_bps());
        if decision.why == Why::PbeInternet {
            // The cycle begins by chance: rates are between those that drain and probe.
            return;
        }
        let near = ours.abs_diff(theirs) <= theirs / 500 + 1000;
        assert!(near, "{ours} beside {theirs} in state {} at {:?}: {pbe:?}", pbe.state, self.now);
    }
}

fn mbit(available: u64, fair: u64) -> CellCapacity {
    let [available, fair] = [available, fair].map(Rate::from_mbit);
    CellCapacity { available, fair, elsewhere: false, restart: false, coarse: false }
}

#[test]
fn a_connection_by_hand_from_the_handshake_to_silence() {
    machine::share(module_path!());
    let Some(mut bpf) = loaded() else { return };
    let mut pair = Pair::new(&mut bpf, Params::default());
    pair.cell(CellCapacity::UNKNOWN);
    let mut told = |ms: u64, told: Option<CellCapacity>, rate: u64| {
        for _ in 0..ms {
            told.into_iter().for_each(|told| pair.cell(told));
            pair.send(false);
            pair.ack(Rate::from_mbit(rate), false);
        }
        pair.bpf.maps.bss_data.as_deref().expect("memory").pbe.state
    };
    assert_eq!(told(30, None, 2), WAITING);
    assert_eq!(told(60, Some(mbit(30, 20)), 2), START);
    assert_eq!(told(120, Some(mbit(30, 20)), 20), WIRELESS);
    assert_eq!(told(40, Some(CellCapacity { elsewhere: true, ..mbit(30, 20) }), 22), INTERNET);
    assert_eq!(told(400, Some(CellCapacity { elsewhere: true, ..mbit(30, 20) }), 23), INTERNET);
    assert_eq!(told(100, Some(mbit(24, 20)), 24), WIRELESS);
    // A new carrier.
    assert_eq!(told(10, Some(CellCapacity { restart: true, ..mbit(60, 40) }), 24), START);
    assert_eq!(told(130, Some(CellCapacity { restart: true, ..mbit(60, 40) }), 40), WIRELESS);
    // Silence: the capacity holds for three round trips, and is halved in each of three others.
    assert_eq!(told(239, None, 40), WIRELESS);
    assert_eq!(told(3, None, 40), PLAIN);
    assert_eq!(told(20, Some(mbit(30, 20)), 40), START);
    assert_eq!(told(1, Some(CellCapacity::UNKNOWN), 40), PLAIN);
    // A promise that is not kept.
    let Some(mut fresh) = loaded() else { return };
    let mut pair = Pair::new(&mut fresh, Params::default());
    pair.cell(CellCapacity::UNKNOWN);
    (0..100).for_each(|_| pair.ack(Rate::from_mbit(2), false));
    assert_eq!(pair.bpf.maps.bss_data.as_deref().expect("memory").pbe.state, PLAIN);
}

/// Another place is the narrowest, and what it delivers grows by a quarter with each probe. The lengths of the stretches, in milliseconds, in which the law
/// does not probe.
fn between_probes(bpf: &mut PbeLawSkel<'static>, keep_probing: bool) -> Vec<u64> {
    let mut pair = Pair::new(bpf, Params { keep_probing, ..Params::default() });
    let elsewhere = CellCapacity { elsewhere: true, ..mbit(1000, 1000) };
    let (mut rate, mut probing, mut stretches) = (4.0, false, vec![0]);
    for _ in 0..2_000 {
        pair.cell(elsewhere);
        pair.send(false);
        pair.ack(Rate::from_bps((rate * 1e6) as u64), false);
        let pbe = pair.bpf.maps.bss_data.as_deref().expect("memory").pbe;
        let probes = pbe.state == INTERNET && pbe.phase == 1 && pbe.cycle == 0;
        match (probing, probes) {
            // What was sent more comes back as a quarter more.
            (true, false) => {
                rate *= 1.25;
                stretches.push(0);
            }
            (false, false) => *stretches.last_mut().expect("one") += 1,
            _ => {}
        }
        probing = probes;
    }
    stretches
}

#[test]
fn with_keep_probing_a_successful_probe_is_followed_by_another() {
    let Some(mut bpf) = loaded() else { return };
    // A phase lasts an RTprop of 40 ms and the ACK behind it: one that drains, or seven that do not probe. The first stretch begins anywhere, the last
    // one is cut off.
    for (keep_probing, between) in [(true, 41), (false, 7 * 41)] {
        let stretches = between_probes(&mut bpf, keep_probing);
        let whole = &stretches[1..stretches.len() - 1];
        assert!(
            whole.len() > 3 && whole.iter().all(|stretch| stretch.abs_diff(between) <= 7),
            "{keep_probing}: {stretches:?}"
        );
    }
}

#[test]
fn random_histories_have_the_same_decisions() {
    machine::share(module_path!());
    let Some(mut bpf) = loaded() else { return };
    let mut compared = [0; 5];
    let mut random = Draws(20);
    for history in 0..150 {
        let params = Params {
            most: Rate::from_mbit([2000, 50][history % 2]),
            headroom: Span::from_millis([8, 0, 20][history % 3]),
            keep_probing: history % 4 < 2,
            ..Params::default()
        };
        let mut pair = Pair::new(&mut bpf, params);
        let mut draw = |below: u64| random.below(below);
        if draw(3) > 0 {
            pair.cell(CellCapacity::UNKNOWN);
        }
        // The first capacity comes at once, or it takes its time, or too long.
        (0..draw(100)).for_each(|_| pair.ack(Rate::from_mbit(1), false));
        let mut told = mbit(1 + draw(80), 1 + draw(60));
        let mut rate = 1 + draw(5);
        for _ in 0..600 {
            match draw(60) {
                0 => told = mbit(1 + draw(80), 1 + draw(60)),
                1 => told.elsewhere = draw(2) == 0,
                2 => told.restart = draw(2) == 0,
                3 => told = mbit(100 + draw(8000), 100 + draw(8000)),
                4 if draw(4) == 0 => pair.cell(CellCapacity::UNKNOWN),
                5 if draw(4) == 0 => pair.timeout(),
                6 => pair.send(true),
                7 => rate += draw(20),
                // A silence.
                8 if draw(3) == 0 => (0..draw(300)).for_each(|_| pair.ack(Rate::from_mbit(rate), false)),
                _ => {}
            }
            pair.send(false);
            if draw(3) > 0 {
                pair.cell(told);
            }
            pair.ack(Rate::from_mbit(rate), draw(20) == 0);
        }
        compared.iter_mut().zip(pair.compared).for_each(|(sum, more)| *sum += more);
    }
    println!("compared, by state: {compared:?}");
    assert!(compared.iter().all(|count| *count > 500), "{compared:?}");
}

/// Numbers by chance, the same in each run (splitmix64).
struct Draws(u64);

impl Draws {
    fn below(&mut self, below: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ mixed >> 31) % below
    }
}

#[test]
fn codes_stand_for_the_same_rates() {
    machine::share(module_path!());
    let Some(mut bpf) = loaded() else { return };
    for code in 0..=0xfff_u32 {
        let data = bpf.maps.bss_data.as_deref_mut().expect("memory");
        data.code = code;
        bpf.progs.decode.test_run(ProgramInput::default()).expect("root");
        let value = [(code >> 4) as u8, (code << 4) as u8, 0, 0];
        let told = lasthop_wire::tcp::Capacity::parse(value);
        let octets = bpf.maps.bss_data.as_deref().expect("memory").stands_for;
        assert_eq!(octets * 8, told.available.rate().as_bps(), "code {code}");
        assert_eq!(LogRate::of(Rate::from_bps(octets * 8)), told.available);
    }
}
