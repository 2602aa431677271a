//! What a contender sends when it has won the channel: a beacon, a group frame, a BlockAckReq, or data in an A-MPDU.
//! Source:     IEEE 802.11-2020: 10.12 and 10.13 (A-MPDU limits and S-MPDU), 10.25.6.6 (originator's behaviour).
//! Deviations: a BlockAckReq goes out at the lowest basic rate.
//! Checked by: wifi::tests::*, tests/ns3.rs

use super::frame::BLOCK_ACK_REQ;
use super::medium::{Flight, NONE};
use super::model::{Event, Wifi};
use super::phy::Mode;
use super::plan::BLOCK_ACK;
use super::session::Entry;
use crate::{Drop, Outbox, PpduKind, PpduRecord};
use lasthop_signals::Node;
use lasthop_units::{Bytes, Rate, Span, Time};

/// What a contender is doing, or did last.
#[derive(Clone, Copy, Debug)]
pub(super) struct Exchange {
    /// `Data`, `BlockAckReq` or `Beacon`.
    pub kind: PpduKind,
    pub slot: u16,
    /// Receiver, `NONE` for a group frame.
    pub to: u16,
    pub mode: u16,
    pub session: u32,
    pub mpdus: u16,
    /// MPDUs among them that were sent before.
    pub retries: u16,
    pub received: u16,
    pub psdu: u32,
    pub start: Time,
    pub duration: Span,
    /// PHY rate of the frame.
    pub rate: Rate,
    pub ampdu: u32,
    /// Answered by BlockAck instead of Ack.
    pub block_ack: bool,
    /// Time of the answer on the air, zero if there was none.
    pub answer: Span,
    /// The packet of a group frame.
    pub packet: u32,
    /// Exchanges that failed in a row.
    pub failures: u8,
}

impl Default for Exchange {
    fn default() -> Exchange {
        Exchange {
            kind: PpduKind::Data,
            slot: 0,
            to: NONE,
            mode: 0,
            session: 0,
            mpdus: 0,
            retries: 0,
            received: 0,
            psdu: 0,
            start: Time::ZERO,
            duration: Span::ZERO,
            rate: Rate::ZERO,
            ampdu: 0,
            block_ack: false,
            answer: Span::ZERO,
            packet: 0,
            failures: 0,
        }
    }
}

impl<P: Clone> Wifi<P> {
    /// A contender has won the channel: builds the frame whose turn it is and sends it.
    pub(super) fn assemble(&mut self, now: Time, contender: u16, out: &mut impl Outbox<P>) {
        let index = usize::from(contender);
        let classes = self.classes();
        let (node, class) = (index / classes, index % classes);
        if class == classes - 1 && std::mem::take(&mut self.ports[node].beacon_due) {
            let mpdu = self.plan.params().beacons.map_or(Bytes::ZERO, |beacons| beacons.mpdu);
            return self.send_group(now, contender, PpduKind::Beacon, mpdu);
        }
        while let Some(slot) = self.queues[index].select() {
            if slot == self.ports[node].receivers.len() {
                let id = self.queues[index].pop(&mut self.pool, slot, now, &mut self.victims);
                self.drop_victims(now, node, Drop::QueueManagement, out);
                let Some(id) = id else { continue };
                self.exchanges[index].packet = id;
                self.exchanges[index].slot = slot as u16;
                let mpdu = self.framing.group(self.pool.get(id).len);
                return self.send_group(now, contender, PpduKind::Data, Bytes::new(u64::from(mpdu)));
            }
            let session = self.session(node, class, slot);
            if self.sessions[session].request {
                return self.send_request(now, contender, slot, session);
            }
            if self.send_data(now, contender, slot, session, out) {
                return;
            }
        }
        // Queue management has left nothing.
        self.medium.asleep(contender);
    }

    fn send_group(&mut self, now: Time, contender: u16, kind: PpduKind, mpdu: Bytes) {
        let phy = Mode::lowest(self.plan.params().standard);
        let ex = &mut self.exchanges[usize::from(contender)];
        (ex.kind, ex.to, ex.mpdus, ex.received, ex.psdu) = (kind, NONE, 1, 0, mpdu.get() as u32);
        (ex.duration, ex.rate) = (phy.duration(mpdu), phy.rate());
        self.launch(now, contender, Span::ZERO);
    }

    fn send_request(&mut self, now: Time, contender: u16, slot: usize, session: usize) {
        let index = usize::from(contender);
        let node = index / self.classes();
        let to = self.ports[node].receivers[slot];
        let phy = Mode::lowest(self.plan.params().standard);
        let answer = phy.duration(BLOCK_ACK);
        let ex = &mut self.exchanges[index];
        (ex.kind, ex.to, ex.mpdus, ex.received) = (PpduKind::BlockAckReq, to, 0, 0);
        (ex.slot, ex.session, ex.block_ack) = (slot as u16, session as u32, true);
        (ex.psdu, ex.duration, ex.rate) = (BLOCK_ACK_REQ.get() as u32, phy.duration(BLOCK_ACK_REQ), phy.rate());
        ex.answer = answer;
        self.launch(now, contender, self.medium.timing.sifs + answer);
    }

    /// Builds a data PPDU; false if nothing is left to put into it.
    fn send_data(&mut self, now: Time, contender: u16, slot: usize, session: usize, out: &mut impl Outbox<P>) -> bool {
        let index = usize::from(contender);
        let node = index / self.classes();
        let to = self.ports[node].receivers[slot];
        let mode_index = self.mode(node, usize::from(to), now);
        let mode = self.plan.modes()[usize::from(mode_index)];
        let most = if self.block_ack { usize::from(self.plan.params().max_ampdu_mpdus) } else { 1 };
        let framing = self.framing;
        let (mut mpdus, mut psdu, mut retries, mut lone) = (0, 0, 0, 0);
        let mut fits = |len: u32, mpdus: usize| {
            let mpdu = framing.mpdu(len);
            let longer = framing.append(psdu, mpdu);
            if mpdus > 0 && longer > mode.max_psdu {
                return false;
            }
            (psdu, lone) = (longer, mpdu);
            true
        };
        // What failed goes out first.
        let window = &mut self.sessions[session].window;
        let mut full = false;
        for entry in window.iter_mut().filter(|entry| entry.is_open()) {
            full = mpdus == most || !fits(entry.len, mpdus);
            if full {
                break;
            }
            entry.sent = true;
            mpdus += 1;
            retries += u16::from(entry.failures > 0);
        }
        while !full && mpdus < most && self.sessions[session].window.len() < most {
            let Some(id) = self.queues[index].pop(&mut self.pool, slot, now, &mut self.victims) else { break };
            let meta = self.pool.get(id);
            let mut entry = Entry::new(id, meta.len, meta.order);
            // One that does not fit has its number already and goes first the next time.
            entry.sent = fits(meta.len, mpdus);
            full = !entry.sent;
            mpdus += usize::from(entry.sent);
            self.sessions[session].push(entry);
        }
        if !self.victims.is_empty() {
            self.drop_victims(now, node, Drop::QueueManagement, out);
        }
        if mpdus == 0 {
            return false;
        }
        if mpdus == 1 {
            psdu = framing.single(lone);
        }
        let ex = &mut self.exchanges[index];
        (ex.kind, ex.to, ex.mpdus, ex.retries, ex.received) = (PpduKind::Data, to, mpdus as u16, retries, 0);
        (ex.slot, ex.session, ex.mode) = (slot as u16, session as u32, mode_index);
        ex.block_ack = mpdus > 1;
        (ex.psdu, ex.duration) = (psdu, mode.phy.duration(Bytes::new(u64::from(psdu))));
        ex.rate = mode.phy.rate();
        ex.answer = if mpdus > 1 { mode.block_ack } else { mode.ack };
        ex.ampdu = self.ampdus;
        self.ampdus = self.ampdus.wrapping_add(1);
        let reserves = self.medium.timing.sifs + ex.answer;
        self.launch(now, contender, reserves);
        true
    }

    fn launch(&mut self, now: Time, contender: u16, reserves: Span) {
        let node = self.medium.contenders[usize::from(contender)].node;
        let ex = &mut self.exchanges[usize::from(contender)];
        ex.start = now;
        let (kind, to, end) = (ex.kind, ex.to, now + ex.duration);
        self.medium.set_exchange(node, true);
        let flight = self.medium.launch(Flight { from: node, to, kind, contender, start: now, end, reserves });
        self.schedule(end, Event::FlightEnd(flight));
    }
}

impl Exchange {
    pub fn record(&self, flight: Flight) -> PpduRecord {
        PpduRecord {
            start: flight.start,
            duration: flight.end.since(flight.start),
            from: Node(flight.from),
            to: (flight.to != NONE).then_some(Node(flight.to)),
            kind: flight.kind,
            rate: self.rate,
            mpdus: self.mpdus,
            received: self.received,
            psdu: Bytes::new(u64::from(self.psdu)),
        }
    }
}
