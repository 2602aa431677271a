//! The agent on a real interface: set up, run, leave nothing behind.

use super::abi::Key;
use super::agent::{Agent, Enforcer};
use super::driver::{DriverSource, SocketDriver};
use super::kernel::{Load, Rewriter};
use super::log::Log;
use super::{Cleaned, Config, Error, Method, Summary, attach, device, privileges};
use lasthop_laws::HopLaw;
use lasthop_laws::oal::rwnd::Flow;
use lasthop_units::{Bytes, Time};
use nix::time::{ClockId, clock_gettime};
use std::sync::atomic::AtomicBool;

/// Runs the agent with reports from the socket at `config.driver` until `stop` is set; nothing is left attached.
///
/// # Errors
/// [`Error`] if it cannot start, or if the kernel takes away what it needs. A driver that goes away is no error.
pub fn run(config: &Config, law: Box<dyn HopLaw>, stop: &AtomicBool) -> Result<Summary, Error> {
    let failed = |source| Error::Driver { path: config.driver.clone(), source };
    let attached = Attached::prepare(config)?;
    // Only now: who serves the driver's socket may take the connection as the sign that no flow will be missed.
    let mut driver = SocketDriver::connect(&config.driver).map_err(failed)?;
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
    stop: &AtomicBool,
) -> Result<Summary, Error> {
    Attached::prepare(config)?.run(config, law, driver, stop)
}

/// Programs in place, privileges given up.
struct Attached {
    rewriter: Rewriter,
    method: Method,
    log: Option<Log>,
}

impl Attached {
    fn prepare(config: &Config) -> Result<Attached, Error> {
        config.validate()?;
        let device = device::find(&config.iface)?;
        let log = config.log.as_deref().map(Log::create).transpose()?;
        let Config { max_flows, age_limit, .. } = *config;
        let load = Load { link_len: device.link_len, max_flows, age_limit, ..Load::default() };
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
        Ok(Attached { rewriter, method, log })
    }

    fn run(
        mut self,
        config: &Config,
        law: Box<dyn HopLaw>,
        driver: &mut dyn DriverSource,
        stop: &AtomicBool,
    ) -> Result<Summary, Error> {
        let (tally, log) = {
            let mut agent = Agent::new(law, &self.rewriter, &config.stations, config.age_limit, self.log.take());
            agent.run(driver, &monotonic, stop)?;
            (agent.tally, agent.log.take())
        };
        let counters = self.rewriter.counters()?;
        self.rewriter.detach();
        let log_error = log.and_then(Log::finish);
        Ok(Summary { method: self.method, tally, counters, log_error })
    }
}

/// Removes what agents that were killed have left on an interface, and counts what is attached still: an agent that
/// lives keeps its TCX links.
///
/// # Errors
/// [`Error::NoInterface`], [`Error::Permission`].
pub fn clean(iface: &str) -> Result<Cleaned, Error> {
    let device = device::find(iface)?;
    // Without these the kernel shows no programs, and "nothing found" would be no answer.
    if !(privileges::has(privileges::NET_ADMIN) && privileges::has(privileges::SYS_ADMIN)) {
        return Err(Error::Permission { what: "the eBPF programs on an interface" });
    }
    let removed = attach::remove_filters(device.index);
    Ok(Cleaned { removed, still_attached: attach::attached(device.index) })
}

impl Enforcer for Rewriter {
    fn flows(&self) -> Result<Vec<(Key, Flow)>, Error> {
        Rewriter::flows(self)
    }

    fn set_target(&self, key: &Key, born: Time, target: Option<Bytes>) -> Result<bool, Error> {
        Rewriter::set_target(self, key, born, target)
    }

    fn forget(&self, key: &Key) -> Result<(), Error> {
        Rewriter::forget(self, key)
    }

    fn heartbeat(&self, now: Time) {
        Rewriter::heartbeat(self, now);
    }
}

/// `CLOCK_MONOTONIC`, which the eBPF program reads too.
fn monotonic() -> Time {
    let now = clock_gettime(ClockId::CLOCK_MONOTONIC).expect("CLOCK_MONOTONIC is always there");
    let (s, ns) = (u64::try_from(now.tv_sec()).unwrap_or(0), u64::try_from(now.tv_nsec()).unwrap_or(0));
    Time::from_nanos(s * 1_000_000_000 + ns)
}
