//! Why something is no data set, or cannot be made one.

use crate::schema;
use std::io;
use std::path::PathBuf;

/// What went wrong, where, and what would be right.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DataSetError {
    /// A file cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Open {
        /// Which.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// A file cannot be written.
    #[error("cannot write {}: {source}", path.display())]
    Write {
        /// Which.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// What an unfinished recording left stands where another wants to write.
    #[error(
        "{path} is left of a recording that did not end: keep it with `lasthop dataset merge {path} --out FILE`, then remove it",
        path = .0.display()
    )]
    Unfinished(PathBuf),
    /// A file that is not Parquet, or is damaged.
    #[error("{}: not a Parquet file that can be read: {why}", path.display())]
    Parquet {
        /// Which.
        path: PathBuf,
        /// What the reader says.
        why: String,
    },
    /// A Parquet file of something else.
    #[error("{}: no data set: its metadata have no `{key}`, which `lasthop record` writes", path.display(), key = crate::meta::KEY)]
    NoMeta {
        /// Which.
        path: PathBuf,
    },
    /// Metadata that are not as they must be.
    #[error("{}: its metadata are wrong: {why}", path.display())]
    Meta {
        /// Which.
        path: PathBuf,
        /// What is wrong with them.
        why: String,
    },
    /// Another schema.
    #[error("{}: schema {got}, and this is for schema {}: use the version of lasthop that wrote it", path.display(), schema::VERSION)]
    Version {
        /// Which.
        path: PathBuf,
        /// Its schema.
        got: u32,
    },
    /// Another list of features.
    #[error("{}: features {got}, and a tree here knows {wanted}: record it again", path.display())]
    Features {
        /// Which.
        path: PathBuf,
        /// The file's.
        got: String,
        /// The one that is known.
        wanted: String,
    },
    /// A column that is not as declared.
    #[error("{}: column {at} is {got}, and must be {wanted}", path.display())]
    Column {
        /// Which file.
        path: PathBuf,
        /// The place of the column, from 1.
        at: usize,
        /// What it is.
        got: String,
        /// What it must be.
        wanted: String,
    },
    /// A value that cannot be.
    #[error("{}: row {row}: {column} is {got}, and must be {wanted}", path.display())]
    Value {
        /// Which file.
        path: PathBuf,
        /// The row, from 1.
        row: u64,
        /// The column.
        column: &'static str,
        /// What it is.
        got: String,
        /// What it must be.
        wanted: &'static str,
    },
    /// Files that cannot be made one.
    #[error("{} and {}: {why}", one.display(), other.display())]
    Apart {
        /// One file.
        one: PathBuf,
        /// The other.
        other: PathBuf,
        /// Why not.
        why: String,
    },
    /// A file of a key without one.
    #[error("{}: a key is 64 hexadecimal digits, as `openssl rand -hex 32` prints them", path.display())]
    Key {
        /// Which.
        path: PathBuf,
    },
    /// No random octets.
    #[error("the system gives no random octets for a key of pseudonyms")]
    Random,
    /// A split that leaves one side empty.
    #[error("{0}")]
    Empty(String),
}
