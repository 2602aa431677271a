//! Whatever a terminal decodes of its cell, PBE's receiver and the meter of logs tell no more than the cell's carriers can carry.

mod history;
mod log;
mod recorded;

use lasthop_wire::dci::Format;
use proptest::prelude::*;
use std::path::Path;

/// Subframes one after the other, mostly, with arrivals between them.
fn bytes() -> impl Strategy<Value = Vec<u8>> {
    let block = (any::<u8>(), 0u32..100_000).prop_map(|(coding, bits)| [&[coding][..], &bits.to_le_bytes()].concat());
    let dci = (any::<u8>(), 0u8..=110, any::<u8>(), 0u8..200).prop_flat_map(move |(rnti, prb, process, shape)| {
        let shape = shape / 24 * 24;
        let blocks = prop::collection::vec(block.clone(), usize::from(shape % 3));
        blocks.prop_map(move |blocks| [&[rnti, prb, process, shape][..], &blocks.concat()].concat())
    });
    let dcis = prop::collection::vec(dci, 0..6);
    let subframe = (prop::sample::select(vec![96u8, 97, 98, 99]), any::<u8>(), 0u8..250, dcis).prop_map(
        |(kind, carrier, own, dcis)| {
            let head = [kind, carrier, 64, 100, own, dcis.len() as u8];
            [&head[..], &dcis.concat()].concat()
        },
    );
    let other = prop::collection::vec(any::<u8>(), 1..8);
    let event = prop_oneof![8 => subframe, 1 => other];
    (any::<u8>(), prop::collection::vec(event, 0..200)).prop_map(|(settings, events)| {
        let mut bytes = events.concat();
        bytes.insert(0, settings);
        bytes
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

    #[test]
    fn any_subframes_leave_a_capacity_that_the_carriers_have(bytes in bytes()) {
        history::play(&bytes);
    }

    #[test]
    fn so_do_any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..3000)) {
        history::play(&bytes);
    }
}

/// The logs that are written for the readers' tests.
fn written(name: &str) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../wire/tests/dci").join(name);
    std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

const LOGS: [(Format, &str, u64); 4] = [
    (Format::NgScope, "ngscope_dl.dciLog", 60),
    (Format::NgScope, "ngscope_ul.dciLog", 30),
    (Format::NgScopeJson, "ngscope_dl.json", 60),
    (Format::NrScope, "nrscope.csv", 143),
];

#[test]
fn every_slot_of_a_log_is_measured() {
    for (format, name, slots) in LOGS {
        assert_eq!(log::play(format, &written(name)), slots, "{name}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn logs_with_wrong_octets_are_measured(which in 0usize..4, wrong in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..20), cut: prop::sample::Index) {
        let (format, name, _) = LOGS[which];
        let mut bytes = written(name);
        for (at, octet) in wrong {
            let at = at.index(bytes.len());
            // Mostly digits, so that rows stay rows.
            bytes[at] = if bytes[at].is_ascii_digit() { b'0' + octet % 10 } else { octet };
        }
        bytes.truncate(cut.index(bytes.len() + 1));
        log::play(format, &bytes);
    }
}

#[test]
fn what_is_fed_is_told_of() {
    // Forty subframes of 100 PRB, all of them the terminal's.
    let subframe = [96, 0, 64, 100, 1, 1, 1, 100, 0, 1, 28 << 3, 0, 0, 1, 0];
    let bytes: Vec<u8> = std::iter::once(0).chain(subframe.into_iter().cycle().take(40 * subframe.len())).collect();
    assert_eq!(history::play(&bytes), 40);
}
