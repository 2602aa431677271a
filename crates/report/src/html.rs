//! `report.html`: one file that needs no network.
//!
//! The figures are written as plain HTML, so that they can be read without scripts, by machines and on paper. Charts
//! are drawn by uPlot from data that the page carries. Whatever a user can choose (titles, names of laws, stations and
//! flows) is escaped where it enters: text by [`escape`], data by `json::for_script`.

mod data;

use crate::table::Cell;
use crate::{Estimate, Key, Report, Summary, table};
use std::collections::BTreeMap;

const UPLOT_VERSION: &str = "1.6.32";
const UPLOT_JS: &str = include_str!("../assets/uplot/uPlot.iife.min.js");
const UPLOT_CSS: &str = include_str!("../assets/uplot/uPlot.min.css");
const UPLOT_LICENCE: &str = include_str!("../assets/uplot/LICENSE");
const STYLE: &str = include_str!("../assets/report.css");
const SCRIPT: &str = include_str!("../assets/report.js");
/// The browser itself is told to load nothing, whatever the page may contain.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:; \
                      base-uri 'none'; form-action 'none'";

impl Report<'_> {
    /// The contents of `report.html`.
    pub fn to_html(&self) -> String {
        let title = escape(self.title);
        let data = data::Page::of(self);
        [
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n",
            &format!("<meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY}\">\n"),
            "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n",
            "<meta name=\"color-scheme\" content=\"light dark\">\n",
            &format!("<title>{title} · Lasthop</title>\n<style>\n{UPLOT_CSS}\n{STYLE}</style>\n</head>\n<body>\n"),
            &self.header(&title),
            "<main>\n",
            &self.incomplete(),
            &self.doubts(),
            &self.figures(),
            &charts(&data),
            READING,
            &self.circumstances(),
            "</main>\n",
            &format!("<script type=\"application/json\" id=\"data\">{}</script>\n", crate::json::for_script(&data)),
            &format!("<script>\n{UPLOT_JS}\n</script>\n<script>\n{SCRIPT}</script>\n</body>\n</html>\n"),
        ]
        .concat()
    }

    /// What this is, and what of it was real.
    fn header(&self, title: &str) -> String {
        let world = self.summary.world;
        let seeds = self.summary.seeds.values().map(Vec::len).max().unwrap_or(0);
        let window = self.runs.first().map_or(String::new(), |run| {
            let w = run.record.window;
            format!(
                "<div><dt>Measured</dt><dd>{} s, after {} s of warm-up</dd></div>",
                seconds(w.span().as_secs_f64()),
                seconds(w.warm_up.as_secs_f64())
            )
        });
        // As in any markup: a blank line parts paragraphs, a single break is where the author's editor wrapped.
        let paragraphs = self.description.split("\n\n").map(str::trim).filter(|text| !text.is_empty());
        let description: String = paragraphs.map(|text| format!("<p class=\"lead\">{}</p>\n", prose(text))).collect();
        let of_info = |name: &str, value: &str| match value {
            "" => String::new(),
            value => format!("<div><dt>{name}</dt><dd>{}</dd></div>", escape(value)),
        };
        format!(
            "<header>\n<div class=\"top\"><h1>{title}</h1><button id=\"theme\" type=\"button\" hidden></button></div>\n\
             {description}\
             <p class=\"world\"><span class=\"badge {}\">{}</span> {}</p>\n\
             <dl class=\"facts\"><div><dt>Laws</dt><dd>{}</dd></div><div><dt>Seeds</dt><dd>{seeds} each</dd></div>\
             {window}{}{}{}</dl>\n\
             </header>\n",
            world.name(),
            world.badge(),
            world.statement(),
            self.summary.laws.len(),
            of_info("Scenario", &self.info.scenario),
            of_info("Made", &self.info.started),
            of_info("Lasthop", &self.info.lasthop),
        )
    }

    /// What stands above everything else if runs are missing.
    fn incomplete(&self) -> String {
        let Some(incomplete) = self.summary.incomplete else { return String::new() };
        let said = escape(&incomplete.to_string());
        format!("<section class=\"doubts\" role=\"alert\"><h2>Incomplete</h2><p>{said}.</p></section>\n")
    }

    /// A warning above everything else if the runs are not to be trusted.
    fn doubts(&self) -> String {
        let verdict = self.info.verdict();
        if verdict.reliable {
            return String::new();
        }
        let reasons: String = verdict.reasons.iter().map(|why| format!("<li>{}</li>", escape(why))).collect();
        format!(
            "<section class=\"doubts\" role=\"alert\"><h2>Not reliable</h2><p>These figures should not be quoted. What \
             spoke against them while they were made:</p><ul>{reasons}</ul></section>\n"
        )
    }

    fn figures(&self) -> String {
        let summary = self.summary;
        let keys: Vec<Key> = Key::ALL.into_iter().filter(|key| summary.has(*key)).collect();
        let rows = summary.rows(&keys);
        let notes = summary.legend(&summary.columns(self.expected), &rows);
        // Here the leaders have a colour instead of an asterisk.
        let notes: String = notes
            .iter()
            .map(|note| match note.strip_prefix("* ") {
                Some(best) => format!("<li><span class=\"best\">green</span> {}</li>", escape(best)),
                None => format!("<li>{}</li>", escape(note)),
            })
            .collect();
        let stations: String = summary.laws_in_order().into_iter().map(|law| station_table(summary, law)).collect();
        let by_station = match stations.as_str() {
            "" => String::new(),
            tables => format!("<details><summary>By station</summary>{tables}</details>"),
        };
        format!(
            "<section><h2>Figures</h2>\n{}<ul class=\"legend\">{notes}</ul>\n{by_station}</section>\n",
            figures_table(summary, &keys),
        )
    }

    /// The circumstances of the runs, folded away.
    fn circumstances(&self) -> String {
        let notes: String = self.summary.notes.iter().map(|note| format!("<li>{}</li>", escape(note))).collect();
        format!(
            "<section class=\"small\"><h2>How it was made</h2>\n<ul>{notes}</ul>\
             <details><summary>Circumstances (run.json)</summary><pre>{}</pre></details>\n\
             <details><summary>Licence of the chart library, uPlot {UPLOT_VERSION}</summary><pre>{}</pre></details>\n\
             </section>\n",
            escape(&self.info.to_json()),
            escape(UPLOT_LICENCE),
        )
    }
}

/// Laws across and figures down the side: figures are many, laws mostly few, and pages longer than wide.
fn figures_table(summary: &Summary, keys: &[Key]) -> String {
    let rows = summary.rows(keys);
    let heads = rows.iter().enumerate().map(|(i, row)| {
        format!("<th scope=\"col\"><span class=\"dot law{}\"></span>{}</th>", i % data::COLOURS, escape(&row.law))
    });
    let cells = |number: usize, key: Key| {
        let cell = |row: &table::Row| {
            let Cell { text, leader } = &row.cells[number];
            let class = if *leader { " class=\"best\"" } else { "" };
            format!("<td{class}{}>{}</td>", detail(summary, &row.law, key), parted(text))
        };
        rows.iter().map(cell).collect()
    };
    grid("Figures of each law", &heads.collect::<String>(), keys, cells)
}

/// A line a figure of `keys`; `heads` are the headings of its cells.
fn grid(label: &str, heads: &str, keys: &[Key], cells: impl Fn(usize, Key) -> String) -> String {
    let line = |(number, key): (usize, &Key)| format!("<tr>{}{}</tr>", heading(*key), cells(number, *key));
    let lines: String = keys.iter().enumerate().map(line).collect();
    format!(
        "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"{label}\"><table><thead><tr><th scope=\"col\">Figure</th>\
         {heads}</tr></thead><tbody>{lines}</tbody></table></div>\n"
    )
}

/// A figure with its interval in small print.
fn parted(text: &str) -> String {
    match text.split_once(" ± ") {
        Some((value, half)) => format!("<span>{value}</span><small> ± {half}</small>"),
        None => format!("<span>{text}</span>"),
    }
}

/// A tooltip with the figure as `result.json` has it.
fn detail(summary: &Summary, law: &str, key: Key) -> String {
    let Some(e) = summary.estimate(law, key) else { return String::new() };
    let values: Vec<String> = e.values.iter().map(|v| v.map_or("none".to_string(), |v| format!("{v:.4}"))).collect();
    let text = format!("{} in {}, by seed: {}", key.name(), e.unit, values.join(", "));
    format!(" title=\"{}\"", escape(&text))
}

fn heading(key: Key) -> String {
    let (unit, _) = key.shown_unit();
    let (name, detail) = key.label().split_once(", ").unwrap_or((key.label(), ""));
    let better = match key.better() {
        crate::Better::Higher => "<abbr title=\"higher is better\">↑</abbr>",
        crate::Better::Lower => "<abbr title=\"lower is better\">↓</abbr>",
    };
    let detail = if detail.is_empty() { String::new() } else { format!(", {detail}") };
    format!("<th scope=\"row\">{name}{detail} <small>{unit} {better}</small></th>")
}

/// One law's figures, a column for each station.
fn station_table(summary: &Summary, law: &str) -> String {
    let Some(stations) = summary.stations.get(law).filter(|stations| stations.len() > 1) else { return String::new() };
    let keys: Vec<Key> = Key::ALL
        .into_iter()
        .filter(|key| stations.values().any(|figures| figures.get(key).is_some_and(|e| e.mean.is_some())))
        .collect();
    let name = escape(law);
    let heads: String = stations.keys().map(|station| format!("<th scope=\"col\">{}</th>", escape(station))).collect();
    let cells = |_, key| {
        let cell = |figures: &BTreeMap<Key, Estimate>| {
            format!("<td>{}</td>", parted(&figures.get(&key).map_or("–".to_string(), |e| table::shown(key, e))))
        };
        stations.values().map(cell).collect()
    };
    format!("<h3>{name}</h3>{}", grid(&format!("Stations under {name}"), &heads, &keys, cells))
}

/// The places that the script fills, and what it cannot draw.
fn charts(data: &data::Page<'_>) -> String {
    let merged = match data.merged {
        1 => String::new(),
        n => format!(
            "<p class=\"note\">To keep this file small, {n} neighbouring bins are merged into one of {} ms here. \
             series.parquet has them all.</p>",
            data.bin_s * 1e3
        ),
    };
    format!("{CHARTS_BEGIN}{merged}{CHARTS_END}")
}

const CHARTS_BEGIN: &str = r#"<section id="timeline"><h2>Over time</h2>
<noscript><p class="note">The charts need JavaScript. The figures above do not.</p></noscript>
<div id="controls" class="controls" hidden></div>
"#;
const CHARTS_END: &str = r#"<div id="charts"></div></section>
<section id="distribution"><h2>Delay over the hop, by share of packets</h2>
<div id="cdf-controls" class="controls" hidden></div><div id="cdf"></div></section>
"#;

const READING: &str = r#"<section class="small"><h2>How to read this</h2>
<ul>
<li><b>Hop delay</b> runs from a packet's arrival at the queue of the last hop to its delivery at the station; every
downlink packet counts. <b>Throughput</b> is in-order payload of the bulk flows that reached the applications.</li>
<li><b>Probe delay</b> is one-way, end to end; a lost probe ranks as infinitely late instead of being left out, as RFC
7679 has it. A <b>fetch</b> that the end of the run cut off counts as longer than it had lasted, in the proportion in
which such fetches were (Kaplan and Meier). A figure that rests on what never ended reads ≥.</li>
<li><b>Jitter</b> is the interarrival jitter of RFC 3550, averaged over the measured window. <b>Jain's index</b> is 1 if
all stations got the same, and 1/n if one of n got everything.</li>
<li>The interval is Student's t over seeds, 95 %: it tells how well the mean is known, not how much runs differ. Laws
whose mean lies within the best one's interval share its mark; if that is all of them, there is none.</li>
<li>Shaded time in the charts is the warm-up: drawn, but in no figure.</li>
</ul></section>
"#;

/// `text` as it may stand in HTML text and quoted attributes.
fn escape(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            // NUL and other controls are errors in HTML, wherever they stand.
            c if c.is_control() && c != '\n' && c != '\t' => safe.push('\u{fffd}'),
            c => safe.push(c),
        }
    }
    safe
}

/// `text` with what stands between backticks as code; of an odd number, the last stays what it is.
fn prose(text: &str) -> String {
    let safe = escape(text);
    let pieces: Vec<&str> = safe.split('`').collect();
    let mut html = String::with_capacity(safe.len());
    for (number, piece) in pieces.iter().enumerate() {
        match (number % 2 == 1, number + 1 < pieces.len()) {
            (true, true) => html.extend(["<code>", piece, "</code>"]),
            (true, false) => html.extend(["`", piece]),
            (false, _) => html.push_str(piece),
        }
    }
    html
}

/// Seconds with no more digits than they need.
fn seconds(s: f64) -> String {
    format!("{}", (s * 1e3).round() / 1e3)
}

#[cfg(test)]
mod tests;
