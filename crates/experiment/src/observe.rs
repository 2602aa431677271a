//! A data set of what the access points of a simulated scenario see and lose.

#[cfg(doc)]
use lasthop_dataset::Recorder;
use lasthop_dataset::{Device, Observer, PseudonymKey, Recording, Row, World};
use lasthop_laws::oal::label::Timing;
use lasthop_scenario::{Scenario, SetUp};
use lasthop_sim::{SimError, build_with};
use lasthop_units::{Seed, Span, Time};
use ring::digest::{SHA256, digest};

/// What is observed.
#[derive(Clone, Copy, Debug)]
pub struct Observed<'a> {
    /// What runs.
    pub scenario: &'a Scenario,
    /// The set-up that runs it. Its agents act; access points without one are watched in shadow.
    pub law: &'a SetUp,
    /// The seed.
    pub seed: u64,
    /// What devices are called where pseudonyms are made of their names.
    pub names: &'a Names,
    /// How far labels look, and how long repairs are waited for: [`Recorder::TIMING`] for data sets.
    pub timing: Timing,
}

/// What devices are called.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Names {
    /// The access points, the hop's own first.
    pub access_points: Vec<String>,
    /// The stations, in the scenario's order.
    pub stations: Vec<String>,
}

impl Names {
    /// As the scenario calls them.
    pub fn of(scenario: &Scenario) -> Names {
        let access_points =
            std::iter::once(SetUp::AP).chain(scenario.further_access_points().iter().map(String::as_str));
        Names { access_points: access_points.map(str::to_owned).collect(), stations: scenario.stations().to_vec() }
    }
}

/// Why nothing, or not all, was observed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ObserveError<E> {
    /// The simulator refused the scenario.
    #[error(transparent)]
    Sim(#[from] SimError),
    /// Whoever took the rows did not want more.
    #[error("{0}")]
    Taker(E),
}

/// Virtual time after which what has become final is handed over.
const STEP: Span = Span::from_millis(500);

/// How a recording of this is described in a file.
pub fn recording(of: &Observed<'_>, key: &PseudonymKey) -> Recording {
    let Observed { scenario, law, seed, timing, .. } = of;
    let fingerprint = key.fingerprint();
    // The same world, law, seed and key make the same items.
    let all = format!("{}\0{}\0{seed}\0{timing:?}\0{fingerprint}", scenario.text(), law.name);
    let id = digest(&SHA256, all.as_bytes()).as_ref().iter().take(8).map(|octet| format!("{octet:02x}")).collect();
    Recording {
        id,
        world: World::Sim,
        scenario: scenario.name().to_owned(),
        law: law.name.clone(),
        seed: Some(*seed),
        begun: None,
        duration_us: scenario.duration().as_micros(),
        every_us: lasthop_dataset::EVERY.as_micros(),
        horizon_us: timing.horizon.as_micros(),
        repair_us: timing.repair.as_micros(),
        key: fingerprint,
    }
}

/// Simulates a scenario and gives `each` every item that becomes final, as one of the recording with this place, and later by `shift` than
/// in the scenario's time. Items without a final label at the end are left out. `progress` is told the virtual time
/// that has passed and answers whether to go on; the answer is false if it said no.
///
/// # Errors
/// See [`ObserveError`].
pub fn observe<E>(
    of: &Observed<'_>,
    key: &PseudonymKey,
    (recording, shift): (u32, Span),
    progress: &mut dyn FnMut(Span) -> bool,
    each: &mut dyn FnMut(Row) -> Result<(), E>,
) -> Result<bool, ObserveError<E>> {
    let Observed { scenario, law, seed, names, timing } = *of;
    let mut takers = Vec::new();
    let mut world = build_with(scenario, law, Seed(seed), false, &mut |_, law| {
        let observer = Observer::new(timing, law);
        takers.push(observer.taker());
        Some(Box::new(observer))
    })?;
    world.without_meters();
    let hidden = |device, names: &[String]| -> Vec<_> {
        names.iter().map(|name| key.pseudonym(device, name.as_bytes())).collect()
    };
    let access_points = hidden(Device::AccessPoint, &names.access_points);
    let stations = hidden(Device::Station, &names.stations);
    let end = Time::ZERO + scenario.duration();
    let mut until = Time::ZERO;
    while until < end {
        until = (until + STEP).min(end);
        world.run_until(until);
        for (take, access_point) in takers.iter_mut().zip(&access_points) {
            for observed in take() {
                let Some(station) = observed.item.station.index().checked_sub(1).and_then(|place| stations.get(place))
                else {
                    continue;
                };
                let mut row = Row::new(recording, *access_point, *station, &observed);
                row.at += shift;
                each(row).map_err(ObserveError::Taker)?;
            }
        }
        if !progress(until.since(Time::ZERO)) {
            return Ok(false);
        }
    }
    Ok(true)
}
