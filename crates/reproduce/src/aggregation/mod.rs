//! "Regulating queueing delay in 802.11ac WLANs" (Gringoli and Leith), figure by figure.

mod by_law;
mod changing;
mod come_and_go;
mod feasible_target;
mod gains;
mod losses;
mod many;
mod model;
mod predecessor;
mod queues;
mod saturated;
mod shared;
mod short_queue;
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
    Figure { id: "out-of-reach", title: "Targets that no rate can hold", make: feasible_target::out_of_reach },
    Figure { id: "losses", title: "Losses on the air", make: losses::losses },
    Figure { id: "short-queue", title: "Losses in the queue", make: short_queue::short_queue },
    Figure { id: "come-and-go", title: "Traffic that comes and goes", make: come_and_go::come_and_go },
    Figure { id: "two-aps", title: "Two access points on one channel", make: shared::access_points },
    Figure { id: "modern-ap", title: "Against the queue of Linux mac80211", make: queues::modern },
    Figure { id: "modern-ap-amsdu", title: "The same with A-MSDUs", make: queues::modern_amsdu },
];

const PREFACE: &str = "
# The aggregation regulator, reproduced

\"Regulating queueing delay in 802.11ac WLANs\" (Gringoli and Leith), and what goes beyond it.
Everything is simulated over Lasthop's Wi-Fi hop, which is validated against ns-3.
**Nothing here ran on radio hardware.** `lasthop reproduce aggregation` writes these pages.

## Result

{result}

## How to read it

Values, lines and bands are means over seeds, ± half of their 95 % confidence intervals. The mean
decides whether a requirement is met. A requirement without the paper's number is this project's
own.

Chosen after results had been seen: the delay at which Figure 5's time constant is judged, the
requirements on the causes in Figures 5 and 13, the predecessor's stability, CoDel at 5 ms and
A-MSDUs, and all from the channel changes to the two access points. So were changes of the law
(decisions 8 to 11 and 13, and for two access points) and that last scenario's measuring window.

A frame is an A-MPDU or a single MPDU. The modern queue is FQ-CoDel per station with airtime
fairness, as in mac80211. `regulator` is Lasthop's law, `published` the paper's. Of the paper only
captions, numbers and statements were at hand; Figure 2 is not drawn.

## Where the paper contradicts itself

* Fluctuations have one eigenvalue that is not zero, w'x; the text calls it zero.
* The backoff less its mean is within ± 67.5 us, not uniform on 0 to 135 us.
* Stability needs 0 < K1 ĉ / c < 2; its line leaves K1 out.
* ĉ < c raises z, not the measured level: in equilibrium μ1 / x1 is T.
* 23 packets at MCS 4 take 1.62 ms; the stated 2.3 ms need 32 to 33.
* Beside Figure 12 the faster station has the *lower* level; by equation (24) the higher.
* K2 = 1 is sufficient, not the edge: (4 - 2 K1) / (2 - K1 (1 - c/T)).
* Lemma 1 fails where only some stations are limited; the second example contradicts it.
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
