//! Stations decode their cell's control channel; their connections tell what follows from it.

use crate::context::Context;
use crate::payload::ProgramId;
use crate::program::{Heard, Program};
use crate::programs::tcp;
use lasthop_scenario::Scenario;
use lasthop_signals::Node;
use lasthop_transport::{CellOption, Sharing};
use lasthop_units::Time;

/// The monitors of this many stations.
#[derive(Clone)]
pub(crate) struct CellMonitor(pub(crate) usize);

impl Program for CellMonitor {
    fn begin(&mut self, context: &mut Context, own: ProgramId) {
        (0..self.0).for_each(|place| context.listen(own, Scenario::station_node(place)));
    }

    fn overheard(&mut self, context: &mut Context, at: Time, station: Node, heard: &Heard<'_>) {
        let Heard::Driver(signal) = heard else { return };
        if context.sockets.with_feedback.is_empty() {
            return;
        }
        let host = context.host_of(station);
        let mut telling = std::mem::take(&mut context.sockets.with_feedback);
        telling.retain(|number| context.sockets.connections[*number].tells());
        let received = |number: &usize| Some(context.sockets.connections[*number].told_from(host)?.lately(at));
        // The flows that share what the station has in its cell.
        let sharing = Sharing::of(telling.iter().filter_map(received));
        for number in &telling {
            let connection = &mut context.sockets.connections[*number];
            let Some(end) = connection.end_that_tells(host) else { continue };
            if let Some(own) = connection.end(end).carried_mut::<CellOption>().and_then(CellOption::tells_mut) {
                own.share(at, sharing.with(own.lately(at)));
                own.sense(at, signal);
            }
            // The law may want to be woken; what it tells waits for the next segment.
            tcp::set_timer(context, *number, end);
        }
        context.sockets.with_feedback = telling;
    }
}
