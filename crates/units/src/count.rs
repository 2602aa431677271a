use std::fmt::Display;

/// So many of `what`, a singular with a plural that ends with an s: `1 session`, `0 sessions`.
pub fn count<N: Display + PartialEq + From<u8>>(number: N, what: &str) -> String {
    let plural = if number == N::from(1) { "" } else { "s" };
    format!("{number} {what}{plural}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_alone_is_singular() {
        assert_eq!([0_u64, 1, 2].map(|n| count(n, "session")), ["0 sessions", "1 session", "2 sessions"]);
        assert_eq!(count(1_usize, "spatial stream"), "1 spatial stream");
    }
}
