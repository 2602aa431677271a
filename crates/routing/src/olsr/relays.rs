//! Multipoint relays (MPRs): the neighbours that a node chooses so that what they forward reaches all two hops away.
//! Source:     RFC 3626, section 8.3.1, the heuristic with its optimisation (step 5).
//! Symbols:    N -> `neighbours`, N2 -> `far`, D(y) -> `degree`
//! Deviations: none. Where the RFC leaves it open (equal willingness, reachability and degree) the least address is chosen, so that equal
//!             neighbourhoods give equal relays.
//! Checked by: tests::every_neighbourhood_is_covered

use lasthop_wire::olsr::Willingness;
use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;

/// The relays among `neighbours`. `pairs` are neighbours with their neighbours, which may be neighbours of this node too.
pub fn select(
    neighbours: &BTreeMap<Ipv4Addr, Willingness>,
    pairs: impl IntoIterator<Item = (Ipv4Addr, Ipv4Addr)>,
) -> BTreeSet<Ipv4Addr> {
    // Only strict two-hop neighbours that somebody would forward to; each neighbour with those it reaches.
    let mut reaches: BTreeMap<Ipv4Addr, BTreeSet<Ipv4Addr>> = BTreeMap::new();
    for (via, far) in pairs {
        let willing = neighbours.get(&via).is_some_and(|willingness| *willingness > Willingness::NEVER);
        if willing && !neighbours.contains_key(&far) {
            reaches.entry(via).or_default().insert(far);
        }
    }
    let degree: BTreeMap<Ipv4Addr, usize> = reaches.iter().map(|(via, far)| (*via, far.len())).collect();
    // How many chosen relays cover each.
    let mut covered: BTreeMap<Ipv4Addr, u32> = reaches.values().flatten().map(|far| (*far, 0)).collect();
    let mut relays = BTreeSet::new();
    let mut choose = |via: Ipv4Addr, covered: &mut BTreeMap<Ipv4Addr, u32>| {
        if relays.insert(via) {
            for far in reaches.get(&via).into_iter().flatten() {
                covered.entry(*far).and_modify(|count| *count += 1);
            }
        }
    };

    let always = neighbours.iter().filter(|(_, willingness)| **willingness >= Willingness::ALWAYS);
    always.for_each(|(via, _)| choose(*via, &mut covered));
    let mut ways: BTreeMap<Ipv4Addr, (Ipv4Addr, usize)> = BTreeMap::new();
    for (via, far) in reaches.iter().flat_map(|(via, all)| all.iter().map(move |far| (*via, *far))) {
        ways.entry(far).or_insert((via, 0)).1 += 1;
    }
    for (via, _) in ways.values().filter(|(_, count)| *count == 1) {
        choose(*via, &mut covered);
    }
    loop {
        let reachability = |far: &BTreeSet<Ipv4Addr>| far.iter().filter(|far| covered[*far] == 0).count();
        let best = reaches
            .iter()
            .map(|(via, far)| (neighbours[via], reachability(far), degree[via], std::cmp::Reverse(*via)))
            .filter(|(_, reachability, ..)| *reachability > 0)
            .max();
        let Some((.., std::cmp::Reverse(via))) = best else { break };
        choose(via, &mut covered);
    }

    // A relay is not needed if others cover all nodes that it covers; the least willing go first.
    let mut order: Vec<(Willingness, Ipv4Addr)> = relays.iter().map(|via| (neighbours[via], *via)).collect();
    order.sort_unstable();
    for (_, via) in order.into_iter().filter(|(willingness, _)| *willingness < Willingness::ALWAYS) {
        let far = &reaches[&via];
        if far.iter().all(|far| covered[far] > 1) {
            relays.remove(&via);
            far.iter().for_each(|far| *covered.get_mut(far).expect("counted above") -= 1);
        }
    }
    relays
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::{btree_map, vec};
    use proptest::prelude::*;

    fn node(n: u8) -> Ipv4Addr {
        Ipv4Addr::new(10, 0, 0, n)
    }

    fn select_of(neighbours: &[(u8, u8)], pairs: &[(u8, u8)]) -> Vec<u8> {
        let neighbours = neighbours.iter().map(|(n, willingness)| (node(*n), Willingness(*willingness))).collect();
        let pairs = pairs.iter().map(|(via, far)| (node(*via), node(*far)));
        select(&neighbours, pairs).into_iter().map(|address| address.octets()[3]).collect()
    }

    #[test]
    fn sole_relays_are_chosen_and_others_by_what_they_add() {
        // 1 alone reaches 11; of 2 (12, 13) and 3 (12, 13, 14) the latter adds more.
        let pairs = [(1, 11), (2, 12), (2, 13), (3, 12), (3, 13), (3, 14), (4, 14), (2, 1)];
        assert_eq!(select_of(&[(1, 3), (2, 3), (3, 3), (4, 3)], &pairs), [1, 3]);
    }

    #[test]
    fn willingness_comes_before_reachability() {
        let pairs = [(1, 11), (1, 12), (2, 11), (3, 12)];
        assert_eq!(select_of(&[(1, 1), (2, 3), (3, 3)], &pairs), [2, 3]);
        assert_eq!(select_of(&[(1, 3), (2, 3), (3, 3)], &pairs), [1]);
        assert_eq!(select_of(&[(1, 0), (2, 0), (3, 3)], &pairs), [3], "who never forwards is not chosen");
        assert_eq!(select_of(&[(1, 3), (2, 7), (4, 7)], &pairs), [1, 2, 4], "who always does is");
    }

    #[test]
    fn of_equals_the_least_address_is_chosen() {
        assert_eq!(select_of(&[(1, 3), (2, 3)], &[(1, 11), (2, 11)]), [1]);
    }

    #[test]
    fn one_that_others_have_made_needless_is_let_go() {
        // By reachability 1 (3 of 11 to 14) comes first; then 2 and 3, which together cover what it does.
        let pairs = [(1, 11), (1, 12), (1, 13), (2, 11), (2, 14), (3, 12), (3, 13), (3, 15)];
        assert_eq!(select_of(&[(1, 3), (2, 3), (3, 3)], &pairs), [2, 3]);
    }

    proptest! {
        #[test]
        fn every_neighbourhood_is_covered(
            neighbours in btree_map(0u8..20, 0u8..=7, 0..12),
            pairs in vec((0u8..24, 0u8..60), 0..120),
        ) {
            let neighbours: BTreeMap<Ipv4Addr, Willingness> =
                neighbours.into_iter().map(|(n, willingness)| (node(n), Willingness(willingness))).collect();
            let pairs: BTreeSet<(Ipv4Addr, Ipv4Addr)> = pairs.iter().map(|(via, far)| (node(*via), node(*far))).collect();
            let relays = select(&neighbours, pairs.iter().copied());
            let reachable = |via: &Ipv4Addr, far: &Ipv4Addr| {
                neighbours.get(via).is_some_and(|w| *w > Willingness::NEVER) && !neighbours.contains_key(far)
            };
            for (_, far) in pairs.iter().filter(|(via, far)| reachable(via, far)) {
                prop_assert!(pairs.iter().any(|(via, other)| other == far && relays.contains(via)), "{} is covered", far);
            }
            for (via, willingness) in &neighbours {
                prop_assert!(*willingness != Willingness::ALWAYS || relays.contains(via));
                prop_assert!(*willingness != Willingness::NEVER || !relays.contains(via));
            }
            // None is there in vain.
            for relay in relays.iter().filter(|relay| neighbours[*relay] < Willingness::ALWAYS) {
                let alone = pairs.iter().filter(|(via, far)| via == relay && reachable(via, far)).any(|(_, far)| {
                    !pairs.iter().any(|(via, other)| other == far && via != relay && relays.contains(via))
                });
                prop_assert!(alone, "{} covers nobody whom no other covers", relay);
            }
        }
    }
}
