//! An end that lets the delay of a mesh's slowest hop decide: [`super::path_pace`] at work.

use super::control::Control;
use super::endpoint::Endpoint;
use super::frames::Content;
use super::path_pace::{PathFigures, PathPace};
use lasthop_laws::{ReceiverLaw, SenderLaw};
use lasthop_units::{Bytes, Span, Time};
use lasthop_wire::tunnel::Frame;

impl Endpoint {
    /// Lets D decide: `sender` of what leaves, `receiver` what the other end is told of what comes. Every packet that leaves must carry
    /// [`Endpoint::set_own_delay`]'s D where relays find it, and what comes is handed in by [`Endpoint::on_stamped_packet`].
    pub fn with_path_pace(mut self, sender: Box<dyn SenderLaw>, receiver: Box<dyn ReceiverLaw>) -> Endpoint {
        self.control = Control::Path(Box::new(PathPace::new(sender, receiver)));
        self
    }

    /// D of this end's own interface from now on; zero: not known. Packets leave no faster, and no report of a lower one is believed.
    pub fn set_own_delay(&mut self, delay: Span) {
        if let Control::Path(path) = &mut self.control {
            path.set_own_delay(delay);
        }
    }

    /// What is known of the paths; `None` where D does not decide.
    pub fn path_figures(&self) -> Option<PathFigures> {
        let Control::Path(path) = &self.control else { return None };
        Some(path.figures())
    }

    pub(super) fn on_stamp(&mut self, now: Time, delay: Span, probe: bool) {
        let (holes, round_trip) = (self.arrivals.gaps(), self.rtt.srtt());
        if let Control::Path(path) = &mut self.control {
            path.on_stamp(now, delay, probe, holes, round_trip);
        }
    }

    pub(super) fn on_path_delay(&mut self, now: Time, average: Span, epoch: Span) {
        if let Control::Path(path) = &mut self.control {
            path.on_told(now, average, epoch);
            if !path.is_unknown() {
                self.pacer.wait_at_most(now + path.gap());
            }
        }
    }

    /// When a probe is due.
    pub(super) fn asks_at(&self) -> Option<Time> {
        let Control::Path(path) = &self.control else { return None };
        path.asks_at(!self.ready.is_empty(), self.sent_packets.waiting_since(), self.rtt.rto())
    }

    /// What goes along with acknowledgements: what is told of the path, and a probe.
    pub(super) fn put_path(&mut self, now: Time, asks: bool, out: &mut Vec<u8>) {
        let Control::Path(path) = &mut self.control else { return };
        let probe = asks.then_some(Frame::Probe);
        if asks {
            path.on_asked(now);
        }
        for frame in path.take_report().into_iter().chain(probe) {
            frame.encode(out).expect("two times");
        }
    }

    /// The packet counts for the pace; returns when it was due.
    pub(super) fn pace(&mut self, now: Time, len: Bytes, asks: bool, content: Option<&Content>) -> Time {
        let rate = self.rate(now);
        let Control::Path(path) = &self.control else { return self.pacer.on_sent(now, len, rate) };
        let counts = asks || content.is_some_and(|content| content.data.is_some());
        match counts && !path.is_unknown() {
            true => self.pacer.on_sent_every(now, path.gap()),
            false => now,
        }
    }
}
