//! What the crate promises, tried from outside: one program for all of it.

mod bianchi;
mod cell;
mod cell_decoder;
mod cell_handover;
mod cell_properties;
#[path = "../common/mod.rs"]
mod common;
mod edca;
mod links;
mod mac80211;
mod mpdus;
mod multihop;
mod properties;
