//! How well frames are told from the arrival times of packets: on simulated traces that training has not seen, and on
//! captures. Prints the table of `docs/reference/timestamp-estimator.md`.

mod arrivals;

use arrivals::{Case, Trace};
use lasthop_laws::aggregation::timestamps::Arrivals;
use lasthop_signals::{MacAddress, Node};
use lasthop_units::{Span, Time};
use lasthop_wire::{monitor::Captured, pcap};
use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::PathBuf;

/// Training used seeds 1 to 400.
const HELD_OUT: std::ops::Range<u64> = 100_001..100_201;
const SLOT: Span = Span::from_millis(500);

struct Slot {
    case: Case,
    truth: f64,
    estimate: f64,
}

impl Slot {
    fn error(&self) -> f64 {
        self.estimate / self.truth - 1.0
    }
}

fn judge(case: &Case, trace: &Trace) -> Vec<Slot> {
    let mut arrivals = Arrivals::default();
    let mut judged = Vec::new();
    for packets in trace.slots(SLOT) {
        trace.stamps[packets.clone()].iter().for_each(|at| arrivals.arrived(*at));
        let feedback = arrivals.feedback(Node(1), 0, Time::ZERO, Time::ZERO);
        let truth = trace.mean(packets);
        let Some(estimate) = feedback.mean_packets() else { continue };
        judged.push(Slot { case: case.clone(), truth, estimate });
    }
    judged
}

#[test]
fn the_mean_error_on_traces_of_other_seeds_is_within_15_per_cent() {
    let slots: Vec<Slot> = HELD_OUT
        .flat_map(|seed| {
            let case = Case::draw(seed);
            judge(&case, &case.trace())
        })
        .collect();
    let row = |name: &str, which: &dyn Fn(&Slot) -> bool| {
        let errors: Vec<f64> = slots.iter().filter(|slot| which(slot)).map(Slot::error).collect();
        let mut sizes: Vec<f64> = errors.iter().map(|error| error.abs()).collect();
        sizes.sort_by(f64::total_cmp);
        let mean = sizes.iter().sum::<f64>() / sizes.len() as f64;
        let bias = errors.iter().sum::<f64>() / errors.len() as f64;
        let p90 = sizes[(sizes.len() - 1) * 9 / 10];
        println!("| {name} | {} | {:.1} | {:+.1} | {:.1} |", sizes.len(), 100.0 * mean, 100.0 * bias, 100.0 * p90);
        mean
    };
    println!("| slots | number | mean error % | bias % | p90 of the error % |\n| --- | --- | --- | --- | --- |");
    let all = row("all", &|_| true);
    let late = row("frames handed up whole", &|slot| !slot.case.early);
    row("MPDUs passed on as they end", &|slot| slot.case.early);
    row("no MPDU losses", &|slot| slot.case.error == 0.0);
    row("MPDU losses up to 5 %", &|slot| slot.case.error > 0.0);
    row("no interrupt moderation", &|slot| slot.case.moderation.is_zero());
    row("interrupt moderation, 20 to 100 us", &|slot| !slot.case.moderation.is_zero());
    row("a neighbour on the channel", &|slot| slot.case.neighbour.is_some());
    row("1 station", &|slot| slot.case.stations == 1);
    row("2 to 8 stations", &|slot| slot.case.stations > 1);
    row("up to 3 packets a frame", &|slot| slot.truth < 3.0);
    row("3 to 10", &|slot| (3.0..10.0).contains(&slot.truth));
    row("more than 10", &|slot| slot.truth >= 10.0);
    assert!(slots.len() > 350, "{} slots", slots.len());
    assert!(all <= 0.15, "mean error {all:.3}");
    assert!(late <= 0.15, "mean error {late:.3} where frames are handed up whole");
}

/// Arrivals of the most frequent receiver of a capture, with the numbers of their A-MPDUs.
fn capture(path: &str) -> Option<Vec<(Time, u32)>> {
    let root = match std::env::var_os("LASTHOP_REFERENCE") {
        Some(root) => PathBuf::from(root),
        None => PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/reference"),
    };
    let path = root.join("captures").join(path);
    let Ok(bytes) = std::fs::read(&path) else {
        // Past the capture of test output.
        let _ =
            writeln!(std::io::stderr(), "SKIPPED: reference data absent: {} (set LASTHOP_REFERENCE)", path.display());
        return None;
    };
    let mut streams: BTreeMap<MacAddress, Vec<(Time, u32)>> = BTreeMap::new();
    let mut first = None;
    for packet in pcap::Reader::new(&bytes).expect("a pcap file") {
        let packet = packet.expect("a whole packet");
        let start = *first.get_or_insert(packet.at);
        let captured = Captured::parse(packet.bytes, packet.original as usize).expect("a radiotap header");
        let Some(mpdu) = captured.mpdu() else { continue };
        let Some(subframe) = mpdu.ampdu else { continue };
        let arrivals = streams.entry(mpdu.receiver).or_default();
        arrivals.push((Time::ZERO + packet.at.since(start), subframe.reference));
    }
    streams.into_values().max_by_key(Vec::len)
}

/// Mean packets a frame by reference numbers, and by the estimator.
fn means(trace: &Trace) -> (f64, f64) {
    let mut arrivals = Arrivals::default();
    trace.stamps.iter().for_each(|at| arrivals.arrived(*at));
    let feedback = arrivals.feedback(Node(1), 0, Time::ZERO, Time::ZERO);
    let borders = 1 + trace.frames.windows(2).filter(|pair| pair[0] != pair[1]).count();
    (trace.frames.len() as f64 / borders as f64, feedback.mean_packets().expect("frames"))
}

/// Captures have the radio's stamps of each MPDU. A kernel's would be those of a driver: the same arrivals go through the
/// host model of the traces, once as they are and once with each frame handed up at its end.
#[test]
fn on_captures_the_error_is_as_stated() {
    let stated = [
        ("wifi_ns3/vht_nss1_mcs4_n1_sta0.pcap", 0.15),
        ("wifi_ns3/vht_nss2_mcs7_n3_sta0.pcap", 0.15),
        ("wifi_ns3/he_nss2_mcs11_n1_sta0.pcap", 0.15),
        ("wifi_minstrel_blues_set/carambola2/carambola2-1-1-d10-10M-1.pcap", 0.15),
    ];
    println!("| capture | frames' mean | handed up whole | error % | MPDU by MPDU | error % |");
    println!("| --- | --- | --- | --- | --- | --- |");
    for (path, bound) in stated {
        let Some(arrivals) = capture(path) else { return };
        let mut whole = arrivals.clone();
        for i in (0..whole.len().saturating_sub(1)).rev() {
            if whole[i].1 == whole[i + 1].1 {
                whole[i].0 = whole[i + 1].0;
            }
        }
        let host = Case { start: Time::ZERO, moderation: Span::ZERO, packet_us: 2.0, ..Case::draw(0) };
        let (truth, estimate) = means(&host.host(&whole));
        let (_, single) = means(&host.host(&arrivals));
        let per_cent = |estimate: f64| 100.0 * (estimate / truth - 1.0);
        println!(
            "| `{path}` | {truth:.2} | {estimate:.2} | {:+.1} | {single:.2} | {:+.1} |",
            per_cent(estimate),
            per_cent(single)
        );
        assert!((estimate / truth - 1.0).abs() <= bound, "{path}: {estimate} for {truth}");
    }
}
