//! What declarations say of themselves: doc comments as prose.

/// Doc comment lines as one paragraph.
pub(crate) fn prose(lines: &[&str]) -> String {
    lines.iter().map(|line| line.trim()).collect::<Vec<_>>().join(" ")
}
