//! The aggregation regulator: an outer loop that finds the aggregation level at which the interval between frames is the
//! target, around an inner loop that finds the rates at which frames have that level.
//! Source:     aggregation.md C.3 with its notes and guards.
//! Equations:  nu' = max{nu + K2 (G - nu), 1},   G = min{ T̄ x_1, N̄_1 }, and for `exact` also (mu_1/x_1) / (n w_1)
//!             target' = min{ nu' w_1/w_i, N̄_i },   z' = z + K1 (target - mu),   x' = z' / (c + w'z')
//! Symbols:    nu -> `nu`, target -> `Loop::target`, z -> `Loop::z`, x -> `Loop::rate`, w -> `Loop::airtime`,
//!             c -> `overhead.round(n)`, 1 -> `reference`, K1, K2, T̄ -> `Params`
//! Deviations: x_1 and mu_1/x_1 are what arrived: packets a second, and the interval between frames. The third term of G
//!             is replaced by its fixed point (see `cap_price`): as written it approaches that by K2 c/(n w_1) a slot, also
//!             where no station is capped, which takes a minute to reach 20 packets on a fast hop. Guards beyond the
//!             specification's: the least rate is 1/(c + w'1), one packet of every station a round (1/(c + w_i) of each
//!             overloads a slow hop with many stations); a stream that the application limits keeps its frozen z, but
//!             claims and gets only half again what it used, until it has used that (z alone would let it return with a
//!             full share that the others have meanwhile); the reference is never such a stream; a station that is sent
//!             nothing may begin with one packet a round; whoever joins is counted at once.
//!             A hop that becomes slower within a slot is overrun for the rest of it, and a queue stands that frames of most
//!             packets hide from z. If frames are full and more packets were sent and have not arrived than arrive within T̄, x' is
//!             therefore at most what arrived less what drains them within a slot (`Backlog`). z then rests, for the frames of a drain are not
//!             what z has made; but not in the slot before it, so that rates that are too high fall with every drain. Where T̄ is out of
//!             reach, a longer interval takes its place (`reach`). And
//!             where the overhead is found to be another (`overhead`), or what a packet of the reference takes by a quarter, or T̄ comes into or
//!             out of reach, ν' is the model's for the hop as it is then known (`allocation`), and z' the target: what they had to make good for was
//!             another hop. Stations that know no data rates (told from arrival times, they may not) are taken to be alike: w is what
//!             rounds last beyond ĉ, which is then not learned. A rate that was known is kept while frames hold 3
//!             packets, and for 8 slots, until two slots say that packets take another time (`overhead`); w is then what rounds leave, in the
//!             proportions that were told last. Rates with which packets would take a quarter more than all of the time are not believed. What
//!             rounds leave is known where frames hold 4 packets, or where packets wait and frames are as long as they can be; otherwise it
//!             is an upper bound of w, and after 8 slots w falls, by β in the first, 2β in the second, up to 0.3, until either is so. Until
//!             then nobody is sent more than twice what arrived. None of these touches the loop near its equilibrium, where frames are not full and ĉ changes by β.
//!             Two regulators on one channel see the same rounds, and c + w'mu_A + w'mu_B = T̄ holds for any share of either: who came
//!             first keeps what it has. T̄ in G is therefore longer, by up to `CLAIM`, while others have more of the channel
//!             than the own stations (`claim_on_others`): with that only equal shares are an equilibrium.
//! Validity:   0 < K1 c/ĉ < 2, 0 < K2 < (4 - 2 K1)/(2 - K1 (1 - c/T̄)) for stability.
//! Checked by: tests::* (each guard), tests/aggregation_loop.rs (stability, Lemma 2), tests/aggregation_backhaul.rs,
//!             tests/aggregation_conformance.rs, crates/sim/tests/regulated.rs

use super::allocation::{exact, paper};
use super::backhaul::{self, Detector, Earliest};
use super::backlog::{self, Backlog};
use super::flow_of;
use super::ledger::{Account, FROZEN_AFTER, Frames, Ledger, Slot};
use super::model::{Hop, Link, aim_packets, airtime, most_packets};
use super::overhead::{Change, Overhead, Sample};
use super::params::{Allocation, Params};
use super::reach::Reach;
use crate::{Decision, HopLaw, ParamError, Why};
use lasthop_signals::{FlowId, Node, Signal};
use lasthop_units::{Rate, Time};

/// The regulator of one hop.
#[derive(Clone, Debug)]
pub struct Regulator {
    params: Params,
    ledger: Ledger<Loop>,
    overhead: Overhead,
    /// Which interval is aimed at.
    reach: Reach,
    /// Packets a frame of the reference station that the outer loop asks for (ν).
    nu: f64,
    /// The slowest station, which the outer loop measures.
    reference: Option<Node>,
    /// What the path before the hop carries.
    backhaul: Detector,
}

/// The loops of one station.
#[derive(Clone, Debug, PartialEq)]
struct Loop {
    /// Seconds a packet on the air (w).
    airtime: f64,
    /// True if its station has told data rates; otherwise w is what the rounds leave.
    rated: bool,
    /// What w was when it last told them, unless that has turned out to be wrong.
    told: Option<f64>,
    /// True if it has told another w than in the slot before.
    shifted: bool,
    /// Slots in a row in which it has told none.
    untold: u32,
    /// Slots in a row in which neither that nor rounds have shown what its packets take.
    unshown: u32,
    /// Integral state: packets a frame, as the model would have them (z).
    z: f64,
    /// Packets a frame asked for in this slot.
    target: f64,
    /// Packets a second allowed (x).
    rate: f64,
    /// True while the application sends less than it may.
    limited: bool,
    /// Packets a frame, measured last.
    level: f64,
    /// Packets a second that arrived, measured last.
    arrived: f64,
    /// Packets in frames for each that is new, measured last and averaged: MPDUs that are damaged are sent again.
    repeats: f64,
    /// Interval between frames, measured last, seconds.
    interval: f64,
    /// Frames in the last slot.
    frames: f64,
    /// Packets a second that were sent in the last slot.
    sent: f64,
    /// True if these are about as many as were allowed.
    paced: bool,
    /// True if that was the least rate.
    least: bool,
    /// True if its packets came so late that some wait for every round.
    waits: bool,
    /// True if its rate is bound because nothing shows what packets take.
    rises: bool,
    /// What stands in the hop's queue because it was overrun.
    backlog: Backlog,
    /// When its packets come at the earliest.
    earliest: Earliest,
    /// What its last account says of the path before the hop: one that is late, or does not know, must not be missing in the sum.
    stream: Option<backhaul::Stream>,
    /// True if that account is of the last slot.
    fresh: bool,
    /// What it finds if its packets are missing, and not those of most.
    own: Detector,
    /// True if it is what the path carries that bounds the rate.
    held: bool,
    /// True if a slot's frames have been seen since it was last idle.
    known: bool,
}

/// What the regulator thinks of one station, for plots and logs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct View {
    /// Which station.
    pub station: Node,
    /// Packets a frame, measured in the last slot.
    pub level: f64,
    /// Packets a frame asked for.
    pub target: f64,
    /// Interval between its frames, measured in the last slot, seconds (μ_N/x).
    pub interval: f64,
    /// Interval that is aimed at, seconds: the target, or a longer one while that is out of reach.
    pub aim: f64,
    /// Packets a second allowed.
    pub rate: f64,
    /// Seconds a packet on the air (w).
    pub airtime: f64,
    /// True while it counts in the round.
    pub active: bool,
}

/// A stream that sends less than this share of its rate is limited by its application.
const LIMITED: f64 = 0.95;
/// A stream that was sent less than this share of its rate had pauses, whatever waits for it now: it came in the middle of a slot.
const PACED: f64 = 0.75;
/// The outer loop asks for single packets where it asks for no more than these.
const LEAST_LEVEL: f64 = 1.05;
/// What a limited stream may use, as a multiple of what it used.
const HEADROOM: f64 = 1.5;
/// A station must be slower than the reference by this factor to take its place.
const HYSTERESIS: f64 = 1.1;
/// Data rate before any was measured, bit/s: 802.11n at MCS 7 of one stream; too low costs the first slots some throughput.
const FIRST_RATE: f64 = 65e6;
/// Share of the least rate that a station gets while its queue drains: full frames do not need its packets to be frequent.
const TRICKLE: f64 = 0.1;
/// Who tells no rates while its frames hold fewer packets than this, for so many slots, has none that is known.
const FEW: f64 = 3.0;
const FORGOTTEN_AFTER: u32 = 8;
/// Rounds, and seconds, that packets come later than the earliest if some wait for every round.
const WAITS: f64 = 2.0;
const LATE: f64 = 0.02;
/// Share of the most that a frame holds, from which on it has taken what waits at the hop.
const FILLS: f64 = 0.8;
/// Share by which what packets are taken to need falls at the most, in a slot in which nothing shows it.
const FALL: f64 = 0.3;
/// What is sent while nothing shows what packets take, as a multiple of what has arrived: an overrun is then seen while it is small.
const RISE: f64 = 2.0;
/// Packets a frame from which on the time between frames is the rounds', not the packets'.
const ROUNDS_SHOW: f64 = 4.0;
/// What a round says that a packet takes is averaged with this weight, if it is not another by this factor: rounds of one slot vary.
const LEARNT: f64 = 0.2;
const ALIKE: f64 = 1.25;
/// Most that packets may take of the time by what is told, as a share: slots of stations are not the same, and hold whole frames.
const MOST_LOAD: f64 = 1.25;
/// Least time of a packet on the air that is thought of, seconds: 1500 octets at 12 Gbit/s.
const LEAST_AIRTIME: f64 = 1e-6;
/// Most by which rounds may become longer than the target while others have more of the channel, as a share of the target.
const CLAIM: f64 = 0.3;
/// Share of the target from which on rounds are as long as others make them.
const CROWDED: f64 = 0.75;
/// A packet that takes this many times as long as in the slot before, or less long by as much, is of another hop.
const SHIFT: f64 = 1.25;
/// More packets than this for each that is new are the account's mistake, or others'.
const MOST_REPEATS: f64 = 4.0;
/// Where frames were found to hold fewer packets, the loop begins again at this share of what the hop carried.
const RESUME: f64 = 0.9;
/// Share of what a station's frames hold that is aimed at, where that is less than they can.
const FULLEST: f64 = 0.75;
/// Least integral state: it must be able to come back.
const LEAST_Z: f64 = 0.05;

/// Share by which what packets are taken to need falls after so many slots in which nothing has shown it.
fn doubt(unshown: u32, weight: f64) -> f64 {
    (weight * f64::from(unshown.saturating_sub(FORGOTTEN_AFTER))).min(FALL)
}

impl Regulator {
    /// A regulator that has seen nothing.
    ///
    /// # Errors
    /// Those of [`Params::validate`].
    pub fn new(params: Params) -> Result<Regulator, ParamError> {
        params.validate()?;
        Ok(Regulator {
            ledger: Ledger::new(params.interval),
            overhead: Overhead::new(params.overhead.as_secs_f64(), params.overhead_rule),
            reach: Reach::new(params.target.as_secs_f64(), params.overhead_rule),
            nu: 1.0,
            reference: None,
            backhaul: Detector::default(),
            params,
        })
    }

    /// The estimated overhead of a round of the active stations, seconds (ĉ).
    pub fn overhead(&self) -> f64 {
        self.overhead.round(self.active())
    }

    /// The outer loop's state: packets a frame of the slowest station (ν).
    pub fn set_point(&self) -> f64 {
        self.nu
    }

    /// Every station that was ever seen.
    pub fn views(&self) -> impl Iterator<Item = View> {
        self.ledger.iter().map(|(station, account)| {
            let Loop { level, target, interval, rate, airtime, .. } = account.state;
            let aim = self.reach.interval();
            View { station, level, target, interval, aim, rate, airtime, active: account.active }
        })
    }

    fn active(&self) -> usize {
        self.ledger.iter().filter(|(_, account)| account.active).count()
    }

    fn tick(&mut self, now: Time) {
        let (params, aim) = (&self.params, self.reach.interval());
        self.ledger.close(now, |account, slot| account.measure(params, aim, slot));
        let streams =
            self.ledger.iter().filter(|(_, account)| account.active).filter_map(|(_, account)| account.state.stream);
        if let Some(slot) = backhaul::Slot::of(streams) {
            self.backhaul.update(&slot);
            let shared = slot.short || self.backhaul.clamp().is_some();
            self.ledger.iter_mut().for_each(|(_, account)| account.state.detect(shared));
        }
        let before = self.reference;
        self.refuse_rates();
        self.choose_reference();
        self.guess_airtimes();
        let changed = self.learn_overhead();
        let turned = self.reach.update(self.overhead(), self.packets(), changed);
        let shifted = self.reference == before && self.slowest().is_some_and(|first| first.shifted);
        if changed || turned || shifted {
            // What the loops have found out is of another hop.
            self.resettle();
            self.retarget();
            self.inner(true);
        } else {
            self.inner(false);
            self.outer();
            self.retarget();
        }
        self.spread();
    }

    /// Data rates with which packets would have taken more than all of the time are wrong. If they are old, they may still be right beside
    /// each other.
    fn refuse_rates(&mut self) {
        let rated = |account: &Account<Loop>| account.active && account.state.rated;
        let load = |state: &Loop| state.arrived * state.airtime;
        let all: f64 =
            self.ledger.iter().filter(|(_, account)| rated(account)).map(|(_, account)| load(&account.state)).sum();
        if all > MOST_LOAD {
            for (_, account) in self.ledger.iter_mut().filter(|(_, account)| rated(account)) {
                let state = &mut account.state;
                (state.airtime, state.rated) = (state.airtime / all, false);
                state.told = Some(state.airtime).filter(|_| state.untold > 0);
            }
        }
    }

    /// The slowest of the stations that send as much as they may.
    fn choose_reference(&mut self) {
        let candidates = self.ledger.iter().filter(|(_, account)| account.leads());
        let slowest = candidates.max_by(|(_, a), (_, b)| a.state.airtime.total_cmp(&b.state.airtime));
        let slowest = slowest.map(|(station, account)| (station, account.state.airtime));
        let held = self.reference.filter(|station| self.ledger.get(*station).is_some_and(Account::leads));
        self.reference = match (held, slowest) {
            (Some(held), Some((_, airtime))) if airtime <= HYSTERESIS * self.airtime_of(held) => Some(held),
            (_, slowest) => slowest.map(|(station, _)| station),
        };
    }

    /// What a packet takes on the air where stations do not know data rates: what rounds last beyond their overhead and the
    /// packets of the others: the same for all of them, but for those that have told some, which may all have changed, not what they are
    /// beside each other.
    fn guess_airtimes(&mut self) {
        let Some(first) = self.reference.and_then(|station| self.ledger.get(station)) else { return };
        let (level, access) = (first.state.level, self.overhead.round(self.active()) / self.active().max(1) as f64);
        let active = || self.ledger.iter().filter(|(_, account)| account.active).map(|(_, account)| &account.state);
        // Accesses and packets fill the time while rounds follow each other, and leave some otherwise.
        let accesses: f64 = active().map(|state| access / state.interval).sum();
        let known: f64 = active().filter(|state| state.rated).map(|state| state.airtime * state.arrived).sum();
        let (mut told, mut tellers) = (0.0, 0.0);
        for airtime in active().filter(|state| !state.rated).filter_map(|state| state.told) {
            (told, tellers) = (told + airtime, tellers + 1.0);
        }
        let beside = |state: &Loop| state.told.map_or(1.0, |airtime| airtime * tellers / told);
        let unknown: f64 = active().filter(|state| !state.rated).map(|state| beside(state) * state.arrived).sum();
        if unknown <= 0.0 {
            return;
        }
        let common = (1.0 - accesses - known) / unknown;
        // While packets of one station wait for the hop, each round begins when the one before has ended. Those that wait on the path to it
        // leave room in frames.
        let fills = |state: &Loop| state.level >= FILLS * self.most(common * beside(state));
        let shown = level >= ROUNDS_SHOW || active().any(|state| state.waits && !state.held && fills(state));
        let params = &self.params;
        for (_, account) in self.ledger.iter_mut().filter(|(_, account)| account.active && !account.state.rated) {
            let found = common * beside(&account.state);
            let held = account.state.held;
            let Loop { airtime, limited, unshown, .. } = &mut account.state;
            *unshown = if shown { 0 } else { unshown.saturating_add(1) };
            let half = *airtime / 2.0;
            // Short frames follow the packets, not the rounds, unless packets wait: a packet takes no more than that, and how much
            // less shows where frames become longer, or packets begin to wait. If neither happens for long, it may be this guess that
            // keeps frames short; but where they hold no more, whatever it lacks is an overrun: it falls slowly at first.
            let most = if *limited { *airtime } else { *airtime * (1.0 - doubt(*unshown, params.beta)) };
            let guess = match shown {
                true if (1.0 / ALIKE..=ALIKE).contains(&(found / *airtime)) => *airtime + LEARNT * (found - *airtime),
                true => found.max(half),
                false if held => *airtime,
                false => found.max(half).min(most),
            };
            *airtime = guess.max(LEAST_AIRTIME);
        }
    }

    /// True if the overhead has become another, or what packets take.
    fn learn_overhead(&mut self) -> bool {
        let Some(first) = self.reference.and_then(|station| self.ledger.get(station)) else { return false };
        // Where data rates are not known, frames may be short for what packets are thought to take.
        let rated = self.ledger.iter().all(|(_, account)| !account.active || account.state.rated);
        self.overhead.doubt(self.params.beta, first.state.level, rated || self.nu < LEAST_LEVEL);
        // It is what airtimes were guessed from; but no round is shorter than its overhead.
        if self.ledger.iter().any(|(_, account)| account.active && !account.state.rated) {
            let (interval, frames) = (first.state.interval, first.state.frames);
            return self.overhead.bound(self.active(), interval, frames);
        }
        let active = || self.ledger.iter().filter(|(_, account)| account.active);
        let apart = first.state.interval;
        let frame = |(_, account): (Node, &Account<Loop>)| account.state.level * account.state.airtime;
        let load = |(_, account): (Node, &Account<Loop>)| account.state.arrived * account.state.airtime;
        let sample = Sample {
            interval: apart,
            load: active().map(load).sum(),
            level: first.state.level,
            most: self.most(first.state.airtime),
            grain: active().map(frame).sum::<f64>() / self.params.interval.as_secs_f64(),
            mix: active().map(|(_, account)| apart / account.state.interval).sum(),
            frames: first.state.frames,
            paced: first.state.paced,
            least: first.state.least,
            told: active().all(|(_, account)| account.state.untold == 0),
        };
        match self.overhead.update(self.params.beta, self.active(), &sample) {
            Change::None => return false,
            Change::Overhead => {}
            Change::Airtimes => {
                let old = self.ledger.iter_mut().filter(|(_, account)| account.active && account.state.untold > 0);
                old.for_each(|(_, account)| account.state.rated = false);
                self.guess_airtimes();
            }
        }
        true
    }

    /// ν as the model has it for this hop.
    fn resettle(&mut self) {
        let mut hop = Hop { overhead: self.overhead(), links: Vec::new() };
        let mut place = None;
        for (station, account) in self.ledger.iter().filter(|(_, account)| account.active) {
            let airtime = account.state.airtime;
            if account.state.limited {
                hop.overhead += airtime * account.claim();
                continue;
            }
            if self.reference == Some(station) {
                place = Some(hop.links.len());
            }
            hop.links.push(Link { airtime, most: self.aim(&account.state) });
        }
        let Some(place) = place else { return };
        let plan = match self.params.allocation {
            Allocation::Exact => exact(&hop, self.reach.interval()),
            Allocation::Paper => paper(&hop, self.reach.interval()),
        };
        self.nu = plan.levels[place];
    }

    /// `changed`: the hop has become another in this slot, and what the levels were says nothing of it.
    fn inner(&mut self, changed: bool) {
        let (k1, params) = (self.params.k1, &self.params);
        // The model's round at nearly the rates that arrived.
        let load: f64 =
            self.ledger.iter().map(|(_, a)| if a.active { a.state.arrived * a.state.airtime } else { 0.0 }).sum();
        let carried = self.overhead.round(self.active()) / (1.0 - RESUME * load).max(1.0 - RESUME);
        for (_, account) in self.ledger.iter_mut().filter(|(_, account)| account.regulated()) {
            let most =
                most_packets(f64::from(params.max_packets), params.frame_limit.as_secs_f64(), account.state.airtime);
            let state = &mut account.state;
            let step = k1 * (state.target - state.level);
            // What a limit cuts off is not integrated.
            let held = step > 0.0 && (state.held || state.rises);
            if state.backlog.has_found() {
                // What it had climbed to, to no avail, says nothing; what the hop carries does.
                state.z = (RESUME * state.arrived * carried).clamp(LEAST_Z, most);
            } else if changed {
                state.z = state.target.clamp(LEAST_Z, most);
            } else if !held && !state.backlog.was_draining() {
                state.z = (state.z + step).clamp(LEAST_Z, most);
            }
        }
    }

    fn outer(&mut self) {
        let Some(state) = self.slowest() else { return };
        let target = self.reach.interval() * (1.0 + self.claim_on_others(state.interval));
        let mut set_point = (target * state.arrived).min(self.aim(state));
        if self.params.allocation == Allocation::Exact {
            set_point = set_point.min(self.cap_price(state) / state.airtime);
        }
        self.nu = (self.nu + self.params.k2 * (set_point - self.nu)).clamp(1.0, f64::from(self.params.max_packets));
    }

    /// By how much longer than T̄ rounds may become while others have more of the channel than these stations have, as a share of
    /// T̄: 0.3 (f - l)/(f + l), with l the share of the time of these stations' packets, and f what that and an access of each leave.
    fn claim_on_others(&self, round: f64) -> f64 {
        let active = || self.ledger.iter().filter(|(_, account)| account.active);
        let own: f64 = active().map(|(_, account)| account.state.arrived * account.state.airtime).sum();
        let accesses = active().count() as f64 * self.params.overhead.as_secs_f64() / round;
        let others = 1.0 - own - accesses;
        // Rounds that are far shorter leave room: the rest of the time is nobody's.
        let crowded = round >= CROWDED * self.reach.interval();
        if crowded && others > own && own > 0.0 { CLAIM * (others - own) / (others + own) } else { 0.0 }
    }

    /// The share beyond which stations at their cap would only wait longer: the root of Ω(a) = n a. With the capped stations'
    /// set C it is (Ω - Σ_others w μ) / |C|, of the measured round and levels; infinite while none is capped.
    fn cap_price(&self, first: &Loop) -> f64 {
        let Some(share) = self.share() else { return f64::INFINITY };
        let (mut capped, mut others) = (0.0, 0.0);
        for (_, account) in self.ledger.iter().filter(|(_, account)| account.active) {
            let Loop { airtime, level, .. } = account.state;
            match share >= self.aim(&account.state) * airtime {
                true => capped += 1.0,
                false => others += airtime * level,
            }
        }
        if capped > 0.0 { ((first.interval - others) / capped).max(0.0) } else { f64::INFINITY }
    }

    /// Aggregation levels for the next slot.
    fn retarget(&mut self) {
        let Some(share) = self.share() else { return };
        let targets: Vec<f64> = self
            .ledger
            .iter()
            .map(|(_, account)| (share / account.state.airtime).min(self.aim(&account.state)).max(1.0))
            .collect();
        for ((_, account), target) in self.ledger.iter_mut().zip(targets) {
            account.state.target = target;
        }
    }

    /// Seconds on the air that ν gives a station below its cap in every round.
    fn share(&self) -> Option<f64> {
        self.reference.map(|station| self.nu * self.airtime_of(station))
    }

    /// Rates for the next slot.
    fn spread(&mut self) {
        let stations = self.active();
        let overhead = self.overhead.round(stations);
        let active = || self.ledger.iter().filter(|(_, account)| account.active);
        let round = overhead + active().map(|(_, a)| a.state.airtime * a.claim()).sum::<f64>();
        let singles = overhead + self.packets();
        let access = self.overhead.round(1);
        let least = 1.0 / singles;
        let unhurried = |account: &Account<Loop>| {
            let state = &account.state;
            let used = if state.limited { HEADROOM * state.sent } else { f64::INFINITY };
            (state.z / (round * state.repeats)).min(used).max(least)
        };
        let carried = match self.backhaul.clamp() {
            Some(total) => backhaul::level(total, active().map(|(_, account)| unhurried(account))).max(1.0),
            None => f64::INFINITY,
        };
        for (_, account) in self.ledger.iter_mut() {
            if !account.active {
                account.state.rate = 1.0 / (singles + access + account.state.airtime);
                continue;
            }
            let wanted = unhurried(account);
            let state = &mut account.state;
            let drained = state.backlog.clamp().map_or(wanted, |clamp| clamp.max(TRICKLE * least));
            let unproven = !state.rated && state.known && state.level < ROUNDS_SHOW && !state.limited;
            let proven = if unproven { (RISE * state.arrived).max(TRICKLE * least) } else { f64::INFINITY };
            state.rises = proven < wanted;
            let free = wanted.min(drained).min(proven);
            let carried = state.own.clamp().map_or(carried, |clamp| clamp.max(1.0).min(carried));
            (state.rate, state.held, state.least) = (free.min(carried), carried <= free, wanted <= least);
        }
    }

    /// A station has come, or has come back: it begins with one packet a frame, and the others make room at once.
    fn enter(&mut self, station: Node) {
        let share = self.share();
        let params = &self.params;
        let first = airtime((params.packet + params.packet_overhead).bits() as f64, FIRST_RATE);
        let airtime = self.ledger.get(station).map(|account| account.state.airtime).filter(|w| *w > 0.0);
        let airtime = airtime.unwrap_or(first);
        let aim = self.aim(&Loop { airtime, ..Loop::default() });
        let target = share.map_or(1.0, |share| (share / airtime).min(aim).max(1.0));
        if let Some((_, account)) = self.ledger.iter_mut().find(|(node, _)| *node == station) {
            let state = &mut account.state;
            let Loop { rated, told, earliest, .. } = *state;
            *state = Loop { airtime, rated, told, target, earliest, ..Loop::default() };
        }
        self.spread();
    }

    /// Seconds on the air of one packet of each active station.
    fn packets(&self) -> f64 {
        self.ledger.iter().filter(|(_, account)| account.active).map(|(_, account)| account.state.airtime).sum()
    }

    fn slowest(&self) -> Option<&Loop> {
        self.reference.and_then(|station| self.ledger.get(station)).map(|account| &account.state)
    }

    fn airtime_of(&self, station: Node) -> f64 {
        self.ledger.get(station).map_or(0.0, |account| account.state.airtime)
    }

    fn most(&self, airtime: f64) -> f64 {
        most_packets(f64::from(self.params.max_packets), self.params.frame_limit.as_secs_f64(), airtime)
    }

    fn aim(&self, state: &Loop) -> f64 {
        let most =
            aim_packets(f64::from(self.params.aim_packets), self.params.frame_limit.as_secs_f64(), state.airtime);
        let holds = state.backlog.holds();
        // As many as ever, while nothing else was found.
        if holds < 1.0 { most.min(FULLEST * holds * self.most(state.airtime)).max(1.0) } else { most }
    }
}

impl HopLaw for Regulator {
    fn sense(&mut self, now: Time, signal: &Signal) {
        let (station, entered) = match signal {
            Signal::Stream(report) => (report.station, self.ledger.stream(now, report)),
            Signal::Station(report) => (report.station, self.ledger.feedback(now, report)),
            Signal::Wakeup => (Node(0), false),
            _ => return,
        };
        if entered {
            self.enter(station);
        }
        // A report of the proxy is followed by the one that it introduces.
        if !matches!(signal, Signal::Stream(_)) && self.ledger.is_due(now) {
            self.tick(now);
        }
    }

    fn decide(&self, _now: Time, each: &mut dyn FnMut(FlowId, Decision)) {
        let bits = self.params.packet.bits() as f64;
        let revisit = self.ledger.deadline();
        for (station, account) in self.ledger.iter() {
            let why = account.why(self.reach.is_out());
            let bits = account.packet_bytes.map_or(bits, |bytes| bytes * 8.0);
            let pacing = Rate::from_bps((account.state.rate * bits) as u64).max(SLOWEST);
            each(flow_of(station), Decision { pacing: Some(pacing), revisit, ..Decision::unlimited(why) });
        }
    }

    fn name(&self) -> &'static str {
        "aggregation"
    }
}

/// No stream is paced below this: it could never show that it has become faster.
const SLOWEST: Rate = Rate::from_bps(10_000);

impl Default for Loop {
    fn default() -> Loop {
        Loop {
            airtime: 0.0,
            rated: false,
            told: None,
            shifted: false,
            untold: 0,
            unshown: 0,
            z: 1.0,
            target: 1.0,
            rate: 1.0,
            limited: false,
            level: 1.0,
            arrived: 0.0,
            repeats: 1.0,
            interval: f64::INFINITY,
            frames: 0.0,
            sent: 0.0,
            paced: true,
            least: false,
            waits: false,
            rises: false,
            backlog: Backlog::default(),
            earliest: Earliest::default(),
            stream: None,
            fresh: false,
            own: Detector::default(),
            held: false,
            known: false,
        }
    }
}

impl Loop {
    /// Looks after its own packets, unless those of most are missing (`shared`).
    fn detect(&mut self, shared: bool) {
        if shared {
            self.own = Detector::default();
        } else if let Some(slot) =
            self.stream.filter(|_| self.fresh).and_then(|own| backhaul::Slot::of([own].into_iter()))
        {
            self.own.update(&slot);
        }
    }
}

impl Account<Loop> {
    /// Takes over what a slot has shown.
    fn measure(&mut self, params: &Params, aim: f64, slot: &Slot) {
        let bytes = self.packet_bytes.unwrap_or(params.packet.get() as f64) + params.packet_overhead.get() as f64;
        let state = &mut self.state;
        if let Some(sent) = slot.sent {
            state.limited = !slot.waiting && sent < LIMITED * state.rate;
            state.paced = sent >= PACED * state.rate;
            state.sent = sent;
        }
        (state.fresh, state.shifted) = (false, false);
        let Some(frames) = &slot.frames else { return state.backlog.forget() };
        if let Some(inverse) = frames.inverse_rate {
            let airtime = bytes * 8.0 * inverse;
            let ratio = airtime / state.airtime;
            state.shifted = state.rated && state.untold == 0 && !(1.0 / SHIFT..=SHIFT).contains(&ratio);
            (state.airtime, state.told, state.rated) = (airtime, Some(airtime), true);
            (state.untold, state.unshown) = (0, 0);
        } else {
            state.untold += 1;
            // From frames of a packet or two none can be told again, and if it is a wrong rate that makes them short it would stay.
            let short = frames.level < FEW && !state.held;
            if state.rated && short && state.untold >= FORGOTTEN_AFTER {
                (state.rated, state.told) = (false, None);
            }
        }
        let Frames { level, interval, rate, goodput, seconds, lost, delay, .. } = *frames;
        (state.level, state.interval, state.arrived, state.known) = (level, interval, rate, true);
        state.frames = seconds / interval;
        if let Some(new) = goodput.filter(|new| *new > 0.0) {
            state.repeats += LEARNT * ((rate / new).clamp(1.0, MOST_REPEATS) - state.repeats);
        }
        let most = most_packets(f64::from(params.max_packets), params.frame_limit.as_secs_f64(), state.airtime);
        let late = state.earliest.late(delay, seconds);
        if let Some(sent) = slot.sent {
            let (arrived, target) = (goodput.unwrap_or(rate), aim);
            let aim = state.target;
            let seen = backlog::Slot { sent, arrived, lost, seconds, level, aim, interval, late, most, target };
            state.backlog.update(&seen);
        }
        if let (Some(sent), Some(arrived)) = (slot.sent, goodput) {
            let target = state.target;
            state.stream = Some(backhaul::Stream { sent, arrived, lost, seconds, level, target, late });
            state.fresh = true;
            state.waits = late.is_some_and(|late| late > (WAITS * interval).max(LATE));
        }
    }

    /// Packets a frame that are reserved for the station.
    fn claim(&self) -> f64 {
        let Loop { z, limited, level, .. } = self.state;
        if limited { z.min((HEADROOM * level).max(1.0)) } else { z }
    }

    /// Its frames of this slot are known, and the rate that was allowed is what has made them.
    fn regulated(&self) -> bool {
        self.active && self.silent == 0 && self.state.known && !self.state.limited
    }

    /// It may be the reference.
    fn leads(&self) -> bool {
        self.regulated() && !self.state.held
    }

    /// `out`: the target is out of reach.
    fn why(&self, out: bool) -> Why {
        match &self.state {
            _ if !self.active => Why::Entering,
            _ if self.silent >= FROZEN_AFTER => Why::Silent,
            state if !state.known => Why::Entering,
            state if state.held => Why::Backhaul,
            state if state.limited => Why::ApplicationLimited,
            _ if out => Why::OutOfReach,
            _ => Why::Regulated,
        }
    }
}

#[cfg(test)]
mod tests;
