//! What must hold on any bytes, a function for each fuzz target of this crate. A function panics
//! where it does not hold. `fuzz/README.md` says how they are run.

use crate::DataSet;
use std::path::Path;

/// A data set, finished or what is left of a recording: the reader makes an error of whatever the
/// Parquet library does, a panic included; a row that is read has first copies, and has lost no
/// more than those.
pub fn dataset(bytes: &[u8]) {
    let read = DataSet::parse(Path::new("fuzz"), bytes.to_vec().into()).and_then(|set| set.load());
    for row in read.into_iter().flatten() {
        assert!(row.copies > 0 && row.lost <= row.copies);
    }
}

#[cfg(test)]
#[path = "../../../fuzz/seeds.rs"]
mod seeds;

#[cfg(test)]
mod tests {
    use crate::metrics::METRICS;
    use crate::{Pseudonym, Recording, Row, World, Writer, part_of};
    use lasthop_laws::oal::features::FEATURES;
    use lasthop_units::{Span, Time};

    fn recording() -> Recording {
        Recording {
            id: "one".to_owned(),
            world: World::Sim,
            scenario: "made-up".to_owned(),
            law: "cubic".to_owned(),
            seed: Some(1),
            begun: None,
            duration_us: 60_000_000,
            every_us: 100_000,
            horizon_us: 100_000,
            repair_us: 1_500_000,
            key: "00000000".to_owned(),
        }
    }

    fn row(moment: u64) -> Row {
        let mut features = [f32::NAN; FEATURES.len()];
        features[0] = moment as f32;
        Row {
            recording: 0,
            at: Time::from_nanos(moment * 100_000_000),
            horizon: Span::from_millis(100),
            access_point: Pseudonym(7),
            station: Pseudonym(1 << 40),
            features,
            metrics: [0.5; METRICS.len()],
            copies: 20,
            lost: moment as u32,
            acted: moment == 0,
        }
    }

    #[test]
    fn dataset() {
        let folder = tempfile::tempdir().expect("a directory");
        let path = folder.path().join("x.parquet");
        let mut writer = Writer::create(&path, vec![recording()]).expect("writable");
        (0..3).for_each(|moment| writer.push(row(moment)).expect("room on the disk"));
        writer.flush().expect("room on the disk");
        let unfinished = std::fs::read(part_of(&path)).expect("it was flushed");
        writer.finish().expect("room on the disk");
        let finished = std::fs::read(&path).expect("it was finished");
        super::seeds::run("dataset", super::dataset, &[("finished", finished), ("unfinished", unfinished)]);
    }
}
