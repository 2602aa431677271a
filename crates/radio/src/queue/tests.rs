use super::*;
use crate::{AccessClass, Ecn};
use lasthop_units::Time;

struct Bench {
    queue: Queue,
    pool: Pool,
    order: u64,
    victims: Vec<u32>,
}

impl Bench {
    fn new(kind: Kind, slots: usize) -> Bench {
        Bench { queue: Queue::new(&kind, slots, (0, 1), &[]), pool: Pool::new(), order: 0, victims: Vec::new() }
    }

    fn push(&mut self, slot: usize, flow_hash: u32, ecn: Ecn, at: Time) -> bool {
        let dst = u16::try_from(slot).expect("small");
        let meta = Meta::new(self.order, at, 1500, flow_hash, 0, dst, AccessClass::BestEffort, ecn);
        self.order += 1;
        let id = self.pool.insert(meta);
        self.queue.push(&mut self.pool, &mut [], slot, id, &mut self.victims)
    }

    fn pop(&mut self, slot: usize) -> Option<Meta> {
        let id = self.queue.pop(&mut self.pool, slot)?;
        self.queue.release(slot);
        Some(*self.pool.get(id))
    }
}

fn at(ms: u64) -> Time {
    Time::ZERO + Span::from_millis(ms)
}

#[test]
fn a_fifo_serves_all_packets_of_the_oldest_ones_receiver() {
    let mut bench = Bench::new(Kind::Fifo { packets: 10 }, 3);
    for slot in [2, 0, 2, 1, 2] {
        assert!(bench.push(slot, 0, Ecn::NotEct, at(0)));
    }
    assert_eq!(bench.queue.select(), Some(2));
    let orders: Vec<u64> = std::iter::from_fn(|| bench.pop(2)).map(|meta| meta.order).collect();
    assert_eq!(orders, [0, 2, 4]);
    assert_eq!(bench.queue.select(), Some(0));
}

#[test]
fn a_fifo_counts_what_the_mac_holds_against_its_limit() {
    let mut bench = Bench::new(Kind::Fifo { packets: 2 }, 2);
    assert!(bench.push(0, 0, Ecn::NotEct, at(0)) && bench.push(1, 0, Ecn::NotEct, at(0)));
    assert!(bench.queue.pop(&mut bench.pool, 0).is_some());
    assert!(!bench.push(0, 0, Ecn::NotEct, at(0)));
    bench.queue.release(0);
    assert!(bench.push(0, 0, Ecn::NotEct, at(0)));
}

#[test]
fn a_packet_to_be_sent_again_keeps_its_place_in_a_fifo() {
    let mut bench = Bench::new(Kind::Fifo { packets: 10 }, 2);
    bench.push(0, 0, Ecn::NotEct, at(0));
    bench.push(1, 0, Ecn::NotEct, at(0));
    bench.pop(0);
    bench.queue.set_resend(0, 0);
    assert_eq!(bench.queue.select(), Some(0));
    bench.queue.set_resend(0, u64::MAX);
    assert_eq!(bench.queue.select(), Some(1));
}

#[test]
fn round_robin_gives_each_receiver_a_turn() {
    let mut bench = Bench::new(Kind::RoundRobin { packets: 10 }, 3);
    for slot in [1, 1, 1, 0, 2] {
        bench.push(slot, 0, Ecn::NotEct, at(0));
    }
    let turns: Vec<usize> = (0..5)
        .map(|_| {
            let slot = bench.queue.select().expect("something waits");
            bench.pop(slot);
            slot
        })
        .collect();
    assert_eq!(turns, [1, 2, 0, 1, 1]);
}
