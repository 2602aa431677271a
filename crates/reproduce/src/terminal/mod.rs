//! "Proposal of a control method of TCP congestion windows among WLAN terminals" (Hayakawa, Yamaguchi and Oguchi 2015).

mod bounds;
mod coexistence;
mod model;
mod others;
mod over_time;

use crate::study::{Results, Shipped, shipped};
use crate::{Figure, System};
use lasthop_report::page::Table;
use lasthop_report::{Estimate, Key};
use lasthop_units::stats::Moments;

pub(super) const SYSTEM: System = System {
    name: "terminal",
    title: "Bounds on the windows of stations (Hayakawa, Yamaguchi and Oguchi)",
    figures: &[
        Figure { id: "ten", title: "Ten terminals upload, 4 and 256 ms from the server", make: bounds::ten },
        Figure { id: "windows", title: "Ten terminals with one window for good", make: bounds::windows },
        Figure {
            id: "over-time",
            title: "Windows and round trips of one terminal over time",
            make: over_time::over_time,
        },
        Figure { id: "scaling", title: "One to ten terminals upload", make: bounds::scaling },
        Figure { id: "coexistence", title: "Managed terminals beside unmanaged ones", make: coexistence::coexistence },
        Figure { id: "mixed", title: "Managed terminals beside Reno and BBR", make: coexistence::mixed },
        Figure {
            id: "servers",
            title: "Ten terminals upload to servers at different distances",
            make: others::servers,
        },
        Figure { id: "peers", title: "Ten terminals by other means than bounds", make: others::peers },
        Figure { id: "fixed-rate", title: "What the tables cost where nothing collapses", make: bounds::fixed_rate },
        Figure { id: "model", title: "The model in twelve worlds where nothing collapses", make: model::model },
    ],
    preface: PREFACE,
    headlines: &["ten", "windows", "coexistence", "fixed-rate", "model"],
};

const PREFACE: &str = "
# Bounds on the windows of stations, reproduced

Hayakawa, Yamaguchi and Oguchi 2015, and what goes beyond it. Everything is simulated over
Lasthop's model of the Wi-Fi hop, which is validated against ns-3. **Nothing here ran on radio
hardware.** `lasthop reproduce terminal` writes these pages.

## Result

{result}

## How to read it

Values are means over seeds, ± half of their 95 % confidence intervals. The mean decides whether a
requirement is met. A requirement without the paper's number is this project's own.

The paper measured ten telephones on one access point of 802.11g; rates and queues it does not
tell. The world here is that of ns-3 runs: all rates of an ERP under ARF, and queues of 1000
packets at both ends of the hop, fixed before the law ran in it. ARF takes collisions for a bad
channel, which makes uploads collapse. Under minstrel or at a fixed rate they do not, and bounds
can only cost.

Hosts take 20 us to answer ([decision 24](../decisions/0024-host-response-delay.md)). ns-3's take no time, so that
an answer goes without a backoff, which flatters bounds: rows `at once` have such hosts.

Rows: `cubic` is CUBIC alone; `count` bounds its window by the number of terminals, the authors'
earlier method; `tables` also by the ratio of round trips, which is the paper's; `model` is ours in
place of the tables ([explanation](../explanation/terminal-law.md)); `compete` is the model that does not
yield to unmanaged stations. Constants were chosen by runs of seeds 1 to 3 in these worlds with
hosts that answer at once (1 to 5 with nine and ten stations at 4 ms).
";

const TEN: Shipped = shipped!("terminal", "ten-uploads");
const LAWS: [&str; 4] = ["cubic", "count", "tables", "model"];
/// The paper's two paths: their round trip, and the delay of the wire each way.
const PATHS: [(u32, &str); 2] = [(4, "2 ms"), (256, "128 ms")];

/// An empty table of what each law makes of a world.
fn by_law() -> Table {
    Table::new(&[
        "world",
        "law",
        "total (Mbit/s)",
        "Jain",
        "RTT, mean (ms)",
        "RTT, p95 (ms)",
        "recoveries a MB",
        "hop delay, mean (ms)",
        "losses a million",
    ])
}

/// What a law makes of a world, as a row of that table.
fn row(world: &str, run: &Results, law: &str) -> Vec<String> {
    let keys = [Key::Throughput, Key::Jain, Key::RttMean, Key::RttP95, Key::Recoveries, Key::HopDelayMean, Key::Losses];
    run.row(&[world, law], law, &keys)
}

fn rows<'r>(world: &'r str, run: &'r Results) -> impl Iterator<Item = Vec<String>> + 'r {
    LAWS.into_iter().map(move |law| row(world, run, law))
}

/// A figure of each station of a group: the mean over them.
fn of_group(run: &Results, law: &str, group: &str, key: Key) -> Estimate {
    run.over_runs(law, key.unit(), |run| {
        let numbered =
            |name: &str| name.strip_prefix(group).is_some_and(|rest| rest.is_empty() || rest.starts_with('-'));
        let names = run.record.stations.iter().map(|station| &station.name).filter(|name| numbered(name));
        names.filter_map(|name| Results::figure_of(run, name, key)).collect::<Moments>().mean()
    })
}
