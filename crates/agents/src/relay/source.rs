//! Where a relay's D comes from, as it runs.

use super::measure::Measure;
use super::{Measured, Source};
use crate::service::backoff::Backoff;
use crate::service::driver::{DriverSource as _, SocketDriver};
use crate::service::{Error, Say};
use lasthop_signals::NodeDelay;
use lasthop_units::{Span, Time};
use lasthop_wire::driver::{self, NodeRecord};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// A source that is open.
pub(super) enum Feed {
    Kernel(Box<Measure>),
    Driver(Driver),
}

/// The driver of a node, at its socket.
pub(super) struct Driver {
    path: PathBuf,
    socket: SocketDriver,
    connected: bool,
    backoff: Backoff,
    newest: Option<NodeRecord>,
    say: Say,
    pub records: u64,
    pub refused: u64,
    pub losses: u64,
}

/// A clock of one host is no further ahead of itself than this.
const AHEAD: Span = Span::from_millis(1);

impl Feed {
    /// Opens a source for these interfaces.
    pub(super) fn open(source: &Source, devices: &[i32], say: Say) -> Result<Feed, Error> {
        match source {
            Source::Kernel => Measure::begin(devices).map(|measure| Feed::Kernel(Box::new(measure))),
            Source::Driver(path) => Driver::connect(path, say).map(Feed::Driver),
        }
    }

    /// Waits for news, about so long at most.
    pub(super) fn wait(&mut self, now: Time, patience: Span, age_limit: Span) {
        match self {
            Feed::Kernel(_) => std::thread::sleep(patience.into()),
            Feed::Driver(driver) => driver.wait(now, patience, age_limit),
        }
    }

    /// What is known of an interface, and until when it counts; `None` if that is over.
    pub(super) fn node(&self, place: usize, now: Time, age_limit: Span) -> Option<(NodeDelay, Time)> {
        match self {
            Feed::Kernel(measure) => Some((measure.delay(place), now + age_limit)),
            Feed::Driver(driver) => {
                let record = driver.newest?;
                let until = record.at + age_limit;
                (until > now).then_some((record.delay, until))
            }
        }
    }

    pub(super) fn look(&self, devices: usize, now: Time) -> Result<(), Error> {
        match self {
            Feed::Kernel(measure) => (0..devices).try_for_each(|place| measure.look(place, now)),
            Feed::Driver(_) => Ok(()),
        }
    }

    pub(super) fn measured(&self, place: usize) -> Option<Measured> {
        match self {
            Feed::Kernel(measure) => Some(measure.measured(place)),
            Feed::Driver(_) => None,
        }
    }
}

impl Driver {
    fn connect(path: &Path, say: Say) -> Result<Driver, Error> {
        let failed = |source| Error::Driver { path: path.to_owned(), source };
        Ok(Driver {
            path: path.to_owned(),
            socket: SocketDriver::connect(path).map_err(failed)?,
            connected: true,
            backoff: Backoff::new(),
            newest: None,
            say,
            records: 0,
            refused: 0,
            losses: 0,
        })
    }

    fn wait(&mut self, now: Time, patience: Span, age_limit: Span) {
        if !self.connected {
            if self.backoff.may_try(now) && self.socket.reconnect().is_ok() {
                (self.say)(&format!("the driver at {} is back", self.path.display()));
                self.connected = true;
            } else {
                std::thread::sleep(patience.into());
            }
            return;
        }
        match self
            .socket
            .newest_of(patience, |message| driver::other_kind(driver::decode_node(message), driver::KIND_HOP))
        {
            Ok(None) => {}
            Ok(Some(record)) if record.at <= now + patience + AHEAD && record.at + age_limit > now => {
                self.backoff.succeeded();
                self.records += 1;
                self.newest = Some(record);
            }
            Ok(Some(_)) => self.refused += 1,
            Err(error) if error.kind() == ErrorKind::InvalidData => {
                if self.refused == 0 {
                    (self.say)(&format!(
                        "the driver at {}: {error}; such messages are passed over",
                        self.path.display()
                    ));
                }
                self.refused += 1;
            }
            Err(_) => {
                (self.say)(&format!("the driver at {} has gone; nothing is stamped meanwhile", self.path.display()));
                self.connected = false;
                self.losses += 1;
            }
        }
    }
}
