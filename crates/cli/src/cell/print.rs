//! What is told of a log, for people and for programs.

use super::account::{Account, Interval, Known};
use super::{Args, choice};
use crate::say;
use lasthop_laws::pbe::{Class, Terminal};
use lasthop_signals::Rnti;
use lasthop_units::Time;
use lasthop_wire::dci::Format;
use serde_json::{Value, json};
use std::fmt::Write as _;

/// Classes, and what they are called.
pub const CLASSES: [(Class, &str); 4] =
    [(Class::User, "user"), (Class::Control, "control"), (Class::Shared, "shared"), (Class::Ghost, "ghost")];

/// Prints.
pub struct Printer<'a> {
    args: &'a Args,
    format: Format,
    headed: bool,
}

impl<'a> Printer<'a> {
    /// Nothing was printed yet.
    pub fn new(args: &'a Args, format: Format) -> Printer<'a> {
        Printer { args, format, headed: false }
    }

    /// Prints the intervals that are over.
    pub fn intervals(&mut self, account: &mut Account) -> anyhow::Result<()> {
        for interval in account.over() {
            if self.args.json {
                say!("{}", interval_json(account, &interval))?;
                continue;
            }
            if !self.headed {
                say!("{HEAD}")?;
                self.headed = true;
            }
            say!("{}", interval_line(account, &interval))?;
        }
        Ok(())
    }

    /// Prints what the whole log has shown.
    pub fn whole(&self, account: &Account) -> anyhow::Result<()> {
        if self.args.json {
            return say!("{}", object(self.args, self.format, account));
        }
        if self.headed {
            say!("")?;
        }
        for (name, text) in facts(self.args, self.format, account) {
            say!("{name:<14}{text}")?;
        }
        say!("\n{}", table(account, self.args.top))
    }
}

const HEAD: &str = "    from s     slots  given %  users %  users  most  RNTIs  fair Mbit/s  for TCP  free Mbit/s";

fn interval_line(account: &Account, Interval { number, part }: &Interval) -> String {
    let per = account.interval.map_or(1, |interval| account.slots_of(interval));
    format!(
        "{:>10.3} {:>9} {:>8.1} {:>8.1} {:>6.2} {:>5} {:>6.2} {:>12.2} {:>8.2} {:>12.2}",
        account.seconds(number * per),
        part.slots,
        100.0 * part.given(),
        100.0 * part.to_users(),
        part.users(),
        part.most_users,
        part.active(),
        part.fair(),
        part.fair_tcp(),
        part.available()
    )
}

/// A moment of the log's clock.
pub fn moment(at: Time) -> String {
    let ns = i128::from(at.as_nanos());
    jiff::Timestamp::from_nanosecond(ns).map_or_else(|_| format!("{} s", at.as_secs_f64()), |at| format!("{at:.3}"))
}

/// What is to be said in a line each: its name and itself.
pub fn facts(args: &Args, format: Format, account: &Account) -> Vec<(&'static str, String)> {
    let (choice, counts, totals, whole) = (account.choice, account.counts(), account.totals(), &account.timeline.whole);
    let percent = |share: f64| format!("{:.2} %", 100.0 * share);
    let slot = if format.is_lte() { "subframes" } else { "slots" };
    let mut facts = Vec::new();
    facts.push((
        "log",
        format!(
            "{}: {}, {} of carrier {}, {:.3} s from {}",
            args.place(),
            format.name(),
            choice::name(choice.direction),
            choice.carrier,
            account.length(),
            moment(account.begins())
        ),
    ));
    let guessed = choice.guessed.map(|most| format!(", a guess: {most} is the most that was assigned; --prb tells"));
    facts.push(("carrier", format!("{} PRB pairs{}", choice.prb, guessed.unwrap_or_default())));
    let mut rows = format!(
        "{}: {} there twice, {} out of order, {} too late",
        counts.records, counts.duplicates, counts.out_of_order, counts.late
    );
    let more = [
        (counts.misplaced, "misplaced"),
        (counts.strays, "alone"),
        (counts.crowded, "too many"),
        (account.rows.unread, "not readable"),
        (account.rows.headers, "repeated headers"),
        (account.rows.other, "of other carriers or the other direction"),
    ];
    for (number, what) in more.iter().filter(|(number, _)| *number > 0) {
        let _ = write!(rows, ", {number} {what}");
    }
    facts.push(("rows", rows));
    let unseen = if format.leaves_out_idle() { String::new() } else { format!(", {} not decoded", totals.unseen) };
    facts.push((slot, format!("{}{unseen}", totals.slots)));
    facts.push((
        "DCIs",
        format!(
            "{}: {} without a PRB, {} with a block that their PRB cannot carry",
            totals.dcis, totals.empty, totals.impossible
        ),
    ));
    let shares = CLASSES.map(|(class, name)| format!("{name} {}", percent(account.share(class)))).join(", ");
    facts.push(("PRB", format!("idle {}; {shares}", percent(1.0 - account.part_of_all(totals.given)))));
    let numbers = CLASSES.map(|(class, name)| {
        let count = account.terminals().iter().filter(|(_, of, _)| *of == class).count();
        format!("{name} {count}")
    });
    facts.push(("RNTIs", numbers.join(", ")));
    facts.push((
        "users",
        format!(
            "{:.3} at a time, at most {}; without the filter {:.3}",
            whole.users(),
            whole.most_users,
            whole.active()
        ),
    ));
    for Known { from, rnti, found } in &account.owns {
        let text = match found {
            None => format!("RNTI {}, as was said", rnti.0),
            Some(own) => format!(
                "RNTI {} from {} on; the log's clock is {:+.1} ms from the capture's; likeness {:.2}",
                rnti.0,
                moment(*from),
                own.ahead_ns as f64 / 1e6,
                own.likeness
            ),
        };
        facts.push(("own terminal", text));
    }
    let whose = if account.owns.is_empty() { "a terminal that joins" } else { "the own terminal" };
    facts.push((
        "fair share",
        format!("{:.2} Mbit/s on average for {whose}, {:.2} Mbit/s for TCP", whole.fair(), whole.fair_tcp()),
    ));
    facts.push(("free now", format!("{:.2} Mbit/s on average", whole.available())));
    let rate = account.rate().map_or("unknown: no user had a new block".into(), |rate| {
        format!("{rate:.0} bits of users' new blocks in a PRB pair")
    });
    let mut rate = format!("{rate}; a guess for {} of the time", percent(whole.guessed()));
    if !account.owns.is_empty() {
        let _ = write!(rate, ", that of others for {}", percent((whole.coarse() - whole.guessed()).max(0.0)));
    }
    facts.push(("rate", rate));
    facts
}

/// Headings of the table of terminals.
pub const COLUMNS: [&str; 9] =
    ["RNTI", "class", "DCIs", "false", "PRB %", "Mbit/s", "bits/PRB", "repeats %", "from, to s"];

/// A terminal's line of that table.
pub fn row(account: &Account, (rnti, class, terminal): &(Rnti, Class, Terminal)) -> [String; 9] {
    let name = CLASSES.iter().find(|(of, _)| of == class).map_or("", |(_, name)| *name);
    let ratio = |part: u64, whole: u64| part as f64 / whole.max(1) as f64;
    [
        rnti.0.to_string(),
        name.to_owned(),
        terminal.dcis.to_string(),
        (terminal.empty + terminal.impossible).to_string(),
        format!("{:.3}", 100.0 * account.part_of_all(terminal.prb)),
        format!("{:.3}", mbit(account, terminal)),
        format!("{:.0}", ratio(terminal.bits, terminal.prb)),
        // System information cycles through redundancy versions.
        match class {
            Class::Shared => "–".to_owned(),
            _ => format!("{:.1}", 100.0 * ratio(terminal.repeats, terminal.blocks)),
        },
        format!("{:.2}, {:.2}", account.seconds(terminal.first), account.seconds(terminal.last)),
    ]
}

fn mbit(account: &Account, terminal: &Terminal) -> f64 {
    terminal.bits as f64 / 1e6 / account.length()
}

fn table(account: &Account, top: usize) -> String {
    let all = account.terminals();
    let mut rows: Vec<[String; 9]> = vec![COLUMNS.map(str::to_owned)];
    rows.extend(all.iter().take(top).map(|terminal| row(account, terminal)));
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..COLUMNS.len()).map(width).collect();
    let line = |row: &[String; 9]| {
        let cells: Vec<String> = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:>width$}")).collect();
        cells.join("  ")
    };
    let mut text = rows.iter().map(line).collect::<Vec<_>>().join("\n");
    if all.len() > top {
        let _ = write!(text, "\n… and {} more; --top tells how many lines are shown", all.len() - top);
    }
    text
}

fn interval_json(account: &Account, Interval { number, part }: &Interval) -> Value {
    let per = account.interval.map_or(1, |interval| account.slots_of(interval));
    let mut object = json!({
        "from_s": account.seconds(number * per),
        "to_s": account.seconds((number + 1) * per),
        "slots": part.slots,
    });
    if let (Some(object), Value::Object(more)) = (object.as_object_mut(), part_json(part)) {
        object.extend(more);
    }
    object
}

fn part_json(part: &super::timeline::Part) -> Value {
    json!({
        "given_share": part.given(),
        "to_users_share": part.to_users(),
        "users_mean": part.users(),
        "users_max": part.most_users,
        "rntis_mean": part.active(),
        "fair_share_mbit_s": part.fair(),
        "fair_share_tcp_mbit_s": part.fair_tcp(),
        "available_mbit_s": part.available(),
        "coarse_share": part.coarse(),
        "guessed_share": part.guessed(),
    })
}

fn object(args: &Args, format: Format, account: &Account) -> Value {
    let (choice, counts, totals, rows) = (account.choice, account.counts(), account.totals(), account.rows);
    let terminals: Vec<Value> = account.terminals().iter().take(args.top).map(|one| terminal(account, one)).collect();
    let own = account.owns.iter().map(|Known { from, rnti, found }| {
        json!({
            "rnti": rnti.0,
            "from_s": found.map(|_| from.as_secs_f64() - account.begins().as_secs_f64()),
            "clock_ahead_ms": found.map(|own| own.ahead_ns as f64 / 1e6),
            "likeness": found.map(|own| own.likeness),
        })
    });
    let shares = CLASSES.map(|(class, name)| (name.to_owned(), json!(account.share(class))));
    json!({
        "file": args.place(),
        "format": format.name(),
        "direction": choice::name(choice.direction),
        "carrier": choice.carrier,
        "begins": moment(account.begins()),
        "length_s": account.length(),
        "slot_s": account.slot_length().as_secs_f64(),
        "prb": choice.prb,
        "prb_guessed_from": choice.guessed,
        "bits_per_prb": account.rate(),
        "rows": {
            "taken": counts.records,
            "unread": rows.unread,
            "repeated_headers": rows.headers,
            "other": rows.other,
            "out_of_order": counts.out_of_order,
            "duplicates": counts.duplicates,
            "late": counts.late,
            "misplaced": counts.misplaced,
            "strays": counts.strays,
            "crowded": counts.crowded,
            "restarts": counts.restarts,
        },
        "slots": totals.slots,
        "slots_not_decoded": totals.unseen,
        "slots_overfull": totals.overfull,
        "dcis": { "all": totals.dcis, "empty": totals.empty, "impossible": totals.impossible },
        "prb_shares": serde_json::Map::from_iter(shares),
        "idle_share": 1.0 - account.part_of_all(totals.given),
        "over_time": part_json(&account.timeline.whole),
        "own": own.collect::<Vec<_>>(),
        "rntis": account.terminals().len(),
        "terminals": terminals,
    })
}

fn terminal(account: &Account, (rnti, class, terminal): &(Rnti, Class, Terminal)) -> Value {
    json!({
        "rnti": rnti.0,
        "class": CLASSES.iter().find(|(of, _)| of == class).map(|(_, name)| *name),
        "dcis": terminal.dcis,
        "empty": terminal.empty,
        "impossible": terminal.impossible,
        "prb": terminal.prb,
        "prb_share": account.part_of_all(terminal.prb),
        "mbit_s": mbit(account, terminal),
        "blocks": terminal.blocks,
        "repeats": terminal.repeats,
        "from_s": account.seconds(terminal.first),
        "to_s": account.seconds(terminal.last),
    })
}
