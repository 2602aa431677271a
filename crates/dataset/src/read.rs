//! Reads data sets, and says of a file that is none why not.

use crate::groups::{parquet_schema, read_group};
use crate::journal::{self, MAGIC};
use crate::meta::{self, KEY, Meta};
use crate::row::Row;
use crate::{DataSetError, schema};
use bytes::Bytes;
use parquet::errors::ParquetError;
use parquet::file::reader::{ChunkReader, FileReader};
use parquet::file::serialized_reader::SerializedFileReader;
use serde::Deserialize;
use std::fs::File;
use std::io::{self, Read};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

/// A file with metadata and columns that are as they must be. Its rows are checked as they are read.
#[derive(Debug)]
pub struct DataSet {
    path: PathBuf,
    meta: Meta,
    rows: u64,
    bytes: u64,
    content: Content,
}

#[derive(Debug)]
enum Content {
    /// A Parquet file.
    File,
    /// Parquet files in memory: of a recording that did not end, or of a test.
    Stretches {
        parts: Vec<Bytes>,
        /// Octets behind them that are of one that is not whole.
        cut: usize,
    },
}

impl DataSet {
    /// Opens a data set, or what is left of a recording that did not end.
    ///
    /// # Errors
    /// See [`DataSetError`].
    pub fn open(path: &Path) -> Result<DataSet, DataSetError> {
        let failed = |source: io::Error| DataSetError::Open { path: path.to_owned(), source };
        let mut file = File::open(path).map_err(failed)?;
        let len = file.metadata().map_err(failed)?.len();
        let mut magic = Vec::new();
        file.by_ref().take(MAGIC.len() as u64).read_to_end(&mut magic).map_err(failed)?;
        if magic == MAGIC {
            file.read_to_end(&mut magic).map_err(failed)?;
            return DataSet::parse(path, Bytes::from(magic));
        }
        let (meta, rows) = guarded(path, || check(path, file))?;
        Ok(DataSet { path: path.to_owned(), meta, rows, bytes: len, content: Content::File })
    }

    /// Reads a data set from memory; `path` is what errors call it.
    ///
    /// # Errors
    /// See [`DataSetError`].
    pub fn parse(path: &Path, octets: Bytes) -> Result<DataSet, DataSetError> {
        let (parts, cut) = match octets.starts_with(&MAGIC) {
            true => {
                let (found, cut) = journal::stretches(&octets);
                (found.into_iter().map(|range| octets.slice(range)).collect(), cut)
            }
            false => (vec![octets.clone()], 0),
        };
        let mut set: Option<(Meta, u64)> = None;
        for part in &parts {
            let (meta, rows) = guarded(path, || check(path, part.clone()))?;
            let before = set.replace((meta, rows));
            if let (Some((before, so_far)), Some((meta, rows))) = (before, &mut set) {
                if before.lasting(0) != meta.lasting(0) {
                    let why = "they change within the file".to_owned();
                    return Err(DataSetError::Meta { path: path.to_owned(), why });
                }
                *rows = rows.saturating_add(so_far);
            }
        }
        let bytes = octets.len() as u64;
        // Not even one stretch was written out.
        let (meta, rows) = set.unwrap_or((Meta::new(Vec::new()), 0));
        Ok(DataSet { path: path.to_owned(), meta, rows, bytes, content: Content::Stretches { parts, cut } })
    }

    /// Opens what a writer wrote, which knows by now more of it than it did then.
    pub(crate) fn open_as(path: &Path, meta: Meta) -> Result<DataSet, DataSetError> {
        DataSet::open(path).map(|set| DataSet { meta, ..set })
    }

    /// What is said of it as a whole.
    pub fn meta(&self) -> &Meta {
        &self.meta
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Its rows, as it says.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Its octets.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Octets at its end that cannot be read: a stretch that a killed process did not finish.
    pub fn cut(&self) -> usize {
        match &self.content {
            Content::File => 0,
            Content::Stretches { cut, .. } => *cut,
        }
    }

    /// True if it is what is left of a recording that did not end.
    pub fn unfinished(&self) -> bool {
        matches!(self.content, Content::Stretches { .. })
    }

    /// Gives every row to `each`, a row group at a time.
    ///
    /// # Errors
    /// The first that a row or `each` makes.
    pub fn each(&self, each: &mut dyn FnMut(Row) -> Result<(), DataSetError>) -> Result<(), DataSetError> {
        let mut before = 0;
        match &self.content {
            Content::File => {
                let failed = |source| DataSetError::Open { path: self.path.clone(), source };
                self.each_of(File::open(&self.path).map_err(failed)?, &mut before, each)
            }
            Content::Stretches { parts, .. } => {
                parts.iter().try_for_each(|part| self.each_of(part.clone(), &mut before, each))
            }
        }
    }

    /// All rows.
    ///
    /// # Errors
    /// As [`DataSet::each`].
    pub fn load(&self) -> Result<Vec<Row>, DataSetError> {
        let mut rows = Vec::new();
        self.each(&mut |row| {
            rows.push(row);
            Ok(())
        })?;
        Ok(rows)
    }

    fn each_of<R: ChunkReader + 'static>(
        &self,
        from: R,
        before: &mut u64,
        each: &mut dyn FnMut(Row) -> Result<(), DataSetError>,
    ) -> Result<(), DataSetError> {
        let path = self.path.as_path();
        let reader = guarded(path, || SerializedFileReader::new(from).map_err(damaged(path)))?;
        for number in 0..reader.num_row_groups() {
            let rows = guarded(path, || {
                let group = reader.get_row_group(number).map_err(damaged(path))?;
                read_group((path, *before), group.as_ref(), self.meta.recordings.len())
            })?;
            *before += rows.len() as u64;
            rows.into_iter().try_for_each(&mut *each)?;
        }
        Ok(())
    }
}

fn damaged(path: &Path) -> impl Fn(ParquetError) -> DataSetError + '_ {
    |error| DataSetError::Parquet { path: path.to_owned(), why: error.to_string() }
}

/// The Parquet reader trusts some of what a file says of itself; what that makes of damaged files is an error as any other.
fn guarded<T>(path: &Path, read: impl FnOnce() -> Result<T, DataSetError>) -> Result<T, DataSetError> {
    catch_unwind(AssertUnwindSafe(read)).unwrap_or_else(|_| {
        Err(DataSetError::Parquet { path: path.to_owned(), why: "it contradicts itself".to_owned() })
    })
}

/// Reads the metadata, and checks them and the columns. Returns them, and the number of rows.
fn check<R: ChunkReader + 'static>(path: &Path, from: R) -> Result<(Meta, u64), DataSetError> {
    let reader = SerializedFileReader::new(from).map_err(damaged(path))?;
    let file = reader.metadata().file_metadata();
    let meta = read_meta(path, file.key_value_metadata().into_iter().flatten())?;
    let (declared, held) = (parquet_schema().map_err(damaged(path))?, file.schema());
    let show = |column: Option<&parquet::schema::types::TypePtr>| match column {
        Some(column) if column.is_primitive() => {
            let need = if column.is_optional() { "optional" } else { "required" };
            format!("`{}` ({need} {:?})", column.name(), column.get_physical_type())
        }
        Some(column) => format!("`{}` (a group)", column.name()),
        None => "none".to_owned(),
    };
    let (wanted, got) = (declared.get_fields(), if held.is_group() { held.get_fields() } else { &[] });
    for at in 0..wanted.len().max(got.len()) {
        let (wanted, got) = (show(wanted.get(at)), show(got.get(at)));
        if wanted != got {
            return Err(DataSetError::Column { path: path.to_owned(), at: at + 1, got, wanted });
        }
    }
    let rows = u64::try_from(file.num_rows())
        .map_err(|_| damaged(path)(ParquetError::General(format!("{} rows", file.num_rows()))))?;
    Ok((meta, rows))
}

/// What can be read of any schema.
#[derive(Deserialize)]
struct Version {
    schema: u32,
}

fn read_meta<'m>(
    path: &Path,
    mut values: impl Iterator<Item = &'m parquet::file::metadata::KeyValue>,
) -> Result<Meta, DataSetError> {
    let path = path.to_owned();
    let Some(json) = values.find(|value| value.key == KEY).and_then(|value| value.value.as_ref()) else {
        return Err(DataSetError::NoMeta { path });
    };
    let wrong = |error: serde_json::Error| DataSetError::Meta { path: path.clone(), why: error.to_string() };
    let Version { schema: got } = serde_json::from_str(json).map_err(wrong)?;
    if got != schema::VERSION {
        return Err(DataSetError::Version { path, got });
    }
    let meta: Meta = serde_json::from_str(json).map_err(wrong)?;
    let wanted = meta::features();
    match meta.features == wanted {
        true => Ok(meta),
        false => Err(DataSetError::Features { path, got: meta.features, wanted }),
    }
}
