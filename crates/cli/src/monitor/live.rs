//! The table on the screen, live.
//!
//! The terminal gets its old screen and modes back whatever ends the monitor: `q`, a signal, an error or a panic.

use super::columns::prefixed;
use super::view::View;
use super::{Beat, Source, filter};
use lasthop_agents::host::Reading;
use lasthop_agents::service::Stop;
use lasthop_units::{Rate, Span, count};
use ratatui::buffer::Buffer;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use ratatui::layout::Rect;
use ratatui::style::{Modifier, Style};
use std::time::Duration;

/// What is on the screen.
struct Screen {
    view: View,
    /// Text of the filter in force.
    filter: String,
    /// Text of one that is being written.
    editing: Option<String>,
    /// What is wrong with it, or what the monitor lacks.
    notice: Option<String>,
    /// First row shown, and how many fit.
    top: usize,
    fits: usize,
    status: Status,
}

/// What stands above the table.
#[derive(Default)]
struct Status {
    connections: usize,
    sent: Rate,
    received: Rate,
}

/// What a key asks for beyond the screen.
#[derive(PartialEq, Eq, Debug)]
enum Asked {
    Nothing,
    End,
    /// Another filter, which has been understood, is to be used.
    Filter,
}

/// A signal is noticed after this long at the latest.
const PATIENCE: Duration = Duration::from_millis(200);

const KEYS: &str = "q quit   / filter   < > sort by   r reverse   ↑ ↓ PgUp PgDn scroll";

/// Gives the terminal back.
struct Terminal(ratatui::DefaultTerminal);

impl Drop for Terminal {
    fn drop(&mut self) {
        // A terminal that is gone needs nothing.
        let _ = ratatui::try_restore();
    }
}

/// Shows what `source` sees until somebody ends it, or it has looked often enough. `lack` is what cannot be shown, and why.
pub fn run(source: &mut Source, every: Span, stop: &Stop, lack: Option<String>) -> anyhow::Result<()> {
    let mut terminal = Terminal(ratatui::try_init()?);
    let mut screen = Screen::new(source.filter_text.clone(), lack);
    let mut beat = Beat::new(every);
    let mut more = true;
    while more && !stop.is_asked() {
        if beat.wait().is_zero() {
            more = source.look()?;
            beat.looked();
            screen.update(source.watch.readings(), source.shown());
        }
        terminal.0.draw(|frame| {
            let area = frame.area();
            screen.draw(area, frame.buffer_mut());
        })?;
        // Nothing changes until a key is pressed or the next look is due.
        while !stop.is_asked() && !beat.wait().is_zero() {
            if !event::poll(beat.wait().min(PATIENCE))? {
                continue;
            }
            match event::read()? {
                Event::Key(key) if key.kind != KeyEventKind::Release => match screen.press(key) {
                    Asked::Nothing => {}
                    Asked::End => return Ok(()),
                    Asked::Filter => {
                        source.filter = filter(&screen.filter)?;
                        screen.update(source.watch.readings(), source.shown());
                    }
                },
                Event::Resize(..) => {}
                _ => continue,
            }
            break;
        }
    }
    Ok(())
}

impl Screen {
    fn new(filter: String, notice: Option<String>) -> Screen {
        let (view, status) = (View::default(), Status::default());
        Screen { view, filter, editing: None, notice, top: 0, fits: 1, status }
    }

    /// Takes in a look: all connections, and those that are shown.
    fn update<'a>(&mut self, all: &[Reading], shown: impl Iterator<Item = &'a Reading>) {
        let recent = || all.iter().filter_map(|reading| reading.recent.as_ref());
        self.status = Status {
            connections: all.len(),
            sent: recent().map(|recent| recent.sent).sum(),
            received: recent().map(|recent| recent.received).sum(),
        };
        self.view.update(shown);
    }

    fn press(&mut self, key: KeyEvent) -> Asked {
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        if control && key.code == KeyCode::Char('c') {
            return Asked::End;
        }
        if let Some(text) = &mut self.editing {
            match key.code {
                KeyCode::Char('u') if control => text.clear(),
                KeyCode::Char(letter) if !control => text.push(letter),
                KeyCode::Backspace => drop(text.pop()),
                KeyCode::Esc => (self.editing, self.notice) = (None, None),
                KeyCode::Enter => match filter(text) {
                    Ok(_) => {
                        self.filter = self.editing.take().unwrap_or_default();
                        (self.notice, self.top) = (None, 0);
                        return Asked::Filter;
                    }
                    Err(error) => self.notice = Some(error.reason()),
                },
                _ => {}
            }
            return Asked::Nothing;
        }
        // It has been read.
        self.notice = None;
        match key.code {
            KeyCode::Char('q') | KeyCode::Esc => return Asked::End,
            KeyCode::Char('/') => self.editing = Some(self.filter.clone()),
            KeyCode::Char('<' | ',') | KeyCode::Left => self.view.sort_by_next(false),
            KeyCode::Char('>' | '.') | KeyCode::Right => self.view.sort_by_next(true),
            KeyCode::Char('r') => self.view.reverse(),
            KeyCode::Up | KeyCode::Char('k') => self.top = self.top.saturating_sub(1),
            KeyCode::Down | KeyCode::Char('j') => self.top += 1,
            KeyCode::PageUp => self.top = self.top.saturating_sub(self.fits),
            KeyCode::PageDown => self.top += self.fits,
            KeyCode::Home => self.top = 0,
            KeyCode::End => self.top = self.view.len(),
            _ => {}
        }
        Asked::Nothing
    }

    fn draw(&mut self, area: Rect, buffer: &mut Buffer) {
        // Two lines above the heading, one below the rows.
        self.fits = usize::from(area.height.saturating_sub(4)).max(1);
        self.top = self.top.min(self.view.len().saturating_sub(self.fits));
        let (heading, rows) = self.view.lines(area.width.into(), self.top..self.top + self.fits);
        let mut lines = vec![(self.title(), Style::new().add_modifier(Modifier::BOLD))];
        lines.push(match (&self.notice, self.filter.is_empty()) {
            (Some(notice), _) => (notice.replace('\n', " "), Style::new().add_modifier(Modifier::ITALIC)),
            (None, false) => (format!("filter: {}", self.filter), Style::new()),
            (None, true) => (String::new(), Style::new()),
        });
        let width = usize::from(area.width);
        lines.push((format!("{heading:<width$}"), Style::new().add_modifier(Modifier::REVERSED)));
        lines.extend(rows.into_iter().map(|row| (row, Style::new())));
        let last = match &self.editing {
            Some(text) => (format!("filter: {text}▏"), Style::new().add_modifier(Modifier::BOLD)),
            None => (KEYS.to_owned(), Style::new().add_modifier(Modifier::DIM)),
        };
        for (y, (text, style)) in (area.top()..area.bottom().saturating_sub(1)).zip(&lines) {
            buffer.set_stringn(area.x, y, text, width, *style);
        }
        if let Some(y) = area.bottom().checked_sub(1).filter(|y| *y >= area.top()) {
            buffer.set_stringn(area.x, y, &last.0, width, last.1);
        }
    }

    fn title(&self) -> String {
        let Status { connections, sent, received } = &self.status;
        let rate = |rate: &Rate| format!("{}bit/s", spaced(&prefixed(rate.as_bps() as f64)));
        let end = (self.top + self.fits).min(self.view.len());
        let rows = match self.view.len() {
            0 => "none shown".to_owned(),
            len => format!("rows {}-{end} of {len}", self.top + 1),
        };
        let (sent, received) = (rate(sent), rate(received));
        format!("{}, {rows}   sent {sent}   received {received}", count(*connections, "connection"))
    }
}

/// A number with a space before its prefix.
fn spaced(number: &str) -> String {
    let digits = number.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(number.len());
    format!("{} {}", &number[..digits], &number[digits..])
}

#[cfg(test)]
mod tests {
    use super::super::view::tests::{readings, view};
    use super::*;
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;
    use std::path::Path;

    fn screen() -> Screen {
        let mut screen = Screen::new("dst 0.0.0.0/0".to_owned(), None);
        screen.view = view();
        screen.update(&readings(9), readings(9).iter());
        screen
    }

    fn drawn(screen: &mut Screen, width: u16, height: u16) -> String {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).expect("memory");
        terminal.draw(|frame| screen.draw(frame.area(), frame.buffer_mut())).expect("memory");
        let cells = terminal.backend().buffer().content();
        let line = |cells: &[ratatui::buffer::Cell]| cells.iter().map(|cell| cell.symbol()).collect::<String>();
        cells.chunks(width.into()).map(|cells| line(cells).trim_end().to_owned() + "\n").collect()
    }

    fn press(screen: &mut Screen, keys: &str) -> Vec<Asked> {
        let code = |key| if key == '\n' { KeyCode::Enter } else { KeyCode::Char(key) };
        keys.chars().map(|key| screen.press(KeyEvent::new(code(key), KeyModifiers::NONE))).collect()
    }

    /// `LASTHOP_BLESS=1` writes the pictures.
    #[test]
    fn the_table_looks_as_it_should_at_80_and_at_200_columns() {
        for width in [80, 200] {
            let text = drawn(&mut screen(), width, 10);
            let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("src/monitor/golden/{width}.txt"));
            if std::env::var_os("LASTHOP_BLESS").is_some() {
                std::fs::write(&path, &text).expect("writable");
            }
            let wanted = std::fs::read_to_string(&path).expect("a picture");
            assert!(text == wanted, "{} is not what is drawn:\n{text}", path.display());
        }
    }

    #[test]
    fn no_screen_is_too_small() {
        for (width, height) in [(1, 1), (1, 40), (7, 3), (300, 2), (300, 5)] {
            assert_eq!(drawn(&mut screen(), width, height).lines().count(), usize::from(height));
        }
    }

    #[test]
    fn a_filter_is_written_and_used_and_a_wrong_one_is_told() {
        let mut screen = screen();
        press(&mut screen, "/");
        assert!(drawn(&mut screen, 80, 10).contains("filter: dst 0.0.0.0/0▏"));
        screen.press(KeyEvent::new(KeyCode::Char('u'), KeyModifiers::CONTROL));
        assert_eq!(press(&mut screen, "rtt > q\n").last(), Some(&Asked::Nothing));
        assert!(drawn(&mut screen, 80, 10).contains("a time should follow"), "{}", drawn(&mut screen, 80, 10));
        screen.press(KeyEvent::new(KeyCode::Backspace, KeyModifiers::NONE));
        assert_eq!(press(&mut screen, "5ms\n").last(), Some(&Asked::Filter));
        assert!(drawn(&mut screen, 80, 10).contains("filter: rtt > 5ms\n"));
        assert_eq!(press(&mut screen, "q"), [Asked::End]);
    }

    #[test]
    fn rows_scroll_no_further_than_they_go() {
        let mut screen = screen();
        let first = |screen: &mut Screen| drawn(screen, 80, 6).lines().nth(3).expect("a row").to_owned();
        assert!(first(&mut screen).contains("10.20.130.140"));
        press(&mut screen, "j");
        assert!(first(&mut screen).contains("2001:db8"));
        press(&mut screen, "jjjjjj");
        assert!(drawn(&mut screen, 80, 6).contains("rows 3-4 of 4"));
        press(&mut screen, "k");
        assert!(drawn(&mut screen, 80, 6).contains("rows 2-3 of 4"));
    }
}
