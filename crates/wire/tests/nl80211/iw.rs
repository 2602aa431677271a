//! What `iw` shows, taken apart.

use std::collections::BTreeMap;

/// One station of `iw dev station dump -v`, or one channel of `iw dev survey dump`.
#[derive(Debug, Default)]
pub struct Shown {
    /// The rest of the line with which it begins.
    pub title: String,
    /// Lines of the form `name: value`.
    pub fields: BTreeMap<String, String>,
    /// Its queues, one a TID: columns by heading.
    pub queues: Vec<BTreeMap<String, u64>>,
}

impl Shown {
    /// The number with which a field begins; none if there is no such field.
    pub fn known<T: std::str::FromStr>(&self, name: &str) -> Option<T> {
        let text = self.fields.get(name)?;
        let digits = text.split(|c: char| c.is_whitespace() || c == 's').next().unwrap_or_default();
        Some(digits.parse().unwrap_or_else(|_| panic!("{name}: {text}")))
    }

    /// The sum of one column of the queues.
    pub fn sum(&self, heading: &str) -> u64 {
        assert!(!self.queues.is_empty(), "iw shows no queues: {self:?}");
        self.queues.iter().map(|queue| queue[heading]).sum()
    }
}

/// What `iw` shows in blocks that each begin with a line of these words.
pub fn shown(text: &str, begin: &str) -> Vec<Shown> {
    let mut all: Vec<Shown> = Vec::new();
    let mut headings: Vec<&str> = Vec::new();
    for line in text.lines() {
        if let Some(title) = line.strip_prefix(begin) {
            all.push(Shown { title: title.trim().to_owned(), ..Shown::default() });
            headings.clear();
            continue;
        }
        let Some(one) = all.last_mut() else { continue };
        let words: Vec<&str> = line.split_whitespace().collect();
        let numbers: Option<Vec<u64>> = words.iter().map(|word| word.parse().ok()).collect();
        match (numbers, line.trim().split_once(':')) {
            _ if words.first() == Some(&"TID") => headings = words,
            // The table of MSDUs has headings of two words, and is left out.
            (Some(numbers), _) if numbers.len() == headings.len() => {
                one.queues.push(headings.iter().map(|heading| (*heading).to_owned()).zip(numbers).collect());
            }
            (_, Some((name, value))) => {
                headings.clear();
                one.fields.insert(name.to_owned(), value.trim().to_owned());
            }
            _ => {}
        }
    }
    all
}
