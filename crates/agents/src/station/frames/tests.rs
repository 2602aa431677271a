//! What becomes of slots of which the monitor's socket dropped frames. Needs root: skips loudly without.

use super::*;
use lasthop_laws::aggregation::station::Station;
use lasthop_laws::{ReceiverLaw, ReceiverSetup};
use lasthop_signals::{Arrival, Feedback, Node, StationFeedback};
use lasthop_units::Bytes;
use nix::sched::{CloneFlags, unshare};
use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::os::fd::AsRawFd;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

const SLOT: Span = Span::from_millis(500);
static SAID: AtomicU32 = AtomicU32::new(0);

fn say(line: &str) {
    assert!(line.contains("mon0") && line.contains("faster than they were read"), "{line}");
    SAID.fetch_add(1, Ordering::Relaxed);
}

/// A TAP device of link type radiotap, up.
fn device() -> File {
    const TUNSETIFF: libc::c_ulong = 0x4004_54ca;
    const TUNSETLINK: libc::c_ulong = 0x4004_54cd;
    const ARPHRD_IEEE80211_RADIOTAP: libc::c_int = 803;
    let file = OpenOptions::new().read(true).write(true).open("/dev/net/tun").expect("root");
    // SAFETY: all zeros is a value of this struct of integers.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(b"mon0") {
        *to = *from as libc::c_char;
    }
    request.ifr_ifru.ifru_flags = (libc::IFF_TAP | libc::IFF_NO_PI) as libc::c_short;
    // SAFETY: TUNSETIFF reads an ifreq that outlives the call; TUNSETLINK takes an int.
    let made = unsafe {
        libc::ioctl(file.as_raw_fd(), TUNSETIFF, &request) == 0
            && libc::ioctl(file.as_raw_fd(), TUNSETLINK, ARPHRD_IEEE80211_RADIOTAP) == 0
    };
    assert!(made, "{}", std::io::Error::last_os_error());
    assert!(Command::new("ip").args("link set mon0 up".split(' ')).status().expect("iproute2").success());
    file
}

/// One slot of a reader of the interface, and the packets that arrive in it: bursts of ten.
struct Bench {
    frames: Frames,
    law: Station,
    device: File,
    slot: u64,
}

impl Bench {
    /// Ends the next slot, in which `shown` frames are shown before anybody reads, `late` after its end.
    fn slot(&mut self, shown: u32, late: Span) -> StationFeedback {
        let start = Time::ZERO + SLOT * self.slot;
        for n in 0..2_000 {
            let at = start + Span::from_millis(2) * (n / 10) + Span::from_micros(2) * (n % 10);
            self.law.sense(at, &Signal::Arrival(Arrival { at, sent: None, len: Bytes::new(1500) }));
        }
        // An empty radiotap header: no frame of anybody's.
        let mut shown_one = [0; 11_000];
        shown_one[2] = 8;
        for _ in 0..shown {
            self.device.write_all(&shown_one).expect("an interface that is up");
        }
        self.slot += 1;
        let (end, Bench { law, frames, .. }) = (start + SLOT, self);
        frames.look(end + late, &mut |signal| law.sense(end + late, signal)).expect("readable");
        frames.end_slot(end + late, (start, end), &mut |signal| law.sense(end + late, signal)).expect("readable");
        law.sense(end + late, &Signal::Wakeup);
        match law.decide(end + late).feedback {
            Some(Feedback::Station(account)) => account,
            other => panic!("an account, not {other:?}"),
        }
    }
}

/// More than the largest buffer of the socket holds.
const FLOOD: u32 = 12_000;
const AT_ONCE: Span = Span::from_micros(200);

#[test]
fn slots_after_lost_frames_use_arrival_times_until_all_is_read() {
    // A thread may leave its namespace, and takes nothing of the others' with it.
    let done = std::thread::spawn(|| {
        if !nix::unistd::geteuid().is_root() || unshare(CloneFlags::CLONE_NEWNET).is_err() {
            // Past the capture of test output.
            let _ = writeln!(std::io::stderr(), "SKIPPED: monitor sockets: needs root and network namespaces");
            return;
        }
        let device = device();
        let frames = Frames::open(Some("mon0"), say).expect("a monitor interface");
        let (start, end) = (Time::ZERO, Time::ZERO + SLOT);
        let setup = ReceiverSetup { node: Node(3), slot: 0, start, end, interval: SLOT, idle_slots: None };
        let law = Station::new(frames.source(), setup);
        let mut bench = Bench { frames, law, device, slot: 0 };
        let kind = |account: &StationFeedback| (account.source, account.frames > 0);
        const SILENT: (FrameSource, bool) = (FrameSource::Radiotap, false);
        const SUGGESTED: (FrameSource, bool) = (FrameSource::Timestamps, true);

        assert_eq!(kind(&bench.slot(10, AT_ONCE)), SILENT, "nothing of ours was shown");
        assert_eq!(bench.frames.missed(), Some(0));
        let silent = bench.slot(FLOOD, AT_ONCE);
        assert_eq!(kind(&silent), SILENT);
        let missed = bench.frames.missed().expect("a monitor");
        assert!((1..u64::from(FLOOD)).contains(&missed), "{missed}");
        for _ in 0..2 {
            let suggested = bench.slot(FLOOD, AT_ONCE);
            assert_eq!(kind(&suggested), SUGGESTED);
            assert!((9.0..11.0).contains(&suggested.mean_packets().expect("frames")), "{suggested:?}");
        }
        assert_eq!(kind(&bench.slot(10, AT_ONCE)), SILENT, "the interface has shown all again, and nothing of ours");

        // A late reader does not know in which slot it was.
        assert_eq!(kind(&bench.slot(FLOOD, SLOT / 2)), SILENT);
        assert_eq!(kind(&bench.slot(10, AT_ONCE)), SUGGESTED);
        assert_eq!(kind(&bench.slot(10, AT_ONCE)), SILENT);
        assert_eq!(SAID.load(Ordering::Relaxed), 1, "the log has the rest");
    });
    done.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
}
