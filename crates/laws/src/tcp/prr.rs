//! Proportional rate reduction: how a window comes down during recovery.
//! Source:     RFC 6937 section 3 with the bound of Linux (`tcp_cwnd_reduction`), which RFC 9937 has since adopted.
//! Equations:  above ssthresh:  sndcnt = ceil(prr_delivered * ssthresh / RecoverFS) - prr_out
//!             below:           sndcnt = min(ssthresh - pipe, max(prr_delivered - prr_out, delivered) (+ MSS on progress))
//!             cwnd = pipe + sndcnt
//! Symbols:    prr_delivered -> `delivered`, prr_out -> `out`, RecoverFS -> `prior`, ssthresh -> `target`
//! Deviations: RecoverFS is the window before the loss, as in Linux, not the flight size.
//! Validity:   needs SACK.     Checked by: tests::*

use lasthop_signals::Ack;
use lasthop_units::Bytes;

/// One recovery's reduction.
#[derive(Clone, Copy, Debug)]
pub(super) struct Prr {
    target: Bytes,
    prior: Bytes,
    delivered: Bytes,
    out: Bytes,
}

impl Prr {
    /// A reduction from the window `prior` to `target`.
    pub(super) fn new(prior: Bytes, target: Bytes) -> Prr {
        Prr { target, prior, delivered: Bytes::ZERO, out: Bytes::ZERO }
    }

    /// A segment of `len` left.
    pub(super) fn on_sent(&mut self, len: Bytes) {
        self.out += len;
    }

    /// The window with `in_flight` in the network and `delivered` newly delivered; `progress`: the cumulative
    /// acknowledgement advanced and nothing more was marked lost.
    fn window(&mut self, in_flight: Bytes, delivered: Bytes, progress: bool, mss: Bytes) -> Bytes {
        self.delivered += delivered;
        let may_send = if in_flight > self.target {
            // In 128 bits: a product of two amounts.
            let due = u128::from(self.delivered.get()) * u128::from(self.target.get());
            let due = due.div_ceil(u128::from(self.prior.get().max(1)));
            Bytes::new(u64::try_from(due).unwrap_or(u64::MAX)).saturating_sub(self.out)
        } else {
            let owed = self.delivered.saturating_sub(self.out).max(delivered);
            let owed = if progress { owed + mss } else { owed };
            owed.min(self.target - in_flight)
        };
        // Entering recovery always sends one segment: the fast retransmission.
        let least = if self.out.is_zero() { mss } else { Bytes::ZERO };
        in_flight + may_send.max(least)
    }

    /// The window when recovery begins, before an ACK is counted.
    pub(super) fn begin(&self, in_flight: Bytes, mss: Bytes) -> Bytes {
        in_flight + mss
    }

    /// The window after `ack`; `None` if the ACK delivered nothing, which leaves the window as it was.
    pub(super) fn on_ack(&mut self, ack: &Ack) -> Option<Bytes> {
        let progress = !ack.newly_acked.is_zero() && ack.newly_lost.is_zero();
        (!ack.newly_delivered.is_zero()).then(|| self.window(ack.in_flight, ack.newly_delivered, progress, ack.mss))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: Bytes = Bytes::new(1000);

    #[test]
    fn seven_tenths_leave_while_the_flight_is_above_the_target() {
        // 100 segments, one lost, CUBIC's target of 70: 99 are delivered one by one.
        let mut prr = Prr::new(MSS * 100, MSS * 70);
        let (mut in_flight, mut sent) = (MSS * 99, 0);
        for _ in 0..99 {
            in_flight -= MSS;
            let window = prr.window(in_flight, MSS, false, MSS);
            while in_flight + MSS <= window {
                in_flight += MSS;
                prr.on_sent(MSS);
                sent += 1;
            }
        }
        assert!((69..=70).contains(&sent), "{sent}");
        assert!(in_flight >= MSS * 69 && in_flight <= MSS * 70, "{in_flight}");
    }

    #[test]
    fn below_the_target_it_grows_by_at_most_the_delivery_plus_one() {
        let mut prr = Prr::new(MSS * 100, MSS * 50);
        prr.on_sent(MSS);
        assert_eq!(prr.window(MSS * 10, MSS * 2, false, MSS), MSS * 12);
        assert_eq!(prr.window(MSS * 10, MSS * 2, true, MSS), MSS * 14, "3 owed by the sums, 1 for progress");
        assert_eq!(prr.window(MSS * 49, MSS * 9, true, MSS), MSS * 50, "never beyond the target");
    }

    #[test]
    fn the_first_acknowledgement_sends_a_segment_whatever_the_sums() {
        let mut prr = Prr::new(MSS * 100, MSS * 50);
        assert_eq!(prr.window(MSS * 96, MSS, false, MSS), MSS * 97);
    }
}
