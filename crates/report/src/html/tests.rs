use super::*;
use crate::{Gauge, Recorder, Run, RunInfo, RunStatus, SeriesKind, Window, World};
use lasthop_signals::{FlowId, Node};
use lasthop_units::{Bytes, Time};

const HOSTILE: &str = "</script><script>alert(1)</script><!-- \" ' & \u{0}\u{2028} {{title}}";

fn ms(n: u64) -> Time {
    Time::from_nanos(n * 1_000_000)
}

/// A run of `seconds` with two stations, with `name` as every name.
fn run(law: &str, seed: u64, name: &str, seconds: u64) -> Run {
    let stations = [0, 1].map(|n| (Node(n), format!("{name}{n}")));
    let mut r = Recorder::new(Window { warm_up: ms(1000), end: ms(seconds * 1000) }, stations);
    for at in (0..seconds * 1000).step_by(20) {
        for n in [0u16, 1] {
            r.hop_delivery(ms(at + 15), ms(at), Node(n), Bytes::new(1500));
            r.goodput(ms(at), FlowId(n.into()), Node(n), Bytes::new(1448 * (1 + at % 7)));
            r.sample(ms(at), Gauge::Flow(SeriesKind::Window, FlowId(n.into())), 65_536.0 + at as f64);
            r.sample(ms(at), Gauge::Station(SeriesKind::Backlog, Node(n)), (at % 100) as f64);
            r.probe(ms(at), ms(at + 12 + at % 3), Node(n));
        }
    }
    Run { law: law.to_string(), seed, record: r.finish() }
}

fn page(title: &str, runs: &[Run], info: &RunInfo) -> String {
    let summary = Summary::of(World::Lab, title, &[], runs);
    Report { title, description: title, summary: &summary, expected: &[Key::FetchP95], runs, info }.to_html()
}

/// The text of the page with scripts and style sheets cut out.
fn markup(html: &str) -> String {
    let (mut rest, mut out) = (html, String::new());
    for (open, close) in
        [("<style", "</style>"), ("<script", "</script>"), ("<script", "</script>"), ("<script", "</script>")]
    {
        let (before, after) = rest.split_once(open).expect("the page has this element");
        out.push_str(before);
        rest = after.split_once(close).expect("closed").1;
    }
    out + rest
}

#[test]
fn hostile_names_do_not_break_out() {
    let info =
        RunInfo { scenario: HOSTILE.into(), host: HOSTILE.into(), doubts: vec![HOSTILE.into()], ..RunInfo::default() };
    let html = page(HOSTILE, &[run(HOSTILE, 1, HOSTILE, 2), run("plain", 1, HOSTILE, 2)], &info);
    // Three scripts of ours and no other, nothing that a name could have opened.
    assert_eq!(html.matches("<script").count(), 3);
    assert_eq!(html.matches("</script").count(), 3);
    assert!(!html.contains("<!--"));
    assert!(!html.contains('\0'));
    assert!(!markup(&html).contains("alert(1)</"));
    let data = html.split_once("id=\"data\">").expect("data").1.split_once("</script>").expect("closed").0;
    let data: serde_json::Value = serde_json::from_str(data).expect("valid JSON");
    assert_eq!(data["laws"][0], HOSTILE, "escaping loses nothing");
}

#[test]
fn the_page_loads_nothing_from_anywhere() {
    let html = page("quiet", &[run("cubic", 1, "sta", 2)], &RunInfo::default());
    for loader in ["src=", "@import", "url(", "<link", "<img", "<iframe", "fetch(", "XMLHttpRequest", "import("] {
        assert!(!html.contains(loader), "{loader}");
    }
    assert!(!markup(&html).contains("://"), "not even a link");
    assert!(html.contains("default-src 'none'"));
}

#[test]
fn the_world_is_stated_and_doubts_come_first() {
    let mut info = RunInfo::default();
    let runs = [run("cubic", 1, "sta", 2)];
    assert!(!page("t", &runs, &info).contains("Not reliable"));
    info.runs.push(RunStatus {
        law: "cubic".into(),
        seed: 1,
        doubts: vec!["12 ms late".into()],
        ..RunStatus::default()
    });
    let html = page("t", &runs, &info);
    let place = |text: &str| html.find(text).unwrap_or_else(|| panic!("no {text}"));
    assert!(place("Nothing ran on radio hardware.") < place("Not reliable"));
    assert!(place("cubic, seed 1: 12 ms late") < place("<h2>Figures"));
}

#[test]
fn the_page_of_a_full_experiment_is_small_and_names_merges() {
    let runs: Vec<Run> =
        ["a", "b", "c", "d"].iter().flat_map(|law| (1..=5).map(move |seed| run(law, seed, "sta", 10))).collect();
    let html = page("t", &runs, &RunInfo::default());
    assert!(html.len() < 3_000_000, "{} bytes", html.len());
    assert!(!html.contains("bins are merged"));
    let long: Vec<Run> =
        ["a", "b"].iter().flat_map(|law| (1..=5).map(move |seed| run(law, seed, "sta", 100))).collect();
    let html = page("t", &long, &RunInfo::default());
    assert!(html.len() < 3_000_000, "{} bytes", html.len());
    assert!(html.contains("bins are merged into one of"));
}

#[test]
fn why_a_figure_is_missing_is_told_where_it_was_to_be_expected() {
    let html = page("t", &[run("cubic", 1, "sta", 2)], &RunInfo::default());
    assert!(html.contains("<li>– Fetch, p95: there were no fetches in the measuring window</li>"));
    assert!(!html.contains("– Retransmissions") && !html.contains("Fetch, median:"), "nobody expected it");
}

#[test]
fn an_experiment_without_runs_still_makes_a_page() {
    let html = page("empty", &[], &RunInfo::default());
    assert!(html.contains("<h2>Figures"));
}

#[test]
fn words_in_backticks_are_code_without_markup() {
    assert_eq!(prose("of `cubic` and `a<b>&`."), "of <code>cubic</code> and <code>a&lt;b&gt;&amp;</code>.");
    assert_eq!(prose("one ` alone"), "one ` alone");
    assert_eq!(prose("`a` and ` alone"), "<code>a</code> and ` alone");
}

#[test]
fn a_line_of_the_table_is_a_figure_and_a_column_a_law() {
    let runs = [run("cubic", 1, "desk", 3), run("ours", 1, "desk", 3)];
    let html = page("two", &runs, &RunInfo::default());
    let table = &html[html.find("<thead>").expect("a table")..html.find("</table>").expect("its end")];
    let lines: Vec<&str> = table.split("<tr>").skip(1).collect();
    let columns = |line: &str| line.matches("<th").count() + line.matches("<td").count();
    assert!(lines.len() > 4 && lines.iter().all(|line| columns(line) == 3), "{table}");
    assert!(lines[0].contains("cubic") && lines[0].contains("ours") && lines[1].contains("Throughput"), "{table}");
}
