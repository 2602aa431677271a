use super::*;
use crate::{AccessClass, Ecn};
use lasthop_units::{Rate, Time};

/// The queues of one access point with two access classes, driven by hand.
struct Bench {
    queues: Vec<Queue>,
    tables: Vec<Table>,
    pool: Pool,
    order: u64,
    victims: Vec<u32>,
    links: Vec<Link>,
}

/// Receivers on links of the given rates, in Mbit/s; the group comes behind them.
fn bench(params: FqCodelParams, rates: &[u64]) -> Bench {
    let kind = Kind::FqCodelAirtime(params);
    let (mut tables, lanes) = (Vec::new(), rates.len() + 1);
    add_tables(&kind, lanes, 2, true, &mut tables);
    let queues = (0..2).map(|class| Queue::new(&kind, lanes, (class, 2), &tables)).collect();
    let link = |mbit: &u64| Link {
        rate: Rate::from_mbit(*mbit),
        preamble: Span::from_micros(40),
        packets: 64,
        psdu: u32::try_from(Rate::from_mbit(*mbit).bytes_in(Span::from_micros(5_400)).get()).expect("small"),
        overhead: 42,
        he: false,
    };
    let links = rates.iter().chain([&6]).map(link).collect();
    Bench { queues, tables, pool: Pool::new(), order: 0, victims: Vec::new(), links }
}

impl Bench {
    fn push_to(&mut self, class: usize, slot: usize, flow_hash: u32, ecn: Ecn, at: Time) -> u32 {
        let dst = u16::try_from(slot).expect("small");
        let meta = Meta::new(self.order, at, 1500, flow_hash, 0, dst, AccessClass::BestEffort, ecn);
        self.order += 1;
        let id = self.pool.insert(meta);
        assert!(self.queues[class].push(&mut self.pool, &mut self.tables, slot, id, &mut self.victims));
        id
    }

    fn push(&mut self, slot: usize, flow_hash: u32, count: usize, at: Time) {
        (0..count).for_each(|_| {
            self.push_to(0, slot, flow_hash, Ecn::NotEct, at);
        });
    }

    /// Fills the hardware of a class; returns the receivers that had a turn.
    fn hand_over(&mut self, class: usize, at: Time) -> Vec<usize> {
        let elsewhere = self.queues[1 - class].pending();
        let mut turns = Vec::new();
        let hardware = self.queues[class].hardware().expect("mac80211");
        while let Some(slot) = hardware.turn(&self.tables, elsewhere) {
            let (pool, tables, link) = (&mut self.pool, &mut self.tables, self.links[slot]);
            hardware.hand_over(pool, tables, slot, &link, at, elsewhere, &mut self.victims);
            turns.push(slot);
        }
        turns
    }

    /// Sends one aggregate and has it acknowledged: its receiver, and its packets.
    fn send(&mut self, class: usize) -> Option<(usize, Vec<Meta>)> {
        let slot = self.queues[class].select()?;
        let limit = usize::from(self.links[slot].packets);
        let mut sent = Vec::new();
        while let Some(id) = if sent.len() < limit { self.queues[class].pop(&mut self.pool, slot) } else { None } {
            sent.push(*self.pool.get(id));
        }
        let airtime = self.links[slot].rate.time_for(Bytes::new(1_542 * sent.len() as u64)).expect("a rate");
        for meta in &sent {
            self.queues[class].release(slot);
            self.queues[class].hardware().expect("mac80211").complete(slot, meta.airtime);
        }
        self.queues[class].charge(slot, airtime + Span::from_micros(100));
        self.queues[class].hardware().expect("mac80211").landed();
        Some((slot, sent))
    }
}

fn at(ms: u64) -> Time {
    Time::ZERO + Span::from_millis(ms)
}

/// Without a hardware queue limit in aggregates and without AQL.
fn unlimited() -> FqCodelParams {
    FqCodelParams { aql: None, hardware_aggregates: 0, ..FqCodelParams::default() }
}

#[test]
fn flows_of_one_receiver_share_and_a_sparse_one_goes_first() {
    let mut bench = bench(FqCodelParams { hardware_aggregates: 1, ..FqCodelParams::default() }, &[100]);
    bench.links[0].packets = 4;
    bench.push(0, 7, 20, at(0));
    bench.push(0, 9, 20, at(0));
    bench.hand_over(0, at(0));
    let hashes = |sent: Option<(usize, Vec<Meta>)>| -> Vec<u32> {
        sent.expect("something waits").1.iter().map(|meta| meta.flow_hash).collect()
    };
    // 300 bytes of credit pay for one packet of 1500 bytes and leave a debt of 1200: one packet each, in turn.
    assert_eq!(hashes(bench.send(0)), [7, 9, 7, 9]);
    bench.push(0, 11, 1, at(1));
    bench.hand_over(0, at(1));
    assert_eq!(hashes(bench.send(0)), [11, 7, 9, 7], "the newcomer's first packet passes the backlog");
}

#[test]
fn airtime_is_shared_not_packets() {
    let mut bench = bench(FqCodelParams::default(), &[400, 100, 50]);
    let mut airtime = [0.0; 3];
    let mut packets = [0; 3];
    for round in 0..3_000 {
        for slot in 0..3 {
            let missing = 200usize.saturating_sub(bench.queues[0].backlog(&bench.tables, slot).0);
            bench.push(slot, slot as u32 + 1, missing, at(round));
        }
        bench.hand_over(0, at(round));
        let (slot, sent) = bench.send(0).expect("saturated");
        airtime[slot] += sent.len() as f64 * 1_542.0 * 8.0 / [400.0, 100.0, 50.0][slot] + 100.0;
        packets[slot] += sent.len();
    }
    for (slot, used) in airtime.iter().enumerate() {
        let share = used / airtime.iter().sum::<f64>();
        assert!((share - 1.0 / 3.0).abs() < 0.01, "receiver {slot} has {share:.4} of the airtime, {packets:?}");
    }
}

#[test]
fn hardware_holds_two_aggregates_including_the_one_on_air() {
    let mut bench = bench(FqCodelParams { aql: None, ..FqCodelParams::default() }, &[400, 400]);
    bench.push(0, 1, 500, at(0));
    bench.push(1, 2, 500, at(0));
    assert_eq!(bench.hand_over(0, at(0)).len(), 2);
    assert!(bench.hand_over(0, at(0)).is_empty());
    // One leaves for the air: it still counts until it has landed.
    let slot = bench.queues[0].select().expect("two wait");
    while bench.queues[0].pop(&mut bench.pool, slot).is_some() {}
    assert!(bench.hand_over(0, at(1)).is_empty());
    bench.queues[0].hardware().expect("mac80211").landed();
    assert_eq!(bench.hand_over(0, at(2)).len(), 1);
}

#[test]
fn airtime_limits_bound_hardware_per_receiver_and_in_total() {
    let params = FqCodelParams { hardware_aggregates: 0, ..FqCodelParams::default() };
    for stations in [1usize, 2, 3, 8] {
        let mut bench = bench(params, &vec![50; stations]);
        for slot in 0..stations {
            bench.push(slot, slot as u32 + 1, 400, at(0));
        }
        bench.hand_over(0, at(0));
        let packet = Span::from_micros(260);
        let pending: Vec<Span> = (0..stations)
            .map(|slot| {
                let waiting = bench.tables[0].backlog(slot).0;
                let each = 4 * u64::from(bench.links[slot].airtime(1_500));
                Span::from_micros(each * (400 - waiting) as u64)
            })
            .collect();
        let all = bench.queues[0].pending();
        assert_eq!(all, pending.iter().copied().sum(), "what is booked is what was handed over");
        let aql = Aql::default();
        // A check precedes each packet, so a limit is overrun by less than one.
        assert!(pending.iter().all(|&pending| pending < aql.high + packet && pending >= aql.low), "{pending:?}");
        let excess = aql.low * stations as u64;
        assert!(all < aql.total.max(excess) + packet * stations as u64, "{stations} stations: {all:?}");
        // One receiver alone has the high limit; eight have the low one each, 40 ms, which is more than the total.
        let each = if stations <= 2 { aql.high } else { aql.low };
        assert!(pending.iter().any(|&pending| pending >= each), "{pending:?}");
    }
}

#[test]
fn the_total_counts_every_class_of_the_node() {
    let params = FqCodelParams { hardware_aggregates: 0, ..FqCodelParams::default() };
    let mut bench = bench(params, &[50, 50, 50]);
    for slot in 0..3 {
        for _ in 0..400 {
            bench.push_to(1, slot, slot as u32 + 1, Ecn::NotEct, at(0));
        }
    }
    bench.hand_over(1, at(0));
    assert!(bench.queues[1].pending() >= Aql::default().total);
    bench.push(0, 9, 400, at(0));
    bench.hand_over(0, at(0));
    let pending = bench.queues[0].pending();
    assert!(pending >= Aql::default().low && pending < Span::from_micros(5_260), "{pending:?}");
}

#[test]
fn expected_airtime_is_payload_plus_a_preamble_share() {
    let link = |mbit, packets| Link {
        rate: Rate::from_mbit(mbit),
        preamble: Span::from_micros(40),
        packets,
        psdu: 65_535,
        overhead: 42,
        he: false,
    };
    // 1538 octets at 6, 50 and 400 Mbit/s: 2050.7, 246.1 and 30.8 us, with 40/2, 40/8 and 40/32 us of preamble, in units
    // of 4 us rounded down. Without aggregation the whole preamble counts.
    assert_eq!(link(6, 64).airtime(1_500), 517);
    assert_eq!(link(50, 64).airtime(1_500), 62);
    assert_eq!(link(400, 64).airtime(1_500), 8);
    assert_eq!(link(50, 1).airtime(1_500), 71);
    assert_eq!(link(4_000, 64).airtime(40), 1, "never nothing");
    assert_eq!(link(1, 1).airtime(2_000), 1_023, "ten bits");
}

#[test]
fn an_overflow_takes_half_of_the_fattest_flow() {
    let mut bench = bench(FqCodelParams { packets: 40, ..unlimited() }, &[100, 100]);
    for _ in 0..30 {
        bench.push_to(1, 0, 6, Ecn::NotEct, at(0));
    }
    bench.push(1, 5, 10, at(0));
    assert!(bench.victims.is_empty());
    bench.push(1, 5, 1, at(0));
    assert_eq!(bench.victims.len(), 15);
    assert!(bench.victims.iter().all(|&id| bench.pool.get(id).flow_hash == 6));
    assert_eq!(bench.victims, (0..15).collect::<Vec<u32>>(), "from the head");
    assert_eq!(bench.queues[1].backlog(&bench.tables, 0).0, 15);
    assert_eq!(bench.queues[0].backlog(&bench.tables, 1).0, 11);
}

#[test]
fn overflow_takes_at_most_32_packets_and_counts_linux_memory() {
    let memory = Some(Bytes::new(100 * 2_304));
    let mut bench = bench(FqCodelParams { memory, ..unlimited() }, &[100]);
    bench.push(0, 1, 100, at(0));
    assert!(bench.victims.is_empty());
    bench.push(0, 1, 1, at(0));
    assert_eq!(bench.victims.len(), 32);
}

#[test]
fn a_bucket_held_by_another_receiver_uses_the_default_flow() {
    let mut bench = bench(unlimited(), &[100, 100]);
    bench.push(0, 42, 5, at(0));
    bench.push(1, 42, 5, at(0));
    assert_eq!(bench.tables[0].collisions(), 5);
    assert_eq!(bench.queues[0].backlog(&bench.tables, 1), (5, 7_500));
    bench.hand_over(0, at(0));
    let mut sent = [0; 2];
    while let Some((slot, packets)) = bench.send(0) {
        assert!(packets.iter().all(|meta| usize::from(meta.dst) == slot));
        assert!(packets.is_sorted_by_key(|meta| meta.order));
        sent[slot] += packets.len();
    }
    assert_eq!(sent, [5, 5]);
}

#[test]
fn a_standing_queue_marks_ecn_packets_and_drops_the_rest() {
    for (ecn, marks) in [(Ecn::Ect0, true), (Ecn::NotEct, false)] {
        let params = FqCodelParams { hardware_aggregates: 1, ..FqCodelParams::default() };
        let mut bench = bench(params, &[100]);
        bench.links[0].packets = 1;
        for _ in 0..100 {
            bench.push_to(0, 0, 1, ecn, at(0));
        }
        let mut marked = 0;
        for i in 0..80 {
            bench.hand_over(0, at(50 + 5 * i));
            let sent = bench.send(0).expect("more waits").1;
            marked += sent.iter().filter(|meta| meta.ecn == Ecn::Ce).count();
        }
        // Above the target since 50 ms: signals at 150, 250, 320.7, 378.4 and 428.4 ms.
        assert_eq!((marked, bench.victims.len()), if marks { (5, 0) } else { (0, 5) });
    }
}

#[test]
fn slow_receivers_are_spared_only_on_request() {
    for (relax_slow, signals) in [(false, true), (true, false)] {
        let params = FqCodelParams { relax_slow, hardware_aggregates: 1, ..FqCodelParams::default() };
        let mut bench = bench(params, &[8, 8]);
        bench.links[0].packets = 1;
        // One packet each 5 ms, sent 45 ms after it came: longer than 20 ms, shorter than 50 ms.
        let mut marked = 0;
        for step in 0..100 {
            bench.push_to(0, 0, 1, Ecn::Ect0, at(5 * step));
            if step >= 9 {
                bench.hand_over(0, at(5 * step));
                let sent = bench.send(0).expect("ten wait").1;
                marked += sent.iter().filter(|meta| meta.ecn == Ecn::Ce).count();
            }
        }
        assert_eq!(marked > 0, signals, "relax_slow = {relax_slow}: {marked} marks");
    }
}

#[test]
fn a_debtor_waits_until_turns_have_paid_its_debt() {
    let mut bench = bench(FqCodelParams { hardware_aggregates: 1, ..FqCodelParams::default() }, &[100, 100]);
    // Receiver 0 has used 10 ms of uplink: 40 quanta of 256 us, and both begin with one.
    bench.queues[0].charge(0, Span::from_millis(10));
    let mut turns = Vec::new();
    for round in 0..12 {
        for slot in 0..2 {
            let missing = 100usize.saturating_sub(bench.queues[0].backlog(&bench.tables, slot).0);
            bench.push(slot, slot as u32 + 1, missing, at(round));
        }
        bench.hand_over(0, at(round));
        turns.push(bench.send(0).expect("saturated").0);
    }
    // A full aggregate of 43 takes some 5.4 ms, so receiver 1 has two turns of credit before receiver 0's first.
    assert_eq!(&turns[..4], [1, 1, 0, 1], "{turns:?}");
}
