//! What must hold on any bytes, a function for each fuzz target of this crate. A function panics
//! where it does not hold.
//!
//! No parser panics; the functions say what must hold besides. `fuzz/README.md` says how they are
//! run.

#[cfg(test)]
#[path = "../../../../fuzz/seeds.rs"]
mod seeds;
#[cfg(test)]
mod tests;

use crate::datagram::{Datagram, preamble, sealed};
use crate::delivery::DeliveryTrace;
use crate::dot11::{BlockAck, BlockAckRequest, Kind, Subframes, count_msdus, snap_ethertype};
use crate::monitor::Captured;
use crate::nl80211::{Interface, Station, Survey, family};
use crate::nla::Attributes;
use crate::notice::signed;
use crate::olsr::{Aliases, Hello, Networks, Packet, TopologyControl};
use crate::radiotap::Radiotap;
use crate::sock_diag::Messages;
use crate::tcp_info::TcpInfo;
use crate::{FlowKey, Link, TcpPacket, atp, datagram, dot11, driver, ethernet, ip, notice, tcp};
use lasthop_units::Span;

/// An ATP packet: a header that is read is written as it was; a relay raises D or changes nothing.
pub fn atp(bytes: &[u8]) {
    let read = atp::Header::decode(bytes);
    if let Ok((header, payload)) = &read {
        let mut again = Vec::new();
        header.encode(&mut again);
        again.extend_from_slice(payload);
        assert_eq!(again, bytes);
    }
    let (mut raised, own) = (bytes.to_vec(), Span::from_millis(7));
    atp::raise_delay(&mut raised, own);
    match read {
        Ok((header, _)) => {
            assert_eq!(atp::Header::decode(&raised).expect("still one").0.delay, header.delay.max(own));
        }
        Err(_) => assert_eq!(raised, bytes),
    }
}

/// A datagram of `lasthop send`: what is read means the same when it is written again; a relay
/// changes D alone; a seal and a tunnel's preamble come off as they were put on.
pub fn datagram(bytes: &[u8]) {
    if let Ok(read) = Datagram::decode(bytes) {
        let mut again = Vec::new();
        if read.encode(&mut again).is_ok() {
            assert_eq!(Datagram::decode(&again), Ok(read));
        }
    }
    let mut raised = bytes.to_vec();
    if datagram::raise_delay(&mut raised, Span::from_millis(7)) {
        assert_eq!((&raised[..4], &raised[8..]), (&bytes[..4], &bytes[8..]));
    } else {
        assert_eq!(raised, bytes);
    }
    if let Ok((delay, inner)) = preamble::strip(bytes) {
        assert_eq!([preamble::preamble(delay).as_slice(), inner].concat(), bytes);
    }
    let _ = sealed::open(bytes);
    if bytes.len() >= 8 {
        let mut out = bytes.to_vec();
        sealed::seal(&mut out, 0, 5, |parts| [parts.concat().len() as u8; sealed::TAG_LEN]);
        let open = sealed::open(&out).expect("long enough");
        assert_eq!((open.body, open.number), (bytes, 5));
        assert_eq!(open.tag, [open.covered.concat().len() as u8; sealed::TAG_LEN]);
    }
}

/// A packet-delivery trace: one that is read is written as text that reads the same; its
/// opportunities can be counted.
pub fn delivery(bytes: &[u8]) {
    if let Ok(trace) = DeliveryTrace::parse(bytes) {
        assert_eq!(DeliveryTrace::parse(trace.to_text().as_bytes()).as_ref(), Ok(&trace));
        let n = trace.until(trace.opportunity(3 * trace.len() as u64));
        assert!(trace.opportunity(n) > trace.opportunity(n - 1));
    }
}

/// An 802.11 frame: a header that is read is written as it was, a BlockAck and its request mean
/// the same when they are written again; no more subframes are found than fit.
pub fn dot11(bytes: &[u8]) {
    let Ok((header, len)) = dot11::Header::parse(bytes) else { return };
    let mut written = Vec::new();
    header.write(&mut written);
    assert_eq!(written, bytes[..len], "every field of a header is kept");
    let _ = header.ends();
    let body = &bytes[len..];
    let _ = snap_ethertype(body);
    match header.control.kind() {
        Kind::BlockAck => {
            if let Ok(read) = BlockAck::parse(body) {
                let mut again = Vec::new();
                read.write(&mut again);
                assert_eq!(BlockAck::parse(&again), Ok(read));
            }
        }
        Kind::BlockAckRequest => {
            if let Ok(read) = BlockAckRequest::parse(body) {
                let mut again = Vec::new();
                read.write(&mut again);
                assert_eq!(BlockAckRequest::parse(&again), Ok(read));
            }
        }
        _ => {
            let whole = Subframes::new(body).count();
            assert!(whole <= body.len() / 14 + 1);
            assert!(count_msdus(body, body.len()) >= 1 && count_msdus(body, 12_000) >= 1);
        }
    }
}

/// A driver record, of an access point or of a node: it is of one kind, and means the same when
/// it is written again.
pub fn driver(bytes: &[u8]) {
    if let Ok(record) = driver::decode(bytes) {
        let message = driver::encode(&record).expect("as many stations as were read");
        assert_eq!(driver::decode(&message), Ok(record));
    }
    if let Ok(record) = driver::decode_node(bytes) {
        assert!(driver::decode(bytes).is_err(), "a message is of one kind");
        assert_eq!(driver::decode_node(&driver::encode_node(&record)), Ok(record));
    }
}

/// The kernel's messages of a wireless interface, its survey and its stations: no more attributes
/// are found than fit, and a station's address is in the bytes.
pub fn nl80211(bytes: &[u8]) {
    assert!(Attributes::new(bytes).count() <= bytes.len() / 4 + 1);
    let _ = (family(bytes), Interface::parse(bytes), Survey::parse(bytes));
    if let Ok(Some(station)) = Station::parse(bytes) {
        assert!(bytes.windows(6).any(|six| six == station.address));
    }
}

/// A terminal's notice, signed or not: what is read is written as it was.
pub fn notice(bytes: &[u8]) {
    if let Ok(read) = notice::decode(bytes) {
        assert_eq!(notice::encode(&read), bytes);
    }
    if let Ok(read) = signed::decode(bytes) {
        assert_eq!(signed::encode(&read.notice, read.sent_ms, |_| read.tag), bytes);
    }
}

/// An OLSR packet: one that is read is written as it was; its messages mean the same when they
/// are written again.
pub fn olsr(bytes: &[u8]) {
    let Ok(packet) = Packet::decode(bytes) else { return };
    assert_eq!(packet.encode().as_deref(), Ok(bytes));
    for message in &packet.messages {
        if let Ok(hello) = Hello::decode(message.body) {
            assert_eq!(Hello::decode(&hello.encode().expect("as short")), Ok(hello));
        }
        if let Ok(tc) = TopologyControl::decode(message.body) {
            assert_eq!(TopologyControl::decode(&tc.encode()), Ok(tc));
        }
        if let Ok(aliases) = Aliases::decode(message.body) {
            assert_eq!(aliases.encode(), message.body);
        }
        if let Ok(networks) = Networks::decode(message.body) {
            assert_eq!(networks.encode(), message.body);
        }
    }
}

/// A frame, an IP packet, a TCP segment: a rewritten window is read back and leaves the checksum
/// as valid as it was; a packet that is marked stays marked; a capacity option means the same
/// when it is written again.
pub fn packet(bytes: &[u8]) {
    let _ = ethernet::parse(bytes);
    if let Ok((header, _)) = tcp::parse(bytes)
        && let Some(capacity) = header.options.capacity
    {
        let options = tcp::TcpOptions { capacity: Some(capacity), ..tcp::TcpOptions::default() };
        let mut written = Vec::new();
        tcp::write(&mut written, &tcp::TcpHeader { options, ..header }).expect("eight octets fit");
        let (again, _) = tcp::parse(&written).expect("it is well formed");
        assert_eq!(again.options, options);
    }
    let _ = FlowKey::of_packet(bytes).map(|flow| flow.hash());
    let mut scratch = bytes.to_vec();
    if ip::mark_ce(&mut scratch) {
        assert!(ip::mark_ce(&mut scratch), "a marked packet is marked");
    }
    for link in [Link::Ethernet, Link::Ip] {
        let Ok(Some(found)) = TcpPacket::parse(bytes, link) else { continue };
        let mut rewritten = bytes.to_vec();
        found.set_window(&mut rewritten, found.header.window / 2);
        let again = TcpPacket::parse(&rewritten, link).expect("still well formed").expect("still a segment");
        assert_eq!(again.header.window, found.header.window / 2);
        assert_eq!(again.checksum_is_valid(&rewritten), found.checksum_is_valid(bytes));
    }
}

/// A packet of a monitor interface: its header and its rate mean the same when they are written
/// again; an MPDU holds an MSDU and has a number that can be.
pub fn radiotap(bytes: &[u8]) {
    if let Ok((radiotap, len)) = Radiotap::parse(bytes) {
        assert!(len <= bytes.len());
        let mut written = Vec::new();
        radiotap.write(&mut written);
        assert_eq!(Radiotap::parse(&written), Ok((radiotap, written.len())));
        if let Some(tx) = radiotap.tx_vector().filter(|tx| tx.rate().is_some()) {
            let mut other = radiotap;
            other.set_tx_vector(tx);
            assert_eq!(other.tx_vector(), Some(tx));
        }
    }
    for original in [bytes.len(), 4_000] {
        if let Ok(captured) = Captured::parse(bytes, original) {
            assert!(captured.mpdu().is_none_or(|mpdu| mpdu.msdus >= 1 && mpdu.sequence < 4_096));
        }
    }
}

/// The kernel's list of TCP sockets, and a `tcp_info`: no more messages are found than fit, and
/// the last field is read where it is there.
pub fn sock_diag(bytes: &[u8]) {
    assert!(Messages::new(bytes).count() <= bytes.len() / 16 + 1);
    if let Ok(info) = TcpInfo::parse(bytes) {
        assert_eq!(info.rcv_wnd.is_some(), bytes.len() >= 236);
    }
}
