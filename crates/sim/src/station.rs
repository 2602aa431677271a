//! The agent on a station: it takes the tunnel's packets in, acknowledges them, counts frames and reports every slot.

use crate::cargo::Tunnel;
use crate::host::Host;
use lasthop_laws::aggregation::timestamps::{Arrival, Arrivals};
use lasthop_signals::{FrameSource, Node, StationFeedback};
use lasthop_transport::tunnel::AckRule;
use lasthop_units::{Bytes, Rate, Seed, Span, Time};
use std::collections::BTreeMap;

/// The agent of one station.
#[derive(Clone)]
pub struct Agent {
    node: Node,
    interval: Span,
    frames: Frames,
    slot: Slot,
    number: u32,
    next: u32,
    early: BTreeMap<u32, (usize, Bytes)>,
    highest: u32,
    /// Packets of the proxy up to the last that has arrived, those that have not included.
    given: u64,
    /// When what has arrived is acknowledged at the latest.
    ack_at: Option<Time>,
    /// Packets that have not been acknowledged.
    owed: u32,
    acknowledged: Time,
    /// Slots in a row without a frame.
    empty: u32,
    report_at: Time,
}

/// How a station knows its frames.
#[derive(Clone)]
pub enum Frames {
    /// From the radio, as a monitor interface shows it.
    Radio(Seen),
    /// From the times at which its kernel stamps packets.
    Stamps(Box<(Host, Arrivals)>),
}

/// The frames of a slot.
#[derive(Clone, Copy, Default)]
pub struct Seen {
    frames: u32,
    packets: u64,
    squared: u64,
    least: u16,
    most: u16,
    inverse: f64,
}

/// What one slot has brought.
#[derive(Clone, Copy, Default)]
struct Slot {
    start: Time,
    /// [`Agent::given`] when it began.
    given: u64,
    received: u64,
    delay: Span,
    delay_max: Span,
}

/// A station's host: interrupts and a packet's cost amid of what the estimator of frames was trained with.
const MODERATION: Span = Span::from_micros(50);
const PACKET_US: f64 = 2.0;

impl Frames {
    /// Of station `node`, told in this way.
    pub fn new(source: FrameSource, node: Node, seed: Seed) -> Frames {
        match source {
            FrameSource::Radiotap => Frames::Radio(Seen::default()),
            FrameSource::Timestamps => {
                let dice = seed.stream(&format!("station{}/host", node.0));
                Frames::Stamps(Box::new((Host::new(dice, MODERATION, PACKET_US), Arrivals::default())))
            }
        }
    }

    /// The account of the slot from `start` to `end`, as far as frames tell.
    fn take(&mut self, station: Node, number: u32, start: Time, end: Time) -> StationFeedback {
        match self {
            Frames::Stamps(stamps) => stamps.1.feedback(station, number, start, end),
            Frames::Radio(seen) => {
                let seen = std::mem::take(seen);
                StationFeedback {
                    frames: seen.frames,
                    packets: seen.packets,
                    packets_squared: seen.squared,
                    min_packets: seen.least,
                    max_packets: seen.most,
                    inverse_rate_sum: seen.inverse,
                    ..StationFeedback::empty(station, number, start, end)
                }
            }
        }
    }
}

/// When it acknowledges: by the rule of the agent on a real station.
const ACKS: AckRule = AckRule::RARE;
/// Stations do not report at the very same moment: each waits this much longer than the one before it.
const STAGGER: Span = Span::from_micros(700);
const STAGGERS: u64 = 25;

impl Agent {
    /// The agent of station `node` with slots of `interval`.
    pub fn new(node: Node, interval: Span, frames: Frames) -> Agent {
        let stagger = STAGGER * (u64::from(node.0) % STAGGERS);
        Agent {
            node,
            interval,
            frames,
            slot: Slot::default(),
            number: 0,
            next: 0,
            early: BTreeMap::new(),
            highest: 0,
            given: 0,
            ack_at: None,
            owed: 0,
            acknowledged: Time::ZERO,
            empty: u32::MAX,
            report_at: Time::ZERO + interval + stagger,
        }
    }

    /// When the agent wants to be woken.
    pub fn next_event(&self) -> Time {
        self.ack_at.map_or(self.report_at, |at| at.min(self.report_at))
    }

    /// The radio has received a frame with `packets` packets at `rate`.
    pub fn frame(&mut self, packets: u16, rate: Rate) {
        let Frames::Radio(slot) = &mut self.frames else { return };
        slot.frames += 1;
        slot.packets += u64::from(packets);
        slot.squared += u64::from(packets) * u64::from(packets);
        slot.least = if slot.frames == 1 { packets } else { slot.least.min(packets) };
        slot.most = slot.most.max(packets);
        slot.inverse += 1.0 / rate.as_bps().max(1) as f64;
    }

    /// A packet of the proxy has arrived, `len` octets that left it at `sent` as the `packet`-th for this station.
    pub fn counted(&mut self, now: Time, (sent, packet): (Time, u32), len: Bytes) {
        self.given = self.given.max(u64::from(packet) + 1);
        if let Frames::Stamps(stamps) = &mut self.frames {
            let (host, arrivals) = stamps.as_mut();
            arrivals.arrived(Arrival { at: host.stamp(now), sent: Some(sent), len });
        }
        let delay = now.since(sent);
        self.slot.received += 1;
        self.slot.delay += delay;
        self.slot.delay_max = self.slot.delay_max.max(delay);
    }

    /// Data of the tunnel has arrived. `deliver` is told what can be handed to applications, in order. Returns an
    /// acknowledgement that should leave at once.
    pub fn data(
        &mut self,
        now: Time,
        number: u32,
        part: (usize, Bytes),
        mut deliver: impl FnMut(usize, Bytes),
    ) -> Option<Tunnel> {
        self.ack_at.get_or_insert(now + ACKS.delay);
        self.owed += 1;
        if number < self.next {
            return None;
        }
        self.highest = self.highest.max(number);
        self.early.insert(number, part);
        while let Some((connection, len)) = self.early.remove(&self.next) {
            self.next += 1;
            deliver(connection, len);
        }
        let complains = !self.early.is_empty() && now.since(self.acknowledged) >= ACKS.between_gaps;
        (complains || self.owed >= ACKS.packets).then(|| self.acknowledge(now))
    }

    fn acknowledge(&mut self, now: Time) -> Tunnel {
        (self.ack_at, self.owed, self.acknowledged) = (None, 0, now);
        let missing = (self.next..self.highest).filter(|number| !self.early.contains_key(number)).take(64).collect();
        Tunnel::Ack { station: self.node, next: self.next, missing }
    }

    /// What is due now: an acknowledgement, the account of a slot, or both.
    pub fn wake(&mut self, now: Time) -> (Option<Tunnel>, Option<StationFeedback>) {
        let ack = self.ack_at.is_some_and(|at| at <= now).then(|| self.acknowledge(now));
        if now < self.report_at {
            return (ack, None);
        }
        self.report_at += self.interval;
        let slot = std::mem::replace(&mut self.slot, Slot { start: now, given: self.given, ..Slot::default() });
        self.number += 1;
        let frames = self.frames.take(self.node, self.number, slot.start, now);
        self.empty = if slot.received > 0 || frames.frames > 0 { 0 } else { self.empty.saturating_add(1) };
        // A station that receives nothing says so for a while, and then says nothing.
        if self.empty > 3 {
            return (ack, None);
        }
        let mean = (slot.received > 0).then(|| slot.delay / slot.received);
        let feedback = StationFeedback {
            received: slot.received,
            lost: (self.given - slot.given).saturating_sub(slot.received),
            highest_sequence: self.given.saturating_sub(1),
            delay_mean: mean,
            delay_max: mean.map(|_| slot.delay_max),
            ..frames
        };
        (ack, Some(feedback))
    }
}
