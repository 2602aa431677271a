//! What the crate promises, tried from outside: one program for all of it.

#[path = "../arrivals/mod.rs"]
mod arrivals;
mod bottleneck;
mod cell;
mod come_and_go;
mod first_light;
mod fork;
mod losses;
mod mesh;
mod mesh_olsr;
mod multihop;
#[path = "../oal/mod.rs"]
mod oal;
mod oal_labels;
mod oal_world;
mod one_silence;
mod pbe;
mod recorded;
mod retransmission_timer;
mod shared_channel;
mod short_queue;
mod small_queues;
#[path = "../support/mod.rs"]
mod support;
mod terminal;
mod timestamps;
mod traffic;
mod upload_collapse;
mod uploads;
