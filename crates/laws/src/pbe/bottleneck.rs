//! Is the cell the narrowest place of the path?
//! Source:     \[pbe\], sections 4.1 and 4.2.2, reconstructed (see [`super`]).
//! Equations:  N_pkt = 6 C_t / MSS, at least 4; the rest is in the states below
//! Deviations: a queue that the cell itself explains is no reason to leave it: while the packet waited the terminal had
//!             nine tenths of its fair share, and less than a twentieth of the cell was idle. The rule for the start looks at quarters of a
//!             round trip: in each the least delay is no smaller than in the one before, in all it has grown by more
//!             than the jitter, and the rate by less than a twentieth. It holds for five round trips of packets, in
//!             which the rise is over. Rates are of whole packets over a round trip.
//! Validity:   an application that sends less than it could stays where it is.     Checked by: tests::*
//!
//! ```text
//!   Start           -> Wireless  rate >= 0.95 C_t, or five RTprop
//!   Start           -> Internet  a flat rate while the delay rises, for an RTprop
//!   Start, Wireless -> Internet  N_pkt packets in a row beyond D_th, which the cell does not explain
//!   Internet        -> Wireless  N_pkt in a row that are not, and rate >= 0.95 C_t
//!   any             -> Start     a new carrier
//! ```

use lasthop_units::{Bytes, Rate, Span, Time};

/// The packets of so many subframes must agree.
const SUBFRAMES: u64 = 6;
/// Packets that must, at least.
const LEAST_PACKETS: u64 = 4;
/// A rate that has come so near to C_t has reached it.
const REACHED: f64 = 0.95;
/// A rate that has grown by less is flat.
const FLAT: f64 = 1.05;
/// Round trips in which the start is over: those of the rise, that of the first segments, and one on the way.
const START: u64 = 5;
/// The parts of a round trip that are compared.
const QUARTERS: usize = 4;

/// What a packet is judged by.
#[derive(Clone, Copy, Debug)]
pub(super) struct DelaySample {
    /// How much longer than the path itself it took.
    pub(super) delay: Span,
    /// Whether that is beyond D_th.
    pub(super) late: bool,
    /// The cell itself explains a queue.
    pub(super) explained: bool,
    /// C_t.
    pub(super) capacity: Rate,
    /// RTprop.
    pub(super) round_trip: Span,
    /// By how much delays vary anyway.
    pub(super) jitter: Span,
}

/// The judgement.
#[derive(Clone, Debug)]
pub(super) struct Bottleneck {
    place: Narrowest,
    /// Packets in a row that speak against the present place.
    against: u64,
    /// The longest packet.
    largest: Bytes,
    round: Round,
}

/// Where the narrowest place is taken to be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Narrowest {
    /// The sender has not yet reached what the cell has.
    Start,
    Wireless,
    Internet,
}

/// What has come in a round trip.
#[derive(Clone, Copy, Debug, Default)]
struct Round {
    began: Option<Time>,
    /// Rounds with packets since the start began.
    count: u64,
    bytes: Bytes,
    /// The least delay of each quarter.
    delays: [Option<Span>; QUARTERS],
    /// Rate of the last whole round, and of the one before it.
    rate: Rate,
    before: Rate,
}

impl Bottleneck {
    /// Before the first packet.
    pub(super) fn new() -> Bottleneck {
        Bottleneck { place: Narrowest::Start, against: 0, largest: Bytes::new(1), round: Round::default() }
    }

    /// A carrier has come.
    pub(super) fn restart(&mut self) {
        (self.place, self.against, self.round.count) = (Narrowest::Start, 0, 0);
    }

    /// Where it is.
    pub(super) fn place(&self) -> Narrowest {
        self.place
    }

    /// A packet of `len` has come.
    pub(super) fn on_packet(&mut self, now: Time, len: Bytes, sample: &DelaySample) {
        self.largest = self.largest.max(len);
        let rising = self.round.on_packet(now, len, sample);
        let needed =
            (sample.capacity.bytes_in(super::SUBFRAME * SUBFRAMES).get() / self.largest.get()).max(LEAST_PACKETS);
        let foreign = sample.late && !sample.explained;
        let against = if self.place == Narrowest::Internet { !foreign } else { foreign };
        self.against = if against { self.against + 1 } else { 0 };
        let agreed = self.against >= needed;
        let reached = self.round.rate >= sample.capacity.scale(REACHED);
        let next = match self.place {
            Narrowest::Start | Narrowest::Wireless if agreed => Narrowest::Internet,
            Narrowest::Start if rising && !reached && !sample.explained => Narrowest::Internet,
            Narrowest::Start if reached || self.round.count >= START => Narrowest::Wireless,
            Narrowest::Internet if agreed && reached => Narrowest::Wireless,
            same => same,
        };
        if next != self.place {
            (self.place, self.against) = (next, 0);
        }
    }
}

impl Round {
    /// Folds in a packet. True if a round has ended in which the delay rose and the rate did not.
    fn on_packet(&mut self, now: Time, len: Bytes, sample: &DelaySample) -> bool {
        let length = sample.round_trip.max(super::SUBFRAME);
        let began = *self.began.get_or_insert(now);
        let mut over = false;
        if now.since(began) >= length {
            let whole = now.since(began).as_nanos() / length.as_nanos();
            let rate = Rate::of(self.bytes, length).unwrap_or(Rate::ZERO);
            // Rounds in which nothing came have passed since.
            (self.before, self.rate) = if whole == 1 { (self.rate, rate) } else { (Rate::ZERO, Rate::ZERO) };
            self.count += 1;
            over = self.is_flat() && self.is_rising(sample.jitter);
            (self.began, self.bytes, self.delays) = (Some(began + length * whole), Bytes::ZERO, [None; QUARTERS]);
        }
        self.bytes += len;
        let into = now.since(self.began.unwrap_or(now)).as_nanos();
        let quarter = (u128::from(into) * QUARTERS as u128 / u128::from(length.as_nanos())) as usize;
        let slot = &mut self.delays[quarter.min(QUARTERS - 1)];
        *slot = Some(slot.map_or(sample.delay, |least| least.min(sample.delay)));
        over
    }

    fn is_flat(&self) -> bool {
        !self.before.is_zero() && self.rate <= self.before.scale(FLAT)
    }

    fn is_rising(&self, jitter: Span) -> bool {
        let [Some(first), Some(second), Some(third), Some(last)] = self.delays else { return false };
        first <= second && second <= third && third <= last && last.saturating_sub(first) > jitter
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lasthop_units::brief::at;

    const LEN: Bytes = Bytes::new(1500);
    const ROUND: Span = Span::from_millis(40);

    /// A cell of 24 Mbit/s: two packets a millisecond, twelve in six subframes.
    fn sample(delay_ms: u64, explained: bool) -> DelaySample {
        let delay = Span::from_millis(delay_ms);
        let (late, capacity, jitter) = (delay_ms > 27, Rate::from_mbit(24), Span::from_millis(3));
        DelaySample { delay, late, explained, capacity, round_trip: ROUND, jitter }
    }

    /// `each` says for each millisecond how many packets come, after what delay, and whether the cell explains that.
    /// Returns when the place changed, and to which.
    fn changes(until: u64, each: impl Fn(u64) -> (u64, u64, bool)) -> Vec<(u64, Narrowest)> {
        let (mut bottleneck, mut seen) = (Bottleneck::new(), Vec::new());
        for ms in 0..until {
            let (packets, delay, explained) = each(ms);
            for _ in 0..packets {
                let before = bottleneck.place();
                bottleneck.on_packet(at(ms), LEN, &sample(delay, explained));
                if bottleneck.place() != before {
                    seen.push((ms, bottleneck.place()));
                }
            }
        }
        seen
    }

    #[test]
    fn six_late_subframes_leave_the_cell_and_six_lead_back() {
        let each = |ms| match ms {
            0..200 => (2, 5, false),
            200..400 => (1, 35, false),
            _ => (2, 5, false),
        };
        // At one packet a millisecond twelve packets take twelve of them. The rate has come back after a whole round.
        let want = [(40, Narrowest::Wireless), (211, Narrowest::Internet), (440, Narrowest::Wireless)];
        assert_eq!(changes(600, each), want);
    }

    #[test]
    fn a_queue_that_the_cell_explains_stays_in_the_cell() {
        let fade = |ms| if ms < 200 { (2, 5, false) } else { (1, 60, true) };
        assert_eq!(changes(600, fade), [(40, Narrowest::Wireless)]);
        // A single packet in time ends the row.
        let jitter = |ms| (2, if ms > 100 && ms % 5 != 0 { 30 } else { 5 }, false);
        assert_eq!(changes(600, jitter), [(40, Narrowest::Wireless)]);
    }

    #[test]
    fn a_start_that_meets_another_limit_ends() {
        // Less than the cell has, and the queue grows by a millisecond in five.
        let each = |ms: u64| (1, ms.saturating_sub(40) / 5, false);
        assert_eq!(changes(160, each), [(80, Narrowest::Internet)]);
        let calm = |_| (1, 5, false);
        assert_eq!(changes(400, calm), [(200, Narrowest::Wireless)], "five round trips");
    }

    #[test]
    fn the_way_back_needs_the_rate() {
        let each = |ms| match ms {
            0..100 => (2, 5, false),
            100..150 => (1, 35, false),
            _ => (1, 5, false),
        };
        assert_eq!(changes(600, each).last(), Some(&(111, Narrowest::Internet)));
    }
}
