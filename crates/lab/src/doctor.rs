//! What this machine can do for the lab, found out by trying.
//!
//! Every probe undoes what it did before it returns.

use crate::address::{HopId, mac};
use crate::congestion;
use crate::error::{Doing, Result};
use crate::netns::Namespace;
use crate::run_dir::RunDir;
use crate::sched;
use crate::tap::Tap;
use lasthop_signals::Node;
use lasthop_system::cpu_latency_guard::CpuLatencyGuard;
use lasthop_system::poll::Poll;
use lasthop_units::Span;
use nix::unistd::Uid;
use std::fmt;
use std::path::Path;
use std::process::{Command, Stdio};

/// Something that the lab uses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Feature {
    /// Running as root with the capabilities that it usually has.
    Root,
    /// Network namespaces that can be made and kept.
    Namespaces,
    /// TAP devices.
    Tap,
    /// Waiting with a timeout in nanoseconds.
    PreciseWait,
    /// Real-time scheduling.
    RealTime,
    /// Keeping processors out of deep sleep.
    CpuLatency,
    /// A TCP congestion control of the kernel, by its name there.
    CongestionControl(&'static str),
    /// IPv6.
    Ipv6,
    /// The program `iperf3`.
    Iperf3,
    /// The program `ip`, to look into namespaces by hand.
    Ip,
}

/// What a feature is to the lab.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Need {
    /// Without it the lab does not run.
    Required,
    /// Without it results are worse, or some scenarios do not run.
    Recommended,
    /// Without it a convenience is missing.
    Optional,
}

/// What was found.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum State {
    /// It is there.
    Present,
    /// It is not.
    Missing {
        /// What happened when it was tried.
        why: String,
        /// How to get it.
        get: String,
    },
    /// Only root can find out.
    Unexamined,
}

/// One feature's examination.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Finding {
    /// Which feature.
    pub feature: Feature,
    /// What it is to the lab.
    pub need: Need,
    /// What was found.
    pub state: State,
}

impl Finding {
    /// True if the feature is there.
    pub fn is_present(&self) -> bool {
        self.state == State::Present
    }
}

/// The congestion controls that scenarios name.
const CONGESTION_CONTROLS: [&str; 3] = ["cubic", "bbr", "reno"];

/// Examines the machine. Takes some milliseconds.
pub fn examine() -> Vec<Finding> {
    let mut findings = vec![
        finding(Feature::Root, root()),
        as_root(Feature::Namespaces, namespace),
        as_root(Feature::Tap, tap),
        finding(Feature::PreciseWait, precise_wait()),
        finding(Feature::RealTime, real_time()),
        finding(Feature::CpuLatency, cpu_latency()),
    ];
    for name in CONGESTION_CONTROLS {
        let found = if congestion::exists(name) { Ok(()) } else { Err("the kernel does not list it".into()) };
        findings.push(finding(Feature::CongestionControl(name), found));
    }
    findings.push(finding(Feature::Ipv6, present("/proc/sys/net/ipv6")));
    findings.push(finding(Feature::Iperf3, program("iperf3", "--version")));
    findings.push(finding(Feature::Ip, program("ip", "-Version")));
    findings
}

/// True if everything that the lab cannot do without is there.
pub fn lab_can_run(findings: &[Finding]) -> bool {
    findings.iter().all(|finding| finding.need != Need::Required || finding.is_present())
}

fn finding(feature: Feature, found: std::result::Result<(), String>) -> Finding {
    let state = match found {
        Ok(()) => State::Present,
        Err(why) => State::Missing { why, get: feature.remedy() },
    };
    Finding { feature, need: feature.need(), state }
}

/// What an ordinary user cannot try, and would only be told wrong things of.
fn as_root(feature: Feature, found: impl FnOnce() -> std::result::Result<(), String>) -> Finding {
    match Uid::effective().is_root() {
        true => finding(feature, found()),
        false => Finding { feature, need: feature.need(), state: State::Unexamined },
    }
}

impl Feature {
    fn need(self) -> Need {
        match self {
            Feature::Root | Feature::Namespaces | Feature::Tap | Feature::PreciseWait => Need::Required,
            Feature::RealTime | Feature::CongestionControl(_) | Feature::Iperf3 => Need::Recommended,
            Feature::CpuLatency | Feature::Ipv6 | Feature::Ip => Need::Optional,
        }
    }

    fn remedy(self) -> String {
        match self {
            Feature::Root => "run it with sudo; without root, scenarios run in the simulator".into(),
            Feature::Namespaces => "a kernel with CONFIG_NET_NS; in a container, the capability SYS_ADMIN".into(),
            Feature::Tap => "modprobe tun; in a container, the device /dev/net/tun and the capability NET_ADMIN".into(),
            Feature::PreciseWait => "Linux 5.11 or newer (epoll_pwait2)".into(),
            Feature::RealTime => {
                "the capability SYS_NICE; with control groups of the real-time scheduler, a cpu.rt_runtime_us above 0"
                    .into()
            }
            Feature::CpuLatency => "a kernel with CONFIG_CPU_IDLE, and access to /dev/cpu_dma_latency".into(),
            Feature::CongestionControl(name) => format!("modprobe tcp_{name}"),
            Feature::Ipv6 => "a kernel with CONFIG_IPV6 that was not started with ipv6.disable=1".into(),
            Feature::Iperf3 => "apt-get install iperf3".into(),
            Feature::Ip => "apt-get install iproute2".into(),
        }
    }
}

impl fmt::Display for Feature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Feature::Root => write!(f, "root"),
            Feature::Namespaces => write!(f, "network namespaces"),
            Feature::Tap => write!(f, "TAP devices"),
            Feature::PreciseWait => write!(f, "waits in nanoseconds"),
            Feature::RealTime => write!(f, "real-time scheduling"),
            Feature::CpuLatency => write!(f, "processors kept awake"),
            Feature::CongestionControl(name) => write!(f, "congestion control {name}"),
            Feature::Ipv6 => write!(f, "IPv6"),
            Feature::Iperf3 => write!(f, "iperf3"),
            Feature::Ip => write!(f, "ip"),
        }
    }
}

fn root() -> std::result::Result<(), String> {
    if Uid::effective().is_root() { Ok(()) } else { Err(format!("user {} is not root", Uid::effective())) }
}

fn namespace() -> std::result::Result<(), String> {
    in_namespace(|| Ok(()))
}

fn tap() -> std::result::Result<(), String> {
    in_namespace(|| Tap::create("doctor0", mac(HopId(0), Node(0))).map(drop))
}

/// Runs `work` in a namespace made for it.
fn in_namespace(work: impl FnOnce() -> Result<()> + Send) -> std::result::Result<(), String> {
    let attempt = || Namespace::create(&RunDir::claim()?, "doctor")?.within(work);
    attempt().map_err(|error| error.to_string())
}

fn precise_wait() -> std::result::Result<(), String> {
    let attempt = || Poll::new()?.wait(Span::from_nanos(1));
    attempt().map(drop).map_err(|error: std::io::Error| error.to_string())
}

fn real_time() -> std::result::Result<(), String> {
    // On a thread of its own, which takes the priority with it when it ends.
    let allowed = std::thread::spawn(|| sched::become_realtime(1)).join();
    match allowed {
        Ok(true) => Ok(()),
        _ => Err("the kernel refuses SCHED_FIFO".into()),
    }
}

fn cpu_latency() -> std::result::Result<(), String> {
    if CpuLatencyGuard::open().hold(true) { Ok(()) } else { Err("/dev/cpu_dma_latency does not open".into()) }
}

fn present(path: &str) -> std::result::Result<(), String> {
    if Path::new(path).exists() { Ok(()) } else { Err(format!("{path} does not exist")) }
}

fn program(name: &str, version: &str) -> std::result::Result<(), String> {
    let run = || Command::new(name).arg(version).stdout(Stdio::null()).stderr(Stdio::null()).status();
    let status = run().doing(|| format!("starting {name}")).map_err(|error| error.to_string())?;
    if status.success() { Ok(()) } else { Err(format!("{name} {version} ends with {status}")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_items_say_how_to_get_them_and_the_lab_needs_root() {
        let findings = examine();
        for finding in &findings {
            if let State::Missing { why, get } = &finding.state {
                assert!(!why.is_empty() && !get.is_empty(), "{finding:?}");
            }
        }
        assert_eq!(findings[0].is_present(), Uid::effective().is_root());
        if !Uid::effective().is_root() {
            assert!(!lab_can_run(&findings));
        }
    }

    #[test]
    fn a_program_that_does_not_exist_is_missing() {
        assert!(program("lasthop-no-such-program", "--version").is_err());
    }
}
