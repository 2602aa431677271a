//! Bounds that several sections share, and names.

use crate::problem::Kind;
use crate::quantity::{Packets, either, show};
use crate::read::{At, Context, Entry, Quantity, nearest};
use lasthop_units::{Rate, Span, Time};

/// Times that every part of a scenario is held against.
#[derive(Clone, Copy)]
pub(crate) struct Run {
    pub duration: Span,
}

impl Run {
    pub fn end(self) -> Time {
        Time::ZERO + self.duration
    }
}

/// The longest run.
pub(crate) const LONGEST_RUN: Span = Span::from_secs(3600);
/// The longest delay of a line.
pub(crate) const LONGEST_DELAY: Span = Span::from_secs(10);
const SLOWEST: Rate = Rate::from_bps(1_000);
const FASTEST: Rate = Rate::from_mbit(100_000);

/// A time within bounds.
pub(crate) fn span(entry: &Entry<Quantity<Span>>, bounds: (Span, Span), why: &str, cx: &mut Context) -> Option<Span> {
    cx.within(&plain(entry), bounds, show, why)
}

/// A data rate that the clocks can resolve.
pub(crate) fn rate(entry: &Entry<Quantity<Rate>>, cx: &mut Context) -> Option<Rate> {
    let why = "slower, one packet takes longer than a run; faster, packets follow each other within nanoseconds";
    cx.within(&plain(entry), (SLOWEST, FASTEST), show, why)
}

/// Queue lengths are bounded by memory.
pub(crate) fn packets(entry: &Entry<Quantity<Packets>>, cx: &mut Context) -> Option<usize> {
    let why = "a queue holds a packet at least, and its packets must fit in memory";
    let count = cx.within(&plain(entry).map(|packets| packets.0), (1, 1_000_000), |n| format!("{n} packets"), why)?;
    usize::try_from(count).ok()
}

/// The quantity without its wrapper.
pub(crate) fn plain<T: Clone>(entry: &Entry<Quantity<T>>) -> Entry<T> {
    entry.map(|quantity| quantity.0)
}

/// Names become parts of file names, of namespaces and of random streams.
pub(crate) fn name(entry: &Entry<String>, reserved: &[&str], cx: &mut Context) {
    let Some(name) = entry.get() else { return };
    let legal = |c: char| c.is_ascii_alphanumeric() || c == '-';
    if name.is_empty() || name.len() > 32 || !name.chars().all(legal) {
        let what = format!("\"{name}\" is not a name");
        cx.problem(Kind::OutOfRange, &entry.at, what, "use 1 to 32 letters, digits and `-`");
    } else if reserved.contains(&name.as_str()) {
        let what = format!("the name \"{name}\" is taken: {} have a meaning of their own", reserved.join(", "));
        cx.impossible(&entry.at, what, "use another name");
    }
}

/// Reports names that stand twice.
pub(crate) fn unique(names: &[&Entry<String>], what: &str, cx: &mut Context) {
    for (i, entry) in names.iter().enumerate() {
        let earlier = names[..i].iter().find(|earlier| earlier.value.is_some() && earlier.value == entry.value);
        if let (Some(name), Some(_)) = (entry.get(), earlier) {
            cx.impossible(&entry.at, format!("two {what}s are called \"{name}\""), "give each a name of its own");
        }
    }
}

/// "no station …", with the one that was probably meant.
pub(crate) fn unknown_name<'n>(
    at: &At,
    what: String,
    name: &str,
    known: impl Iterator<Item = &'n str> + Clone,
    cx: &mut Context,
) {
    let all: Vec<String> = known.clone().map(|name| format!("\"{name}\"")).collect();
    let remedy = match nearest(name, known) {
        Some(near) => format!("did you mean \"{near}\"?"),
        None => format!("write {}", either(&all)),
    };
    cx.problem(Kind::UnknownName, at, what, remedy);
}
