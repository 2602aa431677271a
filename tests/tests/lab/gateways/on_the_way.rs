//! A host on the path between two gateways: a relay that raises D, or an attacker that changes, repeats, cuts and
//! forges datagrams.

use super::support::netns::Netns;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// What is done to datagrams.
#[derive(Clone, Copy)]
pub enum Does {
    /// What a relay does with its own delay of so many microseconds.
    Raises(u32),
    Lies(Lies),
}

/// How much is changed and made up.
#[derive(Clone, Copy)]
pub struct Lies {
    pub seed: u64,
    /// One in so many has a bit of D turned.
    pub of: u64,
}

/// What was done.
#[derive(Clone, Copy, Debug, Default)]
pub struct Done {
    pub lies: u64,
    pub repeated: u64,
    pub forged: u64,
}

pub struct OnTheWay {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<Done>>,
}

impl OnTheWay {
    /// Passes on what comes to `here`, to `there`, and what comes back to the caller.
    pub fn begin(at: &Netns, here: &str, there: &str, does: Does) -> OnTheWay {
        let there: SocketAddr = there.parse().expect("an address");
        let (front, back, strange) = at.within(|| {
            let bind = |at: &str| UdpSocket::bind(at).expect("a socket");
            let away = format!("{}:0", there.ip());
            (bind(here), bind(&away), bind(&away))
        });
        for socket in [&front, &back] {
            socket.set_read_timeout(Some(Duration::from_micros(200))).expect("a socket");
        }
        let stop = Arc::new(AtomicBool::new(false));
        let asked = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            let seed = if let Does::Lies(lies) = does { lies.seed } else { 0 };
            let (mut random, mut done, mut caller, mut kept) = (seed, Done::default(), None, Vec::new());
            let mut bytes = [0; 2048];
            while !asked.load(Ordering::Relaxed) {
                while let Ok((len, from)) = front.recv_from(&mut bytes) {
                    caller = Some(from);
                    pass((&back, &strange), there, &mut bytes[..len], does, (&mut random, &mut done, &mut kept));
                }
                while let Ok(len) = back.recv(&mut bytes) {
                    if let Some(caller) = caller {
                        pass((&front, &strange), caller, &mut bytes[..len], does, (&mut random, &mut done, &mut kept));
                    }
                }
            }
            done
        });
        OnTheWay { stop, thread: Some(thread) }
    }

    pub fn end(mut self) -> Done {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.take().expect("it runs").join().expect("no panic")
    }
}

impl Drop for OnTheWay {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.take().map(JoinHandle::join);
    }
}

fn next(random: &mut u64) -> u64 {
    *random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    *random >> 33
}

/// Passes one on, and does something besides. What is sent is lost where the kernel does not take it.
fn pass(
    (from, strange): (&UdpSocket, &UdpSocket),
    to: SocketAddr,
    bytes: &mut [u8],
    does: Does,
    (random, done, kept): (&mut u64, &mut Done, &mut Vec<Vec<u8>>),
) {
    let lies = match does {
        Does::Raises(own) => {
            if let Some(field) = bytes.get_mut(4..8) {
                let delay = u32::from_be_bytes(field.try_into().expect("four octets")).max(own);
                field.copy_from_slice(&delay.to_be_bytes());
            }
            let _ = from.send_to(bytes, to);
            return;
        }
        Does::Lies(lies) => lies,
    };
    let original = bytes.to_vec();
    if next(random).is_multiple_of(lies.of) && bytes.len() > 8 {
        bytes[4 + next(random) as usize % 4] ^= 1 << (next(random) % 8);
        done.lies += 1;
    }
    let _ = from.send_to(bytes, to);
    match next(random) % 8 {
        // At once, and one of a while ago, also from elsewhere.
        0 => {
            let _ = from.send_to(bytes, to);
            kept.push(original);
            if kept.len() > 20 {
                let old = kept.swap_remove(next(random) as usize % 20);
                let _ = if next(random).is_multiple_of(2) { from } else { strange }.send_to(&old, to);
                done.repeated += 1;
            }
        }
        // Cut, or with a bit turned anywhere but in D.
        1 => {
            let _ = from.send_to(&bytes[..next(random) as usize % bytes.len()], to);
            let at = next(random) as usize % bytes.len();
            bytes[at] ^= 1 << (next(random) % 8);
            if !(4..8).contains(&at) {
                let _ = from.send_to(bytes, to);
            }
            done.forged += 1;
        }
        // Made up, behind a right beginning.
        2 => {
            let mut made: Vec<u8> = (0..next(random) % 200).map(|_| next(random) as u8).collect();
            made.splice(0..0, [0x1c, 0, 0, 0, 0, 0, 0, 9, (next(random) % 6) as u8, 3]);
            let _ = strange.send_to(&made, to);
            done.forged += 1;
        }
        _ => {}
    }
}
