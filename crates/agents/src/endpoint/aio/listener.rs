//! The receiving end as a future: one stream at a time, as [`Inbound`] has it.

use super::bell::{Bell, Ringing, bell};
use super::{BUFFER, Waiting, failed, spawn, take};
use crate::endpoint::{Event, Inbound, InboundOptions};
use crate::tunnel::{Error, clock};
use futures_io::AsyncRead;
use lasthop_units::Span;
use std::collections::VecDeque;
use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::thread::JoinHandle;

/// How often the thread looks around if nothing happens.
const ROUND: Span = Span::from_millis(500);

/// Listens for streams.
pub struct Listener {
    shared: Arc<Mutex<Shared>>,
    bell: Bell,
    thread: Option<JoinHandle<()>>,
    address: SocketAddr,
}

/// A stream that has come, until it is kept or dropped. Its end is read only when everything has come.
pub struct Incoming<'l> {
    listener: &'l mut Listener,
    from: SocketAddr,
    transport: &'static str,
    size: Option<u64>,
    decided: bool,
}

#[derive(Default)]
struct Shared {
    /// Streams that have begun and were not accepted: one, since the next begins after the end of the one before.
    begun: Option<(SocketAddr, &'static str, Option<u64>)>,
    received: VecDeque<u8>,
    /// Everything has come.
    complete: bool,
    verdict: Option<Verdict>,
    end: Option<io::Result<()>>,
    /// The socket is gone, and why.
    broken: Option<String>,
    dropped: bool,
    reader: Waiting,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Kept,
    CannotKeep,
}

fn lock(shared: &Mutex<Shared>) -> MutexGuard<'_, Shared> {
    // Whoever panicked left a state that is whole: each change is one step.
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Listener {
    /// Listens.
    ///
    /// # Errors
    /// As [`Inbound::bind`].
    pub fn bind(options: &InboundOptions) -> Result<Listener, Error> {
        let (bell, ringing) = bell()?;
        let shared = Arc::new(Mutex::new(Shared::default()));
        let (own, options) = (Arc::clone(&shared), options.clone());
        let open = move || {
            let inbound = Inbound::bind(&options)?;
            inbound.watch(&ringing)?;
            let address = inbound.address()?;
            let run = move || {
                if let Err(error) = drive(inbound, &own, &ringing) {
                    let mut shared = lock(&own);
                    shared.broken = Some(error.to_string());
                    shared.reader.wake();
                }
            };
            Ok((address, run))
        };
        let (address, thread) = spawn("lasthop-recv", open)?;
        Ok(Listener { shared, bell, thread: Some(thread), address })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The next stream, once it has begun.
    ///
    /// # Errors
    /// If the socket is gone.
    pub async fn accept(&mut self) -> io::Result<Incoming<'_>> {
        let begun = poll_fn(|cx| {
            let mut shared = lock(&self.shared);
            if let Some(why) = &shared.broken {
                return Poll::Ready(Err(io::Error::other(why.clone())));
            }
            match shared.begun.take() {
                Some(begun) => Poll::Ready(Ok(begun)),
                None => {
                    shared.reader.wait(cx);
                    Poll::Pending
                }
            }
        });
        let (from, transport, size) = begun.await?;
        Ok(Incoming { listener: self, from, transport, size, decided: false })
    }
}

impl Incoming<'_> {
    /// The sender's address.
    pub fn from(&self) -> SocketAddr {
        self.from
    }

    /// What carries it, by name.
    pub fn transport(&self) -> &'static str {
        self.transport
    }

    /// Octets that it will have, if its sender knows.
    pub fn size(&self) -> Option<u64> {
        self.size
    }

    /// The application has kept everything: to be said after the end was read. Ready once the sender knows, or has had time to hear it.
    ///
    /// # Errors
    /// If the stream has not come whole, or the sender was lost.
    pub async fn kept(mut self) -> io::Result<()> {
        self.decide(Verdict::Kept);
        poll_fn(|cx| {
            let mut shared = lock(&self.listener.shared);
            if let Some(why) = &shared.broken {
                return Poll::Ready(Err(io::Error::other(why.clone())));
            }
            match shared.end.take() {
                Some(end) => Poll::Ready(end),
                None => {
                    shared.reader.wait(cx);
                    Poll::Pending
                }
            }
        })
        .await
    }

    fn decide(&mut self, verdict: Verdict) {
        if !self.decided {
            self.decided = true;
            lock(&self.listener.shared).verdict = Some(verdict);
            self.listener.bell.ring();
        }
    }
}

impl AsyncRead for Incoming<'_> {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, out: &mut [u8]) -> Poll<io::Result<usize>> {
        let mut shared = lock(&self.listener.shared);
        let count = take(&mut shared.received, out);
        if count > 0 {
            drop(shared);
            self.listener.bell.ring();
            return Poll::Ready(Ok(count));
        }
        if shared.complete || out.is_empty() {
            return Poll::Ready(Ok(0));
        }
        if let Some(Err(error)) = &shared.end {
            return Poll::Ready(Err(io::Error::new(error.kind(), error.to_string())));
        }
        if let Some(why) = &shared.broken {
            return Poll::Ready(Err(io::Error::other(why.clone())));
        }
        shared.reader.wait(cx);
        Poll::Pending
    }
}

impl Drop for Incoming<'_> {
    fn drop(&mut self) {
        self.decide(Verdict::CannotKeep);
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        lock(&self.shared).dropped = true;
        self.bell.ring();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn drive(mut inbound: Inbound, shared: &Mutex<Shared>, ringing: &Ringing) -> Result<(), Error> {
    let mut page = vec![0; 16 << 10];
    let (mut running, mut came, mut complete) = (false, false, false);
    loop {
        ringing.silence();
        let verdict = {
            let mut shared = lock(shared);
            if shared.dropped {
                drop(shared);
                return inbound.stop();
            }
            // What has no room here stays with the transport, and its window closes.
            let mut room = BUFFER.saturating_sub(shared.received.len());
            let mut fresh = false;
            while running && room > 0 {
                let most = room.min(page.len());
                let count = inbound.read(&mut page[..most]);
                if count == 0 {
                    break;
                }
                shared.received.extend(&page[..count]);
                (room, fresh) = (room - count, true);
            }
            if complete && !shared.complete {
                (shared.complete, fresh) = (true, true);
            }
            if fresh {
                shared.reader.wake();
            }
            // Where the stream has ended before, there is nobody left to tell.
            shared.verdict.take().filter(|_| running)
        };
        match verdict {
            Some(Verdict::Kept) if complete => inbound.kept(),
            Some(_) => inbound.cannot_keep()?,
            None => {}
        }
        let until = if came { clock::now() } else { clock::now() + ROUND };
        came = false;
        let Some(event) = inbound.step(until)? else { continue };
        came = true;
        match event {
            Event::Begun(from, transport, size) => {
                (running, complete) = (true, false);
                let mut shared = lock(shared);
                *shared = Shared {
                    begun: Some((from, transport, size)),
                    dropped: shared.dropped,
                    reader: std::mem::take(&mut shared.reader),
                    ..Shared::default()
                };
                shared.reader.wake();
            }
            Event::Complete => complete = true,
            Event::Over | Event::Failed(_) => {
                running = false;
                let mut shared = lock(shared);
                shared.end = Some(match event {
                    Event::Failed(why) => Err(failed(&why)),
                    _ => Ok(()),
                });
                shared.reader.wake();
            }
        }
    }
}
