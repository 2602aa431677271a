//! Which standards, widths, guard intervals, rates and channels exist together.
//! Source:     IEEE 802.11-2020: 17.3 (a), 18.3 (g), 19.5 (n), 21.5 (ac); IEEE 802.11ax-2021: 27.5; channels: Annex E,
//!             tables E-1 and E-4.

use super::table::{RateSet, Standard};
use crate::quantity::Hertz;
use lasthop_radio::wifi::{self, Band, GuardInterval, Width};
use lasthop_units::{Rate, Span};

const MHZ: u64 = 1_000_000;

/// Long guard interval.
pub(crate) const LONG: Span = Span::from_nanos(800);
/// Short guard interval.
pub(crate) const SHORT: Span = Span::from_nanos(400);
/// The two longer guard intervals of 802.11ax.
const DOUBLE: Span = Span::from_nanos(1_600);
const QUADRUPLE: Span = Span::from_nanos(3_200);

impl Standard {
    /// True if frames are aggregated and rates are named by MCS.
    pub fn has_mcs(self) -> bool {
        matches!(self, Standard::N | Standard::Ac | Standard::Ax)
    }

    /// Channel widths, narrowest first.
    pub(crate) const fn widths(self) -> &'static [Hertz] {
        match self {
            Standard::A | Standard::G => &[Hertz(20 * MHZ)],
            Standard::N => &[Hertz(20 * MHZ), Hertz(40 * MHZ)],
            Standard::Ac | Standard::Ax => &[Hertz(20 * MHZ), Hertz(40 * MHZ), Hertz(80 * MHZ), Hertz(160 * MHZ)],
        }
    }

    /// Guard intervals, longest first.
    pub(crate) const fn guard_intervals(self) -> &'static [Span] {
        match self {
            Standard::A | Standard::G => &[LONG],
            Standard::N | Standard::Ac => &[LONG, SHORT],
            Standard::Ax => &[QUADRUPLE, DOUBLE, LONG],
        }
    }

    /// Most spatial streams that are modelled (ac and ax allow 8), and the highest MCS of a stream.
    pub(crate) const fn most(self) -> (u64, u64) {
        match self {
            Standard::A | Standard::G => (1, 0),
            Standard::N => (4, 7),
            Standard::Ac => (4, 9),
            Standard::Ax => (4, 11),
        }
    }

    /// The clause that [`Standard::most`] and the widths come from.
    pub(crate) const fn clause(self) -> &'static str {
        match self {
            Standard::A => "IEEE 802.11-2020, 17.3",
            Standard::G => "IEEE 802.11-2020, 18.3",
            Standard::N => "IEEE 802.11-2020, 19.5",
            Standard::Ac => "IEEE 802.11-2020, 21.5",
            Standard::Ax => "IEEE 802.11ax-2021, 27.5",
        }
    }
}

/// The rates of 802.11a and g: DSSS and CCK, which only some have, then OFDM.
const LEGACY_KBPS: [u64; 12] =
    [1_000, 2_000, 5_500, 11_000, 6_000, 9_000, 12_000, 18_000, 24_000, 36_000, 48_000, 54_000];

/// The rates of 802.11a or g.
pub(crate) fn legacy_rates(rate_set: RateSet) -> impl Iterator<Item = Rate> {
    let skip = if rate_set == RateSet::Erp { 0 } else { 4 };
    LEGACY_KBPS[skip..].iter().map(|kbps| Rate::from_bps(kbps * 1_000))
}

/// The radio's name for a width that a standard has.
pub(crate) fn radio_width(width: Hertz) -> Option<Width> {
    [Width::Mhz20, Width::Mhz40, Width::Mhz80, Width::Mhz160].into_iter().find(|w| u64::from(w.mhz()) * MHZ == width.0)
}

/// The radio's name for a standard in the band of `channel`; `rate_set` is that of 802.11g.
pub(crate) fn radio_standard(standard: Standard, channel: u8, rate_set: RateSet) -> wifi::Standard {
    match standard {
        Standard::A => wifi::Standard::Dot11a,
        Standard::G if rate_set == RateSet::Erp => wifi::Standard::Dot11gErp,
        Standard::G => wifi::Standard::Dot11g,
        Standard::N => wifi::Standard::Dot11n(band(channel)),
        Standard::Ac => wifi::Standard::Dot11ac,
        Standard::Ax => wifi::Standard::Dot11ax(band(channel)),
    }
}

/// Channel numbers above 14 are those of 5 GHz.
fn band(channel: u8) -> Band {
    if channel <= 14 { Band::Ghz2_4 } else { Band::Ghz5 }
}

/// The radio's name for a guard interval that a standard has.
pub(crate) fn radio_guard_interval(interval: Span) -> Option<GuardInterval> {
    use GuardInterval::{Ns400, Ns800, Ns1600, Ns3200};
    [Ns400, Ns800, Ns1600, Ns3200].into_iter().find(|known| known.span() == interval)
}

/// Primary channels on which `standard` can be `width` wide, lowest first.
pub(crate) fn channels(standard: Standard, width: Hertz) -> Vec<u64> {
    let mut channels = Vec::new();
    let low = matches!(standard, Standard::G | Standard::N) || standard == Standard::Ax && width.0 <= 40 * MHZ;
    if low {
        channels.extend(1..=if width.0 > 20 * MHZ { 13 } else { 14 });
    }
    if standard != Standard::G {
        // Blocks of adjacent 20 MHz channels; wider channels are aligned inside their block.
        for (first, last) in [(36, 64), (100, 144), (149, 177)] {
            let wide = width.0 / MHZ / 20;
            let whole = ((last - first) / 4 + 1) / wide * wide;
            channels.extend((0..whole).map(|n| first + 4 * n));
        }
    }
    channels
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn channels_are_those_of_annex_e() {
        let ac = |mhz: u64| channels(Standard::Ac, Hertz(mhz * MHZ));
        assert!(ac(160).contains(&64) && !ac(160).contains(&132) && ac(160).contains(&149));
        assert!(ac(80).contains(&144) && ac(80).contains(&161));
        assert!(ac(20).contains(&165) && !ac(20).contains(&6));
        let ax = |mhz: u64| channels(Standard::Ax, Hertz(mhz * MHZ));
        assert!(ax(40).contains(&6) && !ax(80).contains(&6) && ax(80).contains(&36));
        assert_eq!(channels(Standard::G, Hertz(20 * MHZ)), (1..=14).collect::<Vec<_>>());
    }
}
