//! The virtual-time world: deterministic, and as fast as one core allows.

mod agenda;

pub use agenda::{Agenda, Component};
