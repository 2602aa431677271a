//! The newer format: sections of blocks.

use super::{Clock, Found, Interface, Step};
use crate::{Error, take};
use pcap_parser::traits::PcapNGPacketBlock as _;
use pcap_parser::{Block, InterfaceDescriptionBlock, parse_block_be, parse_block_le};

/// Type of a section header: the same in both byte orders.
pub(super) const SECTION: u32 = 0x0a0d_0d0a;

/// Where we are in a file.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Ng {
    big_endian: bool,
    /// Interfaces of the sections before this one.
    before: usize,
    /// Blocks that have been read.
    blocks: u64,
}

impl Ng {
    /// Reads a block; `next` is the number of the next packet.
    pub(super) fn step(&mut self, bytes: &[u8], interfaces: &mut Vec<Interface>, next: u64) -> Result<Step, Error> {
        let damaged = Error::PcapngBlock { block: self.blocks + 1 };
        let (Some(kind), Some(len)) = (take(bytes, 0).map(u32::from_be_bytes), take(bytes, 4)) else {
            return Ok(Step::Short);
        };
        if kind == SECTION {
            self.big_endian = match take(bytes, 8).map(u32::from_be_bytes) {
                None => return Ok(Step::Short),
                Some(BYTE_ORDER) => true,
                Some(order) if order.swap_bytes() == BYTE_ORDER => false,
                Some(_) => return Err(damaged),
            };
        }
        let len = if self.big_endian { u32::from_be_bytes(len) } else { u32::from_le_bytes(len) } as usize;
        if !(SHORTEST..=LONGEST).contains(&len) {
            return Err(damaged);
        }
        let Some(bytes) = bytes.get(..len) else { return Ok(Step::Short) };
        let parse = if self.big_endian { parse_block_be } else { parse_block_le };
        let Ok(([], block)) = parse(bytes) else { return Err(damaged) };
        self.blocks += 1;
        Ok(match block {
            Block::SectionHeader(_) => {
                self.before = interfaces.len();
                Step::Passed(len)
            }
            Block::InterfaceDescription(description) => {
                interfaces.push(interface(&description).ok_or(damaged)?);
                Step::Passed(len)
            }
            Block::EnhancedPacket(packet) => {
                let known = usize::try_from(packet.if_id).ok().and_then(|id| self.before.checked_add(id));
                let unknown = Error::PcapngInterface { packet: next, interface: packet.if_id };
                let place = known.filter(|place| *place < interfaces.len()).ok_or(unknown)?;
                let ticks = u64::from(packet.ts_high) << 32 | u64::from(packet.ts_low);
                let (at, end) = (interfaces[place].clock.time(ticks), PACKET + packet.packet_data().len());
                let found = Found { at, place: PACKET..end, original: packet.origlen, interface: place };
                Step::Packet(len, found)
            }
            Block::SimplePacket(_) => Step::Untimed(len),
            _ => Step::Passed(len),
        })
    }
}

/// `None` if its clock has a resolution that no 64 bits can count.
fn interface(description: &InterfaceDescriptionBlock<'_>) -> Option<Interface> {
    let exponent = u32::from(description.if_tsresol & !BINARY);
    // The library's own reckoning knows no powers of two.
    let ticks = match description.if_tsresol & BINARY {
        0 => 10u64.checked_pow(exponent)?,
        _ => 2u64.checked_pow(exponent)?,
    };
    let link = u32::from(description.linktype.0 as u16);
    let name = description.if_name().and_then(Result::ok).map(str::to_owned);
    let clock = Clock { ticks, offset: description.if_tsoffset };
    Some(Interface { link, snap: description.snaplen, name, clock })
}

/// Tells the byte order of a section.
const BYTE_ORDER: u32 = 0x1a2b_3c4d;
/// In a clock's resolution: a power of two, not of ten.
const BINARY: u8 = 0x80;
/// Octets of an enhanced packet block before the packet.
const PACKET: usize = 28;
/// Octets of the shortest block, and of the longest that is believed: what Wireshark reads at most.
const SHORTEST: usize = 12;
const LONGEST: usize = 16 << 20;
