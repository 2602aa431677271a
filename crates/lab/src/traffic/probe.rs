//! Probes: small datagrams from the server to a station at a fixed interval, as a call or a game sends them, with
//! their one-way delay.

use super::{Period, TICK, join, mark, spawn};
use crate::clock::Clock;
use crate::error::{Doing, Result};
use crate::home::Seat;
use crate::netns::Namespace;
use crate::stop::Stop;
use lasthop_system::poll::Poll;
use lasthop_units::{Bytes, Span, Time};
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
    pub station: &'a Namespace,
    /// Where the station listens: an address of its own for each stream.
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
    /// Prepares `streams` from `server`. Arrivals are noted until `period` ends. Both ends sit at `seat`: a probe measures
    /// the hops, not the scheduler.
    pub(crate) fn start(
        server: &Namespace,
        streams: &[ProbeStream<'_>],
        period: &Period,
        seat: Seat,
    ) -> Result<Probes> {
        let mut receivers = Vec::new();
        let mut senders = Vec::new();
        for stream in streams {
            let address = stream.address;
            receivers.push(stream.station.within(|| {
                let socket = udp(address)?;
                socket.bind(&SockAddr::from(address)).doing(|| format!("listening at {address}"))?;
                Ok(socket)
            })?);
            let socket = server.within(|| {
                let socket = udp(address)?;
                socket.connect(&SockAddr::from(address)).doing(|| format!("connecting to {address}"))?;
                mark(&socket, stream.tos).doing(|| "marking a socket".into())?;
                Ok(socket)
            })?;
            let (every, next, stop) = (stream.every, stream.start, stream.stop);
            let datagram = vec![0; (stream.size.get() as usize).max(NUMBER)];
            senders.push(Sender { socket, datagram, every, next, stop, sent: Vec::new() });
        }
        let poll = Poll::new().doing(|| "making an epoll instance".into())?;
        for (stream, socket) in receivers.iter().enumerate() {
            poll.add_level(socket, stream as u64).doing(|| "watching a socket".into())?;
        }
        let (clock, stop, period) = (period.clock, period.stop.clone(), period.clone());
        Ok(Probes {
            sender: spawn("lasthop-probe", move || send(senders, clock, &stop, seat))?,
            receiver: spawn("lasthop-echo", move || receive(&receivers, poll, &period, seat))?,
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

/// Sends number after number of every stream when it is due; returns when, by stream and number.
fn send(mut senders: Vec<Sender>, clock: Clock, stop: &Stop, seat: Seat) -> Vec<Vec<Time>> {
    seat.measure_beside();
    while let Some(sender) = senders.iter_mut().min_by_key(|sender| sender.next) {
        if sender.next == Time::MAX || stop.is_raised() {
            break;
        }
        let left = clock.until(sender.next);
        if !left.is_zero() {
            std::thread::sleep(left.min(TICK.into()).into());
            continue;
        }
        sender.datagram[..NUMBER].copy_from_slice(&(sender.sent.len() as u64).to_be_bytes());
        sender.sent.push(clock.now());
        // One that does not leave counts as lost.
        let _ = sender.socket.send(&sender.datagram);
        sender.next += sender.every;
        if sender.next >= sender.stop {
            sender.next = Time::MAX;
        }
    }
    senders.into_iter().map(|sender| sender.sent).collect()
}

fn receive(sockets: &[Socket], mut poll: Poll, period: &Period, seat: Seat) -> Result<Vec<Arrival>> {
    seat.measure_beside();
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
