//! Rows to and from the row groups of a Parquet file.
//!
//! What did not change is not repeated: numbers stand in a dictionary, and the places in it in runs; moments stand as differences.

use crate::meta::{KEY, Meta};
use crate::metrics::METRICS;
use crate::row::Row;
use crate::schema::{COLUMNS, Column, Kind, Origin};
use crate::{DataSetError, Pseudonym};
use lasthop_laws::oal::features::FEATURES;
use lasthop_units::{Span, Time};
use parquet::basic::{Compression, Encoding, LogicalType, Repetition, Type as Physical};
use parquet::column::reader::get_typed_column_reader;
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, FloatType, Int32Type, Int64Type};
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::reader::RowGroupReader;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::{ColumnPath, Type, TypePtr};
use std::io::Write;
use std::path::Path;
use std::sync::Arc;

/// Rows of a group at most, in files that are read.
pub const GROUP_MAX: usize = 1 << 20;

impl Kind {
    /// The physical type.
    pub fn physical(self) -> Physical {
        match self {
            Kind::Count => Physical::INT32,
            Kind::Moment => Physical::INT64,
            Kind::Pseudonym => Physical::BYTE_ARRAY,
            Kind::Flag => Physical::BOOLEAN,
            Kind::Number => Physical::FLOAT,
        }
    }

    /// Whether rows may leave it out.
    pub fn optional(self) -> bool {
        self == Kind::Number
    }
}

/// The schema of files.
pub fn parquet_schema() -> Result<TypePtr> {
    let field = |column: &Column| {
        let repetition = if column.kind.optional() { Repetition::OPTIONAL } else { Repetition::REQUIRED };
        let mut field = Type::primitive_type_builder(&column.name, column.kind.physical()).with_repetition(repetition);
        if column.kind == Kind::Pseudonym {
            field = field.with_logical_type(Some(LogicalType::String));
        }
        field.build().map(Arc::new)
    };
    let fields = COLUMNS.iter().map(field).collect::<Result<Vec<_>>>()?;
    Type::group_type_builder("items").with_fields(fields).build().map(Arc::new)
}

/// How files are written.
fn properties(meta: &Meta) -> Result<WriterProperties> {
    let json = serde_json::to_string(meta).map_err(|error| ParquetError::External(Box::new(error)))?;
    let mut properties = WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
        .set_statistics_enabled(EnabledStatistics::None)
        .set_offset_index_disabled(true)
        .set_created_by(concat!("lasthop ", env!("CARGO_PKG_VERSION")).to_owned())
        .set_key_value_metadata(Some(vec![KeyValue::new(KEY.to_owned(), json)]));
    for column in COLUMNS.iter() {
        let path = ColumnPath::from(column.name.as_str());
        properties = match column.kind {
            Kind::Moment => properties
                .set_column_dictionary_enabled(path.clone(), false)
                .set_column_encoding(path, Encoding::DELTA_BINARY_PACKED),
            // Where the dictionary is full, the octets of like weight stand together and compress.
            Kind::Number => properties.set_column_encoding(path, Encoding::BYTE_STREAM_SPLIT),
            Kind::Count | Kind::Pseudonym | Kind::Flag => properties,
        };
    }
    Ok(properties.build())
}

/// A Parquet file that is being written.
pub struct Groups<W: Write + Send> {
    file: SerializedFileWriter<W>,
}

impl<W: Write + Send> Groups<W> {
    /// Begins a file.
    pub fn new(to: W, meta: &Meta) -> Result<Groups<W>> {
        let file = SerializedFileWriter::new(to, parquet_schema()?, Arc::new(properties(meta)?))?;
        Ok(Groups { file })
    }

    /// Writes a row group.
    pub fn group(&mut self, rows: &[Row]) -> Result<()> {
        if rows.is_empty() {
            return Ok(());
        }
        let mut group = self.file.next_row_group()?;
        for column in COLUMNS.iter() {
            write_column(&mut group, column, rows)?;
        }
        group.close().map(drop)
    }

    /// Ends the file.
    pub fn finish(self) -> Result<()> {
        self.file.close().map(drop)
    }
}

fn write_column<W: Write + Send>(
    group: &mut SerializedRowGroupWriter<'_, W>,
    column: &Column,
    rows: &[Row],
) -> Result<()> {
    match (column.kind, column.name.as_str()) {
        (Kind::Moment, _) => put::<Int64Type, W>(group, rows, None, |row| micros(row.at.as_nanos())),
        (Kind::Flag, _) => put::<BoolType, W>(group, rows, None, |row| row.acted),
        (Kind::Pseudonym, "access_point") => put::<ByteArrayType, W>(group, rows, None, |row| digits(row.access_point)),
        (Kind::Pseudonym, _) => put::<ByteArrayType, W>(group, rows, None, |row| digits(row.station)),
        (Kind::Count, "recording") => put::<Int32Type, W>(group, rows, None, |row| row.recording.cast_signed()),
        (Kind::Count, "horizon_us") => put::<Int32Type, W>(group, rows, None, |row| {
            u32::try_from(row.horizon.as_micros()).unwrap_or(u32::MAX >> 1).cast_signed()
        }),
        (Kind::Count, "copies") => put::<Int32Type, W>(group, rows, None, |row| row.copies.cast_signed()),
        (Kind::Count, _) => put::<Int32Type, W>(group, rows, None, |row| row.lost.cast_signed()),
        (Kind::Number, _) => {
            let value = |row: &Row| match column.origin {
                Origin::Feature(at) => row.features[at],
                Origin::Metric(at) => row.metrics[at],
                Origin::Key | Origin::Label => f32::NAN,
            };
            let known: Vec<i16> = rows.iter().map(|row| i16::from(!value(row).is_nan())).collect();
            let there: Vec<f32> = rows.iter().map(value).filter(|value| !value.is_nan()).collect();
            let mut to = group.next_column()?.ok_or_else(no_column)?;
            to.typed::<FloatType>().write_batch(&there, Some(&known), None)?;
            to.close()
        }
    }
}

fn put<T: DataType, W: Write + Send>(
    group: &mut SerializedRowGroupWriter<'_, W>,
    rows: &[Row],
    known: Option<&[i16]>,
    of: impl Fn(&Row) -> T::T,
) -> Result<()> {
    let values: Vec<T::T> = rows.iter().map(of).collect();
    let mut column = group.next_column()?.ok_or_else(no_column)?;
    column.typed::<T>().write_batch(&values, known, None)?;
    column.close()
}

fn no_column() -> ParquetError {
    ParquetError::General("the schema has fewer columns".to_owned())
}

fn micros(nanos: u64) -> i64 {
    i64::try_from(nanos / 1000).unwrap_or(i64::MAX)
}

fn digits(pseudonym: Pseudonym) -> ByteArray {
    ByteArray::from(pseudonym.to_string().into_bytes())
}

/// Reads a row group of a file of `recordings` recordings. `before`: rows of the groups before it, for errors.
pub fn read_group(
    (path, before): (&Path, u64),
    group: &dyn RowGroupReader,
    recordings: usize,
) -> std::result::Result<Vec<Row>, DataSetError> {
    let damaged = |error: ParquetError| DataSetError::Parquet { path: path.to_owned(), why: error.to_string() };
    let told = group.metadata().num_rows();
    let count = usize::try_from(told).ok().filter(|count| *count <= GROUP_MAX).ok_or_else(|| {
        damaged(ParquetError::General(format!("a row group of {told} rows: {GROUP_MAX} are the most")))
    })?;
    let empty = Row {
        recording: 0,
        at: Time::ZERO,
        horizon: Span::ZERO,
        access_point: Pseudonym(0),
        station: Pseudonym(0),
        features: [f32::NAN; FEATURES.len()],
        metrics: [f32::NAN; METRICS.len()],
        copies: 0,
        lost: 0,
        acted: false,
    };
    // Room is made as rows are found, not as they are announced.
    let mut rows: Vec<Row> = Vec::new();
    for (at, column) in COLUMNS.iter().enumerate() {
        let wrong = |row: usize, got: String, wanted: &'static str| DataSetError::Value {
            path: path.to_owned(),
            row: before + row as u64 + 1,
            column: &column.name,
            got,
            wanted,
        };
        let named = column.name.as_str();
        let whole = "a number from 0";
        match column.kind {
            Kind::Moment => {
                let values = take::<Int64Type>(group, at, count).map_err(damaged)?;
                grow(&mut rows, values.len(), &empty);
                for (row, value) in values.into_iter().enumerate() {
                    let nanos = u64::try_from(value).ok().and_then(|micros| micros.checked_mul(1000));
                    let nanos = nanos.filter(|nanos| *nanos < 1 << 62);
                    rows[row].at = Time::from_nanos(nanos.ok_or_else(|| wrong(row, value.to_string(), whole))?);
                }
            }
            Kind::Count => {
                let values = take::<Int32Type>(group, at, count).map_err(damaged)?;
                grow(&mut rows, values.len(), &empty);
                for (row, value) in values.into_iter().enumerate() {
                    let number = u32::try_from(value).map_err(|_| wrong(row, value.to_string(), whole))?;
                    let row_of = &mut rows[row];
                    match named {
                        "recording" if number as usize >= recordings => {
                            return Err(wrong(row, number.to_string(), "the place of a recording in the metadata"));
                        }
                        "recording" => row_of.recording = number,
                        "horizon_us" => row_of.horizon = Span::from_micros(u64::from(number)),
                        "copies" if number == 0 => return Err(wrong(row, "0".to_owned(), "at least 1")),
                        "copies" => row_of.copies = number,
                        _ if number > row_of.copies => return Err(wrong(row, number.to_string(), "at most copies")),
                        _ => row_of.lost = number,
                    }
                }
            }
            Kind::Pseudonym => {
                let values = take::<ByteArrayType>(group, at, count).map_err(damaged)?;
                grow(&mut rows, values.len(), &empty);
                for (row, value) in values.into_iter().enumerate() {
                    let pseudonym = Pseudonym::parse(value.data()).ok_or_else(|| {
                        wrong(
                            row,
                            String::from_utf8_lossy(value.data()).chars().take(40).collect(),
                            "16 hexadecimal digits",
                        )
                    })?;
                    match named {
                        "access_point" => rows[row].access_point = pseudonym,
                        _ => rows[row].station = pseudonym,
                    }
                }
            }
            Kind::Flag => {
                let values = take::<BoolType>(group, at, count).map_err(damaged)?;
                grow(&mut rows, values.len(), &empty);
                values.into_iter().enumerate().for_each(|(row, value)| rows[row].acted = value);
            }
            Kind::Number => {
                let values = take_optional(group, at, count).map_err(damaged)?;
                grow(&mut rows, values.len(), &empty);
                for (row, value) in values.into_iter().enumerate() {
                    match column.origin {
                        Origin::Feature(at) => rows[row].features[at] = value,
                        Origin::Metric(at) => rows[row].metrics[at] = value,
                        Origin::Key | Origin::Label => {}
                    }
                }
            }
        }
    }
    Ok(rows)
}

fn grow(rows: &mut Vec<Row>, count: usize, empty: &Row) {
    if rows.len() < count {
        rows.resize(count, *empty);
    }
}

/// Values that are read at a time.
const BATCH: usize = 1 << 13;

/// All values of a column that has one in every row.
fn take<T: DataType>(group: &dyn RowGroupReader, column: usize, count: usize) -> Result<Vec<T::T>> {
    let mut reader = get_typed_column_reader::<T>(group.get_column_reader(column)?);
    let mut values = Vec::new();
    while values.len() < count {
        let (records, _, _) = reader.read_records(BATCH.min(count - values.len()), None, None, &mut values)?;
        if records == 0 {
            break;
        }
    }
    whole(column, values.len(), count)?;
    Ok(values)
}

/// All values of a column that may be left out; NaN where it is.
fn take_optional(group: &dyn RowGroupReader, column: usize, count: usize) -> Result<Vec<f32>> {
    let mut reader = get_typed_column_reader::<FloatType>(group.get_column_reader(column)?);
    let (mut values, mut known) = (Vec::new(), Vec::new());
    while known.len() < count {
        let wanted = BATCH.min(count - known.len());
        let (records, _, _) = reader.read_records(wanted, Some(&mut known), None, &mut values)?;
        if records == 0 {
            break;
        }
    }
    whole(column, known.len(), count)?;
    let mut values = values.into_iter();
    Ok(known.into_iter().map(|known| if known > 0 { values.next().unwrap_or(f32::NAN) } else { f32::NAN }).collect())
}

fn whole(column: usize, got: usize, wanted: usize) -> Result<()> {
    let name = &COLUMNS[column].name;
    match got == wanted {
        true => Ok(()),
        false => Err(ParquetError::General(format!("column {name} has {got} values of {wanted}"))),
    }
}
