//! The logs of a terminal's carriers: what is said of them, and reading them together.

use super::carrier::{Carrier, Known};
use super::error::Error;
use crate::service::poll::Poll;
use crate::service::{self, Say, system};
use lasthop_signals::{CellSubframe, Rnti};
use lasthop_units::{Span, Time};
use std::path::PathBuf;

/// Carriers of a terminal.
pub const MOST_CARRIERS: usize = 8;

/// What decoders write of a terminal's cell, and what is known of it beforehand.
#[derive(Clone, Debug)]
pub struct Logs {
    /// The logs of the terminal's carriers, the first one its primary cell's; `-` is standard input. 1 to [`MOST_CARRIERS`].
    pub files: Vec<PathBuf>,
    /// PRB pairs of each carrier: none, one for all, or as many as there are logs. Without it the next size that carriers have above the largest assignment.
    pub prb: Vec<u16>,
    /// Slots of a frame of 10 ms; `None`: ten, as in LTE. A log of NR needs it.
    pub slots: Option<u8>,
    /// The terminal's own number in the cell.
    pub rnti: Rnti,
    /// How long a row may come after those of later slots.
    pub window: Span,
}

impl Logs {
    pub(crate) fn validate(&self) -> Result<(), service::Error> {
        let refuse = |key, got: String, bound| Err(service::Error::Config { key, got, bound });
        if self.files.is_empty() || self.files.len() > MOST_CARRIERS {
            return refuse("dci", self.files.len().to_string(), "given 1 to 8 times");
        }
        if self.files.iter().filter(|log| log.as_os_str() == "-").count() > 1 {
            return refuse("dci", "- -".to_owned(), "standard input once at most");
        }
        if self.prb.len() > 1 && self.prb.len() != self.files.len() {
            return refuse("prb", self.prb.len().to_string(), "given once, or once for each --dci");
        }
        Ok(())
    }
}

/// The carriers of which logs are read.
pub(crate) struct Carriers {
    each: Vec<Carrier>,
    subframes: u64,
}

impl Carriers {
    /// Opens the logs. `poll` wakes up for those that tell that there is something to read, with `token` and the carrier's number; files that grow
    /// are to be looked at.
    pub(crate) fn open(logs: &Logs, poll: &Poll, token: u64, say: Say) -> Result<Carriers, Error> {
        let mut each = Vec::new();
        for (number, path) in (0u8..).zip(&logs.files) {
            let prb = logs.prb.get(usize::from(number)).or(logs.prb.first()).copied();
            let known = Known { own: logs.rnti, prb, slots: logs.slots, window: logs.window };
            let carrier = Carrier::open(number, path, known, say)?;
            if let Some(file) = carrier.waits_on() {
                poll.add_level(&file, token | u64::from(number)).map_err(system("waiting for a log"))?;
            }
            each.push(carrier);
        }
        Ok(Carriers { each, subframes: 0 })
    }

    /// Reads what there is, and gives the subframes that are whole with it.
    pub(crate) fn read(&mut self, now: Time, poll: &Poll, each: &mut dyn FnMut(&CellSubframe)) -> Result<(), Error> {
        let Carriers { each: carriers, subframes } = self;
        for carrier in carriers.iter_mut().filter(|carrier| !carrier.is_over()) {
            carrier.read(now, &mut |subframe| {
                *subframes += 1;
                each(subframe);
            })?;
            // A pipe that has ended stays ready for ever.
            if let Some(file) = carrier.waits_on().filter(|_| carrier.is_over()) {
                poll.remove(&file);
            }
        }
        Ok(())
    }

    /// Lets go of what wakes up `poll`.
    pub(crate) fn close(self, poll: &Poll) {
        self.each.iter().filter_map(Carrier::waits_on).for_each(|file| poll.remove(&file));
    }

    /// True if a log is a file that grows, and is to be looked at.
    pub(crate) fn grows(&self) -> bool {
        self.each.iter().any(|carrier| !carrier.is_over() && carrier.waits_on().is_none())
    }

    /// True if nothing will come any more.
    pub(crate) fn is_over(&self) -> bool {
        self.each.iter().all(Carrier::is_over)
    }

    /// Subframes of all carriers so far.
    pub(crate) fn subframes(&self) -> u64 {
        self.subframes
    }

    /// Rows that say nothing that can be understood.
    pub(crate) fn unread(&self) -> u64 {
        self.each.iter().map(Carrier::unread).sum()
    }
}
