//! Links of their own, capture and channels: from the file to the hop.

use lasthop_radio::LastHop;
use lasthop_radio::wifi::{Air, Db, Fading, Mcs, Plan, RateChoice, Reach, Snr, Wifi};
use lasthop_radio::{AccessClass, Dest, Ecn, Hop as _, NextEvent, Outbox, Packet, RxInfo};
use lasthop_scenario::Scenario;
use lasthop_signals::Node;
use lasthop_units::{Bytes, Seed, Span, Time};
use std::path::Path;

fn plan(hop: &str, tables: &str) -> Plan {
    let text = format!(
        "title = \"t\"\nduration = \"10 s\"\nwire = {{ rate = \"1 Gbit/s\", delay = \"1 ms\" }}\n\
         traffic = [{{ kind = \"bulk\", to = \"each\" }}]\nlaws.cubic.sender = \"cubic\"\n[hop.wifi]\n\
         queue = {{ kind = \"fifo\" }}\n{hop}\n{tables}"
    );
    let scenario = Scenario::parse("test.toml", &text, Path::new("")).unwrap_or_else(|error| panic!("{error:?}"));
    let LastHop::Wifi(plan) = scenario.hop() else { panic!("a Wi-Fi hop") };
    (**plan).clone()
}

#[test]
fn a_link_holds_one_way_or_both() {
    let plan = plan(
        "standard = \"802.11ac\"\ncapture = true",
        "[[hop.wifi.link]]\nfrom = \"b\"\nto = \"ap\"\nmcs = 2\nnss = 2\nmpdu-error-rate = 0.25\n\
         [[hop.wifi.link]]\nfrom = \"a\"\nto = \"b\"\nsnr = \"12 dB\"\nboth = true\n\
         [[station]]\nname = \"a\"\nmcs = 7\n[[station]]\nname = \"b\"\nmcs = 5\n",
    );
    let params = plan.params();
    assert!(params.capture);
    let ends: Vec<_> = params.links.iter().map(|link| (link.from.0, link.to.0)).collect();
    assert_eq!(ends, [(2, 0), (1, 2), (2, 1)]);
    assert_eq!(params.links[0].rate, Some(RateChoice::Fixed(Mcs::new(2, 2))));
    assert_eq!((params.links[0].mpdu_error, &params.links[0].link), (Some(0.25), &None));
    for link in &params.links[1..] {
        let snr = link.link.as_ref().map(|link| link.snr.clone());
        assert_eq!(snr, Some(Snr::Trace(vec![(Time::ZERO, Db(12.0))])));
    }
}

#[test]
fn in_a_mesh_with_capture_powers_follow_from_positions() {
    let tables = "[[station]]\nname = \"a\"\nrate = \"6 Mbit/s\"\nposition = [\"30 m\", \"40 m\"]\n\
                  [[station]]\nname = \"b\"\nrate = \"6 Mbit/s\"\nposition = [\"60 m\", \"80 m\"]\n";
    let mesh = "standard = \"802.11a\"\nmesh = { range = \"60 m\", interference-range = \"110 m\" }\n";
    assert!(plan(mesh, tables).params().links.is_empty());
    let plan = plan(&format!("{mesh}capture = true"), tables);
    let metres = |from: u16, to: u16| {
        let link = plan.params().links.iter().find(|link| (link.from.0, link.to.0) == (from, to)).expect("a strength");
        match &link.link.as_ref().expect("a strength").snr {
            Snr::Distance { walk, .. } => walk[0].1,
            Snr::Trace(_) => panic!("no distance"),
        }
    };
    assert_eq!((plan.params().links.len(), metres(0, 1), metres(1, 2), metres(2, 0)), (6, 50.0, 50.0, 100.0));
    assert!(plan.params().links.iter().all(|link| link.link.as_ref().is_some_and(|link| link.fading.is_none())));
}

#[test]
fn links_of_a_mesh_fade_as_it_says() {
    let hop = "standard = \"802.11a\"\ncapture = true\nmesh = { range = \"60 m\", fading = { kind = \"rician\", coherence = \"20 ms\" } }\n";
    let tables = "[[station]]\nname = \"a\"\nrate = \"6 Mbit/s\"\nposition = [\"30 m\", \"40 m\"]\n";
    let plan = plan(hop, tables);
    let fading: Vec<_> =
        plan.params().links.iter().map(|link| link.link.as_ref().and_then(|link| link.fading)).collect();
    assert_eq!(fading, [Some(Fading { coherence: Span::from_millis(20), k: 4.0 }); 2]);
}

/// Packets that arrive at each station.
struct Arrived([u64; 2]);

impl Outbox<()> for Arrived {
    fn deliver(&mut self, _at: Time, to: Node, _packet: Packet<()>, _rx: &RxInfo) {
        self.0[to.index() - 1] += 1;
    }
}

impl Air<()> for Arrived {}

/// Two access points with a station each, saturated; the further one on `channel`.
fn two_access_points(channel: u8) -> (Plan, [u64; 2]) {
    let plan = plan(
        "standard = \"802.11g\"\nchannel = 1",
        &format!(
            "[[access-point]]\nname = \"two\"\nchannel = {channel}\n[[station]]\nname = \"a\"\nrate = \"54 Mbit/s\"\n\
             [[station]]\nname = \"b\"\nrate = \"54 Mbit/s\"\naccess-point = \"two\"\n"
        ),
    );
    let ways = [(Node(0), Node(1)), (Node(3), Node(2))];
    let mut hop: Wifi<()> = Wifi::new(plan.clone(), Seed(1));
    let (mut out, mut now, end) = (Arrived([0; 2]), Time::ZERO, Time::ZERO + Span::from_secs(5));
    while now < end {
        for (src, to) in ways {
            for _ in hop.backlog(src, to)..20 {
                let (dst, class, ecn) = (Dest::Node(to), AccessClass::BestEffort, Ecn::NotEct);
                let packet = Packet { len: Bytes::new(1_500), src, dst, class, flow_hash: 0, ecn, payload: () };
                hop.enqueue(now, packet, &mut out);
            }
        }
        now = hop.next_event().unwrap_or(end).min(end);
        hop.advance(now, &mut out);
    }
    (plan, out.0)
}

#[test]
fn access_points_on_channels_of_their_own_do_not_share_the_air() {
    let (apart, alone) = two_access_points(6);
    let (together, shared) = two_access_points(1);
    assert_eq!(apart.params().reach.get(Node(0), Node(3)), Reach::None);
    assert_eq!(apart.params().reach.get(Node(2), Node(3)), Reach::Decodes);
    assert_eq!(together.params().reach.get(Node(0), Node(3)), Reach::Decodes);
    // Alone each has the channel; together they have a little more than half of it each, for they count down at once.
    assert!((alone[0] as f64 / alone[1] as f64 - 1.0).abs() < 0.01, "{alone:?}");
    for place in 0..2 {
        let share = shared[place] as f64 / alone[place] as f64;
        assert!((0.45..0.58).contains(&share), "{shared:?}, {alone:?}");
    }
}
