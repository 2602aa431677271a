//! TAP devices: interfaces with this process as the other end.

use crate::error::{Doing, LabError, Result};
use crate::frame::Frame;
use crate::netlink::{LinkSettings, Netlink};
use nix::net::if_::if_nametoindex;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::fs::OpenOptionsExt;

/// Packets that an interface's transmit queue, and the ring between it and the emulator, hold. The emulator empties
/// the ring within a millisecond; a sender may hand over a whole window at once.
const TX_QUEUE_LEN: u32 = 32_768;

/// Largest network-layer packet on a lab interface.
pub const MTU: u32 = 1500;

/// ARPHRD_IEEE80211_RADIOTAP.
const ARPHRD_RADIOTAP: i32 = 803;

nix::ioctl_write_ptr_bad!(set_interface, libc::TUNSETIFF, libc::ifreq);
nix::ioctl_write_int_bad!(set_link_type, libc::TUNSETLINK);

/// One interface: frames that the namespace sends are read here, frames written here are received by the namespace.
/// The interface vanishes with this value.
#[derive(Debug)]
pub struct Tap {
    file: File,
    index: u32,
}

impl Tap {
    /// Makes interface `name` with Ethernet address `mac` in the calling thread's namespace, still down.
    pub fn create(name: &str, mac: [u8; 6]) -> Result<Tap> {
        let tap = Tap::make(name)?;
        Netlink::open()?.set_link(tap.index, LinkSettings { mac, mtu: MTU, tx_queue_len: TX_QUEUE_LEN })?;
        Ok(tap)
    }

    /// Makes interface `name` in the calling thread's namespace and takes it up. Its packets begin with a radiotap
    /// header. Nothing is sent on it.
    pub fn create_monitor(name: &str) -> Result<Tap> {
        let tap = Tap::make(name)?;
        // SAFETY: TUNSETLINK takes a number, not a pointer; the descriptor is open.
        let set = unsafe { set_link_type(tap.file.as_raw_fd(), ARPHRD_RADIOTAP) };
        set.doing(|| format!("making {name} a monitor interface"))?;
        Netlink::open()?.set_up(tap.index)?;
        Ok(tap)
    }

    fn make(name: &str) -> Result<Tap> {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .custom_flags(libc::O_NONBLOCK | libc::O_CLOEXEC)
            .open("/dev/net/tun")
            .map_err(|error| match error.kind() {
                io::ErrorKind::NotFound => LabError::Missing {
                    what: "/dev/net/tun".into(),
                    get: "load the module (modprobe tun), or pass the device into the container".into(),
                },
                io::ErrorKind::PermissionDenied => LabError::NotRoot,
                _ => LabError::System { doing: "opening /dev/net/tun".into(), source: error },
            })?;
        // SAFETY: an all-zero ifreq is a valid value of that plain C struct.
        let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
        let max = request.ifr_name.len() - 1;
        if name.is_empty() || name.len() > max {
            return Err(LabError::Spec(format!("interface name {name:?} is not 1 to {max} bytes long")));
        }
        for (to, from) in request.ifr_name.iter_mut().zip(name.bytes()) {
            *to = from as libc::c_char;
        }
        request.ifr_ifru.ifru_flags = (libc::IFF_TAP | libc::IFF_NO_PI) as libc::c_short;
        // SAFETY: TUNSETIFF reads an ifreq, and `request` is one that outlives the call.
        let made = unsafe { set_interface(file.as_raw_fd(), &request) };
        made.doing(|| format!("making interface {name} with /dev/net/tun"))?;
        let index = if_nametoindex(name).doing(|| format!("finding interface {name}"))?;
        Ok(Tap { file, index })
    }

    /// The interface's number in its namespace.
    pub fn index(&self) -> u32 {
        self.index
    }

    /// Takes the next frame that the namespace sent; false if there is none.
    pub fn read(&self, frame: &mut Frame) -> io::Result<bool> {
        match (&self.file).read(frame.buffer()) {
            Ok(len) => {
                frame.set_len(len);
                Ok(true)
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Lets the namespace receive `frame`.
    pub fn write(&self, frame: &Frame) -> io::Result<()> {
        self.write_packet(frame.bytes())
    }

    /// Lets the namespace receive a packet of whatever form its link type has.
    pub fn write_packet(&self, packet: &[u8]) -> io::Result<()> {
        (&self.file).write(packet).map(|_| ())
    }
}

impl AsFd for Tap {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

/// Packets that interface `name` of the calling thread's namespace has dropped so far, in both directions: losses
/// that no model decided.
pub fn dropped(name: &str) -> Result<u64> {
    let table = fs::read_to_string("/proc/thread-self/net/dev").doing(|| "reading interface counters".into())?;
    drops_in(&table, name).ok_or_else(|| LabError::Program {
        program: "the kernel's interface table".into(),
        why: format!("it does not list {name}"),
    })
}

/// The sum of both `drop` columns of `name` in the text of `/proc/net/dev`.
fn drops_in(table: &str, name: &str) -> Option<u64> {
    let (_, counters) = table.lines().filter_map(|line| line.split_once(':')).find(|(of, _)| of.trim() == name)?;
    // Eight columns of reception, then eight of transmission; the fourth of each counts drops.
    let column = |n: usize| counters.split_whitespace().nth(n)?.parse::<u64>().ok();
    Some(column(3)? + column(11)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drops_of_both_directions_are_added() {
        let table = "Inter-|   Receive                    |  Transmit\n \
             face |bytes packets errs drop fifo frame compressed multicast|bytes packets errs drop fifo colls\n\
               lo: 1 1 0 9 0 0 0 0 1 1 0 9 0 0 0 0\n\
             eth0: 100 10 0 2 0 0 0 0 200 20 0 3 0 0 0 0\n";
        assert_eq!(drops_in(table, "eth0"), Some(5));
        assert_eq!(drops_in(table, "eth1"), None);
    }
}
