//! D of the sender's own interface, as the kernel's stamps show it.
//! Source:     Linux `SO_TIMESTAMPING` (Documentation/networking/timestamping.rst): a stamp when a packet enters the queueing discipline, and one
//!             when the driver gets it; the averages of ATP (Sundaresan et al. 2005).
//! Equations:  Q' = 0.75 Q + 0.25 q;   T' = 0.75 T + 0.25 t;   D = Q + T
//! Symbols:    q, what a packet has waited beyond T; t, time between two packets at the driver, divided by the datagrams between them, where the
//!             second was queued before the first had gone
//! Deviations: the driver's and the card's own queues are not seen, nor contention for the air: with byte queue limits (BQL) little waits
//!             there; the lab's driver records see all of it. One packet in a millisecond is looked at. Without a queue nothing is known of T,
//!             and D is zero until there is one. While others fill the queue T holds their packets too, and at the pace of such a T there is
//!             never a queue again: while packets pass without one, T shrinks by a sixteenth every tenth of a second.
//!             Q is forgotten after a second without a packet.
//! Validity:   interfaces with their queue in a queueing discipline of this host (qdisc).     Checked by: tests::*

use lasthop_units::{Span, Time};
use nix::sys::socket::{ControlMessageOwned, MsgFlags, SockaddrStorage, recvmsg};
use std::collections::VecDeque;
use std::io::{IoSliceMut, Result};
use std::os::fd::{AsFd, AsRawFd};

/// How often a packet is looked at.
const EVERY: Span = Span::from_millis(1);
/// A packet of which nothing is heard for so long was dropped.
const LOST: Span = Span::from_secs(1);
/// What is kept of an average at a new sample.
const KEPT: f64 = 0.75;
/// How often T shrinks where nothing shows that it is right, and by which part: no more than a sixteenth too fast is soon seen, as a queue.
const AGE: Span = Span::from_millis(100);
const SHRINKS: f64 = 1.0 / 16.0;

/// `linux/net_tstamp.h` and `linux/errqueue.h`.
const TX_SOFTWARE: u32 = 1 << 1;
const SOFTWARE: u32 = 1 << 4;
const OPT_ID: u32 = 1 << 7;
const TX_SCHED: u32 = 1 << 8;
const OPT_TSONLY: u32 = 1 << 11;
/// The numbers of those that are looked at run on as long as this stays.
const KEPT_ON: u32 = SOFTWARE | OPT_ID | OPT_TSONLY;
const STAMP_SENT: u32 = 0;
const STAMP_QUEUED: u32 = 1;

/// A packet that is looked at.
#[derive(Clone, Copy, Debug)]
struct Sample {
    asked: Time,
    /// Its number among those that are looked at, as the kernel counts them.
    id: u32,
    /// Datagrams that left up to it, itself included.
    datagrams: u64,
    queued: Option<Time>,
}

/// Those that have not gone yet, at most.
const SAMPLES: usize = 256;

/// The averages, apart from the socket.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Averages {
    queueing: Span,
    service: Option<Span>,
    /// When that was measured or has shrunk last.
    aged: Time,
    /// The last sample: when the driver got it, and datagrams up to it.
    last: Option<(Time, u64)>,
}

impl Averages {
    fn on_sent(&mut self, queued: Time, sent: Time, datagrams: u64) {
        let average = |known: Span, sample: Span| known.scale(KEPT) + sample.scale(1.0 - KEPT);
        if let Some((last, before)) = self.last
            && queued < last
            && datagrams > before
        {
            let service = sent.since(last) / (datagrams - before);
            self.service = Some(self.service.map_or(service, |known| average(known, service)));
            self.aged = sent;
        } else if sent.since(self.aged) >= AGE {
            self.service = self.service.map(|known| known.scale(1.0 - SHRINKS));
            self.aged = sent;
        }
        let waited = sent.since(queued).saturating_sub(self.service.unwrap_or(Span::ZERO));
        self.queueing = average(self.queueing, waited);
        self.last = Some((sent, datagrams));
    }

    fn delay(&self) -> Span {
        self.queueing + self.service.unwrap_or(Span::ZERO)
    }
}

/// Looks at some of the packets that a socket sends.
#[derive(Debug, Default)]
pub(crate) struct OwnDelay {
    averages: Averages,
    samples: VecDeque<Sample>,
    next: u32,
    looked: Time,
    heard: Time,
    datagrams: u64,
}

impl OwnDelay {
    /// So many datagrams are about to be sent at once. If they are looked at, `end` is to be called behind them.
    pub(crate) fn begin(&mut self, now: Time, socket: &impl AsFd, datagrams: u64) -> bool {
        // Of a train the first is stamped.
        let first = self.datagrams + 1;
        self.datagrams += datagrams;
        while self.samples.front().is_some_and(|sample| now.since(sample.asked) > LOST) {
            self.samples.pop_front();
        }
        if now.since(self.looked) < EVERY || self.samples.len() >= SAMPLES {
            return false;
        }
        self.looked = now;
        if ask(socket, KEPT_ON | TX_SCHED | TX_SOFTWARE).is_err() {
            return false;
        }
        self.samples.push_back(Sample { asked: now, id: self.next, datagrams: first, queued: None });
        self.next = self.next.wrapping_add(1);
        true
    }

    /// The datagrams have been sent.
    pub(crate) fn end(&self, socket: &impl AsFd) {
        // What cannot be turned off costs a stamp a packet, and no more.
        let _ = ask(socket, KEPT_ON);
    }

    /// Reads the stamps that are there.
    pub(crate) fn look(&mut self, now: Time, socket: &impl AsFd) {
        while let Some((kind, id, stamp)) = stamp(socket) {
            let Some(place) = self.samples.iter().position(|sample| sample.id == id) else { continue };
            match (kind, self.samples[place].queued) {
                (STAMP_QUEUED, _) => self.samples[place].queued = Some(stamp),
                (STAMP_SENT, Some(queued)) => {
                    // Those before it were dropped.
                    let sample = self.samples.drain(..=place).next_back();
                    sample.into_iter().for_each(|sample| self.averages.on_sent(queued, stamp, sample.datagrams));
                    self.heard = now;
                }
                _ => {}
            }
        }
    }

    /// D now; zero if it is not known.
    pub(crate) fn delay(&mut self, now: Time) -> Span {
        if now.since(self.heard) > LOST {
            self.averages.queueing = Span::ZERO;
        }
        self.averages.delay()
    }
}

fn ask(socket: &impl AsFd, flags: u32) -> Result<()> {
    let fd = socket.as_fd().as_raw_fd();
    // SAFETY: the kernel reads four octets of `flags`, which outlives the call.
    let failed = unsafe {
        libc::setsockopt(
            fd,
            libc::SOL_SOCKET,
            libc::SO_TIMESTAMPING,
            std::ptr::from_ref(&flags).cast(),
            size_of::<u32>() as libc::socklen_t,
        )
    };
    if failed == 0 { Ok(()) } else { Err(std::io::Error::last_os_error()) }
}

/// Octets of memory that the host holds for datagrams that have not gone; zero if the kernel does not say.
pub(crate) fn held(socket: &impl AsFd) -> usize {
    let mut held: libc::c_int = 0;
    // SAFETY: the kernel writes an int to `held`, which outlives the call.
    let failed = unsafe { libc::ioctl(socket.as_fd().as_raw_fd(), libc::TIOCOUTQ, &mut held) };
    if failed == 0 { usize::try_from(held).unwrap_or(0) } else { 0 }
}

/// The next stamp of the socket's error queue: its kind, its packet's number, and the wall clock's time.
fn stamp(socket: &impl AsFd) -> Option<(u32, u32, Time)> {
    // Something that is no stamp, such as an ICMP message, is passed over; it does not come without end.
    for _ in 0..64 {
        let mut control = [0u8; 512];
        let mut octets = [0u8; 64];
        let mut slices = [IoSliceMut::new(&mut octets)];
        let flags = MsgFlags::MSG_ERRQUEUE | MsgFlags::MSG_DONTWAIT;
        let mut buffer = Vec::from(&mut control[..]);
        let fd = socket.as_fd().as_raw_fd();
        let message = recvmsg::<SockaddrStorage>(fd, &mut slices, Some(&mut buffer), flags).ok()?;
        let (mut at, mut kind) = (None, None);
        for one in message.cmsgs().ok()? {
            match one {
                ControlMessageOwned::ScmTimestampsns(stamps) => {
                    let (s, ns) = (stamps.system.tv_sec(), stamps.system.tv_nsec());
                    let (s, ns) = (u64::try_from(s).unwrap_or(0), u64::try_from(ns).unwrap_or(0));
                    at = Some(Time::from_nanos(s * 1_000_000_000 + ns));
                }
                ControlMessageOwned::Ipv4RecvErr(error, _) | ControlMessageOwned::Ipv6RecvErr(error, _) => {
                    let ours = error.ee_origin == libc::SO_EE_ORIGIN_TIMESTAMPING;
                    kind = ours.then_some((error.ee_info, error.ee_data));
                }
                _ => {}
            }
        }
        if let (Some((kind, id)), Some(at)) = (kind, at) {
            return Some((kind, id, at));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::UdpSocket;

    fn at(us: u64) -> Time {
        Time::ZERO + Span::from_micros(us)
    }

    #[test]
    fn a_standing_queue_shows_the_time_of_a_packet_and_what_waits() {
        let mut averages = Averages::default();
        averages.on_sent(at(0), at(0), 1);
        assert_eq!(averages.delay(), Span::ZERO, "nothing has waited: nothing is known");
        // A packet each 200 us leaves, and each waits for four others.
        for n in 1..100 {
            averages.on_sent(at(200 * n), at(200 * (n + 4)), n + 4);
        }
        assert_eq!(averages.service, Some(Span::from_micros(200)));
        assert!(averages.delay().since_about(Span::from_micros(800)), "{}", averages.delay());
        // Without a queue T stays, but for what it shrinks by in a rest.
        for n in 0..60 {
            averages.on_sent(at(1_000_000 + 500 * n), at(1_000_000 + 500 * n), 200 + n);
        }
        assert!(averages.delay().since_about(Span::from_micros(188)), "{}", averages.delay());
    }

    #[test]
    fn backlog_of_departed_flows_is_forgotten() {
        let mut averages = Averages::default();
        // Ten packets of others between two of ours, all in one queue.
        for n in 1..100 {
            averages.on_sent(at(2_200 * n), at(2_200 * (n + 4)), n);
        }
        assert!(averages.delay() > Span::from_millis(8), "{}", averages.delay());
        // At the pace of that, nothing waits any more.
        let mut seen = Vec::new();
        for n in 0..2_000 {
            averages.on_sent(at(1_000_000 + 2_200 * n), at(1_000_000 + 2_200 * n), 100 + n);
            seen.push(averages.delay());
        }
        assert!(seen[200] > Span::from_millis(1), "not all at once: {}", seen[200]);
        assert!(averages.delay() < Span::from_micros(200), "after four and a half seconds: {}", averages.delay());
        // The first queue shows it again.
        for n in 1..40 {
            averages.on_sent(at(6_000_000 + 200 * n), at(6_000_000 + 200 * (n + 2)), 3_000 + n);
        }
        assert!(averages.service.is_some_and(|service| service.since_about(Span::from_micros(200))), "{averages:?}");
    }

    trait About {
        fn since_about(self, other: Span) -> bool;
    }

    impl About for Span {
        fn since_about(self, other: Span) -> bool {
            self.saturating_sub(other).max(other.saturating_sub(self)) < Span::from_micros(2)
        }
    }

    #[test]
    fn the_kernel_stamps_what_is_asked_for() {
        let (one, other) = (UdpSocket::bind("127.0.0.1:0").expect("a socket"), UdpSocket::bind("127.0.0.1:0"));
        let to = other.expect("a socket").local_addr().expect("bound");
        let mut own = OwnDelay::default();
        assert!(own.begin(at(5_000), &one, 1), "the kernel has software stamps");
        one.send_to(b"x", to).expect("sent");
        own.end(&one);
        one.send_to(b"not looked at", to).expect("sent");
        // Over loopback a packet has been sent when the call returns.
        own.look(at(5_010), &one);
        assert!(own.samples.is_empty() && own.averages.last.is_some(), "{own:?}");
        assert!(stamp(&one).is_none() && held(&one) == 0);
        for n in 6..20 {
            assert!(own.begin(at(1_000 * n), &one, 3), "the numbers run on");
            one.send_to(b"x", to).expect("sent");
            own.end(&one);
        }
        own.look(at(20_000), &one);
        assert!(
            own.samples.is_empty() && own.averages.last.is_some_and(|(_, count)| count == 1 + 13 * 3 + 1),
            "{own:?}"
        );
        assert!(!own.begin(at(19_100), &one, 1), "not so soon");
    }
}
