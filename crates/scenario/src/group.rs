//! Stations that one table stands for.

/// Places of the stations that a table with a `count` stands for: `NAME-1`, `NAME-2` and so on.
pub(crate) fn group(name: &str, stations: &[String]) -> Vec<usize> {
    let one_of = |station: &String| {
        let number = station.strip_prefix(name).and_then(|rest| rest.strip_prefix('-'));
        number.is_some_and(|number| number.parse::<u32>().is_ok())
    };
    (0..stations.len()).filter(|place| one_of(&stations[*place])).collect()
}
