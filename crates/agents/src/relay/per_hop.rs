//! Other protocols that act at every hop, at user level: a handler sees each IP packet that leaves, and may change or drop it.
//!
//! Packets come over NFQUEUE, to which rules of iptables send what leaves through the relay's interfaces. It costs a packet two ways between
//! kernel and process, some microseconds; what has to be faster belongs into the eBPF program. The rules pass by a queue that nobody has open
//! (`--queue-bypass`), and a queue that is full lets packets pass (fail-open), so that they flow on without the relay.

use lasthop_units::Span;
use lasthop_wire::ip;
use serde::Serialize;

/// What becomes of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// It goes on as it has come.
    Pass,
    /// It goes on as the handler has left it.
    Changed,
    /// It is dropped.
    Drop,
}

/// A protocol that acts at every hop. Handlers have a thread of their own, which does not wait for anything else: whatever takes long
/// holds packets up.
pub trait PerHop: Send {
    /// Looks at an IP packet, header first, that is about to be queued, and may change it, or its length. `own` is the node's own delay D, if it
    /// is known now. Checksums are the handler's (`lasthop_wire::checksum`), and have been complete before. Large packets come one by one as they will leave.
    fn leaves(&mut self, packet: &mut Vec<u8>, own: Option<Span>) -> Verdict;
}

/// Marks packets of ECN-capable transports (CE, RFC 3168) while D is at least a threshold: the example of a handler.
#[derive(Clone, Copy, Debug)]
pub struct MarkCe {
    /// The threshold.
    pub above: Span,
}

impl PerHop for MarkCe {
    fn leaves(&mut self, packet: &mut Vec<u8>, own: Option<Span>) -> Verdict {
        let above = own.is_some_and(|own| own >= self.above);
        if above && ip::mark_ce(packet) { Verdict::Changed } else { Verdict::Pass }
    }
}

/// What a handler did.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Handled {
    /// Packets that it saw.
    #[serde(rename = "handled")]
    pub seen: u64,
    /// Packets that it changed.
    #[serde(rename = "handled_changed")]
    pub changed: u64,
    /// Packets that it dropped.
    #[serde(rename = "handled_dropped")]
    pub dropped: u64,
}

#[cfg(test)]
mod tests {
    use super::*;
    use lasthop_wire::ip::Ecn;

    #[test]
    fn capable_packets_are_marked_above_the_threshold_alone() {
        let mut handler = MarkCe { above: Span::from_millis(20) };
        let packet = |ecn| {
            let (mut packet, address) = (Vec::new(), std::net::IpAddr::from([192, 0, 2, 1]));
            ip::write(&mut packet, address, address, ip::UDP, ecn, 0).expect("short");
            packet
        };
        for (ecn, own, verdict) in [
            (Ecn::Ect0, Some(20), Verdict::Changed),
            (Ecn::Ect0, Some(19), Verdict::Pass),
            (Ecn::Ect0, None, Verdict::Pass),
            (Ecn::NotEct, Some(90), Verdict::Pass),
        ] {
            let mut octets = packet(ecn);
            assert_eq!(handler.leaves(&mut octets, own.map(Span::from_millis)), verdict);
            assert_eq!(ip::parse(&octets).expect("a packet").ecn == Ecn::Ce, verdict == Verdict::Changed);
        }
    }
}
