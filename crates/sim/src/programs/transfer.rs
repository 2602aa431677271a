//! Traffic over TCP: bulk transfers, and what applications fetch.

use crate::context::Context;
use crate::payload::ProgramId;
use crate::program::Program;
use crate::programs::connection::App;
use crate::programs::source::Source;
use crate::programs::tcp;
use lasthop_scenario::StreamKind;

/// The applications of one stream.
#[derive(Clone)]
pub(crate) struct Transfer {
    source: Source,
}

impl Transfer {
    /// The program of this stream.
    pub(crate) fn new(source: Source) -> Transfer {
        Transfer { source }
    }
}

impl Program for Transfer {
    fn begin(&mut self, context: &mut Context, own: ProgramId) {
        self.source.begin(context, own);
    }

    fn wake(&mut self, context: &mut Context, _: u32) {
        self.source.step(context);
        let stream = &self.source.stream;
        match stream.kind {
            StreamKind::Bulk { .. } if context.now >= stream.stop => tcp::stop(context, stream),
            StreamKind::Bulk { size, .. } => tcp::open(context, stream, App::Bulk { size }),
            StreamKind::Fetch { size, .. } => tcp::open(context, stream, App::Fetch { size }),
            StreamKind::Udp { .. } | StreamKind::Probe { .. } => {}
        }
    }
}
