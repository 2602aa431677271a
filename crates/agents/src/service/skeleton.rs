//! Skeletons of eBPF programs, as the build script generates them of `bpf/`.

use libbpf_rs::OpenObject;
use std::mem::MaybeUninit;

/// Declares the module `skeleton` with the skeleton of this name, and takes these of its types.
macro_rules! skeleton {
    ($name:literal, $($type:ident),+) => {
        #[allow(clippy::undocumented_unsafe_blocks, clippy::all, missing_docs, unsafe_op_in_unsafe_fn)]
        mod skeleton {
            include!(concat!(env!("OUT_DIR"), "/", $name, ".skel.rs"));
        }
        use skeleton::{$($type),+};
    };
}
pub(crate) use skeleton;

/// Room for the object that a skeleton borrows for as long as it lives. A few octets a load are the price of owning both.
pub(crate) fn room() -> &'static mut MaybeUninit<OpenObject> {
    Box::leak(Box::new(MaybeUninit::uninit()))
}
