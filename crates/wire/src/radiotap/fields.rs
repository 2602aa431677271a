//! The fields of a radiotap header that have an inside.

use crate::take;

/// Bit 1: properties of the frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Flags(pub u8);

/// Bit 3: the channel.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Channel {
    /// Centre of the primary 20 MHz.
    pub mhz: u16,
    /// Band and modulation.
    pub flags: u16,
}

/// Bit 19: HT modulation and coding.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Mcs {
    /// Which of the following the radio knows.
    pub known: u8,
    /// Bandwidth, guard interval, format, coding.
    pub flags: u8,
    /// 0 to 76; streams included.
    pub index: u8,
}

/// Bit 20: the A-MPDU that a frame came in.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Ampdu {
    /// Equal in all MPDUs of an A-MPDU.
    pub reference: u32,
    /// What is known of the subframe.
    pub flags: u16,
    /// Check sequence of the delimiter, if the flags say that it is known.
    pub delimiter_crc: u8,
}

/// Bit 21: VHT modulation and coding.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Vht {
    /// Which of the following the radio knows.
    pub known: u16,
    /// STBC, guard interval, beamforming.
    pub flags: u8,
    /// Code of the bandwidth: 0, 1, 4 and 11 are 20, 40, 80 and 160 MHz; others are parts of these.
    pub bandwidth: u8,
    /// Per user: MCS in the upper half, streams in the lower; no streams means no such user.
    pub mcs_nss: [u8; 4],
    /// Per user, one bit each: LDPC.
    pub coding: u8,
    /// Group identifier of a multi-user PPDU.
    pub group: u8,
    /// Partial association identifier.
    pub partial_aid: u16,
}

/// Bit 22: a time stamp with its unit and meaning.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Timestamp {
    /// In the unit that `unit_position` names.
    pub time: u64,
    /// 0 if not known.
    pub accuracy: u16,
    /// Unit (lower half: 0 ms, 1 us, 3 ns) and the place in the frame that is meant (upper half).
    pub unit_position: u8,
    /// 32-bit counter, accuracy known.
    pub flags: u8,
}

/// Bit 23: HE modulation and coding, as six words.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct He {
    /// data1 to data6.
    pub data: [u16; 6],
}

impl Flags {
    /// The frame ends with its check sequence.
    pub const FCS: Flags = Flags(0x10);
    /// Header and body are padded apart to a multiple of four octets.
    pub const DATA_PAD: Flags = Flags(0x20);
    /// The check sequence was wrong.
    pub const BAD_FCS: Flags = Flags(0x40);

    /// True if all of `other` is set.
    pub const fn has(self, other: Flags) -> bool {
        self.0 & other.0 == other.0
    }
}

impl Channel {
    /// 2.4 GHz.
    pub const GHZ2: u16 = 0x0080;
    /// 5 GHz.
    pub const GHZ5: u16 = 0x0100;
    /// OFDM.
    pub const OFDM: u16 = 0x0040;

    pub(super) fn read(field: &[u8]) -> Option<Channel> {
        let mhz = take(field, 0).map(u16::from_le_bytes)?;
        take(field, 2).map(u16::from_le_bytes).map(|flags| Channel { mhz, flags })
    }
}

impl Mcs {
    pub(super) fn read(field: &[u8]) -> Option<Mcs> {
        take(field, 0).map(|[known, flags, index]| Mcs { known, flags, index })
    }
}

impl Ampdu {
    /// The driver reports zero-length subframes.
    pub const REPORTS_ZERO_LENGTH: u16 = 0x01;
    /// The subframe is of zero length: padding, not an MPDU.
    pub const ZERO_LENGTH: u16 = 0x02;
    /// The driver knows which subframe is the last.
    pub const LAST_KNOWN: u16 = 0x04;
    /// This is the last subframe.
    pub const LAST: u16 = 0x08;
    /// The delimiter's check sequence was wrong.
    pub const DELIMITER_CRC_ERROR: u16 = 0x10;
    /// `delimiter_crc` is known.
    pub const DELIMITER_CRC_KNOWN: u16 = 0x20;

    /// Whether this is the A-MPDU's last subframe; `None` if the driver does not know.
    pub const fn last(&self) -> Option<bool> {
        if self.flags & (Ampdu::LAST_KNOWN | Ampdu::LAST) == 0 { None } else { Some(self.flags & Ampdu::LAST != 0) }
    }

    pub(super) fn read(field: &[u8]) -> Option<Ampdu> {
        let reference = take(field, 0).map(u32::from_le_bytes)?;
        let flags = take(field, 4).map(u16::from_le_bytes)?;
        field.get(6).map(|&delimiter_crc| Ampdu { reference, flags, delimiter_crc })
    }
}

impl Vht {
    pub(super) fn read(field: &[u8]) -> Option<Vht> {
        let known = take(field, 0).map(u16::from_le_bytes)?;
        let [flags, bandwidth] = take(field, 2)?;
        let mcs_nss = take(field, 4)?;
        let [coding, group] = take(field, 8)?;
        let partial_aid = take(field, 10).map(u16::from_le_bytes)?;
        Some(Vht { known, flags, bandwidth, mcs_nss, coding, group, partial_aid })
    }
}

impl Timestamp {
    pub(super) fn read(field: &[u8]) -> Option<Timestamp> {
        let time = take(field, 0).map(u64::from_le_bytes)?;
        let accuracy = take(field, 8).map(u16::from_le_bytes)?;
        take(field, 10).map(|[unit_position, flags]| Timestamp { time, accuracy, unit_position, flags })
    }
}

impl He {
    pub(super) fn read(field: &[u8]) -> Option<He> {
        let mut data = [0; 6];
        for (at, word) in data.iter_mut().enumerate() {
            *word = take(field, 2 * at).map(u16::from_le_bytes)?;
        }
        Some(He { data })
    }
}
