//! What the crate promises, tried from outside: one program for all of it.

mod broken;
mod capacity;
mod cell;
mod props;
mod shipped;
mod synthetic_trace;
mod trace;
mod traces;
mod wifi;
