//! Which format a log has, from its first octets.

use super::ngscope::columns;
use super::{Direction, NgScope, NgScopeJson, NrScope, Reader};
use lasthop_units::named;

/// Octets that are enough to tell.
pub const HEAD: usize = 1 << 16;
/// Lines of a beginning that are looked at: the first may be half of one.
const LINES: usize = 20;

named! {
    /// A format of logs.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub enum Format {
        /// NG-Scope's, a line a DCI.
        NgScope = "NG-Scope",
        /// NG-Scope's variant in JSON.
        NgScopeJson = "NG-Scope (JSON)",
        /// NR-Scope's.
        NrScope = "NR-Scope",
    }
}

impl Format {
    /// Its reader. `direction`: which way the log is for, where its name says so.
    pub fn reader(self, direction: Option<Direction>) -> Box<dyn Reader + Send> {
        match self {
            Format::NgScope => Box::new(NgScope::new(direction)),
            Format::NgScopeJson => Box::<NgScopeJson>::default(),
            Format::NrScope => Box::<NrScope>::default(),
        }
    }

    /// True where slots in which nothing was found have no row: a slot that is not there was idle. False where they have one: a slot that is
    /// not there was not decoded.
    pub const fn leaves_out_idle(self) -> bool {
        matches!(self, Format::NrScope)
    }

    /// True for logs of LTE.
    pub const fn is_lte(self) -> bool {
        !matches!(self, Format::NrScope)
    }
}

/// Why a beginning is that of no log of assignments.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum NotALog {
    /// There is nothing.
    #[error("it is empty")]
    Empty,
    /// It lists acknowledgements of the uplink.
    #[error("it is NG-Scope's log of the PHICH, which assigns nothing; take the one with `_dl_` or `_ul_` in its name")]
    Phich,
    /// It lists random accesses.
    #[error("it is NR-Scope's log of random accesses, which assign nothing; take the one without `_rach` in its name")]
    RandomAccess,
    /// It lists cells.
    #[error("it is NR-Scope's log of a search for cells; take the log of a cell")]
    Scan,
    /// It is what NG-Scope sends to programs.
    #[error(
        "it is the stream that NG-Scope sends to programs, which has no PRB and no other users; take the log that it writes"
    )]
    Sink,
    /// A capture of packets.
    #[error("it is a capture of packets")]
    Capture,
    /// Octets that are no text.
    #[error(
        "it is no text: logs of a modem, as MobileInsight reads them, are not read; take one that a decoder of the control channel writes"
    )]
    Binary,
    /// Anything else.
    #[error(
        "it has neither NG-Scope's lines of 12 or 14 numbers between tabs, nor its JSON objects, nor NR-Scope's CSV"
    )]
    Unknown,
}

/// Which format begins so; `None`: more octets are needed to tell. `whole`: there are no more.
///
/// # Errors
/// [`NotALog`] if it is none.
pub fn detect(head: &[u8], whole: bool) -> Result<Option<Format>, NotALog> {
    let whole = whole || head.len() >= HEAD;
    if let Some(wrong) = by_magic(head) {
        return Err(wrong);
    }
    let start = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head).trim_ascii_start();
    if start.is_empty() {
        return if whole { Err(NotALog::Empty) } else { Ok(None) };
    }
    if start.contains(&0) {
        return Err(NotALog::Binary);
    }
    let text = String::from_utf8_lossy(start);
    if start.starts_with(b"[") || start.starts_with(b"{") {
        return by_members(&text, whole);
    }
    let mut lines: Vec<&str> = text.split('\n').map(|line| line.trim_end_matches('\r')).collect();
    // The last one is not whole yet.
    if !whole {
        lines.pop();
    }
    let lines = lines.into_iter().filter(|line| !line.trim().is_empty());
    let mut seen = 0;
    for line in lines.take(LINES) {
        seen += 1;
        if let Some(found) = by_line(line) {
            return found.map(Some);
        }
    }
    if whole || seen == LINES { Err(NotALog::Unknown) } else { Ok(None) }
}

fn by_magic(head: &[u8]) -> Option<NotALog> {
    const CAPTURES: [[u8; 4]; 5] = [
        [0xa1, 0xb2, 0xc3, 0xd4],
        [0xd4, 0xc3, 0xb2, 0xa1],
        [0xa1, 0xb2, 0x3c, 0x4d],
        [0x4d, 0x3c, 0xb2, 0xa1],
        [0x0a, 0x0d, 0x0d, 0x0a],
    ];
    let first: [u8; 4] = *head.first_chunk()?;
    match first {
        [0xaa, 0xaa, 0xaa, 0xaa] | [0xbb, 0xbb, 0xbb, 0xbb] => Some(NotALog::Sink),
        first => CAPTURES.contains(&first).then_some(NotALog::Capture),
    }
}

fn by_members(text: &str, whole: bool) -> Result<Option<Format>, NotALog> {
    let has = |name: &str| text.contains(&format!("\"{name}\""));
    if has("cell_dl_prb") || has("cell_ul_prb") {
        return Ok(Some(Format::NgScopeJson));
    }
    match text.contains('}') || whole {
        false => Ok(None),
        true if has("tti") && has("rv") => Err(NotALog::Phich),
        // An array without an object is a log in which nothing has been written yet.
        true if !text.contains('{') => {
            if whole {
                Err(NotALog::Empty)
            } else {
                Ok(None)
            }
        }
        true => Err(NotALog::Unknown),
    }
}

fn by_line(line: &str) -> Option<Result<Format, NotALog>> {
    if line.starts_with("GSCN,") {
        return Some(Err(NotALog::Scan));
    }
    let commas = line.split(',').count();
    if line.starts_with("timestamp,") || commas >= 33 {
        return Some(if commas == 4 { Err(NotALog::RandomAccess) } else { Ok(Format::NrScope) });
    }
    let (columns, count) = columns(line);
    let numbers = columns.iter().take(count).all(|column| column.parse::<i64>().is_ok());
    match count {
        12 | 14 if numbers => Some(Ok(Format::NgScope)),
        4 if numbers => Some(Err(NotALog::Phich)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "6970\t0\t0\t0\t0\t0\t0\t0\t0\t0\t0\t1688458592490410\t0\t0\t\n";

    #[test]
    fn each_format_is_known_by_its_beginning() {
        let found = |head: &str| detect(head.as_bytes(), false);
        assert_eq!(found(TEXT), Ok(Some(Format::NgScope)));
        assert_eq!(found(&format!("0\t0\t\n{TEXT}")), Ok(Some(Format::NgScope)), "the first line is half of one");
        assert_eq!(found("timestamp,system_frame_index,slot_index,rnti,rnti_type\n"), Ok(Some(Format::NrScope)));
        assert_eq!(found(&(["7"; 33].join(",") + "\n")), Ok(Some(Format::NrScope)));
        assert_eq!(found("[\n{\n\"tti\": \"1\",\n\"cell_dl_prb\": \"0\""), Ok(Some(Format::NgScopeJson)));
    }

    #[test]
    fn what_is_not_there_yet_is_waited_for() {
        for at in 1..TEXT.len() {
            assert_eq!(detect(&TEXT.as_bytes()[..at], false), Ok(None), "{at} octets");
        }
        assert_eq!(detect(b"[\n]", false), Ok(None));
        assert_eq!(detect(b"[\n]", true), Err(NotALog::Empty));
        assert_eq!(detect(b"", true), Err(NotALog::Empty));
        assert_eq!(detect(TEXT.trim_end().as_bytes(), true), Ok(Some(Format::NgScope)));
    }

    #[test]
    fn what_is_something_else_is_called_by_its_name() {
        let wrong = |head: &[u8]| detect(head, true).expect_err("no log");
        assert_eq!(wrong(b"6970\t0\t0\t1688458592490410\n"), NotALog::Phich);
        assert_eq!(wrong(b"[{\"tti\": \"1\", \"rnti\": \"0\", \"rv\": \"0\"}]"), NotALog::Phich);
        assert_eq!(wrong(b"timestamp,system_frame_index,slot_index,rnti\n"), NotALog::RandomAccess);
        assert_eq!(wrong(b"GSCN,absolute_ssb_center_frequency,PCI\n"), NotALog::Scan);
        assert_eq!(wrong(&[0xaa; 40]), NotALog::Sink);
        assert_eq!(wrong(&[0x0a, 0x0d, 0x0d, 0x0a, 0]), NotALog::Capture);
        assert_eq!(wrong(b"\x7fELF\0\0"), NotALog::Binary);
        assert_eq!(wrong(b"to be, or not to be\n"), NotALog::Unknown);
        assert_eq!(wrong(b"{\"answer\": 42}"), NotALog::Unknown);
        assert_eq!(
            detect("word\n".repeat(30).as_bytes(), false),
            Err(NotALog::Unknown),
            "it need not be whole for that"
        );
    }
}
