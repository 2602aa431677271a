//! The emulated driver: reports of an access point, sent to whoever connects to its socket.
//!
//! What the reports look like as bytes is told in `lasthop_wire::driver`.

use crate::address::mac;
use crate::error::{Doing, Result};
use crate::topology::LAST;
use lasthop_signals::HopReport;
use lasthop_units::Time;
use lasthop_wire::driver;
use socket2::{Domain, SockAddr, Socket, Type};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;

/// A listening driver socket and its readers. Never blocks.
#[derive(Debug)]
pub struct DriverSocket {
    listener: Socket,
    readers: Vec<Socket>,
    unread: u64,
}

impl DriverSocket {
    /// Listens at `path`, which must not exist.
    pub fn bind(path: &Path) -> Result<DriverSocket> {
        let open = || {
            let socket = Socket::new(Domain::UNIX, Type::SEQPACKET, None)?;
            socket.bind(&SockAddr::unix(path)?)?;
            socket.listen(8)?;
            socket.set_nonblocking(true)?;
            Ok::<_, io::Error>(socket)
        };
        let listener = open().doing(|| format!("listening at {}", path.display()))?;
        Ok(DriverSocket { listener, readers: Vec::new(), unread: 0 })
    }

    /// Lets in whoever waits; returns how many readers there are.
    pub fn admit(&mut self) -> usize {
        while let Ok((reader, _)) = self.listener.accept() {
            // A reader that cannot be made non-blocking must not be able to hold up the emulator.
            if reader.set_nonblocking(true).is_ok() {
                self.readers.push(reader);
            }
        }
        self.readers.len()
    }

    /// Sends the counters read at `at` (on `CLOCK_MONOTONIC`) to every reader. One that is too slow misses them, one
    /// that has gone is forgotten.
    pub fn send(&mut self, at: Time, report: &HopReport) {
        if self.readers.is_empty() {
            return;
        }
        // Only more stations than a record has room for can fail, and the lab has no room for so many.
        let addresses = report.stations.iter().map(|s| (s.station, mac(LAST, s.station))).collect();
        let record = driver::Record { at, report: report.clone(), addresses };
        if let Ok(record) = driver::encode(&record) {
            self.tell(&record);
        }
    }

    /// Sends what a node knows of its own delay to every reader, likewise.
    pub fn send_node(&mut self, record: &driver::NodeRecord) {
        self.tell(&driver::encode_node(record));
    }

    fn tell(&mut self, record: &[u8]) {
        let mut unread = 0;
        self.readers.retain(|reader| match reader.send_with_flags(record, libc::MSG_NOSIGNAL) {
            Ok(_) => true,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                unread += 1;
                true
            }
            Err(_) => false,
        });
        self.unread += unread;
    }

    /// Reports that some reader was too slow to take.
    pub fn unread(&self) -> u64 {
        self.unread
    }
}

impl AsFd for DriverSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.listener.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    #[test]
    fn each_report_is_one_record_and_slow_readers_miss_some() {
        let directory = std::env::temp_dir().join(format!("lasthop-driver-test-{}", std::process::id()));
        std::fs::create_dir_all(&directory).expect("a temporary directory");
        let path = directory.join("driver.sock");
        let mut driver = DriverSocket::bind(&path).expect("a free path");
        let mut reader = Socket::new(Domain::UNIX, Type::SEQPACKET, None).expect("Unix sockets");
        reader.connect(&SockAddr::unix(&path).expect("a short path")).expect("it listens");
        assert_eq!(driver.admit(), 1);

        let report = HopReport::default();
        driver.send(Time::from_nanos(7), &report);
        let mut record = [0; driver::MAX_LEN];
        let len = reader.read(&mut record).expect("one was sent");
        let expected = driver::Record { at: Time::from_nanos(7), ..driver::Record::default() };
        assert_eq!(driver::decode(&record[..len]), Ok(expected));

        let node = driver::NodeRecord { at: Time::from_nanos(8), node: 2, ..driver::NodeRecord::default() };
        driver.send_node(&node);
        let len = reader.read(&mut record).expect("one was sent");
        assert_eq!(driver::decode_node(&record[..len]), Ok(node));

        (0..100_000).for_each(|n| driver.send(Time::from_nanos(n), &report));
        assert!(driver.unread() > 0, "the socket buffer is finite");
        // Not by closing it: what another test forks at this moment has a copy until it executes its program.
        reader.shutdown(std::net::Shutdown::Both).expect("it is connected");
        driver.send(Time::ZERO, &report);
        assert_eq!(driver.admit(), 0);
        std::fs::remove_dir_all(directory).expect("it is ours");
    }
}
