//! Linux's access points and stations: FQ-CoDel for each receiver, airtime fairness between them, and a short hardware queue behind.
//! Source:     Linux 6.16, `net/mac80211/tx.c` (TXQs, `ieee80211_next_txq`, the schedule, AQL), `sta_info.c` (airtime and
//!             CoDel parameters) and `airtime.c` (expected airtime); Høiland-Jørgensen et al., "Ending the Anomaly", USENIX
//!             ATC 2017; RFC 8290. Two aggregates in hardware: ath9k (`ATH_AGGR_MIN_QDEPTH`).
//! Equations:  a receiver may hand packets over while deficit - pending >= 0, and pending < low, or pending < high and
//!             pending of all < total;  a turn that finds it below 0 adds the quantum;  each exchange subtracts the
//!             airtime that it took, in both directions
//! Symbols:    deficit -> `Station::deficit`, aql_tx_pending -> `Station::pending`, aql_limit_low, aql_limit_high and
//!             aql_threshold -> `Aql`, expected airtime of a packet -> `Link::airtime`
//! Deviations: one TXQ a receiver and access class (Linux: one a traffic identifier, two of them a class). What the
//!             hardware holds for a receiver may grow into one A-MPDU when the channel is won (firmware does so; ath9k
//!             forms its aggregates when they are handed over). Failed MPDUs are the hardware's and go before new ones.
//!             A handover goes on until the hardware is full, where Linux visits each TXQ once a round. Packets to a group
//!             have no airtime limit of their own (Linux: 50 ms).
//! Validity:   any load. Firmware (no limit in aggregates) sends in the order of handover, so that airtime is only as
//!             equal as the airtime limits make it; real firmware may share by itself.
//! Checked by: queue::mac80211_tests::*, tests/integration/mac80211.rs, tests/integration/properties.rs

use super::fq::Table;
use super::pool::{List, Pool};
use super::{FqCodelParams, codel};
use lasthop_units::{Rate, Span, Time};
use std::collections::VecDeque;

/// Packets of a turn, and packets that the hardware holds at most, where it has no limit in aggregates (ath10k's 16;
/// mt76's ring).
const TURN: u16 = 16;
const RING: usize = 2_048;
/// A receiver without packets stays in the schedule to pay its debt if it was active this long ago.
const ACTIVE: Span = Span::from_millis(100);
/// What Linux adds to a packet's length (headers), and the length that its rate tables are made for.
const HEADERS: u32 = 38;
const TABLE_LEN: u64 = 1_024;

/// The queue of one access class of an access point, or of a station, which has one receiver.
#[derive(Clone, Debug)]
pub(crate) struct Mac80211 {
    params: FqCodelParams,
    /// Its node's flow table, and the tin of its first receiver there.
    table: usize,
    first_tin: usize,
    /// One a receiver, then the group.
    stations: Vec<Station>,
    /// Receivers in the order of their turns.
    schedule: VecDeque<u16>,
    /// What the hardware holds, in the order in which it was handed over.
    units: VecDeque<Unit>,
    staged: usize,
    /// Expected airtime of what it holds and has on the air.
    pending: Span,
    /// A unit is on the air.
    flying: bool,
}

/// One receiver.
#[derive(Clone, Debug)]
struct Station {
    /// Airtime that it may use, in nanoseconds; negative: that it owes.
    deficit: i64,
    /// Expected airtime of what the hardware holds for it.
    pending: Span,
    last_active: Time,
    scheduled: bool,
    /// Packets in the hardware.
    staged: List,
}

/// Packets of one receiver that were handed over together.
#[derive(Clone, Copy, Debug)]
struct Unit {
    slot: u16,
    /// Packets of it that have not been sent yet. None: the receiver has something to be sent again.
    left: u16,
    /// Some of it was sent.
    opened: bool,
}

/// What a handover must know of the link to a receiver now.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Link {
    /// Rate of its data.
    pub rate: Rate,
    /// Preamble and PHY header.
    pub preamble: Span,
    /// Packets and octets of the largest A-MPDU; one packet without aggregation.
    pub packets: u16,
    pub psdu: u32,
    /// Octets that an MPDU adds to its packet in an A-MPDU.
    pub overhead: u32,
    /// 802.11ax.
    pub he: bool,
}

impl Mac80211 {
    /// For `slots` receivers, the last of them the group.
    pub fn new(params: FqCodelParams, slots: usize, table: usize, first_tin: usize) -> Mac80211 {
        let quantum = nanos(params.airtime_quantum);
        let station = |_| Station {
            deficit: quantum,
            pending: Span::ZERO,
            last_active: Time::ZERO,
            scheduled: false,
            staged: List::new(),
        };
        Mac80211 {
            params,
            table,
            first_tin,
            stations: (0..slots).map(station).collect(),
            schedule: VecDeque::new(),
            units: VecDeque::new(),
            staged: 0,
            pending: Span::ZERO,
            flying: false,
        }
    }

    /// Takes the packet. What overflows goes to `victims`: never refused, but perhaps another's head lost.
    pub fn push(&mut self, pool: &mut Pool, tables: &mut [Table], slot: usize, id: u32, victims: &mut Vec<u32>) {
        let now = pool.get(id).queued_at;
        tables[self.table].push(pool, self.first_tin + slot, id, victims);
        self.enter(slot, now);
    }

    // --- towards the hardware ---

    /// The receiver that may hand packets over next. `elsewhere` is the expected airtime that the node's other classes
    /// have pending.
    pub fn turn(&mut self, tables: &[Table], elsewhere: Span) -> Option<usize> {
        if self.is_full() {
            return None;
        }
        let total = elsewhere + self.pending;
        let (mut head, mut eligible) = (None, false);
        loop {
            let &next = self.schedule.front()?;
            if head == Some(next) {
                if !eligible {
                    return None;
                }
                eligible = false;
            }
            head = head.or(Some(next));
            let slot = usize::from(next);
            let group = self.is_group(slot);
            let allowed = group || self.allowed(slot, total);
            let station = &mut self.stations[slot];
            let owes = !group && station.balance() < 0;
            eligible |= allowed;
            if owes {
                station.deficit += nanos(self.params.airtime_quantum);
            }
            if owes || !allowed {
                self.schedule.rotate_left(1);
                continue;
            }
            self.schedule.pop_front();
            self.stations[slot].scheduled = false;
            if tables[self.table].backlog(self.first_tin + slot).0 > 0 {
                return Some(slot);
            }
            // It stayed to pay its debt, and has paid.
            head = None;
        }
    }

    /// Hands packets over of the receiver that has its turn: an aggregate at most. What CoDel drops goes to `victims`.
    #[allow(clippy::too_many_arguments)]
    pub fn hand_over(
        &mut self,
        pool: &mut Pool,
        tables: &mut [Table],
        slot: usize,
        link: &Link,
        now: Time,
        elsewhere: Span,
        victims: &mut Vec<u32>,
    ) {
        let (codel, tin, group) = (self.codel(link), self.first_tin + slot, self.is_group(slot));
        let in_aggregates = self.params.hardware_aggregates > 0;
        let most = if group { 1 } else { link.packets.min(if in_aggregates { u16::MAX } else { TURN }) };
        // The next packet is taken to be as long as the one before: queues show their heads only to CoDel.
        let (mut count, mut octets, mut last) = (0, 0, 0);
        while count < most && octets + last <= link.psdu {
            if !group && !self.allowed(slot, elsewhere + self.pending) {
                break;
            }
            let Some(id) = tables[self.table].pop(pool, tin, now, &codel, victims) else { break };
            let meta = pool.get_mut(id);
            last = meta.len + link.overhead;
            octets += last;
            meta.airtime = if group { 0 } else { link.airtime(meta.len) };
            self.stations[slot].pending += units_of_4us(meta.airtime);
            self.pending += units_of_4us(meta.airtime);
            self.stations[slot].staged.push(pool, id);
            self.staged += 1;
            count += 1;
        }
        if count > 0 {
            self.units.push_back(Unit { slot: slot as u16, left: count, opened: false });
        }
        let waiting = tables[self.table].backlog(tin).0 > 0;
        let station = &self.stations[slot];
        if waiting {
            self.enter(slot, now);
        } else if !group && station.balance() < 0 && now.since(station.last_active) <= ACTIVE {
            self.stations[slot].scheduled = true;
            self.schedule.push_back(slot as u16);
        }
    }

    /// True if the hardware takes no more for now.
    fn is_full(&self) -> bool {
        let limit = usize::from(self.params.hardware_aggregates);
        if limit == 0 {
            return self.staged >= RING;
        }
        let whole = self.units.iter().filter(|unit| !unit.opened).count();
        whole + usize::from(self.flying) >= limit
    }

    /// AQL: may this receiver put more into the hardware, of which `total` is pending?
    fn allowed(&self, slot: usize, total: Span) -> bool {
        let Some(aql) = self.params.aql else { return true };
        let pending = self.stations[slot].pending;
        pending < aql.low || total < aql.total && pending < aql.high
    }

    /// CoDel's parameters for a receiver. Before 6.16 Linux relaxed them where the expected throughput is low.
    fn codel(&self, link: &Link) -> codel::Params {
        let FqCodelParams { target, interval, ecn, .. } = self.params;
        let receivers = (self.stations.len() - 1) as u64;
        if self.params.relax_slow && link.throughput() < Rate::from_bps(SLOW_BPS * receivers) {
            return codel::Params {
                target: Span::from_millis(50),
                interval: Span::from_millis(300),
                ecn: false,
                floor: 0,
            };
        }
        codel::Params { target, interval, ecn, floor: 0 }
    }

    /// Puts a receiver that has packets into the schedule: first, as one that still owes airtime goes to the back at
    /// once in `turn`. The group has no account and goes to the back.
    fn enter(&mut self, slot: usize, now: Time) {
        let group = self.is_group(slot);
        let station = &mut self.stations[slot];
        if station.scheduled {
            return;
        }
        (station.scheduled, station.last_active) = (true, now);
        if group {
            self.schedule.push_back(slot as u16);
        } else {
            self.schedule.push_front(slot as u16);
        }
    }

    fn is_group(&self, slot: usize) -> bool {
        slot + 1 == self.stations.len()
    }

    // --- in the hardware ---

    /// The receiver of the packets that the hardware sends next.
    pub fn select(&mut self, resend: &[u64]) -> Option<usize> {
        while let Some(unit) = self.units.front() {
            let slot = usize::from(unit.slot);
            if unit.left > 0 || resend[slot] != u64::MAX {
                return Some(slot);
            }
            self.units.pop_front();
        }
        None
    }

    /// The next packet that the hardware holds for a receiver.
    pub fn pop(&mut self, pool: &mut Pool, slot: usize) -> Option<u32> {
        let id = self.stations[slot].staged.pop(pool)?;
        self.staged -= 1;
        self.flying = true;
        let of_slot = |unit: &Unit| usize::from(unit.slot) == slot && unit.left > 0;
        let place = self.units.iter().position(of_slot).expect("staged packets are in units");
        let unit = &mut self.units[place];
        (unit.left, unit.opened) = (unit.left - 1, true);
        if unit.left == 0 {
            self.units.remove(place);
        }
        Some(id)
    }

    /// A receiver has something to be sent again: behind what the hardware holds, or with what it holds for it.
    pub fn resend(&mut self, slot: usize) {
        if !self.units.iter().any(|unit| usize::from(unit.slot) == slot) {
            self.units.push_back(Unit { slot: slot as u16, left: 0, opened: true });
        }
    }

    /// The exchange that was on the air is over.
    pub fn landed(&mut self) {
        self.flying = false;
    }

    /// The hardware is done with a packet: acknowledged or given up.
    pub fn complete(&mut self, slot: usize, airtime: u16) {
        self.stations[slot].pending -= units_of_4us(airtime);
        self.pending -= units_of_4us(airtime);
    }

    /// Charges a receiver for the time its exchange took.
    pub fn charge(&mut self, slot: usize, airtime: Span) {
        self.stations[slot].deficit -= nanos(airtime);
    }

    /// Expected airtime of everything that the hardware holds.
    pub fn pending(&self) -> Span {
        self.pending
    }

    /// Packets that the hardware holds and has not sent yet.
    pub fn staged(&self) -> usize {
        self.staged
    }

    /// Packets and bytes that wait for a receiver, in its TXQ or the hardware.
    pub fn backlog(&self, tables: &[Table], slot: usize) -> (usize, u64) {
        let (packets, bytes) = tables[self.table].backlog(self.first_tin + slot);
        let staged = &self.stations[slot].staged;
        (packets + staged.len(), bytes + staged.bytes())
    }

    /// The oldest packet that waits for a receiver.
    pub fn oldest(&self, pool: &Pool, tables: &[Table], slot: usize) -> Option<u32> {
        let queued = tables[self.table].oldest(pool, self.first_tin + slot);
        let heads = [self.stations[slot].staged.front(), queued];
        heads.into_iter().flatten().min_by_key(|&id| pool.get(id).order)
    }
}

impl Station {
    /// What it may still hand over, in nanoseconds.
    fn balance(&self) -> i64 {
        self.deficit - nanos(self.pending)
    }
}

/// Expected throughput below which a receiver counted as slow, times the receivers (`STA_SLOW_THRESHOLD`).
const SLOW_BPS: u64 = 6_000_000;

impl Link {
    /// Airtime that Linux expects a packet to take, in units of 4 us: its share of a PPDU with a length that it guesses
    /// from the rate (`ieee80211_calc_expected_tx_airtime`).
    pub fn airtime(&self, len: u32) -> u16 {
        let table = self.rate.time_for(lasthop_units::Bytes::new(TABLE_LEN)).unwrap_or(Span::MAX);
        // Slower than 400 us for 1024 octets: two packets a PPDU; up to 32 at high rates, 64 with 802.11ax.
        let fastest = if self.he { 20 } else { 0 };
        let steps = [400, 250, 150, 70, fastest];
        let guess = steps.iter().position(|&us| table > Span::from_micros(us)).unwrap_or(5) + 1;
        let guess = if self.packets > 1 { guess } else { 0 };
        let len = u64::from(len + HEADERS);
        let data = u128::from(table.as_nanos()) * u128::from(len) / u128::from(TABLE_LEN);
        let share = u128::from(self.preamble.as_nanos() >> guess);
        // Ten bits hold it, and at least one unit is counted.
        u16::try_from((data + share) / 4_000).unwrap_or(u16::MAX).clamp(1, 1_023)
    }

    /// What Linux's rate control would call the expected throughput: 1200-byte packets with their share of overhead.
    fn throughput(&self) -> Rate {
        let took = units_of_4us(self.airtime(1_200));
        Rate::from_bps(1_200 * 8 * 1_000_000_000 / took.as_nanos().max(1))
    }
}

fn units_of_4us(units: u16) -> Span {
    Span::from_micros(4 * u64::from(units))
}

fn nanos(span: Span) -> i64 {
    i64::try_from(span.as_nanos()).unwrap_or(i64::MAX)
}
