//! Which carriers a terminal has.
//! Source:     Xie et al. 2020, footnote 1: a terminal is given carriers one after the other as it uses up those that it has, whether or not
//!             packets wait for it, and loses them when it does not use them. 3GPP TS 36.321 section 5.13 (activation and its
//!             timer).
//! Equations:  PRBs given in the window >= share * window * PRBs of its carriers: the next is activated `delay` later
//! Deviations: which rule a cell has is its maker's affair; share and window are parameters. Only the last carrier is taken away.
//! Checked by: tests::*, tests/integration/cell.rs

use super::numbers::{MOST_CARRIERS, SUBFRAME};
use super::params::Aggregation;
use lasthop_units::Span;
use std::collections::VecDeque;

/// The same as [`Aggregation`], in subframes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rule {
    window: u64,
    share: f64,
    delay: u64,
    unused: Option<u64>,
}

impl Rule {
    pub fn new(aggregation: &Aggregation) -> Rule {
        let subframes = |span: Span| span.as_nanos().div_ceil(SUBFRAME.as_nanos());
        Rule {
            window: subframes(aggregation.window),
            share: aggregation.share,
            delay: subframes(aggregation.delay),
            unused: aggregation.unused.map(subframes),
        }
    }
}

/// The carriers of one terminal: `first` of the cell's and those that follow it, in a circle. Questions and events come in the order of subframes.
#[derive(Clone, Debug)]
pub(super) struct Carriers {
    first: usize,
    active: usize,
    most: usize,
    /// How many the cell has.
    all: usize,
    /// PRBs given, by subframe, in the window.
    given: VecDeque<(u64, u8)>,
    sum: u64,
    /// When each was last used, or activated.
    used: [u64; MOST_CARRIERS],
    /// When the next one will be there.
    coming: Option<u64>,
}

impl Carriers {
    /// Carrier `first` of `all` that the cell has, and up to `most`.
    pub fn new(first: usize, most: usize, all: usize) -> Carriers {
        let most = most.min(all);
        Carriers { first, active: 1, most, all, given: VecDeque::new(), sum: 0, used: [0; MOST_CARRIERS], coming: None }
    }

    /// Gives up all but the first.
    pub fn release(&mut self) {
        self.active = 1;
        self.coming = None;
        self.begin_anew();
    }

    /// When a carrier of the cell would become this terminal's: 0 for its first.
    fn turn(&self, carrier: usize) -> usize {
        (carrier + self.all - self.first) % self.all
    }

    /// How many it has in subframe `now`.
    pub fn active(&mut self, now: u64, rule: &Rule) -> usize {
        if let Some(at) = self.coming.filter(|at| *at <= now) {
            self.coming = None;
            self.used[self.active] = at;
            self.active += 1;
            self.begin_anew();
        }
        while let (2.., Some(unused)) = (self.active, rule.unused)
            && now >= self.used[self.active - 1] + unused
        {
            self.active -= 1;
            self.coming = None;
            self.begin_anew();
        }
        self.active
    }

    /// True if it has this one of the cell's carriers in subframe `now`.
    pub fn has(&mut self, carrier: usize, now: u64, rule: &Rule) -> bool {
        self.turn(carrier) < self.active(now, rule)
    }

    /// It is given `prb` of a carrier in subframe `now`; `sizes`: the cell's carriers.
    pub fn give(&mut self, carrier: usize, now: u64, prb: u8, sizes: &[u8], rule: &Rule) {
        self.used[self.turn(carrier)] = now;
        if self.active == self.most {
            return;
        }
        self.given.push_back((now, prb));
        self.sum += u64::from(prb);
        while let Some((_, old)) = self.given.front().filter(|(at, _)| *at + rule.window <= now) {
            self.sum -= u64::from(*old);
            self.given.pop_front();
        }
        let own = sizes.iter().cycle().skip(self.first).take(self.active);
        let all: u64 = own.map(|prb| u64::from(*prb)).sum();
        if self.coming.is_none() && self.sum as f64 >= rule.share * (all * rule.window) as f64 {
            self.coming = Some(now + rule.delay);
        }
    }

    fn begin_anew(&mut self) {
        self.given.clear();
        self.sum = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZES: [u8; 3] = [50, 100, 25];

    fn rule() -> Rule {
        Rule::new(&Aggregation::default())
    }

    /// Gives a share of the first carrier in every subframe.
    fn use_first(carriers: &mut Carriers, subframes: std::ops::Range<u64>, prb: u8) {
        for now in subframes {
            carriers.give(0, now, prb, &SIZES, &rule());
        }
    }

    #[test]
    fn a_carrier_comes_with_use_and_goes_without() {
        let mut carriers = Carriers::new(0, 3, 3);
        use_first(&mut carriers, 0..1000, 39);
        assert_eq!(carriers.active(1000, &rule()), 1);
        use_first(&mut carriers, 1000..1100, 40);
        // 100 subframes at four fifths end with 1099; 24 later it is there.
        assert_eq!((carriers.active(1122, &rule()), carriers.active(1123, &rule())), (1, 2));
        // It is not used for 320.
        assert_eq!((carriers.active(1442, &rule()), carriers.active(1443, &rule())), (2, 1));
    }

    #[test]
    fn what_is_asked_late_is_answered_alike() {
        let mut carriers = Carriers::new(0, 3, 3);
        use_first(&mut carriers, 0..100, 50);
        assert_eq!(carriers.clone().active(130, &rule()), 2);
        assert_eq!(carriers.active(2000, &rule()), 1);
    }

    #[test]
    fn the_second_has_to_be_used_as_well_before_a_third_comes() {
        let mut carriers = Carriers::new(0, 3, 3);
        use_first(&mut carriers, 0..100, 50);
        assert_eq!(carriers.active(200, &rule()), 2);
        use_first(&mut carriers, 200..300, 50);
        assert_eq!(carriers.active(330, &rule()), 2);
        for now in 330..430 {
            carriers.give(0, now, 50, &SIZES, &rule());
            carriers.give(1, now, 80, &SIZES, &rule());
        }
        assert_eq!(carriers.active(460, &rule()), 3);
    }
    #[test]
    fn carriers_follow_the_first_in_a_circle() {
        let mut carriers = Carriers::new(2, 2, 3);
        assert_eq!([0, 1, 2].map(|carrier| carriers.has(carrier, 0, &rule())), [false, false, true]);
        for now in 0..100 {
            carriers.give(2, now, 20, &SIZES, &rule());
        }
        assert_eq!([0, 1, 2].map(|carrier| carriers.has(carrier, 130, &rule())), [true, false, true]);
        // Four fifths of 25 + 50 PRBs, and no third: it has as many as it can use.
        for now in 130..330 {
            carriers.give(2, now, 25, &SIZES, &rule());
            carriers.give(0, now, 50, &SIZES, &rule());
        }
        assert_eq!(carriers.active(400, &rule()), 2);
        carriers.release();
        assert_eq!([0, 1, 2].map(|carrier| carriers.has(carrier, 400, &rule())), [false, false, true]);
    }
}
