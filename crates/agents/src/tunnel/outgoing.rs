//! Connections that are made for the other end of the tunnel: to which addresses, and in which order.
//!
//! A host's addresses are tried one after the other: the next as soon as one fails, or has not answered within its share of the time
//! (RFC 8305, section 5, which tries the next beside it after 250 ms).

use lasthop_units::{Span, Time};
use lasthop_wire::tunnel::OpenResult;
use socket2::{Domain, Protocol, Socket, Type};
use std::io::{self, ErrorKind};
use std::net::{IpAddr, SocketAddr, TcpStream};

/// Addresses of a host that have not been tried yet, in reverse order of preference.
pub(crate) struct Addresses {
    left: Vec<SocketAddr>,
    /// When the host has taken too long to answer at any of them.
    end: Time,
}

/// A connection that is being made.
pub(crate) struct Attempt {
    /// It does not block.
    pub(crate) socket: TcpStream,
    /// It must stand by then.
    pub(crate) until: Time,
    /// What else can be tried.
    pub(crate) left: Addresses,
}

/// How long a host may take to answer, at whichever of its addresses.
const PATIENCE: Span = Span::from_secs(10);
/// An address has no less of that while there is as much: when the first SYN is lost, the second leaves after one second (RFC 6298).
const LEAST_PATIENCE: Span = Span::from_secs(2);

impl Addresses {
    /// Of a host, in order of preference.
    pub(crate) fn new(now: Time, mut all: Vec<SocketAddr>) -> Addresses {
        all.reverse();
        Addresses { left: all, end: now + PATIENCE }
    }

    /// Begins to connect to the first that can be tried; `prepare` has each socket before.
    pub(crate) fn connect(
        mut self,
        now: Time,
        prepare: impl Fn(&Socket) -> io::Result<()>,
    ) -> Result<Attempt, OpenResult> {
        let mut failed = OpenResult::HostUnreachable;
        while let Some(address) = self.left.pop() {
            match connecting(address, &prepare) {
                Ok(socket) => {
                    let until = self.next_end(now);
                    return Ok(Attempt { socket, until, left: self });
                }
                Err(error) => failed = result_of(&error),
            }
        }
        Err(failed)
    }

    /// True if there is one left, and time to try it.
    pub(crate) fn go_on(&self, now: Time) -> bool {
        !self.left.is_empty() && now < self.end
    }

    /// How many are left.
    #[cfg(test)]
    pub(crate) fn count(&self) -> usize {
        self.left.len()
    }

    /// When an address that is tried now has taken too long to answer: those that are left have as much time.
    fn next_end(&self, now: Time) -> Time {
        let share = self.end.since(now) / (self.left.len() as u64 + 1);
        (now + share.max(LEAST_PATIENCE)).min(self.end)
    }
}

fn connecting(address: SocketAddr, prepare: impl Fn(&Socket) -> io::Result<()>) -> io::Result<TcpStream> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    socket.set_nonblocking(true)?;
    prepare(&socket)?;
    match socket.connect(&address.into()) {
        Ok(()) => {}
        Err(error) if error.raw_os_error() == Some(libc::EINPROGRESS) => {}
        Err(error) => return Err(error),
    }
    Ok(socket.into())
}

/// What the kernel's error means to the program that has asked.
pub(crate) fn result_of(error: &io::Error) -> OpenResult {
    match error.kind() {
        ErrorKind::ConnectionRefused => OpenResult::Refused,
        ErrorKind::NetworkUnreachable => OpenResult::NetworkUnreachable,
        ErrorKind::HostUnreachable => OpenResult::HostUnreachable,
        ErrorKind::TimedOut => OpenResult::TimedOut,
        ErrorKind::PermissionDenied => OpenResult::Forbidden,
        _ => OpenResult::Failed,
    }
}

/// True if somebody elsewhere may be connected to an address: not to this machine's links or loopback, unless that is allowed. Its other
/// addresses are for `proxy::route::is_own` to tell.
pub(crate) fn is_allowed(address: IpAddr, local: bool) -> bool {
    let address = address.to_canonical();
    let anyone = !(address.is_unspecified() || address.is_multicast());
    let near = match address {
        IpAddr::V4(v4) => v4.is_loopback() || v4.is_link_local() || v4.is_broadcast(),
        IpAddr::V6(v6) => v6.is_loopback() || v6.is_unicast_link_local(),
    };
    anyone && (local || !near)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_is_not_for_others() {
        let allowed = |text: &str, local| is_allowed(text.parse().expect("an address"), local);
        assert!(allowed("192.0.2.1", false) && allowed("2001:db8::1", false) && allowed("10.0.0.1", false));
        for near in ["127.0.0.1", "127.8.0.1", "::1", "::ffff:127.0.0.1", "169.254.1.1", "fe80::1"] {
            assert!(!allowed(near, false) && allowed(near, true), "{near}");
        }
        assert!(!allowed("0.0.0.0", true) && !allowed("224.0.0.1", true) && !allowed("::", true));
    }
}
