//! A TCP option by which one end of a connection signals something to the other end's law.

use dyn_clone::DynClone;
use lasthop_signals::Signal;
use lasthop_units::{Bytes, Span, Time};
use lasthop_wire::tcp::TcpOptions;
use std::any::Any;

/// What an end has to do with one option: what it writes into its own segments, and what it makes
/// of the peer's. The option is in use where both ends have it in their SYNs; an end that the peer
/// does not answer in kind forgets it.
pub trait SignalOption: Any + DynClone + Send {
    /// Octets of it in a segment, a whole number of words.
    fn octets(&self) -> u16;

    /// True if this end has it in each of its segments, false if only in its SYN.
    fn is_in_each_segment(&self) -> bool;

    /// True if the peer's SYN has it.
    fn is_offered(&self, syn: &TcpOptions) -> bool;

    /// Puts it into this end's SYN.
    fn offer(&mut self, syn: &mut TcpOptions);

    /// Puts it into another segment, which has room for it, if there is something to say.
    fn write(&mut self, options: &mut TcpOptions);

    /// The handshake is over: what this end's law is shown before anything else.
    fn agreed(&self) -> Option<Signal>;

    /// What the option of the peer's SYN shows this end's law.
    fn read_syn(&mut self, syn: &TcpOptions) -> Option<Signal>;

    /// What the option of another segment of the peer shows this end's law.
    fn read(&mut self, options: &TcpOptions) -> Option<Signal>;

    /// A packet of `len` octets with payload has come. `stamp` is its timestamp, if it has one.
    fn on_packet(&mut self, now: Time, stamp: Option<u32>, len: Bytes);

    /// This end has measured a round trip.
    fn on_round_trip(&mut self, now: Time, round_trip: Span);

    /// When it wants `on_timeout` called; `Time::MAX` for never.
    fn next_timeout(&self) -> Time;

    /// Acts on what is due by `now`.
    fn on_timeout(&mut self, now: Time);
}

dyn_clone::clone_trait_object!(SignalOption);
