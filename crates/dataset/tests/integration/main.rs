//! What the crate promises, tried from outside: one program for all of it.

mod files;
mod study;
#[path = "../support/mod.rs"]
mod support;
