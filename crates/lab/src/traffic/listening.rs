//! Whether a program listens at a port of a network namespace.

/// What a program listens for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Transport {
    /// Connections.
    Tcp,
    /// Datagrams.
    Udp,
}

/// True if a program listens at `port` in the calling thread's network namespace (proc_net_tcp in the kernel's documentation: the second
/// field is the local address, the fourth the state; 0A is LISTEN, and 07 that of a UDP socket that is not connected).
pub(crate) fn is_taken(transport: Transport, port: u16) -> bool {
    let (tables, state) = match transport {
        Transport::Tcp => (["/proc/thread-self/net/tcp", "/proc/thread-self/net/tcp6"], "0A"),
        Transport::Udp => (["/proc/thread-self/net/udp", "/proc/thread-self/net/udp6"], "07"),
    };
    tables.iter().any(|table| std::fs::read_to_string(table).is_ok_and(|text| lists(&text, port, state)))
}

fn lists(table: &str, port: u16, state: &str) -> bool {
    let listens = |line: &str| {
        let mut fields = line.split_whitespace().skip(1);
        let at_port = fields.next().is_some_and(|local| local.ends_with(&format!(":{port:04X}")));
        at_port && fields.nth(1) == Some(state)
    };
    table.lines().any(listens)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listening_port_is_found_and_a_connected_one_is_not() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue\n   0: 00000000:1451 00000000:0000 0A 00000000:00000000\n   \
                     1: 0100007F:1452 0100007F:9C40 01 00000000:00000000\n   2: 00000000:1324 00000000:0000 07 00000000:00000000\n";
        assert!(lists(table, 5201, "0A") && !lists(table, 5202, "0A") && !lists(table, 5203, "0A"));
        assert!(lists(table, 4900, "07") && !lists(table, 5201, "07"));
    }
}
