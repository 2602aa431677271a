//! What an endpoint does in the situations that the standards describe, one at a time.

use crate::harness;

use harness::net::{Net, Network, Way, law_called, perfect};
use lasthop_laws::{Bounds, Decision, SenderLaw, Why};
use lasthop_signals::Signal;
use lasthop_transport::Config;
use lasthop_units::brief::at;
use lasthop_units::{Bytes, Rate, Span, Time};
use lasthop_wire::tcp::{Flags, TcpHeader};

const MSS: Bytes = Bytes::new(1448);
const RTT: Span = Span::from_millis(20);

/// Asks for the same thing forever.
#[derive(Clone)]
struct Fixed {
    cwnd: Option<Bytes>,
    pacing: Option<Rate>,
}

impl SenderLaw for Fixed {
    fn sense(&mut self, _now: Time, _signal: &Signal) {}

    fn decide(&self, _now: Time) -> Decision {
        let cwnd = self.cwnd.map(|upper| Bounds { lower: MSS, upper });
        Decision { cwnd, pacing: self.pacing, ..Decision::unlimited(Why::Unmanaged) }
    }
}

fn segments(n: u64) -> Box<dyn SenderLaw> {
    Box::new(Fixed { cwnd: Some(MSS * n), pacing: None })
}

fn net(law: Box<dyn SenderLaw>, network: Network) -> Net {
    Net::new(law, Config::default(), Config::default(), network)
}

/// Loses the `n`-th segment with payload that A sends, counted from 1, for each `n` in the list.
fn losing(delay: Span, which: &'static [u64]) -> Network {
    let mut sent = 0;
    Box::new(move |_, way, segment| {
        sent += u64::from(way == Way::ToB && segment.payload_len > 0);
        let lost = way == Way::ToB && segment.payload_len > 0 && which.contains(&sent);
        if lost { vec![] } else { vec![delay] }
    })
}

fn headers(net: &Net, way: Way) -> impl Iterator<Item = (Time, TcpHeader)> {
    net.trace.iter().filter(move |(_, w, _)| *w == way).map(|(at, _, header)| (*at, *header))
}

#[test]
fn both_syns_carry_everything_that_is_negotiated() {
    let mut net = net(segments(10), perfect(RTT / 2));
    net.run_until(at(100), |_| false);
    assert!(net.a.is_established() && net.b.is_established());
    for (way, flags) in [(Way::ToB, Flags::SYN), (Way::ToA, Flags::SYN | Flags::ACK)] {
        let (_, syn) = headers(&net, way).next().expect("sent");
        assert_eq!(syn.flags, flags);
        assert_eq!((syn.options.mss, syn.options.window_scale), (Some(1460), Some(10)));
        assert!(syn.options.sack_permitted && syn.options.timestamps.is_some());
    }
    assert_eq!(net.a.stats().srtt, Some(RTT));
}

#[test]
fn a_lost_syn_is_repeated_after_1_s_without_an_rtt_sample() {
    let mut first = true;
    let network: Network =
        Box::new(move |_, _, _| if std::mem::take(&mut first) { vec![] } else { vec![Span::from_millis(10)] });
    let mut net = net(segments(10), network);
    net.run_until(at(3000), |net| net.a.is_established());
    assert_eq!(net.now, at(1020));
    assert_eq!(net.a.stats().srtt, None);
    // RFC 6298, rule 5.7.
    assert_eq!(net.a.stats().rto, Span::from_secs(3));
}

#[test]
fn a_first_segment_sent_again_starts_the_timer_anew() {
    // The third segment is lost. Those behind it take 150 ms longer from then on, so that the timeout of its first copy
    // would come before the acknowledgement of its second.
    let mut sent = 0u64;
    let network: Network = Box::new(move |_, way, segment| {
        let data = way == Way::ToB && segment.payload_len > 0;
        sent += u64::from(data);
        match (data, sent) {
            (true, 3) => vec![],
            (true, 4..) => vec![RTT / 2 + Span::from_millis(150)],
            _ => vec![RTT / 2],
        }
    });
    let mut net = net(segments(10), network);
    net.a.write(MSS * 10);
    net.run_until(at(3000), |net| net.a.acked() == MSS * 10);
    // The tail is probed for once, before anything is known to be missing.
    let stats = net.a.stats();
    assert_eq!((stats.timeouts, stats.tail_probes, stats.segments_retransmitted), (0, 1, 2));
}

#[test]
fn a_peer_that_never_answers_is_given_up() {
    let config = Config { max_retries: 3, ..Config::default() };
    let mut net = Net::new(segments(10), config, Config::default(), Box::new(|_, _, _| vec![]));
    net.run_until(at(600_000), |_| false);
    assert!(net.a.is_aborted() && net.a.is_closed());
    let sent: Vec<Time> = headers(&net, Way::ToB).map(|(at, _)| at).collect();
    assert_eq!(sent, [0, 1000, 3000, 7000].map(at));
}

#[test]
fn a_finished_fetch_closes_both_ends() {
    let mut net = net(law_called("cubic"), perfect(RTT / 2));
    net.a.write(Bytes::new(100_000));
    net.a.close();
    net.run_until(at(5000), |net| net.b.peer_closed());
    assert_eq!(net.b.received(), Bytes::new(100_000));
    assert!(!net.a.is_closed());
    net.b.close();
    net.run_until(at(5000), |_| false);
    assert!(net.a.is_closed() && net.b.is_closed());
    assert!(!net.a.is_aborted());
    // The FIN travels with the last payload.
    let (_, last) = headers(&net, Way::ToB).filter(|(_, h)| h.payload_len > 0).last().expect("sent");
    assert!(last.flags.contains(Flags::FIN));
    assert_eq!(net.a.next_timeout(), None);
    assert_eq!(net.b.next_timeout(), None);
}

#[test]
fn every_second_segment_is_acked_and_a_lone_one_late() {
    let mut net = net(segments(1), perfect(RTT / 2));
    // Thirty lone segments: the first are acknowledged at once, the last only after 40 ms.
    for n in 1..=30 {
        net.a.write(MSS);
        net.run_until(at(100 * n), |_| false);
    }
    let answered = |n: usize| {
        let sent = net.data_sent().nth(n).expect("sent").0;
        headers(&net, Way::ToA).map(|(at, _)| at).find(|at| *at > sent).expect("answered").since(sent)
    };
    assert_eq!(answered(0), RTT / 2);
    assert_eq!(answered(29), RTT / 2 + Span::from_millis(40));

    let mut bulk = self::net(Box::new(Fixed { cwnd: None, pacing: Some(Rate::from_mbit(10)) }), perfect(RTT / 2));
    bulk.a.write_forever();
    bulk.run_until(at(5000), |_| false);
    let (data, acks) = (bulk.data_sent().count(), headers(&bulk, Way::ToA).count());
    assert!((1.9..2.1).contains(&(data as f64 / acks as f64)), "{data} segments, {acks} acknowledgements");
}

#[test]
fn the_law_decides_how_much_is_in_the_network() {
    let mut net = net(segments(8), perfect(RTT / 2));
    net.a.write_forever();
    net.run_until(at(10_000), |net| {
        assert!(net.a.stats().in_flight <= MSS * 8);
        false
    });
    // Eight segments a round trip.
    let rate = Rate::of(net.b.received(), Span::from_secs(10)).expect("ten seconds");
    let wanted = Rate::of(MSS * 8, RTT).expect("not zero");
    assert!((rate.as_mbit_f64() / wanted.as_mbit_f64() - 1.0).abs() < 0.05, "{rate} for {wanted}");
}

#[test]
fn the_law_decides_how_fast_it_leaves() {
    for mbit in [1, 8, 60] {
        let rate = Rate::from_mbit(mbit);
        let mut net = net(Box::new(Fixed { cwnd: None, pacing: Some(rate) }), perfect(RTT / 2));
        net.a.write_forever();
        net.run_until(at(4020), |_| false);
        let mut sent = vec![];
        net.data_sent().for_each(|(at, _, header)| sent.push((*at, u64::from(header.payload_len))));
        // In no interval of 10 ms does more leave than the rate gives, and one burst.
        let burst = rate.bytes_in(Span::from_millis(1)).max(MSS * 2).get() + MSS.get();
        for (i, (start, _)) in sent.iter().enumerate() {
            let end = *start + Span::from_millis(10);
            let amount: u64 = sent[i..].iter().take_while(|(at, _)| *at < end).map(|(_, len)| len).sum();
            assert!(amount <= rate.bytes_in(Span::from_millis(10)).get() + burst, "{mbit} Mbit/s: {amount} in 10 ms");
        }
        let total: u64 = sent.iter().map(|(_, len)| len).sum();
        let wanted = rate.bytes_in(Span::from_secs(4)).get() as f64;
        assert!((total as f64 / wanted - 1.0).abs() < 0.02, "{mbit} Mbit/s: {total} for {wanted}");
    }
}

#[test]
fn a_hole_is_repaired_within_a_round_trip_by_sack() {
    let mut net = net(segments(10), losing(RTT / 2, &[30]));
    net.a.write_forever();
    net.run_until(at(500), |_| false);
    let stats = net.a.stats();
    assert_eq!((stats.segments_retransmitted, stats.recoveries, stats.timeouts), (1, 1, 0));
    // What follows the hole is reported, the most recent first, without a duplicate.
    let blocks = headers(&net, Way::ToA).map(|(_, h)| h.options.sack).find(|sack| !sack.is_empty()).expect("reported");
    assert_eq!(blocks.as_slice()[0].right.wrapping_sub(blocks.as_slice()[0].left), 1448);
    let repeated: Vec<Time> = {
        let mut seen = std::collections::BTreeSet::new();
        net.data_sent().filter(|(_, _, h)| !seen.insert(h.seq)).map(|(at, _, _)| *at).collect()
    };
    let first_report = headers(&net, Way::ToA).find(|(_, h)| !h.options.sack.is_empty()).expect("reported").0;
    assert!(repeated[0].since(first_report) <= RTT, "{repeated:?}");
}

#[test]
fn duplicate_acknowledgements_let_new_data_leave() {
    // Limited transmit: two segments after the hole arrive, and each lets one new one leave before recovery begins.
    let mut net = net(segments(3), losing(RTT / 2, &[10]));
    net.a.write_forever();
    net.run_until(at(1000), |_| false);
    assert_eq!(net.a.stats().timeouts, 0, "three in flight suffice");
    assert_eq!(net.a.stats().segments_retransmitted, 1);
}

#[test]
fn a_lost_tail_is_probed_for_before_the_timeout() {
    let mut net = net(segments(10), losing(RTT / 2, &[7, 8]));
    net.a.write(MSS * 8);
    net.run_until(at(3000), |net| net.a.acked() == MSS * 8);
    let stats = net.a.stats();
    assert_eq!((stats.tail_probes, stats.timeouts, stats.segments_retransmitted), (1, 0, 2));
    // Handshake, flight, two round trips of patience, the probe's own, and the repair that its SACK asks for.
    assert!(net.now <= at(20 + 20 + 45 + 20 + 20), "{:?}", net.now);
}

#[test]
fn a_lone_lost_segment_is_probed_for_instead_of_a_timeout() {
    let mut net = net(segments(10), losing(RTT / 2, &[8]));
    net.a.write(MSS * 8);
    net.run_until(at(3000), |net| net.a.acked() == MSS * 8);
    let stats = net.a.stats();
    assert_eq!((stats.tail_probes, stats.timeouts, stats.segments_retransmitted), (1, 0, 1));
    assert!(net.now <= at(20 + 20 + 220 + 25), "{:?}", net.now);
}

#[test]
fn silence_backs_off_and_the_transfer_resumes() {
    let (from, to) = (at(200), at(5000));
    let network: Network =
        Box::new(move |now, _, _| if now >= from && now < to { vec![] } else { vec![Span::from_millis(10)] });
    let mut net = net(segments(10), network);
    net.a.write_forever();
    net.run_until(at(20_000), |_| false);
    let stats = net.a.stats();
    // 220 ms, doubling: some 4.6 s take four or five.
    assert!((4..=6).contains(&stats.timeouts), "{}", stats.timeouts);
    assert!(net.b.received() > MSS * 5000, "{}", net.b.received());
    assert_eq!(net.a.stats().rto, Span::from_millis(220));
}

#[test]
fn a_reader_that_stops_is_probed_and_resumes() {
    let config = Config { rmem_default: Bytes::new(65_536), rmem_max: Bytes::new(65_536), ..Config::default() };
    let mut net = Net::new(segments(100), Config::default(), config, perfect(RTT / 2));
    net.b.set_read_rate(Time::ZERO, Some(Rate::from_bps(8)));
    net.a.write(Bytes::new(1_000_000));
    net.run_until(at(10_000), |_| false);
    let stats = net.a.stats();
    assert!(stats.peer_window < MSS && stats.window_probes >= 3, "{stats:#?} {:#?}", net.b.stats());
    // As of the last probe: they back off.
    assert!(stats.rwnd_limited > Span::from_secs(5), "{}", stats.rwnd_limited);
    assert_eq!((stats.timeouts, stats.segments_retransmitted), (0, 0));
    let stopped_at = net.b.received();
    assert!(stopped_at < Bytes::new(70_000));

    net.b.set_read_rate(net.now, None);
    net.run_until(at(30_000), |net| net.b.received() == Bytes::new(1_000_000));
    net.check_complete(Bytes::new(1_000_000));
}

#[test]
fn a_steady_slow_reader_sets_the_pace_by_window_updates() {
    let rate = Rate::from_mbit(4);
    let config = Config { read_rate: Some(rate), ..Config::default() };
    let mut net = Net::new(segments(100), Config::default(), config, perfect(RTT / 2));
    net.a.write_forever();
    net.run_until(at(20_000), |_| false);
    let got = Rate::of(net.b.received(), Span::from_secs(20)).expect("twenty seconds");
    assert!((got.as_mbit_f64() / 4.0 - 1.0).abs() < 0.05, "{got}");
    assert_eq!(net.a.stats().timeouts, 0);
}

/// Caps the advertised window at `bytes` from `from` on.
fn narrowed(from: Time, bytes: u32) -> Network {
    let mut scale = 0;
    Box::new(move |now, way, segment| {
        if way == Way::ToA && segment.flags.contains(Flags::SYN) {
            scale = segment.options.window_scale.unwrap_or(0);
        } else if way == Way::ToA && now >= from {
            segment.window = segment.window.min(bytes.div_ceil(1 << scale) as u16);
        }
        vec![RTT / 2]
    })
}

#[test]
fn a_middlebox_that_lowers_the_window_sets_the_rate_only() {
    for law in lasthop_laws::tcp::LAWS.iter().map(|law| law.name) {
        let config = Config { rmem_default: Bytes::new(4 << 20), ..Config::default() };
        let mut net = Net::new(law_called(law), Config::default(), config, narrowed(at(150), 40_960));
        net.a.write_forever();
        net.run_until(at(400), |_| false);
        let (before, cwnd) = (net.b.received(), net.a.stats().cwnd);
        net.run_until(at(10_400), |_| false);
        let got = Rate::of(net.b.received() - before, Span::from_secs(10)).expect("ten seconds");
        // 28 whole segments fit into 40 kB: as many a round trip.
        let wanted = Rate::of(MSS * 28, RTT).expect("not zero");
        let stats = net.a.stats();
        assert_eq!((stats.timeouts, stats.segments_retransmitted), (0, 0), "{law}");
        assert!(stats.in_flight <= Bytes::new(40_960));
        if law == "tcp-ap" {
            // Half a round trip goes by from one segment to the next at one hop: some two are in the network.
            assert!(got < wanted && stats.in_flight <= MSS * 3, "{got}, {}", stats.in_flight);
            continue;
        }
        assert!((got.as_mbit_f64() / wanted.as_mbit_f64() - 1.0).abs() < 0.05, "{law}: {got} for {wanted}");
        if law != "bbr" {
            assert_eq!(stats.cwnd, cwnd, "{law}: a window that is not used must not grow");
            assert!(stats.rwnd_limited > Span::from_secs(8), "{law}: {}", stats.rwnd_limited);
        }
    }
}

#[test]
fn reordering_within_a_quarter_of_the_rtt_is_not_loss() {
    let mut n = 0u64;
    let network: Network = Box::new(move |_, way, segment| {
        n += 1;
        let late = way == Way::ToB && segment.payload_len > 0 && n.is_multiple_of(7);
        vec![if late { Span::from_millis(13) } else { RTT / 2 }]
    });
    let mut net = net(Box::new(Fixed { cwnd: None, pacing: Some(Rate::from_mbit(20)) }), network);
    net.a.write_forever();
    net.run_until(at(5000), |_| false);
    let stats = net.a.stats();
    // Until the first needless repetition is reported, segments that overtake another look like its loss.
    assert!(stats.segments_retransmitted <= 20, "{}", stats.segments_retransmitted);
    assert_eq!(stats.timeouts, 0);
}

#[test]
fn a_reset_ends_the_connection() {
    let mut net = net(segments(10), perfect(RTT / 2));
    net.a.write_forever();
    net.run_until(at(100), |_| false);
    let (_, mut reset) = headers(&net, Way::ToA).last().expect("sent");
    reset.flags = Flags::RST;
    net.a.on_segment(at(101), &reset);
    assert!(net.a.is_aborted() && net.a.is_closed());
    assert_eq!(net.a.poll_transmit(at(101)), None);
    assert_eq!(net.a.next_timeout(), None);
}
