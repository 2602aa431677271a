//! What `lasthop send` and `lasthop recv` share: how a stream is told of while it runs and when it is over.

pub mod recv;
pub mod send;

mod sink;

use crate::{console, note};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use lasthop_agents::endpoint::StreamError;
use lasthop_agents::service::clock;
use lasthop_transport::stream::Figures;
use lasthop_units::{Span, Time};
use serde_json::{Map, Value, json};
use std::fmt::Write as _;
use std::io::IsTerminal;

/// How often the table gets a line.
const INTERVAL: Span = Span::from_secs(1);

/// The table of intervals, the bar and the summary of one stream.
pub struct Account {
    json: bool,
    began: Time,
    /// When the present interval began, and the figures then.
    since: (Time, Figures),
    intervals: u64,
    bar: ProgressBar,
}

impl Account {
    /// A stream that begins now. Its size, if it is known, gives a bar where standard error is a terminal.
    pub fn new(json: bool, size: Option<u64>, figures: &Figures) -> Account {
        let live = std::io::stderr().is_terminal() && size.is_some() && !json;
        let target = if live { ProgressDrawTarget::stderr_with_hz(8) } else { ProgressDrawTarget::hidden() };
        let bar = ProgressBar::with_draw_target(size, target);
        let style = ProgressStyle::with_template("{bar:32} {percent:>3} %  {bytes} of {total_bytes}  {eta:>4} left");
        bar.set_style(style.expect("a constant template that parses"));
        let now = clock::now();
        Account { json, began: now, since: (now, *figures), intervals: 0, bar }
    }

    /// When the present interval ends.
    pub fn due(&self) -> Time {
        self.since.0 + INTERVAL
    }

    /// Tells of the present interval, if it is over.
    ///
    /// # Errors
    /// If standard output cannot be written.
    pub fn look(&mut self, figures: &Figures) -> anyhow::Result<()> {
        self.bar.set_position(figures.delivered.get());
        if clock::now() < self.due() { Ok(()) } else { self.line(figures) }
    }

    fn line(&mut self, figures: &Figures) -> anyhow::Result<()> {
        let (since, before) = self.since;
        let now = clock::now();
        let took = now.since(since).as_secs_f64().max(f64::MIN_POSITIVE);
        let bytes = figures.delivered.saturating_sub(before.delivered);
        let mbit_s = bytes.bits() as f64 / took / 1e6;
        let (from, to) = (since.since(self.began).as_secs_f64(), now.since(self.began).as_secs_f64());
        let (packets, resent) = (figures.packets - before.packets, figures.resent - before.resent);
        self.since = (now, *figures);
        if self.json {
            let mut object = base("interval", figures, mbit_s, bytes.get());
            object.insert("from_s".into(), json!(from));
            object.insert("to_s".into(), json!(to));
            object.insert("packets".into(), json!(packets));
            object.insert("retransmitted".into(), json!(resent));
            return print(&Value::Object(object));
        }
        if self.intervals.is_multiple_of(20) {
            self.print(&format!(
                "{:>14} {:>10} {:>13} {:>10} {:>10} {:>6} {:>9}",
                "interval s", "MB", "goodput Mbit/s", "D ms", "S pkt/s", "again", "RTT ms"
            ))?;
        }
        self.intervals += 1;
        let mut line =
            format!("{:>14} {:>10.2} {mbit_s:>14.2}", format!("{from:.1} - {to:.1}"), bytes.get() as f64 / 1e6);
        let _ = write!(line, " {:>10} {:>10}", optional(millis(figures.delay), 3), optional(figures.rate, 1));
        let _ = write!(line, " {resent:>6} {:>9}", optional(millis(figures.round_trip), 2));
        self.print(&line)
    }

    fn print(&self, line: &str) -> anyhow::Result<()> {
        self.bar.suspend(|| console::line(format_args!("{line}")))
    }

    /// The stream is over; `more` is what else the summary holds. `name`: the law, or what carried it.
    ///
    /// # Errors
    /// If standard output cannot be written.
    pub fn finish(mut self, figures: &Figures, name: &str, more: Map<String, Value>) -> anyhow::Result<()> {
        let took = clock::now().since(self.began);
        let partial = clock::now().since(self.since.0) >= INTERVAL / 10;
        if partial && self.intervals > 0 {
            self.line(figures)?;
        }
        self.bar.finish_and_clear();
        let mbit_s = figures.delivered.bits() as f64 / took.as_secs_f64().max(f64::MIN_POSITIVE) / 1e6;
        if self.json {
            let mut object = base("summary", figures, mbit_s, figures.delivered.get());
            object.insert("law".into(), json!(name));
            object.insert("duration_s".into(), json!(took.as_secs_f64()));
            object.insert("packets".into(), json!(figures.packets));
            object.insert("retransmitted".into(), json!(figures.resent));
            object.extend(more);
            return print(&Value::Object(object));
        }
        let (mb, secs) = (figures.delivered.get() as f64 / 1e6, took.as_secs_f64());
        self.print(&format!(
            "{name}: {mb:.2} MB in {secs:.2} s, {mbit_s:.2} Mbit/s; {} of {} packets sent again",
            figures.resent, figures.packets
        ))?;
        for (key, value) in more {
            let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            self.print(&format!("{key}: {value}"))?;
        }
        Ok(())
    }

    /// The stream was ended by this end's user: the summary is of what was done by then.
    ///
    /// # Errors
    /// If standard output cannot be written.
    pub fn interrupt(self, figures: &Figures, name: &str) -> anyhow::Result<()> {
        let more = if self.json { Map::from_iter([("interrupted".to_owned(), json!(true))]) } else { Map::new() };
        self.finish(figures, name, more)
    }

    /// The stream has ended before its end: what there is to tell goes to standard error.
    pub fn abandon(self, figures: &Figures) {
        self.bar.finish_and_clear();
        note!("{} octets had arrived", figures.delivered.get());
    }
}

fn base(kind: &str, figures: &Figures, mbit_s: f64, bytes: u64) -> Map<String, Value> {
    let fields = json!({
        "kind": kind,
        "bytes": bytes,
        "goodput_mbit_s": mbit_s,
        "delay_ms": millis(figures.delay),
        "rate_packets_s": figures.rate,
        "rtt_ms": millis(figures.round_trip),
    });
    match fields {
        Value::Object(map) => map,
        _ => Map::new(),
    }
}

fn print(value: &Value) -> anyhow::Result<()> {
    console::line(format_args!("{value}"))
}

fn millis(span: Option<Span>) -> Option<f64> {
    span.map(Span::as_millis_f64)
}

fn optional(value: Option<f64>, places: usize) -> String {
    value.map_or_else(|| "-".to_owned(), |value| format!("{value:.places$}"))
}

/// An error of a stream, with the exit status that it has.
fn failed(error: impl Into<StreamError>) -> anyhow::Error {
    match error.into() {
        StreamError::Agent(error) => crate::flag::of_tunnel(error),
        other => other.into(),
    }
}
