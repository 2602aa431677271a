//! Digesting acknowledgements.

use super::{PeerWindow, Recovery, Sender, TailProbe};
use crate::scoreboard::Segment;
use lasthop_laws::{LossRecovery, SenderLaw};
use lasthop_signals::{Ack, Loss, Lost, Signal};
use lasthop_units::{Bytes, Span, Time};
use std::ops::Range;

/// An acknowledgement in stream offsets.
#[derive(Clone, Debug)]
pub(crate) struct Acknowledgement {
    /// Everything below has arrived.
    pub(crate) upto: u64,
    /// The window beyond, scaled.
    pub(crate) window: u64,
    /// The peer's own sequence offset, to order window updates.
    pub(crate) seq: u64,
    /// SACK blocks, in their order.
    pub(crate) sack: [Option<Range<u64>>; 4],
    /// RTT from the echoed timestamp, of millisecond resolution.
    pub(crate) echoed_rtt: Option<Span>,
    /// It came without payload or FIN.
    pub(crate) bare: bool,
}

/// What one acknowledgement brought.
#[derive(Default)]
struct Digest {
    delivered: u64,
    /// RTT of the oldest segment newly acknowledged, delayed acknowledgement included: what the timeout needs.
    oldest: Option<Span>,
    /// RTT of the newest: what the path needs.
    newest: Option<Span>,
    /// When the oldest segment newly reported by SACK left, of those sent once.
    sacked: Option<Time>,
    duplicate: bool,
    /// The cumulative acknowledgement covers something that was sent more than once.
    repaired: bool,
}

/// Of the clock of timestamps.
const TICK: Span = Span::from_millis(1);

impl Sender {
    /// The handshake is over: the peer takes segments of `mss`, and has room for `window`.
    pub(crate) fn establish(&mut self, now: Time, mss: u64, window: u64, seq: u64, rtt: Option<Span>) {
        self.mss = mss;
        self.window = PeerWindow { len: window, edge: self.board.una() + window, updated_at: seq };
        match rtt {
            Some(rtt) => {
                self.rtt.sample(rtt, false);
                self.rtt.observe_min(rtt);
            }
            None => self.rtt.unmeasured(),
        }
        let in_flight = self.board.in_flight();
        self.tell_ack(now, &Digest { newest: rtt, ..Digest::default() }, 0, 0, in_flight);
    }

    /// An acknowledgement arrived.
    pub(crate) fn on_ack(&mut self, now: Time, ack: &Acknowledgement) {
        let una = self.board.una();
        if ack.upto > self.board.nxt() {
            return;
        }
        // RFC 5681, section 2: what makes an acknowledgement a duplicate.
        let repeats = ack.bare && ack.upto == una && ack.window == self.window.len && !self.board.is_empty();
        self.update_window(ack, una);
        let prior_in_flight = self.board.in_flight();
        let (digest, advanced) = self.mark_delivered(now, ack);
        if advanced > 0 || digest.sacked.is_some() {
            self.sample_rtt(now, &digest, ack.echoed_rtt);
        }
        // What left before the latest copy of the first segment is still arriving, so that copy may be on its way too.
        // What left after it does not count: it would put the timeout off until the whole window has arrived.
        let behind = self.board.first_sent_at().zip(digest.sacked).is_some_and(|(first, sacked)| sacked < first);
        if !self.loss_recovery.has_sack() {
            self.count_duplicates(now, repeats, una, advanced);
        }
        if advanced > 0 && !self.duplicates.timer_runs_on() || behind {
            self.timers.retransmission = (!self.board.is_empty()).then(|| now + self.rtt.rto());
        }
        if digest.duplicate && !matches!(self.probe, TailProbe::Repeated(_)) {
            self.rack.on_duplicate(self.board.una(), self.board.nxt());
        }
        if digest.delivered == 0 && !digest.duplicate {
            return;
        }
        self.judge_tail_probe(now, &digest, prior_in_flight);
        if advanced > 0 {
            self.judge_timeout(now, ack.echoed_rtt);
        }
        // A recovery ends before the next can begin: what was lost of the data sent since is a loss event of its own.
        self.leave_recovery(now);
        let lost = self.detect_losses(now);
        if self.board.has_lost() {
            self.enter_recovery(now, prior_in_flight, lost);
        }
        self.arm_tail_probe(now);
        self.tell_ack(now, &digest, advanced, lost, prior_in_flight);
    }

    fn update_window(&mut self, ack: &Acknowledgement, una: u64) {
        let window = &mut self.window;
        // Linux's reading of RFC 9293: without progress, only a larger or a closed window is news.
        let newer = ack.upto > una
            || ack.seq > window.updated_at
            || ack.upto == una && ack.seq == window.updated_at && (ack.window > window.len || ack.window == 0);
        if ack.upto < una || !newer {
            return;
        }
        *window = PeerWindow { len: ack.window, edge: ack.upto + ack.window, updated_at: ack.seq };
        if window.edge > self.board.nxt() {
            // Open again: the next closed window is probed from the start.
            self.timers.persist_backoff = 0;
            if window.len >= self.mss {
                self.timers.persist = None;
            }
        }
    }

    /// Lets scoreboard, RTT, RACK and delivery rate know what has arrived.
    fn mark_delivered(&mut self, now: Time, ack: &Acknowledgement) -> (Digest, u64) {
        let Sender { board, rate, rack, rtt, timed_out_at, .. } = self;
        let timed_out_at = *timed_out_at;
        let mut digest = Digest::default();
        let min_rtt = rtt.min_rtt();
        let mut oldest_sent = Time::MAX;
        let mut newest_sent = Time::ZERO;
        let mut delivered = |digest: &mut Digest, segment: &Segment, bytes: u64, cumulative: bool| {
            digest.delivered += bytes;
            rate.on_delivered(now, bytes, segment.end(), segment.sent_at, &segment.snapshot);
            rack.on_delivered(now, segment.sent_at, segment.end(), segment.resent, min_rtt);
            // Karn's rule: it is not known which copy this acknowledges, nor for how long a report has been lost, once
            // it takes a timeout to get one.
            if segment.resent || segment.sent_at < timed_out_at {
                digest.repaired |= cumulative;
                return;
            }
            if cumulative && segment.sent_at < oldest_sent {
                oldest_sent = segment.sent_at;
                digest.oldest = Some(now.since(segment.sent_at));
            }
            if segment.sent_at >= newest_sent {
                newest_sent = segment.sent_at;
                digest.newest = Some(now.since(segment.sent_at));
            }
            if !cumulative {
                digest.sacked = Some(digest.sacked.map_or(segment.sent_at, |oldest| oldest.min(segment.sent_at)));
            }
        };
        let una = board.una();
        let mut blocks = ack.sack.iter().flatten();
        let advanced = board.acknowledge(ack.upto, |s, bytes| delivered(&mut digest, s, bytes, true));
        if let Some(first) = ack.sack[0].clone() {
            // RFC 2883: a first block below the acknowledgement, or inside the second, reports a duplicate.
            let inside_second =
                ack.sack[1].as_ref().is_some_and(|second| second.start <= first.start && first.end <= second.end);
            if first.start < ack.upto.max(una) || inside_second {
                digest.duplicate = true;
                blocks.next();
            }
        }
        if digest.repaired {
            // What lay above the hole arrived long ago, and its own reports were lost: no measure of the path.
            (digest.oldest, digest.newest) = (None, None);
        }
        for block in blocks {
            board.sack(block.clone(), |s, bytes| delivered(&mut digest, s, bytes, false));
        }
        (digest, advanced)
    }

    fn sample_rtt(&mut self, now: Time, digest: &Digest, echoed: Option<Span>) {
        if let Some(newest) = digest.newest {
            self.rtt.observe_min(newest);
        }
        let sacked = digest.sacked.map(|sent_at| now.since(sent_at));
        let Some(rtt) = digest.oldest.or(sacked).or(echoed) else { return };
        let round_over = self.board.una() >= self.variance_round;
        if round_over {
            self.variance_round = self.board.nxt();
        }
        self.rtt.sample(rtt, round_over);
    }

    /// A probe that repeated the last segment and was acknowledged without a D-SACK has repaired a loss, and losses
    /// must have consequences (RFC 8985, section 7.4).
    fn judge_tail_probe(&mut self, now: Time, digest: &Digest, prior_in_flight: u64) {
        match self.probe {
            TailProbe::Repeated(_) if digest.duplicate => self.probe = TailProbe::None,
            TailProbe::Repeated(end) if self.board.una() >= end => {
                self.probe = TailProbe::None;
                if self.recovery == Recovery::Open {
                    self.tell(now, &Signal::Loss(self.loss(prior_in_flight, self.mss)));
                    self.tell(now, &Signal::Recovered);
                }
            }
            TailProbe::New(end) if self.board.una() >= end => self.probe = TailProbe::None,
            _ => {}
        }
    }

    /// A timeout was spurious if what is acknowledged first is a copy from before its repair: the Eifel detection (RFC
    /// 3522) by the echoed timestamp, with a clock that ticks in milliseconds.
    fn judge_timeout(&mut self, now: Time, echoed: Option<Span>) {
        let (Recovery::Loss(_), Some(repaired), Some(echoed), LossRecovery::Rack) =
            (self.recovery, self.first_repair, echoed, self.loss_recovery)
        else {
            return;
        };
        self.first_repair = None;
        if now.since(repaired) + TICK > echoed {
            return;
        }
        self.board.restore_lost();
        self.recovery = Recovery::Open;
        self.force = false;
        self.rack.on_recovered();
        self.counters.undone += 1;
        self.tell(now, &Signal::Undone);
        self.tell(now, &Signal::Recovered);
    }

    pub(super) fn reorder_window(&self) -> Span {
        let recovering = self.recovery != Recovery::Open;
        self.rack.reorder_window(recovering, self.board.sacked_segments(), self.rtt.min_rtt(), self.rtt.srtt())
    }

    /// Marks what is lost by now and arms the reordering timer for the next. Returns how much was marked.
    pub(super) fn detect_losses(&mut self, now: Time) -> u64 {
        let window = self.reorder_window();
        let Sender { board, rack, law, loss_recovery, mss, .. } = self;
        let lost = |segment: &Segment| tell_lost(law.as_mut(), now, segment);
        let (lost, again) = match loss_recovery {
            LossRecovery::Rack => board.detect_losses(now, rack, window, lost),
            LossRecovery::Sack => (board.count_losses(*mss, lost), None),
            LossRecovery::NewReno | LossRecovery::Reno | LossRecovery::GoBackN => return 0,
        };
        if lost > 0 {
            self.ask(now);
        }
        self.timers.reordering = again;
        lost
    }

    pub(super) fn enter_recovery(&mut self, now: Time, prior_in_flight: u64, lost: u64) {
        if self.recovery != Recovery::Open {
            return;
        }
        self.recovery = Recovery::Fast(self.board.nxt());
        self.timers.tail_probe = None;
        self.probe = TailProbe::None;
        self.counters.recoveries += 1;
        self.tell(now, &Signal::Loss(self.loss(prior_in_flight, lost)));
    }

    fn leave_recovery(&mut self, now: Time) {
        match self.recovery {
            Recovery::Fast(point) | Recovery::Loss(point) if self.board.una() >= point => {
                self.recovery = Recovery::Open;
                self.rack.on_recovered();
                self.tell(now, &Signal::Recovered);
            }
            _ => {}
        }
    }

    /// What the law is told of a loss, of which so much was in flight before.
    pub(super) fn loss(&self, prior_in_flight: u64, lost: u64) -> Loss {
        Loss {
            prior_in_flight: Bytes::new(prior_in_flight),
            in_flight: Bytes::new(self.board.in_flight()),
            lost: Bytes::new(lost),
            delivered: Bytes::new(self.rate.delivered()),
            mss: Bytes::new(self.mss),
        }
    }

    fn tell_ack(&mut self, now: Time, digest: &Digest, advanced: u64, lost: u64, prior_in_flight: u64) {
        let delivery = self.rate.sample(now, self.rtt.min_rtt());
        let ack = Ack {
            newly_delivered: Bytes::new(digest.delivered),
            newly_acked: Bytes::new(advanced),
            newly_lost: Bytes::new(lost),
            rtt: digest.newest,
            min_rtt: self.rtt.min_rtt(),
            srtt: self.rtt.srtt(),
            prior_in_flight: Bytes::new(prior_in_flight),
            in_flight: Bytes::new(self.board.in_flight()),
            delivered: Bytes::new(self.rate.delivered()),
            delivery,
            mss: Bytes::new(self.mss),
            cwnd_limited: self.usage.cwnd_limited,
            in_recovery: self.recovery != Recovery::Open,
        };
        self.tell(now, &Signal::Ack(ack));
    }
}

/// Shows `law` a segment that counts as lost from now on.
pub(super) fn tell_lost(law: &mut dyn SenderLaw, now: Time, segment: &Segment) {
    let lost = Lost { sent_at: segment.sent_at, len: Bytes::new(u64::from(segment.len)) };
    law.sense(now, &Signal::Lost(lost));
}
