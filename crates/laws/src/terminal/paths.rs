//! The shortest round trip of each path, across the connections that take it.
//! Source:     own: a connection that begins in a full queue takes the queue for the path.
//! Equations:  base(destination) = least min RTT told of any connection there within the last one to two windows
//! Deviations: the paper takes the connection's own.
//! Validity:   a path that has become longer is believed after two windows; Linux forgets its own minimum after as long (tcp_min_rtt_wlen).
//! Checked by: tests::*

use lasthop_units::{Span, Time};
use std::collections::BTreeMap;

/// A minimum stands for one such window, and for the one after it.
const WINDOW: Span = Span::from_secs(150);
/// Paths that are remembered: of more, connections keep their own minimum.
const PATHS: usize = 4096;

/// What is known of paths, by their destinations.
#[derive(Clone, Debug, Default)]
pub(super) struct Paths {
    /// The least of this window and of the last, by destination.
    now: BTreeMap<u64, Span>,
    before: BTreeMap<u64, Span>,
    began: Time,
}

impl Paths {
    /// A connection to `destination` tells its minimum. Returns the path's.
    pub(super) fn least(&mut self, now: Time, destination: u64, min_rtt: Span) -> Span {
        if now.since(self.began) >= WINDOW {
            // Whoever has been away for two windows remembers nothing.
            let recent = now.since(self.began) < WINDOW + WINDOW;
            self.before = if recent { std::mem::take(&mut self.now) } else { BTreeMap::new() };
            self.now.clear();
            self.began = now;
        }
        if self.now.len() < PATHS || self.now.contains_key(&destination) {
            let least = self.now.entry(destination).or_insert(min_rtt);
            *least = min_rtt.min(*least);
        }
        let known = [&self.now, &self.before].into_iter().filter_map(|window| window.get(&destination).copied());
        known.fold(min_rtt, Span::min)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lasthop_units::brief::ms;

    fn at(seconds: u64) -> Time {
        Time::ZERO + Span::from_secs(seconds)
    }

    #[test]
    fn a_late_connection_knows_what_an_earlier_one_has_seen() {
        let mut paths = Paths::default();
        assert_eq!(paths.least(at(0), 1, ms(4)), ms(4));
        assert_eq!(paths.least(at(30), 1, ms(154)), ms(4));
        assert_eq!(paths.least(at(30), 2, ms(154)), ms(154), "another path");
    }

    #[test]
    fn a_path_that_has_become_longer_is_believed_in_the_end() {
        let mut paths = Paths::default();
        paths.least(at(10), 1, ms(4));
        assert_eq!(paths.least(at(200), 1, ms(50)), ms(4));
        assert_eq!(paths.least(at(310), 1, ms(50)), ms(4), "told in the window before this one");
        assert_eq!(paths.least(at(400), 1, ms(50)), ms(50));
        assert_eq!(paths.least(at(4000), 1, ms(70)), ms(70), "nobody has told anything for long");
    }
}
