//! The sender's programs in the kernel: `bpf/pbe_sender.bpf.c`.
//!
//! They need no deciding process. The congestion control and what reads options go with the agent; connections that
//! have it by then keep it, hear nothing any more, and are the kernel's BBR.

use super::config::{SenderConfig, SenderSummary};
use super::error::Error;
use crate::service::privileges::Account;
use crate::service::program_info::run_time;
use crate::service::said::Captured;
use crate::service::shared_memory::shared;
use crate::service::skeleton::{room, skeleton};
use crate::service::{Stop, bpf_links, cgroup, netns};
use lasthop_laws::pbe::SHARED;
use lasthop_units::Span;
use libbpf_rs::skel::{OpenSkel, SkelBuilder};
use libbpf_rs::{ErrorKind, Link};
use std::sync::atomic::Ordering;
use std::time::Duration;

skeleton!("pbe_sender", PbeSenderSkel, PbeSenderSkelBuilder);

/// How often it is looked whether the programs are where they were left.
const LOOK: Duration = Duration::from_millis(200);

/// The congestion control is there as long as this lives.
pub struct Sender {
    // The links go first: nothing is to run while the rest goes.
    links: Vec<Link>,
    skeleton: PbeSenderSkel<'static>,
}

impl Sender {
    /// Registers the congestion control, attaches what reads options to the cgroup, and gives up what is not needed any more. Connections
    /// of the calling thread's network namespace that begin from now on can use it.
    ///
    /// # Errors
    /// [`Error`].
    pub fn open(config: &SenderConfig) -> Result<Sender, Error> {
        config.validate()?;
        let account = config.user.as_deref().map(Account::find).transpose()?;
        let directory = cgroup::open(&config.cgroup)?;
        let said = Captured::begin();
        let failed = |error: libbpf_rs::Error| {
            let needs = "it needs struct_ops, BTF and BBR's kernel functions (Linux 6.10 with CONFIG_TCP_CONG_BBR)";
            Error::Load { explained: format!("{}\n{needs}", said.explain(&error)) }
        };
        let mut open = PbeSenderSkelBuilder::default().open(room()).map_err(failed)?;
        let constants = open.maps.rodata_data.as_deref_mut().expect("the programs have constants");
        constants.netns = netns::cookie()?;
        constants.words.copy_from_slice(&SHARED.words(&config.law));
        write_name(&mut constants.name, &config.name);
        write_name(&mut open.struct_ops.pbe_mut().name, &config.name);
        let mut skeleton = open.load().map_err(failed)?;
        let registered = skeleton.maps.pbe.attach_struct_ops().map_err(|error| match error.kind() {
            ErrorKind::AlreadyExists => Error::Taken(config.name.clone()),
            _ => failed(error),
        })?;
        let heard = cgroup::attach(&skeleton.progs.hear, &directory, &config.cgroup)?;
        if config.drop_privileges {
            crate::service::privileges::drop_all(account.as_ref())?;
        }
        Ok(Sender { links: vec![heard, registered], skeleton })
    }

    /// Waits until `stop` is set.
    ///
    /// # Errors
    /// [`Error::SenderDetached`] if somebody has taken the programs away.
    pub fn run(self, stop: &Stop) -> Result<SenderSummary, Error> {
        while !stop.is_asked() {
            if !bpf_links::is_attached(&self.links[0]) {
                return Err(Error::SenderDetached);
            }
            std::thread::park_timeout(LOOK);
        }
        Ok(self.summary())
    }

    /// What has been counted so far.
    pub fn summary(&self) -> SenderSummary {
        let data = self.skeleton.maps.bss_data.as_deref().expect("the skeleton maps .bss");
        let read = |of: fn(&skeleton::types::bss) -> &u64| shared(of(data)).load(Ordering::Relaxed);
        SenderSummary {
            promised: read(|data| &data.promised),
            options: read(|data| &data.options),
            overtaken: read(|data| &data.overtaken),
        }
    }

    /// Runs and run time of the programs, by name, since they were loaded: counted while the kernel's statistics are on.
    ///
    /// # Errors
    /// [`Error::Service`].
    pub fn cost(&self) -> Result<Vec<(&'static str, u64, Span)>, Error> {
        let programs = &self.skeleton.progs;
        let each = [("cong_control", &programs.pbe_main), ("options", &programs.hear)];
        let cost = |(name, program)| run_time(program).map(|(runs, time)| (name, runs, time)).map_err(Error::from);
        each.into_iter().map(cost).collect()
    }
}

/// A name as C has it.
fn write_name(to: &mut [i8], name: &str) {
    to.fill(0);
    to.iter_mut().zip(name.bytes()).for_each(|(to, from)| *to = from as i8);
}
