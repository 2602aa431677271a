//! Writing files whole or not at all.

use std::fs::Permissions;
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;

/// A file could not be written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReportError {
    /// The directory for the report could not be made.
    #[error("cannot make the directory {}: {source}", path.display())]
    Directory {
        /// Which.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// A file could not be written; what stood there before still does.
    #[error("cannot write {}: {source}", path.display())]
    Write {
        /// Which.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
}

/// Something that writes a file's contents.
pub(crate) type Fill<'a> = &'a mut dyn FnMut(&mut (dyn Write + Send)) -> io::Result<()>;

/// Lets `fill` write the contents of `path`. They go to a temporary file beside it, which takes its place only when
/// all of it is on the disk: at any moment `path` is either complete or what it was before. The temporary file
/// (`.NAME.*.part`) goes away if anything fails.
pub fn write_whole(
    path: &Path,
    fill: impl FnOnce(&mut (dyn Write + Send)) -> io::Result<()>,
) -> Result<(), ReportError> {
    let attempt = || {
        let mut part = part_of(path)?;
        let mut writer = BufWriter::with_capacity(1 << 16, part.as_file_mut());
        fill(&mut writer)?;
        writer.flush()?;
        drop(writer);
        // A full disk may show only now.
        part.as_file().sync_all()?;
        part.persist(path).map_err(|failed| failed.error)?;
        Ok(())
    };
    attempt().map_err(|source| ReportError::Write { path: path.to_path_buf(), source })
}

/// A temporary file beside `path`, to take its place.
pub(crate) fn part_of(path: &Path) -> io::Result<NamedTempFile> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let name = path.file_name().ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "not a file name"))?;
    tempfile::Builder::new()
        .prefix(&format!(".{}.", name.to_string_lossy()))
        .suffix(".part")
        // A report is not a secret: as readable as the umask allows, unlike temporary files in general.
        .permissions(Permissions::from_mode(0o666))
        .tempfile_in(folder)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn entries(folder: &Path) -> Vec<String> {
        let names = fs::read_dir(folder).expect("readable").map(|e| e.expect("entry").file_name());
        names.map(|name| name.to_string_lossy().into_owned()).collect()
    }

    #[test]
    fn a_failing_writer_leaves_the_old_file_and_no_other() {
        let folder = tempfile::tempdir().expect("a directory");
        let path = folder.path().join("result.json");
        write_whole(&path, |w| w.write_all(b"old")).expect("writes");
        let error = write_whole(&path, |w| {
            w.write_all(b"half")?;
            Err(io::Error::from_raw_os_error(28)) // ENOSPC
        })
        .expect_err("the writer failed");
        assert_eq!(fs::read(&path).expect("still there"), b"old");
        assert_eq!(entries(folder.path()), ["result.json"]);
        let text = error.to_string();
        assert!(text.contains("result.json") && text.contains("No space left"), "{text}");
    }

    #[test]
    fn a_panicking_writer_leaves_nothing_behind_either() {
        let folder = tempfile::tempdir().expect("a directory");
        let path = folder.path().join("result.json");
        let outcome = std::panic::catch_unwind(|| write_whole(&path, |_| panic!("on purpose")));
        assert!(outcome.is_err());
        assert!(entries(folder.path()).is_empty());
    }

    #[test]
    fn a_missing_directory_is_named() {
        let error = write_whole(Path::new("/proc/nowhere/result.json"), |_| Ok(())).expect_err("no such directory");
        assert!(error.to_string().starts_with("cannot write /proc/nowhere/result.json: "), "{error}");
    }

    #[test]
    fn the_file_is_readable_by_others_as_the_umask_allows() {
        let folder = tempfile::tempdir().expect("a directory");
        let path = folder.path().join("x");
        write_whole(&path, |w| w.write_all(b"x")).expect("writes");
        let plain = folder.path().join("y");
        fs::write(&plain, "y").expect("writes");
        let mode = |p: &Path| fs::metadata(p).expect("there").permissions().mode();
        assert_eq!(mode(&path), mode(&plain));
    }
}
