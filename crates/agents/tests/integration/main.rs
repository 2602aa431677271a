//! What the crate promises, tried from outside: one program for all of it.

mod ap_netns;
mod eviction;
mod gateway;
mod host_bounds;
mod parity;
mod pbe_parity;
mod per_hop_protocol;
mod proxy_netns;
mod relay_measure;
mod relay_stamp;
mod station_transparent;
#[path = "../support/mod.rs"]
mod support;
