//! What the kernel's refusals mean to the operator, who chose a name or an address: what would be right. Each begins
//! with a semicolon, to stand behind the refusal itself; empty where the refusal says all there is to say.

use nix::errno::Errno;
use std::io::{Error, ErrorKind};

/// Of connecting to a driver's socket.
pub(crate) fn of_driver(error: &Error) -> &'static str {
    match (error.kind(), error.raw_os_error().map(Errno::from_raw)) {
        (ErrorKind::NotFound, _) => {
            "; start the program that reports the radio's counters before the agent, and give the path at which it listens \
             (docs/reference/driver-interface.md)"
        }
        (ErrorKind::ConnectionRefused, _) => {
            "; nobody listens there: start the program that reports the radio's counters before the agent"
        }
        (_, Some(Errno::EPROTOTYPE)) => {
            "; it is a socket of another type: records come over SOCK_SEQPACKET (docs/reference/driver-interface.md)"
        }
        (_, Some(Errno::ENAMETOOLONG | Errno::EINVAL)) => {
            "; the path of a socket has at most 107 octets: use a shorter one"
        }
        (ErrorKind::PermissionDenied, _) => "; run the agent as a user who may write to this socket",
        _ => "",
    }
}

/// Of binding a socket to an address.
pub(crate) fn of_address(error: &Error) -> &'static str {
    match error.kind() {
        ErrorKind::AddrInUse => "; another program has it (`ss -lntup` says which): end that, or choose another port",
        ErrorKind::AddrNotAvailable => {
            "; no interface of this machine has this address (`ip addr` lists those there are)"
        }
        ErrorKind::PermissionDenied => "; ports below 1024 need root or CAP_NET_BIND_SERVICE: choose a higher one",
        _ => "",
    }
}

/// Of a file that is to be written.
pub(crate) fn of_output(error: &Error) -> &'static str {
    match error.kind() {
        ErrorKind::NotFound => "; its directory must be there",
        ErrorKind::IsADirectory => "; name a file",
        ErrorKind::AlreadyExists => "; it is never overwritten: move it away, or name another file",
        ErrorKind::PermissionDenied => "; name a file in a directory that you may write to",
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => "; make room, or name a file where there is some",
        _ => "",
    }
}

/// Of a file of keys that is to be read.
pub(crate) fn of_keys(error: &Error) -> &'static str {
    match error.kind() {
        ErrorKind::NotFound => {
            "; `lasthop pair` makes key files: for the proxy the one named with --proxy, for a station --out"
        }
        ErrorKind::IsADirectory => "; name a file",
        ErrorKind::InvalidData => "; a file of keys is text",
        ErrorKind::PermissionDenied => "; run as the user whose file it is, or have it given to you (chown)",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;
    use std::os::unix::net::UnixDatagram;
    use std::path::Path;

    #[test]
    fn refusals_of_the_kernel_have_their_remedies() {
        let dir = tempfile::tempdir().expect("a directory");
        let listener = TcpListener::bind("127.0.0.1:0").expect("loopback");
        let taken = TcpListener::bind(listener.local_addr().expect("bound")).expect_err("taken");
        assert!(of_address(&taken).contains("ss -lntup"), "{taken}");
        let foreign = TcpListener::bind("192.0.2.1:8080").expect_err("an address of nobody");
        assert!(of_address(&foreign).contains("ip addr"), "{foreign}");

        let connect =
            |path: &Path| crate::service::driver::SocketDriver::connect(path).map(drop).expect_err("no driver");
        let socket = dir.path().join("socket");
        assert!(of_driver(&connect(&socket)).contains("before the agent"));
        let _datagrams = UnixDatagram::bind(&socket).expect("a free path");
        assert!(of_driver(&connect(&socket)).contains("SOCK_SEQPACKET"));
        std::fs::write(dir.path().join("file"), "").expect("written");
        assert!(of_driver(&connect(&dir.path().join("file"))).contains("nobody listens"));
        assert!(of_driver(&connect(&dir.path().join("x".repeat(200)))).contains("107"));

        let make = |path: &Path| std::fs::File::create_new(path).map(drop).expect_err("cannot be made");
        assert!(of_output(&make(&dir.path().join("none/file"))).contains("directory"));
        assert!(of_output(&make(&dir.path().join("file"))).contains("overwritten"));
        let read = |path: &Path| std::fs::read_to_string(path).expect_err("cannot be read");
        assert!(of_keys(&read(&dir.path().join("none"))).contains("lasthop pair"));
        assert!(of_keys(&read(dir.path())).contains("name a file"));
    }
}
