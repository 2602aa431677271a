//! Which of the proxy's addresses is tried.
//!
//! A name may stand for several, of both families, and nothing but an answer says which is right: each is tried for a while until the proxy has
//! answered. This machine may lack a family (IPv6 switched off, or kept from this service): its addresses are passed over.

use lasthop_units::{Span, Time};
use std::collections::VecDeque;
use std::net::SocketAddr;

/// A round through the addresses.
pub(crate) struct Search {
    /// The one that is tried, and then the others, the next first.
    addresses: VecDeque<SocketAddr>,
    since: Time,
}

/// How long an address is tried before the next is: time for several initiations.
const TRIED: Span = Span::from_secs(2);

impl Search {
    /// Begins with the first address from which `open` gets a socket.
    ///
    /// # Errors
    /// What `open` said of the first address, where it gets none for any.
    ///
    /// # Panics
    /// Without an address.
    pub(crate) fn begin<L, E>(
        now: Time,
        addresses: impl Iterator<Item = SocketAddr>,
        mut open: impl FnMut(SocketAddr) -> Result<L, E>,
    ) -> Result<(Search, L), E> {
        let mut search = Search { addresses: addresses.collect(), since: now };
        let first = open(search.tried());
        match first {
            Ok(link) => Ok((search, link)),
            Err(error) => search.go_on(open).map(|link| (search, link)).ok_or(error),
        }
    }

    /// The address that is tried.
    pub(crate) fn tried(&self) -> SocketAddr {
        *self.addresses.front().expect("never none")
    }

    /// When the next address is to be tried, if there is another.
    pub(crate) fn next_look(&self) -> Option<Time> {
        (self.addresses.len() > 1).then(|| self.since + TRIED)
    }

    /// Goes on to the next address, when this one has had its time, with a socket of its own: `open` knows the address
    /// family.
    pub(crate) fn look<L, E>(&mut self, now: Time, open: impl FnMut(SocketAddr) -> Result<L, E>) -> Option<L> {
        self.next_look().filter(|at| now >= *at)?;
        self.since = now;
        self.go_on(open)
    }

    /// The next address that can be opened is the one that is tried; if no other can, this one still is.
    fn go_on<L, E>(&mut self, mut open: impl FnMut(SocketAddr) -> Result<L, E>) -> Option<L> {
        for _ in 1..self.addresses.len() {
            self.addresses.rotate_left(1);
            if let Ok(link) = open(self.tried()) {
                return Some(link);
            }
        }
        self.addresses.rotate_left(1);
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn addresses() -> [SocketAddr; 3] {
        ["[2001:db8::1]:443", "192.0.2.1:443", "[2001:db8::2]:443"].map(|text| text.parse().expect("an address"))
    }

    fn without_ipv6(to: SocketAddr) -> Result<SocketAddr, SocketAddr> {
        if to.is_ipv4() { Ok(to) } else { Err(to) }
    }

    #[test]
    fn every_address_is_tried_for_a_while_in_turn() {
        let all = addresses();
        let (mut search, link) =
            Search::begin(Time::ZERO, all.into_iter(), Ok::<_, ()>).expect("all of them can be opened");
        assert_eq!(link, all[0]);
        assert_eq!(search.look(Time::ZERO + (TRIED - Span::from_nanos(1)), Ok::<_, ()>), None);
        let tried: Vec<_> = (1..=4).filter_map(|i| search.look(Time::ZERO + TRIED * i, Ok::<_, ()>)).collect();
        assert_eq!(tried, [all[1], all[2], all[0], all[1]]);
    }

    #[test]
    fn a_family_that_this_machine_lacks_is_passed_over() {
        let all = addresses();
        let (mut search, link) = Search::begin(Time::ZERO, all.into_iter(), without_ipv6).expect("one of them");
        assert_eq!((link, search.tried()), (all[1], all[1]));
        // No other one can be had: this one stays, and is asked again later.
        assert_eq!(search.look(Time::ZERO + TRIED, without_ipv6), None);
        assert_eq!((search.tried(), search.next_look()), (all[1], Some(Time::ZERO + TRIED * 2)));
        // The family may come back.
        assert_eq!(search.look(Time::ZERO + TRIED * 2, Ok::<_, ()>), Some(all[2]));
    }

    #[test]
    fn if_no_address_opens_the_first_error_is_reported() {
        let all = addresses();
        assert_eq!(Search::begin(Time::ZERO, all.into_iter(), Err::<(), _>).err(), Some(all[0]));
    }

    #[test]
    fn a_single_address_is_never_left() {
        let all = addresses();
        let (mut search, _) = Search::begin(Time::ZERO, all.into_iter().take(1), Ok::<_, ()>).expect("opened");
        assert_eq!(search.next_look(), None);
        assert_eq!(search.look(Time::ZERO + TRIED * 9, Ok::<_, ()>), None);
    }
}
