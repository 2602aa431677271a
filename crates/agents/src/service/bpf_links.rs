//! Whether programs are still where they were attached.
//!
//! A link stays open when what it was attached to goes, be it the interface or the cgroup, and when somebody detaches it. The
//! kernel then says that it leads nowhere.

use libbpf_rs::Link;
use libbpf_rs::query::LinkTypeInfo;

/// True if a TCX or cgroup link still leads somewhere. What the kernel does not tell is taken for that. Needs no privilege.
pub(crate) fn is_attached(link: &Link) -> bool {
    match link.info().map(|info| info.info) {
        Ok(LinkTypeInfo::Tcx(tcx)) => tcx.ifindex != 0,
        Ok(LinkTypeInfo::Cgroup(cgroup)) => cgroup.cgroup_id != 0,
        _ => true,
    }
}
