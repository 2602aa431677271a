//! TCP of all hosts: it opens connections, serves their ends and counts what arrives.

use crate::context::Context;
use crate::hook::Interface;
use crate::payload::{Datagram, Payload, ProgramId, index, packet, tcp_packet};
use crate::program::{Heard, Program};
use crate::programs::connection::{App, Connection, End, Opened, Opening};
use crate::sockets::flow_id;
use lasthop_report::{Gauge, Segments, SeriesKind};
use lasthop_scenario::Stream;
use lasthop_signals::{HostId, Node};
use lasthop_transport::SmallQueue;
use lasthop_units::{Bytes, Time};

/// What serves the ends of connections; their state is the context's.
#[derive(Clone)]
pub(crate) struct Tcp;

impl Program for Tcp {
    fn begin(&mut self, context: &mut Context, own: ProgramId) {
        context.sockets.program = own;
    }

    fn ready(&mut self, context: &mut Context) {
        for station in context.sockets.counted.clone() {
            context.listen(context.sockets.program, station);
        }
    }

    fn wake(&mut self, context: &mut Context, timer: u32) {
        let (number, end) = Connection::end_of(timer);
        context.sockets.connections[number].end(end).on_timeout(context.now);
        pump(context, number, end);
    }

    fn receive(&mut self, context: &mut Context, at: Time, datagram: Datagram) {
        if let Payload::Tcp { connection, header } = datagram.content {
            let number = connection as usize;
            let connection = &mut context.sockets.connections[number];
            let end = connection.end_that_gets(datagram.from);
            connection.end(end).on_segment(at, &header);
            pump(context, number, end);
        }
    }

    fn overheard(&mut self, context: &mut Context, _: Time, station: Node, heard: &Heard<'_>) {
        if let Heard::Sent(flow_hash, len) = *heard {
            taken(context, station, flow_hash, len);
        }
    }

    /// A packet of a station was dropped before its transmitter had it.
    fn lost(&mut self, context: &mut Context, _: Time, (link, src): Interface, datagram: &Datagram, on_air: bool) {
        if let Payload::Tcp { connection, header } = &datagram.content
            && link == context.last_hop
            && !on_air
        {
            let hash = context.sockets.connections[*connection as usize].hash;
            taken(context, src, hash, tcp_packet(header));
        }
    }

    /// Looks at every bulk sender that is not done.
    fn sample(&mut self, context: &mut Context) {
        let Context { now, sockets, recorder, .. } = context;
        let (at, connections) = (*now, &sockets.connections);
        sockets.sampled.retain(|number| !connections[*number].is_complete());
        for number in &sockets.sampled {
            // What a bulk sender knows, while it has a connection and something to send.
            let sender = connections[*number].sender();
            if !sender.is_established() {
                continue;
            }
            let (flow, stats) = (flow_id(*number), sender.stats());
            recorder.sample(at, Gauge::Flow(SeriesKind::Cwnd, flow), stats.cwnd.get() as f64);
            recorder.sample(at, Gauge::Flow(SeriesKind::Window, flow), stats.peer_window.get() as f64);
            recorder.sample(at, Gauge::Flow(SeriesKind::CaState, flow), f64::from(stats.ca_state.number()));
            if let Some(rtt) = stats.srtt {
                recorder.round_trip_at(at, flow, rtt);
            }
            if let Some(pacing) = sender.decision().pacing {
                recorder.sample(at, Gauge::Flow(SeriesKind::Pacing, flow), pacing.as_mbit_f64());
            }
        }
    }

    fn count_segments(&self, context: &mut Context, at: Time) {
        for (number, connection) in context.sockets.connections.iter().enumerate() {
            if matches!(connection.app, App::Bulk { .. }) {
                let stats = connection.sender().stats();
                let segments = Segments {
                    sent: stats.segments_sent,
                    retransmitted: stats.segments_retransmitted,
                    round_trips: stats.round_trips,
                    round_trip_sum: stats.round_trip_sum,
                    deviation_sum: stats.deviation_sum,
                    recoveries: Some(stats.recoveries),
                };
                context.recorder.segments(at, flow_id(number), segments);
            }
        }
    }

    fn finish(&self, context: &mut Context) {
        for connection in &context.sockets.connections {
            if matches!(connection.app, App::Fetch { .. }) && !connection.is_complete() {
                context.recorder.stream_fetch(connection.stream, connection.opened, None);
            }
        }
    }
}

/// Opens a connection of a stream.
pub(crate) fn open(context: &mut Context, stream: &Stream, app: App) {
    let (number, now) = (context.sockets.connections.len(), context.now);
    let node = context.concerned(stream);
    // The station calls; between stations, or where none is an end, the one that gets the data.
    let is_station = |host: HostId| context.stations[host.index()].is_some();
    let only_sender = is_station(stream.from) && !is_station(stream.to);
    let receiver = match app {
        App::Bulk { .. } if only_sender => End::Answerer,
        _ => End::Caller,
    };
    // The proxy carries what servers send to stations.
    let proxy = context.proxy.filter(|_| !is_station(stream.from));
    let (hops, program) = (context.net.hops(stream.from, stream.to), context.sockets.program);
    let opening = Opening { number, stream, hops, node, app, program };
    let connection = Connection::open(now, opening, receiver, &context.sockets.laws, context.seed);
    let mut connection = connection.expect("the scenario names a law that exists");
    if let Some(proxy) = proxy {
        connection = connection.proxied(now, proxy);
    }
    connection.timers = [End::Answerer, End::Caller]
        .map(|end| context.timer(connection.address(end).program, Connection::timer(number, end)));
    let tells = connection.tells();
    context.sockets.connections.push(connection);
    End::BOTH.into_iter().for_each(|end| watch(context, number, end));
    if tells {
        context.sockets.with_feedback.push(number);
    }
    if matches!(app, App::Bulk { .. }) {
        context.sockets.sampled.push(number);
        context.recorder.bulk_flow(now, flow_id(number), node, &format!("bulk {number}"));
        context.recorder.belongs(flow_id(number), stream.number);
    }
    match proxy {
        Some(proxy) => context.hand(proxy, Payload::own(Opened(number))),
        None => pump(context, number, End::Caller),
    }
}

/// A bulk stream's time is over: its sender ends where it has got to.
pub(crate) fn stop(context: &mut Context, stream: &Stream) {
    let mut connections = context.sockets.connections.iter();
    let Some(number) = connections.position(|connection| connection.stream == stream.number) else { return };
    let connection = &mut context.sockets.connections[number];
    connection.stop();
    let data = connection.data();
    context.recorder.bulk_flow_ended(context.now, flow_id(number));
    pump(context, number, data);
}

/// Counts what waits of an end that sends over the last hop from a station where that is done.
fn watch(context: &mut Context, number: usize, end: End) {
    let connection = &mut context.sockets.connections[number];
    let (from, to) = connection.way(end);
    let Some(station) = context.stations[from.index()] else { return };
    if !context.sockets.counted.contains(&station) {
        return;
    }
    let step = context.net.next(from, to);
    if step.map_or(context.sockets.routes_are_found, |step| usize::from(step.link) == context.last_hop) {
        if context.sockets.small_queues.contains(&station) {
            connection.end(end).set_small_queue(Some(SmallQueue::WIFI));
        }
        context.sockets.senders.insert((station, connection.hash), (number, end));
    }
}

/// A station holds a packet no more.
fn taken(context: &mut Context, station: Node, flow_hash: u32, len: Bytes) {
    let Some(&(number, end)) = context.sockets.senders.get(&(station, flow_hash)) else { return };
    let sender = context.sockets.connections[number].end(end);
    sender.on_taken(len);
    if sender.small_queue().is_some() {
        pump(context, number, end);
    }
}

/// Lets the application of an end act, and sends what the end has to send.
pub(crate) fn pump(context: &mut Context, number: usize, end: End) {
    let connection = &mut context.sockets.connections[number];
    if connection.data() == end {
        connection.serve();
    } else {
        arrivals(context, number);
    }
    transmit(context, number, end);
}

/// Sends what one end has to send and notes when it wants to be woken.
pub(crate) fn transmit(context: &mut Context, number: usize, end: End) {
    let now = context.now;
    while let Some(header) = context.sockets.connections[number].end(end).poll_transmit(now) {
        let connection = &mut context.sockets.connections[number];
        if end == connection.data() {
            connection.departs(now, &header);
        }
        let (len, hash, class) = (tcp_packet(&header), connection.hash, connection.class);
        let (from, to) = (connection.address(end).host, connection.address(end.other()));
        let station = context.stations[from.index()];
        if station.is_some_and(|station| context.sockets.senders.contains_key(&(station, hash))) {
            connection.end(end).on_queued(len);
        }
        let content = Payload::Tcp { connection: index(number), header: Box::new(header) };
        context.send(from, packet((from, to), len, class, hash, content));
    }
    set_timer(context, number, end);
}

/// Notes when an end wants to be woken.
pub(crate) fn set_timer(context: &mut Context, number: usize, end: End) {
    let connection = &mut context.sockets.connections[number];
    let next = connection.end(end).next_timeout();
    context.agenda.set(connection.timer_of(end), next);
}

/// The receiving application looks at what has arrived.
pub(crate) fn arrivals(context: &mut Context, number: usize) {
    let Context { now, sockets, recorder, .. } = context;
    let (now, connection) = (*now, &mut sockets.connections[number]);
    let was_complete = connection.is_complete();
    let news = connection.newly_received();
    let (node, app) = (connection.node, connection.app);
    let completed = connection.is_complete() && !was_complete;
    connection.arrived_whole(|sent| recorder.end_delay(sent, now, node));
    match app {
        App::Bulk { .. } if !news.is_zero() => recorder.goodput(now, flow_id(number), node, news),
        App::Fetch { .. } if completed => recorder.stream_fetch(connection.stream, connection.opened, Some(now)),
        _ => {}
    }
    if completed {
        connection.receiver().close();
        if matches!(app, App::Bulk { .. }) {
            recorder.bulk_flow_ended(now, flow_id(number));
        }
    }
}
