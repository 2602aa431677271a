//! One direction of a link: opportunities, the packet in service, and what is on its way.

use super::Params;
use super::peak::Peaks;
use super::queue::{Queue, Waiting};
use super::shown::Shown;
use crate::{Completion, Outbox, Outcome, Packet, RxInfo};
use lasthop_signals::{Node, Signal};
use lasthop_units::{Bytes, Rate, Span, Stream, Time};
use lasthop_wire::delivery::{DeliveryTrace, OPPORTUNITY};
use std::collections::VecDeque;

/// A packet that is being served.
#[derive(Clone, Debug)]
struct Served<P> {
    waiting: Waiting<P>,
    /// When its first byte was.
    since: Time,
    rest: Bytes,
}

#[derive(Clone, Debug)]
pub(super) struct Line<P> {
    trace: DeliveryTrace,
    peaks: Peaks,
    delay: Span,
    queue: Queue<P>,
    served: Option<Served<P>>,
    /// Those that have left, with when they arrive.
    flying: VecDeque<(Time, Waiting<P>)>,
    /// Number of the next opportunity. While nothing waits it lags behind.
    next: u64,
    shown: Option<Shown>,
}

impl<P> Line<P> {
    pub fn new(params: Params, chance: Stream) -> Line<P> {
        let Params { trace, queue, delay, shown } = params;
        let (peaks, shown) = (Peaks::new(&trace), shown.then(Shown::default));
        let queue = Queue::new(queue, chance);
        Line { trace, peaks, delay, queue, served: None, flying: VecDeque::new(), next: 0, shown }
    }

    /// Takes a packet; all opportunities up to `now` are over.
    pub fn enqueue(&mut self, now: Time, packet: Packet<P>, out: &mut impl Outbox<P>) {
        if self.is_idle() {
            // What it did not use is lost.
            self.next = self.trace.until(now);
        }
        self.queue.push(Waiting { came: now, packet }, out);
    }

    pub fn advance(&mut self, now: Time, to: Node, out: &mut impl Outbox<P>) {
        while let Some(at) = self.next_opportunity().filter(|at| *at <= now) {
            self.arrive(at, to, out);
            self.serve(at, out);
            self.next += 1;
        }
        self.arrive(now, to, out);
        let Line { trace, delay, shown: Some(shown), .. } = self else { return };
        while shown.next_event(*delay) <= now {
            let at = shown.next_event(*delay);
            out.driver(at, to, &Signal::Subframe(shown.show(trace)));
        }
    }

    pub fn next_event(&self) -> Option<Time> {
        let arrives = self.flying.front().map(|(at, _)| *at);
        let shows = self.shown.as_ref().map(|shown| shown.next_event(self.delay));
        arrives.into_iter().chain(self.next_opportunity()).chain(shows).min()
    }

    pub fn backlog(&self) -> (usize, Bytes) {
        let served = self.served.as_ref().map_or(Bytes::ZERO, |served| served.waiting.packet.len);
        (self.queue.len() + usize::from(self.served.is_some()), self.queue.bytes() + served)
    }

    pub fn oldest(&self) -> Option<Time> {
        self.served.as_ref().map(|served| served.waiting.came).or(self.queue.oldest())
    }

    /// What the link was seen to be capable of.
    pub fn rate(&mut self, now: Time) -> Rate {
        self.peaks.rate(&self.trace, now)
    }

    fn is_idle(&self) -> bool {
        self.served.is_none() && self.queue.len() == 0
    }

    fn next_opportunity(&self) -> Option<Time> {
        (!self.is_idle()).then(|| self.trace.opportunity(self.next))
    }

    fn arrive(&mut self, now: Time, to: Node, out: &mut impl Outbox<P>) {
        while let Some((at, _)) = self.flying.front().filter(|(at, _)| *at <= now) {
            let rate = self.rate(at.saturating_sub(self.delay));
            let (at, Waiting { came, packet }) = self.flying.pop_front().expect("just seen");
            out.deliver(at, to, packet, &RxInfo { queued_at: came, rate });
        }
    }

    /// Uses the opportunity at `at`.
    fn serve(&mut self, at: Time, out: &mut impl Outbox<P>) {
        let mut room = OPPORTUNITY;
        while !room.is_zero() {
            let Some(mut served) = self.served.take().or_else(|| {
                let waiting = self.queue.pop(at, out)?;
                Some(Served { rest: waiting.cost(), waiting, since: at })
            }) else {
                return;
            };
            let part = room.min(served.rest);
            (room, served.rest) = (room - part, served.rest - part);
            self.shown.iter_mut().for_each(|shown| shown.on_served(at, part));
            if !served.rest.is_zero() {
                self.served = Some(served);
                return;
            }
            if out.wants_completions() {
                out.completed(at, &served.completion());
            }
            self.flying.push_back((at + self.delay, served.waiting));
        }
    }
}

impl<P> Served<P> {
    fn completion(&self) -> Completion {
        let Packet { len, src: from, dst, class, flow_hash, .. } = self.waiting.packet;
        let (queued_at, head_at) = (self.waiting.came, self.since);
        Completion { from, dst, len, class, flow_hash, queued_at, head_at, outcome: Outcome::Sent }
    }
}
