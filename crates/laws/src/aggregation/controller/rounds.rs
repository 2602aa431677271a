//! What a round of the active stations is made of. Some of them are not in every round.
//! Source:     own; in the model of \[aggregation\] every station has a frame in every round.
//! Equations:  f_i = 1,   but of a stream that its application limits  min{ R / t_i, 1 };   R = sum f_i (ĉ/n + w_i p_i) / (1 - F)
//!             p_i = min{ z_i, v_i },   of a limited one  min{ z_i, max{1.5 mu_i, 1} },
//!             of one that comes often  min{ z_i, 1.5 v_i }
//!             n = sum f_i,   m = (ĉ + w'1 of the others) / (1 - L),   L = F + sum w_i y_i of the limited, at most 0.9
//!             F = sum w_i o_i of the others, at most 0.9
//!             reserved in a round:   R, or an access if that is more, but for its own rate a station counts w_i z_i
//!             a = (T_1 - sum w mu of the uncapped - sum g_i w_i mu_i of the limited) / (number of capped),   g_i = min{ T_1 / T_i, 1 }
//! Symbols:    R -> `ahead`, f -> `frames_in`, n -> `frames`, t -> `between` (T_i, but of who comes often `Activity::period`), p -> `claim`,
//!             g -> `frames_had`, m -> `Rounds::shortest`, T_i -> `LastSlot::interval`, T_1 -> `Regulator::apart`, y -> `LastSlot::arrived`,
//!             a -> `cap_price`, v -> `Activity::burst`, F -> `foreign`, o -> `LastSlot::foreign`
//! Deviations: * R is that of the frames which the law asks for, not the last one measured: a longer round has more frames of limited
//!               streams, which make it longer, and a law that lowers its rates for those of the last is a slot late: levels swung
//!               between 25 and 64 packets.
//!             * Where all are limited, and of a law that does not foresee the active stations, it is the last one.
//!             * A limited stream with frames no more than 1.1 T_1 apart is in every round (f = 1).
//! Validity:   ĉ is n accesses with [`crate::aggregation::OverheadRule::Access`]; with `Round` it is one figure.
//! Checked by: controller::tests, crates/sim/tests/long/few_packets.rs, crates/sim/tests/integration/come_and_go.rs

use super::{HEADROOM, Loop, Regulator};
use crate::aggregation::stations::Account;

/// Most by which rounds may become longer than the target while others have more of the channel, as a share of the target.
const CLAIM: f64 = 0.3;
/// Share of the target from which on rounds are as long as others make them.
const CROWDED: f64 = 0.75;
/// Most of the time that streams which are limited count for: they are bound to leave the others some.
const MOST_LIMITED: f64 = 0.9;

/// A station with frames no farther apart than this, in rounds, is in every round.
const EVERY: f64 = 1.1;

/// How long rounds will be, and how far apart the last ones were, seconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ahead {
    /// The next.
    pub round: f64,
    /// The last ones.
    pub last: f64,
    /// Share of the time that others leave.
    pub own: f64,
}

/// What rounds last, seconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rounds {
    /// The one to come, with the frames that are reserved in it.
    pub next: f64,
    /// One in which every station that is not limited has a frame of one packet.
    pub shortest: f64,
    /// One in which every station that is present has.
    pub singles: f64,
}

impl Regulator {
    /// Seconds between frames of a station that is in every round.
    pub(super) fn apart(&self) -> f64 {
        self.leader()
            .map_or(self.feasible_target.interval(), |first| first.state.last_slot.interval * first.activity.share())
    }

    /// A round to come, in which every station that is not limited has a frame as long as it shall be: as far as limited ones have frames in
    /// it, it is longer, and they have more of them. Where all are limited nothing says how long rounds will be: as the last ones.
    pub(super) fn ahead(&self) -> Ahead {
        let (last, own) = (self.apart(), 1.0 - self.foreign());
        let access = self.overhead.round(1.0);
        // Of each limited one: seconds that its frame takes, and from one to the next.
        let (mut whole, mut limited) = (0.0, Vec::new());
        for account in self.stations.present() {
            let takes = access + account.state.air.time * account.claim();
            match account.between(last) {
                Some(between) => limited.push((takes, between)),
                None => whole += takes,
            }
        }
        if !self.params.foresees() || whole <= 0.0 {
            return Ahead { round: last, last, own };
        }
        // Nobody has more than a frame in a round. With all of them in every one it is the longest; from there to where it is as long as what is
        // in it takes, one step or a few.
        let mut round = (whole + limited.iter().map(|(takes, _)| takes).sum::<f64>()) / own;
        loop {
            let (mut fixed, mut share) = (whole, 0.0);
            for (takes, between) in &limited {
                match round < *between {
                    true => share += takes / between,
                    false => fixed += takes,
                }
            }
            let next = fixed / (own - share);
            match next < round {
                true => round = next,
                false => return Ahead { round, last, own },
            }
        }
    }

    /// Share of the time that packets take which others send to stations that are not limited; those of a limited one are in what is
    /// reserved for it.
    fn foreign(&self) -> f64 {
        if !self.params.foresees() {
            return 0.0;
        }
        let saturated = self.stations.present().filter(|account| !account.activity.is_limited());
        saturated.map(|Account { state, .. }| state.air.time * state.last_slot.foreign).sum::<f64>().min(MOST_LIMITED)
    }

    /// Frames in a round that is to come.
    pub(super) fn frames(&self) -> f64 {
        let ahead = self.ahead();
        self.stations.present().map(|account| account.frames_in(ahead)).sum()
    }

    /// Frames in a round of the last slot, in the mean.
    pub(super) fn frames_seen(&self) -> f64 {
        let apart = self.apart();
        self.stations.active().map(|account| account.activity.share() * account.frames_had(apart)).sum()
    }

    /// What rounds last with the stations that are present.
    pub(super) fn rounds(&self, ahead: Ahead) -> Rounds {
        let (mut frames, mut reserved, mut singles, mut unlimited, mut load, mut count) =
            (0.0, 0.0, 0.0, 0.0, 0.0, 0.0);
        for account in self.stations.present() {
            let (state, had) = (&account.state, account.frames_in(ahead));
            frames += had;
            reserved += state.air.time * account.claim() * had;
            match account.activity.is_limited() {
                true => load += state.air.time * state.last_slot.arrived,
                false => unlimited += state.air.time,
            }
            singles += state.air.time;
            count += 1.0;
        }
        let overhead = self.overhead.round(frames);
        Rounds {
            next: (overhead + reserved) / ahead.own,
            shortest: (overhead + unlimited) / (1.0 - f64::min(1.0 - ahead.own + load, MOST_LIMITED)),
            singles: self.overhead.round(count) + singles,
        }
    }

    /// By how much rounds may become longer than T̄ while others have more of the channel than these stations, as a share of
    /// T̄: 0.3 (f - l)/(f + l), with l the share of the time of these stations' packets, and f what that and accesses leave. As published
    /// they do not.
    pub(super) fn claim_on_others(&self, round: f64) -> f64 {
        let own: f64 = self.stations.active().map(|a| a.state.last_slot.arrived * a.state.air.time).sum();
        let accesses = self.frames_seen() * self.params.overhead.as_secs_f64() / round;
        let others = 1.0 - own - accesses;
        // Rounds that are far shorter leave room: the rest of the time is nobody's.
        let crowded = round >= CROWDED * self.feasible_target.interval();
        if self.params.foresees() && crowded && others > own && own > 0.0 {
            CLAIM * (others - own) / (others + own)
        } else {
            0.0
        }
    }

    /// The share beyond which stations at their cap would only wait longer: the root of Ω(a) = n a. With C the capped
    /// stations it is (Ω - Σ_others w μ) / |C|, of the measured round and levels; infinite while none is capped. A limited
    /// stream is never at its cap.
    pub(super) fn cap_price(&self, round: f64) -> f64 {
        let Some(share) = self.share() else { return f64::INFINITY };
        let (mut capped, mut others) = (0.0, 0.0);
        for account in self.stations.active() {
            let Account { state, activity, .. } = account;
            match !activity.is_limited() && share >= self.cap(state) * state.air.time {
                true => capped += activity.share(),
                false => {
                    others += activity.share() * state.air.time * state.last_slot.level * account.frames_had(round)
                }
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
    /// Frames that this station will have in a round.
    pub(super) fn frames_in(&self, ahead: Ahead) -> f64 {
        self.between(ahead.last).map_or(1.0, |between| (ahead.round / between).min(1.0))
    }

    /// Frames that it had in one of the last slot.
    pub(super) fn frames_had(&self, round: f64) -> f64 {
        if self.activity.is_limited() { (round / self.state.last_slot.interval).min(1.0) } else { 1.0 }
    }

    /// Seconds from a frame to the next, if it is not in every round; rounds were `last` apart.
    fn between(&self, last: f64) -> Option<f64> {
        match (self.activity.is_limited(), self.activity.comes_often()) {
            (true, true) => Some(self.activity.period()),
            // A station in every round has a round between its frames.
            (true, false) => Some(self.state.last_slot.interval).filter(|interval| *interval > EVERY * last),
            (false, _) => None,
        }
    }

    /// Packets that are reserved for the station in a round in which it has a frame.
    pub(super) fn claim(&self) -> f64 {
        let (z, level) = (self.state.z, self.state.last_slot.level);
        match (self.activity.is_limited(), self.activity.comes_often()) {
            (true, false) => z.min((HEADROOM * level).max(1.0)),
            (true, true) => z.min(HEADROOM * self.activity.burst()),
            // No more than it has when it comes.
            (false, _) => z.min(self.activity.burst()),
        }
    }
}
