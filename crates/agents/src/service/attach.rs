//! Attachment to an interface, that never outlives its owner if the kernel can help it.
//!
//! A TCX link (Linux 6.6 and later) is a file descriptor: however its process dies, the kernel detaches. On older
//! kernels a filter on the clsact qdisc outlives its process; it is removed on drop, at the next start and by
//! [`clean`], and it passes everything untouched in the meantime, since nobody sends heartbeats.

use super::error::Error;
use super::method::{Cleaned, Method};
use super::program_info::program_info;
use super::said::Captured;
use super::{bpf_links, device, filters, owner, privileges};
use libbpf_rs::libbpf_sys::{self, bpf_program};
use libbpf_rs::{Link, TC_EGRESS, TC_INGRESS, TcAttachPoint, TcHook, TcHookBuilder};
use std::io;
use std::mem::ManuallyDrop;
use std::os::fd::{AsFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr::NonNull;

/// One attached program; dropping it detaches.
pub(crate) enum Attachment {
    /// The link detaches on drop, or when its process ends.
    Tcx(Link),
    /// A filter, and with it the qdisc if it was not there before.
    Clsact(Filter),
}

impl Attachment {
    /// True if the program is still where it was attached.
    pub(crate) fn is_there(&self) -> bool {
        match self {
            Attachment::Tcx(link) => bpf_links::is_attached(link),
            Attachment::Clsact(filter) => filter.is_present(),
        }
    }
}

/// The programs of one kind of agent.
pub(crate) struct Family {
    /// The kind, as it claims interfaces ([`owner`]).
    pub(crate) kind: &'static str,
    /// Their names begin with this.
    pub(crate) name_prefix: &'static [u8],
    /// Marks their filters among others. The program's name is checked too before anything is removed.
    pub(crate) priority: u32,
    /// Where they stand.
    pub(crate) sides: &'static [Side],
}

/// A side of an interface, as clsact and as TCX have it.
pub(crate) type Side = (TcAttachPoint, u32);

pub(crate) const INGRESS: Side = (TC_INGRESS, libbpf_sys::BPF_TCX_INGRESS);
pub(crate) const EGRESS: Side = (TC_EGRESS, libbpf_sys::BPF_TCX_EGRESS);

impl Family {
    /// For filters on a qdisc that was made for them and goes with them.
    fn priority_own_qdisc(&self) -> u32 {
        self.priority + 1
    }
}

/// Attaches programs to an interface, which is the caller's: one for each side of the family.
pub(crate) fn attach(
    family: &'static Family,
    ifindex: i32,
    programs: &[NonNull<bpf_program>],
    method: Method,
) -> Result<(Method, Vec<Attachment>), Error> {
    for (_, side) in family.sides {
        if tcx_programs(ifindex, *side).is_ok_and(|ids| ids.into_iter().any(|id| is_ours(family, id))) {
            return Err(Error::Busy);
        }
    }
    // What a killed agent left behind on an old kernel.
    remove_filters(family, ifindex);
    match method {
        Method::Tcx => attach_tcx(ifindex, programs).map(|links| (Method::Tcx, links)),
        Method::Clsact => attach_clsact(family, ifindex, programs).map(|filters| (Method::Clsact, filters)),
        Method::Best => match attach_tcx(ifindex, programs) {
            Ok(links) => Ok((Method::Tcx, links)),
            Err(_) => attach_clsact(family, ifindex, programs).map(|filters| (Method::Clsact, filters)),
        },
    }
}

fn attach_tcx(ifindex: i32, programs: &[NonNull<bpf_program>]) -> Result<Vec<Attachment>, Error> {
    let said = Captured::begin();
    let one = |program: &NonNull<bpf_program>| {
        let opts = libbpf_sys::bpf_tcx_opts { sz: size_of::<libbpf_sys::bpf_tcx_opts>() as _, ..Default::default() };
        // SAFETY: the program is loaded and alive, and `opts` says its own size.
        let link = unsafe { libbpf_sys::bpf_program__attach_tcx(program.as_ptr(), ifindex, &opts) };
        let Some(link) = NonNull::new(link) else {
            return Err(Error::Attach { method: "TCX", source: io::Error::last_os_error(), said: said.text() });
        };
        // SAFETY: a fresh link, owned by nobody else.
        Ok(Attachment::Tcx(unsafe { Link::from_ptr(link) }))
    };
    programs.iter().map(one).collect()
}

/// A filter on the clsact qdisc.
pub(crate) struct Filter {
    family: &'static Family,
    ifindex: i32,
    point: TcAttachPoint,
    priority: u32,
    /// Identifier of the program that this process attached; `None` to go by its name, which takes a privilege that a
    /// running agent has given up.
    program: Option<u32>,
}

const HANDLE: u32 = 1;

fn attach_clsact(
    family: &'static Family,
    ifindex: i32,
    programs: &[NonNull<bpf_program>],
) -> Result<Vec<Attachment>, Error> {
    let said = Captured::begin();
    let failed = |source: io::Error| Error::Attach { method: "clsact", source, said: said.text() };
    let made = make_qdisc(ifindex).map_err(failed)?;
    let priority = if made { family.priority_own_qdisc() } else { family.priority };
    let mut filters = Vec::new();
    for (program, (point, _)) in programs.iter().zip(family.sides) {
        // SAFETY: the program is loaded, so that it has a descriptor, which lives as long as it does.
        let fd = unsafe { BorrowedFd::borrow_raw(libbpf_sys::bpf_program__fd(program.as_ptr())) };
        let hook = TcHookBuilder::new(fd).ifindex(ifindex).handle(HANDLE).priority(priority).hook(*point);
        let program = Some(program_info(fd).map_err(failed)?.id);
        let filter = Filter { family, ifindex, point: *point, priority, program };
        // Where a filter of somebody else stands, the kernel refuses.
        if let Err(error) = { hook }.attach() {
            if made && filters.is_empty() {
                filter.remove_empty_qdisc();
            }
            return Err(failed(io::Error::other(error)));
        }
        // From here on dropping `filters` undoes what was done, the qdisc included.
        filters.push(Attachment::Clsact(filter));
    }
    Ok(filters)
}

/// True if the qdisc was not there before.
fn make_qdisc(ifindex: i32) -> io::Result<bool> {
    let hook = libbpf_sys::bpf_tc_hook {
        sz: size_of::<libbpf_sys::bpf_tc_hook>() as _,
        ifindex,
        attach_point: TC_INGRESS | TC_EGRESS,
        ..Default::default()
    };
    // SAFETY: `hook` says its own size and is not kept.
    match unsafe { libbpf_sys::bpf_tc_hook_create(&mut { hook }) } {
        0 => Ok(true),
        error if -error == libc::EEXIST => Ok(false),
        error => Err(io::Error::from_raw_os_error(-error)),
    }
}

impl Filter {
    fn hook(&self, point: TcAttachPoint) -> TcHook {
        // Queries and removals name no program.
        // SAFETY: the descriptor is put into a struct and never used.
        let none = unsafe { BorrowedFd::borrow_raw(i32::MAX) };
        TcHookBuilder::new(none).ifindex(self.ifindex).handle(HANDLE).priority(self.priority).hook(point)
    }

    /// True if the filter is there and ours.
    fn is_present(&self) -> bool {
        let _quiet = Captured::begin();
        self.hook(self.point)
            .query()
            .is_ok_and(|id| self.program.map_or_else(|| is_ours(self.family, id), |own| own == id))
    }

    /// Removes the filter if it is ours; true if there was one.
    fn remove(&self) -> bool {
        let _quiet = Captured::begin();
        let ours = self.is_present();
        if ours {
            // If it cannot be removed (the interface has gone meanwhile) there is nothing that could be done about it.
            let _ = self.hook(self.point).detach();
            // Whoever has removed our filter may have made the qdisc anew: then it is not ours.
            self.remove_empty_qdisc();
        }
        ours
    }

    /// Removes the qdisc if it was made for our filters and has none any more.
    fn remove_empty_qdisc(&self) {
        if self.priority == self.family.priority_own_qdisc() && is_qdisc_empty(self.ifindex) {
            let _ = self.hook(TC_INGRESS | TC_EGRESS).destroy();
        }
    }
}

impl Drop for Filter {
    fn drop(&mut self) {
        self.remove();
    }
}

/// Where filters of any agent of a kind may stand on an interface.
fn possible_filters(family: &'static Family, ifindex: i32) -> impl Iterator<Item = ManuallyDrop<Filter>> {
    family.sides.iter().flat_map(move |(point, _)| {
        let filter =
            move |priority| ManuallyDrop::new(Filter { family, ifindex, point: *point, priority, program: None });
        [family.priority, family.priority_own_qdisc()].map(filter)
    })
}

/// Removes filters of earlier agents; gives how many there were.
fn remove_filters(family: &'static Family, ifindex: i32) -> usize {
    possible_filters(family, ifindex).filter(|filter| filter.is_present() && filter.remove()).count()
}

/// True if the clsact qdisc has no filter on either side.
fn is_qdisc_empty(ifindex: i32) -> bool {
    const EGRESS_PARENT: u32 = 0xffff_fff3;
    const INGRESS_PARENT: u32 = 0xffff_fff2;
    [INGRESS_PARENT, EGRESS_PARENT]
        .into_iter()
        .all(|parent| filters::count(ifindex, parent).is_ok_and(|filters| filters == 0))
}

/// Removes what agents of a kind that were killed have left on an interface, and counts what is attached still: an agent
/// that lives keeps its TCX links.
///
/// # Errors
/// [`Error::NoInterface`], [`Error::Permission`].
pub(crate) fn clean(family: &'static Family, iface: &str) -> Result<Cleaned, Error> {
    let ifindex = device::find(iface)?.index;
    // Without these the kernel shows no programs, and "nothing found" would be no answer.
    if !(privileges::has(privileges::NET_ADMIN) && privileges::has(privileges::SYS_ADMIN)) {
        return Err(Error::Permission { what: "the eBPF programs on an interface" });
    }
    // What a living agent has attached is its own, however it has done that.
    let claimed = owner::is_claimed(family.kind, ifindex);
    let removed = if claimed { 0 } else { remove_filters(family, ifindex) };
    Ok(Cleaned { removed, still_attached: attached(family, ifindex) })
}

/// How many programs of a kind are attached to an interface, by either method.
pub(crate) fn attached(family: &'static Family, ifindex: i32) -> usize {
    let _quiet = Captured::begin();
    let tcx = |(_, side): &(_, u32)| {
        tcx_programs(ifindex, *side).map_or(0, |ids| ids.into_iter().filter(|id| is_ours(family, *id)).count())
    };
    let filters = possible_filters(family, ifindex).filter(|filter| filter.is_present()).count();
    family.sides.iter().map(tcx).sum::<usize>() + filters
}

/// Identifiers of the programs on one side of an interface's TCX.
fn tcx_programs(ifindex: i32, side: u32) -> io::Result<Vec<u32>> {
    let mut ids = [0u32; 64];
    let mut opts = libbpf_sys::bpf_prog_query_opts {
        sz: size_of::<libbpf_sys::bpf_prog_query_opts>() as _,
        prog_ids: ids.as_mut_ptr(),
        ..Default::default()
    };
    opts.__bindgen_anon_1.prog_cnt = ids.len() as u32;
    // SAFETY: `opts` says its own size, and `prog_ids` has room for `prog_cnt` numbers.
    let failed = unsafe { libbpf_sys::bpf_prog_query_opts(ifindex, side, &mut opts) };
    if failed != 0 {
        return Err(io::Error::from_raw_os_error(-failed));
    }
    // SAFETY: the kernel has filled the count in.
    let count = unsafe { opts.__bindgen_anon_1.prog_cnt } as usize;
    Ok(ids.iter().copied().take(count).collect())
}

/// True if the program with this identifier is one of a family, by its name.
fn is_ours(family: &Family, id: u32) -> bool {
    // SAFETY: takes a number, gives a descriptor or an error.
    let fd = unsafe { libbpf_sys::bpf_prog_get_fd_by_id(id) };
    if fd < 0 {
        return false;
    }
    // SAFETY: a fresh descriptor, owned by nobody else.
    let fd = unsafe { OwnedFd::from_raw_fd(fd) };
    program_info(fd.as_fd()).is_ok_and(|info| {
        let name = info.name.map(|c| c as u8);
        name.starts_with(family.name_prefix)
    })
}

/// True if the kernel knows TCX.
pub(crate) fn has_tcx() -> bool {
    // The query of a device that does not exist fails differently if the kernel does not know the question.
    const LOOPBACK: i32 = 1;
    tcx_programs(LOOPBACK, libbpf_sys::BPF_TCX_INGRESS).is_ok()
}
