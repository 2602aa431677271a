//! Monitor interfaces of stations: on them the emulated radio shows what a station received, as a real one's driver does.
//!
//! Such an interface is a TAP of link type IEEE802_11_RADIO; what is written to it is a radiotap header, an 802.11 header,
//! LLC/SNAP, the packet and the check sequence. `tcpdump -i mon0` prints it, and a station's agent reads it as it would on
//! hardware. It shows the data frames of all nodes that the station decodes, with signal and noise where the link has a
//! signal-to-noise ratio, and damaged MPDUs with the flag that says so.
//!
//! Deviations: neither beacons nor control frames nor what the station itself sends; of a PPDU that a collision spoiled,
//!             nothing. Of an MPDU that its receiver had already handed up, after an attempt with a lost BlockAck, and
//!             of a neighbour's packets the body is zeros: the emulator has it no more, or never had it. A damaged MPDU
//!             has one wrong octet in its middle.

use crate::address::{HopId, mac};
use crate::error::Result;
use crate::frame::Frame;
use crate::netns::Namespace;
use crate::tap::Tap;
use crate::topology::MONITOR;
use lasthop_radio::AccessClass;
use lasthop_radio::wifi::{Band, Dbm, Hearing, MpduRecord, Params};
use lasthop_signals::phy::TxVector;
use lasthop_signals::{MacAddress, Node};
use lasthop_units::{Bytes, Time};
use lasthop_wire::dot11::{self, FrameControl, Header, QosControl, SequenceControl};
use lasthop_wire::radiotap::{Ampdu, Channel, Flags, Radiotap};

/// A monitor interface.
#[derive(Debug)]
pub struct Monitor {
    /// The station that has it.
    pub station: Node,
    hears: Hears,
    view: View,
    tap: Tap,
    packet: Vec<u8>,
}

/// How much an interface shows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Hears {
    /// Whatever the radio decodes, damaged or not, as with the flags `fcsfail`, `control` and `otherbss` of `iw`.
    All,
    /// Whole frames for the station itself: what comes through a driver's usual filter.
    Own,
}

/// What a monitor interface has shown, as the radio saw it.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Shown {
    /// When its PPDU ended.
    pub at: Time,
    /// The station with the monitor that showed it.
    pub station: Node,
    /// Its sender.
    pub from: Node,
    /// Its receiver.
    pub to: Node,
    /// True if its check sequence was right.
    pub whole: bool,
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
    pub(crate) fn create(host: &Namespace, station: Node, hears: Hears, view: View) -> Result<Monitor> {
        let tap = host.within(|| Tap::create_monitor(MONITOR))?;
        Ok(Monitor { station, hears, view, tap, packet: Vec::with_capacity(2_048) })
    }

    /// Shows an MPDU; `None` if the station has not heard it, or the interface does not show such. An error means that the
    /// interface refused it.
    pub(crate) fn show(&mut self, at: Time, mpdu: &MpduRecord<'_, Frame>) -> Option<std::io::Result<Shown>> {
        let hearing = mpdu.hearers.iter().find(|hearing| hearing.node == self.station)?;
        let own = mpdu.to == self.station && hearing.whole;
        if self.hears == Hears::Own && !own {
            return None;
        }
        self.packet.clear();
        self.view.write(mpdu, hearing, &mut self.packet);
        let (station, whole) = (self.station, hearing.whole);
        let MpduRecord { from, to, ampdu, last, sequence, retry, tx, len, .. } = *mpdu;
        let shown = Shown { at, station, from, to, whole, ampdu, last, sequence, retry, tx, len };
        Some(self.tap.write_packet(&self.packet).map(|()| shown))
    }
}

/// What the records do not say.
#[derive(Clone, Debug)]
pub(crate) struct View {
    hop: HopId,
    band: Band,
    /// By node: whether its data frames have a QoS control field.
    qos: Vec<bool>,
}

impl View {
    /// Of a hop with these nodes.
    pub(crate) fn new(hop: HopId, params: &Params) -> View {
        let nodes = (0..params.nodes.len()).map(|node| Node(u16::try_from(node).unwrap_or(u16::MAX)));
        let qos = nodes.map(|node| params.phy(node).standard.is_qos()).collect();
        View { hop, band: params.standard.band(), qos }
    }

    /// Appends the packet that shows `mpdu`.
    fn write(&self, mpdu: &MpduRecord<'_, Frame>, hearing: &Hearing, out: &mut Vec<u8>) {
        self.radiotap(mpdu, hearing).write(out);
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
        let check = dot11::check_sequence(&out[start..]);
        if !hearing.whole {
            let middle = usize::midpoint(start, out.len());
            out[middle] ^= 0xff;
        }
        out.extend_from_slice(&check);
    }

    fn radiotap(&self, mpdu: &MpduRecord<'_, Frame>, hearing: &Hearing) -> Radiotap {
        let damaged = if hearing.whole { Flags::default() } else { Flags::BAD_FCS };
        let mut radiotap = Radiotap {
            // Of the first symbol of data, as most radios stamp all MPDUs of a PPDU.
            tsft: Some((mpdu.start + mpdu.tx.preamble()).as_nanos() / 1_000),
            flags: Some(Flags(Flags::FCS.0 | damaged.0)),
            channel: Some(channel(self.band)),
            signal: hearing.strength.map(|strength| dbm(strength.signal)),
            noise: hearing.strength.map(|strength| dbm(strength.noise)),
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
        let qos = self.qos.get(mpdu.from.index()).copied().unwrap_or_default();
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

/// In radiotap's whole dBm.
fn dbm(power: Dbm) -> i8 {
    // Saturates; NaN, which no link has, becomes 0.
    power.0.round() as i8
}

/// The channel that an emulated radio says it is on; the model knows the band alone.
fn channel(band: Band) -> Channel {
    match band {
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
    use lasthop_radio::wifi::Strength;
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
            hearers: &[],
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

    fn view() -> View {
        View { hop: HopId(1), band: Band::Ghz5, qos: vec![true, true, true, true, false] }
    }

    #[test]
    fn a_damaged_frame_is_flagged_and_its_check_sequence_is_wrong() {
        let hearing = Hearing { node: Node(2), whole: false, strength: None };
        let record = record(Vec::new(), 1, 1_538);
        let mut packet = Vec::new();
        view().write(&record, &hearing, &mut packet);
        let (radiotap, at) = Radiotap::parse(&packet).expect("just written");
        assert!(radiotap.bad_fcs() && radiotap.signal.is_none());
        let (frame, check) = packet[at..].split_at(packet.len() - at - dot11::FCS);
        assert_eq!(frame.len() + dot11::FCS, 1_538);
        assert_ne!(dot11::check_sequence(frame), check);
        let mpdu = Captured::parse(&packet, packet.len()).expect("just written").mpdu().expect("part of an A-MPDU");
        assert_eq!((mpdu.fcs_good, mpdu.ampdu.map(|subframe| subframe.reference)), (false, Some(12)));
    }

    #[test]
    fn a_legacy_neighbour_sends_no_qos_data() {
        let tx = TxVector::legacy(lasthop_units::Rate::from_mbit(24)).expect("a rate of 802.11a");
        let record = MpduRecord { from: Node(4), to: Node(5), ampdu: None, tx, ..record(Vec::new(), 1, 1_536) };
        let hearing = Hearing { node: Node(1), whole: true, strength: None };
        let mut packet = Vec::new();
        view().write(&record, &hearing, &mut packet);
        let captured = Captured::parse(&packet, packet.len()).expect("just written");
        assert_eq!(captured.header.map(|header| header.control.kind()), Some(dot11::Kind::Data { qos: false }));
        let mpdu = captured.mpdu().expect("a data MPDU");
        assert_eq!((mpdu.tx, mpdu.len, mpdu.ampdu), (Some(tx), Bytes::new(1_536), None));
    }

    #[test]
    fn what_is_shown_reads_as_what_was_received() {
        let mut frame = Pool::default().take();
        frame.set_len(14 + 60);
        frame.bytes_mut().fill(0xab);
        frame.bytes_mut()[12..14].copy_from_slice(&[0x08, 0x00]);
        let view = view();
        let strength = Some(Strength { signal: Dbm(-61.6), noise: Dbm(-87.97) });
        let hearing = Hearing { node: Node(3), whole: true, strength };
        let single = 24 + 2 + 8 + 60 + 4;
        // Two subframes of 14 + 68 octets, the first padded to 84.
        let double = 24 + 2 + 84 + 82 + 4;
        for (payloads, packets, len) in
            [(vec![&frame], 1, single), (vec![], 1, single), (vec![&frame, &frame], 2, double), (vec![], 2, double)]
        {
            let whole = !payloads.is_empty();
            let record = record(payloads, packets, len);
            let mut packet = Vec::new();
            view.write(&record, &hearing, &mut packet);
            let (radiotap, at) = Radiotap::parse(&packet).expect("just written");
            assert_eq!((radiotap.signal, radiotap.noise), (Some(-62), Some(-88)));
            assert!(radiotap.has_fcs() && !radiotap.bad_fcs());
            let (sent, check) = packet[at..].split_at(packet.len() - at - dot11::FCS);
            assert_eq!(dot11::check_sequence(sent), check);
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
