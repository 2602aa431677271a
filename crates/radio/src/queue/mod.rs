//! Queues of an access point or station: which packets wait, and whose turn it is.

/// A queue discipline and its limits.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Kind {
    /// One queue with one packet limit, in order of arrival: the head packet's receiver is served, and its frame takes
    /// that receiver's packets from anywhere in the queue.
    Fifo {
        /// Packets it holds, unacknowledged ones included.
        packets: usize,
    },
    /// One queue per receiver, served in turn, one frame each.
    RoundRobin {
        /// Packets that each receiver's queue holds, unacknowledged ones included.
        packets: usize,
    },
    /// FQ-CoDel per receiver and airtime fairness between them, as Linux's mac80211 does.
    FqCodelAirtime(FqCodelParams),
}

/// Parameters of FQ-CoDel with airtime fairness.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FqCodelParams {
    /// Sojourn time that CoDel tolerates as standing.
    pub target: lasthop_units::Span,
    /// How long the sojourn time must stay above `target` before CoDel acts.
    pub interval: lasthop_units::Span,
    /// Bytes that a flow may send a turn.
    pub quantum: u32,
    /// Packets over all receivers and flows; beyond, the longest flow loses its head.
    pub packets: usize,
    /// Airtime credit that a receiver gets a turn.
    pub airtime_quantum: lasthop_units::Span,
    /// Mark ECN-capable packets instead of dropping them.
    pub ecn: bool,
}

impl Default for FqCodelParams {
    /// mac80211's values for a station: target 20 ms, interval 100 ms, quantum 300 bytes, 8192 packets, an airtime
    /// weight of 256 us, marking on.
    fn default() -> FqCodelParams {
        use lasthop_units::Span;
        FqCodelParams {
            target: Span::from_millis(20),
            interval: Span::from_millis(100),
            quantum: 300,
            packets: 8192,
            airtime_quantum: Span::from_micros(256),
            ecn: true,
        }
    }
}
