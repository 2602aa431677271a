//! Congestion windows at every acknowledgement and every loss, as the kernel's trace points show them.

use lasthop_agents::service::program_info::run_time;
use lasthop_units::Span;
use libbpf_rs::skel::{OpenSkel, SkelBuilder};
use libbpf_rs::{Link, MapCore, MapFlags};
use std::mem::MaybeUninit;

#[allow(clippy::undocumented_unsafe_blocks, clippy::all, missing_docs, unsafe_op_in_unsafe_fn)]
mod skeleton {
    include!(concat!(env!("OUT_DIR"), "/watch.skel.rs"));
}

use skeleton::{WatchSkel, WatchSkelBuilder};

/// Watches as long as it lives.
pub struct Watch {
    _links: Vec<Link>,
    skeleton: WatchSkel<'static>,
}

/// `struct watched` of the program: what was seen of a connection.
#[derive(Clone, Copy, Debug, Default)]
pub struct Seen {
    /// Acknowledgements in state Open, and those of them with a window below or above the bounds, or with a higher ssthresh than these.
    pub open: u64,
    pub below: u64,
    pub above: u64,
    pub slow_start: u64,
    pub losses: u64,
    /// The most segments that one acknowledgement set free while it raised the window.
    pub freed: u32,
    /// Mean window at a loss, segments, and mean time between two.
    pub cwnd_at_loss: f64,
    pub between_losses_s: f64,
}

impl Watch {
    pub fn begin() -> Watch {
        let object = Box::leak(Box::new(MaybeUninit::uninit()));
        let open = WatchSkelBuilder::default().open(object).expect("a program");
        let mut skeleton = open.load().expect("a kernel with BTF");
        let links = vec![
            skeleton.progs.watch_ack.attach().expect("a trace point"),
            skeleton.progs.watch_state.attach().expect("a trace point"),
            skeleton.maps.bare.attach_struct_ops().expect("a kernel with struct_ops"),
        ];
        Watch { _links: links, skeleton }
    }

    /// Runs of the program that calls CUBIC and does nothing else (congestion control `lhbare`), and their time.
    pub fn bare(&self) -> (u64, Span) {
        run_time(&self.skeleton.progs.bare_cong_avoid).expect("a program")
    }

    /// Watches a connection anew, by its socket's cookie.
    pub fn watch(&self, cookie: u64, lower: u32, upper: u32) {
        let mut value = [0; 96];
        value[..4].copy_from_slice(&lower.to_ne_bytes());
        value[4..8].copy_from_slice(&upper.to_ne_bytes());
        self.skeleton.maps.watched.update(&cookie.to_ne_bytes(), &value, MapFlags::ANY).expect("room");
    }

    /// What was seen of it since.
    pub fn seen(&self, cookie: u64) -> Seen {
        let value =
            self.skeleton.maps.watched.lookup(&cookie.to_ne_bytes(), MapFlags::ANY).expect("a map").expect("watched");
        let word = |place: usize| u64::from_ne_bytes(value[place * 8..place * 8 + 8].try_into().expect("eight octets"));
        let [losses, sum, first, last] = [6, 7, 8, 9].map(word);
        Seen {
            open: word(2),
            below: word(3),
            above: word(4),
            slow_start: word(5),
            losses,
            freed: u32::from_ne_bytes(value[92..96].try_into().expect("four octets")),
            cwnd_at_loss: sum as f64 / losses as f64,
            between_losses_s: (last - first) as f64 / 1e9 / losses.saturating_sub(1) as f64,
        }
    }
}
