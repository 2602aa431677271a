//! How the estimator's coefficients are found: logistic regression with a small ridge on packets drawn evenly from traces.

use super::capture::{SYNTHETIC, halves, hosted};
use super::judge::SLOT;
use super::{Case, Trace};
use lasthop_laws::aggregation::timestamps::{Coefficients, FEATURES, GAPS, Usual, features};
use lasthop_units::{Seed, Span};
use rand::Rng;

/// Seeds of the simulated traces for training; those that judge begin elsewhere.
pub const SEEDS: std::ops::Range<u64> = 1..401;
/// Packets drawn from a trace.
pub const PACKETS: u32 = 800;
/// As many packets are drawn from the real capture's half as from so many simulated traces, and from the synthetic capture
/// as from these: captures are a tenth of all. Decided before anything was judged.
pub const REAL_WORTH: u64 = 30;
pub const SYNTHETIC_WORTH: u64 = 10;
/// Slots with fewer packets are left out.
const LEAST: usize = 6;
/// Small, for some hundred thousand packets leave little to chance; it keeps weights of equal features apart.
const RIDGE: f64 = 1.0;

/// Packets and whether they begin frames.
#[derive(Clone, Debug, Default)]
pub struct Samples {
    rows: Vec<[f64; FEATURES]>,
    labels: Vec<bool>,
}

impl Samples {
    /// Draws packets from a trace, if it has enough of them.
    pub fn draw(&mut self, trace: &Trace, seed: u64) {
        // What is usual is that of a slot, as when the estimator works.
        let mut slots = trace.slots(SLOT);
        if slots.is_empty() {
            slots.push(0..trace.stamps.len());
        }
        slots.retain(|slot| slot.len() >= LEAST);
        let last: Vec<usize> = slots
            .iter()
            .scan(0, |sum, slot| {
                *sum += slot.len();
                Some(*sum)
            })
            .collect();
        let Some(&all) = last.last() else { return };
        let gap = |index: usize| trace.stamps[index].since(trace.stamps[index - 1]);
        let usual: Vec<Usual> = slots
            .iter()
            .map(|slot| {
                let gaps: Vec<Span> = (slot.start.max(1)..slot.end).map(gap).collect();
                Usual::of(&gaps).expect("more than one packet")
            })
            .collect();
        let mut dice = Seed(seed).stream("arrivals/draw");
        for _ in 0..PACKETS {
            let number = dice.next_u32() as usize % all;
            let place = last.partition_point(|&last| last <= number);
            let packet = slots[place].end - (last[place] - number);
            let usual = &usual[place];
            let known = |index: usize| (1..trace.stamps.len()).contains(&index).then(|| gap(index));
            let gaps: [Span; GAPS] =
                std::array::from_fn(|i| (packet + i).checked_sub(GAPS / 2).and_then(known).unwrap_or(usual.mean));
            self.rows.push(features(&gaps, usual));
            self.labels.push(trace.begins[packet]);
        }
    }

    /// Of all simulated traces for training.
    pub fn simulated() -> Samples {
        let seeds: Vec<u64> = SEEDS.collect();
        let mut samples = Samples::default();
        let of = |seeds: &[u64]| seeds.iter().map(|&seed| Case::draw(seed).trace()).collect::<Vec<Trace>>();
        let traces = std::thread::scope(|scope| {
            let threads: Vec<_> =
                seeds.chunks(seeds.len().div_ceil(2)).map(|half| scope.spawn(move || of(half))).collect();
            threads.into_iter().flat_map(|thread| thread.join().expect("no panic")).collect::<Vec<Trace>>()
        });
        traces.iter().zip(seeds).for_each(|(trace, seed)| samples.draw(trace, seed));
        samples
    }

    /// With the captures for training beside them: `half` of the real one, and a synthetic one. `None` without reference
    /// data.
    pub fn with_captures(mut self, half: usize) -> Option<Samples> {
        let halves = halves()?;
        (0..REAL_WORTH).for_each(|draw| self.draw(&halves[half], CAPTURED + draw));
        for draw in 0..SYNTHETIC_WORTH {
            let seed = CAPTURED + REAL_WORTH + draw;
            self.draw(&hosted(SYNTHETIC, seed)?, seed);
        }
        Some(self)
    }

    /// Packets, and how many of them begin a frame.
    pub fn count(&self) -> (usize, usize) {
        (self.rows.len(), self.labels.iter().filter(|label| **label).count())
    }

    /// The regression, on features of mean 0 and deviation 1, in terms of the features as they are.
    pub fn fit(&self) -> Coefficients {
        let count = self.rows.len() as f64;
        let mean: [f64; FEATURES] = std::array::from_fn(|i| self.rows.iter().map(|row| row[i]).sum::<f64>() / count);
        let scale: [f64; FEATURES] = std::array::from_fn(|i| {
            (self.rows.iter().map(|row| (row[i] - mean[i]).powi(2)).sum::<f64>() / count).sqrt()
        });
        // The last unknown is the intercept.
        let scaled = |row: &[f64; FEATURES]| -> [f64; UNKNOWNS] {
            std::array::from_fn(|i| if i < FEATURES { (row[i] - mean[i]) / scale[i] } else { 1.0 })
        };
        let rows: Vec<[f64; UNKNOWNS]> = self.rows.iter().map(scaled).collect();
        let found = newton(&rows, &self.labels);
        let weights: [f64; FEATURES] = std::array::from_fn(|i| found[i] / scale[i]);
        let moved: f64 = weights.iter().zip(&mean).map(|(weight, mean)| weight * mean).sum();
        Coefficients { intercept: found[FEATURES] - moved, weights }
    }
}

const UNKNOWNS: usize = FEATURES + 1;

/// Newton's method for the penalised likelihood: steps of at most 3 in any unknown, until one is below 1e-9.
fn newton(rows: &[[f64; UNKNOWNS]], labels: &[bool]) -> [f64; UNKNOWNS] {
    let mut found = [0.0; UNKNOWNS];
    for _ in 0..100 {
        // Slope and curvature, the latter's upper half.
        let mut slope = [0.0; UNKNOWNS];
        let mut curvature = [[0.0; UNKNOWNS]; UNKNOWNS];
        for i in 0..FEATURES {
            (slope[i], curvature[i][i]) = (-RIDGE * found[i], RIDGE);
        }
        for (row, label) in rows.iter().zip(labels) {
            let odds: f64 = row.iter().zip(&found).map(|(x, w)| x * w).sum();
            let p = 1.0 / (1.0 + (-odds).exp());
            let missed = f64::from(*label) - p;
            let weight = p * (1.0 - p);
            for i in 0..UNKNOWNS {
                slope[i] += missed * row[i];
                let scaled = weight * row[i];
                for j in i..UNKNOWNS {
                    curvature[i][j] += scaled * row[j];
                }
            }
        }
        let step = solve(curvature, slope);
        let largest = step.iter().fold(0.0, |most: f64, step| most.max(step.abs()));
        let share = (3.0 / largest).min(1.0);
        found.iter_mut().zip(step).for_each(|(found, step)| *found += share * step);
        if largest < 1e-9 {
            break;
        }
    }
    found
}

/// Solves a symmetric positive definite system, of which the upper half is given (Cholesky).
fn solve(mut a: [[f64; UNKNOWNS]; UNKNOWNS], mut b: [f64; UNKNOWNS]) -> [f64; UNKNOWNS] {
    for i in 0..UNKNOWNS {
        for j in i..UNKNOWNS {
            let known: f64 = (0..i).map(|k| a[k][i] * a[k][j]).sum();
            a[i][j] = if i == j { (a[i][i] - known).sqrt() } else { (a[i][j] - known) / a[i][i] };
        }
        let known: f64 = (0..i).map(|k| a[k][i] * b[k]).sum();
        b[i] = (b[i] - known) / a[i][i];
    }
    for i in (0..UNKNOWNS).rev() {
        let known: f64 = (i + 1..UNKNOWNS).map(|k| a[i][k] * b[k]).sum();
        b[i] = (b[i] - known) / a[i][i];
    }
    b
}

/// Seeds of draws from captures begin here.
const CAPTURED: u64 = 10_001;
