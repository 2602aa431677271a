//! Each rule of the rewriter on hand-made connections, and worked values.

use super::*;
use lasthop_signals::{FlowId, Node};
use lasthop_units::{Bytes, Span};
use lasthop_wire::tcp::{SackBlock, TcpOptions, Timestamps};

const ISN_DOWN: u32 = u32::MAX - 10_000;
const ISN_UP: u32 = 77;
const FIRST: u32 = ISN_DOWN.wrapping_add(1);

fn segment(flags: Flags, seq: u32, ack: u32, window: u16) -> TcpHeader {
    TcpHeader {
        source_port: 0,
        destination_port: 0,
        seq,
        ack,
        flags,
        window,
        options: TcpOptions::default(),
        payload_len: 0,
    }
}

fn syn_options(scale: Option<u8>) -> TcpOptions {
    let timestamps = Some(Timestamps { val: 1, ecr: 0 });
    TcpOptions { mss: Some(1460), window_scale: scale, sack_permitted: true, timestamps, ..TcpOptions::default() }
}

fn at(ms: u64) -> Time {
    Time::ZERO + Span::from_millis(1_000 + ms)
}

/// One connection, seen from the middle.
struct Wire {
    flow: Flow,
    now: Time,
}

impl Wire {
    /// The station opens: its SYN goes up. MSS 1448 (timestamps on both sides).
    fn station_opens(station_scale: Option<u8>, server_scale: Option<u8>) -> Wire {
        let mut wire = Wire { flow: Flow::default(), now: at(0) };
        let syn = TcpHeader { options: syn_options(station_scale), ..segment(Flags::SYN, ISN_UP, 0, 64_000) };
        assert_eq!(wire.flow.on_uplink(wire.now, &syn), None);
        let flags = Flags::SYN | Flags::ACK;
        let answer = segment(flags, ISN_DOWN, ISN_UP + 1, 65_000);
        let mut options = syn_options(server_scale);
        options.timestamps = Some(Timestamps { val: 1, ecr: 1 });
        wire.flow.on_downlink(wire.now, &TcpHeader { options, ..answer });
        wire
    }

    /// The other side opens: its SYN goes down, and the station's window stands in its SYN-ACK.
    fn server_opens(station_scale: Option<u8>, server_scale: Option<u8>) -> Wire {
        let mut wire = Wire { flow: Flow::default(), now: at(0) };
        let syn = TcpHeader { options: syn_options(server_scale), ..segment(Flags::SYN, ISN_DOWN, 0, 65_000) };
        wire.flow.on_downlink(wire.now, &syn);
        let answer = segment(Flags::SYN | Flags::ACK, ISN_UP, FIRST, 64_000);
        let answer = TcpHeader { options: syn_options(station_scale), ..answer };
        assert_eq!(wire.flow.on_uplink(wire.now, &answer), None);
        wire
    }

    fn data(&mut self, offset: u32, len: u32) {
        let header = segment(Flags::ACK, FIRST.wrapping_add(offset), ISN_UP + 1, 65_000);
        self.flow.on_downlink(self.now, &TcpHeader { payload_len: len, ..header });
    }

    /// The field that the sender sees of an ACK of everything before `offset`.
    fn ack(&mut self, offset: u32, field: u16) -> u16 {
        self.ack_with(offset, field, |_| {})
    }

    fn ack_with(&mut self, offset: u32, field: u16, change: impl FnOnce(&mut TcpHeader)) -> u16 {
        let mut header = segment(Flags::ACK, ISN_UP + 1, FIRST.wrapping_add(offset), field);
        change(&mut header);
        self.flow.on_uplink(self.now, &header).unwrap_or(field)
    }

    fn target(&mut self, octets: u64) {
        self.flow.set_target(Some(Bytes::new(octets)));
    }
}

fn sack(header: &mut TcpHeader) {
    header.options.sack.push(SackBlock { left: header.ack.wrapping_add(1448), right: header.ack.wrapping_add(2896) });
}

#[test]
fn worked_values_of_the_rules() {
    for mut wire in [Wire::station_opens(Some(7), Some(2)), Wire::server_opens(Some(7), Some(2))] {
        wire.data(0, 1_000_000);
        assert_eq!(wire.ack(0, 1010), 1010, "untouched, and R is 1010 units on");
        wire.target(50_000);
        assert_eq!(wire.ack(1280, 3000), 1000, "held by R: R - ack = 128000");
        assert_eq!(wire.ack(1280 + 78_100, 3000), 391, "ceil(50000 / 128)");
    }
}

#[test]
fn figure_2_of_the_paper_a_window_of_10000_is_made_7000() {
    for scale in [None, Some(3)] {
        let mut wire = Wire::station_opens(scale, scale);
        let unit = 1 << scale.unwrap_or(0);
        wire.data(0, 1_000_000);
        // The SYN's edge, which cannot be taken back, has been passed.
        wire.ack(64_000, 10_000 / unit);
        wire.target(7_000);
        assert_eq!(wire.ack(74_000, 10_000 / unit), 7_000 / unit, "{scale:?}");
    }
}

#[test]
fn rule_1_the_shift_needs_the_option_in_both_syns_at_most_14() {
    let first_limited = |mut wire: Wire| {
        wire.target(50_000);
        wire.data(0, 500_000);
        wire.ack(63_000, 60_000)
    };
    assert_eq!(first_limited(Wire::station_opens(Some(7), Some(0))), 391);
    assert_eq!(first_limited(Wire::station_opens(None, Some(7))), 50_000);
    assert_eq!(first_limited(Wire::station_opens(Some(7), None)), 50_000);
    assert_eq!(first_limited(Wire::server_opens(Some(7), None)), 50_000);
    assert_eq!(first_limited(Wire::server_opens(Some(200), Some(200))), 4, "ceil(50000 / 2^14)");
}

#[test]
fn rule_1_a_flow_first_seen_in_the_middle_is_left_alone() {
    let mut wire = Wire { flow: Flow::default(), now: at(0) };
    wire.target(5_000);
    wire.data(0, 500_000);
    assert_eq!(wire.ack(1_000, 60_000), 60_000);
    assert!(!wire.flow.is_manageable());
    // Nor is a SYN-ACK without a seen SYN the beginning of anything.
    let answer = TcpHeader { options: syn_options(Some(7)), ..segment(Flags::SYN | Flags::ACK, ISN_UP, FIRST, 9) };
    assert_eq!(wire.flow.on_uplink(wire.now, &answer), None);
    assert!(!wire.flow.is_manageable());
}

#[test]
fn rule_1_the_window_of_a_syn_is_an_edge_and_is_not_scaled() {
    let mut wire = Wire::server_opens(Some(7), Some(7));
    wire.target(1);
    assert_eq!(wire.ack(0, 502), 500, "64000 octets were let pass in the SYN-ACK");
}

#[test]
fn rules_2_and_3_small_windows_pass_and_the_floor_is_two_mss() {
    let mut wire = Wire::station_opens(Some(7), Some(7));
    wire.target(1);
    wire.data(0, 500_000);
    assert_eq!(wire.ack(62_000, 0), 0);
    assert_eq!(wire.ack(63_000, 7), 7, "below the floor already");
    assert_eq!(wire.ack(63_448, 600), 23, "ceil(2 * 1448 / 128)");
}

#[test]
fn rule_3_an_update_after_a_zero_window_is_not_held_at_zero() {
    let mut wire = Wire::station_opens(Some(7), Some(7));
    wire.target(50_000);
    wire.data(0, 500_000);
    assert_eq!(wire.ack(60_000, 0), 0);
    assert_eq!(wire.ack(60_000, 3000), 391);
}

#[test]
fn rule_4_no_edge_is_taken_back_except_by_the_station() {
    let mut wire = Wire::station_opens(Some(0), Some(0));
    wire.data(0, 65_000);
    assert_eq!(wire.ack(5_000, 60_000), 60_000);
    wire.target(5_000);
    for step in 6..40 {
        let (offset, edge) = (step * 1_000, 65_000);
        assert_eq!(u32::from(wire.ack(offset, 60_000)), edge - offset);
    }
    assert_eq!(wire.ack(40_000, 900), 900, "the station itself shrinks");
    assert_eq!(wire.ack(41_000, 60_000), 24_000, "and what was promised before is promised again");
}

#[test]
fn rule_5_equal_acks_keep_their_window_though_the_target_falls() {
    let mut wire = Wire::station_opens(Some(7), Some(7));
    wire.target(200_000);
    wire.data(0, 900_000);
    let first = wire.ack(60_000, 9_000);
    assert_eq!(first, 1_563);
    wire.target(20_000);
    assert_eq!(wire.ack(60_000, 9_000), first);
    assert_eq!(wire.ack(60_000, 9_000), first);
    assert_eq!(wire.ack(60_000, 1_000), 1_000, "the station's own is lower");
    assert_eq!(wire.ack(60_000, 9_000), first);
}

#[test]
fn rule_6_old_acks_pass_under_the_limit_and_change_nothing() {
    let mut wire = Wire::station_opens(Some(7), Some(7));
    wire.target(50_000);
    wire.data(0, 900_000);
    wire.ack(60_000, 9_000);
    let before = wire.flow;
    assert!(wire.ack(50_000, 9_000) < 9_000);
    assert_eq!(Flow { edge: before.edge, rewritten: before.rewritten, ..wire.flow }, before);
}

#[test]
fn rule_7_flows_with_forbidding_options_stay_unmanaged() {
    let mut wire = Wire::station_opens(Some(7), Some(7));
    wire.target(50_000);
    wire.data(0, 900_000);
    assert!(wire.ack(60_000, 9_000) < 9_000);
    assert_eq!(wire.ack_with(70_000, 9_000, |h| h.options.hands_off = true), 9_000);
    assert_eq!(wire.ack(80_000, 9_000), 9_000);
}

#[test]
fn rule_7_resets_and_segments_without_ack_pass() {
    let mut wire = Wire::station_opens(Some(7), Some(7));
    wire.target(50_000);
    wire.data(0, 900_000);
    assert_eq!(wire.ack_with(60_000, 9_000, |h| h.flags = Flags::PSH), 9_000);
    assert_eq!(wire.ack_with(60_000, 9_000, |h| h.flags = Flags::RST | Flags::ACK), 9_000);
    assert!(wire.flow.is_over());
}

#[test]
fn rule_8_the_window_does_not_fall_while_losses_are_repaired() {
    let mut wire = Wire::station_opens(Some(7), Some(7));
    wire.target(200_000);
    wire.data(0, 900_000);
    wire.ack(60_000, 9_000);
    wire.target(20_000);
    wire.ack_with(61_448, 9_000, sack);
    assert_eq!(wire.flow.window(), Some(Bytes::new(200_000)), "frozen by SACK");
    wire.ack(63_000, 9_000);
    assert_eq!(wire.flow.window(), Some(Bytes::new(20_000)));

    wire.target(10_000);
    wire.ack(63_000, 9_000);
    assert!(wire.flow.report(wire.now, FlowId(0), Node(0)).recovering, "a duplicate ACK with data outstanding");
    assert_eq!(wire.flow.window(), Some(Bytes::new(20_000)));
    wire.ack(64_448, 9_000);
    assert_eq!(wire.flow.window(), Some(Bytes::new(10_000)));
}

#[test]
fn rule_8_updates_and_idle_repeats_are_no_duplicate_acks() {
    let mut wire = Wire::station_opens(Some(7), Some(7));
    wire.data(0, 10_000);
    let recovering = |wire: &Wire| wire.flow.report(wire.now, FlowId(0), Node(0)).recovering;
    wire.ack(5_000, 900);
    wire.ack(5_000, 901);
    assert!(!recovering(&wire), "a window update");
    wire.ack(10_000, 901);
    wire.ack(10_000, 901);
    assert!(!recovering(&wire), "nothing outstanding: a keep-alive");
}

#[test]
fn rule_10_release_goes_in_steps_and_ends_untouched() {
    let mut wire = Wire::station_opens(Some(7), Some(7));
    wire.target(50_000);
    wire.data(0, 4_000_000);
    wire.ack(60_000, 1_000);
    wire.flow.set_target(None);
    wire.ack(62_896, 1_000);
    assert_eq!(wire.flow.window(), Some(Bytes::new(51_448)), "one segment an ACK");
    wire.ack(112_896, 1_000);
    assert_eq!(wire.flow.window(), Some(Bytes::new(76_448)), "half of a stretched ACK");
    wire.ack(114_344, 0);
    assert_eq!(wire.flow.window(), Some(Bytes::new(76_448)), "a closed window ends no release");
    wire.ack(164_344, 600);
    assert_eq!(wire.flow.window(), Some(Bytes::new(76_800)), "as large as the station's own");
    wire.ack(165_792, 600);
    assert_eq!(wire.flow.window(), None);
    assert_eq!(wire.ack(170_000, 9_000), 9_000);
}

#[test]
fn higher_targets_are_reached_in_steps_lower_ones_at_once() {
    let mut wire = Wire::station_opens(Some(7), Some(7));
    wire.target(50_000);
    wire.data(0, 4_000_000);
    wire.ack(60_000, 9_000);
    wire.target(500_000);
    wire.ack(62_896, 9_000);
    assert_eq!(wire.flow.window(), Some(Bytes::new(51_448)));
    wire.target(30_000);
    wire.ack(64_344, 9_000);
    assert_eq!(wire.flow.window(), Some(Bytes::new(30_000)));
}

#[test]
fn without_a_heartbeat_acks_pass_and_edges_are_remembered() {
    let mut wire = Wire::station_opens(Some(7), Some(7));
    wire.target(50_000);
    wire.data(0, 4_000_000);
    assert_eq!(wire.ack(60_000, 9_000), 391);
    let wide = segment(Flags::ACK, ISN_UP + 1, FIRST.wrapping_add(70_000), 9_000);
    wire.flow.pass_uplink(wire.now, &wide);
    assert_eq!(wire.flow.window(), None);
    assert_eq!(wire.ack(72_800, 9_000), 9_000 - 21, "ceil((1152000 - 2800) / 128)");
}

#[test]
fn an_ack_of_data_that_did_not_pass_here_is_left_alone() {
    let mut wire = Wire::station_opens(Some(7), Some(7));
    wire.target(50_000);
    wire.data(0, 60_000);
    assert!(wire.ack(60_000, 9_000) < 9_000);
    assert_eq!(wire.ack(60_001, 9_000), 9_000);
    // The sender may have believed it: the edge stays where that put it. A segment without data shows that it may.
    wire.data(60_128, 0);
    assert_eq!(wire.ack(60_128, 9_000), 9_000);
    assert_eq!(wire.ack(60_129, 8_999), 8_999);
}

#[test]
fn data_beyond_every_known_edge_makes_the_edge_unknown() {
    let mut wire = Wire::station_opens(Some(7), Some(7));
    wire.target(20_000);
    wire.data(0, 900_000);
    assert_eq!(wire.ack(60_000, 9_000), 157);
    let edge = 60_000 + 157 * 128;
    assert_eq!(wire.ack(edge + 1, 9_000), 157, "a zero-window probe");
    let edge = edge + 1 + 157 * 128;
    assert_eq!(wire.ack(edge + 2_000, 9_000), 9_000);
}

#[test]
fn halves_of_the_round_trip_are_told_apart() {
    let mut wire = Wire::station_opens(Some(7), Some(7));
    let stamped = |val, ecr| TcpOptions { timestamps: Some(Timestamps { val, ecr }), ..TcpOptions::default() };
    let data = |offset: u32, ecr| TcpHeader {
        payload_len: 1_448,
        options: stamped(900, ecr),
        ..segment(Flags::ACK, FIRST.wrapping_add(offset), ISN_UP + 1, 65_000)
    };
    wire.ack(0, 900);
    // Data passes at 10 ms; its ACK, with TSval 50, at 14 ms; data that echoes 50 at 34 ms.
    wire.now = at(10);
    wire.flow.on_downlink(wire.now, &data(0, 1));
    wire.now = at(14);
    wire.ack_with(1_448, 900, |h| h.options = stamped(50, 900));
    // A second ACK with the same TSval is not the one that the answer belongs to.
    wire.now = at(15);
    wire.ack_with(1_448, 901, |h| h.options = stamped(50, 900));
    wire.now = at(34);
    wire.flow.on_downlink(wire.now, &data(1_448, 50));
    let report = wire.flow.report(wire.now, FlowId(3), Node(4));
    assert_eq!((report.flow, report.station), (FlowId(3), Node(4)));
    assert_eq!(
        (report.wired_rtt, report.wireless_rtt),
        (Some(Span::ZERO), Some(Span::ZERO)),
        "the handshake had no delay"
    );
    assert_eq!(report.forwarded, Bytes::new(2_896));
    assert_eq!((report.acked, report.in_flight), (Bytes::new(1_448), Bytes::new(1_448)));
    assert_eq!((report.mss, report.advertised), (Bytes::new(1_448), Bytes::new(901 << 7)));
    assert_eq!(report.last_data, at(34));

    wire.ack(2_896, 900);
    // Ten seconds after the handshake only what came later counts.
    wire.now = at(5_000);
    wire.ack_with(2_896, 900, |h| h.options = stamped(5_000, 900));
    wire.now = at(5_020);
    wire.flow.on_downlink(wire.now, &data(2_896, 5_000));
    wire.now = at(5_024);
    wire.ack_with(4_344, 900, |h| h.options = stamped(5_024, 900));
    let report = wire.flow.report(at(13_000), FlowId(3), Node(4));
    assert_eq!(report.wired_rtt, Some(Span::from_millis(20)));
    assert_eq!(report.wireless_rtt, Some(Span::from_millis(4)));
}

#[test]
fn a_retransmission_spoils_the_sample() {
    let mut wire = Wire::station_opens(None, None);
    wire.now = at(10);
    wire.ack(0, 60_000);
    wire.now = Time::ZERO + Span::from_secs(60);
    wire.data(0, 1_000);
    wire.data(0, 1_000);
    wire.ack(1_000, 60_000);
    assert_eq!(wire.flow.report(wire.now, FlowId(0), Node(0)).wireless_rtt, None);
}

#[test]
fn repeated_syns_do_not_restart_and_new_ones_do() {
    let mut wire = Wire::station_opens(Some(7), Some(7));
    wire.target(50_000);
    wire.data(0, 900_000);
    wire.ack(60_000, 9_000);
    let born = wire.flow.born();
    wire.now = at(5_000);
    let syn = TcpHeader { options: syn_options(Some(3)), ..segment(Flags::SYN, ISN_UP, 0, 64_000) };
    assert_eq!(wire.flow.on_uplink(wire.now, &syn), None);
    assert_eq!(wire.ack(100_000, 9_000), 391, "an old duplicate SYN teaches nothing");
    let stray = segment(Flags::SYN | Flags::ACK, 5, 6, 64_000);
    wire.flow.on_downlink(wire.now, &stray);
    assert_eq!(wire.ack(140_000, 9_000), 391);
    assert_eq!(wire.flow.born(), born);
    assert_eq!(wire.flow.on_uplink(wire.now, &TcpHeader { seq: 99, ..syn }), None);
    assert_eq!((wire.flow.born(), wire.flow.is_manageable()), (at(5_000), false));
}

#[test]
fn a_repeated_syn_without_options_is_believed() {
    let mut wire = Wire { flow: Flow::default(), now: at(0) };
    let syn = TcpHeader { options: syn_options(Some(7)), ..segment(Flags::SYN, ISN_UP, 0, 64_000) };
    assert_eq!(wire.flow.on_uplink(wire.now, &syn), None);
    assert_eq!(wire.flow.on_uplink(wire.now, &TcpHeader { options: TcpOptions::default(), ..syn }), None);
    let answer = segment(Flags::SYN | Flags::ACK, ISN_DOWN, ISN_UP + 1, 65_000);
    wire.flow.on_downlink(wire.now, &answer);
    wire.target(50_000);
    wire.data(0, 500_000);
    assert_eq!(wire.ack(60_000, 60_000), 50_000, "no scale, no timestamps: MSS 536");
    assert_eq!(wire.flow.report(wire.now, FlowId(0), Node(0)).mss, Bytes::new(536));
}

#[test]
fn both_fins_or_a_reset_end_the_connection() {
    let mut wire = Wire::station_opens(Some(7), Some(7));
    wire.data(0, 1_000);
    let fin = segment(Flags::FIN | Flags::ACK, FIRST.wrapping_add(1_000), ISN_UP + 1, 65_000);
    wire.flow.on_downlink(wire.now, &fin);
    assert!(!wire.flow.is_over());
    wire.ack_with(1_001, 900, |h| h.flags = Flags::FIN | Flags::ACK);
    assert!(wire.flow.is_over());
}

/// A handshake without timestamps: the station's SYN and the answer 20 ms later; what the middle then knows of the wired half.
fn wired_half(station_opens: bool, repeated: bool) -> Option<Span> {
    let mut flow = Flow::default();
    let options = TcpOptions { timestamps: None, ..syn_options(Some(7)) };
    let with = |header: TcpHeader| TcpHeader { options, ..header };
    let both = Flags::SYN | Flags::ACK;
    let (asks, answers) = match station_opens {
        true => (segment(Flags::SYN, ISN_UP, 0, 64_000), with(segment(both, ISN_DOWN, ISN_UP + 1, 65_000))),
        false => (segment(both, ISN_UP, FIRST, 64_000), segment(Flags::ACK, FIRST, ISN_UP + 1, 65_000)),
    };
    if !station_opens {
        flow.on_downlink(at(0), &with(segment(Flags::SYN, ISN_DOWN, 0, 65_000)));
    }
    for ms in if repeated { vec![5, 1_005] } else { vec![1_005] } {
        assert_eq!(flow.on_uplink(at(ms), &with(asks)), None);
    }
    flow.on_downlink(at(1_025), &answers);
    // An hour later, since nothing else will ever tell.
    flow.report(at(3_600_000), FlowId(1), Node(1)).wired_rtt
}

#[test]
fn without_timestamps_a_clean_handshake_gives_the_wired_half() {
    for station_opens in [true, false] {
        assert_eq!(wired_half(station_opens, false), Some(Span::from_millis(20)), "station opens: {station_opens}");
        assert_eq!(wired_half(station_opens, true), None, "station opens: {station_opens}");
    }
}

#[test]
fn with_timestamps_the_handshake_does_not_outlive_them() {
    let wire = Wire::station_opens(Some(7), Some(7));
    assert_eq!(wire.flow.report(at(3_600_000), FlowId(1), Node(1)).wired_rtt, None);
}
