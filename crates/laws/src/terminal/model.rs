//! The window that a connection needs: what its path holds at the rate that it gets, and a little that stands on the hop.
//! Source:     derived in docs/explanation/terminal-law.md from the per-flow window limit of Keceli, Inan, Ayanoglu (arXiv 0806.1089) and the
//!             equilibrium of FAST TCP (Wei, Jin, Low, Hegde 2006).
//! Equations:  W = e (m + t) + a / r (1 - 1 / r), at least 10 / r,   r = n k,   e = d + (f - d) / 4;   where packets wait a step goes half way from
//!             the present window
//!             q = R - m < t / 2 for some steps: the window may double;   lower = 0.6 min(W, d m)
//! Symbols:    d, what it delivers -> `rate`; f, the fair rate -> `fair`; R, m -> `rtt`, `base`; t -> `standing`; r -> `rivals`; a / r (1 - 1 / r) -> `share`
//! Deviations: the limit's buffer is no access point's, which terminals cannot know, but what keeps the hop busy; its capacity is not
//!             given but what connections are seen to get.
//! Validity:   round trips that the terminals' own packets lengthen. Where others fill the hop beyond t (see `competition`) the window is TCP's
//!             own, and what of it waits in the terminal itself is bounded: windows would else shrink towards `share`.
//! Checked by: tests::*, crates/sim/tests/integration/terminal.rs, `lasthop reproduce terminal`

use crate::Bounds;
use lasthop_signals::SocketReport;
use lasthop_units::{Bytes, Span, Time};

/// The lower bound as a part of what the path holds: below CUBIC's own reduction to 0.7.
const LOWER: f64 = 0.6;
/// How far a rate is moved towards the fair one.
const PULL: f64 = 0.25;
/// A fair rate is believed up to this multiple of the connection's own, and down to this part of it.
const BELIEF: f64 = 4.0;
/// Packets of all connections together that fill no hop: the initial window of one (RFC 6928).
const INITIAL: f64 = 10.0;
/// So much of a path may be a queue that nobody has seen gone, once drains have ceased to shorten it.
const DOUBT: Span = Span::from_millis(50);
/// So much of what packets wait on a hop that others fill may be a terminal's own.
const OWN: u64 = 4;
/// A window that doubles brings more if what is delivered grows by this factor.
const MORE: f64 = 1.25;
/// The longest step there.
const STEP: Span = Span::from_secs(3);
/// After so many steps that brought no more it is not doubled again.
const IDLE: u32 = 3;
/// A window is in use from this part of it in flight on.
const IN_USE: f64 = 0.75;

/// What is known of one connection.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Window {
    /// From when on deliveries are counted, and what had been delivered then.
    anchor: Option<(Time, Bytes)>,
    /// Not before this does counting begin.
    rest: Time,
    /// Payload a second over the last step.
    rate: Option<f64>,
    in_use: bool,
    /// Steps since packets last waited on the hop; `None`: they never have.
    busy: Option<u32>,
    bounds: Option<Bounds<Bytes>>,
    /// The window when the present drain began.
    held: Option<Bytes>,
    /// Beside others that fill the hop: the most that was delivered in a second, and steps since that grew.
    best: f64,
    idle: u32,
    /// A step of that kind ended at the last look.
    stepped: bool,
    /// What waits in the terminal itself has been seen, and the least window then, where nothing waits there.
    shows: bool,
    floor: Bytes,
}

/// What a step needs to know besides the connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct Path {
    /// The smoothed round trip, its mean deviation, and the path's without a queue.
    pub(super) rtt: Span,
    pub(super) deviation: Span,
    pub(super) base: Span,
    /// How long packets may wait.
    pub(super) standing: Span,
    /// Packets that are the connection's to have on the hop besides.
    pub(super) share: f64,
    /// Connections of all terminals among which the hop is shared.
    pub(super) rivals: f64,
    /// Payload a second that would be fair, where that is known.
    pub(super) fair: Option<f64>,
}

/// What a window may grow by in a step where nothing waits: twofold at first, and with a hop that has been busy only after it has been
/// quiet for six steps.
fn growth(quiet: Option<u32>) -> f64 {
    const STEPS: u32 = 6;
    1.0 + 0.5_f64.powi(STEPS.saturating_sub(quiet.unwrap_or(STEPS)) as i32)
}

impl Path {
    /// How long packets wait on it whichever they are: a window that leaves in one burst makes a queue of its own, which
    /// its first packets do not meet.
    pub(super) fn waits(&self) -> Span {
        self.rtt.saturating_sub(self.deviation).saturating_sub(self.base)
    }

    /// True if they wait long enough to say that the hop is busy.
    pub(super) fn is_busy(&self) -> bool {
        self.waits() >= self.standing / 2
    }
}

impl Window {
    /// Payload a second that it gets, while it uses its window.
    pub(super) fn rate(&self) -> Option<f64> {
        self.rate.filter(|_| self.in_use)
    }

    /// True if the window, not the program, holds the connection back.
    pub(super) fn is_in_use(&self) -> bool {
        self.in_use
    }

    /// Takes in how the connection stands.
    pub(super) fn look(&mut self, report: &SocketReport) {
        self.in_use = report.in_flight.get() as f64 >= IN_USE * report.cwnd.get() as f64;
    }

    /// Moves the bounds if a round trip has passed since they last moved. `None` until the first has.
    pub(super) fn step(&mut self, now: Time, report: &SocketReport, path: &Path) -> Option<Bounds<Bytes>> {
        if now < self.rest {
            return self.bounds;
        }
        let rate = match self.anchor {
            Some((since, _)) if now.since(since) < path.rtt.max(Span::from_nanos(1)) => return self.bounds,
            Some((since, before)) => {
                report.delivered.saturating_sub(before).get() as f64 / now.since(since).as_secs_f64()
            }
            // Nothing counted yet: what is in flight has taken a round trip (Little).
            None if self.bounds.is_none() => report.in_flight.get() as f64 / path.rtt.as_secs_f64().max(1e-6),
            None => {
                self.anchor = Some((now, report.delivered));
                return self.bounds;
            }
        };
        self.anchor = Some((now, report.delivered));
        self.rate = Some(rate);
        let mss = report.mss.get() as f64;
        let fair = path.fair.map_or(rate, |fair| fair.clamp(rate / BELIEF, rate * BELIEF));
        let even = rate + PULL * (fair - rate);
        let target = even * (path.base + path.standing).as_secs_f64() + path.share * mss;
        let held = report.cwnd.get() as f64;
        // Bursts of a window that doubles wait for a moment on a hop that has room.
        let few = INITIAL / path.rivals * mss;
        let busy = if self.busy.is_some() { path.is_busy() } else { path.waits() >= path.standing };
        self.busy = if busy && held > few { Some(0) } else { self.busy.map(|steps| steps.saturating_add(1)) };
        let upper = match self.busy {
            Some(0) => 0.5 * (held + target),
            quiet => target.max(held * growth(quiet)),
        };
        let lower = (LOWER * upper.min(rate * path.base.as_secs_f64())).max(mss);
        self.bounds =
            Some(Bounds { lower: Bytes::new(lower as u64), upper: Bytes::new(upper.max(few).max(2.0 * mss) as u64) });
        self.bounds
    }

    /// Bounds beside others that fill the hop. The window is TCP's own, but that it may double at each step while that brings more. What
    /// of the connection waits in the terminal itself goes no further sooner than the terminal's turn comes: it need not be more than
    /// `path.standing` or a quarter of what packets wait.
    pub(super) fn compete(&mut self, now: Time, report: &SocketReport, path: &Path) -> Option<Bounds<Bytes>> {
        (self.bounds, self.held) = (None, None);
        let step = path.rtt.clamp(Span::from_nanos(1), STEP);
        self.stepped = self.anchor.is_some_and(|(since, _)| now.since(since) >= step);
        if let Some((since, before)) = self.anchor.filter(|_| self.stepped) {
            let rate = report.delivered.saturating_sub(before).get() as f64 / now.since(since).as_secs_f64();
            let more = rate >= self.best * MORE;
            (self.best, self.idle) = if more { (rate, 0) } else { (self.best, self.idle.saturating_add(1)) };
            self.rate = Some(rate);
        }
        if self.stepped || self.anchor.is_none() {
            self.anchor = Some((now, report.delivered));
            self.floor = report.in_flight.scale(MORE);
        }
        let rate = report.in_flight.get() as f64 / path.rtt.as_secs_f64().max(1e-6);
        let own = path.standing.max(path.waits() / OWN);
        let own = Bytes::new((rate * own.as_secs_f64() + path.share * report.mss.get() as f64) as u64);
        let queued = report.queued.unwrap_or(Bytes::ZERO);
        if queued > own {
            self.shows = true;
            let upper = report.in_flight.saturating_sub(queued.saturating_sub(own)).max(report.mss * 2);
            return Some(Bounds { lower: report.mss, upper });
        }
        let lower = match self.idle < IDLE {
            true => report.in_flight * 2,
            false if self.shows && queued * 4 < own => self.floor,
            false => report.mss,
        };
        Some(Bounds { lower: lower.max(report.mss), upper: Bytes::MAX })
    }

    /// True if a step beside others ended at the last look, after the window had ceased to double.
    pub(super) fn has_stepped(&self) -> bool {
        self.stepped && self.idle > IDLE
    }

    /// It begins.
    pub(super) fn enter(&mut self) {
        (self.anchor, self.best, self.idle) = (None, 0.0, 0);
    }

    /// Bounds while the hop is emptied beside others that fill it: a part of the window.
    pub(super) fn parted(&mut self, report: &SocketReport, part: f64) -> Option<Bounds<Bytes>> {
        let held = *self.held.get_or_insert(report.cwnd);
        Some(Bounds { lower: report.mss, upper: held.scale(part).max(report.mss * 2) })
    }

    /// That is over: the window comes back.
    pub(super) fn regain(&mut self, mss: Bytes) -> Option<Bounds<Bytes>> {
        let held = self.held.take()?.max(mss * 2);
        Some(Bounds { lower: held.scale(0.9).max(mss), upper: held })
    }

    /// Bounds while the hop is emptied: below what the path is thought to hold, so that a queue that was taken for path goes away too.
    /// `deep`: half of it is doubted.
    pub(super) fn drained(&self, report: &SocketReport, base: Span, deep: bool) -> Option<Bounds<Bytes>> {
        let left = if deep { base / 2 } else { (base / 2).max(base.saturating_sub(DOUBT)) };
        let upper = Bytes::new((self.rate? * left.as_secs_f64()) as u64).max(report.mss * 2);
        Some(Bounds { lower: report.mss, upper: upper.min(self.bounds?.upper) })
    }

    /// A drain is over: after one that was not deep the window goes back to where it was. What is delivered counts again when the path is
    /// full.
    pub(super) fn resume(&mut self, now: Time, rtt: Span, mss: Bytes, deep: bool) -> Option<Bounds<Bytes>> {
        (self.anchor, self.rest, self.held) = (None, now + rtt, None);
        let Bounds { lower, upper } = self.bounds?;
        self.bounds = Some(Bounds { lower: if deep { lower } else { upper.scale(0.9).max(mss) }, upper });
        self.bounds
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lasthop_signals::FlowId;
    use lasthop_units::brief::{at, ms};

    const MSS: Bytes = Bytes::new(1000);

    fn report(window: u64, rtt: u64, delivered: u64) -> SocketReport {
        SocketReport {
            flow: FlowId(0),
            rtt: Some(ms(rtt)),
            deviation: Span::ZERO,
            min_rtt: Some(ms(20)),
            mss: MSS,
            cwnd: MSS * window,
            in_flight: MSS * window,
            delivered: MSS * delivered,
            queued: None,
            destination: 0,
        }
    }

    fn path(rtt: u64, deviation: u64) -> Path {
        let (rtt, deviation) = (ms(rtt), ms(deviation));
        Path { rtt, deviation, base: ms(20), standing: ms(10), share: 5.0, rivals: 2.0, fair: None }
    }

    fn packets(bounds: Option<Bounds<Bytes>>) -> Option<(u64, u64)> {
        bounds.map(|bounds| (bounds.lower.get() / MSS.get(), bounds.upper.get() / MSS.get()))
    }

    #[test]
    fn the_first_step_takes_the_flight_for_one_rtt_of_delivery() {
        let mut window = Window::default();
        // 100 packets in 200 ms: 500 a second, of which the path holds 10, and 5 may stand, and 5 more.
        assert_eq!(packets(window.step(at(0), &report(100, 200, 0), &path(200, 0))), Some((6, 60)));
    }

    #[test]
    fn a_step_takes_a_round_trip_and_goes_half_way() {
        let mut window = Window::default();
        window.step(at(0), &report(40, 200, 0), &path(200, 0));
        let before = window.bounds;
        assert_eq!(window.step(at(199), &report(40, 200, 90), &path(200, 0)), before);
        // 500 packets a second: 500 · 30 ms + 5 = 20, from 40.
        assert_eq!(packets(window.step(at(200), &report(40, 200, 100), &path(200, 0))), Some((6, 30)));
    }

    #[test]
    fn a_window_that_leaves_in_a_burst_is_no_busy_hop() {
        let mut window = Window::default();
        // A mean of 15 ms of waiting, of which any packet may have none.
        assert_eq!(packets(window.step(at(0), &report(100, 35, 0), &path(35, 15))), Some((34, 200)));
        let mut window = Window::default();
        assert!(packets(window.step(at(0), &report(100, 35, 0), &path(35, 0))).expect("a step").1 < 100);
    }

    #[test]
    fn few_packets_are_no_busy_hop() {
        let mut window = Window::default();
        // The receiver acknowledges late: 60 ms, and two connections have five packets each.
        assert_eq!(packets(window.step(at(0), &report(5, 60, 0), &path(60, 0))), Some((1, 10)));
    }

    #[test]
    fn a_drain_goes_below_the_path_and_back() {
        let mut window = Window::default();
        window.step(at(0), &report(30, 30, 0), &path(30, 0));
        // 1000 a second: the path holds 20.
        let (_, upper) = packets(window.bounds).expect("a step");
        assert_eq!(packets(window.drained(&report(30, 30, 0), ms(20), true)), Some((1, 10)));
        assert_eq!(packets(window.drained(&report(30, 30, 0), ms(20), false)), Some((1, 10)), "short: half of it");
        let resumed = packets(window.resume(at(200), ms(30), MSS, false)).expect("a step");
        assert!(resumed.1 == upper && resumed.0 >= upper * 8 / 10, "{resumed:?} after {upper}");
        // Counting begins anew: neither the rest nor its first look moves anything.
        assert_eq!(packets(window.step(at(220), &report(9, 20, 50), &path(20, 0))), Some(resumed));
        assert_eq!(packets(window.step(at(240), &report(9, 20, 60), &path(20, 0))), Some(resumed));
    }
}
