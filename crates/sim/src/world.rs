//! One simulated world: hosts, the links between them, and what their programs send.
//!
//! The agenda says which component acts next. What it produces (deliveries, driver reports) waits in `effects` and is handled
//! one after the other before time moves on, so no component is ever called from within another.

use crate::agenda::Component;
use crate::context::{Context, Owner};
use crate::hook::{Forwarded, Hook, Interface, Lost};
use crate::net::{Effect, Net};
use crate::payload::{Datagram, ProgramId};
use crate::program::{Heard, Program};
use crate::received::Received;
use lasthop_radio::{Dest, Packet};
use lasthop_report::{Gauge, HopMeter, Recorder, SeriesKind};
use lasthop_scenario::Scenario;
use lasthop_signals::{HopReport, HostId, Node, Signal};
use lasthop_units::{Bytes, Span, Time};

/// Time between two looks at the bulk senders, as in the lab.
const SAMPLE: Span = Span::from_millis(10);

/// Everything there is.
#[derive(Clone)]
pub struct World {
    pub(crate) context: Context,
    programs: Vec<Box<dyn Program>>,
    /// The components of the scenario's streams, in its order.
    streams: Vec<Component>,
    /// What nodes of the last hop have received and their hosts do not have yet.
    received: Received,
    /// The component that hands it up.
    handing_up: Component,
    /// One for each access point.
    meters: Vec<HopMeter>,
    /// Octets that the last hop has brought to each of its nodes.
    carried: Vec<Bytes>,
}

impl World {
    /// A world without programs. `radio`: the last hop is a radio channel; `host_delay`: from a
    /// frame's end there until the host of the node has what it carried.
    pub(crate) fn new(mut context: Context, radio: bool, host_delay: Span) -> World {
        let meters = match context.access_points.nodes.len() {
            1 => vec![HopMeter::new(radio)],
            several => vec![HopMeter::of_one_of_several(); several],
        };
        let carried = vec![Bytes::ZERO; context.listeners.len()];
        let sampler = context.component(Owner::Sampler);
        context.agenda.set(sampler, Some(Time::ZERO + SAMPLE));
        let handing_up = context.component(Owner::HandingUp);
        let received = Received::new(host_delay);
        World { context, programs: Vec::new(), streams: Vec::new(), received, handing_up, meters, carried }
    }

    /// Registers a program. At equal times its timers act after those of the programs before it.
    pub(crate) fn add(&mut self, mut program: Box<dyn Program>) {
        program.begin(&mut self.context, ProgramId(self.programs.len() as u32));
        self.programs.push(program);
    }

    /// Registers the program of the scenario's next stream: its first timer is the stream's.
    pub(crate) fn add_stream(&mut self, program: Box<dyn Program>) {
        self.streams.push(self.context.next_component());
        self.add(program);
    }

    /// All programs are registered.
    pub(crate) fn ready(mut self) -> World {
        self.programs.iter_mut().for_each(|program| program.ready(&mut self.context));
        self
    }

    /// Puts something more into the forwarding path of a host, behind what stands there.
    pub fn add_hook(&mut self, host: HostId, hook: Box<dyn Hook>) {
        self.context.hooks[host.index()].push(hook);
    }

    /// From now on takes no figures from what drivers report: for callers that only want what hooks see.
    pub fn without_meters(&mut self) {
        self.meters.clear();
    }

    /// An access point's interface on the last hop, by its place among them.
    pub fn radio(&self, access_point: usize) -> Interface {
        (self.context.last_hop, self.context.access_points.nodes[access_point])
    }

    /// The time of the last event.
    pub fn now(&self) -> Time {
        self.context.now
    }

    /// When each stream acts next, in the scenario's order; `None` for one that is done.
    pub fn next_starts(&self) -> impl Iterator<Item = Option<Time>> + '_ {
        self.streams.iter().map(|stream| self.context.agenda.at(*stream))
    }

    /// Lets everything happen that happens before `until`.
    pub fn run_until(&mut self, until: Time) {
        while let Some((at, component)) = self.context.agenda.next().filter(|(at, _)| *at < until) {
            self.context.now = at;
            self.wake(component);
            self.settle();
        }
    }

    /// The measurements, with what was unfinished at `end`.
    pub fn finish(mut self, end: Time) -> Recorder {
        self.programs.iter().for_each(|program| program.finish(&mut self.context));
        self.count_segments(end);
        self.context.recorder
    }

    /// Tells the recorder how many segments the bulk senders have sent by `at`.
    pub fn count_segments(&mut self, at: Time) {
        self.programs.iter().for_each(|program| program.count_segments(&mut self.context, at));
    }

    /// Packets that wait at node `from` of a cable, by its place in the scenario's graph, as of its last event.
    pub fn cable_backlog(&self, link: usize, from: Node) -> usize {
        self.context.net.cable_backlog(link, from)
    }

    /// A cable, by its place in the scenario's graph, takes another route, which is longer by `by`, each way.
    pub fn lengthen(&mut self, link: usize, by: Span) {
        let Context { net, now, effects, agenda, .. } = &mut self.context;
        agenda.set(Net::component(link), net.lengthen(link, *now, by, effects));
    }

    fn wake(&mut self, component: Component) {
        let context = &mut self.context;
        match context.owner(component) {
            Owner::Link(link) => {
                let next = context.net.advance(link, context.now, &mut context.effects);
                context.agenda.set(component, next);
            }
            Owner::Program(program, timer) => self.programs[program.0 as usize].wake(context, timer),
            Owner::HandingUp => self.hand_up(),
            Owner::Sampler => {
                self.programs.iter_mut().for_each(|program| program.sample(context));
                context.agenda.set(component, Some(context.now + SAMPLE));
            }
        }
    }

    /// Handles all that was produced, and what that produces.
    fn settle(&mut self) {
        while let Some(effect) = self.context.effects.pop() {
            match effect {
                Effect::Reported { at, link, of, report } => self.on_report(at, (link, of), &report),
                Effect::Subframe { at, of, shown } => self.on_subframe(at, of, &shown),
                Effect::Lost { at, link, src, datagram, told } => self.on_loss(at, (link, src), &datagram, told),
                Effect::Completed { at, from, dst, flow_hash, len, waited } => {
                    let interface = (self.context.last_hop, from);
                    self.hooks(interface).for_each(|hook| hook.done(at, interface, dst, waited));
                    self.overheard(at, from, &Heard::Sent(flow_hash, len));
                }
                Effect::Uplink { at, from } => self.context.recorder.uplink_frame(at, from),
                Effect::Frame { at, to, packets, rate, airtime } => {
                    self.context.recorder.frame(at, to, u32::from(packets), airtime);
                    self.overheard(at, to, &Heard::Frame(packets, rate));
                }
                Effect::Arrived { at, link, to, packet, queued_at } if link == self.context.last_hop => {
                    self.over_last_hop(at, to, packet, queued_at);
                }
                Effect::Arrived { at, link, to, packet, .. } => self.at_interface(at, (link, to), packet),
                Effect::Handed(datagram) => self.receive(self.context.now, datagram),
            }
        }
    }

    /// What stands in the forwarding path of the host that has this interface.
    fn hooks(&mut self, interface: Interface) -> impl Iterator<Item = &mut Box<dyn Hook>> {
        match self.context.host_at(interface) {
            Some(host) => self.context.hooks[host.index()].iter_mut(),
            None => [].iter_mut(),
        }
    }

    /// Programs that listen at a node of the last hop hear what that hears.
    #[inline]
    fn overheard(&mut self, at: Time, node: Node, heard: &Heard<'_>) {
        for place in 0..self.context.listeners[node.index()].len() {
            let program = self.context.listeners[node.index()][place];
            self.programs[program.0 as usize].overheard(&mut self.context, at, node, heard);
        }
    }

    /// A packet has crossed the last hop.
    fn over_last_hop(&mut self, at: Time, to: Node, packet: Packet<Datagram>, queued_at: Time) {
        self.carried[to.index()] += packet.len;
        self.overheard(at, to, &Heard::Packet(&packet));
        let context = &mut self.context;
        if packet.dst == Dest::Group {
            return;
        }
        if context.access_points.place(to).is_some() {
            context.recorder.uplink_delivery(at, queued_at, packet.src);
        } else {
            context.recorder.hop_delivery(at, queued_at, to, packet.len);
        }
        match self.received.hold(at, to, packet) {
            Ok(next) => context.agenda.set(self.handing_up, Some(next)),
            Err(packet) => self.at_interface(at, (self.context.last_hop, to), packet),
        }
    }

    /// A host of the last hop has what its node received.
    fn hand_up(&mut self) {
        let now = self.context.now;
        while let Some((to, packet)) = self.received.take(now) {
            self.at_interface(now, (self.context.last_hop, to), packet);
            self.settle();
        }
        self.context.agenda.set(self.handing_up, self.received.next());
    }

    /// A packet has come to an interface of a host: it stays, or goes on.
    #[inline]
    fn at_interface(&mut self, at: Time, interface: Interface, mut packet: Packet<Datagram>) {
        let Some(host) = self.context.host_at(interface) else { return };
        if packet.payload.to == host {
            return self.receive(at, packet.payload);
        }
        if !self.context.hooks[host.index()].is_empty() {
            self.pass(at, host, interface, &mut packet);
        }
        self.context.send(host, packet);
    }

    /// A packet passes what stands in a host's forwarding path: all of it as it comes, then all of it as it leaves.
    fn pass(&mut self, at: Time, host: HostId, interface: Interface, packet: &mut Packet<Datagram>) {
        let key = self.context.key(&packet.payload);
        let next = self.context.net.next(host, packet.payload.to);
        let (hooks, beside) = (&mut self.context.hooks[host.index()], packet.src);
        let mut forwarded = Forwarded { at, interface, beside, key, packet };
        hooks.iter_mut().for_each(|hook| hook.ingress(&mut forwarded));
        let Some(step) = next else { return };
        (forwarded.interface, forwarded.beside) = ((usize::from(step.link), step.from), step.to);
        hooks.iter_mut().for_each(|hook| hook.egress(&mut forwarded));
    }

    /// The program that something is for has it.
    fn receive(&mut self, at: Time, datagram: Datagram) {
        if let Some(program) = self.programs.get_mut(datagram.program.0 as usize) {
            program.receive(&mut self.context, at, datagram);
        }
    }

    /// A packet is lost. `on_air`: the radio gave it up; otherwise a queue refused or dropped it.
    fn on_loss(&mut self, at: Time, interface: Interface, datagram: &Datagram, on_air: bool) {
        let lost = Lost { key: self.context.key(datagram), payload: &datagram.content, on_air };
        self.hooks(interface).for_each(|hook| hook.lost(at, interface, &lost));
        let context = &mut self.context;
        if interface.0 == context.last_hop
            && context.access_points.place(interface.1).is_some()
            && let Some(station) = context.stations[datagram.to.index()]
        {
            context.recorder.hop_lost(at, station);
        }
        if let Some(program) = self.programs.get_mut(datagram.program.0 as usize) {
            program.lost(context, at, interface, datagram, on_air);
        }
    }

    /// A driver reports.
    fn on_report(&mut self, at: Time, interface: Interface, report: &HopReport) {
        let Context { access_points, last_hop, recorder, hooks, .. } = &mut self.context;
        if let Some(place) = access_points.place(interface.1).filter(|_| interface.0 == *last_hop) {
            if let Some(meter) = self.meters.get_mut(place) {
                meter.add(recorder, at, report);
            }
            hooks.iter().flatten().for_each(|hook| hook.sample(at, recorder));
        }
        self.hooks(interface).for_each(|hook| hook.report(at, interface, report));
    }

    /// A node has decoded a carrier's control channel. The base station's report tells how much of
    /// the cell is given away.
    fn on_subframe(&mut self, at: Time, node: Node, signal: &Signal) {
        if let (Scenario::AP, Signal::Subframe(shown)) = (node, signal) {
            let given: u32 = shown.dcis.iter().map(|dci| u32::from(dci.prb)).sum();
            let share = f64::from(given) / f64::from(shown.prb);
            return self.context.recorder.sample(at, Gauge::Hop(SeriesKind::ChannelBusy), share);
        }
        self.overheard(at, node, &Heard::Driver(signal));
    }

    /// Octets that the last hop has brought to a node.
    pub(crate) fn carried(&self, node: Node) -> Bytes {
        self.carried[node.index()]
    }
}
