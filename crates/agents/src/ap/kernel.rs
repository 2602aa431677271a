//! The eBPF rewriter: loaded, its maps read and written, its programs attached.

use super::abi::{Counters, Key, Order, as_bytes, as_bytes_mut, from_bytes};
use super::attach::{self, Attachment};
use super::{Error, Method, privileges};
use lasthop_laws::oal::rwnd::Flow;
use lasthop_units::{Bytes, Span, Time};
use libbpf_rs::skel::{OpenSkel, SkelBuilder};
use libbpf_rs::{AsRawLibbpf, MapCore, MapFlags, ProgramInput, libbpf_sys};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, FromRawFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};

#[allow(clippy::undocumented_unsafe_blocks, clippy::all, missing_docs, unsafe_op_in_unsafe_fn)]
mod skeleton {
    include!(concat!(env!("OUT_DIR"), "/rwnd.skel.rs"));
}

use skeleton::{RwndSkel, RwndSkelBuilder};

/// How the program is loaded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Load {
    /// Octets of link-layer header on the device: 14 for Ethernet, 0 for devices without one.
    pub link_len: u32,
    /// Flows that the map holds; the least recently used one makes room.
    pub max_flows: u32,
    /// An older heartbeat means that everything passes untouched.
    pub age_limit: Span,
    /// Take the time from [`Rewriter::set_test_time`] instead of the kernel's clock.
    pub test_clock: bool,
}

impl Default for Load {
    fn default() -> Load {
        Load { link_len: 14, max_flows: 4096, age_limit: Span::from_millis(500), test_clock: false }
    }
}

/// Makes the kernel count runs and run time of eBPF programs for as long as the descriptor is open.
///
/// # Errors
/// [`Error::System`].
pub fn enable_statistics() -> Result<OwnedFd, Error> {
    // SAFETY: takes a number, gives a descriptor or an error.
    let fd = unsafe { libbpf_sys::bpf_enable_stats(libbpf_sys::BPF_STATS_RUN_TIME) };
    if fd < 0 {
        let source = io::Error::from_raw_os_error(-fd);
        return Err(Error::System { what: "eBPF statistics", source });
    }
    // SAFETY: a fresh descriptor, owned by nobody else.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Runs and run time of a program since it was loaded, counted while statistics are on.
///
/// # Errors
/// [`Error::Map`].
pub fn run_time(program: &impl AsFd) -> Result<(u64, Span), Error> {
    let info = attach::program_info(program.as_fd()).map_err(|error| Error::Map { source: error.into() })?;
    Ok((info.run_cnt, Span::from_nanos(info.run_time_ns)))
}

/// The direction a packet takes through the access point.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Direction {
    /// From a station.
    Uplink,
    /// To a station.
    Downlink,
}

/// The loaded eBPF rewriter. Dropping it detaches and unloads it.
pub struct Rewriter {
    // Dropped first: nothing is to run while maps go away.
    attachments: Vec<Attachment>,
    skeleton: RwndSkel<'static>,
}

impl Rewriter {
    /// Loads the programs into the kernel, attached to nothing.
    ///
    /// # Errors
    /// [`Error::Load`] with what the verifier said, if it said anything.
    pub fn load(load: Load) -> Result<Rewriter, Error> {
        let said = attach::Captured::begin();
        // The verifier refuses with EACCES too: only the capabilities tell.
        let allowed = privileges::has(privileges::BPF) || privileges::has(privileges::SYS_ADMIN);
        let failed = |error: libbpf_rs::Error| match allowed {
            false => Error::Permission { what: "eBPF" },
            true => Error::Load { source: error.into(), said: said.text() },
        };
        // The skeleton borrows its object for as long as it lives. A few octets a load are the price of owning both.
        let object = Box::leak(Box::new(MaybeUninit::uninit()));
        let mut open = RwndSkelBuilder::default().open(object).map_err(failed)?;
        if let Some(constants) = open.maps.rodata_data.as_deref_mut() {
            constants.link_len = load.link_len;
            constants.test_clock = load.test_clock;
        }
        open.maps.flows.set_max_entries(load.max_flows).map_err(failed)?;
        let skeleton = open.load().map_err(failed)?;
        let rewriter = Rewriter { attachments: Vec::new(), skeleton };
        let control = rewriter.control();
        control.age_limit_ns.store(load.age_limit.as_nanos(), Ordering::Relaxed);
        Ok(rewriter)
    }

    /// Attaches to both directions of an interface of this network namespace, until detached or dropped.
    ///
    /// # Errors
    /// [`Error::Attach`], [`Error::Busy`] if another agent holds the interface.
    pub fn attach(&mut self, ifindex: i32, method: Method) -> Result<Method, Error> {
        let programs = &mut self.skeleton.progs;
        let pair = [programs.rwnd_uplink.as_libbpf_object(), programs.rwnd_downlink.as_libbpf_object()];
        let (method, attachments) = attach::attach(ifindex, pair, method)?;
        self.attachments.extend(attachments);
        Ok(method)
    }

    /// Detaches from every interface.
    pub fn detach(&mut self) {
        self.attachments.clear();
    }

    /// Says that somebody who decides is alive at `now` (`CLOCK_MONOTONIC`).
    pub fn heartbeat(&self, now: Time) {
        self.control().heartbeat_ns.store(now.as_nanos(), Ordering::Relaxed);
    }

    /// Sets the program's time, if it was loaded with a test clock.
    pub fn set_test_time(&self, now: Time) {
        self.control().test_now_ns.store(now.as_nanos(), Ordering::Relaxed);
    }

    /// Every flow in the map, in the order of their keys.
    ///
    /// # Errors
    /// [`Error::Map`].
    pub fn flows(&self) -> Result<Vec<(Key, Flow)>, Error> {
        // Chunks of a quarter: a batch ends early when a bucket does not fit, and the kernel copies per bucket.
        let chunk = (self.skeleton.maps.flows.info().map_err(Error::map)?.info.max_entries / 4).max(64);
        let entries = self.skeleton.maps.flows.lookup_batch(chunk, MapFlags::ANY, MapFlags::ANY).map_err(Error::map)?;
        let mut flows: Vec<(Key, Flow)> =
            entries.filter_map(|(key, flow)| Some((from_bytes(&key)?, from_bytes(&flow)?))).collect();
        flows.sort_unstable_by_key(|(key, _)| *key);
        // An entry that moves between buckets' reads may show twice.
        flows.dedup_by_key(|(key, _)| *key);
        Ok(flows)
    }

    /// One flow.
    ///
    /// # Errors
    /// [`Error::Map`].
    pub fn flow(&self, key: &Key) -> Result<Option<Flow>, Error> {
        let bytes = self.skeleton.maps.flows.lookup(as_bytes(key), MapFlags::ANY).map_err(Error::map)?;
        Ok(bytes.and_then(|bytes| from_bytes(&bytes)))
    }

    /// Sets the target window of the connection that was born then; false if it has gone.
    ///
    /// # Errors
    /// [`Error::Map`].
    pub fn set_target(&self, key: &Key, born: Time, target: Option<Bytes>) -> Result<bool, Error> {
        let mut flow = Flow::new();
        flow.set_target(target);
        let target = flow.target().map_or(0, |octets| octets.get() as u32);
        let mut order = Order { key: *key, born: born.as_nanos(), target, pad: 0 };
        let input = ProgramInput { context_in: Some(as_bytes_mut(&mut order)), ..ProgramInput::default() };
        let output = self.skeleton.progs.rwnd_set_target.test_run(input).map_err(Error::map)?;
        Ok(output.return_value == 1)
    }

    /// Removes a flow from the map: it is left alone until it is opened again.
    ///
    /// # Errors
    /// [`Error::Map`].
    pub fn forget(&self, key: &Key) -> Result<(), Error> {
        match self.skeleton.maps.flows.delete(as_bytes(key)) {
            Err(error) if error.kind() != libbpf_rs::ErrorKind::NotFound => Err(Error::map(error)),
            _ => Ok(()),
        }
    }

    /// The program's counters.
    ///
    /// # Errors
    /// [`Error::Map`].
    pub fn counters(&self) -> Result<Counters, Error> {
        let zero = 0u32.to_ne_bytes();
        let each = self.skeleton.maps.counters.lookup_percpu(&zero, MapFlags::ANY).map_err(Error::map)?;
        let sum = |a: Counters, b: Counters| Counters {
            segments: a.segments + b.segments,
            rewritten: a.rewritten + b.rewritten,
            unattended: a.unattended + b.unattended,
            malformed: a.malformed + b.malformed,
            opened: a.opened + b.opened,
        };
        Ok(each.unwrap_or_default().iter().filter_map(|bytes| from_bytes(bytes)).fold(Counters::default(), sum))
    }

    /// Runs one packet through the program without a device (BPF_PROG_TEST_RUN) and gives what comes out.
    ///
    /// # Errors
    /// [`Error::Map`].
    pub fn test_run(&self, direction: Direction, packet: &[u8]) -> Result<Vec<u8>, Error> {
        let mut out = vec![0; packet.len() + 64];
        let input = ProgramInput { data_in: Some(packet), data_out: Some(&mut out), ..ProgramInput::default() };
        let len = self.program(direction).test_run(input).map_err(Error::map)?.data.map_or(0, |data| data.len());
        out.truncate(len);
        Ok(out)
    }

    /// The mean time of one run when a packet is run `times` over (BPF_PROG_TEST_RUN): everything warm, nothing around it.
    /// The packet keeps its rewritten window from the first run on.
    ///
    /// # Errors
    /// [`Error::Map`].
    pub fn time_test_runs(&self, direction: Direction, packet: &[u8], times: u32) -> Result<Span, Error> {
        let input = ProgramInput { data_in: Some(packet), repeat: times, ..ProgramInput::default() };
        let output = self.program(direction).test_run(input).map_err(Error::map)?;
        Ok(output.duration.into())
    }

    /// Runs and nanoseconds of the program so far, as the kernel counts them while BPF statistics are on.
    ///
    /// # Errors
    /// [`Error::Map`].
    pub fn run_time(&self, direction: Direction) -> Result<(u64, Span), Error> {
        run_time(self.program(direction))
    }

    fn program(&self, direction: Direction) -> &libbpf_rs::ProgramMut<'static> {
        match direction {
            Direction::Uplink => &self.skeleton.progs.rwnd_uplink,
            Direction::Downlink => &self.skeleton.progs.rwnd_downlink,
        }
    }

    fn control(&self) -> Control<'_> {
        let bss = self.skeleton.maps.bss_data.as_deref().expect("the skeleton maps .bss");
        let at = |word: &u64| {
            // SAFETY: the words lie in memory that the map shares with the kernel for as long as `self` lives, aligned
            // to 8, and every access on this side is atomic.
            unsafe { AtomicU64::from_ptr(std::ptr::from_ref(word).cast_mut()) }
        };
        Control {
            heartbeat_ns: at(&bss.control.heartbeat_ns),
            age_limit_ns: at(&bss.control.age_limit_ns),
            test_now_ns: at(&bss.control.test_now_ns),
        }
    }
}

/// `struct rwnd_control` in shared memory.
struct Control<'a> {
    heartbeat_ns: &'a AtomicU64,
    age_limit_ns: &'a AtomicU64,
    test_now_ns: &'a AtomicU64,
}

const _: () = {
    use skeleton::types;
    use std::mem::offset_of;
    assert!(size_of::<types::rwnd_flow>() == size_of::<Flow>());
    assert!(size_of::<types::rwnd_key>() == size_of::<Key>());
    assert!(size_of::<types::rwnd_order>() == size_of::<Order>());
    assert!(size_of::<types::rwnd_counters>() == size_of::<Counters>());
    assert!(size_of::<types::rwnd_control>() == 24 && offset_of!(types::rwnd_control, test_now_ns) == 16);
};
