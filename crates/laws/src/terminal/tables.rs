//! The paper's tables: least and most packets in flight, by the number of terminals and by the ratio of round trips.
//! Source:     Hayakawa, Yamaguchi, Oguchi 2015, Tables 2 and 3.
//! Equations:  r = RTT / min RTT;   bounds = the smaller of the two rows, each of maximum and minimum by itself
//! Symbols:    n, terminals that send, this one included -> `terminals`; r -> `ratio`; windows in packets
//! Deviations: the paper's tables end at ten terminals; for more, the last row is divided in proportion to 10 / n.
//! Validity:   entries are tuned by hand for 26 Mbit/s and 1500-byte packets, as the authors say.
//! Checked by: tests::*

use crate::Bounds;
use lasthop_units::Span;

/// From this minimum round trip on a path is a long one (the paper's case B).
const LONG: Span = Span::from_millis(100);

/// Table 2: maximum and minimum by the number of terminals from 1 to 10, on a short path and on a long one.
const BY_TERMINALS: [[(u32, u32); 10]; 2] = [
    [(90, 80), (80, 60), (60, 50), (40, 30), (25, 20), (20, 10), (12, 8), (8, 5), (7, 3), (4, 2)],
    [(555, 250), (400, 300), (300, 200), (200, 120), (65, 40), (55, 30), (39, 20), (28, 15), (24, 10), (17, 5)],
];

/// A row of Table 3: from this ratio on, maximum and minimum.
type Edge = (u32, (u32, u32));

/// Table 3: by the ratio of round trips, on a short path and on a long one.
const BY_RATIO: [[Edge; 10]; 2] = [
    [
        (1, (100, 80)),
        (10, (80, 60)),
        (15, (60, 50)),
        (20, (50, 40)),
        (25, (40, 30)),
        (30, (30, 20)),
        (35, (20, 10)),
        (40, (10, 5)),
        (45, (4, 3)),
        (50, (3, 2)),
    ],
    [
        (1, (555, 300)),
        (2, (300, 100)),
        (3, (100, 20)),
        (4, (10, 5)),
        (5, (8, 4)),
        (6, (6, 3)),
        (7, (5, 3)),
        (8, (4, 2)),
        (9, (3, 2)),
        (10, (2, 1)),
    ],
];

/// Bounds on the window in packets by the number of terminals alone (Table 2): what the authors' earlier method had.
pub(super) fn by_terminals(min_rtt: Span, terminals: u32) -> Bounds<u32> {
    let table = &BY_TERMINALS[usize::from(min_rtt >= LONG)];
    let rows = table.len() as u32;
    let terminals = terminals.max(1);
    let (upper, lower) = table[(terminals.min(rows) - 1) as usize];
    if terminals <= rows {
        return Bounds { lower, upper };
    }
    let part = |packets: u32| (u64::from(packets) * u64::from(rows) / u64::from(terminals)) as u32;
    Bounds { lower: part(lower).max(1), upper: part(upper).max(2) }
}

/// Bounds by the ratio of round trips alone (Table 3).
fn by_ratio(min_rtt: Span, rtt: Span) -> Bounds<u32> {
    let table = &BY_RATIO[usize::from(min_rtt >= LONG)];
    // Whole numbers: RTT >= edge * min RTT. A round trip below the minimum counts as one at it.
    let reached = |edge: &&Edge| rtt >= min_rtt * u64::from(edge.0);
    let (_, (upper, lower)) = table.iter().rev().find(reached).unwrap_or(&table[0]);
    Bounds { lower: *lower, upper: *upper }
}

/// Bounds by both tables, and whether the maximum is Table 3's.
pub(super) fn by_both(min_rtt: Span, rtt: Span, terminals: u32) -> (Bounds<u32>, bool) {
    let (count, ratio) = (by_terminals(min_rtt, terminals), by_ratio(min_rtt, rtt));
    let bounds = Bounds { lower: count.lower.min(ratio.lower), upper: count.upper.min(ratio.upper) };
    (bounds, ratio.upper < count.upper)
}

#[cfg(test)]
mod tests {
    use super::*;
    use lasthop_units::brief::ms;

    #[test]
    fn the_smaller_of_the_two_rows_counts_for_each_bound_by_itself() {
        // Two terminals on a long path: (400, 300); at twice the minimum: (300, 100).
        assert_eq!(by_both(ms(256), ms(512), 2), (Bounds { lower: 100, upper: 300 }, true));
        // One terminal at the minimum: (555, 250) and (555, 300).
        assert_eq!(by_both(ms(256), ms(256), 1), (Bounds { lower: 250, upper: 555 }, false));
        // A short path: ten terminals (4, 2), at 49 times the minimum (4, 3), at 50 times (3, 2).
        assert_eq!(by_both(ms(4), ms(196), 10), (Bounds { lower: 2, upper: 4 }, false));
        assert_eq!(by_both(ms(4), ms(200), 10), (Bounds { lower: 2, upper: 3 }, true));
        // 99 ms is short, 100 ms is long.
        assert_eq!([99, 100].map(|floor| by_terminals(ms(floor), 5).upper), [25, 65]);
    }

    #[test]
    fn rows_begin_at_their_edge_and_the_last_has_no_end() {
        let upper = |rtt| by_ratio(ms(100), ms(rtt)).upper;
        assert_eq!([1, 100, 199, 200, 399, 400, 1000, 60_000].map(upper), [555, 555, 555, 300, 100, 10, 2, 2]);
    }

    #[test]
    fn more_terminals_than_the_table_has_share_its_last_row() {
        let at = |terminals| by_terminals(ms(256), terminals);
        assert_eq!(at(10), Bounds { lower: 5, upper: 17 });
        assert_eq!(at(20), Bounds { lower: 2, upper: 8 });
        assert_eq!(at(u32::MAX), Bounds { lower: 1, upper: 2 });
        assert_eq!(at(0), at(1));
    }

    #[test]
    fn every_pair_of_rows_makes_an_interval() {
        for floor in [4, 256] {
            for terminals in 1..=40 {
                for ratio in 1..=80 {
                    let (bounds, _) = by_both(ms(floor), ms(floor * ratio), terminals);
                    assert!(
                        1 <= bounds.lower && bounds.lower < bounds.upper,
                        "{floor} {terminals} {ratio}: {bounds:?}"
                    );
                }
            }
        }
    }
}
