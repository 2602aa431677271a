//! What stands in the forwarding path of a host, beside its queues: it sees what passes, may change it, and hears the driver.

use crate::cargo::Datagram;
use lasthop_radio::Packet;
use lasthop_signals::{HopReport, Node};
use lasthop_units::Time;
use lasthop_wire::FlowKey;

/// An interface of a host: a link, by its place among the world's, and the host's node on it.
pub type Interface = (usize, Node);

/// A packet that a host forwards, at one of its interfaces.
pub struct Passage<'p> {
    /// When.
    pub at: Time,
    /// Where it came in, or where it leaves.
    pub interface: Interface,
    /// The node at the other end: whom it came from, or whom it goes to.
    pub beside: Node,
    /// The TCP connection that it is of, in its direction.
    pub key: Option<FlowKey>,
    /// What passes.
    pub packet: &'p mut Packet<Datagram>,
}

/// Something in a host's forwarding path. What a host sends or receives itself does not pass here.
pub trait Hook: Send + CloneHook {
    /// A packet for another host has come in.
    fn comes(&mut self, _: &mut Passage<'_>) {}

    /// A packet for another host is about to wait at an interface.
    fn leaves(&mut self, _: &mut Passage<'_>) {}

    /// The driver of one of the host's interfaces reports.
    fn hears(&mut self, _at: Time, _interface: Interface, _report: &HopReport) {}
}

/// Copies a hook whose type is not known. Every hook that is [`Clone`] has it.
pub trait CloneHook {
    /// A copy that has seen the same, and goes on by itself.
    fn boxed_clone(&self) -> Box<dyn Hook>;
}

impl<T: Hook + Clone + 'static> CloneHook for T {
    fn boxed_clone(&self) -> Box<dyn Hook> {
        Box::new(self.clone())
    }
}

impl Clone for Box<dyn Hook> {
    fn clone(&self) -> Box<dyn Hook> {
        (**self).boxed_clone()
    }
}
