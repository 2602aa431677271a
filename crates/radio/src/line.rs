//! A last hop of fixed rate, delay and loss: a link to each station, alike in both directions.
//! Source:     the textbook link; what `tc netem rate R delay D loss P` makes of an interface.
//! Equations:  as of [`crate::wired`], without changes and jitter.
//! Deviations: none.     Validity: any rate > 0.     Checked by: tests::*

use crate::plan;
use crate::queue::{HopQueue, Kind};
use crate::star::Star;
use crate::wired::{Impairments, Params, Wire};
use lasthop_units::{Rate, Seed, Span};

/// Links from the access point to the stations.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// Rate in each direction.
    pub rate: Rate,
    /// Delay in each direction.
    pub delay: Span,
    /// Probability that a packet is lost, each by itself.
    pub loss: f64,
    /// Packets that wait at each end, beside the one being sent.
    pub packets: usize,
}

impl plan::Build for Plan {
    type Model<P: Clone> = Star<Wire<P>>;

    fn build<P: Clone>(self, stations: u16, seed: Seed) -> Star<Wire<P>> {
        let line = Params { rate: self.rate, delay: self.delay, queue_packets: self.packets };
        Star::new(stations, line, line).impaired(&Impairments { loss: self.loss, ..Impairments::default() }, seed)
    }
}

impl plan::Plan for Plan {
    fn is(&self) -> &'static str {
        "a line"
    }

    fn least_rate(&self) -> Rate {
        self.rate
    }

    fn queue(&self) -> Option<HopQueue> {
        Some(HopQueue::Stations(Kind::Fifo { packets: self.packets }))
    }

    fn set_queue(&mut self, queue: HopQueue) -> bool {
        let HopQueue::Stations(Kind::Fifo { packets }) = queue else { return false };
        self.packets = packets;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Build as _;
    use crate::{AccessClass, Dest, Drop, Ecn, Hop as _, Outbox, Packet, RxInfo};
    use lasthop_signals::Node;
    use lasthop_units::{Bytes, Time};

    #[derive(Default)]
    struct Log(Vec<Time>, usize);

    impl Outbox<()> for Log {
        fn deliver(&mut self, at: Time, _: Node, _: Packet<()>, _: &RxInfo) {
            self.0.push(at);
        }
        fn dropped(&mut self, _: Time, _: Packet<()>, _: Drop) {
            self.1 += 1;
        }
    }

    #[test]
    fn packets_take_rate_and_delay_and_some_are_lost() {
        let plan = Plan { rate: Rate::from_mbit(12), delay: Span::from_millis(5), loss: 0.25, packets: 5000 };
        let (mut hop, mut log) = (plan.build(1, Seed(1)), Log::default());
        for _ in 0..4000 {
            let (len, class, ecn) = (Bytes::new(1500), AccessClass::BestEffort, Ecn::NotEct);
            let (src, dst) = (Node(0), Dest::Node(Node(1)));
            hop.enqueue(Time::ZERO, Packet { len, src, dst, class, flow_hash: 0, ecn, payload: () }, &mut log);
        }
        hop.advance(Time::ZERO + Span::from_secs(10), &mut log);
        assert_eq!(log.0.len() + log.1, 4000);
        assert!((900..1100).contains(&log.1), "{} lost", log.1);
        // A packet takes 1 ms on the line, lost or not.
        assert!(log.0.iter().all(|at| at.since(Time::ZERO).as_nanos() % 1_000_000 == 0));
        assert!(log.0[0] >= Time::ZERO + Span::from_millis(6));
    }
}
