//! Interframe spaces and contention windows.
//! Source:     IEEE 802.11-2020: 10.3.2.3 (interframe spaces), 10.3.2.11 (Ack timeout), tables 17-21, 18-5, 19-25 and
//!             21-28 (slot and SIFS), table 9-155 (default EDCA parameters).
//! Equations:  DIFS = SIFS + 2 slots;  AIFS = SIFS + AIFSN slots;  EIFS = SIFS + Ack at the lowest basic rate + DIFS;
//!             Ack timeout = SIFS + slot + PHY start delay
//! Symbols:    EIFS - DIFS -> `eifs_extra`
//! Deviations: TXOP limits are 0: one exchange each time the channel is won. Access points use the stations' values.
//! Validity:   OFDM with the short slot.     Checked by: wifi::tests::*

use super::phy::{Band, Mode, Standard};
use super::plan::ACK;
use crate::AccessClass;
use lasthop_units::Span;

#[derive(Clone, Copy, Debug)]
pub(super) struct Timing {
    pub slot: Span,
    pub sifs: Span,
    /// From the end of a frame to the moment its missing Ack is noticed.
    pub ack_timeout: Span,
    /// What a damaged frame adds to the space before the next access.
    pub eifs_extra: Span,
    /// Per class; DCF uses the first only.
    pub edca: [Edca; 4],
    /// EDCA: a slot boundary at which the medium turns busy has been counted; DCF counts slots that stayed idle.
    pub counts_boundary: bool,
}

/// How one class contends.
#[derive(Clone, Copy, Debug)]
pub(super) struct Edca {
    pub aifs: Span,
    pub cw_min: u16,
    pub cw_max: u16,
}

/// Classes of a node that contend separately: four with EDCA, one with DCF.
pub(super) fn classes(standard: Standard) -> usize {
    if standard.is_qos() { 4 } else { 1 }
}

/// Which contender of its node sends a class. Higher numbers win when both would send at once.
pub(super) fn contender_of(standard: Standard, class: AccessClass) -> usize {
    match class {
        _ if !standard.is_qos() => 0,
        AccessClass::Background => 0,
        AccessClass::BestEffort => 1,
        AccessClass::Video => 2,
        AccessClass::Voice => 3,
    }
}

impl Timing {
    pub fn new(standard: Standard) -> Timing {
        let slot = Span::from_micros(9);
        let sifs = match standard.band() {
            Band::Ghz2_4 => Span::from_micros(10),
            Band::Ghz5 => Span::from_micros(16),
        };
        let edca = |aifsn: u64, cw_min, cw_max| Edca { aifs: sifs + slot * aifsn, cw_min, cw_max };
        let lowest = Mode::lowest(standard);
        Timing {
            slot,
            sifs,
            // An Ack is a non-HT PPDU: its start is known after preamble and SIGNAL.
            ack_timeout: sifs + slot + lowest.preamble(),
            eifs_extra: sifs + lowest.duration(ACK),
            edca: if standard.is_qos() {
                [edca(7, 15, 1023), edca(3, 15, 1023), edca(2, 7, 15), edca(2, 3, 7)]
            } else {
                [edca(2, 15, 1023); 4]
            },
            counts_boundary: standard.is_qos(),
        }
    }
}
