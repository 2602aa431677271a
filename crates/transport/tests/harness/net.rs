//! Two ends and a network that does to each segment whatever the test says.

use lasthop_laws::SenderLaw;
use lasthop_laws::by_name;
use lasthop_laws::tcp::Setup;
use lasthop_transport::{Config, Connection};
use lasthop_units::{Bytes, Seed, Span, Time};
use lasthop_wire::tcp::{Flags, TcpHeader};
use std::collections::BTreeMap;

/// Which way a segment goes: `ToB` from the active end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Way {
    ToA,
    ToB,
}

/// The delays of the copies that arrive: none for a lost segment, two for a duplicated one.
pub type Fate = Vec<Span>;

/// Decides a segment's fate, and may change the segment as a middle box would.
pub type Network = Box<dyn FnMut(Time, Way, &mut TcpHeader) -> Fate>;

/// The world.
pub struct Net {
    pub a: Connection,
    pub b: Connection,
    pub now: Time,
    network: Network,
    flying: BTreeMap<(Time, u64), (Way, TcpHeader)>,
    sent: u64,
    /// Every segment put on the wire, before the network had its way with it.
    pub trace: Vec<(Time, Way, TcpHeader)>,
    /// The stream from A to B as it has arrived: which octets, whatever B says of them.
    arrived: Vec<bool>,
    first_octet: Option<u32>,
    edges: [Option<(u32, u32)>; 2],
    scales: [u8; 2],
}

impl Net {
    pub fn new(law: Box<dyn SenderLaw>, a: Config, b: Config, network: Network) -> Net {
        Net {
            a: Connection::connect(Time::ZERO, a, law),
            b: Connection::accept(Time::ZERO, b, law_called("reno")),
            now: Time::ZERO,
            network,
            flying: BTreeMap::new(),
            sent: 0,
            trace: Vec::new(),
            arrived: Vec::new(),
            first_octet: None,
            edges: [None; 2],
            scales: [0; 2],
        }
    }

    /// Runs until `end`, until `done`, or until nothing will ever happen again.
    pub fn run_until(&mut self, end: Time, mut done: impl FnMut(&Net) -> bool) {
        self.transmit();
        while !done(self) {
            let flying = self.flying.keys().next().map(|(at, _)| *at);
            let due = [flying, self.a.next_timeout(), self.b.next_timeout()];
            let Some(next) = due.into_iter().flatten().min().filter(|next| *next <= end) else {
                self.now = end;
                return;
            };
            self.now = self.now.max(next);
            while let Some(first) = self.flying.first_entry().filter(|first| first.key().0 <= self.now) {
                let (way, segment) = first.remove();
                self.note_arrival(way, &segment);
                let end = if way == Way::ToB { &mut self.b } else { &mut self.a };
                end.on_segment(self.now, &segment);
                self.check_stream();
                self.transmit();
            }
            for end in [&mut self.a, &mut self.b] {
                if end.next_timeout().is_some_and(|at| at <= self.now) {
                    end.on_timeout(self.now);
                }
            }
            self.transmit();
        }
    }

    fn transmit(&mut self) {
        for way in [Way::ToB, Way::ToA] {
            loop {
                let end = if way == Way::ToB { &mut self.a } else { &mut self.b };
                let Some(mut segment) = end.poll_transmit(self.now) else { break };
                self.check_edge(way, &segment);
                self.trace.push((self.now, way, segment));
                for delay in (self.network)(self.now, way, &mut segment) {
                    self.sent += 1;
                    self.flying.insert((self.now + delay, self.sent), (way, segment));
                }
            }
        }
    }

    /// No end may take back a window that it has advertised.
    fn check_edge(&mut self, way: Way, segment: &TcpHeader) {
        let side = usize::from(way == Way::ToB);
        if segment.flags.contains(Flags::SYN) {
            self.scales[side] = segment.options.window_scale.unwrap_or(0);
            return;
        }
        let edge = segment.ack.wrapping_add(u32::from(segment.window) << self.scales[side]);
        if let Some((_, before)) = self.edges[side] {
            let moved = edge.wrapping_sub(before) as i32;
            assert!(moved >= 0, "{way:?}: the right edge moved left by {}", -moved);
        }
        self.edges[side] = Some((segment.ack, edge));
    }

    fn note_arrival(&mut self, way: Way, segment: &TcpHeader) {
        if way == Way::ToA {
            return;
        }
        if segment.flags.contains(Flags::SYN) {
            self.first_octet = Some(segment.seq.wrapping_add(1));
        }
        let Some(first) = self.first_octet else { return };
        let start = segment.seq.wrapping_sub(first) as usize;
        if segment.payload_len > 0 {
            let end = start + segment.payload_len as usize;
            if self.arrived.len() < end {
                self.arrived.resize(end, false);
            }
            self.arrived[start..end].fill(true);
        }
    }

    /// B may claim to have received only what has arrived, from the first octet on without a gap.
    fn check_stream(&self) {
        let received = usize::try_from(self.b.received().get()).expect("fits");
        let arrived = self.arrived.get(..received).is_some_and(|prefix| prefix.last().is_none_or(|last| *last));
        assert!(arrived, "B claims {received} octets in order that have not arrived");
        assert!(self.a.acked() <= self.b.received(), "A believes in more than B has");
    }

    /// B has received `len` octets, each of which has arrived.
    pub fn check_complete(&self, len: Bytes) {
        assert_eq!(self.b.received(), len);
        assert_eq!(self.arrived.len() as u64, len.get(), "octets on the wire that were never written");
        assert!(self.arrived.iter().all(|octet| *octet));
    }

    /// The segments with payload that A has sent, first transmissions and repetitions.
    pub fn data_sent(&self) -> impl Iterator<Item = &(Time, Way, TcpHeader)> {
        self.trace.iter().filter(|(_, way, segment)| *way == Way::ToB && segment.payload_len > 0)
    }
}

/// A network of `delay` each way that loses nothing.
pub fn perfect(delay: Span) -> Network {
    Box::new(move |_, _, _| vec![delay])
}

/// The law called `name` for segments of 1448 octets.
pub fn law_called(name: &str) -> Box<dyn SenderLaw> {
    by_name(name, Setup::new(Bytes::new(1448), Seed(1).stream("law"))).expect("a known law")
}
