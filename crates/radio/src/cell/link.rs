//! What quality a terminal reports at a power that it receives.
//! Source:     3GPP TS 36.214 section 5.1.1 (RSRP: the power of one resource element); TR 36.942 (noise figure of a terminal, 9 dB).
//!             Piro et al., European Wireless 2010, as ns-3 has it: what modulation and coding lose to Shannon's bound.
//! Equations:  SINR = RSRP - (-174 dBm/Hz + 10 log10 15 kHz + noise figure) - margin;   efficiency = log2(1 + SINR / gap),
//!             gap = -ln(5 BER) / 1.5, BER = 5e-5;   the highest CQI with an efficiency not above that
//! Deviations: interference is a margin, the same everywhere. In measured drives it is not: see the traces of `scenarios/pbe`.
//! Validity:   the gap is for error rates of blocks that link adaptation aims at; fading is in the power that is given, or nowhere.
//! Checked by: tests::*, against the vectors of ns-3's lte-test-link-adaptation

use super::mcs::{Cqi, Tables};
use crate::wifi::{Db, Dbm};

/// Thermal noise at 290 K, in dBm in each hertz.
const THERMAL: f64 = -174.0;
/// A resource element, in hertz.
const ELEMENT: f64 = 15_000.0;
/// The error rate that the gap to Shannon's bound is for.
const BIT_ERRORS: f64 = 5e-5;

/// What stands between the power of a terminal's cell and its quality.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Link {
    /// Noise figure of the terminal.
    pub noise_figure: Db,
    /// By how much interference is above the terminal's noise, both together.
    pub margin: Db,
}

impl Link {
    /// The ratio of a reference signal of this power to noise and interference.
    pub fn sinr(self, rsrp: Dbm) -> Db {
        let noise = THERMAL + 10.0 * ELEMENT.log10() + self.noise_figure.0;
        Db(rsrp.0 - noise - self.margin.0)
    }

    /// The quality at that power; out of range if it does not suffice for the lowest.
    pub fn cqi(self, rsrp: Dbm, tables: Tables) -> Cqi {
        let efficiency = efficiency(self.sinr(rsrp));
        let carries = |cqi: &Cqi| cqi.efficiency(tables) <= efficiency;
        Cqi::all().rev().find(carries).unwrap_or(Cqi::OUT_OF_RANGE)
    }
}

/// Bits that a resource element can carry at this ratio.
fn efficiency(sinr: Db) -> f64 {
    let gap = -(5.0 * BIT_ERRORS).ln() / 1.5;
    (1.0 + sinr.linear() / gap).log2()
}

#[cfg(test)]
mod tests {
    use super::super::mcs::Mcs;
    use super::*;

    /// Noise of a resource element is -132.24 dBm with a perfect receiver: at this power the ratio is `sinr`.
    fn quality(sinr: f64) -> Cqi {
        let link = Link { noise_figure: Db(0.0), margin: Db(0.0) };
        link.cqi(Dbm(sinr - 174.0 + 10.0 * 15_000f64.log10() + 1e-9), Tables::Qam64)
    }

    #[test]
    fn qualities_are_those_of_ns3s_link_adaptation() {
        // lte-test-link-adaptation: ratio in dB, efficiency, scheme (-1: out of range).
        let vectors = [
            (-5.0, 0.08024, -1),
            (-3.0, 0.12518, -1),
            (-2.0, 0.15589, 0),
            (0.0, 0.23983, 2),
            (3.0, 0.44451, 4),
            (5.0, 0.65251, 6),
            (7.0, 0.93086, 8),
            (9.0, 1.28485, 10),
            (10.0, 1.48981, 12),
            (12.0, 1.95096, 14),
            (14.0, 2.47062, 16),
            (15.0, 2.74826, 18),
            (18.0, 3.63355, 20),
            (20.0, 4.25439, 22),
            (22.0, 4.89060, 24),
            (23.0, 5.21276, 26),
            (24.0, 5.53693, 26),
            (25.0, 5.86271, 28),
            (30.0, 7.50663, 28),
        ];
        for (sinr, bits, mcs) in vectors {
            assert!((efficiency(Db(sinr)) - bits).abs() < 1e-5, "{sinr} dB: {}", efficiency(Db(sinr)));
            let got = Mcs::for_cqi(quality(sinr), Tables::Qam64).map_or(-1, |mcs| i32::from(mcs.number()));
            assert_eq!(got, mcs, "{sinr} dB");
        }
    }

    #[test]
    fn a_handset_hears_noise_of_123_dbm() {
        // -174 + 41.76 + 9 = -123.24 dBm.
        let handset = Link { noise_figure: Db(9.0), margin: Db(3.0) };
        assert!((handset.sinr(Dbm(-105.0)).0 - 15.239).abs() < 1e-3);
        let at = |rsrp| handset.cqi(Dbm(rsrp), Tables::Qam64).number();
        assert_eq!([at(-85.0), at(-105.0), at(-115.0), at(-130.0)], [15, 10, 4, 0]);
        assert!(handset.cqi(Dbm(-95.0), Tables::Qam256) < handset.cqi(Dbm(-90.0), Tables::Qam256));
        assert!((-140..-40).is_sorted_by_key(|rsrp| at(f64::from(rsrp))));
    }
}
