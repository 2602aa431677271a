//! Which flows there are and what has become of them, without reading all of the table each time.
//!
//! The program counts the flows that enter: only then are there new places to look for. A flow's entry is read again only
//! if a packet has used it since, which one word tells.

use super::abi::Key;
use super::table::{Slot, Table};
use lasthop_laws::oal::rwnd::Flow;

/// A flow as it was last read.
pub(super) struct Seen<'a> {
    pub slot: Slot,
    pub key: &'a Key,
    pub flow: &'a Flow,
    /// Whether a packet may have changed it since the last look.
    pub changed: bool,
}

/// What was seen at the last look.
#[derive(Default)]
pub(super) struct Watch {
    changes: Option<u64>,
    known: Vec<Known>,
}

struct Known {
    slot: Slot,
    key: Key,
    flow: Flow,
    used: u32,
    /// No packet can have changed the flow since, unless `used` has moved.
    settled: bool,
}

/// A packet writes within a tick of the moment that it took as its own, and the tick that user space knows may be one
/// behind.
const SETTLED: i32 = 2;

impl Watch {
    /// Looks at every flow; `changes` is the program's count of flows that entered, `tick` the newest tick known.
    pub(super) fn look(&mut self, table: &Table, changes: u64, tick: u32, each: &mut dyn FnMut(Seen<'_>)) {
        if self.changes != Some(changes) {
            self.changes = Some(changes);
            self.find(table);
        }
        self.known.retain_mut(|known| {
            let used = table.used(known.slot);
            let changed = !known.settled || used != known.used;
            if changed {
                let Some((key, flow)) = table.read(known.slot) else { return false };
                let settled = tick.wrapping_sub(used) as i32 >= SETTLED;
                *known = Known { key, flow, used, settled, ..*known };
            } else if !table.is_taken(known.slot) {
                return false;
            }
            each(Seen { slot: known.slot, key: &known.key, flow: &known.flow, changed });
            true
        });
    }

    /// Adds places that are taken and not known yet; those that are known keep what is known of them.
    fn find(&mut self, table: &Table) {
        let mut before = std::mem::take(&mut self.known).into_iter().peekable();
        for slot in table.taken() {
            while before.next_if(|known| known.slot < slot).is_some() {}
            match before.next_if(|known| known.slot == slot) {
                Some(known) => self.known.push(known),
                None => {
                    let (key, flow) = (Key::default(), Flow::new());
                    self.known.push(Known { slot, key, flow, used: 0, settled: false });
                }
            }
        }
    }
}
