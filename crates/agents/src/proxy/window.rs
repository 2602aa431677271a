//! Setting a connection's receive window, so that what cannot be sent on stays with its sender.
//!
//! A clamp limits how far beyond what has arrived a Linux socket announces its window; [`lasthop_laws::ReceiveWindow`] says how far that
//! is. It is set anew every few milliseconds, which would fail if this process were held up for longer; therefore the socket's
//! buffer has little room to spare. The buffer is counted in memory, which is more than the octets in it; how much more is
//! measured. It must not be what limits the window in ordinary times: a window that opens by reading is announced only when it
//! has doubled, and a sender that lives from one such announcement to the next leaves part of it unused.

use lasthop_units::Span;
use nix::sys::socket::{setsockopt, sockopt};
use socket2::Socket;
use std::io;
use std::net::TcpStream;
use std::os::fd::{AsFd, AsRawFd};

/// The window of one connection.
#[derive(Debug, Default)]
pub(super) struct Window {
    /// Octets that were expected to be under way or to wait, and those that there was to be room for, when the buffer was last set.
    limit: u64,
    room: u64,
    /// Octets that were to come beyond what had arrived, when that was last said, and the clamp that was set for it.
    open: u64,
    clamp: u64,
    /// Octets of data per octet of kernel memory.
    density: f64,
    /// The buffer was set for another density than is taken now.
    stale: bool,
    /// The kernel lets windows be taken back.
    pub(super) retracts: bool,
    /// Memory that was held, when last looked at, by what came behind a segment that is missing.
    behind: u64,
}

/// Segments that are asked of servers: small windows hold a whole number of them, on loopback too.
pub(super) const MSS: u32 = 1400;
/// A window of less than this makes senders wait for timers.
pub(super) const LEAST: u64 = MSS as u64;
/// When something is read, Linux announces the room only if what is left of the window is half of the clamp at most: with a smaller
/// clamp, what is less than a segment could be left, and a sender would wait for its timers. Where so much may not come the buffer
/// closes the window.
const LEAST_CLAMP: u64 = 2 * LEAST;
/// Windows are announced in multiples of this.
const GRAIN: u64 = 128;
/// The largest window of a connection: with it Linux announces a scale of 7, as it does by default, and windows are multiples of 128
/// octets. Where sockets may have more memory the scale would be larger, and one segment would become two.
const LARGEST: libc::c_int = (1 << 23) - 1;
/// Memory with which a socket announces one segment before it knows how much of it segments take.
const LEAST_BUFFER: u64 = 2 * (LEAST + LEAST / 8);
/// So much must wait for a look at how densely it lies in memory.
const MEASURABLE: u64 = 1000;
/// Segments of a window below which they are whole, and acknowledged at once.
pub(super) const FEW: u64 = 16;
/// Changes of less than this share of the limit are not worth a system call.
const WORTHWHILE: f64 = 0.06;
/// Octets of data per octet of memory before any was measured, as the kernel takes it for. It is measured when something waits.
const FIRST_DENSITY: f64 = 0.5;
/// Segments that came one by one: 1400 octets in the two kilobytes and more that a driver takes for them, with half of the room to spare.
const THIN: f64 = 0.7;
/// As dense as can be.
const DENSEST: f64 = 1.0;
/// Share of a lower density that is taken over at a look: half in a third of a second.
const FORGET: f64 = 0.004;

impl Window {
    pub(super) fn new() -> Window {
        Window { density: FIRST_DENSITY, ..Window::default() }
    }

    /// Nothing has come for a while, and no more than `limit` can at once. Few segments come one by one and lie thin: in a buffer for
    /// what lay densely the last of ten would find no room, for which Linux closes the window and drops what is on its way.
    pub(super) fn lull(&mut self, limit: u64) {
        if limit < FEW * LEAST && self.density > THIN {
            (self.density, self.stale) = (THIN, true);
        }
    }

    /// Lets `open` octets come beyond what has arrived, where `limit` are expected, under way or waiting, and makes room for so
    /// many; `queued` wait now.
    pub(super) fn set(&mut self, socket: &TcpStream, open: u64, (limit, room): (u64, u64), queued: u64) {
        let (limit, room) = (limit.max(LEAST), room.max(LEAST));
        // How densely many segments lie in memory is not known from few of them. Should this process be held up before it has seen
        // that, they find no more room than they may have.
        if self.limit < FEW * LEAST && limit >= FEW * LEAST {
            (self.density, self.stale) = (DENSEST, true);
        }
        let before = self.density;
        if queued >= MEASURABLE
            && let Some(memory) = memory(socket).filter(|memory| *memory > 0)
        {
            let now = (queued as f64 / memory as f64).clamp(0.1, 1.0);
            // Denser at once, since that makes the queue longer; less dense slowly: memory that is partly read looks thin.
            self.density = if now > self.density { now } else { self.density + (now - self.density) * FORGET };
        }
        // Where windows are taken back, one that finds no room for a segment closes, and a closed window takes in nothing: not the missing
        // segment either, however often it is repeated, and what came behind it would hold its room for ever.
        let behind = match self.retracts && queued == 0 {
            true => memory(socket).unwrap_or(0),
            false => 0,
        };
        let unchanged = |new: f64, old: f64, whole: f64| (new - old).abs() <= WORTHWHILE * whole;
        let same = unchanged(room as f64, self.room as f64, self.room as f64);
        if !same || self.stale || behind != self.behind || !unchanged(self.density, before, before) {
            (self.stale, self.behind) = (false, behind);
            // In steps: segments that come when the buffer has become too small are dropped.
            (self.limit, self.room) = (limit, room.max(self.room * 3 / 4));
            // The kernel doubles what it is asked for. A refusal costs the bound on memory, which the log shows.
            let buffer = buffer(self.room, self.density, self.behind) / 2;
            let _ = setsockopt(socket, sockopt::RcvBuf, &usize::try_from(buffer).unwrap_or(usize::MAX));
        }
        self.open = open.max(LEAST);
        let clamp = self.open.max(LEAST_CLAMP);
        // The kernel opens it by itself when it has seen how long segments are, or closes it to what the buffer holds of such.
        if !unchanged(clamp as f64, self.clamp as f64, limit as f64) || clamp_of(socket).is_some_and(|is| is != clamp) {
            self.clamp = clamp;
            let _ =
                set_int(socket, libc::IPPROTO_TCP, libc::TCP_WINDOW_CLAMP, i32::try_from(clamp).unwrap_or(i32::MAX));
        }
    }

    /// Makes the kernel say at once what has come, if it holds that back to say more (for up to 40 ms): senders with few segments in
    /// their window wait for it.
    pub(super) fn acknowledge(&self, socket: &TcpStream) {
        if self.clamp < FEW * LEAST {
            let _ = set_int(socket, libc::IPPROTO_TCP, libc::TCP_QUICKACK, 1);
        }
    }

    /// Octets beyond what arrives that the kernel may have allowed the sender since the last [`Window::set`].
    pub(super) fn open(&self) -> u64 {
        self.open.next_multiple_of(GRAIN)
    }
}

/// Memory for so many octets that lie so densely; for a segment at least beside what came `behind` a missing one.
fn buffer(room: u64, density: f64, behind: u64) -> u64 {
    ((room as f64 / density) as u64).max(behind + LEAST_BUFFER)
}

/// What must be set before the handshake, which fixes segment size, window scale and the first window, of `window` octets: of a
/// connection that is to be made, or of those that come to a listener.
pub(super) fn prepare(socket: &Socket, window: u64) -> io::Result<()> {
    socket.set_tcp_mss(MSS)?;
    set_int(socket, libc::IPPROTO_TCP, libc::TCP_WINDOW_CLAMP, LARGEST)?;
    // The kernel doubles what it is asked for, and takes half of its memory for data: a window of whole segments fits.
    setsockopt(socket, sockopt::RcvBuf, &usize::try_from(window + window / 8).unwrap_or(usize::MAX))?;
    // A buffer that was asked for also limits the scale, and with it every window of the connection: here, to 64 KiB.
    // A kernel before 5.15 refuses, and connections are slower for it than their stations might be served.
    let _ = set_int(socket, libc::SOL_SOCKET, SO_BUF_LOCK, 0);
    Ok(())
}

/// True if the kernel lets windows be taken back in this network namespace (`net.ipv4.tcp_shrink_window`, Linux 6.5).
pub(super) fn may_be_taken_back() -> bool {
    std::fs::read("/proc/sys/net/ipv4/tcp_shrink_window").is_ok_and(|text| text.starts_with(b"1"))
}

/// Which buffer sizes were asked for (linux/asm-generic/socket.h, since 5.15); libc does not name it.
const SO_BUF_LOCK: libc::c_int = if cfg!(any(target_arch = "sparc64", target_arch = "sparc")) { 0x51 } else { 72 };

/// The clamp that is in force.
fn clamp_of(socket: &TcpStream) -> Option<u64> {
    let (mut value, mut len): (libc::c_int, _) = (0, size_of::<libc::c_int>() as libc::socklen_t);
    // SAFETY: the kernel writes at most `len` octets, a C int.
    let failed = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_WINDOW_CLAMP,
            (&raw mut value).cast(),
            &raw mut len,
        )
    };
    if failed == 0 { u64::try_from(value).ok() } else { None }
}

fn set_int(socket: &impl AsFd, level: libc::c_int, option: libc::c_int, value: libc::c_int) -> io::Result<()> {
    // SAFETY: the value is a C int that outlives the call.
    let failed = unsafe {
        libc::setsockopt(
            socket.as_fd().as_raw_fd(),
            level,
            option,
            (&raw const value).cast(),
            size_of::<libc::c_int>() as libc::socklen_t,
        )
    };
    if failed == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Octets of kernel memory that the receive queue takes.
fn memory(socket: &TcpStream) -> Option<u64> {
    let mut values = [0u32; 16];
    let mut len = size_of_val(&values) as libc::socklen_t;
    // SAFETY: the kernel writes at most `len` octets.
    let failed = unsafe {
        libc::getsockopt(socket.as_raw_fd(), libc::SOL_SOCKET, libc::SO_MEMINFO, values.as_mut_ptr().cast(), &mut len)
    };
    (failed == 0).then(|| u64::from(values[0]))
}

/// The least RTT that TCP has seen on a connection within the last minutes (`net.ipv4.tcp_min_rtt_wlen`).
pub(super) fn min_rtt(socket: &TcpStream) -> Option<Span> {
    // All ones before there is any.
    let least = tcp_info(socket)?.tcpi_min_rtt;
    (!matches!(least, 0 | u32::MAX)).then(|| Span::from_micros(u64::from(least)))
}

fn tcp_info(socket: &TcpStream) -> Option<libc::tcp_info> {
    // SAFETY: an all-zero value of this plain C struct is valid.
    let mut info: libc::tcp_info = unsafe { std::mem::zeroed() };
    let mut len = size_of::<libc::tcp_info>() as libc::socklen_t;
    // SAFETY: the kernel writes at most `len` octets.
    let failed = unsafe {
        libc::getsockopt(socket.as_raw_fd(), libc::IPPROTO_TCP, libc::TCP_INFO, (&raw mut info).cast(), &mut len)
    };
    (failed == 0).then_some(info)
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "a real socket is what is tested")]
mod tests {
    use super::*;
    use crate::tunnel::pipe::Pipe;
    use lasthop_transport::tunnel::{Config as Tunnel, Endpoint};
    use lasthop_units::Time;
    use std::io::{Read, Write};
    use std::net::TcpListener;
    use std::time::Duration;

    fn queued(socket: &TcpStream) -> u64 {
        let mut count: libc::c_int = 0;
        // SAFETY: the kernel writes a C int.
        let failed = unsafe { libc::ioctl(socket.as_raw_fd(), libc::FIONREAD, &raw mut count) };
        assert_eq!(failed, 0);
        u64::try_from(count).expect("a count")
    }

    /// The room that the budget asks for beside a limit.
    fn half_more(limit: u64) -> u64 {
        limit * 3 / 2
    }

    /// What waits once no more comes.
    fn settled(socket: &TcpStream, least: u64) -> u64 {
        let (mut before, mut same) = (0, 0);
        for _ in 0..2000 {
            std::thread::sleep(Duration::from_millis(5));
            let now = queued(socket);
            same = if now == before { same + 1 } else { 0 };
            before = now;
            if now >= least && same >= 40 {
                break;
            }
        }
        before
    }

    /// A connection of the kind that a proxy makes, and the server's end.
    fn connection(first: u64) -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a listener");
        let socket = Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).expect("a socket");
        prepare(&socket, first).expect("a socket");
        socket.connect(&listener.local_addr().expect("an address").into()).expect("loopback");
        let (server, _) = listener.accept().expect("a connection");
        server.set_nodelay(true).expect("a socket");
        (TcpStream::from(socket), server)
    }

    #[test]
    fn a_restarting_connection_has_room_for_ten_segments() {
        const FIRST: u64 = 10 * LEAST;
        let (mut socket, mut server) = connection(FIRST);
        let mut window = Window::new();
        window.set(&socket, 4 * FIRST, (4 * FIRST, half_more(4 * FIRST)), 0);
        server.write_all(&[0; FIRST as usize]).expect("room");
        let waits = settled(&socket, FIRST);
        (0..5).for_each(|_| window.set(&socket, 4 * FIRST, (4 * FIRST, half_more(4 * FIRST)), waits));
        // As if it had been measured: how densely pieces lie on loopback differs between kernels.
        window.density = DENSEST;
        socket.read_exact(&mut vec![0; FIRST as usize]).expect("it is there");
        let buffer = || socket2::SockRef::from(&socket).recv_buffer_size().expect("a socket") as u64;
        for _ in 0..20 {
            window.lull(FIRST);
            window.set(&socket, FIRST, (FIRST, half_more(FIRST)), 0);
        }
        // Two kilobytes and what the kernel adds, ten times.
        assert!((23_040..3 * FIRST).contains(&buffer()), "{} octets of memory", buffer());
        for _ in 0..10 {
            server.write_all(&[0; LEAST as usize]).expect("room");
        }
        assert_eq!(settled(&socket, FIRST), FIRST);
    }

    /// A proxy that is held up just when a connection has brought its first segments.
    #[test]
    fn thin_first_segments_do_not_open_more_room_than_the_limit() {
        const FIRST: u64 = 10 * LEAST;
        const LIMIT: u64 = 100_000;
        let (socket, mut server) = connection(FIRST);
        let mut window = Window::new();
        window.set(&socket, FIRST, (FIRST, half_more(FIRST)), 0);
        for _ in 0..10 {
            server.write_all(&[0; LEAST as usize]).expect("room");
        }
        assert_eq!(settled(&socket, FIRST), FIRST);
        window.set(&socket, LIMIT, (LIMIT, half_more(LIMIT)), FIRST);
        server.set_nonblocking(true).expect("a socket");
        // More than there is room for, in pieces as long as can be, which lie densely.
        let writer = std::thread::spawn(move || {
            for _ in 0..2000 {
                if server.write(&[0; 1 << 16]).is_err() {
                    std::thread::sleep(Duration::from_millis(1));
                }
            }
            server
        });
        let waits = settled(&socket, LIMIT / 4);
        drop(socket);
        drop(writer.join());
        assert!(waits <= half_more(LIMIT), "{waits} octets wait where room was to be for {LIMIT} and half as many");
        assert!(waits > LIMIT / 2, "{waits} octets");
    }

    #[test]
    fn many_segments_are_assumed_dense_once_until_measured() {
        const MANY: u64 = 100 * LEAST;
        let (socket, _server) = connection(LEAST);
        let mut window = Window::new();
        window.set(&socket, MANY, (MANY, half_more(MANY)), 0);
        // Few were expected when the buffer was last set, with the room of before.
        window.stale = true;
        window.set(&socket, LEAST, (LEAST, half_more(MANY)), 0);
        window.set(&socket, MANY, (MANY, half_more(MANY)), 0);
        assert_eq!(window.density, DENSEST);
        window.density = THIN;
        window.set(&socket, MANY, (MANY, half_more(MANY)), 0);
        assert_eq!(window.density, THIN, "what was measured since");
    }

    #[test]
    fn a_clamp_that_the_kernel_has_lowered_is_raised_again() {
        let (mut socket, mut server) = connection(LEAST);
        let mut window = Window::new();
        window.set(&socket, LEAST, (LEAST, half_more(LEAST)), 0);
        assert_eq!(clamp_of(&socket), Some(LEAST_CLAMP));
        // Half a segment takes as much memory as a whole one may: the kernel finds room for less than one in such a buffer.
        for _ in 0..3 {
            server.write_all(&[0; LEAST as usize / 2]).expect("room");
            assert_eq!(settled(&socket, LEAST / 2), LEAST / 2);
            socket.read_exact(&mut [0; LEAST as usize / 2]).expect("it is there");
            window.set(&socket, LEAST, (LEAST, half_more(LEAST)), 0);
            assert_eq!(clamp_of(&socket), Some(LEAST_CLAMP));
        }
    }

    #[test]
    fn what_came_behind_a_missing_segment_leaves_room_for_it() {
        // Two segments of which each takes 2304 octets, as they came in a buffer for two that half as much again was added to.
        let (limit, density, behind) = (2 * LEAST, 0.693, 4608);
        assert_eq!(buffer(half_more(limit), density, 0), 6060);
        assert!(buffer(half_more(limit), density, behind) - behind >= 2304, "a third");
        assert_eq!(buffer(half_more(limit), density, LEAST), 6060, "there is room");
    }

    #[test]
    fn the_least_round_trip_is_not_the_smoothed_one() {
        let (socket, server) = connection(LEAST);
        socket.set_nodelay(true).expect("a socket");
        let smoothed = || Span::from_micros(u64::from(tcp_info(&socket).expect("a socket").tcpi_rtt));
        // A server that acknowledges late, as one does that waits for something to say.
        for _ in 0..8 {
            set_int(&server, libc::IPPROTO_TCP, libc::TCP_QUICKACK, 0).expect("a socket");
            (&socket).write_all(b"x").expect("room");
            std::thread::sleep(Duration::from_millis(60));
        }
        let least = min_rtt(&socket).expect("that of the handshake");
        assert!(least * 2 < smoothed(), "{least:?} of {:?}", smoothed());
    }

    /// What the server's kernel says that it may send.
    fn told(server: &TcpStream) -> u64 {
        let mut bytes = [0u8; 256];
        let mut len = size_of_val(&bytes) as libc::socklen_t;
        // SAFETY: the kernel writes at most `len` octets.
        let failed = unsafe {
            libc::getsockopt(
                server.as_raw_fd(),
                libc::IPPROTO_TCP,
                libc::TCP_INFO,
                bytes.as_mut_ptr().cast(),
                &raw mut len,
            )
        };
        assert!(failed == 0 && len >= 232, "a kernel that tells tcpi_snd_wnd");
        u64::from(u32::from_ne_bytes(bytes[228..232].try_into().expect("four octets")))
    }

    /// A network namespace of this thread's own in which windows may be taken back; false if that cannot be had.
    fn in_a_namespace_that_takes_back() -> bool {
        let up = || std::process::Command::new("ip").args(["link", "set", "lo", "up"]).status();
        nix::sched::unshare(nix::sched::CloneFlags::CLONE_NEWNET).is_ok()
            && up().is_ok_and(|status| status.success())
            && std::fs::write("/proc/sys/net/ipv4/tcp_shrink_window", "1").is_ok()
    }

    /// Writes to the server what a program has said.
    fn request(pipe: &mut Pipe, text: &[u8]) {
        let now = Time::from_nanos(1_000_000_000);
        let (mut station, mut proxy) = (Endpoint::new(Tunnel::station()), Endpoint::new(Tunnel::proxy()));
        let stream = station.open("192.0.2.1", 7);
        station.write(stream, text, now);
        let mut packet = Vec::new();
        while let Some(departure) = station.poll_transmit(now, &mut packet) {
            proxy.on_packet(now, departure.number, &packet).expect("a right packet");
        }
        pipe.push(now, &mut proxy, stream).expect("a connection");
    }

    #[test]
    fn a_request_takes_back_the_window_of_a_quiet_connection() {
        const MUCH: u64 = 60 * LEAST;
        // A thread of its own: the namespace is gone with it.
        let ran = std::thread::spawn(|| {
            if !in_a_namespace_that_takes_back() {
                return false;
            }
            assert!(may_be_taken_back());
            let (mut socket, mut server) = connection(10 * LEAST);
            let mut window = Window::new();
            window.set(&socket, MUCH, (MUCH, half_more(MUCH)), 0);
            let bring = |server: &mut TcpStream, socket: &mut TcpStream| {
                server.write_all(&[0; LEAST as usize]).and_then(|()| socket.read_exact(&mut [0; LEAST as usize]))
            };
            for _ in 0..1000 {
                if told(&server) >= MUCH / 2 {
                    break;
                }
                bring(&mut server, &mut socket).expect("a connection");
            }
            assert!(told(&server) >= MUCH / 2, "{} octets", told(&server));
            window.set(&socket, 3 * LEAST, (3 * LEAST, half_more(3 * LEAST)), 0);
            let mut pipe = Pipe::new(socket).expect("a socket");
            pipe.apart = true;
            request(&mut pipe, b"request");
            assert!(pipe.has_parted() && !pipe.has_parted() && !pipe.apart);
            server.read_exact(&mut [0; 7]).expect("it comes");
            let now = told(&server);
            assert!((LEAST..=3 * LEAST + GRAIN).contains(&now), "{now} octets");
            true
        });
        if !ran.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)) {
            let _ = writeln!(std::io::stderr(), "SKIPPED: windows taken back: needs root, iproute2 and Linux 6.5");
        }
    }
}
