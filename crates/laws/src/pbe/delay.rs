//! How long packets take beyond what the path itself does.
//! Source:     \[pbe\], section 4.2.2, reconstructed (see [`super`]).
//! Equations:  D_th = D_prop + 3 T_harq + J;   D_prop = least one-way delay of the last 10 s
//! Symbols:    T_harq = 8 ms -> `Params::harq_round`; J = 3 ms -> `Params::jitter`
//! Deviations: the window of 10 s moves on in steps of 1 s.
//! Validity:   delays are by two clocks: only differences count, and the clocks drift apart by little in 10
//!             s.     Checked by: tests::*

use super::Params;
use lasthop_units::Time;

/// A block that is not decoded comes again so often.
const REPEATS: u64 = 3;
/// Seconds of a window.
const SECONDS: u64 = 10;

/// The least of a quantity over the last 10 s.
#[derive(Clone, Copy, Debug)]
pub(super) struct Least<T> {
    /// The least of each second, which is the first.
    seconds: [Option<(u64, T)>; SECONDS as usize],
}

impl<T: Copy + Ord> Least<T> {
    /// A window without anything in it.
    pub(super) fn new() -> Least<T> {
        Least { seconds: [None; SECONDS as usize] }
    }

    /// Folds in a sample.
    pub(super) fn update(&mut self, now: Time, sample: T) {
        let second = second(now);
        let slot = &mut self.seconds[(second % SECONDS) as usize];
        *slot = match *slot {
            Some((same, least)) if same == second => Some((second, least.min(sample))),
            _ => Some((second, sample)),
        };
    }

    /// The least; `None` if the window is empty.
    pub(super) fn get(&self, now: Time) -> Option<T> {
        let second = second(now);
        let recent = self.seconds.iter().flatten().filter(|(seen, _)| seen + SECONDS > second);
        recent.map(|(_, least)| *least).min()
    }
}

fn second(now: Time) -> u64 {
    now.as_nanos() / 1_000_000_000
}

/// The delay of a flow's packets.
#[derive(Clone, Copy, Debug)]
pub(super) struct Delay {
    /// D_prop, in nanoseconds: negative where the sender's clock is ahead.
    least: Least<i128>,
}

impl Delay {
    /// Before the first packet.
    pub(super) fn new() -> Delay {
        Delay { least: Least::new() }
    }

    /// A packet came at `now` that left at `sent` by the sender's clock. By how many nanoseconds it exceeds D_prop, and whether that is more than
    /// D_th allows.
    pub(super) fn on_packet(&mut self, now: Time, at: Time, sent: Time, params: &Params) -> (u64, bool) {
        let delay = i128::from(at.as_nanos()) - i128::from(sent.as_nanos());
        self.least.update(now, delay);
        let least = self.least.get(now).unwrap_or(delay);
        let more = u64::try_from(delay - least).unwrap_or(0);
        let allowed = params.harq_round * REPEATS + params.jitter;
        (more, more > allowed.as_nanos())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lasthop_units::Span;
    use lasthop_units::brief::at;

    #[test]
    fn more_than_27_ms_beyond_the_least_is_too_much() {
        for ahead in [0, 1_000_000] {
            let (mut delay, params) = (Delay::new(), Params::default());
            // Clocks that differ, either way.
            let mut over = |now: u64, took: u64| {
                let (at, sent) = (at(now), Time::ZERO + Span::from_millis(now - took + ahead));
                delay.on_packet(at, at, sent, &params).1
            };
            let seen = [(100, 30), (200, 57), (300, 58), (400, 20), (500, 47), (600, 48)];
            assert_eq!(seen.map(|(now, took)| over(now, took)), [false, false, true, false, false, true]);
        }
    }

    #[test]
    fn a_longer_path_is_accepted_after_ten_seconds() {
        let (mut delay, params) = (Delay::new(), Params::default());
        let mut first_calm = None;
        for now in (1000..14_000).step_by(10) {
            let took = if now < 2000 { 30 } else { 60 };
            let (_, over) = delay.on_packet(at(now), at(now), at(now - took), &params);
            if now >= 2000 && !over {
                first_calm.get_or_insert(now);
            }
        }
        assert_eq!(first_calm, Some(11_000), "the last second of 30 ms has left the window");
    }
}
