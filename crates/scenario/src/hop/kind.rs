//! What each kind of last hop tells of itself.

use crate::bounds::Run;
use crate::queue::Queue;
use crate::read::{Context, Read};
use lasthop_radio::LastHop;
use lasthop_radio::queue::HopQueue;

/// A kind of last hop, as its table describes it in a file with the tables `F`.
pub(crate) trait HopTable<F>: Read + Clone {
    /// What messages call it.
    const CALLED: &'static str;
    /// What a station of it has in place of the keys of others.
    const INSTEAD: &'static str;

    /// The hop with the file's stations. Everything that cannot stand beside it is reported.
    fn plan(&self, file: &F, run: Run, cx: &mut Context) -> Option<LastHop>;

    /// The access point's queue, as a law has it.
    fn queue(table: &Queue, cx: &mut Context) -> Option<HopQueue>;
}
