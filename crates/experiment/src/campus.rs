//! One day of a campus library from a seed: twelve access points on channels 1, 6 and 11, other networks on the same channels, users who come
//! and go.
//! Source:     Lin and Jiang 2020 (12 access points of OpenWrt 15.05 in a library, over 3300 devices, 1060.9 GB; of the networks they
//!             heard 48.2 % were on channel 6, 25.7 % on 11, 16.1 % on 1). How many days that was, and what users did,
//!             they do not say. That sessions come as a Poisson process with a rate that follows the hour, and that
//!             sizes have long tails, is as Hernandez-Campos, Karaliopoulos, Papadopouli and Shen 2006 found on a
//!             campus; the numbers below are chosen, not measured.
//! Equations:  arrivals at an access point: Poisson, rate `SESSIONS` w_h / (sum_h w_h) an hour, w_h -> `HOURS`
//!             session: lognormal, median `SESSION`, sigma 1, at most `SESSION_MAX`; place: uniform on a disk of `RADIUS`
//!             page: `OBJECTS` objects at most of one size, lognormal, median `OBJECT`, sigma 1.5; then reading, lognormal, median
//!             `READING`, sigma 1;  download: Pareto, exponent 1.2, from 1 to 500 MB, one in `BETWEEN_DOWNLOADS` on average;
//!             one session in `VIEWERS` watches a film: a chunk of `CHUNK` every `CHUNK_EVERY`
//! Symbols:    as named
//! Deviations: two floors do not hear each other; on a floor two access points share a channel and hear each other, and so do their stations.
//!             A part of a quarter of an hour, of one channel and one floor, is a world of its own: connections do not outlive it, and
//!             channels are independent media. A device may be drawn for two access points at once.
//! Validity:   the world was fixed before any law ran in it. The means are 90 sessions and 9 GB a day and access point: ten such days
//!             carry what the paper collected.
//! Checked by: tests::*

use crate::Names;
use lasthop_units::{Seed, Span};
use rand::RngExt;
use std::fmt::Write as _;

/// Access points.
pub const ACCESS_POINTS: u32 = 12;
/// Their channels.
pub const CHANNELS: [u32; 3] = [1, 6, 11];
/// Floors; on each two access points have each channel.
pub const FLOORS: u32 = 2;
/// How long a part is.
pub const PART: Span = Span::from_secs(900);
/// Parts of a day.
pub const PARTS: u32 = 96;
/// Devices that may come.
const DEVICES: u32 = 3300;
/// Sessions that begin at an access point in a day, on average.
const SESSIONS: f64 = 90.0;
/// Weights of the hours: open from 7 to 23 o'clock, most people before noon, in the afternoon and in the evening.
const HOURS: [f64; 24] = [
    0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 4.0, 7.0, 9.0, 8.0, 5.0, 7.0, 9.0, 10.0, 9.0, 7.0, 5.0, 7.0, 8.0, 6.0, 3.0,
    0.0,
];
/// Seconds.
const SESSION: f64 = 1500.0;
const SESSION_MAX: f64 = 4.0 * 3600.0;
/// Metres. With the path loss through walls and shelves (exponent 4) the farthest have a ratio of some 15 dB.
const RADIUS: f64 = 30.0;
const OBJECTS: u32 = 12;
/// Bytes.
const OBJECT: f64 = 12_000.0;
const OBJECT_MAX: f64 = 5e6;
/// Seconds.
const READING: f64 = 20.0;
const BETWEEN_DOWNLOADS: f64 = 600.0;
/// Sessions that one of watches a film.
const VIEWERS: f64 = 12.0;
/// 2.4 Mbit/s.
const CHUNK: f64 = 1.5e6;
const CHUNK_EVERY: f64 = 5.0;
/// Other networks on a floor, by channel: of 24 in all, in the shares that the paper counted; the others are not heard.
const OTHERS: [u32; 3] = [2, 6, 3];

/// One part of the day.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Part {
    /// Which quarter of an hour, from midnight.
    pub quarter: u32,
    /// Place of its channel among [`CHANNELS`].
    pub channel: u32,
    /// The floor.
    pub floor: u32,
}

impl Part {
    /// When it begins.
    pub fn begin(self) -> Span {
        PART * u64::from(self.quarter)
    }

    /// Its two access points, by number.
    fn access_points(self) -> [u32; 2] {
        let first = (self.floor * CHANNELS.len() as u32 + self.channel) * 2;
        [first, first + 1]
    }
}

/// A page, a download or a chunk.
#[derive(Clone, Copy, Debug)]
struct Load {
    /// Seconds from midnight.
    at: f64,
    objects: u32,
    /// Bytes of each.
    size: f64,
}

/// Someone who is there for a while.
#[derive(Clone, Debug)]
struct Session {
    device: u32,
    distance: f64,
    loads: Vec<Load>,
}

/// A day.
#[derive(Clone, Debug)]
pub struct Day {
    seed: Seed,
    /// By access point.
    sessions: Vec<Vec<Session>>,
}

/// A world of the day.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct World {
    /// The scenario file.
    pub text: String,
    /// What its devices are called.
    pub names: Names,
}

impl Day {
    /// The day of this seed.
    pub fn new(seed: u64) -> Day {
        let seed = Seed(seed);
        Day { seed, sessions: (0..ACCESS_POINTS).map(|number| sessions(seed, number)).collect() }
    }

    /// Its parts, the earliest first.
    pub fn parts() -> impl Iterator<Item = Part> {
        let of = |quarter| {
            (0..FLOORS)
                .flat_map(move |floor| (0..CHANNELS.len() as u32).map(move |channel| Part { quarter, channel, floor }))
        };
        (0..PARTS).flat_map(of)
    }

    /// How many sessions there are, and how many bytes they load.
    pub fn totals(&self) -> (usize, f64) {
        let all = || self.sessions.iter().flatten();
        let loads = all().flat_map(|session| &session.loads);
        (all().count(), loads.map(|load| f64::from(load.objects) * load.size).sum())
    }

    /// The world of a part; `None` if nobody there loads anything.
    pub fn world(&self, part: Part) -> Option<World> {
        let (begin, length) = (part.begin().as_secs_f64(), PART.as_secs_f64());
        let access_points = part.access_points();
        let (mut stations, mut traffic, mut names) = (String::new(), String::new(), Vec::new());
        for (place, number) in access_points.into_iter().enumerate() {
            for (count, session) in self.sessions[number as usize].iter().enumerate() {
                let mut loads =
                    session.loads.iter().filter(|load| (begin..begin + length).contains(&load.at)).peekable();
                if loads.peek().is_none() {
                    continue;
                }
                let name = format!("s{number}-{count}");
                let _ = write!(
                    stations,
                    "[[station]]\nname = \"{name}\"\ndistance = \"{:.1} m\"\nrate-control = \"minstrel\"\n{}\n",
                    session.distance,
                    if place == 1 { "access-point = \"second\"\n" } else { "" }
                );
                loads.for_each(|load| traffic.push_str(&stream(&name, load, begin)));
                names.push(format!("device {}", session.device));
            }
        }
        if names.is_empty() {
            return None;
        }
        let access_points = access_points.iter().map(|number| format!("access point {number}")).collect();
        let text = format!("{}{stations}{}{traffic}{LAWS}", self.head(part), self.others(part));
        Some(World { text, names: Names { access_points, stations: names } })
    }

    fn head(&self, part: Part) -> String {
        let Part { quarter, channel, floor } = part;
        let (hour, minute, channel, seed) = (quarter / 4, quarter % 4 * 15, CHANNELS[channel as usize], self.seed.0);
        format!(
            "title = \"A campus library from {hour:02}:{minute:02}, channel {channel}, floor {floor}\"\n\
             description = \"Part of the day of seed {seed}: `lasthop record --campus`.\"\n\
             world = \"sim\"\nduration = \"{} s\"\nwarm-up = \"1 s\"\nseeds = 1\n\n\
             [wire]\nrate = \"100 Mbit/s\"\ndelay = \"5 ms\"\n\n\
             [hop.wifi]\nstandard = \"802.11n\"\nchannel = {channel}\nqueue = {{ kind = \"fq-codel\" }}\n\
             uplink-queue = \"100 packets\"\npath-loss-exponent = 4\n\n\
             [[access-point]]\nname = \"second\"\n\n",
            PART.as_secs_f64()
        )
    }

    /// The other networks that are active then. They are there all day, and busy as the hour is.
    fn others(&self, part: Part) -> String {
        let Part { quarter, channel, floor } = part;
        let busy = HOURS[quarter as usize / 4] / HOURS.iter().copied().fold(0.0, f64::max);
        let mut text = String::new();
        for number in 0..OTHERS[channel as usize] {
            let mut own = self.seed.stream(&format!("campus/other/{floor}/{channel}/{number}"));
            let (old, near) = (own.random::<f64>() < 0.3, own.random::<f64>() < 0.5);
            let mut then = self.seed.stream(&format!("campus/other/{floor}/{channel}/{number}/{quarter}"));
            let load = lognormal(&mut then, 500.0, 1.0).min(5000.0);
            if then.random::<f64>() >= busy {
                continue;
            }
            let radio = if old { "standard = \"802.11g\"\nrate = \"24 Mbit/s\"" } else { "mcs = 4" };
            let reach = if near { "decodes" } else { "senses" };
            let _ = write!(
                text,
                "[[neighbour]]\nname = \"other-{number}\"\n{radio}\nload = \"{load:.0} kbit/s\"\nreach-ap = \"{reach}\"\n\
                 reach-stations = \"{reach}\"\n\n"
            );
        }
        text
    }
}

const LAWS: &str = "[laws.cubic]\nsender = \"cubic\"\n\n\
    [laws.\"cubic+threshold\"]\nsender = \"cubic\"\nagent = {}\n\n\
    [laws.\"cubic+learned\"]\nsender = \"cubic\"\nagent = { predictor = \"learned\" }\n";

/// A stream of the scenario: as many objects as there are, 40 ms apart.
fn stream(station: &str, load: &Load, begin: f64) -> String {
    let start = ((load.at - begin) * 1000.0) as u64;
    let stop = (start + 40 * u64::from(load.objects)).min(PART.as_nanos() / 1_000_000);
    format!(
        "[[traffic]]\nkind = \"fetch\"\nto = \"{station}\"\nsize = \"{:.0} B\"\nevery = \"40 ms\"\nstart = \"{start} ms\"\n\
         stop = \"{stop} ms\"\n\n",
        load.size
    )
}

/// Everyone who comes to an access point.
fn sessions(seed: Seed, number: u32) -> Vec<Session> {
    let mut random = seed.stream(&format!("campus/access-point/{number}"));
    let (sum, mut sessions) = (HOURS.iter().sum::<f64>(), Vec::new());
    for (hour, weight) in HOURS.iter().enumerate().filter(|(_, weight)| **weight > 0.0) {
        let (gap, end) = (3600.0 * sum / (SESSIONS * weight), 3600.0 * (hour + 1) as f64);
        let mut at = 3600.0 * hour as f64 + exponential(&mut random, gap);
        while at < end {
            let stays = lognormal(&mut random, SESSION, 1.0).min(SESSION_MAX);
            let device = random.random_range(0..DEVICES);
            // Nearer than 2 m nobody sits.
            let distance = (RADIUS * random.random::<f64>().sqrt()).max(2.0);
            let loads = loads(&mut random, at, at + stays);
            sessions.push(Session { device, distance, loads });
            at += exponential(&mut random, gap);
        }
    }
    sessions
}

/// What is loaded in a session, the earliest first.
fn loads(random: &mut lasthop_units::Stream, begin: f64, end: f64) -> Vec<Load> {
    let mut loads = Vec::new();
    let mut at = begin;
    while at < end {
        let objects = random.random_range(1..=OBJECTS);
        loads.push(Load { at, objects, size: lognormal(random, OBJECT, 1.5).clamp(200.0, OBJECT_MAX) });
        at += lognormal(random, READING, 1.0);
    }
    let mut at = begin + exponential(random, BETWEEN_DOWNLOADS);
    while at < end {
        loads.push(Load { at, objects: 1, size: pareto(random, 1.2, 1e6, 5e8) });
        at += exponential(random, BETWEEN_DOWNLOADS);
    }
    if random.random::<f64>() * VIEWERS < 1.0 {
        let chunks = ((end - begin) / CHUNK_EVERY) as u32;
        loads.extend((0..chunks).map(|chunk| Load {
            at: begin + f64::from(chunk) * CHUNK_EVERY,
            objects: 1,
            size: CHUNK,
        }));
    }
    loads.sort_by(|one, other| one.at.total_cmp(&other.at));
    loads
}

fn exponential(random: &mut lasthop_units::Stream, mean: f64) -> f64 {
    -mean * (1.0 - random.random::<f64>()).ln()
}

/// By Box and Muller.
fn lognormal(random: &mut lasthop_units::Stream, median: f64, sigma: f64) -> f64 {
    let (one, other) = (1.0 - random.random::<f64>(), random.random::<f64>());
    let normal = (-2.0 * one.ln()).sqrt() * (std::f64::consts::TAU * other).cos();
    median * (sigma * normal).exp()
}

/// Cut off at `most`.
fn pareto(random: &mut lasthop_units::Stream, exponent: f64, least: f64, most: f64) -> f64 {
    let share = random.random::<f64>() * (1.0 - (least / most).powf(exponent));
    least * (1.0 - share).powf(-1.0 / exponent)
}

#[cfg(test)]
mod tests {
    use super::*;
    use lasthop_scenario::Scenario;
    use std::path::Path;

    #[test]
    fn every_world_of_an_hour_is_a_scenario() {
        let day = Day::new(1);
        let parts = Day::parts().filter(|part| (40..44).contains(&part.quarter));
        for part in parts {
            let world = day.world(part).expect("somebody is there before noon");
            let scenario = Scenario::parse("campus", &world.text, Path::new("/"));
            let scenario = scenario.unwrap_or_else(|error| panic!("{part:?}: {}", error.plain()));
            assert_eq!(scenario.stations().len(), world.names.stations.len());
            assert_eq!(scenario.further_access_points().len() + 1, world.names.access_points.len());
        }
    }

    #[test]
    fn a_day_is_as_it_is_described() {
        let (mut sessions, mut bytes) = (0.0, 0.0);
        for seed in 1..=10 {
            let (count, sum) = Day::new(seed).totals();
            sessions += count as f64 / f64::from(10 * ACCESS_POINTS);
            bytes += sum / f64::from(10 * ACCESS_POINTS);
        }
        eprintln!("a day and access point: {sessions:.1} sessions, {:.2} GB", bytes / 1e9);
        assert!((sessions - SESSIONS).abs() < 3.0, "{sessions}");
        assert!((7e9..11e9).contains(&bytes), "{bytes}");
        assert!(
            Day::parts().filter(|part| part.quarter < 28).all(|part| Day::new(1).world(part).is_none()),
            "at night"
        );
        assert_eq!(Day::parts().count() as u32, PARTS * FLOORS * CHANNELS.len() as u32);
    }

    #[test]
    fn each_access_point_has_its_part_of_each_quarter() {
        let mut all: Vec<u32> = Day::parts().filter(|part| part.quarter == 0).flat_map(Part::access_points).collect();
        all.sort_unstable();
        assert_eq!(all, (0..ACCESS_POINTS).collect::<Vec<_>>());
        let (one, other) = (Day::new(1), Day::new(2));
        let part = Part { quarter: 50, channel: 1, floor: 0 };
        assert_eq!(one.world(part), Day::new(1).world(part));
        assert_ne!(one.world(part), other.world(part));
    }
}
