//! What is kept of a recording until it ends: whole Parquet files, one behind the other, each with its length before it.
//!
//! A Parquet file has its table of contents at its end, so that one that is not finished cannot be read. Here each stretch of rows is a
//! file of its own: whatever a process that was killed has written is there, but for the stretch that it had not yet written out.

/// The first octets of a journal.
pub const MAGIC: [u8; 8] = *b"LHITEMS\x01";

/// A stretch, framed.
pub fn framed(parquet: &[u8]) -> Option<Vec<u8>> {
    let len = u32::try_from(parquet.len()).ok()?;
    Some([&len.to_le_bytes()[..], parquet].concat())
}

/// Where the stretches of a journal lie, and how many octets behind them are of one that is not whole.
pub fn stretches(journal: &[u8]) -> (Vec<std::ops::Range<usize>>, usize) {
    let (mut found, mut at) = (Vec::new(), MAGIC.len().min(journal.len()));
    while let Some((len, _)) = journal[at..].split_first_chunk::<4>() {
        let begin = at + 4;
        let end = begin.checked_add(u32::from_le_bytes(*len) as usize).filter(|end| *end <= journal.len());
        let Some(end) = end else { break };
        found.push(begin..end);
        at = end;
    }
    (found, journal.len() - at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_whole_is_found() {
        let frames = [&b"one"[..], b"", b"three"].map(|text| framed(text).expect("short"));
        let journal = [&MAGIC[..], &frames.concat()].concat();
        let of = |journal: &[u8]| {
            let (found, rest) = stretches(journal);
            (found.into_iter().map(|range| journal[range].to_vec()).collect::<Vec<_>>(), rest)
        };
        let all = [&b"one"[..], b"", b"three"].map(<[u8]>::to_vec).to_vec();
        assert_eq!(of(&journal), (all.clone(), 0));
        assert_eq!(of(&journal[..journal.len() - 1]), (all[..2].to_vec(), 8));
        assert_eq!(of(&journal[..journal.len() - 7]), (all[..2].to_vec(), 2));
        assert_eq!(of(&MAGIC), (vec![], 0));
        assert_eq!(of(b"LH"), (vec![], 0));
    }
}
