//! Departure times of paced segments.
//! Source:     Linux's internal pacing (`tcp_update_skb_after_send`, `tcp_tso_autosize`), the behaviour of record.
//! Equations:  quantum = max(rate * 1 ms, 2 segments), in whole segments; one segment below 1.2 Mbit/s
//!             next departure = departure + payload / rate, less up to half of that if this departure was late
//! Symbols:    next departure -> `next_at`, lateness -> `credit`
//! Deviations: 1 ms for Linux's 1/1024 s.     Validity: any rate; a rate of zero sends nothing.
//! Checked by: tests::*

use lasthop_units::{Bytes, Rate, Span, Time};

/// The pacer of one connection.
#[derive(Clone, Debug)]
pub(crate) struct Pacer {
    /// When the next quantum may leave.
    next_at: Time,
    /// When the current quantum began to leave.
    began_at: Time,
    /// What may still leave with it.
    quantum_left: Bytes,
    /// How late the current quantum began.
    credit: Span,
}

/// A burst of this length leaves at once, as one TSO super-packet of a real host would.
const BURST: Span = Span::from_millis(1);
/// Below this rate segments leave one by one.
const SINGLES_BELOW: Rate = Rate::from_bps(1_200_000);

impl Pacer {
    /// A pacer that lets the first segment leave at once.
    pub(crate) fn new() -> Pacer {
        Pacer { next_at: Time::ZERO, began_at: Time::ZERO, quantum_left: Bytes::ZERO, credit: Span::ZERO }
    }

    /// When the next segment may leave: `None` for now.
    pub(crate) fn blocked_until(&self, now: Time) -> Option<Time> {
        let in_quantum = !self.quantum_left.is_zero() && now.since(self.began_at) < BURST;
        (!in_quantum && now < self.next_at).then_some(self.next_at)
    }

    /// A segment of `len` leaves now, at `rate`; full segments have `mss`.
    pub(crate) fn on_sent(&mut self, now: Time, len: Bytes, rate: Rate, mss: Bytes) {
        if now >= self.next_at {
            self.credit = now - self.next_at;
            self.next_at = now;
            self.began_at = now;
            self.quantum_left = quantum(rate, mss);
        }
        self.quantum_left = self.quantum_left.saturating_sub(len);
        let Some(span) = rate.time_for(len) else {
            // Blocked altogether: ask again in a second, by when the law will have thought of something.
            self.next_at = now + Span::from_secs(1);
            self.quantum_left = Bytes::ZERO;
            return;
        };
        // A late start is made up for by at most half: otherwise an idle connection would save up a burst.
        let credit = self.credit.min(span / 2);
        self.credit -= credit;
        self.next_at += span - credit;
    }
}

fn quantum(rate: Rate, mss: Bytes) -> Bytes {
    let least = if rate < SINGLES_BELOW { 1 } else { 2 };
    mss * (rate.bytes_in(BURST).get() / mss.get().max(1)).max(least)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: Bytes = Bytes::new(1448);

    /// Sends whenever allowed for a second; returns how much left, and the largest burst in segments.
    fn drive(rate: Rate) -> (Bytes, u32) {
        let (mut pacer, mut now) = (Pacer::new(), Time::from_nanos(5_000_000_000));
        let end = now + Span::from_secs(1);
        let (mut sent, mut burst, mut largest) = (Bytes::ZERO, 0, 0);
        while now < end {
            match pacer.blocked_until(now) {
                Some(at) => (now, burst) = (at, 0),
                None => {
                    pacer.on_sent(now, MSS, rate, MSS);
                    sent += MSS;
                    burst += 1;
                    largest = largest.max(burst);
                }
            }
        }
        (sent, largest)
    }

    #[test]
    fn what_was_decided_is_what_leaves() {
        for mbit in [1, 2, 10, 50, 300] {
            let rate = Rate::from_mbit(mbit);
            let (sent, _) = drive(rate);
            let want = rate.bytes_in(Span::from_secs(1));
            let slack = quantum(rate, MSS) * 2;
            assert!(sent <= want + slack && sent + slack >= want, "{rate}: {sent} for {want}");
        }
    }

    #[test]
    fn bursts_are_a_millisecond_or_two_segments() {
        assert_eq!(drive(Rate::from_mbit(1)).1, 1);
        assert_eq!(drive(Rate::from_mbit(5)).1, 2);
        assert_eq!(drive(Rate::from_mbit(50)).1, 4);
    }

    #[test]
    fn idling_saves_up_no_burst() {
        let mut pacer = Pacer::new();
        let rate = Rate::from_mbit(5);
        pacer.on_sent(Time::ZERO, MSS, rate, MSS);
        let now = Time::ZERO + Span::from_secs(10);
        pacer.on_sent(now, MSS, rate, MSS);
        pacer.on_sent(now, MSS, rate, MSS);
        let next = pacer.blocked_until(now).expect("the quantum is used up");
        let two = rate.time_for(MSS * 2).expect("not zero");
        assert!(next.since(now) >= two / 2, "{:?}", next.since(now));
    }

    #[test]
    fn a_rate_of_zero_blocks() {
        let mut pacer = Pacer::new();
        pacer.on_sent(Time::ZERO, MSS, Rate::ZERO, MSS);
        assert!(pacer.blocked_until(Time::ZERO).is_some());
    }
}
