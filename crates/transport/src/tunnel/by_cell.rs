//! PBE-CC in the tunnel: what a station tells of its cell, and an end that goes by it.
//! Source:     \[pbe\], section 4, by the laws of [`lasthop_laws::pbe`]; RFC 9002 for acknowledgements and losses.
//! Equations:  C = C' L / (L - H): the law's C' is of payload, the pace and the window here are of IP packets
//! Symbols:    C', C_t or C_f as they are told -> `CellCapacity`; L, a full packet -> `PacketSize`; H -> `pbe::HEADERS`
//! Deviations: as for TCP, where every segment tells: here every acknowledgement, and what leaves without data, so that the first packet of a session says that
//!             its station will tell. What a packet tells that was overtaken is no news. Where nothing is told the law falls back by itself.
//! Validity:   the station acknowledges within about a subframe ([`super::AckRule::PROMPT`]).     Checked by: tests/integration/cell_pace.rs

use super::arrivals::AckRule;
use super::cell::CellFigures;
use super::control::{Control, LawControl};
use super::endpoint::{Endpoint, Event};
use lasthop_laws::{SenderLaw, pbe};
use lasthop_signals::{CellCapacity, Signal};
use lasthop_units::{Span, Time};
use lasthop_wire::tunnel::Frame;

impl Endpoint {
    /// From now on acknowledgements tell this of the own cell.
    pub fn tell_cell(&mut self, told: CellCapacity) {
        self.cells.tells = Some(told);
    }

    /// Lets a law decide that is told of the other end's cell, from what has been told already: in answer to [`Event::Cell`]. The other end is taken to
    /// acknowledge promptly, as an end does that tells.
    pub fn follow_cell(&mut self, now: Time, law: Box<dyn SenderLaw>) {
        let before = self.rate(now);
        let mut law = LawControl::new(law);
        if let Some((_, told)) = self.cells.heard {
            law.sense(now, &self.of_packets(told));
        }
        self.pacer.change(now, before, law.rate(now));
        self.control = Control::Law(law);
        self.config.peer_acks = AckRule::PROMPT;
        self.cells.followed = true;
    }

    /// What decides; `None` where no cell does.
    pub fn cell_figures(&self, now: Time) -> Option<CellFigures> {
        let Control::Law(law) = &self.control else { return None };
        let told = self.cells.heard.map_or(CellCapacity::UNKNOWN, |(_, told)| told);
        let figures = || CellFigures { told, rate: law.rate(now), window: law.window(now), why: law.why(now) };
        self.cells.followed.then(figures)
    }

    /// The last round trip, without the other end's waiting; `None` before there was one.
    pub fn latest_round_trip(&self) -> Option<Span> {
        self.sent_packets.latest_rtt()
    }

    /// What the next packet tells of the own cell. `bare`: it acknowledges, or has no data.
    pub(super) fn cell_frame(&self, bare: bool) -> Option<Frame<'static>> {
        self.cells.tells.filter(|_| bare).map(Frame::Cell)
    }

    /// The other end tells of its cell, in the packet with this number.
    pub(super) fn on_cell(&mut self, now: Time, number: u64, told: CellCapacity) {
        if self.cells.heard.is_some_and(|(newest, _)| number <= newest) {
            return;
        }
        let first = self.cells.heard.replace((number, told)).is_none();
        match self.cells.followed {
            true => {
                let told = self.of_packets(told);
                self.law_senses(now, |law| law.sense(now, &told));
            }
            false if first => self.events.push_back(Event::Cell(told)),
            false => {}
        }
    }

    /// What is told of payload, of IP packets of the path's length.
    fn of_packets(&self, told: CellCapacity) -> Signal {
        let full = self.size.sealed_ip_len(self.size.packet()) as f64;
        let more = full / (full - pbe::HEADERS.get() as f64);
        let CellCapacity { available, fair, .. } = told;
        Signal::Cell(CellCapacity { available: available.scale(more), fair: fair.scale(more), ..told })
    }

    /// Lets the law take something in, and the pacer what follows from it.
    pub(super) fn law_senses(&mut self, now: Time, sense: impl FnOnce(&mut LawControl)) {
        let Control::Law(law) = &mut self.control else { return };
        let before = law.rate(now);
        sense(law);
        let after = law.rate(now);
        if after != before {
            self.pacer.change(now, before, after);
        }
    }
}
