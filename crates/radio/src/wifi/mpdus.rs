//! A data PPDU taken apart: what a monitor beside the receiver sees, MPDU by MPDU. Done for those only who ask.
//! Source:     IEEE 802.11-2020: 9.2.4.4 (sequence control), 9.7 (A-MPDU), 10.3.2.14 (retry field).
//! Deviations: group frames, responses and beacons are not reported.
//! Checked by: tests/mpdus.rs (PPDU records, the aggregation meter), and in the lab what its monitor interfaces show

use super::exchange::Exchange;
use super::medium::Flight;
use super::model::Wifi;
use super::session::Entry;
use crate::{MpduRecord, Outbox};
use lasthop_signals::Node;
use lasthop_units::{Bytes, Time};

impl<P: Clone> Wifi<P> {
    /// Reports the MPDUs of a PPDU that has just been received, before anything of it is handed up.
    pub(super) fn report_mpdus(&self, now: Time, flight: Flight, ex: &Exchange, out: &mut impl Outbox<P>) {
        let session = &self.sessions[ex.session as usize];
        let mode = &self.plan.modes()[usize::from(ex.mode)];
        let last = session.window.iter().rposition(|entry| entry.sent);
        // VHT and HE send even a lone MPDU as an A-MPDU of one.
        let aggregated = ex.mpdus > 1 || mode.framing.single(0) > 0;
        for (place, entry) in session.window.iter().enumerate().filter(|(_, entry)| entry.sent) {
            let record = MpduRecord {
                start: flight.start,
                from: Node(flight.from),
                to: Node(flight.to),
                class: self.pool.get(entry.id).class,
                ampdu: aggregated.then_some(ex.ampdu),
                last: Some(place) == last,
                sequence: session.sequence(place),
                retry: entry.failures > 0,
                received: entry.heard,
                tx: mode.phy.vector(),
                len: Bytes::new(u64::from(entry.mpdu)),
                reserves: flight.reserves,
                packets: entry.packets,
                payloads: self.payloads_of(entry),
            };
            out.mpdu(now, &record);
        }
    }

    /// What an MPDU holds, as far as it has not been handed up.
    fn payloads_of(&self, entry: &Entry) -> Vec<&P> {
        let ids = std::iter::successors(Some(entry.id), |&id| Some(self.joined[id as usize]));
        ids.take(usize::from(entry.packets)).filter_map(|id| self.payloads[id as usize].as_ref()).collect()
    }
}
