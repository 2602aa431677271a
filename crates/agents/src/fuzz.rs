//! What must hold on any bytes, a function for each fuzz target of this crate. A function panics
//! where it does not hold. `fuzz/README.md` says how they are run.

use crate::host::Filter;

/// A filter of connections, as far as the bytes are text: one that is understood can be negated
/// without a panic, the error of any other shows a place.
pub fn filter(bytes: &[u8]) {
    let text = bytes.utf8_chunks().next().map_or("", |chunk| chunk.valid());
    match text.parse::<Filter>() {
        // One that is as deep as may be has no opposite.
        Ok(_) => drop(format!("not ({text})").parse::<Filter>()),
        Err(error) => assert!(error.to_string().contains('^')),
    }
}

#[cfg(test)]
#[path = "../../../fuzz/seeds.rs"]
mod seeds;

#[cfg(test)]
mod tests {
    #[test]
    fn filter() {
        let seeds = [
            ("ports", "sport = :1 | ( dport >= :443 & src 10.1.2.3 )"),
            ("addresses", "dst [2001:db8::1]:443 and src 2001:db8::/32 or dst 192.0.2.0/24"),
            ("states", "state connected && not state syn-sent"),
            ("figures", "rtt <= 0.050001s cwnd = 100 ca != open cc = cubic sent >= 8Mbit unsent >= 1kB"),
            ("not-ascii", "cc = 狜"),
        ];
        super::seeds::run("filter", super::filter, &seeds.map(|(name, text)| (name, text.as_bytes().to_vec())));
    }
}
