//! What the kernel itself counts of an interface: the source of an agent that no driver's socket feeds.
//!
//! Of an access point nl80211 tells channel, stations and mac80211's queues for each; where a qdisc holds the packets before the driver,
//! rtnetlink tells its queues. Of any other interface the qdisc is all there is: one "station" stands for everybody behind it.

mod qdisc;
mod radio;
mod wide;

use super::Error;
use crate::service::clock::monotonic_now;
use crate::service::device::Device;
use crate::service::driver::DriverSource;
use crate::service::system;
use lasthop_signals::{ChannelTime, HopReport, Node, QueueReport, StationReport};
use lasthop_units::{Bytes, Rate, Span, Time};
use lasthop_wire::driver::Record;
use lasthop_wire::nl80211::Interface;
use qdisc::{Qdiscs, Queues};
use radio::Radio;
use std::collections::BTreeMap;
use std::io;

/// Time between two looks: as the paper's 250 a second.
const INTERVAL: Span = Span::from_millis(4);
/// A look takes at most one part in so many of the time: where it takes longer (many stations, a slow driver) there are fewer,
const SHARE: u64 = 8;
/// but never a longer pause than this: one look that a busy machine held up says nothing of the next.
const PAUSE: Span = Span::from_millis(50);
/// Of a driver without TXQs below no qdisc.
const UNTOLD: &str = "the driver tells no station's queue, and the interface has no qdisc: nobody knows what waits (give it one: tc qdisc)";
/// The one station behind an interface that is no radio's.
const EVERYBODY: Node = Node(1);

/// The kernel's own counters of one interface.
pub(crate) struct Kernel {
    radio: Option<Radio>,
    qdiscs: Qdiscs,
    began: Time,
    /// When to look next.
    next: Time,
    tells: String,
}

impl Kernel {
    /// The counters of an interface.
    ///
    /// # Errors
    /// [`Error::Service`] if the kernel does not answer; [`Error::NotAccessPoint`], [`Error::NoQueue`] if nothing can be
    /// known of the interface's hop.
    pub(crate) fn open(iface: &str, device: &Device) -> Result<Kernel, Error> {
        let mut qdiscs = Qdiscs::open(device.index).map_err(system("rtnetlink"))?;
        let queues = qdiscs.read().map_err(system("the interface's qdiscs (rtnetlink)"))?;
        let radio = Radio::open(device.index.unsigned_abs()).map_err(system("the interface's radio (nl80211)"))?;
        let (radio, tells) = match radio {
            Some((mut radio, interface)) if interface.kind == Some(Interface::ACCESS_POINT) => {
                let look = radio.look(Span::ZERO).map_err(system("the interface's stations (nl80211)"))?;
                if !look.own_queues && !queues.holds_packets() {
                    return Err(Error::NoQueue { iface: iface.to_owned() });
                }
                let tells = of_radio(&radio, &queues);
                (Some(radio), tells)
            }
            Some(_) => return Err(Error::NotAccessPoint { iface: iface.to_owned() }),
            None if !queues.holds_packets() => return Err(Error::NoQueue { iface: iface.to_owned() }),
            None => (None, format!("its qdisc {}: backlog, drops, what it sends", queues.kind)),
        };
        let now = monotonic_now();
        Ok(Kernel { radio, qdiscs, began: now, next: now, tells })
    }

    /// What the kernel tells of the interface, and what it lacks, in words.
    pub(crate) fn tells(&self) -> &str {
        &self.tells
    }

    fn look(&mut self, at: Time) -> io::Result<Record> {
        let clock = at.since(self.began);
        let queues = self.qdiscs.read()?;
        let Some(radio) = &mut self.radio else {
            let report = HopReport {
                channel: ChannelTime { active: clock, ..ChannelTime::default() },
                stations: vec![wired(&queues.root)],
                queues: Vec::new(),
            };
            return Ok(Record { at, report, addresses: BTreeMap::new() });
        };
        let look = radio.look(clock)?;
        // Above mac80211's own queues there are none. Zeros would say that nothing ever waits.
        let queues = match queues.holds_packets() {
            true => queues.each,
            false if look.own_queues => Vec::new(),
            false => return Err(io::Error::new(io::ErrorKind::InvalidData, UNTOLD)),
        };
        Ok(Record {
            at,
            report: HopReport { channel: look.channel, stations: look.stations, queues },
            addresses: look.addresses,
        })
    }
}

impl DriverSource for Kernel {
    fn newest(&mut self, patience: Span) -> io::Result<Option<Record>> {
        let wait = self.next.since(monotonic_now());
        std::thread::sleep(wait.min(patience).into());
        if wait > patience {
            return Ok(None);
        }
        let at = monotonic_now();
        let record = self.look(at)?;
        let took = monotonic_now().since(at);
        self.next = (self.next + INTERVAL).max(at + took + (took * (SHARE - 1)).min(PAUSE));
        Ok(Some(record))
    }

    fn reconnect(&mut self) -> io::Result<()> {
        self.next = monotonic_now();
        self.look(self.next).map(|_| ())
    }

    fn everybody(&self) -> Option<Node> {
        self.radio.is_none().then_some(EVERYBODY)
    }
}

/// Everybody behind an interface, by its root queue.
fn wired(root: &QueueReport) -> StationReport {
    StationReport {
        station: EVERYBODY,
        backlog_packets: root.backlog_packets,
        backlog_bytes: root.backlog_bytes,
        head_wait: None,
        queue_drops: root.drops,
        tx_attempts: None,
        tx_retries: None,
        tx_failed: None,
        tx_packets: root.tx_packets,
        tx_bytes: root.tx_bytes,
        rx_packets: 0,
        rx_bytes: Bytes::ZERO,
        tx_airtime: None,
        rx_airtime: None,
        tx_ppdus: None,
        phy_rate: Rate::ZERO,
    }
}

/// What is known of an access point, in words.
fn of_radio(radio: &Radio, queues: &Queues) -> String {
    let channel = if radio.has_survey() { "channel times" } else { "no channel times (its survey stands still)" };
    let queues = match queues.holds_packets() {
        true => format!("the qdisc {}", queues.kind),
        false => "mac80211's queues".to_owned(),
    };
    format!(
        "nl80211: stations, {channel}; backlog of {queues}; no count of PPDUs, nor how long the oldest packet waits"
    )
}
