//! From a differentiated services code point to an 802.11 user priority.
//! Source:     RFC 8325 (2018), 4.3 and its table; RFC 8622 (2019), section 11 for LE; code points by RFC 4594.
//! Equations:  UP = the three upper bits of the code point, but for the code points of the table.
//! Deviations: none from Linux (cfg80211_classify8021d since 6.8, without a QoS map) but LE, which Linux sends as best effort.
//! Checked by: tests::*

/// The code points that Lasthop marks with.
pub mod code {
    /// Default forwarding.
    pub const DEFAULT: u8 = 0;
    /// Class selector 1: low-priority data.
    pub const CS1: u8 = 8;
    /// Assured forwarding 41: multimedia conferencing.
    pub const AF41: u8 = 34;
    /// Expedited forwarding: telephony.
    pub const EF: u8 = 46;
}

/// The user priority, 0 to 7, of a packet with this code point.
pub const fn user_priority(dscp: u8) -> u8 {
    match dscp {
        // LE: lower effort.
        1 => 1,
        // AF11, AF12, AF13; CS2.
        10 | 12 | 14 | 16 => 0,
        // AF21, AF22, AF23.
        18 | 20 | 22 => 3,
        // CS3; AF31, AF32, AF33.
        24 | 26 | 28 | 30 => 4,
        // VOICE-ADMIT, EF.
        44 | 46 => 6,
        // CS6.
        48 => 7,
        _ => (dscp & 0x3f) >> 3,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rfc_4594_classes_get_rfc_8325_priorities() {
        // Figure 1 of RFC 8325, from network control to low-priority data, and LE of RFC 8622.
        let table: [(&[u8], u8); 12] = [
            (&[48, 56], 7),
            (&[46, 44], 6),
            (&[40], 5),
            (&[34, 36, 38], 4),
            (&[32], 4),
            (&[26, 28, 30], 4),
            (&[24], 4),
            (&[18, 20, 22], 3),
            (&[16], 0),
            (&[10, 12, 14], 0),
            (&[0], 0),
            (&[8, 1], 1),
        ];
        for (codes, priority) in table {
            for &dscp in codes {
                assert_eq!(user_priority(dscp), priority, "DSCP {dscp}");
            }
        }
        assert!((0..=u8::MAX).all(|dscp| user_priority(dscp) < 8));
    }
}
