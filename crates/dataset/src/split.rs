//! Parts a data set into items to learn from and items to be asked for, so that the second are not copies of the first.
//!
//! Items that are near to each other in time are alike: a random split asks for neighbours of what was learned. Held-out time, access points
//! and seeds do not.

use crate::row::Row;
use crate::{Meta, Pseudonym};
use lasthop_units::{Seed, Span, Time, named};
use rand::seq::SliceRandom;
use std::collections::BTreeMap;

named! {
    /// What is held out.
    #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
    pub enum By {
        /// What comes later: learned from what was before, with a gap between.
        Time = "time",
        /// An access point.
        AccessPoint = "access-point",
        /// A seed.
        Seed = "seed",
        /// Items at random: neighbours of what is learned. What that pretends is to be seen, not believed.
        Random = "random",
    }
}

/// Places of rows to learn from, and of rows to be asked for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Fold {
    /// What is held out, for tables.
    pub held_out: String,
    /// To learn from.
    pub learn: Vec<usize>,
    /// To be asked for.
    pub ask: Vec<usize>,
}

/// Blocks of time, and parts of a random split.
const BLOCKS: usize = 5;
/// Access points or seeds that are held out at most, one after the other.
const HELD_OUT_MAX: usize = 12;
/// Longest window that a feature looks back over.
const WINDOW: Span = Span::from_millis(100);

/// Time that lies between what is learned and what is asked for: the longest window, the longest horizon, and the time for repairs, in which
/// nobody knows yet what was lost.
pub fn gap(meta: &Meta, rows: &[Row]) -> Span {
    let horizon = rows.iter().map(|row| row.horizon).max().unwrap_or(Span::ZERO);
    let repair = meta.recordings.iter().map(|recording| recording.repair_us).max().unwrap_or(0);
    WINDOW + horizon + Span::from_micros(repair)
}

/// All ways to hold one block, access point, seed or part out. Folds with an empty side are left out.
pub fn folds(meta: &Meta, rows: &[Row], by: By) -> Vec<Fold> {
    let folds = match by {
        By::Time => by_time(rows, gap(meta, rows)),
        // By its name: under one key an access point is the same in all recordings.
        By::AccessPoint => by_group(rows, |row| row.access_point, Pseudonym::to_string),
        By::Seed => by_group(
            rows,
            |row| meta.recordings.get(row.recording as usize).and_then(|recording| recording.seed),
            |seed| seed.map_or("none".to_owned(), |seed| seed.to_string()),
        ),
        By::Random => at_random(rows),
    };
    folds.into_iter().filter(|fold| !fold.learn.is_empty() && !fold.ask.is_empty()).collect()
}

/// Blocks of as many items each; each but the first is asked for by what was learned from those before it.
fn by_time(rows: &[Row], gap: Span) -> Vec<Fold> {
    let mut times: Vec<Time> = rows.iter().map(|row| row.at).collect();
    times.sort_unstable();
    let begin = |block: usize| times.get(block * times.len() / BLOCKS).copied();
    let fold = |block: usize| {
        let (from, until) = (begin(block)?, begin(block + 1));
        let places =
            |wanted: &dyn Fn(&Row) -> bool| (0..rows.len()).filter(|at| wanted(&rows[*at])).collect::<Vec<_>>();
        let ask = places(&|row| row.at >= from && until.is_none_or(|until| row.at < until));
        Some(Fold { held_out: format!("block {}", block + 1), learn: places(&|row| row.at + gap <= from), ask })
    };
    (1..BLOCKS).filter_map(fold).collect()
}

fn by_group<K: Ord + Copy>(rows: &[Row], key: impl Fn(&Row) -> K, name: impl Fn(&K) -> String) -> Vec<Fold> {
    let mut groups: BTreeMap<K, Vec<usize>> = BTreeMap::new();
    rows.iter().enumerate().for_each(|(at, row)| groups.entry(key(row)).or_default().push(at));
    let fold = |(own, ask): (&K, &Vec<usize>)| {
        let learn = (0..rows.len()).filter(|at| key(&rows[*at]) != *own).collect();
        Fold { held_out: name(own), learn, ask: ask.clone() }
    };
    groups.iter().take(HELD_OUT_MAX).map(fold).collect()
}

fn at_random(rows: &[Row]) -> Vec<Fold> {
    let mut order: Vec<usize> = (0..rows.len()).collect();
    // Any seed will do, as long as it is the same each time.
    order.shuffle(&mut Seed(0).stream("dataset/split"));
    let fold = |part: usize| {
        let ask = part * order.len() / BLOCKS..(part + 1) * order.len() / BLOCKS;
        let sorted = |mut places: Vec<usize>| {
            places.sort_unstable();
            places
        };
        let learn = [&order[..ask.start], &order[ask.end..]].concat();
        Fold { held_out: format!("part {}", part + 1), learn: sorted(learn), ask: sorted(order[ask].to_vec()) }
    };
    (0..BLOCKS).map(fold).collect()
}
