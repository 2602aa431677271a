//! How accounts are printed.

use super::{Account, Conversation};
use lasthop_laws::aggregation::meter::{Sizes, Tally};
use lasthop_units::Span;
use serde_json::{Value, json};
use std::fmt::Write as _;

/// For people. `name`: which of several interfaces it is about.
pub fn text(account: &Account, name: Option<&str>, (from, to): (Span, Span)) -> String {
    let mut out = format!(
        "{}{:.3} to {:.3} s: {} frames captured, {} A-MPDUs and lone data frames\n",
        name.map(|name| format!("{name}, ")).unwrap_or_default(),
        from.as_secs_f64(),
        to.as_secs_f64(),
        account.captured,
        account.conversations.values().map(|tally| tally.received.frames()).sum::<u64>()
    );
    if account.unreadable > 0 {
        let _ = writeln!(out, "{} packets without a radiotap header", account.unreadable);
    }
    for ((transmitter, receiver), tally) in sorted(account) {
        let _ = writeln!(out, "{transmitter} -> {receiver}");
        let _ = writeln!(out, "  A-MPDUs         {} of {} frames", tally.aggregates, tally.received.frames());
        let _ = writeln!(out, "  MPDUs a frame   {}", sizes(&tally.received));
        if tally.in_part {
            out.push_str("  losses          not inferred: this radio hears the conversation in part\n");
        }
        if tally.packets != tally.received {
            let _ = writeln!(
                out,
                "  packets sent    {}, lost ones {}: {}",
                sizes(&tally.packets),
                if tally.in_part { "damaged" } else { "inferred" },
                tally.missing
            );
        }
        let _ = writeln!(out, "  retries         {} of {} MPDUs", tally.retries, tally.received.sum());
        match tally.rate() {
            Some(rate) => {
                let _ = writeln!(out, "  PHY rate        {:.1} Mbit/s, harmonic mean over frames", rate.as_mbit_f64());
                let share = 100.0 * tally.airtime.as_secs_f64() / to.saturating_sub(from).as_secs_f64();
                let share = if share.is_finite() { format!(", {share:.1} % of the time") } else { String::new() };
                let _ = writeln!(out, "  airtime         {:.3} ms{share}", tally.airtime.as_millis_f64());
            }
            None => out.push_str("  PHY rate        not told by the radio\n"),
        }
        let _ = writeln!(out, "  histogram       {}", histogram(&tally.received));
    }
    out.pop();
    out
}

/// For programs.
pub fn json(account: &Account, name: Option<&str>, (from, to): (Span, Span)) -> Value {
    let conversations: Vec<Value> = sorted(account)
        .into_iter()
        .map(|((transmitter, receiver), tally)| {
            json!({
                "transmitter": transmitter.to_string(),
                "receiver": receiver.to_string(),
                "frames": tally.received.frames(),
                "ampdus": tally.aggregates,
                "received_mpdus": sizes_json(&tally.received),
                "packets": sizes_json(&tally.packets),
                "missing_mpdus": tally.missing,
                "heard_in_part": tally.in_part,
                "retries": tally.retries,
                "phy_rate_mbit_s": tally.rate().map(|rate| rate.as_mbit_f64()),
                "airtime_s": tally.rate().map(|_| tally.airtime.as_secs_f64()),
            })
        })
        .collect();
    let mut object = json!({
        "from_s": from.as_secs_f64(),
        "to_s": to.as_secs_f64(),
        "captured": account.captured,
        "unreadable": account.unreadable,
        "conversations": conversations,
    });
    if let Some(name) = name {
        object["interface"] = name.into();
    }
    object
}

/// Those with most MPDUs first.
fn sorted(account: &Account) -> Vec<(Conversation, &Tally)> {
    let mut all: Vec<(Conversation, &Tally)> = account.conversations.iter().map(|(who, tally)| (*who, tally)).collect();
    all.sort_by_key(|(who, tally)| (std::cmp::Reverse(tally.received.sum()), *who));
    all
}

fn sizes(sizes: &Sizes) -> String {
    match (sizes.mean(), sizes.sd(), sizes.min(), sizes.max()) {
        (Some(mean), Some(sd), Some(min), Some(max)) => format!("mean {mean:.4}, sd {sd:.4}, {min} to {max}"),
        _ => "none".into(),
    }
}

fn histogram(sizes: &Sizes) -> String {
    sizes.histogram().map(|(size, count)| format!("{size}:{count}")).collect::<Vec<_>>().join(" ")
}

fn sizes_json(sizes: &Sizes) -> Value {
    let histogram: serde_json::Map<String, Value> =
        sizes.histogram().map(|(size, count)| (size.to_string(), count.into())).collect();
    json!({
        "sum": sizes.sum(),
        "mean": sizes.mean(),
        "sd": sizes.sd(),
        "min": sizes.min(),
        "max": sizes.max(),
        "histogram": histogram,
    })
}
