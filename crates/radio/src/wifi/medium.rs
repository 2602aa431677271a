//! The medium: who senses, receives and spoils what, and when each contender's backoff ends.
//! Source:     IEEE 802.11-2020: 10.3.2.1 (carrier sense, NAV), 10.3.4.3 (DCF backoff), 10.23.2.4 (EDCA slot boundaries),
//!             10.3.2.3.7 (EIFS).
//! Equations:  base = max(idle since, NAV, EIFS of damaged frames) + AIFS;   boundaries = base + k slots;
//!             access = first boundary at or after the backoff's start + backoff slots
//! Symbols:    base -> `base`, backoff -> `Contender::slots`
//! Deviations: no propagation delay; no capture: two frames that overlap at a node that hears both are lost there.
//!             DCF stations also start on slot boundaries when they find the medium idle (10.3.4.3 reads either way).
//! Validity:   any reach relation.     Checked by: wifi::tests::*, tests/properties.rs, tests/bianchi.rs

use super::params::{Profile, Reach};
use super::plan::Plan;
use super::timing::{Timing, classes};
use crate::PpduKind;
use lasthop_units::{Seed, Span, Stream, Time};
use rand::Rng;

/// No flight, nobody, everybody: depending on where it stands.
pub(super) const NONE: u16 = u16::MAX;

#[derive(Debug)]
pub(super) struct Medium {
    pub timing: Timing,
    pub nodes: Vec<Radio>,
    pub contenders: Vec<Contender>,
    /// PPDUs on the air, and free places among them.
    pub air: Vec<Flight>,
    free: Vec<u16>,
    /// Contenders that have something to send.
    active: Vec<u16>,
    /// The earliest `Contender::expires` of them; to be found anew when `stale`.
    access: Time,
    stale: bool,
    /// Contenders a node.
    classes: usize,
    ns3: bool,
}

/// A node's receiver and carrier sense.
#[derive(Debug)]
pub(super) struct Radio {
    /// Everybody who hears it, and how.
    hearers: Vec<(u16, Reach)>,
    /// PPDUs on the air that it senses, its own included.
    sensed: u16,
    /// PPDUs on the air that reach it at all.
    heard: u16,
    /// The flight its receiver is locked on, and whether it can be decoded so far.
    receiving: u16,
    clean: bool,
    sending: bool,
    /// Since a frame of it that expects an answer began.
    pub in_exchange: bool,
    idle_since: Time,
    busy_since: Time,
    nav: Time,
    eifs: Time,
    /// Its contenders that count down or have something to send, a bit each.
    concerned: u8,
    backoff: Stream,
    /// Channel time so far, without what is going on now.
    busy: Span,
    sent: Span,
    pub received: Span,
    sending_since: Time,
}

/// One EDCA function (or the DCF) of a node.
#[derive(Debug)]
pub(super) struct Contender {
    pub node: u16,
    pub class: u8,
    pub cw: u16,
    /// Backoff slots left when the medium last turned busy.
    slots: u16,
    /// When the backoff was invoked.
    from: Time,
    /// When it got something to send.
    since: Time,
    expires: Time,
    /// Place in `active`, `NONE` if it has nothing to send.
    place: u16,
}

/// A PPDU on the air.
#[derive(Clone, Copy, Debug)]
pub(super) struct Flight {
    pub from: u16,
    /// `NONE` for a group frame.
    pub to: u16,
    pub kind: PpduKind,
    /// The contender whose exchange it belongs to.
    pub contender: u16,
    pub start: Time,
    pub end: Time,
    /// What its Duration field reserves after its end.
    pub reserves: Span,
}

impl Medium {
    pub fn new(plan: &Plan, seed: Seed) -> Medium {
        let params = plan.params();
        let count = params.nodes.len();
        let index = |node: usize| u16::try_from(node).expect("at most 1024 nodes");
        let radio = |from: usize| Radio {
            hearers: (0..count)
                .filter(|&to| to != from && plan.reach(from, to) != Reach::None)
                .map(|to| (index(to), plan.reach(from, to)))
                .collect(),
            sensed: 0,
            heard: 0,
            receiving: NONE,
            clean: false,
            sending: false,
            in_exchange: false,
            idle_since: Time::ZERO,
            busy_since: Time::ZERO,
            nav: Time::ZERO,
            eifs: Time::ZERO,
            concerned: 0,
            backoff: seed.stream(&format!("wifi/node{from}/backoff")),
            busy: Span::ZERO,
            sent: Span::ZERO,
            received: Span::ZERO,
            sending_since: Time::ZERO,
        };
        let timing = Timing::new(params.standard);
        let classes = classes(params.standard);
        let contender = |of: usize| Contender {
            node: index(of / classes),
            class: u8::try_from(of % classes).expect("four classes"),
            cw: timing.edca[of % classes].cw_min,
            slots: 0,
            from: Time::ZERO,
            since: Time::ZERO,
            expires: Time::MAX,
            place: NONE,
        };
        Medium {
            timing,
            nodes: (0..count).map(radio).collect(),
            contenders: (0..count * classes).map(contender).collect(),
            air: Vec::with_capacity(16),
            free: Vec::with_capacity(16),
            active: Vec::with_capacity(count),
            access: Time::MAX,
            stale: false,
            classes,
            ns3: params.profile == Profile::Ns3_3_37,
        }
    }

    // --- frames ---

    /// A PPDU begins. Every contender that begins one at the same moment must have been found before.
    pub fn launch(&mut self, flight: Flight) -> u16 {
        let place = match self.free.pop() {
            Some(place) => {
                self.air[usize::from(place)] = flight;
                place
            }
            None => {
                self.air.push(flight);
                u16::try_from(self.air.len() - 1).expect("a node has at most one flight")
            }
        };
        let (from, now) = (usize::from(flight.from), flight.start);
        self.turn_busy(from, now);
        let sender = &mut self.nodes[from];
        debug_assert!(!sender.sending, "half duplex");
        sender.sending = true;
        sender.sending_since = now;
        // Half duplex: what it was receiving is gone, without an error report.
        sender.receiving = NONE;
        sender.eifs = Time::ZERO;
        for i in 0..self.nodes[from].hearers.len() {
            let (to, reach) = self.nodes[from].hearers[i];
            let to = usize::from(to);
            if reach >= Reach::Senses {
                self.turn_busy(to, now);
            }
            let node = &mut self.nodes[to];
            if node.receiving != NONE {
                node.clean = false;
                // Frames that begin together spoil each other's preamble: ns-3 then reports no reception at all.
                if self.ns3 && self.air[usize::from(node.receiving)].start == now {
                    node.receiving = NONE;
                }
            } else if reach >= Reach::Senses && node.heard == 0 && !node.sending {
                node.receiving = place;
                node.clean = reach == Reach::Decodes;
            }
            node.heard += 1;
        }
        place
    }

    /// True while `node` has a PPDU of its own on the air.
    pub fn is_sending(&self, node: u16) -> bool {
        self.nodes[usize::from(node)].sending
    }

    /// True if `node` is decoding `flight`, as far as collisions go.
    pub fn decodes(&self, node: u16, flight: u16) -> bool {
        let node = &self.nodes[usize::from(node)];
        node.receiving == flight && node.clean
    }

    /// A PPDU ends. `damaged` says that its addressee found no good MPDU in it although nothing collided. Nodes other
    /// than the addressee that decode it are pushed to `overheard`.
    pub fn land(&mut self, place: u16, damaged: bool, overheard: Option<&mut Vec<u16>>) {
        let flight = self.air[usize::from(place)];
        let (now, from) = (flight.end, usize::from(flight.from));
        let (reserved, damaged_until) = (now + flight.reserves, now + self.timing.eifs_extra);
        let sender = &mut self.nodes[from];
        sender.sending = false;
        sender.sent += now.since(sender.sending_since);
        let mut overheard = overheard;
        for i in 0..self.nodes[from].hearers.len() {
            let (to, reach) = self.nodes[from].hearers[i];
            let node = &mut self.nodes[usize::from(to)];
            node.heard -= 1;
            if node.receiving == place {
                node.receiving = NONE;
                if !node.clean || (damaged && to == flight.to) {
                    node.eifs = damaged_until;
                } else {
                    node.eifs = Time::ZERO;
                    if to != flight.to {
                        node.nav = node.nav.max(reserved);
                        if let Some(list) = overheard.as_deref_mut() {
                            list.push(to);
                        }
                    }
                }
            }
            if reach >= Reach::Senses {
                self.turn_idle(usize::from(to), now);
            }
        }
        self.turn_idle(from, now);
        self.free.push(place);
    }

    fn turn_busy(&mut self, node: usize, now: Time) {
        if self.nodes[node].sensed == 0 {
            self.nodes[node].busy_since = now;
            self.freeze(node, now);
        }
        self.nodes[node].sensed += 1;
    }

    fn turn_idle(&mut self, node: usize, now: Time) {
        let radio = &mut self.nodes[node];
        radio.sensed -= 1;
        if radio.sensed == 0 {
            radio.idle_since = now;
            radio.busy += now.since(radio.busy_since);
            self.thaw(node);
        }
    }

    // --- contention ---

    /// The slot boundary at or after `at`, if the medium stays idle.
    fn boundary(&self, contender: &Contender, at: Time) -> Time {
        let radio = &self.nodes[usize::from(contender.node)];
        let idle = radio.idle_since.max(radio.nav).max(radio.eifs);
        let base = idle + self.timing.edca[usize::from(contender.class)].aifs;
        if at <= base {
            return base;
        }
        base + Span::from_nanos(at.since(base).as_nanos().next_multiple_of(self.timing.slot.as_nanos()))
    }

    /// The medium has turned busy: backoffs keep what they have not yet counted.
    fn freeze(&mut self, node: usize, now: Time) {
        let mut concerned = self.nodes[node].concerned;
        while concerned != 0 {
            let id = node * self.classes + concerned.trailing_zeros() as usize;
            concerned &= concerned - 1;
            let start = self.boundary(&self.contenders[id], self.contenders[id].from);
            let contender = &mut self.contenders[id];
            if contender.slots > 0 && now >= start {
                let passed = now.since(start).as_nanos() / self.timing.slot.as_nanos();
                let counted = passed + u64::from(self.timing.counts_boundary);
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
    fn thaw(&mut self, node: usize) {
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
        let counted = self.boundary(contender, contender.from) + self.timing.slot * u64::from(contender.slots);
        self.contenders[id].expires = counted.max(self.boundary(contender, contender.since));
        self.stale = true;
    }

    /// True if a node must not send now: it senses a frame, or has decoded a reservation.
    fn is_busy(&self, node: usize, now: Time) -> bool {
        let radio = &self.nodes[node];
        radio.sensed > 0 || radio.nav > now || radio.in_exchange
    }

    /// A contender that had nothing to send has something now.
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
            if self.ns3 && self.timing.counts_boundary {
                self.postpone(index, now);
            }
            self.schedule(index);
        }
    }

    /// ns-3 aligns a backoff that is under way to the slot after the next one when its first packet comes.
    fn postpone(&mut self, index: usize, now: Time) {
        let start = self.boundary(&self.contenders[index], self.contenders[index].from);
        let slots = self.timing.slot * u64::from(self.contenders[index].slots);
        if now >= start && now < start + slots {
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
        let edca = self.timing.edca[usize::from(contender.class)];
        contender.cw = match window {
            Window::Reset => edca.cw_min,
            Window::Double => (contender.cw * 2 + 1).min(edca.cw_max),
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

    /// A node's exchange has begun or ended.
    pub fn set_exchange(&mut self, node: u16, on: bool) {
        let index = usize::from(node);
        self.nodes[index].in_exchange = on;
        if !on && self.nodes[index].sensed == 0 {
            self.thaw(index);
        }
    }

    /// When the next contender will send, if nothing else happens.
    pub fn next_access(&mut self) -> Time {
        if self.stale {
            self.stale = false;
            let expires = self.active.iter().map(|&id| self.contenders[usize::from(id)].expires);
            self.access = expires.min().unwrap_or(Time::MAX);
        }
        self.access
    }

    /// Who sends at `now`: of each node the contender of highest priority, by node. Others of the same node go to
    /// `losers`.
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

    /// Time the node's channel was sensed busy, and time it was sending, up to `now`.
    pub fn channel_time(&self, node: usize, now: Time) -> (Span, Span) {
        let radio = &self.nodes[node];
        let busy = if radio.sensed > 0 { now.since(radio.busy_since) } else { Span::ZERO };
        let sending = if radio.sending { now.since(radio.sending_since) } else { Span::ZERO };
        (radio.busy + busy, radio.sent + sending)
    }
}

/// What an exchange's end does to the contention window.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Window {
    /// Success, or giving up: back to CWmin.
    Reset,
    /// Failure.
    Double,
}
