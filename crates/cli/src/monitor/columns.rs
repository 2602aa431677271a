//! The columns of the table of connections: what stands in each, how wide it is, and which goes first when there is no room.

use lasthop_agents::host::Reading;
use lasthop_units::{Rate, Span};
use lasthop_wire::tcp_info::{CaState, TcpState};

/// A column.
pub struct Column {
    /// Its heading, with the unit.
    pub title: &'static str,
    /// What stands in it.
    pub kind: Content,
    /// Columns of a low rank stay longest when the screen is narrow.
    pub rank: u8,
}

/// What stands in a column.
#[derive(Clone, Copy)]
pub enum Content {
    /// An address and a port, as wide as they need to be.
    Address(fn(&Reading) -> std::net::SocketAddr),
    /// A word of at most so many letters.
    Word(usize, fn(&Reading) -> &str),
    /// A number: what it is, for sorting, and how it is written.
    Number(fn(&Reading) -> Option<f64>, fn(f64) -> String),
    /// The rate over the latest looks, as bars.
    History,
}

/// Width of a number and of its heading at least.
pub const NUMBER: usize = 5;

/// Every column, from left to right.
pub const COLUMNS: &[Column] = &[
    Column { title: "local", kind: Content::Address(|r| r.socket.local), rank: 1 },
    Column { title: "peer", kind: Content::Address(|r| r.socket.peer), rank: 0 },
    Column { title: "state", kind: Content::Word(6, |r| short(r.socket.state)), rank: 12 },
    Column { title: "cc", kind: Content::Word(6, |r| r.socket.congestion_control.as_str()), rank: 14 },
    number("cwnd", 3, |r| Some(r.info.cwnd.into()), whole),
    number("ssthr", 15, |r| r.info.ssthresh.map(f64::from), whole),
    number("flight", 13, |r| Some(r.info.in_flight().into()), whole),
    Column { title: "ca", kind: Content::Word(8, |r| r.info.ca_state.name()), rank: 8 },
    number("recov", 16, |r| entries(r, CaState::Recovery), whole),
    number("rto", 17, |r| entries(r, CaState::Loss), whole),
    number("retr", 7, |r| Some(r.info.total_retrans.into()), whole),
    number("rtt ms", 4, |r| millis(r.info.rtt), decimal),
    number("min ms", 9, |r| millis(r.info.min_rtt), decimal),
    number("unsent B", 10, |r| r.info.notsent.map(|unsent| unsent.get() as f64), prefixed),
    number("pacing b/s", 18, |r| bps(r.info.pacing_rate), prefixed),
    number("deliv b/s", 19, |r| bps(r.info.delivery_rate), prefixed),
    number("sent b/s", 2, |r| bps(r.recent.map(|recent| recent.sent)), prefixed),
    number("recv b/s", 6, |r| bps(r.recent.map(|recent| recent.received)), prefixed),
    Column { title: "rate", kind: Content::History, rank: 11 },
    Column { title: "limited by", kind: Content::Word(11, |r| limit(r)), rank: 5 },
];

const fn number(title: &'static str, rank: u8, of: fn(&Reading) -> Option<f64>, written: fn(f64) -> String) -> Column {
    Column { title, kind: Content::Number(of, written), rank }
}

fn entries(reading: &Reading, state: CaState) -> Option<f64> {
    reading.entries.map(|entries| entries.of(state).into())
}

fn millis(span: Option<Span>) -> Option<f64> {
    span.map(Span::as_millis_f64)
}

fn bps(rate: Option<Rate>) -> Option<f64> {
    rate.map(|rate| rate.as_bps() as f64)
}

fn limit(reading: &Reading) -> &str {
    reading.recent.and_then(|recent| recent.limit).map_or("-", |limit| limit.name())
}

fn short(state: TcpState) -> &'static str {
    match state {
        TcpState::Established => "estab",
        TcpState::FinWait1 => "fin-1",
        TcpState::FinWait2 => "fin-2",
        TcpState::CloseWait => "close",
        TcpState::LastAck => "last",
        TcpState::Closing => "closng",
        TcpState::SynSent => "syn-s",
        TcpState::SynReceived => "syn-r",
        other => other.name(),
    }
}

/// A count, of at most five characters.
fn whole(value: f64) -> String {
    if value < 100_000.0 { format!("{value:.0}") } else { prefixed(value) }
}

/// Three digits, or all before the point.
fn decimal(value: f64) -> String {
    // Rounding may make a digit more of it.
    match value {
        0.0..9.995 => format!("{value:.2}"),
        9.995..99.95 => format!("{value:.1}"),
        _ => whole(value),
    }
}

/// Three digits and the SI prefix of the unit.
pub fn prefixed(value: f64) -> String {
    let mut scaled = value;
    let mut prefixes = ["", "k", "M", "G", "T", "P", "E"].into_iter();
    let mut prefix = prefixes.next().unwrap_or_default();
    while scaled >= 999.5 {
        let Some(next) = prefixes.next() else { break };
        (scaled, prefix) = (scaled / 1000.0, next);
    }
    match (prefix, scaled) {
        ("", _) | (_, 99.95..) => format!("{scaled:.0}{prefix}"),
        (_, 9.995..) => format!("{scaled:.1}{prefix}"),
        _ => format!("{scaled:.2}{prefix}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_fit_their_columns() {
        for (value, wanted) in [
            (0.0, "0"),
            (7.4, "7"),
            (999.4, "999"),
            (999.6, "1.00k"),
            (9_996.0, "10.0k"),
            (99_960.0, "100k"),
            (8e6, "8.00M"),
        ] {
            assert_eq!(prefixed(value), wanted);
        }
        assert_eq!(prefixed(u64::MAX as f64), "18.4E");
        for (value, wanted) in [(0.042, "0.04"), (9.996, "10.0"), (50.0, "50.0"), (99.96, "100"), (12_345.6, "12346")] {
            assert_eq!(decimal(value), wanted);
        }
        assert_eq!((whole(99_999.0), whole(4_294_967_295.0)), ("99999".into(), "4.29G".into()));
    }

    #[test]
    fn every_rank_is_taken_once() {
        let mut ranks: Vec<u8> = COLUMNS.iter().map(|column| column.rank).collect();
        ranks.sort_unstable();
        assert_eq!(ranks, (0..COLUMNS.len() as u8).collect::<Vec<_>>());
    }
}
