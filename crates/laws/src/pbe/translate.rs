//! From what a cell's blocks carry to what TCP can have.
//! Source:     \[pbe\], equations 4 and 5, reconstructed (see [`super`]).
//! Equations:  C_t = C_p / (1 + gamma + e), or C_p (1 - gamma - e);   at least 0.3 C_p;   p = 1 - (1 - e)^(1 / L);   e'
//!             = 1 - (1 - p)^L'
//! Symbols:    gamma -> `overhead`; e, the part of blocks that are sent again; L, L' -> `length`, in bits
//! Deviations: p is not taken from the signal's quality but measured: x is the mean of 1 for each own block that is a
//!             repeat, and 0 for each other (weight 0.02). Where a repeat is always decoded e = x / (1 - x); where it
//!             fails as often as any block e = x. C_f is translated alike.
//! Validity:   own blocks only.     Checked by: tests::*

use super::Translation;
use lasthop_signals::CellSubframe;

/// The weight of a block in the averages.
const WEIGHT: f64 = 0.02;
/// C_t is at least this part of C_p.
const LEAST: f64 = 0.3;

/// How often own blocks are sent again.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Repeats {
    /// x.
    share: f64,
    /// Mean length of new blocks in bits; zero before the first.
    length: f64,
}

impl Repeats {
    /// Folds in what a subframe has for the terminal.
    pub(super) fn on_subframe(&mut self, subframe: &CellSubframe) {
        let own = subframe.dcis.iter().filter(|dci| dci.is_possible() && Some(dci.rnti) == subframe.own);
        for block in own.flat_map(|dci| dci.blocks.iter().flatten()) {
            let repeat = block.is_repeat();
            self.share += WEIGHT * (f64::from(u8::from(repeat)) - self.share);
            if !repeat && block.bits > 0 {
                let bits = f64::from(block.bits);
                self.length = if self.length > 0.0 { self.length + WEIGHT * (bits - self.length) } else { bits };
            }
        }
    }

    /// e for blocks of `length` bits; zero for the length that they had.
    fn error(&self, translation: Translation, length: f64) -> f64 {
        let error = match translation {
            Translation::OfGoodput => (self.share / (1.0 - self.share).max(LEAST)).min(1.0),
            Translation::OfPhysical => self.share,
        };
        if length > 0.0 && self.length > 0.0 { of_length(error, length / self.length) } else { error }
    }
}

/// e for blocks that are so many times as long as those which have this one.
fn of_length(error: f64, times: f64) -> f64 {
    1.0 - (1.0 - error).powf(times)
}

/// What TCP can have where blocks carry `physical`, `by` this form and gamma.
pub(super) fn transport(by: (Translation, f64), repeats: &Repeats, length: f64, physical: f64) -> f64 {
    with_error(by, repeats.error(by.0, length), physical)
}

fn with_error((translation, overhead): (Translation, f64), error: f64, physical: f64) -> f64 {
    let part = match translation {
        Translation::OfGoodput => 1.0 / (1.0 + overhead + error),
        Translation::OfPhysical => 1.0 - overhead - error,
    };
    physical * part.max(LEAST)
}

#[cfg(test)]
mod tests {
    use super::super::test_cell::{FULL, OWN, dci, repeat, subframe};
    use super::*;
    use lasthop_signals::Rnti;

    const GAMMA: f64 = 0.068;

    #[test]
    fn both_forms_give_the_worked_values() {
        for (bits, physical, goodput) in [(30e3, 0.846, 0.866), (60e3, 0.767, 0.811), (100e3, 0.673, 0.753)] {
            let error = 1.0 - (1.0 - 3e-6_f64).powf(bits);
            let part = |translation| with_error((translation, GAMMA), error, 1.0);
            assert!((part(Translation::OfPhysical) - physical).abs() < 0.0006, "{}", part(Translation::OfPhysical));
            assert!((part(Translation::OfGoodput) - goodput).abs() < 0.0006, "{}", part(Translation::OfGoodput));
        }
        assert_eq!(with_error((Translation::OfPhysical, GAMMA), 0.9, 1000.0), 300.0);
    }

    #[test]
    fn the_error_is_measured() {
        let mut repeats = Repeats::default();
        // Nine new blocks, one of which comes again; those of others do not count.
        for n in 0..2000 {
            let own = if n % 10 == 9 { repeat(OWN, 100) } else { dci(OWN, 100, FULL) };
            repeats.on_subframe(&subframe(n, vec![own, repeat(Rnti(200), 4)]));
        }
        let error = |translation, length| repeats.error(translation, length);
        // x = 0.1, a little more just after a repeat.
        assert!((error(Translation::OfPhysical, 0.0) - 0.1).abs() < 0.012);
        assert!((error(Translation::OfGoodput, f64::from(FULL)) - 1.0 / 9.0).abs() < 0.015);
        // Half as long: 1 - sqrt(1 - e).
        let half = error(Translation::OfPhysical, f64::from(FULL) / 2.0);
        let whole = error(Translation::OfPhysical, f64::from(FULL));
        assert!((half - (1.0 - (1.0 - whole).sqrt())).abs() < 1e-9, "{half} for {whole}");
    }

    #[test]
    fn an_error_goes_with_the_length() {
        let at = |bits: f64| 1.0 - (1.0 - 3e-6_f64).powf(bits);
        assert!((of_length(at(30e3), 100.0 / 30.0) - at(100e3)).abs() < 1e-12);
        assert_eq!((of_length(1.0, 0.5), of_length(0.0, 3.0)), (1.0, 0.0));
    }
}
