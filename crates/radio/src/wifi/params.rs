//! What a Wi-Fi hop is made of. Plain data with public fields: [`Params::validate`] turns it into a [`super::Plan`].

use super::link::Link;
use super::phy::{GuardInterval, Mcs, Phy, Profile, Standard, Width};
use crate::AccessClass;
use crate::queue;
use lasthop_signals::Node;
use lasthop_units::{Bytes, Rate, Span, Time};

/// A radio channel with its nodes.
#[derive(Clone, Debug, PartialEq)]
pub struct Params {
    /// Physical layer of every node that has none of its own.
    pub standard: Standard,
    /// Channel width of data PPDUs. Control and group frames go out in 20 MHz (duplicated).
    pub width: Width,
    /// Guard interval of data PPDUs.
    pub guard_interval: GuardInterval,
    /// The nodes; [`Node`]`(i)` is `nodes[i]`.
    pub nodes: Vec<NodeParams>,
    /// Which nodes hear each other.
    pub reach: ReachMatrix,
    /// What is said of single links, in place of what `nodes` says of them; at most one entry from one node to another.
    pub links: Vec<LinkParams>,
    /// A frame survives those that it overlaps with, where signal-to-noise ratios say that it does. Otherwise all of them are
    /// lost wherever more than one is heard.
    pub capture: bool,
    /// The queue of every access point, once per access class.
    pub ap_queue: queue::Kind,
    /// The queue of every station and peer that has none of its own, once per access class. A neighbour's is a FIFO of
    /// 1000 packets.
    pub station_queue: queue::Kind,
    /// A frame is given up after this many failed attempts (dot11ShortRetryLimit).
    pub retry_limit: u8,
    /// MPDUs in an A-MPDU, at most 64 (the compressed BlockAck's bitmap), with 802.11ax 256. 1 turns aggregation off.
    pub max_ampdu_mpdus: u16,
    /// Packets that share an MPDU, with 802.11n and later; `None` for one each.
    pub amsdu: Option<Amsdu>,
    /// Beacons of every access point; `None` for none.
    pub beacons: Option<Beacons>,
    /// Traffic that the model makes up by itself: a neighbouring BSS on the channel.
    pub background: Vec<Background>,
    /// How often the driver of each access point reports, and of each node with [`NodeParams::reports`].
    pub driver_interval: Span,
    /// Access points keep the group frames of their stations to themselves. Otherwise they send them out again to all of
    /// their BSS (IEEE 802.11-2020, 9.3.2.1.2).
    pub client_isolation: bool,
    /// What the model shall agree with.
    pub profile: Profile,
}

impl Params {
    /// The physical layer of a node.
    pub fn phy(&self, node: Node) -> Phy {
        let own = self.nodes.get(node.index()).and_then(|params| params.phy);
        let Params { standard, width, guard_interval, .. } = *self;
        own.unwrap_or(Phy { standard, width, guard_interval })
    }

    /// Nodes that all hear each other, an access point queue of one 1000-packet FIFO, beacons on.
    pub fn new(standard: Standard, width: Width, guard_interval: GuardInterval, nodes: Vec<NodeParams>) -> Params {
        Params {
            standard,
            width,
            guard_interval,
            reach: ReachMatrix::all_hear_all(nodes.len()),
            links: Vec::new(),
            capture: false,
            nodes,
            ap_queue: queue::Kind::Fifo { packets: 1000 },
            station_queue: queue::Kind::Fifo { packets: 1000 },
            client_isolation: false,
            retry_limit: 7,
            max_ampdu_mpdus: 64,
            amsdu: None,
            beacons: Some(Beacons::default()),
            background: Vec::new(),
            driver_interval: Span::from_millis(4),
            profile: Profile::Standard,
        }
    }
}

/// One node on the channel.
#[derive(Clone, Debug, PartialEq)]
pub struct NodeParams {
    /// What it is.
    pub role: Role,
    /// Rate of the data PPDUs between a station and its access point, in both directions. On a link without a
    /// station it is the transmitter's. An access point's own is used only towards nodes that are not stations.
    pub rate: RateChoice,
    /// Probability that one MPDU is lost to noise on a link that `rate` applies to, 0 to 1. Collisions come on top.
    pub mpdu_error: f64,
    /// Radio conditions of the links that `rate` applies to, from which losses follow beside `mpdu_error`; `None` for a
    /// link that loses nothing else.
    pub link: Option<Link>,
    /// The physical layer of a neighbour or peer that is not the hop's; it exchanges frames with nodes of the same
    /// standard only.
    pub phy: Option<Phy>,
    /// Data PSDUs that are longer than this are announced by RTS and CTS; `None` for never (dot11RTSThreshold).
    pub rts_threshold: Option<Bytes>,
    /// The queue of a station or peer, in place of [`Params::station_queue`].
    pub queue: Option<queue::Kind>,
    /// Its driver reports, as an access point's always does: one entry for each node that it exchanges frames with; a
    /// station's for its access point.
    pub reports: bool,
    /// Each MPDU is handed up as its A-MPDU subframe ends, as some drivers do, and not with the others at the frame's end. All the
    /// same a frame's packets come out of the hop together, at its end: with the times at which they were handed up.
    pub mpdu_by_mpdu: bool,
}

/// The way from one node to another. What is `None` is as without this entry.
#[derive(Clone, Debug, PartialEq)]
pub struct LinkParams {
    /// Transmitter.
    pub from: Node,
    /// Receiver.
    pub to: Node,
    /// Rate of the data PPDUs.
    pub rate: Option<RateChoice>,
    /// Probability that one MPDU is lost to noise, 0 to 1.
    pub mpdu_error: Option<f64>,
    /// Radio conditions. Between nodes that exchange no frames they say with which power one disturbs the other, for
    /// [`Params::capture`].
    pub link: Option<Link>,
}

impl LinkParams {
    /// A link of which nothing is said.
    pub fn new(from: Node, to: Node) -> LinkParams {
        LinkParams { from, to, rate: None, mpdu_error: None, link: None }
    }
}

/// How packets are gathered into A-MSDUs: as many as wait, within these limits. They are acknowledged, or lost, together.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Amsdu {
    /// Longest A-MSDU: 3839, 7935 or 11454 octets, within what the standard's longest MPDU holds.
    pub octets: u32,
    /// Most packets in one.
    pub packets: u16,
}

impl NodeParams {
    /// An error-free node at a fixed rate.
    pub fn new(role: Role, mcs: Mcs) -> NodeParams {
        let (rate, mpdu_error, link, phy) = (RateChoice::Fixed(mcs), 0.0, None, None);
        let (rts_threshold, queue) = (None, None);
        NodeParams { role, rate, mpdu_error, link, phy, rts_threshold, queue, reports: false, mpdu_by_mpdu: false }
    }
}

/// What a node is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Role {
    /// An access point: it beacons, its driver reports, its queue is [`Params::ap_queue`].
    Ap,
    /// A station: it exchanges frames with its access point only.
    Station {
        /// Where it is associated.
        ap: Node,
    },
    /// A node of a foreign BSS: it sends only [`Background`] traffic, to other neighbours.
    Neighbour,
    /// A node without a BSS (IBSS, mesh): it sends to any other peer that decodes it.
    Peer,
}

/// How the rate of a link comes about.
#[derive(Clone, Debug, PartialEq)]
pub enum RateChoice {
    /// The same all the time.
    Fixed(Mcs),
    /// Steps in increasing order of time; each holds until the next, the first also before its time.
    Trace(Vec<(Time, Mcs)>),
    /// What carries most at the signal-to-noise ratio of the moment, which the transmitter knows: the MCS with the
    /// highest product of rate and probability that a packet of 1500 bytes arrives. Needs a [`Link`].
    Ideal {
        /// Most spatial streams.
        nss: u8,
    },
    /// What each transmitter learns from its own acknowledgements, as Linux's minstrel_ht does.
    Minstrel {
        /// Most spatial streams.
        nss: u8,
    },
    /// Auto rate fallback, for 802.11a and g: up after ten acknowledged frames, down after two failures.
    Arf,
    /// Adaptive ARF, for 802.11a and g: after a failed step up, the next comes later.
    Aarf,
}

/// How well one node hears another.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub enum Reach {
    /// Not at all.
    #[default]
    None,
    /// It destroys what the other receives meanwhile, but is too weak to be sensed.
    Interferes,
    /// It is sensed as a busy medium, and interferes, but cannot be decoded: a reception with an error, which EIFS
    /// follows.
    Senses,
    /// Frames are decoded if nothing else is heard meanwhile, and if their format is known: of a format that came after
    /// its own amendment a node decodes only how long it lasts (L-SIG), which ends for it like a damaged frame.
    Decodes,
}

/// A [`Reach`] for each ordered pair of nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReachMatrix {
    nodes: usize,
    cells: Vec<Reach>,
}

impl ReachMatrix {
    /// Nobody hears anybody.
    pub fn nobody(nodes: usize) -> ReachMatrix {
        ReachMatrix { nodes, cells: vec![Reach::None; nodes * nodes] }
    }

    /// Everybody decodes everybody else.
    pub fn all_hear_all(nodes: usize) -> ReachMatrix {
        ReachMatrix { nodes, cells: vec![Reach::Decodes; nodes * nodes] }
    }

    /// How many nodes it is made for.
    pub fn nodes(&self) -> usize {
        self.nodes
    }

    /// How well `to` hears `from`. Panics if a node does not exist.
    pub fn get(&self, from: Node, to: Node) -> Reach {
        assert!(from.index() < self.nodes && to.index() < self.nodes, "{from:?} or {to:?} is not in the matrix");
        self.cells[from.index() * self.nodes + to.index()]
    }

    /// Says how well `to` hears `from`. Panics if a node does not exist.
    pub fn set(&mut self, from: Node, to: Node, reach: Reach) {
        assert!(from.index() < self.nodes && to.index() < self.nodes, "{from:?} or {to:?} is not in the matrix");
        self.cells[from.index() * self.nodes + to.index()] = reach;
    }

    /// Says how well `a` and `b` hear each other. Panics if a node does not exist.
    pub fn set_both(&mut self, a: Node, b: Node, reach: Reach) {
        self.set(a, b, reach);
        self.set(b, a, reach);
    }
}

/// An access point's beacons: group frames at the lowest basic rate, in AC_VO.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Beacons {
    /// Time between target transmission times.
    pub interval: Span,
    /// MPDU length, header and FCS included.
    pub mpdu: Bytes,
}

impl Default for Beacons {
    /// Every 100 time units of 1024 us (what access points ship with); 250 octets, which a frame with HT and VHT
    /// elements has.
    fn default() -> Beacons {
        Beacons { interval: Span::from_micros(102_400), mpdu: Bytes::new(250) }
    }
}

/// A source of packets inside the model. Nothing of it reaches the outbox but its PPDUs.
#[derive(Clone, Debug, PartialEq)]
pub struct Background {
    /// The sender.
    pub from: Node,
    /// The receiver.
    pub to: Node,
    /// In which access class.
    pub class: AccessClass,
    /// Network-layer length of each packet.
    pub packet: Bytes,
    /// How much.
    pub load: Load,
    /// When it is active, from the first moment up to but without the second, in order and apart; empty: always.
    pub active: Vec<(Time, Time)>,
}

/// How much a [`Background`] source sends while it is active.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Load {
    /// Its queue never runs empty.
    Saturated,
    /// Packets arrive at random (a Poisson process), this many bits of packets a second in the mean.
    Offered(Rate),
}
