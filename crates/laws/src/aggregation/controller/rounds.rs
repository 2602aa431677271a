//! What a round of the active stations is made of, those among them that are not in every one included.
//! Source:     own; aggregation.md C.1 and C.3 know stations that have a frame in every round.
//! Equations:  f_i = 1,   but of a stream that its application limits  min{ T_1 / T_i, 1 }
//!             n = sum f_i,   m = (ĉ + w'1 of the others) / (1 - L),   L = sum w_i y_i of the limited, at most 0.9
//!             reserved in a round:   ĉ + sum w_i min{ z_i, v_i } of the others + sum f_i w_i min{ z_i, max{1.5 mu_i, 1} }
//!                                    of the limited, but for its own rate a station counts w_i z_i
//!             a = (T_1 - sum w mu of the uncapped - sum f_i w_i mu_i of the limited) / (number of capped)
//! Symbols:    f -> `Account::frames_in`, n -> `frames`, m -> `shortest`, T_i -> `Loop::interval`, T_1 -> `apart`,
//!             y -> `Loop::arrived`, a -> `cap_price`, v -> `Presence::burst`
//! Deviations: none.
//! Validity:   ĉ is n accesses with [`crate::aggregation::OverheadRule::Access`]; with `Round` it is one figure.
//! Checked by: controller::tests, crates/sim/tests/few_packets.rs

use super::{HEADROOM, Loop, Regulator};
use crate::aggregation::ledger::Account;

/// Most by which rounds may become longer than the target while others have more of the channel, as a share of the target.
const CLAIM: f64 = 0.3;
/// Share of the target from which on rounds are as long as others make them.
const CROWDED: f64 = 0.75;
/// Most of the time that streams which are limited count for: they are bound to leave the others some.
const MOST_LIMITED: f64 = 0.9;

impl Regulator {
    /// Seconds between frames of a station that is in every round.
    pub(super) fn apart(&self) -> f64 {
        self.leader().map_or(self.reach.interval(), |first| first.state.interval * first.presence.share())
    }

    /// Frames in a round.
    pub(super) fn frames(&self) -> f64 {
        let apart = self.apart();
        self.ledger.present().map(|account| account.frames_in(apart)).sum()
    }

    /// Frames in a round of the last slot, in the mean.
    pub(super) fn frames_seen(&self) -> f64 {
        let apart = self.apart();
        self.ledger.active().map(|account| account.presence.share() * account.frames_in(apart)).sum()
    }

    /// Seconds that a round lasts in which every station that is not limited has a frame of one packet.
    pub(super) fn shortest(&self) -> f64 {
        let (mut packets, mut load) = (0.0, 0.0);
        for Account { state, presence, .. } in self.ledger.present() {
            match presence.is_limited() {
                true => load += state.airtime * state.arrived,
                false => packets += state.airtime,
            }
        }
        (self.overhead() + packets) / (1.0 - f64::min(load, MOST_LIMITED))
    }

    /// Seconds that a round lasts in which every active station has a frame of one packet.
    pub(super) fn singles(&self) -> f64 {
        self.overhead.round(self.ledger.present().count() as f64)
            + self.ledger.present().map(|a| a.state.airtime).sum::<f64>()
    }

    /// By how much rounds may become longer than T̄ while others have more of the channel than these stations, as a share of
    /// T̄: 0.3 (f - l)/(f + l), with l the share of the time of these stations' packets, and f what that and accesses leave.
    pub(super) fn claim_on_others(&self, round: f64) -> f64 {
        let own: f64 = self.ledger.active().map(|a| a.state.arrived * a.state.airtime).sum();
        let accesses = self.frames_seen() * self.params.overhead.as_secs_f64() / round;
        let others = 1.0 - own - accesses;
        // Rounds that are far shorter leave room: the rest of the time is nobody's.
        let crowded = round >= CROWDED * self.reach.interval();
        if crowded && others > own && own > 0.0 { CLAIM * (others - own) / (others + own) } else { 0.0 }
    }

    /// The share beyond which stations at their cap would only wait longer: the root of Ω(a) = n a. With C the capped
    /// stations it is (Ω - Σ_others w μ) / |C|, of the measured round and levels; infinite while none is capped. A limited
    /// stream is never at its cap.
    pub(super) fn cap_price(&self, round: f64) -> f64 {
        let Some(share) = self.share() else { return f64::INFINITY };
        let (mut capped, mut others) = (0.0, 0.0);
        for account in self.ledger.active() {
            let Account { state, presence, .. } = account;
            match !presence.is_limited() && share >= self.aim(state) * state.airtime {
                true => capped += presence.share(),
                false => others += presence.share() * state.airtime * state.level * account.frames_in(round),
            }
        }
        if capped > 0.0 { ((round - others) / capped).max(0.0) } else { f64::INFINITY }
    }

    /// Seconds on the air that ν gives a station below its cap in every round.
    pub(super) fn share(&self) -> Option<f64> {
        self.reference.map(|station| self.nu * self.airtime_of(station))
    }
}

impl Account<Loop> {
    /// Frames of this station in a round of `apart` seconds.
    pub(super) fn frames_in(&self, apart: f64) -> f64 {
        if self.presence.is_limited() { (apart / self.state.interval).min(1.0) } else { 1.0 }
    }

    /// Packets that are reserved for the station in a round of `apart` seconds.
    pub(super) fn claim(&self, apart: f64) -> f64 {
        let Loop { z, level, .. } = self.state;
        match self.presence.is_limited() {
            true => z.min((HEADROOM * level).max(1.0)) * self.frames_in(apart),
            // No more than it has when it comes.
            false => z.min(self.presence.burst()),
        }
    }
}
