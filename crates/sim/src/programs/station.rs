//! The agent on a station: it takes the tunnel's packets in, acknowledges them, counts frames and reports every slot.

use crate::host::Host;
use crate::payload::Tunnel;
use lasthop_laws::{ReceiverLaw, ReceiverSetup};
use lasthop_signals::{Arrival, Feedback, FrameSource, Node, Received, ReceivedFrame, Signal, StationFeedback};
use lasthop_transport::tunnel::AckRule;
use lasthop_units::{Bytes, Rate, Seed, Span, Time};
use std::collections::BTreeMap;

/// The agent of one station.
#[derive(Clone)]
pub struct Agent {
    node: Node,
    law: Box<dyn ReceiverLaw>,
    /// What stamps its packets, for a law that looks at their times.
    host: Option<Host>,
    received: Received,
    next: u32,
    early: BTreeMap<u32, (usize, Bytes)>,
    highest: u32,
    /// When what has arrived is acknowledged at the latest.
    ack_at: Option<Time>,
    /// Packets that have not been acknowledged.
    owed: u32,
    acknowledged: Time,
    /// When the law wants to be woken.
    revisit: Time,
}

/// A station's host: interrupts and a packet's cost amid of what the estimator of frames was trained with.
const MODERATION: Span = Span::from_micros(50);
const PACKET_US: f64 = 2.0;

/// The host of station `node` where frames are told from arrival times: it stamps packets as a kernel does.
pub fn host(source: FrameSource, node: Node, seed: Seed) -> Option<Host> {
    let dice = || seed.stream(&format!("station{}/host", node.0));
    (source == FrameSource::Timestamps).then(|| Host::new(dice(), MODERATION, PACKET_US))
}

/// The first slot of station `node`, which lasts a little longer than the others: stations do not report at the very same moment, each
/// waits longer than the one before it. A station that receives nothing says so for a while, and then says nothing.
pub fn slots(node: Node, interval: Span) -> ReceiverSetup {
    let stagger = STAGGER * (u64::from(node.0) % STAGGERS);
    ReceiverSetup {
        node,
        slot: 1,
        start: Time::ZERO,
        end: Time::ZERO + interval + stagger,
        interval,
        idle_slots: Some(3),
    }
}

/// When it acknowledges: by the rule of the agent on a real station.
const ACKS: AckRule = AckRule::RARE;
const STAGGER: Span = Span::from_micros(700);
const STAGGERS: u64 = 25;

impl Agent {
    /// The agent of station `node` with this law.
    pub fn new(node: Node, law: Box<dyn ReceiverLaw>, host: Option<Host>) -> Agent {
        let revisit = law.decide(Time::ZERO).revisit.unwrap_or(Time::MAX);
        Agent {
            node,
            law,
            host,
            received: Received::default(),
            next: 0,
            early: BTreeMap::new(),
            highest: 0,
            ack_at: None,
            owed: 0,
            acknowledged: Time::ZERO,
            revisit,
        }
    }

    /// When the agent wants to be woken.
    pub fn next_event(&self) -> Time {
        self.ack_at.map_or(self.revisit, |at| at.min(self.revisit))
    }

    /// The radio has received a frame with `packets` packets at `rate`.
    pub fn frame(&mut self, now: Time, packets: u16, rate: Rate) {
        let packets = u32::from(packets);
        let frame = ReceivedFrame { packets, certain: packets, in_part: false, rate: Some(rate) };
        self.law.sense(now, &Signal::Frame(frame));
    }

    /// A packet of the proxy has arrived, `len` octets that left it at `sent` as the `packet`-th for this station.
    pub fn counted(&mut self, now: Time, (sent, packet): (Time, u32), len: Bytes) {
        self.received.given = self.received.given.max(u64::from(packet) + 1);
        self.received.packets += 1;
        let at = self.host.as_mut().map_or(now, |host| host.stamp(now));
        self.law.sense(now, &Signal::Arrival(Arrival { at, sent: Some(sent), len }));
        self.law.sense(now, &Signal::OneWay(now.since(sent)));
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

    /// What is due now: an acknowledgement, what the law has to tell, or both.
    pub fn wake(&mut self, now: Time) -> (Option<Tunnel>, Option<StationFeedback>) {
        let ack = self.ack_at.is_some_and(|at| at <= now).then(|| self.acknowledge(now));
        if now < self.revisit {
            return (ack, None);
        }
        self.law.sense(now, &Signal::Received(self.received));
        self.law.sense(now, &Signal::Wakeup);
        let decision = self.law.decide(now);
        self.revisit = decision.revisit.unwrap_or(Time::MAX);
        let told = match decision.feedback {
            Some(Feedback::Station(account)) => Some(account),
            _ => None,
        };
        (ack, told)
    }
}
