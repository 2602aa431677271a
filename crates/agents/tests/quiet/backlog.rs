//! What waits in the proxy for a station with one connection, and with many that all begin at one moment, over a wire of 20 ms.
#![allow(clippy::disallowed_methods, reason = "real time is what is tested")]

use crate::support;

use lasthop_laws::ReceiveWindow;
use lasthop_units::{Rate, Span};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::{Arc, Barrier};
use std::time::Duration;
use support::bulk::{Downloads, read_for};
use support::netns::available;
use support::others::Others;
use support::slots::{self, SEGMENT, Slot, TWO_PACKETS};

const RATE: Rate = Rate::from_mbit(50);
const ALLOWANCE: Span = ReceiveWindow::ALLOWANCE;
/// Of the wire between proxy and servers.
const ROUND_TRIP: Duration = Duration::from_millis(20);
/// How long all send.
const LASTS: Duration = Duration::from_secs(2);

/// `connections` of one station stand and are quiet for a while; then all their servers send what they can. Gives
/// the proxy's slots from that moment on, how much each connection brought, and whether nobody else needed the machine meanwhile.
fn begin_together(connections: usize) -> (Vec<Slot>, Vec<usize>, bool) {
    let downloads = Downloads::new(95, RATE, ROUND_TRIP, false);
    // One that is told to begin, and then never stops.
    let begin = Arc::new(Barrier::new(connections + 1));
    let starts = Arc::clone(&begin);
    downloads.serve(move |mut socket: TcpStream| {
        if socket.write_all(b"!").is_ok() && socket.read_exact(&mut [0]).is_ok() {
            starts.wait();
            while socket.write_all(&[0x5a; 16 << 10]).is_ok() {}
        }
    });
    let mut open = downloads.connect(connections, |socket| socket.read_exact(&mut [0]));
    std::thread::sleep(Duration::from_millis(500));
    let (before, others) = (downloads.count(), Others::look());
    open.iter_mut().for_each(|socket| socket.write_all(b"x").expect("a connection"));
    begin.wait();
    let brought = read_for(open, LASTS);
    let quiet = others.were_quiet("the bound and the throughput");
    (downloads.slots(before), brought, quiet)
}

#[test]
fn one_or_many_simultaneous_connections_keep_the_bound() {
    if !available("edge proxy") {
        return;
    }
    for connections in [1, 32, 256] {
        let (slots, brought, quiet) = begin_together(connections);
        let filled: Vec<u64> = slots.iter().map(|slot| slot.backlog as u64).collect();
        let mbit = brought.iter().sum::<usize>() as f64 * 8e-6 / LASTS.as_secs_f64();
        println!("{connections} connections: {mbit:.1} Mbit/s, {filled:?} octets at most in each slot");
        assert!(brought.iter().all(|count| *count > 0), "{connections} connections: some brought nothing: {brought:?}");
        if !quiet {
            continue;
        }
        let fullest = slots::fullest(&slots);
        // What all may begin with at once: a segment each, and the part of the allowance that those that send leave.
        let spare = RATE.bytes_in(ALLOWANCE - ReceiveWindow::standing(ALLOWANCE)).get() as f64;
        let forced = SEGMENT * connections as f64 + spare + TWO_PACKETS;
        let most = fullest.bound.max(forced);
        // A process that is held up cannot close windows: what all were allowed then comes, up to 1.9 times the bound.
        assert!(fullest.backlog <= 1.9 * most, "{connections} connections: {fullest:?}, {most} allowed");
        // What is forced on the proxy beyond the bound has left it after a few tenths of a second; then the bound holds.
        let over = slots.iter().map(|slot| slot.over).sum::<f64>() / slots.len() as f64;
        let rarely = if forced > fullest.bound { 0.5 } else { 0.1 };
        assert!(over < rarely, "{connections} connections: {over:.3} of all looks found more than the bound");
        // How much less than the rate it is depends on what else the machine does.
        assert!(mbit > 10.0, "{connections} connections: {mbit:.1} Mbit/s of {RATE}");
    }
}
