//! A protocol that acts at every hop: datagrams to UDP port 4950 count the hops that they pass, and add up their delays.

use lasthop_agents::relay::{Config, PerHop, Relay, Verdict};
use lasthop_agents::service::stop_on_signals;
use lasthop_units::Span;
use lasthop_wire::{checksum, ip};

const PORT: u16 = 4950;

/// Payload begins with the number of hops, and the sum of their delays in microseconds, four octets each.
pub struct PathDelay;

impl PerHop for PathDelay {
    fn leaves(&mut self, packet: &mut Vec<u8>, own: Option<Span>) -> Verdict {
        let Ok(header) = ip::parse(packet) else { return Verdict::Pass };
        let datagram = &mut packet[header.payload_at..header.payload_at + header.payload_len];
        let is_ours = header.protocol == ip::UDP && !header.fragment && datagram.len() >= 16;
        if !is_ours || datagram[2..4] != PORT.to_be_bytes() {
            return Verdict::Pass;
        }
        add(&mut datagram[8..12], 1);
        add(&mut datagram[12..16], own.map_or(0, |own| own.as_micros() as u32));
        datagram[6..8].fill(0);
        let sum = checksum::transport(header.source, header.destination, ip::UDP, datagram);
        datagram[6..8].copy_from_slice(&if sum == 0 { u16::MAX } else { sum }.to_be_bytes());
        Verdict::Changed
    }
}

fn add(octets: &mut [u8], more: u32) {
    let before = octets.iter().fold(0, |sum: u32, octet| sum << 8 | u32::from(*octet));
    octets.copy_from_slice(&before.saturating_add(more).to_be_bytes());
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let devices = std::env::args().skip(1).collect();
    let config = Config { say: |line| eprintln!("{line}"), ..Config::new(devices) };
    let relay = Relay::open_with(&config, Box::new(PathDelay))?;
    println!("ready");
    let summary = relay.run(stop_on_signals()?)?;
    println!("{:?}", summary.handled);
    Ok(())
}
