//! Figures on pages that are written by hand are those that their commands print: a change of the simulator's results
//! needs new pages.

use lasthop_tests::{lasthop, root, run, scenario};
use serde_json::Value;

/// A page's table, the command that it is of, and which of its figures are compared: where each stands, and its law and key.
struct Page {
    path: &'static str,
    scenario: &'static str,
    figures: &'static [Figure],
}

/// The cell of a table's row that begins with `row`, counted from 1.
struct Figure {
    row: &'static str,
    cell: usize,
    law: &'static str,
    key: &'static str,
}

const PAGES: [Page; 3] = [
    Page {
        path: "docs/reference/access-point-queues.md",
        scenario: "wifi/modern-ap",
        figures: &[
            Figure { row: "| `cubic` (FIFO) |", cell: 1, law: "cubic", key: "throughput_mbit_s" },
            Figure { row: "| `cubic` (FIFO) |", cell: 2, law: "cubic", key: "hop_delay_mean_ms" },
            Figure { row: "| `cubic` (FIFO) |", cell: 3, law: "cubic", key: "hop_delay_p95_ms" },
            Figure { row: "| `cubic` (FIFO) |", cell: 4, law: "cubic", key: "hop_delay_p99_ms" },
            Figure { row: "| `cubic` (FIFO) |", cell: 5, law: "cubic", key: "probe_delay_p95_ms" },
            Figure { row: "| `cubic+modern-ap` |", cell: 1, law: "cubic+modern-ap", key: "throughput_mbit_s" },
            Figure { row: "| `cubic+modern-ap` |", cell: 3, law: "cubic+modern-ap", key: "hop_delay_p95_ms" },
        ],
    },
    Page {
        path: "docs/explanation/access-point-law.md",
        scenario: "oal/modern-ap",
        figures: &[
            Figure { row: "| throughput, Mbit/s |", cell: 1, law: "cubic", key: "throughput_mbit_s" },
            Figure { row: "| throughput, Mbit/s |", cell: 3, law: "cubic+ap", key: "throughput_mbit_s" },
            Figure { row: "| hop delay p95, ms |", cell: 2, law: "cubic+modern-ap", key: "hop_delay_p95_ms" },
            Figure { row: "| fetch p95, ms |", cell: 3, law: "cubic+ap", key: "fetch_p95_ms" },
        ],
    },
    Page {
        path: "docs/explanation/access-point-law.md",
        scenario: "oal/ablation",
        figures: &[
            Figure { row: "| as published (`paper`) |", cell: 2, law: "paper", key: "hop_delay_p95_ms" },
            Figure { row: "| both, equal rates |", cell: 1, law: "ours+equal-rates", key: "throughput_mbit_s" },
        ],
    },
];

#[test]
fn means_in_handwritten_tables_match_their_commands() {
    for page in PAGES {
        let text = std::fs::read_to_string(root().join(page.path)).expect("the page is there");
        let out = tempfile::tempdir().expect("a directory");
        let mut laws: Vec<&str> = page.figures.iter().map(|figure| figure.law).collect();
        laws.sort_unstable();
        laws.dedup();
        let mut command = lasthop(["run", "--world", "sim", "--law", &laws.join(","), "--out"]);
        run(command.arg(out.path()).arg(scenario(page.scenario))).succeeded();
        let result = std::fs::read(out.path().join("result.json")).expect("it was written");
        let result: Value = serde_json::from_slice(&result).expect("JSON");
        for figure in page.figures {
            let row = text.lines().find(|line| line.starts_with(figure.row)).expect("the row is there");
            let shown = row.split('|').nth(figure.cell + 1).and_then(|cell| cell.split('±').next()).map(str::trim);
            let shown = shown.expect("the cell is there");
            let mean = result["laws"][figure.law][figure.key]["mean"].as_f64().expect("a mean");
            let places = shown.split_once('.').map_or(0, |(_, decimals)| decimals.len());
            assert_eq!(
                format!("{mean:.places$}"),
                shown,
                "{}: {} of {} is another now: renew the page with `lasthop compare scenarios/{}.toml --world sim`",
                page.path,
                figure.key,
                figure.law,
                page.scenario
            );
        }
    }
}
