//! The medium: which nodes sense, receive and spoil which frames.
//! Source:     IEEE 802.11-2020: 10.3.2.1 (carrier sense, NAV), 10.3.2.3.7 (EIFS), 10.3.2.4 (NAV after an RTS).
//! Deviations: no propagation delay; without capture ([`super::capture`]) two frames that overlap at a node that hears both are
//!             lost there.
//! Validity:   any reach relation.     Checked by: wifi::tests::*, tests/integration/properties.rs, tests/integration/multihop.rs

use super::air::PpduKind;
use super::capture::{Capture, DETECTION_TIME};
use super::params::{Reach, Role};
use super::phy::Mode;
use super::phy::Profile;
use super::plan::Plan;
use super::timing::{Edca, Timing, edca};
use lasthop_signals::Node;
use lasthop_signals::phy::{Format, TxVector};
use lasthop_units::{Seed, Span, Stream, Time};

/// No flight, nobody, everybody: depending on where it stands.
pub(super) const NONE: u16 = u16::MAX;

#[derive(Clone, Debug)]
pub(super) struct Medium {
    pub timing: Timing,
    pub nodes: Vec<Radio>,
    pub contenders: Vec<Contender>,
    /// PPDUs on the air, and free places among them.
    pub air: Vec<Flight>,
    free: Vec<u16>,
    /// Contenders that have something to send.
    pub active: Vec<u16>,
    /// The earliest `Contender::expires` of them; to be found anew when `stale`.
    pub access: Time,
    pub stale: bool,
    /// Contenders a node.
    pub classes: usize,
    pub ns3: bool,
    /// ns-3: when the PHY header of the PPDU that each node took up last had come in.
    pub headers: Vec<Time>,
    /// What decides about frames that overlap; `None`: they are lost.
    pub capture: Option<Box<Capture>>,
}

/// A node's receiver and carrier sense.
#[derive(Clone, Debug)]
pub(super) struct Radio {
    /// All nodes that hear it, and how.
    hearers: Vec<(u16, Reach)>,
    /// PPDUs on the air that it senses, its own included.
    pub sensed: u16,
    /// PPDUs on the air that reach it at all.
    heard: u16,
    /// The flight its receiver is locked on, and whether it can be decoded so far.
    receiving: u16,
    clean: bool,
    /// With capture: it is settled whether the flight is decoded.
    judged: bool,
    pub sending: bool,
    /// Since a frame of it that expects an answer began.
    pub in_exchange: bool,
    /// When such a frame last began, or its exchange ended.
    pub free: Time,
    pub idle_since: Time,
    pub busy_since: Time,
    pub nav: Time,
    pub eifs: Time,
    /// The RTS that last set its NAV: until when, and when that RTS ended.
    pub rts_nav: Time,
    pub rts_end: Time,
    /// The latest format that it decodes.
    format: Format,
    /// Its contenders that count down or have something to send, a bit each.
    pub concerned: u8,
    pub backoff: Stream,
    /// Channel time so far, without what is going on now.
    busy: Span,
    sent: Span,
    pub received: Span,
    sending_since: Time,
}

/// One EDCA function (or the DCF) of a node.
#[derive(Clone, Debug)]
pub(super) struct Contender {
    pub node: u16,
    pub class: u8,
    pub edca: Edca,
    pub cw: u16,
    /// Backoff slots left when the medium last turned busy.
    pub slots: u16,
    /// When the backoff was invoked.
    pub from: Time,
    /// When it got something to send.
    pub since: Time,
    pub expires: Time,
    /// Place in `active`, `NONE` if it has nothing to send.
    pub place: u16,
}

/// A PPDU on the air.
#[derive(Clone, Copy, Debug)]
pub(super) struct Flight {
    pub from: u16,
    /// `NONE` for a group frame.
    pub to: u16,
    pub kind: PpduKind,
    pub vector: TxVector,
    /// The contender with the exchange that it belongs to.
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
            judged: false,
            sending: false,
            in_exchange: false,
            free: Time::ZERO,
            idle_since: Time::ZERO,
            busy_since: Time::ZERO,
            nav: Time::ZERO,
            eifs: Time::ZERO,
            rts_nav: Time::ZERO,
            rts_end: Time::ZERO,
            format: params.phy(Node(index(from))).standard.format(),
            concerned: 0,
            backoff: seed.stream(&format!("wifi/node{from}/backoff")),
            busy: Span::ZERO,
            sent: Span::ZERO,
            received: Span::ZERO,
            sending_since: Time::ZERO,
        };
        let timing = Timing::new(params.standard);
        let classes = plan.classes();
        let rules = |node: usize| {
            edca(params.phy(Node(index(node))).standard, params.profile, params.nodes[node].role == Role::Ap)
        };
        let rules: Vec<[Edca; 4]> = (0..count).map(rules).collect();
        let contender = |of: usize| Contender {
            node: index(of / classes),
            class: u8::try_from(of % classes).expect("four classes"),
            edca: rules[of / classes][of % classes],
            cw: rules[of / classes][of % classes].cw_min,
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
            headers: vec![Time::ZERO; count],
            capture: params.capture.then(|| {
                let header = Mode::lowest(params.standard).vector();
                Box::new(Capture::new(count, header, params.profile == Profile::Ns3_3_37, seed))
            }),
        }
    }

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
        if self.ns3 || self.capture.is_some() {
            self.spread(from, place, flight);
            return place;
        }
        for i in 0..self.nodes[from].hearers.len() {
            let (to, reach) = self.nodes[from].hearers[i];
            let to = usize::from(to);
            if reach >= Reach::Senses {
                self.turn_busy(to, now);
            }
            let node = &mut self.nodes[to];
            if node.receiving != NONE {
                node.clean = false;
            } else if reach >= Reach::Senses && node.heard == 0 && !node.sending {
                node.receiving = place;
                node.clean = reach == Reach::Decodes && node.format >= flight.vector.format;
            }
            node.heard += 1;
        }
        place
    }

    /// With capture, or as ns-3 does: a PPDU that has just begun reaches all nodes that hear it.
    #[inline(never)]
    fn spread(&mut self, from: usize, place: u16, flight: Flight) {
        let (now, header) = (flight.start, flight.start + flight.vector.preamble());
        for i in 0..self.nodes[from].hearers.len() {
            let (to, reach) = self.nodes[from].hearers[i];
            let to = usize::from(to);
            if reach >= Reach::Senses && !self.ns3 {
                self.turn_busy(to, now);
            }
            if self.capture.is_some() {
                self.arrive(to, place, reach);
                continue;
            }
            let node = &mut self.nodes[to];
            if node.receiving != NONE {
                node.clean = false;
                // Frames that begin together spoil each other's preamble: ns-3 then reports no reception at all.
                if self.air[usize::from(node.receiving)].start == now {
                    node.receiving = NONE;
                    self.headers[to] = Time::ZERO;
                }
            } else if reach == Reach::Decodes && node.heard == 0 && !node.sending {
                // A preamble that cannot be decoded is none to ns-3: the medium is busy, and no reception ends.
                node.receiving = place;
                self.headers[to] = header;
                node.clean = node.format >= flight.vector.format;
            }
            node.heard += 1;
        }
    }

    /// With capture: a PPDU that ends is settled at all nodes that hear it.
    #[inline(never)]
    fn settle(&mut self, from: usize, place: u16, now: Time) {
        for i in 0..self.nodes[from].hearers.len() {
            let to = usize::from(self.nodes[from].hearers[i].0);
            self.judge(to, place);
            let receiving = self.nodes[to].receiving;
            if let Some(capture) = &mut self.capture {
                if receiving != NONE && receiving != place {
                    capture.note(to, receiving, now);
                }
                capture.ends(to, place);
            }
        }
    }

    /// ns-3: whoever senses a PPDU does so from now on.
    pub fn sense(&mut self, place: u16, now: Time) {
        let from = usize::from(self.air[usize::from(place)].from);
        for i in 0..self.nodes[from].hearers.len() {
            let (to, reach) = self.nodes[from].hearers[i];
            if reach >= Reach::Senses {
                self.turn_busy(usize::from(to), now);
            }
        }
    }

    /// With capture: a PPDU that has just begun reaches a node.
    #[inline(never)]
    fn arrive(&mut self, to: usize, place: u16, reach: Reach) {
        let Some(capture) = &mut self.capture else { return };
        let (node, flight) = (&mut self.nodes[to], &self.air[usize::from(place)]);
        if node.receiving != NONE {
            capture.note(to, node.receiving, flight.start);
        }
        capture.begins(to, usize::from(flight.from), place);
        node.heard += 1;
        if node.receiving != NONE {
            // Within the first symbols of a preamble the receiver looks for one still.
            let detecting = flight.start.since(self.air[usize::from(node.receiving)].start) < DETECTION_TIME;
            if detecting && !capture.detects(to, node.receiving) {
                node.receiving = NONE;
                self.headers[to] = Time::ZERO;
            }
        }
        if node.receiving == NONE && reach == Reach::Decodes && !node.sending && capture.detects(to, place) {
            capture.take_up(to, flight.start);
            node.receiving = place;
            self.headers[to] = flight.start + flight.vector.preamble();
            node.judged = false;
            node.clean = node.format >= flight.vector.format;
        }
    }

    /// With capture: settles whether the PPDU that a node receives has outlived what it overlapped with: its header,
    /// and all of it but for data: the addressee looks at its MPDUs one by one.
    #[inline(never)]
    fn judge(&mut self, to: usize, place: u16) {
        let Some(capture) = &mut self.capture else { return };
        let (node, flight) = (&mut self.nodes[to], &self.air[usize::from(place)]);
        if node.receiving != place || std::mem::replace(&mut node.judged, true) {
            return;
        }
        capture.note(to, place, flight.end);
        let preamble = flight.vector.preamble();
        node.clean = node.clean && capture.header_survives(to, flight.start, preamble);
        if flight.kind != PpduKind::Data || usize::from(flight.to) != to {
            let span = (flight.start + preamble, flight.end);
            let seconds = span.1.since(span.0).as_secs_f64();
            let bits = flight.vector.rate().map_or(0.0, |rate| rate.as_bps() as f64 * seconds);
            node.clean = node.clean && capture.survives(to, &flight.vector, span, bits);
        }
    }

    /// With capture: draws whether the octets of an MPDU, of a PSDU of so many, have outlived what they overlapped with.
    pub fn outlives(&mut self, flight: Flight, preamble: Span, (from, until): (u32, u32), psdu: u32) -> bool {
        let Some(capture) = &mut self.capture else { return true };
        let begin = flight.start + preamble;
        let data = flight.end.since(begin).as_nanos();
        let at = |octets: u32| {
            let part = u128::from(data) * u128::from(octets) / u128::from(psdu.max(1));
            begin + Span::from_nanos(u64::try_from(part).unwrap_or(data))
        };
        let bits = 8.0 * f64::from(until.saturating_sub(from));
        capture.survives(usize::from(flight.to), &flight.vector, (at(from), at(until)), bits)
    }

    /// True while `node` has a PPDU of its own on the air.
    pub fn is_sending(&self, node: u16) -> bool {
        self.nodes[usize::from(node)].sending
    }

    /// True if `node` is decoding `flight`, as far as collisions go.
    pub fn decodes(&mut self, node: u16, flight: u16) -> bool {
        if self.capture.is_some() {
            self.judge(usize::from(node), flight);
        }
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
        if self.capture.is_some() {
            self.settle(from, place, now);
        }
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
                        if flight.kind == PpduKind::Rts && reserved > node.nav {
                            (node.rts_nav, node.rts_end) = (reserved, now);
                        }
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

    /// Time the node's channel was sensed busy, and time it was sending, up to `now`.
    pub fn channel_time(&self, node: usize, now: Time) -> (Span, Span) {
        let radio = &self.nodes[node];
        let busy = if radio.sensed > 0 { now.since(radio.busy_since) } else { Span::ZERO };
        let sending = if radio.sending { now.since(radio.sending_since) } else { Span::ZERO };
        (radio.busy + busy, radio.sent + sending)
    }
}
