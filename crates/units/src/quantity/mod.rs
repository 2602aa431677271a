//! Quantities as a person writes them: a decimal number, a space, a unit.
//!
//! Arithmetic is exact: `"0.1 ms"` is 100 000 ns, not the nearest float. A unit that two trades read differently
//! (`m`, `Mb`) is refused with the spellings that were probably meant.

use crate::{Bytes, Rate, Span};
use std::fmt;

/// What a quantity measures, with the units it may be written in.
#[derive(Debug, PartialEq, Eq)]
pub struct Dimension {
    /// With its article: "a time".
    pub name: &'static str,
    /// A typical value, as it would be written.
    pub example: &'static str,
    /// Unit symbols with how many base units each stands for, smallest first. The first is the base unit.
    pub units: &'static [(&'static str, u64)],
    /// Symbols that people write for this dimension and that are refused, with what to write instead.
    pub refused: &'static [(&'static str, &'static str)],
}

/// A length of time, to the nanosecond.
pub const TIME: Dimension = Dimension {
    name: "a time",
    example: "20 ms",
    units: &[("ns", 1), ("us", 1_000), ("ms", 1_000_000), ("s", 1_000_000_000), ("min", 60_000_000_000)],
    refused: &[
        ("m", "`m` could be minutes or milliseconds: write `min` or `ms`"),
        ("M", "`M` is no unit of time: write `min` or `ms`"),
        ("sec", "write `s`"),
        ("secs", "write `s`"),
        ("second", "write `s`"),
        ("seconds", "write `s`"),
        ("S", "`S` is siemens: write `s`"),
        ("msec", "write `ms`"),
        ("Ms", "`Ms` would be megaseconds: write `ms`"),
        ("usec", "write `us`"),
        ("h", "write minutes, `min`"),
        ("TU", "a time unit of 802.11 is 1024 us: write it as microseconds or milliseconds, 100 TU = `102.4 ms`"),
    ],
};

/// A data rate, to the bit per second.
pub const RATE: Dimension = Dimension {
    name: "a data rate",
    example: "50 Mbit/s",
    units: &[("bit/s", 1), ("kbit/s", 1_000), ("Mbit/s", 1_000_000), ("Gbit/s", 1_000_000_000)],
    refused: &[
        ("bps", "`b` could be bits or bytes: write `bit/s`"),
        ("kbps", "`b` could be bits or bytes: write `kbit/s`"),
        ("Kbps", "`b` could be bits or bytes: write `kbit/s`"),
        ("Mbps", "`b` could be bits or bytes: write `Mbit/s`"),
        ("Gbps", "`b` could be bits or bytes: write `Gbit/s`"),
        ("Mb/s", "`b` could be bits or bytes: write `Mbit/s`"),
        ("Gb/s", "`b` could be bits or bytes: write `Gbit/s`"),
        ("MBps", "rates are written in bits: 1 MB/s = `8 Mbit/s`"),
        ("MB/s", "rates are written in bits: 1 MB/s = `8 Mbit/s`"),
        ("kB/s", "rates are written in bits: 1 kB/s = `8 kbit/s`"),
        ("B/s", "rates are written in bits: 1 B/s = `8 bit/s`"),
        ("Mbit", "a rate is per second: write `Mbit/s`"),
        ("kbit", "a rate is per second: write `kbit/s`"),
        ("Gbit", "a rate is per second: write `Gbit/s`"),
        ("Mb", "`Mb` could be megabits or megabytes, and a rate is per second: write `Mbit/s`"),
        ("mbit/s", "`m` is milli: write `Mbit/s`"),
        ("M", "write `Mbit/s`"),
        ("G", "write `Gbit/s`"),
        ("k", "write `kbit/s`"),
    ],
};

/// An amount of data, to the byte.
pub const DATA: Dimension = Dimension {
    name: "an amount of data",
    example: "100 kB",
    units: &[
        ("B", 1),
        ("kB", 1_000),
        ("KiB", 1 << 10),
        ("MB", 1_000_000),
        ("MiB", 1 << 20),
        ("GB", 1_000_000_000),
        ("GiB", 1 << 30),
    ],
    refused: &[
        ("b", "`b` could be bits or bytes: write `B`"),
        ("kb", "`kb` could be kilobits or kilobytes: write `kB`"),
        ("Kb", "`Kb` could be kilobits or kilobytes: write `kB`"),
        ("KB", "`KB` could be 1000 or 1024 bytes: write `kB` or `KiB`"),
        ("Mb", "`Mb` could be megabits or megabytes: write `MB`"),
        ("Gb", "`Gb` could be gigabits or gigabytes: write `GB`"),
        ("k", "write `kB` or `KiB`"),
        ("K", "write `kB` or `KiB`"),
        ("M", "write `MB` or `MiB`"),
        ("bytes", "write `B`"),
        ("byte", "write `B`"),
        ("kbit", "amounts are written in bytes: 8 kbit = `1 kB`"),
        ("Mbit", "amounts are written in bytes: 8 Mbit = `1 MB`"),
        ("bit", "amounts are written in bytes: 8 bit = `1 B`"),
    ],
};

/// A frequency, to the hertz.
pub const FREQUENCY: Dimension = Dimension {
    name: "a frequency",
    example: "80 MHz",
    units: &[("Hz", 1), ("kHz", 1_000), ("MHz", 1_000_000), ("GHz", 1_000_000_000)],
    refused: &[
        ("M", "write `MHz`"),
        ("G", "write `GHz`"),
        ("mhz", "write `MHz`"),
        ("Mhz", "write `MHz`"),
        ("MHZ", "write `MHz`"),
        ("mHz", "`m` is milli: write `MHz`"),
        ("Ghz", "write `GHz`"),
    ],
};

/// A number of packets.
pub const PACKETS: Dimension = Dimension {
    name: "a number of packets",
    example: "1000 packets",
    units: &[("packets", 1), ("packet", 1)],
    refused: &[
        ("p", "write `packets`"),
        ("pkt", "write `packets`"),
        ("pkts", "write `packets`"),
        ("pkg", "write `packets`"),
        ("frames", "write `packets`"),
    ],
};

/// A ratio of powers, to the thousandth of a decibel.
pub const RATIO: Dimension = Dimension {
    name: "a ratio in decibels",
    example: "25 dB",
    units: &[("mdB", 1), ("dB", 1_000)],
    refused: &[("db", "write `dB`"), ("DB", "write `dB`"), ("dBm", "a ratio has no reference: write `dB`")],
};

/// A power, to the nanowatt.
pub const POWER: Dimension = Dimension {
    name: "a power",
    example: "100 mW",
    units: &[("nW", 1), ("uW", 1_000), ("mW", 1_000_000), ("W", 1_000_000_000)],
    refused: &[
        ("dBm", "write milliwatts: 20 dBm = `100 mW`"),
        ("MW", "`MW` would be megawatts: write `mW`"),
        ("w", "write `W`"),
    ],
};

/// A distance, to the millimetre.
pub const DISTANCE: Dimension = Dimension {
    name: "a distance",
    example: "8 m",
    units: &[("mm", 1), ("m", 1_000), ("km", 1_000_000)],
    refused: &[("meters", "write `m`"), ("metres", "write `m`"), ("M", "write `m`"), ("ft", "write metres, `m`")],
};

/// Every dimension, in the order of the reference page.
pub const DIMENSIONS: [&Dimension; 8] = [&TIME, &RATE, &DATA, &FREQUENCY, &PACKETS, &RATIO, &POWER, &DISTANCE];

/// Thousandths of a decibel.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Decibels(pub u64);

/// A power in nanowatts.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Watts(pub u64);

/// A distance in millimetres.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Metres(pub u64);

/// A width or a carrier in hertz.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Hertz(pub u64);

/// A count of packets.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Packets(pub u64);

/// A type that is written as a quantity.
pub trait Measured: Copy {
    /// What it measures.
    const DIMENSION: &'static Dimension;
    /// From a whole number of base units.
    fn from_base(units: u64) -> Self;
    /// As a whole number of base units.
    fn base(self) -> u64;
}

macro_rules! measured {
    ($($type:ty, $dimension:ident, $from:expr, $base:expr;)*) => {$(
        impl Measured for $type {
            const DIMENSION: &'static Dimension = &$dimension;
            fn from_base(units: u64) -> Self { $from(units) }
            fn base(self) -> u64 { $base(self) }
        }
    )*};
}
measured! {
    Span, TIME, Span::from_nanos, Span::as_nanos;
    Rate, RATE, Rate::from_bps, Rate::as_bps;
    Bytes, DATA, Bytes::new, Bytes::get;
    Hertz, FREQUENCY, Hertz, |h: Hertz| h.0;
    Packets, PACKETS, Packets, |p: Packets| p.0;
    Decibels, RATIO, Decibels, |d: Decibels| d.0;
    Watts, POWER, Watts, |w: Watts| w.0;
    Metres, DISTANCE, Metres, |m: Metres| m.0;
}

/// Why a text is not the quantity that was asked for.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum QuantityError {
    /// The text does not start with a number.
    #[error("{} is needed", wanted.name)]
    NotANumber {
        /// What was asked for.
        wanted: &'static Dimension,
    },
    /// A number without a unit.
    #[error("{} needs a unit", wanted.name)]
    NoUnit {
        /// The number.
        number: String,
        /// What was asked for.
        wanted: &'static Dimension,
    },
    /// Amounts are never negative.
    #[error("{} cannot be negative", wanted.name)]
    Negative {
        /// What was asked for.
        wanted: &'static Dimension,
    },
    /// A spelling that is refused.
    #[error("the unit `{unit}` is ambiguous or misspelt")]
    Refused {
        /// The unit as written.
        unit: String,
        /// What to write instead.
        instead: &'static str,
    },
    /// A unit of something else.
    #[error("`{unit}` is a unit of {}, and {} is needed", is.name.trim_start_matches("a ").trim_start_matches("an "), wanted.name)]
    OtherDimension {
        /// The unit as written.
        unit: String,
        /// What it measures.
        is: &'static Dimension,
        /// What was asked for.
        wanted: &'static Dimension,
    },
    /// A unit that nobody knows.
    #[error("`{unit}` is not a unit of {}", wanted.name.trim_start_matches("a ").trim_start_matches("an "))]
    UnknownUnit {
        /// The unit as written.
        unit: String,
        /// What was asked for.
        wanted: &'static Dimension,
    },
    /// Not a whole number of the smallest unit.
    #[error("{} is kept in whole {}", wanted.name, wanted.units[0].0)]
    TooFine {
        /// What was asked for.
        wanted: &'static Dimension,
    },
    /// More than 64 bits of the smallest unit.
    #[error("too large")]
    TooLarge {
        /// What was asked for.
        wanted: &'static Dimension,
    },
}

impl QuantityError {
    /// What would be right.
    pub fn remedy(&self) -> String {
        match self {
            QuantityError::NotANumber { wanted } => format!("write a number and a unit: \"{}\"", wanted.example),
            QuantityError::NoUnit { number, wanted } => {
                let choices: Vec<String> = wanted.spellings().map(|unit| format!("\"{number} {unit}\"")).collect();
                format!("write {}", either(&choices))
            }
            QuantityError::Negative { wanted } => format!("write zero or more, such as \"{}\"", wanted.example),
            QuantityError::Refused { instead, .. } => (*instead).to_owned(),
            QuantityError::OtherDimension { wanted, .. } | QuantityError::UnknownUnit { wanted, .. } => {
                let units: Vec<String> = wanted.spellings().map(|unit| format!("`{unit}`")).collect();
                format!("use {}: \"{}\"", either(&units), wanted.example)
            }
            QuantityError::TooFine { wanted } => format!("round it to whole {}", wanted.units[0].0),
            QuantityError::TooLarge { wanted } => format!("write less, such as \"{}\"", wanted.example),
        }
    }
}

impl Dimension {
    /// The unit symbols, without the singular that stands beside a plural.
    fn spellings(&self) -> impl Iterator<Item = &'static str> {
        self.units.iter().map(|(symbol, _)| *symbol).filter(|symbol| *symbol != "packet")
    }
}

/// "a, b or c".
pub fn either(choices: &[String]) -> String {
    match choices {
        [] => String::new(),
        [only] => only.clone(),
        [first @ .., last] => format!("{} or {last}", first.join(", ")),
    }
}

/// Reads a quantity such as `"20 ms"`.
///
/// # Errors
/// [`QuantityError`] says what is wrong, and its `remedy` what would be right.
pub fn parse<T: Measured>(text: &str) -> Result<T, QuantityError> {
    let wanted = T::DIMENSION;
    let text = text.trim();
    if text.starts_with('-') {
        return Err(QuantityError::Negative { wanted });
    }
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = (&text[..end], text[end..].trim_start());
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() || fraction.contains('.') || number.ends_with('.') || unit.starts_with(',') {
        return Err(QuantityError::NotANumber { wanted });
    }
    if unit.is_empty() {
        return Err(QuantityError::NoUnit { number: number.to_owned(), wanted });
    }
    // U+00B5 and U+03BC look alike, and both are in use for "micro".
    let symbol = unit.replace(['\u{b5}', '\u{3bc}'], "u");
    let Some((_, factor)) = wanted.units.iter().find(|(known, _)| *known == symbol) else {
        return Err(explain_unit(unit, &symbol, wanted));
    };
    exact(whole, fraction, *factor).map(T::from_base).map_err(|inexact| match inexact {
        Inexact::TooFine => QuantityError::TooFine { wanted },
        Inexact::TooLarge => QuantityError::TooLarge { wanted },
    })
}

/// Writes a quantity so that [`parse`] gives it back: in the largest decimal unit that it fills.
pub fn show<T: Measured>(value: T) -> String {
    let units = T::DIMENSION.units;
    let decimal = |factor: u64| (0..20).any(|n| 10u64.checked_pow(n) == Some(factor));
    let fits = units.iter().rev().find(|(_, factor)| decimal(*factor) && value.base() >= *factor);
    let (symbol, factor) = match fits {
        Some((_, 1)) | None => units[0],
        Some(unit) => *unit,
    };
    let (whole, rest) = (value.base() / factor, value.base() % factor);
    if rest == 0 {
        return format!("{whole} {symbol}");
    }
    let digits = factor.ilog10() as usize;
    let fraction = format!("{rest:0digits$}");
    format!("{whole}.{} {symbol}", fraction.trim_end_matches('0'))
}

enum Inexact {
    TooFine,
    TooLarge,
}

/// `whole.fraction` times `factor`, if that is a whole number.
fn exact(whole: &str, fraction: &str, factor: u64) -> Result<u64, Inexact> {
    let fraction = fraction.trim_end_matches('0');
    // Finer than any unit's base, and 10^18 still fits the products below.
    if fraction.len() > 18 {
        return Err(Inexact::TooFine);
    }
    let whole: u64 = whole.parse().map_err(|_| Inexact::TooLarge)?;
    let scale = 10u128.pow(u32::try_from(fraction.len()).unwrap_or(u32::MAX));
    let parts = if fraction.is_empty() { 0 } else { fraction.parse::<u64>().map_err(|_| Inexact::TooFine)? };
    let product = u128::from(parts) * u128::from(factor);
    if product % scale != 0 {
        return Err(Inexact::TooFine);
    }
    let sum = u128::from(whole) * u128::from(factor) + product / scale;
    u64::try_from(sum).map_err(|_| Inexact::TooLarge)
}

fn explain_unit(unit: &str, symbol: &str, wanted: &'static Dimension) -> QuantityError {
    let unit = unit.to_owned();
    if let Some((_, instead)) = wanted.refused.iter().find(|(refused, _)| *refused == symbol) {
        return QuantityError::Refused { unit, instead };
    }
    match DIMENSIONS.iter().find(|other| other.units.iter().any(|(known, _)| *known == symbol)) {
        Some(is) => QuantityError::OtherDimension { unit, is, wanted },
        None => QuantityError::UnknownUnit { unit, wanted },
    }
}

impl fmt::Display for Packets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&show(*self))
    }
}

impl fmt::Display for Hertz {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&show(*self))
    }
}

#[cfg(test)]
mod tests;
