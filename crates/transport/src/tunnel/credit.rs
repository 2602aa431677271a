//! How much all streams together may be ahead of their readers: what bounds the memory that the other end can take.
//! Source:     RFC 9000 sections 4.1 (MAX_DATA) and 4.5 (final size).
//! Equations:  arrived = sum over streams of the highest offset seen;   arrived <= limit;   limit = read + B
//! Symbols:    B -> `window`; read -> octets that were handed on, or given up with their stream
//! Deviations: none.     Validity: both ends count a stream that is reset to the end that its sender names.
//! Checked by: tests::*, tests/integration/credit.rs (both ends' accounts agree after any history), tests/memory.rs

/// The window of a stream before either end has said anything.
pub(super) const INITIAL_WINDOW: u64 = 64 << 10;

/// The accounts of one end.
#[derive(Clone, Debug)]
pub(super) struct Credit {
    /// How far the other end may be ahead of the readers here.
    window: u64,
    arrived: u64,
    read: u64,
    /// What the other end has been told.
    limit: u64,
    sent: u64,
    /// What it has told us.
    theirs: u64,
}

/// What may be sent before the other end has said anything.
pub(super) const INITIAL: u64 = 64 << 10;

/// The other end has sent more than it may.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Overdrawn;

impl Credit {
    pub(super) fn new(window: u64) -> Credit {
        Credit { window, arrived: 0, read: 0, limit: INITIAL, sent: 0, theirs: INITIAL }
    }

    /// The highest offset of a stream would grow by so much.
    pub(super) fn allows(&self, growth: u64) -> Result<(), Overdrawn> {
        if self.arrived.saturating_add(growth) > self.limit { Err(Overdrawn) } else { Ok(()) }
    }

    /// The highest offset of a stream has grown by so much.
    pub(super) fn on_arrived(&mut self, growth: u64) -> Result<(), Overdrawn> {
        self.allows(growth)?;
        self.arrived += growth;
        Ok(())
    }

    /// So much is held here no longer.
    pub(super) fn on_read(&mut self, count: u64) {
        self.read += count;
    }

    /// Octets that may be held here.
    pub(super) fn held(&self) -> u64 {
        self.arrived - self.read
    }

    /// The window of one stream, by what the others leave: many that nobody reads do not take everything.
    pub(super) fn share(&self, most: u64) -> u64 {
        (self.window.saturating_sub(self.held()) / 4).clamp(INITIAL_WINDOW.min(most), most)
    }

    /// True if the limit's new place is worth telling: a quarter of the window further than what was told.
    pub(super) fn is_due(&self) -> bool {
        self.read + self.window >= self.limit + self.window / 4
    }

    /// Moves the limit on; returns it.
    pub(super) fn open(&mut self) -> u64 {
        self.limit = self.limit.max(self.read + self.window);
        self.limit
    }

    /// Octets that may be sent for the first time.
    pub(super) fn room(&self) -> u64 {
        self.theirs - self.sent
    }

    pub(super) fn on_sent(&mut self, count: u64) {
        self.sent += count;
    }

    pub(super) fn on_limit(&mut self, limit: u64) {
        self.theirs = self.theirs.max(limit);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_follows_what_is_read() {
        let mut credit = Credit::new(100_000);
        assert!(credit.is_due(), "more than the first limit");
        assert_eq!(credit.open(), 100_000);
        assert_eq!(credit.on_arrived(100_000), Ok(()));
        assert_eq!(credit.on_arrived(1), Err(Overdrawn));
        credit.on_read(24_999);
        assert!(!credit.is_due());
        credit.on_read(1);
        assert!(credit.is_due());
        assert_eq!((credit.open(), credit.on_arrived(25_000), credit.held()), (125_000, Ok(()), 100_000));
    }

    #[test]
    fn a_stream_window_is_a_quarter_of_the_rest_with_a_floor() {
        let mut credit = Credit::new(4 << 20);
        credit.open();
        assert_eq!(credit.share(8 << 20), 1 << 20);
        assert_eq!(credit.share(1 << 19), 1 << 19);
        assert_eq!(credit.on_arrived(4 << 20), Ok(()));
        assert_eq!(credit.share(8 << 20), 64 << 10);
    }

    #[test]
    fn what_may_be_sent_never_shrinks() {
        let mut credit = Credit::new(1 << 20);
        assert_eq!(credit.room(), INITIAL);
        credit.on_sent(INITIAL);
        credit.on_limit(100);
        assert_eq!(credit.room(), 0);
        credit.on_limit(INITIAL + 7);
        assert_eq!(credit.room(), 7);
    }
}
