//! Data from one socket to another, as fast as TCP lets it.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::thread::JoinHandle;

/// Threads that send and receive until the sockets are shut down.
pub fn pump(sender: &TcpStream, receiver: &TcpStream) -> Vec<JoinHandle<()>> {
    let (mut source, mut sink) =
        (sender.try_clone().expect("a descriptor"), receiver.try_clone().expect("a descriptor"));
    vec![
        std::thread::spawn(move || {
            let block = vec![7; 1 << 17];
            while source.write_all(&block).is_ok() {}
        }),
        std::thread::spawn(move || {
            let mut block = vec![0; 1 << 18];
            while sink.read(&mut block).is_ok_and(|len| len > 0) {}
        }),
    ]
}
