//! The page of a log.

use super::account::Account;
use super::print::{COLUMNS, facts, row};
use super::{Args, timeline::Part};
use lasthop_laws::pbe::Class;
use lasthop_report::page::{Chart, Curve, Draft, Section, Stack, Table};
use lasthop_signals::Rnti;
use lasthop_wire::dci::Format;
use std::collections::BTreeMap;
use std::io;
use std::path::Path;

/// Users with colours of their own.
const NAMED: usize = 4;
/// Terminals in the page's table.
const ROWS: usize = 40;
const SECTIONS: usize = 6;
/// More points make no better line.
const POINTS: usize = 190;

/// Writes it.
pub fn write(dir: &Path, args: &Args, format: Format, account: &Account) -> io::Result<()> {
    let mut preface = format!("# The cell in {}\n\n| | |\n| --- | --- |\n", escaped(&args.place()));
    for (name, text) in facts(args, format, account) {
        preface.push_str(&format!("| {name} | {} |\n", escaped(&text)));
    }
    for text in account.wrong() {
        preface.push_str(&format!("\n- {}", escaped(&text)));
    }
    let mut draft = Draft::new(dir, "cell", &preface, SECTIONS);
    let parts = Parts::of(account);
    draft.add(Section {
        title: "Resource blocks".into(),
        text: "Who had which part of the carrier. Users are terminals that PBE-CC counts: more than one slot and more than four PRB pairs a slot \
               within 40 ms, at least once. Control: terminals that only had less. Ghosts: RNTIs that were not seen twice within half a second, \
               most of them false DCIs. What stays white was idle, or not decoded. The log does not say where in the carrier an assignment lies."
            .into(),
        pictures: vec![parts.whole(account).picture()],
        ..Section::default()
    })?;
    let busiest = account.timeline.busiest();
    draft.add(Section {
        title: "The busiest second".into(),
        text: format!(
            "Slot by slot, from {:.3} s on: the second of the log in which most was assigned.",
            account.seconds(busiest.begins)
        ),
        pictures: vec![parts.second(account).picture()],
        ..Section::default()
    })?;
    draft.add(Section {
        title: "Idle blocks".into(),
        text: "What nobody had, of all that the carrier has. What was not decoded looks idle.".into(),
        charts: vec![chart(
            "idle",
            "PRB pairs that nobody had",
            "PRB pairs (%)",
            vec![curve(account, "idle", |part| 100.0 * (1.0 - part.given()))],
        )],
        ..Section::default()
    })?;
    draft.add(Section {
        title: "Users".into(),
        text: "How many terminals share the carrier, as the paper counts them, and all RNTIs of terminals, each over the last 40 ms.".into(),
        charts: vec![chart("users", "Terminals of the last 40 ms", "terminals", vec![
            curve(account, "all RNTIs", Part::active),
            curve(account, "users", Part::users),
        ])],
        ..Section::default()
    })?;
    let who = if account.owns.is_empty() { "a terminal that joins" } else { "the own terminal" };
    let free = Curve { reference: true, ..curve(account, "free now", Part::available) };
    draft.add(Section {
        title: "Fair share".into(),
        text: format!(
            "What {who} could have, as the physical layer counts it. Its fair share is the carrier divided by the terminals that share it, itself \
             among them. What is free now is its own part and its share of what nobody had. Both are at the rate of a PRB that new blocks of the last \
             40 ms had, its own or else those of others, or else the mean of users' so far."
        ),
        charts: vec![chart("share", &format!("What {who} could have"), "rate (Mbit/s)", vec![
            curve(account, "fair share", Part::fair),
            free,
        ])],
        ..Section::default()
    })?;
    let mut table = Table::new(&COLUMNS);
    table.rows = account.terminals().iter().take(ROWS).map(|terminal| row(account, terminal).to_vec()).collect();
    draft.add(Section {
        title: "Terminals".into(),
        text: format!("Those with most PRB, at most {ROWS} of {}.", account.terminals().len()),
        tables: vec![table],
        ..Section::default()
    })?;
    draft.finish().map(drop)
}

/// What stands in a cell of a table.
fn escaped(text: &str) -> String {
    text.replace('|', "\\|")
}

fn chart(file: &str, title: &str, y: &str, curves: Vec<Curve>) -> Chart {
    let [file, title, y] = [file, title, y].map(str::to_owned);
    let note = "Lines: means over the slots of each part of the log.".to_owned();
    Chart { file, title, x: "time (s)".into(), y, curves, note, ..Chart::default() }
}

/// A value of each part of the log in which slots were seen.
fn curve(account: &Account, name: &str, value: fn(&Part) -> f64) -> Curve {
    let parts = &account.timeline.parts;
    let together = parts.len().div_ceil(POINTS).max(1);
    let length = account.seconds(account.timeline.per * together as u64);
    let joined =
        parts.chunks(together).map(|parts| parts.iter().fold(Part::default(), |sum, (part, _)| sum.with(part)));
    let seen = joined.enumerate().filter(|(_, part)| part.slots > 0);
    Curve::measured(name, seen.map(|(at, part)| ((at as f64 + 0.5) * length, value(&part))).collect())
}

/// Which part of a column each RNTI belongs to.
struct Parts {
    names: Vec<String>,
    places: BTreeMap<Rnti, usize>,
}

impl Parts {
    fn of(account: &Account) -> Parts {
        let terminals = account.terminals();
        let with_prb = terminals.iter().filter(|(_, _, terminal)| terminal.prb > 0);
        let users = with_prb.clone().filter(|(_, class, _)| *class == Class::User);
        let named: Vec<Rnti> = users.map(|(rnti, _, _)| *rnti).take(NAMED).collect();
        let (mut names, mut places): (Vec<String>, BTreeMap<Rnti, usize>) = Default::default();
        for rnti in &named {
            places.insert(*rnti, names.len());
            names.push(format!("RNTI {}", rnti.0));
        }
        // Those of the rest that there are.
        let rest = [
            (Class::User, "other users"),
            (Class::Control, "control"),
            (Class::Shared, "system and paging"),
            (Class::Ghost, "ghosts"),
        ];
        for (class, name) in rest {
            let of: Vec<Rnti> = with_prb
                .clone()
                .filter(|(rnti, other, _)| *other == class && !named.contains(rnti))
                .map(|(rnti, _, _)| *rnti)
                .collect();
            if !of.is_empty() {
                places.extend(of.iter().map(|rnti| (*rnti, names.len())));
                names.push(name.to_owned());
            }
        }
        Parts { names, places }
    }

    fn column(&self, given: impl Iterator<Item = (Rnti, f64)>) -> Vec<f64> {
        let mut parts = vec![0.0; self.names.len()];
        for (rnti, prb) in given {
            if let Some(place) = self.places.get(&rnti) {
                parts[*place] += prb;
            }
        }
        parts
    }

    fn stack(&self, account: &Account, file: &str, title: String, columns: Vec<(f64, f64, Vec<f64>)>) -> Stack {
        Stack {
            file: file.into(),
            title,
            x: "time (s)".into(),
            y: "PRB pairs".into(),
            top: f64::from(account.choice.prb),
            names: self.names.clone(),
            columns,
            note: String::new(),
        }
    }

    fn whole(&self, account: &Account) -> Stack {
        let per = account.timeline.per;
        let seen = account.timeline.parts.iter().enumerate().filter(|(_, (part, _))| part.slots > 0);
        let columns = seen.map(|(at, (part, given))| {
            let from = account.seconds(per * at as u64);
            let mean = given.iter().map(|(rnti, prb)| (*rnti, *prb as f64 / part.slots as f64));
            (from, from + account.seconds(per), self.column(mean))
        });
        let title = format!("PRB pairs, means over {:.3} s", account.seconds(per));
        self.stack(account, "blocks", title, columns.collect())
    }

    fn second(&self, account: &Account) -> Stack {
        let second = account.timeline.busiest();
        let slot = account.seconds(1);
        let columns = second.slots.iter().map(|(number, given)| {
            let from = account.seconds(*number);
            (from, from + slot, self.column(given.iter().map(|(rnti, prb)| (*rnti, f64::from(*prb)))))
        });
        // The axis is the whole second, or what the log has of it.
        let begins = account.seconds(second.begins);
        let ends = (begins + 1.0).min(account.length());
        let axis = [begins, ends].map(|end| (end, end, vec![]));
        let columns: Vec<_> = axis.into_iter().chain(columns).collect();
        self.stack(account, "busiest", "PRB pairs of each slot".into(), columns)
    }
}
