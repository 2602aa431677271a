//! Queue disciplines, with the parameters that each has.

use crate::bounds::{packets, plain, span};
use crate::quantity::{Packets, show};
use crate::read::{At, Context, Entry, Quantity, table, words};
use lasthop_radio::queue::{self, Aql, FqCodelParams, PieParams, QdiscParams};
use lasthop_units::{Bytes, Span};

table! {
    /// A queue of an access point or station.
    Queue {
        /// The discipline.
        required kind: QueueKind,
        /// Most packets. Default: 1000 for `fifo`, `codel`, `pie` and, each station,
        /// `round-robin`; 8192 for `fq-codel-airtime`, as mac80211; 1024 for `fq-codel`, the
        /// driver's apart.
        optional limit: Quantity<Packets>,
        /// `fifo` of `[hop.trace]`, in place of `limit`: most bytes, a packet counting 4 more than
        /// its length.
        optional bytes: Quantity<Bytes>,
        /// `fq-codel-airtime`, `fq-codel`: bytes a flow may send in its turn. Default: 300 B, as
        /// mac80211.
        optional quantum: Quantity<Bytes>,
        /// `fq-codel-airtime`, `fq-codel`, `codel`: standing delay accepted (default 20 ms, 5 ms,
        /// 5 ms). `pie`: delay steered to (default 15 ms).
        optional target: Quantity<Span>,
        /// `fq-codel-airtime`, `fq-codel`, `codel`: time above `target` before CoDel drops.
        /// Default: 100 ms.
        optional interval: Quantity<Span>,
        /// `fq-codel-airtime`: airtime of a station's turn. Default: 256 us, as mac80211.
        optional airtime_quantum: Quantity<Span>,
        /// `fq-codel-airtime`, `fq-codel`, `codel`, `pie`: mark ECN-capable packets instead of
        /// dropping. Default: true; `codel` and `pie` false.
        optional ecn: bool,
        /// `fq-codel-airtime`: memory of waiting packets (1500 B take 2304 B). Default: 16 MiB
        /// (ac), 4 MiB (others), as mac80211.
        optional memory: Quantity<Bytes>,
        /// `fq-codel-airtime`: airtime queue limits bound what the hardware holds. Default: true.
        optional aql: bool,
        /// `fq-codel-airtime`: airtime in hardware below which a station may always add. Default:
        /// 5 ms.
        optional aql_low: Quantity<Span>,
        /// `fq-codel-airtime`: airtime in hardware below which a station may add while all hold
        /// less than `aql-total`. Default: 12 ms.
        optional aql_high: Quantity<Span>,
        /// `fq-codel-airtime`: airtime of all stations from which `aql-low` applies. Default: 24
        /// ms.
        optional aql_total: Quantity<Span>,
        /// `fq-codel-airtime`: aggregates of an access class in hardware, that on the air
        /// included. 0: only airtime limits; firmware aggregates (ath10k, mt76). Default: 2, as
        /// ath9k.
        optional hardware_aggregates: u64,
        /// `fq-codel-airtime`: target 50 ms, interval 300 ms, no marks for stations that expect
        /// less than 6 Mbit/s times the number of stations, as Linux 4.8 to 6.15. Default: false.
        optional relax_slow: bool,
        /// `fq-codel`: packets of an access class in the driver, unacknowledged included. Default:
        /// 123, as ath9k.
        optional driver_queue: Quantity<Packets>,
    }
}

words! {
    /// A queue discipline.
    QueueKind {
        /// One drop-tail queue for all stations: the classic access point. A frame takes packets
        /// for the head packet's receiver from anywhere in it.
        Fifo = "fifo",
        /// A drop-tail queue for each station, served in turn.
        RoundRobin = "round-robin",
        /// FQ-CoDel for each station, airtime fairness and airtime queue limits, as in mac80211
        /// since Linux 6.16: the modern access point.
        FqCodelAirtime = "fq-codel-airtime",
        /// One FQ-CoDel qdisc for all stations above a drop-tail driver queue, as in OpenWrt 15.05
        /// with ath9k.
        FqCodel = "fq-codel",
        /// `[hop.trace]`: an unlimited queue.
        Infinite = "infinite",
        /// `[hop.trace]`: CoDel (RFC 8289).
        Codel = "codel",
        /// `[hop.trace]`: PIE (RFC 8033).
        Pie = "pie",
    }
}

const DEFAULT_LIMIT: usize = 1000;

/// The queue of an access point on a wired hop.
pub(crate) fn fifo(table: &Queue, cx: &mut Context) -> Option<queue::Kind> {
    let kind = table.kind.get()?;
    if kind != QueueKind::Fifo && !is_of_links(kind) {
        let what = format!("`{kind}` needs the airtime or the stations of a Wi-Fi hop, and this hop is wired");
        cx.impossible(&table.kind.at, what, "write \"fifo\"");
        return None;
    }
    of_node(table, "write \"fifo\"", cx)
}

/// The queue of a node of a Wi-Fi hop.
pub(crate) fn of_radio(table: &Queue, cx: &mut Context) -> Option<queue::Kind> {
    of_node(table, "write \"fifo\" or \"fq-codel\"", cx)
}

/// True for what only links that play a trace have.
fn is_of_links(kind: QueueKind) -> bool {
    matches!(kind, QueueKind::Infinite | QueueKind::Codel | QueueKind::Pie)
}

fn of_node(table: &Queue, instead: &str, cx: &mut Context) -> Option<queue::Kind> {
    let kind = table.kind.get()?;
    if is_of_links(kind) {
        cx.impossible(&table.kind.at, format!("a queue of kind `{kind}` is for `[hop.trace]`"), instead);
        return None;
    }
    refuse_foreign(table, kind, cx);
    if let Some(at) = table.bytes.given_at() {
        cx.impossible(at, "this queue counts packets, and only that of `[hop.trace]` counts bytes", "write `limit`");
    }
    match kind {
        QueueKind::Infinite | QueueKind::Codel | QueueKind::Pie => None,
        QueueKind::Fifo => Some(queue::Kind::Fifo { packets: limit(table, DEFAULT_LIMIT, cx)? }),
        QueueKind::RoundRobin => Some(queue::Kind::RoundRobin { packets: limit(table, DEFAULT_LIMIT, cx)? }),
        QueueKind::FqCodelAirtime => fq_codel_airtime(table, cx).map(queue::Kind::FqCodelAirtime),
        QueueKind::FqCodel => fq_codel(table, cx).map(queue::Kind::FqCodel),
    }
}

/// The queue of a link that plays a trace.
pub(crate) fn of_link(table: &Queue, cx: &mut Context) -> Option<queue::LinkKind> {
    let kind = table.kind.get()?;
    if matches!(kind, QueueKind::RoundRobin | QueueKind::FqCodelAirtime | QueueKind::FqCodel) {
        let what = format!("`{kind}` is for the stations of a Wi-Fi hop, and each station has a link of its own here");
        cx.impossible(&table.kind.at, what, "write \"fifo\", \"infinite\", \"codel\" or \"pie\"");
        return None;
    }
    refuse_foreign(table, kind, cx);
    let counted = [table.limit.given_at(), table.bytes.given_at()];
    if let (QueueKind::Codel | QueueKind::Pie | QueueKind::Infinite, [_, Some(at)])
    | (QueueKind::Infinite, [Some(at), _]) = (kind, counted)
    {
        let what = format!("a queue of kind \"{kind}\" has no `{}`", at.name());
        cx.impossible(at, what, "delete this key, or write `kind = \"fifo\"`");
        return None;
    }
    if let [Some(_), Some(at)] = counted {
        cx.impossible(at, "two keys say how much the queue holds", "keep one of `limit` and `bytes`");
        return None;
    }
    match kind {
        QueueKind::Fifo if table.bytes.given => {
            let why = "a packet must fit, and packets must fit in memory";
            let bounds = (Bytes::new(1_504), Bytes::new(10_000_000_000));
            let bytes = cx.within(&plain(&table.bytes), bounds, show, why)?;
            Some(queue::LinkKind::DropTail(queue::Limit::Bytes(bytes)))
        }
        QueueKind::Fifo => Some(queue::LinkKind::DropTail(queue::Limit::Packets(limit(table, DEFAULT_LIMIT, cx)?))),
        QueueKind::Codel => {
            let (target, interval) = (Span::from_millis(5), Span::from_millis(100));
            let default = Codel { limit: DEFAULT_LIMIT, quantum: 1, target, interval, ecn: false };
            let Codel { limit: packets, target, interval, ecn, .. } = codel(table, &default, cx)?;
            Some(queue::LinkKind::Codel { target, interval, packets, ecn })
        }
        QueueKind::Pie => {
            let default = PieParams::default();
            let packets = limit(table, default.packets, cx);
            let why = "RFC 8033, 4.2: some round trips of the controller's 15 ms";
            let target = if table.target.given {
                span(&table.target, (Span::from_millis(1), Span::from_secs(10)), why, cx)
            } else {
                Some(default.target)
            };
            let ecn = if table.ecn.given { table.ecn.get()? } else { default.ecn };
            Some(queue::LinkKind::Pie(PieParams { target: target?, packets: packets?, ecn }))
        }
        _ => Some(queue::LinkKind::Infinite),
    }
}

/// Reports keys that only other kinds have.
fn refuse_foreign(table: &Queue, kind: QueueKind, cx: &mut Context) {
    use QueueKind::{Codel, FqCodel, FqCodelAirtime, Pie};
    let of_flows = [table.quantum.given_at()];
    let of_codel = [table.interval.given_at()];
    let of_management = [table.target.given_at(), table.ecn.given_at()];
    let of_airtime = [
        table.airtime_quantum.given_at(),
        table.memory.given_at(),
        table.aql.given_at(),
        table.aql_low.given_at(),
        table.aql_high.given_at(),
        table.aql_total.given_at(),
        table.hardware_aggregates.given_at(),
        table.relax_slow.given_at(),
    ];
    let of_discipline = [table.driver_queue.given_at()];
    let mut refuse = |at: &At, others: &str| {
        let what = format!("a queue of kind \"{kind}\" has no `{}`", at.name());
        cx.impossible(at, what, format!("delete this key, or write {others}"));
    };
    let (airtime, discipline) = ("`kind = \"fq-codel-airtime\"`", "`kind = \"fq-codel\"`");
    if !matches!(kind, FqCodel | FqCodelAirtime) {
        of_flows.into_iter().flatten().for_each(|at| refuse(at, airtime));
    }
    if !matches!(kind, FqCodel | FqCodelAirtime | Codel) {
        of_codel.into_iter().flatten().for_each(|at| refuse(at, airtime));
    }
    if !matches!(kind, FqCodel | FqCodelAirtime | Codel | Pie) {
        of_management.into_iter().flatten().for_each(|at| refuse(at, airtime));
    }
    if kind != FqCodelAirtime {
        of_airtime.into_iter().flatten().for_each(|at| refuse(at, airtime));
    }
    if kind != FqCodel {
        of_discipline.into_iter().flatten().for_each(|at| refuse(at, discipline));
    }
}

fn limit(table: &Queue, default: usize, cx: &mut Context) -> Option<usize> {
    if table.limit.given { packets(&table.limit, cx) } else { Some(default) }
}

/// What every kind with CoDel has.
struct Codel {
    limit: usize,
    quantum: u32,
    target: Span,
    interval: Span,
    ecn: bool,
}

/// That, with these defaults.
fn codel(table: &Queue, default: &Codel, cx: &mut Context) -> Option<Codel> {
    let limit = limit(table, default.limit, cx);
    let why = "a turn sends a byte at least; the largest is that of an HT A-MPDU";
    let quantum = if table.quantum.given {
        cx.within(&plain(&table.quantum), (Bytes::new(1), Bytes::new(65_535)), show, why)
    } else {
        Some(Bytes::new(u64::from(default.quantum)))
    };
    let why = "CoDel's times: RFC 8289, 4.2 to 4.4";
    let mut time = |entry: &Entry<Quantity<Span>>, default: Span| {
        if entry.given { span(entry, (Span::from_micros(10), Span::from_secs(10)), why, cx) } else { Some(default) }
    };
    let target = time(&table.target, default.target);
    let interval = time(&table.interval, default.interval);
    let (target, interval) = (target?, interval?);
    if target >= interval {
        let what = format!("a target of {} is not below the interval of {}", show(target), show(interval));
        let at = if table.target.given { &table.target.at } else { &table.interval.at };
        cx.impossible(at, what, "RFC 8289, 4.3: the target is 5 to 10 % of the interval");
        return None;
    }
    let ecn = if table.ecn.given { table.ecn.get()? } else { default.ecn };
    Some(Codel { limit: limit?, quantum: u32::try_from(quantum?.get()).ok()?, target, interval, ecn })
}

fn fq_codel(table: &Queue, cx: &mut Context) -> Option<QdiscParams> {
    let QdiscParams { target, interval, quantum, packets: limit, ecn, driver_packets } = QdiscParams::default();
    let codel = codel(table, &Codel { limit, quantum, target, interval, ecn }, cx);
    let driver_packets = if table.driver_queue.given { packets(&table.driver_queue, cx) } else { Some(driver_packets) };
    let Codel { limit: packets, quantum, target, interval, ecn } = codel?;
    Some(QdiscParams { target, interval, quantum, packets, ecn, driver_packets: driver_packets? })
}

fn fq_codel_airtime(table: &Queue, cx: &mut Context) -> Option<FqCodelParams> {
    let default = FqCodelParams::default();
    let FqCodelParams { target, interval, quantum, packets: limit, ecn, .. } = default;
    let codel = codel(table, &Codel { limit, quantum, target, interval, ecn }, cx);
    let why = "an A-MPDU lasts up to 5.484 ms, and a turn should not starve the others for long";
    let airtime_quantum = if table.airtime_quantum.given {
        span(&table.airtime_quantum, (Span::from_micros(10), Span::from_millis(100)), why, cx)
    } else {
        Some(default.airtime_quantum)
    };
    let Codel { limit: packets, quantum, target, interval, ecn } = codel?;
    let relax_slow = if table.relax_slow.given { table.relax_slow.get()? } else { default.relax_slow };
    let why = "a packet must fit, and packets must fit in memory";
    let memory = if table.memory.given {
        let bounds = (Bytes::new(4_096), Bytes::new(1 << 32));
        Some(cx.within(&plain(&table.memory), bounds, show, why)?)
    } else {
        default.memory
    };
    let why = "the hardware holds the aggregate on the air and some more; 0 leaves the limit to the airtime limits";
    let hardware_aggregates = if table.hardware_aggregates.given {
        cx.within(&table.hardware_aggregates, (0, 64), |n| n.to_string(), why)?
    } else {
        u64::from(default.hardware_aggregates)
    };
    Some(FqCodelParams {
        memory,
        relax_slow,
        aql: aql(table, cx)?,
        hardware_aggregates: u16::try_from(hardware_aggregates).ok()?,
        packets,
        quantum,
        target,
        interval,
        airtime_quantum: airtime_quantum?,
        ecn,
    })
}

/// Airtime queue limits. `Some(None)` if they are turned off, `None` if they are wrong.
fn aql(table: &Queue, cx: &mut Context) -> Option<Option<Aql>> {
    let default = Aql::default();
    let limits = [&table.aql_low, &table.aql_high, &table.aql_total];
    if table.aql.given && !table.aql.get()? {
        for at in limits.into_iter().filter_map(Entry::given_at) {
            let what = format!("`{}` has no meaning with `aql = false`", at.name());
            cx.impossible(at, what, "delete one of the two keys");
        }
        return Some(None);
    }
    let why = "below a packet's airtime nothing would move; a second of hardware queue is no limit";
    let mut time = |entry: &Entry<Quantity<Span>>, default: Span| {
        if entry.given { span(entry, (Span::from_micros(100), Span::from_secs(1)), why, cx) } else { Some(default) }
    };
    let (low, high) = (time(limits[0], default.low), time(limits[1], default.high));
    let total = time(limits[2], default.total);
    let aql = Aql { low: low?, high: high?, total: total? };
    if aql.low > aql.high {
        let what = format!("a low limit of {} is above the high limit of {}", show(aql.low), show(aql.high));
        let at = if table.aql_low.given { &table.aql_low.at } else { &table.aql_high.at };
        cx.impossible(at, what, "a station may hold `aql-low` in any case, and up to `aql-high` while there is room");
        return None;
    }
    Some(Some(aql))
}
