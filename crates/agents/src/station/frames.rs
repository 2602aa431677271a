//! The frames that a station receives: as a monitor interface shows them, or as arrival times suggest.

use crate::monitor::{MonitorError, MonitorReader};
use crate::tunnel::{Error, clock};
use lasthop_laws::aggregation::meter::{Frame, Grouping, Meter, Tally};
use lasthop_laws::aggregation::timestamps::{Arrival, Arrivals};
use lasthop_signals::{MacAddress, Node, StationFeedback};
use lasthop_units::Time;
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
}

impl Frames {
    /// Opens the monitor interface if there is one.
    pub(super) fn open(monitor: Option<&str>) -> Result<Frames, Error> {
        let Some(name) = monitor else { return Ok(Frames::Arrivals(Box::default())) };
        let failed = |error: MonitorError| Error::Monitor(error.into());
        let reader = MonitorReader::open(name).map_err(failed)?;
        let own = own_addresses().map_err(Error::system("the addresses of interfaces"))?;
        let (meter, tally) = (Meter::new(Grouping::Air), Tally::default());
        Ok(Frames::Monitor(Box::new(Monitor { reader, meter, tally, own })))
    }

    /// A packet of the tunnel arrived.
    pub(super) fn packet(&mut self, packet: Arrival) {
        if let Frames::Arrivals(arrivals) = self {
            arrivals.arrived(packet);
        }
    }

    /// Takes in what the monitor interface has shown since the last call.
    pub(super) fn look(&mut self) -> Result<(), Error> {
        let Frames::Monitor(monitor) = self else { return Ok(()) };
        let Monitor { reader, meter, tally, own } = monitor.as_mut();
        while let Some(heard) = reader.hear(Duration::ZERO).map_err(|error| Error::Monitor(error.into()))? {
            if let Some(mpdu) = &heard.mpdu {
                meter.receive(heard.at, mpdu, &mut |frame: &Frame| {
                    if own.contains(&frame.receiver) {
                        tally.add(frame);
                    }
                });
            }
        }
        Ok(())
    }

    /// The account of the slot from `start` to `end`.
    pub(super) fn take(&mut self, station: Node, slot: u32, start: Time, end: Time) -> StationFeedback {
        match self {
            Frames::Arrivals(arrivals) => arrivals.feedback(station, slot, start, end),
            Frames::Monitor(monitor) => {
                let Monitor { meter, tally, own, .. } = monitor.as_mut();
                meter.advance(clock::monotonic(end), &mut |frame: &Frame| {
                    if own.contains(&frame.receiver) {
                        tally.add(frame);
                    }
                });
                std::mem::take(tally).feedback(station, slot, start, end)
            }
        }
    }
}

/// Ethernet addresses of the interfaces of this network namespace.
fn own_addresses() -> std::io::Result<BTreeSet<MacAddress>> {
    let all = nix::ifaddrs::getifaddrs()?;
    let ethernet = all.filter_map(|one| one.address?.as_link_addr()?.addr());
    Ok(ethernet.filter(|address| *address != [0; 6]).map(MacAddress).collect())
}
