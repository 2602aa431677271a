//! All files of one experiment.

use crate::{Key, ReportError, Run, RunInfo, Summary, files, has_packets, write_packets, write_series, write_whole};
use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

/// Everything that a report is made of.
#[derive(Clone, Copy, Debug)]
pub struct Report<'a> {
    /// A heading, in the user's words.
    pub title: &'a str,
    /// What was run and why, in the user's words; may be empty.
    pub description: &'a str,
    /// The figures.
    pub summary: &'a Summary,
    /// Those that the traffic should have yielded: where none has come of it, the reader is told why.
    pub expected: &'a [Key],
    /// The runs that they come from.
    pub runs: &'a [Run],
    /// The circumstances.
    pub info: &'a RunInfo,
}

impl Report<'_> {
    /// Writes `result.json`, `run.json`, `series.parquet`, `report.html` and, if any run kept its packets,
    /// `packets.parquet` into `folder`, which is made if need be; returns their paths. Each file is written whole or
    /// not at all, the figures first.
    pub fn write(&self, folder: &Path) -> Result<Vec<PathBuf>, ReportError> {
        fs::create_dir_all(folder).map_err(|source| ReportError::Directory { path: folder.to_path_buf(), source })?;
        let mut written = Vec::new();
        let mut file = |name: &str, fill: files::Fill<'_>| {
            let path = folder.join(name);
            write_whole(&path, fill)?;
            written.push(path);
            Ok(())
        };
        file("result.json", &mut |to| to.write_all(self.summary.to_json().as_bytes()))?;
        file("run.json", &mut |to| to.write_all(self.info.to_json().as_bytes()))?;
        file("report.html", &mut |to| to.write_all(self.to_html().as_bytes()))?;
        file("series.parquet", &mut |to| write_series(self.runs, to))?;
        if has_packets(self.runs) {
            file("packets.parquet", &mut |to| write_packets(self.runs, to))?;
        } else {
            // Packets of an earlier experiment must not stand beside the figures of this one.
            let path = folder.join("packets.parquet");
            remove(&path).map_err(|source| ReportError::Write { path, source })?;
        }
        Ok(written)
    }
}

fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}
