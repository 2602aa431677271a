//! Counters of 32 bits that the kernel lets begin anew, told as ones of 64.

/// One counter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Wide {
    last: u32,
    total: u64,
    seen: bool,
}

impl Wide {
    /// The counter, of which the kernel shows `value`. It must be asked more often than it begins anew.
    pub(super) fn widened(&mut self, value: u32) -> u64 {
        let grown = if self.seen { value.wrapping_sub(self.last) } else { value };
        *self = Wide { last: value, total: self.total.saturating_add(u64::from(grown)), seen: true };
        self.total
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_goes_on_where_the_kernels_begins_anew() {
        let mut wide = Wide::default();
        let seen: Vec<u64> = [5, 5, u32::MAX, 3].map(|value| wide.widened(value)).into();
        assert_eq!(seen, [5, 5, u64::from(u32::MAX), u64::from(u32::MAX) + 4]);
    }
}
