//! The thread between the interfaces: it takes frames from one, passes them through a hop model by the wall clock, and
//! hands them to the other.

use crate::address::HopId;
use crate::classify;
use crate::clock::Clock;
use crate::control_channel::ControlChannels;
use crate::driver::DriverSocket;
use crate::error::{Doing, LabError, Result};
use crate::frame::{Frame, Pool};
use crate::lateness::{Kind, Lateness};
use crate::log::{Crossing, Departure, EmulatorLog, FrameSeen, HopLog, Loss};
use crate::monitor::Monitor;
use crate::pinned_cpu::{CpuClaim, PinnedCpu};
use crate::sched;
use crate::tap::Tap;
use lasthop_laws::atp::HopDelay;
use lasthop_radio::last_hop::Model;
use lasthop_radio::wifi::{Air, MpduRecord, PpduKind, PpduRecord};
use lasthop_radio::{Completion, Dest, Drop as Dropped, Ecn, Hop, NextEvent, Outbox, Packet, RxInfo};
use lasthop_signals::{Node, NodeDelay, Signal};
use lasthop_system::cpu_latency_guard::CpuLatencyGuard;
use lasthop_system::poll::Poll;
use lasthop_system::spin_sleeper::{SpinSleeper, Until};
use lasthop_units::{Span, Time};
use lasthop_wire::driver::NodeRecord;
use lasthop_wire::{ip, tcp};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

/// A hop and the interfaces of its nodes.
#[derive(Debug)]
pub struct Segment {
    /// What carries the packets.
    pub model: Model<Frame>,
    /// The interfaces on it: node `n`'s at place `n`; `None` for a node that is no host's.
    pub ports: Vec<Option<Tap>>,
    /// Whether its crossings, losses, frames and reports are kept.
    pub logged: bool,
    /// TCP segments of these nodes are noted as they enter the hop.
    pub watched: Range<u16>,
    /// The sockets that are told what the driver of a node reports.
    pub drivers: Vec<(Node, DriverSocket)>,
    /// What each node knows of its own delay, by their numbers, for drivers to tell; empty where none does.
    pub delays: Vec<HopDelay>,
    /// Monitor interfaces of its nodes.
    pub monitors: Vec<Monitor>,
    /// What its stations decode of their cell.
    pub controls: Vec<ControlChannels>,
}

/// A running emulator; stopped when dropped.
#[derive(Debug)]
pub struct Emulator {
    stop: Arc<AtomicBool>,
    pinned_cpu: PinnedCpu,
    thread: Option<JoinHandle<Result<EmulatorLog>>>,
}

impl Emulator {
    /// Starts to drive `segments`, numbered as [`HopId`]s in their order, by `clock`.
    pub fn start(clock: Clock, segments: Vec<Segment>) -> Result<Emulator> {
        let poll = Poll::new().doing(|| "making an epoll instance".into())?;
        let watching = || "watching an interface".to_owned();
        for (hop, segment) in segments.iter().enumerate() {
            for (node, port) in segment.ports.iter().enumerate() {
                let Some(port) = port else { continue };
                poll.add_level(port, token(hop, node)).doing(watching)?;
            }
            for (place, (_, driver)) in segment.drivers.iter().enumerate() {
                poll.add_level(driver, token(hop, DRIVERS + place)).doing(watching)?;
            }
        }
        let stop = Arc::new(AtomicBool::new(false));
        let logs = segments.iter().map(|_| HopLog::default()).collect();
        let claim = CpuClaim::claim();
        let pinned_cpu = claim.pinned_cpu();
        let driven = Driven {
            clock,
            poll,
            segments,
            claim,
            stop: Arc::clone(&stop),
            shelf: Shelf { pool: Pool::with(4096), lateness: Lateness::default(), refused: 0, clock },
            logs,
            strays: 0,
            told: Time::ZERO,
        };
        let thread = std::thread::Builder::new()
            .name("lasthop-emulator".into())
            .spawn(move || driven.run())
            .doing(|| "starting the emulator thread".into())?;
        Ok(Emulator { stop, pinned_cpu, thread: Some(thread) })
    }

    /// Where it runs: the place for threads that measure single packets.
    pub fn pinned_cpu(&self) -> PinnedCpu {
        self.pinned_cpu
    }

    /// True if the thread has ended by itself, which only an error makes it do.
    pub fn has_ended(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Stops the thread and takes what it saw. The interfaces vanish.
    pub fn finish(mut self) -> Result<EmulatorLog> {
        self.stop.store(true, Ordering::Relaxed);
        match self.thread.take().map(JoinHandle::join) {
            Some(Ok(log)) => log,
            Some(Err(panic)) => std::panic::resume_unwind(panic),
            None => Err(LabError::Stopped),
        }
    }
}

impl Drop for Emulator {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // An error has nobody left to hear it; a panic has printed itself.
            let _ = thread.join();
        }
    }
}

/// Above every thread of ours that generates or measures traffic.
const PRIORITY: i32 = 50;

/// One part in so many of the time that it does not work may be spent watching the clock: what it runs beside needs the processor too.
const WATCHING: u64 = 4;

/// How often drivers tell the delays of their nodes at most; [`LONGEST_WAIT`] says how seldom.
const TELL: Span = Span::from_millis(4);

/// How long the thread may be deaf to `stop`.
const LONGEST_WAIT: Span = Span::from_millis(20);

/// Frames taken from one interface before the models are served again: some 30 µs of work.
const BURST: usize = 16;

/// The thread's own state.
struct Driven {
    clock: Clock,
    claim: CpuClaim,
    poll: Poll,
    segments: Vec<Segment>,
    logs: Vec<HopLog>,
    shelf: Shelf,
    stop: Arc<AtomicBool>,
    strays: u64,
    /// When drivers last told the delays of their nodes.
    told: Time,
}

/// What all hops share.
struct Shelf {
    clock: Clock,
    pool: Pool,
    lateness: Lateness,
    refused: u64,
}

impl Driven {
    fn run(mut self) -> Result<EmulatorLog> {
        sched::sharpen_timers();
        let realtime = sched::become_realtime(PRIORITY);
        if realtime {
            self.claim.pinned_cpu().pin();
        }
        let mut latency_guard = CpuLatencyGuard::open();
        latency_guard.hold(true);
        let mut sleeper = SpinSleeper::new(WATCHING);
        while !self.stop.load(Ordering::Relaxed) {
            self.advance();
            let due = self.segments.iter().filter_map(|segment| segment.model.next_event()).min();
            let until = Until { due, about: self.clock.now() + LONGEST_WAIT };
            let ready = sleeper
                .wait(&mut self.poll, || self.clock.now(), until)
                .doing(|| "waiting for packets (epoll_pwait2)".into())?;
            for n in 0..ready {
                self.receive(self.poll.ready(n).token)?;
            }
        }
        Ok(EmulatorLog {
            hops: self.logs,
            lateness: self.shelf.lateness,
            realtime,
            strays: self.strays,
            refused: self.shelf.refused,
            unread_reports: self.segments.iter().flat_map(|s| &s.drivers).map(|(_, driver)| driver.unread()).sum(),
            unread_subframes: self.segments.iter().flat_map(|s| &s.controls).map(ControlChannels::unread).sum(),
        })
    }

    fn advance(&mut self) {
        let now = self.clock.now();
        for (segment, log) in self.segments.iter_mut().zip(&mut self.logs) {
            let Segment { model, ports, logged, drivers, delays, monitors, controls, .. } = segment;
            if let Some(due) = model.next_event()
                && due <= now
            {
                self.shelf.lateness.add(Kind::ModelEvent, now.since(due));
            }
            let log = logged.then_some(log);
            let mut exit = Exit { ports, log, drivers, delays, monitors, controls, shelf: &mut self.shelf };
            model.advance(now, &mut exit);
        }
        if now.since(self.told) >= TELL {
            self.told = now;
            self.tell(now);
        }
    }

    /// Has the drivers of nodes that know their own delay tell it.
    fn tell(&mut self, now: Time) {
        let clock = self.clock;
        for Segment { drivers, delays, .. } in &mut self.segments {
            for (of, driver) in drivers {
                let Some(node) = delays.get(of.index()).map(HopDelay::node) else { continue };
                let delay = NodeDelay { last: node.last.map(|last| clock.on_monotonic(last)), ..node };
                driver.send_node(&NodeRecord { at: clock.on_monotonic(now), node: of.0, delay });
            }
        }
    }

    /// Takes what the interface behind `token` has sent.
    fn receive(&mut self, token: u64) -> Result<()> {
        let (hop, node) = ((token >> 32) as usize, token as u32 as usize);
        let Segment { model, ports, logged, watched, drivers, delays, monitors, controls } = &mut self.segments[hop];
        if let Some(place) = node.checked_sub(DRIVERS) {
            drivers.get_mut(place).map(|(_, driver)| driver.admit());
            return Ok(());
        }
        let src = Node(node as u16);
        for _ in 0..BURST {
            let mut frame = self.shelf.pool.take();
            let Some(port) = &mut ports[node] else { return Ok(()) };
            if !port.read(&mut frame).doing(|| "reading an interface".into())? {
                self.shelf.pool.give(frame);
                break;
            }
            match classify::packet(HopId(hop as u8), src, frame) {
                Ok(packet) => {
                    let now = self.clock.now();
                    if watched.contains(&src.0) {
                        self.logs[hop].departures.extend(departure(now, packet.payload.packet()));
                    }
                    let log = logged.then_some(&mut self.logs[hop]);
                    if let Some(delay) = delays.get_mut(src.index()) {
                        delay.on_queued(now);
                    }
                    let mut exit = Exit { ports, log, drivers, delays, monitors, controls, shelf: &mut self.shelf };
                    model.enqueue(now, packet, &mut exit);
                }
                Err(frame) => {
                    self.strays += 1;
                    self.shelf.pool.give(frame);
                }
            }
        }
        Ok(())
    }
}

/// In place of a node: the first of the drivers' sockets.
const DRIVERS: usize = 1 << 24;

fn token(hop: usize, node: usize) -> u64 {
    (hop as u64) << 32 | node as u64
}

/// The TCP segment with payload that an IP packet holds, if it holds one.
fn departure(at: Time, packet: &[u8]) -> Option<Departure> {
    let header = ip::parse(packet).ok().filter(|header| header.protocol == ip::TCP)?;
    let (tcp, _) = tcp::parse(header.payload(packet)).ok()?;
    let ports = [tcp.source_port, tcp.destination_port];
    (tcp.payload_len > 0).then_some(Departure { at, ports, seq: tcp.seq, len: tcp.payload_len })
}

/// Where a model's packets leave for their interfaces.
struct Exit<'a> {
    ports: &'a [Option<Tap>],
    log: Option<&'a mut HopLog>,
    drivers: &'a mut [(Node, DriverSocket)],
    delays: &'a mut [HopDelay],
    monitors: &'a mut [Monitor],
    controls: &'a mut [ControlChannels],
    shelf: &'a mut Shelf,
}

impl Outbox<Frame> for Exit<'_> {
    fn deliver(&mut self, at: Time, to: Node, packet: Packet<Frame>, rx: &RxInfo) {
        let Packet { len, src: from, ecn, payload: mut frame, .. } = packet;
        if let Some(Some(port)) = self.ports.get(to.index()) {
            if ecn == Ecn::Ce {
                // False only for a packet that is none of IP, which no queue marks.
                ip::mark_ce(frame.packet_mut());
            }
            self.shelf.lateness.add(Kind::Delivery, self.shelf.clock.now().since(at));
            if port.write(&frame).is_err() {
                self.shelf.refused += 1;
            }
            if let Some(log) = &mut self.log {
                log.crossings.push(Crossing { at, from, to, len, delay: at.since(rx.queued_at) });
            }
        }
        self.shelf.pool.give(frame);
    }

    fn dropped(&mut self, at: Time, packet: Packet<Frame>, why: Dropped) {
        // Of a packet that was given up, its transmitter has said so.
        if let Some(delay) = self.delays.get_mut(packet.src.index()).filter(|_| why != Dropped::RetryLimit) {
            delay.on_dropped();
        }
        if let Some(log) = &mut self.log {
            let to = match packet.dst {
                Dest::Node(node) => Some(node),
                Dest::Group => None,
            };
            log.losses.push(Loss { at, from: packet.src, to, why });
        }
        self.shelf.pool.give(packet.payload);
    }

    fn wants_completions(&self) -> bool {
        !self.delays.is_empty()
    }

    fn completed(&mut self, at: Time, completion: &Completion) {
        match (self.delays.get_mut(completion.from.index()), completion.dst) {
            (Some(delay), Dest::Node(_)) => delay.on_done(at, completion.queued_at, completion.head_at),
            (Some(delay), Dest::Group) => delay.on_group_done(at),
            (None, _) => {}
        }
    }

    fn driver(&mut self, at: Time, of: Node, signal: &Signal) {
        let report = match signal {
            Signal::Hop(report) => report,
            Signal::Subframe(shown) => {
                if let Some(control) = self.controls.iter_mut().find(|control| control.station() == of) {
                    control.show(self.shelf.clock.on_the_wall(at), shown);
                }
                return;
            }
            _ => return,
        };
        if let Some((_, driver)) = self.drivers.iter_mut().find(|(node, _)| *node == of) {
            driver.send(self.shelf.clock.on_monotonic(at), report);
            self.shelf.lateness.add(Kind::DriverReport, self.shelf.clock.now().since(at));
        }
        if let Some(log) = &mut self.log {
            log.reports.push((at, of, report.clone()));
        }
    }
}

impl Air<Frame> for Exit<'_> {
    fn ppdu(&mut self, at: Time, ppdu: &PpduRecord) {
        if let Some(log) = &mut self.log
            && let (PpduKind::Data, Some(to), 1..) = (ppdu.kind, ppdu.to, ppdu.received)
        {
            log.frames.push(FrameSeen { at, from: ppdu.from, to, packets: ppdu.packets, airtime: ppdu.duration });
        }
    }

    fn wants_mpdus(&self) -> bool {
        !self.monitors.is_empty()
    }

    fn mpdu(&mut self, at: Time, mpdu: &MpduRecord<'_, Frame>) {
        for shown in self.monitors.iter_mut().filter_map(|monitor| monitor.show(at, mpdu)) {
            match (shown, &mut self.log) {
                (Ok(shown), Some(log)) => log.shown.push(shown),
                (Ok(_), None) => (),
                (Err(_), _) => self.shelf.refused += 1,
            }
        }
    }
}
