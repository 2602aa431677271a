//! Channels of the access points, and with them of their stations and of neighbours: nodes of different ones do not hear each
//! other.

use super::{Air, phy};
use crate::quantity::either;
use crate::read::{At, Context};
use crate::tables::Tables;
use lasthop_radio::wifi::{Reach, ReachMatrix};
use lasthop_signals::Node;

/// The channel of each further access point. One that overlaps with another is refused.
pub(super) fn further(raw: &Tables, air: Air, cx: &mut Context) -> Option<Vec<u8>> {
    let own = air.channel?;
    let mut channels: Vec<u8> = Vec::new();
    let mut legal = true;
    for table in raw.access_point.get()? {
        if !table.channel.given {
            channels.push(own);
            continue;
        }
        let channel = super::channel(&table.channel, air.standard, air.width, cx);
        let Some(channel) = channel else {
            legal = false;
            continue;
        };
        if (channel < LOW) != (own < LOW) {
            let what = format!("channel {channel} is in another band than channel {own}");
            cx.impossible(&table.channel.at, what, "write a channel of the same band");
            legal = false;
        } else if let Some(other) = channels.iter().chain([&own]).find(|other| overlap(air, channel, **other)) {
            let what = format!("channel {channel} overlaps with channel {other}");
            cx.impossible(
                &table.channel.at,
                what,
                "write the same channel, or one further away (1, 6, 11; 36, 40, 44)",
            );
            legal = false;
        }
        channels.push(channel);
    }
    legal.then_some(channels)
}

/// Numbers below are of 2.4 GHz.
const LOW: u8 = 15;

/// True if two channels are different and have frequencies in common.
fn overlap(air: Air, a: u8, b: u8) -> bool {
    let Some(mhz) = air.width.and_then(phy::radio_width).map(|width| u8::try_from(width.mhz()).unwrap_or(u8::MAX))
    else {
        return false;
    };
    if a == b {
        return false;
    }
    // There they are 5 MHz apart, and 22 MHz of DSSS, or 20 of OFDM with its edges, need five of those (annex E).
    if a < LOW {
        return a.abs_diff(b) < mhz / 5 + 1;
    }
    // At 5 GHz, channels are of a grid with one place for every width.
    let block = |channel: u8| {
        let first = [36, 100, 149].into_iter().rfind(|first| *first <= channel).unwrap_or(36);
        (first, (channel - first) / (mhz / 5))
    };
    block(a) == block(b)
}

/// Refuses a neighbour on a channel that no access point has.
pub(super) fn heard(at: &At, own: u64, used: &[u8], cx: &mut Context) {
    if used.iter().any(|channel| u64::from(*channel) == own) {
        return;
    }
    let mut used: Vec<String> = used.iter().map(u8::to_string).collect();
    used.dedup();
    let what = format!("a neighbour on channel {own} is not heard on channel {}", used.join(", "));
    let remedy = format!("write `channel = {}`, or delete the neighbour: it changes nothing", either(&used));
    cx.impossible(at, what, remedy);
}

/// Takes from the reach what lies between channels.
pub(super) fn separate(reach: &mut ReachMatrix, channels: &[u8]) {
    let nodes = 0..u16::try_from(channels.len()).unwrap_or(u16::MAX);
    for a in nodes.clone() {
        for b in nodes.clone().skip(usize::from(a) + 1) {
            if channels[usize::from(a)] != channels[usize::from(b)] {
                reach.set_both(Node(a), Node(b), Reach::None);
            }
        }
    }
}
