//! When each contender's backoff ends.
//! Source:     IEEE 802.11-2020: 10.3.4.3 (DCF backoff), 10.23.2.2 and 10.23.2.4 (EDCA backoff and slot boundaries).
//! Equations:  base = max(idle since, NAV, EIFS of damaged frames) + AIFS;   boundaries = base + k slots;
//!             access = first boundary at or after the backoff's start + backoff slots
//! Symbols:    base -> `base`, backoff -> `Contender::slots`
//! Deviations: DCF stations that find the medium idle also start on slot boundaries (10.3.4.3 reads either way).
//! Validity:   any reach relation.     Checked by: wifi::tests::*, tests/integration/bianchi.rs, tests/integration/edca.rs, tests/long/ns3.rs

use super::medium::{Contender, Medium, NONE};
use lasthop_units::{Span, Time};
use rand::Rng;

/// What an exchange's end does to the contention window.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Window {
    /// Success, or giving up: back to CWmin.
    Reset,
    /// Failure.
    Double,
}

impl Medium {
    /// The slot boundary at or after `at`, if the medium stays idle.
    fn boundary(&self, contender: &Contender, at: Time) -> Time {
        let radio = &self.nodes[usize::from(contender.node)];
        let idle = radio.idle_since.max(radio.nav).max(radio.eifs);
        let base = idle + contender.edca.aifs;
        if at <= base {
            return base;
        }
        base + Span::from_nanos(at.since(base).as_nanos().next_multiple_of(self.timing.slot.as_nanos()))
    }

    /// The medium has turned busy: backoffs keep what they have not yet counted.
    pub fn freeze(&mut self, node: usize, now: Time) {
        let mut concerned = self.nodes[node].concerned;
        while concerned != 0 {
            let id = node * self.classes + concerned.trailing_zeros() as usize;
            concerned &= concerned - 1;
            let start = self.boundary(&self.contenders[id], self.contenders[id].from);
            let contender = &mut self.contenders[id];
            if contender.slots > 0 && now >= start {
                let passed = now.since(start).as_nanos() / self.timing.slot.as_nanos();
                let counted = passed + u64::from(contender.edca.counts_boundary);
                contender.slots -= u16::try_from(counted).unwrap_or(u16::MAX).min(contender.slots);
            }
            if contender.place == NONE {
                if contender.slots == 0 {
                    self.nodes[node].concerned &= !(1 << contender.class);
                }
            } else if contender.expires != Time::MAX {
                contender.expires = Time::MAX;
                self.stale = true;
            }
        }
    }

    /// The medium has turned idle, or a node has ended its exchange: backoffs go on.
    pub fn thaw(&mut self, node: usize) {
        if self.nodes[node].in_exchange {
            return;
        }
        let mut concerned = self.nodes[node].concerned;
        while concerned != 0 {
            let id = node * self.classes + concerned.trailing_zeros() as usize;
            concerned &= concerned - 1;
            self.schedule(id);
        }
    }

    /// Finds when a contender may send if its medium stays idle from now on.
    fn schedule(&mut self, id: usize) {
        let contender = &self.contenders[id];
        if contender.place == NONE {
            return;
        }
        let counted = self.counted(contender);
        let since = contender.since;
        let start = if self.ns3 && Self::is_plain(contender) { since } else { self.boundary(contender, since) };
        // Slots pass while the node waits for an answer that does not come; what may be sent by then is sent on a boundary.
        let free = self.nodes[usize::from(contender.node)].free;
        let turn = if counted < free && !self.ns3 { self.boundary(contender, free) } else { counted };
        self.contenders[id].expires = turn.max(start);
        self.stale = true;
    }

    /// When a contender's backoff has been counted down, if its medium stays idle from now on.
    fn counted(&self, contender: &Contender) -> Time {
        self.boundary(contender, contender.from) + self.timing.slot * u64::from(contender.slots)
    }

    /// True for what ns-3 does not treat as an EDCA function: the DCF, and the beacons' own queue.
    fn is_plain(contender: &Contender) -> bool {
        !contender.edca.counts_boundary || contender.edca.cw_max == 0
    }

    /// True if a node must not send now: it senses a frame, or has decoded a reservation.
    fn is_busy(&self, node: usize, now: Time) -> bool {
        let radio = &self.nodes[node];
        radio.sensed > 0 || radio.nav > now || radio.in_exchange
    }

    /// A contender that had nothing to send has something now.
    #[inline]
    pub fn awake(&mut self, id: u16, now: Time) {
        let index = usize::from(id);
        if self.contenders[index].place != NONE {
            return;
        }
        let node = usize::from(self.contenders[index].node);
        self.contenders[index].place = u16::try_from(self.active.len()).expect("at most 4096 contenders");
        self.active.push(id);
        self.contenders[index].since = now;
        self.nodes[node].concerned |= 1 << self.contenders[index].class;
        // With a backoff still to count, or the medium idle, there is no new one (10.23.2.2).
        if self.is_busy(node, now) && self.contenders[index].slots == 0 {
            self.draw(index, now);
        }
        if self.nodes[node].sensed == 0 && !self.nodes[node].in_exchange {
            if self.ns3 {
                self.postpone(index, now);
            }
            self.schedule(index);
        }
    }

    /// ns-3, when the first packet comes to an idle medium: an EDCA backoff that is under way is aligned to the slot after
    /// the next one; without a backoff, a DCF (and a beacon) waits its interframe space from this moment on.
    fn postpone(&mut self, index: usize, now: Time) {
        let contender = &self.contenders[index];
        let counted = self.counted(contender);
        if Self::is_plain(contender) {
            if counted <= now || contender.slots == 0 {
                self.contenders[index].since = now + contender.edca.aifs;
            }
            return;
        }
        let start = self.boundary(contender, contender.from);
        if (start..counted).contains(&now) {
            self.contenders[index].from = start + self.timing.slot;
        }
    }

    /// A contender has nothing to send any more. Its backoff goes on counting.
    pub fn asleep(&mut self, id: u16) {
        let place = self.contenders[usize::from(id)].place;
        if place == NONE {
            return;
        }
        self.active.swap_remove(usize::from(place));
        if let Some(&moved) = self.active.get(usize::from(place)) {
            self.contenders[usize::from(moved)].place = place;
        }
        let contender = &mut self.contenders[usize::from(id)];
        contender.place = NONE;
        contender.expires = Time::MAX;
        self.stale = true;
    }

    fn draw(&mut self, index: usize, now: Time) {
        let contender = &mut self.contenders[index];
        // Windows are 2^k - 1: a mask draws evenly.
        let bits = self.nodes[usize::from(contender.node)].backoff.next_u32();
        contender.slots = (bits & u32::from(contender.cw)) as u16;
        contender.from = now;
        self.nodes[usize::from(contender.node)].concerned |= 1 << contender.class;
    }

    /// After an exchange, whether it has something more to send or not: a new window, a new backoff (10.23.2.2).
    pub fn back_off(&mut self, id: u16, window: Window, now: Time) {
        let contender = &mut self.contenders[usize::from(id)];
        contender.cw = match window {
            Window::Reset => contender.edca.cw_min,
            Window::Double => (contender.cw * 2 + 1).min(contender.edca.cw_max),
        };
        contender.since = now;
        let node = usize::from(contender.node);
        self.draw(usize::from(id), now);
        if self.nodes[node].sensed == 0 && !self.nodes[node].in_exchange {
            self.schedule(usize::from(id));
        }
    }

    /// An answer has not come. ns-3 then lets the AIFS begin anew; by the standard the medium has been idle all the time.
    pub fn timed_out(&mut self, id: u16, now: Time) {
        let node = &mut self.nodes[usize::from(self.contenders[usize::from(id)].node)];
        if self.ns3 && node.sensed == 0 {
            node.idle_since = now;
        }
    }

    /// Nothing has followed an RTS that `node` overheard: its reservation is void (10.3.2.4), if it is still the one that
    /// holds.
    pub fn expire_rts(&mut self, node: u16, now: Time) {
        let index = usize::from(node);
        let radio = &mut self.nodes[index];
        let holds = radio.nav == radio.rts_nav && radio.nav > now;
        // To ns-3 a frame has begun only once its PHY header has come in.
        let followed = match self.ns3 {
            true => self.headers[index] > radio.rts_end && self.headers[index] <= now,
            false => radio.sensed > 0 || radio.busy_since >= radio.rts_end,
        };
        if holds && !followed {
            radio.nav = now;
            if radio.sensed == 0 {
                self.thaw(index);
            }
        }
    }

    /// A node's exchange has begun or ended.
    pub fn set_exchange(&mut self, node: u16, on: bool, now: Time) {
        let index = usize::from(node);
        self.nodes[index].in_exchange = on;
        self.nodes[index].free = now;
        if !on && self.nodes[index].sensed == 0 {
            self.thaw(index);
        }
    }

    /// When the next contender will send, if nothing else happens.
    #[inline]
    pub fn next_access(&mut self) -> Time {
        if self.stale {
            self.stale = false;
            let expires = self.active.iter().map(|&id| self.contenders[usize::from(id)].expires);
            self.access = expires.min().unwrap_or(Time::MAX);
        }
        self.access
    }

    /// The contenders that send at `now`: of each node the one of highest priority, by node. Others of the same node go
    /// to `losers`.
    pub fn winners(&self, now: Time, winners: &mut Vec<u16>, losers: &mut Vec<u16>) {
        winners.clear();
        losers.clear();
        winners.extend(self.active.iter().filter(|&&id| self.contenders[usize::from(id)].expires <= now));
        if winners.len() > 1 {
            winners.sort_unstable();
            // Within a node contenders are numbered by rising priority: the last of each run wins.
            let mut kept = 0;
            for i in 0..winners.len() {
                let same_node = |a: u16, b: u16| usize::from(a) / self.classes == usize::from(b) / self.classes;
                if winners.get(i + 1).is_some_and(|&next| same_node(winners[i], next)) {
                    losers.push(winners[i]);
                } else {
                    winners[kept] = winners[i];
                    kept += 1;
                }
            }
            winners.truncate(kept);
        }
    }
}
