//! Between radiotap's ways of telling a rate and [`TxVector`].

use super::{He, Mcs, Radiotap, Vht};
use lasthop_signals::phy::{Format, GuardInterval, TxVector, Width};
use lasthop_units::Rate;

impl Radiotap {
    /// How the frame was sent. `None` if the header does not say enough, and for what [`TxVector`] does not describe:
    /// parts of a channel, dual carrier modulation, unequal modulation.
    pub fn tx_vector(&self) -> Option<TxVector> {
        if let Some(eht) = &self.eht {
            return self.eht_vector(eht);
        }
        if let Some(he) = self.he {
            return he.tx_vector();
        }
        if let Some(vht) = self.vht {
            return vht.tx_vector();
        }
        if let Some(mcs) = self.mcs {
            return mcs.tx_vector();
        }
        TxVector::legacy(Rate::from_bps(u64::from(self.rate?) * LEGACY_UNIT))
    }

    /// Sets the field, or the rate, that tells how a frame was sent.
    pub fn set_tx_vector(&mut self, tx: TxVector) {
        (self.rate, self.mcs, self.vht, self.he) = (None, None, None, None);
        (self.usig, self.eht) = (None, None);
        match tx.format {
            Format::Dsss | Format::NonHt => {
                self.rate = tx.rate().and_then(|rate| u8::try_from(rate.as_bps() / LEGACY_UNIT).ok());
            }
            Format::Ht => self.mcs = Some(Mcs::of(tx)),
            Format::Vht => self.vht = Some(Vht::of(tx)),
            Format::He => self.he = Some(He::of(tx)),
            Format::Eht => self.set_eht_vector(tx),
        }
    }
}

/// Radiotap's unit of legacy rates.
const LEGACY_UNIT: u64 = 500_000;

impl Mcs {
    const KNOWN_BANDWIDTH: u8 = 0x01;
    const KNOWN_INDEX: u8 = 0x02;
    const KNOWN_GUARD: u8 = 0x04;
    const KNOWN_FORMAT: u8 = 0x08;
    const BANDWIDTH: u8 = 0x03;
    const SHORT_GUARD: u8 = 0x04;

    fn tx_vector(&self) -> Option<TxVector> {
        // 32 is a duplicate at 6 Mbit/s, what follows has unequal modulation.
        if self.known & Mcs::KNOWN_INDEX == 0 || self.index > 31 {
            return None;
        }
        let wide = self.known & Mcs::KNOWN_BANDWIDTH != 0 && self.flags & Mcs::BANDWIDTH == 1;
        let short = self.known & Mcs::KNOWN_GUARD != 0 && self.flags & Mcs::SHORT_GUARD != 0;
        Some(TxVector {
            format: Format::Ht,
            mcs: self.index % 8,
            nss: 1 + self.index / 8,
            width: if wide { Width::Mhz40 } else { Width::Mhz20 },
            guard_interval: guard(short),
        })
    }

    fn of(tx: TxVector) -> Mcs {
        let bandwidth = u8::from(tx.width != Width::Mhz20);
        let short = if tx.guard_interval == GuardInterval::Ns400 { Mcs::SHORT_GUARD } else { 0 };
        let known = Mcs::KNOWN_BANDWIDTH | Mcs::KNOWN_INDEX | Mcs::KNOWN_GUARD | Mcs::KNOWN_FORMAT;
        Mcs { known, flags: bandwidth | short, index: tx.mcs + 8 * tx.nss.saturating_sub(1) }
    }
}

impl Vht {
    const KNOWN_GUARD: u16 = 0x0004;
    const KNOWN_BANDWIDTH: u16 = 0x0040;
    const SHORT_GUARD: u8 = 0x04;

    fn tx_vector(&self) -> Option<TxVector> {
        // Of several users the first: which of them is meant cannot be known.
        let user = self.mcs_nss.iter().find(|&&user| user & 0x0f != 0)?;
        let width = match self.bandwidth & 0x1f {
            _ if self.known & Vht::KNOWN_BANDWIDTH == 0 => return None,
            0 | 2 | 3 | 7..=10 | 18..=25 => Width::Mhz20,
            1 | 5 | 6 | 14..=17 => Width::Mhz40,
            4 | 12 | 13 => Width::Mhz80,
            11 => Width::Mhz160,
            _ => return None,
        };
        let short = self.known & Vht::KNOWN_GUARD != 0 && self.flags & Vht::SHORT_GUARD != 0;
        Some(TxVector { format: Format::Vht, mcs: user >> 4, nss: user & 0x0f, width, guard_interval: guard(short) })
    }

    fn of(tx: TxVector) -> Vht {
        let bandwidth = match tx.width {
            Width::Mhz20 => 0,
            Width::Mhz40 => 1,
            Width::Mhz80 => 4,
            // No VHT PPDU is wider.
            Width::Mhz160 | Width::Mhz320 => 11,
        };
        Vht {
            known: Vht::KNOWN_GUARD | Vht::KNOWN_BANDWIDTH,
            flags: if tx.guard_interval == GuardInterval::Ns400 { Vht::SHORT_GUARD } else { 0 },
            bandwidth,
            mcs_nss: [tx.mcs << 4 | (tx.nss & 0x0f), 0, 0, 0],
            ..Vht::default()
        }
    }
}

impl He {
    const KNOWN_MCS: u16 = 0x0020;
    const KNOWN_WIDTH: u16 = 0x4000;
    const KNOWN_GUARD: u16 = 0x0002;
    const DUAL_CARRIER: u16 = 0x1000;

    fn tx_vector(&self) -> Option<TxVector> {
        let [data1, data2, data3, _, data5, data6] = self.data;
        let known = data1 & He::KNOWN_MCS != 0 && data1 & He::KNOWN_WIDTH != 0;
        if !known || data3 & He::DUAL_CARRIER != 0 {
            return None;
        }
        let width = match data5 & 0x0f {
            // Of the parts of a channel, those that are as good as a narrower channel.
            0 | 7 => Width::Mhz20,
            1 | 8 => Width::Mhz40,
            2 | 9 => Width::Mhz80,
            3 | 10 => Width::Mhz160,
            _ => return None,
        };
        if data2 & He::KNOWN_GUARD == 0 {
            return None;
        }
        let guard_interval = long_guard(data5 >> 4)?;
        let mcs = u8::try_from(data3 >> 8 & 0x0f).ok()?;
        // NSTS; half of them are streams with STBC, which nobody uses with more than one stream.
        let nss = u8::try_from(data6 & 0x0f).ok().filter(|&nss| nss > 0)?;
        Some(TxVector { format: Format::He, mcs, nss, width, guard_interval })
    }

    fn of(tx: TxVector) -> He {
        let width = match tx.width {
            Width::Mhz20 => 0,
            Width::Mhz40 => 1,
            Width::Mhz80 => 2,
            // No HE PPDU is wider.
            Width::Mhz160 | Width::Mhz320 => 3,
        };
        let guard = u16::from(guard_code(tx.guard_interval));
        let data1 = He::KNOWN_MCS | He::KNOWN_WIDTH;
        let data = [data1, He::KNOWN_GUARD, u16::from(tx.mcs) << 8, 0, width | guard << 4, u16::from(tx.nss)];
        He { data }
    }
}

/// The guard interval of HE and EHT that the lower two bits of `code` stand for.
pub(super) fn long_guard(code: u16) -> Option<GuardInterval> {
    Some(match code & 0x03 {
        0 => GuardInterval::Ns800,
        1 => GuardInterval::Ns1600,
        2 => GuardInterval::Ns3200,
        _ => return None,
    })
}

/// The other way.
pub(super) fn guard_code(interval: GuardInterval) -> u8 {
    match interval {
        GuardInterval::Ns400 | GuardInterval::Ns800 => 0,
        GuardInterval::Ns1600 => 1,
        GuardInterval::Ns3200 => 2,
    }
}

fn guard(short: bool) -> GuardInterval {
    if short { GuardInterval::Ns400 } else { GuardInterval::Ns800 }
}
