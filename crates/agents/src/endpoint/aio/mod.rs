//! Streams as futures: `futures_io::AsyncWrite` and `AsyncRead` over any of our transports, for any executor.
//!
//! Behind each [`SendStream`] and each [`Listener`] a thread of its own drives the socket, which must wake at the moments that a law sets and not when an
//! executor gets round to it. What passes between the two is bounded, so that flow control reaches from one application to the other.
//!
//! ```no_run
//! use futures_io::AsyncWrite;
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use lasthop_agents::endpoint::{Law, OutboundOptions, PATIENCE, aio::SendStream};
//!
//! let law = Law::named("adaptive").expect("a law of that name");
//! let options = OutboundOptions { law, key: None, size: None, patience: PATIENCE };
//! let mut stream = SendStream::connect("192.0.2.2:4900".parse()?, &options)?;
//! std::future::poll_fn(|cx| std::pin::Pin::new(&mut stream).poll_write(cx, b"hello")).await?;
//! std::future::poll_fn(|cx| std::pin::Pin::new(&mut stream).poll_close(cx)).await?; // the receiver has kept it
//! # Ok(())
//! # }
//! ```

mod bell;
mod listener;
mod send;

pub use listener::{Incoming, Listener};
pub use send::SendStream;

use super::Failure;
use crate::tunnel::Error;
use std::collections::VecDeque;
use std::io;
use std::sync::mpsc;
use std::task::{Context, Waker};
use std::thread::{self, JoinHandle};

/// Octets between an application and its thread.
const BUFFER: usize = 256 << 10;

/// A task that waits for something.
#[derive(Default)]
struct Waiting(Option<Waker>);

impl Waiting {
    fn wait(&mut self, cx: &Context<'_>) {
        self.0 = Some(cx.waker().clone());
    }

    fn wake(&mut self) {
        if let Some(waker) = self.0.take() {
            waker.wake();
        }
    }
}

/// Moves what `from` holds into `out`, as far as there is room, and says how much that was.
fn take(from: &mut VecDeque<u8>, out: &mut [u8]) -> usize {
    let count = from.len().min(out.len());
    for (place, octet) in out.iter_mut().zip(from.drain(..count)) {
        *place = octet;
    }
    count
}

/// A thread that opens what it drives, and what it has to tell of that.
fn spawn<T, R>(
    name: &str,
    open: impl FnOnce() -> Result<(T, R), Error> + Send + 'static,
) -> Result<(T, JoinHandle<()>), Error>
where
    T: Send + 'static,
    R: FnOnce(),
{
    let (tell, told) = mpsc::sync_channel(1);
    let drive = move || match open() {
        Ok((opened, run)) => {
            // The caller waits for that.
            let _ = tell.send(Ok(opened));
            run();
        }
        Err(error) => {
            let _ = tell.send(Err(error));
        }
    };
    let thread = thread::Builder::new().name(name.into()).spawn(drive).map_err(Error::system("a thread"))?;
    let gone = || Error::system("a thread")(io::Error::other("it has ended before it began"));
    Ok((told.recv().map_err(|_| gone())??, thread))
}

fn failed(why: &Failure) -> io::Error {
    let kind = match why {
        Failure::NoAnswer(_) => io::ErrorKind::ConnectionRefused,
        Failure::Silent(_) => io::ErrorKind::TimedOut,
        Failure::Stopped | Failure::CannotKeep => io::ErrorKind::ConnectionAborted,
        _ => io::ErrorKind::Other,
    };
    io::Error::new(kind, why.clone())
}

#[cfg(test)]
mod tests;
