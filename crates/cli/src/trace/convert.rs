//! `lasthop trace convert`.

use super::Made;
use crate::flag::{Wrong, quantity};
use crate::note;
use anyhow::{Context as _, bail};
use clap::ValueEnum;
use jiff::civil::DateTime;
use lasthop_units::{Rate, Span, count};
use lasthop_wire::delivery::DeliveryTrace;
use std::path::PathBuf;
use std::process::ExitCode;

/// What the flags' own help has no place for.
const NOTES: &str = "\
A rate holds until the time of the next row, the last one as long as the one before. Rows of one and the same time count with their mean. Rows without a rate (empty, or `-`) \
are passed over and counted.

Times are numbers of seconds, or dates such as 2019-12-16T13:40:04 and 2019.12.16_13.40.04. Without --time rows are --every apart.

Example: lasthop trace convert drive.csv --rate DL_bitrate --unit kbit/s --time Timestamp -o drive.down";

/// Its command line.
#[derive(clap::Args)]
#[command(after_long_help = NOTES)]
pub struct Args {
    /// The CSV file; its first row names the columns
    file: PathBuf,
    /// The column of the rates
    #[arg(long, value_name = "COLUMN")]
    rate: String,
    /// Their unit
    #[arg(long, value_enum)]
    unit: Unit,
    /// The column of the times
    #[arg(long, value_name = "COLUMN", required_unless_present = "every", conflicts_with = "every")]
    time: Option<String>,
    /// Time from one row to the next
    #[arg(long, value_name = "TIME", value_parser = apart)]
    every: Option<Span>,
    #[command(flatten)]
    made: Made,
}

#[derive(Clone, Copy, ValueEnum)]
enum Unit {
    #[value(name = "bit/s")]
    Bit,
    #[value(name = "kbit/s")]
    Kbit,
    #[value(name = "Mbit/s")]
    Mbit,
}

impl Unit {
    fn bits(self) -> f64 {
        match self {
            Unit::Bit => 1.0,
            Unit::Kbit => 1e3,
            Unit::Mbit => 1e6,
        }
    }
}

/// A time from one row to the next.
fn apart(text: &str) -> Result<Span, String> {
    let span = quantity::<Span>(text)?;
    if span.is_zero() { Err("rows are some time apart; write more than 0, such as `1 s`".into()) } else { Ok(span) }
}

/// Reads, converts and writes.
pub fn convert(args: &Args) -> anyhow::Result<ExitCode> {
    let file = args.file.display();
    let mut csv = csv::Reader::from_path(&args.file).with_context(|| format!("cannot read {file}"))?;
    let head = csv.headers().with_context(|| format!("cannot read {file}"))?.clone();
    let column = |flag: &str, name: &str| {
        head.iter().position(|known| known.trim() == name).ok_or_else(|| {
            let known: Vec<&str> = head.iter().collect();
            Wrong::line(format!("{flag} {name}: the columns of {file} are {}", known.join(", ")))
        })
    };
    let rate = column("--rate", &args.rate)?;
    let time = args.time.as_deref().map(|name| column("--time", name)).transpose()?;
    let (mut rows, mut without) = (Vec::new(), 0);
    for (place, record) in csv.records().enumerate() {
        let record = record.with_context(|| format!("cannot read {file}"))?;
        let line = record.position().map_or(0, csv::Position::line);
        let cell = |column: usize| record.get(column).unwrap_or_default().trim();
        if matches!(cell(rate), "" | "-") {
            without += 1;
            continue;
        }
        let Some(value) = cell(rate).parse::<f64>().ok().filter(|value| value.is_finite() && *value >= 0.0) else {
            bail!("{file}, line {line}: `{}` is no rate; write a number that is not negative", cell(rate));
        };
        let seconds = match (time, args.every) {
            (Some(column), _) => match seconds(cell(column)) {
                Some(seconds) => seconds,
                None => bail!("{file}, line {line}: `{}` is no time; write seconds, or a date", cell(column)),
            },
            (None, every) => every.unwrap_or_default().as_secs_f64() * place as f64,
        };
        rows.push(Row { line, seconds, bits: value * args.unit.bits() });
    }
    let steps = steps(&rows).map_err(|line| {
        anyhow::anyhow!("{file}, line {line}: its time is before that of the row above; put the rows in order")
    })?;
    let trace =
        DeliveryTrace::from_rates(steps.iter().map(|step| (step.held, step.rate))).map_err(|error| {
            match error.step() {
                Some(step) => anyhow::anyhow!("{file}, line {}: {error}", steps[step].line),
                None => anyhow::Error::new(error).context(format!("{file}: nothing passes at these rates")),
            }
        })?;
    let whole: Span = steps.iter().map(|step| step.held).fold(Span::ZERO, |sum, span| sum + span);
    if without > 0 {
        note!("{} without a rate passed over", count(without, "row"));
    }
    let missing = whole.saturating_sub(trace.period());
    if missing > Span::from_millis(100) {
        note!("the last {} s carry nothing: the trace begins again before them", missing.as_secs_f64());
    }
    args.made.write(&trace)?;
    Ok(ExitCode::SUCCESS)
}

/// A row of the file.
struct Row {
    line: u64,
    seconds: f64,
    bits: f64,
}

/// A rate and how long it holds.
#[derive(PartialEq, Debug)]
struct Step {
    /// Of several rows of one time that of the fastest.
    line: u64,
    held: Span,
    rate: Rate,
}

/// Each rate with how long it holds, or the line at which time goes back.
fn steps(rows: &[Row]) -> Result<Vec<Step>, u64> {
    if let Some(pair) = rows.windows(2).find(|pair| pair[1].seconds < pair[0].seconds) {
        return Err(pair[1].line);
    }
    let groups: Vec<&[Row]> = rows.chunk_by(|a, b| a.seconds == b.seconds).collect();
    let held = |place: usize| {
        let starts = groups[place][0].seconds;
        groups.get(place + 1).map(|next| next[0].seconds - starts)
    };
    let before = |place: usize| place.checked_sub(1).and_then(held).unwrap_or(1.0);
    let step = |(place, group): (usize, &&[Row])| {
        let mean = group.iter().map(|row| row.bits).sum::<f64>() / group.len() as f64;
        let fastest = group.iter().max_by(|a, b| a.bits.total_cmp(&b.bits)).expect("a group has a row");
        let held = Span::from_secs_f64(held(place).unwrap_or_else(|| before(place)));
        Step { line: fastest.line, held, rate: Rate::from_bps(mean.round() as u64) }
    };
    Ok(groups.iter().enumerate().map(step).collect())
}

/// A time as seconds from some beginning.
fn seconds(text: &str) -> Option<f64> {
    if let Ok(number) = text.parse::<f64>() {
        return number.is_finite().then_some(number);
    }
    let date = text.parse::<DateTime>().or_else(|_| DateTime::strptime("%Y.%m.%d_%H.%M.%S", text)).ok()?;
    let since = date.since(DateTime::constant(2000, 1, 1, 0, 0, 0, 0)).ok()?;
    since.total((jiff::Unit::Second, jiff::SpanRelativeTo::days_are_24_hours())).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(seconds: f64, bits: f64) -> Row {
        Row { line: 2, seconds, bits }
    }

    #[test]
    fn a_rate_holds_until_the_next_and_rows_of_one_time_are_one() {
        let rows = [row(10.0, 4e6), row(11.0, 1e6), row(11.0, 3e6), row(13.5, 8e6)];
        let held = |rows: &[Row]| -> Vec<(Span, Rate)> {
            steps(rows).expect("in order").iter().map(|step| (step.held, step.rate)).collect()
        };
        let expected = [(1_000, 4), (2_500, 2), (2_500, 8)];
        assert_eq!(held(&rows), expected.map(|(ms, mbit)| (Span::from_millis(ms), Rate::from_mbit(mbit))));
        assert_eq!(held(&[row(1.0, 1e6)]), [(Span::from_secs(1), Rate::from_mbit(1))]);
        assert_eq!(steps(&[row(2.0, 1.0), Row { line: 9, seconds: 1.0, bits: 1.0 }]), Err(9));
    }

    #[test]
    fn times_are_seconds_or_dates() {
        let later = |a: &str, b: &str| seconds(b).expect(b) - seconds(a).expect(a);
        assert_eq!(later("1.5", "3"), 1.5);
        assert_eq!(later("2019.12.31_23.59.59", "2020.01.01_00.00.01"), 2.0);
        assert_eq!(later("2020-02-28T00:00:00", "2020-03-01 00:00:00"), 2.0 * 86_400.0);
        assert_eq!((seconds("noon"), seconds("inf")), (None, None));
    }
}
