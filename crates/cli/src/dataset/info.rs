//! `lasthop dataset info`.

use crate::console::table;
use crate::{note, say};
use lasthop_dataset::{DataSet, Pseudonym, Recording};
use lasthop_laws::oal::predictor::LossClass;
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
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

/// What is counted of one recording.
#[derive(Default)]
struct Account {
    items: u64,
    acted: u64,
    classes: [u64; LossClass::ALL.len()],
    access_points: BTreeSet<Pseudonym>,
    stations: BTreeSet<(Pseudonym, Pseudonym)>,
    copies: u64,
    lost: u64,
}

/// Reads all of it, and says what it holds.
pub fn info(args: &Args) -> anyhow::Result<ExitCode> {
    let set = DataSet::open(&args.file)?;
    let mut accounts: BTreeMap<u32, Account> = BTreeMap::new();
    let mut station_time = BTreeSet::new();
    set.each(&mut |row| {
        let account = accounts.entry(row.recording).or_default();
        account.items += 1;
        account.acted += u64::from(row.acted);
        account.classes[row.class() as usize] += 1;
        account.access_points.insert(row.access_point);
        account.stations.insert((row.access_point, row.station));
        account.copies += u64::from(row.copies);
        account.lost += u64::from(row.lost);
        station_time.insert((row.recording, row.access_point, row.station, row.at.as_nanos() / 1_000_000_000));
        Ok(())
    })?;
    let bytes = set.bytes() as f64;
    let (an_item, a_second) = (bytes / set.rows().max(1) as f64, bytes / station_time.len().max(1) as f64);
    let of = |(place, recording): (usize, &Recording)| {
        (recording.clone(), accounts.remove(&(place as u32)).unwrap_or_default())
    };
    let each: Vec<(Recording, Account)> = set.meta().recordings.iter().enumerate().map(of).collect();
    if args.json {
        let recordings: Vec<_> = each.iter().map(|(recording, account)| as_json(recording, account)).collect();
        say!(
            "{:#}",
            json!({
                "schema": set.meta().schema, "items": set.rows(), "bytes": set.bytes(), "bytes_an_item": an_item,
                "bytes_a_station_second": a_second, "unfinished": set.unfinished(), "recordings": recordings,
            })
        )?;
        return Ok(ExitCode::SUCCESS);
    }
    say!(
        "{}: schema {}, {} items, {} bytes: {an_item:.1} an item, {a_second:.0} a second of a station that is sent data",
        args.file.display(),
        set.meta().schema,
        set.rows(),
        set.bytes()
    )?;
    if set.unfinished() {
        note!(
            "note: the recording did not end: what it had not written out yet is lost ({} bytes at the end cannot be read)",
            set.cut()
        );
    }
    let rows = each.iter().map(|(recording, account)| {
        let loss = 100.0 * account.lost as f64 / account.copies.max(1) as f64;
        [
            recording.scenario.clone(),
            recording.law.clone(),
            recording.seed.map_or("–".to_owned(), |seed| seed.to_string()),
            format!("{:.0}", recording.duration_us as f64 / 1e6),
            account.access_points.len().to_string(),
            account.stations.len().to_string(),
            account.items.to_string(),
            account.acted.to_string(),
            account.classes.map(|count| count.to_string()).join(" / "),
            format!("{loss:.2}"),
        ]
    });
    let head = [
        "scenario",
        "law",
        "seed",
        "s",
        "APs",
        "stations",
        "items",
        "acted",
        "Good / Acceptable / Poor / Bad",
        "lost (%)",
    ];
    say!("\n{}", table(head, rows))?;
    Ok(ExitCode::SUCCESS)
}

fn as_json(recording: &Recording, account: &Account) -> serde_json::Value {
    json!({
        "recording": recording, "items": account.items, "acted": account.acted, "classes": account.classes,
        "access_points": account.access_points.len(), "stations": account.stations.len(),
        "copies": account.copies, "lost": account.lost,
    })
}
