//! When a receiver says what has come, where that is apart from what it tells of the path.
//! Source:     ours: the authors of the paper wish for feedback on the rate that does not wait for reliability (their future work).
//! Equations:  after 20 packets; after max(round trip, 40 ms) if fewer have come; and once 40 ms are over since the last report, at a new hole
//! Validity:   three reports follow the last packet.     Checked by: tests::*, src/atp/tests.rs

use lasthop_laws::atp::SHORTEST_EPOCH;
use lasthop_units::{Span, Time};

/// Packets that are reported together: a report of 28 octets for twenty packets is a twentieth of what an acknowledgement for each costs.
const PACKETS: u32 = 20;
/// Reports without news after the last packet.
const QUIET: u32 = 3;
/// No report waits longer.
const LONGEST: Span = Span::from_secs(1);

/// The rule's state.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Reports {
    /// Packets since the last report, and reports without any.
    packets: u32,
    quiet: u32,
    /// Holes that were reported.
    holes: usize,
    last: Time,
    due: Option<Time>,
    round_trip: Span,
}

impl Reports {
    /// A round trip to the sender was measured.
    pub(super) fn on_round_trip(&mut self, round_trip: Span) {
        self.round_trip = round_trip;
    }

    /// A packet has come, and so many holes are in what has.
    pub(super) fn on_packet(&mut self, now: Time, holes: usize) {
        self.packets += 1;
        self.quiet = 0;
        let due = if self.packets >= PACKETS {
            now
        } else if holes > self.holes {
            now.max(self.last + SHORTEST_EPOCH)
        } else {
            now + self.wait()
        };
        self.due = Some(self.due.map_or(due, |known| known.min(due)));
        if holes < self.holes {
            self.holes = holes;
        }
    }

    /// What has come was reported, with so many holes.
    pub(super) fn on_report(&mut self, now: Time, holes: usize) {
        self.quiet = if self.packets == 0 { self.quiet + 1 } else { 0 };
        (self.packets, self.holes, self.last) = (0, holes, now);
        self.due = (self.quiet < QUIET).then(|| now + self.wait());
    }

    /// When the next report is due.
    pub(super) fn due(&self) -> Option<Time> {
        self.due
    }

    /// The longest from one report to the next while packets come.
    pub(super) fn wait(&self) -> Span {
        self.round_trip.clamp(SHORTEST_EPOCH, LONGEST)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lasthop_units::brief::at;

    #[test]
    fn twenty_packets_are_reported_at_once_and_fewer_after_a_while() {
        let mut reports = Reports::default();
        (0..19).for_each(|ms| reports.on_packet(at(ms), 0));
        assert_eq!(reports.due(), Some(at(40)));
        reports.on_packet(at(19), 0);
        assert_eq!(reports.due(), Some(at(19)));
        reports.on_report(at(19), 0);
        reports.on_round_trip(Span::from_millis(70));
        reports.on_packet(at(100), 0);
        assert_eq!(reports.due(), Some(at(59)), "what was armed at the report stays");
    }

    #[test]
    fn a_new_hole_is_reported_once() {
        let mut reports = Reports::default();
        reports.on_packet(at(100), 1);
        assert_eq!(reports.due(), Some(at(100)));
        reports.on_report(at(100), 1);
        reports.on_packet(at(101), 1);
        assert_eq!(reports.due(), Some(at(140)));
        reports.on_packet(at(102), 2);
        assert_eq!(reports.due(), Some(at(140)), "not before 40 ms are over");
    }

    #[test]
    fn it_ends_three_reports_after_the_last_packet() {
        let mut reports = Reports::default();
        reports.on_packet(at(0), 0);
        let mut times = Vec::new();
        while let Some(due) = reports.due() {
            times.push(due);
            reports.on_report(due, 0);
        }
        assert_eq!(times, [at(40), at(80), at(120), at(160)]);
    }
}
