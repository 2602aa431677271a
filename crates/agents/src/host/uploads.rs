//! The connections that a host sends through, as its law is told of them.
//!
//! An upload is a connection that has much to send: what it has delivered since the last look, what is on its way and what waits
//! come to more than an initial window (RFC 6928). It stays one for a second after that, so that short pauses are none. Downloads
//! and those that exchange short messages are left alone.

use lasthop_laws::{Bounds, Decision};
use lasthop_signals::{FlowId, SocketReport};
use lasthop_units::{Bytes, Span, Time};
use lasthop_wire::sock_diag::Socket;
use lasthop_wire::tcp_info::TcpInfo;
use std::collections::BTreeMap;
use std::hash::{BuildHasher, RandomState};
use std::net::SocketAddr;

/// Segments that make a connection an upload: an initial window.
const MUCH: u64 = 10;
/// An upload that pauses for no longer is still one.
const REST: Span = Span::from_secs(1);

/// Connections that have been seen.
#[derive(Default)]
pub(super) struct Uploads {
    /// By the cookies of their sockets.
    known: BTreeMap<u64, Known>,
    next: u32,
    destinations: RandomState,
}

#[derive(Clone, Copy)]
struct Known {
    flow: FlowId,
    delivered: u32,
    /// The same as payload: each segment as long as segments were when it was counted.
    payload: Bytes,
    /// When it had much to send last, if it ever had.
    busy: Option<Time>,
    /// It was an upload at the last look.
    sends: bool,
}

/// An upload.
#[derive(Clone, Copy, Debug)]
pub(super) struct Upload {
    pub(super) cookie: u64,
    pub(super) local: SocketAddr,
    pub(super) peer: SocketAddr,
    pub(super) info: TcpInfo,
    pub(super) report: SocketReport,
}

impl Uploads {
    /// Takes in the connections that are there now. Returns the uploads among them, and those that are none any more.
    pub(super) fn look<'a>(
        &mut self,
        now: Time,
        sockets: impl Iterator<Item = &'a Socket>,
    ) -> (Vec<Upload>, Vec<(u64, FlowId)>) {
        let mut before = std::mem::take(&mut self.known);
        let (mut uploads, mut gone) = (Vec::new(), Vec::new());
        for socket in sockets {
            let Some(info) = socket.info else { continue };
            let delivered = info.delivered.unwrap_or_default();
            let known = before.remove(&socket.cookie).unwrap_or_else(|| {
                self.next = self.next.wrapping_add(1);
                let payload = info.mss * u64::from(delivered);
                Known { flow: FlowId(self.next), delivered, payload, busy: None, sends: false }
            });
            let lately = delivered.wrapping_sub(known.delivered);
            let payload = known.payload + info.mss * u64::from(lately);
            let busy = if has_much(&info, lately) { Some(now) } else { known.busy };
            let sends = busy.is_some_and(|busy| now.since(busy) <= REST);
            if sends {
                let destination = self.destinations.hash_one(socket.peer.ip().to_canonical());
                let report = report(known.flow, &info, payload, destination);
                let Socket { cookie, local, peer, .. } = *socket;
                uploads.push(Upload { cookie, local, peer, info, report });
            } else if known.sends {
                gone.push((socket.cookie, known.flow));
            }
            self.known.insert(socket.cookie, Known { delivered, payload, busy, sends, ..known });
        }
        let vanished = before.into_iter().filter(|(_, known)| known.sends);
        gone.extend(vanished.map(|(cookie, known)| (cookie, known.flow)));
        (uploads, gone)
    }

    /// Forgets all of them; returns those that were uploads.
    pub(super) fn clear(&mut self) -> Vec<(u64, FlowId)> {
        self.look(Time::ZERO, std::iter::empty()).1
    }
}

/// A decision's bounds on a connection, in segments.
pub(super) fn segments(decision: &Decision, upload: &Upload) -> Option<Bounds<u32>> {
    let mss = upload.report.mss.get().max(1);
    let count = |octets: Bytes| u32::try_from(octets.get() / mss).unwrap_or(u32::MAX);
    decision.cwnd.map(|cwnd| Bounds { lower: count(cwnd.lower).max(1), upper: count(cwnd.upper).max(2) })
}

/// True if a connection has much to send, `lately` segments having been delivered since the last look.
fn has_much(info: &TcpInfo, lately: u32) -> bool {
    let waits = info.notsent.unwrap_or(Bytes::ZERO).get() / info.mss.get().max(1);
    u64::from(lately) + u64::from(info.in_flight()) + waits > MUCH
}

fn report(flow: FlowId, info: &TcpInfo, delivered: Bytes, destination: u64) -> SocketReport {
    let segments = |count: u32| info.mss * u64::from(count);
    SocketReport {
        flow,
        rtt: info.rtt,
        deviation: info.rttvar,
        min_rtt: info.min_rtt.or(info.rtt),
        mss: info.mss,
        cwnd: segments(info.cwnd),
        in_flight: segments(info.in_flight()),
        delivered,
        destination,
        // The kernel tells it of the socket, not of the queues below it.
        queued: None,
    }
}

/// One that has 40 segments of window.
#[cfg(test)]
pub(super) fn some_upload() -> Upload {
    Uploads::default().look(Time::ZERO, std::iter::once(&tests::socket(1, 100, 30))).0[0]
}

#[cfg(test)]
mod tests {
    use super::*;
    use lasthop_units::brief::at;
    use lasthop_wire::sock_diag::CongestionControl;
    use lasthop_wire::tcp_info::{self, TcpState};

    /// A connection that has delivered so many segments, with so many unacknowledged.
    pub(super) fn socket(cookie: u64, delivered: u32, unacked: u32) -> Socket {
        let mut record = [0; tcp_info::ROOM];
        let mut put = |at: usize, value: u32| record[at..at + 4].copy_from_slice(&value.to_ne_bytes());
        put(16, 1448);
        put(24, unacked);
        put(68, 20_000);
        put(72, 5_000);
        put(80, 40);
        put(148, 15_000);
        put(192, delivered);
        record[0] = 1;
        Socket {
            cookie,
            local: SocketAddr::from(([10, 0, 0, 2], 40_000)),
            peer: SocketAddr::from(([192, 0, 2, 1], 443)),
            interface: 0,
            state: TcpState::Established,
            uid: 0,
            inode: 1,
            receive_queue: Bytes::ZERO,
            send_queue: Bytes::ZERO,
            congestion_control: CongestionControl::new(b"cubic"),
            info: Some(TcpInfo::parse(&record).expect("a record")),
        }
    }

    #[test]
    fn who_has_much_to_send_is_an_upload_until_it_has_rested() {
        let mut uploads = Uploads::default();
        let mut look = |ms: u64, sockets: &[Socket]| {
            let (found, gone) = uploads.look(at(ms), sockets.iter());
            let found: Vec<u64> = found.iter().map(|upload| upload.cookie).collect();
            (found, gone.iter().map(|(cookie, _)| *cookie).collect::<Vec<_>>())
        };
        assert_eq!(look(0, &[socket(1, 5000, 2), socket(2, 0, 40)]), (vec![2], vec![]), "the first was seen first now");
        assert_eq!(look(500, &[socket(1, 5008, 2), socket(2, 400, 0)]), (vec![2], vec![]));
        assert_eq!(look(1000, &[socket(1, 5100, 0), socket(2, 402, 0)]), (vec![1, 2], vec![]));
        assert_eq!(look(1600, &[socket(1, 5100, 0), socket(2, 404, 0)]), (vec![1], vec![2]));
        assert_eq!(look(1700, &[socket(2, 600, 0)]), (vec![2], vec![1]));
        assert_eq!(look(1800, &[]), (vec![], vec![2]));
    }

    #[test]
    fn the_law_is_told_what_the_kernel_tells_in_octets() {
        let mut uploads = Uploads::default();
        let sockets = [socket(1, 100, 30), socket(2, 100, 30)];
        let (found, _) = uploads.look(at(0), sockets.iter());
        let report = found[0].report;
        assert_eq!((report.rtt, report.min_rtt), (Some(Span::from_millis(20)), Some(Span::from_millis(15))));
        assert_eq!((report.cwnd, report.in_flight), (Bytes::new(40 * 1448), Bytes::new(30 * 1448)));
        assert_eq!(report.delivered, Bytes::new(100 * 1448));
        assert_ne!(found[0].report.flow, found[1].report.flow);
        assert_eq!(found[0].report.destination, found[1].report.destination);
        assert_eq!(uploads.clear().len(), 2);
    }

    #[test]
    fn segments_that_become_shorter_have_not_been_so_before() {
        let mut uploads = Uploads::default();
        uploads.look(at(0), std::iter::once(&socket(1, 100, 30)));
        let mut shorter = socket(1, 110, 30);
        shorter.info.as_mut().expect("a record").mss = Bytes::new(1000);
        let (found, _) = uploads.look(at(500), std::iter::once(&shorter));
        assert_eq!(found[0].report.delivered, Bytes::new(100 * 1448 + 10 * 1000));
    }
}
