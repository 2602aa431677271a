//! Which flows share what a station has in its cell.

use crate::world::World;
use lasthop_signals::HostId;
use lasthop_transport::Sharing;
use lasthop_units::Time;

impl World {
    /// The flows that get data at `host`, of these connections.
    pub(crate) fn sharing(&self, at: Time, host: HostId, numbers: &[usize]) -> Sharing {
        Sharing::of(numbers.iter().filter_map(|number| self.connections[*number].received_lately(at, host)))
    }
}
