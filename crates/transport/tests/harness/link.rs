//! Flows of one direction through one FIFO, each under a law of its own.

use lasthop_laws::by_name;
use lasthop_laws::tcp::Setup;
use lasthop_transport::{Config, Connection};
use lasthop_units::{Bytes, Rate, Seed, Span, Stream, Time};
use lasthop_wire::tcp::TcpHeader;
use rand::Rng;
use std::collections::BTreeMap;

/// A link with a FIFO before it.
#[derive(Clone, Copy)]
pub struct Path {
    pub rate: Rate,
    /// Each way.
    pub delay: Span,
    /// What the FIFO holds, as a multiple of what the link sends in a round trip.
    pub buffer: f64,
}

impl Path {
    /// Payload of 1448 octets in packets of 1500, in Mbit/s.
    pub fn ceiling(self) -> f64 {
        self.rate.as_mbit_f64() * 1448.0 / 1500.0
    }
}

/// Some flows through one FIFO.
pub struct Link {
    path: Path,
    pub flows: Vec<Flow>,
    now: Time,
    /// What flies: to the receiver of a flow if true.
    flying: BTreeMap<(Time, u64), (usize, bool, TcpHeader)>,
    count: u64,
    free_at: Time,
    /// Waiting of each packet that came, with the time it came.
    waits: Vec<(Time, Span)>,
    pub dropped: u64,
    /// Share of the packets that are lost behind the queue.
    loss: f64,
    random: Stream,
}

pub struct Flow {
    starts: Time,
    pub sender: Connection,
    receiver: Connection,
}

impl Link {
    /// One flow under the law of each name, which begins then, and random loss.
    pub fn new(flows: &[(&str, Span)], path: Path, loss: f64, seed: u64) -> Link {
        let config = Config::default();
        let law = |name: &str, stream: String| {
            let setup = Setup::new(Bytes::new(u64::from(config.mss)), Seed(seed).stream(&stream));
            by_name(name, setup).expect("a known law")
        };
        let flow = |(index, (name, start)): (usize, &(&str, Span))| {
            let starts = Time::ZERO + *start;
            let mut sender = Connection::connect(starts, config, law(name, format!("sender{index}")));
            sender.write_forever();
            let receiver = Connection::accept(starts, config, law(name, format!("receiver{index}")));
            Flow { starts, sender, receiver }
        };
        Link {
            path,
            flows: flows.iter().enumerate().map(flow).collect(),
            now: Time::ZERO,
            flying: BTreeMap::new(),
            count: 0,
            free_at: Time::ZERO,
            waits: Vec::new(),
            dropped: 0,
            loss,
            random: Seed(seed).stream("loss"),
        }
    }

    pub fn run_until(&mut self, end: Time) {
        loop {
            self.transmit();
            let timers = self.flows.iter().map(|flow| {
                let timers = flow.sender.next_timeout().into_iter().chain(flow.receiver.next_timeout());
                if self.now < flow.starts { flow.starts } else { timers.min().unwrap_or(Time::MAX) }
            });
            let arrival = self.flying.keys().next().map(|(at, _)| *at);
            let next = timers.chain(arrival).min().unwrap_or(Time::MAX).max(self.now);
            if next > end {
                self.now = end;
                return;
            }
            self.now = next;
            while let Some(first) = self.flying.first_entry().filter(|first| first.key().0 <= self.now) {
                let (index, forth, segment) = first.remove();
                let flow = &mut self.flows[index];
                let end = if forth { &mut flow.receiver } else { &mut flow.sender };
                end.on_segment(self.now, &segment);
                self.transmit();
            }
            for flow in self.flows.iter_mut().filter(|flow| flow.starts <= self.now) {
                for end in [&mut flow.sender, &mut flow.receiver] {
                    if end.next_timeout().is_some_and(|at| at <= self.now) {
                        end.on_timeout(self.now);
                    }
                }
            }
        }
    }

    fn transmit(&mut self) {
        for index in 0..self.flows.len() {
            if self.now < self.flows[index].starts {
                continue;
            }
            while let Some(segment) = self.flows[index].sender.poll_transmit(self.now) {
                self.enqueue(index, segment);
            }
            while let Some(segment) = self.flows[index].receiver.poll_transmit(self.now) {
                self.fly(self.now + self.path.delay, index, false, segment);
            }
        }
    }

    fn enqueue(&mut self, index: usize, segment: TcpHeader) {
        let wait = self.free_at.since(self.now);
        self.waits.push((self.now, wait));
        let own = self.path.rate.time_for(Bytes::new(52 + u64::from(segment.payload_len))).expect("not zero");
        if wait + own > (self.path.delay * 2).scale(self.path.buffer) {
            self.dropped += 1;
            return;
        }
        self.free_at = self.free_at.max(self.now) + own;
        let draw = self.random.next_u64() as f64 / u64::MAX as f64;
        if draw >= self.loss {
            self.fly(self.free_at + self.path.delay, index, true, segment);
        }
    }

    fn fly(&mut self, at: Time, index: usize, forth: bool, segment: TcpHeader) {
        self.count += 1;
        self.flying.insert((at, self.count), (index, forth, segment));
    }

    /// Goodput of each flow in the next `span`, in Mbit/s.
    pub fn goodput(&mut self, span: Span) -> Vec<f64> {
        let received = |link: &Link| link.flows.iter().map(|flow| flow.receiver.received()).collect::<Vec<_>>();
        let before = received(self);
        self.run_until(self.now + span);
        let rate = |(now, before): (Bytes, &Bytes)| Rate::of(now - *before, span).expect("not zero").as_mbit_f64();
        received(self).into_iter().zip(&before).map(rate).collect()
    }

    /// Mean and longest wait since `from`, in milliseconds.
    pub fn queue(&self, from: Time) -> (f64, f64) {
        let waits = || self.waits.iter().filter(|(at, _)| *at >= from).map(|(_, wait)| wait.as_millis_f64());
        (waits().sum::<f64>() / waits().count().max(1) as f64, waits().fold(0.0, f64::max))
    }
}

pub fn jain(rates: &[f64]) -> f64 {
    let sum: f64 = rates.iter().sum();
    sum * sum / (rates.len() as f64 * rates.iter().map(|rate| rate * rate).sum::<f64>())
}

pub fn seconds(seconds: u64) -> Time {
    Time::ZERO + Span::from_secs(seconds)
}
