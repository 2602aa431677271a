//! The kernel's list of TCP sockets of any bytes: nothing panics, and no more messages are found than fit.
#![no_main]

use lasthop_wire::sock_diag::Messages;
use lasthop_wire::tcp_info::TcpInfo;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    assert!(Messages::new(bytes).count() <= bytes.len() / 16 + 1);
    if let Ok(info) = TcpInfo::parse(bytes) {
        assert_eq!(info.rcv_wnd.is_some(), bytes.len() >= 236);
    }
});
