//! A decoder of a cell's control channel that writes what a test wants it to have seen: in every subframe of 50 PRB the terminal is given 30, and
//! another one 20.

use std::fs::File;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The terminal's own number.
pub const OWN: u16 = 100;
/// PRB that the terminal is given in a subframe.
pub const GIVEN: u64 = 30;
/// Those of the other terminal.
pub const OTHERS: u64 = 20;
/// Bits of a PRB at first.
pub const BITS: u64 = 600;
/// What headers take at most: what comes is no more than the blocks of the log have without them, so that no less is measured.
pub const OVERHEAD: f64 = 0.068;

/// Rows of NG-Scope, written into a pipe until this is dropped: every 5 ms those of the subframes that have passed.
pub struct Decoder {
    stop: Arc<AtomicBool>,
    bits: Arc<AtomicU64>,
    thread: Option<JoinHandle<()>>,
}

impl Decoder {
    /// Begins to write.
    pub fn start(path: &Path) -> Decoder {
        let (stop, bits) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(BITS)));
        let (stopped, prb, path) = (Arc::clone(&stop), Arc::clone(&bits), path.to_owned());
        let thread = std::thread::spawn(move || {
            // Neither opening nor writing waits for an agent: what finds no place is lost.
            let mut options = File::options();
            options.read(true).write(true).custom_flags(libc::O_NONBLOCK);
            let mut pipe = options.open(path).expect("a pipe");
            let (began, mut written) = (Instant::now(), 0);
            while !stopped.load(Ordering::Relaxed) {
                let (passed, bits) = (began.elapsed().as_millis() as u64, prb.load(Ordering::Relaxed));
                let rows: String = (written..passed).map(|number| subframe(number, bits)).collect();
                written = passed.max(written);
                let _ = pipe.write_all(rows.as_bytes());
                std::thread::sleep(Duration::from_millis(5));
            }
        });
        Decoder { stop, bits, thread: Some(thread) }
    }

    /// From now on a PRB has so many bits.
    pub fn set_bits(&self, bits: u64) {
        self.bits.store(bits, Ordering::Relaxed);
    }
}

impl Drop for Decoder {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// The rows of a subframe.
fn subframe(number: u64, bits: u64) -> String {
    let (tti, at) = (number % 10_240, 1_700_000_000_000_000 + number * 1000);
    let row = |rnti: u16, prb: u64| {
        format!("{tti}\t{rnti}\t{}\t{prb}\t20\t0\t{}\t0\t0\t0\t0\t{at}\t1\t0\t\n", GIVEN + OTHERS, prb * bits)
    };
    row(OWN, GIVEN) + &row(200, OTHERS)
}
