use super::*;
use lasthop_signals::SackRanges;
use std::ops::Range;

const MSS: u32 = 1448;
const STATION: Node = Node(3);
const FLOW: FlowId = FlowId(7);
/// Close to where sequence numbers wrap: the tests cross it.
const ISN: u32 = u32::MAX - 3 * MSS;

/// One flow's history, a segment's number in place of its octets.
struct History {
    evidence: Evidence,
    ms: u64,
}

impl History {
    fn new() -> History {
        History { evidence: Evidence::new(Span::from_millis(1500)), ms: 0 }
    }

    fn at(&self) -> Time {
        Time::from_nanos((100 + self.ms) * 1_000_000)
    }

    fn pass(&mut self, way: Way, (seq, len, count): (u32, u32, u16), ack: u32, sack: &[(u32, u32)]) {
        let sack: SackRanges = sack.iter().copied().collect();
        let segment = Segment { flow: FLOW, station: STATION, way, seq, len, count, ack, sack };
        self.evidence.segment(self.at(), &segment);
    }

    /// Segments from the first number to before the last.
    fn data(&mut self, numbers: Range<u32>) {
        numbers.for_each(|number| self.pass(Way::Down, (octet(number), MSS, 1), 1, &[]));
    }

    /// Acknowledges all below a number, and ranges of numbers behind it.
    fn ack(&mut self, next: u32, sack: &[(u32, u32)]) {
        let sack: Vec<(u32, u32)> = sack.iter().map(|(left, right)| (octet(*left), octet(*right))).collect();
        self.pass(Way::Up, (1, 0, 1), octet(next), &sack);
    }

    /// Time passes, with the cuts that fall into it.
    fn pass_ms(&mut self, ms: u64) {
        for _ in 0..ms / 4 {
            self.ms += 4;
            self.evidence.cut(self.at());
        }
    }

    /// First copies and losses of all intervals.
    fn counts(&self) -> (u64, u64) {
        let each = (0..=self.evidence.interval()).map(|interval| self.evidence.count(interval, STATION));
        each.fold((0, 0), |(copies, lost), count| (copies + count.copies, lost + count.lost))
    }
}

fn octet(number: u32) -> u32 {
    ISN.wrapping_add(number * MSS)
}

#[test]
fn a_repeated_segment_was_lost_when_it_first_passed() {
    let mut history = History::new();
    history.data(0..10);
    history.pass_ms(8);
    history.ack(4, &[(5, 10)]);
    history.data(10..12);
    history.data(4..5);
    assert_eq!(history.counts(), (12, 1));
    let lost = |interval| history.evidence.count(interval, STATION).lost;
    assert_eq!((lost(0), lost(2)), (1, 0), "credited to when the first copy entered");
    assert_eq!(history.evidence.count(0, Node(4)), Count::default());
}

#[test]
fn a_segment_that_is_lost_twice_counts_once() {
    let mut history = History::new();
    history.data(0..5);
    history.data(2..3);
    history.pass_ms(300);
    history.data(2..3);
    assert_eq!(history.counts(), (5, 1));
}

#[test]
fn a_hole_was_lost_on_the_way_to_the_access_point() {
    let mut history = History::new();
    history.data(0..3);
    history.data(4..8);
    history.ack(3, &[(4, 8)]);
    history.data(3..4);
    assert_eq!(history.counts(), (8, 0), "it passes for the first time");
    history.data(3..4);
    assert_eq!(history.counts(), (8, 1), "and now it has been lost behind the access point");
}

#[test]
fn what_has_arrived_is_no_loss_when_it_passes_again() {
    let mut history = History::new();
    history.data(0..10);
    history.ack(4, &[(6, 8)]);
    history.data(2..4);
    history.data(6..8);
    assert_eq!(history.counts(), (10, 0));
    history.data(3..7);
    assert_eq!(history.counts(), (10, 2), "of four segments, two were not known to have arrived");
}

#[test]
fn a_duplicate_that_the_station_names_was_no_loss() {
    let mut history = History::new();
    history.data(0..10);
    history.data(4..6);
    assert_eq!(history.counts(), (10, 2));
    // The first had only been late: the station has it twice, and says so below its acknowledgement.
    history.ack(10, &[(4, 5)]);
    assert_eq!(history.counts(), (10, 1));
    // The same within what it has beyond a hole.
    history.ack(5, &[(5, 6), (5, 10)]);
    assert_eq!(history.counts(), (10, 0));
}

#[test]
fn a_needless_repeat_of_what_was_lost_is_no_acquittal() {
    let mut history = History::new();
    history.data(0..10);
    history.data(4..5);
    history.ack(10, &[]);
    history.data(4..5);
    history.ack(10, &[(4, 5)]);
    assert_eq!(history.counts(), (10, 1), "it came twice because it was sent three times");
    // And where both repeats passed before anything was acknowledged.
    let mut history = History::new();
    history.data(0..10);
    history.data(4..5);
    history.data(4..5);
    history.ack(10, &[(4, 5)]);
    assert_eq!(history.counts(), (10, 1));
}

#[test]
fn keep_alives_and_window_probes_are_nothing() {
    let mut history = History::new();
    history.data(0..4);
    history.ack(4, &[]);
    // The octet before what comes next, with and without content; then the one that comes next, into a closed window.
    history.pass(Way::Down, (octet(4).wrapping_sub(1), 0, 1), 1, &[]);
    history.pass(Way::Down, (octet(4).wrapping_sub(1), 1, 1), 1, &[]);
    history.pass(Way::Down, (octet(4), 1, 1), 1, &[]);
    history.pass(Way::Down, (octet(4), 1, 1), 1, &[]);
    history.data(4..6);
    assert_eq!(history.counts(), (6, 0));
}

#[test]
fn merged_segments_count_as_what_they_were() {
    let (mut single, mut merged) = (History::new(), History::new());
    single.data(0..44);
    single.ack(10, &[(14, 44)]);
    single.data(10..14);
    merged.pass(Way::Down, (octet(0), 44 * MSS, 44), 1, &[]);
    merged.ack(10, &[(14, 44)]);
    merged.pass(Way::Down, (octet(10), 4 * MSS, 4), 1, &[]);
    assert_eq!(single.counts(), (44, 4));
    assert_eq!(merged.counts(), (44, 4));
}

#[test]
fn what_the_radio_gave_up_is_no_congestion() {
    let mut history = History::new();
    history.data(0..10);
    let at = history.at();
    history.evidence.mac_loss(at, FLOW, (octet(4), octet(6)));
    history.data(4..7);
    assert_eq!(history.counts(), (10, 1));
    // Where only their number is known, and about when they entered.
    let entered = history.at();
    history.pass_ms(40);
    let at = history.at();
    history.evidence.mac_losses(at, STATION, entered, 1);
    history.data(7..9);
    history.pass_ms(1500);
    let count = history.evidence.count(0, STATION);
    assert_eq!((count.lost, count.mac, count.congestion), (3, 0, 2));
}

#[test]
fn a_count_is_final_after_the_time_for_repairs() {
    let mut history = History::new();
    history.data(0..10);
    history.pass_ms(1500);
    history.data(4..5);
    assert_eq!(history.counts(), (10, 1), "the interval's end is not yet so long ago");
    history.pass_ms(4);
    history.data(5..6);
    history.ack(10, &[(4, 5)]);
    assert_eq!(history.counts(), (10, 1));
}

#[test]
fn memory_is_bounded_by_time() {
    let mut history = History::new();
    let mut most = 0;
    for second in 0..20u32 {
        for burst in 0..250 {
            let first = (second * 250 + burst) * 100;
            history.data(first..first + 100);
            history.ack(first + 50, &[(first + 60, first + 90)]);
            history.pass_ms(4);
            most = most.max(history.evidence.remembered());
        }
    }
    // A range for each interval of 1.6 s, and one that was selectively acknowledged.
    assert!((300..=410).contains(&most), "{most}");
    // 2.5 s of intervals and one more, and the one that lasts, into which nothing has come.
    assert_eq!(history.counts().0, 627 * 100);
    history.evidence.gone(FLOW);
    history.pass_ms(2000);
    assert_eq!(history.evidence.remembered(), 0);
}
