//! What a contender sends when it has won the channel: a beacon, a group frame, a BlockAckReq, or data in an A-MPDU,
//! with or without RTS and CTS before it.
//! Source:     IEEE 802.11-2020: 10.12 and 10.13 (A-MPDU limits and S-MPDU), 10.25.6.6 (originator's behaviour), 10.3.2.9
//!             (RTS and CTS), 10.23.2.8 (sharing of a transmission opportunity), 10.23.2.9 (its limit).
//! Deviations: a BlockAckReq goes out at the lowest basic rate; each frame of a transmission opportunity reserves the
//!             channel for its own exchange only; after a failure within one there is a new backoff, not a PIFS recovery.
//! Checked by: wifi::tests::*, tests/long/ns3.rs

use super::air::{PpduKind, PpduRecord};
use super::capture::DETECTION_TIME;
use super::contention::Window;
use super::frame::{self, BLOCK_ACK_REQ, Framing};
use super::medium::{Flight, NONE};
use super::model::{Event, NIL, Port, Wifi};
use super::phy::Mode;
use super::plan::DataMode;
use super::session::{Entry, short};
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
    /// Packets in them.
    pub packets: u16,
    /// MPDUs among them that were sent before.
    pub retries: u16,
    pub received: u16,
    pub psdu: u32,
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
    /// The data PPDU has not gone out yet: its RTS or CTS is on its way.
    pub announcing: bool,
    /// Time on the air of what went before the data: RTS, CTS and the spaces after them.
    pub handshake: Span,
    /// When the exchange before ended: from then on it contends for its next frame, if it has one.
    pub free: Time,
    /// When the transmission opportunity ends; in the past if it is one exchange long.
    pub txop_end: Time,
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
            packets: 0,
            retries: 0,
            received: 0,
            psdu: 0,
            duration: Span::ZERO,
            rate: Rate::ZERO,
            ampdu: 0,
            block_ack: false,
            answer: Span::ZERO,
            packet: 0,
            failures: 0,
            announcing: false,
            handshake: Span::ZERO,
            free: Time::ZERO,
            txop_end: Time::ZERO,
        }
    }
}

impl<P: Clone> Wifi<P> {
    /// A contender has won the channel.
    pub(super) fn take_turn(&mut self, now: Time, contender: u16) {
        let index = usize::from(contender);
        let txop = self.medium.contenders[index].edca.txop;
        self.exchanges[index].txop_end = if txop.is_zero() { Time::ZERO } else { now + txop };
        self.assemble(now, contender);
    }

    /// The time has come for the data after a CTS, or for the next frame of a transmission opportunity.
    pub(super) fn go_on(&mut self, now: Time, contender: u16) {
        let ex = &mut self.exchanges[usize::from(contender)];
        if std::mem::take(&mut ex.announcing) {
            let reserves = self.medium.timing.sifs + ex.answer;
            return self.launch(now, contender, reserves);
        }
        let node = self.medium.contenders[usize::from(contender)].node;
        if self.medium.is_sending(node) || !self.extend(now, contender) {
            self.leave(now, contender, Window::Reset);
        }
    }

    /// Sends one more data frame if it fits into what is left of the transmission opportunity.
    fn extend(&mut self, now: Time, contender: u16) -> bool {
        let index = usize::from(contender);
        let (node, class) = (index / self.classes, index % self.classes);
        let Some(slot) = self.queues[index].select() else { return false };
        if slot == self.ports[node].receivers.len() {
            return false;
        }
        let session = self.session(node, class, slot);
        let sent = !self.sessions[session].request && self.send_data(now, contender, slot, session, true);
        if !sent {
            // What was taken from the queue and did not fit waits for its next turn.
            self.retire(session, index, slot);
        }
        sent
    }

    /// Builds the frame that has its turn and sends it.
    fn assemble(&mut self, now: Time, contender: u16) {
        let index = usize::from(contender);
        let (node, class) = (index / self.classes, index % self.classes);
        if index == self.beacon_contender(node) && std::mem::take(&mut self.ports[node].beacon_due) {
            let mpdu = self.plan.params().beacons.map_or(Bytes::ZERO, |beacons| beacons.mpdu);
            return self.send_group(now, contender, PpduKind::Beacon, mpdu);
        }
        while let Some(slot) = self.queues[index].select() {
            if slot == self.ports[node].receivers.len() {
                let id = self.queues[index].pop(&mut self.pool, slot);
                let Some(id) = id else { continue };
                self.exchanges[index].packet = id;
                self.exchanges[index].slot = slot as u16;
                let mpdu = frame::group(self.pool.get(id).len);
                return self.send_group(now, contender, PpduKind::Data, Bytes::new(u64::from(mpdu)));
            }
            let session = self.session(node, class, slot);
            if self.sessions[session].request {
                return self.send_request(now, contender, slot, session);
            }
            if self.send_data(now, contender, slot, session, false) {
                return;
            }
        }
        // What was to be sent again was acknowledged meanwhile.
        self.medium.asleep(contender);
    }

    fn send_group(&mut self, now: Time, contender: u16, kind: PpduKind, mpdu: Bytes) {
        let phy = Mode::lowest(self.plan.params().standard);
        let ex = &mut self.exchanges[usize::from(contender)];
        (ex.kind, ex.to, ex.mpdus, ex.received, ex.psdu) = (kind, NONE, 1, 0, mpdu.get() as u32);
        ex.packets = u16::from(kind == PpduKind::Data);
        (ex.duration, ex.rate, ex.handshake) = (phy.duration(mpdu), phy.rate(), Span::ZERO);
        self.launch(now, contender, Span::ZERO);
    }

    fn send_request(&mut self, now: Time, contender: u16, slot: usize, session: usize) {
        let index = usize::from(contender);
        let node = index / self.classes;
        let to = self.ports[node].receivers[slot];
        let phy = Mode::lowest(self.plan.params().standard);
        let answer = phy.duration(self.plan.block_ack(node));
        let ex = &mut self.exchanges[index];
        (ex.kind, ex.to, ex.mpdus, ex.packets, ex.received) = (PpduKind::BlockAckReq, to, 0, 0, 0);
        (ex.slot, ex.session, ex.block_ack) = (slot as u16, session as u32, true);
        (ex.psdu, ex.duration, ex.rate) = (BLOCK_ACK_REQ.get() as u32, phy.duration(BLOCK_ACK_REQ), phy.rate());
        (ex.answer, ex.handshake) = (answer, Span::ZERO);
        self.launch(now, contender, self.medium.timing.sifs + answer);
    }

    /// Builds a data PPDU and sends it, or its RTS; false if there is nothing to put into it. The first frame of a
    /// transmission opportunity may exceed it with one MPDU; with `goes_on` nothing may (10.23.2.8).
    fn send_data(&mut self, now: Time, contender: u16, slot: usize, session: usize, goes_on: bool) -> bool {
        let index = usize::from(contender);
        let node = index / self.classes;
        let to = self.ports[node].receivers[slot];
        let choice = self.choose(node, slot, session, now);
        let (mode_index, mode) = (choice.mode, self.plan.modes()[usize::from(choice.mode)]);
        let window_size = usize::from(self.ports[node].most_mpdus);
        let most = if choice.probe { 1 } else { window_size };
        let (framing, limit) = (mode.framing, self.longest_psdu(now, contender, &mode));
        let head = if window_size > 1 { now } else { self.exchanges[index].free };
        let mut frame = Filling { framing, limit, head, goes_on, mpdus: 0, packets: 0, retries: 0, psdu: 0, lone: 0 };
        // What failed goes out first.
        let window = &mut self.sessions[session].window;
        let mut full = false;
        for entry in window.iter_mut().take(window_size).filter(|entry| entry.is_open()) {
            full = frame.mpdus == most || !frame.take(entry);
            if full {
                break;
            }
        }
        let gathers = self.ports[node].most_packets > 1;
        // A packet that has left the queue and has found no room in an A-MSDU.
        let mut left_over = None;
        while !full && frame.mpdus < most && self.sessions[session].window.len() < window_size {
            let Some(id) = left_over.take().or_else(|| self.queues[index].pop(&mut self.pool, slot)) else { break };
            let mut entry = self.entry(id, &framing);
            if gathers {
                let room = limit.saturating_sub(framing.append(frame.psdu, 0));
                left_over = self.gather(index, slot, &mut entry, &framing, room);
            }
            // One that does not fit has its number already and goes first the next time.
            full = !frame.take(&mut entry);
            self.sessions[session].push(entry, window_size);
        }
        if let Some(id) = left_over {
            // It waits beyond the window.
            let entry = self.entry(id, &framing);
            self.sessions[session].push(entry, window_size);
        }
        let Filling { mpdus, packets, retries, psdu, lone, .. } = frame;
        if mpdus == 0 {
            return false;
        }
        let psdu = if mpdus == 1 { framing.single(lone) } else { psdu };
        let ex = &mut self.exchanges[index];
        (ex.kind, ex.to, ex.mpdus, ex.packets) = (PpduKind::Data, to, mpdus as u16, packets);
        (ex.retries, ex.received) = (retries, 0);
        (ex.slot, ex.session, ex.mode) = (slot as u16, session as u32, mode_index);
        ex.block_ack = mpdus > 1;
        (ex.psdu, ex.duration) = (psdu, mode.phy.duration(Bytes::new(u64::from(psdu))));
        ex.rate = mode.phy.rate();
        ex.answer = if mpdus > 1 { mode.block_ack } else { mode.ack };
        ex.ampdu = self.ampdus;
        self.ampdus = self.ampdus.wrapping_add(1);
        let threshold = self.ports[node].rts_threshold;
        ex.handshake = Span::ZERO;
        if ex.psdu > threshold {
            self.announce(now, contender, &mode);
        } else {
            let reserves = self.medium.timing.sifs + ex.answer;
            self.launch(now, contender, reserves);
        }
        true
    }

    /// An MPDU with the packet of this number.
    #[inline(always)]
    fn entry(&self, id: u32, framing: &Framing) -> Entry {
        let meta = self.pool.get(id);
        Entry::new(id, meta.len, framing.mpdu(meta.len))
    }

    /// Takes more packets of a slot into an MPDU of at most `room` octets. One that has no room in it comes back.
    fn gather(&mut self, index: usize, slot: usize, entry: &mut Entry, framing: &Framing, room: u32) -> Option<u32> {
        let Port { most_packets, longest_mpdu, .. } = self.ports[index / self.classes];
        let mut last = entry.id;
        self.joined[last as usize] = NIL;
        if u32::from(entry.mpdu) > room {
            return None;
        }
        while entry.packets < most_packets {
            let next = self.queues[index].pop(&mut self.pool, slot)?;
            let len = self.pool.get(next).len;
            let mpdu = framing.join(u32::from(entry.mpdu), entry.packets, len);
            if mpdu > longest_mpdu.min(room) {
                return Some(next);
            }
            (entry.mpdu, entry.len, entry.packets) = (short(mpdu), entry.len + short(len), entry.packets + 1);
            (self.joined[last as usize], self.joined[next as usize]) = (next, NIL);
            last = next;
        }
        None
    }

    /// The longest PSDU that PPDU limits and transmission opportunity allow.
    fn longest_psdu(&self, now: Time, contender: u16, mode: &DataMode) -> u32 {
        let end = self.exchanges[usize::from(contender)].txop_end;
        if end == Time::ZERO {
            return mode.max_psdu;
        }
        let node = self.medium.contenders[usize::from(contender)].node;
        let sifs = self.medium.timing.sifs;
        let announced = self.ports[usize::from(node)].rts_threshold < u32::MAX;
        let handshake = if announced { mode.rts + mode.cts + sifs * 2 } else { Span::ZERO };
        let left = end.since(now).saturating_sub(handshake + sifs + mode.block_ack);
        mode.max_psdu.min(u32::try_from(mode.phy.longest(left).get()).unwrap_or(u32::MAX))
    }

    /// Sends the RTS of a data PPDU that is ready.
    fn announce(&mut self, now: Time, contender: u16, mode: &DataMode) {
        let from = self.medium.contenders[usize::from(contender)].node;
        let sifs = self.medium.timing.sifs;
        let ex = &mut self.exchanges[usize::from(contender)];
        (ex.announcing, ex.handshake) = (true, mode.rts);
        let reserves = sifs + mode.cts + sifs + ex.duration + sifs + ex.answer;
        let (to, kind, vector, end) = (ex.to, PpduKind::Rts, mode.response.vector(), now + mode.rts);
        self.medium.set_exchange(from, true, now);
        let flight = self.take_off(Flight { from, to, kind, vector, contender, start: now, end, reserves });
        self.schedule(end, Event::FlightEnd(flight));
    }

    /// A PPDU begins, with the strength that it has at whoever hears it.
    #[inline]
    pub(super) fn take_off(&mut self, flight: Flight) -> u16 {
        if self.plan.params().capture {
            self.set_powers(usize::from(flight.from), flight.start);
        }
        let place = self.medium.launch(flight);
        if self.medium.ns3 {
            self.schedule(flight.start + DETECTION_TIME, Event::Sensed(place));
        }
        place
    }

    fn set_powers(&mut self, from: usize, now: Time) {
        for to in 0..self.ports.len() {
            let Some(link) = self.plan.strength_of(from, to) else { continue };
            if let (Some(channel), Some(capture)) = (&mut self.channels[link], &mut self.medium.capture) {
                capture.set_power(from, to, channel.snr(now));
            }
        }
    }

    fn launch(&mut self, now: Time, contender: u16, reserves: Span) {
        let from = self.medium.contenders[usize::from(contender)].node;
        let ex = &self.exchanges[usize::from(contender)];
        let (kind, to, end) = (ex.kind, ex.to, now + ex.duration);
        let is_data = kind == PpduKind::Data && to != NONE;
        let vector = if is_data {
            self.plan.modes()[usize::from(ex.mode)].phy.vector()
        } else {
            Mode::lowest(self.plan.params().standard).vector()
        };
        self.medium.set_exchange(from, true, now);
        let flight = self.take_off(Flight { from, to, kind, vector, contender, start: now, end, reserves });
        self.schedule(end, Event::FlightEnd(flight));
    }
}

/// A data PSDU while it is filled.
struct Filling {
    framing: Framing,
    limit: u32,
    /// When what it carries for the first time came to the head of the line.
    head: Time,
    /// The first MPDU must respect the limit as well.
    goes_on: bool,
    mpdus: usize,
    packets: u16,
    retries: u16,
    psdu: u32,
    /// Length of the MPDU that came last.
    lone: u32,
}

impl Filling {
    /// Takes an MPDU in; false if it does not fit.
    #[inline(always)]
    fn take(&mut self, entry: &mut Entry) -> bool {
        let longer = self.framing.append(self.psdu, u32::from(entry.mpdu));
        if longer > self.limit && (self.mpdus > 0 || self.goes_on) {
            return false;
        }
        (self.psdu, self.lone) = (longer, u32::from(entry.mpdu));
        if entry.failures == 0 {
            entry.head_at = self.head;
        }
        self.mpdus += 1;
        self.packets += entry.packets;
        self.retries += u16::from(entry.failures > 0);
        entry.sent = true;
        true
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
            packets: self.packets,
            received: self.received,
            psdu: Bytes::new(u64::from(self.psdu)),
        }
    }
}
