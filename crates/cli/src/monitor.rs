//! `lasthop monitor`.

mod columns;
mod live;
mod metrics;
mod view;

use crate::metrics::Exporter;
use crate::{console, flag, note};
use clap::Args as ClapArgs;
use lasthop_agents::host::{CaCounter, FIELDS, Filter, Kind, Reading, Value, Watch, drop_privileges};
use lasthop_agents::service::{Stop, stop_on_signals};
use lasthop_report::{ColumnKind, RowFile, RowValue};
use lasthop_units::Span;
use metrics::Seen;
use nix::errno::Errno;
use nix::poll::{PollTimeout, poll};
use std::io::{self, BufWriter, ErrorKind, IsTerminal as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};
use view::View;

/// What to show, and where.
#[derive(ClapArgs)]
pub struct Args {
    /// Connections to show, as `ss` filters them, with figures: 'dport = :443 and rtt > 50ms'
    #[arg(value_name = "FILTER")]
    filter: Vec<String>,
    /// Time between two looks
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = every, default_value = "500ms")]
    every: Span,
    /// End after so many looks
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,
    /// Print one JSON object a connection a look instead of a table (docs/reference/logs.md)
    #[arg(long)]
    json: bool,
    /// Write the same to a Parquet file too, which is there when the monitor ends
    #[arg(long, value_name = "FILE")]
    parquet: Option<PathBuf>,
    /// Serve metrics for Prometheus at this address too, or at this port of the loopback
    #[arg(long, value_name = "ADDRESS", value_parser = listen)]
    listen: Option<SocketAddr>,
}

/// The kernel takes up to a millisecond for a look.
const SHORTEST: Span = Span::from_millis(10);

fn every(text: &str) -> Result<Span, String> {
    let span = flag::quantity::<Span>(text)?;
    if span >= SHORTEST { Ok(span) } else { Err(format!("must be at least {SHORTEST}")) }
}

/// An address with a port, or a port of the loopback.
fn listen(text: &str) -> Result<SocketAddr, String> {
    match text.strip_prefix(':').unwrap_or(text).parse::<u16>() {
        Ok(port) => Ok(SocketAddr::from((Ipv4Addr::LOCALHOST, port))),
        Err(_) => flag::address::<9100>(text).map_err(|why| format!("{why}, or a port alone")),
    }
}

/// Shows connections until it is told to stop.
pub fn monitor(args: &Args) -> anyhow::Result<ExitCode> {
    let filter_text = args.filter.join(" ");
    let filter = filter(&filter_text).map_err(|error| flag::Wrong::line(error.to_string()))?;
    let stop = stop_on_signals()?;
    // What needs privileges comes first; no thread has begun yet.
    let exporter = args.listen.map(metrics::bind).transpose()?;
    let (counter, lack) = match CaCounter::attach() {
        Ok(counter) => (Some(counter), None),
        Err(error) => (None, Some(error.to_string())),
    };
    let watch = Watch::begin(counter)?;
    drop_privileges()?;
    let exporter = exporter.map(Exporter::begin).transpose()?;
    if let Some(exporter) = &exporter {
        note!("metrics at http://{}/metrics", exporter.address()?);
    }
    let columns: Vec<_> = FIELDS.iter().map(|field| (field.name, column_kind(field.kind))).collect();
    let parquet = args.parquet.as_ref().map(|path| RowFile::create(path, &columns)).transpose()?;
    let mut source = Source { watch, filter, filter_text, parquet, exporter, left: args.count };
    let live = !args.json && io::stdout().is_terminal();
    if let (Some(lack), false) = (&lack, live) {
        note!("{lack}");
    }
    let shown = match live {
        true => live::run(&mut source, args.every, stop, lack),
        false => print(&mut source, args, stop),
    };
    // The file is finished whatever ended the view.
    let finished = source.parquet.take().map_or(Ok(()), RowFile::finish);
    shown?;
    finished?;
    Ok(ExitCode::SUCCESS)
}

/// The filter of a text; none if it says nothing.
fn filter(text: &str) -> Result<Option<Filter>, lasthop_agents::host::FilterError> {
    if text.trim().is_empty() { Ok(None) } else { text.parse().map(Some) }
}

/// Where readings come from, and where they go besides the screen.
struct Source {
    watch: Watch,
    filter: Option<Filter>,
    /// What the filter was when the monitor began.
    filter_text: String,
    parquet: Option<RowFile>,
    exporter: Option<Arc<Exporter<Seen>>>,
    /// Looks that are left to be taken.
    left: Option<u64>,
}

impl Source {
    /// Looks, and passes on what was seen; false if that was the last look.
    fn look(&mut self) -> anyhow::Result<bool> {
        self.watch.look()?;
        let readings = self.watch.readings();
        let shown = readings.iter().filter(|reading| passes(self.filter.as_ref(), reading));
        if let Some(file) = &mut self.parquet {
            for reading in shown.clone() {
                file.row(FIELDS.iter().map(|field| row_value((field.of)(reading))))?;
            }
        }
        if let Some(exporter) = &self.exporter {
            exporter.publish(Seen::new(readings, shown, self.watch.totals()));
        }
        if let Some(left) = &mut self.left {
            *left -= 1;
        }
        Ok(self.left != Some(0))
    }

    /// The connections to be shown, as of the latest look.
    fn shown(&self) -> impl Iterator<Item = &Reading> {
        self.watch.readings().iter().filter(|reading| passes(self.filter.as_ref(), reading))
    }
}

fn passes(filter: Option<&Filter>, reading: &Reading) -> bool {
    filter.is_none_or(|filter| filter.passes(reading))
}

fn column_kind(kind: Kind) -> ColumnKind {
    match kind {
        Kind::Number => ColumnKind::Number,
        Kind::Flag => ColumnKind::Flag,
        Kind::Text => ColumnKind::Text,
    }
}

fn row_value(value: Value<'_>) -> RowValue<'_> {
    match value {
        Value::Null => RowValue::Null,
        Value::Number(number) => RowValue::Number(number),
        Value::Flag(flag) => RowValue::Flag(flag),
        Value::Text(text) => RowValue::Text(text.into()),
        Value::Address(address) => RowValue::Text(address.to_string().into()),
    }
}

/// When to look: at even distances, without making up for looks that came too late.
struct Beat {
    every: Duration,
    next: Instant,
}

impl Beat {
    fn new(every: Span) -> Beat {
        Beat { every: every.into(), next: Instant::now() }
    }

    /// How long it is until the next look.
    fn wait(&self) -> Duration {
        self.next.saturating_duration_since(Instant::now())
    }

    fn looked(&mut self) {
        self.next = (self.next + self.every).max(Instant::now());
    }
}

/// Prints every look: JSON lines, or a table.
fn print(source: &mut Source, args: &Args, stop: &Stop) -> anyhow::Result<()> {
    let mut beat = Beat::new(args.every);
    let mut out = BufWriter::with_capacity(1 << 16, io::stdout().lock());
    let mut view = View::default();
    while !stop.is_asked() {
        let more = source.look()?;
        if args.json {
            let mut write = || {
                for reading in source.shown() {
                    serde_json::to_writer(&mut out, reading)?;
                    out.write_all(b"\n")?;
                }
                out.flush()
            };
            match write() {
                // Nobody reads any more.
                Err(error) if error.kind() == ErrorKind::BrokenPipe => break,
                written => written?,
            }
        } else {
            view.update(source.shown());
            match writeln!(out, "{}", view.text(console::width())).and_then(|()| out.flush()) {
                Err(error) if error.kind() == ErrorKind::BrokenPipe => break,
                written => written?,
            }
        }
        if !more {
            break;
        }
        beat.looked();
        while !stop.is_asked() && !beat.wait().is_zero() {
            sleep(beat.wait());
        }
    }
    Ok(())
}

/// Sleeps, until a signal comes at the latest.
fn sleep(time: Duration) {
    let whole = PollTimeout::try_from(time + Duration::from_millis(1)).unwrap_or(PollTimeout::MAX);
    // An interrupted wait is what was asked for; there is nothing else to go wrong.
    let _: Result<_, Errno> = poll(&mut [], whole);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_alone_is_of_the_loopback() {
        assert_eq!(listen("9100"), Ok(SocketAddr::from(([127, 0, 0, 1], 9100))));
        assert_eq!(listen(":9100"), listen("9100"));
        assert_eq!(listen("[::]:9100").expect("an address").to_string(), "[::]:9100");
        assert!(listen("host:9100").expect_err("a name").contains("a port alone"));
    }

    #[test]
    fn times_have_units_and_are_long_enough_for_a_look() {
        assert_eq!(every("500ms"), Ok(Span::from_millis(500)));
        assert_eq!(every("2 s"), Ok(Span::from_secs(2)));
        assert!(every("5 ms").expect_err("too short").contains("10 ms"));
        assert!(every("5").is_err());
    }

    #[test]
    fn looks_that_come_too_late_are_not_made_up_for() {
        let mut beat = Beat::new(Span::from_secs(3600));
        let start = beat.next;
        beat.looked();
        assert_eq!(beat.next, start + Duration::from_secs(3600));
        let mut beat = Beat { every: Duration::from_nanos(1), next: start };
        beat.looked();
        assert!(beat.next >= start + Duration::from_nanos(1) && beat.wait().is_zero());
    }
}
