//! How long what a message tells is valid: a span in one octet.
//! Source:     RFC 3626, section 18.3.
//! Equations:  T = C (1 + a/16) 2^b, with C = 1/16 s, `a` the upper four bits and `b` the lower.
//! Deviations: none; what lies between two values becomes the greater one, what is beyond the greatest becomes that.

use lasthop_units::Span;

/// A span as messages carry it: 62.5 ms to 3968 s in 256 steps, each a sixteenth of a power of two.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Validity(pub u8);

/// C/16, nanoseconds: every value is a whole multiple of it.
const UNIT: u64 = 3_906_250;

impl Validity {
    /// The longest: 3968 s.
    pub const MAX: Validity = Validity(0xff);

    /// The shortest that lasts no less than `span`; the longest if none does.
    pub fn at_least(span: Span) -> Validity {
        for exponent in 0..16u8 {
            // In units of the mantissa's last bit.
            let sixteenths = span.as_nanos().div_ceil(UNIT << exponent).max(16);
            if sixteenths < 32 {
                return Validity(((sixteenths - 16) as u8) << 4 | exponent);
            }
        }
        Validity::MAX
    }

    /// The span.
    pub const fn span(self) -> Span {
        let (mantissa, exponent) = (self.0 >> 4, self.0 & 15);
        Span::from_nanos((UNIT * (16 + mantissa as u64)) << exponent)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rfcs_values_have_the_rfcs_octets() {
        // Section 18.3 gives the octets of the default holding times: 6 s, 15 s, 30 s.
        for (s, octet) in [(6, 0x86), (15, 0xe7), (30, 0xe8)] {
            assert_eq!(Validity::at_least(Span::from_secs(s)), Validity(octet), "{s} s");
            assert_eq!(Validity(octet).span(), Span::from_secs(s));
        }
        assert_eq!(Validity::at_least(Span::from_secs(2)), Validity(0x05));
    }

    #[test]
    fn every_octet_survives_and_what_lies_between_becomes_more() {
        for octet in 0..=255 {
            let span = Validity(octet).span();
            assert_eq!(Validity::at_least(span), Validity(octet), "{span}");
            assert!(Validity::at_least(span + Span::from_nanos(1)).span() > span || octet == 255, "{span}");
        }
        assert_eq!(Validity::at_least(Span::ZERO).span(), Span::from_micros(62_500));
        assert_eq!(Validity::at_least(Span::MAX), Validity::MAX);
    }
}
