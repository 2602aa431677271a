//! Copa over a bottleneck: the queue that it keeps and empties, fairness, and its part beside Reno.

use crate::harness;

use harness::link::{Link, Path, jain, seconds};
use lasthop_units::{Rate, Span};

const PATH: Path = Path { rate: Rate::from_mbit(24), delay: Span::from_millis(20), buffer: 4.0 };
/// A packet of 1500 octets on the link, in milliseconds.
const PACKET_MS: f64 = 0.5;

#[test]
fn a_flow_alone_fills_the_link_and_keeps_a_few_packets_queued() {
    let mut link = Link::new(&[("copa", Span::ZERO)], PATH, 0.0, 1);
    link.run_until(seconds(5));
    let share = link.goodput(Span::from_secs(20))[0] / PATH.ceiling();
    let (mean, most) = link.queue(seconds(5));
    let (mean, most) = (mean / PACKET_MS, most / PACKET_MS);
    println!("{share:.3} of the link, {mean:.2} packets queued, at most {most:.2}, {} dropped", link.dropped);
    assert!(share >= 0.95, "{share}");
    // The paper: the queue swings between nothing and 2.5 / delta = 5 packets (section 3). A swing that does not come near to nothing for five round
    // trips is taken for somebody else's, and the flow competes for some more of them; the FIFO has room for 320.
    assert!((0.5..=5.0).contains(&mean) && most <= 30.0, "{mean}, at most {most}");
    assert_eq!(link.dropped, 0);
}

#[test]
fn random_loss_changes_nothing_without_a_competing_flow() {
    let share = |loss| {
        let mut link = Link::new(&[("copa", Span::ZERO)], PATH, loss, 1);
        link.run_until(seconds(5));
        link.goodput(Span::from_secs(20))[0] / PATH.ceiling()
    };
    let (whole, lossy) = (share(0.0), share(0.01));
    println!("{whole:.3} of the link, with 1 % lost {lossy:.3}");
    assert!(lossy >= 0.9 * whole, "{lossy}");
}

#[test]
fn flows_that_come_one_after_another_share_alike() {
    let starts = [0, 5, 10, 15].map(|second| ("copa", Span::from_secs(second)));
    let mut link = Link::new(&starts, PATH, 0.0, 1);
    link.run_until(seconds(25));
    let rates = link.goodput(Span::from_secs(30));
    let (share, fair) = (rates.iter().sum::<f64>() / PATH.ceiling(), jain(&rates));
    let (mean, _) = link.queue(seconds(25));
    println!("{rates:.2?} Mbit/s, Jain {fair:.3}, {share:.3} of the link, {:.2} packets queued", mean / PACKET_MS);
    assert!(fair >= 0.9 && share >= 0.95, "{fair} {share}");
    // Five packets a flow, and as much again.
    assert!(mean / PACKET_MS <= 40.0, "{mean} ms");
}

#[test]
fn it_competes_beside_a_filling_flow_and_drains_when_alone() {
    let mut link =
        Link::new(&[("copa", Span::ZERO), ("reno", Span::from_secs(5))], Path { buffer: 1.0, ..PATH }, 0.0, 1);
    link.run_until(seconds(15));
    let rates = link.goodput(Span::from_secs(60));
    println!("copa and reno: {rates:.2?} Mbit/s");
    assert!(rates[0] >= 0.25 * PATH.ceiling(), "{rates:?}");
}
