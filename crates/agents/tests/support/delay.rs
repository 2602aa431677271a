//! A wire with a delay: two TUN devices and a thread that carries packets between them (the kernel may have no netem).

use super::netns::Netns;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use std::collections::VecDeque;
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsFd, AsRawFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Carries packets until dropped.
pub struct DelayWire {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl DelayWire {
    /// A wire of `one_way` delay between TUN devices that it makes.
    pub fn new(a: (&Netns, &str), b: (&Netns, &str), one_way: Duration) -> DelayWire {
        DelayWire::narrow(a, b, one_way, None)
    }

    /// The same, but what goes from `a` to `b` waits in a queue before it, if there is one.
    pub fn narrow(a: (&Netns, &str), b: (&Netns, &str), one_way: Duration, queue: Option<Queue>) -> DelayWire {
        DelayWire::with(a, b, one_way, queue, Box::new(|_, _| {}))
    }

    /// The same with a middle box in it, which sees each packet, and whether it comes from `a` (0) or from `b` (1), and may change it.
    pub fn with(
        a: (&Netns, &str),
        b: (&Netns, &str),
        one_way: Duration,
        queue: Option<Queue>,
        middle: MiddleBox,
    ) -> DelayWire {
        DelayWire::fated(a, b, one_way, queue, (middle, Box::new(|_, place| place)))
    }

    /// The same with a function that decides which of the packets from `a` go on.
    pub fn fated(
        a: (&Netns, &str),
        b: (&Netns, &str),
        one_way: Duration,
        queue: Option<Queue>,
        (mut middle, mut fate): (MiddleBox, Fate),
    ) -> DelayWire {
        let ends = [a, b].map(|(netns, name)| netns.within(|| tun(name)));
        let stop = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&stop);
        let thread = Some(std::thread::spawn(move || carry(ends, one_way, queue, (&mut middle, &mut fate), &seen)));
        DelayWire { stop, thread }
    }
}

/// What a wire does with packets on their way.
pub type MiddleBox = Box<dyn FnMut(usize, &mut Vec<u8>) + Send>;

/// Whether a packet goes on, which has found a place in the queue or has not. One that has none cannot.
pub type Fate = Box<dyn FnMut(&[u8], bool) -> bool + Send>;

/// A queue of so many packets before a wire that carries so many octets a second.
#[derive(Clone, Copy)]
pub struct Queue {
    pub octets_a_second: f64,
    pub packets: usize,
}

/// When what has come to a queue leaves it.
struct Leaving {
    queue: Queue,
    free: Instant,
    waiting: VecDeque<Instant>,
}

impl Leaving {
    /// When a packet that comes now has left; `None` if it finds no place.
    fn admit(&mut self, now: Instant, len: usize, fate: impl FnOnce(bool) -> bool) -> Option<Instant> {
        while self.waiting.front().is_some_and(|gone| *gone <= now) {
            self.waiting.pop_front();
        }
        let place = self.waiting.len() < self.queue.packets;
        if !fate(place) || !place {
            return None;
        }
        self.free = self.free.max(now) + Duration::from_secs_f64(len as f64 / self.queue.octets_a_second);
        self.waiting.push_back(self.free);
        Some(self.free)
    }
}

impl Drop for DelayWire {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn carry(
    mut ends: [File; 2],
    delay: Duration,
    queue: Option<Queue>,
    (middle, fate): (&mut MiddleBox, &mut Fate),
    stop: &AtomicBool,
) {
    let mut leaving = queue.map(|queue| Leaving { queue, free: Instant::now(), waiting: VecDeque::new() });
    let mut queues: [VecDeque<(Instant, Vec<u8>)>; 2] = Default::default();
    let mut buffer = vec![0; 65_536];
    while !stop.load(Ordering::Relaxed) {
        let mut fds =
            [PollFd::new(ends[0].as_fd(), PollFlags::POLLIN), PollFd::new(ends[1].as_fd(), PollFlags::POLLIN)];
        let _ = poll(&mut fds, PollTimeout::from(1u8));
        for from in 0..2 {
            while let Ok(len) = ends[from].read(&mut buffer) {
                let now = Instant::now();
                let gone = match &mut leaving {
                    Some(leaving) if from == 0 => leaving.admit(now, len, |place| fate(&buffer[..len], place)),
                    None if from == 0 => fate(&buffer[..len], true).then_some(now),
                    _ => Some(now),
                };
                if let Some(gone) = gone {
                    let mut packet = buffer[..len].to_vec();
                    middle(from, &mut packet);
                    queues[from].push_back((gone + delay, packet));
                }
            }
            while queues[from].front().is_some_and(|(due, _)| *due <= Instant::now()) {
                let (_, packet) = queues[from].pop_front().expect("just looked");
                // A device that is down loses packets, as a cut wire does.
                let _ = ends[1 - from].write(&packet);
            }
        }
    }
}

fn tun(name: &str) -> File {
    device(name, libc::IFF_TUN)
}

/// A device of this kind in the calling thread's namespace, as long as the file is open.
pub fn device(name: &str, kind: libc::c_int) -> File {
    const TUNSETIFF: libc::c_ulong = 0x4004_54ca;
    let file = File::options().read(true).write(true).open("/dev/net/tun").expect("TUN");
    // SAFETY: all zeros is a value of this struct of integers.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(name.bytes()) {
        *to = from as libc::c_char;
    }
    request.ifr_ifru.ifru_flags = (kind | libc::IFF_NO_PI) as libc::c_short;
    // SAFETY: TUNSETIFF takes an `ifreq` with name and flags.
    let failed = unsafe { libc::ioctl(file.as_raw_fd(), TUNSETIFF, &mut request) };
    assert_eq!(failed, 0, "TUNSETIFF: {}", std::io::Error::last_os_error());
    // SAFETY: sets a flag of a descriptor that is ours.
    unsafe { libc::fcntl(file.as_raw_fd(), libc::F_SETFL, libc::O_NONBLOCK) };
    file
}
