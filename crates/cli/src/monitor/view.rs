//! The table of connections: sorted, cut to the width of the screen, as text.

use super::columns::{COLUMNS, Column, Content, NUMBER};
use lasthop_agents::host::Reading;
use std::cmp::Ordering;
use std::collections::{HashMap, VecDeque};

/// Connections in the order in which they are shown.
pub struct View {
    rows: Vec<Reading>,
    /// Rates of the latest looks by cookie, the latest last.
    history: HashMap<u64, VecDeque<u64>>,
    sort: usize,
    reversed: bool,
}

/// A part of a row, so wide.
#[derive(Clone, Copy)]
struct Cell {
    column: &'static Column,
    index: usize,
    width: usize,
}

/// Looks that the history holds: the widest that it is shown.
const HISTORY: usize = 40;
/// Less shows nothing.
const HISTORY_LEAST: usize = 8;
/// An IPv4 address and a port.
const ADDRESS: usize = 21;

impl Default for View {
    fn default() -> View {
        let sort = COLUMNS.iter().position(|column| column.title == "sent b/s").unwrap_or_default();
        View { rows: Vec::new(), history: HashMap::new(), sort, reversed: false }
    }
}

impl View {
    /// Takes in a look.
    pub fn update<'a>(&mut self, readings: impl Iterator<Item = &'a Reading>) {
        self.rows.clear();
        let mut history = HashMap::with_capacity(self.history.len());
        for reading in readings {
            let cookie = reading.socket.cookie;
            let mut rates = self.history.remove(&cookie).unwrap_or_default();
            if let Some(recent) = &reading.recent {
                rates.push_back((recent.sent + recent.received).as_bps());
                if rates.len() > HISTORY {
                    rates.pop_front();
                }
            }
            history.insert(cookie, rates);
            self.rows.push(*reading);
        }
        self.history = history;
        self.order();
    }

    /// Sorts by another column: the next one to the right, or to the left.
    pub fn sort_by_next(&mut self, right: bool) {
        let step = if right { 1 } else { COLUMNS.len() - 1 };
        loop {
            self.sort = (self.sort + step) % COLUMNS.len();
            // Bars have no order.
            if !matches!(COLUMNS[self.sort].kind, Content::History) {
                break;
            }
        }
        self.order();
    }

    /// Sorts the other way round.
    pub fn reverse(&mut self) {
        self.reversed = !self.reversed;
        self.order();
    }

    /// How many connections there are.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// The heading of a table this wide, and a line for each of these rows.
    pub fn lines(&self, width: usize, rows: std::ops::Range<usize>) -> (String, Vec<String>) {
        let rows = &self.rows[rows.start.min(self.rows.len())..rows.end.min(self.rows.len())];
        let cells = self.layout(width, rows);
        let line = |text: &dyn Fn(&Cell) -> String| {
            let parts: Vec<String> = cells.iter().map(|cell| aligned(&text(cell), cell)).collect();
            parts.join(" ")
        };
        let heading = line(&|cell| match (cell.index == self.sort, self.reversed) {
            (false, _) => cell.column.title.to_owned(),
            (true, false) => format!("{}▼", cell.column.title),
            (true, true) => format!("{}▲", cell.column.title),
        });
        (heading, rows.iter().map(|row| line(&|cell| self.text_of(row, cell))).collect())
    }

    /// The whole table, with a blank line below it.
    pub fn text(&self, width: usize) -> String {
        let (heading, lines) = self.lines(width, 0..self.rows.len());
        let mut text = heading.trim_end().to_owned();
        for line in lines {
            text.push('\n');
            text.push_str(line.trim_end());
        }
        text + "\n"
    }

    /// The columns that a width has room for.
    fn layout(&self, width: usize, rows: &[Reading]) -> Vec<Cell> {
        let mut by_rank: Vec<Cell> = COLUMNS
            .iter()
            .enumerate()
            .map(|(index, column)| Cell { column, index, width: width_of(column, rows) })
            .collect();
        by_rank.sort_by_key(|cell| cell.column.rank);
        let (mut cells, mut left) = (Vec::new(), width + 1);
        for cell in by_rank {
            if cell.width < left {
                left -= cell.width + 1;
                cells.push(cell);
            }
        }
        // What is left over shows more of the past.
        let more = left.min(HISTORY - HISTORY_LEAST);
        for cell in &mut cells {
            if matches!(cell.column.kind, Content::History) {
                cell.width += more;
            }
        }
        cells.sort_by_key(|cell| cell.index);
        cells
    }

    fn text_of(&self, row: &Reading, cell: &Cell) -> String {
        match cell.column.kind {
            Content::Address(of) => short_address(&of(row).to_string(), cell.width),
            Content::Word(_, of) => of(row).to_owned(),
            Content::Number(of, written) => of(row).map_or("-".to_owned(), written),
            Content::History => self.history.get(&row.socket.cookie).map_or(String::new(), |h| bars(h, cell.width)),
        }
    }

    fn order(&mut self) {
        // The largest first, words by the alphabet; what is not known comes last either way.
        let reversed = self.reversed;
        let turned = |order: Ordering| if reversed { order.reverse() } else { order };
        let cookie = |reading: &Reading| reading.socket.cookie;
        match COLUMNS[self.sort].kind {
            Content::Number(of, _) => self.rows.sort_by(|a, b| {
                let order = match (of(a), of(b)) {
                    (Some(a), Some(b)) => turned(b.total_cmp(&a)),
                    (a, b) => b.is_some().cmp(&a.is_some()),
                };
                order.then(cookie(a).cmp(&cookie(b)))
            }),
            Content::Address(of) => {
                self.rows.sort_by(|a, b| turned(of(a).cmp(&of(b))).then(cookie(a).cmp(&cookie(b))));
            }
            Content::Word(_, of) => {
                self.rows.sort_by(|a, b| turned(of(a).cmp(of(b))).then(cookie(a).cmp(&cookie(b))));
            }
            Content::History => {}
        }
    }
}

/// The least width of a column: a heading has room for the mark of order.
fn width_of(column: &Column, rows: &[Reading]) -> usize {
    let content = match column.kind {
        Content::Address(of) => rows.iter().map(|row| of(row).to_string().len()).max().unwrap_or(0).min(ADDRESS),
        Content::Word(width, _) => width,
        Content::Number(..) => NUMBER,
        Content::History => return HISTORY_LEAST,
    };
    content.max(column.title.len() + 1)
}

/// Numbers stand to the right, all else to the left.
fn aligned(text: &str, cell: &Cell) -> String {
    let width = cell.width;
    match cell.column.kind {
        Content::Number(..) => format!("{text:>width$}"),
        _ => format!("{text:<width$.width$}"),
    }
}

/// An address of IPv6 that is too long keeps its beginning and its port.
fn short_address(address: &str, width: usize) -> String {
    if address.len() <= width {
        return address.to_owned();
    }
    let port = address.rfind("]:").map_or("", |at| &address[at..]);
    let kept = width.saturating_sub(port.len() + 1);
    format!("{}…{port}", &address[..kept.min(address.len())])
}

/// The latest rates as bars, against the largest of them.
fn bars(rates: &VecDeque<u64>, width: usize) -> String {
    const BARS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let shown = rates.iter().skip(rates.len().saturating_sub(width));
    let largest = shown.clone().copied().max().unwrap_or(0).max(1);
    let bar = |rate: &u64| {
        // A rate that is not zero shows.
        let eighths = (u128::from(*rate) * 8).div_ceil(u128::from(largest));
        BARS[usize::try_from(eighths).unwrap_or(8).min(8)]
    };
    let text: String = shown.map(bar).collect();
    format!("{text:>width$}")
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use lasthop_agents::host::{CaEntries, Limit, Recent};
    use lasthop_units::{Bytes, Rate, Span, Time};
    use lasthop_wire::sock_diag::{CongestionControl, Socket};
    use lasthop_wire::tcp_info::{CaState, TcpInfo, TcpState};

    /// Connections of many kinds, at one look.
    pub(in crate::monitor) fn readings(look: u64) -> Vec<Reading> {
        let reading = |cookie: u64, local: &str, peer: &str, info: TcpInfo, recent: Option<(u64, u64, Limit)>| {
            let socket = Socket {
                cookie,
                local: local.parse().expect("an address"),
                peer: peer.parse().expect("an address"),
                interface: 0,
                state: info.state,
                uid: 0,
                inode: 1,
                receive_queue: Bytes::ZERO,
                send_queue: Bytes::ZERO,
                congestion_control: CongestionControl::new(if cookie == 2 { b"bbr" } else { b"cubic" }),
                info: Some(info),
            };
            let recent = recent.map(|(sent, received, limit)| Recent {
                interval: Span::from_millis(500),
                sent: Rate::from_bps(sent),
                received: Rate::from_bps(received),
                retransmitted: 0,
                limit: Some(limit),
            });
            let entries = Some(CaEntries::new([0, 1, 0, cookie as u32, 0]));
            Reading { at: Time::from_nanos(look * 500_000_000), socket, info, entries, recent }
        };
        let up = TcpInfo {
            state: TcpState::Established,
            ca_state: CaState::Open,
            cwnd: 10,
            rtt: Some(Span::from_micros(42)),
            min_rtt: Some(Span::from_micros(18)),
            notsent: Some(Bytes::ZERO),
            ..TcpInfo::default()
        };
        let bulk = TcpInfo {
            ca_state: CaState::Recovery,
            cwnd: 1_234,
            ssthresh: Some(987),
            unacked: 1_200,
            total_retrans: 56,
            rtt: Some(Span::from_micros(256_123)),
            min_rtt: Some(Span::from_micros(255_000)),
            notsent: Some(Bytes::new(3_456_789)),
            pacing_rate: Some(Rate::from_bps(71_200_000)),
            delivery_rate: Some(Rate::from_bps(48_100_000)),
            ..up
        };
        let long = "[2001:db8:1234:5678:9abc:def0:1234:5678]:443";
        let closing = TcpInfo { state: TcpState::CloseWait, rtt: None, min_rtt: None, ..up };
        vec![
            reading(1, "127.0.0.1:631", "127.0.0.1:40112", up, Some((0, 0, Limit::Idle))),
            reading(2, "10.20.130.140:54321", "198.51.100.200:443", bulk, Some((look * 6_000_000, 0, Limit::Network))),
            reading(3, "[2001:db8::2]:50000", long, up, Some((1_200, 93_000_000, Limit::Receiving))),
            reading(4, "192.168.1.20:50100", "192.0.2.1:22", closing, None),
        ]
    }

    pub(in crate::monitor) fn view() -> View {
        let mut view = View::default();
        (1..=8).for_each(|look| view.update(readings(look).iter()));
        view
    }

    fn peers(view: &View) -> Vec<u64> {
        view.rows.iter().map(|row| row.socket.cookie).collect()
    }

    #[test]
    fn rows_are_in_order_and_what_is_unknown_comes_last() {
        let mut view = view();
        assert_eq!(peers(&view), [2, 3, 1, 4], "by what is sent");
        view.reverse();
        assert_eq!(peers(&view), [1, 3, 2, 4]);
        view.reverse();
        view.sort_by_next(true);
        assert_eq!(peers(&view), [3, 1, 2, 4], "by what is received");
        view.sort_by_next(true);
        assert_eq!(peers(&view), [4, 1, 2, 3], "by the limit, as words: - idle network receiving");
        view.sort_by_next(true);
        assert_eq!(peers(&view), [2, 1, 4, 3], "by the local address");
    }

    #[test]
    fn columns_go_by_rank_when_there_is_no_room() {
        let view = view();
        let ranks = |width| view.layout(width, &view.rows).iter().map(|cell| cell.column.rank).max();
        // The addresses, what else fits beside them, what comes first.
        assert_eq!([43, 49, 51].map(ranks), [Some(1), Some(3), Some(2)]);
        assert_eq!(view.layout(260, &view.rows).len(), COLUMNS.len());
        for width in 20..260 {
            let (heading, lines) = view.lines(width, 0..4);
            for line in lines.iter().chain([&heading]) {
                assert!(line.chars().count() <= width, "{width}: {line}");
            }
        }
    }

    #[test]
    fn bars_are_of_the_largest_rate_and_new_ones_stand_right() {
        assert_eq!(bars(&VecDeque::from([0, 1, 40, 80]), 6), "   ▁▄█");
        assert_eq!(bars(&VecDeque::from([80, 0, 0]), 2), "  ");
        assert_eq!(bars(&VecDeque::new(), 3), "   ");
    }

    #[test]
    fn a_long_address_keeps_its_port() {
        assert_eq!(short_address("[2001:db8:1234:5678:9abc:def0:1234:5678]:443", 21), "[2001:db8:1234:…]:443");
        assert_eq!(short_address("192.0.2.1:22", 21), "192.0.2.1:22");
    }

    #[test]
    fn connections_that_are_gone_take_their_history_with_them() {
        let mut view = view();
        view.update(readings(9)[..1].iter());
        assert_eq!((view.len(), view.history.len()), (1, 1));
        assert_eq!(view.history[&1].len(), 9);
    }
}
