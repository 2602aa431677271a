//! Whether a station has a place in the rounds, and whether it fills it.
//! Source:     own; \[aggregation\] has active stations only.
//! Equations:  s = (time that it was present) / (length of the slot),   v = max{ packets sent / k, 1 },   t = (length of the slot) / k
//!             often:   k >= 4 and v <= N, the packets that its frames hold;   it is for as long as k >= 2 and v <= N
//! Symbols:    s -> `share`, k -> `came`, v -> `burst`, t -> `period`
//! Deviations: an active station for which nothing has waited for [`REST`] rests: it has no place until something waits.
//! Validity:   where a law does not foresee which stations are present, none rests, s is 1, and v is not known.
//! Checked by: tests::*, stations::tests, crates/sim/tests/integration/come_and_go.rs
//!
//! ```text
//! enter       Absent -> Present, or Resting if nothing waits
//! rest        Present -> Resting
//! resume      Resting -> Present
//! end_slot    Present, Resting -> Absent if it is not active;   Absent -> Present if it is
//! count       Resting -> Present if it comes often;   Present -> Resting if it no longer does, and nothing waits
//! ```
//!
//! A station that comes often is present whether something waits or not, and counts as limited: many such stations come
//! at the same instants, and a plan for those that are there at the moment would be of all or of none.
//!
//! A present station is saturated, unless its application limits it. That is found when a slot ends, and kept while the station
//! rests, so it is a mark beside these states, not one of them. A station is coming while it is saturated and was not when the
//! last slot ended.

use lasthop_units::{Span, Time};

/// A station without waiting packets and without traffic for so long has no place in the rounds until something waits.
pub const REST: Span = Span::from_millis(8);

/// So many times a slot are often, and so many still are: what waits for longer than usual is seen to come less often.
const OFTEN: u32 = 4;
const STILL_OFTEN: u32 = 2;

/// One station's.
#[derive(Clone, Debug)]
pub struct Activity {
    state: State,
    limited: bool,
    before: Standing,
    /// Seconds that it was present in this slot, until it last rested.
    earlier: f64,
    /// How often something has begun to wait for it in this slot, and did in the last one.
    bursts: u32,
    came: u32,
    share: f64,
    burst: f64,
    /// Mean seconds from one of these to the next.
    period: f64,
    /// It comes several times a slot, for a frame at most.
    often: bool,
    /// And nothing waits for it now.
    quiet: bool,
}

#[derive(Clone, Copy, Debug)]
enum State {
    /// Nothing was sent to it for a slot, or it has fallen silent.
    Absent,
    /// It is sent to, and nothing waits for it.
    Resting,
    /// It has a place in the rounds, in this slot since then.
    Present { since: Time },
}

/// What a station counts for in the rounds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Standing {
    /// For nothing: it is absent, or rests.
    Absent,
    /// For what it uses: its application sends less than it may.
    Limited,
    /// For a frame in every round: it sends all that it may.
    Saturated,
}

impl Activity {
    /// It is present, or rests.
    pub fn is_active(&self) -> bool {
        !matches!(self.state, State::Absent)
    }

    /// It has a place in the rounds.
    pub fn is_present(&self) -> bool {
        matches!(self.state, State::Present { .. })
    }

    /// Its application sent less than it might, in the last slot in which that was told, or comes often.
    pub fn is_limited(&self) -> bool {
        self.limited || self.often
    }

    /// It came several times in the last slot, for a frame at most: it counts for what it uses, all slot long, and may send that at once.
    pub fn comes_often(&self) -> bool {
        self.often
    }

    /// What it counts for now.
    pub fn standing(&self) -> Standing {
        match (self.is_present(), self.is_limited()) {
            (false, _) => Standing::Absent,
            (true, true) => Standing::Limited,
            (true, false) => Standing::Saturated,
        }
    }

    /// What it counted for when the last slot ended.
    pub fn before(&self) -> Standing {
        self.before
    }

    /// Share of the last slot in which it was present; 1 where it has entered since.
    pub fn share(&self) -> f64 {
        self.share
    }

    /// Mean packets that it had each time that it came, in the last slot of which the proxy has told; infinite
    /// where it did neither.
    pub fn burst(&self) -> f64 {
        self.burst
    }

    /// Mean seconds from when it came to when it came again, in that slot; infinite where it did not.
    pub fn period(&self) -> f64 {
        self.period
    }

    /// Something is sent to an absent station. `rests`: nothing waits for it.
    pub fn enter(&mut self, now: Time, rests: bool) {
        self.state = if rests { State::Resting } else { State::Present { since: now } };
        (self.limited, self.often, self.quiet, self.share) = (false, false, rests, 1.0);
        self.bursts += 1;
    }

    /// Nothing has waited for [`REST`]. True if it was present.
    pub fn rest(&mut self, now: Time) -> bool {
        self.quiet = true;
        if self.often {
            return false;
        }
        let State::Present { since } = self.state else { return false };
        self.earlier += now.since(since).saturating_sub(REST).as_secs_f64();
        self.state = State::Resting;
        true
    }

    /// Something waits again. True if it has rested.
    pub fn resume(&mut self, now: Time) -> bool {
        if self.often {
            self.bursts += u32::from(std::mem::take(&mut self.quiet));
            return false;
        }
        self.quiet = false;
        if !matches!(self.state, State::Resting) {
            return false;
        }
        (self.state, self.limited) = (State::Present { since: now }, false);
        self.bursts += 1;
        true
    }

    /// Measures the slot that ends `now`, of `lasted` seconds, in which so many packets a second were `sent` to it.
    pub fn measure(&mut self, now: Time, lasted: f64, sent: Option<f64>) {
        let present = match self.state {
            State::Present { since } => now.since(since).as_secs_f64(),
            _ => 0.0,
        };
        self.share = if lasted > 0.0 { ((self.earlier + present) / lasted).min(1.0) } else { 0.0 };
        if let Some(sent) = sent {
            self.came = self.bursts;
            let bursts = f64::from(self.bursts);
            self.period = lasted / bursts;
            self.burst = if bursts > 0.0 { (sent * lasted / bursts).max(1.0) } else { f64::INFINITY };
        }
    }

    /// Ends a slot. `active`: it is sent to, as far as is known.
    pub fn end_slot(&mut self, now: Time, active: bool) {
        self.often &= active;
        self.state = match self.state {
            _ if !active => State::Absent,
            State::Resting => State::Resting,
            State::Absent | State::Present { .. } => State::Present { since: now },
        };
        (self.earlier, self.bursts) = (0.0, 0);
    }

    /// Whether it has come often in the slot that has ended, in frames that `hold` so many packets.
    pub fn count(&mut self, now: Time, hold: f64) {
        let least = if self.often { STILL_OFTEN } else { OFTEN };
        let often = self.is_active() && self.came >= least && self.burst <= hold;
        self.state = match self.state {
            State::Resting if often => State::Present { since: now },
            State::Present { .. } if self.often && !often && self.quiet => State::Resting,
            state => state,
        };
        self.often = often;
    }

    /// Whether its application sent less than it might, in the slot that has ended.
    pub fn limit(&mut self, limited: bool) {
        self.limited = limited;
    }

    /// The law has done what follows from the slot that has ended.
    pub fn settle(&mut self) {
        self.before = self.standing();
    }
}

impl Default for Activity {
    /// Of a station to which nothing was sent yet.
    fn default() -> Activity {
        Activity {
            state: State::Absent,
            limited: false,
            before: Standing::Absent,
            earlier: 0.0,
            bursts: 0,
            came: 0,
            share: 1.0,
            burst: f64::INFINITY,
            period: f64::INFINITY,
            often: false,
            quiet: false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lasthop_units::brief::at;

    fn present() -> Activity {
        let mut activity = Activity::default();
        activity.enter(at(0), false);
        activity
    }

    #[test]
    fn a_station_joins_rests_resumes_and_leaves_on_an_empty_slot() {
        let mut activity = Activity::default();
        assert!(!activity.is_active() && !activity.rest(at(0)) && !activity.resume(at(0)));
        activity.enter(at(0), false);
        assert_eq!(activity.standing(), Standing::Saturated);
        assert!(!activity.resume(at(1)) && activity.rest(at(20)) && !activity.rest(at(21)));
        assert!(activity.is_active() && activity.standing() == Standing::Absent);
        activity.end_slot(at(500), true);
        assert!(activity.is_active() && !activity.is_present(), "it rests on in the next slot");
        assert!(activity.resume(at(510)) && activity.is_present());
        activity.end_slot(at(1_000), false);
        assert!(!activity.is_active() && !activity.resume(at(1_010)));
    }

    #[test]
    fn who_comes_with_nothing_that_waits_rests() {
        let mut activity = Activity::default();
        activity.enter(at(0), true);
        assert!(activity.is_active() && !activity.is_present());
        assert!(activity.resume(at(10)));
    }

    #[test]
    fn a_limited_station_stays_so_at_rest_and_restarts_on_return() {
        let mut activity = present();
        activity.limit(true);
        assert_eq!(activity.standing(), Standing::Limited);
        activity.rest(at(100));
        assert!(activity.is_limited() && activity.standing() == Standing::Absent);
        activity.resume(at(200));
        assert_eq!(activity.standing(), Standing::Saturated);
        activity.end_slot(at(500), false);
        activity.limit(true);
        activity.enter(at(600), false);
        assert_eq!(activity.standing(), Standing::Saturated);
    }

    #[test]
    fn the_standing_before_is_that_of_when_the_law_last_settled() {
        let mut activity = present();
        assert_eq!(activity.before(), Standing::Absent);
        activity.settle();
        activity.rest(at(10));
        assert_eq!((activity.before(), activity.standing()), (Standing::Saturated, Standing::Absent));
    }

    #[test]
    fn the_share_is_the_time_in_which_something_was_there_for_it() {
        // 100 ms, of which the last 8 were none, and 158.
        let mut activity = present();
        activity.rest(at(100));
        activity.resume(at(342));
        activity.measure(at(500), 0.5, None);
        assert!((activity.share() - 0.5).abs() < 1e-12, "{}", activity.share());
        activity.end_slot(at(500), true);
        activity.measure(at(1_000), 0.5, None);
        assert_eq!(activity.share(), 1.0);
        activity.measure(at(1_000), 0.0, None);
        assert_eq!(activity.share(), 0.0, "of a slot of no length there is none");
        activity.end_slot(at(1_000), false);
        activity.enter(at(1_100), false);
        assert_eq!(activity.share(), 1.0, "who has come is taken to have been there");
    }

    #[test]
    fn a_burst_is_what_it_was_sent_each_time_that_it_came() {
        let mut activity = present();
        activity.rest(at(100));
        activity.resume(at(300));
        activity.measure(at(500), 0.5, None);
        assert_eq!(activity.burst(), f64::INFINITY, "the proxy has not told");
        activity.measure(at(500), 0.5, Some(40.0));
        assert_eq!(activity.burst(), 10.0);
        activity.measure(at(500), 0.5, Some(1.0));
        assert_eq!(activity.burst(), 1.0, "there is no part of a packet");
        activity.end_slot(at(500), true);
        activity.measure(at(1_000), 0.5, Some(40.0));
        assert_eq!(activity.burst(), f64::INFINITY, "it was there all the time");
    }

    /// A slot of half a second in which two packets came each time.
    fn slot(activity: &mut Activity, number: u64, times: u64) {
        for time in 0..times {
            activity.resume(at(500 * number + 20 * time));
            activity.rest(at(500 * number + 20 * time + 10));
        }
        let end = at(500 * (number + 1));
        activity.measure(end, 0.5, Some(4.0 * times as f64));
        activity.end_slot(end, true);
        activity.count(end, 40.0);
    }

    #[test]
    fn a_station_with_frequent_small_bursts_is_present_and_limited() {
        let mut activity = Activity::default();
        activity.enter(at(0), true);
        slot(&mut activity, 0, 2);
        assert!(!activity.comes_often() && !activity.is_present(), "it entered and came twice");
        slot(&mut activity, 1, 25);
        assert!(activity.comes_often() && activity.standing() == Standing::Limited);
        assert_eq!((activity.burst(), activity.period()), (2.0, 0.02));
        slot(&mut activity, 2, 25);
        assert_eq!((activity.share(), activity.burst(), activity.period()), (1.0, 2.0, 0.02), "counted as before");
        slot(&mut activity, 3, 2);
        assert!(activity.comes_often(), "it may have waited for longer");
        slot(&mut activity, 4, 1);
        assert!(!activity.comes_often() && activity.standing() == Standing::Absent, "nothing waits");
        // Frames that do not hold what comes are those of one that sends all that it may.
        (5..7).for_each(|number| slot(&mut activity, number, 25));
        activity.count(at(3_500), 1.0);
        assert!(!activity.comes_often());
    }
}
