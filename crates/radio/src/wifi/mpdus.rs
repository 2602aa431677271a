//! A data PPDU taken apart: what monitors see, MPDU by MPDU. Done only if asked for.
//! Source:     IEEE 802.11-2020: 9.2.4.4 (sequence control), 9.7 (A-MPDU), 10.3.2.14 (retry field).
//! Deviations: group frames, responses and beacons are not reported. A station that overhears its access point's frames to
//!             others loses MPDUs of them as it would of its own at that rate, drawn from a stream of its own; frames of
//!             other stations and of neighbours, with which it has no link, are heard whole and without a signal strength.
//! Checked by: tests/integration/mpdus.rs (PPDU records, the aggregation meter), and in the lab what its monitor interfaces show

use super::air::{Air, Hearing, MpduRecord};
use super::medium::Flight;
use super::model::{Wifi, narrow};
use super::session::Entry;
use super::snr;
use lasthop_signals::Node;
use lasthop_units::{Bytes, Time};

/// A node that receives a PPDU.
struct Hearer {
    /// Logarithm of a bit's success on its link with the transmitter, if that has a signal-to-noise ratio.
    ln_success: Option<f64>,
    linked: bool,
}

impl<P: Clone> Wifi<P> {
    /// Reports the MPDUs of a PPDU that has just ended, before anything of it is handed up.
    pub(super) fn report_mpdus(&mut self, now: Time, place: u16, flight: Flight, out: &mut impl Air<P>) {
        let ex = self.exchanges[usize::from(flight.contender)];
        let (hearers, mut heard) = self.hearers(place, flight, ex.mode);
        if hearers.is_empty() {
            return;
        }
        let mode = &self.plan.modes()[usize::from(ex.mode)];
        let session = &self.sessions[ex.session as usize];
        let last = session.window.iter().rposition(|entry| entry.sent);
        // VHT and HE send even a lone MPDU as an A-MPDU of one.
        let aggregated = ex.mpdus > 1 || mode.framing.single(0) > 0;
        let decoded = self.medium.decodes(flight.to, place);
        for (number, entry) in session.window.iter().enumerate().filter(|(_, entry)| entry.sent) {
            // The addressee's draws are the model's own: without a reception they are those of an earlier attempt.
            let received = decoded && entry.heard;
            for (hearer, hearing) in hearers.iter().zip(&mut heard) {
                let ear = &mut self.ears[hearing.node.index()];
                hearing.whole = match hearer.ln_success {
                    _ if hearing.node.0 == flight.to => received,
                    _ if !hearer.linked => true,
                    _ if ear.strikes() => false,
                    Some(ln_success) => !ear.misses(snr::success(ln_success, u32::from(entry.mpdu))),
                    None => true,
                };
            }
            let record = MpduRecord {
                start: flight.start,
                from: Node(flight.from),
                to: Node(flight.to),
                class: self.pool.get(entry.id).class,
                ampdu: aggregated.then_some(ex.ampdu),
                last: Some(number) == last,
                sequence: session.sequence(number),
                retry: entry.failures > 0,
                received,
                hearers: &heard,
                tx: mode.phy.vector(),
                len: Bytes::new(u64::from(entry.mpdu)),
                reserves: flight.reserves,
                packets: entry.packets,
                payloads: payloads_of(&self.payloads, &self.joined, entry),
            };
            out.mpdu(now, &record);
        }
    }

    /// The nodes that are receiving a PPDU, with what a first MPDU would be to each: the order is the same in both
    /// lists.
    fn hearers(&mut self, place: u16, flight: Flight, mode: u16) -> (Vec<Hearer>, Vec<Hearing>) {
        let (mut hearers, mut heard) = (Vec::new(), Vec::new());
        let from = usize::from(flight.from);
        for node in (0..self.ports.len()).filter(|&node| self.medium.decodes(narrow(node), place)) {
            let linked = self.plan.linked(from, node);
            let channel = self.plan.strength_of(from, node).and_then(|link| self.channels[link].as_mut());
            let (mut ln_success, mut strength) = (None, None);
            if let Some(channel) = channel {
                ln_success = Some(channel.ln_success(flight.start, mode, self.plan.modes()));
                strength = Some(channel.strength(flight.start));
            }
            hearers.push(Hearer { ln_success, linked: linked || ln_success.is_some() });
            heard.push(Hearing { node: Node(narrow(node)), whole: false, strength });
        }
        (hearers, heard)
    }
}

/// What an MPDU holds, as far as it has not been handed up.
fn payloads_of<'a, P>(payloads: &'a [Option<P>], joined: &[u32], entry: &Entry) -> Vec<&'a P> {
    let ids = std::iter::successors(Some(entry.id), |&id| Some(joined[id as usize]));
    ids.take(usize::from(entry.packets)).filter_map(|id| payloads[id as usize].as_ref()).collect()
}
