//! Queues of an interface: what its queueing disciplines count, by rtnetlink.

use super::wide::Wide;
use crate::netlink::Netlink;
use lasthop_signals::QueueReport;
use lasthop_units::Bytes;
use netlink_packet_core::NLM_F_DUMP;
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::tc::{TcAttribute, TcHandle, TcMessage, TcStats2};
use std::collections::BTreeMap;
use std::io;

/// Octets of an Ethernet header, which a qdisc counts with each packet.
const ETHERNET: u64 = 14;

/// The root queue of an interface, and those beneath it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Queues {
    /// What the root is, as `tc qdisc` names it; empty if there is none.
    pub kind: String,
    /// The root's numbers: all that its children have, too.
    pub root: QueueReport,
    /// Under `mq`, one a hardware queue; otherwise the root alone.
    pub each: Vec<QueueReport>,
}

impl Queues {
    /// True if packets wait here when they do: of `noqueue` they do not.
    pub(crate) fn holds_packets(&self) -> bool {
        !self.kind.is_empty() && self.kind != "noqueue"
    }
}

/// Reads them again and again.
#[derive(Debug)]
pub(crate) struct Qdiscs {
    netlink: Netlink,
    index: i32,
    counters: BTreeMap<u32, Counters>,
}

/// One qdisc's counters, whose packets and drops have 32 bits in the kernel.
#[derive(Clone, Copy, Debug, Default)]
struct Counters {
    bytes: u64,
    packets: Wide,
    drops: Wide,
    requeues: Wide,
}

impl Qdiscs {
    /// Those of interface `index`.
    ///
    /// # Errors
    /// What the kernel refuses.
    pub(crate) fn open(index: i32) -> io::Result<Qdiscs> {
        Ok(Qdiscs { netlink: Netlink::open(libc::NETLINK_ROUTE)?, index, counters: BTreeMap::new() })
    }

    /// As they are now.
    ///
    /// # Errors
    /// What the kernel refuses.
    pub(crate) fn read(&mut self) -> io::Result<Queues> {
        let mut question = TcMessage::default();
        question.header.index = self.index;
        let (index, counters) = (self.index, &mut self.counters);
        let (mut root, mut children) = (None, Vec::new());
        self.netlink.ask(RouteNetlinkMessage::GetQueueDiscipline(question), NLM_F_DUMP, |answer| {
            let Ok(RouteNetlinkMessage::NewQueueDiscipline(qdisc)) = answer else { return };
            // Kernels list those of all interfaces.
            if qdisc.header.index != index {
                return;
            }
            let Some((kind, report)) = read(&qdisc, counters) else { return };
            if qdisc.header.parent == TcHandle::ROOT {
                root = Some((kind, report, qdisc.header.handle));
            } else {
                children.push((qdisc.header.parent, report));
            }
        })?;
        let Some((kind, root, handle)) = root else { return Ok(Queues::default()) };
        let root = QueueReport { queue: 1, ..root };
        let of_root = |(parent, report): &(TcHandle, QueueReport)| {
            (parent.major == handle.major).then_some(QueueReport { queue: parent.minor, ..*report })
        };
        let each = if kind == "mq" { children.iter().filter_map(of_root).collect() } else { vec![root] };
        Ok(Queues { kind, root, each })
    }
}

/// Kind and counters of one qdisc; octets as of the network layer.
fn read(qdisc: &TcMessage, counters: &mut BTreeMap<u32, Counters>) -> Option<(String, QueueReport)> {
    let (mut kind, mut basic, mut queue) = (None, None, None);
    for attribute in &qdisc.attributes {
        match attribute {
            TcAttribute::Kind(name) => kind = Some(name.clone()),
            TcAttribute::Stats2(stats) => {
                for stat in stats {
                    match stat {
                        TcStats2::Basic(counted) => basic = Some(*counted),
                        TcStats2::Queue(counted) => queue = Some(*counted),
                        _ => {}
                    }
                }
            }
            _ => {}
        }
    }
    let (basic, queue) = (basic?, queue?);
    let place = u32::from(qdisc.header.parent.major) << 16 | u32::from(qdisc.header.parent.minor);
    let known = counters.entry(place).or_default();
    if basic.bytes < known.bytes {
        // Another qdisc has taken its place.
        *known = Counters::default();
    }
    known.bytes = basic.bytes;
    let tx_packets = known.packets.widened(basic.packets);
    let network = |bytes: u64, packets: u64| Bytes::new(bytes.saturating_sub(ETHERNET * packets));
    let report = QueueReport {
        queue: 0,
        backlog_packets: queue.qlen,
        backlog_bytes: network(u64::from(queue.backlog), u64::from(queue.qlen)),
        drops: known.drops.widened(queue.drops),
        requeues: known.requeues.widened(queue.requeues),
        tx_packets,
        tx_bytes: network(basic.bytes, tx_packets),
    };
    Some((kind?, report))
}
