//! What stands in the forwarding path of a host, beside its queues: it sees what passes, may change it, and hears the driver.

use crate::payload::{Datagram, Payload};
use dyn_clone::DynClone;
use lasthop_radio::{Dest, Packet};
use lasthop_report::Recorder;
use lasthop_signals::{HopReport, Node};
use lasthop_units::Time;
use lasthop_wire::FlowKey;

/// An interface of a host: a link, by its place among the world's, and the host's node on it.
pub type Interface = (usize, Node);

/// A packet that a host forwards, at one of its interfaces.
pub struct Forwarded<'p> {
    /// When.
    pub at: Time,
    /// Where it came in, or where it leaves.
    pub interface: Interface,
    /// The node at the other end: the one it came from, or the one it goes to.
    pub beside: Node,
    /// The TCP connection that it is of, in its direction.
    pub key: Option<FlowKey>,
    /// What passes.
    pub packet: &'p mut Packet<Datagram>,
}

/// A packet that is lost.
pub struct Lost<'p> {
    /// The TCP connection that it is of, in its direction.
    pub key: Option<FlowKey>,
    /// What it carries.
    pub payload: &'p Payload,
    /// True if the radio gave it up, false if a queue refused or dropped it.
    pub on_air: bool,
}

/// Something in a host's forwarding path. What a host sends or receives itself does not pass here,
/// but it waits in the same queues.
pub trait Hook: DynClone + Send {
    /// A packet for another host has come in.
    fn ingress(&mut self, _: &mut Forwarded<'_>) {}

    /// A packet for another host is about to wait at an interface.
    fn egress(&mut self, _: &mut Forwarded<'_>) {}

    /// A packet that left at one of the host's interfaces is lost: in its queue, or on the air after all retries. No real box knows;
    /// what a law concludes can be compared with it.
    fn lost(&mut self, _at: Time, _interface: Interface, _lost: &Lost<'_>) {}

    /// A packet to one receiver, forwarded or the host's own, is about to wait at an interface.
    fn queued(&mut self, _now: Time, _interface: Interface, _packet: &mut Packet<Datagram>) {}

    /// A transmitter is done with a packet. `waited`: since when it was queued, and at the head.
    fn done(&mut self, _at: Time, _interface: Interface, _dst: Dest, _waited: (Time, Time)) {}

    /// The driver of one of the host's interfaces reports.
    fn report(&mut self, _at: Time, _interface: Interface, _report: &HopReport) {}

    /// The driver of an access point has reported: figures of what stands here.
    fn sample(&self, _at: Time, _recorder: &mut Recorder) {}
}

dyn_clone::clone_trait_object!(Hook);
