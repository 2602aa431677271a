//! Lines of octets that come in pieces.

use super::{LONGEST_ROW, Why};

/// Takes octets apart into lines. Never holds more than one line, and none that is longer than a row can be.
#[derive(Clone, Debug, Default)]
pub(super) struct Lines {
    /// The beginning of a line that has not come to its end.
    begun: Vec<u8>,
    /// The rest of the line is passed over.
    skip: bool,
    count: u64,
}

impl Lines {
    /// Gives every line that is whole with these octets, with its number, counted from 1, and without its end.
    pub(super) fn push(&mut self, bytes: &[u8], each: &mut dyn FnMut(u64, Result<&str, Why>)) {
        let mut rest = bytes;
        while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
            let (line, behind) = (&rest[..end], &rest[end + 1..]);
            rest = behind;
            self.extend(line);
            self.end(each);
        }
        self.extend(rest);
    }

    /// Gives what stands behind the last line feed, if anything does.
    pub(super) fn finish(&mut self, each: &mut dyn FnMut(u64, Result<&str, Why>)) {
        if self.skip || !self.begun.is_empty() {
            self.end(each);
        }
    }

    fn extend(&mut self, part: &[u8]) {
        if self.begun.len() + part.len() > LONGEST_ROW {
            self.skip = true;
            self.begun.clear();
        }
        if !self.skip {
            self.begun.extend_from_slice(part);
        }
    }

    fn end(&mut self, each: &mut dyn FnMut(u64, Result<&str, Why>)) {
        self.count += 1;
        if std::mem::take(&mut self.skip) {
            each(self.count, Err(Why::TooLong));
        } else {
            // What is no text has no numbers either: the column that it stands in is refused.
            each(self.count, Ok(String::from_utf8_lossy(&self.begun).trim_end_matches('\r')));
        }
        self.begun.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(parts: &[&[u8]]) -> Vec<Result<String, Why>> {
        let (mut lines, mut got) = (Lines::default(), Vec::new());
        let mut each = |number: u64, line: Result<&str, Why>| {
            got.push(line.map(|line| format!("{number}:{line}")));
        };
        parts.iter().for_each(|part| lines.push(part, &mut each));
        lines.finish(&mut each);
        got
    }

    #[test]
    fn lines_are_the_same_however_octets_come() {
        let text = b"one\r\n\ntwo\nlast";
        let whole = lines(&[text]);
        assert_eq!(whole, ["1:one", "2:", "3:two", "4:last"].map(|line| Ok(line.to_owned())));
        for at in 0..text.len() {
            assert_eq!(lines(&[&text[..at], &text[at..]]), whole, "cut at {at}");
        }
    }

    #[test]
    fn a_line_without_end_takes_no_memory() {
        let mut endless = Lines::default();
        for _ in 0..100 {
            endless.push(&[b'x'; 1000], &mut |_, _| panic!("no line is whole"));
            assert!(endless.begun.len() <= LONGEST_ROW);
        }
        let mut got = Vec::new();
        endless.push(b"\nnext\n", &mut |number, line| got.push((number, line.map(str::to_owned))));
        assert_eq!(got, [(1, Err(Why::TooLong)), (2, Ok("next".to_owned()))]);
    }
}
