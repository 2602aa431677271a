//! The kernel's side of bounds: CUBIC within them, for the connections of a cgroup's programs.
//!
//! `bpf/bounds.bpf.c` has the programs. Every agent registers the congestion control under a name of its own, so that several may
//! work in the network namespaces of one kernel. It goes with the agent, however that ends; connections that have it by then
//! keep it and are plain CUBIC.

use super::Way;
use super::error::Error;
use crate::service::program_info::run_time;
use crate::service::said::Captured;
use crate::service::shared_memory::shared;
use crate::service::skeleton::{room, skeleton};
use crate::service::{bpf_links, cgroup, netns};
use lasthop_laws::Bounds;
use lasthop_units::{Span, Time};
use libbpf_rs::skel::{OpenSkel, SkelBuilder};
use libbpf_rs::{Link, MapCore, MapFlags};
use std::collections::HashMap;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

skeleton!("bounds", BoundsSkel, BoundsSkelBuilder);

/// What is told of a kernel without struct_ops.
const LESSER: &str = "upper bounds only, by a clamp that acts once a round trip: bounds in full need struct_ops and CUBIC's kernel \
                      functions (Linux 6.4 with BTF); a connection keeps its last clamp if the agent is killed";

/// Connections are adopted, and bounded, as long as this lives.
pub struct Guard {
    // The links go first: nobody is to be adopted while the rest goes.
    links: Vec<Link>,
    skeleton: BoundsSkel<'static>,
    way: Way,
    /// What the congestion control of adopted connections is called.
    name: String,
    /// What the kernel has been told, by the socket's cookie.
    told: HashMap<u64, Bounds<u32>>,
}

impl Guard {
    /// Begins to adopt the connections over CUBIC that programs of a cgroup (version 2) make from now on, in the network namespace
    /// of the calling thread. Without `way` by the better one that the kernel has; `say` is told if that is the lesser.
    ///
    /// # Errors
    /// [`Error::Load`] if the kernel takes no way, or not this one; [`Error::Cgroup`].
    pub fn begin(cgroup: &Path, way: Option<Way>, say: &dyn Fn(&str)) -> Result<Guard, Error> {
        match way {
            Some(way) => Guard::by(cgroup, way),
            None => Guard::by(cgroup, Way::Within).or_else(|first| match Guard::by(cgroup, Way::Clamp) {
                Ok(guard) => {
                    say(&format!("{first}\n{LESSER}"));
                    Ok(guard)
                }
                Err(_) => Err(first),
            }),
        }
    }

    fn by(cgroup: &Path, way: Way) -> Result<Guard, Error> {
        let directory = cgroup::open(cgroup)?;
        let said = Captured::begin();
        let failed = |error| Error::Load { explained: said.explain(&error) };
        let mut open = BoundsSkelBuilder::default().open(room()).map_err(failed)?;
        let name = name();
        let constants = open.maps.rodata_data.as_deref_mut().expect("the programs have constants");
        constants.netns = netns::cookie()?;
        constants.name.iter_mut().zip(name.bytes()).for_each(|(to, from)| *to = from as i8);
        let within = way == Way::Within;
        open.progs.adopt.set_autoload(within);
        open.progs.clamp.set_autoload(!within);
        let programs = &mut open.progs;
        for program in [
            &mut programs.within_init,
            &mut programs.within_ssthresh,
            &mut programs.within_cong_avoid,
            &mut programs.within_set_state,
            &mut programs.within_cwnd_event,
            &mut programs.within_pkts_acked,
            &mut programs.within_undo_cwnd,
        ] {
            program.set_autoload(within);
        }
        open.maps.within.set_autocreate(within).map_err(failed)?;
        if within {
            open.struct_ops.within_mut().name.iter_mut().zip(ended(&name)).for_each(|(to, from)| *to = from as i8);
        }
        let mut skeleton = open.load().map_err(failed)?;
        let mut links = Vec::new();
        if within {
            links.push(skeleton.maps.within.attach_struct_ops().map_err(failed)?);
        }
        let program = if within { &skeleton.progs.adopt } else { &skeleton.progs.clamp };
        links.push(cgroup::attach(program, &directory, cgroup)?);
        // The program that adopts connections goes before the congestion control that it gives them.
        links.reverse();
        let name = if within { name } else { "cubic".to_owned() };
        Ok(Guard { links, skeleton, way, name, told: HashMap::new() })
    }

    /// How windows are bounded.
    pub fn way(&self) -> Way {
        self.way
    }

    /// True if a connection with this congestion control was adopted, or would be.
    pub fn holds(&self, congestion: &str) -> bool {
        congestion == self.name
    }

    /// Tries whether bounds can be set with the privileges that are left.
    ///
    /// # Errors
    /// [`Error::Unprivileged`].
    pub fn check(&mut self) -> Result<(), Error> {
        // No socket has this cookie.
        let tried = self.set(0, Some(Bounds { lower: 2, upper: 2 })).and_then(|()| self.set(0, None));
        tried.map_err(|error| Error::Unprivileged(Box::new(error)))
    }

    /// True if connections are adopted still: nobody has detached the program, or removed its cgroup.
    pub fn is_attached(&self) -> bool {
        bpf_links::is_attached(&self.links[0])
    }

    /// Bounds a connection, in segments, by its socket's cookie; `None` lets it go.
    ///
    /// # Errors
    /// [`Error::Map`].
    pub fn set(&mut self, cookie: u64, bounds: Option<Bounds<u32>>) -> Result<(), Error> {
        if self.told.get(&cookie) == bounds.as_ref() {
            return Ok(());
        }
        let (map, key) = (&self.skeleton.maps.bounds, cookie.to_ne_bytes());
        match bounds {
            Some(Bounds { lower, upper }) => {
                let upper = upper.max(2);
                let mut value = [0; 8];
                value[..4].copy_from_slice(&lower.min(upper).to_ne_bytes());
                value[4..].copy_from_slice(&upper.to_ne_bytes());
                map.update(&key, &value, MapFlags::ANY).map_err(Error::Map)?;
                self.told.insert(cookie, Bounds { lower, upper });
            }
            None => {
                map.delete(&key).map_err(Error::Map)?;
                self.told.remove(&cookie);
            }
        }
        self.word(|data| &data.changes).fetch_add(1, Ordering::Release);
        Ok(())
    }

    /// Bounds hold until then (`CLOCK_MONOTONIC`).
    pub fn hold_until(&self, time: Time) {
        self.word(|data| &data.until).store(time.as_nanos() / Span::from_micros(1).as_nanos(), Ordering::Relaxed);
    }

    /// Connections that were adopted so far.
    pub fn adopted(&self) -> u64 {
        self.word(|data| &data.adopted).load(Ordering::Relaxed)
    }

    /// Runs and run time of the programs, by name, since they were loaded: counted while the kernel's statistics are on.
    ///
    /// # Errors
    /// [`Error::Service`].
    pub fn cost(&self) -> Result<Vec<(&'static str, u64, Span)>, Error> {
        let programs = &self.skeleton.progs;
        let each = [
            ("ssthresh", &programs.within_ssthresh),
            ("cong_avoid", &programs.within_cong_avoid),
            ("set_state", &programs.within_set_state),
            ("cwnd_event", &programs.within_cwnd_event),
            ("pkts_acked", &programs.within_pkts_acked),
            ("undo_cwnd", &programs.within_undo_cwnd),
        ];
        let cost = |(name, program)| run_time(program).map(|(runs, time)| (name, runs, time)).map_err(Error::from);
        each.into_iter().filter(|_| self.way == Way::Within).map(cost).collect()
    }

    /// A word that the programs and user space share.
    fn word(&self, of: impl Fn(&skeleton::types::bss) -> &u64) -> &AtomicU64 {
        shared(of(self.skeleton.maps.bss_data.as_deref().expect("the skeleton maps .bss")))
    }
}

/// A name for the congestion control that no other agent has: at most 15 octets.
fn name() -> String {
    format!("lasthop{:08x}", RandomState::new().build_hasher().finish() as u32)
}

/// A name as C has it.
fn ended(name: &str) -> impl Iterator<Item = u8> + '_ {
    name.bytes().chain([0])
}
