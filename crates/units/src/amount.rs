//! The arithmetic of amounts: sums and products saturate.

/// Implements it for a newtype over `u64`, of which nothing is `ZERO`.
macro_rules! amount {
    ($type:ident) => {
        impl $type {
            /// `self` less `other`, or zero.
            pub const fn saturating_sub(self, other: $type) -> $type {
                $type(self.0.saturating_sub(other.0))
            }

            /// True for nothing.
            pub const fn is_zero(self) -> bool {
                self.0 == 0
            }
        }

        impl std::ops::Add for $type {
            type Output = $type;
            fn add(self, other: $type) -> $type {
                $type(self.0.saturating_add(other.0))
            }
        }

        impl std::ops::AddAssign for $type {
            fn add_assign(&mut self, other: $type) {
                *self = *self + other;
            }
        }

        impl std::ops::Sub for $type {
            type Output = $type;
            /// Panics in debug builds if `other` is more; `saturating_sub` is for where that may happen.
            fn sub(self, other: $type) -> $type {
                debug_assert!(self >= other, "less than nothing: {self:?} - {other:?}");
                self.saturating_sub(other)
            }
        }

        impl std::ops::SubAssign for $type {
            fn sub_assign(&mut self, other: $type) {
                *self = *self - other;
            }
        }

        impl std::ops::Mul<u64> for $type {
            type Output = $type;
            fn mul(self, times: u64) -> $type {
                $type(self.0.saturating_mul(times))
            }
        }

        impl std::iter::Sum for $type {
            fn sum<I: Iterator<Item = $type>>(amounts: I) -> $type {
                amounts.fold($type::ZERO, std::ops::Add::add)
            }
        }

        impl std::fmt::Debug for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                std::fmt::Display::fmt(self, f)
            }
        }
    };
}
pub(crate) use amount;
