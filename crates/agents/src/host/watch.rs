//! The connections of this host, watched: what each did since the last look.

use super::ca_entries::ByCookie;
use super::error::Error;
use super::limit::{self, Limit};
use super::{CaCounter, CaEntries, Sockets};
use crate::service::clock::monotonic_now;
use lasthop_units::{Bytes, Rate, Span, Time};
use lasthop_wire::sock_diag::{Socket, States};
use lasthop_wire::tcp_info::TcpInfo;
use std::collections::HashMap;

/// A connection at one moment, and what it did since the moment before.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Reading {
    /// When, by `CLOCK_MONOTONIC`.
    pub at: Time,
    /// The socket.
    pub socket: Socket,
    /// State of its TCP.
    pub info: TcpInfo,
    /// How often it has entered states of congestion control since the watch began; `None` if nobody counts.
    pub entries: Option<CaEntries>,
    /// What it did since the last look; `None` at the first look at it.
    pub recent: Option<Recent>,
}

/// What a connection did between two looks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Recent {
    /// How far they are apart.
    pub interval: Span,
    /// Payload acknowledged in it.
    pub sent: Rate,
    /// Payload received in it.
    pub received: Rate,
    /// Segments sent again in it.
    pub retransmitted: u32,
    /// What held it back.
    pub limit: Option<Limit>,
}

/// What all connections did since the watch began, as far as looks have seen it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Totals {
    /// Looks.
    pub looks: u64,
    /// Payload sent and acknowledged.
    pub sent: Bytes,
    /// Payload received.
    pub received: Bytes,
    /// Segments sent again.
    pub retransmitted: u64,
}

/// Looks at the connections of a network namespace again and again.
pub struct Watch {
    sockets: Sockets,
    counter: Option<CaCounter>,
    entries: ByCookie,
    before: HashMap<u64, (Time, TcpInfo)>,
    after: HashMap<u64, (Time, TcpInfo)>,
    readings: Vec<Reading>,
    totals: Totals,
}

impl Watch {
    /// Watches the connections of the calling thread's network namespace. Without a counter nothing is known of states between looks.
    ///
    /// # Errors
    /// Those of [`Sockets::open`].
    pub fn begin(counter: Option<CaCounter>) -> Result<Watch, Error> {
        Ok(Watch {
            sockets: Sockets::open()?,
            counter,
            entries: HashMap::new(),
            before: HashMap::new(),
            after: HashMap::new(),
            readings: Vec::new(),
            totals: Totals::default(),
        })
    }

    /// Looks now. Sockets of which the kernel tells no TCP state, as it does while a connection is being accepted, are left out.
    ///
    /// # Errors
    /// Those of [`Sockets::list`], and [`Error::NotCounting`].
    pub fn look(&mut self) -> Result<&[Reading], Error> {
        let list = self.sockets.list(States::CONNECTED)?;
        let at = monotonic_now();
        if let Some(counter) = &self.counter {
            counter.read_into(&mut self.entries)?;
        }
        self.readings.clear();
        self.after.clear();
        let first = self.totals.looks == 0;
        for socket in list {
            let Some(info) = socket.info else { continue };
            let before = self.before.get(&socket.cookie);
            // What has begun since the last look has done all that it did since then.
            let nothing = (!first).then(TcpInfo::default);
            if let Some(before) = before.map(|(_, info)| *info).or(nothing) {
                self.totals.add(&before, &info);
            }
            let entries = self.counter.as_ref().map(|_| self.entries.get(&socket.cookie).copied().unwrap_or_default());
            let recent = before.and_then(|(then, before)| recent(before, &info, at.since(*then)));
            self.readings.push(Reading { at, socket: *socket, info, entries, recent });
            self.after.insert(socket.cookie, (at, info));
        }
        std::mem::swap(&mut self.before, &mut self.after);
        self.totals.looks += 1;
        Ok(&self.readings)
    }

    /// What the latest look has found.
    pub fn readings(&self) -> &[Reading] {
        &self.readings
    }

    /// What all connections did since the watch began.
    pub fn totals(&self) -> Totals {
        self.totals
    }
}

impl Totals {
    fn add(&mut self, before: &TcpInfo, now: &TcpInfo) {
        self.sent += grown(before.bytes_acked, now.bytes_acked);
        self.received += grown(before.bytes_received, now.bytes_received);
        self.retransmitted += u64::from(now.total_retrans.saturating_sub(before.total_retrans));
    }
}

fn recent(before: &TcpInfo, now: &TcpInfo, interval: Span) -> Option<Recent> {
    let rate = |before, now| Rate::of(grown(before, now), interval);
    Some(Recent {
        interval,
        sent: rate(before.bytes_acked, now.bytes_acked)?,
        received: rate(before.bytes_received, now.bytes_received)?,
        retransmitted: now.total_retrans.saturating_sub(before.total_retrans),
        limit: limit::between(before, now, interval),
    })
}

fn grown(before: Option<Bytes>, now: Option<Bytes>) -> Bytes {
    now.unwrap_or_default().saturating_sub(before.unwrap_or_default())
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "waits for a timer of the kernel's")]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};

    #[test]
    fn what_a_connection_did_between_two_looks_is_told() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("loopback");
        let mut client = TcpStream::connect(listener.local_addr().expect("bound")).expect("listening");
        let (mut server, _) = listener.accept().expect("connected");
        let mut watch = Watch::begin(None).expect("a netlink socket");
        let address = client.local_addr().expect("bound");
        let find = |readings: &[Reading]| {
            let mut own = readings.iter().filter(|reading| reading.socket.local == address);
            *own.next().expect("it is connected")
        };
        let first = find(watch.look().expect("a list"));
        assert_eq!((first.recent, first.entries), (None, None));
        client.write_all(&[0; 100_000]).expect("connected");
        server.read_exact(&mut [0; 100_000]).expect("sent");
        server.write_all(&[0; 50_000]).expect("connected");
        client.read_exact(&mut [0; 50_000]).expect("sent");
        // The acknowledgement of what arrived comes with the answer, or soon after.
        let second = find(watch.look().expect("a list"));
        let recent = second.recent.expect("the second look");
        assert_eq!(recent.interval, second.at.since(first.at));
        assert_eq!(recent.sent, Rate::of(Bytes::new(100_000), recent.interval).expect("time has passed"));
        assert_eq!(recent.received, Rate::of(Bytes::new(50_000), recent.interval).expect("time has passed"));
        // Both ends are of this namespace, and others' connections may be there.
        let totals = watch.totals();
        assert!(totals.sent >= Bytes::new(100_000) && totals.received >= Bytes::new(150_000), "{totals:?}");
        assert_eq!(totals.looks, 2);
        drop(client);
        drop(server);
        assert_eq!(
            watch.look().expect("a list").iter().find(|reading| reading.socket.cookie == second.socket.cookie),
            None
        );
    }

    /// Lets everything that comes for a socket be dropped, or nothing any more.
    #[cfg(feature = "bpf")]
    fn set_deaf(socket: &TcpStream, deaf: bool) {
        use std::os::fd::AsRawFd;
        // BPF_RET | BPF_K with 0: no octet passes.
        let mut all = [libc::sock_filter { code: 0x06, jt: 0, jf: 0, k: 0 }];
        let program = libc::sock_fprog { len: 1, filter: all.as_mut_ptr() };
        let option = if deaf { libc::SO_ATTACH_FILTER } else { libc::SO_DETACH_FILTER };
        // SAFETY: the program and its one instruction outlive the call; detaching looks at nothing.
        let failed = unsafe {
            libc::setsockopt(
                socket.as_raw_fd(),
                libc::SOL_SOCKET,
                option,
                (&raw const program).cast(),
                size_of_val(&program) as libc::socklen_t,
            )
        };
        assert_eq!(failed, 0, "{}", std::io::Error::last_os_error());
    }

    #[cfg(feature = "bpf")]
    #[test]
    fn a_loss_that_is_over_has_been_counted() {
        use lasthop_wire::tcp_info::CaState;
        let counter = match CaCounter::attach() {
            Ok(counter) => counter,
            Err(error) => {
                // Past the capture of test output.
                let _ = writeln!(std::io::stderr(), "SKIPPED: {error}");
                return;
            }
        };
        let listener = TcpListener::bind("127.0.0.1:0").expect("loopback");
        let mut client = TcpStream::connect(listener.local_addr().expect("bound")).expect("listening");
        let (mut server, _) = listener.accept().expect("connected");
        set_deaf(&server, true);
        // The map is read as the monitor reads it.
        crate::host::drop_privileges().expect("dropping is always allowed");
        let mut watch = Watch::begin(Some(counter)).expect("a netlink socket");
        let address = client.local_addr().expect("bound");
        let mut look = || {
            let readings = watch.look().expect("a list");
            let own = *readings.iter().find(|reading| reading.socket.local == address).expect("it is connected");
            (own, own.entries.expect("somebody counts"))
        };
        assert_eq!(look().1, CaEntries::default());
        client.write_all(&[0; 10_000]).expect("connected");
        // The retransmission timer of Linux takes 200 ms at least.
        let begun = std::time::Instant::now();
        while look().1.of(CaState::Loss) == 0 {
            assert!(begun.elapsed() < std::time::Duration::from_secs(60), "no timer expired: {:?}", look());
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        set_deaf(&server, false);
        server.read_exact(&mut [0; 10_000]).expect("sent again");
        // The acknowledgement of what was sent again comes soon after.
        while look().0.info.ca_state != CaState::Open {
            assert!(begun.elapsed() < std::time::Duration::from_secs(60), "it does not recover: {:?}", look());
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        let (reading, entries) = look();
        assert_eq!(entries.of(CaState::Loss), 1, "however often the timer expired: {reading:?}");
        assert!(reading.info.total_retrans >= 1);
    }
}
