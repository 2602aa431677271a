//! Probes: small datagrams from the server to every station at a fixed interval, as a call or a game sends them, with
//! their one-way delay.

use super::{Period, join, spawn};
use crate::error::{Doing, Result};
use crate::netns::Namespace;
use crate::poll::Poll;
use crate::sched;
use lasthop_units::{Span, Time};
use socket2::{Domain, Protocol, SockAddr, Socket, Type};
use std::mem::MaybeUninit;
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::thread::JoinHandle;

/// One probe.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Probe {
    /// Which station it was for, counted from 0.
    pub station: usize,
    /// When it was sent.
    pub sent: Time,
    /// Its one-way delay; `None` if it had not arrived when the run ended.
    pub delay: Option<Span>,
}

/// Running probes.
#[derive(Debug)]
pub(crate) struct Probes {
    sender: JoinHandle<Vec<Vec<Time>>>,
    receiver: JoinHandle<Result<Vec<Arrival>>>,
}

/// Datagram `number` came to `station`.
#[derive(Clone, Copy, Debug)]
struct Arrival {
    station: usize,
    number: u64,
    at: Time,
}

/// Below the emulator, above everything at normal priority: a probe measures the hops, not the scheduler.
const PRIORITY: i32 = 20;

impl Probes {
    /// Prepares probes of `payload` bytes (at least 8) from `server` to each of `stations`.
    pub(crate) fn start(
        server: &Namespace,
        stations: &[(&Namespace, SocketAddr)],
        every: Span,
        payload: usize,
        period: &Period,
    ) -> Result<Probes> {
        let mut receivers = Vec::new();
        let mut senders = Vec::new();
        for (station, address) in stations {
            receivers.push(station.within(|| {
                let socket = udp(*address)?;
                socket.bind(&SockAddr::from(*address)).doing(|| format!("listening at {address}"))?;
                Ok(socket)
            })?);
            senders.push(server.within(|| {
                let socket = udp(*address)?;
                socket.connect(&SockAddr::from(*address)).doing(|| format!("connecting to {address}"))?;
                Ok(socket)
            })?);
        }
        let mut poll = Poll::new()?;
        for (station, socket) in receivers.iter().enumerate() {
            poll.add(socket.as_fd(), station as u64)?;
        }
        let (p1, p2) = (period.clone(), period.clone());
        Ok(Probes {
            sender: spawn("lasthop-probe", move || send(&senders, every, payload.max(8), &p1))?,
            receiver: spawn("lasthop-echo", move || receive(&receivers, poll, &p2))?,
        })
    }

    /// Waits for their end.
    pub(crate) fn finish(self) -> Result<Vec<Probe>> {
        let (sent, arrivals) = (join(self.sender), join(self.receiver)?);
        let mut probes: Vec<Vec<Probe>> = sent
            .into_iter()
            .enumerate()
            .map(|(station, times)| times.into_iter().map(|sent| Probe { station, sent, delay: None }).collect())
            .collect();
        for Arrival { station, number, at } in arrivals {
            if let Some(probe) = probes.get_mut(station).and_then(|of| of.get_mut(number as usize)) {
                // A duplicate does not make the first copy later.
                probe.delay.get_or_insert(at.since(probe.sent));
            }
        }
        Ok(probes.into_iter().flatten().collect())
    }
}

fn udp(address: SocketAddr) -> Result<Socket> {
    let open = || {
        let socket = Socket::new(Domain::for_address(address), Type::DGRAM, Some(Protocol::UDP))?;
        socket.set_nonblocking(true)?;
        Ok::<_, std::io::Error>(socket)
    };
    open().doing(|| "making a UDP socket".into())
}

/// Sends number after number to every station; returns when, by station and number.
fn send(sockets: &[Socket], every: Span, payload: usize, period: &Period) -> Vec<Vec<Time>> {
    sched::sharpen_timers();
    sched::become_realtime(PRIORITY);
    let mut sent = vec![Vec::new(); sockets.len()];
    let mut datagram = vec![0; payload];
    let mut next = period.start;
    while period.wait_until(next) {
        for (socket, times) in sockets.iter().zip(&mut sent) {
            datagram[..8].copy_from_slice(&(times.len() as u64).to_be_bytes());
            times.push(period.clock.now());
            // One that does not leave counts as lost.
            let _ = socket.send(&datagram);
        }
        next += every;
    }
    sent
}

fn receive(sockets: &[Socket], mut poll: Poll, period: &Period) -> Result<Vec<Arrival>> {
    sched::sharpen_timers();
    sched::become_realtime(PRIORITY);
    let mut arrivals = Vec::new();
    let mut buffer = [MaybeUninit::uninit(); 2048];
    while period.lasts() {
        for ready in 0..poll.wait(super::TICK.into())? {
            let station = poll.token(ready) as usize;
            while let Ok(len) = sockets[station].recv(&mut buffer) {
                let at = period.clock.now();
                // SAFETY: the kernel has initialised the first `len` bytes.
                let bytes = unsafe { &*(&buffer[..len] as *const [MaybeUninit<u8>] as *const [u8]) };
                if let Some(number) = bytes.first_chunk().copied().map(u64::from_be_bytes) {
                    arrivals.push(Arrival { station, number, at });
                }
            }
        }
    }
    Ok(arrivals)
}
