//! Rates and durations of 802.11 PPDUs, computed from modulation, coding and subcarriers.
//! Source:     IEEE 802.11-2020: OFDM clause 17, ERP clause 18, HT clause 19 (19.3.9, 19.4.3), VHT clause 21 (21.3.8,
//!             21.4.3, 21.5); non-HT reference rate table 10-10; response rate 10.6.6.5.
//! Equations:  N_CBPS = subcarriers * bits * streams;  N_DBPS = N_CBPS * coding;
//!             symbols = ceil((8 * PSDU + 16 + 6 * N_ES) / N_DBPS);
//!             duration = preamble + 4 us * ceil(symbols * symbol time / 4 us) + signal extension
//! Symbols:    N_CBPS -> `coded`, N_DBPS -> `bits_per_symbol`, N_ES -> `encoders`
//! Deviations: BCC only (LDPC has no tail bits: at most one symbol less); no STBC; up to four spatial streams.
//!             `Profile::Ns3_3_37` leaves out VHT-SIG-B and the rounding of short-GI symbols to 4 us.
//! Validity:   PSDU up to the duration limit of 5.484 ms.
//! Checked by: tests::* (published rates and durations)

use super::params::Profile;
use lasthop_units::{Bytes, Rate, Span};

/// A physical layer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Standard {
    /// 802.11a: OFDM at 5 GHz, DCF.
    Dot11a,
    /// 802.11g: ERP-OFDM at 2.4 GHz with the short slot, without protection of 802.11b stations, DCF.
    Dot11g,
    /// 802.11n: HT mixed format, EDCA, A-MPDU.
    Dot11n(Band),
    /// 802.11ac: VHT at 5 GHz, EDCA, A-MPDU.
    Dot11ac,
}

/// A frequency band.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Band {
    /// 2.4 GHz: SIFS of 10 us and a signal extension of 6 us after each PPDU.
    Ghz2_4,
    /// 5 GHz.
    Ghz5,
}

/// A channel width.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Width {
    /// 20 MHz.
    Mhz20,
    /// 40 MHz.
    Mhz40,
    /// 80 MHz.
    Mhz80,
    /// 160 MHz.
    Mhz160,
}

/// The cyclic prefix of a data symbol.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum GuardInterval {
    /// 0.8 us: symbols of 4 us.
    Long,
    /// 0.4 us: symbols of 3.6 us.
    Short,
}

/// A modulation and coding scheme with its number of spatial streams.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Mcs {
    /// 802.11ac: 0 to 9. 802.11n: 0 to 7, counted within the streams (MCS 15 is index 7 with 2 streams).
    /// 802.11a/g: 0 to 7 for 6, 9, 12, 18, 24, 36, 48, 54 Mbit/s.
    pub index: u8,
    /// Spatial streams, 1 to 4; 1 with 802.11a/g.
    pub nss: u8,
}

impl Mcs {
    /// Index `index` with `nss` spatial streams.
    pub const fn new(index: u8, nss: u8) -> Mcs {
        Mcs { index, nss }
    }

    /// The 802.11a/g rate, if there is one of exactly `rate`.
    pub fn legacy(rate: Rate) -> Option<Mcs> {
        let found = OFDM.iter().position(|&(bits, coding)| {
            // 48 subcarriers, 250 000 symbols a second.
            rate.as_bps() * u64::from(coding.1) == 48 * bits * u64::from(coding.0) * 250_000
        })?;
        Some(Mcs::new(u8::try_from(found).expect("eight entries"), 1))
    }
}

impl Standard {
    /// Its name in messages.
    pub const fn name(self) -> &'static str {
        match self {
            Standard::Dot11a => "802.11a",
            Standard::Dot11g => "802.11g",
            Standard::Dot11n(Band::Ghz2_4) => "802.11n at 2.4 GHz",
            Standard::Dot11n(Band::Ghz5) => "802.11n at 5 GHz",
            Standard::Dot11ac => "802.11ac",
        }
    }

    /// True if data frames carry QoS control, contend by EDCA and may be aggregated.
    pub const fn is_qos(self) -> bool {
        matches!(self, Standard::Dot11n(_) | Standard::Dot11ac)
    }

    /// Where it works.
    pub const fn band(self) -> Band {
        match self {
            Standard::Dot11g => Band::Ghz2_4,
            Standard::Dot11n(band) => band,
            Standard::Dot11a | Standard::Dot11ac => Band::Ghz5,
        }
    }

    /// Largest A-MPDU (19.6 aPSDUMaxLength, maximum A-MPDU length exponents 3 and 7).
    pub const fn max_ampdu(self) -> Bytes {
        match self {
            Standard::Dot11ac => Bytes::new(1_048_575),
            _ => Bytes::new(65_535),
        }
    }
}

impl Width {
    /// In MHz.
    pub const fn mhz(self) -> u16 {
        match self {
            Width::Mhz20 => 20,
            Width::Mhz40 => 40,
            Width::Mhz80 => 80,
            Width::Mhz160 => 160,
        }
    }
}

/// Everything needed to tell how long a PPDU of one format and rate lasts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Mode {
    /// N_DBPS.
    bits_per_symbol: u64,
    /// N_ES.
    encoders: u64,
    preamble: Span,
    symbol: Span,
    /// Durations of data are rounded up to a multiple of this.
    grain: Span,
    extension: Span,
    rate: Rate,
    /// Non-HT reference rate as an index into `OFDM`.
    reference: usize,
}

/// Longest PPDU (aPPDUMaxTime of HT mixed format and VHT).
pub const MAX_PPDU: Span = Span::from_micros(5_484);

/// PSDU bits that the PHY adds in front: SERVICE.
const SERVICE_BITS: u64 = 16;
/// Tail bits per BCC encoder.
const TAIL_BITS: u64 = 6;
const LONG_SYMBOL: Span = Span::from_nanos(4_000);
const SHORT_SYMBOL: Span = Span::from_nanos(3_600);

/// Bits per subcarrier and coding rate of 6, 9, 12, 18, 24, 36, 48, 54 Mbit/s (table 17-4).
const OFDM: [(u64, (u32, u32)); 8] =
    [(1, (1, 2)), (1, (3, 4)), (2, (1, 2)), (2, (3, 4)), (4, (1, 2)), (4, (3, 4)), (6, (2, 3)), (6, (3, 4))];

/// Bits per subcarrier and coding rate of MCS 0 to 9 of one stream (tables 19-27 and 21-30), with the non-HT reference
/// rate as an index into `OFDM` (table 10-10).
const HT: [(u64, (u32, u32), usize); 10] = [
    (1, (1, 2), 0),
    (2, (1, 2), 2),
    (2, (3, 4), 3),
    (4, (1, 2), 4),
    (4, (3, 4), 5),
    (6, (2, 3), 6),
    (6, (3, 4), 7),
    (6, (5, 6), 7),
    (8, (3, 4), 7),
    (8, (5, 6), 7),
];

/// Mandatory OFDM rates as indices into `OFDM`, which are this model's BSSBasicRateSet: 6, 12 and 24 Mbit/s.
const BASIC: [usize; 3] = [0, 2, 4];

impl Mode {
    /// Non-HT OFDM in 20 MHz, at an index into the eight rates.
    fn ofdm(band: Band, index: usize) -> Mode {
        let (bits, coding) = OFDM[index];
        let bits_per_symbol = 48 * bits * u64::from(coding.0) / u64::from(coding.1);
        Mode {
            bits_per_symbol,
            encoders: 1,
            preamble: Span::from_micros(20),
            symbol: LONG_SYMBOL,
            grain: LONG_SYMBOL,
            extension: extension(band),
            rate: Rate::from_bps(bits_per_symbol * 250_000),
            reference: index,
        }
    }

    /// The lowest basic rate: group frames and beacons.
    pub fn lowest(standard: Standard) -> Mode {
        Mode::ofdm(standard.band(), BASIC[0])
    }

    /// Data frames. `None` if standard, width, guard interval and MCS do not go together.
    pub fn data(standard: Standard, width: Width, gi: GuardInterval, mcs: Mcs, profile: Profile) -> Option<Mode> {
        match standard {
            Standard::Dot11a | Standard::Dot11g => {
                let legal = mcs.index < 8 && mcs.nss == 1 && width == Width::Mhz20 && gi == GuardInterval::Long;
                legal.then(|| Mode::ofdm(standard.band(), usize::from(mcs.index)))
            }
            Standard::Dot11n(_) | Standard::Dot11ac => Mode::high_throughput(standard, width, gi, mcs, profile),
        }
    }

    fn high_throughput(
        standard: Standard,
        width: Width,
        gi: GuardInterval,
        mcs: Mcs,
        profile: Profile,
    ) -> Option<Mode> {
        let vht = standard == Standard::Dot11ac;
        let highest = if vht { 9 } else { 7 };
        if mcs.index > highest || !(1..=4).contains(&mcs.nss) || (!vht && width > Width::Mhz40) {
            return None;
        }
        let subcarriers = match width {
            Width::Mhz20 => 52,
            Width::Mhz40 => 108,
            Width::Mhz80 => 234,
            Width::Mhz160 => 468,
        };
        let (bits, coding, reference) = HT[usize::from(mcs.index)];
        let (numerator, denominator) = (u64::from(coding.0), u64::from(coding.1));
        let coded = subcarriers * bits * u64::from(mcs.nss);
        let encoders = if vht { vht_encoders(width, mcs, coded * numerator / denominator) } else { 1 };
        // 21.5: each encoder must get a whole number of coded blocks, or the combination is not in the tables.
        if coded % (encoders * denominator) != 0 {
            return None;
        }
        let bits_per_symbol = coded * numerator / denominator;
        // 19.3.11.4: HT splits the stream over two encoders above 300 Mbit/s.
        let encoders = if !vht && bits_per_symbol > 1_200 { 2 } else { encoders };
        let training = [1, 2, 4, 4][usize::from(mcs.nss) - 1];
        // L-STF, L-LTF, L-SIG 20; HT-SIG or VHT-SIG-A 8; STF 4; one LTF 4 each; VHT-SIG-B 4.
        let sig_b = if vht && profile == Profile::Standard { 4 } else { 0 };
        let symbol = if gi == GuardInterval::Short { SHORT_SYMBOL } else { LONG_SYMBOL };
        Some(Mode {
            bits_per_symbol,
            encoders,
            preamble: Span::from_micros(32 + 4 * training + sig_b),
            symbol,
            grain: if profile == Profile::Standard { LONG_SYMBOL } else { symbol },
            extension: extension(standard.band()),
            rate: Rate::from_bps(bits_per_symbol * 1_000_000_000 / symbol.as_nanos()),
            reference,
        })
    }

    /// Time on air of a PSDU of `len`.
    pub fn duration(&self, len: Bytes) -> Span {
        let symbols = (len.bits() + SERVICE_BITS + TAIL_BITS * self.encoders).div_ceil(self.bits_per_symbol);
        let data = (symbols * self.symbol.as_nanos()).next_multiple_of(self.grain.as_nanos());
        self.preamble + Span::from_nanos(data) + self.extension
    }

    /// The largest PSDU that lasts no longer than `limit`.
    pub fn longest(&self, limit: Span) -> Bytes {
        let data = limit.saturating_sub(self.preamble + self.extension).as_nanos();
        let symbols = data / self.grain.as_nanos() * self.grain.as_nanos() / self.symbol.as_nanos();
        Bytes::new((symbols * self.bits_per_symbol).saturating_sub(SERVICE_BITS + TAIL_BITS * self.encoders) / 8)
    }

    /// PHY rate.
    pub fn rate(&self) -> Rate {
        self.rate
    }

    /// Preamble and PHY header, before the first data symbol.
    pub fn preamble(&self) -> Span {
        self.preamble
    }

    /// The non-HT mode of Ack and BlockAck to a frame of this mode: the highest basic rate that is not above the
    /// frame's non-HT reference rate.
    pub fn response(&self, standard: Standard) -> Mode {
        let basic = BASIC.iter().rev().find(|&&basic| basic <= self.reference).copied();
        Mode::ofdm(standard.band(), basic.unwrap_or(BASIC[0]))
    }
}

/// BCC encoders of a VHT PPDU (21.5): one for each 540 Mbit/s begun at the long guard interval. Of the exceptions in the
/// tables one lies within four streams.
fn vht_encoders(width: Width, mcs: Mcs, bits_per_symbol: u64) -> u64 {
    match (width, mcs.nss, mcs.index) {
        (Width::Mhz160, 4, 7) => 6,
        _ => bits_per_symbol.div_ceil(2_160).max(1),
    }
}

/// Silence after each ERP and HT PPDU at 2.4 GHz, so that 802.11b timing holds (aSignalExtension).
fn extension(band: Band) -> Span {
    match band {
        Band::Ghz2_4 => Span::from_micros(6),
        Band::Ghz5 => Span::ZERO,
    }
}

#[cfg(test)]
#[path = "phy_tests.rs"]
mod tests;
