//! The eBPF rewriter: loaded, its maps read and written, its programs attached.

use super::abi::{Beat, Counters, Entry, Event, Key, Set, as_bytes_mut};
use super::events::{self, Events};
use super::table::{Slot, Table};
use super::watch::{Attention, Seen, Watch};
use crate::service::attach::{self, Attachment, EGRESS, Family, INGRESS};
use crate::service::program_info::run_time;
use crate::service::said::Captured;
use crate::service::shared_memory::{shared, shared32};
use crate::service::skeleton::{room, skeleton};
use crate::service::{Error, Method, system};
use lasthop_laws::oal::rwnd::Flow;
use lasthop_laws::oal::rwnd::ways::WAYS;
use lasthop_units::{Bytes, Span, Time};
use libbpf_rs::skel::{OpenSkel, SkelBuilder};
use libbpf_rs::{AsRawLibbpf, MapCore, MapFlags, ProgramInput};
use nix::time::{ClockId, clock_getres};
use std::cell::{Cell, RefCell};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

skeleton!("rwnd", RwndSkel, RwndSkelBuilder);

/// How the program is loaded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Load {
    /// Octets of link-layer header on the device: 14 for Ethernet, 0 for devices without one.
    pub link_len: u32,
    /// Flows that the table holds at least, if their hashes are kind; it has room for nearly twice as many.
    pub max_flows: u32,
    /// An older heartbeat means that everything passes untouched.
    pub age_limit: Span,
    /// Tell of segments of which the flows' numbers do not ([`Rewriter::events`]).
    pub events: bool,
    /// Take the time from [`Rewriter::set_test_time`] instead of the kernel's clock.
    pub test_clock: bool,
}

impl Default for Load {
    fn default() -> Load {
        Load { link_len: 14, max_flows: 4096, age_limit: Span::from_millis(500), events: false, test_clock: false }
    }
}

/// The programs: ingress sees what comes from stations, egress what goes to them. The priority reads "LH".
pub(super) static REWRITER: Family =
    Family { kind: "ap", name_prefix: b"rwnd_", priority: 0x4c48, sides: &[INGRESS, EGRESS] };

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
    /// `None` where nobody wants events.
    events: Option<Events>,
    skeleton: RwndSkel<'static>,
    table: Table,
    load: Load,
    watch: RefCell<Watch>,
    /// The tick of the last heartbeat.
    tick: Cell<u32>,
    /// Windows lowered in flows that were forgotten here.
    forgotten: Cell<u64>,
}

impl Rewriter {
    /// Loads the programs into the kernel, attached to nothing.
    ///
    /// # Errors
    /// [`Error::Load`] with what the verifier said, if it said anything.
    pub fn load(load: Load) -> Result<Rewriter, Error> {
        let said = Captured::begin();
        let failed = |error| said.refusal(error);
        let mut open = RwndSkelBuilder::default().open(room()).map_err(failed)?;
        let ethernet = load.link_len > 0;
        open.progs.rwnd_uplink.set_autoload(ethernet);
        open.progs.rwnd_downlink.set_autoload(ethernet);
        open.progs.rwnd_uplink_ip.set_autoload(!ethernet);
        open.progs.rwnd_downlink_ip.set_autoload(!ethernet);
        let sets = load.sets();
        open.maps.flows.set_max_entries(sets).map_err(failed)?;
        let ring = if load.events { events::RING_LEN } else { page_size() };
        open.maps.events.set_max_entries(ring).map_err(failed)?;
        let skeleton = open.load().map_err(failed)?;
        let table = Table::map(skeleton.maps.flows.as_fd(), sets).map_err(system("the table's memory"))?;
        let events = load.events.then(|| Events::open(&skeleton.maps.events)).transpose()?;
        let rewriter = Rewriter {
            attachments: Vec::new(),
            events,
            skeleton,
            table,
            load,
            watch: RefCell::default(),
            tick: Cell::new(0),
            forgotten: Cell::new(0),
        };
        let control = rewriter.control();
        control.set_mask.store(sets - 1, Ordering::Relaxed);
        // Keyed, so that nobody outside can choose which flows share a set.
        control.seed.store(RandomState::new().build_hasher().finish(), Ordering::Relaxed);
        control.age_limit.store(load.age_ticks(), Ordering::Relaxed);
        control.events.store(u32::from(load.events), Ordering::Relaxed);
        control.tick_mask.store(if load.test_clock { 0 } else { u64::MAX }, Ordering::Relaxed);
        Ok(rewriter)
    }

    /// Attaches to both directions of an interface of this network namespace, until detached or dropped.
    ///
    /// # Errors
    /// [`Error::Attach`], [`Error::Busy`] if another agent holds the interface.
    pub fn attach(&mut self, ifindex: i32, method: Method) -> Result<Method, Error> {
        let pair = [Direction::Uplink, Direction::Downlink].map(|d| self.program(d).as_libbpf_object());
        let (method, attachments) = attach::attach(&REWRITER, ifindex, &pair, method)?;
        self.attachments.extend(attachments);
        Ok(method)
    }

    /// True if all programs are still where they were attached.
    pub(super) fn is_attached(&self) -> bool {
        self.attachments.iter().all(Attachment::is_there)
    }

    /// Detaches from every interface.
    pub fn detach(&mut self) {
        self.attachments.clear();
    }

    /// Says that a deciding agent is alive at `now` (`CLOCK_MONOTONIC`). The last data of flows is dated by this, too.
    ///
    /// # Errors
    /// [`Error::Map`].
    pub fn heartbeat(&self, now: Time) -> Result<(), Error> {
        if self.load.test_clock {
            let deadline = now.as_nanos().saturating_add(self.load.age_limit.as_nanos());
            self.control().deadline.store(deadline, Ordering::Relaxed);
            return Ok(());
        }
        let mut beat = Beat { now_ns: now.as_nanos() };
        let input = ProgramInput { context_in: Some(as_bytes_mut(&mut beat)), ..ProgramInput::default() };
        let output = self.skeleton.progs.rwnd_heartbeat.test_run(input).map_err(Error::map)?;
        self.tick.set(output.return_value);
        Ok(())
    }

    /// Sets the program's time and its tick (in nanoseconds), if it was loaded with a test clock.
    pub fn set_test_time(&self, now: Time) {
        let control = self.control();
        for word in [control.now_ns, control.test_now_ns, control.test_tick] {
            word.store(now.as_nanos(), Ordering::Relaxed);
        }
        self.tick.set(now.as_nanos() as u32);
    }

    /// Every flow in the table, in the order of their keys.
    pub fn flows(&self) -> Vec<(Key, Flow)> {
        let mut flows: Vec<(Key, Flow)> = self.table.taken().filter_map(|slot| self.table.read(slot)).collect();
        flows.sort_unstable_by_key(|(key, _)| *key);
        flows
    }

    /// One flow.
    pub fn flow(&self, key: &Key) -> Option<Flow> {
        self.find(key).map(|(_, flow)| flow)
    }

    /// Sets the target window of the connection that was born then; false if it has gone.
    pub fn set_target(&self, key: &Key, born: Time, target: Option<Bytes>) -> bool {
        self.find(key).is_some_and(|(slot, _)| self.set_target_at(slot, born, target))
    }

    /// Removes a flow from the table: it is left alone until it is opened again.
    pub fn forget(&self, key: &Key) {
        if let Some((slot, flow)) = self.find(key) {
            self.forget_at(slot, flow.born());
        }
    }

    /// Looks at the flows that have attention or that a packet has used since the last look, with `all` at every one.
    pub(super) fn look(&self, all: bool, each: &mut dyn FnMut(Seen<'_>) -> Attention) {
        let changes = self.changes().load(Ordering::Acquire);
        self.watch.borrow_mut().look(&self.table, (changes, self.tick.get(), self.load.tick_len()), all, each);
    }

    /// Takes what has been told since the last call; false if one of the events is not there yet, and so one of those that moved the
    /// numbers of a flow which was read before.
    ///
    /// # Errors
    /// [`Error::Map`].
    pub fn events(&self, into: &mut Vec<Event>) -> Result<bool, Error> {
        self.events.as_ref().map_or(Ok(true), |events| events.take(into))
    }

    pub(super) fn set_target_at(&self, slot: Slot, born: Time, target: Option<Bytes>) -> bool {
        let mut flow = Flow::default();
        flow.set_target(target);
        let target = flow.target().map_or(0, |octets| octets.get() as u32);
        self.table.set_target(slot, born, target)
    }

    pub(super) fn forget_at(&self, slot: Slot, born: Time) {
        if let Some(rewritten) = self.table.forget(slot, born) {
            self.forgotten.set(self.forgotten.get() + u64::from(rewritten));
        }
    }

    pub(super) fn holds_at(&self, slot: Slot, born: Time) -> bool {
        self.table.holds(slot, born)
    }

    fn find(&self, key: &Key) -> Option<(Slot, Flow)> {
        let all = self.table.taken().filter_map(|slot| Some((slot, self.table.read(slot)?)));
        let mut wanted = all.filter(|(_, (other, _))| other == key);
        wanted.next().map(|(slot, (_, flow))| (slot, flow))
    }

    /// The program's counters.
    ///
    /// # Errors
    /// [`Error::Map`].
    pub fn counters(&self) -> Result<Counters, Error> {
        let counted = self.counted()?;
        let here: u64 = self.flows().iter().map(|(_, flow)| u64::from(flow.rewritten())).sum();
        Ok(Counters { rewritten: counted.rewritten + self.forgotten.get() + here, ..counted })
    }

    /// The program's counters without what stands in flows.
    pub(super) fn counted(&self) -> Result<Counters, Error> {
        let zero = 0u32.to_ne_bytes();
        let each = self.skeleton.maps.counters.lookup_percpu(&zero, MapFlags::ANY).map_err(Error::map)?;
        let mut sum = Counters::default();
        for one in each.unwrap_or_default() {
            // They are words, whatever they are called.
            for (sum, one) in as_bytes_mut(&mut sum).as_chunks_mut().0.iter_mut().zip(one.as_chunks().0) {
                *sum = (u64::from_ne_bytes(*sum) + u64::from_ne_bytes(*one)).to_ne_bytes();
            }
        }
        Ok(sum)
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
        let programs = &self.skeleton.progs;
        match (direction, self.load.link_len > 0) {
            (Direction::Uplink, true) => &programs.rwnd_uplink,
            (Direction::Downlink, true) => &programs.rwnd_downlink,
            (Direction::Uplink, false) => &programs.rwnd_uplink_ip,
            (Direction::Downlink, false) => &programs.rwnd_downlink_ip,
        }
    }

    fn control(&self) -> Control<'_> {
        let control = &self.skeleton.maps.bss_data.as_deref().expect("the skeleton maps .bss").control;
        Control {
            now_ns: shared(&control.now_ns),
            deadline: shared(&control.deadline),
            age_limit: shared(&control.age_limit),
            tick_mask: shared(&control.tick_mask),
            test_tick: shared(&control.test_tick),
            test_now_ns: shared(&control.test_now_ns),
            seed: shared(&control.seed),
            set_mask: shared32(&control.set_mask),
            events: shared32(&control.events),
        }
    }

    fn changes(&self) -> &AtomicU64 {
        shared(&self.skeleton.maps.bss_data.as_deref().expect("the skeleton maps .bss").changes)
    }
}

/// Octets of a page: the kernel makes no smaller ring.
fn page_size() -> u32 {
    nix::unistd::sysconf(nix::unistd::SysconfVar::PAGE_SIZE)
        .ok()
        .flatten()
        .and_then(|len| u32::try_from(len).ok())
        .unwrap_or(4096)
}

impl Load {
    /// Sets of the table: a power of two. Four flows a set leave three ways for sets that hashes favour.
    fn sets(&self) -> u32 {
        self.max_flows.div_ceil(WAYS as u32 / 2 + 1).next_power_of_two()
    }

    /// The age limit in ticks of the kernel, rounded up.
    fn age_ticks(&self) -> u64 {
        // Kept far from where adding it to a tick would overflow.
        self.age_limit.as_nanos().div_ceil(kernel_tick().as_nanos()).min(u64::from(u32::MAX))
    }

    /// How long a tick of the program is.
    fn tick_len(&self) -> Span {
        if self.test_clock { Span::from_nanos(1) } else { kernel_tick() }
    }
}

/// How long a tick of the kernel is.
fn kernel_tick() -> Span {
    let tick = clock_getres(ClockId::CLOCK_MONOTONIC_COARSE).map_or(0, |tick| tick.tv_nsec() as u64);
    Span::from_nanos(tick.max(1_000_000))
}

/// `struct rwnd_control` in shared memory.
struct Control<'a> {
    now_ns: &'a AtomicU64,
    deadline: &'a AtomicU64,
    age_limit: &'a AtomicU64,
    tick_mask: &'a AtomicU64,
    test_tick: &'a AtomicU64,
    test_now_ns: &'a AtomicU64,
    seed: &'a AtomicU64,
    set_mask: &'a AtomicU32,
    events: &'a AtomicU32,
}

const _: () = {
    use skeleton::types;
    use std::mem::offset_of;
    assert!(size_of::<types::rwnd_flow>() == size_of::<Flow>());
    assert!(size_of::<types::rwnd_key>() == size_of::<Key>());
    assert!(size_of::<types::rwnd_entry>() == size_of::<Entry>());
    assert!(size_of::<types::rwnd_set>() == size_of::<Set>());
    assert!(size_of::<types::rwnd_counters>() == size_of::<Counters>());
    assert!(size_of::<types::rwnd_control>() == 64 && offset_of!(types::rwnd_control, set_mask) == 56);
    assert!(offset_of!(types::rwnd_control, events) == 60);
};
