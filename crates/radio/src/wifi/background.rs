//! Traffic that the model makes up by itself, so that the simulator and the lab have the same neighbour.
//! Source:     a Poisson process, or a queue that never runs empty, in intervals of activity.
//! Deviations: packets that wait when an interval ends are still sent.     Checked by: wifi::tests::*

use super::medium::NONE;
use super::model::{Event, Wifi, narrow};
use super::params::{Background, Load};
use crate::queue::Meta;
use crate::{Ecn, Outbox};
use lasthop_units::{Seed, Span, Stream, Time};
use rand::Rng;

/// A background source at work.
#[derive(Clone, Debug)]
pub(super) struct Source {
    contender: u16,
    slot: u16,
    /// Which of its intervals comes next or is now.
    interval: usize,
    on: bool,
    stream: Stream,
}

/// A saturated source keeps at least this many packets waiting, and two full A-MPDUs.
const SATURATED: usize = 128;

impl<P: Clone> Wifi<P> {
    pub(super) fn start_sources(&mut self, seed: Seed) {
        for index in 0..self.plan.params().background.len() {
            let Background { from, to, class, .. } = self.plan.params().background[index];
            let contender = self.contender(from.index(), class);
            let slot = self.slot(from.index(), to.index());
            self.sources.push(Source {
                contender: narrow(contender),
                slot: narrow(slot),
                interval: 0,
                on: false,
                stream: seed.stream(&format!("wifi/background{index}")),
            });
            if matches!(self.plan.params().background[index].load, Load::Saturated) {
                self.saturated[contender].push(narrow(index));
            }
            let first = self.interval(index).map_or(Time::MAX, |(start, _)| start);
            self.schedule(first, Event::Source(narrow(index)));
        }
    }

    /// The interval that a source is in or waits for.
    fn interval(&self, index: usize) -> Option<(Time, Time)> {
        let active = &self.plan.params().background[index].active;
        if active.is_empty() {
            Some((Time::ZERO, Time::MAX))
        } else {
            active.get(self.sources[index].interval).copied()
        }
    }

    /// An interval begins or ends, or a packet arrives.
    pub(super) fn source_acts(&mut self, now: Time, source: u16, out: &mut impl Outbox<P>) {
        let index = usize::from(source);
        let Some((start, end)) = self.interval(index) else { return };
        if now >= end {
            self.sources[index].on = false;
            self.sources[index].interval += 1;
            if let Some((start, _)) = self.interval(index) {
                self.schedule(start, Event::Source(source));
            }
            return;
        }
        let starts = !self.sources[index].on;
        self.sources[index].on = true;
        debug_assert!(now >= start);
        match self.plan.params().background[index].load {
            Load::Saturated => {
                let contender = self.sources[index].contender;
                self.top_up(now, contender, out);
                if !self.queues[usize::from(contender)].is_empty() {
                    self.medium.awake(contender, now);
                }
                if end != Time::MAX {
                    self.schedule(end, Event::Source(source));
                }
            }
            Load::Offered(rate) => {
                // The first packet of an interval is one gap away from its start.
                if !starts {
                    self.make_packet(now, index, out);
                }
                let mean = rate.time_for(self.plan.params().background[index].packet).unwrap_or(Span::MAX);
                let uniform = (f64::from(self.sources[index].stream.next_u32()) + 0.5) / 4_294_967_296.0;
                let next = now + mean.scale(-uniform.ln());
                self.schedule(next.min(end), Event::Source(source));
            }
        }
    }

    /// Fills the queue of the saturated sources of a contender.
    pub(super) fn top_up(&mut self, now: Time, contender: u16, out: &mut impl Outbox<P>) {
        for i in 0..self.saturated[usize::from(contender)].len() {
            let index = usize::from(self.saturated[usize::from(contender)][i]);
            let slot = usize::from(self.sources[index].slot);
            let from = usize::from(contender) / self.classes;
            let enough = SATURATED.max(2 * usize::from(self.ports[from].most_mpdus));
            while self.sources[index].on
                && self.queues[usize::from(contender)].backlog(&self.tables, slot).0 < enough
                && self.make_packet(now, index, out)
            {}
        }
    }

    /// Queues one packet; false if the queue is full.
    fn make_packet(&mut self, now: Time, index: usize, out: &mut impl Outbox<P>) -> bool {
        let Background { from, to, class, packet, .. } = self.plan.params().background[index];
        let (contender, slot) = (self.sources[index].contender, usize::from(self.sources[index].slot));
        let len = packet.get() as u32;
        debug_assert!(to.0 != NONE);
        let meta = Meta::new(self.arrivals, now, len, u32::from(from.0), from.0, to.0, class, Ecn::NotEct);
        self.arrivals += 1;
        let id = self.admit(meta, None);
        self.take_in(now, from.index(), usize::from(contender), slot, id, out)
    }
}
