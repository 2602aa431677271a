//! What a cell was like over time, in as many parts as a picture can show.

use lasthop_laws::pbe::CellSnapshot;
use lasthop_signals::{Dci, Rnti};
use std::collections::BTreeMap;

/// More parts than a picture has columns make no better one.
const MOST: usize = 760;

/// Sums over some slots.
#[derive(Clone, Debug, Default)]
pub struct Part {
    /// Slots that were seen.
    pub slots: u64,
    /// Users, and the most there were.
    users: u64,
    /// The most there were.
    pub most_users: u32,
    active: u64,
    given: u64,
    to_users: u64,
    prb: u64,
    fair: f64,
    fair_tcp: f64,
    available: f64,
    coarse: u64,
    guessed: u64,
}

impl Part {
    /// Adds a slot of a carrier that has so many PRB.
    pub fn add(&mut self, snapshot: &CellSnapshot, prb: u16) {
        let all = u64::from(prb);
        self.slots += 1;
        self.users += u64::from(snapshot.users);
        self.most_users = self.most_users.max(snapshot.users);
        self.active += u64::from(snapshot.active);
        self.given += u64::from(snapshot.given).min(all);
        self.to_users += u64::from(snapshot.to_users).min(all);
        self.prb += all;
        self.fair += snapshot.fair.as_mbit_f64();
        self.fair_tcp += snapshot.fair_tcp.as_mbit_f64();
        self.available += snapshot.available.as_mbit_f64();
        self.coarse += u64::from(snapshot.coarse);
        self.guessed += u64::from(snapshot.guessed);
    }

    /// Both together.
    pub fn with(mut self, other: &Part) -> Part {
        self.join(other);
        self
    }

    fn join(&mut self, other: &Part) {
        self.slots += other.slots;
        self.users += other.users;
        self.most_users = self.most_users.max(other.most_users);
        self.active += other.active;
        self.given += other.given;
        self.to_users += other.to_users;
        self.prb += other.prb;
        self.fair += other.fair;
        self.fair_tcp += other.fair_tcp;
        self.available += other.available;
        self.coarse += other.coarse;
        self.guessed += other.guessed;
    }

    fn mean(&self, sum: f64) -> f64 {
        sum / self.slots.max(1) as f64
    }

    /// Users at a slot, on average.
    pub fn users(&self) -> f64 {
        self.mean(self.users as f64)
    }

    /// RNTIs of the last 40 ms, on average.
    pub fn active(&self) -> f64 {
        self.mean(self.active as f64)
    }

    /// Share of PRB that were given.
    pub fn given(&self) -> f64 {
        self.given as f64 / self.prb.max(1) as f64
    }

    /// Share of PRB that users were given.
    pub fn to_users(&self) -> f64 {
        self.to_users as f64 / self.prb.max(1) as f64
    }

    /// The fair share in Mbit/s, on average: as the cell counts.
    pub fn fair(&self) -> f64 {
        self.mean(self.fair)
    }

    /// As TCP has it.
    pub fn fair_tcp(&self) -> f64 {
        self.mean(self.fair_tcp)
    }

    /// What there is now in Mbit/s, on average.
    pub fn available(&self) -> f64 {
        self.mean(self.available)
    }

    /// Share of slots at which it was a guess.
    pub fn guessed(&self) -> f64 {
        self.mean(self.guessed as f64)
    }

    /// Share of slots at which the rate of a PRB was that of others, or a guess.
    pub fn coarse(&self) -> f64 {
        self.mean(self.coarse as f64)
    }
}

/// Parts of equal length, and the second in which most was given.
#[derive(Clone, Debug)]
pub struct Timeline {
    /// Slots of a part.
    pub per: u64,
    /// Parts, from slot 0 on; what each user was given in each.
    pub parts: Vec<(Part, BTreeMap<Rnti, u64>)>,
    /// All of them.
    pub whole: Part,
    second: u64,
    current: Second,
    busiest: Second,
}

/// A second: what each user was given in each of its slots.
#[derive(Clone, Debug, Default)]
pub struct Second {
    /// Its first slot.
    pub begins: u64,
    /// Slots in which anything was given.
    pub slots: Vec<(u64, Vec<(Rnti, u16)>)>,
    given: u64,
}

impl Timeline {
    /// Nothing yet; a second has so many slots.
    pub fn new(second: u64) -> Timeline {
        let (current, busiest) = (Second::default(), Second::default());
        Timeline { per: 1, parts: Vec::new(), whole: Part::default(), second, current, busiest }
    }

    /// Adds a slot.
    pub fn add(&mut self, snapshot: &CellSnapshot, prb: u16) {
        self.whole.add(snapshot, prb);
        self.part(snapshot.number).0.add(snapshot, prb);
    }

    /// What was given in a slot.
    pub fn give(&mut self, number: u64, dcis: &[Dci]) {
        let begins = number - number % self.second;
        if begins != self.current.begins {
            self.settle();
            self.current = Second { begins, ..Second::default() };
        }
        let mut given: Vec<(Rnti, u16)> = Vec::new();
        for dci in dcis.iter().filter(|dci| dci.is_possible()) {
            *self.part(number).1.entry(dci.rnti).or_default() += u64::from(dci.prb);
            match given.iter_mut().find(|(rnti, _)| *rnti == dci.rnti) {
                Some((_, prb)) => *prb = prb.saturating_add(dci.prb),
                None => given.push((dci.rnti, dci.prb)),
            }
        }
        if !given.is_empty() {
            self.current.given += given.iter().map(|(_, prb)| u64::from(*prb)).sum::<u64>();
            self.current.slots.push((number, given));
        }
    }

    fn settle(&mut self) {
        if self.current.given > self.busiest.given {
            self.busiest = std::mem::take(&mut self.current);
        }
    }

    /// The second in which most was given.
    pub fn busiest(&self) -> &Second {
        if self.current.given > self.busiest.given { &self.current } else { &self.busiest }
    }

    fn part(&mut self, number: u64) -> &mut (Part, BTreeMap<Rnti, u64>) {
        while number / self.per >= MOST as u64 {
            self.halve();
        }
        let at = (number / self.per) as usize;
        if self.parts.len() <= at {
            self.parts.resize_with(at + 1, Default::default);
        }
        &mut self.parts[at]
    }

    /// Two parts become one each.
    fn halve(&mut self) {
        self.per *= 2;
        let halves = std::mem::take(&mut self.parts);
        for (at, (part, given)) in halves.into_iter().enumerate() {
            if at % 2 == 0 {
                self.parts.push((part, given));
            } else if let Some((last, sums)) = self.parts.last_mut() {
                last.join(&part);
                given.into_iter().for_each(|(rnti, prb)| *sums.entry(rnti).or_default() += prb);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lasthop_units::Rate;

    fn snapshot(number: u64) -> CellSnapshot {
        CellSnapshot {
            number,
            given: 30,
            to_users: 20,
            users: 2,
            active: 5,
            sharing: 3,
            idle: 70.0,
            fair: Rate::from_mbit(20),
            available: Rate::from_mbit(10),
            fair_tcp: Rate::from_mbit(18),
            coarse: number.is_multiple_of(2),
            guessed: false,
        }
    }

    fn dci(rnti: u16, prb: u16) -> Dci {
        Dci { rnti: Rnti(rnti), prb, process: 0, blocks: [None; 2] }
    }

    #[test]
    fn parts_grow_with_the_log_and_keep_their_sums() {
        let mut timeline = Timeline::new(1000);
        for number in 0..10_000 {
            timeline.give(number, &[dci(7, 10), dci(7, 5), dci(9, 15)]);
            timeline.add(&snapshot(number), 100);
        }
        assert!(timeline.parts.len() <= MOST && timeline.parts.len() > MOST / 2, "{}", timeline.parts.len());
        let given: u64 = timeline.parts.iter().filter_map(|(_, given)| given.get(&Rnti(7))).sum();
        assert_eq!(given, 150_000);
        for part in timeline.parts.iter().map(|(part, _)| part).chain([&timeline.whole]) {
            assert_eq!((part.users(), part.active(), part.most_users), (2.0, 5.0, 2));
            assert!((part.given() - 0.3).abs() < 1e-9 && (part.to_users() - 0.2).abs() < 1e-9);
            assert_eq!((part.fair(), part.available(), part.coarse()), (20.0, 10.0, 0.5));
        }
        assert_eq!(timeline.parts.iter().map(|(part, _)| part.slots).sum::<u64>(), 10_000);
    }

    #[test]
    fn the_busiest_second_is_kept() {
        let mut timeline = Timeline::new(1000);
        for (number, prb) in [(10, 50), (1500, 20), (1501, 40), (2999, 59), (5000, 60), (5001, 0)] {
            timeline.give(number, &[dci(7, prb)]);
        }
        let busiest = timeline.busiest();
        assert_eq!((busiest.begins, busiest.slots.len()), (1000, 2));
        timeline.give(5002, &[dci(8, 1)]);
        assert_eq!((timeline.busiest().begins, timeline.busiest().slots.len()), (5000, 2), "it need not be over");
    }
}
