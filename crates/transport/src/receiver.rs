//! The receiving half: reassembly, SACK blocks, and when to acknowledge.
//! Source:     RFC 9293 section 3.10.7.4 (acceptability); RFC 5681 section 4.2 with RFC 9293 3.8.6.3 (delayed
//!             ACKs: every second full segment, at once for anything out of order); RFC 2018 section 4 and RFC 2883
//!             (which SACK blocks to report); quick acknowledgements at the start as Linux (`tcp_incr_quickack`).
//! Deviations: SACKs are never compressed; a real Linux receiver merges some of them on fast paths.
//! Validity:   any sequence of segments.     Checked by: tests/integration/props.rs, tests/integration/endpoint.rs

use crate::config::Config;
use crate::ranges::Ranges;
use crate::window::ReceiveWindow;
use lasthop_units::{Bytes, Rate, Span, Time};
use std::ops::Range;

/// Segments at the start of a connection that are acknowledged one by one, so that slow start gets its clock.
const QUICK_ACKS: u32 = 16;

/// What one end knows of the data that it receives.
#[derive(Clone, Debug, Default)]
pub(crate) struct Receiver {
    /// Next offset expected (RCV.NXT).
    next: u64,
    early: Ranges,
    /// The latest ranges of `early`, the most recently changed first: what SACK reports.
    recent: [Option<Range<u64>>; 4],
    /// A duplicate to report with the next acknowledgement.
    duplicate: Option<Range<u64>>,
    fin_at: Option<u64>,
    window: ReceiveWindow,
    /// Arrived in order, and not read by the application.
    unread: u64,
    read_rate: Option<Rate>,
    read_at: Time,
    /// Arrived in order since the last acknowledgement left.
    unacknowledged: u64,
    quick: u32,
    ack_now: bool,
    ack_at: Option<Time>,
    delay: Span,
    largest: u64,
    duplicates: u64,
}

impl Receiver {
    pub(crate) fn new(config: &Config) -> Receiver {
        let mss = u64::from(config.mss);
        Receiver {
            window: ReceiveWindow::new(config.rmem_default, config.rmem_max, mss),
            read_rate: config.read_rate,
            quick: QUICK_ACKS,
            delay: config.delayed_ack,
            largest: 1,
            ..Receiver::default()
        }
    }

    /// Full segments are shorter by `octets` than the configuration says: they carry another option.
    pub(crate) fn shorten_segments(&mut self, octets: u64) {
        self.window.shorten_segments(octets);
    }

    /// The peer's SYN has arrived.
    pub(crate) fn on_syn(&mut self) {
        self.next = 1;
    }

    /// The window, for handshake and header building.
    pub(crate) fn window(&mut self) -> &mut ReceiveWindow {
        &mut self.window
    }

    /// Next offset expected.
    pub(crate) fn next(&self) -> u64 {
        self.next
    }

    /// Payload that has arrived in order.
    pub(crate) fn received(&self) -> u64 {
        self.next.saturating_sub(1) - u64::from(self.is_finished())
    }

    /// True once everything up to and including the peer's FIN has arrived.
    pub(crate) fn is_finished(&self) -> bool {
        self.fin_at.is_some_and(|fin| self.next > fin)
    }

    /// Duplicate segments seen.
    pub(crate) fn duplicates(&self) -> u64 {
        self.duplicates
    }

    /// How fast the application reads from now on; `None`: at once.
    pub(crate) fn set_read_rate(&mut self, now: Time, rate: Option<Rate>) {
        self.read(now);
        self.read_rate = rate;
        self.read(now);
    }

    /// Arrived in order, and not read by the application.
    pub(crate) fn unread(&self) -> u64 {
        self.unread
    }

    /// The application reads up to `len` octets now, whatever its rate. Returns how many there were.
    pub(crate) fn read_now(&mut self, now: Time, len: u64) -> u64 {
        let len = len.min(self.unread);
        if len > 0 {
            self.unread -= len;
            self.window.on_read(now, len);
            self.ack_now |= self.next > 0 && self.window.wants_update(self.next, self.unread);
        }
        len
    }

    /// A segment arrived that occupies `start..end` of the stream, its last offset being a FIN if `fin`.
    pub(crate) fn on_segment(&mut self, now: Time, start: u64, end: u64, fin: bool) {
        self.read(now);
        if start == end {
            // An empty segment from before the window is a probe, and wants an answer.
            self.ack_now |= start < self.next;
            return;
        }
        if end <= self.next {
            self.duplicates += 1;
            self.duplicate = Some(start..end);
            self.ack_now = true;
            return;
        }
        // What lies beyond the window was sent against the rules (or probes a closed window): it is dropped.
        let accepted_end = end.min(self.window.edge());
        if start >= self.window.edge() || accepted_end <= self.next {
            self.ack_now = true;
            return;
        }
        let (end, fin) = (accepted_end, fin && accepted_end == end);
        if fin {
            self.fin_at = Some(end - 1);
        }
        self.largest = self.largest.max(end - start);
        if start > self.next {
            self.on_early(start..end);
        } else {
            self.on_in_order(now, end);
        }
        if self.is_finished() {
            self.ack_now = true;
        }
    }

    fn on_early(&mut self, range: Range<u64>) {
        let mut new = 0;
        let whole = self.early.insert(range.clone(), |part| new += part.end - part.start);
        if new == 0 {
            self.duplicates += 1;
            self.duplicate = Some(range);
        }
        // The range moves to the front; those it has swallowed leave.
        let mut keep: [Option<Range<u64>>; 4] = Default::default();
        let others = self.recent.iter().flatten().filter(|r| r.end < whole.start || r.start > whole.end);
        keep.iter_mut().zip(std::iter::once(&whole).chain(others)).for_each(|(slot, r)| *slot = Some(r.clone()));
        self.recent = keep;
        self.ack_now = true;
    }

    fn on_in_order(&mut self, now: Time, end: u64) {
        let before = self.next;
        self.next = end;
        // Anything out of order makes the sender anxious: it hears of progress at once.
        self.ack_now |= !self.early.is_empty();
        while let Some(range) = self.early.take_front_at(self.next) {
            self.next = self.next.max(range.end);
        }
        if self.recent[0].is_some() {
            let next = self.next;
            self.recent
                .iter_mut()
                .filter(|slot| slot.as_ref().is_some_and(|r| r.start <= next))
                .for_each(|s| *s = None);
            // Blocks are reported from the front, so gaps close up.
            self.recent.sort_by_key(Option::is_none);
        }
        let arrived = self.next - before;
        // A window that is still opening is worth an acknowledgement of its own (Linux `tcp_grow_window`).
        self.quick |= u32::from(self.window.on_in_order(arrived));
        self.unread += arrived;
        self.unacknowledged += arrived;
        self.read(now);
        if self.unacknowledged > self.largest || self.quick > 0 {
            self.ack_now = true;
        } else if self.ack_at.is_none() {
            self.ack_at = Some(now + self.delay);
        }
    }

    /// Lets the application read what it can by `now`.
    fn read(&mut self, now: Time) {
        let len = match self.read_rate {
            None => self.unread,
            Some(_) if self.unread == 0 => {
                self.read_at = now;
                return;
            }
            Some(rate) => {
                let len = rate.bytes_in(now.since(self.read_at)).get();
                if len >= self.unread {
                    self.read_at = now;
                    self.unread
                } else {
                    // Only the time that whole octets took is used up.
                    self.read_at += rate.time_for(Bytes::new(len)).unwrap_or(Span::ZERO);
                    len
                }
            }
        };
        if len > 0 {
            self.unread -= len;
            self.window.on_read(now, len);
        }
    }

    /// When `on_timeout` wants to be called; `Time::MAX` for never.
    pub(crate) fn next_timeout(&self) -> Time {
        let ack = self.ack_at.unwrap_or(Time::MAX);
        match self.read_rate {
            Some(rate) if self.unread > 0 => {
                let len = self.window.read_until_update(self.next, self.unread).min(self.unread);
                let wait = rate.time_for(Bytes::new(len.max(1)));
                wait.map_or(ack, |wait| ack.min(self.read_at + wait))
            }
            _ => ack,
        }
    }

    /// Acts on whatever is due.
    pub(crate) fn on_timeout(&mut self, now: Time) {
        if self.ack_at.is_some_and(|at| at <= now) {
            self.ack_now = true;
        }
        if self.read_rate.is_some() {
            self.read(now);
            self.ack_now |= self.next > 0 && self.window.wants_update(self.next, self.unread);
        }
    }

    /// Asks for an acknowledgement at once.
    pub(crate) fn acknowledge_now(&mut self) {
        self.ack_now = true;
    }

    /// True if an acknowledgement should leave without waiting for data to carry it.
    pub(crate) fn wants_ack(&self) -> bool {
        self.ack_now
    }

    /// The window field of a segment that leaves now and acknowledges; `sack` gets up to `room` blocks.
    pub(crate) fn acknowledge(&mut self, room: usize, mut sack: impl FnMut(Range<u64>)) -> u16 {
        let blocks = self.duplicate.take().into_iter().chain(self.recent.iter().flatten().cloned());
        blocks.take(room).for_each(&mut sack);
        self.ack_now = false;
        self.ack_at = None;
        self.unacknowledged = 0;
        self.quick = self.quick.saturating_sub(1);
        self.window.field(self.next, self.unread)
    }
}
