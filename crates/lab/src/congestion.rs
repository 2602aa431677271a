//! The kernel's TCP congestion controls: which there are, and which a network namespace uses by
//! default.

use crate::error::{Doing, LabError, Result};
use crate::netns::Namespace;
use crate::run_dir;
use socket2::{Domain, Socket, Type};
use std::fs;
use std::io::{self, ErrorKind};

/// What unprivileged programs may choose, and what a network namespace may have as its default:
/// one list for the whole machine.
const ALLOWED: &str = "/proc/sys/net/ipv4/tcp_allowed_congestion_control";

/// The default of the calling thread's network namespace.
const DEFAULT: &str = "/proc/sys/net/ipv4/tcp_congestion_control";

/// True if the running kernel has congestion control `name`. The list holds those that are
/// registered; one that is a module, as BBR is in Debian's kernels, is loaded when root asks a
/// socket for it (tcp_set_congestion_control).
pub(crate) fn exists(name: &str) -> bool {
    let loads = || {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None);
        socket.and_then(|socket| socket.set_tcp_congestion(name.as_bytes())).is_ok()
    };
    registered().iter().any(|offer| offer == name) || loads()
}

/// The congestion controls that are registered in the running kernel
/// (net.ipv4.tcp_available_congestion_control), in its order.
pub fn registered() -> Vec<String> {
    let offered = fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control").unwrap_or_default();
    offered.split_whitespace().map(str::to_owned).collect()
}

/// The kernel lacks congestion control `name`: says which it has.
pub(crate) fn absent(name: &str) -> LabError {
    let offered = registered().join(", ");
    LabError::Missing {
        what: format!("the kernel's congestion control `{name}`"),
        get: format!(
            "this kernel has {offered}: name one of them, load the module of `{name}` (modprobe tcp_{name}), or use a \
             kernel that has it"
        ),
    }
}

/// Makes `name` what TCP connections of `namespace` use unless a program chooses otherwise.
///
/// The kernel refuses a default that unprivileged programs may not choose
/// (tcp_set_default_congestion_control), and what they may choose holds for the whole machine. So
/// where it refuses, `name` is on that list for as long as the default is set: a namespace keeps
/// its default afterwards.
///
/// # Errors
/// [`LabError::Missing`] if the list cannot be changed, as in a container;
/// [`LabError::System`] for anything else.
pub(crate) fn set_default(namespace: &Namespace, name: &str) -> Result<()> {
    let set = || namespace.within(|| Ok(fs::write(DEFAULT, name)));
    let doing = || format!("making {name} the default congestion control of {}", namespace.name());
    match set()? {
        Err(error) if error.kind() == ErrorKind::PermissionDenied => {
            let lifted = while_allowed(name, set)?.map_err(|error| LabError::Missing {
                what: format!("permission to use congestion control `{name}` by default in a network namespace"),
                get: format!("add {name} to the machine's net.ipv4.tcp_allowed_congestion_control ({error})"),
            })?;
            lifted.doing(doing)
        }
        set => set.doing(doing),
    }
}

/// Does `work` while `name` is on the machine's list. The list is then what it was.
fn while_allowed<T>(name: &str, work: impl FnOnce() -> Result<T>) -> Result<io::Result<T>> {
    // Others that change the list at the same moment would restore each other's.
    let _held = run_dir::hold()?;
    let before = match fs::read_to_string(ALLOWED) {
        Ok(before) => before,
        Err(error) => return Ok(Err(error)),
    };
    if let Err(error) = fs::write(ALLOWED, format!("{} {name}", before.trim())) {
        return Ok(Err(error));
    }
    let done = work();
    fs::write(ALLOWED, &before).doing(|| format!("restoring {ALLOWED} to {}", before.trim()))?;
    done.map(Ok)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_real_congestion_controls_are_known_by_name() {
        assert!(exists("reno"), "every kernel has Reno built in");
        assert!(!exists("lasthop-none"));
    }
}
