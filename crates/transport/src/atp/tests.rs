//! Both ends over a path of one hop with a queue, which stamps its delay as a mesh node does.

use super::{PAYLOAD, Packet, Receiver, Sender};
use lasthop_laws::atp::{Average, HopDelay, Params, Rate, Variant};
use lasthop_units::{Bytes, Span, Time};
use lasthop_wire::atp::{Blocks, Header, Kind};
use std::cell::Cell;
use std::collections::VecDeque;

/// A hop that serves a packet in `service`, one after the other, and loses those that `loses` says, by their place among all.
struct Path<'l> {
    service: Span,
    loses: &'l dyn Fn(u64) -> bool,
    /// Reports get through.
    back: &'l dyn Fn(Time) -> bool,
    /// What somebody puts behind a packet that passes, by its place among those of its way; true: on the way to the receiver.
    forges: &'l dyn Fn(u64, bool, &Header) -> Option<Header>,
}

struct Run {
    sender: Sender,
    receiver: Receiver,
    now: Time,
    /// When each packet left the sender.
    left: Vec<Time>,
    most_queued: usize,
}

const DELAY: Span = Span::from_millis(1);

fn ends(variant: Variant, increase: f64) -> (Sender, Receiver) {
    let params = Params { variant, increase, ..Params::default() };
    let sender = Sender::new(Time::ZERO, 7, Box::new(Rate::new(params.clone())));
    let apart = params.reports_apart();
    (sender, Receiver::new(7, Box::new(Average::new(params))).with_reports_apart(apart))
}

/// Lets both ends run until `until` or until both are done.
fn run((mut sender, mut receiver): (Sender, Receiver), path: &Path<'_>, until: Time) -> Run {
    let mut node = HopDelay::new(path.service);
    // What waits at the hop, with when it came; when the hop is free; what is under way, with when it arrives.
    let mut queue: VecDeque<(Time, Packet)> = VecDeque::new();
    let (mut free, mut serving): (Time, Option<(Time, Time, Packet)>) = (Time::ZERO, None);
    let mut there: VecDeque<(Time, Packet)> = VecDeque::new();
    let mut back: VecDeque<(Time, Packet)> = VecDeque::new();
    let (mut now, mut count, mut left, mut most_queued) = (Time::ZERO, 0, Vec::new(), 0);
    let mut answers = 0;
    loop {
        while let Some(mut packet) = sender.poll_transmit(now) {
            if packet.payload > 0 {
                left.push(now);
            }
            packet.header.delay = packet.header.delay.max(node.delay(now));
            queue.push_back((now, packet));
        }
        while let Some(packet) = receiver.poll_transmit(now) {
            if (path.back)(now) {
                back.push_back((now + DELAY, packet));
            }
            answers += 1;
            let forged = (path.forges)(answers, false, &packet.header);
            back.extend(forged.map(|header| (now + DELAY, Packet { header, ..packet })));
        }
        if serving.is_none()
            && let Some((queued, packet)) = queue.pop_front()
        {
            free = now + path.service;
            serving = Some((queued, now, packet));
        }
        most_queued = most_queued.max(queue.len());
        let next = [
            sender.next_timeout(),
            receiver.next_timeout(),
            serving.map(|_| free),
            there.front().map(|(at, _)| *at),
            back.front().map(|(at, _)| *at),
        ];
        let Some(next) = next.into_iter().flatten().min().filter(|next| *next < until) else { break };
        now = next.max(now);
        if serving.is_some()
            && free <= now
            && let Some((queued, head, packet)) = serving.take()
        {
            node.on_done(now, queued, head);
            count += 1;
            if !(path.loses)(count) {
                there.push_back((now + DELAY, packet));
            }
            let forged = (path.forges)(count, true, &packet.header);
            there.extend(forged.map(|header| (now + DELAY, Packet { header, ..packet })));
        }
        while let Some((_, packet)) = there.pop_front_if(|(at, _)| *at <= now) {
            receiver.on_packet(now, &packet);
        }
        while let Some((_, packet)) = back.pop_front_if(|(at, _)| *at <= now) {
            sender.on_packet(now, &packet);
        }
        sender.on_timeout(now);
        receiver.on_timeout(now);
    }
    Run { sender, receiver, now, left, most_queued }
}

fn at(secs: f64) -> Time {
    Time::ZERO + Span::from_secs_f64(secs)
}

const NONE: Path<'_> =
    Path { service: Span::from_millis(2), loses: &|_| false, back: &|_| true, forges: &|_, _, _| None };

const LONGEST: Span = Span::from_micros(u32::MAX as u64 - 1);
const FAR: u32 = 1 << 30;

/// What may be forged of a report, or of a packet on its way to the receiver, without a change to what the stream holds.
type Lie = (&'static str, bool, fn(&mut Header));
const LIES: [Lie; 10] = [
    ("an echo from far ahead", false, |header| header.serial = header.serial.wrapping_add(FAR)),
    ("an echo from a little ahead", false, |header| header.serial = header.serial.wrapping_add(3)),
    ("an echo from far behind", false, |header| header.serial = header.serial.wrapping_sub(FAR)),
    ("a serial number from far ahead", true, |header| header.serial = header.serial.wrapping_add(FAR)),
    ("no window", false, |header| header.window = 0),
    ("the largest window", false, |header| header.window = u16::MAX),
    ("the longest epoch", false, |header| header.epoch = LONGEST),
    ("no D_avg", false, |header| header.average = Span::ZERO),
    ("packets expected that were never made", false, |header| header.number = header.number.wrapping_add(40_000)),
    ("blocks of what has not come", false, |header| {
        header.blocks = Blocks::of([(header.number.wrapping_add(1), header.number.wrapping_add(50))]);
    }),
];
/// What slows a sender down for as long as somebody goes on.
const SLOWING: [Lie; 2] = [
    ("the longest D_avg", false, |header| header.average = LONGEST),
    ("the longest D", true, |header| header.delay = LONGEST),
];

#[test]
fn a_transfer_arrives_whole_whatever_is_lost() {
    for variant in [Variant::Default, Variant::Aggressive, Variant::Adaptive, Variant::OnChange] {
        for one_in in [u64::MAX, 20, 5] {
            let (mut sender, receiver) = ends(variant, 0.5);
            sender.write(Bytes::new(1_000_000));
            sender.close();
            let path = Path { loses: &|count| count % one_in == one_in - 1, ..NONE };
            let run = run((sender, receiver), &path, at(600.0));
            let done = run.sender.is_done() && run.receiver.is_done();
            assert!(done, "{variant:?}, one in {one_in}: {:?} at {:?}", run.receiver.received(), run.now);
            assert_eq!((run.receiver.received(), run.sender.acked()), (Bytes::new(1_000_000), Bytes::new(1_000_000)));
            let resent = run.sender.counters().resent;
            assert_eq!(resent == 0, one_in == u64::MAX, "{resent} sent again");
            // What is lost is sent again, and again if it is lost again; nothing else is.
            let packets = 1_000_000u64.div_ceil(u64::from(PAYLOAD));
            assert!(resent <= packets / (one_in - 1).max(1) + 5, "{variant:?}, one in {one_in}: {resent} sent again");
        }
    }
}

#[test]
fn one_that_ends_repeats_what_it_has_sent_and_sends_no_more() {
    for endless in [true, false] {
        let (mut sender, receiver) = ends(Variant::Default, 0.5);
        if endless {
            sender.write_forever();
        } else {
            sender.write(Bytes::new(1_000_000_000));
        }
        let path = Path { loses: &|count| count % 20 == 19, ..NONE };
        let Run { mut sender, receiver, .. } = run((sender, receiver), &path, at(1.0));
        sender.stop();
        let run = run((sender, receiver), &path, at(60.0));
        assert!(run.sender.is_done() && run.receiver.is_done(), "{:?}", run.now);
        assert_eq!(run.receiver.received(), run.sender.acked());
        assert!((100_000..2_000_000).contains(&run.sender.acked().get()), "{:?}", run.sender.acked());
    }
}

#[test]
fn a_saturating_sender_settles_below_the_hop_with_short_queue() {
    let (mut sender, receiver) = ends(Variant::Adaptive, 0.5);
    sender.write_forever();
    let run = run((sender, receiver), &NONE, at(20.0));
    let share = run.receiver.received().get() as f64 / (20.0 / 0.002 * f64::from(PAYLOAD));
    // S = 1 / (T + Q(S)): with even arrivals and even service a queue is rare.
    assert!(share > 0.8 && share <= 1.0, "{share} of the hop");
    assert!(run.most_queued < 20, "{} packets", run.most_queued);
    assert_eq!(run.sender.counters().resent, 0);
}

#[test]
fn small_packets_leave_no_faster_than_the_law_allows() {
    let (mut sender, mut receiver) = ends(Variant::Default, 0.2);
    sender.write(Bytes::new(100));
    let mut probe = sender.poll_transmit(at(0.0)).expect("it asks");
    probe.header.delay = Span::from_millis(6);
    receiver.on_packet(at(0.0), &probe);
    let answer = receiver.poll_transmit(at(0.0)).expect("it answers");
    sender.on_packet(at(0.0), &answer);
    let mut left = Vec::new();
    for tenth in 0..1_000 {
        let now = Time::ZERO + Span::from_micros(100 * tenth);
        sender.on_timeout(now);
        while let Some(packet) = sender.poll_transmit(now) {
            assert_eq!(packet.payload, 100);
            left.push(now);
            sender.write(Bytes::new(100));
        }
    }
    assert!(left.windows(2).all(|two| two[1].since(two[0]) >= Span::from_millis(6)), "{left:?}");
    assert!(left.len() >= 16, "{left:?}");
}

#[test]
fn without_reports_it_halves_twice_stops_and_probes() {
    let (mut sender, receiver) = ends(Variant::Aggressive, 0.5);
    sender.write_forever();
    // Nothing comes back between 2 and 6 s.
    let path = Path { back: &|now| now < at(2.0) || now > at(6.0), ..NONE };
    let run = run((sender, receiver), &path, at(10.0));
    let between = |from: f64, to: f64| run.left.iter().filter(|left| (at(from)..at(to)).contains(*left)).count();
    assert!(between(1.0, 2.0) > 300, "{}", between(1.0, 2.0));
    // 60 ms at the rate, 40 ms at half of it, 40 ms at a quarter, then none.
    assert_eq!(between(2.2, 6.0), 0);
    // A probe an epoch meanwhile, and data again at once when one is answered.
    assert!(run.sender.counters().probes > 80, "{}", run.sender.counters().probes);
    assert!(between(6.1, 7.1) > 250, "{}", between(6.1, 7.1));
}

#[test]
fn foreign_packets_and_future_reports_change_nothing() {
    let (mut sender, mut receiver) = ends(Variant::Default, 0.2);
    sender.write_forever();
    let probe = sender.poll_transmit(at(0.0)).expect("it asks");
    let mut other = probe;
    other.header.connection = 8;
    receiver.on_packet(at(0.0), &other);
    assert_eq!(receiver.poll_transmit(at(0.0)), None);
    receiver.on_packet(at(0.0), &probe);
    let mut answer = receiver.poll_transmit(at(0.0)).expect("it answers");
    answer.header.average = Span::from_millis(2);
    answer.header.number = 900;
    sender.on_packet(at(0.0), &answer);
    let first = sender.poll_transmit(at(0.002)).expect("it knows the path");
    assert_eq!((first.header.number, sender.acked()), (0, Bytes::ZERO));
}

#[test]
fn a_forged_header_stops_no_stream() {
    const DATA: u64 = 3_000_000;
    let transfer = |variant, forges: &dyn Fn(u64, bool, &Header) -> Option<Header>| {
        let (mut sender, receiver) = ends(variant, 0.5);
        sender.write(Bytes::new(DATA));
        sender.close();
        let path = Path { loses: &|count| count % 40 == 39, forges, ..NONE };
        let run = run((sender, receiver), &path, at(200.0));
        let whole = run.sender.is_done() && run.receiver.is_done() && run.receiver.received().get() == DATA;
        (whole, run.now.since(Time::ZERO).as_secs_f64())
    };
    for variant in [Variant::Default, Variant::Aggressive, Variant::Adaptive, Variant::OnChange] {
        let (whole, alone) = transfer(variant, &|_, _, _| None);
        assert!(whole, "{variant:?}: {alone} s");
        let lies = LIES.into_iter().map(|lie| (lie, true)).chain(SLOWING.into_iter().map(|lie| (lie, false)));
        for ((what, way, lie), again) in lies {
            // Once, early; once, late; and every twentieth packet.
            let cases = [("third", 3, 0), ("tenth", 10, 0), ("every twentieth", 7, 20)];
            for (when, first, every) in cases.into_iter().take(if again { 3 } else { 2 }) {
                let is_when = |n: u64| n == first || every > 0 && n % every == first;
                let forges = |n, to_receiver, header: &Header| {
                    let is_there = to_receiver == way && is_when(n);
                    is_there.then(|| {
                        let mut header = *header;
                        lie(&mut header);
                        header
                    })
                };
                let (whole, took) = transfer(variant, &forges);
                println!("{variant:?}, {when}, {what}: {took:.2} s, {alone:.2} without");
                assert!(whole, "{variant:?}, {when}, {what}: {took} s and not whole");
                // Three epochs and a half of a second until it probes, and one until the tail is sent again. Without D_avg it sends a second's
                // packets at once, for which the hop takes four, and its queue has no bound.
                assert!(took < alone + 20.0, "{variant:?}, {when}, {what}: {took} s, {alone} s without");
            }
        }
    }
}

#[test]
fn a_forged_acknowledgement_of_what_never_came_is_noticed() {
    let (mut sender, receiver) = ends(Variant::Adaptive, 0.5);
    sender.write_forever();
    // Packets are lost, and while the receiver asks for the first of them a report says that it has come.
    let lost = |count: u64| (1_000..1_020).contains(&count);
    let done = Cell::new(false);
    let forges = |_, to_receiver: bool, header: &Header| {
        let is_it = !to_receiver && header.kind == Kind::Ack && !header.blocks.as_slice().is_empty();
        (is_it && !done.replace(true)).then(|| Header {
            number: header.number + 5,
            blocks: Blocks::default(),
            ..*header
        })
    };
    let run = run((sender, receiver), &Path { loses: &lost, forges: &forges, ..NONE }, at(30.0));
    let since = run.sender.contradicted().expect("probes are answered with a packet that was acknowledged");
    assert!(done.get() && since > at(1.0) && since < at(10.0), "{since:?}");
}

/// A sender that knows the path and has sent so many packets, 2 ms apart, and a receiver; and when that is.
fn under_way(count: u64) -> (Sender, Receiver, Vec<Packet>, Time) {
    let (mut sender, mut receiver) = ends(Variant::Default, 0.5);
    sender.write_forever();
    let mut probe = sender.poll_transmit(at(0.0)).expect("it asks");
    probe.header.delay = Span::from_millis(2);
    receiver.on_packet(at(0.0), &probe);
    sender.on_packet(at(0.0), &receiver.poll_transmit(at(0.0)).expect("it answers"));
    let (mut sent, mut now) = (Vec::new(), at(0.0));
    while (sent.len() as u64) < count {
        now += Span::from_millis(2);
        sender.on_timeout(now);
        sent.extend(sender.poll_transmit(now));
    }
    (sender, receiver, sent, now)
}

fn report(number: u32, serial: u32, delay: Span) -> Packet {
    let header = Header {
        kind: Kind::Ack,
        window: 4096,
        delay: Span::ZERO,
        average: delay,
        epoch: Span::from_secs(1),
        connection: 7,
        number,
        serial,
        blocks: Blocks::default(),
    };
    Packet { header, payload: 0 }
}

#[test]
fn a_report_counts_right_behind_one_whose_echo_was_never_used() {
    let (mut sender, _, sent, now) = under_way(10);
    let used = sent.last().expect("ten").header.serial;
    sender.on_packet(now, &report(3, used.wrapping_add(FAR), Span::from_millis(2)));
    assert_eq!((sender.acked().get(), sender.counters().resent), (3 * u64::from(PAYLOAD), 0), "its packets count");
    // What it shows as missing is not lost: nobody knows how old the report is.
    assert!(sender.poll_transmit(now).is_none());
    sender.on_packet(now, &report(5, 4, Span::from_millis(8)));
    assert_eq!((sender.acked().get(), sender.gap()), (5 * u64::from(PAYLOAD), Span::from_millis(8)));
}

#[test]
fn a_receiver_forgets_a_serial_number_that_nothing_confirms() {
    let (_, mut receiver, sent, now) = under_way(80);
    let mut forged = sent[0];
    forged.header.serial = FAR;
    receiver.on_packet(now, &forged);
    let mut echoed = Vec::new();
    for packet in &sent {
        receiver.on_packet(now, packet);
        // A probe has the receiver say what it has seen.
        receiver.on_packet(now, &Packet { header: Header { kind: Kind::Probe, ..packet.header }, payload: 0 });
        echoed.push(receiver.poll_transmit(now).expect("it answers").header.serial);
    }
    assert!(echoed[..63].iter().all(|serial| *serial == FAR));
    assert!((63..80).all(|n| echoed[n] == sent[n].header.serial), "{echoed:?}");
}

#[test]
fn an_early_echo_does_not_stop_a_last_packet_retransmission() {
    for variant in [Variant::Default, Variant::Aggressive, Variant::Adaptive, Variant::OnChange] {
        let (mut sender, receiver) = ends(variant, 0.5);
        sender.write(Bytes::new(10 * u64::from(PAYLOAD)));
        sender.close();
        // The probe is the first; the tenth packet is lost, and its number echoed.
        let done = Cell::new(false);
        let forges = |_, to_receiver: bool, header: &Header| {
            let is_it = !to_receiver && header.number == 9 && !done.replace(true);
            is_it.then_some(Header { serial: 9, ..*header })
        };
        let run = run((sender, receiver), &Path { loses: &|count| count == 11, forges: &forges, ..NONE }, at(20.0));
        assert!(done.get() && run.sender.is_done() && run.receiver.is_done(), "{variant:?}: {:?}", run.now);
    }
}
