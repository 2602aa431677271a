//! What a PHY header says of a transmission, and the data rate that follows.
//! Source:     IEEE 802.11-2020: DSSS and CCK clauses 15 and 16, OFDM clause 17 (table 17-4), HT clause 19 (19.3.9, 19.5),
//!             VHT clause 21 (21.3.8, 21.5); IEEE 802.11ax-2021: HE clause 27 (27.3.11, 27.5); IEEE 802.11be-2024: EHT clause 36.
//! Equations:  N_CBPS = N_SD * N_BPSCS * N_SS;  N_DBPS = floor(N_CBPS * R);  rate = N_DBPS / T_SYM
//! Symbols:    N_SD -> `data_subcarriers`, N_BPSCS and R -> `modulation`, N_SS -> `nss`, N_CBPS ->
//!             `coded_bits_per_symbol`, N_DBPS -> `bits_per_symbol`, T_SYM -> `symbol`
//! Deviations: HE and EHT only as one user over the whole channel, without dual carrier modulation; HT without MCS 32 and
//!             unequal modulation.
//! Validity:   HT to 4 streams, VHT, HE and EHT to 8; combinations that the standard leaves out have no rate.
//! Checked by: tests::* (the standard's tables)

use lasthop_units::{Rate, Span};
use std::fmt;

#[cfg(test)]
mod tests;

/// How a PPDU is sent: what its receiver learns from the PHY header.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct TxVector {
    /// Kind of PPDU.
    pub format: Format,
    /// Modulation and coding, counted within the streams: DSSS 0 to 3 (1, 2, 5.5, 11 Mbit/s), non-HT 0 to 7 (6 to
    /// 54 Mbit/s), HT 0 to 7 (MCS 15 is index 7 with 2 streams), VHT 0 to 9, HE 0 to 11, EHT 0 to 13.
    pub mcs: u8,
    /// Spatial streams; 1 with DSSS and non-HT.
    pub nss: u8,
    /// Channel width. A non-HT PPDU wider than 20 MHz is a duplicate in each 20 MHz.
    pub width: Width,
    /// Cyclic prefix of a data symbol; [`GuardInterval::Ns800`] with DSSS (which has none) and non-HT.
    pub guard_interval: GuardInterval,
}

/// The kind of a PPDU.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Format {
    /// 802.11b: DSSS and CCK.
    Dsss,
    /// 802.11a and g: OFDM.
    NonHt,
    /// 802.11n, mixed format.
    Ht,
    /// 802.11ac.
    Vht,
    /// 802.11ax, one user.
    He,
    /// 802.11be, one user: in captures; the simulated radio has no such standard.
    Eht,
}

/// A channel width.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Width {
    /// 20 MHz.
    Mhz20,
    /// 40 MHz.
    Mhz40,
    /// 80 MHz.
    Mhz80,
    /// 160 MHz, in one piece or in two.
    Mhz160,
    /// 320 MHz: EHT only.
    Mhz320,
}

/// The cyclic prefix of a data symbol.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum GuardInterval {
    /// 0.4 us: the short one of HT and VHT.
    Ns400,
    /// 0.8 us: the only one of non-HT, the long one of HT and VHT, the shortest of HE and EHT.
    Ns800,
    /// 1.6 us: HE and EHT only.
    Ns1600,
    /// 3.2 us: HE and EHT only.
    Ns3200,
}

/// Bits a subcarrier carries, and the code's rate as a fraction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Modulation {
    /// N_BPSCS.
    pub bits: u64,
    /// Numerator of R.
    pub data: u64,
    /// Denominator of R.
    pub coded: u64,
}

impl TxVector {
    /// The non-HT vector of exactly `rate`, DSSS included; `None` if there is no such rate.
    pub fn legacy(rate: Rate) -> Option<TxVector> {
        let vector = |format, at: usize| TxVector {
            format,
            mcs: u8::try_from(at).expect("a short table"),
            nss: 1,
            width: Width::Mhz20,
            guard_interval: GuardInterval::Ns800,
        };
        if let Some(at) = DSSS_KBPS.iter().position(|&kbps| kbps * 1_000 == rate.as_bps()) {
            return Some(vector(Format::Dsss, at));
        }
        let is = |at: &usize| vector(Format::NonHt, *at).rate() == Some(rate);
        (0..OFDM.len()).find(is).map(|at| vector(Format::NonHt, at))
    }

    /// Data rate of the PSDU, rounded down to a bit a second; `None` if the standard has no such combination.
    pub fn rate(&self) -> Option<Rate> {
        if self.format == Format::Dsss {
            let plain = self.nss == 1 && self.width == Width::Mhz20 && self.guard_interval == GuardInterval::Ns800;
            let kbps = DSSS_KBPS.get(usize::from(self.mcs)).filter(|_| plain)?;
            return Some(Rate::from_bps(kbps * 1_000));
        }
        Some(Rate::from_bps(self.bits_per_symbol()? * 1_000_000_000 / self.symbol()?.as_nanos()))
    }

    /// N_DBPS: data bits in an OFDM symbol; `None` for DSSS and where the standard has no such combination.
    pub fn bits_per_symbol(&self) -> Option<u64> {
        let Modulation { data, coded, .. } = self.modulation()?;
        Some(self.coded_bits_per_symbol()? * data / coded)
    }

    /// N_CBPS: coded bits in an OFDM symbol; `None` as for [`TxVector::bits_per_symbol`].
    pub fn coded_bits_per_symbol(&self) -> Option<u64> {
        if !self.is_legal() {
            return None;
        }
        Some(self.data_subcarriers()? * self.modulation()?.bits * u64::from(self.nss))
    }

    /// Duration of a data symbol with its guard interval; `None` for DSSS.
    pub fn symbol(&self) -> Option<Span> {
        let bare = match self.format {
            Format::Dsss => return None,
            Format::NonHt | Format::Ht | Format::Vht => Span::from_nanos(3_200),
            Format::He | Format::Eht => Span::from_nanos(12_800),
        };
        Some(bare + self.guard_interval.span())
    }

    /// N_BPSCS and R; `None` for DSSS and an index beyond the table.
    pub fn modulation(&self) -> Option<Modulation> {
        let table: &[Modulation] = match self.format {
            Format::Dsss => &[],
            Format::NonHt => &OFDM,
            Format::Ht => &MCS[..8],
            Format::Vht => &MCS[..10],
            Format::He => &MCS[..12],
            Format::Eht => &MCS,
        };
        table.get(usize::from(self.mcs)).copied()
    }

    /// N_SD: data subcarriers of the whole channel; `None` for DSSS and channels wider than the format's.
    pub fn data_subcarriers(&self) -> Option<u64> {
        let of = |by_width: &[u64]| by_width.get(self.width as usize).copied();
        match self.format {
            Format::Dsss => None,
            Format::NonHt => Some(48),
            Format::Ht => of(&[52, 108]),
            Format::Vht => of(&[52, 108, 234, 468]),
            Format::He => of(&[234, 468, 980, 1_960]),
            Format::Eht => of(&[234, 468, 980, 1_960, 3_920]),
        }
    }

    /// Preamble and PHY header, before the first data symbol: DSSS with the long preamble, HT mixed format, HE and EHT
    /// as a PPDU to one user with training symbols of the usual size for the guard interval (2x, and 4x with 3.2 us).
    pub fn preamble(&self) -> Span {
        let streams = usize::from(self.nss.clamp(1, 8)) - 1;
        // Tables 19-13 and 21-13: long training fields by space-time streams.
        let fields = [1, 2, 4, 4, 6, 6, 8, 8][streams];
        match self.format {
            Format::Dsss => Span::from_micros(192),
            Format::NonHt => Span::from_micros(20),
            // L-STF, L-LTF, L-SIG 20; HT-SIG 8; HT-STF 4; 4 each HT-LTF.
            Format::Ht => Span::from_micros(32 + 4 * fields),
            // As HT, and VHT-SIG-B 4.
            Format::Vht => Span::from_micros(36 + 4 * fields),
            // L-STF, L-LTF, L-SIG 20; RL-SIG 4; HE-SIG-A 8; HE-STF 4.
            Format::He => Span::from_micros(36) + (self.training_symbol() + self.guard_interval.span()) * fields,
            // As HE, with U-SIG of 8 for HE-SIG-A, and EHT-SIG of two symbols at its lowest rate.
            Format::Eht => Span::from_micros(44) + (self.training_symbol() + self.guard_interval.span()) * fields,
        }
    }

    /// An HE-LTF or EHT-LTF without its guard interval.
    fn training_symbol(&self) -> Span {
        if self.guard_interval == GuardInterval::Ns3200 { Span::from_nanos(12_800) } else { Span::from_nanos(6_400) }
    }

    /// True if the standard has this combination.
    fn is_legal(&self) -> bool {
        let (gi, streams) = (self.guard_interval, self.nss);
        let short = matches!(gi, GuardInterval::Ns400 | GuardInterval::Ns800);
        match self.format {
            Format::Dsss => false,
            Format::NonHt => gi == GuardInterval::Ns800 && streams == 1,
            Format::Ht => short && (1..=4).contains(&streams),
            Format::Vht => short && (1..=8).contains(&streams) && !self.is_left_out(),
            Format::He | Format::Eht => gi != GuardInterval::Ns400 && (1..=8).contains(&streams),
        }
    }

    /// Combinations of MCS, streams and width in which the BCC encoders of VHT would not get whole blocks (21.5).
    fn is_left_out(&self) -> bool {
        match (self.width, self.mcs) {
            (Width::Mhz20, 9) => !matches!(self.nss, 3 | 6),
            (Width::Mhz80, 6) => matches!(self.nss, 3 | 7),
            (Width::Mhz80, 9) => self.nss == 6,
            (Width::Mhz160, 9) => self.nss == 3,
            _ => false,
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
            Width::Mhz320 => 320,
        }
    }
}

impl GuardInterval {
    /// How long it is.
    pub const fn span(self) -> Span {
        Span::from_nanos(match self {
            GuardInterval::Ns400 => 400,
            GuardInterval::Ns800 => 800,
            GuardInterval::Ns1600 => 1_600,
            GuardInterval::Ns3200 => 3_200,
        })
    }
}

impl fmt::Display for TxVector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self.format {
            Format::Dsss | Format::NonHt => {
                let kind = if self.format == Format::Dsss { "DSSS" } else { "OFDM" };
                return match self.rate() {
                    Some(rate) => write!(f, "{kind} {rate}"),
                    None => write!(f, "{kind} with rate index {}", self.mcs),
                };
            }
            Format::Ht => "HT",
            Format::Vht => "VHT",
            Format::He => "HE",
            Format::Eht => "EHT",
        };
        let (mcs, nss, mhz) = (self.mcs, self.nss, self.width.mhz());
        write!(f, "{name} MCS {mcs} NSS {nss} {mhz} MHz GI {}", self.guard_interval.span())
    }
}

/// DSSS and CCK rates.
const DSSS_KBPS: [u64; 4] = [1_000, 2_000, 5_500, 11_000];

const fn modulation(bits: u64, data: u64, coded: u64) -> Modulation {
    Modulation { bits, data, coded }
}

/// 6, 9, 12, 18, 24, 36, 48, 54 Mbit/s (table 17-4).
const OFDM: [Modulation; 8] = [
    modulation(1, 1, 2),
    modulation(1, 3, 4),
    modulation(2, 1, 2),
    modulation(2, 3, 4),
    modulation(4, 1, 2),
    modulation(4, 3, 4),
    modulation(6, 2, 3),
    modulation(6, 3, 4),
];

/// MCS 0 to 13 of one stream (tables 19-27, 21-30, 27-55 and 36-71): HT has the first eight, VHT the first ten, HE the first twelve.
const MCS: [Modulation; 14] = [
    modulation(1, 1, 2),
    modulation(2, 1, 2),
    modulation(2, 3, 4),
    modulation(4, 1, 2),
    modulation(4, 3, 4),
    modulation(6, 2, 3),
    modulation(6, 3, 4),
    modulation(6, 5, 6),
    modulation(8, 3, 4),
    modulation(8, 5, 6),
    modulation(10, 3, 4),
    modulation(10, 5, 6),
    modulation(12, 3, 4),
    modulation(12, 5, 6),
];
