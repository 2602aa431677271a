use super::*;
use crate::{AccessClass, Ecn};

struct Bench {
    queue: Queue,
    pool: Pool,
    order: u64,
    victims: Vec<u32>,
}

impl Bench {
    fn new(kind: Kind, slots: usize) -> Bench {
        Bench { queue: Queue::new(&kind, slots), pool: Pool::new(), order: 0, victims: Vec::new() }
    }

    fn push(&mut self, slot: usize, flow_hash: u32, ecn: Ecn, at: Time) -> bool {
        let dst = u16::try_from(slot).expect("small");
        let meta = Meta::new(self.order, at, 1500, flow_hash, 0, dst, AccessClass::BestEffort, ecn);
        self.order += 1;
        let id = self.pool.insert(meta);
        self.queue.push(&mut self.pool, slot, id, &mut self.victims)
    }

    fn pop(&mut self, slot: usize, at: Time) -> Option<Meta> {
        let id = self.queue.pop(&mut self.pool, slot, at, &mut self.victims)?;
        self.queue.release(slot);
        Some(*self.pool.get(id))
    }
}

fn at(ms: u64) -> Time {
    Time::ZERO + Span::from_millis(ms)
}

fn fq() -> Kind {
    Kind::FqCodelAirtime(FqCodelParams::default())
}

#[test]
fn a_fifo_serves_the_receiver_of_the_oldest_packet_and_takes_its_others_from_anywhere() {
    let mut bench = Bench::new(Kind::Fifo { packets: 10 }, 3);
    for slot in [2, 0, 2, 1, 2] {
        assert!(bench.push(slot, 0, Ecn::NotEct, at(0)));
    }
    assert_eq!(bench.queue.select(), Some(2));
    let orders: Vec<u64> = std::iter::from_fn(|| bench.pop(2, at(0))).map(|meta| meta.order).collect();
    assert_eq!(orders, [0, 2, 4]);
    assert_eq!(bench.queue.select(), Some(0));
}

#[test]
fn a_fifo_counts_what_the_mac_holds_against_its_limit() {
    let mut bench = Bench::new(Kind::Fifo { packets: 2 }, 2);
    assert!(bench.push(0, 0, Ecn::NotEct, at(0)) && bench.push(1, 0, Ecn::NotEct, at(0)));
    assert!(bench.queue.pop(&mut bench.pool, 0, at(0), &mut bench.victims).is_some());
    assert!(!bench.push(0, 0, Ecn::NotEct, at(0)));
    bench.queue.release(0);
    assert!(bench.push(0, 0, Ecn::NotEct, at(0)));
}

#[test]
fn a_packet_to_be_sent_again_keeps_its_place_in_a_fifo() {
    let mut bench = Bench::new(Kind::Fifo { packets: 10 }, 2);
    bench.push(0, 0, Ecn::NotEct, at(0));
    bench.push(1, 0, Ecn::NotEct, at(0));
    bench.pop(0, at(0));
    bench.queue.set_resend(0, 0);
    assert_eq!(bench.queue.select(), Some(0));
    bench.queue.set_resend(0, u64::MAX);
    assert_eq!(bench.queue.select(), Some(1));
}

#[test]
fn round_robin_gives_each_receiver_a_turn_whatever_waits_for_the_others() {
    let mut bench = Bench::new(Kind::RoundRobin { packets: 10 }, 3);
    for slot in [1, 1, 1, 0, 2] {
        bench.push(slot, 0, Ecn::NotEct, at(0));
    }
    let turns: Vec<usize> = (0..5)
        .map(|_| {
            let slot = bench.queue.select().expect("something waits");
            bench.pop(slot, at(0));
            slot
        })
        .collect();
    assert_eq!(turns, [1, 2, 0, 1, 1]);
}

#[test]
fn flows_of_one_receiver_share_and_a_new_one_goes_first() {
    let mut bench = Bench::new(fq(), 1);
    for _ in 0..10 {
        bench.push(0, 7, Ecn::NotEct, at(0));
    }
    // The bulk flow's quantum of 300 bytes covers its first packet only; then the newcomer is served.
    assert_eq!(bench.pop(0, at(0)).map(|meta| meta.flow_hash), Some(7));
    bench.push(0, 8, Ecn::NotEct, at(0));
    assert_eq!(bench.pop(0, at(0)).map(|meta| meta.flow_hash), Some(8));
}

#[test]
fn turns_follow_airtime_not_packets() {
    let mut bench = Bench::new(fq(), 2);
    let mut turns = [0u32; 2];
    for _ in 0..4_000 {
        for slot in 0..2 {
            bench.push(slot, 1, Ecn::NotEct, at(0));
        }
        let slot = bench.queue.select().expect("something waits");
        bench.pop(slot, at(0));
        turns[slot] += 1;
        // The second receiver is four times slower.
        bench.queue.charge(slot, Span::from_micros([100, 400][slot]));
    }
    let ratio = f64::from(turns[0]) / f64::from(turns[1]);
    assert!((ratio - 4.0).abs() < 0.1, "{turns:?}");
}

#[test]
fn an_overflow_takes_from_the_longest_flow() {
    let mut bench = Bench::new(Kind::FqCodelAirtime(FqCodelParams { packets: 10, ..FqCodelParams::default() }), 2);
    bench.push(1, 5, Ecn::NotEct, at(0));
    for _ in 0..10 {
        bench.push(0, 6, Ecn::NotEct, at(0));
    }
    assert!(!bench.victims.is_empty());
    assert!(bench.victims.iter().all(|&id| bench.pool.get(id).flow_hash == 6));
    assert_eq!(bench.queue.backlog(1).0, 1);
    assert_eq!(bench.queue.waiting() + bench.victims.len(), 11);
}

#[test]
fn a_standing_queue_marks_what_can_be_marked_and_drops_the_rest() {
    for (ecn, marked) in [(Ecn::Ect0, true), (Ecn::NotEct, false)] {
        let mut bench = Bench::new(fq(), 1);
        for _ in 0..100 {
            bench.push(0, 1, ecn, at(0));
        }
        let sent: Vec<Meta> = (0..80).filter_map(|i| bench.pop(0, at(50 + 5 * i))).collect();
        assert_eq!(sent.iter().any(|meta| meta.ecn == Ecn::Ce), marked);
        assert_eq!(bench.victims.is_empty(), marked);
    }
}
