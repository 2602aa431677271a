//! The agent on a real interface: set up, run, leave nothing behind.

use super::abi::Event;
use super::agent::{Agent, Clock, Enforcer, Tally};
use super::kernel::{Load, REWRITER, Rewriter};
use super::log::Log;
use super::offload_monitor::OffloadMonitor;
use super::sources::Kernel;
use super::stations::Stations;
use super::status::State;
use super::table::Slot;
use super::watch::{Attention, Seen};
use super::{Config, Error, Summary, offload};
use crate::service::counters::account;
use crate::service::driver::{DriverSource, SocketDriver};
use crate::service::status::Shown;
use crate::service::{self, Cleaned, Method, Stop, attach, clock, device, privileges};
use lasthop_laws::HopLaw;
use lasthop_units::{Bytes, Span, Time};

/// Runs the agent with reports from `config.driver`, or from the kernel, until `stop` is asked; nothing is left attached.
///
/// # Errors
/// [`Error`] if it cannot start, or if the kernel takes away what it needs. A driver that goes away is no error.
pub fn run(config: &Config, law: Box<dyn HopLaw>, stop: &Stop) -> Result<Summary, Error> {
    config.validate()?;
    let Some(path) = &config.driver else {
        let mut kernel = Kernel::open(&config.iface, &device::find(&config.iface)?)?;
        let attached = Attached::prepare(config, law.wants_segments())?;
        (config.say)(&format!("the kernel's counters of {}: {}", config.iface, kernel.tells()));
        return attached.run(config, law, &mut kernel, stop);
    };
    let failed = |source| service::Error::Driver { path: path.clone(), source };
    let attached = Attached::prepare(config, law.wants_segments())?;
    // Only now: the server of the driver's socket may take the connection as the sign that no flow will be missed.
    let mut driver = SocketDriver::connect(path).map_err(failed)?;
    (config.say)(&format!("the driver at {} is connected", path.display()));
    attached.run(config, law, &mut driver, stop)
}

/// As [`run`], with another source of driver reports.
///
/// # Errors
/// As [`run`].
pub fn run_with(
    config: &Config,
    law: Box<dyn HopLaw>,
    driver: &mut dyn DriverSource,
    stop: &Stop,
) -> Result<Summary, Error> {
    Attached::prepare(config, law.wants_segments())?.run(config, law, driver, stop)
}

/// Programs in place, privileges given up.
struct Attached {
    programs: Programs,
    method: Method,
    log: Option<Log>,
}

/// Where limits act, and what tells that packets may not come there any more.
struct Programs {
    rewriter: Rewriter,
    /// `None` if that is allowed.
    offload_monitor: Option<OffloadMonitor>,
    iface: String,
    ifindex: i32,
    /// No target is ever set.
    shadow: bool,
    shown: Shown<State>,
    method: Method,
}

impl Attached {
    /// `segments`: whether the law wants to know of every one.
    fn prepare(config: &Config, segments: bool) -> Result<Attached, Error> {
        config.validate()?;
        let device = device::find(&config.iface)?;
        let shown = Shown::claim(REWRITER.kind, (&config.iface, device.index), config.viewers.clone())?;
        let offload_monitor = if config.allow_offload {
            None
        } else {
            // In this order: what is loaded in between is told by both.
            let offload_monitor = OffloadMonitor::open(&config.iface)?;
            offload::refuse(&offload::find(Some(&config.iface))?)?;
            Some(offload_monitor)
        };
        let log = config.log.as_deref().map(Log::create).transpose()?;
        let Config { max_flows, age_limit, .. } = *config;
        let load = Load { link_len: device.link_len, max_flows, age_limit, events: segments, ..Load::default() };
        let mut rewriter = Rewriter::load(load)?;
        let method = rewriter.attach(device.index, config.method)?;
        if config.drop_privileges {
            // Maps are reached through descriptors that are open already; a TCX link goes with its descriptor. Only a
            // filter has to be removed by hand.
            let keep: &[u32] = match method {
                Method::Clsact => &[privileges::BPF, privileges::NET_ADMIN],
                _ => &[privileges::BPF],
            };
            privileges::drop_all_but(keep)?;
        }
        (config.say)(&format!("attached to {} by {method}", config.iface));
        if config.allow_offload {
            (config.say)("flows may be carried past the agent: nobody looks whether they are (--allow-offload)");
        }
        if config.shadow {
            (config.say)("shadow: nothing is changed; orders are those that would be given");
        }
        shown.serve()?;
        let (iface, ifindex, shadow) = (config.iface.clone(), device.index, config.shadow);
        Ok(Attached {
            programs: Programs { rewriter, offload_monitor, iface, ifindex, shadow, shown, method },
            method,
            log,
        })
    }

    fn run(
        mut self,
        config: &Config,
        mut law: Box<dyn HopLaw>,
        driver: &mut dyn DriverSource,
        stop: &Stop,
    ) -> Result<Summary, Error> {
        if config.shadow {
            law.only_watches();
        }
        let (tally, log) = {
            let stations = Stations::new(&config.stations);
            let mut agent = Agent::new(
                law,
                &self.programs,
                stations,
                (config.age_limit, config.max_flows),
                self.log.take(),
                config.say,
            );
            agent.run(driver, &Monotonic, stop)?;
            (agent.tally, agent.log.take())
        };
        let counters = self.programs.rewriter.counters()?;
        self.programs.rewriter.detach();
        let log_error = log.and_then(Log::finish);
        Ok(Summary { method: self.method, shadow: config.shadow, tally, counters, log_error })
    }
}

/// Removes what agents that were killed have left on an interface, and counts what is attached still: an agent that
/// lives keeps its TCX links.
///
/// # Errors
/// [`service::Error::NoInterface`], [`service::Error::Permission`].
pub fn clean(iface: &str) -> Result<Cleaned, service::Error> {
    attach::clean(&REWRITER, iface)
}

/// How many programs of an access point's agent are attached to an interface, by either method.
pub fn attached(ifindex: i32) -> usize {
    attach::attached(&REWRITER, ifindex)
}

impl Enforcer for Programs {
    fn look(&self, all: bool, each: &mut dyn FnMut(Seen<'_>) -> Attention) {
        self.rewriter.look(all, each);
    }

    fn set_target(&self, slot: Slot, born: Time, target: Option<Bytes>) -> bool {
        // In shadow mode only whether it could be set.
        if self.shadow { self.rewriter.holds_at(slot, born) } else { self.rewriter.set_target_at(slot, born, target) }
    }

    fn forget(&self, slot: Slot, born: Time) {
        self.rewriter.forget_at(slot, born);
    }

    fn holds(&self, slot: Slot, born: Time) -> bool {
        self.rewriter.holds_at(slot, born)
    }

    fn heartbeat(&self, now: Time) -> Result<(), Error> {
        Ok(self.rewriter.heartbeat(now)?)
    }

    fn sees_all(&self) -> Result<(), Error> {
        if !self.rewriter.is_attached() {
            let why = match device::find(&self.iface) {
                Ok(device) if device.index == self.ifindex => "somebody has removed them, or put others in their place",
                Ok(_) => "the interface was deleted and another one has its name",
                Err(_) => "the interface has gone",
            };
            return Err(Error::Detached { iface: self.iface.clone(), why });
        }
        self.offload_monitor.as_ref().map_or(Ok(()), OffloadMonitor::look)
    }

    fn events(&self, into: &mut Vec<Event>) -> Result<bool, Error> {
        Ok(self.rewriter.events(into)?)
    }

    fn missed(&self) -> u64 {
        self.rewriter.counted().map_or(0, |counters| counters.missed)
    }

    fn without_place(&self) -> u64 {
        self.rewriter.counted().map_or(0, |counters| counters.evicted + counters.refused)
    }

    fn show(&self, now: &dyn Fn() -> (State, Tally)) {
        self.shown.show(|| {
            let (state, tally) = now();
            let mut done = account(&tally);
            done.extend(self.rewriter.counters().map(|counters| account(&counters)).unwrap_or_default());
            (State { method: self.method.name().to_owned(), shadow: self.shadow, ..state }, done)
        });
    }
}

/// `CLOCK_MONOTONIC`.
struct Monotonic;

impl Clock for Monotonic {
    fn now(&self) -> Time {
        clock::monotonic_now()
    }

    fn rest(&self, span: Span) {
        std::thread::sleep(span.into());
    }
}
