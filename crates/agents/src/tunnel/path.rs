//! Where datagrams go, and what is known of the way there.

use lasthop_units::{Span, Time};
use lasthop_wire::datagram::preamble::preamble;
use lasthop_wire::tunnel::PacketSize;
use nix::errno::Errno;
use nix::sys::socket::{getsockopt, sockopt};
use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::fd::AsRawFd;

/// The other end of a link. How long packets may be is asked of the kernel, which knows the device's MTU and what ICMP has said
/// of the way beyond it.
#[derive(Debug)]
pub struct Path {
    to: SocketAddr,
    size: PacketSize,
    /// D of our own interface, which stands before what goes over a mesh; `None` elsewhere.
    own_delay: Option<Span>,
    /// The kernel may be asked to cut a train into datagrams.
    pub(super) segmentation: bool,
    asked: Option<Time>,
    unsent: Unsent,
}

/// Datagrams that the kernel did not take. The network owes nobody a delivery: they count as lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unsent {
    /// How many.
    pub count: u64,
    /// Why the last of them was not.
    pub why: Option<Errno>,
}

/// How often the kernel is asked for the path's MTU.
const ASK: Span = Span::from_secs(2);

impl Path {
    /// A path of which nothing is known but where it ends.
    pub fn new(to: SocketAddr) -> Path {
        let size = PacketSize::of_path(is_ipv6(to), 1500);
        Path { to, size, own_delay: None, segmentation: true, asked: None, unsent: Unsent::default() }
    }

    /// A path over a mesh: before every datagram stand octets in which relays raise D ([`lasthop_wire::datagram::preamble`]).
    pub fn over_mesh(to: SocketAddr) -> Path {
        let path = Path::new(to);
        Path { size: path.size.over_mesh(), own_delay: Some(Span::ZERO), ..path }
    }

    /// D of our own interface is this from now on; of no account but over a mesh.
    pub fn set_own_delay(&mut self, delay: Span) {
        self.own_delay = self.own_delay.map(|_| delay);
    }

    /// Appends what stands before a datagram: nothing but over a mesh.
    pub fn preface(&self, out: &mut Vec<u8>) {
        out.extend(self.own_delay.map(preamble).iter().flatten());
    }

    /// Where it ends.
    pub fn to(&self) -> SocketAddr {
        self.to
    }

    /// How long packets are on it.
    pub fn size(&self) -> PacketSize {
        self.size
    }

    /// What could not be sent on it.
    pub fn unsent(&self) -> Unsent {
        self.unsent
    }

    /// The other end is at this address now.
    pub fn lead_to(&mut self, to: SocketAddr) {
        if self.to != to {
            let new = if self.own_delay.is_some() { Path::over_mesh(to) } else { Path::new(to) };
            *self = Path { unsent: self.unsent, own_delay: self.own_delay, ..new };
        }
    }

    /// What could not be sent on another path counts here.
    pub fn count(&mut self, other: &Path) {
        self.unsent.add(other.unsent);
    }

    /// Asks the kernel how long packets from the link, at `own`, may be, if it is time to.
    pub fn look(&mut self, now: Time, own: impl FnOnce() -> io::Result<SocketAddr>) {
        if self.asked.is_some_and(|asked| now.since(asked) < ASK) {
            return;
        }
        self.asked = Some(now);
        // What it does not know of a path it will know when there is one.
        let Ok(mtu) = mtu(own().ok(), self.to) else { return };
        let size = PacketSize::of_path(is_ipv6(self.to), mtu);
        self.size = if self.own_delay.is_some() { size.over_mesh() } else { size };
        // A train is cut into packets that pass, or not at all. Whether this device can do it is tried again.
        self.segmentation = self.size.ip_len(self.size.datagram()) <= mtu;
    }

    /// So many datagrams were not taken.
    pub(super) fn refused(&mut self, count: usize, why: Errno) {
        self.unsent.add(Unsent { count: count as u64, why: Some(why) });
    }
}

impl Unsent {
    /// Adds later ones.
    pub fn add(&mut self, later: Unsent) {
        self.count += later.count;
        self.why = later.why.or(self.why);
    }
}

impl fmt::Display for Unsent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} datagrams could not be sent", self.count)?;
        match self.why {
            Some(Errno::EMSGSIZE) => write!(f, ", the last because it is too long for the path"),
            Some(why) => write!(f, ", the last because: {}", why.desc()),
            None => Ok(()),
        }
    }
}

/// A socket for both families shows IPv4 addresses as IPv6 ones.
fn is_ipv6(address: SocketAddr) -> bool {
    address.ip().to_canonical().is_ipv6()
}

/// The largest IP packet that the kernel lets pass whole.
fn mtu(from: Option<SocketAddr>, to: SocketAddr) -> io::Result<usize> {
    let to = match to.ip().to_canonical() {
        IpAddr::V4(v4) => SocketAddr::new(v4.into(), to.port()),
        IpAddr::V6(_) => to,
    };
    let any: IpAddr = if to.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    let mut from = from.filter(|from| from.is_ipv4() == to.is_ipv4()).unwrap_or(SocketAddr::new(any, 0));
    from.set_port(0);
    // It sends nothing: to connect a UDP socket only finds the way.
    let socket = UdpSocket::bind(from)?;
    socket.connect(to)?;
    let mtu = if to.is_ipv4() { getsockopt(&socket, sockopt::IpMtu)? } else { ipv6_mtu(&socket)? };
    usize::try_from(mtu).map_err(io::Error::other)
}

/// `IPV6_MTU`, which has no wrapper.
fn ipv6_mtu(socket: &UdpSocket) -> io::Result<libc::c_int> {
    let mut mtu: libc::c_int = 0;
    let mut len = libc::socklen_t::try_from(size_of::<libc::c_int>()).expect("a few octets");
    // SAFETY: the kernel writes at most `len` octets to `mtu`, which both outlive the call.
    let failed = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::IPPROTO_IPV6,
            libc::IPV6_MTU,
            std::ptr::from_mut(&mut mtu).cast(),
            &mut len,
        )
    };
    if failed == 0 { Ok(mtu) } else { Err(io::Error::last_os_error()) }
}
