//! What is told of numbers and events gives the account that every segment gives.

use super::*;
use lasthop_laws::oal::evidence::{Count, Evidence};
use lasthop_units::Span;
use lasthop_wire::FlowKey;
use lasthop_wire::tcp::{Flags, SackBlock, SackBlocks, TcpHeader, TcpOptions, Timestamps};
use proptest::collection::vec;
use proptest::prelude::*;

const MSS: u32 = 1448;
const STATION: Node = Node(1);
const REPAIR: Span = Span::from_millis(40);
const STEP: Span = Span::from_millis(4);

/// What happens next to a flow; places are in segments, back from the highest one.
#[derive(Clone, Debug)]
enum Step {
    Data {
        segments: u32,
    },
    /// The sender's segments are lost before they come here.
    Skip {
        segments: u32,
    },
    /// A segment without data tells how far its sender is.
    Empty,
    Again {
        back: u32,
        segments: u32,
    },
    /// One octet, at this place before the next one to come, or that one itself.
    Octet {
        next: bool,
    },
    Ack {
        back: u32,
        sacks: Vec<(u32, u32)>,
    },
    Interval,
}

fn any_step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (1u32..20).prop_map(|segments| Step::Data { segments }),
        1 => (1u32..4).prop_map(|segments| Step::Skip { segments }),
        1 => Just(Step::Empty),
        3 => (1u32..40, 1u32..4).prop_map(|(back, segments)| Step::Again { back, segments }),
        1 => any::<bool>().prop_map(|next| Step::Octet { next }),
        4 => (0u32..40, prop_oneof![3 => vec((0u32..40, 1u32..5), 0..1), 2 => vec((0u32..40, 1u32..5), 1..4)])
            .prop_map(|(back, sacks)| Step::Ack { back, sacks }),
        3 => Just(Step::Interval),
    ]
}

fn key() -> Key {
    let flow = FlowKey {
        source: [192, 0, 2, 1].into(),
        destination: [10, 0, 0, 2].into(),
        source_port: 443,
        destination_port: 50_000,
        protocol: lasthop_wire::ip::TCP,
    };
    Key::of_downlink(&flow).expect("a TCP flow")
}

fn header(flags: Flags, seq: u32, ack: u32, options: TcpOptions, payload_len: u32) -> TcpHeader {
    TcpHeader { source_port: 443, destination_port: 50_000, seq, ack, flags, window: 60_000, options, payload_len }
}

/// A flow beside its account by every segment, and its account by what the program tells.
struct Both {
    now: Time,
    flow: Flow,
    /// The first octet, and the next one to come.
    first: u32,
    next: u32,
    passing: Passing,
    whole: Evidence,
    told: Evidence,
}

impl Both {
    fn open(isn: u32) -> Both {
        let mut both = Both {
            now: Time::from_nanos(1_000_000_000),
            flow: Flow::default(),
            first: isn.wrapping_add(1),
            next: isn.wrapping_add(1),
            passing: Passing::default(),
            whole: Evidence::new(REPAIR),
            told: Evidence::new(REPAIR),
        };
        both.passing.tell(both.now, |_| false, |_, _| panic!("nothing has passed"));
        both.now += Span::from_micros(10);
        let options =
            TcpOptions { mss: Some(1460), timestamps: Some(Timestamps { val: 1, ecr: 0 }), ..TcpOptions::default() };
        let _ = both.flow.on_uplink(both.now, &header(Flags::SYN, 7, 0, options, 0));
        both.flow.on_downlink(both.now, &header(Flags::SYN | Flags::ACK, isn, 8, options, 0));
        let _ = both.flow.on_uplink(both.now, &header(Flags::ACK, 8, both.next, both.options(), 0));
        both
    }

    fn options(&self) -> TcpOptions {
        let ms = (self.now.as_nanos() / 1_000_000) as u32;
        TcpOptions { timestamps: Some(Timestamps { val: ms, ecr: ms }), ..TcpOptions::default() }
    }

    fn segment(&self, way: Way, seq: u32, len: u32, ack: u32, sack: SackRanges) -> Segment {
        Segment { flow: FlowId(3), station: STATION, way, seq, len, count: 1, ack, sack }
    }

    /// As bpf/rwnd.bpf.c, `is_news` and `tell`.
    fn event(&mut self, up: bool, seq: u32, len: u32, ack: u32, sack: &[(u32, u32)]) {
        let (end, highest_ack) = self.flow.progress();
        let is_news =
            if up { !sack.is_empty() } else { len == 1 || (len > 0 && seq != end) || (len == 0 && before(end, seq)) };
        if is_news {
            let event = Event::test((key(), self.flow.born(), self.now), (end, highest_ack), up, (seq, len, ack), sack);
            self.passing.events.push(event);
        }
    }

    fn down(&mut self, seq: u32, len: u32) {
        self.now += Span::from_micros(3);
        self.event(false, seq, len, 8, &[]);
        self.flow.on_downlink(self.now, &header(Flags::ACK, seq, 8, self.options(), len));
        let segment = self.segment(Way::Down, seq, len, 8, SackRanges::EMPTY);
        self.whole.segment(self.now, &segment);
    }

    fn up(&mut self, ack: u32, ranges: &[(u32, u32)]) {
        self.now += Span::from_micros(3);
        self.event(true, 8, 0, ack, ranges);
        let mut sack = SackBlocks::EMPTY;
        ranges.iter().for_each(|&(left, right)| sack.push(SackBlock { left, right }));
        let _ = self.flow.on_uplink(self.now, &header(Flags::ACK, 8, ack, TcpOptions { sack, ..self.options() }, 0));
        let segment = self.segment(Way::Up, 8, 0, ack, ranges.iter().copied().collect());
        self.whole.segment(self.now, &segment);
    }

    fn back(&self, segments: u32) -> u32 {
        self.next.wrapping_sub(segments * MSS)
    }

    fn step(&mut self, step: &Step) {
        match step {
            Step::Data { segments } => (0..*segments).for_each(|_| {
                self.down(self.next, MSS);
                self.next = self.next.wrapping_add(MSS);
            }),
            Step::Skip { segments } => self.next = self.next.wrapping_add(segments * MSS),
            Step::Empty => self.down(self.next, 0),
            // Nothing lies below the first octet of a connection.
            Step::Again { back, segments } => {
                let back = (*back).min(self.next.wrapping_sub(self.first) / MSS);
                (0..(*segments).min(back)).for_each(|n| self.down(self.back(back - n), MSS));
            }
            Step::Octet { next: false } if self.next == self.first => {}
            Step::Octet { next: false } => self.down(self.next.wrapping_sub(1), 1),
            Step::Octet { next: true } => self.down(self.next, 1),
            Step::Ack { back, sacks } => {
                let ranges: Vec<(u32, u32)> =
                    sacks.iter().map(|(back, len)| (self.back(*back), self.back(back - back.min(len)))).collect();
                // It acknowledges nothing that has not been sent by all that is known here.
                let (ack, end) = (self.back(*back), self.flow.progress().0);
                self.up(if before(end, ack) { end } else { ack }, &ranges);
            }
            Step::Interval => self.cut(),
        }
    }

    fn cut(&mut self) {
        self.now += STEP;
        let (passing, told) = (&mut self.passing, &mut self.told);
        passing.saw(&key(), FlowId(3), STATION, &self.flow);
        passing.tell(self.now, |_| false, |at, segment| told.segment(at, &segment));
        self.whole.cut(self.now);
        self.told.cut(self.now);
    }
}

proptest! {
    #[test]
    fn counters_and_events_match_a_per_segment_account(isn in any::<u32>(), steps in vec(any_step(), 1..200)) {
        let mut both = Both::open(isn);
        steps.iter().for_each(|step| both.step(step));
        both.cut();
        for interval in 0..both.whole.interval() {
            let of = |evidence: &Evidence| evidence.count(interval, STATION);
            prop_assert_eq!(of(&both.told), of(&both.whole), "interval {}", interval);
        }
        prop_assert!(both.passing.events.is_empty());
    }
}

fn lost(both: &Both) -> u64 {
    (0..both.told.interval()).map(|interval| both.told.count(interval, STATION).lost).sum()
}

#[test]
fn what_came_between_two_events_is_told_between_them() {
    let mut both = Both::open(u32::MAX - 3 * MSS);
    both.step(&Step::Data { segments: 10 });
    // The second one is missing, is sent again, and arrives.
    let hole = both.back(9);
    both.up(hole, &[(both.back(8), both.back(0))]);
    both.down(hole, MSS);
    both.up(both.next, &[]);
    // A keep-alive, and a repeat of what has arrived, say nothing.
    both.down(both.next.wrapping_sub(1), 1);
    both.down(hole, MSS);
    both.cut();
    assert_eq!((both.told.count(0, STATION), lost(&both)), (Count { copies: 10, lost: 1, ..Count::default() }, 1));
}

#[test]
fn a_flow_whose_events_are_lost_begins_anew_where_it_stands() {
    let mut both = Both::open(1_000);
    both.step(&Step::Data { segments: 10 });
    both.cut();
    let repeat = both.back(5);
    both.down(repeat, MSS);
    both.passing.forget();
    both.told.missed();
    both.cut();
    both.step(&Step::Data { segments: 10 });
    both.cut();
    // The repeat was not told; what entered since is.
    let copies: Vec<u64> = (0..3).map(|interval| both.told.count(interval, STATION).copies).collect();
    assert_eq!((copies, lost(&both)), (vec![10, 0, 10], 0));
    both.down(both.back(5), MSS);
    both.cut();
    assert_eq!(lost(&both), 1);
}

#[test]
fn a_flow_first_seen_late_counts_from_where_it_stands() {
    let mut both = Both::open(1_000);
    // An interval passes in which there was no room for it.
    both.now += STEP;
    both.passing.tell(both.now, |_| false, |_, _| panic!("no flow is followed"));
    both.step(&Step::Data { segments: 10 });
    both.down(both.back(5), MSS);
    both.cut();
    assert_eq!(both.told.count(0, STATION), Count::default());
    both.step(&Step::Data { segments: 7 });
    both.cut();
    assert_eq!(both.told.count(1, STATION), Count { copies: 7, ..Count::default() });
}

#[test]
fn events_of_an_unread_flow_wait_for_the_next_read() {
    let mut both = Both::open(1_000);
    let looked = both.now;
    both.step(&Step::Data { segments: 10 });
    both.down(both.back(5), MSS);
    both.passing.tell(looked, |_| false, |_, _| panic!("no flow is followed"));
    assert_eq!(both.passing.events.len(), 1);
}
