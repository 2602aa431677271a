//! "Regulating queueing delay in 802.11ac WLANs" (Gringoli and Leith), figure by figure.

mod by_law;
mod changing;
mod come_and_go;
mod gains;
mod losses;
mod many;
mod model;
mod predecessor;
mod queues;
mod reach;
mod room;
mod saturated;
mod shared;
mod single;
mod unlike;

use crate::{Figure, System};
use lasthop_laws::aggregation::model::{Hop, Link, aim_packets, airtime, most_packets};
use lasthop_report::page::mean;

pub(super) const SYSTEM: System = System {
    name: "aggregation",
    title: "The aggregation regulator (Gringoli and Leith)",
    figures: &FIGURES,
    preface: PREFACE,
    headlines: &["13"],
};

const FIGURES: [Figure; 19] = [
    Figure { id: "1b", title: "Delay and aggregation against the send rate", make: single::rate_sweep },
    Figure { id: "4", title: "The model of the mean aggregation level", make: model::model },
    Figure { id: "5", title: "Deviation and time constant of the aggregation level", make: single::fluctuations },
    Figure { id: "7", title: "Step responses over the gain K1", make: gains::inner },
    Figure { id: "8", title: "Ten stations join one: the estimate of the overhead", make: many::joining },
    Figure { id: "10", title: "The gain K2, and T = 2.5 ms at three MCS", make: gains::outer },
    Figure { id: "11", title: "The target held for 1 to 25 stations", make: many::regulation },
    Figure { id: "12", title: "Three stations, T = 10 ms", make: unlike::three },
    Figure { id: "13", title: "One station at full rate beside CUBIC and BBR", make: single::full_rate },
    Figure {
        id: "allocations",
        title: "Stations of unlike rates: published allocation and optimum",
        make: unlike::allocations,
    },
    Figure {
        id: "predecessor",
        title: "The linear predecessor at its own point, and with its gain scaled",
        make: predecessor::predecessor,
    },
    Figure { id: "tracking", title: "The channel changes: MCS, and legacy neighbours", make: changing::tracking },
    Figure { id: "out-of-reach", title: "Targets that no rate can hold", make: reach::out_of_reach },
    Figure { id: "losses", title: "Losses on the air", make: losses::losses },
    Figure { id: "room", title: "Losses in the queue", make: room::room },
    Figure { id: "come-and-go", title: "Traffic that comes and goes", make: come_and_go::come_and_go },
    Figure { id: "two-aps", title: "Two access points on one channel", make: shared::access_points },
    Figure { id: "modern-ap", title: "Against the queue of Linux mac80211", make: queues::modern },
    Figure { id: "modern-ap-amsdu", title: "The same with A-MSDUs", make: queues::modern_amsdu },
];

const PREFACE: &str = "
# The aggregation regulator, reproduced

Written by `lasthop reproduce aggregation`; `--quick` takes one seed and fewer points, `--figure N` one figure, `--out DIR`
writes elsewhere. Everything was simulated in virtual time over Lasthop's model of the Wi-Fi hop, which is validated against
ns-3. **Nothing here ran on radio hardware.** On this page a frame is an A-MPDU, or an MPDU that is sent alone.

## Result

{result}

## How to read it

Values are means over the seeds of each scenario, ± half of their 95 % confidence intervals (of ratios of means, these are of the seeds paired). Fits,
largest departures over many points or stations, words such as stable, and what the model alone says have none. A requirement is met or not by the
means (of the allocations by the lower end of the interval), however wide the interval is.

Requirements marked `issue`, and those of the paper's figures, were written down before the first run. These came later, when results had been seen:

* the thresholds where the channel changes, of targets that no rate can hold, of losses on the air and in the queue, of traffic that comes and goes, and of two access points;
* the world with A-MSDUs, and what is asked there and of mac80211's queue with CoDel's target at 5 ms;
* the third around Figure 13's overhead, Figure 5's checks, and what the predecessor's section calls stable.

So were these changed after results had been seen, and no requirement, warm-up or scenario with them but one window:

* The third term of G is its fixed point, which is the same equilibrium: as specified it made the outer loop climb so slowly on fast hops that the warm-ups of
  Figures 10 and 12 ended long before it had arrived.
* The law, for hops that change (decision 8) and for two access points, for targets that no rate can hold (9), for losses on the air (10), for traffic that comes and
  goes (11), and for losses in the queue (13).
* The measuring window of the scenario with two access points, when it was seen how long they take to come to equal shares; its picture shows the way.

The paper's pictures were not at hand, only its numbers and statements. Which figure shows which of them is inferred; where a picture's curve is not known, ours
stands alone and nothing is claimed about it.

## Where the paper contradicts itself

* The matrix by which fluctuations of the aggregation level go on has one eigenvalue that is not zero, w'x; the text calls it zero.
* The backoff's time less its mean is called uniform on 0 to 135 us. The backoff is that; less its mean it is within ± 67.5 us.
* The line on stability leaves K1 out of (I - Γ); the condition is on K1 γ, 0 < K1 γ < 2, with γ = ĉ / c.
* W'W = n w1 should read w'W = n w1.
* γ < 1 is said to raise the aggregation level. It raises z, not the level that is measured: in equilibrium μ1 / x1 is T, whatever ĉ is.
* MCS 4 with 23 packets a frame is stated to take 2.3 ms; 23 packets take 1.62 ms, and 2.3 ms need 32 to 33.
* The text beside Figure 12 lets the faster station have the *lower* aggregation level; equation (24) makes levels proportional
  to the data rate.
* K2 = 1 is called the boundary of stability. It is sufficient, not necessary: the edge is (4 - 2 K1) / (2 - K1 (1 - c/T)), 1.88
  with ten stations and T = 10 ms.
* Lemma 1 does not hold where some stations are at their limit and others are not (the page on allocations); the paper's own second
  example contradicts it.
";

/// Packet and what surrounds it, bits.
const PACKET_BITS: f64 = 12_000.0;
/// A-MPDU subframe of a full packet in the model hop: 1500 B, 44 B of headers, padding and delimiter.
const SUBFRAME_BITS: f64 = 1544.0 * 8.0;
/// AIFS, mean backoff, preamble of two streams, SIFS, BlockAck at 24 Mbit/s, half a symbol: the overhead of an access that the
/// standard's timing gives, seconds.
const ACCESS: f64 = (43.0 + 67.5 + 44.0 + 16.0 + 32.0 + 2.0) * 1e-6;

/// The hop as the model has it, with `overhead` seconds an access, for stations at these rates; `most` says what limits the
/// levels: the frame, or what is aimed at.
fn hop(overhead: f64, mbit: &[f64], bits: f64, aim: bool) -> Hop {
    let link = |rate: &f64| {
        let airtime = airtime(bits, rate * 1e6);
        let most = if aim { aim_packets(48.0, airtime) } else { most_packets(64.0, airtime) };
        Link { airtime, most }
    };
    Hop { overhead: overhead * mbit.len() as f64, links: mbit.iter().map(link).collect() }
}

/// True if `got` lies within `share` of `want`.
fn near(got: Option<f64>, want: f64, share: f64) -> bool {
    got.is_some_and(|got| (got / want - 1.0).abs() <= share)
}
