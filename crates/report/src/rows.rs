//! A Parquet file that grows row by row, for what lasts as long as somebody wants.
//!
//! Rows go to a temporary file beside the one that was named (`.NAME.*.part`), which takes its place when it is finished: at any
//! moment the named file is either complete or what it was before. Every column may be null.

use crate::columns::plain;
use crate::files::{self, ReportError};
use parquet::basic::Compression;
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;
use std::borrow::Cow;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tempfile::NamedTempFile;

/// What a column holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ColumnKind {
    /// Whole numbers that are not negative.
    Number,
    /// True or false.
    Flag,
    /// Text.
    Text,
}

/// The value of one column in one row.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum RowValue<'a> {
    /// Not known.
    Null,
    /// Of a [`ColumnKind::Number`].
    Number(u64),
    /// Of a [`ColumnKind::Flag`].
    Flag(bool),
    /// Of a [`ColumnKind::Text`].
    Text(Cow<'a, str>),
}

/// A file of rows that is being written.
pub struct RowFile {
    path: PathBuf,
    part: NamedTempFile,
    writer: SerializedFileWriter<File>,
    columns: Vec<Values>,
    rows: usize,
}

/// The values of a column that are not written yet, without those that are null; and a 1 for each that is known.
struct Values {
    known: Vec<i16>,
    values: Typed,
}

enum Typed {
    Number(Vec<i64>),
    Flag(Vec<bool>),
    Text(Vec<ByteArray>),
}

/// Rows of a row group: what is lost of the file's order, and held in memory, at most.
const GROUP: usize = 1 << 15;

impl RowFile {
    /// Begins a file of these columns, each with a name of letters, digits and underscores.
    ///
    /// # Errors
    /// [`ReportError::Write`].
    pub fn create(path: &Path, columns: &[(&str, ColumnKind)]) -> Result<RowFile, ReportError> {
        let attempt = || {
            let part = files::part_of(path)?;
            let line = |(name, kind): &(&str, ColumnKind)| match kind {
                ColumnKind::Number => format!("OPTIONAL INT64 {name} (INTEGER(64,false));"),
                ColumnKind::Flag => format!("OPTIONAL BOOLEAN {name};"),
                ColumnKind::Text => format!("OPTIONAL BYTE_ARRAY {name} (STRING);"),
            };
            let lines: Vec<String> = columns.iter().map(line).collect();
            let schema = parse_message_type(&format!("message rows {{ {} }}", lines.concat())).map_err(plain)?;
            let properties = WriterProperties::builder().set_compression(Compression::SNAPPY).build();
            let to = part.as_file().try_clone()?;
            let writer = SerializedFileWriter::new(to, Arc::new(schema), Arc::new(properties)).map_err(plain)?;
            Ok((part, writer))
        };
        let (part, writer) = attempt().map_err(|source| ReportError::Write { path: path.to_owned(), source })?;
        let columns = columns.iter().map(|(_, kind)| Values::new(*kind)).collect();
        Ok(RowFile { path: path.to_owned(), part, writer, columns, rows: 0 })
    }

    /// Appends a row, which has a value for each column, of its kind.
    ///
    /// # Errors
    /// [`ReportError::Write`].
    pub fn row<'a>(&mut self, values: impl IntoIterator<Item = RowValue<'a>>) -> Result<(), ReportError> {
        let mut columns = self.columns.iter_mut();
        for value in values {
            columns.next().expect("as many values as columns").push(value);
        }
        assert!(columns.next().is_none(), "as many values as columns");
        self.rows += 1;
        if self.rows == GROUP { self.write_group().map_err(|error| self.failed(error)) } else { Ok(()) }
    }

    /// Writes everything out and gives the file its name.
    ///
    /// # Errors
    /// [`ReportError::Write`].
    pub fn finish(mut self) -> Result<(), ReportError> {
        if self.rows > 0 {
            self.write_group().map_err(|error| self.failed(error))?;
        }
        let RowFile { path, part, writer, .. } = self;
        let close = || {
            writer.close().map_err(plain)?;
            part.as_file().sync_all()?;
            part.persist(&path).map_err(|failed| failed.error)?;
            Ok(())
        };
        close().map_err(|source| ReportError::Write { path: path.clone(), source })
    }

    fn write_group(&mut self) -> Result<(), ParquetError> {
        self.rows = 0;
        let mut group = self.writer.next_row_group()?;
        for Values { known, values } in &mut self.columns {
            match values {
                Typed::Number(values) => write::<Int64Type>(&mut group, known, values)?,
                Typed::Flag(values) => write::<BoolType>(&mut group, known, values)?,
                Typed::Text(values) => write::<ByteArrayType>(&mut group, known, values)?,
            }
        }
        group.close().map(drop)
    }

    fn failed(&self, error: ParquetError) -> ReportError {
        ReportError::Write { path: self.path.clone(), source: plain(error) }
    }
}

impl Values {
    fn new(kind: ColumnKind) -> Values {
        let values = match kind {
            ColumnKind::Number => Typed::Number(Vec::new()),
            ColumnKind::Flag => Typed::Flag(Vec::new()),
            ColumnKind::Text => Typed::Text(Vec::new()),
        };
        Values { known: Vec::new(), values }
    }

    fn push(&mut self, value: RowValue<'_>) {
        self.known.push(i16::from(value != RowValue::Null));
        match (&mut self.values, value) {
            (_, RowValue::Null) => {}
            // Parquet stores unsigned numbers in the signed type of the same width.
            (Typed::Number(values), RowValue::Number(number)) => values.push(number.cast_signed()),
            (Typed::Flag(values), RowValue::Flag(flag)) => values.push(flag),
            (Typed::Text(values), RowValue::Text(text)) => values.push(ByteArray::from(text.as_bytes().to_vec())),
            (_, value) => panic!("{value:?} is not of its column's kind"),
        }
    }
}

fn write<T: DataType>(
    group: &mut SerializedRowGroupWriter<'_, File>,
    known: &mut Vec<i16>,
    values: &mut Vec<T::T>,
) -> Result<(), ParquetError> {
    let mut column = group.next_column()?.expect("one call a column of the schema");
    column.typed::<T>().write_batch(values, Some(known), None)?;
    known.clear();
    values.clear();
    column.close()
}

#[cfg(test)]
mod tests {
    use super::*;
    use parquet::file::reader::FileReader;
    use parquet::file::serialized_reader::SerializedFileReader;
    use parquet::record::Field;

    const COLUMNS: [(&str, ColumnKind); 3] =
        [("cookie", ColumnKind::Number), ("app_limited", ColumnKind::Flag), ("limit", ColumnKind::Text)];

    fn row(number: u64) -> [RowValue<'static>; 3] {
        let text = if number == 1 { RowValue::Null } else { RowValue::Text("network".into()) };
        [RowValue::Number(number), RowValue::Flag(number.is_multiple_of(2)), text]
    }

    #[test]
    fn rows_are_read_as_they_were_written() {
        let folder = tempfile::tempdir().expect("a directory");
        let path = folder.path().join("x.parquet");
        let mut file = RowFile::create(&path, &COLUMNS).expect("writable");
        let count = GROUP as u64 + 2;
        for number in [u64::MAX, 1].into_iter().chain(2..count) {
            file.row(row(number)).expect("room on the disk");
        }
        assert!(!path.exists(), "only when it is finished");
        file.finish().expect("room on the disk");
        let reader = SerializedFileReader::new(File::open(&path).expect("there")).expect("Parquet");
        assert_eq!((reader.num_row_groups(), reader.metadata().file_metadata().num_rows()), (2, count as i64));
        let rows: Vec<_> = reader.get_row_iter(None).expect("rows").map(|row| row.expect("a row")).collect();
        let fields = |row: usize| rows[row].get_column_iter().map(|(_, field)| field.clone()).collect::<Vec<_>>();
        assert_eq!(fields(0), [Field::ULong(u64::MAX), Field::Bool(false), Field::Str("network".into())]);
        assert_eq!(fields(1), [Field::ULong(1), Field::Bool(false), Field::Null]);
        assert_eq!(fields(rows.len() - 1)[0], Field::ULong(count - 1));
    }

    #[test]
    fn a_file_that_is_not_finished_leaves_what_was_there() {
        let folder = tempfile::tempdir().expect("a directory");
        let path = folder.path().join("x.parquet");
        std::fs::write(&path, "old").expect("writes");
        let mut file = RowFile::create(&path, &COLUMNS).expect("writable");
        file.row(row(1)).expect("room on the disk");
        drop(file);
        assert_eq!(std::fs::read(&path).expect("there"), b"old");
        assert_eq!(std::fs::read_dir(folder.path()).expect("readable").count(), 1);
        let error = RowFile::create(Path::new("/proc/nowhere/x.parquet"), &COLUMNS).err().expect("no such directory");
        assert!(error.to_string().starts_with("cannot write /proc/nowhere/x.parquet: "), "{error}");
    }
}
