//! The world's side of the edge proxy and of the stations' agents: which of them is woken when, and what passes between
//! them.

use crate::agenda::Component;
use crate::payload::{Payload, Tunnel, index, tunnel_packet, udp_packet};
use crate::programs::connection::{End, Via};
use crate::programs::proxy::{Departure, Proxy, Stream};
use crate::programs::station::Agent;
use crate::world::World;
use lasthop_laws::aggregation::flow_of;
use lasthop_laws::{ReceiveWindow, Share};
use lasthop_scenario::{Scenario, StreamKind};
use lasthop_signals::{FlowId, HostId, Node};
use lasthop_units::{Bytes, Span};
use std::num::NonZeroU32;

/// The proxies, the agents, and their places in the agenda.
#[derive(Clone)]
pub(crate) struct Edge {
    /// One for each access point.
    proxies: Vec<Proxy>,
    agents: Vec<Agent>,
    /// Where they stand.
    host: HostId,
    first: u32,
    /// Connections of each station with data that is still to come.
    open: Vec<usize>,
}

/// A request that never came is asked again after this.
const ASK_AGAIN: Span = Span::from_millis(200);

impl Edge {
    /// `first`: the number of its first component. The first are the laws; then each station has two, pacer and agent.
    pub(crate) fn new(proxies: Vec<Proxy>, agents: Vec<Agent>, host: HostId, first: u32) -> Edge {
        let open = vec![0; agents.len()];
        Edge { proxies, agents, host, first, open }
    }

    /// Where the proxies stand.
    pub(crate) fn host(&self) -> HostId {
        self.host
    }

    /// How many components it has.
    pub(crate) fn components(&self) -> u32 {
        (self.proxies.len() + 2 * self.agents.len()) as u32
    }

    /// The agent of a station.
    pub(crate) fn agent(&mut self, station: Node) -> &mut Agent {
        &mut self.agents[place(station)]
    }

    /// The law of the proxy at place `home`.
    fn law(&self, home: usize) -> Component {
        Component(self.first + home as u32)
    }

    fn pacer(&self, station: Node) -> Component {
        Component(self.first + (self.proxies.len() + 2 * place(station)) as u32)
    }

    fn waker(&self, station: Node) -> Component {
        Component(self.pacer(station).0 + 1)
    }
}

/// A station's place in lists of stations.
fn place(station: Node) -> usize {
    station.index() - 1
}

impl World {
    /// Puts the edge into the agenda.
    pub(crate) fn begin_edge(&mut self) {
        let Some(edge) = &self.edge else { return };
        for at in 0..edge.agents.len() {
            let station = Scenario::station_node(at);
            self.agenda.set(edge.waker(station), Some(edge.agents[at].next_event()));
        }
    }

    /// A component of the edge is due.
    pub(crate) fn wake_edge(&mut self, component: Component) {
        let (now, Some(edge)) = (self.now, &mut self.edge) else { return };
        let place = (component.0 - edge.first) as usize;
        let Some(number) = place.checked_sub(edge.proxies.len()) else {
            edge.proxies[place].wake(now);
            return self.rates_changed(place);
        };
        let station = Scenario::station_node(number / 2);
        if number.is_multiple_of(2) {
            return self.depart(station);
        }
        let agent = edge.agent(station);
        let (ack, feedback) = agent.wake(now);
        let next = agent.next_event();
        self.agenda.set(component, Some(next));
        // The account is sent twice: losing it would cost a slot, and it is small.
        let copies = feedback.map_or(0, |_| 2);
        let accounts = feedback.into_iter().cycle().take(copies).map(|account| Tunnel::Feedback(Box::new(account)));
        ack.into_iter().chain(accounts).for_each(|tunnel| self.send_up(station, tunnel));
    }

    /// A tunnel packet leaves a station.
    fn send_up(&mut self, station: Node, tunnel: Tunnel) {
        let Some(edge) = &self.edge else { return };
        let (len, hash, way) = (tunnel_packet(&tunnel), hash(station), (self.host_of(station), edge.host));
        let packet = self.packet(way, len, hash, Payload::Tunnel(tunnel));
        self.send(way.0, packet);
    }

    /// True while the request of a proxied connection has not reached the proxy.
    pub(crate) fn is_unasked(&self, number: usize) -> bool {
        matches!(self.connections[number].via, Via::Proxy { asked: false, .. })
    }

    /// A station asks the proxy for a connection, and again until it has one.
    pub(crate) fn ask(&mut self, number: usize) {
        let again = self.now + ASK_AGAIN;
        self.agenda.set(self.end_component(number, End::Caller), Some(again));
        self.send_up(self.connections[number].node, Tunnel::Open { connection: index(number) });
    }

    /// A tunnel packet of a station has reached the proxy.
    pub(crate) fn at_proxy(&mut self, station: Node, tunnel: Tunnel) {
        let home = self.access_points.home(station);
        let (now, Some(edge)) = (self.now, &mut self.edge) else { return };
        match tunnel {
            Tunnel::Ack { next, missing, .. } => {
                edge.proxies[home].acknowledged(now, station, next, &missing);
                self.set_pacer(station);
            }
            Tunnel::Feedback(feedback) => {
                edge.proxies[home].feedback(now, &feedback);
                self.rates_changed(home);
            }
            Tunnel::Open { connection } => {
                let number = connection as usize;
                let connection = &mut self.connections[number];
                if let Via::Proxy { asked: asked @ false, .. } = &mut connection.via {
                    *asked = true;
                    edge.open[place(station)] += 1;
                    self.pump(number, End::Caller);
                }
            }
            Tunnel::Data { .. } => {}
        }
    }

    /// A tunnel packet has reached a station.
    pub(crate) fn at_station(&mut self, station: Node, tunnel: Tunnel) {
        let (now, Some(edge)) = (self.now, &mut self.edge) else { return };
        let Tunnel::Data { number, connection, len, .. } = tunnel else { return };
        let (connection, len) = (connection as usize, Bytes::new(u64::from(len)));
        let mut news: Vec<usize> = Vec::new();
        let connections = &mut self.connections;
        let ack = edge.agents[place(station)].data(now, number, (connection, len), |connection, len| {
            if let Via::Proxy { passed, .. } = &mut connections[connection].via {
                *passed += len;
            }
            if !news.contains(&connection) {
                news.push(connection);
            }
        });
        let next = edge.agents[place(station)].next_event();
        self.agenda.set(edge.waker(station), Some(next));
        for connection in news {
            let before = self.connections[connection].is_complete();
            self.arrivals(connection);
            if self.connections[connection].is_complete() && !before {
                if let Some(edge) = &mut self.edge {
                    edge.open[place(station)] = edge.open[place(station)].saturating_sub(1);
                }
                self.pump(connection, End::Caller);
            }
        }
        if let Some(ack) = ack {
            self.send_up(station, ack);
        }
    }

    /// The proxy's end of a connection may have something for the station; it must not have too much.
    pub(crate) fn take_into_proxy(&mut self, number: usize) {
        let (now, Some(edge)) = (self.now, &mut self.edge) else { return };
        let connection = &mut self.connections[number];
        if connection.via == Via::Direct {
            return;
        }
        let (node, unread) = (connection.node, connection.receiver().unread());
        let round_trip = connection.receiver().stats().min_rtt.unwrap_or(Span::from_millis(1));
        if let Via::Proxy { receive_window, .. } = &mut connection.via {
            let proxy = &edge.proxies[self.access_points.home(node)];
            let share = Share { of: proxy.rate(node), among: edge.open[place(node)] };
            let standing = ReceiveWindow::standing(ReceiveWindow::ALLOWANCE);
            let window = receive_window.window(now, share, round_trip, standing, unread);
            connection.receiver().limit_window(window + unread);
        }
        if !unread.is_zero() {
            self.offer(node, Stream::Connection(number));
        }
    }

    /// A stream has something for its station.
    pub(crate) fn offer(&mut self, station: Node, stream: Stream) {
        let home = self.access_points.home(station);
        let (now, Some(edge)) = (self.now, &mut self.edge) else { return };
        let before = edge.proxies[home].revisit();
        edge.proxies[home].offer(now, station, stream);
        let revisit = edge.proxies[home].revisit();
        if revisit != before {
            self.agenda.set(edge.law(home), revisit);
        }
        self.set_pacer(station);
    }

    /// A UDP source has ended.
    pub(crate) fn withdraw(&mut self, station: Node, stream: Stream, flow: FlowId) {
        let Some(edge) = &mut self.edge else { return };
        edge.proxies[self.access_points.home(station)].withdraw(self.now, station, stream);
        self.recorder.bulk_flow_ended(self.now, flow);
        self.set_pacer(station);
    }

    fn set_pacer(&mut self, station: Node) {
        let Some(edge) = &self.edge else { return };
        let next = edge.proxies[self.access_points.home(station)].next_departure(station);
        self.agenda.set(edge.pacer(station), next.map(|at| at.max(self.now)));
    }

    /// What may leave for a station now leaves.
    fn depart(&mut self, station: Node) {
        let (now, Some(edge)) = (self.now, &mut self.edge) else { return };
        let (connections, home) = (&mut self.connections, self.access_points.home(station));
        let left = edge.proxies[home]
            .depart(now, station, |connection, len| connections[connection].receiver().read(now, len));
        if let Some((departure, len)) = left {
            let (connection, content, len) = match departure {
                Departure::Tunnel(tunnel) => {
                    let Tunnel::Data { connection, .. } = tunnel else { return };
                    (Some(connection as usize), Payload::Tunnel(tunnel), len)
                }
                Departure::Udp(source, packet) => {
                    self.sources[source].sent += 1;
                    let StreamKind::Udp { size, .. } = self.sources[source].stream.kind else { return };
                    (
                        None,
                        Payload::Udp { source: index(source), sent: now, packet: NonZeroU32::new(packet + 1) },
                        udp_packet(size),
                    )
                }
            };
            let way = (edge.host, self.host_of(station));
            let packet = self.packet(way, len, hash(station), content);
            self.send(way.0, packet);
            if let Some(connection) = connection {
                self.pump(connection, End::Caller);
            }
        }
        self.set_pacer(station);
    }

    /// The law of the proxy at place `home` has had a chance to change its mind.
    fn rates_changed(&mut self, home: usize) {
        let (now, Some(edge)) = (self.now, &self.edge) else { return };
        let proxy = &edge.proxies[home];
        self.agenda.set(edge.law(home), proxy.revisit().map(|at| at.max(now)));
        let alone = edge.proxies.len() == 1;
        for (n, station) in proxy.stations().enumerate() {
            let seen = proxy.controller().observe(flow_of(station));
            self.recorder.observed(now, station, &seen);
            // Where there are several proxies, what each knows of rounds is its stations'.
            if !alone || n == 0 {
                self.recorder.observed_round(now, (!alone).then_some(station), &seen);
            }
        }
        let stations: Vec<Node> = proxy.stations().collect();
        stations.into_iter().for_each(|station| self.set_pacer(station));
    }
}

/// The tunnel of a station is one flow.
fn hash(station: Node) -> u32 {
    (u32::from(station.0) + 1).wrapping_mul(0x85eb_ca6b)
}
