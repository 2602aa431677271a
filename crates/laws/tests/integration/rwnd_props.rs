//! Any segment history leaves the rewriter harmless.

use lasthop_laws::oal::rwnd::{Flow, Rewriter};
use lasthop_signals::Node;
use lasthop_units::{Bytes, Span, Time};
use lasthop_wire::ip::{self, Ecn};
use lasthop_wire::tcp::{Flags, SackBlock, TcpHeader, TcpOptions, Timestamps};
use lasthop_wire::{FlowKey, Link, TcpPacket, ip_tcp_packet};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use std::net::IpAddr;

/// A connection's beginning, near or far from where sequence numbers wrap.
#[derive(Clone, Debug)]
struct Opening {
    isn_down: u32,
    isn_up: u32,
    station_opens: bool,
    scales: (Option<u8>, Option<u8>),
    mss: (Option<u16>, Option<u16>),
    timestamps: bool,
    syn_window: u16,
}

#[derive(Clone, Debug)]
enum Event {
    Data { back: u32, len: u32 },
    Ack { forward: u32, field: u16, sack: bool, payload: u32, val: u32 },
    Repeat { field: Option<u16> },
    Old { back: u32, field: u16 },
    Beyond { ahead: u32, field: u16 },
    Target(Option<u64>),
    Silence(u64),
    Blind { forward: u32, field: u16 },
    SynAgain { down: bool },
}

fn any_opening() -> impl Strategy<Value = Opening> {
    let isn = || prop_oneof![any::<u32>(), (u32::MAX - 2_000_000)..=u32::MAX];
    let scale = || option::weighted(0.9, prop_oneof![4 => 0u8..=14, 1 => any::<u8>()]);
    let mss = || option::weighted(0.9, prop_oneof![4 => 536u16..1461, 1 => any::<u16>()]);
    (isn(), isn(), any::<bool>(), (scale(), scale()), (mss(), mss()), any::<bool>(), any::<u16>()).prop_map(
        |(isn_down, isn_up, station_opens, scales, mss, timestamps, syn_window)| Opening {
            isn_down,
            isn_up,
            station_opens,
            scales,
            mss,
            timestamps,
            syn_window,
        },
    )
}

fn any_event() -> impl Strategy<Value = Event> {
    let field = || prop_oneof![Just(0u16), 1u16..50, any::<u16>()];
    prop_oneof![
        4 => (prop_oneof![4 => Just(0u32), 1 => 0u32..200_000], 1u32..65_000).prop_map(|(back, len)| Event::Data { back, len }),
        6 => (1u32..100_000, field(), any::<bool>(), prop_oneof![3 => Just(0u32), 1 => 1u32..1448], 0u32..5)
            .prop_map(|(forward, field, sack, payload, val)| Event::Ack { forward, field, sack, payload, val }),
        3 => option::weighted(0.3, field()).prop_map(|field| Event::Repeat { field }),
        1 => (1u32..300_000, field()).prop_map(|(back, field)| Event::Old { back, field }),
        1 => (1u32..300_000, field()).prop_map(|(ahead, field)| Event::Beyond { ahead, field }),
        2 => option::weighted(0.8, prop_oneof![0u64..5_000, 5_000u64..2_000_000, any::<u64>()]).prop_map(Event::Target),
        1 => (0u64..3_000_000_000).prop_map(Event::Silence),
        1 => (0u32..50_000, field()).prop_map(|(forward, field)| Event::Blind { forward, field }),
        1 => any::<bool>().prop_map(|down| Event::SynAgain { down }),
    ]
}

const PLAIN: TcpHeader = TcpHeader {
    source_port: 443,
    destination_port: 50_000,
    seq: 0,
    ack: 0,
    flags: Flags::ACK,
    window: 0,
    options: TcpOptions {
        mss: None,
        window_scale: None,
        sack_permitted: false,
        timestamps: None,
        sack: lasthop_wire::tcp::SackBlocks::EMPTY,
        capacity: None,
        hands_off: false,
    },
    payload_len: 0,
};

fn uplink_key() -> FlowKey {
    FlowKey {
        source: IpAddr::from([10, 0, 0, 2]),
        destination: IpAddr::from([192, 0, 2, 1]),
        source_port: 50_000,
        destination_port: 443,
        protocol: ip::TCP,
    }
}

/// Rewrites real bytes as an agent does, and checks what must hold of every single segment.
fn as_bytes(header: &TcpHeader, rewritten: Option<u16>) -> Result<(), TestCaseError> {
    let mut packet = ip_tcp_packet(&uplink_key(), Ecn::NotEct, header, &[]).expect("few options");
    let found = TcpPacket::parse(&packet, Link::Ip).expect("well formed").expect("a segment");
    if let Some(window) = rewritten {
        prop_assert!(window < header.window, "only lower");
        prop_assert!(window > 0, "no new zero window");
        found.set_window(&mut packet, window);
    }
    prop_assert!(found.checksum_is_valid(&packet));
    Ok(())
}

/// An independent account of what was promised to the sender, in sequence numbers that do not wrap.
struct Account {
    opening: Opening,
    flow: Flow,
    now: Time,
    /// Offsets from the first octet after the SYN.
    sent: u64,
    acked: u64,
    /// Highest edge let pass; `None` once the sender went beyond it, until the next ACK shows one.
    edge: u64,
    last: Option<(u64, u16, u16)>,
}

impl Account {
    fn open(opening: Opening) -> Account {
        let now = Time::ZERO + Span::from_secs(1);
        let mut account = Account { flow: Flow::default(), now, sent: 0, acked: 0, edge: 0, last: None, opening };
        let first = if account.opening.station_opens { [false, true] } else { [true, false] };
        first.into_iter().for_each(|down| account.syn(down));
        account.edge = u64::from(account.opening.syn_window);
        account
    }

    fn syn(&mut self, down: bool) {
        let Opening { isn_down, isn_up, station_opens, scales, mss, timestamps, syn_window } = self.opening;
        let is_answer = down == station_opens;
        let flags = if is_answer { Flags::SYN | Flags::ACK } else { Flags::SYN };
        let timestamps = timestamps.then_some(Timestamps { val: 5, ecr: 0 });
        let options = |mss, window_scale| TcpOptions { mss, window_scale, timestamps, ..PLAIN.options };
        if down {
            let ack = isn_up.wrapping_add(1);
            let header =
                TcpHeader { seq: isn_down, ack, flags, window: 60_000, options: options(mss.0, scales.0), ..PLAIN };
            self.flow.on_downlink(self.now, &header);
        } else {
            let ack = isn_down.wrapping_add(1);
            let options = options(mss.1, scales.1);
            let header = TcpHeader { seq: isn_up, ack, flags, window: syn_window, options, ..PLAIN };
            assert_eq!(self.flow.on_uplink(self.now, &header), None, "SYNs are never touched");
        }
    }

    fn shift(&self) -> u32 {
        match self.opening.scales {
            (Some(_), Some(up)) => u32::from(up.min(14)),
            _ => 0,
        }
    }

    fn seq(&self, offset: u64) -> u32 {
        self.opening.isn_down.wrapping_add(1).wrapping_add(offset as u32)
    }

    /// A segment from the station that acknowledges up to `offset`.
    fn up(
        &mut self,
        offset: u64,
        field: u16,
        change: impl FnOnce(&mut TcpHeader),
    ) -> Result<Option<u16>, TestCaseError> {
        let mut header =
            TcpHeader { seq: self.opening.isn_up.wrapping_add(1), ack: self.seq(offset), window: field, ..PLAIN };
        change(&mut header);
        let rewritten = self.flow.on_uplink(self.now, &header);
        as_bytes(&header, rewritten)?;
        if offset > self.sent {
            prop_assert_eq!(rewritten, None, "acknowledges what did not pass");
            self.edge = self.edge.max(offset + (u64::from(field) << self.shift()));
            return Ok(None);
        }
        let shown = offset + (u64::from(rewritten.unwrap_or(field)) << self.shift());
        if rewritten.is_some() {
            prop_assert!(shown >= self.edge, "took back {} octets", self.edge - shown);
        }
        self.edge = self.edge.max(shown);
        self.acked = self.acked.max(offset);
        Ok(rewritten)
    }

    fn happen(&mut self, event: &Event) -> Result<(), TestCaseError> {
        self.now += Span::from_micros(100);
        match *event {
            Event::Data { back, len } => {
                let from = self.sent.saturating_sub(u64::from(back));
                let header = TcpHeader { seq: self.seq(from), payload_len: len, window: 60_000, ..PLAIN };
                self.flow.on_downlink(self.now, &header);
                self.sent = self.sent.max(from + u64::from(len));
            }
            Event::Ack { forward, field, sack, payload, val } => {
                let offset = self.sent.min(self.acked + u64::from(forward));
                let timestamps = self.opening.timestamps.then_some(Timestamps { val: 5 + val, ecr: 1 });
                let rewritten = self.up(offset, field, |header| {
                    header.payload_len = payload;
                    header.options.timestamps = timestamps;
                    if sack {
                        let left = header.ack.wrapping_add(1448);
                        header.options.sack.push(SackBlock { left, right: left.wrapping_add(1448) });
                    }
                })?;
                self.last = Some((offset, field, rewritten.unwrap_or(field)));
                return Ok(());
            }
            Event::Repeat { field: None } => {
                // Rule 5: an identical ACK right after the first shows an identical window.
                if let Some((offset, field, shown)) = self.last {
                    let rewritten = self.up(offset, field, |_| {})?;
                    prop_assert_eq!(rewritten.unwrap_or(field), shown);
                    return Ok(());
                }
            }
            Event::Repeat { field: Some(field) } => {
                self.up(self.acked, field, |_| {})?;
            }
            Event::Old { back, field } => {
                self.up(self.acked.saturating_sub(u64::from(back)), field, |_| {})?;
            }
            Event::Beyond { ahead, field } => {
                self.up(self.sent + u64::from(ahead), field, |_| {})?;
            }
            Event::Target(target) => {
                self.flow.set_target(target.map(Bytes::new));
                return Ok(());
            }
            Event::Silence(ns) => self.now += Span::from_nanos(ns),
            Event::Blind { forward, field } => {
                let offset = self.sent.min(self.acked + u64::from(forward));
                let seq = self.opening.isn_up.wrapping_add(1);
                self.flow.pass_uplink(self.now, &TcpHeader { seq, ack: self.seq(offset), window: field, ..PLAIN });
                self.acked = self.acked.max(offset);
                self.edge = self.edge.max(offset + (u64::from(field) << self.shift()));
            }
            Event::SynAgain { down } => {
                self.syn(down);
                if !down {
                    self.edge = self.edge.max(u64::from(self.opening.syn_window));
                }
            }
        }
        self.last = None;
        Ok(())
    }
}

fn any_header() -> impl Strategy<Value = TcpHeader> {
    let options = (option::of(any::<u16>()), option::of(any::<u8>()), option::of(any::<(u32, u32)>()), any::<u8>());
    (any::<(u32, u32, u16)>(), options, prop_oneof![Just(0u32), 0u32..2000]).prop_flat_map(
        |((seq, ack, window), (mss, window_scale, stamps, odd), payload_len)| {
            let timestamps = stamps.map(|(val, ecr)| Timestamps { val, ecr });
            let options = TcpOptions { mss, window_scale, timestamps, hands_off: odd == 0, ..PLAIN.options };
            prop_oneof![3 => Just(0x10u8), 1 => Just(0x02), 1 => Just(0x12), 1 => any::<u8>()].prop_map(move |flags| {
                TcpHeader { seq, ack, flags: Flags(flags), window, options, payload_len, ..PLAIN }
            })
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1024))]

    #[test]
    fn no_history_raises_or_zeroes_a_window_or_retracts_an_edge(
        opening in any_opening(), events in vec(any_event(), 0..150),
    ) {
        let mut account = Account::open(opening);
        prop_assert!(account.flow.is_manageable());
        for event in &events {
            account.happen(event)?;
        }
    }

    #[test]
    fn no_nonsense_raises_a_window_or_makes_a_zero(
        target in any::<u64>(), segments in vec((any::<bool>(), any_header()), 0..150),
    ) {
        let mut flow = Flow::default();
        flow.set_target(Some(Bytes::new(target)));
        let mut now = Time::ZERO;
        for (down, header) in &segments {
            now += Span::from_micros(10);
            if *down {
                flow.on_downlink(now, header);
            } else {
                let rewritten = flow.on_uplink(now, header);
                as_bytes(&TcpHeader { payload_len: 0, ..*header }, rewritten)?;
                if rewritten.is_some() {
                    prop_assert!(flow.is_manageable() && header.flags.contains(Flags::ACK));
                    prop_assert!(!header.flags.intersects(Flags::SYN | Flags::RST) && !header.options.hands_off);
                }
            }
        }
    }

    #[test]
    fn a_table_stays_within_its_bound_and_reports_each_flow_once(
        capacity in 1usize..6, segments in vec((any::<bool>(), 0u16..10, any_header()), 0..200),
    ) {
        let mut table = Rewriter::new(capacity);
        let mut alive = std::collections::BTreeSet::new();
        let mut now = Time::ZERO;
        for (down, port, header) in &segments {
            now += Span::from_micros(10);
            let key = FlowKey { source_port: *port, ..uplink_key() };
            if *down {
                table.on_downlink(now, key.reversed(), Node(1), header);
            } else {
                let _ = table.on_uplink(now, key, Node(1), header);
            }
            let mut reported = Vec::new();
            table.report(now, |report| reported.push(report.flow));
            prop_assert!(reported.len() <= capacity && reported.is_sorted());
            for gone in table.take_gone() {
                alive.remove(&gone);
                prop_assert!(!reported.contains(&gone) && table.flow(gone).is_none());
                prop_assert!(!table.set_target(gone, None));
            }
            alive.extend(reported);
        }
    }
}

#[test]
fn the_flow_that_was_silent_longest_makes_room() {
    let mut table = Rewriter::new(2);
    let now = Time::ZERO + Span::from_secs(1);
    let open = |table: &mut Rewriter, port| {
        let key = FlowKey { source_port: port, ..uplink_key() };
        let _ = table.on_uplink(now, key, Node(port), &TcpHeader { flags: Flags::SYN, ..PLAIN });
        let header = TcpHeader { flags: Flags::SYN | Flags::ACK, ack: 1, ..PLAIN };
        table.on_downlink(now, key.reversed(), Node(port), &header);
    };
    open(&mut table, 1);
    open(&mut table, 2);
    let first = FlowKey { source_port: 1, ..uplink_key() };
    table.on_downlink(now, first.reversed(), Node(1), &TcpHeader { payload_len: 9, seq: 1, ..PLAIN });
    open(&mut table, 3);
    let mut stations = Vec::new();
    table.report(now, |report| stations.push(report.station));
    assert_eq!(stations, [Node(1), Node(3)]);
    assert_eq!(table.take_gone().len(), 1);
}
