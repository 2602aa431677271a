//! Any bytes as a capture file, and its frames through the aggregation meter: nothing panics, no frame lasts longer than the
//! longest, and every MPDU is counted once.
#![no_main]

use lasthop_laws::aggregation::meter::{Grouping, LONGEST, Meter, Tally};
use lasthop_units::Time;
use lasthop_wire::monitor::Captured;
use lasthop_wire::pcap::Stream;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let mut capture = Stream::of(bytes);
    let (mut meter, mut tally, mut good, mut now) = (Meter::new(Grouping::Air), Tally::default(), 0u64, Time::ZERO);
    let mut add = |frame: &lasthop_laws::aggregation::meter::Frame| {
        assert!(frame.end.since(frame.start) <= LONGEST);
        tally.add(frame);
    };
    while let Ok(Some(packet)) = capture.packet() {
        let Ok(captured) = Captured::parse(packet.bytes, packet.original as usize) else { continue };
        let Some(mpdu) = captured.mpdu() else { continue };
        // Captures of broken clocks exist; the meter is promised one that does not go back.
        now = now.max(packet.at);
        good += u64::from(mpdu.fcs_good);
        meter.receive(now, &mpdu, &mut add);
    }
    meter.finish(&mut add);
    assert_eq!(tally.received.sum(), good);
});
