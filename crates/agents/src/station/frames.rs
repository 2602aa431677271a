//! The frames that a station receives: as a monitor interface shows them, or as arrival times suggest.

use crate::monitor::{MonitorError, MonitorReader};
use crate::tunnel::{Error, Say, clock};
use lasthop_laws::aggregation::meter::{Frame, Grouping, Meter, Tally};
use lasthop_laws::aggregation::timestamps::{Arrival, Arrivals};
use lasthop_signals::{MacAddress, Node, StationFeedback};
use lasthop_units::{Span, Time};
use std::collections::BTreeSet;
use std::time::Duration;

/// A source of frames.
pub(super) enum Frames {
    Monitor(Box<Monitor>),
    Arrivals(Box<Arrivals>),
}

/// A monitor interface, and what it has shown in this slot.
pub(super) struct Monitor {
    reader: MonitorReader,
    meter: Meter,
    tally: Tally,
    /// This machine's own addresses: a monitor hears everybody's frames.
    own: BTreeSet<MacAddress>,
    away: Option<Away>,
    missed: Missed,
    say: Say,
}

/// Frames that the interface showed faster than they were read, and what is done about slots that lack them.
///
/// The first of such slots is told to have no frames, which the law takes for silence: it keeps what it knew, rates included. Arrival times
/// would tell less, for what they tell of frames is an estimate, and of rates nothing in their first slots. Where the next
/// slot lacks frames as well the law must not stand still: that and those behind it are told from arrival times, as while the interface is away.
#[derive(Default)]
struct Missed {
    /// Frames in all.
    count: u64,
    /// Whatever began clearly before may lack frames.
    until: Time,
    /// The last slot lacked frames, and these are the packets since.
    arrivals: Option<Box<Arrivals>>,
}

/// The share of a slot, as a divisor, that may have passed when its predecessor is looked at: what was missed in it is not
/// noticed. The socket holds half a second of frames, and one that overflows was left alone for longer.
const LATE: u64 = 20;

/// The interface is down or gone, or has been in this slot: what it shows of the slot is not all.
struct Away {
    arrivals: Arrivals,
    /// It shows frames again; `None` until then.
    back: bool,
    tried: Time,
}

/// How often it is tried whether the interface is back.
const TRY: Span = Span::from_secs(1);

impl Frames {
    /// Opens the monitor interface if there is one.
    pub(super) fn open(monitor: Option<&str>, say: Say) -> Result<Frames, Error> {
        let Some(name) = monitor else { return Ok(Frames::Arrivals(Box::default())) };
        let reader = MonitorReader::open(name).map_err(|error| match error {
            MonitorError::Permission { .. } => Error::MonitorRight(error.into()),
            other => Error::Monitor(other.into()),
        })?;
        let own = own_addresses().map_err(Error::system("the addresses of interfaces"))?;
        let (meter, tally) = (Meter::new(Grouping::Air), Tally::default());
        Ok(Frames::Monitor(Box::new(Monitor { reader, meter, tally, own, away: None, missed: Missed::default(), say })))
    }

    /// A packet of the tunnel arrived.
    pub(super) fn packet(&mut self, packet: Arrival) {
        match self {
            Frames::Arrivals(arrivals) => arrivals.arrived(packet),
            Frames::Monitor(monitor) => {
                let Monitor { away, missed, .. } = monitor.as_mut();
                away.iter_mut().for_each(|away| away.arrivals.arrived(packet));
                missed.arrivals.iter_mut().for_each(|arrivals| arrivals.arrived(packet));
            }
        }
    }

    /// Takes in what the monitor interface has shown since the last call. That it goes down or away ends nothing.
    ///
    /// # Errors
    /// [`Error::Monitor`] if it cannot be read for another reason.
    pub(super) fn look(&mut self, now: Time) -> Result<(), Error> {
        let Frames::Monitor(monitor) = self else { return Ok(()) };
        monitor.come_back(now);
        loop {
            match monitor.reader.hear(Duration::ZERO) {
                Ok(None) => return Ok(()),
                Ok(Some(heard)) => {
                    let Monitor { meter, tally, own, .. } = monitor.as_mut();
                    let Some(mpdu) = &heard.mpdu else { continue };
                    meter.receive(heard.at, mpdu, &mut |frame: &Frame| count(tally, own, frame));
                }
                Err(error @ (MonitorError::Down { .. } | MonitorError::Gone { .. })) => monitor.go(now, &error),
                Err(error) => return Err(Error::Monitor(error.into())),
            }
        }
    }

    /// The account of the slot from `start` to `end`, taken `now`.
    ///
    /// # Errors
    /// [`Error::Monitor`] if the interface's socket does not say what it has dropped.
    pub(super) fn take(
        &mut self,
        now: Time,
        station: Node,
        slot: u32,
        start: Time,
        end: Time,
    ) -> Result<StationFeedback, Error> {
        let monitor = match self {
            Frames::Arrivals(arrivals) => return Ok(arrivals.feedback(station, slot, start, end)),
            Frames::Monitor(monitor) => monitor.as_mut(),
        };
        monitor.count_missed(now)?;
        let Monitor { meter, tally, own, away, missed, .. } = monitor;
        meter.advance(clock::monotonic(end), &mut |frame: &Frame| count(tally, own, frame));
        let mut account = std::mem::take(tally).feedback(station, slot, start, end);
        if missed.lacks(start, end) {
            // What it has made of sequence numbers has holes, too.
            *meter = Meter::new(Grouping::Air);
            account = StationFeedback::empty(station, slot, start, end);
            if let Some(arrivals) = &mut missed.arrivals {
                account = arrivals.feedback(station, slot, start, end);
            }
            missed.arrivals.get_or_insert_default();
        } else {
            missed.arrivals = None;
        }
        if let Some(gone) = away {
            account = gone.arrivals.feedback(station, slot, start, end);
            away.take_if(|away| away.back);
        }
        Ok(account)
    }

    /// Frames that the interface showed and nobody read in time, since the agent began; `None` without an interface.
    pub(super) fn missed(&self) -> Option<u64> {
        match self {
            Frames::Arrivals(_) => None,
            Frames::Monitor(monitor) => Some(monitor.missed.count),
        }
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
        let count = self.reader.dropped().map_err(|error| Error::Monitor(error.into()))?;
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
    fn go(&mut self, now: Time, error: &MonitorError) {
        if self.away.as_ref().is_none_or(|away| away.back) {
            (self.say)(&format!("{error}; until it is back, frames are told from the arrival times of packets"));
        }
        let arrivals = self.away.take().map(|away| away.arrivals).unwrap_or_default();
        self.away = Some(Away { arrivals, back: false, tried: now });
    }

    /// Tries whether the interface is back, if it was away. The next slot will be the first that it shows whole.
    fn come_back(&mut self, now: Time) {
        let Some(away) = self.away.as_mut().filter(|away| !away.back && now.since(away.tried) >= TRY) else { return };
        away.tried = now;
        if self.reader.reopen().is_err() {
            return;
        }
        away.back = true;
        (self.say)(&format!("{} is back", self.reader.name()));
        self.meter = Meter::new(Grouping::Air);
        // Another interface may have another address.
        self.own = own_addresses().unwrap_or_default().into_iter().chain(std::mem::take(&mut self.own)).collect();
    }
}

fn count(tally: &mut Tally, own: &BTreeSet<MacAddress>, frame: &Frame) {
    if own.contains(&frame.receiver) {
        tally.add(frame);
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
