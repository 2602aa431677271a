//! 802.11be: U-SIG and EHT, which come in type-length-value form behind all other fields.
//! Source:     radiotap.org (TLV, U-SIG, EHT); Linux `ieee80211_radiotap.h` for the bits.
//! Deviations: the number of streams is read as EHT-SIG codes it, one less, as Intel's and Qualcomm's drivers fill it in; Realtek's
//!             writes the number itself, and appears with one stream more than it has.

use super::rate::{guard_code, long_guard};
use super::{Radiotap, word};
use crate::{Error, take};
use lasthop_signals::phy::{Format, TxVector, Width};

/// Type 33: the universal signal field, which 802.11be and what follows it begin with.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Usig {
    /// Bandwidth, direction, BSS colour, TXOP, and which of them the radio knows.
    pub common: u32,
    /// Fields that depend on the PHY's version.
    pub value: u32,
    /// Which bits of `value` are known.
    pub mask: u32,
}

/// Type 34: EHT modulation and coding.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Eht {
    /// Which of the following the radio knows.
    pub known: u32,
    /// Words 0 to 8: guard interval, lengths and places of units, users.
    pub data: [u32; 9],
    /// The user that the frame was for, or the first one: MCS, streams, coding, and which of them are known. 0: no user is told.
    pub user: u32,
}

impl Radiotap {
    /// Reads what is in type-length-value form, from octet `at` of the header to its end.
    ///
    /// # Errors
    /// [`Error::Length`] if one reaches beyond the header.
    pub(super) fn read_values(&mut self, header: &[u8], at: usize) -> Result<(), Error> {
        let mut at = at.next_multiple_of(ALIGNMENT);
        while let (Some(kind), Some(len)) = (take(header, at), take(header, at + 2)) {
            let (kind, len) = (u16::from_le_bytes(kind), usize::from(u16::from_le_bytes(len)));
            let start = at + 4;
            let short = Error::Length { field: "radiotap it_len", value: header.len() };
            let value = header.get(start..start + len).ok_or(short)?;
            match kind {
                USIG => self.usig = self.usig.or(Usig::read(value)),
                EHT => self.eht = self.eht.or(Eht::read(value)),
                _ => {}
            }
            at = (start + len).next_multiple_of(ALIGNMENT);
        }
        Ok(())
    }

    /// Appends what is in that form; `start` is where the header begins. False if there is nothing.
    pub(super) fn write_values(&self, start: usize, out: &mut Vec<u8>) -> bool {
        let mut put = |kind: u16, words: &[u32]| {
            out.resize(start + (out.len() - start).next_multiple_of(ALIGNMENT), 0);
            out.extend_from_slice(&kind.to_le_bytes());
            out.extend_from_slice(&u16::try_from(4 * words.len()).expect("a dozen").to_le_bytes());
            words.iter().for_each(|word| out.extend_from_slice(&word.to_le_bytes()));
        };
        if let Some(Usig { common, value, mask }) = self.usig {
            put(USIG, &[common, value, mask]);
        }
        if let Some(Eht { known, data, user }) = self.eht {
            put(EHT, &[&[known], &data[..], &[user]].concat());
        }
        self.usig.is_some() || self.eht.is_some()
    }

    /// How an 802.11be frame was sent, as [`Radiotap::tx_vector`]: the bandwidth stands in one field, all else in the other.
    pub(super) fn eht_vector(&self, eht: &Eht) -> Option<TxVector> {
        let usig = self.usig.filter(|usig| usig.common & Usig::KNOWN_BANDWIDTH != 0)?;
        let width = match usig.common >> 15 & 0x07 {
            0 => Width::Mhz20,
            1 => Width::Mhz40,
            2 => Width::Mhz80,
            3 => Width::Mhz160,
            4 | 5 => Width::Mhz320,
            _ => return None,
        };
        if eht.known & Eht::KNOWN_GUARD == 0 {
            return None;
        }
        let guard_interval = long_guard((eht.data[0] >> 7) as u16)?;
        // Of a part of the channel the size is told.
        let part = eht.known & Eht::KNOWN_UNIT != 0 || eht.user & Eht::KNOWN_PLACE != 0;
        let known = Eht::KNOWN_MCS | Eht::KNOWN_STREAMS;
        if part || eht.user & known != known {
            return None;
        }
        let mcs = (eht.user >> 20 & 0x0f) as u8;
        // 14 and 15 have dual carrier modulation.
        if mcs > 13 {
            return None;
        }
        let nss = 1 + (eht.user >> 24 & 0x0f) as u8;
        Some(TxVector { format: Format::Eht, mcs, nss, width, guard_interval })
    }

    /// Sets both fields.
    pub(super) fn set_eht_vector(&mut self, tx: TxVector) {
        let width = match tx.width {
            Width::Mhz20 => 0,
            Width::Mhz40 => 1,
            Width::Mhz80 => 2,
            Width::Mhz160 => 3,
            Width::Mhz320 => 4,
        };
        self.usig = Some(Usig { common: Usig::KNOWN_BANDWIDTH | width << 15, ..Usig::default() });
        let coding = u32::from(tx.mcs & 0x0f) << 20 | u32::from(tx.nss.saturating_sub(1) & 0x0f) << 24;
        let user = Eht::KNOWN_MCS | Eht::KNOWN_STREAMS | Eht::FOR_USER | coding;
        let data = [u32::from(guard_code(tx.guard_interval)) << 7, 0, 0, 0, 0, 0, 0, 0, 0];
        self.eht = Some(Eht { known: Eht::KNOWN_GUARD, data, user });
    }
}

impl Usig {
    const KNOWN_BANDWIDTH: u32 = 0x02;

    fn read(field: &[u8]) -> Option<Usig> {
        Some(Usig { common: word(field, 0)?, value: word(field, 4)?, mask: word(field, 8)? })
    }
}

impl Eht {
    const KNOWN_GUARD: u32 = 0x04;
    /// The size of the resource unit.
    const KNOWN_UNIT: u32 = 0x0040_0000;
    const KNOWN_MCS: u32 = 0x02;
    const KNOWN_STREAMS: u32 = 0x10;
    /// Spatial configuration: one of several users at once.
    const KNOWN_PLACE: u32 = 0x40;
    /// This user's data are what was captured.
    const FOR_USER: u32 = 0x80;

    fn read(field: &[u8]) -> Option<Eht> {
        let mut data = [0; 9];
        for (at, place) in data.iter_mut().enumerate() {
            *place = word(field, 4 + 4 * at)?;
        }
        let users = || (40..field.len()).step_by(4).map_while(|at| word(field, at));
        let user = users().find(|user| user & Eht::FOR_USER != 0).or_else(|| users().next());
        Some(Eht { known: word(field, 0)?, data, user: user.unwrap_or_default() })
    }
}

const USIG: u16 = 33;
const EHT: u16 = 34;
/// Octets to multiples of which values are padded.
const ALIGNMENT: usize = 4;
