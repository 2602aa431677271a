//! The MAC header.

use crate::{Error, take};
use lasthop_signals::MacAddress;

/// A MAC header. Which fields there are depends on the kind of frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Header {
    /// Kind and flags.
    pub control: FrameControl,
    /// Duration, or association identifier in PS-Poll.
    pub duration: u16,
    /// Address 1.
    pub receiver: MacAddress,
    /// Address 2: not in Ack and CTS.
    pub transmitter: Option<MacAddress>,
    /// Address 3: data and management.
    pub address3: Option<MacAddress>,
    /// Data and management.
    pub sequence: Option<SequenceControl>,
    /// Address 4: data between two distribution systems.
    pub address4: Option<MacAddress>,
    /// QoS data.
    pub qos: Option<QosControl>,
    /// QoS data and management with the +HTC flag.
    pub ht_control: Option<u32>,
}

/// The first two octets.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct FrameControl(pub u16);

/// What sort of frame it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Management, with its subtype.
    Management(u8),
    /// Data with a body.
    Data {
        /// With QoS control.
        qos: bool,
    },
    /// Data type without a body: null function, CF-Ack and the like.
    NoData {
        /// With QoS control.
        qos: bool,
    },
    /// BlockAckReq.
    BlockAckRequest,
    /// BlockAck.
    BlockAck,
    /// RTS.
    Rts,
    /// CTS.
    Cts,
    /// Ack.
    Ack,
    /// Other control frames, with their subtype.
    Control(u8),
    /// Extension frames, with their subtype.
    Extension(u8),
}

/// Number of an MSDU and of its fragment.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SequenceControl {
    /// 0 to 4095.
    pub number: u16,
    /// 0 to 15.
    pub fragment: u8,
}

/// QoS control of a data frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct QosControl(pub u16);

impl FrameControl {
    /// To the distribution system.
    pub const TO_DS: u16 = 0x0100;
    /// From the distribution system.
    pub const FROM_DS: u16 = 0x0200;
    /// More fragments follow.
    pub const MORE_FRAGMENTS: u16 = 0x0400;
    /// Sent before.
    pub const RETRY: u16 = 0x0800;
    /// Encrypted.
    pub const PROTECTED: u16 = 0x4000;
    /// HT control follows (in QoS data and management).
    pub const HTC: u16 = 0x8000;
    /// QoS data with a body.
    pub const QOS_DATA: u16 = 0x0088;
    /// Data with a body, without QoS.
    pub const DATA: u16 = 0x0008;
    /// BlockAck.
    pub const BLOCK_ACK: u16 = 0x0094;
    /// BlockAckReq.
    pub const BLOCK_ACK_REQUEST: u16 = 0x0084;
    /// Ack.
    pub const ACK: u16 = 0x00d4;
    /// Beacon.
    pub const BEACON: u16 = 0x0080;

    /// True if all of `flags` is set.
    pub const fn has(self, flags: u16) -> bool {
        self.0 & flags == flags
    }

    /// What sort of frame it is.
    pub const fn kind(self) -> Kind {
        let subtype = (self.0 >> 4 & 0x0f) as u8;
        match self.0 >> 2 & 0x03 {
            0 => Kind::Management(subtype),
            1 => match subtype {
                8 => Kind::BlockAckRequest,
                9 => Kind::BlockAck,
                11 => Kind::Rts,
                12 => Kind::Cts,
                13 => Kind::Ack,
                other => Kind::Control(other),
            },
            // Bit 2 of the subtype: no body; bit 3: QoS.
            2 if subtype & 0x04 != 0 => Kind::NoData { qos: subtype & 0x08 != 0 },
            2 => Kind::Data { qos: subtype & 0x08 != 0 },
            _ => Kind::Extension(subtype),
        }
    }
}

impl QosControl {
    /// The body is an A-MSDU.
    pub const A_MSDU: u16 = 0x0080;

    /// Traffic identifier.
    pub const fn tid(self) -> u8 {
        (self.0 & 0x0f) as u8
    }

    /// True if the body is an A-MSDU.
    pub const fn is_a_msdu(self) -> bool {
        self.0 & QosControl::A_MSDU != 0
    }
}

impl Header {
    /// Reads a header. Returns it with its length: the body begins there.
    ///
    /// # Errors
    /// [`Error::Truncated`] if the frame ends before its header does, [`Error::Dot11Version`] for another version.
    pub fn parse(frame: &[u8]) -> Result<(Header, usize), Error> {
        let mut reader = Reader { frame, at: 0 };
        let control = FrameControl(reader.u16()?);
        if control.0 & 0x03 != 0 {
            return Err(Error::Dot11Version((control.0 & 0x03) as u8));
        }
        let (duration, receiver) = (reader.u16()?, reader.address()?);
        let mut header = Header {
            control,
            duration,
            receiver,
            transmitter: None,
            address3: None,
            sequence: None,
            address4: None,
            qos: None,
            ht_control: None,
        };
        match control.kind() {
            Kind::Ack | Kind::Cts | Kind::Control(CONTROL_WRAPPER) | Kind::Extension(_) => (),
            Kind::Rts | Kind::BlockAck | Kind::BlockAckRequest | Kind::Control(_) => {
                header.transmitter = Some(reader.address()?);
            }
            Kind::Management(_) => {
                header.read_addressed(&mut reader)?;
                if control.has(FrameControl::HTC) {
                    header.ht_control = Some(reader.u32()?);
                }
            }
            Kind::Data { qos } | Kind::NoData { qos } => {
                header.read_addressed(&mut reader)?;
                if control.has(FrameControl::TO_DS | FrameControl::FROM_DS) {
                    header.address4 = Some(reader.address()?);
                }
                if qos {
                    header.qos = Some(QosControl(reader.u16()?));
                    // Without QoS the same flag asks for strict order.
                    if control.has(FrameControl::HTC) {
                        header.ht_control = Some(reader.u32()?);
                    }
                }
            }
        }
        Ok((header, reader.at))
    }

    fn read_addressed(&mut self, reader: &mut Reader) -> Result<(), Error> {
        self.transmitter = Some(reader.address()?);
        self.address3 = Some(reader.address()?);
        let sequence = reader.u16()?;
        self.sequence = Some(SequenceControl { number: sequence >> 4, fragment: (sequence & 0x0f) as u8 });
        Ok(())
    }

    /// Appends the header to `out`: the fields that are there, in their order. Reading gives the same header again if
    /// the fields are those that [`FrameControl`] promises.
    pub fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.control.0.to_le_bytes());
        out.extend_from_slice(&self.duration.to_le_bytes());
        out.extend_from_slice(&self.receiver.0);
        for address in [self.transmitter, self.address3].into_iter().flatten() {
            out.extend_from_slice(&address.0);
        }
        if let Some(SequenceControl { number, fragment }) = self.sequence {
            out.extend_from_slice(&(number << 4 | u16::from(fragment & 0x0f)).to_le_bytes());
        }
        if let Some(address) = self.address4 {
            out.extend_from_slice(&address.0);
        }
        if let Some(qos) = self.qos {
            out.extend_from_slice(&qos.0.to_le_bytes());
        }
        if let Some(ht_control) = self.ht_control {
            out.extend_from_slice(&ht_control.to_le_bytes());
        }
    }

    /// Destination and source of a data frame's MSDU (table 9-30); `None` where the A-MSDU's subframes say it.
    pub fn ends(&self) -> Option<(MacAddress, MacAddress)> {
        let (to, from) = (self.control.has(FrameControl::TO_DS), self.control.has(FrameControl::FROM_DS));
        if self.qos.is_some_and(QosControl::is_a_msdu) {
            return None;
        }
        match (to, from) {
            (false, false) => Some((self.receiver, self.transmitter?)),
            (false, true) => Some((self.receiver, self.address3?)),
            (true, false) => Some((self.address3?, self.transmitter?)),
            (true, true) => Some((self.address3?, self.address4?)),
        }
    }
}

/// Carries another control frame behind an HT control field of its own.
const CONTROL_WRAPPER: u8 = 7;

struct Reader<'a> {
    frame: &'a [u8],
    at: usize,
}

impl Reader<'_> {
    fn bytes<const N: usize>(&mut self) -> Result<[u8; N], Error> {
        let found = take(self.frame, self.at);
        self.at += N;
        found.ok_or(Error::Truncated { needed: self.at, got: self.frame.len() })
    }

    fn u16(&mut self) -> Result<u16, Error> {
        self.bytes().map(u16::from_le_bytes)
    }

    fn u32(&mut self) -> Result<u32, Error> {
        self.bytes().map(u32::from_le_bytes)
    }

    fn address(&mut self) -> Result<MacAddress, Error> {
        self.bytes().map(MacAddress)
    }
}
