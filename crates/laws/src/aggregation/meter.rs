//! Aggregation meter: received MPDUs in, frames (A-MPDUs and lone MPDUs) with their packets out.
//! Source:     \[aggregation\] section on measuring at the client; IEEE 802.11-2020 9.7 (A-MPDU), 10.25.6 (what an
//!             originator of BlockAck sends again); radiotap.org, field "A-MPDU status".
//! Equations:  N = MSDUs in the frame's MPDUs, scaled by (received + missing) / received MPDUs
//! Symbols:    N -> [`Frame::packets`], received -> `mpdus`, missing -> `missing`
//! Deviations: the source counts MPDUs by reference number and transmitter alone, and so does [`Grouping::Reference`]. Otherwise:
//!             * A frame also ends with its last flag, with a sequence number that does not rise, and with age, because some
//!               drivers number every A-MPDU alike and others go on with a number when they missed the last subframe.
//!             * MPDUs that were lost on the air are inferred from sequence numbers (see `history`), but not of a conversation
//!               that the radio hears in part, nor of lone MPDUs.
//!             * Where the radio shows damaged MPDUs, a number that never comes counts once, for it may have been received by
//!               others.
//! Validity:   one radio's view in the order of reception; PPDUs to 5.484 ms; frames without BlockAck reordering.
//! Checked by: tests::*, tests/integration/aggregation_captures.rs (real and synthetic captures with counts of other tools)

mod history;
mod tally;
#[cfg(test)]
mod tests;

pub use tally::{Sizes, Tally};

use history::History;
use lasthop_signals::phy::TxVector;
use lasthop_signals::{MacAddress, ReceivedFrame, ReceivedMpdu, Subframe};
use lasthop_units::{Bytes, Rate, Span, Time};
use std::collections::BTreeMap;

/// Gathers MPDUs into frames.
///
/// Frames come out through the closure that each call is given, when they are known to be complete: a lone MPDU at once,
/// an A-MPDU when its transmitter is next heard or after [`LONGEST`], and one without its last MPDU one frame later.
#[derive(Clone, Debug, Default)]
pub struct Meter {
    grouping: Grouping,
    /// A-MPDUs that may still grow: one a transmitter, and one of MPDUs with wrong check sequences.
    open: Vec<Open>,
    flows: BTreeMap<Flow, State>,
    /// Frames held back in `flows`.
    holding: usize,
    unattributed: u64,
    /// The radio has shown a damaged MPDU: it hands them up.
    shows_damaged: bool,
}

/// What makes MPDUs one frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Grouping {
    /// Whatever shows that they came in one PPDU: reference number, last flag, sequence numbers, time.
    #[default]
    Air,
    /// Reference number and transmitter alone, as other tools count. Nothing is inferred to be missing.
    Reference,
}

/// One A-MPDU, or one lone MPDU.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Frame {
    /// Arrival of its first MPDU.
    pub start: Time,
    /// Arrival of its last.
    pub end: Time,
    /// The sender's address.
    pub transmitter: MacAddress,
    /// The receiver's address.
    pub receiver: MacAddress,
    /// True for an A-MPDU.
    pub aggregated: bool,
    /// MPDUs received.
    pub mpdus: u32,
    /// MSDUs in them.
    pub msdus: u32,
    /// MPDUs that were sent in it but not received, as far as sequence numbers and wrong check sequences show.
    pub missing: u32,
    /// Those of them that came with wrong check sequences: not inferred.
    pub damaged: u32,
    /// Most of what was missing in this conversation so far never came: the radio hears it in part, and nothing is inferred.
    pub in_part: bool,
    /// MPDUs received that carried the retry mark.
    pub retries: u32,
    /// Octets of the MPDUs received.
    pub octets: Bytes,
    /// How it was sent.
    pub tx: Option<TxVector>,
}

/// Between MPDUs of one PPDU passes no more than this: the longest PPDU, and room for the time stamps of slow drivers.
pub const LONGEST: Span = Span::from_millis(10);
/// The same for frames that are told by their reference number alone.
const LONGEST_BY_REFERENCE: Span = Span::from_secs(1);
/// If the number stays the same over so many frames of a conversation, the driver does not count.
const STUCK: u8 = 8;
/// An A-MPDU without a heard end waits this long for the retransmissions that tell what was lost there.
const HELD: Span = Span::from_millis(100);
/// Conversations remembered; a monitor on a busy channel hears addresses without end.
const MAX_FLOWS: usize = 1_024;

type Flow = (MacAddress, MacAddress, u8);

/// A frame that is still growing.
#[derive(Clone, Debug)]
struct Open {
    subframe: Subframe,
    start: Time,
    end: Time,
    tsf: Option<Time>,
    /// Known once an MPDU with a right check sequence has come.
    flow: Option<Flow>,
    /// MPDUs with right check sequences.
    mpdus: u32,
    msdus: u32,
    retries: u32,
    /// Those of the flow's traffic identifier: an A-MPDU may hold several, each with numbers of its own.
    parts: Vec<Part>,
    octets: Bytes,
    /// MPDUs with wrong check sequences.
    bad: u32,
    tx: Option<TxVector>,
    /// The last flag has been seen.
    ended: bool,
}

/// What is kept of a received MPDU.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Part {
    sequence: u16,
    retry: bool,
}

/// What is remembered of a conversation.
#[derive(Clone, Debug, Default)]
struct State {
    history: History,
    held: Option<Held>,
    latest: Time,
    /// The last A-MPDU's number, and whether its last flag was seen.
    reference: Option<(u32, bool)>,
    /// Frames in a row that had this number; [`STUCK`] at once if it came again after the last flag.
    repeats: u8,
}

/// A complete frame. Its last MPDUs may have been lost.
#[derive(Clone, Debug)]
struct Held {
    frame: Frame,
    /// Its highest sequence number.
    highest: u16,
    /// Sequence numbers missing within it.
    gaps: u32,
    bad: u32,
}

impl Frame {
    /// N: packets that were sent in it. MPDUs that were lost are taken to have carried as much as those received.
    pub fn packets(&self) -> u32 {
        let (msdus, mpdus) = (u64::from(self.msdus), u64::from(self.mpdus.max(1)));
        let lost = (msdus * u64::from(self.missing) + mpdus / 2) / mpdus;
        self.msdus.saturating_add(u32::try_from(lost).unwrap_or(u32::MAX))
    }

    /// The same frame with no more lost than what came damaged.
    pub fn without_inference(&self) -> Frame {
        Frame { missing: self.damaged, ..*self }
    }

    /// The frame as a receiver's law is shown it.
    pub fn as_received(&self) -> ReceivedFrame {
        let rate = self.rate().filter(|_| self.airtime().is_some());
        ReceivedFrame {
            packets: self.packets(),
            certain: self.without_inference().packets(),
            in_part: self.in_part,
            rate,
        }
    }

    /// PHY data rate, where the radio told how the frame was sent.
    pub fn rate(&self) -> Option<Rate> {
        self.tx?.rate()
    }

    /// Time on the air, from the octets received and inferred; without contention and answer. `None` without a rate.
    pub fn airtime(&self) -> Option<Span> {
        let tx = self.tx?;
        let mpdus = u64::from(self.mpdus.max(1));
        let octets = self.octets.get() * (mpdus + u64::from(self.missing)) / mpdus;
        // Delimiters, and padding to four octets: six more in the mean.
        let framing = if self.aggregated { 6 * (mpdus + u64::from(self.missing)) } else { 0 };
        Some(tx.preamble() + tx.rate()?.time_for(Bytes::new(octets + framing))?)
    }
}

impl Meter {
    /// A meter that has seen nothing.
    pub fn new(grouping: Grouping) -> Meter {
        Meter { grouping, ..Meter::default() }
    }

    /// Takes one MPDU in, received at `at`.
    pub fn receive(&mut self, at: Time, mpdu: &ReceivedMpdu, out: &mut impl FnMut(&Frame)) {
        self.advance(at, out);
        self.shows_damaged |= !mpdu.fcs_good;
        let Some(subframe) = mpdu.ampdu else {
            if mpdu.fcs_good {
                self.close_all(out, |open| open.transmitter() == Some(mpdu.transmitter));
                let alone = Subframe { reference: 0, last: Some(true) };
                let mut open = Open::new(at, alone, mpdu);
                open.take(at, alone, mpdu);
                self.close(open, false, out);
            } else {
                self.unattributed += 1;
            }
            return;
        };
        let flow = (mpdu.transmitter, mpdu.receiver, mpdu.tid);
        let stuck = mpdu.fcs_good && self.flows.get(&flow).is_some_and(|state| state.repeats >= STUCK);
        let belongs = |open: &Open| match self.grouping {
            Grouping::Air => open.continues(at, subframe, mpdu, stuck),
            Grouping::Reference => open.shares_number(subframe, mpdu),
        };
        if let Some(found) = self.open.iter().position(belongs) {
            let mut open = self.open.remove(found);
            if mpdu.fcs_good && open.flow.is_none() {
                // Only now is the frame's transmitter known: what that transmitter sent before is complete.
                self.close_all(out, |other| other.transmitter() == Some(mpdu.transmitter));
            }
            open.take(at, subframe, mpdu);
            return self.open.push(open);
        }
        // A new PPDU: what its transmitter sent before is complete.
        let sender = mpdu.fcs_good.then_some(mpdu.transmitter);
        self.close_all(out, |open| open.transmitter() == sender);
        let mut open = Open::new(at, subframe, mpdu);
        open.take(at, subframe, mpdu);
        self.open.push(open);
    }

    /// Lets time pass: closes frames that can grow no more.
    pub fn advance(&mut self, now: Time, out: &mut impl FnMut(&Frame)) {
        let longest = match self.grouping {
            Grouping::Air => LONGEST,
            Grouping::Reference => LONGEST_BY_REFERENCE,
        };
        self.close_all(out, |open| now.since(open.end) > longest);
        if self.holding > 0 {
            self.release_all(out, |held| now.since(held.frame.end) > HELD);
        }
    }

    /// Closes whatever is open: nothing more will come.
    pub fn finish(&mut self, out: &mut impl FnMut(&Frame)) {
        self.close_all(out, |_| true);
        self.release_all(out, |_| true);
    }

    /// PPDUs without an MPDU that had a right check sequence: their transmitters are unknown.
    pub fn unattributed(&self) -> u64 {
        self.unattributed
    }

    fn close_all(&mut self, out: &mut impl FnMut(&Frame), which: impl Fn(&Open) -> bool) {
        let mut at = 0;
        while at < self.open.len() {
            if which(&self.open[at]) {
                let open = self.open.remove(at);
                self.close(open, true, out);
            } else {
                at += 1;
            }
        }
    }

    fn release_all(&mut self, out: &mut impl FnMut(&Frame), which: impl Fn(&Held) -> bool) {
        for state in self.flows.values_mut().filter(|state| state.held.as_ref().is_some_and(&which)) {
            release(&mut state.held, 0, out);
            self.holding -= 1;
        }
    }

    fn close(&mut self, open: Open, aggregated: bool, out: &mut impl FnMut(&Frame)) {
        let Some(flow @ (transmitter, receiver, _)) = open.flow else {
            self.unattributed += 1;
            return;
        };
        self.forget_surplus(flow, out);
        let state = self.flows.entry(flow).or_default();
        // What the frame before lost at its end comes again here, marked as a repetition; and with it came all that lies
        // between.
        if let Some(held) = &state.held {
            let repeated = |part: &&Part| part.retry && history::follows(held.highest, part.sequence);
            let top = open.parts.iter().rev().find(repeated);
            let tail = top.map_or(0, |part| history::distance(held.highest, part.sequence));
            // A long run is a PPDU between the two that was lost whole, and only the last MPDU is known to be missing.
            let tail = if tail > history::LONGEST_RUN { 1 } else { tail };
            let tail = if state.history.is_heard_in_part() { 0 } else { tail };
            release(&mut state.held, u32::from(tail), out);
            self.holding -= 1;
        }
        if open.end.since(state.latest) > history::STALE {
            state.history.clear();
        }
        state.latest = open.end;
        if aggregated {
            state.count_repeats(open.subframe.reference, open.ended);
        }
        let gaps = match self.grouping {
            Grouping::Air => {
                let lost = state.history.take(&open.parts);
                // What was lost again shows; what does not come again, since its receiver had it, would count as lost again.
                if self.shows_damaged { lost.first } else { lost.all }
            }
            Grouping::Reference => 0,
        };
        let in_part = self.grouping == Grouping::Air && state.history.is_heard_in_part();
        // A lone MPDU has no others beside it; and numbers of what is sent to groups are shared with other conversations.
        let gaps = if in_part || !aggregated { 0 } else { gaps };
        let frame = Frame {
            start: open.start,
            end: open.end,
            transmitter,
            receiver,
            aggregated,
            mpdus: open.mpdus,
            msdus: open.msdus,
            missing: gaps.max(open.bad),
            damaged: open.bad,
            in_part,
            retries: open.retries,
            octets: open.octets,
            tx: open.tx,
        };
        let highest = open.parts.last().map_or(0, |part| part.sequence);
        match open.subframe.last {
            // The radio knows ends, and this end was not heard.
            Some(_) if aggregated && !open.ended && self.grouping == Grouping::Air => {
                state.held = Some(Held { frame, highest, gaps, bad: open.bad });
                self.holding += 1;
            }
            _ => out(&frame),
        }
    }

    /// Makes room for a new conversation: the one longest silent goes.
    fn forget_surplus(&mut self, new: Flow, out: &mut impl FnMut(&Frame)) {
        if self.flows.len() < MAX_FLOWS || self.flows.contains_key(&new) {
            return;
        }
        let silent = self.flows.iter().min_by_key(|(_, state)| state.latest).map(|(flow, _)| *flow);
        if let Some(mut state) = silent.and_then(|flow| self.flows.remove(&flow)) {
            self.holding -= usize::from(state.held.is_some());
            release(&mut state.held, 0, out);
        }
    }
}

/// Lets a held frame go, with `tail` MPDUs known to have been lost at its end.
fn release(held: &mut Option<Held>, tail: u32, out: &mut impl FnMut(&Frame)) {
    if let Some(Held { mut frame, gaps, bad, .. }) = held.take() {
        frame.missing = (gaps + tail).max(bad);
        out(&frame);
    }
}

impl State {
    fn count_repeats(&mut self, reference: u32, ended: bool) {
        self.repeats = match self.reference {
            Some((before, true)) if before == reference => STUCK,
            Some((before, false)) if before == reference => self.repeats.saturating_add(1),
            _ => 0,
        };
        self.reference = Some((reference, ended));
    }
}

impl Open {
    fn new(at: Time, subframe: Subframe, mpdu: &ReceivedMpdu) -> Open {
        Open {
            subframe,
            start: at,
            end: at,
            tsf: mpdu.tsf,
            flow: None,
            mpdus: 0,
            msdus: 0,
            retries: 0,
            parts: Vec::new(),
            octets: Bytes::ZERO,
            bad: 0,
            tx: mpdu.tx,
            ended: false,
        }
    }

    fn transmitter(&self) -> Option<MacAddress> {
        self.flow.map(|flow| flow.0)
    }

    /// True if `mpdu` is another MPDU of this PPDU. The number of a `stuck` driver says nothing.
    fn continues(&self, at: Time, subframe: Subframe, mpdu: &ReceivedMpdu, stuck: bool) -> bool {
        let same_moment = self.tsf.is_some() && self.tsf == mpdu.tsf;
        let may_grow = at.since(self.start) <= LONGEST && (same_moment || !(self.ended || stuck));
        may_grow && self.shares_number(subframe, mpdu) && (!mpdu.fcs_good || self.rises(mpdu))
    }

    /// True if reference number and transmitter of `mpdu` are those of this frame, as far as they are known.
    fn shares_number(&self, subframe: Subframe, mpdu: &ReceivedMpdu) -> bool {
        let sender = self.transmitter();
        let same = sender.is_none() || sender == Some(mpdu.transmitter) || !mpdu.fcs_good;
        same && subframe.reference == self.subframe.reference
    }

    /// True if receiver and sequence number of `mpdu` go with what is here.
    fn rises(&self, mpdu: &ReceivedMpdu) -> bool {
        let Some((_, receiver, tid)) = self.flow else { return true };
        let rises = match self.parts.last() {
            Some(last) if tid == mpdu.tid => history::rises(last.sequence, mpdu.sequence),
            _ => true,
        };
        receiver == mpdu.receiver && rises
    }

    fn take(&mut self, at: Time, subframe: Subframe, mpdu: &ReceivedMpdu) {
        self.end = self.end.max(at);
        self.ended |= subframe.last == Some(true);
        self.tx = self.tx.or(mpdu.tx);
        if !mpdu.fcs_good {
            self.bad += 1;
            return;
        }
        let (_, _, tid) = *self.flow.get_or_insert((mpdu.transmitter, mpdu.receiver, mpdu.tid));
        self.mpdus += 1;
        self.msdus = self.msdus.saturating_add(u32::from(mpdu.msdus));
        self.retries += u32::from(mpdu.retry);
        self.octets += mpdu.len;
        if mpdu.tid == tid {
            self.parts.push(Part { sequence: mpdu.sequence % 4_096, retry: mpdu.retry });
        }
    }
}
