//! Tables: all of it as CSV, and what the page shows of it as Markdown.

use std::fmt::Write as _;

/// A table of text.
#[derive(Clone, Debug, Default)]
pub struct Table {
    /// Headings.
    pub head: Vec<String>,
    /// Lines.
    pub rows: Vec<Vec<String>>,
    /// What its CSV file has behind the page's name.
    name: &'static str,
    /// What the page shows; `None` for all of it.
    excerpt: Option<Excerpt>,
}

/// Places of rows and columns.
#[derive(Clone, Debug)]
struct Excerpt {
    rows: Vec<usize>,
    columns: Vec<usize>,
}

impl Table {
    /// A table with these headings.
    pub fn new(head: &[&str]) -> Table {
        Table { head: head.iter().map(|cell| (*cell).to_owned()).collect(), ..Table::default() }
    }

    /// The same, of which a figure's page shows these rows and columns. All of it is in a CSV file beside the page.
    #[must_use]
    pub fn only(self, shows: impl Fn(&[String]) -> bool, columns: &[usize]) -> Table {
        let rows = (0..self.rows.len()).filter(|row| shows(&self.rows[*row])).collect();
        let columns = columns.iter().copied().filter(|column| *column < self.head.len()).collect();
        Table { excerpt: Some(Excerpt { rows, columns }), ..self }
    }

    /// The same, of which the page shows all rows but only these columns.
    #[must_use]
    pub fn columns(self, columns: &[usize]) -> Table {
        self.only(|_| true, columns)
    }

    /// The same as a CSV file alone: its picture or the statements say what is in it.
    #[must_use]
    pub fn data(self) -> Table {
        self.only(|_| false, &[])
    }

    /// The same with this behind the page's name in its CSV file's: a figure may have several.
    #[must_use]
    pub fn named(self, name: &'static str) -> Table {
        Table { name, ..self }
    }

    /// The name of its CSV file beside the page of that name; `None` if the page shows all of it.
    pub(super) fn file(&self, page: &str) -> Option<String> {
        self.excerpt.as_ref()?;
        Some(match self.name {
            "" => format!("{page}.csv"),
            name => format!("{page}-{name}.csv"),
        })
    }

    /// All of it.
    pub(super) fn csv(&self) -> String {
        csv(std::iter::once(&self.head).chain(&self.rows))
    }

    /// What a figure's page shows; empty if that is nothing.
    pub(super) fn markdown(&self) -> String {
        match &self.excerpt {
            None => markdown(&self.head, &self.rows),
            Some(Excerpt { rows, .. }) if rows.is_empty() => String::new(),
            Some(Excerpt { rows, columns }) => {
                let cut = |cells: &[String]| columns.iter().map(|column| cells[*column].clone()).collect();
                let rows: Vec<Vec<String>> = rows.iter().map(|row| cut(&self.rows[*row])).collect();
                markdown(&cut(&self.head), &rows)
            }
        }
    }
}

/// A table in Markdown.
pub(super) fn markdown(head: &[String], rows: &[Vec<String>]) -> String {
    let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
    let rule = vec!["---".to_owned(); head.len()];
    [line(head), line(&rule)].into_iter().chain(rows.iter().map(|row| line(row))).collect()
}

/// Rows as RFC 4180 has them.
pub(super) fn csv<'r>(rows: impl IntoIterator<Item = &'r Vec<String>>) -> String {
    let mut text = String::new();
    for row in rows {
        let cells: Vec<String> = row.iter().map(|cell| quoted(cell)).collect();
        let _ = writeln!(text, "{}", cells.join(","));
    }
    text
}

fn quoted(cell: &str) -> String {
    match cell.contains([',', '"', '\n']) {
        true => format!("\"{}\"", cell.replace('"', "\"\"")),
        false => cell.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let mut table = Table::new(&["law", "n", "Mbit/s"]);
        table.rows = [["a", "1", "2, 3"], ["b", "2", "say \"4\""]].map(|row| row.map(str::to_owned).to_vec()).to_vec();
        table
    }

    #[test]
    fn an_excerpt_is_on_the_page_and_all_in_the_file() {
        let all = table();
        assert_eq!(all.file("figure-1"), None);
        assert_eq!(all.markdown().lines().count(), 4);
        let some = table().only(|row| row[0] == "b", &[0, 2]);
        assert_eq!(some.markdown(), "| law | Mbit/s |\n| --- | --- |\n| b | say \"4\" |\n");
        assert_eq!(some.csv(), "law,n,Mbit/s\na,1,\"2, 3\"\nb,2,\"say \"\"4\"\"\"\n");
        assert_eq!(some.file("figure-1").as_deref(), Some("figure-1.csv"));
    }

    #[test]
    fn data_alone_is_not_on_the_page() {
        let data = table().data().named("slots");
        assert_eq!(data.markdown(), "");
        assert_eq!(data.file("figure-1").as_deref(), Some("figure-1-slots.csv"));
        assert_eq!(data.csv(), table().csv());
    }
}
