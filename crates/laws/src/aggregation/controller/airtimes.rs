//! What a packet takes on the air where stations do not tell it, or tell what cannot be.
//! Source:     own; in \[aggregation\] stations know their data rates.
//! Equations:  w_i = u_i (1 - sum ĉ/n / T_j - sum w_j y_j of the told) / sum u_j y_j of the others
//!             u: what they told last beside each other, or 1
//!             told w_i are all divided by L = sum w_j y_j where L > 1.25
//! Symbols:    y -> `arrived`, T -> `interval`, ĉ/n -> `access`, u -> `beside`, L -> `all`
//! Deviations: * Stations without rates are taken to be alike. ĉ is then learned only where rounds of different lengths have
//!               told accesses and packets apart (`round_regression`); where both do not agree, ĉ follows that, and where they do, leans to it.
//!             * A rate that was told is kept while frames hold 3 packets, and for 8 slots, until two slots say that packets
//!               take another time (`overhead`); w is then what rounds leave, in the proportions that were told last.
//!             * What rounds leave is known where frames hold 4 packets, or where packets wait and frames are as long as
//!               they can be. Otherwise it is an upper bound of w, and after 8 slots w falls, by β in the first, 2β in the
//!               second, up to 0.3, until either is so, or `round_regression` has told.
//! Validity:   frames told from arrival times, where stations may not see radiotap headers.
//! Checked by: controller::tests, crates/sim/tests/long/regulated.rs (stations without root)

use super::airtime_state::{AirtimeState, FORGOTTEN_AFTER};
use super::{LEARNT, Loop, ROUNDS_SHOW, Regulator, STEADILY};
use crate::aggregation::model::LEAST_AIRTIME;
use crate::aggregation::round_regression::{self, Estimate, RoundRegression};
use crate::aggregation::stations::Account;

/// Share of the most that a frame holds, from which on it has taken what waits at the hop.
const FILLS: f64 = 0.8;
/// Share by which what packets are taken to need falls at the most, in a slot in which nothing shows it.
const FALL: f64 = 0.3;
/// Packets a frame, of all stations, from which on some have waited for a round, so that rounds fill most of the time.
const MEET: f64 = 1.1;
/// What a round says of it by this factor or more is believed at once.
const ALIKE: f64 = 1.25;
/// Most that packets may take of the time by what is told: slots of stations are not the same, and hold whole frames.
const MOST_LOAD: f64 = 1.25;

/// Share by which what packets are taken to need falls after so many slots in which nothing has shown it.
fn doubt(unshown: u32, weight: f64) -> f64 {
    (weight * f64::from(unshown.saturating_sub(FORGOTTEN_AFTER))).min(FALL)
}

impl Regulator {
    /// Data rates with which packets would have taken more than all of the time are wrong; old ones may still be right
    /// beside each other.
    pub(super) fn refuse_rates(&mut self) {
        let rated = |account: &Account<Loop>| account.is_active() && account.state.air.rated;
        let load = |state: &Loop| state.last_slot.arrived * state.air.time;
        let all: f64 =
            self.stations.iter().filter(|(_, account)| rated(account)).map(|(_, account)| load(&account.state)).sum();
        if all > MOST_LOAD {
            for (_, account) in self.stations.iter_mut().filter(|(_, account)| rated(account)) {
                account.state.air.refuse(all);
            }
        }
    }

    /// What a packet takes on the air where stations do not tell it: what rounds last beyond their overhead and the packets
    /// of the others, in the proportions that were told last, or alike. True if rounds of different lengths, which bound it,
    /// say that accesses take another time.
    pub(super) fn guess_airtimes(&mut self) -> bool {
        // Slots in which nobody was there leave time that no packet took.
        let Some(first) = self.leader().filter(|first| first.activity.share() >= STEADILY) else { return false };
        let (level, held) = (first.state.last_slot.level, first.state.rate.held);
        let proportions = Proportions::of(self.unrated());
        let Some(Left { packet: left, slot }) = self.left(proportions) else { return false };
        let follow = slot.level >= MEET && !held && self.stations.active().all(|account| account.silent == 0);
        let told = self.learn_rounds(slot, follow);
        // Rounds that do not follow one another leave more than packets take, and may be another hop's by now.
        let common = told.map_or(left, |told| if follow { told.bound(left) } else { left.min(told.most()) });
        let bounded = follow && common != left;
        let shown = bounded || level >= ROUNDS_SHOW || self.waits_in_full_frames(common, proportions);
        let sure = follow && told.is_some_and(|told| told.is_sure());
        let unrated = self.stations.iter_mut().filter(|(_, account)| account.is_active() && !account.state.air.rated);
        for (_, account) in unrated {
            let found = common * proportions.of_one(&account.state);
            account.guess(self.params.beta, found, shown, sure);
        }
        // What is left is then the accesses'. Within the bounds rounds leave the same to any of them, and nothing else would say which.
        match told {
            Some(told) if bounded => return self.overhead.told(told.access(common)),
            Some(told) if follow => {
                let likely = told.likely_access(self.overhead.round(1.0));
                likely.into_iter().for_each(|access| self.overhead.lean(self.params.beta, access));
            }
            _ => {}
        }
        false
    }

    /// The active stations of which it is not known what their packets take.
    fn unrated(&self) -> impl Iterator<Item = &Loop> {
        self.stations.active().map(|account| &account.state).filter(|state| !state.air.rated)
    }

    /// What the last slot leaves to their packets; `None` if it had none of these.
    fn left(&self, proportions: Proportions) -> Option<Left> {
        let access = self.overhead() / self.frames().max(1.0);
        let active = || self.stations.active().map(|account| &account.state);
        // Accesses and packets fill the time while rounds follow each other, and leave some otherwise.
        let accesses: f64 = active().map(|state| access / state.last_slot.interval).sum();
        let known: f64 =
            active().filter(|state| state.air.rated).map(|state| state.air.time * state.last_slot.arrived).sum();
        let unknown: f64 = self.unrated().map(|state| proportions.of_one(state) * state.last_slot.arrived).sum();
        let frames: f64 = active().map(|state| 1.0 / state.last_slot.interval).sum();
        (unknown > 0.0).then(|| Left {
            packet: ((1.0 - accesses - known) / unknown).max(LEAST_AIRTIME),
            slot: round_regression::Slot { level: unknown / frames, spent: (1.0 - known) / frames },
        })
    }

    /// What rounds of different lengths have told, with those of this slot if they `follow` one another.
    fn learn_rounds(&mut self, slot: round_regression::Slot, follow: bool) -> Option<Estimate> {
        let unrated = self.unrated().count();
        if std::mem::replace(&mut self.round_regression.0, unrated) != unrated {
            self.round_regression.1 = RoundRegression::default();
        }
        if follow {
            self.round_regression.1.add(slot);
        }
        self.round_regression.1.estimate()
    }

    /// While packets of one station wait for the hop, each round begins when the one before has ended. Those that wait on the path to it
    /// leave room in frames. `common`: what packets take if all are alike.
    fn waits_in_full_frames(&self, common: f64, proportions: Proportions) -> bool {
        let fills = |state: &Loop| state.last_slot.level >= FILLS * self.most(common * proportions.of_one(state));
        let mut active = self.stations.active().map(|account| &account.state);
        active.any(|state| state.last_slot.waits && !state.rate.held && fills(state))
    }
}

/// What a slot leaves to packets of which nobody tells what they take.
struct Left {
    /// Seconds for each, if all are alike.
    packet: f64,
    /// And for all of them in a round, accesses included.
    slot: round_regression::Slot,
}

/// What packets took beside each other when stations last told it.
#[derive(Clone, Copy)]
struct Proportions {
    /// Seconds of a packet, summed over the stations that have told them.
    told: f64,
    /// How many those are.
    tellers: f64,
}

impl Proportions {
    fn of<'a>(unrated: impl Iterator<Item = &'a Loop>) -> Proportions {
        let (mut told, mut tellers) = (0.0, 0.0);
        for airtime in unrated.filter_map(|state| state.air.told) {
            (told, tellers) = (told + airtime, tellers + 1.0);
        }
        Proportions { told, tellers }
    }

    /// What a packet of this station takes beside the others'; as much, if it never told.
    fn of_one(&self, state: &Loop) -> f64 {
        state.air.told.map_or(1.0, |airtime| airtime * self.tellers / self.told)
    }
}

impl Account<Loop> {
    /// Takes over what its packets were `found` to take. `shown`: by rounds that they have made; `sure`: by rounds of different lengths.
    fn guess(&mut self, weight: f64, found: f64, shown: bool, sure: bool) {
        let (held, limited) = (self.state.rate.held, self.activity.is_limited());
        let AirtimeState { time: airtime, unshown, .. } = &mut self.state.air;
        *unshown = if shown || sure { 0 } else { unshown.saturating_add(1) };
        let half = *airtime / 2.0;
        // Short frames follow the packets, not the rounds: a packet takes no more than that, and how much less shows
        // when frames become longer, or packets wait. If neither happens for long, it may be this guess that keeps them
        // short; but where frames hold no more, what it lacks is an overrun: it falls slowly at first.
        let most = if limited { *airtime } else { *airtime * (1.0 - doubt(*unshown, weight)) };
        let guess = match shown {
            true if (1.0 / ALIKE..=ALIKE).contains(&(found / *airtime)) => *airtime + LEARNT * (found - *airtime),
            true => found.max(half),
            false if held => *airtime,
            false => found.max(half).min(most),
        };
        *airtime = guess.max(LEAST_AIRTIME);
    }
}
