//! The sending half: what may leave, in which order, and what the law is shown.
//! Source:     RFC 6675 section 5 (order of transmission), RFC 8985 sections 6 and 7 (RACK, tail loss probe); without them RFC 6582, RFC 5681
//!             and Jacobson 1988, as [`LossRecovery`] says;
//!             RFC 6298 section 5 (timer), RFC 9293 sections 3.8.6.1 (zero-window probes) and 3.10.7.4 (window
//!             updates); where they leave a choice, Linux 6.x.
//! Deviations: no F-RTO and no undo of needless reductions; data beyond a window that was taken back is retransmitted
//!             (RFC 9293 allows it), so that a middle box that narrows a window in flight cannot stall the flow.
//! Validity:   any law; one segment may always be in the network, whatever the law says.
//! Checked by: tests/integration/props.rs, tests/integration/endpoint.rs, tests/integration/bottleneck.rs

mod ack;
mod duplicates;
mod timers;

use crate::config::Config;
use crate::delivery_rate::DeliveryRate;
use crate::pacing::Pacer;
use crate::rack::Rack;
use crate::rtt::RttEstimator;
use crate::scoreboard::{Scoreboard, Segment};
use crate::send_buffer::SendBuffer;
use crate::small_queue::{HostQueue, SmallQueue};
use duplicates::Duplicates;
use lasthop_laws::{Bounds, Decision, LossRecovery, SenderLaw};
use lasthop_signals::{Sent, Signal};
use lasthop_units::{Bytes, Span, Time};
use lasthop_wire::tcp_info::CaState;
use timers::Timers;

pub(crate) use ack::Acknowledgement;

/// What one end knows of the data that it sends.
#[derive(Clone)]
pub(crate) struct Sender {
    law: Box<dyn SenderLaw>,
    decision: Decision,
    board: Scoreboard,
    rtt: RttEstimator,
    rate: DeliveryRate,
    rack: Rack,
    pacer: Pacer,
    host: HostQueue,
    window: PeerWindow,
    timers: Timers,
    recovery: Recovery,
    usage: Usage,
    probe: TailProbe,
    mss: u64,
    /// The offset after the last octet that the application has written.
    written: u64,
    closing: bool,
    fin_sent: bool,
    /// The lowest lost segment leaves whatever the law says: set by a timeout.
    force: bool,
    /// When the retransmission timer expired last.
    timed_out_at: Time,
    /// When the first segment was sent again since the last timeout, until that is known to have been right.
    first_repair: Option<Time>,
    /// A closed window is to be probed now.
    probe_window: bool,
    /// Sequence space outstanding when the current RTT-variance round began.
    variance_round: u64,
    limit: Limit,
    limit_since: Time,
    /// How far the application writes ahead of what is acknowledged; `None`: at will.
    send_buffer: Option<SendBuffer>,
    max_retries: u32,
    /// How losses are found.
    loss_recovery: LossRecovery,
    duplicates: Duplicates,
    counters: Counters,
}

/// Where the loss-recovery state machine is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Recovery {
    Open,
    /// Fast recovery until everything below the point is acknowledged.
    Fast(u64),
    /// After a timeout, likewise.
    Loss(u64),
}

/// The peer's receive window (SND.WND, SND.WL1 and SND.WL2 of RFC 9293).
#[derive(Clone, Copy, Debug, Default)]
struct PeerWindow {
    len: u64,
    edge: u64,
    /// Peer's sequence offset of the last update.
    updated_at: u64,
}

/// Whether the window of the law has been used (Linux `tcp_cwnd_validate`): what was not used says nothing of the path.
#[derive(Clone, Copy, Debug, Default)]
struct Usage {
    cwnd_limited: bool,
    most_in_flight: u64,
    round_end: u64,
}

/// A tail loss probe (RFC 8985, section 7).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum TailProbe {
    None,
    /// To be sent.
    Due,
    /// Sent, as a repetition, when this was the next new offset.
    Repeated(u64),
    /// Sent as new data.
    New(u64),
}

/// What holds the sender back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Limit {
    Application,
    Law,
    /// Enough waits in the host.
    Host,
    ReceiveWindow,
}

/// What `Stats` reports about the sending half.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counters {
    pub(crate) segments: u64,
    pub(crate) resent_segments: u64,
    pub(crate) bytes: u64,
    pub(crate) resent_bytes: u64,
    pub(crate) timeouts: u64,
    pub(crate) undone: u64,
    pub(crate) recoveries: u64,
    pub(crate) tail_probes: u64,
    pub(crate) window_probes: u64,
    pub(crate) rwnd_limited: Span,
}

/// What is to leave.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Outgoing {
    /// A segment of the stream.
    Segment { start: u64, payload: u32, fin: bool, push: bool },
    /// An empty segment from before the window, which makes the peer answer with its window.
    WindowProbe { start: u64 },
}

/// Linux allows two clock ticks for the acknowledgement's own delays in a tail loss probe.
const PROBE_SLACK: Span = Span::from_millis(2);

impl Sender {
    pub(crate) fn new(now: Time, config: &Config, mut law: Box<dyn SenderLaw>) -> Sender {
        law.sense(now, &Signal::Wakeup);
        let decision = law.decide(now);
        Sender {
            law,
            decision,
            board: Scoreboard::new(1),
            rtt: RttEstimator::new(config.min_rto, config.max_rto, config.initial_rto),
            rate: DeliveryRate::new(now),
            rack: Rack::new(),
            pacer: Pacer::new(),
            host: HostQueue::default(),
            window: PeerWindow::default(),
            timers: Timers::default(),
            recovery: Recovery::Open,
            usage: Usage::default(),
            probe: TailProbe::None,
            mss: u64::from(config.mss),
            written: 1,
            closing: false,
            fin_sent: false,
            force: false,
            timed_out_at: Time::ZERO,
            first_repair: None,
            probe_window: false,
            variance_round: 1,
            limit: Limit::Application,
            limit_since: now,
            max_retries: config.max_retries,
            send_buffer: config.send_buffer.map(|size| SendBuffer::new(size, u64::from(config.mss))),
            loss_recovery: config.loss_recovery,
            duplicates: Duplicates::default(),
            counters: Counters::default(),
        }
    }

    /// The application writes `len` more octets.
    pub(crate) fn write(&mut self, len: u64) {
        if !self.closing {
            self.written = self.written.saturating_add(len);
        }
    }

    /// The application will always have more.
    pub(crate) fn write_forever(&mut self) {
        if !self.closing {
            self.written = u64::MAX;
        }
    }

    /// The application will write no more: FIN follows what it has written.
    pub(crate) fn close(&mut self) {
        // An endless stream ends where it has got to.
        if self.written == u64::MAX {
            self.written = self.board.nxt();
        }
        self.closing = true;
    }

    /// The application ends, and what it has written does where it has got to.
    pub(crate) fn stop(&mut self) {
        self.written = self.written.min(self.board.nxt().max(1));
        self.closing = true;
    }

    /// True once the FIN has been acknowledged.
    pub(crate) fn is_finished(&self) -> bool {
        self.fin_sent && self.board.is_empty()
    }

    /// Payload that has reached the peer, as far as is known.
    pub(crate) fn delivered(&self) -> u64 {
        self.rate.delivered()
    }

    /// Payload acknowledged.
    pub(crate) fn acked(&self) -> u64 {
        self.board.una() - 1 - u64::from(self.is_finished())
    }

    /// First offset not acknowledged.
    pub(crate) fn una(&self) -> u64 {
        self.board.una()
    }

    /// Octets that were written and have not been sent yet; the most there are for one that writes without end.
    pub(crate) fn unsent(&self) -> u64 {
        if self.written == u64::MAX { u64::MAX } else { self.written.saturating_sub(self.board.nxt().max(1)) }
    }

    /// Next new offset.
    pub(crate) fn nxt(&self) -> u64 {
        self.board.nxt()
    }

    /// What the law decided last.
    pub(crate) fn decision(&self) -> &Decision {
        &self.decision
    }

    /// What bounds the law's window from outside.
    pub(crate) fn bound(&mut self, now: Time, bounds: Option<Bounds<Bytes>>) {
        self.tell(now, &Signal::Bounds(bounds));
    }

    /// Payload of a full segment.
    pub(crate) fn mss(&self) -> u64 {
        self.mss
    }

    /// RTT and timeout.
    /// Where loss recovery is, in Linux's words.
    pub(crate) fn ca_state(&self) -> CaState {
        match self.recovery {
            Recovery::Open if self.board.sacked_segments() > 0 || self.duplicates.seen() => CaState::Disorder,
            Recovery::Open => CaState::Open,
            Recovery::Fast(_) => CaState::Recovery,
            Recovery::Loss(_) => CaState::Loss,
        }
    }

    pub(crate) fn rtt(&self) -> &RttEstimator {
        &self.rtt
    }

    /// Sequence space in the network.
    pub(crate) fn in_flight(&self) -> u64 {
        self.board.in_flight()
    }

    /// The window that the peer advertised last.
    pub(crate) fn peer_window(&self) -> u64 {
        self.window.len
    }

    /// Counters, the running limit included.
    pub(crate) fn counters(&self, now: Time) -> Counters {
        let mut counters = self.counters;
        if self.limit == Limit::ReceiveWindow {
            counters.rwnd_limited += now.since(self.limit_since);
        }
        counters
    }

    /// What leaves next; `None` until something changes or `next_timeout` comes.
    pub(crate) fn poll(&mut self, now: Time) -> Option<Outgoing> {
        self.timers.pacing = None;
        if self.probe_window {
            self.probe_window = false;
            return Some(self.send_window_probe(now));
        }
        if self.force && !self.board.has_lost() {
            self.force = false;
        }
        if let Some(index) = self.board.next_lost() {
            if !self.force && !self.law_admits(now, u64::from(self.board.get(index).len)) {
                return self.rest(now, Limit::Law);
            }
            if !self.force && !self.host_admits(u64::from(self.board.get(index).len), true) {
                return self.rest(now, Limit::Host);
            }
            self.force = false;
            return Some(self.send_again(now, index));
        }
        if self.probe == TailProbe::Due {
            return self.send_tail_probe(now);
        }
        let unsent = self.buffered().saturating_sub(self.board.nxt());
        let len = unsent.min(self.mss);
        // A FIN takes an octet of sequence space, and so of the window.
        let lone_fin = len == 0 && self.closing && !self.fin_sent;
        if len == 0 && !lone_fin {
            if self.law_has_room(self.mss) {
                self.rate.mark_app_limited(self.board.in_flight());
            }
            return self.rest(now, Limit::Application);
        }
        if !self.law_admits(now, len) {
            return self.rest(now, Limit::Law);
        }
        if !self.host_admits(len, false) {
            return self.rest(now, Limit::Host);
        }
        if self.board.nxt() + len.max(1) > self.window.edge {
            if self.board.is_empty() {
                self.timers.arm_persist(now, self.rtt.rto());
            }
            return self.rest(now, Limit::ReceiveWindow);
        }
        Some(self.send_new(now, len))
    }

    /// Where that ends which the application could hand over: all that it has written, or as much as the send buffer takes.
    fn buffered(&mut self) -> u64 {
        let una = self.board.una();
        self.send_buffer.as_mut().map_or(u64::MAX, |buffer| buffer.written(una)).min(self.written)
    }

    /// True if the law lets `len` more into the network, whenever that may be.
    fn law_has_room(&self, len: u64) -> bool {
        let in_flight = self.board.in_flight();
        let cwnd = self.decision.cwnd.map_or(u64::MAX, |bounds| bounds.upper.get());
        in_flight == 0 || in_flight + len <= cwnd
    }

    /// True if the law lets `len` leave now; otherwise arms the pacing timer where time will help.
    fn law_admits(&mut self, now: Time, len: u64) -> bool {
        if !self.law_has_room(len) {
            return false;
        }
        let Some(rate) = self.decision.pacing else { return true };
        if rate.is_zero() {
            return false;
        }
        self.timers.pacing = self.pacer.blocked_until(now);
        self.timers.pacing.is_none()
    }

    /// True if the host may be given `len` more, which has left before if `again`. With one segment outstanding at most
    /// there is no other completion that could wake the connection in time.
    fn host_admits(&self, len: u64, again: bool) -> bool {
        self.board.len() <= 1 || self.host.admits(&self.decision, self.rtt.srtt(), Bytes::new(len), again)
    }

    /// What waits in the host.
    pub(crate) fn host(&mut self) -> &mut HostQueue {
        &mut self.host
    }

    /// The limit on what waits in the host.
    pub(crate) fn small_queue(&self) -> Option<SmallQueue> {
        self.host.limit
    }

    /// Octets that wait in the host.
    pub(crate) fn queued(&self) -> Bytes {
        self.host.queued()
    }

    /// Nothing leaves for now, because of `limit`.
    fn rest(&mut self, now: Time, limit: Limit) -> Option<Outgoing> {
        let in_flight = self.board.in_flight();
        let cwnd_limited = limit == Limit::Law && !self.law_has_room(self.mss);
        let usage = &mut self.usage;
        let grew = !usage.cwnd_limited && in_flight > usage.most_in_flight;
        if self.board.una() >= usage.round_end || cwnd_limited || grew {
            *usage = Usage { cwnd_limited, most_in_flight: in_flight, round_end: self.board.nxt() };
        }
        if self.limit != limit {
            if self.limit == Limit::ReceiveWindow {
                self.counters.rwnd_limited += now.since(self.limit_since);
            }
            self.limit = limit;
            self.limit_since = now;
        }
        None
    }

    fn send_new(&mut self, now: Time, payload: u64) -> Outgoing {
        let from_idle = self.board.is_empty();
        let fin = self.closing && self.board.nxt() + payload >= self.written;
        self.fin_sent |= fin;
        let snapshot = self.rate.on_sent(now, from_idle);
        let payload = u32::try_from(payload).expect("no longer than an MSS");
        let segment = self.board.push(now, payload + u32::from(fin), fin, snapshot);
        self.after_sending(now, &segment, from_idle)
    }

    fn send_again(&mut self, now: Time, index: usize) -> Outgoing {
        let snapshot = self.rate.on_sent(now, false);
        let segment = self.board.resend(now, index, snapshot);
        if matches!(self.recovery, Recovery::Loss(_)) {
            self.first_repair.get_or_insert(now);
        }
        self.counters.resent_segments += 1;
        self.counters.resent_bytes += u64::from(segment.len) - u64::from(segment.fin);
        self.after_sending(now, &segment, false)
    }

    /// New data where the receive window has room for it, else the last segment again.
    fn send_tail_probe(&mut self, now: Time) -> Option<Outgoing> {
        self.probe = TailProbe::None;
        let len = self.buffered().saturating_sub(self.board.nxt()).min(self.mss);
        let outgoing = if len > 0 && self.board.nxt() + len <= self.window.edge {
            self.probe = TailProbe::New(self.board.nxt() + len);
            self.send_new(now, len)
        } else {
            let last = self.board.last_outstanding()?;
            self.probe = TailProbe::Repeated(self.board.nxt());
            self.send_again(now, last)
        };
        self.counters.tail_probes += 1;
        self.timers.tail_probe = None;
        Some(outgoing)
    }

    fn send_window_probe(&mut self, now: Time) -> Outgoing {
        self.counters.window_probes += 1;
        let room = self.window.edge.saturating_sub(self.board.nxt());
        let unsent = self.written.saturating_sub(self.board.nxt());
        if self.board.is_empty() && room.min(unsent) > 0 {
            // A window too small for a full segment for this long is used as it is.
            return self.send_new(now, room.min(unsent).min(self.mss));
        }
        Outgoing::WindowProbe { start: self.board.una() - 1 }
    }

    fn after_sending(&mut self, now: Time, segment: &Segment, from_idle: bool) -> Outgoing {
        let payload = segment.len - u32::from(segment.fin);
        self.counters.segments += 1;
        self.counters.bytes += u64::from(payload);
        if let Some(rate) = self.decision.pacing {
            self.pacer.on_sent(now, Bytes::new(u64::from(segment.len)), rate, Bytes::new(self.mss));
        }
        // The timer waits for the first segment that is not acknowledged: it starts anew when that one leaves again.
        if self.timers.retransmission.is_none() || segment.start == self.board.una() && !self.duplicates.timer_runs_on()
        {
            self.timers.retransmission = Some(now + self.rtt.rto());
        }
        self.timers.persist = None;
        self.arm_tail_probe(now);
        self.tell(
            now,
            &Signal::Sent(Sent {
                len: Bytes::new(u64::from(segment.len)),
                in_flight: Bytes::new(self.board.in_flight()),
                retransmission: segment.resent,
                from_idle,
            }),
        );
        Outgoing::Segment { start: segment.start, payload, fin: segment.fin, push: segment.end() >= self.written }
    }

    /// A probe takes the timer's place while nothing is known to be missing (RFC 8985, section 7.2).
    fn arm_tail_probe(&mut self, now: Time) {
        self.timers.tail_probe = None;
        let quiet = self.loss_recovery == LossRecovery::Rack
            && self.recovery == Recovery::Open
            && self.board.sacked_segments() == 0
            && !self.board.is_empty();
        let (Some(srtt), true, TailProbe::None) = (self.rtt.srtt(), quiet, self.probe) else { return };
        // A lone segment may meet a delayed acknowledgement; the timeout's floor covers that.
        let slack = if self.board.len() == 1 { self.rtt.rto().saturating_sub(srtt) } else { PROBE_SLACK };
        let at = now + srtt * 2 + slack;
        self.timers.tail_probe = Some(self.timers.retransmission.map_or(at, |timeout| at.min(timeout)));
    }

    /// Shows the law what happened and asks what follows from it.
    pub(crate) fn tell(&mut self, now: Time, signal: &Signal) {
        self.law.sense(now, signal);
        self.ask(now);
    }

    /// Asks the law what follows from what it has been shown.
    fn ask(&mut self, now: Time) {
        self.decision = self.law.decide(now);
        self.timers.revisit = self.decision.revisit;
    }
}
