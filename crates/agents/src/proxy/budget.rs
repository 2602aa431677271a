//! What may be held for one station, and what each of its connections to servers is given of that.
//! Source:     own: docs/decisions/0007-bound-proxy-backlog.md; ten segments are those of RFC 6928.
//! Equations:  what waits <= x (r + a);   f = max{ x (a - s), 10 m };   t = sum over the quiet of min{ w, 10 m } - m
//!             beyond a segment each:
//!             the quiet are told of  min{ (f - t) / 2, 3/4 f - t }  more: one that is made of all, those that are there of equal parts
//!             those that begin are given  max{ f - t, f / 4 },  and from then on what leaves, too (`laws::SlowOpen`)
//!             those that send are given what the window budget has (`laws::WindowBudget`), as far as the slow open goes
//!             room for a quiet one:  1.5 min{ w, max{ 10 m, p } },   p = (2/3 x (r + a) - sum of w - m where w <= 10 m) / how many have more
//!             room for one that sends:  max{ 1.5 l, min{ z (2 q + s), b } },   l = max{ y (q + s), i }
//! Symbols:    x -> `rate`, r -> `farthest`, a -> `slack`, s -> `standing`, m -> `LEAST`, f -> `spare`, t -> `told`, w -> `Server::out`,
//!             y and z: its parts of x and of the highest x of the last one to two round trips (`Peak`); q -> its own round trip,
//!             l -> `Given::limit`, i -> `ReceiveWindow::least`, b -> what it has brought since it was made
//! Deviations: what would be negative is zero, and nobody has less than a segment.
//! Validity:   up to x (r + s) / m connections that send: beyond, their segments are what waits. A falling x is followed one round trip
//!             later, since what was given before may still come.
//! Checked by: tests::*, tests/quiet/backlog.rs, tests/quiet/backlog_anew.rs, tests/quiet/backlog_transparent.rs
//!
//! Browsers keep many connections that bring nothing. A quiet server has no share of the rate, and begins as on any
//! path, unless so many may begin at once that what they bring would not fit. What fits is the spare: the part of the
//! allowance that sending connections do not need. Nobody knows which of them will begin, and a server may send what it
//! was told. So the quiet are told of three fourths of the spare at most, each that is made of half of what is left,
//! for the first of many shall not have all; the rest is for those that begin. Together that is the spare, unless
//! windows are kept from before.
//!
//! A connection that had the whole rate keeps its window when it goes quiet. In what has been told it counts with ten segments, since
//! senders that do not pace begin with those. One that paces brings all at once: there is room for its part of the bound,
//! should all that keep so much begin together. What comes beyond that the kernel drops, and takes the window back.

use super::server::{INITIAL_WINDOW, Server};
use super::window::LEAST;
use lasthop_laws::{ReceiveWindow, Share, SlowOpen, WindowBudget};
use lasthop_units::{Bytes, Rate, Span, Time};
use std::collections::BTreeMap;

/// Room for what is expected of a connection, as a multiple of it, at least: the proxy may be held up before it looks again.
const ROOM: f64 = 1.5;

/// What may be held for a station, and how connections can be kept to it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Terms {
    /// Time at the station's rate, beyond what fills the wire from its servers.
    pub(super) slack: Span,
    /// The kernel lets windows be taken back.
    pub(super) retracts: bool,
}

/// What may be held for one station.
#[derive(Debug)]
pub(super) struct Budget {
    terms: Terms,
    slow_open: SlowOpen,
    /// What was left at the last look of what might be given.
    room: Bytes,
    peak: Peak,
}

/// The highest rate of the last round trip at least, of the last two at most: what was promised at it is still on its way.
#[derive(Clone, Copy, Debug, Default)]
struct Peak {
    /// When this round trip began, its highest rate, and that of the one before.
    since: Time,
    highest: Rate,
    before: Rate,
}

impl Peak {
    fn look(&mut self, now: Time, rate: Rate, round_trip: Span) -> Rate {
        if now.since(self.since) >= round_trip {
            (self.since, self.before, self.highest) = (now, self.highest, rate);
        }
        self.highest = self.highest.max(rate);
        self.highest.max(self.before)
    }
}

/// A station's connections, by their streams.
pub(super) type Servers = BTreeMap<u32, Server>;

impl Budget {
    pub(super) fn new(terms: Terms) -> Budget {
        Budget { terms, slow_open: SlowOpen::default(), room: Bytes::ZERO, peak: Peak::default() }
    }

    /// What a connection that is to be made may bring when it begins: a segment, and what is left for the quiet, but never more than a
    /// connection begins with on any path. `rate`: the station's.
    pub(super) fn first_window(&self, now: Time, rate: Rate, servers: &Servers) -> u64 {
        let known = Known::of(now, rate, servers);
        (LEAST + self.left_for_the_quiet(&known).min(self.room.get())).min(INITIAL_WINDOW)
    }

    /// What all are given from now on. `left`: the octets that have left for the station, of all times. What those that send ask for, by
    /// their share of the rate, is left in their `open`.
    pub(super) fn look(&mut self, now: Time, rate: Rate, left: Bytes, servers: &mut Servers) -> Gives {
        let known = Known::of(now, rate, servers);
        let (share, standing) = (Share { of: rate, among: known.sending }, ReceiveWindow::standing(self.terms.slack));
        let lately = Share { of: self.peak.look(now, rate, known.farthest), ..share };
        let (begins, told) = (Bytes::new(self.left_for_beginners(&known)), Bytes::new(known.told));
        let room = self.slow_open.available(left, (begins, known.out + told), known.sending == 0);
        // Whole segments, since all may come at one moment, and for what is less than one the kernel has another to spare.
        let each = self.left_for_the_quiet(&known).min(room.get()).checked_div(known.quiet).unwrap_or(0);
        let each = each.min(INITIAL_WINDOW - LEAST) / LEAST * LEAST;
        let room = room.saturating_sub(Bytes::new(each * known.quiet));
        let sums = (known.waiting, known.out);
        let mut window_budget = WindowBudget::new(rate, known.farthest, standing, Bytes::new(LEAST), sums).within(room);
        for server in servers.values_mut().filter(|server| server.is_busy(now)) {
            let (queued, rtt) = (Bytes::new(server.queued), server.round_trip());
            server.open = server.receive_window.window(now, share, rtt, standing, queued);
            window_budget.ask(server.more(server.open));
        }
        let (first, part, bound) = (LEAST + each, self.part_of_keepers(&known), self.bound(&known));
        let gives = Gives { share, lately, bound, terms: self.terms, first, part, window_budget };
        let busy = servers.values().filter(|server| server.is_busy(now));
        self.room = room.saturating_sub(busy.map(|server| gives.more(server)).sum());
        gives
    }

    /// Octets that may wait here: what fills the wire when all goes well, and the allowance.
    fn bound(&self, known: &Known) -> Bytes {
        known.rate.bytes_in(known.farthest + self.terms.slack)
    }

    /// What those that begin may bring beyond a segment each: the part of the allowance that those that send do not need, or ten segments
    /// if that is more.
    fn spare(&self, rate: Rate) -> u64 {
        let slack = self.terms.slack;
        rate.bytes_in(slack.saturating_sub(ReceiveWindow::standing(slack))).get().max(INITIAL_WINDOW)
    }

    /// What those that send nothing may still be told in advance, beyond a segment each: half of what is left of the spare, of which a
    /// fourth stays for those that begin.
    fn left_for_the_quiet(&self, known: &Known) -> u64 {
        let spare = self.spare(known.rate);
        let left = spare.saturating_sub(known.told);
        (left / 2).min(left.saturating_sub(spare / 4))
    }

    /// What those that begin may be given beyond what they were told: the rest of the spare, so that all of it comes at most, and a
    /// segment each. A quiet connection that kept a wide window from before shall not make others begin with nothing.
    fn left_for_beginners(&self, known: &Known) -> u64 {
        let spare = self.spare(known.rate);
        spare.saturating_sub(known.told).max(spare / 4)
    }

    /// A connection that has sent before and begins anew finds room for its part of the bound, should all that were
    /// given much do so together; a buffer has half as much again.
    fn part_of_keepers(&self, known: &Known) -> u64 {
        (self.bound(known).get() * 2 / 3).saturating_sub(known.promised) / known.keepers.max(1)
    }
}

/// What is known of a station's connections at one moment.
#[derive(Debug, Default)]
struct Known {
    /// The station's.
    rate: Rate,
    /// Connections that send.
    sending: usize,
    /// Those that send nothing, or are not made yet.
    quiet: u64,
    /// The round trip to the server that is farthest away.
    farthest: Span,
    /// What waits of those that send.
    waiting: Bytes,
    /// What is under way of those that send, or may still be sent, and a segment of each that was made a moment ago and has sent nothing
    /// yet: those are about to. What they were told beyond that is of the spare.
    out: Bytes,
    /// What the quiet may bring at once, beyond a segment each.
    told: u64,
    /// Those of the quiet that keep more than one begins with from when they sent, and what the others of the quiet may bring beyond a
    /// segment each.
    keepers: u64,
    promised: u64,
}

impl Known {
    fn of(now: Time, rate: Rate, servers: &Servers) -> Known {
        let mut known = Known { rate, ..Known::default() };
        servers.values().for_each(|server| known.add(now, server));
        known
    }

    fn add(&mut self, now: Time, server: &Server) {
        let out = server.out();
        self.farthest = self.farthest.max(server.round_trip());
        if server.is_coming(now) {
            self.out += out.min(Bytes::new(LEAST));
        }
        if server.is_busy(now) {
            self.sending += 1;
            self.waiting += Bytes::new(server.queued);
            self.out += out;
            return;
        }
        self.quiet += 1;
        self.told += server.may_begin_with(now).saturating_sub(LEAST);
        match server.keeps_much(now) {
            true => self.keepers += 1,
            false => self.promised += out.get().saturating_sub(LEAST),
        }
    }
}

/// What a station's connections are given at a look.
#[derive(Debug)]
pub(super) struct Gives {
    /// The station's rate, among those that send.
    pub(super) share: Share,
    /// The same of the highest rate of the last round trips.
    lately: Share,
    /// Octets that may wait.
    pub(super) bound: Bytes,
    pub(super) terms: Terms,
    /// What each that sends nothing is told when its first segment comes, before anybody here has seen that.
    first: u64,
    /// What there is room for when one begins anew that kept much.
    part: u64,
    /// Of what is left beside that, what those that send may have.
    window_budget: WindowBudget,
}

/// What one connection is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Given {
    /// Octets that may come beyond what has arrived.
    pub(super) open: u64,
    /// Octets that are expected, under way or waiting.
    pub(super) limit: u64,
    /// Octets that must find room.
    pub(super) room: u64,
    /// It sends nothing.
    pub(super) quiet: bool,
    /// It was given more before, and the next request takes that back.
    pub(super) takes_back: bool,
}

impl Gives {
    /// What a connection is given.
    pub(super) fn to(&self, now: Time, server: &Server) -> Given {
        if server.is_busy(now) {
            let (share, rtt) = (self.share, server.round_trip());
            let standing = ReceiveWindow::standing(self.terms.slack);
            let limit = share.rate().bytes_in(rtt + standing).max(server.receive_window.least(share, rtt));
            // Senders bring what fills the wire in one burst, and the window that is announced when the last of it has come is what finds
            // room beside it. And what was promised at a higher rate comes, too: dropped, it would cost its sender a timeout. Of one that
            // has just begun, maybe among many, neither is expected: as much as it has brought.
            let bursts = self.lately.rate().bytes_in(rtt * 2 + standing);
            let room = limit.scale(ROOM).max(bursts.min(server.brought()));
            let open = server.opened(self.more(server));
            return Given { open, limit: limit.get(), room: room.get(), quiet: false, takes_back: false };
        }
        let retracts = self.terms.retracts;
        // The request that makes it go on takes back what it was given beyond this.
        let open = if retracts && server.keeps_much(now) { self.first.max(self.part) } else { self.first };
        // What may come at once must find room, and no more.
        let limit = self.first.max(server.may_bring(now, self.part));
        let room = Bytes::new(limit).scale(ROOM).get();
        Given { open, limit, room, quiet: true, takes_back: retracts && server.out().get() > open }
    }

    /// What a connection that sends is given beyond what it has.
    fn more(&self, server: &Server) -> Bytes {
        self.window_budget.part(server.more(server.open))
    }
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "a real socket is what a connection is made of")]
mod tests {
    use super::super::server::State;
    use super::*;
    use crate::tunnel::pipe::Pipe;
    use std::net::{TcpListener, TcpStream};

    const NOW: Time = Time::from_nanos(1_000_000_000_000);

    /// A connection that sends, and may send so much; and its caller's end.
    fn sends(first: u64) -> (TcpStream, Server) {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a listener");
        let caller = TcpStream::connect(listener.local_addr().expect("an address")).expect("loopback");
        let pipe = Pipe::new(listener.accept().expect("a connection").0).expect("a socket");
        let mut server = Server::new(State::Up(pipe), first);
        server.busy_until = NOW + Span::from_secs(1);
        (caller, server)
    }

    fn budget() -> Budget {
        Budget::new(Terms { slack: ReceiveWindow::ALLOWANCE, retracts: false })
    }

    #[test]
    fn quiet_and_new_connections_together_fit_in_the_spare_budget() {
        for mbit in [1, 10, 50, 400, 10_000] {
            let (mut budget, mut servers, rate) = (budget(), Servers::new(), Rate::from_mbit(mbit));
            budget.look(NOW, rate, Bytes::ZERO, &mut servers);
            let spare = budget.spare(rate);
            for number in 1..=300u32 {
                let first = budget.first_window(NOW, rate, &servers);
                assert!((LEAST..=INITIAL_WINDOW).contains(&first), "{mbit} Mbit/s, connection {number}: {first}");
                servers.insert(number, Server::new(State::Resolving, first));
                let known = Known::of(NOW, rate, &servers);
                let (told, beginners) = (known.told, budget.left_for_beginners(&known));
                assert!(told + beginners <= spare, "{mbit} Mbit/s, {number}: {told} and {beginners} of {spare}");
                assert!(beginners >= spare / 4, "{mbit} Mbit/s, {number}: {beginners} of {spare}");
                budget.look(NOW, rate, Bytes::ZERO, &mut servers);
            }
        }
    }

    #[test]
    fn bytes_under_way_are_not_granted_again_to_quiet_connections() {
        let (mut budget, mut servers, rate) = (budget(), Servers::new(), Rate::from_mbit(50));
        for number in 1..=3 {
            servers.insert(number, Server::new(State::Resolving, LEAST));
        }
        let spare = budget.spare(rate);
        let mut first = |servers: &mut Servers, left| budget.look(NOW, rate, Bytes::new(left), servers).first;
        assert_eq!(first(&mut servers, 0), 3 * LEAST, "half of the spare is 12 500 octets");
        let all = LEAST + spare;
        let (_caller, sends) = sends(all);
        servers.insert(4, sends);
        assert_eq!(first(&mut servers, 0), LEAST);
        assert_eq!(first(&mut servers, all), 3 * LEAST, "as much has left");
        servers.retain(|number, _| *number == 4);
        first(&mut servers, all);
        assert_eq!(budget.room.get(), spare, "nobody is quiet of whom something would have to be kept");
    }

    /// What there is room for, of one connection at these moments (ms) and rates; it has brought so much before.
    fn rooms<const N: usize>(brought: u64, rtt: Span, looks: [(u64, Rate); N]) -> [u64; N] {
        let (mut budget, mut servers) = (budget(), Servers::new());
        let (_caller, server) = sends(looks[0].1.bytes_in(rtt).get());
        servers.insert(1, server.at(rtt).having_brought(brought));
        looks.map(|(ms, rate)| {
            let now = NOW + Span::from_millis(ms);
            let given = budget.look(now, rate, Bytes::ZERO, &mut servers).to(now, &servers[&1]);
            assert!(given.room >= given.limit * 3 / 2, "{given:?}");
            given.room
        })
    }

    #[test]
    fn room_covers_a_full_burst_and_what_was_promised_earlier() {
        let [fast, slow] = [400, 20].map(Rate::from_mbit);
        let rtt = Span::from_millis(20);
        let bursts = |rate: Rate| rate.bytes_in(rtt * 2).get();
        let looks = [(0, fast), (2, slow), (21, slow), (42, slow)];
        let [first, fallen, on_its_way, come] = rooms(2 * bursts(fast), rtt, looks);
        assert!(first >= bursts(fast));
        assert!(fallen >= bursts(fast), "it is on its way");
        assert!(on_its_way >= bursts(fast));
        assert!((bursts(slow)..bursts(fast) / 10).contains(&come), "it has come");
    }

    #[test]
    fn burst_room_is_bounded_by_what_a_connection_has_brought() {
        let (fast, slow, rtt) = (Rate::from_mbit(480), Rate::from_mbit(20), Span::from_millis(20));
        let standing = ReceiveWindow::standing(ReceiveWindow::ALLOWANCE);
        let usual = |rate: Rate| Bytes::new(rate.bytes_in(rtt + standing).get()).scale(ROOM).get();
        assert_eq!(rooms(0, rtt, [(0, fast)]), [usual(fast)], "it has just begun");
        const BROUGHT: u64 = 500_000;
        let [before, _, after] = rooms(BROUGHT, rtt, [(0, slow), (2, fast), (4, slow)]);
        assert!(before > usual(slow), "a burst at this rate it has brought");
        assert_eq!(after, BROUGHT);
    }
}
