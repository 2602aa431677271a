//! What this machine offers an access point's agent.

use super::offload;
use crate::service::{Error, privileges};

/// One thing that is there or not.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Check {
    /// What was looked for.
    pub name: &'static str,
    /// What was found.
    pub found: Found,
    /// In words.
    pub detail: String,
    /// How to get it, if it is not there.
    pub remedy: &'static str,
    /// False if the agent works without it, less well.
    pub required: bool,
}

/// What was found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Found {
    /// It is there.
    Yes,
    /// It is not.
    No,
    /// Only a process with the capabilities can find out.
    Unexamined,
}

impl Check {
    /// True if the agent cannot run for this reason.
    pub fn hinders(&self) -> bool {
        self.required && self.found != Found::Yes
    }
}

impl From<bool> for Found {
    fn from(there: bool) -> Found {
        if there { Found::Yes } else { Found::No }
    }
}

/// Looks for everything the agent uses. Changes nothing: programs are loaded and unloaded, none is attached.
pub fn probe() -> Vec<Check> {
    vec![built(), capabilities(), programs(), tcx(), btf()]
}

/// Looks for hardware that carries flows past an agent on this machine's own interfaces. It does not concern the lab's.
pub fn probe_offload() -> Check {
    judge(offload::find(None))
}

fn built() -> Check {
    let ok = cfg!(feature = "bpf");
    Check {
        name: "eBPF programs in this build",
        found: ok.into(),
        detail: if ok { "yes" } else { "no" }.to_owned(),
        remedy: "install clang, libelf-dev, zlib1g-dev and pkg-config, and rebuild with feature `bpf`",
        required: true,
    }
}

fn capabilities() -> Check {
    let root = privileges::has(privileges::SYS_ADMIN);
    let needed =
        [("CAP_BPF", privileges::BPF), ("CAP_PERFMON", privileges::PERFMON), ("CAP_NET_ADMIN", privileges::NET_ADMIN)];
    let missing: Vec<&str> = needed
        .into_iter()
        .filter(|(_, capability)| !root && !privileges::has(*capability))
        .map(|(name, _)| name)
        .collect();
    Check {
        name: "capabilities",
        found: missing.is_empty().into(),
        detail: if missing.is_empty() { "sufficient".to_owned() } else { format!("missing: {}", missing.join(", ")) },
        remedy: "run as root, or grant CAP_BPF, CAP_PERFMON and CAP_NET_ADMIN",
        required: true,
    }
}

#[cfg(feature = "bpf")]
fn programs() -> Check {
    let loaded = super::kernel::Rewriter::load(super::kernel::Load::default());
    Check {
        name: "eBPF programs accepted by the kernel",
        found: match &loaded {
            Ok(_) => Found::Yes,
            Err(Error::Permission { .. }) => Found::Unexamined,
            Err(_) => Found::No,
        },
        detail: loaded.map_or_else(|error| error.to_string(), |_| "yes".to_owned()),
        remedy: "Linux 5.14 or later with CONFIG_BPF_SYSCALL and CONFIG_NET_CLS_BPF",
        required: true,
    }
}

#[cfg(not(feature = "bpf"))]
fn programs() -> Check {
    Check {
        name: "eBPF programs accepted by the kernel",
        found: Found::No,
        detail: "not tried: not in this build".to_owned(),
        remedy: "rebuild with feature `bpf`",
        required: true,
    }
}

fn tcx() -> Check {
    #[cfg(feature = "bpf")]
    let there = crate::service::attach::has_tcx();
    #[cfg(not(feature = "bpf"))]
    let there = false;
    // Without the right to ask, the kernel's answer says nothing of TCX.
    let may_ask = privileges::has(privileges::SYS_ADMIN) || privileges::has(privileges::NET_ADMIN);
    Check {
        name: "TCX links",
        found: if may_ask { there.into() } else { Found::Unexamined },
        detail: match (there, may_ask) {
            (true, _) => "yes".to_owned(),
            (false, true) => "no: filters on the clsact qdisc are used instead".to_owned(),
            (false, false) => "not allowed to ask the kernel".to_owned(),
        },
        remedy: "Linux 6.6 or later",
        required: false,
    }
}

fn judge(found: Result<Vec<offload::Bypass>, Error>) -> Check {
    let (verdict, detail) = match found {
        Ok(found) if found.is_empty() => (Found::Yes, "none".to_owned()),
        Ok(found) => (Found::No, found.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")),
        Err(error @ Error::Permission { .. }) => (Found::Unexamined, error.to_string()),
        Err(error) => (Found::No, error.to_string()),
    };
    Check {
        name: "no hardware that carries flows past the agent",
        found: verdict,
        detail,
        remedy: "switch hardware flow offload off, or see --allow-offload (docs/how-to/run-the-agent.md)",
        required: true,
    }
}

fn btf() -> Check {
    let ok = std::path::Path::new("/sys/kernel/btf/vmlinux").exists();
    Check {
        name: "kernel BTF",
        found: ok.into(),
        detail: if ok { "yes" } else { "no" }.to_owned(),
        remedy: "a kernel with CONFIG_DEBUG_INFO_BTF; the access point's agent works without it, `lasthop relay --d-source kernel` does not",
        required: false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_accelerator_hinders_and_no_permission_is_unexamined() {
        let ecm = offload::Bypass::Accelerator { module: "ecm", what: "Qualcomm Enhanced Connection Manager" };
        let judged = |found| {
            let check = judge(found);
            (check.found, check.hinders())
        };
        assert_eq!(judged(Ok(Vec::new())), (Found::Yes, false));
        assert_eq!(judged(Ok(vec![ecm])), (Found::No, true));
        assert_eq!(judged(Err(Error::Permission { what: "anything" })), (Found::Unexamined, true));
    }
}
