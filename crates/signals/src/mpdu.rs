//! One frame as a receiving radio hands it up, with what the radio knows of its reception.

use crate::phy::TxVector;
use lasthop_units::{Bytes, Time};
use std::fmt;
use std::str::FromStr;

/// An IEEE 802 MAC address.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MacAddress(pub [u8; 6]);

/// A data MPDU that a radio received or overheard.
///
/// Of an MPDU with a wrong check sequence only what the PHY says can be believed: `ampdu`, `tsf`, `tx` and `len`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ReceivedMpdu {
    /// The sender's address.
    pub transmitter: MacAddress,
    /// The receiver's address.
    pub receiver: MacAddress,
    /// Its place in an A-MPDU; `None` for a lone MPDU, or where the radio does not tell.
    pub ampdu: Option<Subframe>,
    /// Traffic identifier; 0 without QoS control.
    pub tid: u8,
    /// Sequence number, 0 to 4095.
    pub sequence: u16,
    /// True if the transmitter says that it sent this MPDU before.
    pub retry: bool,
    /// MSDUs inside: 1, or those of an A-MSDU.
    pub msdus: u16,
    /// True if the check sequence was right.
    pub fcs_good: bool,
    /// The radio's own time of the PPDU or subframe (TSF), where it gives one.
    pub tsf: Option<Time>,
    /// How the PPDU was sent, where the radio tells.
    pub tx: Option<TxVector>,
    /// Length on the air, check sequence included.
    pub len: Bytes,
}

/// What a radio tells of an MPDU's A-MPDU.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Subframe {
    /// Number of the A-MPDU: equal in all its MPDUs. Some drivers do not count.
    pub reference: u32,
    /// Whether it is the A-MPDU's last; `None` if the radio does not know.
    pub last: Option<bool>,
}

impl fmt::Display for MacAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, g] = self.0;
        write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
    }
}

impl FromStr for MacAddress {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<MacAddress, &'static str> {
        let wrong = "write six pairs of hexadecimal digits, such as 02:00:5e:00:53:01";
        let mut parts = text.split([':', '-']);
        let mut octets = [0; 6];
        for octet in &mut octets {
            let part = parts.next().filter(|part| part.len() == 2 && part.bytes().all(|b| b.is_ascii_hexdigit()));
            *octet = part.and_then(|part| u8::from_str_radix(part, 16).ok()).ok_or(wrong)?;
        }
        if parts.next().is_some() { Err(wrong) } else { Ok(MacAddress(octets)) }
    }
}

impl fmt::Debug for MacAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
