//! Captures of the reference data as what a socket on the station would have seen.
//!
//! *Real*: written on the station itself; the time of each record is the one at which its kernel was handed that MPDU, one by
//! one as they end on the air. mac80211 passes packets up in order (IEEE 802.11-2020, 10.25.6.6; Linux
//! `ieee80211_sta_manage_reorder_buf`): an MPDU behind a hole waits for the repetition, at most 100 ms
//! (`HT_RX_REORDER_BUF_TIMEOUT`), and one that came before is dropped. A packet's stamp is the record's of the MPDU that let
//! it go. *Synthetic*: made by ns-3, all MPDUs of a frame stamped at its end; the host is then that of the simulated traces.

use super::{Case, Received, Trace};
use lasthop_signals::MacAddress;
use lasthop_units::{Span, Time};
use lasthop_wire::{monitor::Captured, pcap};
use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::PathBuf;

/// 802.11n at 20 MHz on both sides of an ath9k link: the one real capture with A-MPDU references.
pub const REAL: &str = "wifi_minstrel_blues_set/carambola2/carambola2-1-1-d10-10M-1.pcap";
/// Of the synthetic ones, the one for training.
pub const SYNTHETIC: &str = "wifi_ns3/vht_nss1_mcs4_n1_sta0.pcap";
/// And those that judge.
pub const SYNTHETIC_HELD_OUT: [&str; 2] =
    ["wifi_ns3/vht_nss2_mcs7_n3_sta0.pcap", "wifi_ns3/he_nss2_mcs11_n1_sta0.pcap"];

/// Window of a BlockAck agreement, and how long a hole is waited for.
const WINDOW: u16 = 64;
const PATIENCE: Span = Span::from_millis(100);

/// A data MPDU of the stream.
#[derive(Clone, Copy, Debug)]
pub struct Mpdu {
    /// Since the first packet of the capture.
    pub at: Time,
    /// The radio's own stamp.
    pub tsf: Option<Time>,
    pub sequence: u16,
    /// Number of its A-MPDU, counted from 1: these captures' references change from each to the next.
    pub frame: u32,
}

/// The MPDUs in A-MPDUs of the stream that has most of them. `None`, said loudly, if the reference data is not there.
pub fn read(path: &str) -> Option<Vec<Mpdu>> {
    let root = match std::env::var_os("LASTHOP_REFERENCE") {
        Some(root) => PathBuf::from(root),
        None => PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/reference"),
    };
    let path = root.join("captures").join(path);
    let Ok(bytes) = std::fs::read(&path) else {
        // Past the capture of test output.
        let _ =
            writeln!(std::io::stderr(), "SKIPPED: reference data absent: {} (set LASTHOP_REFERENCE)", path.display());
        return None;
    };
    let mut streams: BTreeMap<(MacAddress, MacAddress, u8), Vec<(Mpdu, u32)>> = BTreeMap::new();
    let mut first = None;
    let mut capture = pcap::Stream::of(&bytes);
    while let Some(packet) = capture.packet().expect("a pcap file") {
        let start = *first.get_or_insert(packet.at);
        let captured = Captured::parse(packet.bytes, packet.original as usize).expect("a radiotap header");
        let Some(mpdu) = captured.mpdu().filter(|mpdu| mpdu.fcs_good) else { continue };
        let Some(subframe) = mpdu.ampdu else { continue };
        let stream = streams.entry((mpdu.transmitter, mpdu.receiver, mpdu.tid)).or_default();
        let frame = match stream.last() {
            Some((last, reference)) => last.frame + u32::from(*reference != subframe.reference),
            None => 1,
        };
        let at = Time::ZERO + packet.at.since(start);
        stream.push((Mpdu { at, tsf: mpdu.tsf, sequence: mpdu.sequence, frame }, subframe.reference));
    }
    let most = streams.into_values().max_by_key(Vec::len)?;
    Some(most.into_iter().map(|(mpdu, _)| mpdu).collect())
}

/// When each packet leaves the reordering of a BlockAck agreement, in order, with the frame that it came in.
pub fn reordered(mpdus: &[Mpdu]) -> Vec<Received> {
    let mut out = Vec::new();
    let Some(first) = mpdus.first() else { return out };
    // Distance of a sequence number from the next one expected, modulo 4096.
    let ahead = |sequence: u16, next: u16| sequence.wrapping_sub(next) & 0xfff;
    let mut next = first.sequence;
    let mut waiting: BTreeMap<u16, (Time, u32)> = BTreeMap::new();
    for mpdu in mpdus {
        while let Some((&sequence, &(came, _))) = waiting.iter().min_by_key(|(sequence, _)| ahead(**sequence, next)) {
            if came + PATIENCE > mpdu.at {
                break;
            }
            next = sequence;
            release(&mut waiting, &mut next, came + PATIENCE, &mut out);
        }
        if ahead(mpdu.sequence, next) >= 2_048 || waiting.contains_key(&mpdu.sequence) {
            continue;
        }
        // The window moves on so that this one is its last.
        while ahead(mpdu.sequence, next) >= WINDOW {
            out.extend(waiting.remove(&next).map(|(_, frame)| Received { at: mpdu.at, frame, sent: None }));
            next = (next + 1) & 0xfff;
        }
        waiting.insert(mpdu.sequence, (mpdu.at, mpdu.frame));
        release(&mut waiting, &mut next, mpdu.at, &mut out);
    }
    out
}

fn release(waiting: &mut BTreeMap<u16, (Time, u32)>, next: &mut u16, at: Time, out: &mut Vec<Received>) {
    while let Some((_, frame)) = waiting.remove(next) {
        out.push(Received { at, frame, sent: None });
        *next = (*next + 1) & 0xfff;
    }
}

/// The real capture's first and second half, by time: of packets as its station's kernel stamped them.
pub fn halves() -> Option<[Trace; 2]> {
    let arrivals = reordered(&read(REAL)?);
    let (first, last) = (arrivals.first()?.at, arrivals.last()?.at);
    let middle = first + last.since(first) / 2;
    let place = arrivals.partition_point(|arrival| arrival.at < middle);
    Some([Trace::stamped(&arrivals[..place]), Trace::stamped(&arrivals[place..])])
}

/// A synthetic capture behind the host of a case.
pub fn hosted(path: &str, seed: u64) -> Option<Trace> {
    let received = |mpdu: &Mpdu| Received { at: mpdu.at, frame: mpdu.frame, sent: None };
    let arrivals: Vec<Received> = read(path)?.iter().map(received).collect();
    Some(Case { start: Time::ZERO, ..Case::draw(seed) }.host(&arrivals))
}
