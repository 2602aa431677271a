//! What an access point's driver and its forwarding path show.
//!
//! Counters are cumulative since the driver started, as Linux reports them; whoever consumes them takes differences. A counter
//! that a driver does not have is absent: a zero would say that nothing was counted.

use crate::{FlowId, Node};
use lasthop_units::{Bytes, Rate, Span, Time};
use serde::{Deserialize, Serialize};

/// One sample of a driver's counters: what nl80211's survey and station dumps and mac80211's `aqm` hold.
#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize)]
pub struct HopReport {
    /// How the channel was used.
    #[serde(flatten)]
    pub channel: ChannelTime,
    /// One entry an associated station, in the order of their numbers. A wired hop has one: all that is behind it.
    pub stations: Vec<StationReport>,
    /// Queues of the interface that packets of all stations share before the driver takes them (qdiscs), in the order of their numbers.
    /// Empty if there are none, as above mac80211's own queues.
    #[serde(default)]
    pub queues: Vec<QueueReport>,
}

/// Cumulative counters of one queue of an interface, and what waits in it now (`struct gnet_stats_basic`, `struct gnet_stats_queue`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct QueueReport {
    /// Its number among the interface's queues, from 1: the first hardware queue's under `mq`; 1 where there is only one.
    pub queue: u16,
    /// Packets that wait in it.
    pub backlog_packets: u32,
    /// Their link-layer bytes.
    pub backlog_bytes: Bytes,
    /// Packets dropped by it.
    pub drops: u64,
    /// Packets that the driver gave back to it for want of room.
    pub requeues: u64,
    /// Packets that left it towards the driver.
    pub tx_packets: u64,
    /// Their link-layer bytes.
    pub tx_bytes: Bytes,
}

/// What a node's driver knows of the delay of its own hop: ATP's averages, and what D follows from beside them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct NodeDelay {
    /// Q: from the queue to the head of the line, averaged.
    #[serde(rename = "queueing_ns")]
    pub queueing: Span,
    /// T: from there until the node is done with a packet, averaged.
    #[serde(rename = "service_ns")]
    pub service: Span,
    /// When it was done with the last one; while packets wait, when the first of them came, if that is later. `None` before the first.
    #[serde(rename = "last_ns")]
    pub last: Option<Time>,
    /// Packets that wait or are being sent.
    pub waiting: u32,
}

/// Cumulative channel occupation seen by one radio (nl80211 survey: `time`, `time_busy`, `time_rx`, `time_tx`, `time_scan`), and its noise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ChannelTime {
    /// Time the radio has been on the channel: the clock of the counters.
    #[serde(rename = "active_ns")]
    pub active: Span,
    /// Time the channel was sensed busy for any reason, own transmissions included.
    #[serde(rename = "busy_ns")]
    pub busy: Option<Span>,
    /// Time spent receiving frames addressed to this radio's own BSS, responses (Ack, BlockAck) included.
    #[serde(rename = "rx_ns")]
    pub rx: Option<Span>,
    /// Time spent transmitting.
    #[serde(rename = "tx_ns")]
    pub tx: Option<Span>,
    /// Time spent scanning, other channels included.
    #[serde(rename = "scan_ns")]
    #[serde(default)]
    pub scan: Option<Span>,
    /// The noise now, in dBm.
    #[serde(rename = "noise_dbm")]
    #[serde(default)]
    pub noise: Option<i8>,
}

/// Cumulative counters of one station, and its queue now.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct StationReport {
    /// Which station.
    pub station: Node,
    /// MSDUs that wait for it at the access point, including those being retried.
    pub backlog_packets: u32,
    /// Their network-layer bytes.
    pub backlog_bytes: Bytes,
    /// How long the oldest of them has waited.
    #[serde(rename = "head_wait_ns")]
    pub head_wait: Option<Span>,
    /// MSDUs dropped before transmission: queue overflow and queue management.
    pub queue_drops: u64,
    /// MPDU transmission attempts.
    pub tx_attempts: Option<u64>,
    /// Attempts that were repeats of an earlier one.
    pub tx_retries: Option<u64>,
    /// MSDUs given up after the retry limit.
    pub tx_failed: Option<u64>,
    /// MSDUs acknowledged by the station; on a wired hop those that were sent.
    pub tx_packets: u64,
    /// Their network-layer bytes.
    pub tx_bytes: Bytes,
    /// MSDUs received from it.
    pub rx_packets: u64,
    /// Their network-layer bytes.
    pub rx_bytes: Bytes,
    /// Airtime of exchanges towards it: PPDUs, SIFS and responses, without contention.
    #[serde(rename = "tx_airtime_ns")]
    pub tx_airtime: Option<Span>,
    /// Airtime of exchanges from it.
    #[serde(rename = "rx_airtime_ns")]
    pub rx_airtime: Option<Span>,
    /// PPDUs sent to it that carried data.
    pub tx_ppdus: Option<u64>,
    /// Current PHY rate towards it; zero if it is not known.
    #[serde(rename = "phy_rate_bps")]
    pub phy_rate: Rate,
}

impl StationReport {
    /// A station that nothing has been sent to or heard of yet: all counters zero, no rate.
    pub const fn unseen(station: Node) -> StationReport {
        StationReport {
            station,
            backlog_packets: 0,
            backlog_bytes: Bytes::ZERO,
            head_wait: Some(Span::ZERO),
            queue_drops: 0,
            tx_attempts: Some(0),
            tx_retries: Some(0),
            tx_failed: Some(0),
            tx_packets: 0,
            tx_bytes: Bytes::ZERO,
            rx_packets: 0,
            rx_bytes: Bytes::ZERO,
            tx_airtime: Some(Span::ZERO),
            rx_airtime: Some(Span::ZERO),
            tx_ppdus: Some(0),
            phy_rate: Rate::ZERO,
        }
    }
}

/// One flow as a middle box between its ends knows it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct FlowReport {
    /// Which flow.
    pub flow: FlowId,
    /// The station on its wireless side, where known.
    pub station: Node,
    /// Payload forwarded towards the station since the flow was first seen, retransmissions included.
    pub forwarded: Bytes,
    /// Payload acknowledged by the station since the flow was first seen.
    pub acked: Bytes,
    /// Highest sequence forwarded less highest acknowledgement: what is between middle box and receiver's ACK.
    pub in_flight: Bytes,
    /// Smallest recent time from forwarding an ACK to the first data sent in answer to it.
    #[serde(rename = "wired_rtt_ns")]
    pub wired_rtt: Option<Span>,
    /// Smallest recent time from forwarding data to its ACK.
    #[serde(rename = "wireless_rtt_ns")]
    pub wireless_rtt: Option<Span>,
    /// Maximum segment payload.
    pub mss: Bytes,
    /// The window the receiver itself advertised last.
    pub advertised: Bytes,
    /// When data was last forwarded.
    #[serde(rename = "last_data_ns")]
    pub last_data: Time,
    /// True while ACKs carry SACK blocks or repeat themselves.
    pub recovering: bool,
}
