//! Acknowledgements as they come to a server, with the kernel's timestamps, and when windows in them were lowered.

use lasthop_units::stats::Samples;
use nix::sys::socket::sockopt::{RcvBufForce, ReceiveTimestampns};
use nix::sys::socket::{ControlMessageOwned, MsgFlags, recvmsg, setsockopt};
use std::collections::BTreeMap;
use std::io::IoSliceMut;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// A packet socket for what comes to an interface.
pub struct Tap(OwnedFd);

/// What of a packet is kept: IP and TCP headers without options.
const KEPT: usize = 40;

impl Tap {
    /// On an interface of the calling thread's namespace.
    pub fn on(device: &str) -> Tap {
        let protocol = (libc::ETH_P_IP as u16).to_be();
        // SAFETY: takes numbers, gives a descriptor or an error.
        let fd = unsafe { libc::socket(libc::AF_PACKET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, i32::from(protocol)) };
        assert!(fd >= 0, "a packet socket: {}", std::io::Error::last_os_error());
        // SAFETY: a fresh descriptor, owned by nobody else.
        let fd = unsafe { OwnedFd::from_raw_fd(fd) };
        setsockopt(&fd, RcvBufForce, &(64 << 20)).expect("root");
        setsockopt(&fd, ReceiveTimestampns, &true).expect("Linux");
        // SAFETY: all zeros is a value of this struct of integers.
        let mut at: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
        at.sll_family = libc::AF_PACKET as u16;
        at.sll_protocol = protocol;
        at.sll_ifindex = nix::net::if_::if_nametoindex(device).expect("there") as i32;
        // SAFETY: the address is as long as is said.
        let failed = unsafe { libc::bind(fd.as_raw_fd(), (&raw const at).cast(), size_of_val(&at) as u32) };
        assert_eq!(failed, 0, "a packet socket's interface: {}", std::io::Error::last_os_error());
        Tap(fd)
    }

    /// Reads what has come since the last call. For each flow of which it had seen a window before `told` (`CLOCK_REALTIME`, ns): microseconds from then to the
    /// first acknowledgement with a smaller one.
    pub fn lowered_after(&self, told: u64) -> Samples {
        let mut windows: BTreeMap<u16, u16> = BTreeMap::new();
        let mut lowered: BTreeMap<u16, u64> = BTreeMap::new();
        let mut packet = [0; KEPT];
        let mut space = nix::cmsg_space!(nix::sys::time::TimeSpec);
        loop {
            let mut into = [IoSliceMut::new(&mut packet)];
            let Ok(got) = recvmsg::<()>(self.0.as_raw_fd(), &mut into, Some(&mut space), MsgFlags::MSG_DONTWAIT) else {
                break;
            };
            let stamp = got.cmsgs().into_iter().flatten().find_map(|message| match message {
                ControlMessageOwned::ScmTimestampns(at) => {
                    Some(at.tv_sec() as u64 * 1_000_000_000 + at.tv_nsec() as u64)
                }
                _ => None,
            });
            let Some(at) = stamp.filter(|_| got.bytes == KEPT) else { continue };
            // IPv4 without options, TCP, an acknowledgement and nothing else.
            if packet[0] != 0x45 || packet[9] != 6 || packet[33] != 0x10 {
                continue;
            }
            let number = |place: usize| u16::from_be_bytes([packet[place], packet[place + 1]]);
            let (port, window) = (number(20), number(34));
            if at < told {
                windows.insert(port, window);
            } else if windows.get(&port).is_some_and(|before| window < *before) {
                lowered.entry(port).or_insert(at);
            }
        }
        let mut delays = Samples::default();
        lowered.values().for_each(|at| delays.add((at - told) as f64 / 1e3));
        delays
    }
}
