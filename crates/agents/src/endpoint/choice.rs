//! Which transport carries a stream, by the name of a law.

use crate::service::Error;
use lasthop_laws::atp::{Average, Params, Rate, Variant as AtpVariant};
use lasthop_laws::tcp::Setup;
use lasthop_laws::{Choice, Place, Transport as LawTransport};
use lasthop_transport::stream::{AtpReceiver, AtpSender, StreamReceiver, StreamSender, TcpReceiver, TcpSender};
use lasthop_units::{Seed, Time};
use lasthop_wire::datagram::{Transport, Variant};

/// The law of a sender, and by that its transport.
#[derive(Clone, Debug, PartialEq)]
pub enum Law {
    /// ATP, by its variant.
    Atp(Variant),
    /// TCP under the congestion control of this name.
    Tcp(&'static str),
}

/// The variants of ATP, by name.
const VARIANTS: [(&str, &str, Variant); 4] = [
    (
        "adaptive",
        "ATP that tells as often as twenty packets come, and at once when the path changes",
        Variant::Adaptive,
    ),
    ("default", "ATP that tells every second", Variant::Default),
    ("aggressive", "ATP that tells every 40 ms", Variant::Aggressive),
    ("on-change", "ATP that tells of the path when it changes, and of packets apart from that", Variant::OnChange),
];

/// The laws that can be chosen: name and meaning.
pub fn laws() -> Vec<(&'static str, &'static str)> {
    let tcp =
        Place::Sender.laws().filter(|law| matches!(law.transport, LawTransport::Tcp(_))).map(|law| (law.name, law.doc));
    VARIANTS.iter().map(|(name, doc, _)| (*name, *doc)).chain(tcp).collect()
}

impl Law {
    /// The law of that name; `None` if there is none.
    pub fn named(name: &str) -> Option<Law> {
        let variant = VARIANTS.iter().find(|(known, ..)| *known == name).map(|(.., variant)| Law::Atp(*variant));
        variant.or_else(|| laws().into_iter().find(|(known, _)| *known == name).map(|(known, _)| Law::Tcp(known)))
    }

    /// Its name.
    pub fn name(&self) -> &'static str {
        match self {
            Law::Tcp(name) => name,
            Law::Atp(variant) => name_of(Transport::Atp(*variant)),
        }
    }

    /// What carries the stream.
    pub fn transport(&self) -> Transport {
        match self {
            Law::Atp(variant) => Transport::Atp(*variant),
            Law::Tcp(_) => Transport::Tcp,
        }
    }

    /// The sending end of a connection. Its datagrams have at most `datagram` octets.
    pub(super) fn sender(
        &self,
        now: Time,
        connection: u32,
        seed: u64,
        datagram: usize,
    ) -> Result<Box<dyn StreamSender>, Error> {
        Ok(match self {
            Law::Atp(variant) => {
                let law = Box::new(Rate::new(params(*variant)));
                Box::new(AtpSender::new(now, connection, law, datagram))
            }
            Law::Tcp(name) => {
                let setup = Setup::new(TcpSender::mss(datagram), Seed(seed).stream("sender"));
                let choice = Choice::named(Place::Sender, name).expect("it is in the list of laws");
                let loss_recovery = choice.transport().loss_recovery();
                Box::new(TcpSender::new(now, connection, seed as u32, choice.sender(setup)?, loss_recovery, datagram))
            }
        })
    }
}

/// How a transport is called.
pub(super) fn name_of(transport: Transport) -> &'static str {
    match transport {
        Transport::Atp(variant) => VARIANTS.iter().find(|(.., known)| *known == variant).map_or("atp", |known| known.0),
        Transport::Tcp => "tcp",
    }
}

/// The receiving end of a connection.
pub(super) fn receiver(
    now: Time,
    connection: u32,
    transport: Transport,
    seed: u64,
    datagram: usize,
) -> Box<dyn StreamReceiver> {
    match transport {
        Transport::Atp(variant) => {
            let params = params(variant);
            let apart = params.reports_apart();
            Box::new(AtpReceiver::new(connection, Box::new(Average::new(params)), apart))
        }
        Transport::Tcp => {
            let setup = Setup::new(TcpSender::mss(datagram), Seed(seed).stream("receiver"));
            let law = lasthop_laws::by_name("reno", setup).expect("a law that there is");
            Box::new(TcpReceiver::new(now, connection, seed as u32, law, datagram))
        }
    }
}

fn params(variant: Variant) -> Params {
    let variant = match variant {
        Variant::Default => AtpVariant::Default,
        Variant::Aggressive => AtpVariant::Aggressive,
        Variant::Adaptive => AtpVariant::Adaptive,
        Variant::OnChange => AtpVariant::OnChange,
    };
    Params { variant, ..Params::default() }
}
