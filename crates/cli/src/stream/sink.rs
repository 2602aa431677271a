//! Where `lasthop recv` puts what comes: nowhere, standard output, or a file that has its name only once it is whole.

use anyhow::{Context as _, bail};
use lasthop_agents::endpoint::Digest;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Takes one stream.
pub struct Sink {
    out: Out,
    digest: Option<Digest>,
    taken: u64,
}

enum Out {
    Nowhere,
    Stdout,
    File { part: PathBuf, file: File, path: PathBuf },
}

impl Sink {
    /// `None`: what comes is counted and forgotten; `-`: standard output; otherwise a file, which must not be there, nor its `.part`.
    pub fn open(out: Option<&Path>, digest: bool) -> anyhow::Result<Sink> {
        let out = match out {
            None => Out::Nowhere,
            Some(path) if path == Path::new("-") => Out::Stdout,
            Some(path) => {
                if fs::symlink_metadata(path).is_ok() {
                    bail!(
                        "{}: it is there already and is never overwritten: move it away, or name another file",
                        path.display()
                    );
                }
                let part = part_of(path);
                let made = File::create_new(&part);
                let file = made.with_context(|| match fs::symlink_metadata(&part) {
                    Ok(_) => format!(
                        "{}: a part of an earlier stream, or of another `lasthop recv` that is still at work: move it away",
                        part.display()
                    ),
                    Err(_) => format!("cannot make {}: name a file in a directory that you may write to", part.display()),
                })?;
                Out::File { part, file, path: path.to_owned() }
            }
        };
        Ok(Sink { out, digest: digest.then(Digest::default), taken: 0 })
    }

    /// Takes the next octets.
    pub fn take(&mut self, bytes: &[u8]) -> anyhow::Result<()> {
        if let Some(digest) = &mut self.digest {
            digest.update(bytes);
        }
        self.taken += bytes.len() as u64;
        match &mut self.out {
            Out::Nowhere => Ok(()),
            Out::Stdout => {
                let mut out = io::stdout().lock();
                // The reader may be waiting for just that.
                out.write_all(bytes).and_then(|()| out.flush()).context("cannot write to standard output")
            }
            Out::File { file, part, .. } => file.write_all(bytes).with_context(|| {
                format!("cannot write {}: make room, or name a file where there is some", part.display())
            }),
        }
    }

    /// The stream is whole: the file gets its name. Returns the digest if one was asked for.
    pub fn finish(self) -> anyhow::Result<Option<String>> {
        match self.out {
            Out::Nowhere => {}
            Out::Stdout => io::stdout().lock().flush().context("cannot write to standard output")?,
            Out::File { part, file, path } => {
                file.sync_all().with_context(|| format!("cannot write {}", part.display()))?;
                // A link fails where the name has been taken meanwhile, which a renaming would not.
                let named = fs::hard_link(&part, &path).and_then(|()| fs::remove_file(&part));
                let named = match named {
                    Err(error) if error.kind() != io::ErrorKind::AlreadyExists => fs::rename(&part, &path),
                    other => other,
                };
                named.with_context(|| {
                    format!("the stream is whole in {}, but cannot be called {}", part.display(), path.display())
                })?;
            }
        }
        Ok(self.digest.map(Digest::finish))
    }

    /// The stream has ended before its end; says what is left of it, if anything is.
    pub fn abandon(self) -> Option<String> {
        let Out::File { part, file, .. } = self.out else { return None };
        drop(file);
        if self.taken == 0 {
            // Nothing is lost by that, and the next one finds the name free.
            let _ = fs::remove_file(&part);
            return None;
        }
        Some(format!("what had come of it, {} octets, is in {}", self.taken, part.display()))
    }
}

/// The name of a file while it is not whole.
pub fn part_of(path: &Path) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".part");
    path.with_file_name(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder() -> PathBuf {
        let folder =
            std::env::temp_dir().join(format!("lasthop-sink-{}-{:?}", std::process::id(), std::thread::current().id()));
        fs::create_dir_all(&folder).expect("a directory");
        folder
    }

    #[test]
    fn a_file_has_its_name_once_it_is_whole() {
        let folder = folder();
        let path = folder.join("file");
        let mut sink = Sink::open(Some(&path), true).expect("free names");
        sink.take(b"abc").expect("room");
        assert!(!path.exists() && Sink::open(Some(&path), false).is_err(), "another one is at work");
        let digest = sink.finish().expect("it is named").expect("asked for");
        assert_eq!(digest, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
        assert_eq!(fs::read(&path).expect("there"), b"abc");
        assert!(!part_of(&path).exists());
        let error = Sink::open(Some(&path), false).err().expect("it is there").to_string();
        assert!(error.contains("never overwritten"), "{error}");
        fs::remove_dir_all(folder).expect("ours");
    }

    #[test]
    fn a_part_stays_and_is_told_and_an_empty_one_goes() {
        let folder = folder().join("parts");
        fs::create_dir_all(&folder).expect("a directory");
        let path = folder.join("file");
        assert_eq!(Sink::open(Some(&path), false).expect("free").abandon(), None);
        let mut sink = Sink::open(Some(&path), false).expect("free again");
        sink.take(b"abc").expect("room");
        let told = sink.abandon().expect("something is left");
        assert!(told.contains("3 octets") && told.contains("file.part"), "{told}");
        assert!(!path.exists() && part_of(&path).exists());
        fs::remove_dir_all(folder).expect("ours");
    }
}
