//! What an operator may choose.

use lasthop_units::Span;
use lasthop_wire::olsr::{Validity, Willingness};

/// Intervals and holding times of a node. Nodes with different ones understand each other: messages say how long they are valid.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Params {
    /// From one HELLO to the next, at most: up to [`Params::jitter`] less.
    pub hello_interval: Span,
    /// From one TC to the next, at most, likewise.
    pub tc_interval: Span,
    /// How long a neighbour is one after its last HELLO, as told to the neighbours.
    pub neighbour_hold: Span,
    /// How long what a TC tells is valid.
    pub topology_hold: Span,
    /// How long a message is remembered, so as not to be forwarded again.
    pub duplicate_hold: Span,
    /// Emissions come earlier, and forwarded messages later, by a random span up to this one.
    pub jitter: Span,
    /// Whether the node would forward for others.
    pub willingness: Willingness,
}

/// A value that cannot be.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{key} = {got} must be {bound}")]
pub struct ParamsError {
    /// Which one.
    pub key: &'static str,
    /// What it is.
    pub got: String,
    /// What it may be.
    pub bound: &'static str,
}

impl Default for Params {
    /// Those of RFC 3626, section 18.
    fn default() -> Params {
        Params::with_interval(Span::from_secs(2))
    }
}

impl Params {
    /// HELLOs at this interval, and everything else in the RFC's proportions to it: TCs at 2.5 of it, holding times of three
    /// intervals, duplicates for 15, jitter up to a quarter.
    pub fn with_interval(hello_interval: Span) -> Params {
        let tc_interval = hello_interval * 5 / 2;
        Params {
            hello_interval,
            tc_interval,
            neighbour_hold: hello_interval * 3,
            topology_hold: tc_interval * 3,
            duplicate_hold: hello_interval * 15,
            jitter: hello_interval / 4,
            willingness: Willingness::DEFAULT,
        }
    }

    /// Checks that a node can work with them.
    ///
    /// # Errors
    /// [`ParamsError`] names the first that cannot be.
    pub fn check(&self) -> Result<(), ParamsError> {
        let refuse = |key, got: String, bound| Err(ParamsError { key, got, bound });
        if !(Span::from_millis(50)..=Span::from_secs(60)).contains(&self.hello_interval) {
            return refuse("hello_interval", self.hello_interval.to_string(), "from 50 ms to 60 s");
        }
        if !(self.hello_interval..=Span::from_secs(300)).contains(&self.tc_interval) {
            return refuse("tc_interval", self.tc_interval.to_string(), "from hello_interval to 300 s");
        }
        if self.jitter > self.hello_interval / 2 {
            return refuse("jitter", self.jitter.to_string(), "at most half of hello_interval");
        }
        let longest = Validity::MAX.span();
        if !(self.hello_interval..=longest).contains(&self.neighbour_hold) {
            return refuse("neighbour_hold", self.neighbour_hold.to_string(), "from hello_interval to 3968 s");
        }
        if !(self.tc_interval..=longest).contains(&self.topology_hold) {
            return refuse("topology_hold", self.topology_hold.to_string(), "from tc_interval to 3968 s");
        }
        if self.duplicate_hold < self.jitter {
            return refuse("duplicate_hold", self.duplicate_hold.to_string(), "no less than jitter");
        }
        if self.willingness > Willingness::ALWAYS {
            return refuse("willingness", self.willingness.0.to_string(), "from 0 to 7");
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_are_the_rfcs() {
        let Params { tc_interval, neighbour_hold, topology_hold, duplicate_hold, jitter, .. } = Params::default();
        let s = Span::from_secs;
        assert_eq!((tc_interval, neighbour_hold, topology_hold, duplicate_hold), (s(5), s(6), s(15), s(30)));
        assert_eq!(jitter, Span::from_millis(500));
        assert_eq!(Params::default().check(), Ok(()));
    }

    #[test]
    fn what_cannot_be_is_named_with_its_bound() {
        let good = Params::default();
        for (params, key) in [
            (Params { hello_interval: Span::from_millis(10), ..good }, "hello_interval"),
            (Params { tc_interval: Span::from_secs(1), ..good }, "tc_interval"),
            (Params { jitter: Span::from_secs(2), ..good }, "jitter"),
            (Params { neighbour_hold: Span::from_secs(1), ..good }, "neighbour_hold"),
            (Params { topology_hold: Span::from_secs(4000), ..good }, "topology_hold"),
            (Params { duplicate_hold: Span::ZERO, ..good }, "duplicate_hold"),
            (Params { willingness: Willingness(8), ..good }, "willingness"),
        ] {
            assert_eq!(params.check().expect_err(key).key, key);
        }
    }
}
