//! What senders and access point run.

use super::{packets, span};
use crate::problem::Kind;
use crate::quantity::show;
use crate::read::{Context, Entry, Quantity};
use crate::{Law, Sender, raw};
use lasthop_laws::aggregation::{self, Control};
use lasthop_laws::{ParamError, oal};
use lasthop_radio::queue;
use lasthop_units::{Bytes, Span};
use raw::{ControllerKind, QueueKind};

const DEFAULT_LIMIT: usize = 1000;

pub(super) fn laws(raw: &raw::Scenario, cx: &mut Context) -> Option<Vec<Law>> {
    let wired = raw.hop.get().is_some_and(|hop| hop.wired.given && !hop.wifi.given);
    let tables = raw.laws.get()?.0;
    if tables.is_empty() {
        let remedy = "add a table such as `[laws.cubic]` with `sender = \"cubic\"`";
        cx.problem(Kind::OutOfRange, &raw.laws.at, "a scenario without laws compares nothing", remedy);
        return None;
    }
    let wifi = raw.hop.get().and_then(|hop| hop.wifi.get());
    let alone = wifi.and_then(|wifi| wifi.standard.get()).filter(|standard| !standard.has_mcs());
    for (_, table) in &tables {
        if let Some(standard) = alone.filter(|_| table.regulator.given) {
            let what =
                format!("{standard} does not aggregate, and the regulator goes by how many packets share a frame");
            cx.impossible(
                &table.regulator.at,
                what,
                "delete this key, or use \"802.11n\", \"802.11ac\" or \"802.11ax\"",
            );
        }
    }
    let read: Vec<Option<Law>> = tables.iter().map(|(name, table)| law(name, table, wired, cx)).collect();
    read.into_iter().collect()
}

fn law(name: &str, table: &raw::Law, wired: bool, cx: &mut Context) -> Option<Law> {
    let legal = |c: char| c.is_ascii_alphanumeric() || "+-_.".contains(c);
    if name.is_empty() || name.len() > 64 || !name.chars().all(legal) {
        let what = format!("\"{name}\" is not a name for a law");
        cx.problem(
            Kind::OutOfRange,
            &table.place,
            what,
            "use 1 to 64 letters, digits, `+`, `-`, `_` and `.`: names are listed with commas after --laws",
        );
    }
    let sender = table.sender.get();
    let bare = Sender::ALL.iter().find(|known| known.as_str() == name);
    if let (Some(bare), Some(sender)) = (bare, sender)
        && *bare != sender
    {
        let what = format!("a law called \"{name}\" would run {sender}");
        cx.impossible(&table.sender.at, what, format!("write `sender = \"{bare}\"`, or call the law otherwise"));
    }
    let queue = optional(&table.queue, cx, |queue, cx| self::queue(&queue, wired, cx));
    let agent = optional(&table.agent, cx, |agent, cx| self::agent(&agent, cx));
    let regulator = optional(&table.regulator, cx, |regulator, cx| self::regulator(&regulator, cx));
    if table.regulator.given && wired {
        let remedy = "delete this key, or use `[hop.wifi]`";
        cx.impossible(&table.regulator.at, "a wired hop has no frames that a station could report", remedy);
    }
    if table.regulator.given && table.agent.given {
        let what = "the agent rewrites TCP windows, and the proxy ends TCP connections before they reach it";
        cx.impossible(&table.regulator.at, what, "keep one of `agent` and `regulator`");
    }
    let frames = optional(&table.regulator, cx, |regulator, _| Some(regulator.measure.get()?.0));
    Some(Law {
        name: name.to_owned(),
        sender: sender?,
        queue: queue?,
        agent: agent?,
        regulator: regulator?,
        frames: frames?.unwrap_or_default(),
    })
}

/// `Some(None)` if the key is absent, `None` if it is wrong.
fn optional<T: Clone, U>(
    entry: &Entry<T>,
    cx: &mut Context,
    build: impl FnOnce(T, &mut Context) -> Option<U>,
) -> Option<Option<U>> {
    if !entry.given {
        return Some(None);
    }
    build(entry.get()?, cx).map(Some)
}

/// A queue discipline, with the parameters that it has.
pub(super) fn queue(table: &raw::Queue, wired: bool, cx: &mut Context) -> Option<queue::Kind> {
    let kind = table.kind.get()?;
    if wired && kind != QueueKind::Fifo {
        let what = format!("`{kind}` needs the airtime or the stations of a Wi-Fi hop, and this hop is wired");
        cx.impossible(&table.kind.at, what, "write \"fifo\"");
        return None;
    }
    if kind == QueueKind::FqCodelAirtime {
        return fq_codel_airtime(table, cx).map(queue::Kind::FqCodelAirtime);
    }
    let foreign = [
        table.quantum.given_at(),
        table.target.given_at(),
        table.interval.given_at(),
        table.airtime_quantum.given_at(),
        table.ecn.given_at(),
        table.memory.given_at(),
        table.aql.given_at(),
        table.aql_low.given_at(),
        table.aql_high.given_at(),
        table.aql_total.given_at(),
        table.hardware_aggregates.given_at(),
        table.relax_slow.given_at(),
    ];
    for at in foreign.into_iter().flatten() {
        let what = format!("a queue of kind \"{kind}\" has no `{}`", at.name());
        cx.impossible(at, what, "delete this key, or write `kind = \"fq-codel-airtime\"`");
    }
    let packets = limit(table, DEFAULT_LIMIT, cx)?;
    Some(if kind == QueueKind::Fifo { queue::Kind::Fifo { packets } } else { queue::Kind::RoundRobin { packets } })
}

fn limit(table: &raw::Queue, default: usize, cx: &mut Context) -> Option<usize> {
    if table.limit.given { packets(&table.limit, cx) } else { Some(default) }
}

fn fq_codel_airtime(table: &raw::Queue, cx: &mut Context) -> Option<queue::FqCodelParams> {
    let default = queue::FqCodelParams::default();
    let limit = limit(table, default.packets, cx);
    let why = "a turn sends a byte at least; the largest is that of an HT A-MPDU";
    let quantum = if table.quantum.given {
        cx.within(&super::plain(&table.quantum), (Bytes::new(1), Bytes::new(65_535)), show, why)
    } else {
        Some(Bytes::new(u64::from(default.quantum)))
    };
    let why = "CoDel's times: RFC 8289, 4.2 to 4.4";
    let mut time = |entry: &Entry<Quantity<Span>>, default: Span| {
        if entry.given { span(entry, (Span::from_micros(10), Span::from_secs(10)), why, cx) } else { Some(default) }
    };
    let target = time(&table.target, default.target);
    let interval = time(&table.interval, default.interval);
    let why = "an A-MPDU lasts up to 5.484 ms, and a turn should not starve the others for long";
    let airtime_quantum = if table.airtime_quantum.given {
        span(&table.airtime_quantum, (Span::from_micros(10), Span::from_millis(100)), why, cx)
    } else {
        Some(default.airtime_quantum)
    };
    let (target, interval) = (target?, interval?);
    if target >= interval {
        let what = format!("a target of {} is not below the interval of {}", show(target), show(interval));
        let at = if table.target.given { &table.target.at } else { &table.interval.at };
        cx.impossible(at, what, "RFC 8289, 4.3: the target is 5 to 10 % of the interval");
        return None;
    }
    let ecn = if table.ecn.given { table.ecn.get()? } else { default.ecn };
    let relax_slow = if table.relax_slow.given { table.relax_slow.get()? } else { default.relax_slow };
    let why = "a packet must fit, and packets must fit in memory";
    let memory = if table.memory.given {
        let bounds = (Bytes::new(4_096), Bytes::new(1 << 32));
        Some(cx.within(&super::plain(&table.memory), bounds, show, why)?)
    } else {
        default.memory
    };
    let why = "the hardware holds the aggregate on the air and some more; 0 leaves the limit to the airtime limits";
    let hardware_aggregates = if table.hardware_aggregates.given {
        cx.within(&table.hardware_aggregates, (0, 64), |n| n.to_string(), why)?
    } else {
        u64::from(default.hardware_aggregates)
    };
    Some(queue::FqCodelParams {
        memory,
        relax_slow,
        aql: aql(table, cx)?,
        hardware_aggregates: u16::try_from(hardware_aggregates).ok()?,
        packets: limit?,
        quantum: u32::try_from(quantum?.get()).ok()?,
        target,
        interval,
        airtime_quantum: airtime_quantum?,
        ecn,
    })
}

/// Airtime queue limits. `Some(None)` if they are turned off, `None` if they are wrong.
fn aql(table: &raw::Queue, cx: &mut Context) -> Option<Option<queue::Aql>> {
    let default = queue::Aql::default();
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
    let aql = queue::Aql { low: low?, high: high?, total: total? };
    if aql.low > aql.high {
        let what = format!("a low limit of {} is above the high limit of {}", show(aql.low), show(aql.high));
        let at = if table.aql_low.given { &table.aql_low.at } else { &table.aql_high.at };
        cx.impossible(at, what, "a station may hold `aql-low` in any case, and up to `aql-high` while there is room");
        return None;
    }
    Some(Some(aql))
}

/// The agent's parameters; the law itself knows what they may be.
fn agent(table: &raw::Agent, cx: &mut Context) -> Option<oal::Params> {
    let why = "a count of control intervals";
    let release_after = cx.within(&table.release_after, (1, 10_000), |n| n.to_string(), why);
    let params = oal::Params {
        weights: table.weights.get()?.0,
        capacity: table.capacity.get()?.0,
        window: table.window.get()?.0,
        slack: table.slack.get()?.0,
        slack_max: table.slack_max.get()?.0,
        trigger: table.trigger.get()?.0,
        release_after: u32::try_from(release_after?).ok()?,
        ceiling_gain: table.ceiling_gain.get()?,
    };
    let Err(ParamError::OutOfBounds { key, got, bound }) = params.validate() else { return Some(params) };
    let key = crate::read::kebab(key);
    let entries =
        [&table.slack.at, &table.slack_max.at, &table.trigger.at, &table.release_after.at, &table.ceiling_gain.at];
    let at = entries.into_iter().find(|at| at.key.ends_with(&format!(".{key}"))).unwrap_or(&table.place);
    cx.problem(Kind::OutOfRange, at, format!("{got} is not {bound}"), format!("`{key}` must be {bound}"));
    None
}

/// The proxy's law; the laws themselves know what their parameters may be.
fn regulator(table: &raw::Regulator, cx: &mut Context) -> Option<Control> {
    let given = |entry: &Entry<f64>| if entry.given { entry.get().map(Some) } else { Some(None) };
    let interval = if table.interval.given { Some(table.interval.get()?.0) } else { None };
    let count = |entry: &Entry<u64>| entry.get().and_then(|n| u32::try_from(n).ok());
    let aim = if table.aim_packets.given { Some(count(&table.aim_packets).unwrap_or(u32::MAX)) } else { None };
    let kind = table.controller.get()?;
    foreign(table, kind, cx);
    let control = match kind {
        ControllerKind::Aggregation => {
            let default = aggregation::Params::default();
            Control::Aggregation(aggregation::Params {
                allocation: table.allocation.get()?.0,
                target: table.target.get()?.0,
                k1: table.k1.get()?,
                k2: table.k2.get()?,
                beta: table.beta.get()?,
                interval: interval.unwrap_or(default.interval),
                max_packets: count(&table.max_packets).unwrap_or(u32::MAX),
                aim_packets: aim.unwrap_or(default.aim_packets),
                overhead: table.overhead.get()?.0,
                overhead_rule: table.overhead_rule.get()?.0,
                ..default
            })
        }
        ControllerKind::LinearPi => {
            let default = aggregation::PiParams::default();
            Control::LinearPi(aggregation::PiParams {
                aim_packets: aim.unwrap_or(default.aim_packets),
                integral: given(&table.integral)?.unwrap_or(default.integral),
                proportional: given(&table.proportional)?.unwrap_or(default.proportional),
                interval: interval.unwrap_or(default.interval),
                ..default
            })
        }
    };
    let Err(ParamError::OutOfBounds { key, got, bound }) = control.validate() else { return Some(control) };
    let key = crate::read::kebab(key);
    let entries = [
        &table.target.at,
        &table.k1.at,
        &table.k2.at,
        &table.beta.at,
        &table.interval.at,
        &table.max_packets.at,
        &table.aim_packets.at,
        &table.overhead.at,
        &table.integral.at,
        &table.proportional.at,
    ];
    let at = entries.into_iter().find(|at| at.key.ends_with(&format!(".{key}"))).unwrap_or(&table.place);
    cx.problem(Kind::OutOfRange, at, format!("{got} is not {bound}"), format!("`{key}` must be {bound}"));
    None
}

/// Refuses the keys of the other controller: a gain that nothing looks at would be taken for one that was tried.
fn foreign(table: &raw::Regulator, kind: ControllerKind, cx: &mut Context) {
    let aggregation = [
        table.allocation.given_at(),
        table.target.given_at(),
        table.k1.given_at(),
        table.k2.given_at(),
        table.beta.given_at(),
        table.max_packets.given_at(),
        table.overhead.given_at(),
        table.overhead_rule.given_at(),
    ];
    let linear = [table.integral.given_at(), table.proportional.given_at()];
    let (other, keys) = match kind {
        ControllerKind::Aggregation => (ControllerKind::LinearPi, &linear[..]),
        ControllerKind::LinearPi => (ControllerKind::Aggregation, &aggregation[..]),
    };
    for at in keys.iter().copied().flatten() {
        let what = format!("the controller \"{kind}\" has no `{}`", at.name());
        cx.impossible(at, what, format!("delete this key, or write `controller = \"{other}\"`"));
    }
}
