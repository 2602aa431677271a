//! The aggregation regulator: an outer loop that finds the aggregation level at which the interval between frames is the
//! target, around an inner loop that finds the rates at which frames have that level.
//! Source:     \[aggregation\], the controller; guards against stale, silent and saturated stations are own.
//! Equations:  nu' = max{nu + K2 (G - nu), 1},   G = min{ T̄ x_1, N̄_1 }, and for `exact` also (mu_1/x_1) / (n w_1)
//!             target' = min{ nu' w_1/w_i, N̄_i },   z' = z + K1 (target - mu),   x' = z' / (c + w'z')
//! Symbols:    nu -> `nu`, target -> `Loop::target_level`, z -> `Loop::z`, x -> `AllowedRate::per_second`, w -> `AirtimeState::time`,
//!             c -> `overhead.round(n)`, 1 -> `reference`, K1, K2, T̄ -> `Params`
//! Deviations: * x_1 and mu_1/x_1 are what arrived: packets a second, and the interval between frames.
//!             * The third term of G is its fixed point (`cap_price`): as written it approaches that by K2 c/(n w_1) a slot,
//!               also where no station is capped, which takes a minute to reach 20 packets on a fast hop.
//!             * The least rate is 1/(c + w'1), one packet of every station a round: 1/(c + w_i) of each overloads a slow
//!               hop with many stations. A station without traffic may begin with a packet a round.
//!             * A stream that its application limits keeps its z, but claims and gets only half again what it used, until
//!               it has used that: by z alone it would return with a full share that the others have meanwhile. It counts in
//!               a round by the frames that it has of it (`rounds`), and is never the reference.
//!             * A station that joins is counted at once, and shares follow the stations present (`join_leave`).
//!             * A hop that becomes slower within a slot is overrun, and frames of most packets hide the queue from z. Where
//!               they are full, and more packets were sent and have not arrived than arrive within T̄, x' is at most what
//!               arrived less what drains them within a slot (`Backlog`). z then rests, for it has not made the frames of a
//!               drain; but not in the slot before it, so that rates that are too high fall with every drain. It is a tenth of a
//!               packet a round at least (`TRICKLE`), and of a round of single packets where limited streams make rounds longer.
//!             * Where T̄ is out of reach, a longer interval takes its place (`feasible_target`).
//!             * Where the overhead is found to be another (`overhead`), T̄ comes into or out of reach, or a packet of the
//!               reference takes another time, by a quarter in two slots or in one after calm ones, ν' is the model's
//!               (`allocation`) and z' the target; in the last case z' only of the stations with such packets. What
//!               they had made good for was another hop. With [`super::OverheadRule::Round`] none of the three is
//!               looked for.
//!             * Where stations tell no data rates, w is what rounds leave (`airtimes`), and until that is known nobody is
//!               sent more than twice what arrived.
//!             * Where another station becomes the reference, ν w_1 is kept, and so everybody's share, not ν, and the outer loop
//!               rests for that slot (`keep`).
//!             * None of these touches the loop near its equilibrium, where frames are not full and ĉ changes by β.
//!             * What others send to a station is in its frames, too: packets beyond two for each that is new (`foreign`). They
//!               take their share of any round, and x' is for rounds longer by that.
//!             * Where the hop's queue has no room for what a round brings, a shorter interval takes T̄'s place (`short_queue`).
//!             * MPDUs that are damaged are in frames again, and the window of the Block Ack keeps these short: x' is
//!               divided by the packets in frames for each that is new (`repeats`, two at most), N̄_i is at most three quarters of what
//!               frames were found to hold, and where that is found z' is 0.9 of what the hop carried, by the model
//!               (`Backlog`).
//!             * Two regulators on one channel see the same rounds, and c + w'mu_A + w'mu_B = T̄ holds for any share of
//!               either: the first regulator keeps what it has. T̄ in G is therefore longer, by up to `CLAIM`, while
//!               others have more of the channel than the own stations (`claim_on_others`): with that only equal shares
//!               are an equilibrium.
//! Validity:   0 < K1 c/ĉ < 2, 0 < K2 < (4 - 2 K1)/(2 - K1 (1 - c/T̄)) for stability.
//! Checked by: tests::* (each guard), tests/integration/aggregation_loop.rs (stability, Lemma 2), tests/integration/aggregation_backhaul.rs,
//!             tests/integration/conformance/aggregation.rs, crates/sim/tests/long/regulated.rs

mod airtime_state;
mod airtimes;
mod join_leave;
mod last_slot;
mod path;
mod rate;
mod rounds;

use super::backhaul::{self, Detector, Earliest};
use super::backlog::{self, Backlog};
use super::feasible_target::FeasibleTarget;
use super::flow_of;
use super::model::PACKET_OVERHEAD;
use super::overhead::{Change, Overhead, Sample};
use super::params::{Allocation, Params};
use super::round_regression::RoundRegression;
use super::short_queue::ShortQueue;
use super::stations::{Account, FROZEN_AFTER, Frames, Slot, Stations};
use crate::{Decision, HopLaw, Observation, ParamError, Why};
use airtime_state::AirtimeState;
use join_leave::Moves;
use last_slot::LastSlot;
use lasthop_signals::{FlowId, Node, Signal};
use lasthop_units::{Rate, Time};
use path::Path;
use rate::AllowedRate;

/// The regulator of one hop.
#[derive(Clone, Debug)]
pub struct Regulator {
    params: Params,
    stations: Stations<Loop>,
    overhead: Overhead,
    /// What rounds of different lengths say where no data rates are known, of so many stations without them.
    round_regression: (usize, RoundRegression),
    /// Which interval the hop's queue has room for.
    short_queue: ShortQueue,
    /// Which interval is aimed at.
    feasible_target: FeasibleTarget,
    /// Packets a frame of the reference station that the outer loop asks for (ν).
    nu: f64,
    /// The slowest station, which the outer loop measures.
    reference: Option<Node>,
    /// The last reference that there was, with the airtime of a packet in seconds: ν counts its packets.
    told_in: Option<(Node, f64)>,
    /// What the path before the hop carries.
    backhaul: Detector,
}

/// One station: its loops, what they are told, and what they allow.
#[derive(Clone, Debug, PartialEq)]
struct Loop {
    /// What a packet takes on the air (w).
    air: AirtimeState,
    /// What the last slot has shown.
    last_slot: LastSlot,
    /// What stands in the hop's queue because it was overrun.
    backlog: Backlog,
    /// What is known of the path before the hop.
    path: Path,
    /// Integral state: packets a frame, as the model would have them (z).
    z: f64,
    /// Packets a frame asked for in this slot.
    target_level: f64,
    /// What it is allowed (x).
    rate: AllowedRate,
}

/// What the regulator thinks of one station, for plots and logs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct View {
    /// Which station.
    pub station: Node,
    /// Packets a frame, measured in the last slot.
    pub level: f64,
    /// Packets a frame asked for.
    pub target_level: f64,
    /// Interval between its frames, measured in the last slot, seconds (μ_N/x).
    pub interval: f64,
    /// Interval that is aimed at, seconds: the target, a longer one while that is out of reach, or a shorter one for which the hop's queue has room.
    pub target_interval: f64,
    /// Packets a second allowed.
    pub rate: f64,
    /// Seconds a packet on the air (w).
    pub airtime: f64,
    /// True while it counts in the round.
    pub active: bool,
}

/// A stream that sends less than this share of its rate is limited by its application.
const LIMITED: f64 = 0.95;
/// A stream that was sent less than this share of its rate had pauses, whatever waits for it now.
const PACED: f64 = 0.75;
/// A station's frames show what its rate makes of them if it was present for this share of the slot.
const SHOWN: f64 = 0.5;
/// And the overhead, if for this.
const STEADILY: f64 = 0.9;
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
/// So few packets that are lost in a slot say nothing of a queue.
const HARDLY_ANY: f64 = 3.0;
/// Rounds, and seconds, that packets come later than the earliest if some wait for every round.
const WAITS: f64 = 2.0;
const LATE: f64 = 0.02;
/// Share of the packets sent from which on they count as all.
const WHOLE: f64 = 0.97;
/// What is sent while nothing shows what packets take, as a multiple of what arrived: an overrun is seen while it is small.
const RISE: f64 = 2.0;
/// Packets a frame from which on the time between frames is the rounds', not the packets'.
const ROUNDS_SHOW: f64 = 4.0;
/// Weight of what one slot says that a packet takes, or how often it was sent: slots vary.
const LEARNT: f64 = 0.2;
/// Where frames were found to hold fewer packets, the loop begins again at this share of what the hop carried.
const RESUME: f64 = 0.9;
/// Share of what a station's frames hold that is aimed at, where that is less than they can.
const FULLEST: f64 = 0.75;
/// Least integral state: it must be able to come back.
const LEAST_Z: f64 = 0.05;

impl Regulator {
    /// A regulator that has seen nothing.
    ///
    /// # Errors
    /// Those of [`Params::validate`].
    pub fn new(params: Params) -> Result<Regulator, ParamError> {
        params.validate()?;
        Ok(Regulator {
            stations: Stations::new(params.interval, params.foresees()),
            overhead: Overhead::new(params.overhead.as_secs_f64(), params.overhead_rule),
            round_regression: (0, RoundRegression::default()),
            short_queue: ShortQueue::new(params.target.as_secs_f64()),
            feasible_target: FeasibleTarget::new(params.target.as_secs_f64(), params.overhead_rule),
            nu: 1.0,
            reference: None,
            told_in: None,
            backhaul: Detector::default(),
            params,
        })
    }

    /// The estimated overhead of a round of the active stations, seconds (ĉ).
    pub fn overhead(&self) -> f64 {
        self.overhead.round(self.frames())
    }

    /// The outer loop's state: packets a frame of the slowest station (ν).
    pub fn set_point(&self) -> f64 {
        self.nu
    }

    /// Every station that was ever seen.
    pub fn views(&self) -> impl Iterator<Item = View> {
        self.stations.iter().map(|(station, account)| self.view_of(station, account))
    }

    /// One station; [`None`] if it was never seen.
    pub fn view(&self, station: Node) -> Option<View> {
        self.stations.get(station).map(|account| self.view_of(station, account))
    }

    fn view_of(&self, station: Node, account: &Account<Loop>) -> View {
        let Loop { air, last_slot, target_level, rate, .. } = &account.state;
        View {
            station,
            level: last_slot.level,
            target_level: *target_level,
            interval: last_slot.interval,
            target_interval: self.feasible_target.interval(),
            rate: rate.per_second,
            airtime: air.time,
            active: account.is_present(),
        }
    }

    fn tick(&mut self, now: Time) {
        let (params, target_interval) = (&self.params, self.feasible_target.interval());
        // Before this slot says what its packets take now.
        self.told_in = self.reference.map(|station| (station, self.airtime_of(station))).or(self.told_in);
        self.stations.iter_mut().for_each(|(_, account)| account.state.rate.pass(now, account.is_present()));
        self.stations.close(now, |account, slot| account.measure(params, target_interval, now, slot));
        // A slot of which nobody has told anything is none.
        let told = self.stations.active().any(|account| account.state.path.fresh);
        let streams = self.stations.active().filter_map(|account| account.state.path.stream);
        if let Some(slot) = backhaul::Slot::of(streams).filter(|_| told) {
            self.backhaul.update(&slot);
            let shared = slot.short || self.backhaul.clamp().is_some();
            // Of one that comes often, what is missing when a slot ends is on its way.
            let own = |account: &Account<Loop>| !shared && !account.activity.comes_often();
            self.stations.iter_mut().for_each(|(_, account)| account.state.path.detect(own(account)));
        }
        let before = self.reference;
        self.refuse_rates();
        self.choose_reference();
        let other_packets = self.keep();
        let guessed = self.guess_airtimes();
        let changed = self.learn_overhead() || guessed;
        let shortest = self.rounds(self.ahead()).shortest;
        let crowded = self.check_short_queue(shortest);
        let turned = self.feasible_target.update(self.overhead(), shortest, changed) || crowded;
        // As published, the outer loop finds out by itself.
        let shifted = self.reference == before && self.leader().is_some_and(|first| first.state.air.shifted);
        if self.params.foresees() && (changed || turned || shifted) {
            // What the loops have found out is of another hop; or it is of the hop of the stations with another airtime
            // a packet.
            self.resettle();
            self.retarget();
            self.inner(|state| changed || turned || state.air.shifted);
        } else {
            self.inner(|_| false);
            // A station that is the slowest for one slot only shall not move everybody's share.
            if !other_packets {
                self.outer();
            }
            self.retarget();
            self.make_room();
        }
        self.stations.iter_mut().for_each(|(_, account)| account.activity.settle());
        self.spread(now);
    }

    /// Finds out whether the hop's queue has room for an interval; true if it is another now. Where rounds are longer than the target whatever is
    /// sent, or packets are lost before the hop, losses say nothing of that.
    fn check_short_queue(&mut self, shortest: f64) -> bool {
        // A station that alone misses packets loses them elsewhere.
        let fresh = self
            .stations
            .active()
            .filter(|account| account.state.path.fresh && account.state.path.own.clamp().is_none());
        let fresh = fresh.filter_map(|account| account.state.path.stream);
        let Some(slot) = backhaul::Slot::of(fresh).filter(|slot| !slot.short && slot.sent > 0.0) else { return false };
        if !self.params.foresees() || self.feasible_target.is_out() || self.backhaul.clamp().is_some() {
            return false;
        }
        let lost = if slot.lost * slot.seconds < HARDLY_ANY { 0.0 } else { slot.lost / slot.sent };
        let changed = self.short_queue.update(lost, shortest);
        self.feasible_target.bound(self.short_queue.interval());
        changed
    }

    /// The slowest of the stations that send as much as they may.
    fn choose_reference(&mut self) {
        let candidates = self.stations.iter().filter(|(_, account)| account.leads());
        let slowest = candidates.max_by(|(_, a), (_, b)| a.state.air.time.total_cmp(&b.state.air.time));
        let slowest = slowest.map(|(station, account)| (station, account.state.air.time));
        let held = self.reference.filter(|station| self.stations.get(*station).is_some_and(Account::leads));
        self.reference = match (held, slowest) {
            (Some(held), Some((_, airtime))) if airtime <= HYSTERESIS * self.airtime_of(held) => Some(held),
            // Where nobody was there for long, levels are still told in its packets.
            (_, None) if self.params.foresees() && !self.stations.iter().any(|(_, account)| account.shows()) => {
                self.reference.or_else(|| self.slowest_here())
            }
            (_, slowest) => slowest.map(|(station, _)| station),
        };
    }

    /// Tells ν in packets of another reference than the last, so that everybody keeps the share of a round, by what packets take as far as
    /// stations have said it; true if it did. As published ν stays, and shares become others.
    fn keep(&mut self) -> bool {
        let (Some((last, airtime)), Some(reference), true) = (self.told_in, self.reference, self.params.foresees())
        else {
            return false;
        };
        if reference == last {
            return false;
        }
        // Of a fast one that may be more packets than a frame holds.
        self.nu = (self.nu * airtime / self.airtime_of(reference)).max(1.0);
        true
    }

    /// True if the overhead has become another, or what packets take.
    fn learn_overhead(&mut self) -> bool {
        let Some(first) = self.leader().filter(|first| first.activity.share() >= STEADILY) else { return false };
        let first = &first.state;
        // Where data rates are not known, frames may be short for what packets are thought to take.
        let rated = self.stations.active().all(|account| account.state.air.rated);
        // And single packets that wait, or do not arrive, are single because the hop puts no two into a frame.
        if !first.last_slot.overruns && !first.last_slot.waits {
            let (level, room) = (first.last_slot.level, self.most(first.air.time) > 1.0);
            self.overhead.doubt(self.params.beta, level, room && (rated || self.nu < LEAST_LEVEL));
        }
        let Some(Account { state: first, .. }) = self.leader() else { return false };
        // It is what airtimes were guessed from; but no round is shorter than its overhead.
        if !rated {
            let (interval, frames) = (first.last_slot.interval, first.last_slot.frames);
            return self.overhead.bound(self.frames_seen(), interval, frames);
        }
        let apart = first.last_slot.interval;
        let frame = |account: &Account<Loop>| account.state.last_slot.level * account.state.air.time;
        let load = |account: &Account<Loop>| account.state.last_slot.arrived * account.state.air.time;
        let (beta, frames) = (self.params.beta, self.frames_seen());
        let sample = Sample {
            interval: apart,
            load: self.stations.active().map(load).sum(),
            level: first.last_slot.level,
            most: self.most(first.air.time),
            grain: self.stations.active().map(frame).sum::<f64>() / self.params.interval.as_secs_f64(),
            mix: self.stations.active().map(|account| apart / account.state.last_slot.interval).sum(),
            frames: first.last_slot.frames,
            paced: first.last_slot.paced,
            least: first.rate.least,
            told: self.stations.active().all(|account| account.state.air.untold == 0),
        };
        match self.overhead.update(beta, frames, &sample) {
            Change::None => return false,
            Change::Overhead => {}
            Change::Airtimes => {
                let old =
                    self.stations.iter_mut().filter(|(_, account)| account.is_active() && account.state.air.untold > 0);
                old.for_each(|(_, account)| account.state.air.rated = false);
                self.guess_airtimes();
            }
        }
        true
    }

    /// ν as the model has it for this hop.
    fn resettle(&mut self) {
        let Some(reference) = self.reference else { return };
        if let Some(level) = self.planned_level(reference) {
            self.nu = level;
        }
    }

    /// `changed`: the hop has become another for this station, and what its levels were says nothing of it.
    fn inner(&mut self, changed: impl Fn(&Loop) -> bool) {
        let (k1, params) = (self.params.k1, &self.params);
        // The model's round at nearly the rates that arrived.
        let load: f64 =
            self.stations.active().map(|account| account.state.last_slot.arrived * account.state.air.time).sum();
        let round = self.overhead() / (1.0 - RESUME * load).max(1.0 - RESUME);
        for (_, account) in self.stations.iter_mut().filter(|(_, account)| account.shows()) {
            let state = &mut account.state;
            let most = params.most(state.air.time);
            let step = k1 * (state.target_level - state.last_slot.level);
            // What a limit cuts off is not integrated.
            let held = step > 0.0 && (state.rate.held || state.rate.rises);
            if state.backlog.has_found() {
                // What it had climbed to, to no avail, says nothing; what the hop carries does.
                state.z = (RESUME * state.last_slot.arrived * round).clamp(LEAST_Z, most);
            } else if changed(state) {
                state.z = state.target_level.clamp(LEAST_Z, most);
            } else if !held && !state.backlog.was_draining() {
                state.z = (state.z + step).clamp(LEAST_Z, most);
            }
        }
    }

    fn outer(&mut self) {
        let Some(Account { state, activity, .. }) = self.leader() else { return self.trust_the_model() };
        // Both as they were while it was there.
        let (arrived, interval) =
            (state.last_slot.arrived / activity.share(), state.last_slot.interval * activity.share());
        let target_interval = self.feasible_target.interval() * (1.0 + self.claim_on_others(interval));
        let mut set_point = (target_interval * arrived).min(self.cap(state));
        if self.params.allocation == Allocation::Exact {
            set_point = set_point.min(self.cap_price(interval) / state.air.time);
        }
        self.nu = (self.nu + self.params.k2 * (set_point - self.nu)).clamp(1.0, f64::from(self.params.max_packets));
    }

    /// Aggregation levels for the next slot.
    fn retarget(&mut self) {
        let Some(share) = self.share() else { return };
        let levels: Vec<f64> = self
            .stations
            .iter()
            .map(|(_, account)| (share / account.state.air.time).min(self.cap(&account.state)).max(1.0))
            .collect();
        for ((_, account), level) in self.stations.iter_mut().zip(levels) {
            account.state.target_level = level;
            if account.activity.comes_often() {
                account.state.z = level;
            }
        }
    }

    /// What the outer loop measures: nobody, if the reference was not there.
    fn leader(&self) -> Option<&Account<Loop>> {
        self.reference.and_then(|station| self.stations.get(station)).filter(|account| account.leads())
    }

    fn airtime_of(&self, station: Node) -> f64 {
        self.stations.get(station).map_or(0.0, |account| account.state.air.time)
    }

    fn most(&self, airtime: f64) -> f64 {
        self.params.most(airtime)
    }

    /// Most packets a frame that are asked for (N̄_i), as far as the station's frames were found to hold them.
    fn cap(&self, state: &Loop) -> f64 {
        let most = self.params.cap(state.air.time);
        let holds = state.backlog.holds();
        // As many as ever, while nothing else was found.
        if holds < 1.0 { most.min(FULLEST * holds * self.most(state.air.time)).max(1.0) } else { most }
    }
}

impl HopLaw for Regulator {
    fn sense(&mut self, now: Time, signal: &Signal) {
        self.sense_all(now, std::slice::from_ref(signal));
    }

    fn sense_all(&mut self, now: Time, signals: &[Signal]) {
        let (mut moves, mut ends) = (Moves::default(), false);
        for signal in signals {
            let (station, entered) = match signal {
                Signal::Stream(report) => (report.station, self.stations.stream(now, report)),
                Signal::Station(report) => (report.station, self.stations.feedback(now, report)),
                Signal::Wakeup => (Node(0), false),
                Signal::Idle(station) => {
                    self.rest(now, *station, &mut moves);
                    continue;
                }
                _ => continue,
            };
            if entered {
                self.enter(now, station, &mut moves);
            }
            // A report of the proxy is followed by the one that it introduces.
            match signal {
                Signal::Stream(report) if report.waiting => self.resume(now, station, &mut moves),
                Signal::Stream(_) => {}
                _ => ends = true,
            }
        }
        self.follow(now, &moves);
        if ends && self.stations.is_due(now) {
            self.tick(now);
        }
    }

    fn decide(&self, _now: Time, each: &mut dyn FnMut(FlowId, Decision)) {
        let bits = self.params.packet.bits() as f64;
        let revisit = self.stations.deadline();
        for (station, account) in self.stations.iter() {
            let why = account.why(self.feasible_target.is_out());
            let bits = account.packet_bytes.map_or(bits, |bytes| bytes * 8.0);
            let pacing = Rate::from_bps((account.state.rate.per_second * bits) as u64).max(SLOWEST);
            each(flow_of(station), Decision { pacing: Some(pacing), revisit, ..Decision::unlimited(why) });
        }
    }

    fn observe(&self, flow: FlowId) -> Observation {
        let view = super::station_of(flow).and_then(|station| self.view(station));
        Observation {
            mu_n: view.map(|view| view.level),
            interval_s: view.map(|view| view.interval).filter(|interval| interval.is_finite()),
            target: view.map(|view| view.target_level),
            aim_s: view.map(|view| view.target_interval),
            active: view.map(|view| view.active),
            c_s: Some(self.overhead()),
            nu: Some(self.nu),
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
            air: AirtimeState::default(),
            last_slot: LastSlot::default(),
            backlog: Backlog::default(),
            path: Path::default(),
            z: 1.0,
            target_level: 1.0,
            rate: AllowedRate::default(),
        }
    }
}

impl Loop {
    /// What is kept of it when the station begins anew. `first`: what a packet takes of which nothing is known.
    fn anew(&self, now: Time, first: f64) -> Loop {
        let mut backlog = self.backlog;
        backlog.forget();
        Loop {
            air: self.air.kept(first),
            last_slot: self.last_slot.kept(),
            backlog,
            path: self.path.kept(),
            rate: AllowedRate::from(now),
            ..Loop::default()
        }
    }
}

impl Account<Loop> {
    /// Takes over what a slot has shown. `target_interval`: the one that was aimed at, seconds.
    fn measure(&mut self, params: &Params, target_interval: f64, now: Time, slot: &Slot) {
        let bytes = self.packet_bytes.unwrap_or(params.packet.get() as f64) + PACKET_OVERHEAD.get() as f64;
        self.measure_sent(params, now, slot);
        let state = &mut self.state;
        (state.path.fresh, state.air.shifted) = (false, false);
        if slot.anew {
            state.path.earliest = Earliest::default();
        }
        let Some(frames) = &slot.frames else { return state.backlog.forget() };
        match frames.inverse_rate {
            Some(inverse) => state.air.tell(bytes * 8.0 * inverse),
            None => state.air.tell_nothing(frames.level, state.rate.held),
        }
        state.last_slot.tell(frames);
        if let Some(sent) = slot.sent {
            self.measure_queue(params, target_interval, now, (sent, frames));
        }
    }

    /// What was sent, beside what was allowed.
    fn measure_sent(&mut self, params: &Params, now: Time, slot: &Slot) {
        let state = &mut self.state;
        let allowed = std::mem::take(&mut state.rate.allowed) / slot.lasted;
        // As published, a rate holds for a slot.
        let allowed = if params.foresees() && slot.lasted > 0.0 { allowed } else { state.rate.per_second };
        let Some(sent) = slot.sent else { return };
        // What waits now says nothing of the slot's beginning. A stream that was limited stays so until it uses its whole rate.
        let still = !slot.waiting || self.activity.is_limited() && state.last_slot.known;
        if params.foresees() {
            self.activity.count(now, params.most(state.air.time));
        }
        self.activity.limit(allowed <= 0.0 || sent < LIMITED * allowed && still);
        (state.last_slot.sent, state.last_slot.paced) = (sent, sent >= PACED * allowed);
    }

    /// What waits at the hop, or is late for another reason.
    fn measure_queue(&mut self, params: &Params, target_interval: f64, now: Time, (sent, frames): (f64, &Frames)) {
        let Frames { level, interval, rate, goodput, seconds, lost, delay, .. } = *frames;
        let Loop { air, last_slot, backlog, path, target_level, rate: allowed, .. } = &mut self.state;
        let (target_level, late) = (*target_level, path.earliest.late(delay, now));
        let (most, steady) = (params.most(air.time), air.steady);
        let arrived = goodput.unwrap_or(rate);
        backlog.update(&backlog::Slot {
            sent,
            arrived,
            lost,
            seconds,
            level,
            target_level,
            interval,
            late,
            most,
            steady,
            target_interval,
        });
        if path.earliest.drained(backlog.is_late(), backlog.is_full() && !allowed.held) {
            backlog.take_back();
        }
        let Some(arrived) = goodput else { return };
        // A frame holds no more than has come.
        let target_level = target_level.min(self.activity.burst());
        path.stream = Some(backhaul::Stream { sent, arrived, lost, seconds, level, target_level, late });
        path.fresh = true;
        last_slot.overruns = arrived + lost < WHOLE * sent;
        last_slot.waits = late.is_some_and(|late| late > (WAITS * interval).max(LATE));
    }

    /// Its frames of this slot are known, and the rate that was allowed is what has made them.
    fn regulated(&self) -> bool {
        self.is_active() && self.silent == 0 && self.state.last_slot.known && !self.activity.is_limited()
    }

    /// And it was present for long enough for its frames to show it.
    fn shows(&self) -> bool {
        self.regulated() && self.activity.share() >= SHOWN
    }

    /// It may be the reference.
    fn leads(&self) -> bool {
        self.shows() && !self.state.rate.held
    }

    /// `out`: the target is out of reach.
    fn why(&self, out: bool) -> Why {
        match &self.state {
            _ if !self.is_present() => Why::Entering,
            _ if self.silent >= FROZEN_AFTER => Why::Silent,
            state if !state.last_slot.known => Why::Entering,
            state if state.rate.held => Why::Backhaul,
            _ if self.activity.is_limited() => Why::ApplicationLimited,
            _ if out => Why::OutOfReach,
            _ => Why::Regulated,
        }
    }
}

#[cfg(test)]
mod tests;
