//! How far an estimate is off, slot by slot, and the tables of `docs/reference/timestamp-estimator.md`.

use super::{Case, Trace};
use lasthop_laws::aggregation::timestamps::{Arrival, Arrivals, Coefficients};
use lasthop_units::{Bytes, Span};

/// Seeds of the simulated traces that judge; training has others.
pub const HELD_OUT: std::ops::Range<u64> = 200_001..200_201;
/// The regulator's usual slot, and one for captures of half a second.
pub const SLOT: Span = Span::from_millis(500);
pub const SHORT_SLOT: Span = Span::from_millis(100);
/// Network-layer length of the packets of traces.
pub const PACKET: Bytes = Bytes::new(1_500);

/// One slot of a trace.
#[derive(Clone, Debug)]
pub struct Slot {
    pub case: Option<Case>,
    /// Mean packets a frame, as radiotap would show it.
    pub truth: f64,
    /// As the estimator has it, whether it believes it or not.
    pub estimate: f64,
    pub doubt: f64,
    /// The estimator says that it knows.
    pub known: bool,
    /// Seconds a bit, if it says that it knows those.
    pub inverse_rate: Option<f64>,
}

impl Slot {
    pub fn error(&self) -> f64 {
        self.estimate / self.truth - 1.0
    }
}

/// All slots of a trace with at least three packets.
pub fn judge(coefficients: Coefficients, case: Option<&Case>, trace: &Trace, slot: Span) -> Vec<Slot> {
    let mut arrivals = Arrivals::new(coefficients);
    let mut judged = Vec::new();
    for packets in trace.slots(slot) {
        for packet in packets.clone() {
            let (at, sent) = (trace.stamps[packet], trace.sent[packet]);
            arrivals.arrived(Arrival { at, sent, len: PACKET });
        }
        let estimate = arrivals.end_slot();
        if packets.len() >= 3 {
            judged.push(Slot {
                case: case.cloned(),
                truth: trace.mean(packets),
                estimate: estimate.mean_packets(),
                doubt: estimate.doubt,
                known: estimate.is_known(),
                inverse_rate: arrivals.inverse_rate(),
            });
        }
    }
    judged
}

/// The slots of all simulated traces that judge.
pub fn held_out(coefficients: Coefficients) -> Vec<Slot> {
    let of = |seed| {
        let case = Case::draw(seed);
        judge(coefficients, Some(&case), &case.trace(), SLOT)
    };
    HELD_OUT.flat_map(of).collect()
}

/// Errors of some slots.
#[derive(Clone, Copy, Debug)]
pub struct Errors {
    pub slots: usize,
    /// Mean size, mean with sign, and the size that nine of ten do not exceed.
    pub mean: f64,
    pub bias: f64,
    pub p90: f64,
    /// Slots that the estimator says it knows, of all.
    pub known: f64,
}

impl Errors {
    /// Of slots; `None` of none.
    pub fn of<'a>(slots: impl Iterator<Item = &'a Slot>) -> Option<Errors> {
        let slots: Vec<&Slot> = slots.collect();
        let count = slots.len() as f64;
        let mut sizes: Vec<f64> = slots.iter().map(|slot| slot.error().abs()).collect();
        sizes.sort_by(f64::total_cmp);
        let p90 = *sizes.get((sizes.len().checked_sub(1)?) * 9 / 10)?;
        Some(Errors {
            slots: slots.len(),
            mean: sizes.iter().sum::<f64>() / count,
            bias: slots.iter().map(|slot| slot.error()).sum::<f64>() / count,
            p90,
            known: slots.iter().filter(|slot| slot.known).count() as f64 / count,
        })
    }

    /// A line of a table.
    pub fn line(&self, name: &str) -> String {
        let [mean, bias, p90, known] = [self.mean, self.bias, self.p90, self.known].map(|share| 100.0 * share);
        format!("| {name} | {} | {mean:.1} | {bias:+.1} | {p90:.1} | {known:.0} |", self.slots)
    }
}

/// Head of such a table.
pub const HEAD: &str =
    "| slots | number | mean error % | bias % | p90 of the error % | known % |\n| --- | --- | --- | --- | --- | --- |";
