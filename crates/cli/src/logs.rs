//! Flags that name the logs of a terminal's carriers, for every command that measures its cell.

use crate::cell;
use clap::Args as ClapArgs;
use lasthop_agents::pbe::Logs;
use lasthop_signals::Rnti;
use lasthop_units::Span;
use std::path::PathBuf;

/// What a decoder writes of the cell, and what is known of it beforehand. A command that needs it puts `logs` into a group that is required.
#[derive(ClapArgs)]
pub struct LogArgs {
    /// A decoder's log of a carrier, a pipe, or `-` for standard input; repeat for each carrier, that of the primary cell first
    #[arg(long = "dci", id = "logs", value_name = "FILE", requires = "rnti")]
    files: Vec<PathBuf>,
    /// PRB pairs of the carrier; repeat for each. Without it the next size that carriers have above the largest assignment
    #[arg(long, value_name = "NUMBER", requires = "logs", value_parser = clap::value_parser!(u16).range(1..=275))]
    prb: Vec<u16>,
    /// How far apart an NR carrier's subcarriers are: 15, 30, 60 or 120 kHz; a log of NR needs it
    #[arg(long, value_name = "SPACING", requires = "logs", value_parser = cell::spacing)]
    scs: Option<u8>,
    /// The terminal's own number in the cell (`lasthop cell --traffic` finds it)
    #[arg(long, value_name = "NUMBER", requires = "logs", value_parser = clap::value_parser!(u16).range(1..=65523))]
    rnti: Option<u16>,
    /// How long a row may come after those of later slots: what is told is so much later
    #[arg(long, value_name = "TIME", requires = "logs", default_value = "2 ms", allow_hyphen_values = true, value_parser = cell::window)]
    window: Span,
}

impl LogArgs {
    /// What they say; `None` if no log is named.
    pub fn given(&self) -> Option<Logs> {
        let rnti = self.rnti.filter(|_| !self.files.is_empty())?;
        Some(Logs {
            files: self.files.clone(),
            prb: self.prb.clone(),
            slots: self.scs,
            rnti: Rnti(rnti),
            window: self.window,
        })
    }
}
