//! Fetches: a station asks for a small object over a new connection at a fixed interval, as a web page does.

use super::{Period, TICK, accept, is_transient, join, listen, spawn, tcp};
use crate::error::{Doing, Result};
use crate::netns::Namespace;
use lasthop_units::{Bytes, Span, Time};
use socket2::{SockAddr, Socket};
use std::io::{self, Read, Write};
use std::net::SocketAddr;
use std::thread::JoinHandle;
use std::time::Duration;

/// One fetch.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fetch {
    /// Which station asked, counted from 0.
    pub station: usize,
    /// When it began to connect.
    pub start: Time,
    /// From then to the last byte; `None` if the run ended before.
    pub duration: Option<Span>,
}

/// Running fetches of all stations.
#[derive(Debug)]
pub(crate) struct Fetches {
    server: JoinHandle<Result<()>>,
    stations: Vec<JoinHandle<Result<Vec<Fetch>>>>,
}

/// What a station sends to get the object: its length would fit any request line.
const REQUEST: [u8; 64] = [b'?'; 64];

impl Fetches {
    /// Prepares fetches of `size` every `every` by each of `stations` from `server` at `address`.
    pub(crate) fn start(
        server: &Namespace,
        stations: &[&Namespace],
        address: SocketAddr,
        congestion: &str,
        size: Bytes,
        every: Span,
        period: &Period,
    ) -> Result<Fetches> {
        let listener = listen(server, address, congestion)?;
        let p = period.clone();
        let server = spawn("lasthop-serve", move || serve(&listener, size, &p))?;
        let mut threads = Vec::new();
        for (index, station) in stations.iter().enumerate() {
            let p = period.clone();
            let file = station.file().try_clone().doing(|| "copying a namespace's descriptor".into())?;
            threads.push(spawn("lasthop-fetch", move || {
                // The thread ends with the flow, so it may stay in the station's namespace for good.
                nix::sched::setns(&file, nix::sched::CloneFlags::CLONE_NEWNET)
                    .doing(|| "entering a station's namespace".into())?;
                fetch_all(index, address, size, every, &p)
            })?);
        }
        Ok(Fetches { server, stations: threads })
    }

    /// Waits for their end.
    pub(crate) fn finish(self) -> Result<Vec<Fetch>> {
        let mut fetches = Vec::new();
        for station in self.stations {
            fetches.extend(join(station)?);
        }
        join(self.server)?;
        Ok(fetches)
    }
}

fn serve(listener: &Socket, size: Bytes, period: &Period) -> Result<()> {
    let mut answers = Vec::new();
    while let Some(socket) = accept(listener, period)? {
        let p = period.clone();
        answers.push(spawn("lasthop-answer", move || answer(&socket, size, &p))?);
    }
    for thread in answers {
        join(thread);
    }
    Ok(())
}

/// Answers one request. Whatever goes wrong shows at the station, as a fetch that does not finish.
fn answer(mut socket: &Socket, size: Bytes, period: &Period) {
    let prepared = socket.set_read_timeout(Some(TICK)).and_then(|()| socket.set_write_timeout(Some(TICK)));
    if prepared.is_err() {
        return;
    }
    let mut request = [0; REQUEST.len()];
    if patiently(REQUEST.len(), period, |done| socket.read(&mut request[done..])).is_some() {
        let chunk = [0; 65_536];
        let len = size.get() as usize;
        patiently(len, period, |done| socket.write(&chunk[..chunk.len().min(len - done)]));
    }
}

fn fetch_all(station: usize, address: SocketAddr, size: Bytes, every: Span, period: &Period) -> Result<Vec<Fetch>> {
    let mut running = Vec::new();
    let mut next = period.start;
    while period.wait_until(next) {
        let socket = tcp(address)?;
        let p = period.clone();
        // A slow fetch does not delay the next one: a person who clicks does not wait for the last page either.
        running.push(spawn("lasthop-fetch", move || {
            let start = p.clock.now();
            let duration = fetch(&socket, address, size, &p).map(|end| end.since(start));
            Fetch { station, start, duration }
        })?);
        next += every;
    }
    Ok(running.into_iter().map(join).collect())
}

/// Fetches one object; returns when its last byte came, `None` if it did not.
fn fetch(mut socket: &Socket, address: SocketAddr, size: Bytes, period: &Period) -> Option<Time> {
    let left: Duration = period.end.since(period.clock.now()).into();
    socket.connect_timeout(&SockAddr::from(address), left.max(Duration::from_millis(1))).ok()?;
    socket.set_read_timeout(Some(TICK)).ok()?;
    socket.write_all(&REQUEST).ok()?;
    let mut sink = [0; 65_536];
    patiently(size.get() as usize, period, |_| socket.read(&mut sink))
}

/// Repeats `step` until it has moved `total` bytes; returns when that was, `None` if it fails or the period ends.
fn patiently(total: usize, period: &Period, mut step: impl FnMut(usize) -> io::Result<usize>) -> Option<Time> {
    let mut done = 0;
    while done < total {
        match step(done) {
            Ok(0) => return None,
            Ok(len) => done += len,
            Err(error) if is_transient(&error) && period.lasts() => {}
            Err(_) => return None,
        }
    }
    Some(period.clock.now())
}
