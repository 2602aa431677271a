//! The streams of a session: which there are, which are over, and which may send.

use super::endpoint::{Endpoint, Event, Violation};
use super::frames::Item;
use super::stream::Stream;
use lasthop_units::Bytes;
use lasthop_wire::tunnel::OpenResult;

impl Endpoint {
    /// The other end has given a stream up of which it had sent so much.
    pub(super) fn on_reset(&mut self, number: u32, sent: u64) -> Result<(), Violation> {
        if let Some(stream) = self.streams.get(&number) {
            if !stream.recv.may_stop_at(sent) {
                return Err(Violation::Data(number));
            }
            let (highest, ours) = (stream.recv.highest(), stream.send.sent());
            self.forget(number);
            self.settle(number, highest, sent, true)?;
            // It has to know how much was ours.
            self.push_reset(number, ours);
            self.events.push_back(Event::Reset(number));
        } else if let Some(highest) = self.closing.get(&number).copied() {
            if sent < highest {
                return Err(Violation::Data(number));
            }
            self.settle(number, highest, sent, true)?;
        } else if self.is_theirs(number) && !self.was(number) {
            // Its opening may still come, late.
            self.settle(number, 0, sent, true)?;
            self.push_reset(number, 0);
        } else if !self.is_theirs(number) && number >= self.next_stream {
            return Err(Violation::Number(number));
        }
        Ok(())
    }

    /// Of a stream that is over here the other end had sent up to `sent`, of which `highest` is in the accounts; if that is
    /// `all`, nothing more is to come of it.
    pub(super) fn settle(&mut self, number: u32, highest: u64, sent: u64, all: bool) -> Result<(), Violation> {
        self.credit.on_arrived(sent - highest)?;
        self.credit.on_read(sent - highest);
        self.tell_budget();
        if all {
            self.closing.remove(&number);
            self.is_over(number)?;
        } else {
            self.closing.insert(number, sent);
        }
        Ok(())
    }

    pub(super) fn push_reset(&mut self, stream: u32, sent: u64) {
        self.resets += 1;
        self.items.push_back(Item::Reset { stream, sent });
    }

    /// Tells the other end how much more all streams may send, if that is worth it.
    pub(super) fn tell_budget(&mut self) {
        if self.credit.is_due() && !self.items.contains(&Item::Budget) {
            self.items.push_back(Item::Budget);
        }
    }

    /// Puts a stream into the queue if it has something to send.
    pub(super) fn enqueue(&mut self, number: u32) {
        let room = self.credit.room();
        let Some(stream) = self.streams.get_mut(&number).filter(|stream| !stream.queued) else { return };
        if stream.send.is_ready(room) {
            stream.queued = true;
            self.ready.push_back(number);
        } else if stream.send.has_fresh() && !std::mem::replace(&mut stream.blocked, true) {
            self.blocked.push_back(number);
        }
    }

    /// All streams together may send nothing more for now: those that have nothing else to send leave the queue.
    pub(super) fn block(&mut self) {
        for number in std::mem::take(&mut self.ready) {
            self.streams.get_mut(&number).into_iter().for_each(|stream| stream.queued = false);
            self.enqueue(number);
        }
    }

    /// Forgets a stream once its two halves are done.
    pub(super) fn tidy(&mut self, number: u32) {
        let Some(stream) = self.streams.get(&number) else { return };
        let refused = stream.result.is_some_and(|result| result != OpenResult::Connected);
        if stream.send.is_done() && (stream.recv.is_done() || refused) {
            self.forget(number);
        }
    }

    pub(super) fn forget(&mut self, number: u32) {
        let Some(stream) = self.streams.remove(&number) else { return };
        self.held = self.held.saturating_sub(Bytes::new(stream.send.held()));
        self.unsent = self.unsent.saturating_sub(Bytes::new(stream.send.unsent()));
        self.ready.retain(|ready| *ready != number);
        self.blocked.retain(|blocked| *blocked != number);
        self.spare -= stream.recv.spare();
        self.credit.on_read(stream.recv.unread());
        self.tell_budget();
        match stream.recv.end() {
            Some(_) => self.note_over(number),
            // The other end will say where it had stopped.
            None => drop(self.closing.insert(number, stream.recv.highest())),
        }
    }

    pub(super) fn note_over(&mut self, number: u32) {
        let half = u64::from(number / 2);
        self.over[parity(number)].insert(half..half + 1, |_| {});
    }

    /// Notes that a stream is over. Numbers are given out in order: they have gaps where streams are open, and few others.
    pub(super) fn is_over(&mut self, number: u32) -> Result<(), Violation> {
        self.note_over(number);
        let most = 4 * self.config.max_streams + 64;
        if self.over[parity(number)].len() > most { Err(Violation::Streams) } else { Ok(()) }
    }

    /// True if the stream is over.
    pub(super) fn was(&self, number: u32) -> bool {
        self.closing.contains_key(&number) || self.over[parity(number)].contains(u64::from(number / 2))
    }

    pub(super) fn is_theirs(&self, number: u32) -> bool {
        number % 2 != self.config.first_stream % 2
    }

    /// A stream of the other end, made if its first packet has just come; `None` if it is over.
    pub(super) fn theirs(&mut self, number: u32) -> Result<Option<&mut Stream>, Violation> {
        if !self.is_theirs(number) {
            return Err(Violation::Number(number));
        }
        if !self.streams.contains_key(&number) {
            if self.was(number) {
                return Ok(None);
            }
            if self.streams.len() >= self.config.max_streams {
                self.closing.insert(number, 0);
                self.push_reset(number, 0);
                return Ok(None);
            }
        }
        Ok(Some(self.streams.entry(number).or_insert_with(Stream::new)))
    }

    /// A stream of either end; `None` if it is over. One of ours that was never opened is none of theirs to name.
    pub(super) fn any(&mut self, number: u32) -> Result<Option<&mut Stream>, Violation> {
        if self.is_theirs(number) {
            return self.theirs(number);
        }
        if number >= self.next_stream {
            return Err(Violation::Number(number));
        }
        Ok(self.streams.get_mut(&number))
    }
}

fn parity(number: u32) -> usize {
    usize::from(number % 2 == 1)
}
