//! Vivace over a bottleneck with a buffer of one product of rate and delay: utilisation, queue, fairness, and resilience to
//! random loss.

use lasthop_laws::tcp::{Setup, by_name};
use lasthop_transport::{Config, Connection};
use lasthop_units::{Bytes, Rate, Seed, Span, Stream, Time};
use lasthop_wire::tcp::TcpHeader;
use rand::Rng;
use std::collections::BTreeMap;

/// A link whose buffer holds what it sends in a round trip.
#[derive(Clone, Copy)]
struct Path {
    rate: Rate,
    /// Each way.
    delay: Span,
}

impl Path {
    const NARROW: Path = Path { rate: Rate::from_mbit(20), delay: Span::from_millis(10) };
    /// The paper's.
    const WIDE: Path = Path { rate: Rate::from_mbit(100), delay: Span::from_millis(15) };

    /// Payload of 1448 octets in packets of 1500, in Mbit/s.
    fn ceiling(self) -> f64 {
        self.rate.as_mbit_f64() * 1448.0 / 1500.0
    }
}

const SEEDS: std::ops::RangeInclusive<u64> = 1..=3;

/// Some flows through one FIFO.
struct Link {
    path: Path,
    flows: Vec<Flow>,
    now: Time,
    /// What flies: to the receiver of a flow if true.
    flying: BTreeMap<(Time, u64), (usize, bool, TcpHeader)>,
    count: u64,
    free_at: Time,
    /// Waiting of each packet that came, with the time it came.
    waits: Vec<(Time, Span)>,
    dropped: u64,
    /// Share of the packets that are lost behind the queue.
    loss: f64,
    random: Stream,
}

struct Flow {
    starts: Time,
    sender: Connection,
    receiver: Connection,
}

impl Link {
    /// One flow under the law called `name` for each moment in `starts`, and random loss.
    fn new(name: &str, path: Path, starts: &[Span], loss: f64, seed: u64) -> Link {
        let config = Config::default();
        let law = |stream: String| {
            let setup = Setup::new(Bytes::new(u64::from(config.mss)), Seed(seed).stream(&stream));
            by_name(name, setup).expect("a known law")
        };
        let flow = |(index, start): (usize, &Span)| {
            let starts = Time::ZERO + *start;
            let mut sender = Connection::connect(starts, config, law(format!("sender{index}")));
            sender.write_forever();
            let receiver = Connection::accept(starts, config, law(format!("receiver{index}")));
            Flow { starts, sender, receiver }
        };
        Link {
            path,
            flows: starts.iter().enumerate().map(flow).collect(),
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

    fn run_until(&mut self, end: Time) {
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
        if wait + own > self.path.delay * 2 {
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
    fn goodput(&mut self, span: Span) -> Vec<f64> {
        let received = |link: &Link| link.flows.iter().map(|flow| flow.receiver.received()).collect::<Vec<_>>();
        let before = received(self);
        self.run_until(self.now + span);
        let rate = |(now, before): (Bytes, &Bytes)| Rate::of(now - *before, span).expect("not zero").as_mbit_f64();
        received(self).into_iter().zip(&before).map(rate).collect()
    }

    /// Mean and longest wait since `from`, in milliseconds.
    fn queue(&self, from: Time) -> (f64, f64) {
        let waits = || self.waits.iter().filter(|(at, _)| *at >= from).map(|(_, wait)| wait.as_millis_f64());
        (waits().sum::<f64>() / waits().count().max(1) as f64, waits().fold(0.0, f64::max))
    }
}

fn jain(rates: &[f64]) -> f64 {
    let sum: f64 = rates.iter().sum();
    sum * sum / (rates.len() as f64 * rates.iter().map(|rate| rate * rate).sum::<f64>())
}

fn seconds(seconds: u64) -> Time {
    Time::ZERO + Span::from_secs(seconds)
}

/// The share of the link that a flow of this law uses between 5 and 35 s, on average over the seeds.
fn used(law: &str, path: Path, loss: f64) -> f64 {
    let share = |seed| {
        let mut link = Link::new(law, path, &[Span::ZERO], loss, seed);
        link.run_until(seconds(5));
        link.goodput(Span::from_secs(30))[0] / path.ceiling()
    };
    SEEDS.map(share).sum::<f64>() / SEEDS.count() as f64
}

#[test]
fn one_flow_uses_nine_tenths_and_keeps_the_buffer_nearly_empty() {
    for (name, path) in [("narrow", Path::NARROW), ("wide", Path::WIDE)] {
        for seed in SEEDS {
            let mut link = Link::new("vivace", path, &[Span::ZERO], 0.0, seed);
            link.run_until(seconds(5));
            let dropped = link.dropped;
            let share = link.goodput(Span::from_secs(20))[0] / path.ceiling();
            let (mean, most) = link.queue(seconds(5));
            println!("{name}, seed {seed}: {share:.3} of the link, {mean:.2} ms queued, at most {most:.2}");
            assert!((0.9..=1.0).contains(&share), "{share}");
            // The buffer holds 20 and 30 ms.
            assert!(mean < 2.0 && most < 10.0, "{mean} ms, at most {most}");
            assert_eq!(link.dropped, dropped, "after the start nothing overflows");
        }
    }
}

/// A flow that has had the link for 5 s and one that comes then: the goodputs of each 5 s between 20 and 60 s.
fn together(path: Path, seed: u64) -> Vec<Vec<f64>> {
    let mut link = Link::new("vivace", path, &[Span::ZERO, Span::from_secs(5)], 0.0, seed);
    link.run_until(seconds(20));
    (0..8).map(|_| link.goodput(Span::from_secs(5))).collect()
}

#[test]
fn two_flows_share_alike_within_fifteen_seconds() {
    for seed in SEEDS {
        for (name, path, shortest) in [("narrow", Path::NARROW, 0.0), ("wide", Path::WIDE, 0.9)] {
            let parts = together(path, seed);
            let sums = [0, 1].map(|flow| parts.iter().map(|part| part[flow]).sum::<f64>());
            let (all, least) = (jain(&sums), parts.iter().map(|part| jain(part)).fold(1.0, f64::min));
            let share = (sums[0] + sums[1]) / parts.len() as f64 / path.ceiling();
            println!(
                "{name}, seed {seed}: Jain {all:.3} over 40 s, {least:.3} in the worst 5 s, {share:.3} of the link"
            );
            assert!(all >= 0.9, "{all}");
            // With 34 packets a round trip, five seconds are too short for it.
            assert!(least >= shortest, "{least}");
            assert!(share >= 0.75, "{share}");
        }
    }
}

#[test]
fn random_loss_costs_less_than_it_costs_cubic() {
    for (name, path, loss, least) in [
        ("narrow", Path::NARROW, 0.01, 0.7),
        ("narrow", Path::NARROW, 0.02, 0.5),
        ("wide", Path::WIDE, 0.01, 0.8),
        ("wide", Path::WIDE, 0.02, 0.7),
    ] {
        let [vivace, cubic] = ["vivace", "cubic"].map(|law| used(law, path, loss));
        println!("{name}, {loss} lost: vivace {vivace:.3} of the link, cubic {cubic:.3}");
        assert!(vivace >= least, "{vivace}");
        assert!(vivace >= 2.0 * cubic, "{vivace} and {cubic}");
    }
}
