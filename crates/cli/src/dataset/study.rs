//! `lasthop dataset study`.

use crate::console::table;
use crate::say;
use lasthop_dataset::DataSet;
use lasthop_dataset::study::information::BINS;
use lasthop_dataset::study::spread::PAPER;
use lasthop_dataset::study::trees::{Mean, Split, Who};
use lasthop_dataset::study::{ABSENT, Study, TABLE_4, study as of};
use lasthop_laws::oal::predictor::LossClass;
use std::path::PathBuf;
use std::process::ExitCode;

/// Its command line.
#[derive(clap::Args)]
pub struct Args {
    /// The data set
    file: PathBuf,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Reads it, and says what it tells.
pub fn study(args: &Args) -> anyhow::Result<ExitCode> {
    let set = DataSet::open(&args.file)?;
    let study = of(set.meta(), &set.load()?);
    if args.json {
        say!("{:#}", serde_json::to_value(&study)?)?;
        return Ok(ExitCode::SUCCESS);
    }
    let [good, acceptable, poor, bad] = study.classes;
    say!(
        "{} items, {} of them of moments when windows were tight and left out. Good {good}, Acceptable {acceptable}, Poor {poor}, Bad {bad}: {:.4} bits.",
        study.items,
        study.acted,
        study.entropy
    )?;
    metrics(&study)?;
    spread(&study)?;
    study.splits.iter().try_for_each(classes)?;
    splits(&study)?;
    Ok(ExitCode::SUCCESS)
}

fn metrics(study: &Study) -> anyhow::Result<()> {
    say!(
        "\nWhat metrics tell of the class: Kendall's tau-b, and information gain in bits over {BINS} bins of like size; beside them the paper's Table 2 \
         (base and bins unknown)."
    )?;
    let figure = |value: Option<f64>| value.map_or("–".to_owned(), |value| format!("{value:.4}"));
    let rows = study.metrics.iter().map(|metric| {
        let (name, tau, gain) =
            metric.paper.map_or(("", None, None), |(name, tau, gain)| (name, Some(tau), Some(gain)));
        let paper = |value: Option<f64>| value.map_or(String::new(), |value| value.to_string());
        [
            metric.column.clone(),
            metric.items.to_string(),
            figure(metric.tau),
            figure(Some(metric.gain)),
            paper(tau),
            paper(gain),
            name.to_owned(),
        ]
    });
    say!("{}", table(["column", "items", "tau", "gain", "paper's tau", "gain", "of"], rows))?;
    say!("The paper's table also has {}, for which drivers have no counter.", ABSENT.join(", "))
}

fn spread(study: &Study) -> anyhow::Result<()> {
    let Some(ours) = study.spread else { return Ok(()) };
    say!(
        "\nLost to queues, in percent of first copies, over {} seconds of stations; {:.3} % of all.",
        ours.seconds,
        ours.of_all
    )?;
    let row = |name: &str, figures: [f64; 4]| {
        let [mean, p50, p90, p99] = figures.map(|figure| format!("{figure:.2}"));
        [name.to_owned(), mean, p50, p90, p99]
    };
    let rows = [row("here", [ours.mean, ours.p50, ours.p90, ours.p99]), row("paper, Figure 3", PAPER)];
    say!("{}", table(["", "mean", "p50", "p90", "p99"], rows))
}

fn classes(split: &Split) -> anyhow::Result<()> {
    let what = match split.by {
        "random" => " (neighbours of what was learned: what copies pretend)",
        _ => "",
    };
    say!(
        "\nThe tree, with {} held out{what}: {} items in {} folds; beside it the paper's Table 4, of its training set.",
        split.by,
        split.items,
        split.folds
    )?;
    let paper = |at: usize, class: usize, measure: usize| format!("{:.3}", TABLE_4[at].1[class][measure]);
    let rows = LossClass::ALL.into_iter().map(|loss| {
        let class = loss as usize;
        let [precision, recall, f] = split.tree[class].map(|measure| format!("{measure:.3}"));
        let theirs = |at: usize| [0, 1, 2].map(|measure| paper(at, class, measure)).join(" / ");
        [loss.name().to_owned(), precision, recall, f, theirs(0), theirs(1)]
    });
    say!("{}", table(["", "precision", "recall", "F", "paper's tree: P / R / F", "paper's forest"], rows))
}

fn splits(study: &Study) -> anyhow::Result<()> {
    say!(
        "\nMacro-F, mean over folds with 95 % interval; margin: the tree above the best of persistence, threshold and majority, fold by fold."
    )?;
    let rows = study.splits.iter().map(|split| {
        let of = |who: Who| split.macro_f.get(&who).map_or("–".to_owned(), Mean::to_string);
        [
            split.by.to_owned(),
            of(Who::Tree),
            of(Who::TreeWithoutDrops),
            of(Who::Persistence),
            of(Who::Threshold),
            of(Who::Majority),
            split.margin.to_string(),
            split.margin_without_drops.to_string(),
        ]
    });
    let head =
        ["held out", "tree", "without drops", "persistence", "threshold", "majority", "margin", "margin without drops"];
    say!("{}", table(head, rows))
}
