//! The production side: agents on real interfaces.
