//! Once its pools have grown to the load, a Wi-Fi hop allocates nothing: not a packet, not a PPDU, not a report.

use lasthop_radio::queue::{FqCodelParams, Kind};
use lasthop_radio::wifi::{Air, GuardInterval, Mcs, NodeParams, Params, Role, Standard, Width, Wifi};
use lasthop_radio::{AccessClass, Dest, Ecn, Hop, Outbox, Packet, RxInfo};
use lasthop_signals::Node;
use lasthop_units::{Bytes, Seed, Span, Time};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// Counts the allocations of each thread, so that tests running beside this one do not disturb it.
struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

// SAFETY: every call is passed on unchanged to the system allocator; counting touches only a thread-local `Cell`
// without a destructor, which needs no allocation.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.with(|count| count.set(count.get() + 1));
        // SAFETY: the caller's promises are those that `System` asks for.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: `pointer` came from `System.alloc` with this layout.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

struct Ignore(u64);

impl Outbox<u64> for Ignore {
    fn deliver(&mut self, _at: Time, _to: Node, packet: Packet<u64>, _rx: &RxInfo) {
        self.0 += packet.len.get();
    }
}

impl Air<u64> for Ignore {}

/// Allocations during the second half of a run of a bidirectional, noisy, overloaded BSS.
fn allocations(queue: Kind) -> u64 {
    let mcs = Mcs::new(9, 1);
    let mut nodes = vec![NodeParams::new(Role::Ap, mcs)];
    nodes.extend((0..4).map(|_| NodeParams::new(Role::Station { ap: Node(0) }, mcs)));
    nodes.iter_mut().for_each(|node| node.mpdu_error = 0.05);
    let mut params = Params::new(Standard::Dot11ac, Width::Mhz80, GuardInterval::Ns400, nodes);
    params.ap_queue = queue;
    // So that every queue has been full once before the count begins.
    params.station_queue = Kind::Fifo { packets: 100 };
    let mut hop: Wifi<u64> = Wifi::new(params.validate().expect("legal"), Seed(3));
    let mut out = Ignore(0);
    let mut before = 0;
    for n in 0..120_000u64 {
        if n == 60_000 {
            before = ALLOCATIONS.with(Cell::get);
        }
        let at = Time::ZERO + Span::from_nanos(n * 20_000);
        let station = Node(1 + (n % 4) as u16);
        let (src, dst) = if n % 8 < 6 { (Node(0), station) } else { (station, Node(0)) };
        let packet = Packet {
            len: Bytes::new(1_500),
            src,
            dst: Dest::Node(dst),
            class: AccessClass::BestEffort,
            flow_hash: (n % 16) as u32,
            ecn: Ecn::NotEct,
            payload: n,
        };
        hop.enqueue(at, packet, &mut out);
    }
    assert!(out.0 > 40_000_000, "{} bytes", out.0);
    ALLOCATIONS.with(Cell::get) - before
}

#[test]
fn a_warm_hop_allocates_nothing() {
    for queue in [
        Kind::Fifo { packets: 1_000 },
        Kind::RoundRobin { packets: 250 },
        Kind::FqCodelAirtime(FqCodelParams { packets: 1_000, ..FqCodelParams::default() }),
    ] {
        assert_eq!(allocations(queue), 0, "{queue:?}");
    }
}
