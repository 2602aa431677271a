//! The sending end of a stream as a future.

use super::bell::{Bell, Ringing, bell};
use super::{BUFFER, Waiting, failed, spawn, take};
use crate::endpoint::{Outbound, OutboundOptions};
use crate::tunnel::{Error, clock};
use futures_io::AsyncWrite;
use lasthop_transport::stream::Figures;
use lasthop_units::Span;
use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::thread::JoinHandle;

/// How often the thread looks around if nothing happens.
const ROUND: Span = Span::from_millis(500);
/// Octets that are handed on at once.
const PAGE: usize = 16 << 10;

/// The sending end of a stream.
///
/// `poll_close` is ready once the receiver's application has said that it has kept everything, or fails. A stream that is dropped before is
/// stopped, and the receiver is told.
pub struct SendStream {
    shared: Arc<Mutex<Shared>>,
    bell: Bell,
    thread: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Shared {
    written: VecDeque<u8>,
    closed: bool,
    /// The application has gone.
    dropped: bool,
    /// How it has ended.
    end: Option<Result<(), Arc<io::Error>>>,
    figures: Figures,
    writer: Waiting,
}

impl SendStream {
    /// Begins to call the receiver at `to`. What is written waits until it has answered; that nobody answers shows at a write or at the close.
    ///
    /// # Errors
    /// As [`Outbound::connect`].
    pub fn connect(to: SocketAddr, options: &OutboundOptions) -> Result<SendStream, Error> {
        let (bell, ringing) = bell()?;
        let shared = Arc::new(Mutex::new(Shared::default()));
        let (own, options) = (Arc::clone(&shared), options.clone());
        // A socket's buffers stay with the thread that uses them, so it opens the socket, too.
        let open = move || {
            let outbound = Outbound::connect(to, &options)?;
            outbound.watch(&ringing)?;
            Ok(((), move || drive(outbound, &own, &ringing)))
        };
        let ((), thread) = spawn("lasthop-send", open)?;
        Ok(SendStream { shared, bell, thread: Some(thread) })
    }

    /// What there is to tell of the stream.
    pub fn figures(&self) -> Figures {
        lock(&self.shared).figures
    }
}

fn lock(shared: &Mutex<Shared>) -> MutexGuard<'_, Shared> {
    // Whoever panicked left a state that is whole: each change is one step.
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// An error that was told before, told again.
fn again(error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), error.to_string())
}

fn drive(mut outbound: Outbound, shared: &Mutex<Shared>, ringing: &Ringing) {
    let (mut page, mut from, mut closed) = (Vec::new(), 0, false);
    loop {
        ringing.silence();
        let ended = outbound.end().map(|end| end.clone().map_err(|why| failed(&why)));
        {
            let mut shared = lock(shared);
            shared.figures = outbound.figures();
            if let Some(end) = ended {
                shared.end = Some(end.map_err(Arc::new));
                shared.writer.wake();
                break;
            }
            if shared.dropped {
                drop(shared);
                // Nobody is left to tell whether that worked.
                let _ = outbound.stop();
                return;
            }
            if from == page.len() && !shared.written.is_empty() {
                page.resize(PAGE, 0);
                let count = take(&mut shared.written, &mut page);
                page.truncate(count);
                from = 0;
                shared.writer.wake();
            }
            closed = closed || shared.closed && shared.written.is_empty();
        }
        from += outbound.write(&page[from..]);
        if closed && from == page.len() {
            outbound.close();
        }
        if let Err(error) = outbound.step(clock::now() + ROUND) {
            let mut shared = lock(shared);
            shared.end = Some(Err(Arc::new(io::Error::other(error))));
            shared.writer.wake();
            return;
        }
    }
    // The last word leaves.
    let _ = outbound.step(clock::now());
}

impl AsyncWrite for SendStream {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let mut shared = lock(&self.shared);
        if let Some(Err(error)) = &shared.end {
            return Poll::Ready(Err(again(error)));
        }
        if shared.closed || shared.end.is_some() {
            return Poll::Ready(Err(io::Error::new(io::ErrorKind::BrokenPipe, "the stream is closed")));
        }
        let count = bytes.len().min(BUFFER.saturating_sub(shared.written.len()));
        if count == 0 && !bytes.is_empty() {
            shared.writer.wait(cx);
            return Poll::Pending;
        }
        shared.written.extend(&bytes[..count]);
        drop(shared);
        self.bell.ring();
        Poll::Ready(Ok(count))
    }

    /// What was written leaves by itself.
    fn poll_flush(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_close(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut shared = lock(&self.shared);
        shared.closed = true;
        match &shared.end {
            Some(Ok(())) => return Poll::Ready(Ok(())),
            Some(Err(error)) => return Poll::Ready(Err(again(error))),
            None => shared.writer.wait(cx),
        }
        drop(shared);
        self.bell.ring();
        Poll::Pending
    }
}

impl Drop for SendStream {
    fn drop(&mut self) {
        lock(&self.shared).dropped = true;
        self.bell.ring();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
