//! Which scenarios a figure comes from, and what was changed in them: whoever wants to run one point alone finds it there.

use std::fmt;

/// Scenarios in the order in which they were run first.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Ran {
    /// Where their files are, under `scenarios`.
    folder: &'static str,
    groups: Vec<Group>,
}

/// Runs of one scenario in which the same keys were changed.
#[derive(Clone, Debug, PartialEq)]
struct Group {
    name: String,
    keys: Vec<String>,
    /// What they were in each run, no two of which are alike.
    runs: Vec<Vec<String>>,
}

/// Keys that were changed alike, and what they were in each run.
struct Column<'g> {
    keys: Vec<&'g str>,
    values: Vec<&'g str>,
}

impl Ran {
    /// Another run, of the scenario of this name in this folder, with these keys changed to these values.
    pub fn add(&mut self, (folder, name): (&'static str, &str), edits: &[(&str, impl fmt::Display)]) {
        self.folder = folder;
        let keys = || edits.iter().map(|(key, _)| *key);
        let same = |group: &&mut Group| group.name == name && group.keys.iter().map(String::as_str).eq(keys());
        let values: Vec<String> = edits.iter().map(|(_, value)| value.to_string()).collect();
        match self.groups.iter_mut().find(same) {
            Some(group) if group.runs.contains(&values) => {}
            Some(group) => group.runs.push(values),
            None => {
                self.groups.push(Group {
                    name: name.to_owned(),
                    keys: keys().map(str::to_owned).collect(),
                    runs: vec![values],
                });
            }
        }
    }

    /// True if nothing was run.
    pub(super) fn is_empty(&self) -> bool {
        self.groups.is_empty()
    }

    /// Where their files are, under `scenarios`.
    pub(super) fn folder(&self) -> &'static str {
        self.folder
    }
}

/// A list in Markdown.
impl fmt::Display for Ran {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.groups.iter().try_for_each(|group| write!(f, "\n* {group}"))
    }
}

/// The scenario; what all its runs have other than its file; and what they differ by.
impl fmt::Display for Group {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (varying, constant): (Vec<_>, Vec<_>) = self.columns().into_iter().partition(Column::varies);
        let mut parts: Vec<String> =
            constant.iter().map(|column| format!("{} {}", column.label(), code(column.values[0]))).collect();
        match &varying[..] {
            [] => {}
            [one] => parts.push(format!(
                "{} {}",
                one.label(),
                one.values.iter().map(|v| code(v)).collect::<Vec<_>>().join(", ")
            )),
            several => {
                let labels: Vec<String> = several.iter().map(Column::label).collect();
                let run = |run: usize| {
                    let values: Vec<String> = several.iter().map(|column| code(column.values[run])).collect();
                    format!("({})", values.join(", "))
                };
                let runs: Vec<String> = (0..self.runs.len()).map(run).collect();
                parts.push(format!("({}) {}", labels.join(", "), runs.join(", ")));
            }
        }
        let with = if parts.is_empty() { "" } else { ", with " };
        write!(f, "`{}.toml`{with}{}", self.name, parts.join("; "))
    }
}

impl Group {
    /// Its keys in order; those that differ by their place in a list, and were changed alike, are one.
    fn columns(&self) -> Vec<Column<'_>> {
        let mut columns: Vec<Column<'_>> = Vec::new();
        for (place, key) in self.keys.iter().enumerate() {
            let values: Vec<&str> = self.runs.iter().map(|run| run[place].as_str()).collect();
            let alike = |column: &&mut Column<'_>| {
                column.values == values
                    && parts(key).is_some()
                    && parts(column.keys[0]).map(rest) == parts(key).map(rest)
            };
            match columns.iter_mut().find(alike) {
                Some(column) => column.keys.push(key),
                None => columns.push(Column { keys: vec![key], values }),
            }
        }
        columns
    }
}

impl Column<'_> {
    fn varies(&self) -> bool {
        self.values.iter().any(|value| *value != self.values[0])
    }

    /// `traffic.0.rate`, or `traffic.1,2.size` of several places.
    fn label(&self) -> String {
        match (parts(self.keys[0]), &self.keys[..]) {
            (Some((list, _, key)), [_, _, ..]) => {
                let places: Vec<&str> = self.keys.iter().filter_map(|key| Some(parts(key)?.1)).collect();
                code(&format!("{list}.{}.{key}", places.join(",")))
            }
            _ => code(self.keys[0]),
        }
    }
}

/// A key of a list's element: the list, the place in it, and the rest.
fn parts(key: &str) -> Option<(&str, &str, &str)> {
    let (list, rest) = key.split_once('.')?;
    let (place, key) = rest.split_once('.')?;
    place.parse::<usize>().is_ok().then_some((list, place, key))
}

fn rest<'k>((list, _, key): (&'k str, &'k str, &'k str)) -> (&'k str, &'k str) {
    (list, key)
}

fn code(text: &str) -> String {
    format!("`{text}`")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_all_runs_have_is_said_once_and_what_went_together_stays_together() {
        let mut ran = Ran::default();
        let text = |value: &str| format!("\"{value}\"");
        for (count, limit) in [(20, 50), (4, 64), (4, 64), (4, 100)] {
            let edits =
                [("station.0.count", format!("{count}")), ("duration", text("6 s")), ("limit", format!("{limit}"))];
            ran.add(("any", "short"), &edits);
        }
        ran.add(("any", "short"), &[] as &[(&str, u8)]);
        ran.add(("any", "many"), &[("station.0.count", 1)]);
        ran.add(("any", "many"), &[("station.0.count", 5)]);
        for size in ["1 kB", "2 kB"].map(text) {
            ran.add(("any", "web"), &[("traffic.1.size", &size), ("traffic.2.size", &size), ("traffic.1.at", &size)]);
        }
        let want = "\n* `short.toml`, with `duration` `\"6 s\"`; (`station.0.count`, `limit`) (`20`, `50`), (`4`, `64`), (`4`, `100`)\
                    \n* `short.toml`\
                    \n* `many.toml`, with `station.0.count` `1`, `5`\
                    \n* `web.toml`, with (`traffic.1,2.size`, `traffic.1.at`) (`\"1 kB\"`, `\"1 kB\"`), (`\"2 kB\"`, `\"2 kB\"`)";
        assert_eq!(ran.to_string(), want);
    }
}
