//! Where the nodes of a mesh stand or walk.

use super::table::PathPoint;
use crate::bounds::{LONGEST_RUN, span};
use crate::quantity::{Metres, show};
use crate::read::{Context, Entry, Quantity};
use lasthop_units::{Span, Time};

/// Coordinates and distances, in thousandths of a metre.
pub(super) const MOST: Metres = Metres(10_000_000);
/// Between two points that a distance over time is made of: a step of a walker's.
const STEP: Span = Span::from_millis(500);

/// Where a node is, in thousandths of a metre: points of a path by time, or one.
pub(super) struct Places(Vec<(Time, [u64; 2])>);

impl Places {
    /// What has been found right; `None` if it has not.
    pub(super) fn of(position: &Entry<Vec<Quantity<Metres>>>, path: Option<&Entry<Vec<PathPoint>>>) -> Option<Places> {
        let coordinates = |entry: &Entry<Vec<Quantity<Metres>>>| match entry.get()?[..] {
            [Quantity(x), Quantity(y)] => Some([x.0, y.0]),
            _ => None,
        };
        let points = match path.filter(|path| path.given) {
            None => vec![(Time::ZERO, coordinates(position)?)],
            Some(path) => {
                let point = |point: &PathPoint| Some((Time::ZERO + point.at.get()?.0, coordinates(&point.position)?));
                path.get()?.iter().map(point).collect::<Option<Vec<_>>>()?
            }
        };
        Some(Places(points))
    }

    fn at(&self, at: Time) -> [u64; 2] {
        let next = self.0.partition_point(|point| point.0 <= at);
        match (next.checked_sub(1).map(|before| self.0[before]), self.0.get(next).copied()) {
            (Some((from, start)), Some((to, end))) => {
                let part = at.since(from).as_secs_f64() / to.since(from).as_secs_f64();
                [0, 1].map(|axis| (start[axis] as f64 * (1.0 - part) + end[axis] as f64 * part).round() as u64)
            }
            (Some((_, only)), None) | (None, Some((_, only))) => only,
            (None, None) => [0, 0],
        }
    }

    fn end(&self) -> Time {
        self.0.last().map_or(Time::ZERO, |point| point.0)
    }
}

/// The squares of the distance between two nodes, in square millimetres: as long as one of them walks, each half a second.
fn squares(one: &Places, other: &Places) -> Vec<(Time, u128)> {
    let end = one.end().max(other.end());
    let mut squares = Vec::new();
    let mut at = Time::ZERO;
    loop {
        let (from, to) = (one.at(at), other.at(at));
        squares.push((at, [0, 1].map(|axis| u128::from(from[axis].abs_diff(to[axis])).pow(2)).iter().sum()));
        if at >= end {
            return squares;
        }
        at = (at + STEP).min(end);
    }
}

/// The square of the least distance that two nodes ever have, in square millimetres.
pub(super) fn nearest(one: &Places, other: &Places) -> u128 {
    squares(one, other).into_iter().map(|(_, square)| square).min().unwrap_or(0)
}

/// The distance of two nodes over time, in metres.
pub(super) fn distances(one: &Places, other: &Places) -> Vec<(Time, f64)> {
    squares(one, other).into_iter().map(|(at, square)| (at, (square as f64).sqrt() / 1_000.0)).collect()
}

/// Where a node stands. What is wrong is reported.
pub(super) fn standing(entry: &Entry<Vec<Quantity<Metres>>>, cx: &mut Context) -> Option<Places> {
    Some(Places(vec![(Time::ZERO, position(entry, cx)?)]))
}

/// Where a node walks. What is wrong is reported.
pub(super) fn walking(entry: &Entry<Vec<PathPoint>>, cx: &mut Context) -> Option<Places> {
    let points = entry.get()?;
    if points.is_empty() {
        cx.impossible(&entry.at, "the path is empty", "add a first point at 0 s");
        return None;
    }
    let mut path: Vec<(Time, [u64; 2])> = Vec::new();
    for point in &points {
        let time = span(&point.at, (Span::ZERO, LONGEST_RUN), "no run lasts longer", cx)?;
        let position = position(&point.position, cx)?;
        match path.last() {
            None if !time.is_zero() => {
                let what = format!("the path begins at {}, and the run at 0 s", show(time));
                cx.impossible(&point.at.at, what, "add a first point at 0 s");
                return None;
            }
            Some((before, _)) if Time::ZERO + time <= *before => {
                let what = format!("the point at {} does not follow the one before", show(time));
                cx.impossible(&point.at.at, what, "put the points in order, one at each time");
                return None;
            }
            _ => path.push((Time::ZERO + time, position)),
        }
    }
    Some(Places(path))
}

fn position(entry: &Entry<Vec<Quantity<Metres>>>, cx: &mut Context) -> Option<[u64; 2]> {
    let coordinates = entry.get()?;
    let [Quantity(x), Quantity(y)] = coordinates[..] else {
        let what = format!("a position has two coordinates, and here are {}", coordinates.len());
        cx.impossible(&entry.at, what, "write `[\"100 m\", \"0 m\"]`");
        return None;
    };
    if x > MOST || y > MOST {
        let what = format!("a coordinate beyond {}", show(MOST));
        cx.problem(crate::problem::Kind::OutOfRange, &entry.at, what, format!("write 0 m to {}", show(MOST)));
        return None;
    }
    Some([x.0, y.0])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn somebody_who_passes_comes_nearest_in_the_middle() {
        let second = |s| Time::ZERO + Span::from_secs(s);
        let walker = Places(vec![(second(0), [0, 3_000]), (second(8), [8_000, 3_000])]);
        let stands = Places(vec![(second(0), [4_000, 0])]);
        assert_eq!(nearest(&walker, &stands), 9_000_000);
        let distances = distances(&walker, &stands);
        assert_eq!((distances.len(), distances[0], distances[8]), (17, (second(0), 5.0), (second(4), 3.0)));
        assert_eq!(distances[16], (second(8), 5.0));
    }
}
