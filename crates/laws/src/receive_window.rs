//! How far a proxy opens the receive window of a connection, if the data leaves the proxy at a rate that a law has set.
//! Source:     own; the standing queue as in RFC 8289 (CoDel), section 3.1: the least over a round trip, not the mean.
//! Equations:  window = max{ min{ x r + (s x - q) / 2,  2 x r + s x - Q },  m - Q },   q = the least Q of the last round trip or two;
//!             all of a station's together: sum of windows <= x r + s x, sum of (window + Q) <= 2 x r + s x; or m each, if more;
//!             from when the first of them begins, t later:  sum of windows <= f + what left within t
//! Symbols:    x -> `rate`, r -> `round_trip`, s -> `standing`, q -> `valley`, Q -> `queued`, m -> `segment`, f -> `first`
//! Deviations: none.
//! Validity:   r is the round trip without a queue; over a longer one the window is too small by x times the difference,
//!             of which up to s x / 2 is made up for.
//! Checked by: tests::*, the simulator's proxy, the edge proxy's tests
//!
//! The window counts from what has arrived, not from what has been read: acknowledgements leave as data arrives, and a sender that is
//! clocked by them sends in bursts. After a burst the queue is long for as long as the burst takes to leave. If the window were
//! smaller by that, the next burst would be, too, and the proxy would stand idle between them, since a receiver that reads announces
//! nothing (Linux: not before the window has doubled). What must go is only what never leaves: the valley between bursts.
//! The valley answers one round trip after the window, and is known another one later; with half of the error in each the loop is
//! stable (its poles are 0.5 ± 0.5i). The second term bounds what a burst and the next may make wait together; where the wire is short,
//! many windows pass between two looks at the queue, and it is what counts.
//!
//! Senders send whole segments. One that is on its way, one that waits, and what else fills the wire is the least with which a
//! proxy has always something to send; at a few hundred packets a second that is more than the allowance. With one segment alone it would
//! stand idle for a round trip after each, and the law would take the stream for one that wants no more.
//!
//! Shares that change do not bring windows back that were given: connections that begin one behind the other, within one round trip,
//! would be given the whole rate, half of it, a third and so on. What all may have together is therefore a [`WindowBudget`]: `x (r + s)`
//! octets to come, and `x r` that wait, from which what has been given is taken first. What is given now arrives a round trip
//! later, when `x r` of what waited has left: then `x (r + s)` wait at most. A connection with less than a segment stands still until
//! its sender's timers, so none has less: beyond `x (r + s) / m` connections these segments are what waits. How many will begin within
//! a round trip nobody knows: what the first of them are given grows with what leaves ([`SlowOpen`]). The simulator's proxy
//! divides the rate among all that are open, from their handshakes on, and stays within the sums without asking.

use lasthop_units::{Bytes, Rate, Span, Time};

/// What is known of the queue of one connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReceiveWindow {
    segment: Bytes,
    /// When this round trip began, and its least queue so far.
    since: Time,
    least: Option<Bytes>,
    /// The least queue of the round trip before.
    before: Option<Bytes>,
}

/// Round trips shorter than this are looked at together.
const SHORTEST: Span = Span::from_millis(4);
/// Share of the allowance for which there shall always be something to send.
const STANDING: f64 = 0.6;
/// What has been read and not been acknowledged is no more than the rate carries in this time beyond the least round trip of the
/// tunnel. Stations acknowledge every 100 ms; what is older is not on its way but stands in a queue that the law does not know of.
const UNDER_WAY: Span = Span::from_millis(300);

/// Segments that all connections together have beyond what fills the wire: one waits while another comes.
const SEGMENTS: u64 = 2;
/// Windows of fewer segments than this are whole ones.
const FEW: u64 = 16;

impl ReceiveWindow {
    /// For a connection with segments of this length.
    pub fn new(segment: Bytes) -> ReceiveWindow {
        ReceiveWindow { segment, since: Time::ZERO, least: None, before: None }
    }

    /// What may wait beyond what fills the wire, unless somebody asks for something else: time at the rate.
    pub const ALLOWANCE: Span = Span::from_millis(10);

    /// For how long, at the rate, there shall always be something to send where `allowance` may wait: what bursts lack to be even.
    /// The rest is left to the bursts.
    pub fn standing(allowance: Span) -> Span {
        allowance.scale(STANDING)
    }

    /// Octets that a proxy may have read for a station and not yet seen acknowledged, over a tunnel of this least round trip.
    pub fn under_way(rate: Rate, round_trip: Span) -> Bytes {
        rate.bytes_in(round_trip + UNDER_WAY)
    }

    /// Octets beyond what has arrived that may be sent, when `queued` of them wait. `standing`: the time at `rate` for which
    /// there shall always be something to send.
    pub fn window(&mut self, now: Time, share: Share, round_trip: Span, standing: Span, queued: Bytes) -> Bytes {
        let rate = share.rate();
        if now.since(self.since) >= round_trip.max(SHORTEST) {
            (self.since, self.before, self.least) = (now, self.least, None);
        }
        let least = self.least.map_or(queued, |least| least.min(queued));
        self.least = Some(least);
        let valley = self.before.map_or(least, |before| before.min(least));
        let (wire, wanted) = (rate.bytes_in(round_trip), rate.bytes_in(standing));
        let for_ever = (wire + wanted.scale(0.5)).saturating_sub(valley.scale(0.5));
        let open = for_ever.min((wire.scale(2.0) + wanted).saturating_sub(queued));
        let open = open.max(self.least(share, round_trip).saturating_sub(queued));
        // A sender leaves what is no whole segment unused, or sends it as one that is not whole: of few that is much.
        if open < self.segment * FEW { self.segment * open.get().div_ceil(self.segment.get().max(1)) } else { open }
    }

    /// What a connection must be able to have on its way or waiting: whole segments, and at least one.
    pub fn least(&self, share: Share, round_trip: Span) -> Bytes {
        let (segment, among) = (self.segment.get().max(1), share.among.max(1) as u64);
        let wire = share.rate().bytes_in(round_trip).get();
        self.segment * (wire * among + SEGMENTS * segment).div_ceil(among * segment)
    }
}

/// A connection's part of a station's rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    /// Of all together.
    pub of: Rate,
    /// Connections that have the same; none counts as one.
    pub among: usize,
}

impl Share {
    /// The connection's own rate.
    pub fn rate(self) -> Rate {
        self.of.scale(1.0 / self.among.max(1) as f64)
    }
}

/// What the connections of one station may have together: octets that wait, are under way, or may still be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowBudget {
    available: Bytes,
    asked: Bytes,
}

impl WindowBudget {
    /// Of connections of which `waiting` octets wait, and that may send `out` octets beyond what has arrived, all together.
    /// `round_trip`: the longest of theirs without a queue. `segment`: of theirs.
    pub fn new(
        rate: Rate,
        round_trip: Span,
        standing: Span,
        segment: Bytes,
        (waiting, out): (Bytes, Bytes),
    ) -> WindowBudget {
        let wire = rate.bytes_in(round_trip);
        let beyond = wire + rate.bytes_in(standing).max(segment * SEGMENTS);
        let available = (beyond + wire).saturating_sub(waiting + out);
        WindowBudget { available: available.min(beyond.saturating_sub(out)), asked: Bytes::ZERO }
    }

    /// With no more room than this.
    pub fn within(self, room: Bytes) -> WindowBudget {
        WindowBudget { available: self.available.min(room), ..self }
    }

    /// A connection asks for so much more.
    pub fn ask(&mut self, more: Bytes) {
        self.asked += more;
    }

    /// What a connection gets that has asked for so much, once all have.
    pub fn part(&self, more: Bytes) -> Bytes {
        if self.asked <= self.available {
            return more;
        }
        more.scale(self.available.get() as f64 / self.asked.get() as f64)
    }
}

/// How fast what a station's connections may have on its way grows once one of them begins: by what leaves meanwhile. Who calls next is
/// not known, nor how many will; if the first of many were given all that the window budget has, the others' segments would come on top of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SlowOpen {
    most: Bytes,
    left: Bytes,
}

impl SlowOpen {
    /// What may be given beside what is `out`: `first` as long as nobody sends (`idle`), from then on what leaves meanwhile, too, of which
    /// `left` is the sum of all times. What is given counts once it is out, so that to ask again changes nothing. Who begins slowly, as
    /// TCP does, is not held back, and after some round trips the [`WindowBudget`] is what limits.
    pub fn available(&mut self, left: Bytes, (first, out): (Bytes, Bytes), idle: bool) -> Bytes {
        let more = left.saturating_sub(std::mem::replace(&mut self.left, left));
        self.most = if idle { out + first } else { self.most + more };
        self.most.saturating_sub(out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::VecDeque;

    const SEGMENT: Bytes = Bytes::new(1400);

    /// A server that sends what it may at once, and a proxy that passes 100 Mbit/s on. Gives the share of its rate that the proxy
    /// used, and the longest queue in milliseconds at the rate, in the second half of 100 round trips.
    fn served(round_trip: Span, first: Bytes) -> (f64, f64) {
        let (rate, standing, step) = (Rate::from_mbit(100), Span::from_millis(6), Span::from_micros(100));
        let (mut receive_window, mut queued, mut edge) = (ReceiveWindow::new(SEGMENT), Bytes::ZERO, first);
        // Octets under way, by when they arrive.
        let mut wire = VecDeque::from([(Time::ZERO + round_trip, first)]);
        let (mut arrived, mut passed, mut longest) = (Bytes::ZERO, Bytes::ZERO, Bytes::ZERO);
        let (mut now, end) = (Time::ZERO, Time::ZERO + round_trip * 100);
        while now < end {
            now += step;
            let burst = wire.pop_front_if(|(at, _)| *at <= now).map_or(Bytes::ZERO, |(_, len)| len);
            (queued, arrived) = (queued + burst, arrived + burst);
            let window = receive_window.window(now, Share { of: rate, among: 1 }, round_trip, standing, queued);
            // Only arriving data carries the window to the server, and its edge does not move back.
            if !burst.is_zero() && arrived + window > edge {
                wire.push_back((now + round_trip, arrived + window - edge));
                edge = arrived + window;
            }
            let leaves = queued.min(rate.bytes_in(step));
            queued = queued.saturating_sub(leaves);
            if now > Time::ZERO + round_trip * 50 {
                (passed, longest) = (passed + leaves, longest.max(queued));
            }
        }
        let ms = |len: Bytes| rate.time_for(len).expect("a rate").as_secs_f64() * 1e3;
        (ms(passed) / (round_trip * 50).as_secs_f64() / 1e3, ms(longest))
    }

    #[test]
    fn one_burst_per_rtt_is_passed_on_without_gaps_and_bounded() {
        for ms in [5, 20, 100] {
            let (used, longest) = served(Span::from_millis(ms), Bytes::new(14_000));
            assert!(used > 0.99, "{ms} ms: {used}");
            assert!(longest <= ms as f64 + 10.0, "{ms} ms: a queue of {longest} ms");
        }
    }

    #[test]
    fn what_nobody_takes_closes_the_window() {
        let mut receive_window = ReceiveWindow::new(SEGMENT);
        let (rate, rtt, standing) = (Rate::from_mbit(100), Span::from_millis(20), Span::from_millis(6));
        let queued = rate.bytes_in(rtt * 2 + standing);
        let window = |receive_window: &mut ReceiveWindow, ms: u64| {
            receive_window.window(
                Time::ZERO + Span::from_millis(ms),
                Share { of: rate, among: 1 },
                rtt,
                standing,
                queued,
            )
        };
        let windows: Vec<Bytes> = (0..50).map(|ms| window(&mut receive_window, ms)).collect();
        assert_eq!(windows.last(), Some(&Bytes::ZERO));
    }

    #[test]
    fn a_small_share_is_whole_segments_less_what_waits() {
        let window = |of, among, queued| {
            let (rtt, standing) = (Span::from_millis(20), Span::from_millis(6));
            let share = Share { of: Rate::from_bps(of), among };
            ReceiveWindow::new(SEGMENT).window(Time::ZERO, share, rtt, standing, Bytes::new(queued)).get()
        };
        // 25 octets on the wire: two segments and what is left of a third.
        assert_eq!([0, 400, 1400, 5000].map(|queued| window(10_000, 1, queued)), [4200, 4200, 2800, 0]);
        assert_eq!([2, 3, 256].map(|among| window(10_000, among, 0)), [2800, 1400, 1400]);
        assert_eq!(window(10_000, 0, 0), 4200);
    }

    /// A proxy that sends whole segments at so many a second, from a server so far away: the share of its rate that it uses.
    fn used(per_second: f64, round_trip: f64) -> f64 {
        let share = Share { of: Rate::from_bps((per_second * 11_200.0) as u64), among: 1 };
        let mut receive_window = ReceiveWindow::new(SEGMENT);
        let (mut sent, mut acknowledged, mut passed, mut queued) = (0u64, 0u64, 0u64, 0u64);
        let (mut wire, mut next, step) = (VecDeque::new(), 0.0, 1e-4);
        for at in (0..200_000).map(|n| f64::from(n) * step) {
            while wire.pop_front_if(|arrives| *arrives <= at).is_some() {
                (queued, acknowledged) = (queued + 1, acknowledged + 1);
            }
            if queued > 0 && at >= next {
                (queued, passed, next) = (queued - 1, passed + 1, at + 1.0 / per_second);
            }
            let (now, rtt) = (Time::ZERO + Span::from_secs_f64(at), Span::from_secs_f64(round_trip));
            let open = receive_window.window(now, share, rtt, Span::from_millis(6), SEGMENT * queued);
            while SEGMENT * (sent + 1 - acknowledged) <= open {
                sent += 1;
                wire.push_back(at + round_trip);
            }
        }
        passed as f64 / (20.0 * per_second)
    }

    #[test]
    fn slow_streams_are_passed_on_without_a_gap_too() {
        for (per_second, round_trip) in [(60.0, 0.004), (120.0, 0.004), (120.0, 0.02), (400.0, 0.001), (400.0, 0.02)] {
            let used = used(per_second, round_trip);
            assert!(used > 0.97, "{per_second} a second over {round_trip} s: {used}");
        }
    }

    #[test]
    fn a_new_connection_gets_what_leaves_and_asking_again_is_free() {
        let mut slow_open = SlowOpen::default();
        let mut room = |left: u64, out: u64, idle: bool| {
            slow_open.available(Bytes::new(left), (Bytes::new(5_000), Bytes::new(out)), idle).get()
        };
        assert_eq!([room(0, 0, true), room(70_000, 1_400, true)], [5_000, 5_000]);
        assert_eq!([room(72_000, 1_400, false), room(72_000, 1_400, false)], [7_000; 2]);
        assert_eq!(room(74_000, 8_400, false), 2_000, "what is out counts");
        assert_eq!(room(75_000, 400_000, false), 0, "others have come of whom nothing was known");
        assert_eq!(room(170_000, 8_400, false), 98_000, "what was not given is not lost");
        assert_eq!(room(172_000, 0, true), 5_000, "nobody sends any more");
    }

    #[test]
    fn who_begins_as_tcp_does_is_not_held_back() {
        let mut slow_open = SlowOpen::default();
        let first = Bytes::new(14_000);
        let (mut window, mut left) = (first, Bytes::ZERO);
        assert_eq!(slow_open.available(left, (first, Bytes::ZERO), true), first);
        for _ in 0..10 {
            assert!(slow_open.available(left, (first, Bytes::ZERO), false) >= window, "{window} of {left}");
            (left, window) = (left + window, window * 2);
        }
    }

    #[test]
    fn connections_share_what_is_left_in_proportion_to_demand() {
        // 25 000 octets on the wire, and 7500.
        let window_budget = |waiting, out| {
            let (rate, rtt, standing) = (Rate::from_mbit(10), Span::from_millis(20), Span::from_millis(6));
            WindowBudget::new(rate, rtt, standing, SEGMENT, (Bytes::new(waiting), Bytes::new(out)))
        };
        let parts = |mut window_budget: WindowBudget, asks: [u64; 2]| {
            asks.iter().for_each(|more| window_budget.ask(Bytes::new(*more)));
            asks.map(|more| window_budget.part(Bytes::new(more)).get())
        };
        assert_eq!(parts(window_budget(0, 0), [20_000, 12_500]), [20_000, 12_500]);
        assert_eq!(parts(window_budget(25_000, 2_500), [45_000, 15_000]), [22_500, 7_500], "so much may come");
        assert_eq!(parts(window_budget(50_000, 2_500), [3_000, 1_000]), [3_000, 1_000]);
        assert_eq!(parts(window_budget(54_000, 2_500), [3_000, 1_000]), [750, 250], "so much may come and wait");
        assert_eq!(parts(window_budget(0, 40_000), [1, 2]), [0, 0]);
        assert_eq!(parts(window_budget(0, 0), [0, 0]), [0, 0]);
    }
}
