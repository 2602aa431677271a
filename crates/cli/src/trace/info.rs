//! `lasthop trace info`.

use super::{chart, line, read};
use crate::say;
use lasthop_units::stats::Samples;
use lasthop_units::{Rate, Span};
use lasthop_wire::delivery::{DeliveryTrace, OPPORTUNITY};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::process::ExitCode;

/// Its command line.
#[derive(clap::Args)]
pub struct Args {
    /// The trace: a time in milliseconds a line
    file: PathBuf,
    /// One JSON object
    #[arg(long)]
    json: bool,
    /// Draw the rate over time into this file (SVG)
    #[arg(long, value_name = "FILE")]
    picture: Option<PathBuf>,
}

/// The spans over which rates are told.
const SPANS: [Span; 2] = [Span::from_millis(100), Span::from_secs(1)];
const QUANTILES: [(&str, f64); 5] = [("min", 0.0), ("p5", 0.05), ("p50", 0.5), ("p95", 0.95), ("max", 1.0)];

/// Prints what there is to say.
pub fn info(args: &Args) -> anyhow::Result<ExitCode> {
    let trace = read(&args.file)?;
    if args.json {
        say!("{:#}", object(&trace))?;
    } else {
        say!("{}: {}", args.file.display(), line(&trace))?;
        let (from, gap) = trace.longest_gap();
        say!("longest time without an opportunity: {} s, at {} s", gap.as_secs_f64(), from.as_secs_f64())?;
        for every in SPANS {
            let Some((quantiles, idle)) = rates(&trace, every) else { continue };
            let shown = QUANTILES.iter().zip(quantiles).map(|((name, _), rate)| format!("{name} {rate:.3}"));
            let shown: Vec<String> = shown.collect();
            let (every, idle) = (every.as_secs_f64(), idle * 100.0);
            say!("Mbit/s over {every} s: {}; {idle:.1} % of these have no opportunity", shown.join(", "))?;
        }
        say!("{}", sparkline(&trace.rates(Span::from_nanos((trace.period().as_nanos() / WIDTH).max(1)))))?;
    }
    if let Some(picture) = &args.picture {
        let name = args.file.file_name().unwrap_or_default().to_string_lossy();
        let svg = chart(&trace, &name).svg();
        lasthop_report::write_whole(picture, |file| file.write_all(svg.as_bytes()))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Quantiles of the rates over spans of `every`, in Mbit/s, and the share of those spans without an opportunity; `None` if the trace is
/// shorter.
fn rates(trace: &DeliveryTrace, every: Span) -> Option<([f64; 5], f64)> {
    let rates = trace.rates(every);
    let mut samples = Samples::default();
    rates.iter().for_each(|rate| samples.add(rate.as_mbit_f64()));
    let idle = rates.iter().filter(|rate| rate.is_zero()).count() as f64 / rates.len() as f64;
    let mut quantiles = [0.0; 5];
    for (place, (_, q)) in quantiles.iter_mut().zip(QUANTILES) {
        *place = samples.quantile(q)?;
    }
    Some((quantiles, idle))
}

fn object(trace: &DeliveryTrace) -> Value {
    let (from, gap) = trace.longest_gap();
    let over = SPANS.iter().filter_map(|every| {
        let (quantiles, idle) = rates(trace, *every)?;
        let mut told: serde_json::Map<String, Value> =
            QUANTILES.iter().zip(quantiles).map(|((name, _), rate)| (format!("{name}_mbit_s"), json!(rate))).collect();
        told.insert("every_s".into(), json!(every.as_secs_f64()));
        told.insert("idle_share".into(), json!(idle));
        Some(Value::Object(told))
    });
    json!({
        "opportunities": trace.len(),
        "opportunity_bytes": OPPORTUNITY.get(),
        "period_s": trace.period().as_secs_f64(),
        "mean_mbit_s": trace.mean_rate().as_mbit_f64(),
        "longest_gap_s": gap.as_secs_f64(),
        "longest_gap_at_s": from.as_secs_f64(),
        "rates": over.collect::<Vec<_>>(),
    })
}

/// Characters of the picture in the terminal.
const WIDTH: u64 = 72;

/// The rates as bars of eight heights, the highest being the most.
fn sparkline(rates: &[Rate]) -> String {
    const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let most = rates.iter().map(|rate| rate.as_bps()).max().unwrap_or(0).max(1);
    rates.iter().map(|rate| BARS[(rate.as_bps() as u128 * 7 / u128::from(most)) as usize]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sparkline_goes_from_nothing_to_the_most() {
        assert_eq!(sparkline(&[0, 1, 2, 4].map(Rate::from_mbit)), "▁▂▄█");
        assert_eq!(sparkline(&[Rate::ZERO]), "▁");
    }

    #[test]
    fn quantiles_are_over_whole_spans() {
        let trace = DeliveryTrace::new((1..=100).chain(201..=250).collect()).expect("in order");
        let ([least, _, _, _, most], idle) = rates(&trace, SPANS[0]).expect("longer than a tenth of a second");
        // 99 opportunities before 100 ms, then one.
        assert_eq!((least, most), (0.12032, 11.91168));
        assert_eq!(idle, 0.0);
        assert_eq!(rates(&trace, SPANS[1]), None);
    }
}
