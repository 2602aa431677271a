//! Fetches: a host asks another for a small object over a new connection at a fixed interval, as a web page does.

use super::door::Door;
use super::{Call, End, Period, TICK, accept, is_transient, join, listen, mark, spawn};
use crate::error::{Doing, Result};
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
    /// The one that wants the objects calls.
    pub call: Call<'a>,
    pub size: Bytes,
    pub every: Span,
    pub start: Time,
    pub stop: Time,
}

/// Running fetches.
#[derive(Debug)]
pub(crate) struct Fetches {
    servers: Vec<JoinHandle<Result<()>>>,
    streams: Vec<JoinHandle<Result<Vec<Fetch>>>>,
}

/// What a host sends to get an object: the object's length and what its packets shall be marked with, padded to the size that
/// requests have in every world.
const REQUEST: usize = lasthop_scenario::REQUEST.get() as usize;

impl Fetches {
    /// Prepares `streams`. A fetch may last until `period` ends.
    pub(crate) fn start(streams: &[FetchStream<'_>], period: &Period) -> Result<Fetches> {
        let mut servers = Vec::new();
        for stream in streams {
            let Call { listener, address, .. } = &stream.call;
            let listener = listen(listener, *address, stream.call.congestion_of(End::Listener))?;
            let p = period.clone();
            servers.push(spawn("lasthop-serve", move || serve(&listener, &p))?);
        }
        let mut threads = Vec::new();
        for stream in streams {
            let Call { caller, address, door, .. } = stream.call;
            let (start, stop) = (stream.start, stream.stop);
            let congestion = stream.call.congestion_of(End::Caller).to_owned();
            let object = Object { address, size: stream.size, every: stream.every, congestion };
            let begins = Period { start, end: stop, ..period.clone() };
            let lasts = period.clone();
            let file = caller.file().try_clone().doing(|| "copying a namespace's descriptor".into())?;
            threads.push(spawn("lasthop-fetch", move || {
                // The thread ends with the stream, so it may stay in the host's namespace for good.
                nix::sched::setns(&file, nix::sched::CloneFlags::CLONE_NEWNET)
                    .doing(|| "entering a host's namespace".into())?;
                fetch_all(&object, door, &begins, &lasts)
            })?);
        }
        Ok(Fetches { servers, streams: threads })
    }

    /// Waits for their end; one list a stream, in order of starting.
    pub(crate) fn finish(self) -> Result<Vec<Vec<Fetch>>> {
        let fetches = self.streams.into_iter().map(join).collect();
        let served: Vec<Result<()>> = self.servers.into_iter().map(join).collect();
        served.into_iter().collect::<Result<()>>()?;
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

/// Answers one request. Whatever goes wrong shows at the one that asks, as a fetch that does not finish.
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
#[derive(Clone)]
struct Object {
    address: SocketAddr,
    size: Bytes,
    every: Span,
    /// The kernel's congestion control of the one that asks.
    congestion: String,
}

fn fetch_all(object: &Object, door: Door, begins: &Period, lasts: &Period) -> Result<Vec<Fetch>> {
    let mut running = Vec::new();
    let mut next = begins.start;
    while begins.wait_until(next) {
        let (p, object) = (lasts.clone(), object.clone());
        // A slow fetch does not delay the next one: a person who clicks does not wait for the last page either.
        next += object.every;
        running.push(spawn("lasthop-fetch", move || {
            let start = p.clock.now();
            let duration = fetch(&object, door, &p).map(|end| end.since(start));
            Fetch { start, duration }
        })?);
    }
    Ok(running.into_iter().map(join).collect())
}

/// Fetches one object; returns when its last byte came, `None` if it did not.
fn fetch(object: &Object, door: Door, period: &Period) -> Option<Time> {
    let mut socket =
        door.connect(object.address, period, || door.socket(object.address, &object.congestion)).ok()??;
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
