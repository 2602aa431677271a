//! Network namespaces with a prefix of their own, removed when dropped.

use super::machine;
use nix::sched::{CloneFlags, setns};
use std::fs::File;
use std::io::Write as _;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Once;
use std::sync::atomic::{AtomicU32, Ordering};

const PREFIX: &str = "lh-test-";
static COUNT: AtomicU32 = AtomicU32::new(0);
static SWEEP: Once = Once::new();

/// A namespace; removed on drop, with every interface in it, unless it is somebody else's.
pub struct Netns {
    name: String,
    owned: bool,
}

impl Netns {
    pub fn new(role: &str) -> Netns {
        SWEEP.call_once(remove_orphans);
        let name = format!("{PREFIX}{}-{}-{role}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        ip(&format!("netns add {name}"));
        let netns = Netns { name, owned: true };
        // Duplicate address detection would keep IPv6 from working for the first seconds.
        netns.within(|| {
            for which in ["all", "default"] {
                let _ = std::fs::write(format!("/proc/sys/net/ipv6/conf/{which}/accept_dad"), "0");
            }
        });
        netns.ip("link set lo up");
        netns
    }

    /// One that another program has made, and removes.
    pub fn of_another(name: String) -> Netns {
        Netns { name, owned: false }
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

    /// Makes a device of the namespace carry what an air interface carries: one packet a frame, checksums complete.
    pub fn as_on_air(&self, device: &str) {
        self.within(|| {
            for setting in [STXCSUM, STSO, SGSO, SGRO] {
                switch_off(device, setting);
            }
        });
    }

    /// Switches a feature of a device on or off, as `ethtool -K` does.
    pub fn set_feature(&self, device: &str, feature: &str, on: bool) {
        self.within(|| set_feature(device, feature, on));
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

/// Removes the namespaces of tests and benchmarks that were killed: those without a living process.
fn remove_orphans() {
    let entries = std::fs::read_dir("/run/netns").into_iter().flatten().flatten();
    for name in entries.filter_map(|entry| entry.file_name().into_string().ok()) {
        let owner = name.strip_prefix(PREFIX).and_then(|rest| rest.split('-').next());
        if owner.is_some_and(|pid| pid.parse::<u32>().is_ok() && !Path::new("/proc").join(pid).exists()) {
            // Another test may do the same at the same time.
            let _ = Command::new("ip").args(["netns", "del", &name]).stderr(Stdio::null()).status();
        }
    }
}

impl Drop for Netns {
    fn drop(&mut self) {
        if self.owned {
            let _ = Command::new("ip").args(["netns", "del", &self.name]).status();
        }
    }
}

/// Server, proxy and station, in a row: `s0` to `p0` with 10.N.1.1 and 10.N.1.2, `p1` to `t0` with 10.N.2.1 and 10.N.2.2.
pub struct Row {
    pub server: Netns,
    pub proxy: Netns,
    pub station: Netns,
}

impl Row {
    /// On cables.
    pub fn new(net: u8) -> Row {
        Row::joined(net, |server, proxy| server.veth("s0", proxy, "p0")).0
    }

    /// With devices `s0` and `p0` that `join` makes, and what holds them.
    pub fn joined<W>(net: u8, join: impl FnOnce(&Netns, &Netns) -> W) -> (Row, W) {
        let (server, proxy, station) = (Netns::new("srv"), Netns::new("prx"), Netns::new("sta"));
        let wire = join(&server, &proxy);
        proxy.veth("p1", &station, "t0");
        for (netns, device, end) in
            [(&server, "s0", "1.1"), (&proxy, "p0", "1.2"), (&proxy, "p1", "2.1"), (&station, "t0", "2.2")]
        {
            netns.ip(&format!("addr add 10.{net}.{end}/24 dev {device}"));
            netns.ip(&format!("link set {device} up"));
        }
        (Row { server, proxy, station }, wire)
    }
}

fn ip(arguments: &str) {
    let output = Command::new("ip").args(arguments.split_whitespace()).output().expect("iproute2");
    assert!(output.status.success(), "ip {arguments}: {}", String::from_utf8_lossy(&output.stderr));
}

/// Old names of `linux/ethtool.h`: transmit checksums, segmentation by device and by software, receive aggregation.
const STXCSUM: u32 = 0x17;
const STSO: u32 = 0x1f;
const SGSO: u32 = 0x24;
const SGRO: u32 = 0x2c;

fn switch_off(device: &str, setting: u32) {
    // `struct ethtool_value`: command, value.
    ethtool(device, &mut [setting, 0]);
}

fn set_feature(device: &str, feature: &str, on: bool) {
    const GSSET_INFO: u32 = 0x37;
    const GSTRINGS: u32 = 0x1b;
    const SFEATURES: u32 = 0x3b;
    const SS_FEATURES: u32 = 4;
    let mut info = [GSSET_INFO, 0, 1 << SS_FEATURES, 0, 0];
    ethtool(device, &mut info);
    let count = info[4];
    let mut strings = vec![0u32; 3 + count as usize * 8];
    strings[..3].copy_from_slice(&[GSTRINGS, SS_FEATURES, count]);
    ethtool(device, &mut strings);
    let names: Vec<u8> = strings[3..].iter().flat_map(|word| word.to_ne_bytes()).collect();
    let name = |octets: &[u8]| String::from_utf8_lossy(octets).trim_end_matches('\0').to_owned();
    let at = names.chunks_exact(32).position(|octets| name(octets) == feature).expect("a feature that Linux has");
    // `struct ethtool_sfeatures`: command, blocks, then of each which are meant, and which are to be on.
    let mut words = vec![0u32; 2 + 2 * count.div_ceil(32) as usize];
    words[..2].copy_from_slice(&[SFEATURES, count.div_ceil(32)]);
    words[2 + at / 32 * 2] = 1 << (at % 32);
    words[3 + at / 32 * 2] = u32::from(on) << (at % 32);
    ethtool(device, &mut words);
}

fn ethtool(device: &str, words: &mut [u32]) {
    const SIOCETHTOOL: libc::c_ulong = 0x8946;
    let socket = std::net::UdpSocket::bind("0.0.0.0:0").expect("a socket");
    let command = words[0];
    // SAFETY: all zeros is a value of this struct of integers.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(device.bytes()) {
        *to = from as libc::c_char;
    }
    request.ifr_ifru.ifru_data = words.as_mut_ptr().cast();
    // SAFETY: SIOCETHTOOL takes an `ifreq` with a name and a pointer to a command's struct, which outlives the call.
    let failed = unsafe { libc::ioctl(socket.as_raw_fd(), SIOCETHTOOL, &mut request) };
    assert!(failed >= 0, "ethtool {command:#x} on {device}: {}", std::io::Error::last_os_error());
}

/// Whether namespaces can be made here; says loudly if not. The test then has the machine beside no others than those of its file.
#[track_caller]
pub fn available(what: &str) -> bool {
    machine::share(std::panic::Location::caller().file());
    let root = nix::unistd::geteuid().is_root();
    let allowed =
        root && std::thread::spawn(|| nix::sched::unshare(CloneFlags::CLONE_NEWNET).is_ok()).join().unwrap_or(false);
    if !allowed {
        // Past the capture of test output.
        let _ = writeln!(std::io::stderr(), "SKIPPED: {what}: needs root and network namespaces");
    }
    allowed
}
