//! A packet socket on a monitor interface.

use super::MonitorError;
use crate::service::clock::{self, monotonic_now};
use crate::service::{device, system};
use lasthop_signals::ReceivedMpdu;
use lasthop_units::{Span, Time};
use lasthop_wire::dot11::Header;
use lasthop_wire::monitor::Captured;
use nix::errno::Errno;
use nix::net::if_::if_nametoindex;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{ControlMessageOwned, MsgFlags, recvmsg};
use nix::sys::time::TimeSpec;
use std::io::{self, IoSliceMut};
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::path::Path;

/// Reads a monitor interface.
#[derive(Debug)]
pub struct MonitorReader {
    socket: OwnedFd,
    name: String,
    buffer: Vec<u8>,
    unreadable: u64,
    dropped: u64,
}

/// One frame.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Heard {
    /// When the kernel received it, on `CLOCK_MONOTONIC`.
    pub at: Time,
    /// Its MAC header; `None` for a damaged frame.
    pub header: Option<Header>,
    /// What an aggregation meter takes, if it is a data MPDU.
    pub mpdu: Option<ReceivedMpdu>,
    /// Signal at the antenna in dBm, where the radio tells.
    pub signal: Option<i8>,
}

impl MonitorReader {
    /// Opens interface `name` of the calling thread's network namespace. Needs CAP_NET_RAW; reading needs nothing, so
    /// that privileges can be dropped after this.
    ///
    /// # Errors
    /// What is wrong with the interface, or not allowed: see [`MonitorError`].
    pub fn open(name: &str) -> Result<MonitorReader, MonitorError> {
        device::link(name)?;
        let socket = packet_socket(name)?;
        let index = interface(name)?;
        set_option(&socket, libc::SO_TIMESTAMPNS, 1).map_err(system("asking for time stamps"))?;
        // As much as is allowed; without CAP_NET_ADMIN up to net.core.rmem_max.
        if set_option(&socket, libc::SO_RCVBUFFORCE, RECEIVE_BUFFER).is_err() {
            let _ = set_option(&socket, libc::SO_RCVBUF, RECEIVE_BUFFER);
        }
        bind(&socket, index).map_err(system("binding a packet socket"))?;
        Ok(MonitorReader { socket, name: name.to_owned(), buffer: vec![0; LARGEST], unreadable: 0, dropped: 0 })
    }

    /// Reads the interface of that name from now on, after it was down or another one has come in its place. Needs nothing.
    ///
    /// # Errors
    /// As [`MonitorReader::open`]; it can be tried again.
    pub fn reopen(&mut self) -> Result<(), MonitorError> {
        let index = interface(&self.name)?;
        Ok(bind(&self.socket, index).map_err(system("binding a packet socket"))?)
    }

    /// The interface's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The next frame; `None` if none came within `wait`.
    ///
    /// # Errors
    /// [`MonitorError::Gone`], [`MonitorError::Down`], [`MonitorError::Service`].
    pub fn hear(&mut self, wait: std::time::Duration) -> Result<Option<Heard>, MonitorError> {
        let deadline = monotonic_now() + Span::from(wait);
        let mut passed_over = 0;
        loop {
            if let Some((at, len, original)) = self.receive()? {
                match Captured::parse(&self.buffer[..len], original) {
                    Ok(found) => {
                        let (header, mpdu, signal) = (found.header, found.mpdu(), found.radiotap.signal);
                        return Ok(Some(Heard { at, header, mpdu, signal }));
                    }
                    Err(_) => self.unreadable += 1,
                }
                // Whoever sends nothing but what cannot be read keeps nobody here.
                passed_over += 1;
                if passed_over >= BUDGET {
                    return Ok(None);
                }
                continue;
            }
            let left = deadline.since(monotonic_now());
            if left.is_zero() {
                return Ok(None);
            }
            // Rounded up: a wait that ends early would only go round once more.
            let left = PollTimeout::try_from(std::time::Duration::from(left + Span::from_millis(1)))
                .unwrap_or(PollTimeout::from(1_000u16));
            match poll(&mut [PollFd::new(self.socket.as_fd(), PollFlags::POLLIN)], left) {
                Ok(_) | Err(Errno::EINTR) => (),
                Err(error) => return Err(system("waiting for frames")(error).into()),
            }
        }
    }

    /// Now, on the clock of [`Heard::at`].
    ///
    /// # Errors
    /// [`MonitorError::Service`].
    pub fn now() -> Result<Time, MonitorError> {
        Ok(monotonic_now())
    }

    /// Packets that did not begin with a radiotap header.
    pub fn unreadable(&self) -> u64 {
        self.unreadable
    }

    /// Frames that the kernel dropped because nobody read them in time, since the reader was opened.
    ///
    /// # Errors
    /// [`MonitorError::Service`].
    pub fn dropped(&mut self) -> Result<u64, MonitorError> {
        // SAFETY: an all-zero value of this plain C struct is valid.
        let mut found: libc::tpacket_stats = unsafe { std::mem::zeroed() };
        let mut len = size_of::<libc::tpacket_stats>() as libc::socklen_t;
        // SAFETY: `found` is writable for `len` octets, and both outlive the call.
        let failed = unsafe {
            let place = std::ptr::from_mut(&mut found).cast();
            libc::getsockopt(self.socket.as_raw_fd(), libc::SOL_PACKET, libc::PACKET_STATISTICS, place, &mut len)
        };
        if failed != 0 {
            return Err(system("reading the packet socket's counters")(io::Error::last_os_error()).into());
        }
        // Reading sets the kernel's counters back.
        self.dropped += u64::from(found.tp_drops);
        Ok(self.dropped)
    }

    /// Takes one packet: when it came, its length here and on the air.
    fn receive(&mut self) -> Result<Option<(Time, usize, usize)>, MonitorError> {
        let mut room = [IoSliceMut::new(&mut self.buffer)];
        let mut control = nix::cmsg_space!(TimeSpec);
        let flags = MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_TRUNC;
        let message = match recvmsg::<()>(self.socket.as_raw_fd(), &mut room, Some(&mut control), flags) {
            Ok(message) => message,
            Err(Errno::EAGAIN | Errno::EINTR) => return Ok(None),
            Err(Errno::ENETDOWN) if if_nametoindex(self.name.as_str()).is_ok() => {
                return Err(MonitorError::Down { name: self.name.clone() });
            }
            Err(Errno::ENETDOWN | Errno::ENXIO | Errno::ENODEV) => {
                return Err(MonitorError::Gone { name: self.name.clone() });
            }
            Err(error) => return Err(system("reading a packet socket")(error).into()),
        };
        let stamp = message.cmsgs().ok().into_iter().flatten().find_map(|message| match message {
            ControlMessageOwned::ScmTimestampns(stamp) => Some(time(stamp)),
            _ => None,
        });
        let original = message.bytes;
        let at = match stamp {
            Some(stamp) => clock::monotonic(clock::of_stamp(stamp)),
            None => monotonic_now(),
        };
        Ok(Some((at, original.min(LARGEST), original)))
    }
}

/// Unreadable frames passed over in one call.
const BUDGET: u32 = 1024;
/// ARPHRD_IEEE80211_RADIOTAP.
const ARPHRD_RADIOTAP: u16 = 803;
/// Radiotap header and largest MPDU (11 454 octets with VHT).
const LARGEST: usize = 12_288;
/// Room for frames that wait to be read, in octets: half a second at full rate.
const RECEIVE_BUFFER: libc::c_int = 32 << 20;

fn packet_socket(name: &str) -> Result<OwnedFd, MonitorError> {
    // Without a protocol nothing is received until the socket is bound.
    // SAFETY: no pointers are passed.
    let fd = unsafe { libc::socket(libc::AF_PACKET, libc::SOCK_RAW | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK, 0) };
    if fd < 0 {
        let error = io::Error::last_os_error();
        return Err(match error.kind() {
            io::ErrorKind::PermissionDenied => MonitorError::Permission { name: name.to_owned() },
            _ => system("opening a packet socket")(error).into(),
        });
    }
    // SAFETY: the kernel has just given out this descriptor, and nobody else has it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

fn bind(socket: &OwnedFd, index: libc::c_uint) -> io::Result<()> {
    // SAFETY: an all-zero value of this plain C struct is valid.
    let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
    address.sll_family = libc::AF_PACKET as libc::c_ushort;
    address.sll_protocol = (libc::ETH_P_ALL as u16).to_be();
    address.sll_ifindex = index.try_into().map_err(io::Error::other)?;
    let len = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
    // SAFETY: `address` is a sockaddr_ll of `len` octets that outlives the call.
    let failed = unsafe { libc::bind(socket.as_raw_fd(), std::ptr::from_ref(&address).cast(), len) };
    if failed == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

fn set_option(socket: &OwnedFd, option: libc::c_int, value: libc::c_int) -> io::Result<()> {
    let len = size_of::<libc::c_int>() as libc::socklen_t;
    // SAFETY: `value` is an int that outlives the call.
    let failed = unsafe {
        libc::setsockopt(socket.as_raw_fd(), libc::SOL_SOCKET, option, std::ptr::from_ref(&value).cast(), len)
    };
    if failed == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// The index of an interface that shows something.
fn interface(name: &str) -> Result<libc::c_uint, MonitorError> {
    let device::Link { index, arphrd, up } = device::link(name)?;
    match (arphrd, up) {
        (ARPHRD_RADIOTAP, true) => Ok(index),
        (ARPHRD_RADIOTAP, false) => Err(MonitorError::Down { name: name.to_owned() }),
        _ => Err(no_monitor(Path::new("/sys/class/net"), name, arphrd)),
    }
}

/// Why an interface of that type shows no frames, and whether one that does can be made beside it. `/sys` shows the devices of
/// the namespace that it was mounted in: of one that is not there nothing is known, and a wireless one is what was probably meant.
fn no_monitor(devices: &Path, name: &str, arphrd: u16) -> MonitorError {
    let (device, name) = (devices.join(name), name.to_owned());
    if device.exists() && !device.join("phy80211").exists() {
        MonitorError::NotWireless { name, arphrd }
    } else {
        MonitorError::NotRadiotap { name, arphrd }
    }
}

fn time(stamp: TimeSpec) -> Time {
    let part = |value: i64| u64::try_from(value).unwrap_or(0);
    Time::ZERO + Span::from_secs(part(stamp.tv_sec())) + Span::from_nanos(part(stamp.tv_nsec()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_monitor_interface_needs_a_wireless_device() {
        let devices = tempfile::tempdir().expect("a directory");
        for path in ["eth0", "wlan0/phy80211"] {
            std::fs::create_dir_all(devices.path().join(path)).expect("made");
        }
        let told = |name: &str| no_monitor(devices.path(), name, 1).to_string();
        assert!(told("eth0").contains("eth0 has no 802.11 monitor mode") && !told("eth0").contains("interface add"));
        for name in ["wlan0", "of-another-namespace"] {
            let wanted = format!("`iw dev {name} interface add mon0 type monitor && ip link set mon0 up`");
            assert!(told(name).contains(&wanted), "{}", told(name));
        }
    }
}
