//! The kernel's TCP congestion controls: which there are.

use socket2::{Domain, Socket, Type};
use std::fs;

/// True if the running kernel has congestion control `name`. The list holds those that are registered; one that is a module,
/// as BBR is in Debian's kernels, is loaded when root asks a socket for it (tcp_set_congestion_control).
pub(crate) fn exists(name: &str) -> bool {
    let loads = || {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None);
        socket.and_then(|socket| socket.set_tcp_congestion(name.as_bytes())).is_ok()
    };
    registered().iter().any(|offer| offer == name) || loads()
}

/// The congestion controls that are registered in the running kernel (net.ipv4.tcp_available_congestion_control), in its order.
pub(crate) fn registered() -> Vec<String> {
    let offered = fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control").unwrap_or_default();
    offered.split_whitespace().map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_congestion_control_is_known_by_its_name_and_an_invented_one_is_not() {
        assert!(exists("reno"), "every kernel has Reno built in");
        assert!(!exists("lasthop-none"));
    }
}
