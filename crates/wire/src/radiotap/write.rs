//! Writing a header: one presence word, each field where its alignment puts it.

use super::{FIXED, LAYOUT, Radiotap, VALUES};

impl Radiotap {
    /// Appends the header to `out`, which must end where the packet begins: alignment counts from there.
    pub fn write(&self, out: &mut Vec<u8>) {
        let start = out.len();
        out.extend_from_slice(&[0; FIXED]);
        let mut present = 0u32;
        let mut put = |bit: usize, field: &[u8]| {
            let (size, align) = LAYOUT[bit];
            debug_assert_eq!(size, field.len());
            out.resize(start + (out.len() - start).next_multiple_of(align), 0);
            out.extend_from_slice(field);
            present |= 1 << bit;
        };
        if let Some(tsft) = self.tsft {
            put(0, &tsft.to_le_bytes());
        }
        if let Some(flags) = self.flags {
            put(1, &[flags.0]);
        }
        if let Some(rate) = self.rate {
            put(2, &[rate]);
        }
        if let Some(channel) = self.channel {
            put(3, &join([channel.mhz.to_le_bytes(), channel.flags.to_le_bytes()]));
        }
        if let Some(signal) = self.signal {
            put(5, &signal.to_le_bytes());
        }
        if let Some(noise) = self.noise {
            put(6, &noise.to_le_bytes());
        }
        if let Some(antenna) = self.antenna {
            put(11, &[antenna]);
        }
        if let Some(flags) = self.rx_flags {
            put(14, &flags.to_le_bytes());
        }
        if let Some(mcs) = self.mcs {
            put(19, &[mcs.known, mcs.flags, mcs.index]);
        }
        if let Some(ampdu) = self.ampdu {
            let [a, b, c, d] = ampdu.reference.to_le_bytes();
            let [low, high] = ampdu.flags.to_le_bytes();
            put(20, &[a, b, c, d, low, high, ampdu.delimiter_crc, 0]);
        }
        if let Some(vht) = self.vht {
            let ([k, l], [p, q], [a, b, c, d]) = (vht.known.to_le_bytes(), vht.partial_aid.to_le_bytes(), vht.mcs_nss);
            put(21, &[k, l, vht.flags, vht.bandwidth, a, b, c, d, vht.coding, vht.group, p, q]);
        }
        if let Some(stamp) = self.timestamp {
            let mut field = [0; 12];
            field[..8].copy_from_slice(&stamp.time.to_le_bytes());
            field[8..10].copy_from_slice(&stamp.accuracy.to_le_bytes());
            (field[10], field[11]) = (stamp.unit_position, stamp.flags);
            put(22, &field);
        }
        if let Some(he) = self.he {
            put(23, &join(he.data.map(u16::to_le_bytes)));
        }
        if self.write_values(start, out) {
            present |= VALUES;
        }
        let len = u16::try_from(out.len() - start).expect("all fields together are shorter than 200 octets");
        out[start + 2..start + 4].copy_from_slice(&len.to_le_bytes());
        out[start + 4..start + FIXED].copy_from_slice(&present.to_le_bytes());
    }
}

fn join<const N: usize>(words: [[u8; 2]; N]) -> Vec<u8> {
    words.concat()
}
