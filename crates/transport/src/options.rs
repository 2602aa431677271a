//! What the two ends agree on in their SYNs.
//! Source:     RFC 9293 section 3.7.1 with RFC 6691 (MSS), RFC 7323 sections 2 and 3, RFC 2018 section 2.

use crate::config::Config;
use lasthop_units::Time;
use lasthop_wire::tcp::{TcpOptions, Timestamps};

/// Octets that the timestamps option takes in every segment, padding included.
const TIMESTAMPS_LEN: u16 = 12;
/// The largest shift that RFC 7323 (section 2.3) lets an end use.
const MAX_SCALE: u8 = 14;
/// What to send if the peer's SYN names no MSS (RFC 9293, section 3.7.1, for IPv4).
const DEFAULT_MSS: u16 = 536;

/// The agreement, once both SYNs are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Agreed {
    /// Largest payload to send.
    pub(crate) mss: u32,
    /// Shift of the windows that the peer advertises; `None` if the peer does not scale, and so neither do we.
    pub(crate) peer_scale: Option<u8>,
    /// SACK may be used.
    pub(crate) sack: bool,
    /// Timestamps are used.
    pub(crate) timestamps: bool,
}

impl Agreed {
    /// From our configuration and the options of the peer's SYN. Each of our segments carries a
    /// further option of `further` octets.
    pub(crate) fn with(config: &Config, further: u16, peer: &TcpOptions) -> Agreed {
        let timestamps = peer.timestamps.is_some();
        // The MSS option counts payload and options together, so every segment pays for its timestamps.
        let option_len = further + if timestamps { TIMESTAMPS_LEN } else { 0 };
        let ours = config.mss.saturating_sub(further);
        let theirs = peer.mss.unwrap_or(DEFAULT_MSS).saturating_sub(option_len).max(1);
        Agreed {
            mss: u32::from(ours.min(theirs).max(1)),
            peer_scale: peer.window_scale.map(|shift| shift.min(MAX_SCALE)),
            sack: peer.sack_permitted && config.loss_recovery.has_sack(),
            timestamps,
        }
    }
}

/// The options of our own SYN; in a SYN-ACK, only what `peer` offered.
pub(crate) fn syn(config: &Config, scale: u8, timestamps: Timestamps, peer: Option<&TcpOptions>) -> TcpOptions {
    let offered = |has: fn(&TcpOptions) -> bool| peer.is_none_or(has);
    TcpOptions {
        mss: Some(config.mss.saturating_add(TIMESTAMPS_LEN)),
        window_scale: offered(|o| o.window_scale.is_some()).then_some(scale),
        sack_permitted: offered(|o| o.sack_permitted) && config.loss_recovery.has_sack(),
        timestamps: offered(|o| o.timestamps.is_some()).then_some(timestamps),
        ..TcpOptions::default()
    }
}

/// The timestamp clock: milliseconds, offset by the initial sequence number so that it tells nothing of the host.
pub(crate) fn timestamp(config: &Config, now: Time) -> u32 {
    // The clock is 32 bits wide by definition (RFC 7323, section 4.1).
    ((now.as_nanos() / 1_000_000) as u32).wrapping_add(config.initial_seq)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_default_ends_agree_on_everything() {
        let config = Config::default();
        let theirs = syn(&config, 10, Timestamps { val: 1, ecr: 0 }, None);
        let agreed = Agreed::with(&config, 0, &theirs);
        assert_eq!(agreed, Agreed { mss: 1448, peer_scale: Some(10), sack: true, timestamps: true });
    }

    #[test]
    fn a_syn_ack_offers_only_what_the_syn_did() {
        let bare = TcpOptions { mss: Some(1000), ..TcpOptions::default() };
        let answer = syn(&Config::default(), 10, Timestamps { val: 1, ecr: 0 }, Some(&bare));
        assert_eq!((answer.window_scale, answer.sack_permitted, answer.timestamps), (None, false, None));
        let agreed = Agreed::with(&Config::default(), 0, &bare);
        assert_eq!(agreed, Agreed { mss: 1000, peer_scale: None, sack: false, timestamps: false });
    }

    #[test]
    fn a_shift_beyond_fourteen_counts_as_fourteen() {
        let odd = TcpOptions { window_scale: Some(40), ..TcpOptions::default() };
        assert_eq!(Agreed::with(&Config::default(), 0, &odd).peer_scale, Some(14));
    }
}
