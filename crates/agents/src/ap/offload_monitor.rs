//! Looks, while the agent runs, for what begins to carry packets past it (rule 11 of [`lasthop_laws::oal::rwnd`]).
//!
//! A firewall that is loaded again may bring a flow table along. nf_tables tells of each to whoever has subscribed, also after
//! the subscriber has given up the privileges that subscribing takes; modules show in `/sys` to everybody.

use super::Error;
use super::offload::{self, Flowtable};
use crate::service::system;
use lasthop_system::netlink::Netlink;
use nix::sys::socket::sockopt::{RcvBuf, RcvBufForce};
use nix::sys::socket::{NetlinkAddr, bind, setsockopt};
use std::cell::RefCell;
use std::io;
use std::os::fd::{AsFd, AsRawFd};

/// A subscription to nf_tables' events.
pub(super) struct OffloadMonitor {
    iface: String,
    /// `None` where the kernel has no nfnetlink, and so no flow tables.
    events: Option<RefCell<Netlink>>,
}

/// `NFNLGRP_NFTABLES` of `linux/netfilter/nfnetlink.h`, as a bit.
const NFTABLES_GROUP: u32 = 1 << (7 - 1);
/// Room for the events of a large firewall: each of its rules is one.
const RECEIVE_BUFFER: usize = 8 << 20;

impl OffloadMonitor {
    /// From now on nothing is missed. Needs `CAP_NET_ADMIN`.
    pub(super) fn open(iface: &str) -> Result<OffloadMonitor, Error> {
        let events = match subscribe() {
            Ok(events) => Some(RefCell::new(events)),
            Err(error) if matches!(error.raw_os_error(), Some(libc::EPROTONOSUPPORT | libc::EAFNOSUPPORT)) => None,
            Err(error) => return Err(offload::refusal("events of nf_tables")(error).into()),
        };
        Ok(OffloadMonitor { iface: iface.to_owned(), events })
    }

    /// Refuses to go on if something has come since that may carry packets past the programs. Needs no privileges.
    ///
    /// # Errors
    /// [`Error::Offloaded`]; [`Error::Service`] if events were lost and this process may not list the tables itself.
    pub(super) fn look(&self) -> Result<(), Error> {
        let mut tables = Vec::new();
        match self.events.as_ref().map_or(Ok(()), |events| drain(&mut events.borrow_mut(), &mut tables)) {
            Ok(()) => offload::refuse(&offload::among(Some(&self.iface), tables)),
            // Some were lost, so all are asked for; that takes a privilege which may be gone.
            Err(error) if error.raw_os_error() == Some(libc::ENOBUFS) => match offload::find(Some(&self.iface)) {
                Ok(found) => offload::refuse(&found),
                Err(_) => {
                    let what = "events of nf_tables came faster than they were read, and a flow table may be among them: \
                                start the agent again";
                    Err(system(what)(error).into())
                }
            },
            Err(other) => Err(system("events of nf_tables")(other).into()),
        }
    }
}

fn subscribe() -> io::Result<Netlink> {
    let events = Netlink::open(libc::NETLINK_NETFILTER)?;
    // Beyond the system's limit only with a privilege; with less, events are lost earlier, and that is noticed.
    if setsockopt(&events, RcvBufForce, &RECEIVE_BUFFER).is_err() {
        setsockopt(&events, RcvBuf, &RECEIVE_BUFFER)?;
    }
    bind(events.as_fd().as_raw_fd(), &NetlinkAddr::new(0, NFTABLES_GROUP))?;
    Ok(events)
}

/// Events read in one look: some milliseconds of work. What remains is read at the next one, or lost, which is noticed.
const BUDGET: usize = 4096;

/// What has come.
fn drain(events: &mut Netlink, tables: &mut Vec<Flowtable>) -> io::Result<()> {
    for _ in 0..BUDGET {
        match events.poll()? {
            Some(datagram) => offload::take(datagram, tables),
            None => break,
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::offload::tests::told;
    use super::*;
    use crate::service::privileges;
    use nix::sys::socket::{AddressFamily, MsgFlags, SockFlag, SockType, send, socketpair};

    #[test]
    fn a_flow_table_that_is_loaded_later_ends_it_and_others_do_not() {
        let (kernel, events) =
            socketpair(AddressFamily::Unix, SockType::Datagram, None, SockFlag::SOCK_NONBLOCK).expect("a pair");
        let events = Some(RefCell::new(Netlink::of(events)));
        let offload_monitor = OffloadMonitor { iface: "lo".to_owned(), events };
        let tell = |bytes: &[u8]| send(kernel.as_raw_fd(), bytes, MsgFlags::empty()).expect("room for it");
        offload_monitor.look().expect("nothing has come");
        tell(&told(1, "fw4", "soft", 0));
        tell(b"nothing that makes sense");
        offload_monitor.look().expect("a table in software, of another device");
        tell(&[told(1, "fw4", "soft", 0), told(1, "fw4", "fast", 1)].concat());
        let said = offload_monitor.look().expect_err("one in hardware").to_string();
        assert!(said.contains("hardware flow table fast"), "{said}");
    }

    #[test]
    fn who_may_subscribe_hears_nothing_where_nothing_happens() {
        match OffloadMonitor::open("lo") {
            Ok(offload_monitor) => offload_monitor.look().expect("nothing has been loaded"),
            Err(error) => assert!(!privileges::has(privileges::NET_ADMIN), "{error}"),
        }
    }
}
