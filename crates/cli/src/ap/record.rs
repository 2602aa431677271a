//! `lasthop ap --record`: a data set of what the agent sees, while it runs.

use crate::flag::Wrong;
use crate::note;
use anyhow::Context as _;
use lasthop_agents::ap::status::State;
use lasthop_agents::service::clock::monotonic_now;
use lasthop_agents::service::status::{Status, Viewer};
use lasthop_dataset::{
    DataSetError, Device, EVERY, Observed, Observer, Pseudonym, PseudonymKey, Recorder, Recording, Row, World, Writer,
};
use lasthop_laws::HopLaw;
use lasthop_signals::Node;
use lasthop_units::{Time, count};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

/// How often what has become final is taken, and how many of these go by until it is written onto the disk.
const TAKE: Duration = Duration::from_secs(1);
const FLUSH: u32 = 10;

/// What has been observed since the last call.
type Taker = Box<dyn FnMut() -> Vec<Observed> + Send>;

/// A recording that goes on. A viewer: the agent shows it what stations are called, and gives it a thread.
pub struct Tape(Mutex<Inner>);

struct Inner {
    /// `None` once it is finished, or has failed.
    writer: Option<Writer>,
    failed: Option<DataSetError>,
    take: Taker,
    key: PseudonymKey,
    access_point: Pseudonym,
    stations: BTreeMap<Node, Pseudonym>,
    /// Time 0 of the recording, by the agent's clock.
    zero: Time,
    turns: u32,
}

impl Tape {
    /// Begins to record into `path` what `law` sees and does on `iface`. Gives the law to run in its place.
    ///
    /// # Errors
    /// If there is such a file, or it cannot be made.
    pub fn begin(
        path: &Path,
        key: PseudonymKey,
        iface: &str,
        law: Box<dyn HopLaw>,
    ) -> anyhow::Result<(Arc<Tape>, Box<dyn HopLaw>)> {
        let (zero, begun) = (monotonic_now(), SystemTime::now());
        // An interface's hardware address, as the kernel tells it; a tunnel has none.
        let hardware = std::fs::read_to_string(format!("/sys/class/net/{iface}/address")).unwrap_or_default();
        let name = if hardware.trim().is_empty() { iface } else { hardware.trim() };
        let begun = humantime::format_rfc3339_micros(begun).to_string();
        let recording = Recording {
            id: key.pseudonym(Device::AccessPoint, format!("{name} since {begun}").as_bytes()).to_string(),
            world: World::AccessPoint,
            scenario: iface.to_owned(),
            law: law.name().to_owned(),
            seed: None,
            begun: Some(begun),
            duration_us: 0,
            every_us: EVERY.as_micros(),
            horizon_us: Recorder::TIMING.horizon.as_micros(),
            repair_us: Recorder::TIMING.repair.as_micros(),
            key: key.fingerprint(),
        };
        if path.try_exists().context("--record")? {
            return Err(Wrong::line(format!("--record: {} is there already: name another file", path.display())));
        }
        let writer = Writer::create(path, vec![recording]).context("--record")?;
        let observer = Observer::new(Recorder::TIMING, Some(law));
        let inner = Inner {
            writer: Some(writer),
            failed: None,
            take: Box::new(observer.taker()),
            access_point: key.pseudonym(Device::AccessPoint, name.as_bytes()),
            key,
            stations: BTreeMap::new(),
            zero,
            turns: 0,
        };
        Ok((Arc::new(Tape(Mutex::new(inner))), Box::new(observer)))
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes the file of what was recorded; none of nothing.
    ///
    /// # Errors
    /// What went wrong with it, now or before; `FILE.part` has what there is.
    pub fn finish(&self) -> anyhow::Result<()> {
        let mut inner = self.inner();
        inner.turn(true);
        let failed = inner.failed.take();
        let writer = inner.writer.take();
        let written = match (failed, writer) {
            (None, Some(writer)) if writer.is_empty() => {
                note!("nothing was recorded");
                return writer.discard().context("--record");
            }
            (None, Some(writer)) => writer.finish(),
            (Some(error), _) => Err(error),
            (None, None) => anyhow::bail!("the data set was finished before"),
        };
        // Without the privileges that the agent gave up its directory may be closed to it.
        let written = written.context(
            "the data set stays in FILE.part: `lasthop dataset merge FILE.part --out FILE` makes a file of it",
        )?;
        note!("{} recorded", count(usize::try_from(written.rows)?, "item"));
        Ok(())
    }
}

impl Inner {
    /// Takes what has become final, and writes it now and then.
    fn turn(&mut self, last: bool) {
        let rows = (self.take)();
        let Some(writer) = &mut self.writer else { return };
        let write = |writer: &mut Writer| -> Result<(), DataSetError> {
            for observed in rows {
                let station = observed.item.station;
                // Of a station that was never shown nobody knows the address: it is nobody's twin.
                let unknown = || {
                    self.key.pseudonym(Device::Station, format!("{} of {}", station.0, self.access_point).as_bytes())
                };
                let station = self.stations.get(&station).copied().unwrap_or_else(unknown);
                let row = Row::new(0, self.access_point, station, &observed);
                writer.push(Row { at: Time::ZERO + row.at.since(self.zero), ..row })?;
            }
            self.turns += 1;
            if last || self.turns.is_multiple_of(FLUSH) {
                let lasted = monotonic_now().since(self.zero);
                writer.set_duration(lasted.as_micros());
                writer.flush()?;
            }
            Ok(())
        };
        if let Err(error) = write(writer) {
            note!("recording ends, the agent goes on: {error}");
            self.failed = Some(error);
            self.writer = None;
        }
    }
}

impl std::fmt::Debug for Tape {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Tape")
    }
}

impl Viewer<State> for Tape {
    fn serve(&self) {
        loop {
            std::thread::sleep(TAKE);
            self.inner().turn(false);
        }
    }

    fn show(&self, status: &Status<State>) {
        // The control loop does not wait for a disk: what stations are called is shown twice a second.
        let Ok(mut inner) = self.0.try_lock() else { return };
        let inner = &mut *inner;
        for station in &status.state.stations {
            if let Some(address) = &station.address {
                inner.stations.insert(Node(station.station), inner.key.pseudonym(Device::Station, address.as_bytes()));
            }
        }
    }
}
