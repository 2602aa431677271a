//! Makes one data set of several.

use crate::write::{Written, write_file};
use crate::{DataSet, DataSetError, Meta};
use std::collections::BTreeMap;
use std::path::Path;

/// Writes all items of these data sets into one file, in their order.
///
/// # Errors
/// [`DataSetError::Apart`] if a recording is in two of them: its items would count twice. Otherwise what a file has against it.
pub fn merge(sets: &[DataSet], out: &Path) -> Result<Written, DataSetError> {
    let mut from: BTreeMap<&str, &DataSet> = BTreeMap::new();
    let (mut recordings, mut rows) = (Vec::new(), 0);
    for set in sets {
        for recording in &set.meta().recordings {
            if let Some(before) = from.insert(&recording.id, set) {
                let why = format!("both hold the recording {}: leave one of them out", recording.id);
                return Err(DataSetError::Apart { one: before.path().to_owned(), other: set.path().to_owned(), why });
            }
            recordings.push(recording.clone());
        }
    }
    let meta = Meta::new(recordings);
    let bytes = write_file(out, &meta, |take| {
        let mut first = 0;
        for set in sets {
            set.each(&mut |mut row| {
                row.recording += first;
                rows += 1;
                take(row)
            })?;
            first += set.meta().recordings.len() as u32;
        }
        Ok(())
    })?;
    Ok(Written { rows, bytes })
}
