//! What runs on the hosts of a world.

use crate::context::Context;
use crate::hook::Interface;
use crate::payload::{Datagram, ProgramId};
use dyn_clone::DynClone;
use lasthop_radio::Packet;
use lasthop_signals::{Node, Signal};
use lasthop_units::{Bytes, Rate, Time};

/// A program on a host, or one kind of program on several.
pub(crate) trait Program: DynClone + Send {
    /// It is registered as `own`: it takes its timers and names the nodes that it listens at.
    fn begin(&mut self, context: &mut Context, own: ProgramId);

    /// Every program of the world is registered.
    fn ready(&mut self, _: &mut Context) {}

    /// One of its timers is due.
    fn wake(&mut self, _: &mut Context, _timer: u32) {}

    /// A packet for it has come to its host, or another program of the host hands it something.
    fn receive(&mut self, _: &mut Context, _at: Time, _: Datagram) {}

    /// A node of the last hop that it listens at has heard something.
    fn overheard(&mut self, _: &mut Context, _at: Time, _: Node, _: &Heard<'_>) {}

    /// A packet for it is lost at an interface: on the air or in the queue. No real program knows.
    fn lost(&mut self, _: &mut Context, _at: Time, _: Interface, _: &Datagram, _on_air: bool) {}

    /// The world looks at what bulk senders do: every 10 ms, as in the lab.
    fn sample(&mut self, _: &mut Context) {}

    /// Tells the recorder how many segments its bulk senders have sent by `at`.
    fn count_segments(&self, _: &mut Context, _at: Time) {}

    /// The run is over: tells the recorder what is unfinished.
    fn finish(&self, _: &mut Context) {}
}

dyn_clone::clone_trait_object!(Program);

/// What a node of the last hop hears, beside what its host receives.
pub(crate) enum Heard<'a> {
    /// A packet, whichever host it is for.
    Packet(&'a Packet<Datagram>),
    /// A frame with so many packets at this rate.
    Frame(u16, Rate),
    /// What its driver tells.
    Driver(&'a Signal),
    /// Its transmitter is done with a packet of this flow, by its hash, and of this length.
    Sent(u32, Bytes),
}
