//! The wall-clock world: real Linux stacks over emulated hops.
