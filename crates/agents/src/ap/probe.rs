//! What this machine offers an access point's agent.

use super::{offload, privileges};

/// One thing that is there or not.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Check {
    /// What was looked for.
    pub name: &'static str,
    /// Whether it is there.
    pub ok: bool,
    /// What was found.
    pub detail: String,
    /// How to get it, if it is not there.
    pub remedy: &'static str,
    /// False if the agent works without it, less well.
    pub required: bool,
}

/// Looks for everything the agent uses. Changes nothing: programs are loaded and unloaded, none is attached.
pub fn probe() -> Vec<Check> {
    vec![built(), capabilities(), programs(), tcx(), bypass(), btf()]
}

fn built() -> Check {
    let ok = cfg!(feature = "bpf");
    Check {
        name: "eBPF programs in this build",
        ok,
        detail: if ok { "yes" } else { "no" }.to_owned(),
        remedy: "install clang, libelf-dev, zlib1g-dev and pkg-config, and rebuild with feature `bpf`",
        required: true,
    }
}

fn capabilities() -> Check {
    let root = privileges::has(privileges::SYS_ADMIN);
    let missing: Vec<&str> = [("CAP_BPF", privileges::BPF), ("CAP_NET_ADMIN", privileges::NET_ADMIN)]
        .into_iter()
        .filter(|(_, capability)| !root && !privileges::has(*capability))
        .map(|(name, _)| name)
        .collect();
    Check {
        name: "capabilities",
        ok: missing.is_empty(),
        detail: if missing.is_empty() { "sufficient".to_owned() } else { format!("missing: {}", missing.join(", ")) },
        remedy: "run as root, or grant CAP_BPF and CAP_NET_ADMIN",
        required: true,
    }
}

#[cfg(feature = "bpf")]
fn programs() -> Check {
    let loaded = super::kernel::Rewriter::load(super::kernel::Load::default());
    Check {
        name: "eBPF programs accepted by the kernel",
        ok: loaded.is_ok(),
        detail: loaded.map_or_else(|error| error.to_string(), |_| "yes".to_owned()),
        remedy: "Linux 5.14 or later with CONFIG_BPF_SYSCALL and CONFIG_NET_CLS_BPF",
        required: true,
    }
}

#[cfg(not(feature = "bpf"))]
fn programs() -> Check {
    Check {
        name: "eBPF programs accepted by the kernel",
        ok: false,
        detail: "not tried: not in this build".to_owned(),
        remedy: "rebuild with feature `bpf`",
        required: true,
    }
}

fn tcx() -> Check {
    #[cfg(feature = "bpf")]
    let ok = super::attach::has_tcx();
    #[cfg(not(feature = "bpf"))]
    let ok = false;
    Check {
        name: "TCX links",
        ok,
        detail: if ok { "yes" } else { "no: filters on the clsact qdisc are used instead" }.to_owned(),
        remedy: "Linux 6.6 or later",
        required: false,
    }
}

fn bypass() -> Check {
    let found = offload::find();
    Check {
        name: "no hardware that carries flows past the agent",
        ok: found.as_ref().is_ok_and(Vec::is_empty),
        detail: match found {
            Ok(found) => found.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "),
            Err(error) => error.to_string(),
        },
        remedy: "look as root; then switch hardware flow offload off (docs/how-to/run-the-agent.md)",
        required: false,
    }
}

fn btf() -> Check {
    let ok = std::path::Path::new("/sys/kernel/btf/vmlinux").exists();
    Check {
        name: "kernel BTF",
        ok,
        detail: if ok { "yes" } else { "no" }.to_owned(),
        remedy: "a kernel with CONFIG_DEBUG_INFO_BTF; the access point's agent does not need it",
        required: false,
    }
}
