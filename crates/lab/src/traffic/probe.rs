//! Datagrams from one host to another at a fixed interval, with their one-way delay: probes, small and few as a call or a game
//! sends them, and loads of a constant rate.

use super::{Period, TICK, join, mark, spawn};
use crate::clock::Clock;
use crate::error::{Doing, Result};
use crate::netns::Namespace;
use crate::pinned_cpu::PinnedCpu;
use crate::sched;
use crate::stop::Stop;
use lasthop_system::poll::Poll;
use lasthop_units::{Bytes, Span, Time};
use nix::sys::socket::setsockopt;
use nix::sys::socket::sockopt::RcvBufForce;
use socket2::{Domain, Protocol, SockAddr, Socket, Type};
use std::mem::MaybeUninit;
use std::net::SocketAddr;
use std::thread::JoinHandle;

/// One probe.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Probe {
    /// When it was sent.
    pub sent: Time,
    /// Its one-way delay; `None` if it had not arrived when the run ended.
    pub delay: Option<Span>,
}

/// One stream of probes to be.
pub(crate) struct ProbeStream<'a> {
    pub sender: &'a Namespace,
    pub receiver: &'a Namespace,
    /// Where the receiver listens: an address of its own for each stream.
    pub address: SocketAddr,
    pub every: Span,
    /// UDP payload; at least 8 bytes are sent.
    pub size: Bytes,
    /// What its packets are marked with.
    pub tos: u8,
    pub start: Time,
    pub stop: Time,
}

/// Running probes.
#[derive(Debug)]
pub(crate) struct Probes {
    sender: JoinHandle<Vec<Vec<Time>>>,
    receiver: JoinHandle<Result<Vec<Arrival>>>,
}

/// Datagram `number` of a stream came.
#[derive(Clone, Copy, Debug)]
struct Arrival {
    stream: usize,
    number: u64,
    at: Time,
}

/// The sending end of a stream.
struct Sender {
    socket: Socket,
    datagram: Vec<u8>,
    every: Span,
    /// When the next one leaves; [`Time::MAX`] after the last.
    next: Time,
    stop: Time,
    sent: Vec<Time>,
}

impl Probes {
    /// Prepares `streams`. Arrivals are noted until `period` ends. Both ends run on `pinned_cpu`, since a probe measures the hops, not
    /// the scheduler; but where so many are to be sent that the emulator would lack the time, the kernel decides.
    pub(crate) fn start(streams: &[ProbeStream<'_>], period: &Period, pinned_cpu: PinnedCpu) -> Result<Probes> {
        let per_second: f64 = streams.iter().map(|stream| 1.0 / stream.every.as_secs_f64().max(1e-9)).sum();
        let pinned_cpu = (per_second <= MOST_BESIDE).then_some(pinned_cpu);
        let mut receivers = Vec::new();
        let mut senders = Vec::new();
        for stream in streams {
            let address = stream.address;
            receivers.push(stream.receiver.within(|| {
                let socket = udp(address)?;
                // What the kernel holds of it by default are some 90 full packets: 10 ms at 100 Mbit/s.
                let _ = setsockopt(&socket, RcvBufForce, &RECEIVE_BUFFER);
                socket.bind(&SockAddr::from(address)).doing(|| format!("listening at {address}"))?;
                Ok(socket)
            })?);
            let socket = stream.sender.within(|| {
                let socket = udp(address)?;
                socket.connect(&SockAddr::from(address)).doing(|| format!("connecting to {address}"))?;
                mark(&socket, stream.tos).doing(|| "marking a socket".into())?;
                Ok(socket)
            })?;
            let (every, next, stop) = (stream.every, stream.start, stream.stop);
            let datagram = vec![0; (stream.size.get() as usize).max(NUMBER)];
            let due = stop.since(next).as_nanos() / every.as_nanos().max(1) + 1;
            senders.push(Sender {
                socket,
                datagram,
                every,
                next,
                stop,
                sent: Vec::with_capacity((due as usize).min(1 << 22)),
            });
        }
        let poll = Poll::new().doing(|| "making an epoll instance".into())?;
        for (stream, socket) in receivers.iter().enumerate() {
            poll.add_level(socket, stream as u64).doing(|| "watching a socket".into())?;
        }
        let (clock, stop, period) = (period.clock, period.stop.clone(), period.clone());
        Ok(Probes {
            sender: spawn("lasthop-probe", move || send(senders, clock, &stop, pinned_cpu))?,
            receiver: spawn("lasthop-echo", move || receive(&receivers, poll, &period, pinned_cpu))?,
        })
    }

    /// Waits for their end; one list a stream, in order of sending.
    pub(crate) fn finish(self) -> Result<Vec<Vec<Probe>>> {
        let (sent, arrivals) = (join(self.sender), join(self.receiver)?);
        let mut probes: Vec<Vec<Probe>> =
            sent.into_iter().map(|times| times.into_iter().map(|sent| Probe { sent, delay: None }).collect()).collect();
        for Arrival { stream, number, at } in arrivals {
            if let Some(probe) = probes.get_mut(stream).and_then(|of| of.get_mut(number as usize)) {
                // A duplicate does not make the first copy later.
                probe.delay.get_or_insert(at.since(probe.sent));
            }
        }
        Ok(probes)
    }
}

/// Datagrams a second up to which the threads that send and receive them need next to no time.
const MOST_BESIDE: f64 = 12_000.0;

/// Octets that a receiving socket may hold, as the kernel counts them.
const RECEIVE_BUFFER: usize = 8 << 20;

/// Length of the number that a datagram begins with.
const NUMBER: usize = size_of::<u64>();

fn udp(address: SocketAddr) -> Result<Socket> {
    let open = || {
        let socket = Socket::new(Domain::for_address(address), Type::DGRAM, Some(Protocol::UDP))?;
        socket.set_nonblocking(true)?;
        Ok::<_, std::io::Error>(socket)
    };
    open().doing(|| "making a UDP socket".into())
}

fn place_thread(pinned_cpu: Option<PinnedCpu>) {
    match pinned_cpu {
        Some(pinned_cpu) => pinned_cpu.measure_beside(),
        None => sched::sharpen_timers(),
    }
}

/// Sends number after number of every stream when it is due; returns when, by stream and number.
fn send(mut senders: Vec<Sender>, clock: Clock, stop: &Stop, pinned_cpu: Option<PinnedCpu>) -> Vec<Vec<Time>> {
    place_thread(pinned_cpu);
    while let Some(sender) = senders.iter_mut().min_by_key(|sender| sender.next) {
        if sender.next == Time::MAX || stop.is_raised() {
            break;
        }
        let left = clock.until(sender.next);
        if !left.is_zero() {
            std::thread::sleep(left.min(TICK.into()).into());
            continue;
        }
        let now = clock.now();
        if now >= sender.stop {
            // It could not keep up.
            sender.next = Time::MAX;
            continue;
        }
        sender.datagram[..NUMBER].copy_from_slice(&(sender.sent.len() as u64).to_be_bytes());
        sender.sent.push(now);
        // One that does not leave counts as lost.
        let _ = sender.socket.send(&sender.datagram);
        sender.next += sender.every;
        if sender.next >= sender.stop {
            sender.next = Time::MAX;
        }
    }
    senders.into_iter().map(|sender| sender.sent).collect()
}

fn receive(sockets: &[Socket], mut poll: Poll, period: &Period, pinned_cpu: Option<PinnedCpu>) -> Result<Vec<Arrival>> {
    place_thread(pinned_cpu);
    let mut arrivals = Vec::new();
    let mut buffer = [MaybeUninit::uninit(); 2048];
    while period.lasts() {
        for ready in 0..poll.wait(TICK.into()).doing(|| "waiting for probes (epoll_pwait2)".into())? {
            let stream = poll.ready(ready).token as usize;
            while let Ok(len) = sockets[stream].recv(&mut buffer) {
                let at = period.clock.now();
                // SAFETY: the kernel has initialised the first `len` bytes.
                let bytes = unsafe { &*(&raw const buffer[..len] as *const [u8]) };
                if let Some(number) = bytes.first_chunk().copied().map(u64::from_be_bytes) {
                    arrivals.push(Arrival { stream, number, at });
                }
            }
        }
    }
    Ok(arrivals)
}
