//! How many flows share what a station has in its cell.
//!
//! A flow counts that got at least a tenth of what the largest one got in the last tenths of a second: what trickles takes nothing from a download.

use lasthop_units::Bytes;

/// A flow that got so much less than the largest one does not count.
const LESS: u64 = 10;

/// What each flow of a station has got lately, of those with receivers that tell of their cell.
#[derive(Clone, Debug)]
pub struct Sharing {
    got: Vec<Bytes>,
}

impl Sharing {
    /// What each has got ([`crate::ReceiverFeedback::lately`]), in any order.
    pub fn of(got: impl IntoIterator<Item = Bytes>) -> Sharing {
        Sharing { got: got.into_iter().collect() }
    }

    /// How many flows share with one that has got `own`, itself among them.
    pub fn with(&self, own: Bytes) -> u32 {
        let most = self.got.iter().copied().max().unwrap_or(Bytes::ZERO);
        let counts = |got: Bytes| !got.is_zero() && got * LESS >= most;
        let count = self.got.iter().filter(|got| counts(**got)).count() + usize::from(!counts(own));
        u32::try_from(count).unwrap_or(u32::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trickle_does_not_count_but_for_itself() {
        let of = |got: &[u64]| -> Vec<u32> {
            let sharing = Sharing::of(got.iter().copied().map(Bytes::new));
            got.iter().map(|own| sharing.with(Bytes::new(*own))).collect()
        };
        assert_eq!(of(&[1000]), [1]);
        assert_eq!(of(&[0]), [1]);
        assert_eq!(of(&[1000, 100]), [2, 2]);
        assert_eq!(of(&[1000, 99, 0]), [1, 2, 2]);
    }
}
