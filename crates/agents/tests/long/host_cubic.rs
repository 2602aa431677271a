//! CUBIC within bounds beside the kernel's own: the same without bounds, true to them with, and no faster after them.
//!
//! Long (`make test-long`): a minute and more, at seven pairs of connections a time.
#![allow(clippy::disallowed_methods, reason = "real time is what is tested")]

use crate::support;
use crate::support::watch;

use lasthop_agents::host::{Guard, Way};
use lasthop_agents::service::program_info::enable_statistics;
use lasthop_laws::Bounds;
use lasthop_units::{Span, Time};
use std::ops::RangeInclusive;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use support::cgroup;
use support::delay::{DelayWire, Queue};
use support::netns::{Netns, available};
use support::upload::Upload;
use watch::Watch;

/// One test at a time: they share two processors with what they measure.
static ALONE: Mutex<()> = Mutex::new(());

fn alone() -> MutexGuard<'static, ()> {
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

const FOREVER: Time = Time::from_nanos(u64::MAX / 2);

/// A station and a server with 20 Mbit/s and 20 ms between them, and a queue of 60 packets.
struct World {
    station: Netns,
    server: Netns,
    net: u8,
    _wire: Option<DelayWire>,
}

impl World {
    fn new(net: u8) -> World {
        World::joined(net, |station, server| {
            let queue = Queue { octets_a_second: 20e6 / 8.0, packets: 60 };
            Some(DelayWire::narrow((station, "t0"), (server, "s0"), Duration::from_millis(10), Some(queue)))
        })
    }

    /// The two with nothing between them.
    fn on_cable(net: u8) -> World {
        World::joined(net, |station, server| {
            station.veth("t0", server, "s0");
            None
        })
    }

    fn joined(net: u8, join: impl FnOnce(&Netns, &Netns) -> Option<DelayWire>) -> World {
        let (station, server) = (Netns::new("sta"), Netns::new("srv"));
        let wire = join(&station, &server);
        for (netns, device, end) in [(&station, "t0", 2), (&server, "s0", 1)] {
            netns.ip(&format!("addr add 10.{net}.1.{end}/24 dev {device}"));
            netns.ip(&format!("link set {device} up"));
        }
        World { station, server, net, _wire: wire }
    }

    fn upload(&self) -> Upload {
        self.upload_over("cubic")
    }

    fn upload_over(&self, congestion: &str) -> Upload {
        Upload::start(&self.station, &self.server, &format!("10.{}.1.1:0", self.net), congestion)
    }
}

/// Throughput in Mbit/s, window at a loss in segments, time between losses in seconds.
type Figures = [f64; 3];

const NAMES: [&str; 3] = ["throughput (Mbit/s)", "cwnd at a loss (segments)", "time between losses (s)"];

fn measure(upload: &Upload, watch: &Watch, before: u64, took: Duration) -> Figures {
    let seen = watch.seen(upload.cookie());
    assert!(seen.losses >= 4, "{seen:?}");
    let acked = upload.info().bytes_acked.expect("Linux tells it").get() - before;
    [acked as f64 * 8.0 / took.as_secs_f64() / 1e6, seen.cwnd_at_loss, seen.between_losses_s]
}

/// How far apart the two may be.
const ALIKE: RangeInclusive<f64> = 0.95..=1.05;

/// One figure of pairs of connections: with the guard, and the kernel's.
struct Pairs {
    ours: Vec<f64>,
    theirs: Vec<f64>,
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

impl Pairs {
    /// Of the means.
    fn ratio(&self) -> f64 {
        mean(&self.ours) / mean(&self.theirs)
    }

    /// Standard deviation of the ratios of pairs.
    fn spread(&self) -> f64 {
        let ratios: Vec<f64> = self.ours.iter().zip(&self.theirs).map(|(a, b)| a / b).collect();
        (ratios.iter().map(|r| (r - mean(&ratios)).powi(2)).sum::<f64>() / (ratios.len() - 1) as f64).sqrt()
    }

    /// True if the ratio and three standard errors about it are alike.
    fn decided(&self) -> bool {
        let error = 3.0 * self.spread() / (self.ours.len() as f64).sqrt();
        [-error, error].iter().all(|error| ALIKE.contains(&(self.ratio() + error)))
    }
}

/// Each figure of all pairs.
fn figures(pairs: &[[Figures; 2]]) -> [Pairs; NAMES.len()] {
    std::array::from_fn(|place| {
        let of = |which: usize| pairs.iter().map(|pair| pair[which][place]).collect();
        Pairs { ours: of(0), theirs: of(1) }
    })
}

#[test]
fn without_bounds_it_is_the_kernels_cubic() {
    let Some(cgroup) = available("CUBIC beside CUBIC").then(|| cgroup::own("CUBIC beside CUBIC")).flatten() else {
        return;
    };
    let _alone = alone();
    let watch = Watch::begin();
    let mut pairs: Vec<[Figures; 2]> = Vec::new();
    for round in 0..3u8 {
        // Seven pairs side by side, each connection on a wire of its own.
        let worlds: Vec<[World; 2]> = (0..7).map(|n| [World::new(160 + 2 * n), World::new(161 + 2 * n)]).collect();
        // Which of a pair's worlds has the guard changes: the first to be served by its processor is not always the same.
        let ours = usize::from(round % 2);
        let begin = |pair: &[World; 2]| {
            let guard =
                pair[ours].station.within(|| Guard::begin(&cgroup, Some(Way::Within), &|_| {})).expect("a guard");
            guard.hold_until(FOREVER);
            let uploads = [pair[ours].upload(), pair[1 - ours].upload()];
            assert!(guard.holds(&uploads[0].congestion()) && uploads[1].congestion() == "cubic");
            (guard, uploads)
        };
        let running: Vec<(Guard, [Upload; 2])> = worlds.iter().map(begin).collect();
        // Past slow start.
        std::thread::sleep(Duration::from_secs(5));
        let each = || running.iter().flat_map(|(_, uploads)| uploads);
        each().for_each(|upload| watch.watch(upload.cookie(), 0, u32::MAX));
        let acked: Vec<u64> = each().map(|upload| upload.info().bytes_acked.expect("Linux tells it").get()).collect();
        let began = Instant::now();
        std::thread::sleep(Duration::from_secs(28));
        let found: Vec<Figures> =
            each().zip(acked).map(|(upload, acked)| measure(upload, &watch, acked, began.elapsed())).collect();
        pairs.extend(found.chunks(2).map(|pair| [pair[0], pair[1]]));
        // So that another round would hardly change it.
        if figures(&pairs).iter().all(Pairs::decided) {
            break;
        }
    }
    for (figure, pairs) in NAMES.iter().zip(figures(&pairs)) {
        let Pairs { ours, theirs, .. } = &pairs;
        println!(
            "{figure}: {:.2} within no bounds, {:.2} the kernel's: ratio {:.4}, of pairs ± {:.4}",
            mean(ours),
            mean(theirs),
            pairs.ratio(),
            pairs.spread()
        );
        assert!(ALIKE.contains(&pairs.ratio()), "{figure}: {ours:?} {theirs:?}");
    }
}

#[test]
fn in_state_open_every_ack_leaves_the_window_within_bounds() {
    let Some(cgroup) = available("bounds at every ACK").then(|| cgroup::own("bounds at every ACK")).flatten() else {
        return;
    };
    let _alone = alone();
    let (watch, world) = (Watch::begin(), World::new(150));
    let mut guard = world.station.within(|| Guard::begin(&cgroup, Some(Way::Within), &|_| {})).expect("a guard");
    guard.hold_until(FOREVER);
    let upload = world.upload();
    // Below what the path holds, about that, and so much that losses come.
    for (lower, upper) in [(8, 12), (30, 50), (5, 6), (70, 80), (80, 110), (20, 25)] {
        watch.watch(upload.cookie(), lower, upper);
        guard.set(upload.cookie(), Some(Bounds { lower, upper })).expect("a map");
        upload.until("within", |info| (lower..=upper).contains(&info.cwnd));
        // A floor is approached in steps: no burst for its sake.
        let freed = watch.seen(upload.cookie()).freed;
        println!("{lower} to {upper}: an acknowledgement set {freed} segments free");
        assert!(freed <= 10, "{lower} to {upper}: {freed} at once");
        // A round trip with the fullest queue.
        std::thread::sleep(Duration::from_millis(100));
        watch.watch(upload.cookie(), lower, upper);
        std::thread::sleep(Duration::from_secs(4));
        let seen = watch.seen(upload.cookie());
        println!("{lower} to {upper}: {seen:?}");
        assert!(seen.open > 400 && (seen.above, seen.slow_start) == (0, 0), "{lower} to {upper}: {seen:?}");
        // After a loss the window begins at ssthresh, and is raised from there.
        if seen.losses == 0 {
            assert_eq!(seen.below, 0, "{lower} to {upper}: {seen:?}");
        }
    }
}

#[test]
fn what_was_bound_for_a_minute_grows_as_from_a_fresh_epoch() {
    let Some(cgroup) = available("growth after bounds").then(|| cgroup::own("growth after bounds")).flatten() else {
        return;
    };
    let alone = alone();
    const UPPER: u32 = 20;
    let worlds: Vec<World> = (0..6).map(|n| World::new(151 + n)).collect();
    let began: Vec<(Guard, Upload)> = worlds
        .iter()
        .map(|world| {
            let mut guard =
                world.station.within(|| Guard::begin(&cgroup, Some(Way::Within), &|_| {})).expect("a guard");
            guard.hold_until(FOREVER);
            let upload = world.upload();
            guard.set(upload.cookie(), Some(Bounds { lower: 2, upper: UPPER })).expect("a map");
            (guard, upload)
        })
        .collect();
    let at_bound = |upload: &Upload| upload.until("at its bound", |info| info.cwnd == UPPER);
    began.iter().for_each(|(_, upload)| at_bound(upload));
    // Three have been bound for a moment, three for a minute.
    let growth = |(mut guard, upload): (Guard, Upload)| {
        guard.set(upload.cookie(), None).expect("a map");
        let before = upload.info().delivered.expect("Linux tells it");
        // Five round trips: as many segments as five windows of the bound, and a look in each millisecond.
        upload.until("five round trips", |info| info.delivered.expect("as before").wrapping_sub(before) >= 5 * UPPER);
        let info = upload.info();
        (info.cwnd, info.rtt)
    };
    let mut began = began.into_iter();
    let fresh: Vec<_> = began.by_ref().take(3).map(growth).collect();
    // They are no burden to others meanwhile.
    drop(alone);
    std::thread::sleep(Duration::from_secs(60));
    let _alone = self::alone();
    let bound: Vec<_> = began.map(growth).collect();
    println!("windows after five round trips, from {UPPER}: fresh {fresh:?}, bound for a minute {bound:?}");
    let most = |of: &[(u32, Option<Span>)]| of.iter().map(|(cwnd, _)| *cwnd).max().expect("three");
    // CUBIC's curve, had it run on, would have asked for half as much again in each of five round trips.
    assert!(most(&bound) <= most(&fresh) + UPPER / 5, "fresh {fresh:?}, bound {bound:?}");
}

#[test]
fn what_bounds_add_to_an_acknowledgement() {
    let Some(cgroup) = available("cost of bounds").then(|| cgroup::own("cost of bounds")).flatten() else { return };
    let _alone = alone();
    // Acknowledgements come as fast as a processor sends segments.
    let (watch, world) = (Watch::begin(), World::on_cable(158));
    let mut guard = world.station.within(|| Guard::begin(&cgroup, Some(Way::Within), &|_| {})).expect("a guard");
    guard.hold_until(FOREVER);
    let (ours, _bare) = (world.upload(), world.upload_over("lhbare"));
    guard.set(ours.cookie(), Some(Bounds { lower: 10, upper: 40 })).expect("a map");
    let own = |guard: &Guard| {
        let cost = guard.cost().expect("programs");
        cost.into_iter().find(|(name, ..)| *name == "cong_avoid").map(|(_, runs, time)| (runs, time)).expect("there")
    };
    let mut each = Vec::new();
    std::thread::sleep(Duration::from_secs(1));
    for _ in 0..10 {
        let statistics = enable_statistics().expect("root");
        let before = (own(&guard), watch.bare());
        std::thread::sleep(Duration::from_secs(1));
        let after = (own(&guard), watch.bare());
        drop(statistics);
        let mean = |from: (u64, Span), to: (u64, Span)| (to.1 - from.1).as_nanos() as f64 / (to.0 - from.0) as f64;
        each.push((mean(before.0, after.0), mean(before.1, after.1)));
    }
    each.sort_by(|a, b| (a.0 - a.1).total_cmp(&(b.0 - b.1)));
    let (with, without) = each[each.len() / 2];
    println!(
        "cong_avoid: {with:.0} ns with bounds, {without:.0} ns without; both have two looks at the clock in them: {each:.0?}"
    );
    assert!(with - without < 100.0, "{each:?}");
}
