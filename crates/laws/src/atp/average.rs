//! What an ATP receiver tells: the average delay of the slowest hop, once an epoch.
//! Source:     Zhang, Buck, Zappala 2011; the rule of Adaptive's epoch is own.
//! Equations:  D_avg' = beta D_avg + (1 - beta) D;   adaptive epoch: clamp(max(20 D_avg, RTT), 40 ms, 1 s)
//! Symbols:    beta = 0.85 -> `KEPT`; D, the largest of the path, from each packet -> `Signal::Stamp`
//! Deviations: the paper says only that Adaptive's epoch is dynamic. It also tells at once when D_avg
//!             has changed by more than a quarter since it was last told, or when 16 holes are in what has come, though never sooner than
//!             40 ms after that. `on-change` tells when D_avg has changed by a tenth, below which a sender does not speed up, or after a second.
//! Validity:   it tells for as long as packets come, and three epochs longer.     Checked by: tests::*, tests/integration/conformance

use super::{HOLES, LONGEST_DELAY, LONGEST_EPOCH, Params, SHORTEST_EPOCH, Variant};
use crate::{Decision, ReceiverLaw, Why};
use lasthop_signals::{Feedback, PathDelay, Signal};
use lasthop_units::{Span, Time};

/// What is kept of the average at a new packet.
const KEPT: f64 = 0.85;
/// By which part the average must have changed for `on-change` to tell.
const NOTICED: f64 = 0.1;
/// Epochs without a packet after which nothing is told any more.
const QUIET: u32 = 3;

/// The law of one receiver.
#[derive(Clone, Debug)]
pub struct Average {
    params: Params,
    average: Option<Span>,
    round_trip: Span,
    /// When it told last, and what.
    told: Option<(Time, Span)>,
    /// When it tells next; `None` while no packets come.
    due: Option<Time>,
    /// Whether a packet has come since it told, and epochs in a row in which none has.
    heard: bool,
    quiet: u32,
    feedback: Option<PathDelay>,
}

impl Average {
    /// A receiver to which nothing has come.
    pub fn new(params: Params) -> Average {
        let (average, told, due, feedback) = (None, None, None, None);
        Average { params, average, round_trip: Span::ZERO, told, due, heard: false, quiet: 0, feedback }
    }

    fn epoch(&self) -> Span {
        match self.params.variant {
            Variant::Default | Variant::OnChange => LONGEST_EPOCH,
            Variant::Aggressive => SHORTEST_EPOCH,
            Variant::Adaptive => {
                let settled = self.average.unwrap_or(Span::ZERO) * u64::from(self.params.packets);
                settled.max(self.round_trip).clamp(SHORTEST_EPOCH, LONGEST_EPOCH)
            }
        }
    }

    fn on_stamp(&mut self, now: Time, delay: Span) {
        let delay = delay.min(LONGEST_DELAY);
        let average = self.average.map_or(delay, |known| known.scale(KEPT) + delay.scale(1.0 - KEPT));
        self.average = Some(average);
        (self.heard, self.quiet) = (true, 0);
        let epoch = self.epoch();
        self.due.get_or_insert(now + epoch);
        let noticed = match self.params.variant {
            Variant::Default | Variant::Aggressive => return,
            Variant::Adaptive => self.params.change,
            Variant::OnChange => NOTICED,
        };
        if let Some((_, told)) = self.told {
            let change = (average.as_secs_f64() - told.as_secs_f64()).abs();
            if change > noticed * told.as_secs_f64() {
                self.tell_soon(now);
            }
        }
    }

    /// It tells before its epoch is over.
    fn tell_soon(&mut self, now: Time) {
        if let (Some((at, _)), Some(due)) = (self.told, self.due) {
            self.due = Some(due.min((at + SHORTEST_EPOCH).max(now)));
        }
    }

    fn on_wakeup(&mut self, now: Time) {
        if self.due.is_none_or(|due| now < due) {
            return;
        }
        self.quiet = if self.heard { 0 } else { self.quiet + 1 };
        let Some(average) = self.average.filter(|_| self.quiet <= QUIET) else {
            self.due = None;
            return;
        };
        let epoch = self.epoch();
        self.feedback = Some(PathDelay { average, epoch });
        (self.told, self.due, self.heard) = (Some((now, average)), Some(now + epoch), false);
    }
}

impl ReceiverLaw for Average {
    fn sense(&mut self, now: Time, signal: &Signal) {
        self.feedback = None;
        match signal {
            Signal::Stamp(delay) => self.on_stamp(now, *delay),
            Signal::RoundTrip(round_trip) => self.round_trip = *round_trip,
            Signal::Holes(holes) if *holes >= HOLES && self.params.variant == Variant::Adaptive => self.tell_soon(now),
            Signal::Wakeup => self.on_wakeup(now),
            _ => {}
        }
    }

    fn decide(&self, _now: Time) -> Decision {
        let feedback = self.feedback.map(Feedback::Path);
        Decision { feedback, revisit: self.due, ..Decision::unlimited(Why::Unmanaged) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lasthop_units::brief::{at, ms};

    fn receiver(variant: Variant) -> Average {
        Average::new(Params { variant, ..Params::default() })
    }

    /// What it tells until `until`, if a packet with the delay of `stamp` comes every 10 ms while that gives one: when, and of what average.
    fn told(law: &mut Average, until: u64, stamp: impl Fn(u64) -> Option<Span>) -> Vec<(u64, Span)> {
        let mut seen = Vec::new();
        for now in 0..until {
            if let Some(delay) = stamp(now).filter(|_| now.is_multiple_of(10)) {
                law.sense(at(now), &Signal::Stamp(delay));
            }
            if law.decide(at(now)).revisit.is_some_and(|due| due <= at(now)) {
                law.sense(at(now), &Signal::Wakeup);
                if let Some(Feedback::Path(told)) = law.decide(at(now)).feedback {
                    seen.push((now, told.average));
                }
            }
        }
        seen
    }

    #[test]
    fn the_average_by_hand() {
        let mut law = receiver(Variant::Default);
        [2, 4, 4].into_iter().for_each(|delay| law.sense(at(0), &Signal::Stamp(ms(delay))));
        // 0.85 * 2 + 0.15 * 4 = 2.3; 0.85 * 2.3 + 0.15 * 4 = 2.555.
        assert_eq!(law.average, Some(Span::from_micros(2_555)));
    }

    #[test]
    fn a_damaged_stamp_is_forgotten_within_the_longest_delay() {
        let mut law = receiver(Variant::Adaptive);
        law.sense(at(0), &Signal::Stamp(ms(2)));
        law.sense(at(0), &Signal::Stamp(Span::from_micros(u64::from(u32::MAX))));
        // Each packet leaves one average after the one before it.
        let (mut now, mut count) = (0.0, 0);
        while law.average.is_some_and(|average| average > ms(3)) {
            now += law.average.map_or(0.0, Span::as_secs_f64);
            law.sense(Time::ZERO + Span::from_secs_f64(now), &Signal::Stamp(ms(2)));
            count += 1;
        }
        assert!(now < 4.1 && count > 20, "{now} s, {count} packets");
    }

    #[test]
    fn each_variant_has_its_epoch() {
        let times = |variant| {
            let mut law = receiver(variant);
            law.sense(at(0), &Signal::RoundTrip(ms(3)));
            told(&mut law, 2_500, |_| Some(ms(5))).into_iter().map(|(at, _)| at).collect::<Vec<_>>()
        };
        assert_eq!(times(Variant::Default), [1000, 2000]);
        assert_eq!(times(Variant::Aggressive)[..3], [40, 80, 120]);
        // Twenty packets of 5 ms.
        assert_eq!(times(Variant::Adaptive)[..3], [100, 200, 300]);
    }

    #[test]
    fn adaptive_tells_of_a_change_at_once() {
        let stamp = |now| Some(ms(if now < 1_010 { 40 } else { 80 }));
        let seen = told(&mut receiver(Variant::Adaptive), 2_000, stamp);
        // Epochs of 800 ms; the second packet of 80 ms brings the average to 51: by more than a quarter.
        assert_eq!(seen[0], (800, ms(40)));
        assert_eq!(seen[1].0, 1_020);
        assert_eq!(told(&mut receiver(Variant::Default), 2_000, stamp).len(), 1);
    }

    #[test]
    fn on_change_tells_of_a_tenth_and_otherwise_once_a_second() {
        let stamp = |now| Some(ms(if now < 1_510 { 40 } else { 48 }));
        let seen = told(&mut receiver(Variant::OnChange), 3_000, stamp);
        // The fifth packet of 48 ms brings the average to 44.45: by more than a tenth. Then it settles, by less than that.
        assert_eq!(seen[0], (1_000, ms(40)));
        assert_eq!(seen[1].0, 1_550, "{seen:?}");
        assert_eq!(seen.len(), 3, "{seen:?}");
    }

    #[test]
    fn it_falls_silent_three_epochs_after_the_last_packet() {
        let mut law = receiver(Variant::Aggressive);
        let seen = told(&mut law, 1_000, |now| (now < 100).then_some(ms(5)));
        assert_eq!(seen.last().map(|(at, _)| *at), Some(240));
        assert_eq!(law.decide(at(1_000)).revisit, None);
    }
}
