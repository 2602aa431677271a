//! What programs see of the world: the time, timers, links, sockets, and where measurements go.

use crate::agenda::{Agenda, Component};
use crate::hook::{Hook, Interface};
use crate::net::{Effects, Net};
use crate::payload::{Address, Datagram, Payload, ProgramId, packet, udp_packet};
use crate::sockets::Sockets;
use lasthop_radio::{AccessClass, Dest, Packet};
use lasthop_report::{NOBODY, Recorder};
use lasthop_scenario::Stream;
use lasthop_signals::{HostId, Node};
use lasthop_units::{Bytes, Seed, Time};
use lasthop_wire::FlowKey;

/// The world without its programs.
#[derive(Clone)]
pub(crate) struct Context {
    pub(crate) now: Time,
    pub(crate) agenda: Agenda,
    /// What each component is, by its number.
    components: Vec<Owner>,
    pub(crate) net: Net,
    /// The last hop among the links.
    pub(crate) last_hop: usize,
    pub(crate) access_points: AccessPoints,
    /// Each host's node on the last hop, if it is a station.
    pub(crate) stations: Vec<Option<Node>>,
    /// What stands in each host's forwarding path.
    pub(crate) hooks: Vec<Vec<Box<dyn Hook>>>,
    /// The programs that listen at each node of the last hop.
    pub(crate) listeners: Vec<Vec<ProgramId>>,
    /// The edge proxy, if there is one.
    pub(crate) proxy: Option<Address>,
    /// TCP of all hosts.
    pub(crate) sockets: Sockets,
    pub(crate) seed: Seed,
    pub(crate) effects: Effects,
    pub(crate) recorder: Recorder,
}

/// What a component of the agenda is.
#[derive(Clone, Copy)]
pub(crate) enum Owner {
    Link(usize),
    /// The look at the bulk senders.
    Sampler,
    /// What hosts have received.
    HandingUp,
    /// A timer of a program, by the number that the program knows it by.
    Program(ProgramId, u32),
}

/// The access points of the hop, and where each station belongs.
#[derive(Clone, Debug)]
pub(crate) struct AccessPoints {
    /// Their nodes, the hop's own first.
    pub(crate) nodes: Vec<Node>,
    /// For each station, the place of its access point among them.
    pub(crate) homes: Vec<usize>,
}

impl AccessPoints {
    /// The place of a station's access point.
    #[inline]
    pub(crate) fn home(&self, station: Node) -> usize {
        self.homes[station.index() - 1]
    }

    /// The place of an access point; `None` for any other node.
    #[inline]
    pub(crate) fn place(&self, node: Node) -> Option<usize> {
        self.nodes.iter().position(|ap| *ap == node)
    }
}

impl Context {
    /// At the beginning, with the links in the agenda. `stations`: each host's node on the last
    /// hop, if it is a station.
    pub(crate) fn new(
        (net, last_hop): (Net, usize),
        access_points: AccessPoints,
        stations: Vec<Option<Node>>,
        sockets: Sockets,
        recorder: Recorder,
        seed: Seed,
    ) -> Context {
        let mut context = Context {
            now: Time::ZERO,
            agenda: Agenda::default(),
            components: Vec::new(),
            hooks: vec![Vec::new(); stations.len()],
            listeners: vec![Vec::new(); net.links[last_hop].hosts.len()],
            net,
            last_hop,
            access_points,
            stations,
            proxy: None,
            sockets,
            seed,
            effects: Effects::default(),
            recorder,
        };
        for link in 0..context.net.len() {
            let component = context.component(Owner::Link(link));
            context.agenda.set(component, context.net.next_event(link));
        }
        context
    }

    /// A new component of the agenda. At equal times it acts after those before it.
    pub(crate) fn component(&mut self, owner: Owner) -> Component {
        let component = self.next_component();
        self.components.push(owner);
        component
    }

    /// The component that comes next.
    pub(crate) fn next_component(&self) -> Component {
        Component(self.components.len() as u32)
    }

    /// A new timer of a program, which it is woken by as `timer`.
    pub(crate) fn timer(&mut self, own: ProgramId, timer: u32) -> Component {
        self.component(Owner::Program(own, timer))
    }

    /// What a component is.
    #[inline]
    pub(crate) fn owner(&self, component: Component) -> Owner {
        self.components[component.0 as usize]
    }

    /// A program hears what a node of the last hop hears.
    pub(crate) fn listen(&mut self, own: ProgramId, node: Node) {
        self.listeners[node.index()].push(own);
    }

    /// The host of a node of a link.
    #[inline]
    pub(crate) fn host_at(&self, (link, node): Interface) -> Option<HostId> {
        self.net.links[link].hosts[node.index()]
    }

    /// The host that a station is.
    pub(crate) fn host_of(&self, station: Node) -> HostId {
        self.host_at((self.last_hop, station)).expect("a station is a host")
    }

    /// The station that a stream counts for in figures.
    pub(crate) fn concerned(&self, stream: &Stream) -> Node {
        let station = |host: HostId| self.stations[host.index()];
        station(stream.to).or(station(stream.from)).unwrap_or(NOBODY)
    }

    /// The TCP connection that a packet is of, in its direction.
    pub(crate) fn key(&self, datagram: &Datagram) -> Option<FlowKey> {
        match &datagram.content {
            Payload::Tcp { connection, .. } => Some(self.sockets.connections[*connection as usize].key(datagram.from)),
            _ => None,
        }
    }

    /// A packet leaves `host` towards the one that it is for. Without a way it vanishes, as where
    /// a router has no route.
    #[inline(always)]
    pub(crate) fn send(&mut self, host: HostId, packet: Packet<Datagram>) {
        let Some(step) = self.net.next(host, packet.payload.to) else { return };
        let mut packet = Packet { src: step.from, dst: Dest::Node(step.to), ..packet };
        let interface = (usize::from(step.link), step.from);
        self.hooks[host.index()].iter_mut().for_each(|hook| hook.queued(self.now, interface, &mut packet));
        self.enqueue(interface.0, packet);
    }

    /// A node of the last hop sends `payload` octets by UDP to all that hear it, with priority.
    pub(crate) fn broadcast(&mut self, node: Node, payload: usize, flow_hash: u32, content: Payload) {
        let host = self.host_of(node);
        let len = udp_packet(Bytes::new(payload as u64));
        let packet = packet((host, Address::nobody(host)), len, AccessClass::Voice, flow_hash, content);
        self.enqueue(self.last_hop, Packet { src: node, dst: Dest::Group, ..packet });
    }

    /// A packet enters a link.
    #[inline(always)]
    pub(crate) fn enqueue(&mut self, link: usize, packet: Packet<Datagram>) {
        let next = self.net.enqueue(link, self.now, packet, &mut self.effects);
        self.agenda.set(Net::component(link), next);
    }

    /// A program hands something to another one: that has it before anything else happens.
    pub(crate) fn hand(&mut self, to: Address, content: Payload) {
        self.effects.hand(Datagram { content, from: to.host, to: to.host, program: to.program });
    }
}
