//! Powers in decibels of a milliwatt, which may be negative.

use crate::problem::Kind;
use crate::quantity::Decibels;
use crate::read::{At, Context, Quantity, Read, Value, inline_schema, number};
use schemars::json_schema;

/// A power in thousandths of a decibel above a milliwatt.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Dbm(pub i64);

impl Dbm {
    /// Reads a number with an optional minus sign, in dBm.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(text: &str) -> Result<Dbm, String> {
        let (digits, sign) = text.strip_prefix('-').map_or((text, 1), |digits| (digits, -1));
        let wrong = || format!("`{text}` is not a number of dBm");
        if !digits.starts_with(|c: char| c.is_ascii_digit()) {
            return Err(wrong());
        }
        let Quantity(Decibels(size)) = number(digits, "dB").map_err(|_| wrong())?;
        i64::try_from(size).map(|size| Dbm(sign * size)).map_err(|_| format!("`{text}` is too large"))
    }

    /// As it would be written.
    pub fn show(self) -> String {
        format!("{} dBm", self.0 as f64 / 1000.0)
    }
}

impl Read for Dbm {
    fn read(value: &Value<'_>, at: &At, cx: &mut Context) -> Option<Self> {
        let remedy = "write it as text with its unit: \"-95 dBm\"";
        let Some(text) = value.get_ref().as_str() else {
            cx.wrong_type(value, at, "a power in dBm", remedy.to_owned());
            return None;
        };
        let Some(digits) = text.trim().strip_suffix("dBm") else {
            cx.problem(Kind::Unit, at, format!("`{text}` is not a power in dBm"), remedy);
            return None;
        };
        Dbm::parse(digits.trim_end()).map_err(|what| cx.problem(Kind::Unit, at, what, remedy)).ok()
    }
}

inline_schema!(Dbm, _ => json_schema!({
    "title": "a power in dBm",
    "type": "string",
    "pattern": r"^-?\d+(\.\d+)? ?dBm$",
    "examples": ["-95 dBm"],
}));

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn no_text_panics_and_what_is_read_is_shown(text in "\\PC{0,24}|-?[0-9]{1,12}(\\.[0-9]{0,5})?") {
            if let Ok(power) = Dbm::parse(&text) {
                let shown = power.show();
                prop_assert_eq!(Dbm::parse(shown.trim_end_matches(" dBm")), Ok(power));
            }
        }
    }

    #[test]
    fn powers_have_a_sign_and_three_decimals() {
        let parse = |text: &str| Dbm::parse(text).map(|power| power.show());
        assert_eq!(parse("-95.25"), Ok("-95.25 dBm".to_owned()));
        assert_eq!((parse("0"), parse("-0.001")), (Ok("0 dBm".to_owned()), Ok("-0.001 dBm".to_owned())));
        for wrong in ["", "-", "--9", "-9e1", "nan", "- 9", "9,5", "+9", "1.2345", "-99999999999999999999"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}
