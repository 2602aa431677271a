//! Decision trees of any bytes: nothing panics, what is understood survives being written and read again, and decides.
#![no_main]

use lasthop_laws::oal::features::FEATURES;
use lasthop_laws::oal::tree::Tree;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(tree) = Tree::decode(bytes) {
        assert_eq!(tree.encode(), bytes);
        for value in [f32::NAN, f32::NEG_INFINITY, -1.0, 0.0, 1.0, 1e9, f32::INFINITY] {
            tree.classify(&[value; FEATURES.len()]);
        }
    }
});
