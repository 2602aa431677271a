//! What files say of traffic.

use crate::read::{Quantity, foreign_words, table, words};
use lasthop_radio::AccessClass;
use lasthop_units::{Bytes, Rate, Span};

table! {
    /// A stream between two hosts. Connections are opened by the station; between two stations or
    /// two wired hosts, by the receiver.
    Traffic {
        /// What it is.
        required kind: TrafficKind,
        /// Source: `"server"`, `"ap"`, a station, a `[[host]]`, or `"each"` station.
        default("\"server\"") from: String,
        /// Receiver: as `from`.
        required to: String,
        /// Wi-Fi: access category of packets both ways; sockets of the lab set its DSCP. A proxy's
        /// tunnel is best effort.
        default("\"best-effort\"") class: Class,
        /// When it begins.
        default("\"0 s\"") start: Quantity<Span>,
        /// When it ends. Default: with the run.
        optional stop: Quantity<Span>,
        /// `probe`, `udp`: UDP payload (default 64 B, 1472 B). `fetch`: bytes each time (default
        /// 100 kB). `bulk`: bytes in all (default unlimited).
        optional size: Quantity<Bytes>,
        /// `udp`: network-layer rate. Without it as the regulator allows: in the simulator, from
        /// the server, with a regulator in every law.
        optional rate: Quantity<Rate>,
        /// `udp` with a rate: packets exactly one interval apart, not at a random moment of each.
        /// Default: false.
        optional periodic: bool,
        /// `probe`, `fetch`: interval between beginnings. Default: 20 ms and 1 s.
        optional every: Quantity<Span>,
        /// `bulk`: parallel TCP connections. Default: 1.
        optional flows: u64,
        /// `bulk`: the lab's sender program. Default: `own`.
        optional program: Program,
        /// `bulk` with `program = "own"`: socket send buffer, overhead counted as in Linux.
        /// Default: in the lab the kernel's (4 MiB), in the simulator unlimited.
        optional send_buffer: Quantity<Bytes>,
    }
}

words! {
    /// A kind of traffic.
    TrafficKind {
        /// A TCP transfer that always has more to send.
        Bulk = "bulk",
        /// Small UDP packets at a fixed interval: the delay of a call or a game.
        Probe = "probe",
        /// UDP packets at a constant rate, or as a regulator allows.
        Udp = "udp",
        /// Short TCP transfers requested by the receiver at a fixed interval, each on a connection
        /// of its own: the time of a page load.
        Fetch = "fetch",
    }
}

words! {
    /// A sender program of the lab.
    Program {
        /// Lasthop's own sender over a kernel socket.
        Own = "own",
        /// `iperf3`.
        Iperf3 = "iperf3",
    }
}

foreign_words! {
    /// An EDCA access category with the standard's default parameters (IEEE 802.11-2020,
    /// 10.2.3.2); 802.11a and g have one.
    Class(AccessClass) {
        /// AC_BK: DSCP CS1 in the lab (RFC 8325, low-priority data).
        "background" => AccessClass::Background,
        /// AC_BE: DSCP 0.
        "best-effort" => AccessClass::BestEffort,
        /// AC_VI: DSCP AF41 (multimedia conferencing).
        "video" => AccessClass::Video,
        /// AC_VO: DSCP EF (telephony).
        "voice" => AccessClass::Voice,
    }
}
