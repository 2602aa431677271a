//! Fetches: a station asks for a small object over a new connection at a fixed interval, as a web page does.

use super::door::Door;
use super::{Period, TICK, accept, is_transient, join, listen, mark, spawn};
use crate::error::{Doing, Result};
use crate::netns::Namespace;
use lasthop_units::{Bytes, Span, Time};
use socket2::Socket;
use std::io::{self, Read, Write};
use std::net::SocketAddr;
use std::thread::JoinHandle;

/// One fetch.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fetch {
    /// When it began to connect.
    pub start: Time,
    /// From then to the last byte; `None` if the run ended before.
    pub duration: Option<Span>,
}

/// One stream of fetches to be.
pub(crate) struct FetchStream<'a> {
    pub station: &'a Namespace,
    pub door: Door,
    pub size: Bytes,
    pub every: Span,
    pub start: Time,
    pub stop: Time,
}

/// Running fetches.
#[derive(Debug)]
pub(crate) struct Fetches {
    server: JoinHandle<Result<()>>,
    streams: Vec<JoinHandle<Result<Vec<Fetch>>>>,
}

/// What a station sends to get an object: the object's length and what its packets shall be marked with, padded to the size that requests have in every world.
const REQUEST: usize = lasthop_scenario::REQUEST.get() as usize;

impl Fetches {
    /// Prepares `streams` from `server` at `address`. A fetch may last until `period` ends.
    pub(crate) fn start(
        server: &Namespace,
        streams: &[FetchStream<'_>],
        address: SocketAddr,
        congestion: &str,
        period: &Period,
    ) -> Result<Fetches> {
        let listener = listen(server, address, congestion)?;
        let p = period.clone();
        let server = spawn("lasthop-serve", move || serve(&listener, &p))?;
        let mut threads = Vec::new();
        for stream in streams {
            let (door, start, stop) = (stream.door, stream.start, stream.stop);
            let object = Object { address, size: stream.size, every: stream.every };
            let begins = Period { start, end: stop, ..period.clone() };
            let lasts = period.clone();
            let file = stream.station.file().try_clone().doing(|| "copying a namespace's descriptor".into())?;
            threads.push(spawn("lasthop-fetch", move || {
                // The thread ends with the stream, so it may stay in the station's namespace for good.
                nix::sched::setns(&file, nix::sched::CloneFlags::CLONE_NEWNET)
                    .doing(|| "entering a station's namespace".into())?;
                fetch_all(object, door, &begins, &lasts)
            })?);
        }
        Ok(Fetches { server, streams: threads })
    }

    /// Waits for their end; one list a stream, in order of starting.
    pub(crate) fn finish(self) -> Result<Vec<Vec<Fetch>>> {
        let fetches = self.streams.into_iter().map(join).collect();
        join(self.server)?;
        fetches
    }
}

fn serve(listener: &Socket, period: &Period) -> Result<()> {
    let mut answers = Vec::new();
    while let Some(socket) = accept(listener, period)? {
        let p = period.clone();
        answers.push(spawn("lasthop-answer", move || answer(&socket, &p))?);
    }
    answers.into_iter().for_each(join);
    Ok(())
}

/// Answers one request. Whatever goes wrong shows at the station, as a fetch that does not finish.
fn answer(mut socket: &Socket, period: &Period) {
    let prepared = socket.set_read_timeout(Some(TICK)).and_then(|()| socket.set_write_timeout(Some(TICK)));
    if prepared.is_err() {
        return;
    }
    let mut request = [0; REQUEST];
    if patiently(REQUEST, period, |done| socket.read(&mut request[done..])).is_some() {
        let size = request.first_chunk().copied().map_or(0, u64::from_be_bytes) as usize;
        // An answer that cannot be marked goes out as best effort.
        let _ = mark(socket, request[8]);
        let chunk = [0; 65_536];
        patiently(size, period, |done| socket.write(&chunk[..chunk.len().min(size - done)]));
    }
}

/// What is fetched again and again.
#[derive(Clone, Copy)]
struct Object {
    address: SocketAddr,
    size: Bytes,
    every: Span,
}

fn fetch_all(object: Object, door: Door, begins: &Period, lasts: &Period) -> Result<Vec<Fetch>> {
    let mut running = Vec::new();
    let mut next = begins.start;
    while begins.wait_until(next) {
        let p = lasts.clone();
        // A slow fetch does not delay the next one: a person who clicks does not wait for the last page either.
        running.push(spawn("lasthop-fetch", move || {
            let start = p.clock.now();
            let duration = fetch(object, door, &p).map(|end| end.since(start));
            Fetch { start, duration }
        })?);
        next += object.every;
    }
    Ok(running.into_iter().map(join).collect())
}

/// Fetches one object; returns when its last byte came, `None` if it did not.
fn fetch(object: Object, door: Door, period: &Period) -> Option<Time> {
    let mut socket = door.connect(object.address, period, || door.socket(object.address)).ok()??;
    let size = object.size;
    let mut request = [b' '; REQUEST];
    request[..8].copy_from_slice(&size.get().to_be_bytes());
    request[8] = door.tos;
    socket.write_all(&request).ok()?;
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
