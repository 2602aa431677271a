//! A law is told of each segment that counts as lost, and when the copy that was lost had left.

use crate::harness;

use harness::net::{Net, Way, law_called};
use lasthop_laws::{Decision, LossRecovery, SenderLaw};
use lasthop_signals::Signal;
use lasthop_transport::Config;
use lasthop_units::{Bytes, Span, Time};
use lasthop_wire::tcp::TcpHeader;
use std::sync::{Arc, Mutex};

type Departures = Arc<Mutex<Vec<Time>>>;

/// CUBIC that notes what it is told of losses.
#[derive(Clone)]
struct Noting {
    law: Box<dyn SenderLaw>,
    lost: Departures,
}

impl SenderLaw for Noting {
    fn sense(&mut self, now: Time, signal: &Signal) {
        if let Signal::Lost(lost) = signal {
            assert_eq!(lost.len, Bytes::new(1448));
            self.lost.lock().expect("not poisoned").push(lost.sent_at);
        }
        self.law.sense(now, signal);
    }

    fn decide(&self, now: Time) -> Decision {
        self.law.decide(now)
    }
}

/// Departures of what the network loses of a transfer of 400 segments where it loses the data segments of these numbers, what
/// the law is told, and how many segments leave again.
fn losses(which: impl Fn(u64) -> bool + 'static, loss_recovery: LossRecovery) -> (Vec<Time>, Vec<Time>, u64) {
    let (gone, told) = (Departures::default(), Departures::default());
    let config = Config { loss_recovery, ..Config::default() };
    let note = gone.clone();
    let mut count = 0;
    let network = Box::new(move |now: Time, way: Way, header: &mut TcpHeader| {
        if way == Way::ToB && header.payload_len > 0 {
            count += 1;
            if which(count) {
                note.lock().expect("not poisoned").push(now);
                return Vec::new();
            }
        }
        vec![Span::from_millis(20)]
    });
    let law = Box::new(Noting { law: law_called("cubic"), lost: told.clone() });
    let mut net = Net::new(law, config, config, network);
    net.a.write(Bytes::new(400 * 1448));
    net.run_until(Time::ZERO + Span::from_secs(60), |net| net.a.acked() == Bytes::new(400 * 1448));
    net.check_complete(Bytes::new(400 * 1448));
    let sorted = |times: &Departures| {
        let mut times = times.lock().expect("not poisoned").clone();
        times.sort();
        times
    };
    (sorted(&gone), sorted(&told), net.a.stats().segments_retransmitted)
}

#[test]
fn losses_in_and_out_of_recovery_carry_their_departure_time() {
    // Single ones, a burst, and every fifth of what follows it, retransmissions and losses found during recovery among them.
    let (gone, told, again) = losses(
        |count| count == 40 || (100..108).contains(&count) || (120..200).contains(&count) && count % 5 == 0,
        LossRecovery::Rack,
    );
    assert_eq!(gone.len(), 25);
    let mut rest = told.clone();
    for at in &gone {
        let index = rest.iter().position(|told| told == at).unwrap_or_else(|| panic!("not told of {at:?}: {told:?}"));
        rest.remove(index);
    }
    // One is taken for lost that is not.
    assert!(rest.len() <= 1, "{rest:?}");
    assert_eq!(told.len() as u64, again, "what counts as lost leaves again, and nothing else does");
}

#[test]
fn without_sack_all_of_the_window_counts_as_lost() {
    let (gone, told, again) = losses(|count| count == 60, LossRecovery::GoBackN);
    assert_eq!(gone.len(), 1);
    assert!(told.len() > 1 && told[0] == gone[0], "{told:?} for {gone:?}");
    assert!(again <= told.len() as u64, "what has come meanwhile does not leave again");
}
