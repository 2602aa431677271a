//! Filter expressions: which connections are shown.
//!
//! ```text
//! expression := and ( "or" and )*
//! and        := not ( "and"? not )*
//! not        := "not" not | "(" expression ")" | test
//! test       := "state" NAME                  established, connected, syn-sent, …
//!             | ("src" | "dst") "="? WHERE    10.0.0.0/8, [2001:db8::1]:443, 192.0.2.1:443, :443
//!             | ("sport" | "dport") OP PORT   :443 or 443
//!             | ("ca" | "cc" | "limit") ("=" | "!=") NAME
//!             | FIGURE OP VALUE               rtt > 50ms, cwnd >= 100, sent > 1Mbit, unsent > 64kB
//! OP         := "=" | "!=" | "<" | "<=" | ">" | ">="
//! ```
//!
//! This is what `ss` understands of addresses, ports and states, with figures added. `==`, `eq`, `ne`, `lt`, `le`, `gt`, `ge`, `&`, `&&`,
//! `|`, `||` and `!` are understood too. A figure that is not known yet passes no test; a slow-start threshold that is infinite is
//! larger than any number.

use super::Reading;
use super::limit::Limit;
use lasthop_wire::tcp_info::{CaState, TcpState};
use std::net::IpAddr;
use std::str::FromStr;

/// A filter that has been understood.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Filter(Expression);

impl Filter {
    /// True if a connection is to be shown.
    pub fn passes(&self, reading: &Reading) -> bool {
        self.0.holds(reading)
    }
}

/// Why a filter was not understood.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{}", self.told())]
pub struct FilterError {
    text: String,
    /// Where in the text, in octets.
    at: usize,
    wanted: String,
}

impl FilterError {
    /// What is wrong, and the text with a mark below the place.
    fn told(&self) -> String {
        let before = self.text[..self.at].chars().count();
        format!("{}\n  {}\n  {:before$}^", self.reason(), self.text, "")
    }

    /// What is wrong, in one line.
    pub fn reason(&self) -> String {
        let word = self.text[self.at..].split_whitespace().next();
        let found = word.map_or("the filter ends".to_owned(), |word| format!("found `{word}`"));
        format!("filter: {}, but {found}", self.wanted)
    }
}

#[derive(Clone, PartialEq, Eq, Debug)]
enum Expression {
    Or(Vec<Expression>),
    And(Vec<Expression>),
    Not(Box<Expression>),
    State(Vec<TcpState>),
    Address(End, Where),
    Port(End, Compare, u16),
    Ca(bool, CaState),
    Congestion(bool, String),
    Limit(bool, Limit),
    Figure(Figure, Compare, u64),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum End {
    Local,
    Peer,
}

/// Addresses of a network, and a port; what is `None` may be any.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Where {
    network: Option<(IpAddr, u8)>,
    port: Option<u16>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Compare {
    Equal,
    Unequal,
    Less,
    AtMost,
    More,
    AtLeast,
}

/// Unit of a figure's value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Unit {
    Count,
    /// Nanoseconds.
    Time,
    /// Bits a second.
    Rate,
    Octets,
}

/// A number of a connection that filters can compare.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Figure {
    Rtt,
    MinRtt,
    Cwnd,
    Ssthresh,
    InFlight,
    Unsent,
    ReceiveQueue,
    Retransmits,
    Sent,
    Received,
    Delivery,
    Pacing,
    Uid,
}

const FIGURES: [(&str, Figure, Unit); 13] = [
    ("rtt", Figure::Rtt, Unit::Time),
    ("minrtt", Figure::MinRtt, Unit::Time),
    ("cwnd", Figure::Cwnd, Unit::Count),
    ("ssthresh", Figure::Ssthresh, Unit::Count),
    ("inflight", Figure::InFlight, Unit::Count),
    ("unsent", Figure::Unsent, Unit::Octets),
    ("recvq", Figure::ReceiveQueue, Unit::Octets),
    ("retrans", Figure::Retransmits, Unit::Count),
    ("sent", Figure::Sent, Unit::Rate),
    ("received", Figure::Received, Unit::Rate),
    ("delivery", Figure::Delivery, Unit::Rate),
    ("pacing", Figure::Pacing, Unit::Rate),
    ("uid", Figure::Uid, Unit::Count),
];

impl Expression {
    fn holds(&self, reading: &Reading) -> bool {
        let socket = &reading.socket;
        let end = |end: &End| match end {
            End::Local => socket.local,
            End::Peer => socket.peer,
        };
        match self {
            Expression::Or(any) => any.iter().any(|part| part.holds(reading)),
            Expression::And(all) => all.iter().all(|part| part.holds(reading)),
            Expression::Not(part) => !part.holds(reading),
            Expression::State(states) => states.contains(&socket.state),
            Expression::Address(of, place) => {
                let address = end(of);
                place.network.is_none_or(|(network, len)| within(address.ip(), network, len))
                    && place.port.is_none_or(|port| port == address.port())
            }
            Expression::Port(of, compare, port) => compare.holds(end(of).port().into(), (*port).into()),
            Expression::Ca(is, state) => (reading.info.ca_state == *state) == *is,
            Expression::Congestion(is, name) => (socket.congestion_control.as_str() == name) == *is,
            Expression::Limit(is, limit) => {
                reading.recent.and_then(|recent| recent.limit).is_some_and(|of| (of == *limit) == *is)
            }
            Expression::Figure(figure, compare, value) => {
                figure.of(reading).is_some_and(|figure| compare.holds(figure, *value))
            }
        }
    }
}

impl Compare {
    fn holds(self, left: u64, right: u64) -> bool {
        match self {
            Compare::Equal => left == right,
            Compare::Unequal => left != right,
            Compare::Less => left < right,
            Compare::AtMost => left <= right,
            Compare::More => left > right,
            Compare::AtLeast => left >= right,
        }
    }
}

impl Figure {
    fn of(self, reading: &Reading) -> Option<u64> {
        let (info, recent) = (&reading.info, reading.recent.as_ref());
        match self {
            Figure::Rtt => info.rtt.map(|rtt| rtt.as_nanos()),
            Figure::MinRtt => info.min_rtt.map(|rtt| rtt.as_nanos()),
            Figure::Cwnd => Some(info.cwnd.into()),
            Figure::Ssthresh => Some(info.ssthresh.map_or(u64::MAX, u64::from)),
            Figure::InFlight => Some(info.in_flight().into()),
            Figure::Unsent => info.notsent.map(|unsent| unsent.get()),
            Figure::ReceiveQueue => Some(reading.socket.receive_queue.get()),
            Figure::Retransmits => Some(info.total_retrans.into()),
            Figure::Sent => recent.map(|recent| recent.sent.as_bps()),
            Figure::Received => recent.map(|recent| recent.received.as_bps()),
            Figure::Delivery => info.delivery_rate.map(|rate| rate.as_bps()),
            Figure::Pacing => info.pacing_rate.map(|rate| rate.as_bps()),
            Figure::Uid => Some(reading.socket.uid.into()),
        }
    }
}

/// True if the first `len` bits are the network's.
fn within(address: IpAddr, network: IpAddr, len: u8) -> bool {
    // Shifting by all bits is shifting by none.
    let same = |a: u128, b: u128, bits: u8| (a ^ b).checked_shr(u32::from(bits.saturating_sub(len))).unwrap_or(0) == 0;
    match (address, network) {
        (IpAddr::V4(a), IpAddr::V4(b)) => same(a.to_bits().into(), b.to_bits().into(), 32),
        (IpAddr::V6(a), IpAddr::V6(b)) => same(a.to_bits(), b.to_bits(), 128),
        _ => false,
    }
}

impl FromStr for Filter {
    type Err = FilterError;

    fn from_str(text: &str) -> Result<Filter, FilterError> {
        let mut parser = Parser { text, tokens: tokens(text), next: 0, depth: 0 };
        let expression = parser.any()?;
        match parser.peek() {
            None => Ok(Filter(expression)),
            Some(_) => Err(parser.wants("`and`, `or` or the end should follow")),
        }
    }
}

/// Words, parentheses and operators, each with its place.
fn tokens(text: &str) -> Vec<(usize, &str)> {
    let operator = |c: char| "=!<>&|".contains(c);
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(first) = text[at..].chars().next() {
        let word = |c: char| !c.is_whitespace() && !"()".contains(c) && !operator(c);
        let len = match first {
            _ if first.is_whitespace() => first.len_utf8(),
            '(' | ')' => 1,
            _ if operator(first) => {
                // Two of them are one operator only as ==, !=, <=, >=, && and ||.
                let second = text[at + 1..].chars().next();
                let double =
                    second == Some('=') && !"&|".contains(first) || second == Some(first) && "&|".contains(first);
                1 + usize::from(double)
            }
            _ => text[at..].find(|c| !word(c)).unwrap_or(text.len() - at),
        };
        if !first.is_whitespace() {
            found.push((at, &text[at..at + len]));
        }
        at += len;
    }
    found
}

struct Parser<'a> {
    text: &'a str,
    tokens: Vec<(usize, &'a str)>,
    next: usize,
    depth: usize,
}

/// Nobody nests deeper by hand, and the stack is finite.
const DEEPEST: usize = 64;

impl<'a> Parser<'a> {
    fn peek(&self) -> Option<&'a str> {
        self.tokens.get(self.next).map(|(_, token)| *token)
    }

    /// Takes the next token if it is one of these.
    fn takes(&mut self, any: &[&str]) -> bool {
        let there = self.peek().is_some_and(|token| any.contains(&token));
        self.next += usize::from(there);
        there
    }

    /// An error at the next token.
    fn wants(&self, wanted: impl Into<String>) -> FilterError {
        let at = self.tokens.get(self.next).map_or(self.text.len(), |(at, _)| *at);
        FilterError { text: self.text.to_owned(), at, wanted: wanted.into() }
    }

    /// What the next token means; an error at it if it means nothing.
    fn value<T>(&mut self, wanted: &str, read: impl FnOnce(&str) -> Option<T>) -> Result<T, FilterError> {
        let value = self.peek().and_then(read).ok_or_else(|| self.wants(wanted))?;
        self.next += 1;
        Ok(value)
    }

    fn any(&mut self) -> Result<Expression, FilterError> {
        let mut parts = vec![self.all()?];
        while self.takes(&["or", "|", "||"]) {
            parts.push(self.all()?);
        }
        Ok(alone(parts, Expression::Or))
    }

    fn all(&mut self) -> Result<Expression, FilterError> {
        let mut parts = vec![self.not()?];
        while self.takes(&["and", "&", "&&"])
            || self.peek().is_some_and(|token| !["or", "|", "||", ")"].contains(&token))
        {
            parts.push(self.not()?);
        }
        Ok(alone(parts, Expression::And))
    }

    fn not(&mut self) -> Result<Expression, FilterError> {
        if self.depth == DEEPEST {
            return Err(self.wants(format!("at most {DEEPEST} parentheses and `not`s stand in each other")));
        }
        self.depth += 1;
        let expression = if self.takes(&["not", "!"]) {
            Expression::Not(Box::new(self.not()?))
        } else if self.takes(&["("]) {
            let inner = self.any()?;
            if !self.takes(&[")"]) {
                return Err(self.wants("a `)` should follow"));
            }
            inner
        } else {
            self.test()?
        };
        self.depth -= 1;
        Ok(expression)
    }

    fn test(&mut self) -> Result<Expression, FilterError> {
        let figure = |name: &str| FIGURES.into_iter().find(|(known, ..)| *known == name);
        let name = self.peek();
        let known = name.is_some_and(|name| {
            figure(name).is_some() || ["state", "src", "dst", "sport", "dport", "ca", "cc", "limit"].contains(&name)
        });
        let Some(name) = name.filter(|_| known) else {
            let figures = FIGURES.map(|(name, ..)| name).join(", ");
            return Err(self.wants(format!(
                "a test begins with state, src, dst, sport, dport, ca, cc, limit, {figures}, `not` or `(`"
            )));
        };
        self.next += 1;
        Ok(match name {
            "state" => {
                self.takes(&["=", "=="]);
                Expression::State(self.value(STATES, states)?)
            }
            "src" | "dst" => {
                self.takes(&["=", "=="]);
                let place = self.value("an address should follow, such as 10.0.0.0/8, [::1]:443 or :443", place)?;
                Expression::Address(end(name), place)
            }
            "sport" | "dport" => {
                let compare = self.compare()?;
                let port = self.value("a port should follow, such as :443", |text| {
                    text.strip_prefix(':').unwrap_or(text).parse().ok()
                })?;
                Expression::Port(end(name), compare, port)
            }
            "ca" => {
                let is = self.is()?;
                let find = |text: &str| CaState::ALL.into_iter().find(|state| state.name() == text);
                Expression::Ca(is, self.value("open, disorder, cwr, recovery or loss should follow", find)?)
            }
            "cc" => {
                let is = self.is()?;
                let plain = |text: &&str| text.starts_with(|first| !"()=!<>&|".contains(first));
                let name = |text: &str| Some(text).filter(plain).map(str::to_owned);
                Expression::Congestion(is, self.value("a congestion control should follow, such as cubic", name)?)
            }
            "limit" => {
                let is = self.is()?;
                let find = |text: &str| Limit::ALL.into_iter().find(|limit| limit.name() == text);
                Expression::Limit(
                    is,
                    self.value(&format!("{} should follow", Limit::ALL.map(Limit::name).join(", ")), find)?,
                )
            }
            _ => {
                let (_, of, unit) = figure(name).expect("looked up above");
                let compare = self.compare()?;
                Expression::Figure(of, compare, self.value(unit.wanted(), |text| unit.read(text))?)
            }
        })
    }

    fn compare(&mut self) -> Result<Compare, FilterError> {
        self.value("one of = != < <= > >= should follow", |token| {
            Some(match token {
                "=" | "==" | "eq" => Compare::Equal,
                "!=" | "ne" => Compare::Unequal,
                "<" | "lt" => Compare::Less,
                "<=" | "le" => Compare::AtMost,
                ">" | "gt" => Compare::More,
                ">=" | "ge" => Compare::AtLeast,
                _ => return None,
            })
        })
    }

    /// Whether a name is to be the one that follows, or any other.
    fn is(&mut self) -> Result<bool, FilterError> {
        self.value("= or != should follow", |token| match token {
            "=" | "==" | "eq" => Some(true),
            "!=" | "ne" => Some(false),
            _ => None,
        })
    }
}

/// What `state` can be followed by.
const STATES: &str =
    "established, syn-sent, syn-recv, fin-wait-1, fin-wait-2, close-wait, last-ack, closing or connected should follow";

fn alone(mut parts: Vec<Expression>, several: fn(Vec<Expression>) -> Expression) -> Expression {
    match parts.len() {
        1 => parts.remove(0),
        _ => several(parts),
    }
}

fn end(name: &str) -> End {
    if name.starts_with('s') { End::Local } else { End::Peer }
}

fn states(name: &str) -> Option<Vec<TcpState>> {
    let shown = TcpState::ALL.into_iter().filter(|state| lasthop_wire::sock_diag::States::CONNECTED.has(*state));
    if name == "connected" {
        return Some(shown.collect());
    }
    shown.filter(|state| state.name() == name).map(|state| vec![state]).next()
}

fn place(text: &str) -> Option<Where> {
    // An address with a port, a network, an address alone, a port alone.
    if let Some(port) = text.strip_prefix(':').and_then(|port| port.parse().ok()) {
        return Some(Where { network: None, port: Some(port) });
    }
    let host = |text: &str| -> Option<(IpAddr, u8)> {
        let text = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text);
        let (address, len) = match text.split_once('/') {
            Some((address, len)) => (address, Some(len.parse::<u8>().ok()?)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().ok()?;
        let bits = if address.is_ipv4() { 32 } else { 128 };
        let len = len.unwrap_or(bits);
        (len <= bits).then_some((address, len))
    };
    if let Some(network) = host(text) {
        return Some(Where { network: Some(network), port: None });
    }
    let (address, port) = text.rsplit_once(':')?;
    if address.contains(':') && !address.starts_with('[') {
        return None;
    }
    let network = if address == "*" { None } else { Some(host(address)?) };
    let port = if port == "*" { None } else { Some(port.parse().ok()?) };
    Some(Where { network, port })
}

impl Unit {
    fn wanted(self) -> &'static str {
        match self {
            Unit::Count => "a whole number should follow",
            Unit::Time => "a time should follow, such as 50ms or 300us",
            Unit::Rate => "a rate should follow, such as 10Mbit or 500kbit",
            Unit::Octets => "a number of octets should follow, such as 64kB or 1MB",
        }
    }

    /// A value in the figure's own unit.
    fn read(self, text: &str) -> Option<u64> {
        let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
        let (number, unit) = text.split_at(digits);
        let unit = unit.strip_suffix("/s").filter(|_| self == Unit::Rate).unwrap_or(unit);
        let scale: f64 = match (self, unit) {
            (Unit::Count, "") | (Unit::Time, "ns") | (Unit::Rate, "bit") | (Unit::Octets, "B" | "") => 1.0,
            (Unit::Time, "us") | (Unit::Rate, "kbit") | (Unit::Octets, "kB") => 1e3,
            (Unit::Time, "ms") | (Unit::Rate, "Mbit") | (Unit::Octets, "MB") => 1e6,
            (Unit::Time, "s") | (Unit::Rate, "Gbit") | (Unit::Octets, "GB") => 1e9,
            _ => return None,
        };
        if self == Unit::Count {
            return number.parse().ok();
        }
        let value = number.parse::<f64>().ok()? * scale;
        // Casting saturates.
        value.is_finite().then(|| value.round() as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::readings::{reading, sending};
    use lasthop_units::Span;
    use proptest::prelude::*;

    fn passes(text: &str, reading: &Reading) -> bool {
        text.parse::<Filter>().unwrap_or_else(|error| panic!("{error}")).passes(reading)
    }

    #[test]
    fn what_ss_understands_is_understood() {
        let web = reading("10.1.2.3:40000", "192.0.2.9:443");
        for text in [
            "dport = :443",
            "dport == 443",
            "dport=:443",
            "dport >= :400 and dport lt :444",
            "dst 192.0.2.9",
            "dst = 192.0.2.9:443",
            "dst 192.0.2.0/24",
            "dst :443",
            "dst *:443",
            "dst 0.0.0.0/0",
            "src 10.0.0.0/8 sport = :40000",
            "state established",
            "state connected && not state syn-sent",
            "! sport = :443",
            "sport = :443 or dport = :443",
            "sport = :1 | ( dport = :443 & src 10.1.2.3 )",
            "(((sport != :443)))",
        ] {
            assert!(passes(text, &web), "{text}");
        }
        for text in [
            "dport = :80",
            "dst 192.0.3.0/24",
            "dst ::/0",
            "src 11.0.0.0/8",
            "state close-wait",
            "not (dst 192.0.2.9 dport = :443)",
            "sport = :443 and dport = :443",
            // `and` binds closer than `or`.
            "sport = :1 and dport = :443 or sport = :2",
        ] {
            assert!(!passes(text, &web), "{text}");
        }
        let six = reading("[2001:db8::2]:1", "[2001:db8::1]:443");
        assert!(passes("dst [2001:db8::1]:443 and src 2001:db8::/32", &six));
    }

    #[test]
    fn figures_are_compared_in_their_units() {
        let mut reading = sending("10.1.2.3:40000", "192.0.2.9:443");
        reading.info.rtt = Some(Span::from_micros(50_001));
        (reading.info.cwnd, reading.info.ssthresh, reading.info.ca_state) = (100, None, CaState::Recovery);
        for text in [
            "rtt > 50ms",
            "rtt>50ms",
            "rtt <= 0.050001s",
            "cwnd = 100",
            "ssthresh > 4000000000",
            "ca = recovery",
            "ca != open",
            "cc = cubic",
            "cc != bbr",
            "limit = network",
            "sent >= 8Mbit",
            "sent = 8Mbit/s",
            "sent < 0.01Gbit",
            "retrans >= 3",
            "unsent >= 1kB",
        ] {
            assert!(passes(text, &reading), "{text}: {reading:?}");
        }
        reading.info.rtt = None;
        assert!(!passes("rtt > 0ns", &reading) && !passes("rtt <= 1s", &reading), "unknown");
        reading.recent = None;
        assert!(!passes("limit != idle", &reading) && !passes("sent >= 0bit", &reading), "unknown");
    }

    #[test]
    fn an_error_says_what_should_stand_where() {
        for (text, told) in [
            ("", "filter: a test begins with state, src"),
            ("rtt > fast", "a time should follow, such as 50ms or 300us, but found `fast`\n  rtt > fast\n        ^"),
            ("rtt > 50", "a time should follow"),
            ("rtt 50ms", "one of = != < <= > >= should follow, but found `50ms`"),
            ("dport = :99999", "a port should follow"),
            ("dst 10.0.0.0/33", "an address should follow"),
            ("dst 2001:db8::1:443:x", "an address should follow"),
            ("(dport = :1", "a `)` should follow, but the filter ends\n  (dport = :1\n             ^"),
            ("dport = :1 )", "`and`, `or` or the end should follow, but found `)`"),
            ("state up", "established, syn-sent"),
            ("ca > open", "= or != should follow"),
            ("ca = happy", "open, disorder, cwr, recovery or loss should follow"),
            ("limit = sky", "idle, receiving, application"),
            ("cwnd > 1.5", "a whole number should follow"),
            ("port = 4", "a test begins with"),
            ("dport = :1 and", "but the filter ends"),
            ("sport = :1 ünd", "found `ünd`"),
        ] {
            let error = text.parse::<Filter>().expect_err(text).to_string();
            assert!(error.contains(told), "{text}:\n{error}");
        }
        let deep = "(".repeat(10_000);
        assert!(deep.parse::<Filter>().expect_err("too deep").to_string().contains("at most 64"));
        let deep = "not ".repeat(10_000);
        assert!(deep.parse::<Filter>().expect_err("too deep").to_string().contains("at most 64"));
    }

    proptest! {
        #[test]
        fn any_text_is_understood_or_refused(text in any::<String>()) {
            if let Err(error) = text.parse::<Filter>() {
                prop_assert!(error.to_string().starts_with("filter: "));
            }
        }

        #[test]
        fn any_words_in_any_order_are_understood_or_refused(words in prop::collection::vec(prop::sample::select(vec![
            "(", ")", "not", "!", "and", "or", "&", "||", "state", "established", "src", "10.0.0.0/8", "dst", ":443", "sport",
            "=", "!=", ">=", "<", "rtt", "50ms", "cwnd", "7", "ca", "loss", "cc", "cubic", "limit", "idle", "sent", "1Mbit", "é",
        ]), 0..20)) {
            let reading = sending("10.1.2.3:40000", "192.0.2.9:443");
            match words.join(" ").parse::<Filter>() {
                Ok(filter) => {
                    let not = format!("not ({})", words.join(" ")).parse::<Filter>().expect("what is understood has an opposite");
                    prop_assert_ne!(filter.passes(&reading), not.passes(&reading));
                }
                Err(error) => prop_assert!(error.to_string().contains('^')),
            }
        }
    }
}
