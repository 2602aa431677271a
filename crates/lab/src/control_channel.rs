//! What a station's decoder writes of its cell: a named pipe for each carrier, in NG-Scope's format.
//!
//! A pipe is written to while a program reads it. A reader that is too slow misses subframes, as a decoder does that
//! has no time for them.

use crate::error::{Doing, Result};
use crate::run_dir::RunDir;
use lasthop_signals::{CellSubframe, Node};
use lasthop_units::Time;
use lasthop_wire::dci;
use nix::sys::stat::Mode;
use nix::unistd::mkfifo;
use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;

/// The control channels of a station.
#[derive(Debug)]
pub struct ControlChannels {
    station: Node,
    carriers: Vec<Pipe>,
    /// Subframes that were not taken in time.
    unread: u64,
    line: String,
}

#[derive(Debug)]
struct Pipe {
    path: PathBuf,
    /// `None` while nobody reads it.
    file: Option<File>,
}

impl ControlChannels {
    /// Makes the pipes of a station in a cell with so many carriers.
    pub fn make(run: &RunDir, station: Node, carriers: usize) -> Result<ControlChannels> {
        let make = |carrier: usize| {
            let path = ControlChannels::path(run, station, carrier);
            mkfifo(&path, Mode::S_IRUSR | Mode::S_IWUSR).doing(|| format!("making {}", path.display()))?;
            Ok(Pipe { path, file: None })
        };
        let carriers = (0..carriers).map(make).collect::<Result<_>>()?;
        Ok(ControlChannels { station, carriers, unread: 0, line: String::new() })
    }

    /// The pipe of a station's carrier.
    pub fn path(run: &RunDir, station: Node, carrier: usize) -> PathBuf {
        run.file(&format!("control-{}-{carrier}.dciLog", station.0))
    }

    /// The station that they are of.
    pub fn station(&self) -> Node {
        self.station
    }

    /// Subframes that a reader did not take in time.
    pub fn unread(&self) -> u64 {
        self.unread
    }

    /// A subframe is over; `at`: when, since 1970.
    pub fn show(&mut self, at: Time, subframe: &CellSubframe) {
        let Some(pipe) = self.carriers.get_mut(usize::from(subframe.carrier)) else { return };
        let Some(file) = pipe.open() else { return };
        self.line.clear();
        dci::write_ngscope(subframe, at, &mut self.line);
        // What is no longer than PIPE_BUF goes whole or not at all: the lines of 26 terminals, and a carrier has at most 25 groups of PRBs.
        match file.write(self.line.as_bytes()) {
            Ok(written) => self.unread += u64::from(written < self.line.len()),
            Err(error) if error.kind() == ErrorKind::WouldBlock => self.unread += 1,
            // The reader has gone.
            Err(_) => pipe.file = None,
        }
    }
}

impl Pipe {
    fn open(&mut self) -> Option<&mut File> {
        if self.file.is_none() {
            // Without a reader this fails at once.
            self.file = OpenOptions::new().write(true).custom_flags(libc::O_NONBLOCK).open(&self.path).ok();
        }
        self.file.as_mut()
    }
}
