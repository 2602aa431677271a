//! The summary as a table of text: for a terminal, or for a README.

use crate::{Estimate, Key, Summary};
use comfy_table::presets::ASCII_MARKDOWN;
use comfy_table::{CellAlignment, LineStyle, Table, TableStyle};

/// One law's line of the table.
#[derive(Clone, PartialEq, Debug)]
pub struct Row {
    /// The law.
    pub law: String,
    /// One cell a figure, in the order of the keys asked for.
    pub cells: Vec<Cell>,
}

/// One figure as people read it.
#[derive(Clone, PartialEq, Debug)]
pub struct Cell {
    /// Mean and half the confidence interval: `12.3 ± 0.4`; with a leading `≥` if it is a lower bound; `–` if absent.
    pub text: String,
    /// True if the law is among [`Summary::leaders`] of this figure.
    pub leader: bool,
}

impl Key {
    /// The unit that people read, and by what to multiply a value to get there: ratios of events become percentages.
    pub const fn shown_unit(self) -> (&'static str, f64) {
        self.column().shown
    }

    /// A heading for people with the unit: `Hop delay, p95 (ms)`.
    pub fn heading(self) -> String {
        match self.shown_unit().0 {
            "" => self.label().to_string(),
            unit => format!("{} ({unit})", self.label()),
        }
    }
}

impl Summary {
    /// Those of [`Key::usual`] of which there is something to say: some law has a value, or there was traffic that should have
    /// yielded one (`expected`), and the reader is told why it did not.
    pub fn columns(&self, expected: &[Key]) -> Vec<Key> {
        Key::usual().into_iter().filter(|key| self.has(*key) || expected.contains(key)).collect()
    }

    /// True if any law has a value for `key`.
    pub(crate) fn has(&self, key: Key) -> bool {
        self.laws.values().any(|figures| figures.get(&key).is_some_and(|e| e.mean.is_some()))
    }

    /// One row a law, one cell a key.
    pub fn rows(&self, keys: &[Key]) -> Vec<Row> {
        let row = |law: &str| {
            let cell = |key: &Key| Cell {
                text: self.estimate(law, *key).map_or_else(|| ABSENT.to_string(), |e| shown(*key, e)),
                leader: self.leaders(*key).contains(&law),
            };
            Row { law: law.to_string(), cells: keys.iter().map(cell).collect() }
        };
        self.laws_in_order().into_iter().map(row).collect()
    }

    /// A table of at most `width` columns of text: one line a law if it fits, else one line a figure, and where the laws are too
    /// many for one such table, several below each other. Only a screen that has no room for a single law is exceeded. A `*`
    /// marks the leaders; notes below explain what is missing.
    pub fn text_table(&self, keys: &[Key], width: usize) -> String {
        let mark = |cell: &Cell| if cell.leader { format!("{} *", cell.text) } else { format!("{}  ", cell.text) };
        let rows = self.rows(keys);
        // Headings of two lines keep the columns narrow.
        let broken = |key: &Key| key.heading().replacen(", ", "\n", 1).replacen(" (", "\n(", 1);
        let by_law = grid(
            std::iter::once("".to_string()).chain(keys.iter().map(broken)).collect(),
            rows.iter()
                .map(|row| std::iter::once(plain(&row.law)).chain(row.cells.iter().map(mark)).collect())
                .collect(),
            RULED,
        );
        let table = if fits(&by_law, width) {
            by_law
        } else {
            let line = |(i, key): (usize, &Key)| {
                std::iter::once(key.heading()).chain(rows.iter().map(|row| mark(&row.cells[i]))).collect()
            };
            folded_grid(
                &std::iter::once("".to_string()).chain(rows.iter().map(|row| plain(&row.law))).collect::<Vec<_>>(),
                &keys.iter().enumerate().map(line).collect::<Vec<_>>(),
                width,
            )
        };
        let notes = self.legend(keys, &rows);
        std::iter::once(table).chain(notes.iter().map(|note| folded(note, width))).collect::<Vec<_>>().join("\n")
    }

    /// The same as a Markdown table, one line a law, the leaders in bold.
    pub fn markdown_table(&self, keys: &[Key]) -> String {
        let mark = |cell: &Cell| if cell.leader { format!("**{}**", cell.text) } else { cell.text.clone() };
        let rows = self.rows(keys);
        // A bar would end the cell, anything of HTML would be taken for it.
        let safe = |text: &str| plain(text).replace('|', "\\|").replace('&', "&amp;").replace('<', "&lt;");
        grid(
            std::iter::once("Law".to_string()).chain(keys.iter().map(|key| key.heading())).collect(),
            rows.iter()
                .map(|row| std::iter::once(safe(&row.law)).chain(row.cells.iter().map(mark)).collect())
                .collect(),
            ASCII_MARKDOWN,
        )
    }

    /// What the signs in a table mean, as far as they occur in it, and why figures are missing.
    pub fn legend(&self, keys: &[Key], rows: &[Row]) -> Vec<String> {
        let mut notes = Vec::new();
        let cells = || rows.iter().flat_map(|row| &row.cells);
        if cells().any(|cell| cell.text.contains('±')) {
            notes.push("± half of the 95 % confidence interval over seeds (Student's t)".to_string());
        }
        if cells().any(|cell| cell.leader) {
            notes.push("* best, or a mean within the best one's interval".to_string());
        }
        if cells().any(|cell| cell.text.starts_with('≥')) {
            notes.push("≥ a lower bound: it rests on probes that were lost, or on fetches of which none so long ended with the run".to_string());
        }
        notes.extend(self.gaps(keys));
        notes
    }

    /// One line for each reason why figures are missing, with the figures and laws that it concerns.
    fn gaps(&self, keys: &[Key]) -> Vec<String> {
        // The same reason often holds for several figures and laws: say it once.
        let mut gaps: Vec<(String, Vec<String>)> = Vec::new();
        for key in keys {
            let mut laws_by_reason: Vec<(String, Vec<String>)> = Vec::new();
            for law in self.laws_in_order() {
                let Some(estimate) = self.estimate(law, *key) else { continue };
                let (missing, all) = (estimate.values.len() - estimate.n, estimate.values.len());
                if missing == 0 {
                    continue;
                }
                let who = if missing == all { plain(law) } else { format!("{}, {missing} of {all} seeds", plain(law)) };
                push_under(&mut laws_by_reason, estimate.absent.join("; "), who);
            }
            for (why, laws) in laws_by_reason {
                let everywhere = laws.iter().eq(self.laws_in_order().into_iter().map(plain).collect::<Vec<_>>().iter());
                let what =
                    if everywhere { key.label().to_string() } else { format!("{} [{}]", key.label(), laws.join("; ")) };
                push_under(&mut gaps, why, what);
            }
        }
        gaps.into_iter().map(|(why, what)| format!("{ABSENT} {}: {}", what.join(", "), plain(&why))).collect()
    }
}

/// Adds `item` to the list kept under `name`, in order of first use.
fn push_under(lists: &mut Vec<(String, Vec<String>)>, name: String, item: String) {
    match lists.iter_mut().find(|(known, _)| *known == name) {
        Some((_, items)) => items.push(item),
        None => lists.push((name, vec![item])),
    }
}

const ABSENT: &str = "–";
/// One rule under the headings.
pub(crate) const RULED: TableStyle = TableStyle::new().header_separator(LineStyle::none().fill('─').junction('─'));

/// `12.3 ± 0.4`.
pub(crate) fn shown(key: Key, estimate: &Estimate) -> String {
    let scale = key.shown_unit().1;
    let Some(mean) = estimate.mean.map(|mean| mean * scale) else { return ABSENT.to_string() };
    let half = estimate.half_ci().map(|half| half * scale);
    let digits = decimals(key, mean, half);
    let sign = if estimate.at_least { "≥ " } else { "" };
    match half {
        Some(half) => format!("{sign}{mean:.digits$} ± {half:.digits$}"),
        None => format!("{sign}{mean:.digits$}"),
    }
}

/// Three significant digits are as many as these measurements bear, but up to two more are shown where the interval is
/// so narrow that it would read 0. An index near 1 needs its third decimal.
fn decimals(key: Key, mean: f64, half: Option<f64>) -> usize {
    if let Some(decimals) = key.column().decimals {
        return decimals;
    }
    let usual = match mean.abs() {
        v if v >= 100.0 => 0,
        v if v >= 10.0 => 1,
        _ => 2,
    };
    // Negative for intervals of less than a unit; a float-to-integer `as` saturates, so 0 and infinity are harmless.
    let leading = half.filter(|half| *half > 0.0).map_or(0, |half| half.log10().floor() as i64);
    usual.max(usize::try_from(-leading).unwrap_or(0).min(usual + 2))
}

/// User text without what would break a line or drive a terminal.
pub(crate) fn plain(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

/// `text` broken between words into lines of at most `width` columns.
pub fn folded(text: &str, width: usize) -> String {
    textwrap::wrap(text, textwrap::Options::new(width.max(NARROWEST)).break_words(false)).join("\n")
}

/// Below this there is no sense in breaking lines.
const NARROWEST: usize = 20;

fn fits(table: &str, width: usize) -> bool {
    table.lines().all(|line| line.chars().count() <= width)
}

/// A grid with its columns spread over as many tables as it takes to stay within `width`; the first column is in all of
/// them.
pub(crate) fn folded_grid(header: &[String], rows: &[Vec<String>], width: usize) -> String {
    let part = |columns: std::ops::Range<usize>| {
        let of = |cells: &[String]| cells[..1].iter().chain(&cells[columns.clone()]).cloned().collect::<Vec<_>>();
        grid(of(header), rows.iter().map(|row| of(row)).collect(), RULED)
    };
    let (mut parts, mut from) = (Vec::new(), 1);
    while from < header.len() {
        // As many columns as fit, and one in any case.
        let widest = (from + 1..=header.len()).rev().find(|to| fits(&part(from..*to), width));
        let to = widest.unwrap_or(from + 1);
        parts.push(part(from..to));
        from = to;
    }
    parts.join("\n\n")
}

pub(crate) fn grid(header: Vec<String>, rows: Vec<Vec<String>>, style: TableStyle) -> String {
    let mut table = Table::new();
    table.load_style(style).set_header(header).add_rows(rows);
    table.column_iter_mut().skip(1).for_each(|column| {
        column.set_cell_alignment(CellAlignment::Right);
    });
    table.trim_fmt()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Figure, Recorder, Run, Window, World};
    use lasthop_units::Time;

    fn run(law: &str, seed: u64, mbit: f64, p95: Figure) -> Run {
        let second = Window { warm_up: Time::ZERO, end: Time::from_nanos(1_000_000_000) };
        let mut record = Recorder::new(second, []).finish();
        record.figures.insert(Key::Throughput, Figure::Exact(mbit));
        record.figures.insert(Key::HopDelayP95, p95);
        Run { law: law.into(), seed, record }
    }

    fn summary() -> Summary {
        let runs = [
            run("cubic|\u{1b}[31m", 1, 100.0, Figure::Exact(200.0)),
            run("cubic|\u{1b}[31m", 2, 101.0, Figure::AtLeast(202.0)),
            run("ap", 1, 99.5, Figure::Exact(9.31)),
            run("ap", 2, 100.5, Figure::absent("was <late>")),
        ];
        Summary::of(World::Sim, "s", &[], &runs)
    }

    const KEYS: [Key; 3] = [Key::Throughput, Key::HopDelayP95, Key::Jain];

    #[test]
    fn a_cell_shows_mean_and_half_interval_or_says_why_not() {
        let rows = summary().rows(&KEYS);
        assert_eq!(rows[0].law, "ap");
        let texts = |row: &Row| row.cells.iter().map(|c| c.text.clone()).collect::<Vec<_>>();
        // Half interval of two values 1 apart: 12.706 * 0.7071 / 1.4142 = 6.353.
        assert_eq!(texts(&rows[0]), ["100 ± 6", "9.31", "–"]);
        assert_eq!(texts(&rows[1]), ["100 ± 6", "≥ 201 ± 13", "–"]);
    }

    #[test]
    fn an_absent_figure_is_shown_only_if_it_was_expected() {
        let summary = summary();
        assert_eq!(summary.columns(&[]), [Key::Throughput, Key::HopDelayP95]);
        let columns = summary.columns(&[Key::Throughput, Key::FetchP95, Key::StallMax]);
        assert_eq!(columns, [Key::Throughput, Key::HopDelayP95, Key::FetchP95]);
        assert!(summary.text_table(&columns, 200).contains("– Fetch, p95: there were no fetches"));
        assert!(!summary.text_table(&summary.columns(&[]), 200).contains("– Fetch"));
    }

    #[test]
    fn a_narrow_terminal_gets_one_line_a_figure() {
        let wide = summary().text_table(&KEYS, 200);
        let narrow = summary().text_table(&KEYS, 50);
        assert!(wide.lines().any(|l| l.starts_with(" ap")), "{wide}");
        assert!(narrow.lines().any(|l| l.starts_with(" Hop delay, p95 (ms)")), "{narrow}");
        assert!(!wide.contains('\u{1b}'), "no escape sequence of a user reaches the terminal");
        assert!(
            wide.contains("– Hop delay, p95 [ap, 1 of 2 seeds]: was <late>\n– Jain index: no station had a bulk flow"),
            "{wide}"
        );
        assert!(wide.contains("≥ a lower bound"), "{wide}");
    }

    #[test]
    fn many_laws_on_a_narrow_terminal_get_several_tables() {
        let laws: Vec<String> = (0..9).map(|n| format!("a-law-called-{n}")).collect();
        let runs: Vec<Run> = laws.iter().map(|law| run(law, 1, 100.0, Figure::absent("nobody asked for it"))).collect();
        let summary = Summary::of(World::Sim, "s", &laws, &runs);
        for width in [60, 80, 100] {
            let table = summary.text_table(&Key::usual(), width);
            assert!(table.lines().all(|line| line.chars().count() <= width), "{width}:\n{table}");
            assert!(laws.iter().all(|law| table.contains(law)), "{width}:\n{table}");
            let headings = table.lines().filter(|line| line.trim_start().starts_with("Throughput (")).count();
            assert!((2..9).contains(&headings), "{width}: {headings} parts\n{table}");
        }
        let ratios = summary.ratio_table(&laws[0], &laws[1..], &Key::usual(), 60);
        assert!(ratios.lines().all(|line| line.chars().count() <= 60), "{ratios}");
    }

    #[test]
    fn markdown_survives_a_bar_in_a_name() {
        let table = summary().markdown_table(&KEYS);
        assert!(table.contains("cubic\\| [31m"), "{table}");
        assert!(table.lines().nth(1).is_some_and(|l| l.starts_with("|--")), "{table}");
    }
}
