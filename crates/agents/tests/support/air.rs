//! The air between nodes of a mesh: TAP devices, and a thread that carries each frame to all that hear its sender.

use super::delay::device;
use super::netns::Netns;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

/// Carries frames until dropped.
pub struct Air {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
    frames: Arc<Mutex<Vec<Vec<u8>>>>,
}

impl Air {
    /// A device `name` in each namespace. `hears(a, b)`: what `a` sends comes to `b`.
    pub fn new(nodes: &[Netns], name: &str, hears: impl Fn(usize, usize) -> bool + Send + 'static) -> Air {
        let ends: Vec<File> = nodes.iter().map(|netns| netns.within(|| device(name, libc::IFF_TAP))).collect();
        let (stop, frames) = (Arc::new(AtomicBool::new(false)), Arc::new(Mutex::new(Vec::new())));
        let (seen, kept) = (Arc::clone(&stop), Arc::clone(&frames));
        let thread = Some(std::thread::spawn(move || carry(ends, hears, &kept, &seen)));
        Air { stop, thread, frames }
    }

    /// All frames that were sent so far, each once.
    pub fn frames(&self) -> Vec<Vec<u8>> {
        self.frames.lock().expect("no panic").clone()
    }
}

impl Drop for Air {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn carry(mut ends: Vec<File>, hears: impl Fn(usize, usize) -> bool, kept: &Mutex<Vec<Vec<u8>>>, stop: &AtomicBool) {
    let mut buffer = vec![0; 65_536];
    while !stop.load(Ordering::Relaxed) {
        let mut fds: Vec<PollFd> = ends.iter().map(|end| PollFd::new(end.as_fd(), PollFlags::POLLIN)).collect();
        let _ = poll(&mut fds, PollTimeout::from(10u8));
        for from in 0..ends.len() {
            while let Ok(len) = ends[from].read(&mut buffer) {
                kept.lock().expect("no panic").push(buffer[..len].to_vec());
                for to in (0..ends.len()).filter(|to| *to != from && hears(from, *to)) {
                    // A device that is down hears nothing.
                    let _ = ends[to].write(&buffer[..len]);
                }
            }
        }
    }
}
