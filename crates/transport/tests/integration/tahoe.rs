//! TCP Tahoe without SACK and RACK: the order of events, as in the recorded runs of ns-2 and WiFu (reference data `tahoe`).
//!
//! Packets are numbered in order of the stream. What is compared is what happens one after the other; times are not.
//! The reference data has them as `tahoe/ns-tahoe-*.txt`, section `packets`; the numbers that count stand here.

use crate::harness;

use harness::net::{Net, Way, law_called};
use lasthop_laws::LossRecovery;
use lasthop_transport::Config;
use lasthop_units::{Bytes, Span, Time};
use lasthop_wire::tcp::TcpHeader;
use std::collections::BTreeSet;

const MSS: u64 = 1448;

/// Packets by their place in the stream, the first of which is shown first.
fn numbering() -> impl FnMut(&TcpHeader) -> u64 {
    let mut first = None;
    move |header| {
        let first = *first.get_or_insert(header.seq);
        u64::from(header.seq.wrapping_sub(first)) / MSS
    }
}

/// Numbers of the packets that A sends of a transfer of `packets`, in order, where the first copies of `lost` do not arrive.
fn sent(packets: u64, lost: &[u64]) -> Vec<u64> {
    sent_over(packets, lost, Config::default().delayed_ack, Span::ZERO)
}

/// The same with this delay of acknowledgements, over a path that takes `each` for a packet.
fn sent_over(packets: u64, lost: &[u64], delayed_ack: Span, each: Span) -> Vec<u64> {
    let mut lost: BTreeSet<u64> = lost.iter().copied().collect();
    let config = Config { loss_recovery: LossRecovery::GoBackN, delayed_ack, ..Config::default() };
    let (mut numbered, mut free) = (numbering(), Time::ZERO);
    let network = Box::new(move |now: Time, way: Way, header: &mut TcpHeader| {
        let gone = way == Way::ToB && header.payload_len > 0 && lost.remove(&numbered(header));
        if gone {
            return Vec::new();
        }
        if way == Way::ToB && header.payload_len > 0 {
            free = free.max(now) + each;
            return vec![Span::from_millis(100) + free.since(now)];
        }
        vec![Span::from_millis(100)]
    });
    let mut net = Net::new(law_called("tahoe"), config, config, network);
    net.a.write(Bytes::new(packets * MSS));
    net.a.close();
    net.run_until(Time::ZERO + Span::from_secs(600), |net| {
        net.a.is_closed() || net.a.acked() == Bytes::new(packets * MSS)
    });
    net.check_complete(Bytes::new(packets * MSS));
    let mut number = numbering();
    net.data_sent().map(|(_, _, header)| number(header)).collect()
}

/// A change of direction: packets rise by one each time but where the sender goes back.
fn steps_back(sent: &[u64]) -> Vec<(u64, u64)> {
    sent.windows(2).filter(|two| two[1] <= two[0]).map(|two| (two[0], two[1])).collect()
}

#[test]
fn a_loss_sends_the_sender_back_then_past_what_has_arrived() {
    let sent = sent(120, &[20]);
    let [(highest, 20)] = steps_back(&sent)[..] else { panic!("{:?}", steps_back(&sent)) };
    assert!(highest > 22, "three duplicates need three packets beyond the hole: {highest}");
    // What has arrived beyond the hole is acknowledged with it: the sender goes on behind that, and sends no packet a third time.
    assert!((0..120).all(|packet| sent.iter().filter(|sent| **sent == packet).count() <= 2), "{sent:?}");
}

#[test]
fn several_losses_of_a_window_are_one_step_back_each() {
    for lost in [&[30, 32][..], &[30, 32, 34], &[30, 32, 34, 36]] {
        let sent = sent(200, lost);
        let back: Vec<u64> = steps_back(&sent).into_iter().map(|(_, to)| to).collect();
        assert_eq!(back[0], 30, "{back:?}");
        assert!(back.iter().all(|to| lost.contains(to) || *to < 40), "{lost:?}: {back:?}");
    }
}

/// What was lost in ns-2's runs, and the packets that its sender sent after it had sent the first of them again, up to the first new one.
const RECORDED: [(&[u64], &[u64]); 4] = [
    (&[14], &[29]),
    (&[14, 28], &[28, 29]),
    (&[14, 26, 28], &[26, 27, 28, 29]),
    (&[14, 24, 26, 28], &[24, 25, 26, 27, 28, 29]),
];

/// What follows the second copy of packet 14, up to packet `last`.
fn after_the_first_loss(sent: &[u64], last: u64) -> &[u64] {
    let again = sent.iter().enumerate().filter(|(_, packet)| **packet == 14).nth(1).expect("sent twice").0;
    let end = sent[again..].iter().position(|packet| *packet == last).expect("sent later") + again;
    &sent[again + 1..=end]
}

#[test]
fn after_a_loss_packets_follow_the_order_of_recorded_runs() {
    for (lost, recorded) in RECORDED {
        // ns-2's receiver acknowledges each packet; its path takes 10 ms for one.
        let sent = sent_over(120, lost, Span::ZERO, Span::from_millis(10));
        assert_eq!(after_the_first_loss(&sent, 29), recorded, "{lost:?}: {sent:?}");
    }
}

/// Packets of a recorded run of ns-2 in the order in which they came to the link that was watched and left it. They are numbered modulo 60.
fn watched(text: &str) -> Vec<u64> {
    let section = text.lines().skip_while(|line| !line.starts_with("\"packets")).skip(1);
    let points = section.take_while(|line| !line.starts_with('"'));
    let number = |line: &str| line.split_whitespace().nth(1)?.parse::<f64>().ok();
    points.filter_map(number).map(|number| ((number - 1.0) * 100.0).round() as u64).collect()
}

#[test]
fn the_recorded_runs_say_so() {
    let names = ["one-drop", "two-drops", "three-drops", "four-drops"];
    for ((_, recorded), name) in RECORDED.iter().zip(names) {
        let path = format!("{}/../../../shared/reference/tahoe/ns-tahoe-{name}.txt", env!("CARGO_MANIFEST_DIR"));
        let Ok(text) = std::fs::read_to_string(&path) else {
            eprintln!("SKIPPED: no reference data at {path}");
            return;
        };
        // The first copy of packet 14 was lost before that link.
        let watched = watched(&text);
        let again = watched.iter().position(|packet| *packet == 14).expect("sent");
        let mut after: Vec<u64> = Vec::new();
        for packet in watched[again..].iter().filter(|packet| **packet != 14) {
            if !after.contains(packet) {
                after.push(*packet);
            }
        }
        assert_eq!(after[..recorded.len()], **recorded, "{name}");
    }
}

/// WiFu's runs over loopback, with packets numbered from 0 to 138: what was lost, and the order of departure.
#[test]
fn timeouts_go_back_as_in_the_recorded_runs() {
    let runs: [(&[u64], Vec<u64>); 3] = [
        (&[14], (0..29).chain([14]).chain(29..139).collect()),
        // All of a window of slow start.
        (&[7, 8, 9, 10, 11, 12, 13, 14], (0..15).chain(7..139).collect()),
        // All of a window of congestion avoidance, after a loss that was seen by duplicates.
        (&[14, 51, 52, 53, 54, 55, 56, 57, 58, 59], (0..29).chain([14]).chain(29..60).chain(51..139).collect()),
    ];
    for (lost, recorded) in runs {
        assert_eq!(sent_over(139, lost, Span::ZERO, Span::from_millis(1)), recorded, "{lost:?}");
    }
}
