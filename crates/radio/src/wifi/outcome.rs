//! How an exchange goes on and ends: reception, answer, and what both ends make of it.
//! Source:     IEEE 802.11-2020: 10.3.2.11 (Ack), 10.3.2.9 (CTS), 10.25.6 (BlockAck), 10.3.4.4 (retries), 10.23.2.2
//!             (contention window).
//! Deviations: control frames are lost to collisions only, not to noise. An RTS that goes unanswered is a failed attempt
//!             of every MPDU that it announced. The retry count that ends a run of doubled
//!             contention windows is the contender's own.
//! Checked by: wifi::tests::*, tests/long/ns3.rs, tests/integration/properties.rs

use super::air::{Air, PpduKind, PpduRecord, Reception};
use super::contention::Window;
use super::exchange::Exchange;
use super::medium::{Flight, NONE};
use super::model::{Event, Wifi, completion};
use super::phy::Mode;
use super::plan::{ACK, CTS, RTS};
use super::snr;
use crate::{Drop, Outcome, RxInfo};
use lasthop_signals::Node;
use lasthop_units::{Bytes, Span, Time};

impl<P: Clone> Wifi<P> {
    pub(super) fn flight_end(&mut self, now: Time, place: u16, out: &mut impl Air<P>) {
        let flight = self.medium.air[usize::from(place)];
        match flight.kind {
            PpduKind::Ack | PpduKind::BlockAck | PpduKind::Cts => self.answer_ends(now, place, flight, out),
            PpduKind::Rts => self.rts_ends(now, place, flight, out),
            PpduKind::Data | PpduKind::BlockAckReq if flight.to != NONE => self.request_ends(now, place, flight, out),
            _ => self.group_ends(now, place, flight, out),
        }
    }

    /// A frame that wants an answer has ended.
    fn request_ends(&mut self, now: Time, place: u16, flight: Flight, out: &mut impl Air<P>) {
        let decoded = self.medium.decodes(flight.to, place);
        let mut received = 0;
        if decoded {
            self.medium.nodes[usize::from(flight.to)].received += now.since(flight.start);
            received = match flight.kind {
                PpduKind::Data => self.receive(now, place, flight, out),
                _ => {
                    self.release(now, flight, true, out);
                    1
                }
            };
        } else if flight.kind == PpduKind::Data && out.wants_mpdus() {
            self.report_mpdus(now, place, flight, out);
        }
        self.medium.land(place, decoded && received == 0, None);
        let ex = &mut self.exchanges[usize::from(flight.contender)];
        ex.received = if ex.kind == PpduKind::Data { received } else { 0 };
        let record = ex.record(flight);
        out.ppdu(now, &record);
        if received > 0 {
            self.schedule(now + self.medium.timing.sifs, Event::Respond(flight.contender));
        } else {
            self.exchanges[usize::from(flight.contender)].answer = Span::ZERO;
            self.schedule(now + self.timeout(flight.contender), Event::Timeout(flight.contender));
        }
    }

    /// An RTS has ended. Its addressee answers unless it has decoded somebody else's reservation (10.3.2.9).
    fn rts_ends(&mut self, now: Time, place: u16, flight: Flight, out: &mut impl Air<P>) {
        let decoded = self.medium.decodes(flight.to, place);
        let to = &mut self.medium.nodes[usize::from(flight.to)];
        if decoded {
            to.received += now.since(flight.start);
        }
        let answers = decoded && to.nav <= now;
        let mut overheard = std::mem::take(&mut self.overheard);
        overheard.clear();
        self.medium.land(place, false, Some(&mut overheard));
        for &node in &overheard {
            self.schedule(now + self.medium.timing.rts_nav, Event::RtsExpires(node));
        }
        self.overheard = overheard;
        self.control_record(now, flight, RTS, out);
        if answers {
            self.schedule(now + self.medium.timing.sifs, Event::Respond(flight.contender));
        } else {
            self.schedule(now + self.timeout(flight.contender), Event::Timeout(flight.contender));
        }
    }

    /// The receiver's share of a data PPDU that reached it. Returns how many MPDUs were good.
    fn receive(&mut self, now: Time, place: u16, flight: Flight, out: &mut impl Air<P>) -> u16 {
        let ex = self.exchanges[usize::from(flight.contender)];
        let link = self.plan.link(usize::from(flight.from), usize::from(flight.to));
        let mode = &self.plan.modes()[usize::from(ex.mode)];
        let ln_success =
            self.channels[link].as_mut().map(|channel| channel.ln_success(flight.start, ex.mode, self.plan.modes()));
        let (noise, framing) = (&mut self.errors[link], mode.framing);
        let mpdu_by_mpdu = self.plan.mpdu_by_mpdu(usize::from(flight.to));
        let preamble = mode.phy.preamble();
        let captures = self.medium.capture.is_some();
        let (mut received, mut octets) = (0, 0);
        for entry in self.sessions[ex.session as usize].window.iter_mut().filter(|entry| entry.sent) {
            let mpdu = u32::from(entry.mpdu);
            let before = octets;
            octets = framing.append(octets, mpdu);
            entry.heard = false;
            if captures && !self.medium.outlives(flight, preamble, (before, octets.min(ex.psdu)), ex.psdu) {
                continue;
            }
            if noise.strikes() {
                continue;
            }
            if let Some(ln_success) = ln_success
                && noise.misses(snr::success(ln_success, mpdu))
            {
                continue;
            }
            entry.heard = true;
            received += 1;
            if !entry.got {
                (entry.got, entry.got_at, entry.mode, entry.ampdu) = (true, now, ex.mode, ex.ampdu);
                if mpdu_by_mpdu && octets < ex.psdu {
                    let data = ex.duration.saturating_sub(preamble).as_nanos();
                    let part = u128::from(data) * u128::from(octets) / u128::from(ex.psdu);
                    entry.got_at = flight.start + preamble + Span::from_nanos(part as u64);
                }
            }
        }
        if out.wants_mpdus() {
            self.report_mpdus(now, place, flight, out);
        }
        let block_ack = self.ports[usize::from(flight.from)].most_mpdus > 1;
        self.release(now, flight, !block_ack, out);
        received
    }

    /// Hands up what is in sequence.
    fn release(&mut self, now: Time, flight: Flight, skip: bool, out: &mut impl Air<P>) {
        let ex = self.exchanges[usize::from(flight.contender)];
        let back = self.slot(usize::from(flight.to), usize::from(flight.from));
        let reverse = self.ports[usize::from(flight.to)].first_peer + back;
        let block_ack = self.ports[usize::from(flight.from)].most_mpdus > 1;
        let mut at = Time::ZERO;
        while let Some(entry) = self.sessions[ex.session as usize].release(skip) {
            let counted = &mut self.peers[reverse];
            counted.rx_packets += u64::from(entry.packets);
            counted.rx_bytes += u64::from(entry.len);
            // Where MPDUs are handed up one by one, one before it in sequence may have come later.
            at = at.max(entry.got_at);
            let (mut id, mut left) = (entry.id, entry.packets);
            loop {
                if let Some(payload) = self.payloads[id as usize].take() {
                    if self.pool.get(id).dst == NONE && !self.plan.params().client_isolation {
                        let meta = *self.pool.get(id);
                        self.relay(now, flight.to, &meta, payload.clone(), out);
                    }
                    let meta = self.pool.get(id);
                    let rate = self.plan.modes()[usize::from(entry.mode)].phy.rate();
                    let ampdu = block_ack.then_some(entry.ampdu);
                    let (retries, msdus) = (entry.failures, entry.packets);
                    let (when, to) = (if skip { now } else { at }, Node(flight.to));
                    out.received(when, to, &Reception { ampdu, retries, msdus });
                    let rx = RxInfo { queued_at: meta.queued_at, rate };
                    out.deliver(when, to, Self::packet(meta, payload), &rx);
                }
                // Looked up for A-MSDUs only: most MPDUs hold one packet, and the list is cold.
                left -= 1;
                if left == 0 {
                    break;
                }
                id = self.joined[id as usize];
            }
        }
    }

    /// The receiver of a contender's frame answers, a SIFS later, whatever the medium does.
    pub(super) fn respond(&mut self, now: Time, contender: u16) {
        let ex = self.exchanges[usize::from(contender)];
        let node = self.medium.contenders[usize::from(contender)].node;
        if self.medium.is_sending(ex.to) {
            self.exchanges[usize::from(contender)].answer = Span::ZERO;
            let timeout = self.timeout(contender).saturating_sub(self.medium.timing.sifs);
            return self.schedule(now + timeout, Event::Timeout(contender));
        }
        let vector = self.response(contender).vector();
        let (kind, duration, reserves) = if ex.announcing {
            let (sifs, cts) = (self.medium.timing.sifs, self.plan.modes()[usize::from(ex.mode)].cts);
            (PpduKind::Cts, cts, sifs + ex.duration + sifs + ex.answer)
        } else {
            let kind = if ex.block_ack { PpduKind::BlockAck } else { PpduKind::Ack };
            (kind, ex.answer, Span::ZERO)
        };
        let (from, to, end) = (ex.to, node, now + duration);
        let place = self.take_off(Flight { from, to, kind, vector, contender, start: now, end, reserves });
        self.schedule(end, Event::FlightEnd(place));
    }

    fn answer_ends(&mut self, now: Time, place: u16, flight: Flight, out: &mut impl Air<P>) {
        let decoded = self.medium.decodes(flight.to, place);
        if decoded {
            self.medium.nodes[usize::from(flight.to)].received += now.since(flight.start);
        }
        self.medium.land(place, false, None);
        let psdu = match flight.kind {
            PpduKind::Ack => ACK,
            PpduKind::Cts => CTS,
            _ => self.plan.block_ack(usize::from(flight.to)),
        };
        self.control_record(now, flight, psdu, out);
        if flight.kind == PpduKind::Cts && decoded {
            let sifs = self.medium.timing.sifs;
            self.exchanges[usize::from(flight.contender)].handshake += sifs + now.since(flight.start) + sifs;
            return self.schedule(now + sifs, Event::GoOn(flight.contender));
        }
        self.finish(now, flight.contender, decoded, out);
    }

    /// The mode of the answer to a contender's frame.
    fn response(&self, contender: u16) -> Mode {
        let ex = &self.exchanges[usize::from(contender)];
        match ex.kind {
            PpduKind::Data => self.plan.modes()[usize::from(ex.mode)].response,
            _ => Mode::lowest(self.plan.params().standard),
        }
    }

    /// From the end of a contender's frame to the moment its missing answer is noticed.
    fn timeout(&self, contender: u16) -> Span {
        self.medium.timing.answer_begins + self.response(contender).preamble()
    }

    /// Reports a control frame of an exchange.
    fn control_record(&mut self, now: Time, flight: Flight, psdu: Bytes, out: &mut impl Air<P>) {
        let response = self.response(flight.contender);
        out.ppdu(
            now,
            &PpduRecord {
                start: flight.start,
                duration: now.since(flight.start),
                from: Node(flight.from),
                to: Some(Node(flight.to)),
                kind: flight.kind,
                rate: response.rate(),
                mpdus: 0,
                packets: 0,
                received: 0,
                psdu,
            },
        );
    }

    fn group_ends(&mut self, now: Time, place: u16, flight: Flight, out: &mut impl Air<P>) {
        let mut overheard = std::mem::take(&mut self.overheard);
        overheard.clear();
        self.medium.land(place, false, Some(&mut overheard));
        let index = usize::from(flight.contender);
        // Of the nodes that decode it, the members of the BSS take it, but for the station that it was from.
        let port = &self.ports[usize::from(flight.from)];
        let source = match flight.kind {
            PpduKind::Data => self.pool.get(self.exchanges[index].packet).src,
            _ => flight.from,
        };
        overheard.retain(|node| *node != source && port.receivers.binary_search(node).is_ok());
        let others = source == flight.from || port.receivers.len() > 1;
        self.exchanges[index].received = u16::from(!overheard.is_empty());
        let ex = self.exchanges[index];
        out.ppdu(now, &ex.record(flight));
        if flight.kind == PpduKind::Data {
            if out.wants_completions() {
                let meta = self.pool.get(ex.packet);
                out.completed(now, &completion(meta, flight.from, ex.free, Outcome::Sent));
            }
            self.queues[index].release(usize::from(ex.slot));
            let meta = *self.pool.get(ex.packet);
            if let Some(payload) = self.payloads[ex.packet as usize].take() {
                let rx = RxInfo { queued_at: meta.queued_at, rate: ex.rate };
                let reception = Reception { ampdu: None, retries: 0, msdus: 1 };
                match overheard.split_last() {
                    // An access point that sends out again what its only station sent reaches nobody, and nobody misses it.
                    None if !others => (),
                    None => out.dropped(now, Self::packet(&meta, payload), Drop::RetryLimit),
                    Some((last, others)) => {
                        for &to in others {
                            out.received(now, Node(to), &reception);
                            out.deliver(now, Node(to), Self::packet(&meta, payload.clone()), &rx);
                        }
                        out.received(now, Node(*last), &reception);
                        out.deliver(now, Node(*last), Self::packet(&meta, payload), &rx);
                    }
                }
            }
            self.pool.remove(ex.packet);
        }
        self.overheard = overheard;
        self.finish(now, flight.contender, true, out);
    }

    /// A contender's exchange is over: `answered` says how it went.
    pub(super) fn finish(&mut self, now: Time, contender: u16, answered: bool, out: &mut impl Air<P>) {
        let index = usize::from(contender);
        let ex = self.exchanges[index];
        // To ns-3 what RTS announces is a long frame, whatever its length, and an RTS without an answer no attempt of it.
        let announced = self.medium.ns3 && (ex.announcing || !ex.handshake.is_zero());
        let unheard = announced && ex.announcing && !answered;
        let limit = if announced { NS3_LONG_RETRY_LIMIT } else { self.plan.params().retry_limit };
        if ex.to != NONE {
            self.account(contender, ex);
            if ex.kind == PpduKind::BlockAckReq {
                self.settle_request(now, contender, answered, limit, out);
            } else if unheard {
                self.sessions[ex.session as usize].call_off();
                self.retire(ex.session as usize, index, usize::from(ex.slot));
            } else {
                self.settle_data(now, contender, answered, limit, out);
                if !ex.announcing {
                    let peer = self.ports[index / self.classes].first_peer + usize::from(ex.slot);
                    let acknowledged = if answered { ex.received } else { 0 };
                    self.learn(now, peer, ex.session as usize, ex.mode, ex.mpdus, acknowledged);
                }
            }
        }
        let failures = if answered { 0 } else { ex.failures + u8::from(!unheard) };
        let window = if answered || failures >= limit { Window::Reset } else { Window::Double };
        self.exchanges[index].failures = if failures >= limit { 0 } else { failures };
        (self.exchanges[index].announcing, self.exchanges[index].free) = (false, now);
        self.top_up(now, contender, out);
        self.exchange_over(now, index, out);
        let next = now + self.medium.timing.sifs;
        if answered && ex.txop_end > next && !self.queues[index].is_empty() {
            return self.schedule(next, Event::GoOn(contender));
        }
        self.leave(now, contender, window);
    }

    /// A contender gives the channel up.
    pub(super) fn leave(&mut self, now: Time, contender: u16, window: Window) {
        let index = usize::from(contender);
        let node = self.medium.contenders[index].node;
        let beacon = index == self.beacon_contender(usize::from(node)) && self.ports[usize::from(node)].beacon_due;
        self.medium.back_off(contender, window, now);
        if self.queues[index].is_empty() && !beacon {
            self.medium.asleep(contender);
        } else {
            self.medium.awake(contender, now);
        }
        self.medium.set_exchange(node, false, now);
    }

    /// Books an exchange with both ends: all counters move together when it is over, as a driver's do.
    fn account(&mut self, contender: u16, ex: Exchange) {
        let index = usize::from(contender);
        let classes = self.classes;
        let (node, class, slot) = (index / classes, index % classes, usize::from(ex.slot));
        let answer = if ex.answer.is_zero() { Span::ZERO } else { self.medium.timing.sifs + ex.answer };
        let airtime = ex.handshake + if ex.announcing { Span::ZERO } else { ex.duration + answer };
        let peer = self.ports[node].first_peer + slot;
        let counted = &mut self.peers[peer];
        counted.tx_airtime += airtime;
        if ex.kind == PpduKind::Data && !ex.announcing {
            counted.tx_attempts += u64::from(ex.mpdus);
            counted.tx_retries += u64::from(ex.retries);
            counted.tx_ppdus += 1;
        }
        self.queues[index].charge(slot, airtime);
        let to = usize::from(ex.to);
        let back = self.slot(to, node);
        let reverse = self.ports[to].first_peer + back;
        self.peers[reverse].rx_airtime += airtime;
        self.queues[to * classes + class].charge(back, airtime);
    }

    fn settle_data(&mut self, now: Time, contender: u16, answered: bool, limit: u8, out: &mut impl Air<P>) {
        let index = usize::from(contender);
        let ex = self.exchanges[index];
        let slot = usize::from(ex.slot);
        let port = &self.ports[index / self.classes];
        let (peer, block_ack) = (port.first_peer + slot, port.most_mpdus > 1);
        let (pool, payloads, counted) = (&self.pool, &mut self.payloads, &mut self.peers[peer]);
        let joined = &self.joined;
        let session = &mut self.sessions[ex.session as usize];
        let mut hardware = if self.tables.is_empty() { None } else { self.queues[index].hardware() };
        let from = self.medium.contenders[index].node;
        let reports = out.wants_completions();
        session.settle(answered, limit, block_ack, |entry| {
            if reports {
                let outcome = if entry.acked { Outcome::Acknowledged } else { Outcome::GivenUp };
                let mut id = entry.id;
                for _ in 0..entry.packets {
                    out.completed(now, &completion(pool.get(id), from, entry.head_at, outcome));
                    id = joined[id as usize];
                }
            }
            if let Some(hardware) = &mut hardware {
                let mut id = entry.id;
                for _ in 0..entry.packets {
                    hardware.complete(slot, pool.get(id).airtime);
                    id = joined[id as usize];
                }
            }
            if entry.acked {
                counted.tx_packets += u64::from(entry.packets);
                counted.tx_bytes += u64::from(entry.len);
                return;
            }
            counted.tx_failed += u64::from(entry.packets);
            // If only the answers were lost, the receiver has it all the same, perhaps behind a hole.
            if entry.got {
                return;
            }
            let mut id = entry.id;
            for _ in 0..entry.packets {
                if let Some(payload) = payloads[id as usize].take() {
                    out.dropped(now, Self::packet(pool.get(id), payload), Drop::RetryLimit);
                }
                id = joined[id as usize];
            }
        });
        self.retire(ex.session as usize, index, slot);
    }

    fn settle_request(&mut self, now: Time, contender: u16, answered: bool, limit: u8, out: &mut impl Air<P>) {
        let index = usize::from(contender);
        let ex = self.exchanges[index];
        let slot = usize::from(ex.slot);
        let session = &mut self.sessions[ex.session as usize];
        session.request_failures = if answered { 0 } else { session.request_failures + 1 };
        let lost = session.request_failures >= limit;
        if answered || lost {
            session.request = false;
            session.request_failures = 0;
        }
        if lost {
            let (from, to) = (self.medium.contenders[index].node, ex.to);
            let (start, end, reserves) = (now, now, Span::ZERO);
            let (kind, vector) = (PpduKind::BlockAckReq, self.response(contender).vector());
            let flight = Flight { from, to, kind, vector, contender, start, end, reserves };
            self.release(now, flight, true, out);
        }
        self.retire(ex.session as usize, index, slot);
    }

    /// Forgets what both ends are done with, and tells the queue what is still to be sent.
    pub(super) fn retire(&mut self, session: usize, queue: usize, slot: usize) {
        while let Some(entry) = self.sessions[session].retire() {
            let mut id = entry.id;
            for _ in 1..entry.packets {
                let next = self.joined[id as usize];
                self.pool.remove(id);
                self.queues[queue].release(slot);
                id = next;
            }
            self.pool.remove(id);
            self.queues[queue].release(slot);
        }
        let pending = self.sessions[session].pending().map_or(u64::MAX, |entry| self.pool.get(entry.id).order);
        self.queues[queue].set_resend(slot, pending);
    }
}

/// ns-3's `MaxSlrc`: failed attempts after which a frame that is longer than the RTS threshold is given up.
const NS3_LONG_RETRY_LIMIT: u8 = 4;
