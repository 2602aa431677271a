//! The stations' accounts, and when a slot of the controller is over.
//! Source:     \[aggregation\], slots of length Δ; guards on silence and on stale slots are own.
//! Equations:  none
//! Symbols:    Δ -> `interval`
//! Deviations: a slot ends when every active station has reported one more slot of its own, so that what was measured
//!             belongs to the rates that were in force, whatever the phase of the stations' clocks; at the latest after
//!             1.25 Δ, and not before 0.5 Δ. Reports that missed their slot count in the next one, added to its own.
//!             Ten slots in which data waits or is sent, and neither frames nor packets arrive, take a station out of the
//!             round, until it reports some.
//! Validity:   stations with slots of length Δ.
//! Checked by: tests::*, controller::tests

use super::activity::Activity;
use lasthop_signals::{Node, StationFeedback, StreamReport};
use lasthop_units::{Span, Time};
use std::collections::BTreeMap;

/// All stations, each with the state `T` of a controller.
#[derive(Clone, Debug)]
pub struct Stations<T> {
    interval: Span,
    /// Stations for which nothing waits rest; otherwise they are present to the end of the slot.
    rests: bool,
    accounts: BTreeMap<Node, Account<T>>,
    /// When the last slot ended; `None` while no station is active.
    ended: Option<Time>,
    /// Active stations that have not reported since.
    awaited: usize,
}

/// One station.
#[derive(Clone, Debug, Default)]
pub struct Account<T> {
    /// What the controller keeps of it.
    pub state: T,
    /// Whether it is there.
    pub activity: Activity,
    /// Slots in a row in which it has reported no frames.
    pub silent: u32,
    /// Mean network-layer octets of the packets sent to it; `None` before there was one.
    pub packet_bytes: Option<f64>,
    last_slot: Option<u32>,
    /// The slot does not end before it has reported, if it does in time.
    awaited: bool,
    reported: bool,
    reports: SlotReports,
    stream: Option<Stream>,
}

/// What a station has reported since the last slot ended.
#[derive(Clone, Copy, Debug, Default)]
struct SlotReports {
    frames: u64,
    packets: u64,
    received: u64,
    lost: u64,
    /// Sum of the delays of what was received, seconds; and how many of them were told.
    delays: f64,
    timed: u64,
    inverse_rates: f64,
    /// Frames of accounts that know rates.
    rated: u64,
    seconds: f64,
}

/// The counters of the stream, and where they stood when the last slot ended.
#[derive(Clone, Copy, Debug)]
struct Stream {
    now: StreamReport,
    at: Time,
    before: StreamReport,
    before_at: Time,
    /// True if it has begun under the name of another.
    anew: bool,
}

/// What is known of one station's slot.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Slot {
    /// The frames that it received; `None` if it reported none.
    pub frames: Option<Frames>,
    /// Packets a second that the proxy sent; `None` if the proxy does not say.
    pub sent: Option<f64>,
    /// True if data waits at the proxy.
    pub waiting: bool,
    /// Seconds since the last slot was closed.
    pub lasted: f64,
    /// True if another stream has taken the place of the one before: the station's clock may be another.
    pub anew: bool,
}

/// A station's frames.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Frames {
    /// Mean packets a frame (μ̃_N).
    pub level: f64,
    /// Mean time between frames, seconds.
    pub interval: f64,
    /// Length of the station's account, seconds.
    pub seconds: f64,
    /// Packets a second in them.
    pub rate: f64,
    /// Packets of the proxy's stream a second; `None` where the station does not count them.
    pub goodput: Option<f64>,
    /// Packets of that stream a second that are known to be lost.
    pub lost: f64,
    /// Mean delay of that stream's packets, seconds, clock offset included; `None` where the station does not measure it.
    pub delay: Option<f64>,
    /// Mean of 1/R, seconds a bit; `None` where the station does not know rates.
    pub inverse_rate: Option<f64>,
}

/// Silent slots after which a station's state is frozen.
pub const FROZEN_AFTER: u32 = 2;
/// Silent slots after which the station counts as gone: it no longer has a place in the round.
pub const GONE_AFTER: u32 = 10;
/// A slot lasts at most this many intervals.
const LATEST: f64 = 1.25;
/// And at least this many.
const EARLIEST: f64 = 0.5;

impl<T: Default> Stations<T> {
    /// No stations yet.
    pub fn new(interval: Span, rests: bool) -> Stations<T> {
        Stations { interval, rests, accounts: BTreeMap::new(), ended: None, awaited: 0 }
    }

    /// Folds a report of the proxy in. True if its station has become active with it.
    pub fn stream(&mut self, now: Time, report: &StreamReport) -> bool {
        let account = self.accounts.entry(report.station).or_default();
        let begun = Stream { now: *report, at: now, before: *report, before_at: now, anew: false };
        let stream = account.stream.get_or_insert(begun);
        if report.packets < stream.now.packets || report.bytes < stream.now.bytes {
            // A new stream under an old name.
            *stream = Stream { anew: true, ..begun };
        }
        // One that has gone is sent to and says nothing. It is back when it reports a frame.
        let sends = (report.waiting || report.packets > stream.before.packets) && account.silent < GONE_AFTER;
        (stream.now, stream.at) = (*report, now);
        let rests = self.rests && !report.waiting;
        self.activate(now, report.station, sends, rests)
    }

    /// Folds a station's report in. True if the station has become active with it.
    pub fn feedback(&mut self, now: Time, report: &StationFeedback) -> bool {
        let account = self.accounts.entry(report.station).or_default();
        if account.last_slot.is_some_and(|last| !report.is_newer_than(last)) {
            return false;
        }
        account.last_slot = Some(report.slot);
        account.reports.add(report);
        account.reported = true;
        self.awaited -= usize::from(std::mem::take(&mut account.awaited));
        // Without word from the proxy, a station that receives frames is one that is sent to.
        let sends = match account.stream {
            None => report.frames > 0,
            Some(_) => account.silent >= GONE_AFTER && (report.frames > 0 || report.received > 0),
        };
        self.activate(now, report.station, sends, false)
    }

    fn activate(&mut self, now: Time, station: Node, sends: bool, rests: bool) -> bool {
        let account = self.accounts.get_mut(&station).expect("made before");
        if account.is_active() || !sends {
            return false;
        }
        account.activity.enter(now, rests);
        account.silent = 0;
        account.awaited = !account.reported;
        self.awaited += usize::from(account.awaited);
        self.ended.get_or_insert(now);
        true
    }

    /// Nothing has waited for the station for a while ([`Activity::rest`]). True if it was present until now.
    pub fn rest(&mut self, now: Time, station: Node) -> bool {
        self.rests && self.accounts.get_mut(&station).is_some_and(|account| account.activity.rest(now))
    }

    /// Something waits for the station ([`Activity::resume`]). True if it has rested until now.
    pub fn resume(&mut self, now: Time, station: Node) -> bool {
        self.accounts.get_mut(&station).is_some_and(|account| account.activity.resume(now))
    }

    /// When the controller wants to be woken at the latest.
    pub fn deadline(&self) -> Option<Time> {
        self.ended.map(|ended| ended + self.interval.scale(LATEST))
    }

    /// True if the slot is over.
    pub fn is_due(&self, now: Time) -> bool {
        let Some(ended) = self.ended else { return false };
        let age = now.since(ended);
        age >= self.interval.scale(LATEST) || self.awaited == 0 && age >= self.interval.scale(EARLIEST)
    }

    /// Ends the slot: tells `each` what is known of it, station by station, and begins the next.
    pub fn close(&mut self, now: Time, mut each: impl FnMut(&mut Account<T>, &Slot)) {
        self.awaited = 0;
        let mut any = false;
        let lasted = self.ended.map_or(0.0, |ended| now.since(ended).as_secs_f64());
        for account in self.accounts.values_mut() {
            let slot = account.close(now, lasted, self.rests);
            each(account, &slot);
            any |= account.is_active();
            // One that has fallen silent is not waited for.
            account.awaited = account.is_active() && account.silent < FROZEN_AFTER;
            self.awaited += usize::from(account.awaited);
        }
        self.ended = any.then_some(now);
    }

    /// Every station, in the order of their numbers.
    pub fn iter(&self) -> impl Iterator<Item = (Node, &Account<T>)> {
        self.accounts.iter().map(|(node, account)| (*node, account))
    }

    /// Every station, to be changed.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = (Node, &mut Account<T>)> {
        self.accounts.iter_mut().map(|(node, account)| (*node, account))
    }

    /// The active stations, those that rest included.
    pub fn active(&self) -> impl Iterator<Item = &Account<T>> {
        self.accounts.values().filter(|account| account.is_active())
    }

    /// Those that have a place in the rounds now.
    pub fn present(&self) -> impl Iterator<Item = &Account<T>> {
        self.accounts.values().filter(|account| account.is_present())
    }

    /// One station.
    pub fn get(&self, station: Node) -> Option<&Account<T>> {
        self.accounts.get(&station)
    }

    /// One station, to be changed.
    pub fn get_mut(&mut self, station: Node) -> Option<&mut Account<T>> {
        self.accounts.get_mut(&station)
    }
}

impl<T> Account<T> {
    /// It is sent to: [`Activity::is_active`].
    pub fn is_active(&self) -> bool {
        self.activity.is_active()
    }

    /// It has a place in the rounds: [`Activity::is_present`].
    pub fn is_present(&self) -> bool {
        self.activity.is_present()
    }

    /// `lasted`: seconds since the last slot was closed; `rests`: as in [`Stations`].
    fn close(&mut self, now: Time, lasted: f64, rests: bool) -> Slot {
        let heard = self.reports.received > 0;
        let frames = std::mem::take(&mut self.reports).frames();
        self.reported = false;
        let (mut sent, mut waiting, mut packets, mut anew) = (None, false, 0, false);
        if let Some(stream) = &mut self.stream {
            packets = stream.now.packets - stream.before.packets;
            let bytes = stream.now.bytes - stream.before.bytes;
            if packets > 0 {
                self.packet_bytes = Some((bytes.get() as f64 / packets as f64).clamp(1.0, 65_535.0));
            }
            // The reports came just before the station's, so they cover the time that its slot covers.
            let seconds = stream.at.since(stream.before_at).as_secs_f64();
            sent = (seconds > 0.0).then(|| packets as f64 / seconds);
            waiting = stream.now.waiting;
            anew = std::mem::take(&mut stream.anew);
            (stream.before, stream.before_at) = (stream.now, if stream.at > Time::ZERO { stream.at } else { now });
        }
        let sends = waiting || packets > 0;
        // A station without traffic has nothing to report.
        let spoken = frames.is_some() || self.stream.is_some() && !sends;
        // A station that receives packets is there, even if it cannot tell frames.
        let most = if heard { GONE_AFTER - 1 } else { u32::MAX };
        self.silent = if spoken { 0 } else { self.silent.saturating_add(1).min(most) };
        let active = match self.stream {
            Some(_) => sends && self.silent < GONE_AFTER,
            None => self.silent < FROZEN_AFTER,
        };
        if rests {
            self.activity.measure(now, lasted, sent);
        }
        self.activity.end_slot(now, active);
        Slot { frames, sent, waiting, lasted, anew }
    }
}

impl SlotReports {
    fn add(&mut self, report: &StationFeedback) {
        self.frames += u64::from(report.frames);
        // A frame holds a packet at least; a station that says otherwise miscounts.
        self.packets = self.packets.saturating_add(report.packets.max(u64::from(report.frames)));
        self.received = self.received.saturating_add(report.received);
        self.lost = self.lost.saturating_add(report.lost);
        if let Some(delay) = report.delay_mean {
            self.delays += delay.as_secs_f64() * report.received as f64;
            self.timed = self.timed.saturating_add(report.received);
        }
        if report.inverse_rate_sum > 0.0 {
            self.inverse_rates += report.inverse_rate_sum;
            self.rated += u64::from(report.frames);
        }
        self.seconds += report.end.since(report.start).as_secs_f64();
    }

    fn frames(self) -> Option<Frames> {
        if self.frames == 0 || self.seconds <= 0.0 {
            return None;
        }
        let frames = self.frames as f64;
        let inverse = self.inverse_rates / self.rated.max(1) as f64;
        let slowest_and_fastest = [StationFeedback::SLOWEST, StationFeedback::FASTEST];
        let [most, least] = slowest_and_fastest.map(|rate| 1.0 / rate.as_bps() as f64);
        // A quotient is rounded.
        let believed = (least * (1.0 - 1e-9)..=most * (1.0 + 1e-9)).contains(&inverse);
        Some(Frames {
            level: self.packets as f64 / frames,
            interval: self.seconds / frames,
            seconds: self.seconds,
            rate: self.packets as f64 / self.seconds,
            goodput: (self.received > 0).then(|| self.received as f64 / self.seconds),
            lost: self.lost as f64 / self.seconds,
            delay: (self.timed > 0).then(|| self.delays / self.timed as f64),
            inverse_rate: believed.then_some(inverse),
        })
    }
}

#[cfg(test)]
mod tests;
