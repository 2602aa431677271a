//! What a PBE receiver's monitor costs a subframe: the law takes in what was decoded, and says what TCP can have. CPU time of the thread.

use lasthop_laws::ReceiverLaw;
use lasthop_laws::pbe::{Params, Receiver};
use lasthop_signals::{Block, CellSubframe, Dci, Rnti, Signal};
use lasthop_units::{Span, Time};
use nix::time::{ClockId, clock_gettime};
use std::hint::black_box;
use std::time::Duration;

fn main() {
    // `cargo test --benches` only wants to know whether it runs.
    let milliseconds = if std::env::args().any(|arg| arg == "--bench") { 20_000 } else { 200 };
    let alone = Cell { carriers: 1, users: 10, assigned: 4 };
    println!("law.pbe.subframe_ns {:.0} ns", median(milliseconds, alone));
    let full = Cell { carriers: 4, users: 100, assigned: 8 };
    println!("law.pbe.subframe_of_4_carriers_100_users_ns {:.0} ns", median(milliseconds, full));
}

/// A carrier has so many terminals, of which so many are given something in a subframe, in turn.
#[derive(Clone, Copy)]
struct Cell {
    carriers: u8,
    users: u64,
    assigned: u64,
}

const PRB: u16 = 100;
const OWN: Rnti = Rnti(100);

impl Cell {
    fn subframe(self, carrier: u8, number: u64) -> CellSubframe {
        let prb = PRB / self.assigned as u16;
        let dci = |place: u64| {
            let user = (number * self.assigned + place) % self.users;
            let new_data = (number / 8).is_multiple_of(2);
            let block = Block { mcs: 20, redundancy: 0, new_data, bits: u32::from(prb) * 500 };
            Dci { rnti: Rnti(OWN.0 + user as u16), prb, process: (number % 8) as u8, blocks: [Some(block), None] }
        };
        let dcis = (0..self.assigned).map(dci).collect();
        CellSubframe { carrier, number, prb: PRB, own: Some(OWN), dcis }
    }
}

/// Nanoseconds of CPU time a subframe of a carrier: the median of a hundred equal parts of so many milliseconds.
fn median(milliseconds: u64, cell: Cell) -> f64 {
    let mut law = Receiver::new(Params::default());
    law.sense(Time::ZERO, &Signal::RoundTrip(Span::from_millis(40)));
    let part = milliseconds / 100;
    let mut took: Vec<f64> = (0..100)
        .map(|place| {
            let numbers = place * part..(place + 1) * part;
            let subframes: Vec<Signal> = numbers
                .flat_map(|number| (0..cell.carriers).map(move |carrier| (carrier, number)))
                .map(|(carrier, number)| Signal::Subframe(cell.subframe(carrier, number)))
                .collect();
            let began = thread_time();
            for signal in &subframes {
                let Signal::Subframe(subframe) = signal else { continue };
                let now = Time::ZERO + Span::from_millis(subframe.number);
                law.sense(now, signal);
                black_box(law.decide(now));
            }
            (thread_time() - began).as_nanos() as f64 / subframes.len() as f64
        })
        .collect();
    took.sort_by(f64::total_cmp);
    took[took.len() / 2]
}

/// CPU time that the calling thread has had.
fn thread_time() -> Duration {
    Duration::from(clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).expect("it is always there"))
}
