//! Writes items as they become final, and leaves what there is when it is killed.

use crate::groups::Groups;
use crate::journal::{self, MAGIC};
use crate::meta::Meta;
use crate::read::DataSet;
use crate::row::Row;
use crate::{DataSetError, Recording};
use lasthop_report::{ReportError, plain};
use parquet::errors::ParquetError;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Rows that are held in memory at most.
const STRETCH: usize = 1 << 14;
/// Rows of a row group in a finished file.
const GROUP: usize = 1 << 17;

/// A data set that grows.
///
/// Rows go to `FILE.part`, a stretch at a time; [`Writer::finish`] makes `FILE` of them, whole or not at all. Of a process that is killed
/// `FILE.part` stays, with all rows up to the last [`Writer::flush`] or stretch: [`DataSet::open`] reads it.
pub struct Writer {
    path: PathBuf,
    part: PathBuf,
    file: File,
    meta: Meta,
    rows: Vec<Row>,
    written: u64,
}

/// What was written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Written {
    /// Items.
    pub rows: u64,
    /// Octets of the file.
    pub bytes: u64,
}

/// Where the rows of a data set are until it is finished.
pub fn part_of(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".part");
    PathBuf::from(name)
}

impl Writer {
    /// Begins a data set of these recordings.
    ///
    /// # Errors
    /// [`DataSetError::Unfinished`] if `FILE.part` is there, [`DataSetError::Write`] if it cannot be made.
    pub fn create(path: &Path, recordings: Vec<Recording>) -> Result<Writer, DataSetError> {
        let part = part_of(path);
        let failed = |source: io::Error| match source.kind() {
            io::ErrorKind::AlreadyExists => DataSetError::Unfinished(part.clone()),
            _ => DataSetError::Write { path: part.clone(), source },
        };
        let mut file = OpenOptions::new().write(true).create_new(true).open(&part).map_err(failed)?;
        file.write_all(&MAGIC).map_err(failed)?;
        Ok(Writer { path: path.to_owned(), part, file, meta: Meta::new(recordings), rows: Vec::new(), written: 0 })
    }

    /// How long the recordings lasted, once that is known, in microseconds: what rates of the file are reckoned by.
    pub fn set_duration(&mut self, duration_us: u64) {
        self.meta.recordings.iter_mut().for_each(|recording| recording.duration_us = duration_us);
    }

    /// Appends an item. It is safe from a kill once the stretch is full, or by [`Writer::flush`].
    ///
    /// # Errors
    /// [`DataSetError::Write`].
    pub fn push(&mut self, row: Row) -> Result<(), DataSetError> {
        self.rows.push(row);
        if self.rows.len() >= STRETCH { self.flush() } else { Ok(()) }
    }

    /// Writes out what is held in memory, onto the disk.
    ///
    /// # Errors
    /// [`DataSetError::Write`].
    pub fn flush(&mut self) -> Result<(), DataSetError> {
        if self.rows.is_empty() {
            return Ok(());
        }
        let stretch = || {
            let mut parquet = Vec::new();
            let mut groups = Groups::new(&mut parquet, &self.meta)?;
            groups.group(&self.rows)?;
            groups.finish()?;
            journal::framed(&parquet).ok_or_else(|| ParquetError::General("a stretch of 4 GiB".to_owned()))
        };
        let failed = |source| DataSetError::Write { path: self.part.clone(), source };
        let framed = stretch().map_err(plain).map_err(failed)?;
        self.file.write_all(&framed).and_then(|()| self.file.sync_data()).map_err(failed)?;
        self.written += self.rows.len() as u64;
        self.rows.clear();
        Ok(())
    }

    /// True if there are no items in it.
    pub fn is_empty(&self) -> bool {
        self.written == 0 && self.rows.is_empty()
    }

    /// Takes `FILE.part` away, and makes no file.
    ///
    /// # Errors
    /// [`DataSetError::Write`].
    pub fn discard(self) -> Result<(), DataSetError> {
        std::fs::remove_file(&self.part).map_err(|source| DataSetError::Write { path: self.part, source })
    }

    /// Makes one Parquet file of all rows, gives it its name, and takes `FILE.part` away.
    ///
    /// # Errors
    /// [`DataSetError::Write`]; `FILE.part` stays then.
    pub fn finish(mut self) -> Result<Written, DataSetError> {
        self.flush()?;
        let set = DataSet::open_as(&self.part, self.meta.clone())?;
        let bytes = write_file(&self.path, &self.meta, |row| set.each(row))?;
        std::fs::remove_file(&self.part).map_err(|source| DataSetError::Write { path: self.part.clone(), source })?;
        Ok(Written { rows: self.written, bytes })
    }
}

/// Is given rows one by one.
pub type Take<'t> = &'t mut dyn FnMut(Row) -> Result<(), DataSetError>;

/// Writes a Parquet file of the rows that `fill` gives, whole or not at all. Returns its octets.
pub fn write_file(
    path: &Path,
    meta: &Meta,
    fill: impl FnOnce(Take<'_>) -> Result<(), DataSetError>,
) -> Result<u64, DataSetError> {
    let failed = |source: io::Error| DataSetError::Write { path: path.to_owned(), source };
    let mut wrong = None;
    let done = lasthop_report::write_whole(path, |to| {
        let write = || -> Result<(), DataSetError> {
            let mut groups = Groups::new(&mut *to, meta).map_err(plain).map_err(failed)?;
            let mut rows = Vec::new();
            fill(&mut |row| {
                rows.push(row);
                if rows.len() >= GROUP {
                    groups.group(&rows).map_err(plain).map_err(failed)?;
                    rows.clear();
                }
                Ok(())
            })?;
            groups.group(&rows).map_err(plain).map_err(failed)?;
            groups.finish().map_err(plain).map_err(failed)
        };
        write().map_err(|error| {
            wrong = Some(error);
            io::Error::other("no rows")
        })
    });
    match (done, wrong) {
        (_, Some(error)) => Err(error),
        (Err(ReportError::Write { source, .. } | ReportError::Directory { source, .. }), None) => Err(failed(source)),
        (Err(other), None) => Err(failed(io::Error::other(other))),
        (Ok(()), None) => std::fs::metadata(path).map(|file| file.len()).map_err(failed),
    }
}
