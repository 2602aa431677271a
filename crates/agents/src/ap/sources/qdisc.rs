//! Queues of an interface: what its queueing disciplines count, by rtnetlink.

use super::wide::Wide;
use lasthop_signals::QueueReport;
use lasthop_system::netlink::Netlink;
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

/// One qdisc's counters. In the kernel its packets and drops have 32 bits.
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
        let (mut listed, index, counters) = (Listed::default(), self.index, &mut self.counters);
        self.netlink.ask(RouteNetlinkMessage::GetQueueDiscipline(question), NLM_F_DUMP, |answer| {
            if let Ok(RouteNetlinkMessage::NewQueueDiscipline(qdisc)) = answer {
                listed.add(&qdisc, index, counters);
            }
        })?;
        Ok(listed.queues())
    }
}

/// Qdiscs of one interface in the order in which the kernel lists them.
#[derive(Default)]
struct Listed {
    root: Option<(String, QueueReport, TcHandle)>,
    children: Vec<(TcHandle, QueueReport)>,
}

impl Listed {
    /// One more, if it is of interface `index`: kernels list those of all.
    fn add(&mut self, qdisc: &TcMessage, index: i32, counters: &mut BTreeMap<u32, Counters>) {
        if qdisc.header.index != index {
            return;
        }
        let Some((kind, report)) = read(qdisc, counters) else { return };
        if qdisc.header.parent == TcHandle::ROOT {
            self.root = Some((kind, report, qdisc.header.handle));
        } else {
            self.children.push((qdisc.header.parent, report));
        }
    }

    fn queues(self) -> Queues {
        let Some((kind, root, handle)) = self.root else { return Queues::default() };
        let root = QueueReport { queue: 1, ..root };
        let of_root = |(parent, report): &(TcHandle, QueueReport)| {
            (parent.major == handle.major).then_some(QueueReport { queue: parent.minor, ..*report })
        };
        let mut each = vec![root];
        if kind == "mq" {
            each = self.children.iter().filter_map(of_root).collect();
            each.sort_by_key(|queue: &QueueReport| queue.queue);
        }
        Queues { kind, root, each }
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

#[cfg(test)]
mod tests {
    use super::*;
    use lasthop_system::netlink::next;
    use lasthop_wire::pcap::Stream;
    use netlink_packet_core::{NetlinkMessage, NetlinkPayload};

    /// What the kernel answered when `tc` asked (`tests/qdisc/README.md`), and what `tc` showed of it.
    fn recorded() -> (Vec<TcMessage>, String) {
        let file = |name| std::fs::read(format!("{}/tests/qdisc/{name}", env!("CARGO_MANIFEST_DIR"))).expect(name);
        let mut stream = Stream::of(&file("qdisc.pcap"));
        let mut qdiscs = Vec::new();
        while let Some(packet) = stream.packet().expect("a capture") {
            let mut rest = &packet.bytes[16..];
            while let Some(one) = next(&mut rest).expect("messages") {
                let message = NetlinkMessage::<RouteNetlinkMessage>::deserialize(one).expect("one that can be read");
                let NetlinkPayload::InnerMessage(RouteNetlinkMessage::NewQueueDiscipline(qdisc)) = message.payload
                else {
                    continue;
                };
                qdiscs.push(qdisc);
            }
        }
        (qdiscs, String::from_utf8(file("qdisc.txt")).expect("text"))
    }

    /// What `tc -s qdisc show` shows: kind, interface, class under which it stands, and its numbers.
    fn shown(text: &str) -> Vec<(String, String, String, QueueReport)> {
        let blocks = text.split("qdisc ").skip(1);
        blocks
            .map(|block| {
                let words: Vec<&str> =
                    block.split([' ', '\n', '(', ')', ',']).filter(|word| !word.is_empty()).collect();
                let after = |key: &str| words.iter().position(|word| *word == key).map(|at| words[at + 1]);
                let number = |key: &str| -> u64 {
                    let digits = |c: char| !c.is_ascii_digit();
                    after(key).and_then(|word| word.trim_end_matches(digits).parse().ok()).expect(key)
                };
                let nth = |key: &str, n: usize| {
                    let at = words.iter().position(|word| *word == key).expect(key);
                    words[at + n].trim_end_matches(|c: char| !c.is_ascii_digit()).parse::<u64>().expect(key)
                };
                let (packets, waiting) = (nth("Sent", 3), nth("backlog", 2));
                let report = QueueReport {
                    queue: 0,
                    backlog_packets: u32::try_from(waiting).expect("few"),
                    backlog_bytes: Bytes::new(number("backlog") - 14 * waiting),
                    drops: number("dropped"),
                    requeues: number("requeues"),
                    tx_packets: packets,
                    tx_bytes: Bytes::new(number("Sent") - 14 * packets),
                };
                let place = after("parent").unwrap_or("root");
                (words[0].to_owned(), after("dev").expect("an interface").to_owned(), place.to_owned(), report)
            })
            .collect()
    }

    #[test]
    fn queues_are_those_that_tc_shows() {
        let (qdiscs, text) = recorded();
        let shown = shown(&text);
        assert_eq!(qdiscs.len(), shown.len(), "{text}");
        let queues = |interface: &str| {
            let at = shown.iter().position(|(_, of, ..)| of == interface).expect(interface);
            let (mut listed, index) = (Listed::default(), qdiscs[at].header.index);
            qdiscs.iter().for_each(|qdisc| listed.add(qdisc, index, &mut BTreeMap::new()));
            listed.queues()
        };
        let numbers = |interface: &str, parent: &str, queue| {
            let (kind, .., report) =
                shown.iter().find(|(_, of, under, _)| of == interface && under == parent).expect(parent);
            (kind.clone(), QueueReport { queue, ..*report })
        };
        for interface in ["lo", "wlan0"] {
            let (kind, root) = numbers(interface, "root", 1);
            assert_eq!(queues(interface), Queues { kind, root, each: vec![root] });
        }
        assert!(
            !queues("lo").holds_packets() && queues("wlan0").holds_packets() && queues("wlan0").root.tx_packets > 0
        );
        // One a hardware queue, whatever the order in which the kernel lists them; in the first packets wait.
        let (kind, root) = numbers("many", "root", 1);
        let each = [numbers("many", "2:1", 1).1, numbers("many", "2:2", 2).1];
        assert_eq!(queues("many"), Queues { kind, root, each: each.to_vec() });
        assert!(
            each[0].backlog_packets > 0
                && each[0].drops > 0
                && each[1] == QueueReport { queue: 2, ..QueueReport::default() }
        );
    }
}
