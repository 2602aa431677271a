//! Standard output and error. `lasthop … | head` is no bug of ours: whoever reads may stop reading at any time, and a
//! run must go on to write its results. So nothing here panics, unlike `println!`.

use comfy_table::{CellAlignment, ContentArrangement, LineStyle, Table, TableStyle};
use std::fmt::Arguments;
use std::io::{self, ErrorKind, Write};

/// Columns of a table when nobody says how wide the screen is.
const WIDTH: usize = 160;

/// Writes a line to standard output; see [`say!`](crate::say).
///
/// # Errors
/// What the system refused, such as a full disk, but not that nobody reads any more.
pub fn line(text: Arguments<'_>) -> anyhow::Result<()> {
    let mut out = io::stdout().lock();
    match writeln!(out, "{text}").and_then(|()| out.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(anyhow::Error::new(error).context("cannot write to standard output"))
        }
        _ => Ok(()),
    }
}

/// Writes a line to standard error, if anybody listens; see [`note!`](crate::note).
pub fn aside(text: Arguments<'_>) {
    let _ = writeln!(io::stderr().lock(), "{text}");
}

/// Columns of the screen: those of the terminal, or of `COLUMNS` if it is set.
pub fn width() -> usize {
    let told = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    let asked = || terminal_size::terminal_size_of(io::stdout()).map(|(width, _)| usize::from(width.0));
    told.or_else(asked).filter(|columns| *columns > 0).unwrap_or(WIDTH)
}

/// An empty table with a line below its header, as wide as the screen at most.
pub fn ruled() -> Table {
    let mut table = Table::new();
    table.load_style(TableStyle::new().header_separator(LineStyle::none().fill('─').junction('─')));
    table.set_content_arrangement(ContentArrangement::Dynamic).set_width(u16::try_from(width()).unwrap_or(u16::MAX));
    table
}

/// A table with all columns but the first to the right.
pub fn table<const N: usize>(head: [&str; N], rows: impl IntoIterator<Item = [String; N]>) -> Table {
    let mut table = ruled();
    table.set_header(head).add_rows(rows);
    table.column_iter_mut().skip(1).for_each(|column| {
        column.set_cell_alignment(CellAlignment::Right);
    });
    table
}

/// As `println!`, but an error is returned.
#[macro_export]
macro_rules! say {
    ($($text:tt)*) => { $crate::console::line(format_args!($($text)*)) };
}

/// As `eprintln!`, but an error is ignored.
#[macro_export]
macro_rules! note {
    ($($text:tt)*) => { $crate::console::aside(format_args!($($text)*)) };
}
