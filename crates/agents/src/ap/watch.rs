//! Which flows there are and what has become of them, without reading all of the table each time.
//!
//! The program counts the flows that enter: only then are there new places to look for. A flow's entry is read again only
//! if a packet has used it since, which one word tells.

use super::abi::Key;
use super::table::{Slot, Table};
use lasthop_laws::oal::rwnd::Flow;
use lasthop_units::Span;

/// A flow as it was last read.
pub(super) struct Seen<'a> {
    pub slot: Slot,
    pub key: &'a Key,
    pub flow: &'a Flow,
    /// Whether a packet may have changed it since the last look.
    pub changed: bool,
    /// For how long no packet has used it, by the kernel's ticks.
    pub unused: Span,
}

/// Whether a flow is to be shown again.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Attention {
    /// At the next look.
    Always,
    /// When a packet has used it, or at a look at everything.
    OnChange,
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
    attention: Attention,
}

/// A packet writes within a tick of the moment that it took as its own, and the tick that user space knows may be one
/// behind.
const SETTLED: i32 = 2;

impl Watch {
    /// Looks at every flow that has attention, with `all` at those too that have not; `changes` is the program's count of flows that
    /// entered, `tick` the newest tick known, and `tick_len` how long a tick is.
    pub(super) fn look(
        &mut self,
        table: &Table,
        (changes, tick, tick_len): (u64, u32, Span),
        all: bool,
        each: &mut dyn FnMut(Seen<'_>) -> Attention,
    ) {
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
            if all || changed || known.attention == Attention::Always {
                // A packet's tick may be newer than the one that is known here.
                let ticks = u64::from(tick.wrapping_sub(used).cast_signed().max(0).cast_unsigned());
                let (slot, unused) = (known.slot, tick_len * ticks);
                known.attention = each(Seen { slot, key: &known.key, flow: &known.flow, changed, unused });
            }
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
                    let (key, flow) = (Key::default(), Flow::default());
                    let attention = Attention::Always;
                    self.known.push(Known { slot, key, flow, used: 0, settled: false, attention });
                }
            }
        }
    }
}
