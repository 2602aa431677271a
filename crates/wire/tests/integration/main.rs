//! What the crate promises, tried from outside: one program for all of it.

mod dci;
mod monitor_props;
mod nl80211;
mod olsr_props;
mod props;
mod tunnel;
