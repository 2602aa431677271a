//! What can be wrong with a description of a Wi-Fi hop.

use lasthop_signals::Node;
use lasthop_units::Span;

/// A value of [`super::Params`] that no hop can be built from.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A number lies outside its bounds.
    #[error("{key} = {got} is outside {min} to {max}")]
    OutOfRange {
        /// Where in the parameters.
        key: String,
        /// The value found.
        got: f64,
        /// Smallest legal value.
        min: f64,
        /// Largest legal value.
        max: f64,
    },
    /// The channel is wider than the standard knows.
    #[error("width = {mhz} MHz is not part of {standard}; it ends at {most} MHz")]
    Width {
        /// The value found.
        mhz: u16,
        /// The standard chosen.
        standard: &'static str,
        /// The widest that it has, in MHz.
        most: u16,
    },
    /// The standard has no such guard interval.
    #[error("guard_interval = {got} is not part of {standard}")]
    GuardInterval {
        /// The value found.
        got: Span,
        /// The standard chosen.
        standard: &'static str,
    },
    /// A node that works in another band than the hop.
    #[error("{key}: {got} is in another band than the hop, which is {hop}")]
    Band {
        /// Where in the parameters.
        key: String,
        /// The node's standard.
        got: &'static str,
        /// The hop's.
        hop: &'static str,
    },
    /// Modulation, streams and width do not go together.
    #[error("{key}: MCS {mcs} with {nss} spatial stream(s) at {mhz} MHz is not part of {standard}")]
    Mcs {
        /// Where in the parameters.
        key: String,
        /// MCS index.
        mcs: u8,
        /// Spatial streams.
        nss: u8,
        /// Channel width.
        mhz: u16,
        /// The standard chosen.
        standard: &'static str,
    },
    /// A rate control that the standard's frames are not for.
    #[error("{key}: {control} goes by frames of one MPDU and is for 802.11a and g, not for {standard}")]
    RateControl {
        /// Where in the parameters.
        key: String,
        /// The rate control.
        control: &'static str,
        /// The node's standard.
        standard: &'static str,
    },
    /// A list that must hold something is empty.
    #[error("{key} is empty")]
    Empty {
        /// Where in the parameters.
        key: String,
    },
    /// Times do not increase.
    #[error("{key} does not come after the one before it")]
    Order {
        /// Where in the parameters.
        key: String,
    },
    /// A node that does not exist, or is not what it should be.
    #[error("{key} = {got:?} is not {needs}")]
    Node {
        /// Where in the parameters.
        key: String,
        /// The node named.
        got: Node,
        /// What it should be.
        needs: &'static str,
    },
    /// The matrix is made for another number of nodes.
    #[error("reach is a matrix for {got} nodes, but there are {nodes}")]
    ReachSize {
        /// Nodes in the matrix.
        got: usize,
        /// Nodes in the parameters.
        nodes: usize,
    },
    /// Two ends of a link that must decode each other do not.
    #[error("{key}: {from:?} and {to:?} must decode each other, but reach says otherwise")]
    OutOfReach {
        /// Where in the parameters.
        key: String,
        /// Transmitter.
        from: Node,
        /// Receiver.
        to: Node,
    },
}
