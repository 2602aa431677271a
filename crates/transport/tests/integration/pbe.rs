//! PBE over TCP: what a receiver knows of its cell reaches the sender's law in an option, where there is room for it and both ends want it.

use crate::harness;

use harness::net::{Net, Network, Way, law_called, perfect};
use lasthop_laws::{Choice, Place, ReceiverLaw, ReceiverSetup, Settings, Value, Why};
use lasthop_signals::{Block, CellCapacity, CellSubframe, Dci, Node, Rnti, Signal};
use lasthop_transport::{CellOption, Config, ReceiverFeedback};
use lasthop_units::brief::at;
use lasthop_units::{Bytes, Rate, Span, Time};
use lasthop_wire::tcp::{Capacity, Flags, TcpHeader};

const MSS: u64 = 1448;
const DELAY: Span = Span::from_millis(20);
/// 100 PRB at MCS 28 (3GPP TS 36.213, table 7.1.7.2.1-1) are 75 376 bits a millisecond, of which 1 / 1.068 are payload.
const CAPACITY: f64 = 75.376e6 / 1.068;
/// Of the option's codes.
const ROUNDING: f64 = 1.0 / 512.0;

/// The option of an end with this receiver's law, which wants to be told or does not.
fn option(law: Option<Box<dyn ReceiverLaw>>, wants: bool) -> Box<CellOption> {
    Box::new(CellOption::new(law, wants).expect("it tells, or wants to be told"))
}

/// What B tells of its cell, if it does.
fn told(net: &Net) -> Option<&ReceiverFeedback> {
    net.b.carried::<CellOption>()?.tells()
}

fn sense(net: &mut Net, now: u64) {
    if let Some(tells) = net.b.carried_mut::<CellOption>().and_then(CellOption::tells_mut) {
        tells.sense(at(now), &subframe(now));
    }
}

/// A network of 20 ms each way that drops what `lost` says.
fn losing(mut lost: impl FnMut(Time, &TcpHeader) -> bool + 'static) -> Network {
    Box::new(move |now, way, segment| {
        let gone = way == Way::ToB && segment.payload_len > 0 && lost(now, segment);
        if gone { Vec::new() } else { vec![DELAY] }
    })
}

/// A PBE sender without end, which wants to be told or does not. Its receiver is alone in a cell,
/// or knows of none.
fn world(wants: bool, network: Network, tells: bool) -> Net {
    let mut net = Net::new(law_called("pbe"), Config::default(), Config::default(), network);
    if wants {
        net.a.carry(option(None, true));
    }
    if tells {
        let law = Choice::named(Place::Receiver, "pbe").expect("it is in the registry");
        let (start, interval) = (Time::ZERO, Span::MAX);
        let setup = ReceiverSetup { node: Node(1), slot: 0, start, end: Time::MAX, interval, idle_slots: None };
        // What comes here are not the cell's blocks: their headers cannot be measured.
        let mut settings = Settings::default();
        settings.set("measured-overhead", Value::Flag(false));
        net.b.carry(option(Some(law.with(settings).receiver(setup).expect("a parameter of the law")), false));
    }
    net.a.write_forever();
    net
}

/// A fifth of the carrier is the terminal's, and nobody has the rest.
fn subframe(number: u64) -> Signal {
    let block = Block { mcs: 28, redundancy: 0, new_data: number.is_multiple_of(2), bits: 15_075 };
    let dci = Dci { rnti: Rnti(70), prb: 20, process: 0, blocks: [Some(block), None] };
    Signal::Subframe(CellSubframe { carrier: 0, number, prb: 100, own: Some(Rnti(70)), dcis: vec![dci] })
}

/// Runs for a millisecond at a time; `each` sees the world after it.
fn run(net: &mut Net, ms: std::ops::Range<u64>, mut each: impl FnMut(u64, &Net)) {
    for now in ms {
        net.run_until(at(now), |_| false);
        sense(net, now);
        each(now, net);
    }
}

/// Why the sender sends as it does, millisecond by millisecond, where its receiver hears its cell until `heard`.
fn whys(net: &mut Net, ms: u64, heard: u64) -> Vec<Why> {
    let why = |now| {
        net.run_until(at(now), |_| false);
        if now < heard {
            sense(net, now);
        }
        net.a.decision().why
    };
    (0..ms).map(why).collect()
}

fn from_b(net: &Net) -> impl Iterator<Item = (Time, &TcpHeader)> {
    net.trace.iter().filter(|(_, way, _)| *way == Way::ToA).map(|(at, _, header)| (*at, header))
}

#[test]
fn the_sender_goes_at_the_capacity_that_it_is_told() {
    let mut net = world(true, perfect(DELAY), true);
    let mut acked = [Bytes::ZERO; 2];
    let mut started = None;
    run(&mut net, 0..1500, |now, net| {
        match now {
            500 => acked[0] = net.a.acked(),
            1400 => acked[1] = net.a.acked(),
            _ => {}
        }
        if net.a.decision().why == Why::PbeWireless {
            started.get_or_insert(now);
        }
    });
    assert_eq!(net.trace[0].2.options.capacity, Some(Capacity::default()), "the SYN asks for it");
    assert!(from_b(&net).all(|(_, header)| header.options.capacity.is_some()), "every segment tells it");
    assert!(net.data_sent().all(|(_, _, header)| header.options.capacity.is_none()), "and none asks again");
    // The SYN-ACK, after 20 ms in the cell, tells it already: the rise begins with the handshake's end, at 40 ms.
    assert!(started.is_some_and(|ms| (160..=165).contains(&ms)), "{started:?}");
    let pacing = net.a.decision().pacing.expect("paces").as_bps() as f64;
    assert!((pacing / CAPACITY - 1.0).abs() < 0.001 + ROUNDING, "{pacing}");
    let goodput = Rate::of(acked[1] - acked[0], Span::from_millis(900)).expect("not zero").as_bps() as f64;
    assert!(goodput > 0.93 * CAPACITY && goodput < 1.01 * CAPACITY, "{goodput}");
    assert_eq!(net.a.stats().segments_retransmitted, 0);
}

#[test]
fn three_sack_blocks_leave_no_room_and_the_sender_holds() {
    let mut first = None;
    let network = losing(move |now, segment| {
        let first = *first.get_or_insert(segment.seq);
        let number = u64::from(segment.seq.wrapping_sub(first)) / MSS;
        // Every tenth segment, and its copies, for four round trips.
        (at(600)..at(760)).contains(&now) && number.is_multiple_of(10)
    });
    let mut net = world(true, network, true);
    let mut least = f64::MAX;
    run(&mut net, 0..1200, |now, net| {
        if now >= 600 {
            assert_eq!(net.a.decision().why, Why::PbeWireless, "at {now} ms");
            least = least.min(net.a.decision().pacing.expect("paces").as_bps() as f64);
        }
    });
    assert!(least > 0.99 * CAPACITY, "{least}");
    let full: Vec<Time> = from_b(&net)
        .filter(|(_, header)| header.options.sack.as_slice().len() == 3)
        .map(|(at, header)| {
            assert_eq!(header.options.capacity, None);
            at
        })
        .collect();
    let silence = full.last().expect("there are some").since(full[0]);
    assert!(silence > DELAY * 2 * 3, "longer than a capacity is believed: {silence}");
    let roomy: Vec<&TcpHeader> =
        from_b(&net).map(|(_, header)| header).filter(|header| header.options.sack.as_slice().len() < 3).collect();
    assert!(roomy.len() > 1000 && roomy.iter().all(|header| header.options.capacity.is_some()));
}

/// When A sends which part of the stream.
fn sends(net: &Net) -> Vec<(Time, u32, u32)> {
    net.data_sent().map(|(at, _, header)| (*at, header.seq, header.payload_len)).collect()
}

#[test]
fn a_peer_without_the_option_gets_plain_bbr() {
    let lost = || {
        let mut count = 0;
        losing(move |_, _| {
            count += 1;
            count % 97 == 96
        })
    };
    let mut net = world(true, lost(), false);
    run(&mut net, 0..800, |_, _| {});
    let mut plain = Net::new(law_called("bbr"), Config::default(), Config::default(), lost());
    plain.a.write_forever();
    run(&mut plain, 0..800, |_, _| {});
    assert!(sends(&net).len() > 1000, "{}", sends(&net).len());
    assert_eq!(sends(&net), sends(&plain));
    assert!(from_b(&net).all(|(_, header)| header.options.capacity.is_none()));
}

#[test]
fn a_sender_that_does_not_want_it_is_not_told() {
    let mut net = world(false, perfect(DELAY), true);
    run(&mut net, 0..200, |_, _| {});
    assert!(net.trace.iter().all(|(_, _, header)| header.options.capacity.is_none()));
    assert!(told(&net).is_none());
    assert!(net.trace.iter().any(|(_, _, header)| header.flags.contains(Flags::SYN)));
}

#[test]
fn a_capacity_that_was_not_agreed_on_is_not_read() {
    // A box on the way claims a capacity in every segment.
    let forged = Capacity { available: lasthop_wire::tcp::LogRate::MOST, number: 3, ..Capacity::default() };
    let network: Network = Box::new(move |_, way, segment| {
        if way == Way::ToA && !segment.flags.contains(Flags::SYN) {
            segment.options.capacity = Some(forged);
        }
        vec![DELAY]
    });
    let mut net = world(true, network, false);
    run(&mut net, 0..200, |_, _| {});
    assert_eq!(net.a.decision().why, Why::BbrStartup);
}

#[test]
fn a_receiver_that_knows_no_cell_is_left_to_bbr() {
    let mut net = world(true, perfect(DELAY), true);
    let whys = whys(&mut net, 400, 0);
    // The handshake ends at 40 ms; two round trips are over at 120.
    assert_eq!((whys[60], whys[119]), (Why::PbeStart, Why::PbeStart));
    assert_ne!(whys[121], Why::PbeStart);
    assert!(net.a.acked() > Bytes::new(100 * MSS));
}

#[test]
fn a_cell_that_falls_silent_is_not_believed_in_any_more() {
    let mut net = world(true, perfect(DELAY), true);
    let whys = whys(&mut net, 1000, 500);
    assert_eq!(told(&net).and_then(ReceiverFeedback::latest), Some(CellCapacity::UNKNOWN));
    // 200 ms after the last subframe, and 20 ms on the way; no later than the next segment.
    assert_eq!((whys[600], whys[715]), (Why::PbeWireless, Why::PbeWireless));
    assert!(whys[725..].iter().all(|why| !matches!(why, Why::PbeWireless | Why::PbeStart)), "{:?}", whys[725]);
    assert!(net.a.acked() > Bytes::new(1000 * MSS));
}

/// The end that sends tells of its cell, the other one wants to be told: each segment has the option in it, and is none the less a full one.
#[test]
fn a_window_opens_for_segments_that_tell() {
    let mut net = Net::new(law_called("cubic"), Config::default(), Config::default(), perfect(DELAY));
    net.b.carry(option(None, true));
    let law = Choice::named(Place::Receiver, "pbe").expect("it is in the registry");
    let (start, interval) = (Time::ZERO, Span::MAX);
    let setup = ReceiverSetup { node: Node(1), slot: 0, start, end: Time::MAX, interval, idle_slots: None };
    net.a.carry(option(Some(law.receiver(setup).expect("a law of the registry")), false));
    net.a.write_forever();
    net.run_until(at(1000), |_| false);
    let before = net.a.acked();
    net.run_until(at(2000), |_| false);
    let goodput = Rate::of(net.a.acked() - before, Span::from_secs(1)).expect("not zero");
    // 64 kB in 40 ms are 13 Mbit/s.
    assert!(goodput > Rate::from_mbit(50), "{goodput}");
}
