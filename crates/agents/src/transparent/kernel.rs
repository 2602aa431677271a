//! The program that takes connections over, and the listener that gets them.

use super::{Config, Error, MARK, route};
use crate::service::said::Captured;
use crate::service::skeleton::{room, skeleton};
use crate::service::{bpf_links, device, system};
use libbpf_rs::skel::{OpenSkel, SkelBuilder};
use libbpf_rs::{AsRawLibbpf, Link, MapCore, MapFlags, libbpf_sys};
use socket2::{Domain, Protocol, Socket, Type};
use std::collections::BTreeSet;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, TcpListener};
use std::os::fd::AsRawFd;
use std::ptr::NonNull;

skeleton!("tproxy", TproxySkel, TproxySkelBuilder);

/// Connections are being taken over as long as this lives.
pub(crate) struct Interception {
    /// Stations to which connections are taken over now.
    present: BTreeSet<Ipv4Addr>,
    /// Their services that are left alone.
    passed: BTreeSet<SocketAddrV4>,
    // The link goes first: what is not assigned any more takes its ordinary way.
    link: Link,
    skeleton: TproxySkel<'static>,
}

impl Interception {
    /// Begins; connections come to the listener, and their local address is the address that was meant. `prepare` sets what they
    /// inherit from it.
    pub(crate) fn begin(
        config: &Config,
        prepare: impl FnOnce(&Socket) -> io::Result<()>,
    ) -> Result<(Interception, TcpListener), Error> {
        let device = device::find(&config.iface)?;
        let listener = listener(prepare).map_err(system("a transparent listener (needs CAP_NET_ADMIN)"))?;
        let said = Captured::begin();
        let failed = |error| Error::Load { what: "program", explained: said.explain(&error) };
        let mut open = TproxySkelBuilder::default().open(room()).map_err(failed)?;
        if let Some(constants) = open.maps.rodata_data.as_deref_mut() {
            constants.link_len = device.link_len;
            constants.mark = MARK;
        }
        let skeleton = open.load().map_err(failed)?;
        let socket = u64::try_from(listener.as_raw_fd()).expect("a descriptor is not negative");
        skeleton.maps.listener.update(&0u32.to_ne_bytes(), &socket.to_ne_bytes(), MapFlags::ANY).map_err(failed)?;
        route()?;
        let link = attach(&skeleton, device.index)?;
        let interception = Interception { present: BTreeSet::new(), passed: BTreeSet::new(), link, skeleton };
        Ok((interception, listener))
    }

    /// True if the program is still on the interface.
    pub(crate) fn is_attached(&self) -> bool {
        bpf_links::is_attached(&self.link)
    }

    /// Takes over connections to these addresses of stations with a running agent, and to no others: those are reached
    /// as if there were no proxy. An address that goes takes with it what is known of its services.
    pub(crate) fn set_present(&mut self, present: BTreeSet<Ipv4Addr>) -> libbpf_rs::Result<()> {
        for address in present.difference(&self.present) {
            self.skeleton.maps.stations.update(&address.octets(), &1u32.to_ne_bytes(), MapFlags::ANY)?;
        }
        for address in self.present.difference(&present) {
            self.skeleton.maps.stations.delete(&address.octets())?;
        }
        let (kept, gone) = std::mem::take(&mut self.passed).into_iter().partition(|to| present.contains(to.ip()));
        self.passed = kept;
        for to in gone {
            // The least recently used one of many may have made room already.
            let _ = self.skeleton.maps.passed.delete(&service(to));
        }
        self.present = present;
        Ok(())
    }

    /// Leaves connections to a service alone, which the station's agent does not serve, as long as that agent is there.
    pub(crate) fn pass(&mut self, to: SocketAddrV4) -> libbpf_rs::Result<()> {
        self.passed.insert(to);
        self.skeleton.maps.passed.update(&service(to), &1u32.to_ne_bytes(), MapFlags::ANY)
    }
}

/// `struct service` of the program.
fn service(to: SocketAddrV4) -> [u8; 8] {
    let ([a, b, c, d], [high, low]) = (to.ip().octets(), to.port().to_be_bytes());
    [a, b, c, d, high, low, 0, 0]
}

fn attach(skeleton: &TproxySkel<'_>, ifindex: i32) -> Result<Link, Error> {
    let opts = libbpf_sys::bpf_tcx_opts { sz: size_of::<libbpf_sys::bpf_tcx_opts>() as _, ..Default::default() };
    let program = skeleton.progs.tproxy_ingress.as_libbpf_object();
    // SAFETY: the program is loaded and alive, and `opts` says its own size.
    let link = unsafe { libbpf_sys::bpf_program__attach_tcx(program.as_ptr(), ifindex, &opts) };
    let link = NonNull::new(link).ok_or_else(|| Error::Attach(io::Error::last_os_error()))?;
    // SAFETY: a fresh link, owned by nobody else.
    Ok(unsafe { Link::from_ptr(link) })
}

fn listener(prepare: impl FnOnce(&Socket) -> io::Result<()>) -> io::Result<TcpListener> {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::TCP))?;
    socket.set_ip_transparent_v4(true)?;
    prepare(&socket)?;
    socket.bind(&SocketAddr::V4(SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0)).into())?;
    socket.listen(1024)?;
    socket.set_nonblocking(true)?;
    Ok(socket.into())
}
