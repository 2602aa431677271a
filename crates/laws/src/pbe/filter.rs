//! How many terminals share a carrier.
//! Source:     \[pbe\], section 4.2.1, reconstructed (see [`super`]).
//! Equations:  N = 1 + number of other terminals with T_a > 1 and P_a > 4
//! Symbols:    T_a, subframes in which a terminal was given something -> `Activity::subframes`; P_a, what it was given
//!             in them, on average
//! Deviations: the paper does not say whether P_a is a sum, a mean or a maximum: here it is the mean, so that a
//!             terminal that is paged twice does not count. RNTIs of broadcast and paging count never (3GPP TS 36.321
//!             section 7.1).
//! Validity:   terminals that are seldom served count as long as they are in the window.     Checked by: tests::*

use lasthop_signals::{Dci, Rnti};
use std::collections::{BTreeMap, VecDeque};

/// A terminal that was active in no more subframes has had control messages.
const SUBFRAMES: u32 = 1;
/// A terminal that had no more PRB pairs in a subframe, on average, likewise.
const PRB: u32 = 4;
/// RNTIs from here on are no terminal's: reserved, multicast, paging, system information.
pub(super) const SHARED: Rnti = Rnti(0xfff4);

/// The terminals of a carrier that have been active lately.
#[derive(Clone, Debug, Default)]
pub(super) struct Users {
    /// By subframe: the users, and how many PRB pairs each was given.
    window: VecDeque<(u64, Vec<(Rnti, u16)>)>,
    active: BTreeMap<Rnti, Activity>,
    /// How many of those pass.
    passing: u32,
}

#[derive(Clone, Copy, Debug, Default)]
struct Activity {
    subframes: u32,
    prb: u32,
}

impl Activity {
    fn passes(self) -> bool {
        self.subframes > SUBFRAMES && self.prb > PRB * self.subframes
    }

    /// Changes it, and counts it among those that are `passing` if it passes then.
    fn change(&mut self, passing: &mut u32, change: impl FnOnce(&mut Activity)) {
        *passing -= u32::from(self.passes());
        change(self);
        *passing += u32::from(self.passes());
    }
}

impl Users {
    /// Folds in a subframe; the window is the last `length` of them.
    pub(super) fn on_subframe(&mut self, number: u64, dcis: &[Dci], length: u64) {
        let mut given = number.checked_sub(length).map(|last| self.forget(last)).unwrap_or_default();
        for dci in dcis.iter().filter(|dci| dci.is_possible() && dci.rnti < SHARED) {
            match given.iter_mut().find(|(rnti, _)| *rnti == dci.rnti) {
                Some((_, prb)) => *prb = prb.saturating_add(dci.prb),
                None => given.push((dci.rnti, dci.prb)),
            }
        }
        for (rnti, prb) in &given {
            self.active.entry(*rnti).or_default().change(&mut self.passing, |activity| {
                activity.subframes += 1;
                activity.prb += u32::from(*prb);
            });
        }
        self.window.push_back((number, given));
    }

    /// Forgets all subframes up to `last`. The list of one of them comes back empty, for the next.
    fn forget(&mut self, last: u64) -> Vec<(Rnti, u16)> {
        let mut spare = Vec::new();
        while self.window.front().is_some_and(|(number, _)| *number <= last) {
            let Some((_, given)) = self.window.pop_front() else { break };
            for (rnti, prb) in &given {
                let Some(activity) = self.active.get_mut(rnti) else { continue };
                activity.change(&mut self.passing, |activity| {
                    activity.subframes -= 1;
                    activity.prb -= u32::from(*prb);
                });
                if activity.subframes == 0 {
                    self.active.remove(rnti);
                }
            }
            spare = given;
        }
        spare.clear();
        spare
    }

    /// N. The terminal itself, which is `own` here, always counts; the others do if they pass, or all of them without a filter.
    pub(super) fn count(&self, own: Option<Rnti>, filter: bool) -> u32 {
        let own = own.and_then(|own| self.active.get(&own)).is_some_and(|activity| !filter || activity.passes());
        let all = if filter { self.passing } else { self.active.len() as u32 };
        1 + all - u32::from(own)
    }

    /// The terminals that pass; all that were active without a filter.
    pub(super) fn passing(&self, filter: bool) -> impl Iterator<Item = Rnti> + '_ {
        self.active.iter().filter(move |(_, activity)| !filter || activity.passes()).map(|(rnti, _)| *rnti)
    }
}

#[cfg(test)]
mod tests {
    use super::super::test_cell::{OWN, dci};
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_counted_is_what_passes(
            subframes in proptest::collection::vec((1u64..60, proptest::collection::vec((98u16..104, 0u16..9), 0..6)), 1..80),
            length in 1u64..50,
        ) {
            let (mut users, mut number) = (Users::default(), 0);
            for (step, given) in subframes {
                number += if step < 50 { 1 } else { step };
                let dcis: Vec<Dci> = given.iter().map(|(rnti, prb)| dci(Rnti(*rnti), *prb, 0)).collect();
                users.on_subframe(number, &dcis, length);
                for (own, filter) in [(Some(OWN), true), (Some(OWN), false), (None, true), (None, false)] {
                    let others = users.passing(filter).filter(|rnti| Some(*rnti) != own).count() as u32;
                    prop_assert_eq!(users.count(own, filter), 1 + others);
                }
            }
        }
    }

    #[test]
    fn control_messages_make_no_user() {
        let mut users = Users::default();
        for number in 0..40 {
            let mut dcis = vec![dci(OWN, 40, 30_000), dci(Rnti(200), 30, 20_000), dci(Rnti(0xffff), 8, 300)];
            // Fifteen terminals are told something, once each.
            if (10..25).contains(&number) {
                dcis.push(dci(Rnti(1000 + number as u16), 4, 300));
            }
            users.on_subframe(number, &dcis, 40);
        }
        assert_eq!(users.count(Some(OWN), true), 2);
        assert_eq!(users.count(Some(OWN), false), 17);
    }

    #[test]
    fn an_idle_terminal_counts_itself() {
        let mut users = Users::default();
        (0..40).for_each(|number| users.on_subframe(number, &[dci(Rnti(200), 100, 70_000)], 40));
        assert_eq!(users.count(Some(OWN), true), 2);
        assert_eq!(Users::default().count(None, true), 1);
    }

    #[test]
    fn one_that_is_paged_twice_does_not_count() {
        let mut users = Users::default();
        [3, 9].into_iter().for_each(|number| users.on_subframe(number, &[dci(Rnti(300), 4, 300)], 40));
        assert_eq!(users.count(Some(OWN), true), 1);
        [12, 13].into_iter().for_each(|number| users.on_subframe(number, &[dci(Rnti(300), 5, 300)], 40));
        assert_eq!(users.count(Some(OWN), true), 2, "18 PRB in 4 subframes");
    }

    #[test]
    fn who_leaves_the_window_is_forgotten() {
        let mut users = Users::default();
        (0..10).for_each(|number| users.on_subframe(number, &[dci(Rnti(200), 50, 30_000)], 40));
        users.on_subframe(47, &[], 40);
        assert_eq!(users.count(Some(OWN), true), 2, "subframes 8 and 9");
        users.on_subframe(48, &[], 40);
        assert_eq!(users.count(Some(OWN), true), 1);
        assert_eq!(users.count(Some(OWN), false), 2);
    }
}
