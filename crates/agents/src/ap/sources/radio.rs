//! A wireless interface as nl80211 shows it: its stations, and how its channel is used.

use super::wide::Wide;
use lasthop_signals::{ChannelTime, Node, StationReport};
use lasthop_system::netlink::{Netlink, Raw, invalid};
use lasthop_units::{Bytes, Rate, Span};
use lasthop_wire::nl80211::{self, Interface, Queues, Station, Survey};
use netlink_packet_core::{NLM_F_ACK, NLM_F_DUMP};
use std::collections::BTreeMap;
use std::io;

/// The radio behind an interface.
#[derive(Debug)]
pub(crate) struct Radio {
    netlink: Netlink,
    family: u16,
    index: u32,
    /// Stations that are associated, by address.
    known: BTreeMap<[u8; 6], Known>,
    /// The survey's clock goes on: not every driver's does.
    survey: bool,
}

/// What one look shows.
#[derive(Debug, Default)]
pub(crate) struct Look {
    pub channel: ChannelTime,
    pub stations: Vec<StationReport>,
    pub addresses: BTreeMap<Node, [u8; 6]>,
    /// Stations have queues of their own in mac80211, which tell what waits for them.
    pub own_queues: bool,
}

/// One station, from its association on.
#[derive(Debug)]
struct Known {
    number: Node,
    associated: Option<Span>,
    rx_packets: Wide,
    tx_packets: Wide,
    retries: Wide,
    failed: Wide,
    /// The most of what has been told: packets given up are taken off what was sent, and are known later.
    delivered: u64,
    bytes: u64,
    /// As above: frames without data are shorter than what is taken off for headers.
    received: u64,
}

/// Header of a QoS data frame, and LLC/SNAP: what mac80211 counts with each packet.
const FRAME_OVERHEAD: u64 = 26 + 8;
/// Time between the two looks that show whether the survey's clock goes on.
const LIVE: Span = Span::from_millis(200);

impl Radio {
    /// The radio of interface `index`; `None` if it is no wireless one.
    ///
    /// # Errors
    /// What the kernel refuses.
    pub(crate) fn open(index: u32) -> io::Result<Option<(Radio, Interface)>> {
        let mut netlink = Netlink::open(libc::NETLINK_GENERIC)?;
        let mut family = None;
        let question = Raw { kind: nl80211::CONTROLLER, body: nl80211::family_request() };
        let asked = netlink.ask(question, NLM_F_ACK, |answer| {
            family = family.or(answer.ok().and_then(|answer| nl80211::family(&answer.body).ok().flatten()));
        });
        match asked {
            // A kernel without wireless, or without the module loaded.
            Err(error) if error.raw_os_error() == Some(libc::ENOENT) => return Ok(None),
            asked => asked?,
        }
        let Some(family) = family else { return Ok(None) };
        let mut interface = Interface::default();
        let question = Raw { kind: family, body: nl80211::interface_request(index) };
        let asked = netlink.ask(question, NLM_F_ACK, |answer| {
            if let Ok(parsed) = answer.map_or(Ok(Interface::default()), |answer| Interface::parse(&answer.body)) {
                interface = Interface {
                    kind: parsed.kind.or(interface.kind),
                    frequency: parsed.frequency.or(interface.frequency),
                };
            }
        });
        match asked {
            Err(error) if matches!(error.raw_os_error(), Some(libc::ENODEV | libc::EOPNOTSUPP)) => return Ok(None),
            asked => asked?,
        }
        let mut radio = Radio { netlink, family, index, known: BTreeMap::new(), survey: false };
        radio.survey = radio.has_living_survey()?;
        Ok(Some((radio, interface)))
    }

    /// True if the survey's clock goes on as time does.
    pub(crate) fn has_survey(&self) -> bool {
        self.survey
    }

    fn has_living_survey(&mut self) -> io::Result<bool> {
        let first = self.survey()?.and_then(|survey| survey.active);
        std::thread::sleep(LIVE.into());
        let second = self.survey()?.and_then(|survey| survey.active);
        Ok(first.zip(second).is_some_and(|(first, second)| second.saturating_sub(first) >= LIVE / 2))
    }

    /// The channel that the radio is on.
    fn survey(&mut self) -> io::Result<Option<Survey>> {
        let mut used = None;
        let question = Raw { kind: self.family, body: nl80211::survey_request(self.index) };
        let asked = self.netlink.ask(question, NLM_F_DUMP, |answer| {
            let survey = answer.ok().and_then(|answer| Survey::parse(&answer.body).ok());
            used = used.or(survey.filter(|survey| survey.in_use));
        });
        match asked {
            Err(error) if error.raw_os_error() == Some(libc::EOPNOTSUPP) => Ok(None),
            asked => asked.map(|()| used),
        }
    }

    /// What there is to see. `clock` is the time since the agent began: the time on the channel where the driver has no survey.
    ///
    /// # Errors
    /// What the kernel refuses; [`io::ErrorKind::InvalidData`] if a station cannot be read.
    pub(crate) fn look(&mut self, clock: Span) -> io::Result<Look> {
        let mut channel = ChannelTime { active: clock, ..ChannelTime::default() };
        if self.survey
            && let Some(survey) = self.survey()?
        {
            let Survey { active, busy, bss_rx, tx, scan, noise, .. } = survey;
            channel = ChannelTime { active: active.unwrap_or(clock), busy, rx: bss_rx, tx, scan, noise };
        }
        let mut stations = Vec::new();
        let mut unreadable = None;
        let question = Raw { kind: self.family, body: nl80211::station_request(self.index) };
        self.netlink.ask(question, NLM_F_DUMP, |answer| match answer.map(|answer| Station::parse(&answer.body)) {
            Ok(Ok(station)) => stations.extend(station),
            Ok(Err(error)) => unreadable = Some(invalid(&error)),
            Err(error) => unreadable = Some(invalid(&error)),
        })?;
        unreadable.map_or(Ok(()), Err)?;
        Ok(self.told(channel, &stations))
    }

    /// Numbers the stations, and tells what the kernel counted of each.
    fn told(&mut self, channel: ChannelTime, stations: &[Station]) -> Look {
        self.known.retain(|address, _| stations.iter().any(|station| station.address == *address));
        let mut look = Look { channel, own_queues: true, ..Look::default() };
        for station in stations {
            let again = |known: &Known| known.associated != station.associated;
            if self.known.get(&station.address).is_none_or(again) {
                let Some(number) = self.free() else { continue };
                self.known.insert(station.address, Known::new(number, station.associated));
            }
            let Some(known) = self.known.get_mut(&station.address) else { continue };
            look.own_queues &= station.queues.is_some();
            look.stations.push(known.report(station));
            look.addresses.insert(known.number, station.address);
        }
        look.stations.sort_by_key(|station| station.station);
        look
    }

    /// The least number that no station has.
    fn free(&self) -> Option<Node> {
        let taken = |number: &u16| self.known.values().any(|known| known.number.0 == *number);
        (1..=u16::MAX).find(|number| !taken(number)).map(Node)
    }
}

impl Known {
    fn new(number: Node, associated: Option<Span>) -> Known {
        let wide = Wide::default();
        let (rx_packets, tx_packets, retries, failed) = (wide, wide, wide, wide);
        Known { number, associated, rx_packets, tx_packets, retries, failed, delivered: 0, bytes: 0, received: 0 }
    }

    fn report(&mut self, station: &Station) -> StationReport {
        let sent = station.tx_packets.map_or(0, |value| self.tx_packets.widened(value));
        let received = station.rx_packets.map_or(0, |value| self.rx_packets.widened(value));
        let retries = station.tx_retries.map(|value| self.retries.widened(value));
        let failed = station.tx_failed.map(|value| self.failed.widened(value));
        let network = |bytes: Option<u64>, packets: u64| bytes.unwrap_or(0).saturating_sub(FRAME_OVERHEAD * packets);
        // What was given up was counted as sent: its octets go in proportion.
        let lost = failed.unwrap_or(0).min(sent);
        let bytes = network(station.tx_bytes, sent);
        let arrived = u128::from(bytes) * u128::from(sent - lost) / u128::from(sent.max(1));
        self.delivered = self.delivered.max(sent - lost);
        self.bytes = self.bytes.max(u64::try_from(arrived).unwrap_or(u64::MAX));
        self.received = self.received.max(network(station.rx_bytes, received));
        let Queues { backlog, packets, drops, .. } = station.queues.unwrap_or_default();
        StationReport {
            station: self.number,
            backlog_packets: packets,
            backlog_bytes: Bytes::new(network(Some(backlog.get()), u64::from(packets))),
            head_wait: None,
            queue_drops: drops,
            tx_attempts: retries.map(|retries| sent + retries),
            tx_retries: retries,
            tx_failed: failed,
            tx_packets: self.delivered,
            tx_bytes: Bytes::new(self.bytes),
            rx_packets: received,
            rx_bytes: Bytes::new(self.received),
            tx_airtime: station.tx_airtime.filter(|airtime| !airtime.is_zero() || sent == 0),
            rx_airtime: station.rx_airtime.filter(|airtime| !airtime.is_zero() || received == 0),
            tx_ppdus: None,
            phy_rate: station.tx_rate.unwrap_or(Rate::ZERO),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn radio() -> Radio {
        let netlink = Netlink::open(libc::NETLINK_GENERIC).expect("everybody may ask");
        Radio { netlink, family: 0, index: 0, known: BTreeMap::new(), survey: false }
    }

    fn station(last: u8, packets: u32, failed: u32) -> Station {
        Station {
            address: [2, 0, 0, 0, 0, last],
            tx_packets: Some(packets),
            tx_failed: Some(failed),
            tx_bytes: Some(u64::from(packets) * 1534),
            associated: Some(Span::from_secs(u64::from(last))),
            ..Station::default()
        }
    }

    #[test]
    fn a_station_keeps_its_number_and_its_counters_never_fall() {
        let mut radio = radio();
        let channel = ChannelTime::default();
        let first = radio.told(channel, &[station(7, 100, 0), station(8, 10, 0)]);
        assert_eq!(first.stations.iter().map(|s| s.station.0).collect::<Vec<_>>(), [1, 2]);
        assert_eq!(first.stations[0].tx_bytes, Bytes::new(150_000));
        // Failures are told after the packets were counted as sent.
        let second = radio.told(channel, &[station(8, 10, 5), station(7, 100, 0)]);
        assert_eq!((second.stations[1].tx_packets, second.stations[1].tx_failed), (10, Some(5)));
        let third = radio.told(channel, &[station(8, 30, 5)]);
        assert_eq!((third.stations[0].station, third.stations[0].tx_packets), (Node(2), 25));
        // Frames without data are shorter than the headers that are taken off.
        let heard = |packets, bytes| Station { rx_packets: Some(packets), rx_bytes: Some(bytes), ..station(8, 30, 5) };
        let before = radio.told(channel, &[heard(10, 15_340)]).stations[0].rx_bytes;
        assert_eq!(before, radio.told(channel, &[heard(11, 15_366)]).stations[0].rx_bytes);
        // One that comes takes the number that is free, and begins anew when it associates anew.
        let fourth = radio.told(channel, &[station(9, 1, 0), station(8, 30, 5)]);
        assert_eq!(fourth.addresses[&Node(1)], [2, 0, 0, 0, 0, 9]);
        let anew = Station { associated: Some(Span::from_secs(99)), ..station(8, 3, 0) };
        let fifth = radio.told(channel, &[anew]);
        assert_eq!(fifth.stations[0].tx_packets, 3);
    }

    #[test]
    fn an_airtime_of_nothing_beside_packets_is_none() {
        let counted = |airtime| {
            let station = Station { tx_airtime: Some(airtime), ..station(1, 10, 0) };
            radio().told(ChannelTime::default(), &[station]).stations[0].tx_airtime
        };
        assert_eq!(counted(Span::ZERO), None);
        assert_eq!(counted(Span::from_micros(5)), Some(Span::from_micros(5)));
    }
}
