//! What a station tells the proxy's law: an account of the frames that it received in each slot.
//! Source:     \[aggregation\], feedback of the mean aggregation level and data rate by the client at the end of each slot.
//! Equations:  μ_N = sum of N / frames;   1/R = sum of 1/R / frames;   lost = numbers given out - packets received
//! Symbols:    N -> `ReceivedFrame::packets`, R -> `ReceivedFrame::rate`; the sums -> [`StationFeedback`]
//! Deviations: * Sums are told, not means: the proxy's law wants squares, bounds and counts as well.
//!             * A slot of which the radio may not have shown all frames is told to have none, which the proxy's law takes for silence: it
//!               keeps what it knew, rates included. Arrival times would tell less, for what they tell of frames is an estimate, and of
//!               rates nothing in their first slots. Where the next slot lacks frames as well the law must not stand still: that and
//!               those behind it are told from arrival times, as while the radio shows nothing.
//! Validity:   slots of 10 ms to a minute; the world shows [`Signal::Received`] just before the [`Signal::Wakeup`] that ends a slot.
//! Checked by: tests::*, tests/integration/conformance, crates/agents/src/station/frames/tests.rs (a monitor's socket that overflows)

mod counts;

use super::StationParams;
use super::timestamps::Arrivals;
use crate::{Decision, ParamError, Parameters, ReceiverLaw, ReceiverSetup, Settings, Why};
use counts::Counts;
use lasthop_signals::{Feedback, FrameSource, MonitorEvent, Node, Received, Signal, StationFeedback};
use lasthop_units::{Span, Time};

/// The stations' side of the aggregation regulator.
#[derive(Clone, Debug)]
pub struct Station {
    node: Node,
    interval: Span,
    idle_slots: Option<u32>,
    number: u32,
    start: Time,
    end: Time,
    frames: Frames,
    received: Received,
    /// What had been received when the slot began.
    before: Received,
    delays: Delays,
    /// Slots in a row in which nothing came.
    empty: u32,
    due: Option<StationFeedback>,
}

/// How the frames of a slot are known.
#[derive(Clone, Debug)]
enum Frames {
    /// The radio shows them.
    Shown(Box<Shown>),
    /// Arrival times suggest them.
    Suggested(Box<Arrivals>),
}

/// The frames that a radio has shown in this slot, and what stands in for those that it has not.
#[derive(Clone, Debug, Default)]
struct Shown {
    counts: Counts,
    away: Option<Away>,
    /// This slot may lack frames.
    missed: bool,
    /// The last slot lacked frames, and these are the packets since.
    arrivals: Option<Arrivals>,
}

/// The radio shows nothing, or has not in all of this slot.
#[derive(Clone, Debug, Default)]
struct Away {
    arrivals: Arrivals,
    back: bool,
}

/// One-way delays of a slot's packets.
#[derive(Clone, Copy, Debug, Default)]
struct Delays {
    count: u64,
    sum: Span,
    largest: Span,
}

impl Station {
    /// The law of a station that knows its frames in this way, at the beginning of its first slot.
    pub fn new(source: FrameSource, setup: ReceiverSetup) -> Station {
        let ReceiverSetup { node, slot: number, start, end, interval, idle_slots } = setup;
        Station {
            node,
            interval,
            idle_slots,
            number,
            start,
            end,
            frames: match source {
                FrameSource::Radiotap => Frames::Shown(Box::default()),
                FrameSource::Timestamps => Frames::Suggested(Box::default()),
            },
            received: Received::default(),
            before: Received::default(),
            delays: Delays::default(),
            empty: u32::MAX,
            due: None,
        }
    }

    /// The same from what was set.
    pub(super) fn build(settings: &Settings, setup: ReceiverSetup) -> Result<Box<dyn ReceiverLaw>, ParamError> {
        Ok(Box::new(Station::new(StationParams::with(settings)?.measure, setup)))
    }

    /// Ends the slot, and begins the next.
    fn account(&mut self) -> Option<StationFeedback> {
        let (number, start, end) = (self.number, self.start, self.end);
        let frames = self.frames.take(self.node, number, start, end);
        let (now, before) = (self.received, self.before);
        let packets = now.packets - before.packets;
        let delays = std::mem::take(&mut self.delays);
        (self.number, self.start, self.end) = (number.wrapping_add(1), end, end + self.interval);
        self.before = now;
        self.empty = if packets > 0 || frames.frames > 0 { 0 } else { self.empty.saturating_add(1) };
        if self.idle_slots.is_some_and(|most| self.empty > most) {
            return None;
        }
        Some(StationFeedback {
            received: packets,
            lost: (now.given - before.given).saturating_sub(packets),
            highest_sequence: now.given.saturating_sub(1),
            delay_mean: (delays.count > 0).then(|| delays.sum / delays.count.max(1)),
            delay_max: (delays.count > 0).then_some(delays.largest),
            ..frames
        })
    }
}

impl ReceiverLaw for Station {
    fn sense(&mut self, now: Time, signal: &Signal) {
        self.due = None;
        match signal {
            Signal::Frame(frame) => {
                if let Frames::Shown(shown) = &mut self.frames {
                    shown.counts.add(frame);
                }
            }
            Signal::Arrival(arrival) => match &mut self.frames {
                Frames::Suggested(arrivals) => arrivals.arrived(*arrival),
                Frames::Shown(shown) => {
                    let away = shown.away.iter_mut().map(|away| &mut away.arrivals);
                    away.chain(&mut shown.arrivals).for_each(|arrivals| arrivals.arrived(*arrival));
                }
            },
            Signal::Monitor(sight) => {
                if let Frames::Shown(shown) = &mut self.frames {
                    shown.sees(*sight);
                }
            }
            Signal::OneWay(delay) => {
                self.delays.count += 1;
                self.delays.sum += *delay;
                self.delays.largest = self.delays.largest.max(*delay);
            }
            Signal::Received(received) => {
                if received.packets < self.received.packets || received.given < self.received.given {
                    self.before = Received::default();
                }
                self.received = *received;
            }
            Signal::Wakeup if now >= self.end => self.due = self.account(),
            _ => {}
        }
    }

    fn decide(&self, _: Time) -> Decision {
        let feedback = self.due.map(Feedback::Station);
        Decision { feedback, revisit: Some(self.end), ..Decision::unlimited(Why::Unmanaged) }
    }
}

impl Frames {
    /// What they tell of the slot that ends.
    fn take(&mut self, node: Node, slot: u32, start: Time, end: Time) -> StationFeedback {
        match self {
            Frames::Suggested(arrivals) => arrivals.feedback(node, slot, start, end),
            Frames::Shown(shown) => shown.take(node, slot, start, end),
        }
    }
}

impl Shown {
    fn sees(&mut self, sight: MonitorEvent) {
        match sight {
            // One that goes again before its first whole slot has been away all the time.
            MonitorEvent::Down => self.away.get_or_insert_default().back = false,
            MonitorEvent::Up => self.away.iter_mut().for_each(|away| away.back = true),
            MonitorEvent::Overrun => self.missed = true,
        }
    }

    fn take(&mut self, node: Node, slot: u32, start: Time, end: Time) -> StationFeedback {
        let mut account = std::mem::take(&mut self.counts).feedback(node, slot, start, end);
        if std::mem::take(&mut self.missed) {
            account = match &mut self.arrivals {
                Some(arrivals) => arrivals.feedback(node, slot, start, end),
                None => StationFeedback::empty(node, slot, start, end),
            };
            self.arrivals.get_or_insert_default();
        } else {
            self.arrivals = None;
        }
        if let Some(away) = &mut self.away {
            account = away.arrivals.feedback(node, slot, start, end);
        }
        self.away.take_if(|away| away.back);
        account
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lasthop_signals::{Arrival, ReceivedFrame};
    use lasthop_units::{Bytes, Rate};

    const SLOT: Span = Span::from_millis(500);

    fn station(idle_slots: Option<u32>) -> Station {
        let (start, end) = (Time::ZERO, Time::ZERO + SLOT);
        let setup = ReceiverSetup { node: Node(3), slot: 7, start, end, interval: SLOT, idle_slots };
        Station::new(FrameSource::Radiotap, setup)
    }

    fn frame(packets: u32, rate: Option<u64>) -> Signal {
        let rate = rate.map(Rate::from_mbit);
        Signal::Frame(ReceivedFrame { packets, certain: packets, in_part: false, rate })
    }

    /// Ends the slot, in which so many packets came of so many.
    fn ends(law: &mut Station, packets: u64, given: u64) -> Option<StationFeedback> {
        let now = law.decide(Time::ZERO).revisit.expect("the slot's end");
        law.sense(now, &Signal::Received(Received { packets, given }));
        law.sense(now, &Signal::Wakeup);
        let Some(Feedback::Station(account)) = law.decide(now).feedback else { return None };
        law.sense(now, &Signal::Recovered);
        assert_eq!(law.decide(now).feedback, None, "it is told once");
        Some(account)
    }

    #[test]
    fn a_slot_is_told_by_its_sums_and_no_others() {
        let mut law = station(None);
        for signal in [frame(3, Some(100)), frame(1, Some(400)), frame(1, None)] {
            law.sense(Time::ZERO, &signal);
        }
        for ms in [2, 8] {
            law.sense(Time::ZERO, &Signal::OneWay(Span::from_millis(ms)));
        }
        law.sense(Time::ZERO + SLOT / 2, &Signal::Wakeup);
        assert_eq!(law.decide(Time::ZERO).feedback, None, "the slot is not over");
        let told = ends(&mut law, 5, 7).expect("an account");
        assert_eq!((told.slot, told.start, told.end), (7, Time::ZERO, Time::ZERO + SLOT));
        assert_eq!((told.frames, told.packets, told.packets_squared), (3, 5, 11));
        assert_eq!((told.min_packets, told.max_packets), (1, 3));
        // The third frame counts like the mean of the others.
        assert!((told.inverse_rate_sum / 3.0 - (1e-8 + 0.25e-8) / 2.0).abs() < 1e-18);
        assert_eq!((told.received, told.lost, told.highest_sequence), (5, 2, 6));
        assert_eq!((told.delay_mean, told.delay_max), (Some(Span::from_millis(5)), Some(Span::from_millis(8))));
        let next = ends(&mut law, 5, 7).expect("an account");
        assert_eq!(
            next,
            StationFeedback { highest_sequence: 6, ..StationFeedback::empty(Node(3), 8, told.end, next.end) }
        );
    }

    #[test]
    fn a_new_flow_counts_from_nothing() {
        let mut law = station(None);
        assert_eq!(ends(&mut law, 900, 1000).expect("an account").lost, 100);
        law.sense(Time::ZERO, &Signal::Received(Received::default()));
        let told = ends(&mut law, 40, 41).expect("an account");
        assert_eq!((told.received, told.lost), (40, 1));
    }

    #[test]
    fn idle_slots_are_told_for_a_while() {
        let mut law = station(Some(2));
        assert!(ends(&mut law, 0, 0).is_none(), "nothing has come yet");
        assert!(ends(&mut law, 4, 4).is_some());
        let told: Vec<bool> = (0..4).map(|_| ends(&mut law, 4, 4).is_some()).collect();
        assert_eq!(told, [true, true, false, false]);
        law.sense(Time::ZERO, &frame(1, None));
        assert!(ends(&mut law, 4, 4).is_some());
    }

    #[test]
    fn where_the_radio_shows_nothing_arrival_times_tell() {
        let mut law = station(None);
        let mut slot = |sights: &[MonitorEvent], late: &[MonitorEvent]| {
            sights.iter().for_each(|sight| law.sense(law.start, &Signal::Monitor(*sight)));
            law.sense(law.start, &frame(10, Some(100)));
            for n in 0..2_000u64 {
                let at = law.start + Span::from_millis(2) * (n / 10) + Span::from_micros(2) * (n % 10);
                law.sense(at, &Signal::Arrival(Arrival { at, sent: None, len: Bytes::new(1500) }));
            }
            late.iter().for_each(|sight| law.sense(law.end, &Signal::Monitor(*sight)));
            let told = ends(&mut law, 0, 0).expect("an account");
            (told.source, told.frames)
        };
        let (shown, silent) = ((FrameSource::Radiotap, 1), (FrameSource::Radiotap, 0));
        assert_eq!(slot(&[], &[]), shown);
        assert_eq!(slot(&[], &[MonitorEvent::Overrun]), silent);
        let suggested = slot(&[], &[MonitorEvent::Overrun]);
        assert!(suggested.0 == FrameSource::Timestamps && (180..220).contains(&suggested.1), "{suggested:?}");
        assert_eq!(slot(&[], &[]), shown);
        assert_eq!(slot(&[MonitorEvent::Down], &[]).0, FrameSource::Timestamps);
        assert_eq!(slot(&[MonitorEvent::Up, MonitorEvent::Down], &[MonitorEvent::Up]).0, FrameSource::Timestamps);
        assert_eq!(slot(&[], &[]), shown);
    }
}
