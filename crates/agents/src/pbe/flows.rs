//! The connections that are told for: each has a law, which decides what its segments tell.

use super::abi::{MOST_FLOWS, News, What};
use super::error::Error;
use lasthop_laws::{Choice, ReceiverSetup};
use lasthop_signals::{CellSubframe, Node, Signal};
use lasthop_transport::{ReceiverFeedback, Sharing};
use lasthop_units::{Span, Time};
use lasthop_wire::tcp::Capacity;
use std::collections::BTreeMap;

/// A connection that has got nothing for so long is shown no subframes: what it tells becomes unknown, and is known again a subframe after
/// it goes on.
const IDLE: Span = Span::from_secs(10);
/// How often it is looked how many share.
const LOOK: Span = Span::from_millis(100);

/// What segments tell: the option's value without a number.
pub(super) type Value = [u8; 4];

/// All connections, by the kernel's number of their socket.
pub(super) struct Flows {
    law: Choice,
    each: BTreeMap<u64, Flow>,
    look: Time,
    arrived: u64,
}

struct Flow {
    receiver_feedback: ReceiverFeedback,
    round_trip: Option<Span>,
    /// When it began, or got something last.
    active: Time,
    /// What the kernel has of it.
    told: Value,
}

impl Flows {
    /// None yet; each will have this law.
    pub(super) fn new(law: Choice) -> Flows {
        Flows { law, each: BTreeMap::new(), look: Time::ZERO, arrived: 0 }
    }

    /// Packets that have come so far.
    pub(super) fn arrived(&self) -> u64 {
        self.arrived
    }

    /// Something has happened to a connection.
    pub(super) fn on_news(&mut self, now: Time, news: &News) -> Result<(), Error> {
        match news.what {
            What::Begun { round_trip } if self.each.len() < MOST_FLOWS => {
                let (interval, end) = (Span::MAX, Time::MAX);
                let setup = ReceiverSetup { node: Node(0), slot: 0, start: now, end, interval, idle_slots: None };
                let mut receiver_feedback = ReceiverFeedback::new(self.law.receiver(setup)?);
                if let Some(round_trip) = round_trip {
                    receiver_feedback.sense(now, &Signal::RoundTrip(round_trip));
                }
                self.each.insert(
                    news.cookie,
                    Flow { receiver_feedback, round_trip: None, active: now, told: Value::default() },
                );
            }
            What::Begun { .. } => {}
            What::Over => {
                self.each.remove(&news.cookie);
            }
            What::Arrived { at, packets, len, stamp, round_trip } => {
                self.arrived += u64::from(packets);
                let Some(flow) = self.each.get_mut(&news.cookie) else { return Ok(()) };
                if let Some(round_trip) = round_trip.filter(|new| flow.round_trip.replace(*new) != Some(*new)) {
                    flow.receiver_feedback.sense(at, &Signal::RoundTrip(round_trip));
                }
                (0..packets).for_each(|_| flow.receiver_feedback.on_packet(at, stamp, len));
                flow.active = now;
            }
        }
        Ok(())
    }

    /// A carrier has had a subframe.
    pub(super) fn on_subframe(&mut self, now: Time, subframe: &CellSubframe) {
        let signal = Signal::Subframe(subframe.clone());
        let active = self.each.values_mut().filter(|flow| now.since(flow.active) < IDLE);
        active.for_each(|flow| flow.receiver_feedback.sense(now, &signal));
    }

    /// Time has passed.
    pub(super) fn on_time(&mut self, now: Time) {
        if self.look <= now {
            self.look = now + LOOK;
            let sharing = Sharing::of(self.each.values().map(|flow| flow.receiver_feedback.lately(now)));
            for flow in self.each.values_mut() {
                let own = flow.receiver_feedback.lately(now);
                flow.receiver_feedback.share(now, sharing.with(own));
            }
        }
        self.each.values_mut().for_each(|flow| flow.receiver_feedback.on_timeout(now));
    }

    /// Gives what has changed since the last time. A connection of which `tell` says that the kernel does not have it any more is over.
    pub(super) fn changes(&mut self, mut tell: impl FnMut(u64, Value) -> Result<bool, Error>) -> Result<(), Error> {
        let mut gone = Vec::new();
        for (cookie, flow) in &mut self.each {
            let value =
                flow.receiver_feedback.latest().map_or(Value::default(), |told| Capacity::of(&told, 0).to_bytes());
            if value != flow.told {
                flow.told = value;
                if !tell(*cookie, value)? {
                    gone.push(*cookie);
                }
            }
        }
        gone.iter().for_each(|cookie| drop(self.each.remove(cookie)));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lasthop_laws::Place;
    use lasthop_signals::{Block, Dci, Rnti};
    use lasthop_units::brief::at;
    use lasthop_units::{Bytes, Rate};

    fn flows() -> Flows {
        Flows::new(Choice::named(Place::Receiver, "pbe").expect("a law"))
    }

    fn begin(flows: &mut Flows, ms: u64, cookie: u64) {
        let what = What::Begun { round_trip: Some(Span::from_millis(30)) };
        flows.on_news(at(ms), &News { cookie, what }).expect("a law");
    }

    fn arrive(flows: &mut Flows, ms: u64, cookie: u64, packets: u32) {
        let len = Bytes::new(1500);
        let what = What::Arrived { at: at(ms), packets, len, stamp: Some(ms as u32), round_trip: None };
        flows.on_news(at(ms), &News { cookie, what }).expect("no law is made");
    }

    /// A cell of 100 PRB of 700 bits, of which the terminal has 60 and nobody the others.
    fn subframe(flows: &mut Flows, ms: u64) {
        let block = Block { mcs: 27, redundancy: 0, new_data: true, bits: 42_000 };
        let dci = Dci { rnti: Rnti(100), prb: 60, process: 0, blocks: [Some(block), None] };
        let seen = CellSubframe { carrier: 0, number: ms, prb: 100, own: Some(Rnti(100)), dcis: vec![dci] };
        flows.on_subframe(at(ms), &seen);
    }

    /// What each flow is told.
    fn changes(flows: &mut Flows) -> Vec<(u64, Rate)> {
        let mut all = Vec::new();
        let told = |cookie, value| {
            all.push((cookie, Capacity::parse(value).told().available));
            Ok(true)
        };
        flows.changes(told).expect("no error");
        all
    }

    #[test]
    fn capacity_is_reported_once_and_shared_by_receiving_flows() {
        let mut flows = flows();
        begin(&mut flows, 0, 7);
        begin(&mut flows, 0, 8);
        assert_eq!(changes(&mut flows), []);
        (0..60).for_each(|ms| subframe(&mut flows, ms));
        let told = changes(&mut flows);
        // All of the cell, 70 Mbit/s, less what headers take.
        assert_eq!(told.iter().map(|(cookie, _)| *cookie).collect::<Vec<_>>(), [7, 8]);
        assert!(told.iter().all(|(_, rate)| rate.as_bps().abs_diff(65_543_000) < 200_000), "{told:?}");
        assert_eq!(changes(&mut flows), []);
        arrive(&mut flows, 60, 7, 40);
        arrive(&mut flows, 60, 8, 40);
        flows.on_time(at(61));
        let shared = changes(&mut flows);
        assert!(shared.len() == 2 && shared.iter().all(|(_, rate)| rate.as_bps().abs_diff(32_770_000) < 200_000));
        assert_eq!(flows.arrived(), 80);
        // One goes.
        flows.on_news(at(62), &News { cookie: 8, what: What::Over }).expect("no law is made");
        flows.on_time(at(200));
        assert_eq!(changes(&mut flows).len(), 1);
    }

    #[test]
    fn a_cell_of_which_nothing_is_heard_is_told_to_be_unknown() {
        let mut flows = flows();
        begin(&mut flows, 0, 7);
        (0..60).for_each(|ms| subframe(&mut flows, ms));
        assert_eq!(changes(&mut flows).len(), 1);
        flows.on_time(at(258));
        assert_eq!(changes(&mut flows), []);
        flows.on_time(at(260));
        assert_eq!(changes(&mut flows), [(7, Rate::ZERO)]);
    }

    #[test]
    fn a_connection_that_the_kernel_has_forgotten_is_over() {
        let mut flows = flows();
        begin(&mut flows, 0, 7);
        (0..60).for_each(|ms| subframe(&mut flows, ms));
        flows.changes(|_, _| Ok(false)).expect("no error");
        assert!(flows.each.is_empty());
    }
}
