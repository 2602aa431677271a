//! How often connections enter states of congestion control: states may be over before a poll sees them.
//!
//! `bpf/cong_state.bpf.c` counts at the kernel's tracepoint; [`CaCounter`] attaches it and reads its map.

use super::error::Error;
use lasthop_wire::tcp_info::CaState;
use std::collections::HashMap;

/// How often a connection has entered each state since counting began.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CaEntries([u32; 5]);

impl CaEntries {
    /// Entries into each state, Open to Loss.
    pub const fn new(times: [u32; 5]) -> CaEntries {
        CaEntries(times)
    }

    /// How often it has entered this state.
    pub fn of(&self, state: CaState) -> u32 {
        self.0[usize::from(state.number())]
    }

    /// What has been added since `before`.
    pub fn since(&self, before: &CaEntries) -> CaEntries {
        CaEntries(std::array::from_fn(|state| self.0[state].saturating_sub(before.0[state])))
    }

    /// `struct entered` of the program.
    fn read(bytes: &[u8]) -> Option<CaEntries> {
        let word = |state: usize| {
            let field = bytes.get(state * 4..state * 4 + 4)?;
            Some(u32::from_ne_bytes(field.try_into().ok()?))
        };
        let mut times = [0; 5];
        for (state, times) in times.iter_mut().enumerate() {
            *times = word(state)?;
        }
        Some(CaEntries(times))
    }
}

/// Entries by the cookie of their connection.
pub(super) type ByCookie = HashMap<u64, CaEntries>;

#[cfg(not(feature = "bpf"))]
mod counter {
    use super::{ByCookie, Error};
    use crate::service;

    /// What would count, in a build without eBPF.
    pub struct CaCounter(std::convert::Infallible);

    impl CaCounter {
        /// Always [`service::Error::NotBuilt`].
        ///
        /// # Errors
        /// Always.
        pub fn attach() -> Result<CaCounter, Error> {
            Err(service::Error::NotBuilt.into())
        }

        pub(in crate::host) fn read_into(&self, _: &mut ByCookie) -> Result<(), Error> {
            match self.0 {}
        }
    }
}

#[cfg(feature = "bpf")]
mod counter {
    use super::{ByCookie, CaEntries, Error};
    use crate::service::privileges;
    use crate::service::said::Captured;
    use crate::service::skeleton::{room, skeleton};
    use libbpf_rs::skel::{OpenSkel, SkelBuilder};
    use libbpf_rs::{Link, MapCore, MapFlags};

    skeleton!("cong_state", CongStateSkel, CongStateSkelBuilder);

    /// Counts for as long as it lives.
    pub struct CaCounter {
        // Dropped first: nothing is to run while the map goes away.
        _link: Link,
        skeleton: CongStateSkel<'static>,
    }

    /// Connections that are read at once.
    const BATCH: u32 = 1024;

    impl CaCounter {
        /// Loads the program and attaches it to the tracepoint. Afterwards the process needs no more than CAP_BPF, and that
        /// before Linux 5.19 only.
        ///
        /// # Errors
        /// [`Error::NotCounting`], with the reason and what to do about it.
        pub fn attach() -> Result<CaCounter, Error> {
            let said = Captured::begin();
            let failed = |error: libbpf_rs::Error| {
                let why = match privileges::may_load() {
                    false => "it needs root, or CAP_BPF and CAP_PERFMON".to_owned(),
                    true => format!("{error:#} {}", said.text()).trim_end().to_owned(),
                };
                Error::NotCounting { why }
            };
            let skeleton = CongStateSkelBuilder::default().open(room()).and_then(OpenSkel::load).map_err(failed)?;
            let link = skeleton.progs.cong_state.attach().map_err(failed)?;
            Ok(CaCounter { _link: link, skeleton })
        }

        /// Reads what has been counted so far.
        pub(in crate::host) fn read_into(&self, entries: &mut ByCookie) -> Result<(), Error> {
            entries.clear();
            let map = &self.skeleton.maps.entered;
            let failed = |error: libbpf_rs::Error| Error::NotCounting { why: format!("its map: {error:#}") };
            for (key, value) in map.lookup_batch(BATCH, MapFlags::ANY, MapFlags::ANY).map_err(failed)? {
                if let (Ok(cookie), Some(read)) = (key.try_into(), CaEntries::read(&value)) {
                    entries.insert(u64::from_ne_bytes(cookie), read);
                }
            }
            Ok(())
        }
    }
}

pub use counter::CaCounter;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_read_as_the_program_writes_them() {
        let words: Vec<u8> = [9_u32, 1, 2, 3, 4, 3].iter().flat_map(|word| word.to_ne_bytes()).collect();
        let entries = CaEntries::read(&words).expect("24 octets");
        assert_eq!(CaState::ALL.map(|state| entries.of(state)), [9, 1, 2, 3, 4]);
        let before = CaEntries([8, 0, 2, 1, 5]);
        assert_eq!(entries.since(&before), CaEntries([1, 1, 0, 2, 0]));
        assert_eq!(CaEntries::read(&words[..19]), None);
    }
}
