//! What a station's monitor interface shows of the frames that it receives, as the law is to see it.

use super::error::Error;
use crate::monitor::{MonitorError, MonitorReader};
use crate::service::{Say, clock, system};
use lasthop_laws::aggregation::meter::{Frame, Grouping, Meter};
use lasthop_signals::{FrameSource, MacAddress, MonitorEvent, Signal};
use lasthop_units::{Span, Time};
use std::collections::BTreeSet;
use std::time::Duration;

/// Where frames can be seen, if anywhere.
pub(super) struct Frames(Option<Box<Monitor>>);

/// A monitor interface.
struct Monitor {
    reader: MonitorReader,
    meter: Meter,
    /// This machine's own addresses: a monitor hears everybody's frames.
    own: BTreeSet<MacAddress>,
    away: Option<Away>,
    missed: Missed,
    /// There were more frames than one turn takes.
    more: bool,
    say: Say,
}

/// Frames that the interface showed faster than they were read.
#[derive(Default)]
struct Missed {
    /// Frames in all.
    count: u64,
    /// Whatever began clearly before may lack frames.
    until: Time,
}

/// The share of a slot, as a divisor, that may have passed when its predecessor is looked at: what was missed in it is not
/// noticed. The socket holds half a second of frames, and one that overflows was left alone for longer.
const LATE: u64 = 20;

/// The interface is down or gone, or has been in this slot: what it shows of the slot is not all.
struct Away {
    /// It shows frames again.
    back: bool,
    tried: Time,
}

/// Frames taken in one turn: 5 ms of work at most, so that neither packets nor a stop wait for a host that fills the
/// air.
const BUDGET: usize = 1024;
/// How often it is tried whether the interface is back.
const TRY: Span = Span::from_secs(1);

impl Frames {
    /// Opens the monitor interface if there is one.
    pub(super) fn open(monitor: Option<&str>, say: Say) -> Result<Frames, Error> {
        let Some(name) = monitor else { return Ok(Frames(None)) };
        let reader = MonitorReader::open(name).map_err(|error| match error {
            MonitorError::Permission { .. } => Error::MonitorRight(error),
            other => Error::Monitor(other),
        })?;
        let own = own_addresses().map_err(system("the addresses of interfaces"))?;
        let meter = Meter::new(Grouping::Air);
        Ok(Frames(Some(Box::new(Monitor {
            reader,
            meter,
            own,
            away: None,
            missed: Missed::default(),
            more: false,
            say,
        }))))
    }

    /// How the law is to tell frames.
    pub(super) fn source(&self) -> FrameSource {
        if self.0.is_some() { FrameSource::Radiotap } else { FrameSource::Timestamps }
    }

    /// Shows what the monitor interface has shown since the last call. That it goes down or away ends nothing.
    ///
    /// # Errors
    /// [`Error::Monitor`] if it cannot be read for another reason.
    pub(super) fn look(&mut self, now: Time, sense: &mut impl FnMut(&Signal)) -> Result<(), Error> {
        let Some(monitor) = &mut self.0 else { return Ok(()) };
        monitor.come_back(now, sense);
        monitor.more = false;
        for _ in 0..BUDGET {
            match monitor.reader.hear(Duration::ZERO) {
                Ok(None) => return Ok(()),
                Ok(Some(heard)) => {
                    let Monitor { meter, own, .. } = monitor.as_mut();
                    let Some(mpdu) = &heard.mpdu else { continue };
                    meter.receive(heard.at, mpdu, &mut |frame: &Frame| show(own, frame, sense));
                }
                Err(error @ (MonitorError::Down { .. } | MonitorError::Gone { .. })) => monitor.go(now, &error, sense),
                Err(error) => return Err(Error::Monitor(error)),
            }
        }
        monitor.more = true;
        Ok(())
    }

    /// True if there were more frames than one turn takes: the next one must not wait.
    pub(super) fn has_more(&self) -> bool {
        self.0.as_ref().is_some_and(|monitor| monitor.more)
    }

    /// Shows, `now`, what was left to show of the slot from `start` to `end`.
    ///
    /// # Errors
    /// [`Error::Monitor`] if the interface's socket does not say what it has dropped.
    pub(super) fn end_slot(
        &mut self,
        now: Time,
        (start, end): (Time, Time),
        sense: &mut impl FnMut(&Signal),
    ) -> Result<(), Error> {
        let Some(monitor) = &mut self.0 else { return Ok(()) };
        monitor.count_missed(now)?;
        let Monitor { meter, own, away, missed, .. } = monitor.as_mut();
        meter.advance(clock::monotonic(end), &mut |frame: &Frame| show(own, frame, sense));
        if missed.lacks(start, end) {
            // What it has made of sequence numbers has holes, too.
            *meter = Meter::new(Grouping::Air);
            sense(&Signal::Monitor(MonitorEvent::Overrun));
        }
        away.take_if(|away| away.back);
        Ok(())
    }

    /// Frames that the interface showed and nobody read in time, since the agent began; `None` without an interface.
    pub(super) fn missed(&self) -> Option<u64> {
        self.0.as_ref().map(|monitor| monitor.missed.count)
    }
}

impl Missed {
    /// True if the slot may lack frames.
    fn lacks(&self, start: Time, end: Time) -> bool {
        start + end.since(start) / LATE < self.until
    }
}

impl Monitor {
    /// Asks the socket what it has dropped until now.
    fn count_missed(&mut self, now: Time) -> Result<(), Error> {
        let count = self.reader.dropped().map_err(Error::Monitor)?;
        if count == self.missed.count {
            return Ok(());
        }
        if self.missed.count == 0 {
            let name = self.reader.name();
            (self.say)(&format!(
                "{name}: {count} frames came faster than they were read; slots that lack frames are not told from it (later ones: \
                 monitor_missed in the log)"
            ));
        }
        (self.missed.count, self.missed.until) = (count, now);
        Ok(())
    }

    /// Frames are told from arrival times until the interface shows some again.
    fn go(&mut self, now: Time, error: &MonitorError, sense: &mut impl FnMut(&Signal)) {
        if self.away.as_ref().is_none_or(|away| away.back) {
            (self.say)(&format!("{error}; until it is back, frames are told from the arrival times of packets"));
        }
        self.away = Some(Away { back: false, tried: now });
        sense(&Signal::Monitor(MonitorEvent::Down));
    }

    /// Tries whether the interface is back, if it was away. The next slot will be the first that it shows whole.
    fn come_back(&mut self, now: Time, sense: &mut impl FnMut(&Signal)) {
        let Some(away) = self.away.as_mut().filter(|away| !away.back && now.since(away.tried) >= TRY) else { return };
        away.tried = now;
        if self.reader.reopen().is_err() {
            return;
        }
        away.back = true;
        sense(&Signal::Monitor(MonitorEvent::Up));
        (self.say)(&format!("{} is back", self.reader.name()));
        self.meter = Meter::new(Grouping::Air);
        // Another interface may have another address.
        self.own = own_addresses().unwrap_or_default().into_iter().chain(std::mem::take(&mut self.own)).collect();
    }
}

/// Shows a frame that is this machine's own.
fn show(own: &BTreeSet<MacAddress>, frame: &Frame, sense: &mut impl FnMut(&Signal)) {
    if own.contains(&frame.receiver) {
        sense(&Signal::Frame(frame.as_received()));
    }
}

/// Ethernet addresses of the interfaces of this network namespace.
fn own_addresses() -> std::io::Result<BTreeSet<MacAddress>> {
    let all = nix::ifaddrs::getifaddrs()?;
    let ethernet = all.filter_map(|one| one.address?.as_link_addr()?.addr());
    Ok(ethernet.filter(|address| *address != [0; 6]).map(MacAddress).collect())
}

#[cfg(test)]
mod tests;
