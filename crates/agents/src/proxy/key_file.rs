//! The file of keys while the proxy runs: it is read again when it has changed.

use crate::tunnel::keys::{self, Key, KeyError};
use lasthop_signals::Node;
use lasthop_units::{Span, Time};
use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

/// A file of keys, and which state of it was read last.
pub(crate) struct KeyFile {
    path: PathBuf,
    read: Option<Stamp>,
    looked: Time,
}

/// What changes when a file is written or replaced: device and inode, size, time of the last change to the nanosecond.
type Stamp = (u64, u64, u64, i64, i64);

/// How often the file is looked at.
const EVERY: Span = Span::from_secs(1);

impl KeyFile {
    /// Reads the keys for the first time.
    ///
    /// # Errors
    /// [`KeyError`].
    pub(crate) fn open(path: PathBuf) -> Result<(KeyFile, BTreeMap<Node, Key>), KeyError> {
        let mut file = KeyFile { path, read: None, looked: Time::ZERO };
        // Before it is read: what changes meanwhile is seen at the next look.
        file.read = file.stamp();
        let keys = keys::proxy_keys(&file.path)?;
        Ok((file, keys))
    }

    /// The keys, if the file has changed since it was read; what is wrong with it is told once for every change.
    pub(crate) fn look(&mut self, now: Time) -> Option<Result<BTreeMap<Node, Key>, KeyError>> {
        if now.since(self.looked) < EVERY {
            return None;
        }
        self.looked = now;
        let stamp = self.stamp();
        if stamp == self.read {
            return None;
        }
        self.read = stamp;
        Some(keys::proxy_keys(&self.path))
    }

    fn stamp(&self) -> Option<Stamp> {
        let of = std::fs::metadata(&self.path).ok()?;
        Some((of.dev(), of.ino(), of.size(), of.ctime(), of.ctime_nsec()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_changed_key_file_is_reread_and_errors_are_logged_once() {
        let dir = tempfile::tempdir().expect("a directory");
        let (path, out) = (dir.path().join("proxy"), |name: &str| dir.path().join(name));
        keys::pair(&path, Node(1), &out("1"), false).expect("paired");
        let (mut file, first) = KeyFile::open(path.clone()).expect("keys");
        let at = |s: u64| Time::ZERO + Span::from_secs(s);
        assert!(file.look(at(10)).is_none(), "nothing has changed");
        keys::pair(&path, Node(1), &out("new"), true).expect("replaced");
        assert!(file.look(at(10)).is_none(), "not so often");
        let second = file.look(at(11)).expect("it has changed").expect("keys");
        assert_ne!(first[&Node(1)], second[&Node(1)]);
        std::fs::write(&path, "nonsense").expect("ours");
        assert!(file.look(at(12)).expect("it has changed").is_err());
        assert!(file.look(at(13)).is_none(), "it has been told");
        std::fs::remove_file(&path).expect("ours");
        assert!(file.look(at(14)).expect("it has gone").is_err());
        keys::pair(&path, Node(2), &out("2"), false).expect("paired");
        assert!(file.look(at(15)).expect("it is back").is_ok());
    }
}
