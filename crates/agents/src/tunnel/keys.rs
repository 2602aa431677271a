//! Keys that a station and its proxy share, in files that nobody else may read.
//!
//! A line is `station NUMBER KEY`, the key as 64 hexadecimal digits; what follows a `#` is a comment. The proxy's file has a
//! line for every station, a station's has its own.

use crate::service::remedy;
use lasthop_signals::Node;
use std::collections::BTreeMap;
use std::fmt::{self, Write as _};
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// A shared secret. It does not show itself in logs.
#[derive(Clone, PartialEq, Eq)]
pub struct Key(pub(crate) [u8; 32]);

impl Key {
    /// A key of 32 octets.
    pub fn new(octets: [u8; 32]) -> Key {
        Key(octets)
    }

    /// A fresh key from the kernel's random source.
    ///
    /// # Errors
    /// If the kernel has none to give.
    pub fn generate() -> io::Result<Key> {
        let mut octets = [0; 32];
        File::open("/dev/urandom")?.read_exact(&mut octets)?;
        Ok(Key(octets))
    }

    fn to_hex(&self) -> String {
        self.0.iter().fold(String::new(), |mut text, octet| {
            let _ = write!(text, "{octet:02x}");
            text
        })
    }

    fn from_hex(text: &str) -> Option<Key> {
        let digits = text.as_bytes();
        if digits.len() != 64 || !digits.iter().all(u8::is_ascii_hexdigit) {
            return None;
        }
        let mut octets = [0; 32];
        for (octet, pair) in octets.iter_mut().zip(digits.chunks_exact(2)) {
            *octet = u8::from_str_radix(str::from_utf8(pair).ok()?, 16).ok()?;
        }
        Some(Key(octets))
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(…)")
    }
}

/// What can be wrong with key files.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KeyError {
    /// A file could not be read.
    #[error("key file {path}: {source}{}", remedy::of_keys(source))]
    File {
        /// Which file.
        path: PathBuf,
        /// What failed.
        source: io::Error,
    },
    /// A file could not be written.
    #[error("cannot write key file {path}: {source}{}", remedy::of_output(source))]
    Write {
        /// Which file.
        path: PathBuf,
        /// What failed.
        source: io::Error,
    },
    /// Others may read the file.
    #[error("key file {path} has mode {mode:04o}: others may use it; make it yours alone: chmod 600 {path}")]
    Mode {
        /// Which file.
        path: PathBuf,
        /// Its permissions.
        mode: u32,
    },
    /// A line that is none.
    #[error("key file {path}, line {line}: {what}; a line is `station NUMBER KEY`, the key 64 hexadecimal digits")]
    Line {
        /// Which file.
        path: PathBuf,
        /// Its line, from 1.
        line: usize,
        /// What is wrong.
        what: &'static str,
    },
    /// No line at all, or more than a station may have.
    #[error("key file {path} has {count} stations; {wanted}")]
    Count {
        /// Which file.
        path: PathBuf,
        /// Stations in it.
        count: usize,
        /// What would be right.
        wanted: &'static str,
    },
    /// The station has a key already.
    #[error(
        "station {station} has a key in {path} already; to give it another one, which shuts out the old, add --replace"
    )]
    Paired {
        /// Which station.
        station: u16,
        /// The proxy's file.
        path: PathBuf,
    },
}

/// Makes a key for a station, adds it to the proxy's file (made if it is not there) and writes it to a new file for the
/// station. Of several at once each waits for the one before it.
///
/// # Errors
/// [`KeyError`]; nothing has been changed then.
pub fn pair(proxy: &Path, station: Node, out: &Path, replace: bool) -> Result<(), KeyError> {
    let failed = |path: &Path| {
        let path = path.to_owned();
        move |source| KeyError::Write { path, source }
    };
    let _alone = alone_in(proxy).map_err(failed(proxy))?;
    let mut keys = if proxy.exists() { read(proxy)? } else { BTreeMap::new() };
    if keys.contains_key(&station) && !replace {
        return Err(KeyError::Paired { station: station.0, path: proxy.to_owned() });
    }
    let random = |source| KeyError::File { path: "/dev/urandom".into(), source };
    let key = Key::generate().map_err(random)?;
    keys.insert(station, key.clone());
    let own = BTreeMap::from([(station, key)]);
    // The station's first: it must not exist, and if it cannot be written the proxy's stays as it is.
    write_new(out, &own).map_err(failed(out))?;
    replace_file(proxy, &keys).map_err(failed(proxy)).inspect_err(|_| drop(std::fs::remove_file(out)))
}

/// The proxy's keys, by station.
///
/// # Errors
/// [`KeyError`], also if there is none.
pub fn proxy_keys(path: &Path) -> Result<BTreeMap<Node, Key>, KeyError> {
    let keys = read(path)?;
    match keys.is_empty() {
        true => Err(KeyError::Count { path: path.to_owned(), count: 0, wanted: "make one with `lasthop pair`" }),
        false => Ok(keys),
    }
}

/// A station's number and key.
///
/// # Errors
/// [`KeyError`], also if there is not exactly one.
pub fn station_key(path: &Path) -> Result<(Node, Key), KeyError> {
    let mut keys = read(path)?;
    let count = keys.len();
    match (keys.pop_first(), count) {
        (Some(one), 1) => Ok(one),
        _ => Err(KeyError::Count { path: path.to_owned(), count, wanted: "a station's own file has one" }),
    }
}

fn read(path: &Path) -> Result<BTreeMap<Node, Key>, KeyError> {
    let failed = |source| KeyError::File { path: path.to_owned(), source };
    let mut file = File::open(path).map_err(failed)?;
    // Of the file that was opened, not of what has the name by now.
    let metadata = file.metadata().map_err(failed)?;
    if metadata.is_dir() {
        return Err(failed(io::ErrorKind::IsADirectory.into()));
    }
    let mode = metadata.mode() & 0o7777;
    if mode & 0o077 != 0 {
        return Err(KeyError::Mode { path: path.to_owned(), mode });
    }
    let mut text = String::new();
    file.read_to_string(&mut text).map_err(failed)?;
    parse(&text).map_err(|(line, what)| KeyError::Line { path: path.to_owned(), line, what })
}

/// The keys of a file's text; or the line, from 1, that is wrong, and how.
pub fn parse(text: &str) -> Result<BTreeMap<Node, Key>, (usize, &'static str)> {
    let mut keys = BTreeMap::new();
    for (index, line) in text.lines().enumerate() {
        let wrong = |what| (index + 1, what);
        let mut words = line.split('#').next().unwrap_or_default().split_whitespace();
        let Some(word) = words.next() else { continue };
        let (Some(number), Some(key), None) = (words.next(), words.next(), words.next()) else {
            return Err(wrong("not three words"));
        };
        if word != "station" {
            return Err(wrong("does not begin with `station`"));
        }
        let station = Node(number.parse().map_err(|_| wrong("not a station number (0 to 65535)"))?);
        let key = Key::from_hex(key).ok_or(wrong("not a key"))?;
        if keys.insert(station, key).is_some() {
            return Err(wrong("the station's second line"));
        }
    }
    Ok(keys)
}

fn text(keys: &BTreeMap<Node, Key>) -> String {
    let lines = keys.iter().map(|(station, key)| format!("station {} {}\n", station.0, key.to_hex()));
    std::iter::once("# Keys of the tunnel between proxy and station: secret.\n".to_owned()).chain(lines).collect()
}

/// Keeps other processes that call this from changing a file until what is returned is dropped. The file itself cannot
/// be locked, since it is replaced; its directory can, and that leaves nothing behind.
fn alone_in(path: &Path) -> io::Result<File> {
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let directory = File::open(directory)?;
    directory.lock()?;
    Ok(directory)
}

fn write_new(path: &Path, keys: &BTreeMap<Node, Key>) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(text(keys).as_bytes())?;
    file.sync_all()
}

/// A crash leaves the old file or the new one, never half of it.
fn replace_file(path: &Path, keys: &BTreeMap<Node, Key>) -> io::Result<()> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.new", std::process::id()));
    let beside = path.with_file_name(name);
    write_new(&beside, keys)?;
    std::fs::set_permissions(&beside, PermissionsExt::from_mode(0o600))?;
    // It stays the file of the user that reads it. Where that may not be done, the reading agent says so.
    if let Ok(before) = std::fs::metadata(path) {
        let _ = std::os::unix::fs::chown(&beside, Some(before.uid()), Some(before.gid()));
    }
    std::fs::rename(&beside, path).inspect_err(|_| drop(std::fs::remove_file(&beside)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairing_gives_both_the_same_key_and_nobody_else_any() {
        let dir = tempfile::tempdir().expect("a directory");
        let (proxy, one, two) = (dir.path().join("proxy.keys"), dir.path().join("1.key"), dir.path().join("2.key"));
        pair(&proxy, Node(1), &one, false).expect("paired");
        pair(&proxy, Node(2), &two, false).expect("paired");
        let keys = proxy_keys(&proxy).expect("readable");
        assert_eq!(station_key(&one).expect("readable"), (Node(1), keys[&Node(1)].clone()));
        assert_eq!(station_key(&two).expect("readable"), (Node(2), keys[&Node(2)].clone()));
        assert_ne!(keys[&Node(1)], keys[&Node(2)]);
        for path in [&proxy, &one] {
            assert_eq!(path.metadata().expect("there").mode() & 0o777, 0o600);
        }
        let again = pair(&proxy, Node(1), &dir.path().join("new.key"), false);
        assert!(matches!(again, Err(KeyError::Paired { station: 1, .. })), "{again:?}");
        pair(&proxy, Node(1), &dir.path().join("new.key"), true).expect("replaced");
        assert_ne!(proxy_keys(&proxy).expect("readable")[&Node(1)], keys[&Node(1)]);
        assert!(matches!(pair(&proxy, Node(3), &one, false), Err(KeyError::Write { .. })), "the file is there already");
        assert!(!proxy_keys(&proxy).expect("readable").contains_key(&Node(3)), "nothing has changed");
        assert!(matches!(station_key(&proxy), Err(KeyError::Count { count: 2, .. })));
    }

    #[test]
    fn fifty_at_once_keep_fifty_keys() {
        let dir = tempfile::tempdir().expect("a directory");
        let proxy = dir.path().join("proxy.keys");
        std::thread::scope(|scope| {
            for station in 0..50 {
                let (proxy, out) = (&proxy, dir.path().join(format!("{station}.key")));
                scope.spawn(move || pair(proxy, Node(station), &out, false).expect("paired"));
            }
        });
        let keys = proxy_keys(&proxy).expect("readable");
        assert_eq!(keys.len(), 50);
        for (station, key) in keys {
            let own = station_key(&dir.path().join(format!("{}.key", station.0))).expect("readable");
            assert_eq!(own, (station, key));
        }
        let left = std::fs::read_dir(dir.path()).expect("a directory").count();
        assert_eq!(left, 51, "and nothing else");
    }

    #[test]
    fn a_file_that_others_may_read_is_refused() {
        let dir = tempfile::tempdir().expect("a directory");
        let (proxy, out) = (dir.path().join("proxy.keys"), dir.path().join("1.key"));
        pair(&proxy, Node(1), &out, false).expect("paired");
        std::fs::set_permissions(&out, PermissionsExt::from_mode(0o644)).expect("ours");
        let error = station_key(&out).expect_err("open to others").to_string();
        assert!(error.contains("chmod 600"), "{error}");
    }

    #[test]
    fn wrong_lines_are_named() {
        let key = "0123456789abcdef0123456789ABCDEF0123456789abcdef0123456789abcdef";
        assert_eq!(parse(&format!("# all\n\nstation 7 {key} # desk\n")).expect("right").len(), 1);
        assert_eq!(parse(&format!("station 7 {key}\nstation 7 {key}\n")), Err((2, "the station's second line")));
        assert_eq!(parse("\nstation 1 abc"), Err((2, "not a key")));
        assert_eq!(parse(&format!("station 70000 {key}")), Err((1, "not a station number (0 to 65535)")));
        assert_eq!(parse("host 1 2"), Err((1, "does not begin with `station`")));
        assert_eq!(parse("station 1"), Err((1, "not three words")));
        assert_eq!(format!("{:?}", Key::new([1; 32])), "Key(…)");
    }
}
