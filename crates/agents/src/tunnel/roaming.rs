//! A station that moves: its packets go to another address when it has shown that it is there.
//!
//! It is followed when it has sent back, from there, what it was asked where the newest packet came from; until then packets go where they
//! went. The newest packet alone says nothing: a host that repeats it before it arrives decides what address it comes
//! from. An address is sent one challenge for a packet from there, which is a quarter longer at most: no more than the
//! three times of RFC 9000, section 8.1; and one a second, since each takes a packet number, and the station counts it
//! as lost.

use crate::tunnel::challenge::Challenger;
use crate::tunnel::path::Path;
use lasthop_signals::Node;
use lasthop_units::{Span, Time};
use lasthop_wire::tunnel::PathData;
use std::net::SocketAddr;

/// What a session knows of where its station may have gone.
#[derive(Debug, Default)]
pub(crate) struct Roaming {
    /// Where a new packet came from that is not where the station was, and what is to be asked there: it may have moved, or somebody repeats
    /// what it sends.
    strange: Option<(SocketAddr, PathData)>,
    /// When that was done last.
    challenged: Option<Time>,
}

/// Time from one path challenge of a session to the next: stations send something twice in it.
const CHALLENGES: Span = Span::from_secs(1);

impl Roaming {
    /// The newest packet of a station came `from` there, with this `answer` to what was asked, if any; its packets go along `path`.
    pub(crate) fn look(
        &mut self,
        now: Time,
        (station, from): (Node, SocketAddr),
        answer: Option<PathData>,
        challenger: &Challenger,
        path: &mut Path,
    ) {
        if from == path.to() {
            return;
        }
        if answer.is_some_and(|data| challenger.is_path(now, station, from, data)) {
            path.lead_to(from);
        } else if self.challenged.is_none_or(|at| now.since(at) >= CHALLENGES) {
            self.challenged = Some(now);
            self.strange = Some((from, challenger.path(now, station, from)));
        }
    }

    /// What is to be asked now, and where.
    pub(crate) fn question(&mut self) -> Option<(SocketAddr, PathData)> {
        self.strange.take()
    }
}
