//! Which scenarios a figure comes from, and what was changed in them: whoever wants to run one point alone finds it there.

use super::runner::Edit;
use std::fmt;

/// Scenarios in the order in which they were run first.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Ran(Vec<Group>);

/// Runs of one scenario in which the same keys were changed.
#[derive(Clone, Debug, PartialEq)]
struct Group {
    name: String,
    /// Every key with all that it was, each once.
    edits: Vec<(String, Vec<String>)>,
}

impl Ran {
    /// Another run.
    pub(super) fn add(&mut self, name: &str, edits: &[Edit<'_>]) {
        let same = |group: &&mut Group| {
            group.name == name && group.edits.iter().map(|(key, _)| key.as_str()).eq(edits.iter().map(|(key, _)| *key))
        };
        let group = match self.0.iter_mut().find(same) {
            Some(group) => group,
            None => {
                let edits = edits.iter().map(|(key, _)| ((*key).to_owned(), Vec::new())).collect();
                self.0.push(Group { name: name.to_owned(), edits });
                self.0.last_mut().expect("one has just been added")
            }
        };
        for ((_, values), (_, value)) in group.edits.iter_mut().zip(edits) {
            let value = value.to_string();
            if !values.contains(&value) {
                values.push(value);
            }
        }
    }

    /// True if nothing was run.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// A list in Markdown.
impl fmt::Display for Ran {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for group in &self.0 {
            write!(f, "\n* `{}.toml`", group.name)?;
            for (place, (key, values)) in alike(&group.edits).into_iter().enumerate() {
                let lead = if place == 0 { ", with" } else { ";" };
                let values: Vec<String> = values.iter().map(|value| format!("`{value}`")).collect();
                write!(f, "{lead} `{key}` {}", values.join(", "))?;
            }
        }
        Ok(())
    }
}

/// Keys that differ by their place in a list, and were changed alike, as one: with a `*` for the place.
fn alike(edits: &[(String, Vec<String>)]) -> Vec<(String, &Vec<String>)> {
    let any = |key: &str| {
        let parts = key.split('.').map(|part| if part.parse::<usize>().is_ok() { "*" } else { part });
        parts.collect::<Vec<_>>().join(".")
    };
    let mut seen: Vec<(String, &Vec<String>)> = Vec::new();
    for (key, values) in edits {
        let twins = edits.iter().filter(|(other, theirs)| any(other) == any(key) && theirs == values).count();
        let key = if twins > 1 { any(key) } else { key.clone() };
        if !seen.contains(&(key.clone(), values)) {
            seen.push((key, values));
        }
    }
    seen
}

#[cfg(test)]
mod tests {
    use super::*;
    use toml::Value;

    #[test]
    fn runs_that_differ_in_values_are_one_line_and_those_with_other_keys_another() {
        let mut ran = Ran::default();
        for count in [1, 5, 5] {
            ran.add("many", &[("station.0.count", Value::from(count)), ("duration", Value::from("6 s"))]);
        }
        ran.add("many", &[]);
        ran.add("web", &[("traffic.1.every", Value::from("1 s")), ("traffic.2.every", Value::from("1 s"))]);
        let want = "\n* `many.toml`, with `station.0.count` `1`, `5`; `duration` `\"6 s\"`\n* `many.toml`\n* `web.toml`, with `traffic.*.every` `\"1 s\"`";
        assert_eq!(ran.to_string(), want);
    }
}
