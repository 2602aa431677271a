//! Series and packet delays as Parquet: one long table each, a row group a run.
//!
//! `series.parquet`: law, seed, series, entity, station, unit, time_s, value. A value stands for one bin; `time_s` is
//! the middle of it, in seconds since the run began. Bins without an observation have no row. `station` is the station
//! that a flow belongs to, or the entity itself if it is one; null for the hop as a whole.
//!
//! `packets.parquet`: law, seed, station, time_s, delay_ms, for runs that kept their packets.

use crate::{Entity, Run};
use parquet::basic::Compression;
use parquet::data_type::{ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;
use std::io::{self, Write};
use std::sync::Arc;

const SERIES: &str = "message series {
    REQUIRED BYTE_ARRAY law (STRING);
    REQUIRED INT64 seed (INTEGER(64,false));
    REQUIRED BYTE_ARRAY series (STRING);
    REQUIRED BYTE_ARRAY entity (STRING);
    OPTIONAL BYTE_ARRAY station (STRING);
    REQUIRED BYTE_ARRAY unit (STRING);
    REQUIRED DOUBLE time_s;
    REQUIRED DOUBLE value;
}";

const PACKETS: &str = "message packets {
    REQUIRED BYTE_ARRAY law (STRING);
    REQUIRED INT64 seed (INTEGER(64,false));
    REQUIRED BYTE_ARRAY station (STRING);
    REQUIRED DOUBLE time_s;
    REQUIRED DOUBLE delay_ms;
}";

/// Rows that go into one row group at most: bounds the memory that packets need.
const GROUP: usize = 1 << 18;

/// Writes the series of all runs.
pub fn write_series(runs: &[Run], to: &mut (dyn Write + Send)) -> io::Result<()> {
    let mut file = open(SERIES, to)?;
    for run in runs {
        let mut rows = SeriesRows::default();
        for track in &run.record.tracks {
            let (entity, station) = match &track.entity {
                Entity::Hop => ("hop", None),
                Entity::Station(name) => (name.as_str(), Some(name.as_str())),
                Entity::Flow { flow, station } => (flow.as_str(), station.as_deref()),
            };
            let (entity, station) = (ByteArray::from(entity), station.map(ByteArray::from));
            let width = run.record.bin.as_secs_f64();
            for (bin, value) in track.values.iter().enumerate() {
                let Some(value) = *value else { continue };
                rows.series.push(ByteArray::from(track.kind.name()));
                rows.entity.push(entity.clone());
                rows.station_known.push(i16::from(station.is_some()));
                rows.station.extend(station.clone());
                rows.unit.push(ByteArray::from(track.kind.unit()));
                rows.time_s.push((bin as f64 + 0.5) * width);
                rows.value.push(value);
            }
        }
        rows.write(run, &mut file).map_err(plain)?;
    }
    file.close().map_err(plain).map(drop)
}

/// True if any run kept its packets.
pub fn has_packets(runs: &[Run]) -> bool {
    runs.iter().any(|run| run.record.packets.is_some())
}

/// Writes every packet's delay of the runs that kept them.
pub fn write_packets(runs: &[Run], to: &mut (dyn Write + Send)) -> io::Result<()> {
    let mut file = open(PACKETS, to)?;
    for run in runs {
        let names: Vec<ByteArray> = run.record.stations.iter().map(|s| ByteArray::from(s.name.as_str())).collect();
        for packets in run.record.packets.iter().flat_map(|packets| packets.chunks(GROUP)) {
            let mut write = || {
                let mut group = file.next_row_group()?;
                column::<ByteArrayType>(&mut group, &vec![ByteArray::from(run.law.as_str()); packets.len()])?;
                column::<Int64Type>(&mut group, &vec![run.seed as i64; packets.len()])?;
                let station: Vec<ByteArray> = packets.iter().map(|p| names[usize::from(p.station)].clone()).collect();
                column::<ByteArrayType>(&mut group, &station)?;
                column::<DoubleType>(&mut group, &packets.iter().map(|p| p.at.as_secs_f64()).collect::<Vec<_>>())?;
                let delay_ms: Vec<f64> = packets.iter().map(|p| p.delay.as_millis_f64()).collect();
                column::<DoubleType>(&mut group, &delay_ms)?;
                group.close().map(drop)
            };
            write().map_err(plain)?;
        }
    }
    file.close().map_err(plain).map(drop)
}

#[derive(Default)]
struct SeriesRows {
    series: Vec<ByteArray>,
    entity: Vec<ByteArray>,
    station: Vec<ByteArray>,
    station_known: Vec<i16>,
    unit: Vec<ByteArray>,
    time_s: Vec<f64>,
    value: Vec<f64>,
}

impl SeriesRows {
    fn write(self, run: &Run, file: &mut SerializedFileWriter<&mut (dyn Write + Send)>) -> Result<(), ParquetError> {
        let rows = self.value.len();
        if rows == 0 {
            return Ok(());
        }
        let mut group = file.next_row_group()?;
        column::<ByteArrayType>(&mut group, &vec![ByteArray::from(run.law.as_str()); rows])?;
        // Parquet stores unsigned numbers in the signed type of the same width.
        column::<Int64Type>(&mut group, &vec![run.seed as i64; rows])?;
        column::<ByteArrayType>(&mut group, &self.series)?;
        column::<ByteArrayType>(&mut group, &self.entity)?;
        optional_column::<ByteArrayType>(&mut group, &self.station, &self.station_known)?;
        column::<ByteArrayType>(&mut group, &self.unit)?;
        column::<DoubleType>(&mut group, &self.time_s)?;
        column::<DoubleType>(&mut group, &self.value)?;
        group.close().map(drop)
    }
}

fn open<'a>(
    schema: &str,
    to: &'a mut (dyn Write + Send),
) -> io::Result<SerializedFileWriter<&'a mut (dyn Write + Send)>> {
    let schema = parse_message_type(schema).expect("own schema is valid");
    let properties = WriterProperties::builder().set_compression(Compression::SNAPPY).build();
    SerializedFileWriter::new(to, Arc::new(schema), Arc::new(properties)).map_err(plain)
}

type Group<'a, 'b> = SerializedRowGroupWriter<'a, &'b mut (dyn Write + Send)>;

fn column<T: DataType>(group: &mut Group<'_, '_>, values: &[T::T]) -> Result<(), ParquetError> {
    write_column::<T>(group, values, None)
}

/// `known` has a 1 for each row that takes the next of `values`, a 0 for each that is null.
fn optional_column<T: DataType>(group: &mut Group<'_, '_>, values: &[T::T], known: &[i16]) -> Result<(), ParquetError> {
    write_column::<T>(group, values, Some(known))
}

fn write_column<T: DataType>(
    group: &mut Group<'_, '_>,
    values: &[T::T],
    levels: Option<&[i16]>,
) -> Result<(), ParquetError> {
    let mut column = group.next_column()?.expect("one call a column of the schema");
    column.typed::<T>().write_batch(values, levels, None)?;
    column.close()
}

/// The error that the disk gave, if that is what stopped the writer.
pub fn plain(error: ParquetError) -> io::Error {
    match error {
        ParquetError::External(inner) => match inner.downcast::<io::Error>() {
            Ok(disk) => *disk,
            Err(other) => io::Error::other(other),
        },
        other => io::Error::other(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Gauge, Recorder, SeriesKind, Window};
    use lasthop_signals::{FlowId, Node};
    use lasthop_units::{Bytes, Time};
    use parquet::file::reader::FileReader;
    use parquet::file::serialized_reader::SerializedFileReader;
    use parquet::record::RowAccessor;
    use std::fs::File;

    fn runs() -> Vec<Run> {
        let ms = |n: u64| Time::from_nanos(n * 1_000_000);
        let mut r = Recorder::new(Window { warm_up: ms(0), end: ms(100) }, [(Node(0), "télé".to_string())]);
        r.keep_packets();
        r.hop_delivery(ms(30), ms(25), Node(0), Bytes::new(1500));
        r.bulk_flow(ms(0), FlowId(0), Node(0), "film");
        r.sample(ms(50), Gauge::Hop(SeriesKind::Capacity), 87.5);
        vec![Run { law: "cubic".into(), seed: u64::MAX, record: r.finish() }]
    }

    fn rows(fill: impl FnOnce(&mut (dyn Write + Send)) -> io::Result<()>) -> Vec<parquet::record::Row> {
        let mut file = tempfile::tempfile().expect("a file");
        fill(&mut file).expect("writes");
        let reader = SerializedFileReader::new(file).expect("valid Parquet");
        reader.get_row_iter(None).expect("rows").map(|row| row.expect("a row")).collect()
    }

    #[test]
    fn series_come_back_as_they_were() {
        let rows = rows(|to| write_series(&runs(), to));
        // Five bins of the flow's rate, delay and largest delay of the station and of the hop, capacity.
        assert_eq!(rows.len(), 10);
        let capacity = rows.iter().find(|r| r.get_string(2).expect("series") == "capacity").expect("a row");
        assert_eq!(capacity.get_ulong(1).expect("seed"), u64::MAX);
        assert_eq!(capacity.get_string(3).expect("entity"), "hop");
        assert!(capacity.get_string(4).is_err(), "null");
        assert_eq!((capacity.get_double(6).expect("time"), capacity.get_double(7).expect("value")), (0.05, 87.5));
        let rate = rows.iter().find(|r| r.get_string(2).expect("series") == "rate").expect("a row");
        assert_eq!(rate.get_string(4).expect("station"), "télé");
    }

    #[test]
    fn packets_come_back_as_they_were() {
        let rows = rows(|to| write_packets(&runs(), to));
        assert_eq!(rows.len(), 1);
        assert_eq!((rows[0].get_double(3).expect("time"), rows[0].get_double(4).expect("delay")), (0.03, 5.0));
    }

    #[test]
    fn a_full_disk_is_reported_as_such() {
        let mut full = File::options().write(true).open("/dev/full").expect("Linux has it");
        let error = write_series(&runs(), &mut full).expect_err("full");
        assert_eq!(error.kind(), io::ErrorKind::StorageFull, "{error}");
    }
}
