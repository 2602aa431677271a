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
    say: Say,
}

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
        Ok(Frames::Monitor(Box::new(Monitor { reader, meter, tally, own, away: None, say })))
    }

    /// A packet of the tunnel arrived.
    pub(super) fn packet(&mut self, packet: Arrival) {
        match self {
            Frames::Arrivals(arrivals) => arrivals.arrived(packet),
            Frames::Monitor(monitor) => monitor.away.iter_mut().for_each(|away| away.arrivals.arrived(packet)),
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

    /// The account of the slot from `start` to `end`.
    pub(super) fn take(&mut self, station: Node, slot: u32, start: Time, end: Time) -> StationFeedback {
        match self {
            Frames::Arrivals(arrivals) => arrivals.feedback(station, slot, start, end),
            Frames::Monitor(monitor) => {
                let Monitor { meter, tally, own, away, .. } = monitor.as_mut();
                meter.advance(clock::monotonic(end), &mut |frame: &Frame| count(tally, own, frame));
                let shown = std::mem::take(tally).feedback(station, slot, start, end);
                let Some(gone) = away else { return shown };
                let suggested = gone.arrivals.feedback(station, slot, start, end);
                away.take_if(|away| away.back);
                suggested
            }
        }
    }
}

impl Monitor {
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
