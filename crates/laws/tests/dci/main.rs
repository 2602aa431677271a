//! Whatever a terminal decodes of its cell, PBE's receiver tells no more than the cell's carriers can carry.

mod history;

use proptest::prelude::*;

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

#[test]
fn what_is_fed_is_told_of() {
    // Forty subframes of 100 PRB, all of them the terminal's.
    let subframe = [96, 0, 64, 100, 1, 1, 1, 100, 0, 1, 28 << 3, 0, 0, 1, 0];
    let bytes: Vec<u8> = std::iter::once(0).chain(subframe.into_iter().cycle().take(40 * subframe.len())).collect();
    assert_eq!(history::play(&bytes), 40);
}
