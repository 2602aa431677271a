//! What crosses the hops: our own senders and receivers over kernel sockets, `iperf3`, and programs with a transport of their own.
//!
//! Sockets are made inside a host's namespace and used from any thread. Every thread watches a [`Stop`] and wakes at
//! least every `TICK`, so that a run ends when it should.

pub(crate) mod all;
pub mod bulk;
pub mod carried;
pub(crate) mod door;
pub mod fetch;
pub mod iperf3;
pub(crate) mod listening;
pub mod probe;
pub mod tcp_info;

use self::door::Door;
use crate::clock::Clock;
use crate::congestion::absent;
use crate::error::{Doing, LabError, Result};
use crate::netns::Namespace;
use crate::stop::Stop;
use lasthop_radio::AccessClass;
use lasthop_units::Time;
use lasthop_wire::ip::dscp::code;
use socket2::{Domain, Protocol, SockAddr, Socket, Type};
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

/// How long a thread may be deaf to a request to stop.
pub(crate) const TICK: Duration = Duration::from_millis(50);

/// A TCP connection to be.
pub(crate) struct Call<'a> {
    /// The host that takes the call.
    pub listener: &'a Namespace,
    /// The host that calls.
    pub caller: &'a Namespace,
    /// Where the caller finds the listener.
    pub address: SocketAddr,
    /// The caller's way there.
    pub door: Door,
    /// The kernel's congestion controls of the listener's host and the caller's.
    pub congestion: [&'a str; 2],
}

/// An end of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum End {
    /// The one that takes the call.
    Listener,
    /// The one that calls.
    Caller,
}

impl Call<'_> {
    /// The kernel's congestion control of what `end` sends.
    pub(crate) fn congestion_of(&self, end: End) -> &str {
        self.congestion[usize::from(end == End::Caller)]
    }
}

/// When a flow runs, and what ends it early.
#[derive(Clone, Debug)]
pub(crate) struct Period {
    pub clock: Clock,
    pub start: Time,
    pub end: Time,
    pub stop: Stop,
}

impl Period {
    /// True while the flow may go on.
    pub(crate) fn lasts(&self) -> bool {
        self.clock.now() < self.end && !self.stop.is_raised()
    }

    /// Waits for `moment`; false if the flow ends before.
    pub(crate) fn wait_until(&self, moment: Time) -> bool {
        while self.lasts() && moment < self.end {
            let left = self.clock.until(moment);
            if left.is_zero() {
                return true;
            }
            std::thread::sleep(left.min(TICK.into()).into());
        }
        false
    }
}

/// A TCP socket in `namespace` that listens at `address`; connections inherit `congestion`.
pub(crate) fn listen(namespace: &Namespace, address: SocketAddr, congestion: &str) -> Result<Socket> {
    namespace.within(|| {
        let socket = tcp(address)?;
        set_congestion(&socket, congestion)?;
        let start = || {
            socket.set_reuse_address(true)?;
            socket.bind(&SockAddr::from(address))?;
            socket.listen(64)?;
            socket.set_read_timeout(Some(TICK))
        };
        start().doing(|| format!("listening at {address}"))?;
        Ok(socket)
    })
}

/// A TCP socket for `address` in the calling thread's namespace.
pub(crate) fn tcp(address: SocketAddr) -> Result<Socket> {
    Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP)).doing(|| "making a TCP socket".into())
}

/// The octet of an IP header that carries the DSCP for a class: what RFC 8325 maps to it, of the service classes that are
/// meant for such traffic (RFC 4594), and what [`crate::classify`] reads.
pub(crate) const fn tos(class: AccessClass) -> u8 {
    let dscp = match class {
        AccessClass::Background => code::CS1,
        AccessClass::BestEffort => code::DEFAULT,
        AccessClass::Video => code::AF41,
        AccessClass::Voice => code::EF,
    };
    dscp << 2
}

/// Marks what a socket sends.
pub(crate) fn mark(socket: &Socket, tos: u8) -> io::Result<()> {
    if tos == 0 {
        return Ok(());
    }
    match socket.domain()? {
        Domain::IPV6 => socket.set_tclass_v6(tos.into()),
        _ => socket.set_tos_v4(tos.into()),
    }
}

/// Chooses the kernel's congestion control for one socket.
pub(crate) fn set_congestion(socket: &Socket, congestion: &str) -> Result<()> {
    socket.set_tcp_congestion(congestion.as_bytes()).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => absent(congestion),
        _ => LabError::System { doing: format!("choosing congestion control {congestion}"), source: error },
    })
}

/// True for what a read or write timeout, a signal or a non-blocking call returns instead of data.
pub(crate) fn is_transient(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted)
}

/// Accepts one connection; `None` if the period ends before somebody calls.
pub(crate) fn accept(listener: &Socket, period: &Period) -> Result<Option<Socket>> {
    while period.lasts() {
        match listener.accept() {
            Ok((socket, _)) => return Ok(Some(socket)),
            Err(error) if is_transient(&error) => {}
            Err(error) => return Err(error).doing(|| "accepting a connection".into()),
        }
    }
    Ok(None)
}

/// Starts a named thread.
pub(crate) fn spawn<T: Send + 'static>(
    name: &str,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<std::thread::JoinHandle<T>> {
    std::thread::Builder::new().name(name.into()).spawn(work).doing(|| format!("starting thread {name}"))
}

/// Waits for a thread; its panic becomes ours.
pub(crate) fn join<T>(thread: std::thread::JoinHandle<T>) -> T {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}
