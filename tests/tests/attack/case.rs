//! What is attacked, how it went, and the table of both.

use crate::scene::{Scene, Stopped};
use comfy_table::presets::ASCII_MARKDOWN;
use comfy_table::{ContentArrangement, LineStyle, Table, TableStyle};
use std::any::Any;
use std::fmt::Display;
use std::io::{IsTerminal as _, Write as _};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Instant;

/// One attack.
pub struct Case {
    /// Kind and agent.
    pub name: &'static str,
    /// What is done to the agent.
    pub done: &'static str,
    /// What it must do then.
    pub right: &'static str,
    pub run: fn(&mut Scene) -> Seen,
}

/// How a case went.
pub struct Seen {
    measured: String,
    faults: Vec<String>,
}

impl Seen {
    /// What was measured; nothing is wrong so far.
    pub fn new(measured: impl Into<String>) -> Seen {
        Seen { measured: measured.into(), faults: Vec::new() }
    }

    /// The same, once it is known what was measured.
    pub fn measured(self, measured: String) -> Seen {
        Seen { measured, ..self }
    }

    /// What must hold, or what is wrong.
    pub fn must(mut self, holds: bool, fault: impl Display) -> Seen {
        if !holds {
            self.faults.push(fault.to_string());
        }
        self
    }
}

/// The table, a row for each case that is over.
pub struct Report {
    cases: usize,
    rows: Vec<[String; 5]>,
    failed: usize,
    began: Instant,
}

const HEADER: [&str; 5] = ["case", "done", "right", "measured", "verdict"];

impl Report {
    pub fn new(cases: usize) -> Report {
        Report { cases, rows: Vec::new(), failed: 0, began: Instant::now() }
    }

    /// Runs a case and says so; false if somebody wants the whole to stop. A panic is a failure of the case.
    pub fn judge(&mut self, case: &Case, scene: &mut Scene) -> bool {
        let number = self.rows.len() + 1;
        tell(&format!("case {number} of {}: {} ... ", self.cases, case.name));
        let began = Instant::now();
        let seen = catch_unwind(AssertUnwindSafe(|| (case.run)(scene)));
        // Ctrl-C reaches the small programs that a case starts, too, and makes them fail.
        if scene.is_stopped() {
            return false;
        }
        let seen = seen.unwrap_or_else(|panic| {
            scene.take_down();
            Seen::new("").must(false, panicked(panic.as_ref()))
        });
        let held = seen.faults.is_empty();
        self.failed += usize::from(!held);
        let verdict = if held { "held".to_owned() } else { format!("FAILED: {}", seen.faults.join("; ")) };
        tell(&format!("{verdict} ({:.1} s)\n", began.elapsed().as_secs_f64()));
        self.rows.push([case.name.into(), case.done.into(), case.right.into(), seen.measured, verdict]);
        true
    }

    /// For people where it goes to a terminal, otherwise in Markdown.
    pub fn print(&self) {
        let mut table = Table::new();
        match terminal_size::terminal_size_of(std::io::stdout()) {
            Some((width, _)) if std::io::stdout().is_terminal() => {
                let ruled = TableStyle::new().header_separator(LineStyle::none().fill('─').junction('─'));
                table.load_style(ruled).set_content_arrangement(ContentArrangement::Dynamic).set_width(width.0);
            }
            _ => drop(table.load_style(ASCII_MARKDOWN)),
        }
        table.set_header(HEADER).add_rows(&self.rows);
        println!("{table}");
        println!();
        println!(
            "{} of {} cases held, {:.0} s",
            self.cases - self.failed,
            self.cases,
            self.began.elapsed().as_secs_f64()
        );
    }

    pub fn has_failed(&self) -> bool {
        self.failed > 0
    }
}

fn tell(text: &str) {
    let _ = std::io::stderr().write_all(text.as_bytes());
}

fn panicked(panic: &(dyn Any + Send)) -> String {
    if panic.is::<Stopped>() {
        return "stopped".to_owned();
    }
    let text = panic.downcast_ref::<String>().map(String::as_str).or(panic.downcast_ref::<&str>().copied());
    text.unwrap_or("a panic without words").lines().next().unwrap_or_default().to_owned()
}
