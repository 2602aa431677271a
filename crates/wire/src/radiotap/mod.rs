//! Radiotap: what a radio tells of a frame, in front of the frame.
//! Source:     radiotap.org, fields as defined in 2024 (bits 0 to 28); Linux `ieee80211_radiotap.h` for sizes.
//! Deviations: of the fields that Lasthop has no use for only the length is known; they are stepped over. Reading stops,
//!             with what has been read, at the first field of unknown length.
//! Checked by: tests::*, tests/integration/monitor_props.rs, the laws' tests/integration/aggregation_captures.rs, fuzz target `radiotap`
//!
//! A presence word may be followed by more: one that goes on counting bits from 32, one that starts again from 0 (bit
//! 29), or one of a vendor (bit 30): its fields are skipped whole. A field that occurs twice, as when each antenna has
//! its own signal, counts the first time.

mod eht;
mod fields;
mod rate;
#[cfg(test)]
mod tests;
mod write;

pub use eht::{Eht, Usig};
pub use fields::{Ampdu, Channel, Flags, He, Mcs, Timestamp, Vht};

use crate::{Error, take};

/// A radiotap header. Fields that the radio did not give are `None`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Radiotap {
    /// Bit 0: the radio's clock at the first bit of the MPDU, in microseconds.
    pub tsft: Option<u64>,
    /// Bit 1.
    pub flags: Option<Flags>,
    /// Bit 2: rate of a legacy frame in units of 500 kbit/s.
    pub rate: Option<u8>,
    /// Bit 3.
    pub channel: Option<Channel>,
    /// Bit 5: signal at the antenna in dBm.
    pub signal: Option<i8>,
    /// Bit 6: noise at the antenna in dBm.
    pub noise: Option<i8>,
    /// Bit 11: number of the antenna.
    pub antenna: Option<u8>,
    /// Bit 14.
    pub rx_flags: Option<u16>,
    /// Bit 19: HT.
    pub mcs: Option<Mcs>,
    /// Bit 20.
    pub ampdu: Option<Ampdu>,
    /// Bit 21.
    pub vht: Option<Vht>,
    /// Bit 22.
    pub timestamp: Option<Timestamp>,
    /// Bit 23.
    pub he: Option<He>,
    /// Bit 28, type 33.
    pub usig: Option<Usig>,
    /// Bit 28, type 34.
    pub eht: Option<Eht>,
}

impl Radiotap {
    /// Reads the header in front of a frame. Returns it with its length: the frame begins there.
    ///
    /// # Errors
    /// [`Error::Radiotap`] for a version that is not 0, [`Error::Truncated`] if the header or its presence words reach
    /// beyond the buffer, [`Error::Length`] if a field reaches beyond the header.
    pub fn parse(bytes: &[u8]) -> Result<(Radiotap, usize), Error> {
        let short = |needed| Error::Truncated { needed, got: bytes.len() };
        let [version, _, low, high] = take(bytes, 0).ok_or(short(FIXED))?;
        if version != 0 {
            return Err(Error::Radiotap(version));
        }
        let len = usize::from(u16::from_le_bytes([low, high]));
        let header = bytes.get(..len).ok_or(short(len))?;
        let mut words = Words::new(header)?;
        let mut reader = Reader { header, at: words.end };
        let mut radiotap = Radiotap::default();
        while let Some((word, space)) = words.next() {
            let known = match space {
                Space::Radiotap => radiotap.read_word(word, &mut reader, &mut words)?,
                // Its fields were skipped as a whole where it was announced.
                Space::Vendor => {
                    words.follow_vendor(word, &mut reader)?;
                    true
                }
                Space::Unknown => word & FIELDS == 0,
            };
            if !known {
                break;
            }
        }
        Ok((radiotap, len))
    }

    /// Reads the fields of one word; false if one of them has an unknown length.
    fn read_word(&mut self, word: u32, reader: &mut Reader, words: &mut Words) -> Result<bool, Error> {
        for bit in (0..LAYOUT.len()).filter(|bit| word & 1 << bit != 0) {
            let (size, align) = LAYOUT[bit];
            let field = reader.field(size, align)?;
            self.read_field(bit, field);
        }
        if word & VALUES != 0 {
            // Nothing can follow them.
            self.read_values(reader.header, reader.at)?;
            return Ok(false);
        }
        words.follow(word, reader)?;
        Ok(true)
    }

    fn read_field(&mut self, bit: usize, field: &[u8]) {
        // Each field has the length that `LAYOUT` gives it.
        let first = field.first().copied().unwrap_or_default();
        match bit {
            0 => self.tsft = self.tsft.or(take(field, 0).map(u64::from_le_bytes)),
            1 => self.flags = self.flags.or(Some(Flags(first))),
            2 => self.rate = self.rate.or(Some(first)),
            3 => self.channel = self.channel.or(Channel::read(field)),
            5 => self.signal = self.signal.or(Some(i8::from_le_bytes([first]))),
            6 => self.noise = self.noise.or(Some(i8::from_le_bytes([first]))),
            11 => self.antenna = self.antenna.or(Some(first)),
            14 => self.rx_flags = self.rx_flags.or(take(field, 0).map(u16::from_le_bytes)),
            19 => self.mcs = self.mcs.or(Mcs::read(field)),
            20 => self.ampdu = self.ampdu.or(Ampdu::read(field)),
            21 => self.vht = self.vht.or(Vht::read(field)),
            22 => self.timestamp = self.timestamp.or(Timestamp::read(field)),
            23 => self.he = self.he.or(He::read(field)),
            _ => (),
        }
    }

    /// True if the frame ends with its check sequence.
    pub fn has_fcs(&self) -> bool {
        self.flags.is_some_and(|flags| flags.has(Flags::FCS))
    }

    /// True if the frame's check sequence was wrong.
    pub fn bad_fcs(&self) -> bool {
        self.flags.is_some_and(|flags| flags.has(Flags::BAD_FCS))
    }
}

/// Version, pad, length, first presence word.
const FIXED: usize = 8;

/// Size and alignment of the fields of bits 0 to 27.
const LAYOUT: [(usize, usize); 28] = [
    (8, 8),  // TSFT
    (1, 1),  // flags
    (1, 1),  // rate
    (4, 2),  // channel
    (2, 2),  // FHSS
    (1, 1),  // signal, dBm
    (1, 1),  // noise, dBm
    (2, 2),  // lock quality
    (2, 2),  // TX attenuation
    (2, 2),  // TX attenuation, dB
    (1, 1),  // TX power, dBm
    (1, 1),  // antenna
    (1, 1),  // signal, dB
    (1, 1),  // noise, dB
    (2, 2),  // RX flags
    (2, 2),  // TX flags
    (1, 1),  // RTS retries
    (1, 1),  // data retries
    (8, 4),  // extended channel
    (3, 1),  // MCS
    (8, 4),  // A-MPDU status
    (12, 2), // VHT
    (12, 8), // timestamp
    (12, 2), // HE
    (12, 2), // HE-MU
    (6, 2),  // HE-MU other user
    (1, 1),  // zero-length PSDU
    (4, 2),  // L-SIG
];

/// Fields in type-length-value form.
const VALUES: u32 = 1 << 28;
/// Bits of a presence word that stand for fields, [`VALUES`] among them.
const FIELDS: u32 = (1 << 29) - 1;
const RESET: u32 = 1 << 29;
const VENDOR: u32 = 1 << 30;
const MORE: u32 = 1 << 31;

/// The owner of the fields that a presence word names.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Space {
    Radiotap,
    Vendor,
    /// Bits from 32 on, which nobody has defined.
    Unknown,
}

/// The presence words, one after the other.
struct Words<'a> {
    header: &'a [u8],
    at: usize,
    /// Where they end and the fields begin.
    end: usize,
    space: Space,
}

impl<'a> Words<'a> {
    fn new(header: &'a [u8]) -> Result<Words<'a>, Error> {
        let mut end = FIXED - 4;
        loop {
            let word = word(header, end).ok_or(Error::Truncated { needed: end + 4, got: header.len() })?;
            end += 4;
            if word & MORE == 0 {
                return Ok(Words { header, at: FIXED - 4, end, space: Space::Radiotap });
            }
        }
    }

    fn next(&mut self) -> Option<(u32, Space)> {
        if self.at >= self.end {
            return None;
        }
        let word = word(self.header, self.at)?;
        self.at += 4;
        Some((word, self.space))
    }

    /// Sets what the word after `word` is about, and steps over a vendor's fields.
    fn follow(&mut self, word: u32, reader: &mut Reader) -> Result<(), Error> {
        if word & VENDOR != 0 {
            return self.announce(reader);
        }
        self.space = if word & RESET != 0 { Space::Radiotap } else { Space::Unknown };
        Ok(())
    }

    /// The same after a vendor's word: without another announcement the vendor goes on.
    fn follow_vendor(&mut self, word: u32, reader: &mut Reader) -> Result<(), Error> {
        match word {
            _ if word & VENDOR != 0 => self.announce(reader),
            _ if word & RESET != 0 => {
                self.space = Space::Radiotap;
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// A vendor's fields follow: OUI, kind, and their length.
    fn announce(&mut self, reader: &mut Reader) -> Result<(), Error> {
        let vendor = reader.field(6, 2)?;
        let skip = take(vendor, 4).map_or(0, u16::from_le_bytes);
        reader.field(usize::from(skip), 1)?;
        self.space = Space::Vendor;
        Ok(())
    }
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    take(bytes, at).map(u32::from_le_bytes)
}

/// The fields, one after the other, each aligned relative to the header's first octet.
struct Reader<'a> {
    header: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    fn field(&mut self, size: usize, align: usize) -> Result<&'a [u8], Error> {
        let start = self.at.next_multiple_of(align);
        let field = self.header.get(start..start + size);
        self.at = start + size;
        field.ok_or(Error::Length { field: "radiotap it_len", value: self.header.len() })
    }
}
