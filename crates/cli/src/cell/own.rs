//! The own terminal, by a capture of what it received.

use super::account::Known;
use crate::input;
use anyhow::{Context as _, bail};
use lasthop_laws::pbe::{Align, Own};
use lasthop_units::{Bytes, Time};
use lasthop_wire::dci::{Order, Record, Slot};
use lasthop_wire::{ethernet, ip, pcap};
use std::io::Read as _;
use std::net::IpAddr;
use std::path::Path;

/// Link types without a header before that of IP: raw IP, and Linux's and OpenBSD's names for it.
const LINKS_IP: [u32; 4] = [101, 12, 228, 229];
/// Captures of all interfaces at once, and how long their headers are.
const LINKS_COOKED: [(u32, usize); 2] = [(113, 16), (276, 20)];

/// Finds it. `rows` gives every row of the log that is looked at.
pub fn find(
    align: &mut Align,
    mut order: Order,
    traffic: &Path,
    to: Option<IpAddr>,
    rows: impl FnOnce(&mut dyn FnMut(&Record)) -> anyhow::Result<()>,
) -> anyhow::Result<Vec<Known>> {
    arrivals(traffic, to, align)?;
    let mut take = |slot: Slot| align.on_slot(slot.at, &slot.dcis);
    rows(&mut |record| order.push(record, &mut take))?;
    order.finish(&mut take);
    let found =
        align.find().with_context(|| format!("{}: the own terminal is not found in the log", traffic.display()))?;
    Ok(found.into_iter().map(known).collect())
}

fn known(own: Own) -> Known {
    let from = i128::from(own.from.as_nanos()) + i128::from(own.ahead_ns);
    Known { from: Time::from_nanos(u64::try_from(from).unwrap_or(0)), rnti: own.rnti, found: Some(own) }
}

/// What came, when.
fn arrivals(path: &Path, to: Option<IpAddr>, align: &mut Align) -> anyhow::Result<()> {
    let mut file = input::file(path, "the capture", "name a file")?;
    let (mut stream, mut buffer, mut taken, mut all) = (pcap::Stream::new(), vec![0; 1 << 16], 0u64, 0u64);
    loop {
        let count = file.read(&mut buffer).with_context(|| format!("cannot read the capture {}", path.display()))?;
        if count == 0 {
            break;
        }
        stream.push(&buffer[..count]);
        let none = || format!("{} is no capture that can be read", path.display());
        while let Some(packet) = stream.packet().with_context(none)? {
            all += 1;
            let wanted = match to {
                None => true,
                Some(to) => destination(packet.on.link, packet.bytes) == Some(to),
            };
            if wanted {
                taken += 1;
                align.on_arrival(packet.at, Bytes::new(u64::from(packet.original)));
            }
        }
    }
    if let (0, Some(to)) = (taken, to) {
        bail!("{}: none of its {all} packets is for {to}; --to is the address of who received them", path.display());
    }
    Ok(())
}

/// The destination of a packet.
fn destination(link: u32, bytes: &[u8]) -> Option<IpAddr> {
    let cooked = LINKS_COOKED.iter().find(|(number, _)| *number == link).map(|(_, length)| *length);
    let at = match link {
        pcap::LINK_ETHERNET => ethernet::parse(bytes).ok()?.payload_at,
        _ if LINKS_IP.contains(&link) => 0,
        _ => cooked?,
    };
    ip::destination(bytes.get(at..)?)
}
