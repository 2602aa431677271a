//! Which terminals are given the resource block groups of a subframe.
//! Source:     ns-3.37, PfFfMacScheduler and RrFfMacScheduler (what they do, measured in reference data S5 and by ns-3's own
//!             tests); 3GPP TS 36.213 table 7.1.6.1-1 (size of a group).
//! Equations:  proportional fair: the largest r / A first;   A' = (1 - 1/T) A + r'/T, once a subframe
//! Symbols:    r: bits of all groups together; A -> `Average`; r': bits given in the subframe; T -> `window`
//! Deviations: no terminal is given more groups than it needs; ns-3 gives whole subframes also to those with little to send. A
//!             terminal reports one quality for the whole carrier, so that the first for one group is the first for all. No limit
//!             on the number of assignments in a subframe (PDCCH).
//! Checked by: tests::*, tests/integration/cell.rs

use super::params::Scheduler;

/// PRB pairs of a resource block group on a carrier of `prb`.
pub(super) fn group_size(prb: u8) -> u8 {
    match prb {
        0..=10 => 1,
        11..=26 => 2,
        27..=63 => 3,
        _ => 4,
    }
}

/// What is left of a carrier's subframe. The last group may be short.
#[derive(Clone, Copy, Debug)]
pub(super) struct Room {
    left: u8,
    size: u8,
}

impl Room {
    /// A whole subframe of `prb`, or the groups in it that are not short.
    pub fn new(prb: u8, use_remainder: bool) -> Room {
        let size = group_size(prb);
        Room { left: if use_remainder { prb } else { prb - prb % size }, size }
    }

    /// Takes the groups that `prb` lie in; what they have in all, which may be less.
    pub fn take(&mut self, prb: u8) -> u8 {
        self.take_groups(prb.div_ceil(self.size))
    }

    fn take_groups(&mut self, groups: u8) -> u8 {
        let given = groups.saturating_mul(self.size).min(self.left);
        self.left -= given;
        given
    }

    pub fn left(&self) -> u8 {
        self.left
    }

    fn groups(&self) -> u8 {
        self.left.div_ceil(self.size)
    }

    fn groups_of(&self, prb: u8) -> u8 {
        prb.div_ceil(self.size)
    }
}

/// A terminal for which something waits.
#[derive(Clone, Copy, Debug)]
pub(super) struct Candidate {
    pub terminal: u16,
    /// PRBs without which a block is of no use.
    pub least: u8,
    /// PRBs that take up all that waits; not below `least`.
    pub wants: u8,
    /// What it could have, by what it had lately.
    pub metric: f64,
}

/// Turns on one carrier.
#[derive(Clone, Debug)]
pub(super) struct Turns {
    scheduler: Scheduler,
    use_remainder: bool,
    /// Round robin: the terminal that comes first next time.
    next: u16,
}

impl Turns {
    pub fn new(scheduler: Scheduler, use_remainder: bool) -> Turns {
        Turns { scheduler, use_remainder, next: 0 }
    }

    /// Gives `room` to candidates, in the order of terminals: `given` takes which gets how many PRBs.
    pub fn allocate(&mut self, room: &mut Room, candidates: &mut [Candidate], given: &mut Vec<(u16, u8)>) {
        match self.scheduler {
            Scheduler::ProportionalFair { .. } => {
                // Stable: among equals the first terminal.
                candidates.sort_by(|a, b| b.metric.total_cmp(&a.metric));
                for candidate in candidates.iter() {
                    if candidate.least <= room.left() {
                        given.push((candidate.terminal, room.take(candidate.wants)));
                    }
                }
            }
            Scheduler::RoundRobin => self.round_robin(room, candidates, given),
        }
    }

    fn round_robin(&mut self, room: &mut Room, candidates: &mut [Candidate], given: &mut Vec<(u16, u8)>) {
        let split = candidates.partition_point(|candidate| candidate.terminal < self.next);
        candidates.rotate_left(split);
        let Some(second) = candidates.get(1).or(candidates.first()).map(|candidate| candidate.terminal) else { return };
        let (share, mut spare) = equal_share(room, candidates);
        let mut missed = None;
        for candidate in candidates.iter() {
            let (wants, least) = (room.groups_of(candidate.wants), room.groups_of(candidate.least));
            let mut groups = wants.min(share.max(least));
            if self.use_remainder && share >= least && groups < wants && spare > 0 {
                (groups, spare) = (groups + 1, spare - 1);
            }
            if candidate.least > room.left() {
                missed.get_or_insert(candidate.terminal);
                continue;
            }
            given.push((candidate.terminal, room.take_groups(groups)));
        }
        // Where not all had a turn, the first that had none is next; else the remainder goes round.
        self.next = missed.unwrap_or(second);
    }
}

/// Groups that each may have that needs so many, and how many remain then.
fn equal_share(room: &Room, candidates: &[Candidate]) -> (u8, u8) {
    let wants = |candidate: &Candidate| room.groups_of(candidate.wants);
    let (mut free, mut open) = (room.groups(), candidates.len());
    let mut share = 0;
    while open > 0 {
        let level = usize::from(free) / open;
        if level <= usize::from(share) {
            break;
        }
        // One that needs less leaves the rest to the others.
        share = level as u8;
        let content = candidates.iter().filter(|candidate| wants(candidate) <= share);
        let (count, taken) =
            content.fold((0, 0u8), |(n, sum), candidate| (n + 1, sum.saturating_add(wants(candidate))));
        free = room.groups().saturating_sub(taken);
        open = candidates.len() - count;
    }
    (share, free.saturating_sub((open * usize::from(share)) as u8))
}

/// What a terminal has been given lately on a carrier, in bits a subframe.
#[derive(Clone, Copy, Debug)]
pub(super) struct Average {
    bits: f64,
    /// As of the beginning of this subframe: it has been given nothing since.
    since: u64,
}

impl Average {
    /// ns-3 begins with a byte a second, below which no average counts here.
    const LEAST: f64 = 0.008;

    pub fn new() -> Average {
        Average { bits: Average::LEAST, since: 0 }
    }

    /// The average at the beginning of subframe `now`.
    pub fn at(&self, now: u64, window: u32) -> f64 {
        let idle = i32::try_from(now.saturating_sub(self.since)).unwrap_or(i32::MAX);
        (self.bits * (1.0 - 1.0 / f64::from(window)).powi(idle)).max(Average::LEAST)
    }

    /// `bits` are given in subframe `now`, at most once in each.
    pub fn give(&mut self, now: u64, bits: u32, window: u32) {
        let before = self.at(now, window);
        let weight = 1.0 / f64::from(window);
        *self = Average { bits: (1.0 - weight) * before + weight * f64::from(bits), since: now + 1 };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wants(list: &[u8]) -> Vec<Candidate> {
        let one = |(n, wants): (usize, &u8)| Candidate { terminal: n as u16, least: 1, wants: *wants, metric: 0.0 };
        list.iter().enumerate().map(one).collect()
    }

    fn round_robin(turns: &mut Turns, prb: u8, list: &[u8]) -> Vec<(u16, u8)> {
        let mut given = Vec::new();
        let mut room = Room::new(prb, turns.use_remainder);
        turns.allocate(&mut room, &mut wants(list), &mut given);
        given.sort_unstable();
        given
    }

    #[test]
    fn groups_have_the_standards_sizes() {
        // The nominal bandwidths, and both sides of each step.
        let sizes = [6, 10, 11, 15, 25, 26, 27, 50, 63, 64, 75, 100, 110].map(group_size);
        assert_eq!(sizes, [1, 1, 2, 2, 2, 2, 3, 3, 3, 4, 4, 4, 4]);
    }

    #[test]
    fn round_robin_shares_equally_what_is_needed() {
        let mut turns = Turns::new(Scheduler::RoundRobin, false);
        // 16 groups of 3.
        assert_eq!(round_robin(&mut turns, 50, &[50, 50]), [(0, 24), (1, 24)]);
        assert_eq!(round_robin(&mut turns, 50, &[50, 50, 50]), [(0, 15), (1, 15), (2, 15)]);
        // Terminal 1 needs one group: the others share the rest.
        assert_eq!(round_robin(&mut turns, 50, &[50, 2, 50]), [(0, 21), (1, 3), (2, 21)]);
        assert_eq!(round_robin(&mut turns, 50, &[5]), [(0, 6)]);
        assert_eq!(round_robin(&mut turns, 50, &[]), []);
    }

    #[test]
    fn the_remainder_goes_round() {
        let mut turns = Turns::new(Scheduler::RoundRobin, true);
        // 17 groups, the last of 2.
        assert_eq!(round_robin(&mut turns, 50, &[50, 50]), [(0, 27), (1, 23)]);
        assert_eq!(round_robin(&mut turns, 50, &[50, 50]), [(0, 23), (1, 27)]);
    }

    #[test]
    fn with_too_few_groups_each_has_a_turn() {
        let mut turns = Turns::new(Scheduler::RoundRobin, true);
        let mut had = [0; 8];
        // 6 groups of one.
        for _ in 0..4 {
            for (terminal, prb) in round_robin(&mut turns, 6, &[6; 8]) {
                assert_eq!(prb, 1);
                had[usize::from(terminal)] += 1;
            }
        }
        assert_eq!(had, [3; 8]);
    }

    #[test]
    fn a_block_of_no_use_is_not_given() {
        let mut turns = Turns::new(Scheduler::RoundRobin, true);
        let mut candidates = wants(&[6, 6]);
        candidates.iter_mut().for_each(|candidate| candidate.least = 4);
        let (mut room, mut given) = (Room::new(6, true), Vec::new());
        turns.allocate(&mut room, &mut candidates, &mut given);
        assert_eq!((given, room.left()), (vec![(0, 4)], 2));
        assert_eq!(turns.next, 1);
    }

    #[test]
    fn proportional_fair_gives_all_to_the_first_that_needs_it() {
        let mut turns = Turns::new(Scheduler::PROPORTIONAL_FAIR, false);
        let mut candidates = wants(&[50, 4, 50]);
        candidates[1].metric = 2.0;
        candidates[2].metric = 1.0;
        let (mut room, mut given) = (Room::new(50, false), Vec::new());
        turns.allocate(&mut room, &mut candidates, &mut given);
        assert_eq!(given, [(1, 6), (2, 42)]);
    }

    #[test]
    fn an_average_forgets_alike_in_one_step_or_in_many() {
        let mut average = Average::new();
        average.give(10, 10_000, 99);
        // 10000 / 99, and what was left of the beginning.
        assert!((average.at(11, 99) - 101.018).abs() < 1e-2);
        let before = average.at(11, 99);
        assert!((average.at(110, 99) - before * (98.0f64 / 99.0).powi(99)).abs() < 1e-9);
        assert_eq!(average.at(1_000_000, 99), Average::LEAST);
    }
}
