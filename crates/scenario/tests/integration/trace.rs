//! What a scenario file makes of recorded links and of impaired cables.

use lasthop_radio::LastHop;
use lasthop_radio::queue::PieParams;
use lasthop_radio::queue::{HopQueue, Limit, LinkKind};
use lasthop_radio::wired::Impairments;
use lasthop_scenario::{Scenario, StreamKind};
use lasthop_units::{Bytes, Rate, Span, Time};
use std::path::PathBuf;
use std::sync::LazyLock;

/// A folder with a right trace and a wrong one.
static FOLDER: LazyLock<PathBuf> = LazyLock::new(|| {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("traces");
    std::fs::create_dir_all(&folder).expect("a folder for traces");
    std::fs::write(folder.join("cell.down"), "1\n1\n2\n").expect("writing a trace");
    std::fs::write(folder.join("wrong.down"), "1\n3\n2\n").expect("writing a trace");
    folder
});

fn text(hop: &str, traffic: &str, law: &str) -> String {
    format!(
        "title = \"T\"\nduration = \"10 s\"\n[wire]\nrate = \"1 Gbit/s\"\ndelay = \"10 ms\"\n{hop}[[station]]\nname = \"phone\"\n\
         [[traffic]]\nkind = \"bulk\"\nto = \"phone\"\n{traffic}[laws.cubic]\nsender = \"cubic\"\n{law}"
    )
}

fn parse(hop: &str, traffic: &str, law: &str) -> Scenario {
    let text = text(hop, traffic, law);
    Scenario::parse("test", &text, &FOLDER).unwrap_or_else(|error| panic!("{}", error.plain()))
}

fn wrong(hop: &str, traffic: &str, law: &str) -> String {
    Scenario::parse("test", &text(hop, traffic, law), &FOLDER).expect_err("wrong").plain()
}

fn hop(queue: &str) -> String {
    format!("[hop.trace]\ndownlink = \"cell.down\"\nuplink = \"cell.down\"\ndelay = \"20 ms\"\nqueue = {queue}\n")
}

#[test]
fn a_trace_hop_has_its_files_its_delay_and_each_kind_of_queue() {
    let of = |queue: &str| {
        let scenario = parse(&hop(queue), "", "");
        let LastHop::Trace(hop) = scenario.hop().clone() else { panic!("a trace is the hop") };
        assert_eq!((hop.down.trace.len(), hop.down.delay), (3, Span::from_millis(20)));
        assert_eq!(hop.down.queue, hop.up.queue, "the uplink has the same where nothing is said");
        hop.down.queue
    };
    assert_eq!(of("{ kind = \"infinite\" }"), LinkKind::Infinite);
    assert_eq!(of("{ kind = \"fifo\", limit = \"250 packets\" }"), LinkKind::DropTail(Limit::Packets(250)));
    assert_eq!(of("{ kind = \"fifo\", bytes = \"60 kB\" }"), LinkKind::DropTail(Limit::Bytes(Bytes::new(60_000))));
    let (target, interval) = (Span::from_millis(5), Span::from_millis(100));
    assert_eq!(of("{ kind = \"codel\" }"), LinkKind::Codel { target, interval, packets: 1000, ecn: false });
    let pie = PieParams { target: Span::from_millis(20), ecn: true, ..PieParams::default() };
    assert_eq!(of("{ kind = \"pie\", target = \"20 ms\", ecn = true }"), LinkKind::Pie(pie));
    let own = parse(&hop("{ kind = \"infinite\" }"), "", "queue = { kind = \"fifo\", limit = \"9 packets\" }\n");
    let under = own.hop_under(&own.laws()[0]);
    assert_eq!(under.plan().queue(), Some(HopQueue::Trace(LinkKind::DropTail(Limit::Packets(9)))), "a law's own queue");
}

#[test]
fn what_is_wrong_with_a_trace_hop_is_told() {
    let infinite = "{ kind = \"infinite\" }";
    assert!(
        wrong(&hop(infinite).replace("cell.down", "wrong.down"), "", "").contains("line 3: 2 ms comes before the 3 ms")
    );
    assert!(wrong(&hop(infinite).replace("cell.down", "none.down"), "", "").contains("cannot be read"));
    let reference = hop(infinite).replace("cell.down", "$LASTHOP_REFERENCE_NOT/cell.down");
    assert!(wrong(&reference, "", "").contains("cannot be read"), "only the variable itself is one");
    assert!(wrong(&hop("{ kind = \"fq-codel\" }"), "", "").contains("each station has a link of its own here"));
    assert!(wrong(&hop("{ kind = \"codel\", bytes = \"9 kB\" }"), "", "").contains("has no `bytes`"));
    assert!(wrong(&hop("{ kind = \"infinite\", limit = \"9 packets\" }"), "", "").contains("has no `limit`"));
    assert!(
        wrong(&hop("{ kind = \"fifo\", limit = \"9 packets\", bytes = \"9 kB\" }"), "", "").contains("two keys say")
    );
    assert!(wrong(&hop("{ kind = \"pie\", interval = \"9 ms\" }"), "", "").contains("has no `interval`"));
    let wired = "[hop.wired]\nrate = \"10 Mbit/s\"\nqueue = { kind = \"pie\" }\n";
    assert!(wrong(wired, "", "").contains("is for `[hop.trace]`"));
    let both = format!("{}{}", hop(infinite), wired.replace("pie", "fifo"));
    assert!(wrong(&both, "", "").contains("one last hop, and here are two"));
}

#[test]
fn any_cable_has_losses_jitter_and_changes() {
    let keys = "loss = 0.01\njitter = \"5 ms\"\nchanges = [{ at = \"2 s\", rate = \"1 Mbit/s\" }]\n";
    let hop = format!(
        "{keys}[hop.wired]\nrate = \"10 Mbit/s\"\nqueue = {{ kind = \"fifo\" }}\n{keys}[backhaul]\nrate = \"50 Mbit/s\"\n{keys}"
    );
    let scenario = parse(&hop, "send-buffer = \"4194304 B\"\n", "");
    let expected = Impairments {
        changes: vec![(Time::ZERO + Span::from_secs(2), Rate::from_mbit(1))],
        loss: 0.01,
        jitter: Span::from_millis(5),
    };
    let LastHop::Wired(wired) = scenario.hop() else { panic!("cables are the hop") };
    assert_eq!(wired.impairments, expected);
    assert_eq!(scenario.wire().impairments, expected);
    assert_eq!(scenario.backhaul().expect("a backhaul").impairments, expected);
    let StreamKind::Bulk { send_buffer, .. } = scenario.streams()[0].kind else { panic!("a download") };
    assert_eq!(send_buffer, Some(Bytes::new(4 << 20)));
    assert!(wrong(&hop.replace("0.01", "0.95"), "", "").contains("0 to 0.9"));
    assert!(wrong(&hop, "send-buffer = \"1 MB\"\nprogram = \"iperf3\"\n", "").contains("iperf3 sets the buffers"));
}
