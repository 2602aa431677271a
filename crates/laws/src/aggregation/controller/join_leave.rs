//! Stations that come and go, in less time than the loops need: shares follow the active stations by the model.
//! Source:     own; in \[aggregation\] a station begins with frames of one packet, and ν follows by K2 a slot.
//! Equations:  nu' = nu a(S') / a(S),   z_i' = z_i target_i' / target_i   when the set S of saturated stations becomes S'
//!             z_j = min{ (nu w_1) a(S + j) / (a(S) w_j), N̄_j }, at least 1, for a station j that comes back
//! Symbols:    a -> `Planned::share` (s of every round for the station with most: one below its cap, if there is one),
//!             S -> [`Standing::Saturated`]
//! Deviations: the paper leaves this to the loops, and so does [`crate::aggregation::OverheadRule::Round`]. What it
//!             costs, and why: docs/decisions/0011-track-active-stations.md. What is measured of a station is taken for the part of
//!             the slot in which it was present; where nobody was for half of a slot, ν is the model's.
//! Validity:   known data rates; a station that was never heard begins with one packet a frame, and has its share after
//!             a slot.
//! Checked by: controller::tests, crates/sim/tests/integration/come_and_go.rs

use super::rounds::Ahead;
use super::{FIRST_RATE, LEAST_Z, Loop, Regulator, SHOWN};
use crate::aggregation::activity::{Activity, REST, Standing};
use crate::aggregation::allocation::{exact_share, paper_share};
use crate::aggregation::model::{Hop, Link, PACKET_OVERHEAD, airtime};
use crate::aggregation::params::Allocation;
use crate::aggregation::stations::Account;
use lasthop_signals::Node;
use lasthop_units::Time;

/// Whose activity has changed at one moment. What follows from that is done once for all of them.
#[derive(Clone, Debug, Default)]
pub(super) struct Moves {
    any: bool,
    /// Those that begin, and whether it is known what their packets take.
    begin: Vec<(Node, bool)>,
}

/// What the model makes of the saturated stations.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Planned {
    /// Seconds of every round that it gives a station below its cap, if there is one.
    uncapped_share: f64,
    /// The most that any has.
    share: f64,
}

impl Regulator {
    /// A station has come, or has come back. It begins with the share that it will have if it is known what its packets
    /// take, otherwise with one packet a frame; the others make room at once.
    pub(super) fn enter(&mut self, now: Time, station: Node, moves: &mut Moves) {
        let first = airtime((self.params.packet + PACKET_OVERHEAD).bits() as f64, FIRST_RATE);
        let Some(Account { state, .. }) = self.stations.get_mut(station) else { return };
        let known = state.air.is_known();
        *state = state.anew(now, first);
        moves.any = true;
        moves.begin.push((station, known));
    }

    /// Nothing has waited for a station for a while: the others have its room.
    pub(super) fn rest(&mut self, now: Time, station: Node, moves: &mut Moves) {
        if !self.stations.rest(now, station) {
            return;
        }
        if let Some(Account { state, .. }) = self.stations.get_mut(station) {
            state.rate.pass(now, true);
            state.rate.allowed = (state.rate.allowed - state.rate.per_second * REST.as_secs_f64()).max(0.0);
        }
        moves.any = true;
    }

    /// Something waits for a station; if it has rested, the others make room at once.
    pub(super) fn resume(&mut self, now: Time, station: Node, moves: &mut Moves) {
        if !self.stations.resume(now, station) {
            return;
        }
        let Some(Account { state, activity, .. }) = self.stations.get_mut(station) else { return };
        state.rate.passed = now;
        let known = state.last_slot.known || state.air.told.is_some();
        // A slot with few of its packets says nothing of a rate that it could have.
        state.last_slot.known &= activity.share() >= SHOWN;
        // Where it was there when the slot began, it goes on as before.
        if activity.before() == Standing::Absent {
            moves.begin.push((station, known));
        }
        moves.any = true;
    }

    /// Levels of those that begin, and everybody's rates, after these moves.
    pub(super) fn follow(&mut self, now: Time, moves: &Moves) {
        if moves.any {
            self.begin(&moves.begin);
            self.spread(now);
        }
    }

    fn begin(&mut self, stations: &[(Node, bool)]) {
        let Some(share) = self.share() else { return };
        let foresees = self.params.foresees();
        // The share of the stations with a known airtime a packet.
        let foreseen = match foresees && stations.iter().any(|(_, known)| *known) {
            true => {
                let [before, after] = self.before_and_after();
                // Of those that were there last there is nobody to share with: the model's share is all that is known.
                if before <= 0.0 { after } else { share * share_factor(before, after) }
            }
            false => share,
        };
        for (station, known) in stations {
            let known = *known && foresees;
            let share = if known { foreseen } else { share };
            let Some(Account { state, .. }) = self.stations.get(*station) else { continue };
            let target_level = (share / state.air.time).min(self.cap(state)).max(1.0);
            let Some(Account { state, .. }) = self.stations.get_mut(*station) else { continue };
            state.target_level = target_level;
            if known {
                state.z = target_level;
            }
        }
    }

    /// Levels follow the set of saturated stations.
    pub(super) fn make_room(&mut self) {
        let same =
            |account: &Account<Loop>| account.activity.standing() == account.activity.before() && !account.begins();
        if !self.params.foresees() || self.stations.iter().all(|(_, account)| same(account)) {
            return;
        }
        let [before, after] = self.before_and_after();
        self.nu = (self.nu * share_factor(before, after)).clamp(1.0, f64::from(self.params.max_packets));
        let levels: Vec<f64> = self.stations.iter().map(|(_, account)| account.state.target_level).collect();
        self.retarget();
        for ((_, account), before) in self.stations.iter_mut().zip(levels) {
            let begins = account.begins();
            let state = &mut account.state;
            if begins {
                state.z = state.target_level;
            } else if account.activity.standing() == Standing::Saturated {
                state.z = (state.z * state.target_level / before).clamp(LEAST_Z, self.params.most(state.air.time));
            }
        }
    }

    /// The model's shares for the stations that were saturated when the last slot ended, and for those that are now.
    fn before_and_after(&self) -> [f64; 2] {
        let ahead = self.ahead();
        [self.planned(ahead, Activity::before).share, self.planned(ahead, Activity::standing).share]
    }

    /// Where nobody was there for long enough to be measured, nobody says that the model is wrong.
    pub(super) fn trust_the_model(&mut self) {
        let Some(airtime) = self.reference.map(|station| self.airtime_of(station)) else { return };
        // Stations that have come or gone since are left to `make_room`.
        let [before, after] = self.before_and_after();
        let share = if before > 0.0 { before } else { after };
        if self.params.foresees() && share > 0.0 {
            self.nu = (share / airtime).clamp(1.0, f64::from(self.params.max_packets));
        }
    }

    /// The model's packets a frame for a station, if it is saturated.
    pub(super) fn planned_level(&self, station: Node) -> Option<f64> {
        let Account { state, activity, .. } = self.stations.get(station)?;
        let planned = || self.planned(self.ahead(), Activity::standing);
        (activity.standing() == Standing::Saturated)
            .then(|| (planned().uncapped_share / state.air.time).min(self.cap(state)))
    }

    /// The station that could be the reference if it had been there for longer.
    pub(super) fn slowest_here(&self) -> Option<Node> {
        let saturated = |account: &Account<Loop>| account.activity.standing() == Standing::Saturated;
        let here = self.stations.iter().filter(|(_, account)| saturated(account) && account.state.last_slot.known);
        here.max_by(|(_, a), (_, b)| a.state.air.time.total_cmp(&b.state.air.time)).map(|(station, _)| station)
    }

    /// What the model makes of the hop, if every station has the `standing` that is said.
    fn planned(&self, ahead: Ahead, standing: impl Fn(&Activity) -> Standing) -> Planned {
        let (mut links, mut frames, mut packets) = (Vec::new(), 0.0, 0.0);
        for (_, account) in self.stations.iter() {
            match standing(&account.activity) {
                Standing::Absent => {}
                Standing::Limited => {
                    let had = account.frames_in(ahead);
                    frames += had;
                    packets += account.state.air.time * account.claim() * had;
                }
                Standing::Saturated => {
                    links.push(Link { airtime: account.state.air.time, most: self.cap(&account.state) });
                }
            }
        }
        let hop = Hop { overhead: self.overhead.round(links.len() as f64 + frames) + packets, links };
        let uncapped_share = match self.params.allocation {
            Allocation::Exact => exact_share(&hop, self.feasible_target.interval()),
            Allocation::Paper => paper_share(&hop, self.feasible_target.interval()),
        };
        let has = |link: &Link| link.airtime * (uncapped_share / link.airtime).min(link.most);
        Planned { uncapped_share, share: hop.links.iter().map(has).fold(0.0, f64::max) }
    }
}

/// The factor by which a station's share changes as others become saturated, or cease to be, since the last slot ended.
fn share_factor(before: f64, after: f64) -> f64 {
    if before > 0.0 && after > 0.0 { after / before } else { 1.0 }
}

impl Account<Loop> {
    /// It was not regulated in the slot before.
    pub(super) fn begins(&self) -> bool {
        self.regulated()
            && self.is_present()
            && (self.state.last_slot.joined || self.activity.before() != Standing::Saturated)
    }
}
