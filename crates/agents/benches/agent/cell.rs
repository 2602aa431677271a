//! A driver of thirty stations that tells 250 times a second of a hop which carries what it is told to.

use crate::support::driver::{admitted, listening, tell};
use lasthop_signals::{ChannelTime, HopReport, Node, StationReport};
use lasthop_units::{Bytes, Rate, Span, Time};
use lasthop_wire::driver::{Record, encode};
use nix::time::{ClockId, clock_gettime};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

pub const STATIONS: u16 = 30;
const INTERVAL: Duration = Duration::from_millis(4);
/// Of every station, and what its exchanges take beyond the payload at that rate.
const PHY: Rate = Rate::from_mbit(1200);
const OVERHEAD: f64 = 1.2;
/// Packets that wait for each station while the hop is full: some 20 ms of all.
const WAITING: u32 = 60;

/// Tells until it is dropped.
pub struct Cell {
    state: Arc<State>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct State {
    stop: AtomicBool,
    full: AtomicBool,
    /// When the first record went that said so, by `CLOCK_REALTIME`, ns; 0 before.
    told: AtomicU64,
}

impl Cell {
    /// Listens at `path`; the hop carries `rate`.
    pub fn listen(path: &Path, rate: Rate) -> Cell {
        let (listener, state) = (listening(path), Arc::new(State::default()));
        let kept = Arc::clone(&state);
        let thread = std::thread::spawn(move || {
            let (mut readers, began) = (Vec::new(), Instant::now());
            let mut next = began;
            while !kept.stop.load(Ordering::Relaxed) {
                readers.extend(admitted(&listener));
                let full = kept.full.load(Ordering::Acquire);
                let record = record(rate, began.elapsed(), full);
                let now = nanoseconds(ClockId::CLOCK_REALTIME);
                tell(&mut readers, &record);
                if full {
                    let _ = kept.told.compare_exchange(0, now, Ordering::Release, Ordering::Relaxed);
                }
                next = (next + INTERVAL).max(Instant::now());
                std::thread::sleep(next.saturating_duration_since(Instant::now()));
            }
        });
        Cell { state, thread: Some(thread) }
    }

    /// From the next record on packets wait for every station. When that was sent, by `CLOCK_REALTIME`, ns.
    pub fn fill(&self) -> u64 {
        self.state.told.store(0, Ordering::Release);
        self.state.full.store(true, Ordering::Release);
        loop {
            std::thread::sleep(Duration::from_micros(500));
            match self.state.told.load(Ordering::Acquire) {
                0 => {}
                at => return at,
            }
        }
    }

    /// From the next record on none waits.
    pub fn drain(&self) {
        self.state.full.store(false, Ordering::Release);
    }
}

impl Drop for Cell {
    fn drop(&mut self) {
        self.state.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn record(rate: Rate, since: Duration, full: bool) -> Vec<u8> {
    let seconds = since.as_secs_f64();
    let bytes = (rate.as_bps() as f64 / 8.0 * seconds / f64::from(STATIONS)) as u64;
    let packets = bytes / 1_500;
    let airtime = bytes as f64 * 8.0 / PHY.as_bps() as f64 * OVERHEAD;
    let waits = if full { WAITING } else { 0 };
    let station = |number| StationReport {
        backlog_packets: waits,
        backlog_bytes: Bytes::new(u64::from(waits) * 1_500),
        head_wait: Some(if full { Span::from_millis(10) } else { Span::ZERO }),
        tx_attempts: Some(packets),
        tx_packets: packets,
        tx_bytes: Bytes::new(bytes),
        tx_airtime: Some(Span::from_secs_f64(airtime)),
        tx_ppdus: Some(packets / 16),
        phy_rate: PHY,
        ..StationReport::unseen(Node(number))
    };
    let busy = Span::from_secs_f64(airtime * f64::from(STATIONS));
    let active = Span::from_nanos(since.as_nanos() as u64);
    let channel =
        ChannelTime { active, busy: Some(busy), rx: Some(Span::ZERO), tx: Some(busy), ..ChannelTime::default() };
    let report = HopReport { channel, stations: (1..=STATIONS).map(station).collect(), ..HopReport::default() };
    let at = Time::from_nanos(nanoseconds(ClockId::CLOCK_MONOTONIC));
    let addresses = (1..=STATIONS).map(|number| (Node(number), [2, 0x4c, 0x48, 0, 0, number as u8])).collect();
    encode(&Record { at, report, addresses }).expect("few stations")
}

fn nanoseconds(clock: ClockId) -> u64 {
    let now = clock_gettime(clock).expect("always there");
    now.tv_sec() as u64 * 1_000_000_000 + now.tv_nsec() as u64
}
