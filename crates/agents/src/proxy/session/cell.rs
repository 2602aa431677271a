//! A station that tells of its cell: PBE-CC's law has its session's pace, and the proxy's own law knows nothing of it.

use super::{Decided, Session};
use lasthop_laws::SenderLaw;
use lasthop_transport::tunnel::CellFigures;
use lasthop_units::{Span, Time};

/// Between two lines of the log on such a station.
pub(in crate::proxy) const LINES: Span = Span::from_millis(100);

impl Session {
    /// Lets a law that is told of the station's cell decide from now on.
    pub(in crate::proxy) fn follow(&mut self, now: Time, law: Box<dyn SenderLaw>) {
        self.endpoint.follow_cell(now, law);
        self.limit(now);
    }

    /// What the law knows and decides; `None` where no cell decides.
    pub(in crate::proxy) fn cell(&self, now: Time) -> Option<CellFigures> {
        self.endpoint.cell_figures(now)
    }

    /// True if the proxy's own law has nothing to do with the station.
    pub(in crate::proxy) fn follows(&self) -> bool {
        self.follows
    }

    /// Takes over what the law has decided; false where no cell decides.
    pub(super) fn take_over(&mut self, now: Time) -> bool {
        let figures = self.endpoint.cell_figures(now);
        if let Some(CellFigures { rate, why, .. }) = figures {
            (self.follows, self.decided) = (true, Decided { rate, why });
        }
        figures.is_some()
    }
}
