//! Network namespaces with a prefix of their own, removed when dropped.

use nix::sched::{CloneFlags, setns};
use std::fs::File;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

const PREFIX: &str = "lh-test-";
static COUNT: AtomicU32 = AtomicU32::new(0);

/// A namespace; removed on drop, with every interface in it.
pub struct Netns {
    name: String,
}

impl Netns {
    pub fn new(role: &str) -> Netns {
        let name = format!("{PREFIX}{}-{}-{role}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        ip(&format!("netns add {name}"));
        let netns = Netns { name };
        // Duplicate address detection would keep IPv6 from working for the first seconds.
        netns.within(|| {
            for which in ["all", "default"] {
                let _ = std::fs::write(format!("/proc/sys/net/ipv6/conf/{which}/accept_dad"), "0");
            }
        });
        netns.ip("link set lo up");
        netns
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// `ip` with these arguments, in the namespace.
    pub fn ip(&self, arguments: &str) {
        ip(&format!("-n {} {arguments}", self.name));
    }

    /// A veth pair between this namespace and another.
    pub fn veth(&self, here: &str, other: &Netns, there: &str) {
        ip(&format!("link add {here} netns {} type veth peer name {there} netns {}", self.name, other.name));
    }

    /// Runs `act` on a thread in the namespace.
    pub fn within<T: Send>(&self, act: impl FnOnce() -> T + Send) -> T {
        std::thread::scope(|scope| {
            let thread = scope.spawn(|| {
                self.enter();
                act()
            });
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }

    /// Moves the calling thread into the namespace.
    pub fn enter(&self) {
        let file = File::open(format!("/run/netns/{}", self.name)).expect("a namespace that was made");
        setns(file, CloneFlags::CLONE_NEWNET).expect("root");
    }
}

impl Drop for Netns {
    fn drop(&mut self) {
        let _ = Command::new("ip").args(["netns", "del", &self.name]).status();
    }
}

fn ip(arguments: &str) {
    let output = Command::new("ip").args(arguments.split_whitespace()).output().expect("iproute2");
    assert!(output.status.success(), "ip {arguments}: {}", String::from_utf8_lossy(&output.stderr));
}

/// Whether namespaces can be made here; says loudly if not.
pub fn available(what: &str) -> bool {
    let root = nix::unistd::geteuid().is_root();
    let allowed =
        root && std::thread::spawn(|| nix::sched::unshare(CloneFlags::CLONE_NEWNET).is_ok()).join().unwrap_or(false);
    if !allowed {
        eprintln!("SKIPPED: {what}: needs root and network namespaces");
    }
    allowed
}
