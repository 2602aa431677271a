//! What a PBE receiver tells: what TCP can have of its cell, and whether the cell is the narrowest place.
//! Source:     \[pbe\], section 4, in part reconstructed (see [`super`]).
//! Equations:  in the files beside this one
//! Symbols:    RTprop, the least round trip of the last 10 s -> `round_trip`, 40 ms until one is known
//! Deviations: averages are over at most a second. `CellCapacity::restart` stays set for a round trip, since the
//!             segment that tells it may be lost. A receiver that has heard nothing of its cell for 200 ms tells that it
//!             does not know. C_t is at least what C_f leaves beside repeats: beside a terminal with a queue that never
//!             empties nothing is idle, and P_a is what this one has asked for. Flows of one terminal have equal parts
//!             of what it can have. Of a cell that is full of others it tells the least rate that is not zero.
//! Validity:   subframes of each carrier in order.     Checked by: tests::*, tests/integration/conformance

use super::bottleneck::{Bottleneck, DelaySample, Narrowest};
use super::capacity::{Capacity, Estimate, SILENT};
use super::delay::{Delay, Least};
use super::overhead::Overhead;
use super::translate::{self, Repeats};
use super::{Params, SUBFRAME};
use crate::{Decision, ReceiverLaw, Why};
use lasthop_signals::{Arrival, CellCapacity, CellSubframe, Feedback, Signal};
use lasthop_units::{Rate, Span, Time};

/// RTprop until one is known.
const SOME_ROUND_TRIP: Span = Span::from_millis(40);
/// The longest that averages are over.
const LONGEST: Span = Span::from_secs(1);
/// The part of its fair share that a terminal has which has it.
const SHARE: f64 = 0.9;
/// The part of a cell that may be idle where nothing is.
const IDLE: f64 = 0.05;
/// What is told of a cell that has nothing for the terminal: zero would say that it is not known.
const LEAST: Rate = Rate::from_bps(1000);

/// The law of one receiver.
#[derive(Clone, Debug)]
pub struct Receiver {
    params: Params,
    capacity: Capacity,
    repeats: Repeats,
    overhead: Overhead,
    delay: Delay,
    bottleneck: Bottleneck,
    round_trips: Least<Span>,
    round_trip: Span,
    /// Until when a carrier counts as new.
    restart: Option<Time>,
    /// What is known of the cell; `None` while no carrier is.
    seen: Option<Estimate>,
    /// Flows that share it.
    flows: u32,
    /// When the last subframe was heard.
    heard: Time,
    /// Whether a capacity was told.
    told: bool,
    feedback: Option<CellCapacity>,
}

impl Receiver {
    /// A receiver that has seen nothing.
    pub fn new(params: Params) -> Receiver {
        Receiver {
            params,
            capacity: Capacity::default(),
            repeats: Repeats::default(),
            overhead: Overhead::default(),
            delay: Delay::new(),
            bottleneck: Bottleneck::new(),
            round_trips: Least::new(),
            round_trip: SOME_ROUND_TRIP,
            restart: None,
            seen: None,
            flows: 1,
            heard: Time::ZERO,
            told: false,
            feedback: None,
        }
    }

    fn on_subframe(&mut self, now: Time, subframe: &CellSubframe) {
        let length = self.round_trip.min(LONGEST).as_nanos() / SUBFRAME.as_nanos();
        if self.capacity.on_subframe(now, subframe, length) {
            self.restart = Some(now + self.round_trip);
            self.bottleneck.restart();
        }
        self.repeats.on_subframe(subframe);
        self.overhead.on_subframe(now, subframe);
        self.heard = now;
        self.seen = self.capacity.estimate(now, self.params.user_filter);
        self.tell(now);
    }

    fn on_arrival(&mut self, now: Time, arrival: &Arrival) {
        self.overhead.on_packet(now, arrival.len);
        let Some(sent) = arrival.sent else { return };
        let (delay, late) = self.delay.on_packet(now, arrival.at, sent, &self.params);
        let Some(seen) = self.seen else { return };
        let sample = DelaySample {
            delay: Span::from_nanos(delay),
            late,
            explained: self.explains(now, late.then(|| Span::from_nanos(delay))),
            capacity: self.transport(&seen, self.available(&seen)),
            round_trip: self.round_trip,
            jitter: self.params.jitter,
        };
        self.bottleneck.on_packet(now, arrival.len, &sample);
        self.tell(now);
    }

    /// The cell explains that a packet has waited so long: meanwhile the terminal had its fair share, and nothing was idle. Of a packet in time:
    /// over the window of the averages.
    fn explains(&self, now: Time, waited: Option<Span>) -> bool {
        let count = waited.map_or(u64::MAX, |waited| waited.as_nanos() / SUBFRAME.as_nanos() + 1).min(1 << 32);
        let [own, share, idle, all] = self.capacity.lately(now, count, self.params.user_filter);
        own >= SHARE * share && idle <= IDLE * all
    }

    /// C_p, or what it has beside full queues where that is more.
    fn available(&self, seen: &Estimate) -> f64 {
        let least = if self.params.least_fair { seen.least } else { 0.0 };
        seen.available.max(least)
    }

    /// What a flow can have of so many bits a subframe.
    fn transport(&self, seen: &Estimate, physical: f64) -> Rate {
        let most = self.params.overhead;
        let overhead = if self.params.measured_overhead { self.overhead.get(most) } else { most };
        let bits = translate::transport((self.params.translation, overhead), &self.repeats, seen.block, physical);
        Rate::from_bps(1).scale(bits / SUBFRAME.as_secs_f64() / f64::from(self.flows))
    }

    /// What was known of the cell is old.
    fn forget(&mut self, now: Time) {
        if self.seen.is_some() && now.since(self.heard) >= SILENT {
            self.seen = None;
            self.bottleneck.restart();
            self.tell(now);
        }
    }

    fn tell(&mut self, now: Time) {
        let known = self.seen.map(|seen| CellCapacity {
            available: self.transport(&seen, self.available(&seen)).max(LEAST),
            fair: self.transport(&seen, seen.fair).max(LEAST),
            elsewhere: self.bottleneck.place() == Narrowest::Internet,
            restart: self.restart.is_some_and(|until| now < until),
            coarse: seen.coarse,
        });
        self.told |= known.is_some();
        self.feedback = known.or(self.told.then_some(CellCapacity::UNKNOWN));
    }
}

impl ReceiverLaw for Receiver {
    fn sense(&mut self, now: Time, signal: &Signal) {
        self.feedback = None;
        self.forget(now);
        match signal {
            Signal::Subframe(subframe) => self.on_subframe(now, subframe),
            Signal::Arrival(arrival) => self.on_arrival(now, arrival),
            Signal::RoundTrip(round_trip) => {
                self.round_trips.update(now, (*round_trip).max(SUBFRAME));
                self.round_trip = self.round_trips.get(now).unwrap_or(self.round_trip);
            }
            Signal::Flows(flows) => {
                self.flows = (*flows).max(1);
                self.tell(now);
            }
            _ => {}
        }
    }

    fn decide(&self, _now: Time) -> Decision {
        let revisit = self.seen.map(|_| self.heard + SILENT);
        Decision { feedback: self.feedback.map(Feedback::Cell), revisit, ..Decision::unlimited(Why::Unmanaged) }
    }
}

#[cfg(test)]
mod tests {
    use super::super::test_cell::{FULL, OWN, dci, repeat, subframe};
    use super::*;
    use lasthop_signals::Rnti;
    use lasthop_units::Bytes;
    use lasthop_units::brief::at;

    /// A cell of 100 PRB, 753 bits each: what the receiver tells at last if it has `prb` of them in a subframe, and another terminal `others`, and
    /// `packets` come in it, `delay` ms after they were sent.
    fn run(
        law: &mut Receiver,
        ms: std::ops::Range<u64>,
        (prb, others): (u16, u16),
        (packets, delay): (u64, u64),
    ) -> CellCapacity {
        let mut told = None;
        for now in ms {
            let given = |rnti, prb: u16| dci(rnti, prb, u32::from(prb) * FULL / 100);
            let seen = subframe(now, vec![given(OWN, prb), given(Rnti(9), others)]);
            law.sense(at(now), &Signal::Subframe(seen));
            for _ in 0..packets {
                let sent = Some(at(now + 5000 - delay));
                law.sense(at(now), &Signal::Arrival(Arrival { at: at(now), sent, len: Bytes::new(1500) }));
            }
            told = law.decide(at(now)).feedback;
        }
        match told {
            Some(Feedback::Cell(told)) => told,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn it_tells_what_tcp_can_have() {
        let mut law = Receiver::new(Params::default());
        assert_eq!(law.decide(at(0)).feedback, None);
        law.sense(at(0), &Signal::RoundTrip(Span::from_millis(30)));
        assert_eq!(law.decide(at(0)).feedback, None, "nothing of the cell is known");
        let told = run(&mut law, 0..100, (60, 40), (3, 8));
        // 45 225 and 37 688 bits a subframe, over 1.068.
        assert_eq!((told.available.as_bps() / 10_000, told.fair.as_bps() / 10_000), (4234, 3528));
        assert_eq!((told.elsewhere, told.restart, told.coarse), (false, false, false));
    }

    #[test]
    fn a_cell_that_is_not_heard_is_not_known() {
        let mut law = Receiver::new(Params::default());
        run(&mut law, 0..100, (60, 40), (3, 8));
        assert_eq!(law.decide(at(99)).revisit, Some(at(299)));
        law.sense(at(298), &Signal::Wakeup);
        assert_eq!(law.decide(at(298)).feedback, None);
        law.sense(at(299), &Signal::Wakeup);
        let decision = law.decide(at(299));
        assert_eq!((decision.feedback, decision.revisit), (Some(Feedback::Cell(CellCapacity::UNKNOWN)), None));
        let arrival = Arrival { at: at(300), sent: Some(at(5292)), len: Bytes::new(1500) };
        law.sense(at(300), &Signal::Arrival(arrival));
        assert_eq!(law.decide(at(300)).feedback, None, "once");
        assert!(!run(&mut law, 400..440, (60, 40), (3, 8)).available.is_zero());
        // It is heard, and has no place for the terminal.
        law.sense(at(440), &Signal::Subframe(CellSubframe { own: None, ..subframe(440, vec![]) }));
        assert_eq!(law.decide(at(440)).feedback, Some(Feedback::Cell(CellCapacity::UNKNOWN)));
    }

    #[test]
    fn flows_share_what_their_terminal_has() {
        let mut law = Receiver::new(Params::default());
        let alone = run(&mut law, 0..100, (60, 40), (3, 8));
        law.sense(at(100), &Signal::Flows(2));
        let Some(Feedback::Cell(told)) = law.decide(at(100)).feedback else { panic!("it tells") };
        assert_eq!(
            (told.available.as_bps(), told.fair.as_bps()),
            (alone.available.as_bps() / 2, alone.fair.as_bps() / 2)
        );
    }

    #[test]
    fn a_cell_that_others_fill_is_known() {
        let mut law = Receiver::new(Params { least_fair: false, ..Params::default() });
        let told = run(&mut law, 0..100, (0, 100), (0, 8));
        assert_eq!(told.available, LEAST);
        assert!(told.fair > Rate::from_mbit(30), "{told:?}");
    }

    #[test]
    fn beside_a_full_queue_it_gets_its_share_without_repeats() {
        let mut law = Receiver::new(Params::default());
        for n in 0..100 {
            // The other one's blocks come again in every fifth subframe.
            let other = if n % 5 == 0 { repeat(Rnti(9), 90) } else { dci(Rnti(9), 90, 60_000) };
            law.sense(at(n), &Signal::Subframe(subframe(n, vec![dci(OWN, 10, FULL / 10), other])));
        }
        let Some(Feedback::Cell(told)) = law.decide(at(99)).feedback else { panic!("it tells") };
        // (100 - 90 / 5) / 2 = 41 of 100 PRB, where P_a is 10.
        assert!((told.available.as_mbit_f64() / (0.41 * 75.37 / 1.068) - 1.0).abs() < 0.01, "{told:?}");
    }

    #[test]
    fn late_packets_tell_of_another_place_unless_the_cell_is_full() {
        // Half of what it could have: 3 packets are 36 Mbit/s.
        let mut law = Receiver::new(Params::default());
        assert!(!run(&mut law, 0..200, (50, 0), (3, 8)).elsewhere);
        assert!(!run(&mut law, 200..203, (50, 0), (3, 40)).elsewhere);
        assert!(run(&mut law, 203..260, (50, 0), (3, 40)).elsewhere);
        // The same delay where it has all that there is, and where it has its half of a full cell.
        for given in [(100, 0), (50, 50)] {
            let mut law = Receiver::new(Params::default());
            run(&mut law, 0..200, given, (3, 8));
            assert!(!run(&mut law, 200..260, given, (3, 40)).elsewhere, "{given:?}");
        }
        // A fifth of a full cell is less than its share: something else keeps it from it.
        let mut law = Receiver::new(Params::default());
        run(&mut law, 0..200, (20, 80), (1, 8));
        assert!(run(&mut law, 200..260, (20, 80), (1, 40)).elsewhere);
    }

    #[test]
    fn a_new_carrier_asks_for_another_start() {
        let mut law = Receiver::new(Params::default());
        run(&mut law, 0..100, (100, 0), (6, 8));
        let mut restarts = Vec::new();
        for now in 100..200 {
            let first = subframe(now, vec![dci(OWN, 100, FULL)]);
            let second = CellSubframe { carrier: 1, ..first.clone() };
            law.sense(at(now), &Signal::Subframe(first));
            law.sense(at(now), &Signal::Subframe(second));
            let Some(Feedback::Cell(told)) = law.decide(at(now)).feedback else { panic!("it tells") };
            if told.restart {
                restarts.push(now);
            }
            assert_eq!(told.fair.as_bps() / 10_000, 14_115, "twice 75 376 bits a subframe over 1.068: {told:?}");
        }
        assert_eq!((restarts.first(), restarts.last(), restarts.len()), (Some(&100), Some(&139), 40));
    }

    /// PRB pairs of the cell in Figure 5, and bits of each.
    const ALL: u16 = 90;
    const PAIR: u32 = 500;

    /// A carrier of 90 PRB in which these have so many.
    fn shared(number: u64, given: &[(Rnti, u16)], own: Rnti) -> Signal {
        let dcis = given.iter().map(|(rnti, prb)| dci(*rnti, *prb, PAIR * u32::from(*prb))).collect();
        Signal::Subframe(CellSubframe { prb: ALL, own: Some(own), ..subframe(number, dcis) })
    }

    /// Figure 5: a flow ends in subframe 6; the two others see it in 7 and share its part from 8 on. One of them meets another limit in 9: the
    /// other takes 1 / N of what is left in each round of two subframes. The law counts terminals over forty subframes, in
    /// which everything here lasts as long as in one of the figure.
    #[test]
    fn what_a_flow_leaves_is_shared_out() {
        const STEP: u64 = 40;
        let [one, two, gone] = [1, 2, 3].map(Rnti);
        let mut laws = [one, two].map(|own| (own, Receiver::new(Params::default())));
        let (mut asked, mut idle) = ([30_u16; 2], Vec::new());
        for n in 1..=12 {
            let first = if n >= 9 { 29 } else { asked[0] };
            let given = [(one, first), (two, asked[1]), (gone, if n <= 6 { 30 } else { 0 })];
            idle.push(ALL - given.iter().map(|(_, prb)| prb).sum::<u16>());
            for ((own, law), asked) in laws.iter_mut().zip(&mut asked) {
                (STEP * n..STEP * (n + 1)).for_each(|ms| law.sense(at(ms), &shared(ms, &given, *own)));
                let Some(Feedback::Cell(told)) = law.decide(at(STEP * (n + 1) - 1)).feedback else {
                    panic!("it tells")
                };
                // What is told is sent, with the headers, after a round trip.
                if n % 2 == 1 {
                    let bits = told.available.as_bps() as f64 / 1000.0 * (1.0 + law.params.overhead);
                    *asked = (bits / f64::from(PAIR)).round() as u16;
                }
            }
        }
        assert_eq!(idle[..8], [0, 0, 0, 0, 0, 0, 30, 0]);
        assert_eq!(idle[8..], [16, 8, 8, 4], "P' in 9, P' / N in 10, P' / N^2 in 12");
    }
}
