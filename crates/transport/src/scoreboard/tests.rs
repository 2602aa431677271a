use super::*;
use crate::delivery_rate::DeliveryRate;
use lasthop_units::brief::at;
use proptest::prelude::*;

fn snapshot() -> Snapshot {
    DeliveryRate::new(Time::ZERO).on_sent(Time::ZERO, true)
}

/// `n` segments of 100, one a millisecond from 0 ms on.
fn board(n: u64) -> Scoreboard {
    let mut board = Scoreboard::new(1);
    for ms in 0..n {
        board.push(at(ms), 100, false, snapshot());
    }
    board
}

#[test]
fn a_sacked_segment_leaves_the_network_once() {
    let mut board = board(5);
    let mut delivered = 0;
    board.sack(201..301, |_, bytes| delivered += bytes);
    board.sack(201..401, |_, bytes| delivered += bytes);
    assert_eq!((delivered, board.in_flight(), board.sacked_segments()), (200, 300, 2));
    assert_eq!(board.acknowledge(501, |_, bytes| delivered += bytes), 500);
    assert_eq!((delivered, board.in_flight(), board.is_empty()), (500, 0, true));
}

#[test]
fn half_a_segment_can_be_acknowledged() {
    let mut board = board(2);
    assert_eq!(board.acknowledge(51, |_, _| {}), 50);
    assert_eq!((board.una(), board.in_flight()), (51, 150));
    assert!(board.is_consistent());
    board.acknowledge(201, |_, _| {});
    assert!(board.is_empty() && board.is_consistent());
}

#[test]
fn a_partly_sacked_segment_counts_only_when_whole() {
    let mut board = board(3);
    let mut delivered = 0;
    board.sack(101..150, |_, bytes| delivered += bytes);
    assert_eq!(delivered, 0);
    board.sack(150..201, |_, bytes| delivered += bytes);
    assert_eq!(delivered, 100);
}

#[test]
fn segments_before_a_sacked_one_are_resent_lowest_first() {
    let (mut board, mut rack) = (board(5), Rack::new());
    board.sack(301..401, |s, _| rack.on_delivered(at(23), s.sent_at, s.end(), false, None));
    let (lost, again) = board.detect_losses(at(23), &rack, Span::ZERO, |_| ());
    assert_eq!((lost, again, board.in_flight()), (300, None, 100));
    let index = board.next_lost().expect("three are");
    assert_eq!(board.resend(at(24), index, snapshot()).start, 1);
    let index = board.next_lost().expect("two are");
    assert_eq!(board.get(index).start, 101);
}

#[test]
fn a_reordering_window_postpones_the_verdict() {
    let (mut board, mut rack) = (board(2), Rack::new());
    board.sack(101..201, |s, _| rack.on_delivered(at(21), s.sent_at, s.end(), false, None));
    // Sent at 0 ms, RTT 20 ms, window 5 ms.
    assert_eq!(board.detect_losses(at(21), &rack, Span::from_millis(5), |_| ()), (0, Some(at(25))));
    assert_eq!(board.detect_losses(at(25), &rack, Span::from_millis(5), |_| ()), (100, None));
}

#[test]
fn a_lost_retransmission_is_noticed() {
    let (mut board, mut rack) = (board(4), Rack::new());
    board.sack(101..201, |s, _| rack.on_delivered(at(21), s.sent_at, s.end(), false, None));
    board.detect_losses(at(21), &rack, Span::ZERO, |_| ());
    let index = board.next_lost().expect("the first is");
    board.resend(at(21), index, snapshot());
    board.push(at(22), 100, false, snapshot());
    board.sack(401..501, |s, _| rack.on_delivered(at(42), s.sent_at, s.end(), false, None));
    let (lost, _) = board.detect_losses(at(42), &rack, Span::ZERO, |_| ());
    assert_eq!(lost, 300, "the retransmission and the two that followed the first SACK");
    assert_eq!(board.next_lost(), Some(0));
}

#[test]
fn a_receiver_that_forgets_what_it_reported_is_believed() {
    let mut board = board(3);
    board.sack(1..101, |_, _| {});
    assert_eq!(board.time_out(at(500), Span::from_millis(20), |_| ()), 200);
    assert_eq!((board.sacked_segments(), board.in_flight(), board.next_lost()), (0, 0, Some(0)));
    assert!(board.is_consistent());
}

#[test]
fn a_timeout_spares_what_was_sent_just_now() {
    let mut board = board(2);
    board.push(at(990), 100, false, snapshot());
    assert_eq!(board.time_out(at(1000), Span::from_millis(20), |_| ()), 200);
    assert_eq!(board.in_flight(), 100);
}

#[derive(Clone, Debug)]
enum Step {
    Push(u32),
    Ack(u64),
    Sack(u64, u64),
    Resend,
    Detect(u64),
    TimeOut,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (1u32..200).prop_map(Step::Push),
        2 => (0u64..3000).prop_map(Step::Ack),
        4 => (0u64..4000, 1u64..900).prop_map(|(start, len)| Step::Sack(start, len)),
        3 => Just(Step::Resend),
        3 => (0u64..20).prop_map(Step::Detect),
        1 => Just(Step::TimeOut),
    ]
}

proptest! {
    #[test]
    fn the_sums_agree_with_the_segments_after_every_step(steps in prop::collection::vec(step(), 1..200)) {
        let (mut board, mut rack, mut now) = (Scoreboard::new(1), Rack::new(), at(1));
        let (mut sent, mut delivered) = (0, 0);
        for step in steps {
            now += Span::from_millis(1);
            match step {
                Step::Push(len) => {
                    sent += u64::from(len);
                    board.push(now, len, false, snapshot());
                }
                Step::Ack(ahead) => {
                    let upto = (board.una() + ahead).min(board.nxt());
                    board.acknowledge(upto, |s, bytes| {
                        delivered += bytes;
                        rack.on_delivered(now, s.sent_at, s.end(), s.resent, None);
                    });
                }
                Step::Sack(start, len) => {
                    let start = board.una() + start;
                    board.sack(start..start + len, |s, bytes| {
                        delivered += bytes;
                        rack.on_delivered(now, s.sent_at, s.end(), s.resent, None);
                    });
                }
                Step::Resend => {
                    if let Some(index) = board.next_lost() {
                        board.resend(now, index, snapshot());
                    }
                }
                Step::Detect(ms) => {
                    board.detect_losses(now, &rack, Span::from_millis(ms), |_| ());
                }
                Step::TimeOut => {
                    board.time_out(now, Span::from_millis(20), |_| ());
                }
            }
            prop_assert!(board.is_consistent(), "{board:?}");
        }
        // Reneging aside, nothing is counted as delivered twice; and whatever is left can be delivered.
        let nxt = board.nxt();
        board.acknowledge(nxt, |_, bytes| delivered += bytes);
        prop_assert!(board.is_empty() && delivered >= sent);
    }
}
