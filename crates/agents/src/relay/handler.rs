//! A handler at user level as it runs: its queue, its rules, its thread.
//!
//! The rules are removed by a child that waits for the relay's end, however that comes: a process that has given up its rights could not remove
//! them, and one that was killed would not.

use super::error::Error;
use super::nfqueue::Queue;
use super::{Handled, PerHop, Verdict};
use crate::service::{privileges, system};
use lasthop_units::Span;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;

/// The queues that relays use: the first that is free.
const QUEUES: std::ops::Range<u16> = 4900..4916;
/// How long the thread may be deaf to its end.
const PATIENCE: Span = Span::from_millis(20);
/// D that is not known.
const UNKNOWN: u64 = u64::MAX;
/// For IPv4 and IPv6.
const TOOLS: [&str; 2] = ["iptables", "ip6tables"];

/// A handler with its queue open and its rules in place that is not at work yet.
pub(super) struct Prepared {
    queue: Queue,
    handler: Box<dyn PerHop>,
    rules: Rules,
}

/// A handler at work.
pub(super) struct Handler {
    shared: Arc<Shared>,
    thread: JoinHandle<io::Result<Handled>>,
    // The child goes last.
    _rules: Rules,
}

struct Shared {
    delay_ns: AtomicU64,
    stop: AtomicBool,
}

impl Prepared {
    /// Opens a queue, and sends what leaves through these interfaces there.
    pub(super) fn new(devices: &[String], handler: Box<dyn PerHop>) -> Result<Prepared, Error> {
        let (first, last) = (QUEUES.start, QUEUES.end - 1);
        let queue = Queue::open(QUEUES).map_err(|source| Error::Queue { source, first, last })?;
        let rules = Rules::install(devices, queue.number())?;
        Ok(Prepared { queue, handler, rules })
    }

    /// Begins, with the calling thread's rights, of which it keeps CAP_NET_ADMIN.
    pub(super) fn begin(self) -> Result<Handler, Error> {
        let Prepared { queue, handler, rules } = self;
        let shared = Arc::new(Shared { delay_ns: AtomicU64::new(UNKNOWN), stop: AtomicBool::new(false) });
        let own = Arc::clone(&shared);
        let builder = std::thread::Builder::new().name("lasthop-per-hop".into());
        let thread = builder.spawn(move || {
            privileges::drop_all_but(&[privileges::NET_ADMIN]).map_err(io::Error::other)?;
            serve(queue, handler, &own)
        });
        Ok(Handler { shared, thread: thread.map_err(system("a thread"))?, _rules: rules })
    }
}

impl Handler {
    /// Tells what the node's own delay is now, if that is known.
    pub(super) fn tell(&self, delay: Option<Span>) {
        self.shared.delay_ns.store(delay.map_or(UNKNOWN, Span::as_nanos), Ordering::Relaxed);
    }

    /// Whether it is still at work.
    ///
    /// # Errors
    /// [`Error::Ended`].
    pub(super) fn look(&self) -> Result<(), Error> {
        if self.thread.is_finished() {
            return Err(Error::Ended);
        }
        Ok(())
    }

    /// Ends it; what it did.
    pub(super) fn end(self) -> Result<Handled, Error> {
        self.shared.stop.store(true, Ordering::Relaxed);
        match self.thread.join() {
            Ok(handled) => Ok(handled.map_err(system("the queue of packets"))?),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    }
}

fn serve(mut queue: Queue, mut handler: Box<dyn PerHop>, shared: &Shared) -> io::Result<Handled> {
    let mut handled = Handled::default();
    while !shared.stop.load(Ordering::Relaxed) {
        let mut fds = [PollFd::new(queue.as_fd(), PollFlags::POLLIN)];
        let patience = PollTimeout::from(PATIENCE.as_nanos().div_ceil(1_000_000) as u8);
        match poll(&mut fds, patience) {
            Ok(_) | Err(nix::Error::EINTR) => {}
            Err(error) => return Err(error.into()),
        }
        while let Some(mut held) = queue.take()? {
            let own = Some(shared.delay_ns.load(Ordering::Relaxed)).filter(|ns| *ns != UNKNOWN).map(Span::from_nanos);
            handled.seen += 1;
            match handler.leaves(&mut held.packet, own) {
                Verdict::Pass => queue.pass(&held, false)?,
                Verdict::Changed => {
                    handled.changed += 1;
                    queue.pass(&held, true)?;
                }
                Verdict::Drop => {
                    handled.dropped += 1;
                    queue.drop(&held)?;
                }
            }
            if shared.stop.load(Ordering::Relaxed) {
                break;
            }
        }
    }
    Ok(handled)
}

/// Rules that send packets to a queue, and the child that removes them.
struct Rules {
    remover: Child,
}

impl Rules {
    fn install(devices: &[String], queue: u16) -> Result<Rules, Error> {
        let number = queue.to_string();
        // Names go as arguments, whatever letters they have.
        let rules = devices.iter().flat_map(|device| TOOLS.map(|tool| [tool, device.as_str(), &number]));
        // First the process that removes them: there is no moment in which nothing would.
        let remover = Command::new("sh")
            .args(["-c", REMOVE, "sh"])
            .args(rules.flatten())
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()
            .map_err(Error::Iptables)?;
        let installed = Rules { remover };
        for device in devices {
            for tool in TOOLS {
                let arguments = ["-w", "-t", "mangle", "-A", "POSTROUTING", "-o", device, "-j", "NFQUEUE"];
                let arguments = [&arguments[..], &["--queue-num", &number, "--queue-bypass"]].concat();
                let output = Command::new(tool).args(&arguments).output().map_err(Error::Iptables)?;
                if !output.status.success() {
                    let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
                    return Err(Error::Rule { rule: format!("{tool} {}", arguments.join(" ")), said });
                }
            }
        }
        Ok(installed)
    }
}

impl Drop for Rules {
    fn drop(&mut self) {
        drop(self.remover.stdin.take());
        // It ends by itself, and is not waited for in vain: `iptables -w` waits for others' changes.
        let _ = self.remover.wait();
    }
}

/// Waits for the end of its input, and removes rules: tool, interface and queue of each.
const REMOVE: &str = "trap '' INT TERM HUP; cat >/dev/null; while [ $# -gt 0 ]; do \
    $1 -w -t mangle -D POSTROUTING -o \"$2\" -j NFQUEUE --queue-num \"$3\" --queue-bypass; shift 3; done";
