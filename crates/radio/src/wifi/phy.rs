//! Rates and durations of 802.11 PPDUs.
//! Source:     IEEE 802.11-2020: DSSS clause 15, HR/DSSS clause 16 (16.2), OFDM clause 17, ERP clause 18, HT
//!             clause 19 (19.3.9, 19.4.3), VHT clause 21 (21.3.8, 21.4.3, 21.5); IEEE 802.11ax-2021: HE clause 27
//!             (27.3.11, 27.4.3); non-HT reference rate table 10-10; response rate 10.6.6.5. Modulations, rates and
//!             preambles: [`lasthop_signals::phy`].
//! Equations:  symbols = ceil((8 * PSDU + 16 + tail) / N_DBPS);
//!             duration = preamble + symbols * symbol time + signal extension, with the data of non-HT, HT and VHT PPDUs
//!             rounded up to 4 us;   DSSS and CCK: duration = preamble + 8 * PSDU / rate, rounded up to 1 us
//! Symbols:    N_DBPS -> `bits_per_symbol`, tail -> `tail_bits`
//! Deviations: BCC for non-HT, HT and VHT (LDPC has no tail bits: at most one symbol less), LDPC without an extra symbol
//!             segment for HE; no STBC; up to four spatial streams; HE SU PPDUs without packet extension (devices that
//!             ask for 8 or 16 us of it get that much less). DSSS and CCK with the long preamble only.
//!             `Profile::Ns3_3_37` leaves out VHT-SIG-B and the rounding of short-GI symbols to 4 us.
//! Validity:   PSDU up to the duration limit of 5.484 ms; DSSS and CCK: up to 4095 octets.
//! Checked by: tests::* (published rates and durations)

use lasthop_signals::phy::{Format, TxVector};
pub use lasthop_signals::phy::{GuardInterval, Width};
use lasthop_units::{Bytes, Rate, Span};

/// What the model agrees with where the standard and a reference differ.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Profile {
    /// IEEE 802.11-2020, with the EDCA parameters that it gives access points and stations by default.
    #[default]
    Standard,
    /// ns-3 3.37, for validation against its results only: VHT preamble without VHT-SIG-B; short-GI durations not
    /// rounded up to 4 us; the AIFS begins anew when an answer has not come; an EDCA backoff that counts down without a
    /// frame loses a slot when one comes; a frame is sensed 4 us after it began; no EIFS after what is sensed and cannot be decoded; what
    /// RTS announces is given up after 4 failed attempts, of which an RTS without an answer is none, and the NAV of an RTS lasts if
    /// a PHY header comes in after it; access points contend with the stations' EDCA parameters; beacons (with EDCA
    /// all of AC_VO) have AIFSN 1 and no backoff, and like a DCF wait their interframe space from the moment a frame
    /// comes to an idle medium; no EIFS where frames begin together; every node has its frames MPDU by MPDU
    /// ([`super::NodeParams::mpdu_by_mpdu`]).
    Ns3_3_37,
}

/// A node's physical layer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Phy {
    /// Amendment; of the hop's band.
    pub standard: Standard,
    /// Channel width of data PPDUs.
    pub width: Width,
    /// Guard interval of data PPDUs.
    pub guard_interval: GuardInterval,
}

/// A physical layer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Standard {
    /// 802.11a: OFDM at 5 GHz, DCF.
    Dot11a,
    /// 802.11g: ERP-OFDM at 2.4 GHz with the short slot, without protection of 802.11b stations, DCF.
    Dot11g,
    /// 802.11g with all rates of an ERP: DSSS and CCK (1, 2, 5.5, 11 Mbit/s, long preamble) beside ERP-OFDM. No station is
    /// of 802.11b: the slot is short, and there is no protection.
    Dot11gErp,
    /// 802.11n: HT mixed format, EDCA, A-MPDU.
    Dot11n(Band),
    /// 802.11ac: VHT at 5 GHz, EDCA, A-MPDU.
    Dot11ac,
    /// 802.11ax: HE SU, EDCA, A-MPDU.
    Dot11ax(Band),
}

/// A frequency band.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Band {
    /// 2.4 GHz: SIFS of 10 us and a signal extension of 6 us after each PPDU.
    Ghz2_4,
    /// 5 GHz.
    Ghz5,
}

/// A modulation and coding scheme with its number of spatial streams.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Mcs {
    /// 802.11ax: 0 to 11. 802.11ac: 0 to 9. 802.11n: 0 to 7, counted within the streams (MCS 15 is index 7 with 2
    /// streams). 802.11a/g: 0 to 7 for 6, 9, 12, 18, 24, 36, 48, 54 Mbit/s, and with the DSSS rates of 802.11g 8 to 11
    /// for 1, 2, 5.5, 11 Mbit/s.
    pub index: u8,
    /// Spatial streams, 1 to 4; 1 with 802.11a/g.
    pub nss: u8,
}

impl Mcs {
    /// Index `index` with `nss` spatial streams.
    pub const fn new(index: u8, nss: u8) -> Mcs {
        Mcs { index, nss }
    }

    /// The 802.11a/g rate, if there is one of exactly `rate`; DSSS and CCK rates are of [`Standard::Dot11gErp`] only.
    pub fn legacy(rate: Rate) -> Option<Mcs> {
        let vector = TxVector::legacy(rate)?;
        Some(Mcs::new(if vector.format == Format::Dsss { FIRST_DSSS + vector.mcs } else { vector.mcs }, 1))
    }
}

/// [`Mcs::index`] of the slowest DSSS rate.
const FIRST_DSSS: u8 = 8;

/// Most spatial streams that are modelled.
pub const MAX_STREAMS: u8 = 4;

impl Standard {
    /// Its name in messages.
    pub const fn name(self) -> &'static str {
        match self {
            Standard::Dot11a => "802.11a",
            Standard::Dot11g => "802.11g",
            Standard::Dot11gErp => "802.11g with DSSS rates",
            Standard::Dot11n(Band::Ghz2_4) => "802.11n at 2.4 GHz",
            Standard::Dot11n(Band::Ghz5) => "802.11n at 5 GHz",
            Standard::Dot11ac => "802.11ac",
            Standard::Dot11ax(Band::Ghz2_4) => "802.11ax at 2.4 GHz",
            Standard::Dot11ax(Band::Ghz5) => "802.11ax at 5 GHz",
        }
    }

    /// True if data frames carry QoS control, contend by EDCA and may be aggregated.
    pub const fn is_qos(self) -> bool {
        !matches!(self, Standard::Dot11a | Standard::Dot11g | Standard::Dot11gErp)
    }

    /// Where it works.
    pub const fn band(self) -> Band {
        match self {
            Standard::Dot11g | Standard::Dot11gErp => Band::Ghz2_4,
            Standard::Dot11n(band) | Standard::Dot11ax(band) => band,
            Standard::Dot11a | Standard::Dot11ac => Band::Ghz5,
        }
    }

    /// The latest format of its data PPDUs. A station decodes its own format and those before it in this order; of a later one
    /// it decodes the L-SIG field only.
    pub const fn format(self) -> Format {
        match self {
            Standard::Dot11a | Standard::Dot11g | Standard::Dot11gErp => Format::NonHt,
            Standard::Dot11n(_) => Format::Ht,
            Standard::Dot11ac => Format::Vht,
            Standard::Dot11ax(_) => Format::He,
        }
    }

    /// Largest A-MPDU (19.6 aPSDUMaxLength; maximum A-MPDU length exponents 3 and 7; 27.5 aPSDUMaxLength).
    pub const fn max_ampdu(self) -> Bytes {
        match self {
            Standard::Dot11ax(_) => Bytes::new(6_500_631),
            Standard::Dot11ac => Bytes::new(1_048_575),
            _ => Bytes::new(65_535),
        }
    }

    /// Most MPDUs in an A-MPDU: the longest bitmap that its BlockAcks may have.
    pub const fn max_ampdu_mpdus(self) -> u16 {
        match self {
            Standard::Dot11ax(_) => 256,
            _ => 64,
        }
    }

    /// Its widest channel in its band.
    pub const fn widest(self) -> Width {
        match self {
            Standard::Dot11a | Standard::Dot11g | Standard::Dot11gErp => Width::Mhz20,
            Standard::Dot11n(_) | Standard::Dot11ax(Band::Ghz2_4) => Width::Mhz40,
            Standard::Dot11ac | Standard::Dot11ax(Band::Ghz5) => Width::Mhz160,
        }
    }

    /// True if it has this guard interval.
    pub const fn has_guard_interval(self, interval: GuardInterval) -> bool {
        match self {
            Standard::Dot11a | Standard::Dot11g | Standard::Dot11gErp => matches!(interval, GuardInterval::Ns800),
            Standard::Dot11n(_) | Standard::Dot11ac => {
                matches!(interval, GuardInterval::Ns400 | GuardInterval::Ns800)
            }
            Standard::Dot11ax(_) => !matches!(interval, GuardInterval::Ns400),
        }
    }
}

/// Everything needed to tell how long a PPDU of one format and rate lasts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Mode {
    vector: TxVector,
    /// N_DBPS; zero with DSSS.
    bits_per_symbol: u64,
    tail_bits: u64,
    preamble: Span,
    symbol: Span,
    /// Durations of data are rounded up to a multiple of this.
    grain: Span,
    extension: Span,
    rate: Rate,
}

/// Longest PPDU (aPPDUMaxTime of HT mixed format, VHT and HE SU).
pub const MAX_PPDU: Span = Span::from_micros(5_484);

/// PSDU bits that the PHY adds in front: SERVICE.
const SERVICE_BITS: u64 = 16;
/// Tail bits per BCC encoder.
const TAIL_BITS: u64 = 6;
/// The symbol that legacy stations count a PPDU's duration in (L-SIG).
const LONG_SYMBOL: Span = Span::from_nanos(4_000);

/// Non-HT reference rates of MCS 0 to 11 as indices into the eight OFDM rates (table 10-10).
const REFERENCE: [u8; 12] = [0, 2, 3, 4, 5, 6, 7, 7, 7, 7, 7, 7];

/// Mandatory OFDM rates as indices into the eight, which are this model's BSSBasicRateSet: 6, 12 and 24 Mbit/s. An ERP
/// with DSSS rates has those besides: all four are mandatory for it (18.1.2).
const BASIC: [u8; 3] = [0, 2, 4];
/// As [`BASIC`], for `Profile::Ns3_3_37`: DSSS rates as indices into the four. ns-3's access points leave CCK out.
const BASIC_DSSS_NS3: u8 = 1;

/// aPSDUMaxLength of DSSS and HR/DSSS (table 16-4).
const MAX_DSSS_PSDU: Bytes = Bytes::new(4_095);
/// The unit in which DSSS headers tell a duration (LENGTH, 16.2.3).
const DSSS_GRAIN: Span = Span::from_micros(1);

impl Mode {
    /// A mode of `vector`; `None` if the standard has no such combination.
    fn new(vector: TxVector, band: Band, tail_bits: u64) -> Option<Mode> {
        let symbol = vector.symbol()?;
        Some(Mode {
            vector,
            bits_per_symbol: vector.bits_per_symbol()?,
            tail_bits,
            preamble: vector.preamble(),
            symbol,
            grain: if vector.format == Format::He { symbol } else { LONG_SYMBOL },
            extension: extension(band),
            rate: vector.rate()?,
        })
    }

    /// Non-HT OFDM in 20 MHz, at an index into the eight rates.
    fn ofdm(band: Band, mcs: u8) -> Mode {
        let (width, guard_interval) = (Width::Mhz20, GuardInterval::Ns800);
        let vector = TxVector { format: Format::NonHt, mcs, nss: 1, width, guard_interval };
        Mode::new(vector, band, TAIL_BITS).expect("one of the eight rates")
    }

    /// DSSS or CCK with the long preamble, at an index into the four rates; `None` beyond them.
    fn dsss(mcs: u8) -> Option<Mode> {
        let (width, guard_interval) = (Width::Mhz20, GuardInterval::Ns800);
        let vector = TxVector { format: Format::Dsss, mcs, nss: 1, width, guard_interval };
        Some(Mode {
            vector,
            bits_per_symbol: 0,
            tail_bits: 0,
            preamble: vector.preamble(),
            symbol: DSSS_GRAIN,
            grain: DSSS_GRAIN,
            extension: Span::ZERO,
            rate: vector.rate()?,
        })
    }

    /// The lowest basic rate: group frames and beacons.
    pub fn lowest(standard: Standard) -> Mode {
        match standard {
            Standard::Dot11gErp => Mode::dsss(0).expect("one of the four rates"),
            _ => Mode::ofdm(standard.band(), BASIC[0]),
        }
    }

    /// Data frames. `None` if standard, width, guard interval and MCS do not go together.
    pub fn data(standard: Standard, width: Width, gi: GuardInterval, mcs: Mcs, profile: Profile) -> Option<Mode> {
        if mcs.nss > MAX_STREAMS || width > standard.widest() {
            return None;
        }
        if standard == Standard::Dot11gErp && mcs.index >= FIRST_DSSS {
            return Mode::dsss(mcs.index - FIRST_DSSS).filter(|_| mcs.nss == 1 && standard.has_guard_interval(gi));
        }
        let format = standard.format();
        let vector = TxVector { format, mcs: mcs.index, nss: mcs.nss, width, guard_interval: gi };
        let tail_bits = TAIL_BITS * encoders(&vector)?;
        let mut mode = Mode::new(vector, standard.band(), tail_bits)?;
        if profile == Profile::Ns3_3_37 && format != Format::He {
            mode.grain = mode.symbol;
            if format == Format::Vht {
                mode.preamble = mode.preamble.saturating_sub(VHT_SIG_B);
            }
        }
        Some(mode)
    }

    /// Time on air of a PSDU of `len`.
    pub fn duration(&self, len: Bytes) -> Span {
        if self.vector.format == Format::Dsss {
            let data = self.rate.time_for(len).unwrap_or(Span::ZERO).as_nanos();
            return self.preamble + Span::from_nanos(data.next_multiple_of(self.grain.as_nanos()));
        }
        let symbols = (len.bits() + SERVICE_BITS + self.tail_bits).div_ceil(self.bits_per_symbol);
        let data = (symbols * self.symbol.as_nanos()).next_multiple_of(self.grain.as_nanos());
        self.preamble + Span::from_nanos(data) + self.extension
    }

    /// The largest PSDU within the limits of its format.
    pub fn max_psdu(&self) -> Bytes {
        if self.vector.format == Format::Dsss { MAX_DSSS_PSDU } else { self.longest(MAX_PPDU) }
    }

    /// The largest PSDU that lasts no longer than `limit`.
    pub fn longest(&self, limit: Span) -> Bytes {
        if self.vector.format == Format::Dsss {
            let whole = limit.saturating_sub(self.preamble).as_nanos() / self.grain.as_nanos();
            return self.rate.bytes_in(self.grain * whole).min(MAX_DSSS_PSDU);
        }
        let data = limit.saturating_sub(self.preamble + self.extension).as_nanos();
        let symbols = data / self.grain.as_nanos() * self.grain.as_nanos() / self.symbol.as_nanos();
        Bytes::new((symbols * self.bits_per_symbol).saturating_sub(SERVICE_BITS + self.tail_bits) / 8)
    }

    /// PHY rate.
    pub fn rate(&self) -> Rate {
        self.rate
    }

    /// What its PHY header says.
    pub fn vector(&self) -> TxVector {
        self.vector
    }

    /// Preamble and PHY header, before the first data symbol.
    pub fn preamble(&self) -> Span {
        self.preamble
    }

    /// The non-HT or DSSS mode of Ack and BlockAck to a frame of this mode: the highest basic rate of its modulation class
    /// that is not above the frame's non-HT reference rate.
    pub fn response(&self, standard: Standard, profile: Profile) -> Mode {
        let index = self.vector.mcs;
        if self.vector.format == Format::Dsss {
            let basic = if profile == Profile::Ns3_3_37 { index.min(BASIC_DSSS_NS3) } else { index };
            return Mode::dsss(basic).expect("one of the four rates");
        }
        let reference = if self.vector.format == Format::NonHt { index } else { REFERENCE[usize::from(index)] };
        let basic = BASIC.iter().rev().find(|&&basic| basic <= reference).copied();
        Mode::ofdm(standard.band(), basic.unwrap_or(BASIC[0]))
    }
}

/// VHT-SIG-B, which ns-3 3.37 leaves out.
const VHT_SIG_B: Span = Span::from_micros(4);

/// BCC encoders, 0 with LDPC; `None` if there is no such combination.
/// HT: two above 300 Mbit/s (19.3.11.4). VHT: one for each 540 Mbit/s begun at the long guard interval (21.5); of the
/// exceptions in the tables one lies within four streams.
fn encoders(vector: &TxVector) -> Option<u64> {
    let bits_per_symbol = vector.bits_per_symbol()?;
    Some(match (vector.format, vector.width, vector.nss, vector.mcs) {
        (Format::Ht, ..) => 1 + u64::from(bits_per_symbol > 1_200),
        (Format::Vht, Width::Mhz160, 4, 7) => 6,
        (Format::Vht, ..) => bits_per_symbol.div_ceil(2_160),
        (Format::He | Format::Eht, ..) => 0,
        (Format::NonHt | Format::Dsss, ..) => 1,
    })
}

/// Silence after each ERP, HT and HE PPDU at 2.4 GHz, so that 802.11b timing holds (aSignalExtension).
fn extension(band: Band) -> Span {
    match band {
        Band::Ghz2_4 => Span::from_micros(6),
        Band::Ghz5 => Span::ZERO,
    }
}

#[cfg(test)]
#[path = "phy_tests.rs"]
mod tests;
