//! The rate of a PBE sender: what its receiver tells of the cell.
//! Source:     \[pbe\], section 4, in part reconstructed (see [`super`]).
//! Equations:  start: S = S_0 + (C_f - S_0) t / (3 RTprop);   wireless: S = C_t;   cwnd = S (RTprop + h), at
//!             least 4 segments;   `cellular` has the rest
//! Symbols:    C_t, C_f -> `CellCapacity::available`, `fair`; S_0, the initial window in an RTprop at first, later the
//!             present rate -> `from`; h -> `Params::headroom`
//! Deviations: the paper's h is 0. What a receiver tells is believed within bounds, since it costs a receiver nothing to lie and the path
//!             much: S is at least 2 MSS in an RTprop, and at most twice what was delivered in the best of the last ten
//!             rounds, with the initial window in an RTprop on top. The first rise of a connection has C_f / 2 beside
//!             that, which is what it gains until deliveries show it (an RTprop and a half); later ones double their
//!             rate in a round trip at most. No capacity above `Params::most` is believed. A new carrier counts where
//!             C_f has risen with it, and no rise is begun anew before it is over. A
//!             flow that has been idle starts anew where less than half of C_f was ever delivered. A capacity is
//!             believed for three RTprop of ACKs that do not repeat it, then halved in each; after three halvings, and
//!             where the first does not come within two RTprop, plain BBR takes over. ACKs of a recovery, which may
//!             have no room for it, do not count. After a timeout the window grows from what is in flight, by what is
//!             delivered, to what it would be.
//! Validity:   a peer that does not tell is shown to BBR alone: the law is BBR then.     Checked by: tests::*,
//!             tests/integration/conformance, transport's tests/integration/pbe.rs
//!
//! ```text
//!   Plain                     -> Waiting   the handshake shows that the peer will tell
//!   Waiting                   -> Plain     no capacity within two RTprop
//!   Plain, Waiting            -> Start     a capacity
//!   Start                     -> Wireless  three RTprop
//!   Start, Wireless           -> Internet  told that another place is narrower than the cell
//!   Internet                  -> Wireless  told that it is not
//!   Wireless                  -> Start     told of a new carrier and of more capacity; idle, and most of it never used
//!   Start, Wireless, Internet -> Plain     nothing told for six RTprop of ACKs, or that nothing is known any more
//! ```

use super::cellular::{Cellular, Known, PROBE_RTT};
use super::{LEAST_SEGMENTS, OF_SENDERS, Params, ROUNDS};
use crate::ebpf::Shared;
use crate::tcp::bbr::cycle::PHASES;
use crate::tcp::bbr::filter::MaxFilter;
use crate::tcp::bbr::min_rtt::{MinRtt, WINDOW};
use crate::tcp::bbr::rounds::Rounds;
use crate::tcp::{Bbr, Setup};
use crate::{Bounds, Decision, Parameters as _, SenderLaw, Why};
use lasthop_signals::{Ack, CellCapacity, Sent, Signal};
use lasthop_units::{Bytes, Rate, Span, Stream, Time};

/// Round trips of the rise.
const RISE: u64 = 3;
/// Round trips within which the first capacity comes.
const PATIENCE: u64 = 2;
/// Round trips of ACKs without a capacity for which the last one holds, and until it holds no more.
const HOLDS: u64 = 3;
const FORGOTTEN: u64 = 6;
/// RTprop before the first sample.
const SOME_RTT: Span = Span::from_millis(100);
/// The start looks at the clock so often in a round trip.
const STEPS: u64 = 32;

/// What the sender's eBPF program shares with the law. Its times are microseconds.
pub const SHARED: Shared = Shared {
    name: "pbe",
    table: Params::TABLE,
    keys: OF_SENDERS,
    constants: &[
        ("RISE", RISE),
        ("PATIENCE", PATIENCE),
        ("HOLDS", HOLDS),
        ("FORGOTTEN", FORGOTTEN),
        ("LEAST_SEGMENTS", LEAST_SEGMENTS),
        ("ROUNDS", ROUNDS),
        ("PHASES", PHASES as u64),
        ("SOME_RTT", SOME_RTT.as_nanos() / 1000),
        ("PROBE_RTT", PROBE_RTT.as_nanos() / 1000),
        ("RTT_HOLDS", WINDOW.as_nanos() / 1000),
    ],
};

/// The law of one sender.
#[derive(Clone, Debug)]
pub struct Pbe {
    params: Params,
    state: State,
    /// Is shown everything, and decides where the receiver does not tell.
    bbr: Bbr,
    /// What the receiver has told last.
    told: Option<CellCapacity>,
    /// The first ACK that could have told something since then.
    silent_since: Option<Time>,
    /// Round trips from that to the last one.
    missed: u64,
    acked: bool,
    rounds: Rounds,
    /// The most that was delivered in the last rounds, and what the last sample shows.
    delivered: MaxFilter,
    newest: Rate,
    min_rtt: MinRtt,
    rate: Rate,
    /// What was sent in rises, and whether one of them is over in which that was more than the initial window.
    sent: Bytes,
    risen: bool,
    cwnd: Bytes,
    /// The window grows again after a timeout.
    repairing: bool,
    /// What bounds the window from outside.
    ceiling: Bytes,
    mss: Bytes,
    initial_segments: u64,
    random: Stream,
    revisit: Option<Time>,
}

#[derive(Clone, Debug)]
enum State {
    /// The receiver tells nothing.
    Plain,
    /// It will.
    Waiting {
        /// When it should have; `None` before the handshake is over.
        until: Option<Time>,
    },
    Start {
        from: Rate,
        began: Time,
    },
    Wireless,
    Internet(Cellular),
}

impl Pbe {
    /// A sender that knows nothing of its path.
    pub fn new(params: Params, setup: Setup) -> Pbe {
        Pbe {
            params,
            state: State::Plain,
            told: None,
            silent_since: None,
            missed: 0,
            acked: false,
            rounds: Rounds::default(),
            delivered: MaxFilter::new(ROUNDS),
            newest: Rate::ZERO,
            min_rtt: MinRtt::default(),
            rate: Rate::ZERO,
            sent: Bytes::ZERO,
            risen: false,
            cwnd: setup.initial_window(),
            repairing: false,
            ceiling: Bytes::MAX,
            mss: setup.mss,
            initial_segments: u64::from(setup.initial_segments.max(1)),
            random: setup.random.clone(),
            revisit: None,
            bbr: Bbr::new(setup),
        }
    }

    fn rtt(&self) -> Span {
        self.min_rtt.get().unwrap_or(SOME_RTT).max(Span::from_micros(1))
    }

    /// So many segments in an RTprop.
    fn segments(&self, segments: u64) -> Rate {
        Rate::of(self.mss * segments, self.rtt()).unwrap_or(Rate::MAX)
    }

    /// The receiver tells of its cell.
    fn on_cell(&mut self, now: Time, told: CellCapacity) {
        if told.available.is_zero() {
            match self.state {
                // It will tell, and does not know yet.
                State::Plain if !self.acked => self.state = State::Waiting { until: None },
                State::Plain | State::Waiting { .. } => {}
                // It does not know any more.
                State::Start { .. } | State::Wireless | State::Internet(_) => self.fall_back(),
            }
            return;
        }
        let before = self.told.replace(told);
        self.heard();
        let more = before.is_some_and(|before| !before.restart && told.fair > before.fair);
        let next = match &self.state {
            State::Internet(_) if told.elsewhere => return,
            State::Start { .. } | State::Wireless if told.elsewhere => {
                self.end_rise();
                self.elsewhere(now)
            }
            State::Plain | State::Waiting { .. } => self.start(now),
            State::Wireless if told.restart && more => self.start(now),
            State::Internet(_) => State::Wireless,
            State::Start { .. } | State::Wireless => return,
        };
        self.state = next;
    }

    fn start(&self, now: Time) -> State {
        let from = match self.state {
            State::Plain | State::Waiting { .. } => self.delivered.get().max(self.segments(self.initial_segments)),
            _ => self.rate,
        };
        State::Start { from, began: now }
    }

    /// Nothing is known of the cell any more.
    fn fall_back(&mut self) {
        self.end_rise();
        (self.state, self.told) = (State::Plain, None);
    }

    /// A rise is over; if it had something to send, the first one of the connection is done.
    fn end_rise(&mut self) {
        self.risen |= matches!(self.state, State::Start { .. }) && self.sent > self.mss * self.initial_segments;
    }

    fn elsewhere(&self, now: Time) -> State {
        let rate = if self.newest.is_zero() { self.delivered.get() } else { self.newest };
        State::Internet(Cellular::new(now, (self.rounds.count(), self.rtt()), rate, self.params.keep_probing))
    }

    fn on_sent(&mut self, now: Time, sent: &Sent) {
        if sent.from_idle {
            self.end_rise();
        }
        if matches!(self.state, State::Start { .. }) {
            self.sent += sent.len;
        }
        let Some(told) = self.told.filter(|_| sent.from_idle) else { return };
        match &mut self.state {
            // The rise had nothing to send.
            State::Start { began, .. } => *began = now,
            State::Wireless if self.delivered.get() * 2 < told.fair.min(self.params.most) => {
                self.state = State::Start { from: self.segments(self.initial_segments), began: now };
            }
            _ => {}
        }
    }

    fn on_ack(&mut self, now: Time, ack: &Ack) {
        self.acked = true;
        if !ack.mss.is_zero() {
            self.mss = ack.mss;
        }
        let mut round_began = false;
        if let Some(sample) = ack.delivery {
            round_began = self.rounds.on_sample(sample.prior_delivered, ack.delivered);
            self.newest = sample.rate;
            if !sample.app_limited || sample.rate >= self.delivered.get() {
                self.delivered.update(self.rounds.count(), sample.rate);
            }
        }
        let expired = self.min_rtt.update(now, ack.rtt);
        let (min_rtt, round) = (self.rtt(), self.rounds.count());
        if ack.in_recovery {
            self.heard();
        }
        let since = *self.silent_since.get_or_insert(now);
        self.missed = now.since(since).as_nanos() / min_rtt.as_nanos();
        match &mut self.state {
            State::Waiting { until: until @ None } => *until = Some(now + min_rtt * PATIENCE),
            State::Internet(cellular) => {
                let known = Known { ack, min_rtt, round, round_began, expired };
                cellular.on_ack(now, &known, &mut self.random);
            }
            _ => {}
        }
        let told = matches!(self.state, State::Start { .. } | State::Wireless | State::Internet(_));
        if told && self.missed >= FORGOTTEN {
            self.fall_back();
        }
        if self.repairing {
            self.cwnd += ack.newly_delivered;
        }
    }

    /// What is known of the cell holds.
    fn heard(&mut self) {
        (self.silent_since, self.missed) = (None, 0);
    }

    /// Rate and window that follow from all that is known now.
    fn refresh(&mut self, now: Time) {
        self.revisit = None;
        let (rtt, most) = (self.rtt(), self.params.most);
        let believed = self.delivered.get() * 2 + self.segments(self.initial_segments);
        match self.state {
            State::Waiting { until: Some(until) } if now >= until => self.state = State::Plain,
            State::Start { began, .. } if now.since(began) >= rtt * RISE => {
                self.end_rise();
                self.state = State::Wireless;
            }
            _ => {}
        }
        let (available, fair) = self.told.map_or((Rate::ZERO, Rate::ZERO), |told| (told.available, told.fair));
        let (available, fair) = (available.min(most), fair.min(most));
        let rate = match &self.state {
            State::Plain => return,
            State::Waiting { until } => {
                self.revisit = *until;
                self.segments(self.initial_segments)
            }
            State::Start { from, began } => {
                self.revisit = Some(now + (rtt / STEPS).max(Span::from_micros(100)));
                let part = now.since(*began).as_secs_f64() / (rtt * RISE).as_secs_f64();
                let risen = *from + fair.saturating_sub(*from).scale(part.min(1.0));
                let unseen = if self.risen { Rate::ZERO } else { fair.scale(0.5) };
                risen.min(fair).min(believed + unseen)
            }
            State::Wireless => available.min(believed),
            State::Internet(cellular) => cellular.pacing(fair),
        };
        let halvings = (self.missed + 1).saturating_sub(HOLDS).min(FORGOTTEN - HOLDS);
        let rate = rate.scale(0.5_f64.powi(halvings as i32));
        self.rate = rate.max(self.segments(2)).max(Rate::from_bps(8));
        let window = match &self.state {
            State::Internet(cellular) => cellular.window(rtt, self.mss),
            _ => self.rate.bytes_in(rtt + self.params.headroom) + self.mss.saturating_sub(Bytes::new(1)),
        };
        let window = self.whole(window).max(self.mss * LEAST_SEGMENTS);
        self.repairing &= self.cwnd < window;
        if !self.repairing {
            self.cwnd = window;
        }
    }

    /// In whole segments.
    fn whole(&self, window: Bytes) -> Bytes {
        self.mss * (window.get() / self.mss.get().max(1))
    }
}

impl SenderLaw for Pbe {
    fn sense(&mut self, now: Time, signal: &Signal) {
        self.bbr.sense(now, signal);
        match signal {
            Signal::Sent(sent) => self.on_sent(now, sent),
            Signal::Ack(ack) => self.on_ack(now, ack),
            Signal::Cell(told) => self.on_cell(now, *told),
            Signal::Timeout(loss) => {
                self.mss = if loss.mss.is_zero() { self.mss } else { loss.mss };
                (self.repairing, self.cwnd) = (true, loss.in_flight + self.mss);
            }
            Signal::Loss(loss) if !loss.mss.is_zero() => self.mss = loss.mss,
            Signal::Undone => self.repairing = false,
            Signal::Bounds(bounds) => self.ceiling = bounds.map_or(Bytes::MAX, |bounds| bounds.upper),
            _ => {}
        }
        self.refresh(now);
    }

    fn decide(&self, now: Time) -> Decision {
        let why = match &self.state {
            State::Plain => return self.bbr.decide(now),
            State::Waiting { .. } | State::Start { .. } => Why::PbeStart,
            State::Wireless => Why::PbeWireless,
            State::Internet(cellular) => cellular.why(),
        };
        Decision {
            cwnd: Some(Bounds { lower: self.mss, upper: self.cwnd.min(self.ceiling).max(self.mss) }),
            pacing: Some(self.rate),
            revisit: self.revisit,
            ..Decision::unlimited(why)
        }
    }
}

#[cfg(test)]
mod tests;
