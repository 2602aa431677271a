use super::*;
use crate::{AccessClass, Ecn};

/// The queue of an access point with two receivers and one access class, driven by hand.
struct Bench {
    queue: Queue,
    tables: Vec<Table>,
    pool: Pool,
    order: u64,
    victims: Vec<u32>,
}

impl Bench {
    fn new(params: QdiscParams) -> Bench {
        let (kind, mut tables) = (Kind::FqCodel(params), Vec::new());
        add_tables(&kind, 3, 1, true, &mut tables);
        let queue = Queue::new(&kind, 3, (0, 1), &tables);
        Bench { queue, tables, pool: Pool::new(), order: 0, victims: Vec::new() }
    }

    fn push(&mut self, slot: usize, flow_hash: u32, count: usize, at: Time) {
        for _ in 0..count {
            let dst = u16::try_from(slot + 7).expect("small");
            let meta = Meta::new(self.order, at, 1500, flow_hash, 0, dst, AccessClass::BestEffort, Ecn::NotEct);
            self.order += 1;
            let id = self.pool.insert(meta);
            assert!(self.queue.push(&mut self.pool, &mut self.tables, slot, id, &mut self.victims));
            self.fill(at);
        }
    }

    fn fill(&mut self, at: Time) {
        self.queue.fill_driver(&mut self.pool, &mut self.tables, at, &mut self.victims);
    }

    /// Takes the next packet out and acknowledges it: its receiver and flow.
    fn send(&mut self, at: Time) -> Option<(usize, u32)> {
        let slot = self.queue.select()?;
        let id = self.queue.pop(&mut self.pool, slot)?;
        self.queue.release(slot);
        self.fill(at);
        Some((slot, self.pool.get(id).flow_hash))
    }

    fn backlog(&self, slot: usize) -> usize {
        self.queue.backlog(&self.tables, slot).0
    }
}

fn at(ms: u64) -> Time {
    Time::ZERO + Span::from_millis(ms)
}

#[test]
fn the_driver_holds_so_many_unacknowledged_ones_included() {
    let mut bench = Bench::new(QdiscParams { driver_packets: 3, ..QdiscParams::default() });
    bench.push(0, 1, 5, at(0));
    let held = |bench: &Bench| bench.tables[0].backlog(0).0;
    assert_eq!((held(&bench), bench.backlog(0)), (2, 5));
    // A packet on the air still counts.
    let id = bench.queue.pop(&mut bench.pool, 0).expect("one");
    bench.fill(at(1));
    assert_eq!((held(&bench), bench.backlog(0)), (2, 4));
    bench.queue.release(0);
    bench.pool.remove(id);
    bench.fill(at(1));
    assert_eq!((held(&bench), bench.backlog(0)), (1, 4));
}

#[test]
fn a_short_flow_overtakes_in_the_qdisc_but_not_in_the_driver() {
    let mut bench = Bench::new(QdiscParams { driver_packets: 4, ..QdiscParams::default() });
    bench.push(0, 1, 20, at(0));
    bench.push(0, 2, 1, at(0));
    let flows: Vec<u32> = (0..6).filter_map(|_| bench.send(at(0))).map(|(_, flow)| flow).collect();
    assert_eq!(flows, [1, 1, 1, 1, 2, 1]);
}

#[test]
fn receivers_are_served_in_turn_by_what_the_driver_holds() {
    let mut bench = Bench::new(QdiscParams { driver_packets: 4, ..QdiscParams::default() });
    bench.push(0, 1, 2, at(0));
    bench.push(1, 2, 2, at(0));
    let slots: Vec<usize> = std::iter::from_fn(|| bench.send(at(0))).map(|(slot, _)| slot).collect();
    assert_eq!(slots, [1, 0, 1, 0]);
}

#[test]
fn packets_expire_in_the_qdisc_but_not_in_the_driver() {
    let params = QdiscParams { driver_packets: 50, ..QdiscParams::default() };
    let mut bench = Bench::new(params);
    bench.push(0, 1, 400, at(0));
    // 1 packet a millisecond: the last of 400 would have stood for 350 ms in the discipline.
    let sent = (1..).map_while(|ms| bench.send(at(ms))).count();
    assert_eq!(sent + bench.victims.len(), 400);
    assert!((2..30).contains(&bench.victims.len()), "{}", bench.victims.len());
    assert_eq!((bench.backlog(0), bench.queue.is_empty()), (0, true));
    // As long a queue in the driver alone loses nothing.
    let mut deep = Bench::new(QdiscParams { driver_packets: 400, ..params });
    deep.push(0, 1, 400, at(0));
    assert_eq!(((1..).map_while(|ms| deep.send(at(ms))).count(), deep.victims.len()), (400, 0));
}

#[test]
fn an_overflow_takes_from_the_fattest_flow() {
    let mut bench = Bench::new(QdiscParams { packets: 10, driver_packets: 1, ..QdiscParams::default() });
    bench.push(0, 1, 10, at(0));
    bench.push(1, 2, 2, at(0));
    let lost = |bench: &Bench, flow| bench.victims.iter().filter(|id| bench.pool.get(**id).flow_hash == flow).count();
    assert_eq!((lost(&bench, 1) > 0, lost(&bench, 2)), (true, 0));
    assert_eq!((bench.backlog(0) + lost(&bench, 1), bench.backlog(1)), (10, 2));
}
