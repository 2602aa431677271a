//! Traffic that comes and goes in less time than the regulator's slots: a station that comes has its share at once, and
//! what it leaves is the others'.

use crate::support;

use lasthop_report::Key;
use support::{CUBIC, Wifi, against, download, load, regulator, simulate, stations, value};

#[test]
fn pages_load_as_fast_as_with_fq_and_downloads_get_the_rest() {
    let scenario = load("aggregation/come-and-go.toml");
    for seed in 1..=2 {
        let [ours, cubic, modern] = ["regulator", "cubic", "cubic+modern-ap"].map(|law| simulate(&scenario, law, seed));
        let [used, fetch, delay] = [Key::Throughput, Key::FetchP50, Key::HopDelayP95]
            .map(|key| [&cubic, &modern].map(|other| value(&ours, key) / value(other, key)));
        eprintln!(
            "seed {seed}: download {used:?} of CUBIC's over the FIFO and over the modern queue, fetch {fetch:?}, p95 {delay:?}"
        );
        // Before it did: 0.52 of the download and 1.1 times the time of a page.
        assert!(used[0] >= 1.0 && fetch[0] < 0.5 && delay[0] < 0.5, "seed {seed}: {used:?} {fetch:?} {delay:?}");
        assert!(used[1] >= 1.0 && fetch[1] < 1.0 && delay[1] < 0.5, "seed {seed}: {used:?} {fetch:?} {delay:?}");
    }
}

/// Fetches of `size` to each of `count` stations called `name`, all at the same instants.
fn fetches(name: &str, count: u32, size: &str, every: &str) -> String {
    let fetch = |place| {
        format!("[[traffic]]\nkind = \"fetch\"\nto = \"{name}-{place}\"\nsize = \"{size}\"\nevery = \"{every}\"\n")
    };
    (1..=count).map(fetch).collect()
}

/// Six stations that get two kilobytes fifty times a second and two that get 40 kB thirty times, beside three downloads.
#[test]
fn who_needs_little_leaves_the_others_what_it_does_not_use() {
    let hop = stations("down", 3, 7) + &stations("call", 6, 5) + &stations("video", 2, 7);
    let downloads: String = (1..=3).map(|place| download(&format!("down-{place}"))).collect();
    let traffic = fetches("call", 6, "2 kB", "20 ms") + &fetches("video", 2, "40 kB", "33 ms");
    let rest = hop + &downloads + &traffic + CUBIC + &regulator("10 ms");
    let title = "Calls and video beside downloads";
    let scenario = Wifi { title, times: ("20 s", "10 s"), delay: "10 ms", rest: &rest, ..Wifi::default() }.scenario();
    const SEEDS: u64 = 4;
    let mut delays = 0.0;
    for seed in 1..=SEEDS {
        let [ours, cubic] = ["regulator", "cubic"].map(|law| simulate(&scenario, law, seed));
        let (used, delay) = against(&ours, &cubic);
        eprintln!("seed {seed}: downloads {used:.3} of CUBIC's, p95 {delay:.3}");
        assert!(used >= 1.0 && delay < 0.35, "seed {seed}: {used} {delay}");
        delays += delay;
    }
    // Rounds of 10 ms in the mean are twice as long at times, where CUBIC's queue is of 63 ms: 0.25 to 0.32 in eight seeds.
    let delay = delays / SEEDS as f64;
    assert!(delay < 0.3, "p95 is {delay} of CUBIC's, in the mean");
}

/// Stations that all come at the same instants, for less than a frame: a plan for those that are there at the moment would be one for
/// a single station, or for all.
#[test]
fn simultaneous_calls_leave_a_download_its_cubic_throughput() {
    for (count, size, every) in [(25, "2 kB", "20 ms"), (10, "20 kB", "100 ms")] {
        let rest = stations("call", count, 5) + &stations("down", 1, 7) + &download("down");
        let rest = rest + &fetches("call", count, size, every) + CUBIC + &regulator("10 ms");
        let title = "Calls beside a download";
        let scenario = Wifi { title, times: ("20 s", "5 s"), delay: "2 ms", rest: &rest, ..Wifi::default() }.scenario();
        for seed in 1..=2 {
            let [ours, cubic] = ["regulator", "cubic"].map(|law| simulate(&scenario, law, seed));
            let [used, fetch, delay] =
                [Key::Throughput, Key::FetchP50, Key::HopDelayP95].map(|key| value(&ours, key) / value(&cubic, key));
            eprintln!("{count} of {size}, seed {seed}: {used:.3} of CUBIC's, fetch {fetch:.3}, p95 {delay:.3}");
            // By the stations that are active at the moment: 0.33 of 25 stations', 0.98 of ten.
            assert!(used >= 0.95 && fetch < 0.3 && delay < 0.4, "{count}, seed {seed}: {used} {fetch} {delay}");
        }
    }
}
