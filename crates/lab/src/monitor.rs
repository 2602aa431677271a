//! Monitor interfaces of stations: on them the emulated radio shows what a station received, as a real one's driver does.
//!
//! Such an interface is a TAP of link type IEEE802_11_RADIO; what is written to it is a radiotap header, an 802.11 header,
//! LLC/SNAP and the packet. `tcpdump -i mon0` prints it, and a station's agent reads it as it would on hardware.
//!
//! Deviations: data frames addressed to the station alone, those with a wrong check sequence left out, as most drivers do;
//!             neither beacons nor control frames. Of an MPDU that the station had already handed up, after an attempt
//!             whose BlockAck was lost, the body is zeros: the emulator has it no more.

use crate::address::{HopId, mac};
use crate::error::Result;
use crate::frame::Frame;
use crate::netns::Namespace;
use crate::tap::Tap;
use crate::topology::MONITOR;
use lasthop_radio::wifi::{Band, Standard};
use lasthop_radio::{AccessClass, MpduRecord};
use lasthop_signals::phy::TxVector;
use lasthop_signals::{MacAddress, Node};
use lasthop_units::{Bytes, Time};
use lasthop_wire::dot11::{self, FrameControl, Header, QosControl, SequenceControl};
use lasthop_wire::radiotap::{Ampdu, Channel, Flags, Radiotap};

/// A monitor interface.
#[derive(Debug)]
pub struct Monitor {
    /// Whose it is.
    pub station: Node,
    view: View,
    tap: Tap,
    packet: Vec<u8>,
}

/// What a monitor interface has shown, as the radio saw it.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Shown {
    /// When its PPDU ended.
    pub at: Time,
    /// Whose monitor showed it.
    pub station: Node,
    /// Who sent it.
    pub from: Node,
    /// Number of its A-MPDU.
    pub ampdu: Option<u32>,
    /// True for the last of its A-MPDU.
    pub last: bool,
    /// Sequence number.
    pub sequence: u16,
    /// True if it had been sent before.
    pub retry: bool,
    /// How it was sent.
    pub tx: TxVector,
    /// From MAC header to check sequence.
    pub len: Bytes,
}

impl Monitor {
    /// Makes the interface in the station's namespace `host` and takes it up.
    pub(crate) fn create(host: &Namespace, station: Node, hop: HopId, standard: Standard) -> Result<Monitor> {
        let tap = host.within(|| Tap::create_monitor(MONITOR))?;
        Ok(Monitor { station, view: View { hop, standard }, tap, packet: Vec::with_capacity(2_048) })
    }

    /// Shows an MPDU; `None` if it was damaged or is not for this station. An error means that the interface refused it.
    pub(crate) fn show(&mut self, at: Time, mpdu: &MpduRecord<'_, Frame>) -> Option<std::io::Result<Shown>> {
        if mpdu.to != self.station || !mpdu.received {
            return None;
        }
        self.packet.clear();
        self.view.write(mpdu, &mut self.packet);
        let MpduRecord { from, ampdu, last, sequence, retry, tx, len, .. } = *mpdu;
        let shown = Shown { at, station: self.station, from, ampdu, last, sequence, retry, tx, len };
        Some(self.tap.write_packet(&self.packet).map(|()| shown))
    }
}

/// What the records do not say.
#[derive(Clone, Copy, Debug)]
struct View {
    hop: HopId,
    standard: Standard,
}

impl View {
    /// Appends the packet that shows `mpdu`.
    fn write(&self, mpdu: &MpduRecord<'_, Frame>, out: &mut Vec<u8>) {
        self.radiotap(mpdu).write(out);
        let start = out.len();
        self.header(mpdu).write(out);
        let body = out.len();
        let end = start + usize::try_from(mpdu.len.get()).unwrap_or(0).saturating_sub(dot11::FCS);
        match mpdu.payloads.as_slice() {
            [frame] if mpdu.packets == 1 => out.extend_from_slice(&msdu(frame)),
            frames if frames.len() == usize::from(mpdu.packets) => {
                for frame in frames {
                    let [destination, source] = ends(frame);
                    dot11::write_subframe(out, body, destination, source, &msdu(frame));
                }
            }
            // Handed up already: as many subframes of zeros as there were packets.
            _ if mpdu.packets > 1 => {
                let each = end.saturating_sub(body) / usize::from(mpdu.packets);
                let zeros = vec![0; each.saturating_sub(dot11::SUBFRAME_HEAD + 3)];
                let nobody = MacAddress([0; 6]);
                (0..mpdu.packets).for_each(|_| dot11::write_subframe(out, body, nobody, nobody, &zeros));
            }
            _ => (),
        }
        // Zeros for what is missing, and nothing beyond the length on the air.
        out.resize(end.max(body), 0);
    }

    fn radiotap(&self, mpdu: &MpduRecord<'_, Frame>) -> Radiotap {
        let mut radiotap = Radiotap {
            // Of the first symbol of data, as most radios stamp all MPDUs of a PPDU.
            tsft: Some((mpdu.start + mpdu.tx.preamble()).as_nanos() / 1_000),
            flags: Some(Flags::default()),
            channel: Some(channel(self.standard)),
            ampdu: mpdu.ampdu.map(|reference| Ampdu {
                reference,
                flags: Ampdu::LAST_KNOWN | if mpdu.last { Ampdu::LAST } else { 0 },
                delimiter_crc: 0,
            }),
            ..Radiotap::default()
        };
        radiotap.set_tx_vector(mpdu.tx);
        radiotap
    }

    fn header(&self, mpdu: &MpduRecord<'_, Frame>) -> Header {
        let address = |node| MacAddress(mac(self.hop, node));
        let qos = self.standard.is_qos();
        let downlink = mpdu.from < mpdu.to;
        let (kind, direction) = (
            if qos { FrameControl::QOS_DATA } else { FrameControl::DATA },
            if downlink { FrameControl::FROM_DS } else { FrameControl::TO_DS },
        );
        let retry = if mpdu.retry { FrameControl::RETRY } else { 0 };
        Header {
            control: FrameControl(kind | direction | retry),
            duration: u16::try_from(mpdu.reserves.as_nanos().div_ceil(1_000))
                .unwrap_or(MOST_DURATION)
                .min(MOST_DURATION),
            receiver: address(mpdu.to),
            transmitter: Some(address(mpdu.from)),
            // Access points of the lab route: the source, or destination, of the MSDU is the access point itself.
            address3: Some(address(if downlink { mpdu.from } else { mpdu.to })),
            sequence: Some(SequenceControl { number: mpdu.sequence, fragment: 0 }),
            address4: None,
            qos: qos.then_some(QosControl(tid(mpdu.class) | if mpdu.packets > 1 { QosControl::A_MSDU } else { 0 })),
            ht_control: None,
        }
    }
}

/// LLC/SNAP and packet.
fn msdu(frame: &Frame) -> Vec<u8> {
    let mut msdu = Vec::with_capacity(dot11::SNAP + frame.packet().len());
    dot11::write_snap(&mut msdu, frame.ethertype());
    msdu.extend_from_slice(frame.packet());
    msdu
}

/// Destination and source of an Ethernet frame.
fn ends(frame: &Frame) -> [MacAddress; 2] {
    [0, 6].map(|at| MacAddress(frame.bytes().get(at..).and_then(<[u8]>::first_chunk).copied().unwrap_or_default()))
}

/// Largest value of a duration field.
const MOST_DURATION: u16 = 32_767;

/// The channel that an emulated radio says it is on; the model knows the band alone.
fn channel(standard: Standard) -> Channel {
    match standard.band() {
        Band::Ghz2_4 => Channel { mhz: 2_412, flags: Channel::GHZ2 | Channel::OFDM },
        Band::Ghz5 => Channel { mhz: 5_180, flags: Channel::GHZ5 | Channel::OFDM },
    }
}

/// The traffic identifier, as user priority, that stands for an access category (table 10-1).
fn tid(class: AccessClass) -> u16 {
    match class {
        AccessClass::Background => 1,
        AccessClass::BestEffort => 0,
        AccessClass::Video => 5,
        AccessClass::Voice => 6,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::Pool;
    use lasthop_signals::phy::{Format, GuardInterval, Width};
    use lasthop_units::Span;
    use lasthop_wire::monitor::Captured;

    fn record(payloads: Vec<&Frame>, packets: u16, len: u64) -> MpduRecord<'_, Frame> {
        MpduRecord {
            start: Time::ZERO + Span::from_millis(7),
            from: Node(0),
            to: Node(3),
            class: AccessClass::Voice,
            ampdu: Some(12),
            last: true,
            sequence: 4_095,
            retry: true,
            received: true,
            tx: TxVector {
                format: Format::Vht,
                mcs: 9,
                nss: 3,
                width: Width::Mhz80,
                guard_interval: GuardInterval::Ns400,
            },
            len: Bytes::new(len),
            reserves: Span::from_micros(44),
            packets,
            payloads,
        }
    }

    #[test]
    fn what_is_shown_reads_as_what_was_received() {
        let mut frame = Pool::default().take();
        frame.set_len(14 + 60);
        frame.bytes_mut().fill(0xab);
        frame.bytes_mut()[12..14].copy_from_slice(&[0x08, 0x00]);
        let view = View { hop: HopId(1), standard: Standard::Dot11ac };
        let single = 24 + 2 + 8 + 60 + 4;
        // Two subframes of 14 + 68 octets, the first padded to 84.
        let double = 24 + 2 + 84 + 82 + 4;
        for (payloads, packets, len) in
            [(vec![&frame], 1, single), (vec![], 1, single), (vec![&frame, &frame], 2, double), (vec![], 2, double)]
        {
            let whole = !payloads.is_empty();
            let record = record(payloads, packets, len);
            let mut packet = Vec::new();
            view.write(&record, &mut packet);
            let captured = Captured::parse(&packet, packet.len()).expect("just written");
            let mpdu = captured.mpdu().expect("a data MPDU");
            assert_eq!((mpdu.transmitter.0, mpdu.receiver.0), (mac(HopId(1), Node(0)), mac(HopId(1), Node(3))));
            assert_eq!((mpdu.sequence, mpdu.retry, mpdu.tid, mpdu.msdus), (4_095, true, 6, packets));
            assert_eq!((mpdu.tx, mpdu.len), (Some(record.tx), record.len));
            assert_eq!(mpdu.ampdu.map(|subframe| (subframe.reference, subframe.last)), Some((12, Some(true))));
            // 7 ms, and 52 us of VHT preamble with four training fields.
            assert_eq!(mpdu.tsf, Some(Time::ZERO + Span::from_micros(7_052)));
            let header = captured.header.expect("a header");
            assert_eq!(header.duration, 44);
            let msdus: Vec<&[u8]> = match packets {
                1 => vec![captured.body],
                _ => dot11::Subframes::new(captured.body).map(|subframe| subframe.msdu).collect(),
            };
            for msdu in msdus.into_iter().filter(|_| whole) {
                assert_eq!(dot11::snap_ethertype(msdu), Some(0x0800));
                assert_eq!(&msdu[dot11::SNAP..], frame.packet());
            }
        }
    }
}
