//! What each station is allowed, what bounds that, and how much it came to.
//! Source:     \[aggregation\]: x = z / (c + w'z); the least rate and what else bounds x are own.
//! Equations:  wanted:   max{ min{ z / (m R_i), 1.5 s }, l },   R_i = R + w max{ z - p f, 0 } / own;   1.5 s only of a limited stream
//!             l:        1 / (shortest round),   of a limited stream 1 / min{ R, round of single packets }
//!             x:        the least of wanted and
//!               drained   what the backlog allows
//!               proven    2 y / share, of a station that is not limited, if nothing shows what its packets take
//!               carried   what the path before the hop carries: its own part of what all have, and what it has alone
//!             drained and proven are at least a tenth of a packet in a round (`TRICKLE`)
//!             A = integral of x over the time in which the station was present, since the last slot
//! Symbols:    x -> `per_second`, A -> `allowed`, R -> `Rounds::next`, z -> `Loop::z`, p -> `claim`, f -> `frames_in`, own -> `Ahead::own`,
//!             m -> `LastSlot::repeats`, s -> `LastSlot::sent`, y -> `LastSlot::arrived`, l -> `least_rate`
//! Deviations: why: `controller`.
//! Validity:   any.
//! Checked by: controller::tests

use super::rounds::{Ahead, Rounds};
use super::{HEADROOM, Loop, RISE, ROUNDS_SHOW, Regulator, SHOWN, TRICKLE};
use crate::aggregation::backhaul;
use crate::aggregation::stations::Account;
use lasthop_units::Time;

/// For one station.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct AllowedRate {
    /// Packets a second allowed (x).
    pub per_second: f64,
    /// True if that is the least rate.
    pub least: bool,
    /// True if it is what the path before the hop carries that bounds it.
    pub held: bool,
    /// True if it is bound because nothing shows what packets take.
    pub rises: bool,
    /// Packets that it was allowed in this slot, until `passed`: not the activity's, for rates change while it is present.
    pub allowed: f64,
    pub passed: Time,
}

impl AllowedRate {
    /// Of one that begins at this moment.
    pub fn from(now: Time) -> AllowedRate {
        AllowedRate { passed: now, ..AllowedRate::default() }
    }

    /// Counts what was allowed until now, if it was `present`.
    pub fn pass(&mut self, now: Time, present: bool) {
        if present {
            self.allowed += self.per_second * now.since(self.passed).as_secs_f64();
        }
        self.passed = now;
    }
}

impl Default for AllowedRate {
    fn default() -> AllowedRate {
        AllowedRate { per_second: 1.0, least: false, held: false, rises: false, allowed: 0.0, passed: Time::ZERO }
    }
}

impl Regulator {
    /// Rates for the next slot.
    pub(super) fn spread(&mut self, now: Time) {
        let ahead = self.ahead();
        let rounds = self.rounds(ahead);
        let access = self.overhead.round(1.0);
        let carried = match self.backhaul.clamp() {
            Some(total) => {
                let wanted = self.stations.present().map(|account| account.wanted_rate(ahead, &rounds));
                backhaul::level(total, wanted).max(1.0)
            }
            None => f64::INFINITY,
        };
        for (_, account) in self.stations.iter_mut() {
            account.state.rate.pass(now, account.is_present());
            if account.is_present() {
                account.allow(account.wanted_rate(ahead, &rounds), carried, &rounds);
            } else {
                account.state.rate.per_second =
                    1.0 / (rounds.singles.min(rounds.next) + access + account.state.air.time);
            }
        }
    }
}

impl Account<Loop> {
    /// Packets a second that its loops ask for: at least the least rate.
    fn wanted_rate(&self, ahead: Ahead, rounds: &Rounds) -> f64 {
        let (state, limited) = (&self.state, self.activity.is_limited());
        let used =
            if limited && !self.activity.comes_often() { HEADROOM * state.last_slot.sent } else { f64::INFINITY };
        // For itself its whole frame counts.
        let unreserved = (state.z - self.claim() * self.frames_in(ahead)).max(0.0);
        let round = rounds.next + state.air.time * unreserved / ahead.own;
        (state.z / (round * state.last_slot.repeats)).min(used).max(rounds.least_rate(limited))
    }

    /// Most packets a second while nothing shows what its packets take; infinite otherwise. `trickle`: the least that it is.
    fn proven_rate(&self, trickle: f64) -> f64 {
        let Loop { air, last_slot, .. } = &self.state;
        let unproven = !air.rated && last_slot.known && last_slot.level < ROUNDS_SHOW && !self.activity.is_limited();
        if unproven {
            (RISE * last_slot.arrived / self.activity.share().max(SHOWN)).max(trickle)
        } else {
            f64::INFINITY
        }
    }

    /// Allows it what is `wanted`, in packets a second, as far as nothing else bounds it. `carried`: what each may have at most of what the
    /// path before the hop carries.
    fn allow(&mut self, wanted: f64, carried: f64, rounds: &Rounds) {
        let least = rounds.least_rate(self.activity.is_limited());
        // Rounds that are long by what limited streams use do not make a tenth of a packet rarer still.
        let trickle = TRICKLE * least.max(1.0 / rounds.singles);
        let drained = self.state.backlog.clamp().map_or(wanted, |clamp| clamp.max(trickle));
        let proven = self.proven_rate(trickle);
        let free = wanted.min(drained).min(proven);
        let carried = self.state.path.own.clamp().map_or(carried, |clamp| clamp.max(1.0).min(carried));
        let rate = &mut self.state.rate;
        (rate.per_second, rate.held) = (free.min(carried), carried <= free);
        (rate.rises, rate.least) = (proven < wanted, wanted <= least);
    }
}

impl Rounds {
    /// Least packets a second of a station. A limited station may begin with a packet a round; if all of them do, they
    /// are in every round.
    fn least_rate(&self, limited: bool) -> f64 {
        if limited { 1.0 / self.singles.min(self.next) } else { 1.0 / self.shortest }
    }
}
