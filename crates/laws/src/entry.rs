//! How a law declares itself: what it is called, where it runs, what may be set of it, and how it is built.

use crate::param::Param;
use crate::tcp::setup::Setup;
use crate::{HopLaw, ParamError, ReceiverLaw, ReceiverSetup, SenderLaw, Settings};
use lasthop_units::named;
use std::fmt;

named! {
    /// Where a law runs.
    #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
    pub enum Place {
        /// At a TCP sender: a congestion control.
        Sender = "sender",
        /// At a receiver, for what it tells the sender.
        Receiver = "receiver",
        /// In the agent on an access point.
        AccessPoint = "access-point",
        /// In the edge proxy between servers and access point.
        Proxy = "proxy",
        /// In the agent on a station.
        Station = "station",
        /// At a station that sends, for the windows of its own connections.
        Terminal = "terminal",
        /// On a node that forwards.
        Relay = "relay",
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Makes a congestion control from what was set of it and from what every sender is told.
pub type BuildSender = fn(&Settings, Setup) -> Result<Box<dyn SenderLaw>, ParamError>;
/// Makes a law of a hop from what was set of it.
pub type BuildHop = fn(&Settings) -> Result<Box<dyn HopLaw>, ParamError>;
/// Makes a law of a receiver from what was set of it and from what every receiver is told.
pub type BuildReceiver = fn(&Settings, ReceiverSetup) -> Result<Box<dyn ReceiverLaw>, ParamError>;

/// How a TCP sender finds losses and repairs them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum LossRecovery {
    /// By selective acknowledgements and time (RFC 8985), with tail loss probes: as hosts do it today.
    #[default]
    Rack,
    /// By selective acknowledgements and their number (RFC 6675).
    Sack,
    /// By duplicate acknowledgements; recovery ends when everything sent before it is acknowledged (RFC 6582).
    NewReno,
    /// By duplicate acknowledgements; recovery ends at the first acknowledgement of new data (RFC 5681).
    Reno,
    /// By duplicate acknowledgements; everything from the first hole on is sent again (Jacobson 1988).
    GoBackN,
}

impl LossRecovery {
    /// True if the receiver says which segments have come.
    pub const fn has_sack(self) -> bool {
        matches!(self, LossRecovery::Rack | LossRecovery::Sack)
    }
}

/// What carries the payload of a sender with a law.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Transport {
    /// TCP, with this way to repair losses.
    Tcp(LossRecovery),
    /// ATP: its sender is told what the path's slowest hop takes, and its receiver has a law of its own.
    Atp,
    /// TCP whose receiver runs the law of the same name, and tells in an option of its segments what that decides.
    ReceiverFeedback,
}

impl Transport {
    /// TCP as hosts have it today.
    pub const TCP: Transport = Transport::Tcp(LossRecovery::Rack);

    /// How losses are repaired where TCP does it.
    pub const fn loss_recovery(self) -> LossRecovery {
        match self {
            Transport::Tcp(loss_recovery) => loss_recovery,
            Transport::Atp | Transport::ReceiverFeedback => LossRecovery::Rack,
        }
    }
}

/// One law of the registry.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// Where it runs.
    pub place: Place,
    /// Of a sender's law: what it is for.
    pub transport: Transport,
    /// By which name scenarios, reports and command lines call it.
    pub name: &'static str,
    /// Other names that command lines accept.
    pub aliases: &'static [&'static str],
    /// What it is, in one line.
    pub doc: &'static str,
    /// What may be set of it.
    pub table: &'static [Param],
    pub(crate) build: Build,
}

/// How it is built.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Build {
    Sender(BuildSender),
    Hop(BuildHop),
    Receiver(BuildReceiver),
}

impl PartialEq for Entry {
    fn eq(&self, other: &Entry) -> bool {
        (self.place, self.name) == (other.place, other.name)
    }
}

impl Entry {
    /// A congestion control. Without parameters, `table` is empty.
    pub const fn sender(name: &'static str, doc: &'static str, table: &'static [Param], build: BuildSender) -> Entry {
        let (transport, place) = (Transport::TCP, Place::Sender);
        Entry { place, transport, name, aliases: &[], doc, table, build: Build::Sender(build) }
    }

    /// A law that decides for all flows of a hop, at `place`.
    pub const fn hop(
        place: Place,
        name: &'static str,
        doc: &'static str,
        table: &'static [Param],
        build: BuildHop,
    ) -> Entry {
        Entry { place, transport: Transport::TCP, name, aliases: &[], doc, table, build: Build::Hop(build) }
    }

    /// A law that decides at a receiver, at `place`, what it tells.
    pub const fn receiver(
        place: Place,
        name: &'static str,
        doc: &'static str,
        table: &'static [Param],
        build: BuildReceiver,
    ) -> Entry {
        Entry { place, transport: Transport::TCP, name, aliases: &[], doc, table, build: Build::Receiver(build) }
    }

    /// The same, for another transport than TCP.
    pub const fn over(self, transport: Transport) -> Entry {
        Entry { transport, ..self }
    }

    /// The same, with other names that command lines accept.
    pub const fn also(self, aliases: &'static [&'static str]) -> Entry {
        Entry { aliases, ..self }
    }

    /// The parameter with this key.
    pub fn param(&self, key: &str) -> Option<&'static Param> {
        self.table.iter().find(|param| param.key == key)
    }
}
