//! MCS over time from a CSV file: the columns `at_s,mcs`, one step a line, `#` begins a comment.

use crate::problem::{Kind, Problem};
use crate::quantity;
use crate::read::{At, Context};
use lasthop_units::{Span, Time};
use miette::NamedSource;
use std::ops::Range;
use std::sync::Arc;

/// The header that a trace begins with: the unit is in the name, since CSV values have none.
const HEADER: &str = "at_s,mcs";

/// One line of a trace.
pub(crate) struct Line {
    pub at: Time,
    pub mcs: u64,
    /// Where it stands, for what is found wrong later.
    pub place: Place,
}

/// A place in a trace or in the scenario.
#[derive(Clone)]
pub(crate) struct Place {
    pub source: Arc<NamedSource<String>>,
    pub at: At,
}

impl Place {
    pub fn problem(&self, kind: Kind, what: impl Into<String>, remedy: impl Into<String>, cx: &mut Context) {
        let source = Arc::clone(&self.source);
        cx.problems.push(Problem::new(kind, &self.at.key, what, remedy, source, self.at.span.clone()));
    }
}

/// Reads the trace at `path`, relative to the scenario. Problems inside it are shown with its own lines.
pub(crate) fn read(path: &str, at: &At, cx: &mut Context) -> Option<Vec<Line>> {
    let full = cx.base_dir.join(path);
    let text = match crate::file::text(&full) {
        Ok(text) => text,
        Err(error) => {
            let what = format!("the trace {} cannot be read: {error}", full.display());
            cx.problem(Kind::File, at, what, "write a path relative to the scenario file");
            return None;
        }
    };
    let source = Arc::new(NamedSource::new(full.display().to_string(), text.clone()));
    let place = |span: Range<usize>| Place { source: Arc::clone(&source), at: At { key: at.key.clone(), span } };
    let mut lines = lines(&text).filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
    match lines.next() {
        Some((_, header)) if header.replace(' ', "") == HEADER => {}
        other => {
            let (span, _) = other.unwrap_or((0..0, ""));
            let what = "a trace begins with its columns";
            place(span).problem(Kind::File, what, format!("write `{HEADER}` on the first line"), cx);
            return None;
        }
    }
    let steps: Vec<Option<Line>> = lines
        .map(|(span, line)| {
            let place = place(span);
            let step = step(line);
            if step.is_none() {
                let what = "a line of a trace is seconds from the start and an MCS";
                place.problem(Kind::File, what, "write for example `2.5,4`", cx);
            }
            step.map(|(at, mcs)| Line { at, mcs, place })
        })
        .collect();
    steps.into_iter().collect()
}

fn step(line: &str) -> Option<(Time, u64)> {
    let (at, mcs) = line.split_once(',')?;
    let at: Span = quantity::parse(&format!("{} s", at.trim())).ok()?;
    Some((Time::ZERO + at, mcs.trim().parse().ok()?))
}

/// Lines without surrounding space, and where they stand.
fn lines(text: &str) -> impl Iterator<Item = (Range<usize>, &str)> {
    text.split_inclusive('\n').scan(0, |offset, line| {
        let start = *offset + (line.len() - line.trim_start().len());
        *offset += line.len();
        Some((start..start + line.trim().len(), line.trim()))
    })
}
