//! The model against ns-3 3.37 (reference data S1: one station, S2: several). The profile switches ns-3's departures
//! from the standard on; nothing is fitted.

mod common;

use common::{Cbr, Tally, run};
use lasthop_radio::queue::Kind;
use lasthop_radio::wifi::{GuardInterval, Mcs, NodeParams, Params, Plan, Profile, Role, Standard, Width};
use lasthop_signals::Node;
use lasthop_units::{Bytes, Seed, Span, Time};
use rand::Rng;

/// Rows of a reference file as columns by name; `None`, said loudly, if the data is not there.
fn rows(name: &str) -> Option<Vec<Row>> {
    let text = common::reference(name)?;
    let mut lines = text.lines();
    let header: Vec<String> = lines.next()?.split(',').map(str::to_owned).collect();
    let row = |line: &str| Row { header: header.clone(), cells: line.split(',').map(str::to_owned).collect() };
    Some(lines.map(row).collect())
}

struct Row {
    header: Vec<String>,
    cells: Vec<String>,
}

impl Row {
    fn text(&self, column: &str) -> &str {
        let at = self.header.iter().position(|name| name == column);
        &self.cells[at.unwrap_or_else(|| panic!("no column {column}"))]
    }

    fn number(&self, column: &str) -> f64 {
        self.text(column).parse().unwrap_or_else(|_| panic!("{column} is no number: {}", self.text(column)))
    }

    fn index(&self, column: &str) -> u8 {
        self.text(column).parse().expect("small number")
    }
}

fn plan(stations: u16, mcs: Mcs, gi: GuardInterval, profile: Profile, queue: usize) -> Plan {
    let mut nodes = vec![NodeParams::new(Role::Ap, mcs)];
    nodes.extend((0..stations).map(|_| NodeParams::new(Role::Station { ap: Node(0) }, mcs)));
    let mut params = Params::new(Standard::Dot11ac, Width::Mhz80, gi, nodes);
    params.ap_queue = Kind::Fifo { packets: queue };
    params.profile = profile;
    params.validate().expect("the reference scenario is legal")
}

/// Stations with equal constant-rate downlinks at random phases.
fn simulate(plan: Plan, stations: u16, rate_per_station: f64, seed: u64, warm_up: Span, measured: Span) -> Tally {
    let gap_ns = 1e9 / rate_per_station;
    let mut phases = Seed(seed).stream("phases");
    let sources: Vec<Cbr> = (1..=stations)
        .map(|i| {
            let phase = f64::from(phases.next_u32()) / f64::from(u32::MAX) * gap_ns;
            Cbr { from: Node(0), to: Node(i), len: Bytes::new(1500), first: Time::from_nanos(phase as u64), gap_ns }
        })
        .collect();
    let from = Time::ZERO + warm_up;
    let mut tally = Tally::new(from, from + measured);
    run(plan, Seed(seed), &sources, from + measured, &mut tally);
    tally
}

/// The largest relative deviation of a figure, and where.
#[derive(Default)]
struct Worst {
    name: &'static str,
    deviation: f64,
    place: String,
    sum: f64,
    count: f64,
}

impl Worst {
    fn new(name: &'static str) -> Worst {
        Worst { name, ..Worst::default() }
    }

    fn see(&mut self, ours: f64, theirs: f64, place: &str) {
        let deviation = ours / theirs - 1.0;
        self.sum += deviation.abs();
        self.count += 1.0;
        if deviation.abs() > self.deviation.abs() {
            self.deviation = deviation;
            self.place = format!("{place}: ours {ours:.4}, ns-3 {theirs:.4}");
        }
    }

    fn print(&self) {
        let mean = self.sum / self.count * 100.0;
        println!("{:22} worst {:+.2} % ({}), mean {mean:.2} %", self.name, self.deviation * 100.0, self.place);
    }
}

#[test]
fn one_station_agrees_with_ns3_in_throughput_aggregation_and_delay() {
    let Some(rows) = rows("s1_agg.csv") else { return };
    let mut throughput = Worst::new("S1 throughput");
    let mut mpdus = Worst::new("S1 mean aggregation");
    let mut delay = Worst::new("S1 mean delay");
    let mut p95 = Worst::new("S1 p95 delay");
    let mut to_ack = Worst::new("S1 mean delay to Ack");
    for row in &rows {
        let (nss, mcs) = (row.index("nss"), row.index("mcs"));
        let gi = if row.text("sgi") == "1" { GuardInterval::Ns400 } else { GuardInterval::Ns800 };
        let load = row.number("load_frac_of_nominal_cap");
        let x = row.number("x_pkts_per_s");
        let plan = plan(1, Mcs::new(mcs, nss), gi, Profile::Ns3_3_37, 1000);
        // Enough exchanges at low rates, no more packets than needed at high ones.
        let measured = Span::from_secs_f64((60_000.0 / x).clamp(0.6, 4.0));
        let mut tally = simulate(plan, 1, x, 1, Span::from_millis(150), measured);
        let place = format!("NSS {nss} MCS {mcs} {gi:?} load {load}");
        throughput.see(tally.mbit_s(), row.number("throughput_mbps_ip_avg"), &place);
        mpdus.see(tally.mean_mpdus(), row.number("mean_mpdus_avg"), &place);
        if load < 0.99 {
            // At and beyond capacity the delay is the queue's length and still growing.
            delay.see(tally.mean_delay_ms(), row.number("delay_rx_mean_ms_avg"), &place);
            to_ack.see(tally.mean_ack_delay_ms(), row.number("delay_ack_mean_ms_avg"), &place);
            tally.delays.sort_by(f64::total_cmp);
            p95.see(tally.delays[tally.delays.len() * 95 / 100], row.number("delay_rx_p95_ms_avg"), &place);
        }
    }
    for worst in [&throughput, &mpdus, &delay, &p95, &to_ack] {
        worst.print();
    }
    assert!(throughput.deviation.abs() < 0.03, "{}", throughput.place);
    assert!(mpdus.deviation.abs() < 0.03, "{}", mpdus.place);
    assert!(delay.deviation.abs() < 0.1, "{}", delay.place);
    assert!(to_ack.deviation.abs() < 0.1, "{}", to_ack.place);
}

#[test]
fn by_the_standard_one_station_is_still_within_a_tenth_of_ns3() {
    let Some(rows) = rows("s1_agg.csv") else { return };
    let mut throughput = Worst::new("S1 standard throughput");
    let mut mpdus = Worst::new("S1 standard aggregation");
    for row in &rows {
        let (nss, mcs) = (row.index("nss"), row.index("mcs"));
        let gi = if row.text("sgi") == "1" { GuardInterval::Ns400 } else { GuardInterval::Ns800 };
        let load = row.number("load_frac_of_nominal_cap");
        let x = row.number("x_pkts_per_s");
        let measured = Span::from_secs_f64((20_000.0 / x).clamp(0.6, 3.0));
        let plan = plan(1, Mcs::new(mcs, nss), gi, Profile::Standard, 1000);
        let tally = simulate(plan, 1, x, 1, Span::from_millis(150), measured);
        let place = format!("NSS {nss} MCS {mcs} {gi:?} load {load}");
        throughput.see(tally.mbit_s(), row.number("throughput_mbps_ip_avg"), &place);
        mpdus.see(tally.mean_mpdus(), row.number("mean_mpdus_avg"), &place);
    }
    throughput.print();
    mpdus.print();
    assert!(throughput.deviation.abs() < 0.1, "{}", throughput.place);
    assert!(mpdus.deviation.abs() < 0.1, "{}", mpdus.place);
}

#[test]
fn several_stations_agree_with_ns3_in_throughput_aggregation_and_delay() {
    let Some(rows) = rows("s2_agg.csv") else { return };
    let mut throughput = Worst::new("S2 throughput");
    let mut mpdus = Worst::new("S2 mean aggregation");
    let mut delay = Worst::new("S2 mean delay");
    let mut lowest_load = Worst::new("S2 delay at load 0.1");
    for row in rows.iter().filter(|row| row.text("tag").starts_with("equal_load")) {
        let (nss, mcs) = (row.index("nss"), row.index("sta_class(mcs)"));
        let stations: u16 = row.text("n_sta").parse().expect("a number");
        let x = row.number("offered_mbps_ip_avg") * 1e6 / 12_000.0;
        let plan =
            plan(stations, Mcs::new(mcs, nss), GuardInterval::Ns400, Profile::Ns3_3_37, 500 * usize::from(stations));
        // The delay at low load hangs on the phases: several draws of them.
        let runs = 5;
        let tallies: Vec<Tally> = (0..runs)
            .map(|seed| simulate(plan.clone(), stations, x, seed, Span::from_millis(300), Span::from_millis(600)))
            .collect();
        let mean = |figure: fn(&Tally) -> f64| tallies.iter().map(figure).sum::<f64>() / runs as f64;
        let place = format!("{stations} stations NSS {nss} {}", row.text("tag"));
        throughput.see(mean(Tally::mbit_s), row.number("total_throughput_mbps"), &place);
        mpdus.see(mean(Tally::mean_mpdus), row.number("mean_mpdus_avg"), &place);
        // At the lowest load packets meet only if their phases do: ns-3's own flows differ by half there.
        let lowest = row.text("tag").ends_with("0.10");
        let delay = if lowest { &mut lowest_load } else { &mut delay };
        delay.see(mean(Tally::mean_delay_ms), row.number("delay_rx_mean_ms_avg"), &place);
    }
    for worst in [&throughput, &mpdus, &delay, &lowest_load] {
        worst.print();
    }
    assert!(throughput.deviation.abs() < 0.03, "{}", throughput.place);
    assert!(mpdus.deviation.abs() < 0.03, "{}", mpdus.place);
    assert!(delay.deviation.abs() < 0.1, "{}", delay.place);
}
