//! Interframe spaces and contention windows.
//! Source:     IEEE 802.11-2020: 10.3.2.3 (interframe spaces), 10.3.2.11 (Ack timeout), tables 17-21, 18-5, 19-25 and
//!             21-28 (slot and SIFS), table 9-155 (EDCA parameters that stations have by default), annex C,
//!             dot11QAPEDCATable (those that an access point itself has by default); TXOP limits: WMM specification 1.2,
//!             which access points announce and have (hostapd's defaults): 0 for AC_BK and AC_BE, 94 and 47 units of
//!             32 us for AC_VI and AC_VO.
//! Equations:  DIFS = SIFS + 2 slots;  AIFS = SIFS + AIFSN slots;  EIFS = SIFS + Ack at the lowest basic rate + DIFS;
//!             Ack timeout = CTS timeout = SIFS + slot + PHY start delay of the answer: its preamble and header;
//!             NAV of an RTS ends if nothing begins within 2 SIFS + CTS + PHY start delay + 2 slots
//! Symbols:    EIFS - DIFS -> `eifs_extra`
//! Deviations: `Profile::Ns3_3_37` gives access points the stations' values, as ns-3 does, and AC_VO, which carries the
//!             beacons, what ns-3's beacon queue has: AIFSN 1 and no backoff. The NAV of any RTS ends as that of
//!             one at the lowest basic rate. 802.11g, n and ax at 2.4 GHz without DSSS rates count the Ack of an
//!             EIFS at 6 Mbit/s.
//! Validity:   OFDM, DSSS and CCK with the short slot.     Checked by: wifi::tests::*, tests/integration/edca.rs

use super::phy::Profile;
use super::phy::{Band, Mode, Standard};
use super::plan::{ACK, CTS};
use crate::AccessClass;
use lasthop_units::Span;

#[derive(Clone, Copy, Debug)]
pub(super) struct Timing {
    pub slot: Span,
    pub sifs: Span,
    /// From the end of a frame to the moment its missing Ack is noticed, without the PHY start delay of the Ack.
    pub answer_begins: Span,
    /// What a damaged frame adds to the space before the next access.
    pub eifs_extra: Span,
    /// How long after an RTS the frame that answers to its CTS must have begun.
    pub rts_nav: Span,
}

/// How one class contends.
#[derive(Clone, Copy, Debug)]
pub(super) struct Edca {
    pub aifs: Span,
    pub cw_min: u16,
    pub cw_max: u16,
    /// TXOP limit; zero for one exchange.
    pub txop: Span,
    /// EDCA: a slot boundary at which the medium turns busy has been counted; DCF counts slots that stayed idle.
    pub counts_boundary: bool,
}

/// Classes of a node that contend separately: four with EDCA, one with DCF.
pub(super) fn classes(standard: Standard) -> usize {
    if standard.is_qos() { 4 } else { 1 }
}

/// Which contender of its node sends a class, where classes contend separately. Higher numbers win when both would send
/// at once.
#[inline]
pub(super) fn contender_of(class: AccessClass) -> usize {
    match class {
        AccessClass::Background => 0,
        AccessClass::BestEffort => 1,
        AccessClass::Video => 2,
        AccessClass::Voice => 3,
    }
}

/// How each class of an access point, or of another node, contends; DCF uses the first only.
pub(super) fn edca(standard: Standard, profile: Profile, ap: bool) -> [Edca; 4] {
    let (sifs, counts_boundary) = (sifs(standard), standard.is_qos());
    let of = |aifsn: u64, cw_min, cw_max, txop_units: u64| {
        let (aifs, txop) = (sifs + SLOT * aifsn, Span::from_micros(32 * txop_units));
        Edca { aifs, cw_min, cw_max, txop, counts_boundary }
    };
    match profile {
        _ if !standard.is_qos() => [of(2, 15, 1023, 0); 4],
        Profile::Standard if ap => [of(7, 15, 1023, 0), of(3, 15, 63, 0), of(1, 7, 15, 94), of(1, 3, 7, 47)],
        Profile::Standard => [of(7, 15, 1023, 0), of(3, 15, 1023, 0), of(2, 7, 15, 94), of(2, 3, 7, 47)],
        Profile::Ns3_3_37 => [of(7, 15, 1023, 0), of(3, 15, 1023, 0), of(2, 7, 15, 94), of(1, 0, 0, 0)],
    }
}

const SLOT: Span = Span::from_micros(9);

fn sifs(standard: Standard) -> Span {
    match standard.band() {
        Band::Ghz2_4 => Span::from_micros(10),
        Band::Ghz5 => Span::from_micros(16),
    }
}

impl Timing {
    /// What all standards of a band have in common.
    pub fn new(standard: Standard) -> Timing {
        let (slot, sifs) = (SLOT, sifs(standard));
        let lowest = Mode::lowest(standard);
        // The start of an answer is known after its preamble and PHY header.
        let start_delay = lowest.preamble();
        Timing {
            slot,
            sifs,
            answer_begins: sifs + slot,
            eifs_extra: sifs + lowest.duration(ACK),
            rts_nav: sifs * 2 + lowest.duration(CTS) + start_delay + slot * 2,
        }
    }
}
