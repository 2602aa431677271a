//! Which flow makes room for a new one in the access point's table.
//! Source:     ours. Set-associative caches take the least recently used way; what is added is what a connection's state says.
//! Equations:  the way of least rank (free 0, over 1, handshake not completed 2, other 3), of equals the one silent
//!             longest, among those with age >= 2 ticks; age = tick - used modulo 2^32.
//! Symbols:    none.
//! Deviations: a packet that another processor works on was let into its way less than a tick ago, so a way that has rested
//!             for two is nobody's; if none has, the newcomer is not followed, which leaves it plain TCP.
//! Validity:   silences shorter than 2^32 - 16 ticks (49 days at 1000 a second).
//! Checked by: tests below; the agents' `tests/integration/eviction.rs` compares with the eBPF program's `choose_way`.

use super::Flow;

/// Ways of a set.
pub const WAYS: usize = 7;
/// Ticks that a way must have been silent for.
pub const REST: u32 = 2;
/// Another processor may know a newer tick, by less than this: its packets are new, not of long ago.
pub const AHEAD: u32 = 16;

/// A way of the set that a new flow hashes to.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Way {
    /// The flow that stands in it, if there is one.
    pub flow: Option<Flow>,
    /// Tick of its newest packet; of a free way, that of the flow before.
    pub used: u32,
}

/// The way that a flow takes which opens at `tick`; `None` if all are busy.
pub fn choose(ways: &[Way; WAYS], tick: u32) -> Option<usize> {
    let age = |way: &Way| tick.wrapping_sub(way.used);
    let rested = ways.iter().enumerate().filter(|(_, way)| age(way).wrapping_add(AHEAD) >= REST + AHEAD);
    // Of equals the first.
    rested.min_by_key(|(_, way)| (rank(way), std::cmp::Reverse(age(way)))).map(|(index, _)| index)
}

fn rank(way: &Way) -> u8 {
    match &way.flow {
        None => 0,
        Some(flow) if flow.is_over() => 1,
        Some(flow) if !flow.is_started() => 2,
        Some(_) => 3,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lasthop_units::Time;
    use lasthop_wire::tcp::{Flags, TcpHeader, TcpOptions};

    fn header(flags: Flags, ack: u32) -> TcpHeader {
        let options = TcpOptions::default();
        TcpHeader { source_port: 0, destination_port: 0, seq: 0, ack, flags, window: 1, options, payload_len: 0 }
    }

    fn half_open() -> Flow {
        let mut flow = Flow::default();
        flow.on_downlink(Time::from_nanos(1), &header(Flags::SYN, 0));
        flow
    }

    fn started() -> Flow {
        let mut flow = half_open();
        let _ = flow.on_uplink(Time::from_nanos(1), &header(Flags::SYN | Flags::ACK, 1));
        let _ = flow.on_uplink(Time::from_nanos(1), &header(Flags::ACK, 1));
        assert!(flow.is_started());
        flow
    }

    fn over() -> Flow {
        let mut flow = started();
        flow.on_downlink(Time::from_nanos(2), &header(Flags::RST, 0));
        flow
    }

    fn full_of(flow: Flow) -> [Way; WAYS] {
        std::array::from_fn(|i| Way { flow: Some(flow), used: 100 + i as u32 })
    }

    #[test]
    fn the_flow_that_was_silent_longest_makes_room() {
        let mut ways = full_of(started());
        assert_eq!(choose(&ways, 200), Some(0));
        ways[0].used = 150;
        assert_eq!(choose(&ways, 200), Some(1));
    }

    #[test]
    fn free_ways_go_first_then_ended_then_half_open_flows() {
        let mut ways = full_of(started());
        ways[3].flow = Some(half_open());
        assert_eq!(choose(&ways, 200), Some(3));
        ways[4].flow = Some(over());
        assert_eq!(choose(&ways, 200), Some(4));
        ways[5].flow = None;
        assert_eq!(choose(&ways, 200), Some(5));
    }

    #[test]
    fn a_busy_way_is_not_taken_not_even_a_free_one() {
        let mut ways = full_of(started());
        assert_eq!(choose(&ways, 101), None, "all were used within two ticks, or later");
        ways[6] = Way { flow: None, used: 199 };
        assert_eq!(choose(&ways, 200), Some(0));
        ways.iter_mut().for_each(|way| way.used = u32::MAX);
        assert_eq!(choose(&ways, 0), None);
        assert_eq!(choose(&ways, 1), Some(6), "two ticks later, across the wrap");
    }
}
