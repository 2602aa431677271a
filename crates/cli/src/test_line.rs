//! The arguments of one command, read from a line: for tests.

use clap::{Args, Parser};

/// A line that has them alone.
#[derive(Parser)]
pub(crate) struct Line<A: Args> {
    /// What it says.
    #[command(flatten)]
    pub(crate) args: A,
}
