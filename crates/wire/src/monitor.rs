//! A frame as a monitor interface gives it: radiotap, MAC header, and what they say together.
//!
//! Deviations: in an encrypted A-MSDU the subframes cannot be read; they are taken to be of 1500-octet packets.
//! Checked by: tests/integration/monitor_props.rs, the laws' tests/integration/aggregation_captures.rs

use crate::Error;
use crate::dot11::{self, FrameControl, Header, Kind};
use crate::radiotap::{Ampdu, Flags, Radiotap};
use lasthop_signals::{MacAddress, ReceivedMpdu, Subframe};
use lasthop_units::{Bytes, Span, Time};

/// One captured frame.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Captured<'a> {
    /// What the radio tells.
    pub radiotap: Radiotap,
    /// The frame's header; `None` if the check sequence was wrong or the header is not one.
    pub header: Option<Header>,
    /// What follows the header, without padding, check sequence and what the capture cut off.
    pub body: &'a [u8],
    /// Length of the body on the air.
    pub body_len: usize,
    /// Length of the frame on the air, from header to check sequence.
    pub len: Bytes,
}

impl<'a> Captured<'a> {
    /// Reads a packet of link type 127 (IEEE 802.11 with radiotap). `original` is its length before the capture cut it.
    ///
    /// # Errors
    /// Those of [`Radiotap::parse`]: without that header nothing can be said.
    pub fn parse(packet: &'a [u8], original: usize) -> Result<Captured<'a>, Error> {
        let (radiotap, at) = Radiotap::parse(packet)?;
        let frame = &packet[at..];
        let original = original.max(packet.len()) - at;
        let trailer = if radiotap.has_fcs() { dot11::FCS } else { 0 };
        let len = Bytes::new((original + dot11::FCS - trailer) as u64);
        let none = Captured { radiotap, header: None, body: &[], body_len: 0, len };
        if radiotap.bad_fcs() {
            return Ok(none);
        }
        let Ok((header, mut body_at)) = Header::parse(frame) else { return Ok(none) };
        if radiotap.flags.is_some_and(|flags| flags.has(Flags::DATA_PAD)) {
            body_at = body_at.next_multiple_of(4);
        }
        let end = frame.len().min(original.saturating_sub(trailer));
        let body = frame.get(body_at..end).unwrap_or_default();
        let body_len = original.saturating_sub(body_at + trailer);
        Ok(Captured { radiotap, header: Some(header), body, body_len, len })
    }

    /// The frame as an aggregation meter wants it, if it is a data MPDU with a body, or a damaged part of an A-MPDU.
    pub fn mpdu(&self) -> Option<ReceivedMpdu> {
        let ampdu = self.radiotap.ampdu;
        if ampdu.is_some_and(|ampdu| ampdu.flags & Ampdu::ZERO_LENGTH != 0) {
            return None;
        }
        let mpdu = ReceivedMpdu {
            transmitter: MacAddress([0; 6]),
            receiver: MacAddress([0; 6]),
            ampdu: ampdu.map(|ampdu| Subframe { reference: ampdu.reference, last: ampdu.last() }),
            tid: 0,
            sequence: 0,
            retry: false,
            msdus: 1,
            fcs_good: false,
            tsf: self.radiotap.tsft.map(|us| Time::ZERO + Span::from_nanos(us.saturating_mul(1_000))),
            tx: self.radiotap.tx_vector(),
            len: self.len,
        };
        if self.radiotap.bad_fcs() {
            return ampdu.map(|_| mpdu);
        }
        let header = self.header?;
        let Kind::Data { .. } = header.control.kind() else { return None };
        Some(ReceivedMpdu {
            transmitter: header.transmitter?,
            receiver: header.receiver,
            tid: header.qos.map_or(0, |qos| qos.tid()),
            sequence: header.sequence?.number,
            retry: header.control.has(FrameControl::RETRY),
            msdus: self.msdus(&header),
            fcs_good: true,
            ..mpdu
        })
    }

    fn msdus(&self, header: &Header) -> u16 {
        if !header.qos.is_some_and(dot11::QosControl::is_a_msdu) {
            return 1;
        }
        if header.control.has(FrameControl::PROTECTED) {
            // 14 octets of subframe head, 8 of LLC/SNAP, 2 of padding.
            let guess = self.body_len.saturating_sub(CCMP).div_ceil(1_500 + 14 + dot11::SNAP + 2);
            return u16::try_from(guess.max(1)).unwrap_or(u16::MAX);
        }
        dot11::count_msdus(self.body, self.body_len)
    }
}

/// Header and check value of CCMP.
const CCMP: usize = 16;
