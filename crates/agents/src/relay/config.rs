//! What an operator may choose, and what there is to say at the end.

use super::{Counters, Handled, MAX_DEVICES, MAX_PORTS, Measured};
use crate::service::{Error, Method, Say};
use lasthop_units::{Span, serialise};
use serde::Serialize;
use std::path::PathBuf;

/// Where `lasthop recv` listens if nothing else is said.
pub const PORT: u16 = 4900;

/// Where D comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// From the kernel's tracepoints: packets are watched from the queueing discipline to the driver's completion.
    Kernel,
    /// From the driver's records of the node ([`lasthop_wire::driver`]), at this socket.
    Driver(PathBuf),
}

/// How a relay runs.
#[derive(Clone, Debug)]
pub struct Config {
    /// The interfaces that datagrams leave through: 1 to [`MAX_DEVICES`].
    pub devices: Vec<String>,
    /// UDP ports, of either end: 1 to [`MAX_PORTS`].
    pub ports: Vec<u16>,
    /// Where D comes from.
    pub source: Source,
    /// Packets of ECN-capable transports are marked while D is at least this.
    pub mark_above: Option<Span>,
    /// Neither D nor driver records older than this count: nothing is written then. 20 to 500 ms.
    pub age_limit: Span,
    /// How to attach.
    pub method: Method,
    /// Where to write the log (JSON lines), if anywhere.
    pub log: Option<PathBuf>,
    /// Give up all privileges that are not needed any more once everything is open.
    pub drop_privileges: bool,
    /// The user, by name or number, that the process becomes then; `None` to keep its own. Only with `drop_privileges`.
    pub user: Option<String>,
    /// Receives messages about what happens meanwhile.
    pub say: Say,
}

impl Config {
    /// A relay at these interfaces, with defaults for the rest.
    pub fn new(devices: Vec<String>) -> Config {
        Config {
            devices,
            ports: vec![PORT],
            source: Source::Kernel,
            mark_above: None,
            age_limit: Span::from_millis(250),
            method: Method::Best,
            log: None,
            drop_privileges: true,
            user: None,
            say: |_| {},
        }
    }

    /// Checks what can be checked without touching anything.
    ///
    /// # Errors
    /// [`Error::Config`].
    pub fn validate(&self) -> Result<(), Error> {
        let refuse = |key, got: String, bound| Err(Error::Config { key, got, bound });
        let mut devices = self.devices.clone();
        devices.sort();
        devices.dedup();
        if devices.len() != self.devices.len() || !(1..=MAX_DEVICES).contains(&devices.len()) {
            return refuse("dev", self.devices.join(", "), "1 to 16 interfaces, each once");
        }
        if !(1..=MAX_PORTS).contains(&self.ports.len()) || self.ports.contains(&0) {
            let ports: Vec<String> = self.ports.iter().map(u16::to_string).collect();
            return refuse("port", ports.join(", "), "1 to 8 ports, none of them 0");
        }
        if !(Span::from_millis(20)..=Span::from_millis(500)).contains(&self.age_limit) {
            return refuse("age_limit", self.age_limit.to_string(), "20 ms to 500 ms");
        }
        if self.mark_above.is_some_and(|above| !(Span::from_micros(10)..=Span::from_secs(4)).contains(&above)) {
            let got = self.mark_above.map_or_else(String::new, |above| above.to_string());
            return refuse("mark_ce", got, "10 us to 4 s");
        }
        Ok(())
    }
}

/// What a relay has done at one of its interfaces.
#[derive(Clone, Debug, Serialize)]
pub struct Device {
    /// Its name.
    #[serde(rename = "dev")]
    pub name: String,
    /// How the program was attached.
    pub method: Method,
    /// What the program counted.
    #[serde(flatten)]
    pub counters: Counters,
    /// What the kernel's tracepoints showed; `None` where D comes from elsewhere.
    #[serde(flatten)]
    pub measured: Option<Measured>,
    /// The largest D that was told.
    #[serde(rename = "largest_us", serialize_with = "serialise::whole_micros")]
    pub largest: Span,
}

/// What a relay has done: its account of itself, as serialised.
#[derive(Debug, Serialize)]
pub struct Summary {
    /// Interface by interface.
    pub devices: Vec<Device>,
    /// Records of the driver that were used.
    pub records: u64,
    /// Messages of the driver that could not be read, or were too old.
    #[serde(rename = "refused_records")]
    pub refused: u64,
    /// How often the driver went away.
    #[serde(rename = "driver_losses")]
    pub losses: u64,
    /// What a handler at user level did; `None` if there was none.
    #[serde(flatten)]
    pub handled: Option<Handled>,
    /// Why the log ended early, if it did.
    #[serde(skip)]
    pub log_error: Option<Error>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_is_refused_with_what_would_be_right() {
        let good = Config::new(vec!["wlan0".into(), "wlan1".into()]);
        assert!(good.validate().is_ok());
        let told = |change: fn(&mut Config)| {
            let mut config = good.clone();
            change(&mut config);
            config.validate().expect_err("refused").to_string()
        };
        assert!(told(|config| config.devices.clear()).contains("1 to 16 interfaces"));
        assert!(told(|config| config.devices.push("wlan0".into())).contains("each once"));
        assert!(told(|config| config.ports = vec![0]).contains("none of them 0"));
        assert!(told(|config| config.ports = (1..10).collect()).contains("1 to 8"));
        assert!(told(|config| config.age_limit = Span::from_secs(1)).contains("500 ms"));
        assert!(told(|config| config.mark_above = Some(Span::ZERO)).contains("10 us"));
    }
}
