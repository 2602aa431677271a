//! What the kernel tells of a wireless interface: nl80211's interface, station dump and survey, as the body of a generic netlink message.
//!
//! Source:     linux/nl80211.h and linux/genetlink.h as of Linux 6.18; iw(8) for units.
//! Deviations: of some two hundred attributes those are read that an access point's law uses.
//! Checked by: the tests below; `tests/integration/nl80211.rs`, with messages that a kernel sent; the fuzz target `nl80211`.
//!
//! The crate wl-nl80211 is not used: version 0.8 keeps the counters of a station's queues to itself, does not know which channel of a survey is
//! in use, and fails a whole message for one attribute that it cannot read.
//!
//! A message is a command (1 octet), a version (1), two octets of zeros, and attributes. A counter that the driver does not have is not
//! there. What cannot be read, as of another length, counts as not there.

use crate::nla::{Attributes, push};
use crate::{Error, take};
use lasthop_units::{Bytes, Rate, Span};

/// The generic netlink family's controller, which knows the number of every other one (`GENL_ID_CTRL`).
pub const CONTROLLER: u16 = 0x10;
const CTRL_CMD_GETFAMILY: u8 = 3;
const CTRL_ATTR_FAMILY_ID: u16 = 1;
const CTRL_ATTR_FAMILY_NAME: u16 = 2;

const GET_INTERFACE: u8 = 5;
const GET_STATION: u8 = 17;
const GET_SURVEY: u8 = 50;
const ATTR_IFINDEX: u16 = 3;
const ATTR_IFTYPE: u16 = 5;
const ATTR_MAC: u16 = 6;
const ATTR_STA_INFO: u16 = 21;
const ATTR_WIPHY_FREQ: u16 = 38;
const ATTR_SURVEY_INFO: u16 = 84;
/// Command, version, reserved.
const HEADER: usize = 4;

/// Asks the controller for the number of the family `nl80211`.
pub fn family_request() -> Vec<u8> {
    request(CTRL_CMD_GETFAMILY, CTRL_ATTR_FAMILY_NAME, b"nl80211\0")
}

/// The family's number in the controller's answer.
///
/// # Errors
/// [`Error::Truncated`], [`Error::Length`] if it makes no sense.
pub fn family(message: &[u8]) -> Result<Option<u16>, Error> {
    let id = attributes(message)?.find(CTRL_ATTR_FAMILY_ID)?;
    Ok(id.and_then(|id| id.number()).and_then(|id| u16::try_from(id).ok()))
}

/// Asks what interface `index` is.
pub fn interface_request(index: u32) -> Vec<u8> {
    request(GET_INTERFACE, ATTR_IFINDEX, &index.to_ne_bytes())
}

/// Asks for every station of interface `index`: a dump.
pub fn station_request(index: u32) -> Vec<u8> {
    request(GET_STATION, ATTR_IFINDEX, &index.to_ne_bytes())
}

/// Asks how the channels of interface `index` were used: a dump.
pub fn survey_request(index: u32) -> Vec<u8> {
    request(GET_SURVEY, ATTR_IFINDEX, &index.to_ne_bytes())
}

fn request(command: u8, kind: u16, value: &[u8]) -> Vec<u8> {
    let mut out = vec![command, 1, 0, 0];
    push(&mut out, kind, value);
    out
}

fn attributes(message: &[u8]) -> Result<Attributes<'_>, Error> {
    let short = Error::Truncated { needed: HEADER, got: message.len() };
    message.get(HEADER..).map(Attributes::new).ok_or(short)
}

/// An interface of a wireless device.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Interface {
    /// What it is (`enum nl80211_iftype`): 2 a station, 3 an access point, 4 its VLAN, 6 a monitor.
    pub kind: Option<u32>,
    /// The middle of its control channel, MHz.
    pub frequency: Option<u32>,
}

impl Interface {
    /// [`Interface::kind`] of an access point.
    pub const ACCESS_POINT: u32 = 3;

    /// What a message says.
    ///
    /// # Errors
    /// [`Error::Truncated`], [`Error::Length`] if its attributes make no sense.
    pub fn parse(message: &[u8]) -> Result<Interface, Error> {
        let mut interface = Interface::default();
        for attribute in attributes(message)? {
            let attribute = attribute?;
            let number = attribute.number().and_then(|number| u32::try_from(number).ok());
            match attribute.kind {
                ATTR_IFTYPE => interface.kind = number,
                ATTR_WIPHY_FREQ => interface.frequency = number,
                _ => {}
            }
        }
        Ok(interface)
    }
}

/// How one channel was used, since the radio began to count.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Survey {
    /// The radio is on this channel.
    pub in_use: bool,
    /// The channel's middle, MHz.
    pub frequency: Option<u32>,
    /// Noise, dBm.
    pub noise: Option<i8>,
    /// Time on the channel.
    pub active: Option<Span>,
    /// Of it: sensed busy.
    pub busy: Option<Span>,
    /// Of it: receiving, whoever it is for.
    pub rx: Option<Span>,
    /// Of it: receiving frames of the own BSS.
    pub bss_rx: Option<Span>,
    /// Of it: transmitting.
    pub tx: Option<Span>,
    /// Scanning.
    pub scan: Option<Span>,
}

impl Survey {
    /// What a message says; all is lacking if it is no survey.
    ///
    /// # Errors
    /// [`Error::Truncated`], [`Error::Length`] if its attributes make no sense.
    pub fn parse(message: &[u8]) -> Result<Survey, Error> {
        let mut survey = Survey::default();
        let Some(info) = attributes(message)?.find(ATTR_SURVEY_INFO)? else { return Ok(survey) };
        for attribute in info.nested() {
            let attribute = attribute?;
            let ms = || attribute.number().and_then(|ms| ms.checked_mul(1_000_000)).map(Span::from_nanos);
            // enum nl80211_survey_info
            match attribute.kind {
                1 => survey.frequency = attribute.number().and_then(|mhz| u32::try_from(mhz).ok()),
                2 => survey.noise = take(attribute.value, 0).map(i8::from_ne_bytes),
                3 => survey.in_use = true,
                4 => survey.active = ms(),
                5 => survey.busy = ms(),
                7 => survey.rx = ms(),
                8 => survey.tx = ms(),
                9 => survey.scan = ms(),
                11 => survey.bss_rx = ms(),
                _ => {}
            }
        }
        Ok(survey)
    }
}

/// What a driver and mac80211 count of one station. Counters of 4 octets begin anew behind 2^32 - 1.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Station {
    /// Its address.
    pub address: [u8; 6],
    /// Octets of the frames sent to it, headers included.
    pub tx_bytes: Option<u64>,
    /// Of those received from it.
    pub rx_bytes: Option<u64>,
    /// MSDUs and MMPDUs sent to it, or given up.
    pub tx_packets: Option<u32>,
    /// MSDUs and MMPDUs received from it.
    pub rx_packets: Option<u32>,
    /// Attempts that were repeats.
    pub tx_retries: Option<u32>,
    /// MSDUs given up.
    pub tx_failed: Option<u32>,
    /// PHY rate towards it.
    pub tx_rate: Option<Rate>,
    /// Airtime of all frames to it, and from it.
    pub tx_airtime: Option<Span>,
    /// Airtime of all frames from it.
    pub rx_airtime: Option<Span>,
    /// Mean signal, or that of the last frame, dBm.
    pub signal: Option<i8>,
    /// When it associated, on `CLOCK_BOOTTIME`.
    pub associated: Option<Span>,
    /// mac80211's queues for it, all TIDs added up; `None` if the driver does not use them.
    pub queues: Option<Queues>,
}

/// The queues of a station (`enum nl80211_txq_stats`), added up.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Queues {
    /// Octets that wait, headers of the link layer included.
    pub backlog: Bytes,
    /// Packets that wait.
    pub packets: u32,
    /// Packets dropped: by CoDel, and those for which there was no room. Each counter has 32 bits; the sum does not wrap.
    pub drops: u64,
    /// Packets that were marked with CE.
    pub marks: u64,
}

impl Station {
    /// What a message says; `None` if it has no station's address.
    ///
    /// # Errors
    /// [`Error::Truncated`], [`Error::Length`] if its attributes make no sense.
    pub fn parse(message: &[u8]) -> Result<Option<Station>, Error> {
        let mut station = Station::default();
        let mut address = None;
        for attribute in attributes(message)? {
            let attribute = attribute?;
            match attribute.kind {
                ATTR_MAC => address = take(attribute.value, 0),
                ATTR_STA_INFO => station.read(attribute.nested())?,
                _ => {}
            }
        }
        Ok(address.map(|address| Station { address, ..station }))
    }

    fn read(&mut self, info: Attributes<'_>) -> Result<(), Error> {
        for attribute in info {
            let attribute = attribute?;
            let number = attribute.number();
            let word = || number.and_then(|number| u32::try_from(number).ok());
            let us = || number.and_then(|us| us.checked_mul(1_000)).map(Span::from_nanos);
            let dbm = || take(attribute.value, 0).map(i8::from_ne_bytes);
            // enum nl80211_sta_info. The counters of 8 octets replace those of 4, wherever they stand.
            match attribute.kind {
                2 => self.rx_bytes = self.rx_bytes.or(number),
                3 => self.tx_bytes = self.tx_bytes.or(number),
                7 => self.signal = self.signal.or(dbm()),
                8 => self.tx_rate = rate(attribute.nested())?,
                9 => self.rx_packets = word(),
                10 => self.tx_packets = word(),
                11 => self.tx_retries = word(),
                12 => self.tx_failed = word(),
                13 => self.signal = dbm(),
                23 => self.rx_bytes = number,
                24 => self.tx_bytes = number,
                31 => self.queues = queues(attribute.nested())?,
                32 => self.rx_airtime = us(),
                39 => self.tx_airtime = us(),
                42 => self.associated = number.map(Span::from_nanos),
                _ => {}
            }
        }
        Ok(())
    }
}

/// `enum nl80211_rate_info`: units of 100 kbit/s, in 4 octets or, as before, in 2.
fn rate(info: Attributes<'_>) -> Result<Option<Rate>, Error> {
    let (mut short, mut long) = (None, None);
    for attribute in info {
        let attribute = attribute?;
        match attribute.kind {
            1 => short = attribute.number(),
            5 => long = attribute.number(),
            _ => {}
        }
    }
    Ok(long.or(short).and_then(|units| units.checked_mul(100_000)).map(Rate::from_bps).filter(|rate| !rate.is_zero()))
}

/// Adds up the queues of all TIDs.
fn queues(tids: Attributes<'_>) -> Result<Option<Queues>, Error> {
    const TXQ_STATS: u16 = 6;
    let mut sum = None;
    for tid in tids {
        let Some(queue) = tid?.nested().find(TXQ_STATS)? else { continue };
        let sum: &mut Queues = sum.get_or_insert_default();
        for attribute in queue.nested() {
            let attribute = attribute?;
            let number = attribute.number().unwrap_or(0);
            // enum nl80211_txq_stats
            match attribute.kind {
                1 => sum.backlog += Bytes::new(number),
                2 => sum.packets = sum.packets.saturating_add(u32::try_from(number).unwrap_or(u32::MAX)),
                4 | 6 => sum.drops = sum.drops.saturating_add(number),
                5 => sum.marks = sum.marks.saturating_add(number),
                _ => {}
            }
        }
    }
    Ok(sum)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn message(fields: &[(u16, Vec<u8>)]) -> Vec<u8> {
        let mut out = vec![0, 1, 0, 0];
        fields.iter().for_each(|(kind, value)| push(&mut out, *kind, value));
        out
    }

    fn nested(fields: &[(u16, Vec<u8>)]) -> Vec<u8> {
        message(fields).split_off(HEADER)
    }

    fn word(value: u32) -> Vec<u8> {
        value.to_ne_bytes().to_vec()
    }

    #[test]
    fn a_station_is_read_and_what_it_lacks_is_lacking() {
        let queue = |bytes, packets, codel, full| {
            nested(&[(6, nested(&[(1, word(bytes)), (2, word(packets)), (4, word(codel)), (6, word(full))]))])
        };
        let info = nested(&[
            (3, word(5)),
            (24, 7_000_000_000_u64.to_ne_bytes().to_vec()),
            (8, nested(&[(1, 650_u16.to_ne_bytes().to_vec()), (5, word(8667))])),
            (11, word(12)),
            (13, vec![-61_i8 as u8]),
            (31, nested(&[(1, queue(3000, 2, 1, 4)), (7, queue(1500, 1, 0, 0))])),
            (39, 250_u64.to_ne_bytes().to_vec()),
        ]);
        let message = message(&[(ATTR_MAC, vec![2, 0, 0, 0, 0, 9]), (ATTR_STA_INFO | 0x8000, info)]);
        let station = Station::parse(&message).expect("in order").expect("it has an address");
        let expected = Station {
            address: [2, 0, 0, 0, 0, 9],
            tx_bytes: Some(7_000_000_000),
            tx_rate: Some(Rate::from_bps(866_700_000)),
            tx_retries: Some(12),
            signal: Some(-61),
            tx_airtime: Some(Span::from_micros(250)),
            queues: Some(Queues { backlog: Bytes::new(4500), packets: 3, drops: 5, marks: 0 }),
            ..Station::default()
        };
        assert_eq!(station, expected);
    }

    #[test]
    fn a_survey_says_which_channel_is_in_use() {
        let info = nested(&[
            (1, word(5180)),
            (2, vec![-92_i8 as u8]),
            (3, vec![]),
            (4, 1000_u64.to_ne_bytes().to_vec()),
            (9, 3_u64.to_ne_bytes().to_vec()),
        ]);
        let survey = Survey::parse(&message(&[(ATTR_SURVEY_INFO, info)])).expect("in order");
        assert!(survey.in_use && survey.noise == Some(-92) && survey.busy.is_none());
        assert_eq!((survey.active, survey.scan), (Some(Span::from_millis(1000)), Some(Span::from_millis(3))));
    }

    #[test]
    fn an_interface_is_an_access_points_or_another() {
        let interface = Interface::parse(&message(&[(ATTR_IFTYPE, word(3)), (ATTR_WIPHY_FREQ, word(2437))]));
        assert_eq!(interface, Ok(Interface { kind: Some(Interface::ACCESS_POINT), frequency: Some(2437) }));
        assert_eq!(family(&message(&[(CTRL_ATTR_FAMILY_ID, 31_u16.to_ne_bytes().to_vec())])), Ok(Some(31)));
        assert!(family(&[1, 2]).is_err());
    }

    proptest! {
        #[test]
        fn no_octets_make_a_reader_panic(octets in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = (Station::parse(&octets), Survey::parse(&octets), Interface::parse(&octets), family(&octets));
        }
    }
}
