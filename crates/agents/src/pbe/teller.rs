//! The receiver's programs in the kernel: `bpf/pbe_receiver.bpf.c`.

use super::abi::News;
use super::error::Error;
use super::flows::Value;
use crate::service::said::Captured;
use crate::service::shared_memory::shared;
use crate::service::skeleton::{room, skeleton};
use crate::service::{bpf_links, cgroup, netns};
use lasthop_units::Time;
use libbpf_rs::skel::{OpenSkel, SkelBuilder};
use libbpf_rs::{ErrorKind, Link, MapCore, MapFlags, RingBuffer, RingBufferBuilder};
use std::cell::RefCell;
use std::os::fd::BorrowedFd;
use std::path::Path;
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};

skeleton!("pbe_receiver", PbeReceiverSkel, PbeReceiverSkelBuilder);

/// Segments tell what is set here as long as this lives.
pub(super) struct Teller {
    // The links go first: nothing is to run while the rest goes.
    links: Vec<Link>,
    ring: RingBuffer<'static>,
    news: Rc<RefCell<Vec<News>>>,
    skeleton: PbeReceiverSkel<'static>,
}

/// What the programs have counted.
#[derive(Clone, Copy, Debug)]
pub(super) struct Counters {
    pub(super) agreed: u64,
    pub(super) written: u64,
    pub(super) lost: u64,
}

impl Teller {
    /// Begins with the connections that programs of a cgroup make from now on, in the network namespace of the calling thread.
    pub(super) fn begin(path: &Path) -> Result<Teller, Error> {
        let directory = cgroup::open(path)?;
        let said = Captured::begin();
        let failed = |error| Error::Load { explained: said.explain(&error) };
        let mut open = PbeReceiverSkelBuilder::default().open(room()).map_err(failed)?;
        let constants = open.maps.rodata_data.as_deref_mut().expect("the programs have constants");
        constants.netns = netns::cookie()?;
        let skeleton = open.load().map_err(failed)?;
        let news = Rc::new(RefCell::new(Vec::new()));
        let kept = Rc::clone(&news);
        let mut builder = RingBufferBuilder::new();
        let keep = move |bytes: &[u8]| {
            kept.borrow_mut().extend(News::read(bytes));
            0
        };
        builder.add(&skeleton.maps.news, keep).map_err(failed)?;
        let ring = builder.build().map_err(failed)?;
        let mut links = Vec::new();
        // The program that counts arrivals is attached before the first connection agrees on the option.
        for program in [&skeleton.progs.arrive, &skeleton.progs.tell] {
            links.push(cgroup::attach(program, &directory, path)?);
        }
        links.reverse();
        Ok(Teller { links, ring, news, skeleton })
    }

    /// True if the programs are where they were put.
    pub(super) fn is_attached(&self) -> bool {
        self.links.iter().all(bpf_links::is_attached)
    }

    /// What tells that there is news.
    pub(super) fn waits_on(&self) -> BorrowedFd<'_> {
        // SAFETY: the descriptor is the ring's, which lives as long as what borrows it.
        unsafe { BorrowedFd::borrow_raw(self.ring.epoll_fd()) }
    }

    /// What has happened since the last look.
    pub(super) fn news(&mut self) -> Result<Vec<News>, Error> {
        self.ring.consume().map_err(map("news of packets"))?;
        Ok(std::mem::take(&mut *self.news.borrow_mut()))
    }

    /// From now on segments of a connection tell this. False if the kernel does not have it any more.
    pub(super) fn set(&self, cookie: u64, value: Value) -> Result<bool, Error> {
        match self.skeleton.maps.flows.update(&cookie.to_ne_bytes(), &value, MapFlags::EXIST) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
            Err(error) => Err(map("eBPF map")(error)),
        }
    }

    /// Tries whether something can be told with the privileges that are left.
    pub(super) fn check(&self) -> Result<(), Error> {
        // No socket has this cookie.
        self.set(0, Value::default()).map(drop).map_err(|error| Error::Unprivileged(Box::new(error)))
    }

    /// What is told holds until then (`CLOCK_MONOTONIC`).
    pub(super) fn hold_until(&self, time: Time) {
        self.word(|data| &data.until).store(time.as_nanos(), Ordering::Relaxed);
    }

    /// What has been counted so far.
    pub(super) fn counters(&self) -> Counters {
        let read = |of: fn(&skeleton::types::bss) -> &u64| self.word(of).load(Ordering::Relaxed);
        Counters {
            agreed: read(|data| &data.agreed),
            written: read(|data| &data.written),
            lost: read(|data| &data.lost),
        }
    }

    /// A word that the programs and user space share.
    fn word(&self, of: impl Fn(&skeleton::types::bss) -> &u64) -> &AtomicU64 {
        shared(of(self.skeleton.maps.bss_data.as_deref().expect("the skeleton maps .bss")))
    }
}

/// For `map_err`: a map or a ring could not be read or written.
fn map(what: &'static str) -> impl FnOnce(libbpf_rs::Error) -> Error {
    move |error| Error::Map { what, source: error.into() }
}
