//! What happens next, and in which order.
//!
//! Every component of the world (a wire, a hop, one end of a connection, a source) has at most one moment at which it
//! next wants to be woken. The agenda is an indexed binary heap over components, so a moment that changes is moved, not
//! left behind as a stale entry. The order is total: by time, then by component number; equal seeds therefore give equal
//! runs, whatever the history of the heap.

use lasthop_units::Time;

/// A component's number; also its rank among events of the same time.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Component(pub u32);

/// The next moment of every component that has one.
#[derive(Clone, Debug, Default)]
pub struct Agenda {
    heap: Vec<(Time, Component)>,
    /// Where each component stands in the heap; [`ABSENT`] if it waits for nothing.
    places: Vec<usize>,
}

const ABSENT: usize = usize::MAX;

impl Agenda {
    /// The earliest moment and its component.
    pub fn next(&self) -> Option<(Time, Component)> {
        self.heap.first().copied()
    }

    /// The moment of a component; `None` if it waits for nothing.
    pub fn at(&self, component: Component) -> Option<Time> {
        let place = *self.places.get(component.0 as usize)?;
        self.heap.get(place).map(|(at, _)| *at)
    }

    /// Sets the moment of `component`; `None` takes it off.
    pub fn set(&mut self, component: Component, at: Option<Time>) {
        let index = component.0 as usize;
        if index >= self.places.len() {
            self.places.resize(index + 1, ABSENT);
        }
        match (self.places[index], at) {
            (ABSENT, None) => {}
            (ABSENT, Some(at)) => {
                self.heap.push((at, component));
                self.rise(self.heap.len() - 1);
            }
            (place, Some(at)) => {
                let before = std::mem::replace(&mut self.heap[place].0, at);
                if at < before {
                    self.rise(place);
                } else if at > before {
                    self.sink(place);
                }
            }
            (place, None) => self.remove(place),
        }
    }

    fn remove(&mut self, place: usize) {
        self.places[self.heap[place].1.0 as usize] = ABSENT;
        let last = self.heap.pop().expect("place exists");
        if place < self.heap.len() {
            self.heap[place] = last;
            self.places[last.1.0 as usize] = place;
            self.rise(place);
            self.sink(self.places[last.1.0 as usize]);
        }
    }

    fn rise(&mut self, mut place: usize) {
        let entry = self.heap[place];
        while place > 0 {
            let parent = (place - 1) / 2;
            if rank(self.heap[parent]) <= rank(entry) {
                break;
            }
            self.put(place, self.heap[parent]);
            place = parent;
        }
        self.put(place, entry);
    }

    fn sink(&mut self, mut place: usize) {
        let entry = self.heap[place];
        loop {
            let left = 2 * place + 1;
            let Some(&first) = self.heap.get(left) else { break };
            let second = self.heap.get(left + 1).copied().unwrap_or(LAST);
            // Which of the two comes first is a coin toss, so it is computed, not branched on.
            let right = rank(second) < rank(first);
            let least = if right { second } else { first };
            if rank(least) >= rank(entry) {
                break;
            }
            self.put(place, least);
            place = left + usize::from(right);
        }
        self.put(place, entry);
    }

    fn put(&mut self, place: usize, entry: (Time, Component)) {
        self.heap[place] = entry;
        self.places[entry.1.0 as usize] = place;
    }
}

/// After every entry.
const LAST: (Time, Component) = (Time::MAX, Component(u32::MAX));

/// The order of entries as one number: by time, then by component.
fn rank((at, component): (Time, Component)) -> u128 {
    u128::from(at.as_nanos()) << 64 | u128::from(component.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        #[test]
        fn the_agenda_agrees_with_a_sorted_map_after_every_change(
            changes in proptest::collection::vec((0u32..20, proptest::option::of(0u64..50)), 0..300),
        ) {
            let (mut agenda, mut model) = (Agenda::default(), BTreeMap::new());
            for (component, at) in changes {
                let (component, at) = (Component(component), at.map(Time::from_nanos));
                agenda.set(component, at);
                match at {
                    Some(at) => { model.insert(component, at); }
                    None => { model.remove(&component); }
                }
                let expected = model.iter().map(|(component, at)| (*at, *component)).min();
                prop_assert_eq!(agenda.next(), expected);
            }
        }
    }
}
