//! What the receiving end of a connection tells the sending end of its cell, and how the sending end reads it.
//! Source:     RFC 6994 for the option; RFC 7323 section 4.1 (the sender's clock); round trips as Linux has them
//!             (`tcp_rcv_rtt_measure_ts`).
//! Deviations: none.
//! Validity:   both ends have offered it in their SYNs. The sender's clock ticks in milliseconds.     Checked by: tests
//!             here, tests/integration/pbe.rs
//!
//! The law tells far more often than segments leave: each segment carries what it told last. SACK blocks come first where there is no room for both.

use crate::signal_option::SignalOption;
use lasthop_laws::ReceiverLaw;
use lasthop_signals::{Arrival, CellCapacity, Feedback, Signal};
use lasthop_units::{Bytes, Span, Time};
use lasthop_wire::tcp::{CAPACITY_LEN, Capacity, TcpOptions};

/// The receiving end of a connection that tells of its cell: shows a law what comes, and keeps what that decides.
#[derive(Clone)]
pub struct ReceiverFeedback {
    law: Box<dyn ReceiverLaw>,
    revisit: Option<Time>,
    latest: Option<CellCapacity>,
    number: u8,
    clock: PeerClock,
    lately: Lately,
    /// Flows that share what the law's station has.
    flows: u32,
}

/// What has come in a moment and in the one before it.
#[derive(Clone, Copy, Debug, Default)]
struct Lately {
    moment: u64,
    now: Bytes,
    before: Bytes,
}

/// How long a moment is.
const MOMENT: Span = Span::from_millis(100);

impl Lately {
    fn add(&mut self, now: Time, len: Bytes) {
        *self = self.at(now);
        self.now += len;
    }

    /// The same when `now` has come.
    fn at(self, now: Time) -> Lately {
        let moment = now.as_nanos() / MOMENT.as_nanos();
        match moment.saturating_sub(self.moment) {
            0 => self,
            1 => Lately { moment, now: Bytes::ZERO, before: self.now },
            _ => Lately { moment, ..Lately::default() },
        }
    }
}

impl ReceiverFeedback {
    /// An end at which nothing has come yet.
    pub fn new(law: Box<dyn ReceiverLaw>) -> ReceiverFeedback {
        ReceiverFeedback {
            law,
            revisit: None,
            latest: None,
            number: 0,
            clock: PeerClock::default(),
            lately: Lately::default(),
            flows: 1,
        }
    }

    /// Shows the law something and keeps what it tells.
    pub fn sense(&mut self, now: Time, signal: &Signal) {
        self.law.sense(now, signal);
        let decision = self.law.decide(now);
        self.revisit = decision.revisit;
        if let Some(Feedback::Cell(told)) = decision.feedback {
            self.latest = Some(told);
        }
    }

    /// A packet of `len` octets has come. `stamp` is its timestamp, if it has one.
    pub fn on_packet(&mut self, now: Time, stamp: Option<u32>, len: Bytes) {
        let sent = stamp.map(|stamp| self.clock.read(stamp));
        self.lately.add(now, len);
        self.sense(now, &Signal::Arrival(Arrival { at: now, sent, len }));
    }

    /// What has come in the last tenths of a second: one whole, and the present one.
    pub fn lately(&self, now: Time) -> Bytes {
        let Lately { now, before, .. } = self.lately.at(now);
        now + before
    }

    /// So many flows share what the station has.
    pub fn share(&mut self, now: Time, flows: u32) {
        if flows != self.flows {
            self.flows = flows;
            self.sense(now, &Signal::Flows(flows));
        }
    }

    /// When the law wants to be woken; `Time::MAX` for never.
    pub fn next_timeout(&self) -> Time {
        self.revisit.unwrap_or(Time::MAX)
    }

    /// Wakes the law if that is due.
    pub fn on_timeout(&mut self, now: Time) {
        if self.revisit.is_some_and(|at| at <= now) {
            self.sense(now, &Signal::Wakeup);
        }
    }

    /// What the law has told last.
    pub fn latest(&self) -> Option<CellCapacity> {
        self.latest
    }

    /// What to say in the next segment; `None` while nothing is known.
    fn option(&mut self) -> Option<Capacity> {
        let told = self.latest?;
        self.number = (self.number + 1) % 16;
        Some(Capacity::of(&told, self.number))
    }
}

/// The peer's clock of timestamps, as a time that does not wrap around. It begins anywhere.
#[derive(Clone, Copy, Debug, Default)]
struct PeerClock {
    /// The last reading, and what it stands for in milliseconds.
    last: Option<(u32, u64)>,
}

impl PeerClock {
    /// What the first reading stands for: far from zero, since later ones may be of earlier moments.
    const FIRST: u64 = 1 << 33;

    fn read(&mut self, stamp: u32) -> Time {
        let (last, at) = *self.last.get_or_insert((stamp, PeerClock::FIRST));
        let moved = stamp.wrapping_sub(last) as i32;
        let at = at.saturating_add_signed(i64::from(moved));
        self.last = Some((stamp, at));
        // A peer may turn its clock on as far as it likes.
        Time::from_nanos(at.saturating_mul(1_000_000))
    }
}

/// The sending end: which of the options that come are news.
#[derive(Clone, Copy, Debug, Default)]
struct FeedbackReader {
    last: Option<u8>,
}

/// An option with a number behind by no more than this was overtaken; one that seems further behind is ahead by a few
/// that were lost.
const OVERTAKEN: u8 = 4;

impl FeedbackReader {
    /// What the option tells, unless a later one has come already.
    fn take(&mut self, option: &Capacity) -> Option<CellCapacity> {
        let behind = self.last.map(|last| last.wrapping_sub(option.number) % 16);
        if behind.is_some_and(|behind| behind <= OVERTAKEN) {
            return None;
        }
        self.last = Some(option.number);
        Some(option.told())
    }
}

/// The option of an end of a connection: it tells of its own cell, wants to be told of the peer's,
/// or both.
#[derive(Clone)]
pub struct CellOption {
    tells: Option<ReceiverFeedback>,
    wants: Option<FeedbackReader>,
}

impl CellOption {
    /// Of an end that tells what `law` decides of its cell, if there is one. `wants`: its sending
    /// law wants what the peer's receiver tells. `None` for neither.
    pub fn new(law: Option<Box<dyn ReceiverLaw>>, wants: bool) -> Option<CellOption> {
        let tells = law.map(ReceiverFeedback::new);
        (wants || tells.is_some()).then(|| CellOption { tells, wants: wants.then(FeedbackReader::default) })
    }

    /// What the end tells; `None` if it only wants to be told.
    pub fn tells(&self) -> Option<&ReceiverFeedback> {
        self.tells.as_ref()
    }

    /// The same, to be shown what its world has of the cell. What it decides leaves with the next
    /// segment.
    pub fn tells_mut(&mut self) -> Option<&mut ReceiverFeedback> {
        self.tells.as_mut()
    }
}

impl SignalOption for CellOption {
    fn octets(&self) -> u16 {
        CAPACITY_LEN as u16
    }

    fn is_in_each_segment(&self) -> bool {
        self.tells.is_some()
    }

    fn is_offered(&self, syn: &TcpOptions) -> bool {
        syn.capacity.is_some()
    }

    fn offer(&mut self, syn: &mut TcpOptions) {
        // A capacity of zero is one that is not known.
        syn.capacity = Some(self.tells.as_mut().and_then(ReceiverFeedback::option).unwrap_or_default());
    }

    fn write(&mut self, options: &mut TcpOptions) {
        options.capacity = self.tells.as_mut().and_then(ReceiverFeedback::option);
    }

    fn agreed(&self) -> Option<Signal> {
        self.wants.map(|_| Signal::Cell(CellCapacity::UNKNOWN))
    }

    fn read_syn(&mut self, syn: &TcpOptions) -> Option<Signal> {
        syn.capacity.filter(|option| !option.told().available.is_zero()).and_then(|_| self.read(syn))
    }

    fn read(&mut self, options: &TcpOptions) -> Option<Signal> {
        self.wants.as_mut()?.take(options.capacity.as_ref()?).map(Signal::Cell)
    }

    fn on_packet(&mut self, now: Time, stamp: Option<u32>, len: Bytes) {
        if let Some(tells) = &mut self.tells {
            tells.on_packet(now, stamp, len);
        }
    }

    fn on_round_trip(&mut self, now: Time, round_trip: Span) {
        if let Some(tells) = &mut self.tells {
            tells.sense(now, &Signal::RoundTrip(round_trip));
        }
    }

    fn next_timeout(&self) -> Time {
        self.tells.as_ref().map_or(Time::MAX, ReceiverFeedback::next_timeout)
    }

    fn on_timeout(&mut self, now: Time) {
        if let Some(tells) = &mut self.tells {
            tells.on_timeout(now);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use crate::options::{self, Agreed};
    use lasthop_laws::{Choice, Place, ReceiverSetup};
    use lasthop_signals::Node;
    use lasthop_wire::tcp::Timestamps;

    #[test]
    fn a_peers_clock_that_runs_away_ends_at_the_end_of_time() {
        let mut clock = PeerClock::default();
        (0..10_000u32).for_each(|n| {
            clock.read(n.wrapping_mul(0x7fff_ffff));
        });
        assert_eq!(clock.read(10_000u32.wrapping_mul(0x7fff_ffff)), Time::MAX);
    }

    #[test]
    fn the_peers_clock_wraps_around() {
        let mut clock = PeerClock::default();
        let first = clock.read(u32::MAX - 4);
        assert_eq!(clock.read(5).since(first), Span::from_millis(10));
        // What was overtaken is older.
        assert_eq!(first.since(clock.read(u32::MAX - 9)), Span::from_millis(5));
        assert_eq!(clock.read(6).since(first), Span::from_millis(11));
    }

    #[test]
    fn lately_is_up_to_two_moments_long() {
        let mut lately = Lately::default();
        let at = |ms| Time::ZERO + Span::from_millis(ms);
        lately.add(at(50), Bytes::new(3));
        lately.add(at(150), Bytes::new(4));
        let seen = [150, 199, 200, 299, 300].map(|ms| lately.at(at(ms))).map(|seen| (seen.now + seen.before).get());
        assert_eq!(seen, [7, 7, 4, 4, 0]);
    }

    #[test]
    fn capacities_are_told_where_both_ends_offer_it() {
        let law = || {
            let (slot, start, end) = (0, Time::ZERO, Time::MAX);
            let setup = ReceiverSetup { node: Node(1), slot, start, end, interval: Span::MAX, idle_slots: None };
            Choice::named(Place::Receiver, "pbe").and_then(|law| law.receiver(setup).ok())
        };
        let option = |law, wants| CellOption::new(law, wants).expect("one of both");
        let (mut syn, mut answer) = (TcpOptions::default(), TcpOptions::default());
        option(law(), false).offer(&mut syn);
        option(None, true).offer(&mut answer);
        assert_eq!([syn.capacity, answer.capacity], [Some(Capacity::default()); 2]);
        assert!(CellOption::new(None, false).is_none());
        assert!(!option(None, true).is_offered(&TcpOptions::default()) && option(None, true).is_offered(&syn));
        let segments = [option(None, true), option(law(), false)];
        assert_eq!(segments.map(|option| option.is_in_each_segment()), [false, true]);
        let config = Config::default();
        let peer = options::syn(&config, 10, Timestamps { val: 1, ecr: 0 }, None);
        let agreed = |further| Agreed::with(&config, further, &peer);
        assert_eq!([0, CAPACITY_LEN as u16].map(|further| agreed(further).mss), [1448, 1440]);
    }

    #[test]
    fn what_was_overtaken_is_no_news() {
        let mut reader = FeedbackReader::default();
        let news =
            |reader: &mut FeedbackReader, number| reader.take(&Capacity { number, ..Capacity::default() }).is_some();
        let seen = [14, 0, 15, 0, 1, 13, 9, 8].map(|number| news(&mut reader, number));
        // 13 is behind 1 by four; 9, which is behind by eight, is ahead by as many.
        assert_eq!(seen, [true, true, false, false, true, false, true, false]);
    }
}
