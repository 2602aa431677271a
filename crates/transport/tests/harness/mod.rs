//! One connection over one wired link: the smallest world in which a law can be watched.

// Each test program and the benchmark use a part of this.
#![allow(dead_code)]

pub mod abuse;
pub mod link;
pub mod net;

use lasthop_laws::SenderLaw;
use lasthop_laws::by_name;
use lasthop_laws::tcp::Setup;
use lasthop_radio::{AccessClass, Dest, Drop, Ecn, Hop, NextEvent, Outbox, Packet, RxInfo, wired};
use lasthop_signals::Node;
use lasthop_transport::{Config, Connection};
use lasthop_units::{Bytes, Rate, Seed, Span, Time};
use lasthop_wire::tcp::TcpHeader;
use std::ops::Range;

const SENDER: Node = Node(0);
const RECEIVER: Node = Node(1);

/// The path of the kernel's own measurements: 50 Mbit/s, 10 ms each way, a FIFO of 1000 packets.
pub const BOTTLENECK: wired::Params =
    wired::Params { rate: Rate::from_mbit(50), delay: Span::from_millis(10), queue_packets: 1000 };

/// A sender and a receiver, and the wire between them.
pub struct World {
    pub sender: Connection,
    pub receiver: Connection,
    wire: wired::Wire<TcpHeader>,
    pub log: Log,
    now: Time,
}

/// What was seen on the wire.
#[derive(Default)]
pub struct Log {
    arrived: Vec<(Node, TcpHeader)>,
    params: Option<wired::Params>,
    /// Queueing delay of each packet to the receiver, in milliseconds, with the time it came to the queue.
    pub queue_ms: Vec<(Time, f64)>,
    pub dropped: u64,
}

impl Outbox<TcpHeader> for Log {
    fn deliver(&mut self, at: Time, to: Node, packet: Packet<TcpHeader>, rx: &RxInfo) {
        if to == RECEIVER {
            let params = self.params.expect("set by the world");
            let unloaded = params.delay + params.rate.time_for(packet.len).expect("not zero");
            let queued = at.since(rx.queued_at).saturating_sub(unloaded);
            self.queue_ms.push((rx.queued_at, queued.as_millis_f64()));
        }
        self.arrived.push((to, packet.payload));
    }

    fn dropped(&mut self, _at: Time, _packet: Packet<TcpHeader>, _why: Drop) {
        self.dropped += 1;
    }
}

impl World {
    /// The law called `law` over `path`, the reverse direction alike.
    pub fn new(law: &str, path: wired::Params, seed: u64) -> World {
        World::with(law, path, seed, Config::default(), Config::default())
    }

    /// As `new`, with the two ends' configurations.
    pub fn with(law: &str, path: wired::Params, seed: u64, sender: Config, receiver: Config) -> World {
        let setup = Setup::new(Bytes::new(u64::from(sender.mss)), Seed(seed).stream("sender"));
        World::with_law(by_name(law, setup).expect("a known law"), path, seed, sender, receiver)
    }

    /// As `with`, under a law that was made elsewhere.
    pub fn with_law(
        law: Box<dyn SenderLaw>,
        path: wired::Params,
        seed: u64,
        sender: Config,
        receiver: Config,
    ) -> World {
        let setup = Setup::new(Bytes::new(u64::from(sender.mss)), Seed(seed).stream("receiver"));
        let silent = by_name("reno", setup).expect("a known law");
        World {
            sender: Connection::connect(Time::ZERO, sender, law),
            receiver: Connection::accept(Time::ZERO, receiver, silent),
            wire: wired::Wire::new(SENDER, RECEIVER, path, path),
            log: Log { params: Some(path), ..Log::default() },
            now: Time::ZERO,
        }
    }

    /// The time it is in this world.
    pub fn now(&self) -> Time {
        self.now
    }

    /// Runs until `end`, or until nothing will ever happen again.
    pub fn run_until(&mut self, end: Time) {
        self.transmit();
        while let Some(next) = self.next_event().filter(|next| *next <= end) {
            self.now = self.now.max(next);
            self.step();
        }
        self.now = end;
    }

    fn next_event(&self) -> Option<Time> {
        let at = |event: Option<Time>| event.unwrap_or(Time::MAX);
        let ends = at(self.sender.next_timeout()).min(at(self.receiver.next_timeout()));
        let next = at(self.wire.next_event()).min(ends);
        (next != Time::MAX).then_some(next)
    }

    fn step(&mut self) {
        self.wire.advance(self.now, &mut self.log);
        let mut arrived = std::mem::take(&mut self.log.arrived);
        for (to, segment) in arrived.drain(..) {
            let end = if to == SENDER { &mut self.sender } else { &mut self.receiver };
            end.on_segment(self.now, &segment);
            self.transmit();
        }
        self.log.arrived = arrived;
        for end in [&mut self.sender, &mut self.receiver] {
            if end.next_timeout().is_some_and(|at| at <= self.now) {
                end.on_timeout(self.now);
            }
        }
        self.transmit();
    }

    fn transmit(&mut self) {
        for (end, src, dst) in [(&mut self.sender, SENDER, RECEIVER), (&mut self.receiver, RECEIVER, SENDER)] {
            while let Some(segment) = end.poll_transmit(self.now) {
                let packet = Packet {
                    len: length(&segment),
                    src,
                    dst: Dest::Node(dst),
                    class: AccessClass::BestEffort,
                    flow_hash: 0,
                    ecn: Ecn::NotEct,
                    payload: segment,
                };
                self.wire.enqueue(self.now, packet, &mut self.log);
            }
        }
    }

    /// Mean and maximum queueing delay, in milliseconds, of what came to the queue in `when`.
    pub fn queue(&self, when: Range<Time>) -> (f64, f64) {
        let delays = || self.log.queue_ms.iter().filter(|(at, _)| when.contains(at)).map(|(_, ms)| *ms);
        let count = delays().count().max(1);
        (delays().sum::<f64>() / count as f64, delays().fold(0.0, f64::max))
    }
}

/// The packet that a segment makes: IPv4 and TCP headers, options, payload.
fn length(segment: &TcpHeader) -> Bytes {
    let timestamps = if segment.options.timestamps.is_some() { 12 } else { 0 };
    let sack = match segment.options.sack.as_slice().len() as u64 {
        0 => 0,
        blocks => 4 + 8 * blocks,
    };
    Bytes::new(20 + 20 + timestamps + sack + u64::from(segment.payload_len))
}
