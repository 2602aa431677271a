//! A relay's loop: D from its source to the program, ever anew.

use super::config::{Config, Device, Summary};
use super::error::Error;
use super::handler::{Handler, Prepared};
use super::source::Feed;
use super::stamper::{Place, RELAY, Stamper};
use super::{Counters, PerHop};
use crate::service::clock::monotonic_now;
use crate::service::counters::account;
use crate::service::log::Log;
use crate::service::privileges::{self, Account};
use crate::service::status::Shown;
use crate::service::{self, Cleaned, Method, Stop, attach, device, fraglist, system};
use lasthop_laws::atp::HopDelay;
use lasthop_units::{Span, Time};
use serde::Serialize;

/// How often D is told.
const BEAT: Span = Span::from_millis(5);
/// How often it is looked whether the programs are where they were left.
const LOOK: Span = Span::from_millis(500);
/// How often each interface has a line in the log.
const LINE: Span = Span::from_millis(100);

/// A relay with everything open and its privileges given up.
pub struct Relay {
    config: Config,
    // What stamps goes before what measures.
    stamper: Stamper,
    feed: Feed,
    hops: Vec<Hop>,
    handler: Option<Handler>,
    log: Option<Log>,
}

/// One of its interfaces.
struct Hop {
    name: String,
    index: i32,
    place: Place,
    method: Method,
    largest: Span,
    shown: Shown<()>,
}

/// A line of the log (docs/reference/logs.md).
#[derive(Serialize)]
struct Line<'a> {
    t_ns: Time,
    dev: &'a str,
    delay_us: Option<u64>,
    queueing_ns: Option<Span>,
    service_ns: Option<Span>,
    waiting_packets: Option<u32>,
    seen: u64,
    stamped: u64,
    stale: u64,
    other: u64,
    marked: u64,
}

impl Relay {
    /// Opens everything that needs privileges, and gives those up.
    ///
    /// # Errors
    /// [`Error`].
    pub fn open(config: &Config) -> Result<Relay, Error> {
        Relay::with(config, None)
    }

    /// As [`Relay::open`], and every packet that leaves passes a handler at user level.
    ///
    /// # Errors
    /// [`Error`].
    pub fn open_with(config: &Config, handler: Box<dyn PerHop>) -> Result<Relay, Error> {
        Relay::with(config, Some(handler))
    }

    fn with(config: &Config, handler: Option<Box<dyn PerHop>>) -> Result<Relay, Error> {
        config.validate()?;
        let account = config.user.as_deref().map(Account::find).transpose()?;
        let devices = config.devices.iter().map(|name| device::find(name)).collect::<Result<Vec<_>, _>>()?;
        refuse_lists()?;
        let log = config.log.as_deref().map(|path| Log::create(path, config.say)).transpose()?;
        let named = || devices.iter().zip(&config.devices);
        let claim =
            |(device, name): (&device::Device, &String)| Shown::claim(RELAY.kind, (name, device.index), Vec::new());
        let claims = named().map(claim).collect::<Result<Vec<_>, _>>()?;
        let indices: Vec<i32> = devices.iter().map(|device| device.index).collect();
        // Loading takes a moment, in which a driver that is connected would not be heard; and before D is measured there is nothing to stamp.
        let mut stamper = Stamper::load(&config.ports, config.mark_above)?;
        let feed = Feed::open(&config.source, &indices, config.say)?;
        let mut hops = Vec::new();
        for ((device, name), shown) in named().zip(claims) {
            let place = stamper.add(device.index, device.link_len);
            let method = stamper.attach(device.index, config.method)?;
            let (name, index) = (name.clone(), device.index);
            hops.push(Hop { name, index, place, method, largest: Span::ZERO, shown });
        }
        let handler = handler.map(|handler| Prepared::new(&config.devices, handler)).transpose()?;
        if config.drop_privileges {
            // Maps are reached through descriptors that are open already, and TCX links go with theirs. A filter has to be removed by hand.
            let by_hand = hops.iter().any(|hop| hop.method == Method::Clsact);
            let keep: &[u32] = match by_hand || handler.is_some() {
                true => &[privileges::BPF, privileges::NET_ADMIN],
                false => &[privileges::BPF],
            };
            privileges::become_with(account.as_ref(), keep)?;
        }
        let handler = handler.map(Prepared::begin).transpose()?;
        Ok(Relay { config: config.clone(), stamper, feed, hops, handler, log })
    }

    /// Interfaces, and how the program is attached to each.
    pub fn devices(&self) -> impl Iterator<Item = (&str, Method)> {
        self.hops.iter().map(|hop| (hop.name.as_str(), hop.method))
    }

    /// Works until `stop` is set.
    ///
    /// # Errors
    /// [`Error`], if the kernel takes away what it needs. A driver that goes away is no error.
    pub fn run(mut self, stop: &Stop) -> Result<Summary, Error> {
        let age_limit = self.config.age_limit;
        let (mut look, mut line) = (Time::ZERO, Time::ZERO);
        while !stop.is_asked() {
            let now = monotonic_now();
            self.feed.wait(now, BEAT, age_limit);
            self.tell();
            if look <= now {
                look = now + LOOK;
                self.look(now)?;
            }
            if line <= now {
                line = now + LINE;
                self.write(now);
            }
        }
        for hop in &self.hops {
            self.stamper.set(hop.place, Span::ZERO, Time::ZERO);
        }
        let devices = (0..self.hops.len()).map(|place| self.device(place)).collect();
        let Relay { feed, handler, log, .. } = self;
        let (records, refused, losses) = match &feed {
            Feed::Kernel(_) => (0, 0, 0),
            Feed::Driver(driver) => (driver.records, driver.refused, driver.losses),
        };
        let handled = handler.map(Handler::end).transpose()?;
        Ok(Summary { devices, records, refused, losses, handled, log_error: log.and_then(Log::finish) })
    }

    /// What was done at an interface.
    fn device(&self, place: usize) -> Device {
        let hop = &self.hops[place];
        let (counters, measured) = (self.stamper.counters(hop.place), self.feed.measured(place));
        Device { name: hop.name.clone(), method: hop.method, counters, measured, largest: hop.largest }
    }

    /// Tells the program what D is, where anything is known.
    fn tell(&mut self) {
        let now = monotonic_now();
        let mut all: Option<Span> = None;
        for (place, hop) in self.hops.iter_mut().enumerate() {
            let Some((node, until)) = self.feed.node(place, now, self.config.age_limit) else { continue };
            let delay = HopDelay::of(node).delay(now);
            self.stamper.set(hop.place, delay, until);
            hop.largest = hop.largest.max(delay);
            all = all.max(Some(delay));
        }
        if let Some(handler) = &self.handler {
            handler.tell(all);
        }
    }

    fn look(&mut self, now: Time) -> Result<(), Error> {
        self.feed.look(self.hops.len(), now)?;
        for (place, hop) in self.hops.iter().enumerate() {
            hop.shown.show(|| ((), account(&self.device(place))));
        }
        if let Some(handler) = &self.handler {
            handler.look()?;
        }
        if self.stamper.is_attached() {
            return Ok(());
        }
        let gone = self.hops.iter().find_map(|hop| match device::find(&hop.name) {
            Ok(device) if device.index == hop.index => None,
            Ok(_) => Some(format!("{} was deleted, and another interface has its name", hop.name)),
            Err(_) => Some(format!("{} has gone", hop.name)),
        });
        let why = gone.unwrap_or_else(|| "somebody has removed the program from the interface".to_owned());
        Err(Error::Detached { why })
    }

    fn write(&mut self, now: Time) {
        let Some(log) = &mut self.log else { return };
        for (place, hop) in self.hops.iter().enumerate() {
            let node = self.feed.node(place, now, self.config.age_limit).map(|(node, _)| node);
            let Counters { seen, stamped, stale, other, marked } = self.stamper.counters(hop.place);
            log.line(&Line {
                t_ns: now,
                dev: &hop.name,
                delay_us: node.map(|node| HopDelay::of(node).delay(now).as_micros()),
                queueing_ns: node.map(|node| node.queueing),
                service_ns: node.map(|node| node.service),
                waiting_packets: node.map(|node| node.waiting),
                seen,
                stamped,
                stale,
                other,
                marked,
            });
        }
    }
}

/// The kernel would take lists of packets apart again behind the program, which sees the first alone.
fn refuse_lists() -> Result<(), Error> {
    let interfaces = nix::net::if_::if_nameindex().map_err(system("interfaces"))?;
    for interface in &interfaces {
        let Ok(name) = interface.name().to_str() else { continue };
        if fraglist::is_on(name)? {
            return Err(Error::Lists(name.to_owned()));
        }
    }
    Ok(())
}

/// Removes what relays that were killed have left on an interface, and counts what is attached still.
///
/// # Errors
/// [`service::Error::NoInterface`], [`service::Error::Permission`].
pub fn clean(iface: &str) -> Result<Cleaned, service::Error> {
    attach::clean(&RELAY, iface)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::documented::{self, lists_exactly};

    #[test]
    fn the_page_on_logs_lists_every_field_and_no_other() {
        let line = Line {
            t_ns: Time::from_nanos(1),
            dev: "wlan0",
            delay_us: Some(2),
            queueing_ns: Some(Span::ZERO),
            service_ns: Some(Span::ZERO),
            waiting_packets: Some(1),
            seen: 0,
            stamped: 0,
            stale: 0,
            other: 0,
            marked: 0,
        };
        lists_exactly(documented::RELAY, &serde_json::to_value(line).expect("JSON"));
    }
}
