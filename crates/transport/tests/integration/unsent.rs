//! What was written and has not been in a packet yet, whatever transport carries a stream.

use crate::harness;

use harness::abuse::{LAWS, ends};
use lasthop_units::{Span, Time};
use lasthop_wire::datagram::Datagram;

#[test]
fn unsent_is_what_no_packet_has_carried() {
    for law in LAWS {
        let (mut sender, mut receiver) = ends(law, 1);
        let (mut now, mut left, mut written, mut out) = (Time::ZERO, 0u64, 0u64, Vec::new());
        let mut page = vec![0; 1 << 16];
        for step in 0..4_000u64 {
            if step.is_multiple_of(1_000) && step < 3_000 {
                written += sender.write(&[7; 50_000]) as u64;
            }
            // Nothing is lost on the way, so each packet is the first with its payload.
            while sender.poll_transmit(now, &mut out) {
                let bytes = std::mem::take(&mut out);
                let datagram = Datagram::decode(&bytes).expect("our own");
                left += match &datagram {
                    Datagram::Atp { payload, .. } | Datagram::Segment { payload, .. } => payload.len() as u64,
                    _ => panic!("no transport sends that"),
                };
                assert_eq!(sender.unsent(), written - left, "{law:?} at step {step}");
                receiver.on_datagram(now, &datagram);
            }
            while receiver.read(now, &mut page) > 0 {}
            while receiver.poll_transmit(now, &mut out) {
                sender.on_datagram(now, &Datagram::decode(&std::mem::take(&mut out)).expect("our own"));
            }
            now += Span::from_millis(1);
            sender.on_timeout(now);
            receiver.on_timeout(now);
        }
        assert_eq!((left, written, sender.unsent()), (150_000, 150_000, 0), "{law:?}");
        assert_eq!(sender.contradicted(), None);
    }
}
