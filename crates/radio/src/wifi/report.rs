//! What a node's driver reports of each node that it exchanges frames with: the counters that nl80211 and mac80211 show on Linux.

use super::model::Wifi;
use super::model::{Event, narrow};
use crate::Outbox;
use lasthop_signals::{ChannelTime, Node, Signal, StationReport};
use lasthop_units::{Bytes, Span, Time};

impl<P: Clone> Wifi<P> {
    /// Every node with a reporting driver reports.
    pub(super) fn report(&mut self, now: Time, out: &mut impl Outbox<P>) {
        self.schedule(now + self.plan.params().driver_interval, Event::Report);
        let mut signal = std::mem::replace(&mut self.report, Signal::Recovered);
        for place in 0..self.reporters.len() {
            let node = usize::from(self.reporters[place]);
            if let Signal::Hop(report) = &mut signal {
                let (busy, tx) = self.medium.channel_time(node, now);
                let rx = self.medium.nodes[node].received;
                report.channel = ChannelTime {
                    active: now.since(Time::ZERO),
                    busy: Some(busy),
                    rx: Some(rx),
                    tx: Some(tx),
                    ..ChannelTime::default()
                };
                report.stations.clear();
                for slot in 0..self.ports[node].receivers.len() {
                    let station = self.peer_report(node, slot, now);
                    report.stations.push(station);
                }
            }
            out.driver(now, Node(narrow(node)), &signal);
        }
        self.report = signal;
    }

    /// The entry for one of a node's receivers.
    fn peer_report(&mut self, node: usize, slot: usize, now: Time) -> StationReport {
        let to = self.ports[node].receivers[slot];
        let (mut packets, mut bytes, mut oldest) = (0, 0, now);
        let classes = self.classes;
        for class in 0..classes {
            let queue = &self.queues[node * classes + class];
            let session = &self.sessions[self.session(node, class, slot)];
            let waiting = queue.backlog(&self.tables, slot);
            packets += waiting.0 + session.packets;
            bytes += waiting.1 + session.bytes;
            let head =
                session.window.front().map(|entry| entry.id).or_else(|| queue.oldest(&self.pool, &self.tables, slot));
            oldest = head.map_or(oldest, |id| oldest.min(self.pool.get(id).queued_at));
        }
        let mode = usize::from(self.mode(node, usize::from(to), now));
        let peer = self.peers[self.ports[node].first_peer + slot];
        StationReport {
            station: Node(to),
            backlog_packets: u32::try_from(packets).unwrap_or(u32::MAX),
            backlog_bytes: Bytes::new(bytes),
            head_wait: Some(if packets == 0 { Span::ZERO } else { now.since(oldest) }),
            queue_drops: peer.queue_drops,
            tx_attempts: Some(peer.tx_attempts),
            tx_retries: Some(peer.tx_retries),
            tx_failed: Some(peer.tx_failed),
            tx_packets: peer.tx_packets,
            tx_bytes: Bytes::new(peer.tx_bytes),
            rx_packets: peer.rx_packets,
            rx_bytes: Bytes::new(peer.rx_bytes),
            tx_airtime: Some(peer.tx_airtime),
            rx_airtime: Some(peer.rx_airtime),
            tx_ppdus: Some(peer.tx_ppdus),
            phy_rate: self.plan.modes()[mode].phy.rate(),
        }
    }
}
