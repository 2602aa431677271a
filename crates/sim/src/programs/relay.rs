//! A node of the last hop that stamps packets of ATP with the delay of its own hop.

use crate::hook::{Hook, Interface, Lost};
use crate::payload::Datagram;
use lasthop_laws::atp::HopDelay;
use lasthop_radio::{Dest, Packet};
use lasthop_report::{Gauge, Recorder, SeriesKind};
use lasthop_scenario::Scenario;
use lasthop_transport::atp;
use lasthop_units::{Span, Time};

/// The relay at one node.
#[derive(Clone)]
pub(crate) struct Relay {
    interface: Interface,
    delay: HopDelay,
}

impl Relay {
    /// At this interface, where a lone packet takes `service`.
    pub(crate) fn new(interface: Interface, service: Span) -> Relay {
        Relay { interface, delay: HopDelay::new(service) }
    }
}

impl Hook for Relay {
    /// A packet that is about to be queued gets the node's own delay, where that is the larger
    /// one.
    fn queued(&mut self, now: Time, interface: Interface, packet: &mut Packet<Datagram>) {
        if interface == self.interface {
            if let Some(packet) = packet.payload.content.message_mut::<atp::Packet>() {
                packet.header.delay = packet.header.delay.max(self.delay.delay(now));
            }
            self.delay.on_queued(now);
        }
    }

    fn done(&mut self, at: Time, interface: Interface, dst: Dest, (queued_at, head_at): (Time, Time)) {
        match dst {
            _ if interface != self.interface => {}
            Dest::Node(_) => self.delay.on_done(at, queued_at, head_at),
            Dest::Group => self.delay.on_group_done(at),
        }
    }

    fn lost(&mut self, _: Time, interface: Interface, lost: &Lost<'_>) {
        if interface == self.interface && !lost.on_air {
            self.delay.on_dropped();
        }
    }

    fn sample(&self, at: Time, recorder: &mut Recorder) {
        let (_, node) = self.interface;
        if node != Scenario::AP {
            let gauge = Gauge::Station(SeriesKind::NodeDelay, node);
            recorder.sample(at, gauge, self.delay.delay(at).as_millis_f64());
        }
    }
}
