//! Transparent mode at the station: connections that programs make by themselves are led to the agent.
//!
//! The eBPF programs (`bpf/divert.bpf.c`) sit on a cgroup: what its processes connect to is replaced by a listener of the
//! agent, before a segment leaves, and a program that asks is told what it asked for. They go with the agent however that
//! ends, and do nothing while the proxy is not heard, or the agent stands still, so that connections then take their
//! ordinary way.

use crate::service::said::Captured;
use crate::service::skeleton::{room, skeleton};
use crate::service::{bpf_links, cgroup, clock, netns, system};
use crate::transparent::Error;
use lasthop_units::{Span, Time};
use lasthop_wire::proxy::Target;
use libbpf_rs::skel::{OpenSkel, SkelBuilder};
use libbpf_rs::{Link, MapCore, MapFlags};
use nix::sys::socket::SockaddrStorage;
use std::collections::BTreeSet;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream};
use std::path::Path;

skeleton!("divert", DivertSkel, DivertSkelBuilder);

/// Connections are led to the agent as long as this lives.
pub(crate) struct Diversion {
    /// Until when they are.
    until: Time,
    /// Networks that are left alone, and when they were looked up.
    own: BTreeSet<Network>,
    looked: Time,
    /// When it was last looked whether the programs are attached.
    checked: Time,
    /// The proxy's addresses.
    proxies: Vec<IpAddr>,
    /// Services that the proxy does not connect to.
    passed: BTreeSet<SocketAddr>,
    // The links go first: what is not led here any more takes its ordinary way.
    links: Vec<Link>,
    skeleton: DivertSkel<'static>,
}

/// An address, as `struct address` of the programs, and how many of its bits are the network's.
type Network = ([u8; 16], u32);

/// A proxy that has been silent for so long is taken to be gone: stations ping twice a second.
const PRESENT: Span = Span::from_secs(3);
/// How often this machine's networks are looked up.
const LOOK: Span = Span::from_secs(1);
/// How often it is looked whether the programs are attached.
const CHECK: Span = Span::from_millis(500);
/// A new time is set when it is so much later.
const STEP: Span = Span::from_millis(100);
/// More services that are left alone are not remembered.
const MOST_PASSED: usize = 1024;
const YES: [u8; 4] = 1u32.to_ne_bytes();

impl Diversion {
    /// Begins, for the processes of a cgroup (version 2). Connections come to the listeners.
    pub(crate) fn begin(
        cgroup: &Path,
        proxies: impl Iterator<Item = SocketAddr>,
        now: Time,
    ) -> Result<(Diversion, Vec<TcpListener>), Error> {
        let listening = system("a listener for transparent mode");
        let v4 = listener(Ipv4Addr::LOCALHOST.into()).map_err(listening)?;
        // There are machines without IPv6: nothing is led there then.
        let v6 = listener(Ipv6Addr::LOCALHOST.into()).ok();
        let said = Captured::begin();
        let failed = |error| Error::Load { what: "programs", explained: said.explain(&error) };
        let port = |listener: &TcpListener| listener.local_addr().map(|address| address.port().to_be());
        let ports = port(&v4).and_then(|four| Ok((four, v6.as_ref().map(port).transpose()?.unwrap_or(0))));
        let (port4, port6) = ports.map_err(system("the address of a socket"))?;
        let mut open = DivertSkelBuilder::default().open(room()).map_err(failed)?;
        let constants = open.maps.rodata_data.as_deref_mut().expect("the programs have constants");
        constants.netns = netns::cookie()?;
        (constants.port4, constants.port6) = (port4, port6);
        let skeleton = open.load().map_err(failed)?;
        let links = attach(&skeleton, cgroup)?;
        let mut diversion = Diversion {
            until: Time::ZERO,
            own: BTreeSet::new(),
            looked: Time::ZERO,
            checked: now,
            proxies: proxies.map(|proxy| proxy.ip().to_canonical()).collect(),
            passed: BTreeSet::new(),
            links,
            skeleton,
        };
        diversion.look_up(now);
        Ok((diversion, std::iter::once(v4).chain(v6).collect()))
    }

    /// True if the programs were still on their cgroup at the last look, half a second ago at most.
    pub(crate) fn is_attached(&mut self, now: Time) -> bool {
        if now.since(self.checked) < CHECK {
            return true;
        }
        self.checked = now;
        self.links.iter().all(bpf_links::is_attached)
    }

    /// Leads connections here as long as the proxy is heard.
    pub(crate) fn look(&mut self, now: Time, heard: Option<Time>) -> libbpf_rs::Result<()> {
        if now.since(self.looked) >= LOOK {
            self.look_up(now);
        }
        let until = heard.map_or(Time::ZERO, |heard| heard + PRESENT);
        if self.until == until || (until > self.until && until.since(self.until) < STEP) {
            return Ok(());
        }
        if until <= now {
            // Another proxy may have other rules.
            self.forget();
        }
        self.until = until;
        self.set_until()
    }

    /// Tells the programs until when they lead connections here.
    ///
    /// # Errors
    /// If the kernel lets no process change maps that has given up the right to make them (before Linux 5.19, where
    /// `kernel.unprivileged_bpf_disabled` is not 0).
    pub(crate) fn set_until(&self) -> libbpf_rs::Result<()> {
        let until = clock::monotonic(self.until).as_nanos();
        self.skeleton.maps.serving.update(&0u32.to_ne_bytes(), &until.to_ne_bytes(), MapFlags::ANY)
    }

    /// Where a diverted connection meant to go; `None` if it came to the listener by itself.
    pub(crate) fn meant(&self, socket: &TcpStream) -> Option<SocketAddr> {
        let from = place(socket.peer_addr().ok()?);
        let to = self.skeleton.maps.asked.lookup(&from, MapFlags::ANY).ok()??;
        let _ = self.skeleton.maps.asked.delete(&from);
        let (ip, port) = to.split_first_chunk::<16>()?;
        let port = u16::from_be_bytes([*port.first()?, *port.get(1)?]);
        Some(SocketAddr::new(Ipv6Addr::from(*ip).to_canonical(), port))
    }

    /// Leaves connections to a service alone, which the proxy does not make: the next one takes its ordinary way.
    pub(crate) fn pass(&mut self, to: SocketAddr) -> libbpf_rs::Result<()> {
        if self.passed.len() >= MOST_PASSED {
            self.forget();
        }
        self.passed.insert(to);
        self.skeleton.maps.passed.update(&place(to), &YES, MapFlags::ANY)
    }

    fn forget(&mut self) {
        for to in std::mem::take(&mut self.passed) {
            // The least recently used one of many may have made room already.
            let _ = self.skeleton.maps.passed.delete(&place(to));
        }
    }

    /// Leaves the networks alone that this machine is in, and the proxy.
    fn look_up(&mut self, now: Time) {
        self.looked = now;
        // An interface may go while it is looked at; what was known stays known then.
        let Ok(interfaces) = nix::ifaddrs::getifaddrs() else { return };
        let attached = interfaces.filter_map(|interface| {
            let address = ip(interface.address.as_ref()?)?;
            Some(network(address, interface.netmask.as_ref().and_then(ip)))
        });
        let mut own: BTreeSet<Network> = attached.chain(self.proxies.iter().map(|ip| network(*ip, None))).collect();
        for gone in self.own.difference(&own) {
            let _ = self.skeleton.maps.own.delete(&key(*gone));
        }
        // Whatever finds no room is tried again.
        own.retain(|new| {
            self.own.contains(new) || self.skeleton.maps.own.update(&key(*new), &YES, MapFlags::ANY).is_ok()
        });
        self.own = own;
    }
}

fn ip(address: &SockaddrStorage) -> Option<IpAddr> {
    let v4 = address.as_sockaddr_in().map(|address| IpAddr::V4(address.ip()));
    v4.or_else(|| address.as_sockaddr_in6().map(|address| IpAddr::V6(address.ip())))
}

/// The network of an address with this mask; of a host without one, or with one that says everything.
fn network(address: IpAddr, mask: Option<IpAddr>) -> Network {
    let (all, bits) = match mask {
        Some(IpAddr::V4(mask)) => (32, mask.to_bits().leading_ones()),
        Some(IpAddr::V6(mask)) => (128, mask.to_bits().leading_ones()),
        None => (128, 0),
    };
    (octets(address), if bits == 0 { 128 } else { 128 - all + bits })
}

/// `struct network` of the programs.
fn key((address, bits): Network) -> [u8; 20] {
    let mut key = [0; 20];
    key[..4].copy_from_slice(&bits.to_ne_bytes());
    key[4..].copy_from_slice(&address);
    key
}

/// What a connection that was led here asks the proxy for.
pub(crate) fn target(to: SocketAddr) -> Option<Target> {
    Target::new(&to.ip().to_string(), to.port()).ok()
}

/// `struct address` of the programs.
fn octets(ip: IpAddr) -> [u8; 16] {
    match ip {
        IpAddr::V4(ip) => ip.to_ipv6_mapped().octets(),
        IpAddr::V6(ip) => ip.octets(),
    }
}

/// `struct place` of the programs.
fn place(at: SocketAddr) -> [u8; 20] {
    let mut place = [0; 20];
    place[..16].copy_from_slice(&octets(at.ip()));
    place[16..18].copy_from_slice(&at.port().to_be_bytes());
    place
}

fn attach(skeleton: &DivertSkel<'_>, cgroup: &Path) -> Result<Vec<Link>, Error> {
    let directory = cgroup::open(cgroup)?;
    let programs = &skeleton.progs;
    // The connect programs come last: a connection that they divert must find the rest at work.
    let order = [
        &programs.divert_getpeername4,
        &programs.divert_getpeername6,
        &programs.divert_sockops,
        &programs.divert_connect4,
        &programs.divert_connect6,
    ];
    let attached = order.into_iter().map(|program| cgroup::attach(program, &directory, cgroup));
    Ok(attached.collect::<Result<_, _>>()?)
}

fn listener(ip: IpAddr) -> io::Result<TcpListener> {
    let listener = TcpListener::bind((ip, 0))?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_written_as_the_programs_read_them() {
        let mut expected = [0; 20];
        expected[10..18].copy_from_slice(&[0xff, 0xff, 192, 0, 2, 1, 0x1f, 0x90]);
        assert_eq!(place(SocketAddr::from(([192, 0, 2, 1], 8080))), expected);
        let v6: SocketAddr = "[2001:db8::1]:80".parse().expect("an address");
        assert_eq!(place(v6)[..4], [0x20, 1, 0x0d, 0xb8]);
        let of = |ip: [u8; 4], mask: [u8; 4]| network(IpAddr::from(ip), Some(IpAddr::from(mask)));
        let wanted = key((octets(IpAddr::from([192, 0, 2, 7])), 120));
        assert_eq!(key(of([192, 0, 2, 7], [255, 255, 255, 0])), wanted);
        assert_eq!(wanted[..4], 120u32.to_ne_bytes());
        assert_eq!(wanted[14..], [0xff, 0xff, 192, 0, 2, 7]);
        assert_eq!(of([192, 0, 2, 7], [0; 4]).1, 128, "a mask that would leave everything alone");
        assert_eq!(target(v6).map(|target| (target.host, target.port)), Some(("2001:db8::1".into(), 80)));
    }
}
