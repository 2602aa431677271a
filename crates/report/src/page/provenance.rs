//! Which scenarios a figure comes from, and what was changed in them: to run one point alone.

use super::table::csv;
use std::fmt;

/// Scenarios in the order in which they were run first.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Ran {
    groups: Vec<Group>,
}

/// Runs of one scenario in which the same keys were changed.
#[derive(Clone, Debug, PartialEq)]
struct Group {
    /// Its file under `scenarios`.
    file: String,
    seeds: usize,
    keys: Vec<String>,
    /// What they were in each run, no two of which are alike.
    runs: Vec<Vec<String>>,
}

/// Keys that were changed alike, and what they were in each run.
struct Column<'g> {
    keys: Vec<&'g str>,
    values: Vec<&'g str>,
}

/// More names of keys than this are not on the page.
const NAMED: usize = 2;
/// Longer values are not on the page.
const SHORT: usize = 20;

impl Ran {
    /// Another run, of the scenario of this name in this folder under so many seeds, with these keys changed to these values.
    pub fn add(&mut self, (folder, name): (&str, &str), seeds: usize, edits: &[(&str, impl fmt::Display)]) {
        let file = format!("{folder}/{name}.toml");
        let keys = || edits.iter().map(|(key, _)| *key);
        let same = |group: &&mut Group| {
            group.file == file && group.seeds == seeds && group.keys.iter().map(String::as_str).eq(keys())
        };
        let values: Vec<String> = edits.iter().map(|(_, value)| value.to_string()).collect();
        match self.groups.iter_mut().find(same) {
            Some(group) if group.runs.contains(&values) => {}
            Some(group) => group.runs.push(values),
            None => {
                self.groups.push(Group { file, seeds, keys: keys().map(str::to_owned).collect(), runs: vec![values] })
            }
        }
    }

    /// True if nothing was run.
    pub(super) fn is_empty(&self) -> bool {
        self.groups.is_empty()
    }

    /// Every run and what was changed in it; `None` if the scenarios are as they ship.
    pub(super) fn csv(&self) -> Option<String> {
        let head = ["scenario", "seeds", "variant", "key", "value"].map(str::to_owned).to_vec();
        let mut rows = vec![head];
        let mut variant = 0;
        for group in &self.groups {
            for values in &group.runs {
                variant += 1;
                for (key, value) in group.keys.iter().zip(values) {
                    let cells = [&group.file, &group.seeds.to_string(), &variant.to_string(), key, value];
                    rows.push(cells.map(Clone::clone).to_vec());
                }
            }
        }
        (rows.len() > 1).then(|| csv(&rows))
    }

    /// The scenarios' files, each with its groups.
    fn files(&self) -> Vec<(&str, Vec<&Group>)> {
        let mut files: Vec<(&str, Vec<&Group>)> = Vec::new();
        for group in &self.groups {
            match files.iter_mut().find(|(file, _)| *file == group.file) {
                Some((_, groups)) => groups.push(group),
                None => files.push((&group.file, vec![group])),
            }
        }
        files
    }
}

/// The scenarios in short, in Markdown: how many variants of which keys, and how many seeds.
impl fmt::Display for Ran {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts: Vec<String> = self.files().into_iter().map(|(file, groups)| described(file, &groups)).collect();
        write!(f, "{}", parts.join("; "))
    }
}

/// A scenario's runs in short.
fn described(file: &str, groups: &[&Group]) -> String {
    let variants: usize = groups.iter().map(|group| group.runs.len()).sum();
    let columns: Vec<Column<'_>> = groups.iter().flat_map(|group| group.columns()).collect();
    let mut labels: Vec<String> = Vec::new();
    for column in &columns {
        let value = column.values[0];
        let label = match variants {
            1 if value.len() <= SHORT => format!("{} {}", column.label(), code(value)),
            _ => column.label(),
        };
        // How many seeds there are is said anyway.
        if !labels.contains(&label) && column.keys != ["seeds"] {
            labels.push(label);
        }
    }
    let more = labels.len().saturating_sub(NAMED);
    labels.truncate(NAMED);
    let others = if more > 0 { format!(" and {more} more") } else { String::new() };
    let keys = labels.join(", ") + &others;
    let changed = match (variants, labels.is_empty()) {
        (_, true) => String::new(),
        (1, _) => format!(", {keys}"),
        _ => format!(", {variants} variants of {keys}"),
    };
    let mut seeds: Vec<usize> = groups.iter().map(|group| group.seeds).collect();
    seeds.dedup();
    let counts: Vec<String> = seeds.iter().map(usize::to_string).collect();
    let noun = if seeds == [1] { "seed" } else { "seeds" };
    format!("{}{changed}, {} {noun}", code(&format!("scenarios/{file}")), counts.join(" or "))
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
    fn the_page_counts_variants_and_the_file_has_each() {
        let mut ran = Ran::default();
        let text = |value: &str| format!("\"{value}\"");
        for (count, limit) in [(20, 50), (4, 64), (4, 64), (4, 100)] {
            let edits = [("station.0.count", format!("{count}")), ("limit", format!("{limit}"))];
            ran.add(("any", "short"), 3, &edits);
        }
        ran.add(("any", "short"), 3, &[] as &[(&str, u8)]);
        ran.add(("any", "many"), 5, &[("station.0.count", 1)]);
        for size in ["1 kB", "2 kB"].map(text) {
            ran.add(
                ("any", "web"),
                1,
                &[("traffic.1.size", &size), ("traffic.2.size", &size), ("traffic.1.at", &size)],
            );
        }
        ran.add(("any", "plain"), 1, &[] as &[(&str, u8)]);
        let want = "`scenarios/any/short.toml`, 4 variants of `station.0.count`, `limit`, 3 seeds; \
                    `scenarios/any/many.toml`, `station.0.count` `1`, 5 seeds; \
                    `scenarios/any/web.toml`, 2 variants of `traffic.1,2.size`, `traffic.1.at`, 1 seed; \
                    `scenarios/any/plain.toml`, 1 seed";
        assert_eq!(ran.to_string(), want);
        let csv = ran.csv().expect("keys were changed");
        assert!(csv.starts_with("scenario,seeds,variant,key,value\nany/short.toml,3,1,station.0.count,20\n"), "{csv}");
        assert!(csv.contains("any/web.toml,1,7,traffic.1.at,\"\"\"2 kB\"\"\"\n"), "{csv}");
    }

    #[test]
    fn a_scenario_as_it_ships_needs_no_file() {
        let mut ran = Ran::default();
        ran.add(("any", "plain"), 3, &[] as &[(&str, u8)]);
        assert_eq!(ran.csv(), None);
    }
}
