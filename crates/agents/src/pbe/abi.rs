//! What the receiver's programs say: `struct news` of `bpf/pbe_receiver.h`.

use lasthop_units::{Bytes, Span, Time};

/// Connections that are told for at once.
pub(super) const MOST_FLOWS: usize = 1024;

/// Length of a record.
const LEN: usize = 40;

/// What has happened to a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct News {
    /// The kernel's number of its socket.
    pub(super) cookie: u64,
    pub(super) what: What,
}

/// What it was.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum What {
    /// It has begun, and its peer wants to be told, or will tell itself.
    Begun {
        /// The round trip of the handshake.
        round_trip: Option<Span>,
    },
    /// It is over.
    Over,
    /// Packets have come, as one if the kernel has merged them.
    Arrived {
        /// When (`CLOCK_MONOTONIC`).
        at: Time,
        packets: u32,
        /// Length of each, headers included.
        len: Bytes,
        /// The peer's clock.
        stamp: Option<u32>,
        /// The least that the kernel has measured.
        round_trip: Option<Span>,
    },
}

impl News {
    /// A record as the programs write it; `None` if it is none.
    pub(super) fn read(bytes: &[u8]) -> Option<News> {
        let bytes: &[u8; LEN] = bytes.get(..LEN)?.try_into().ok()?;
        let long = |at: usize| Some(u64::from_ne_bytes(bytes.get(at..at + 8)?.try_into().ok()?));
        let word = |at: usize| Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
        let round_trip = Some(word(36)?).filter(|us| *us > 0).map(|us| Span::from_micros(u64::from(us)));
        let what = match word(16)? {
            0 => What::Begun { round_trip },
            1 => What::Over,
            2 => What::Arrived {
                at: Time::from_nanos(long(8)?),
                packets: word(20)?,
                len: Bytes::new(u64::from(word(24)?)),
                stamp: if word(32)? == 0 { None } else { Some(word(28)?) },
                round_trip,
            },
            _ => return None,
        };
        Some(News { cookie: long(0)?, what })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(kind: u32, words: [u32; 5]) -> Vec<u8> {
        let mut bytes = [7_u64, 1_000_000].map(u64::to_ne_bytes).concat();
        bytes.extend([kind].iter().chain(&words).flat_map(|word| word.to_ne_bytes()));
        bytes
    }

    #[test]
    fn records_are_read_as_the_programs_write_them() {
        let ms = Span::from_millis;
        let begun = News::read(&record(0, [0, 0, 0, 0, 20_000]));
        assert_eq!(begun, Some(News { cookie: 7, what: What::Begun { round_trip: Some(ms(20)) } }));
        assert_eq!(News::read(&record(1, [0; 5])), Some(News { cookie: 7, what: What::Over }));
        let arrived = |stamp, round_trip| What::Arrived {
            at: Time::ZERO + ms(1),
            packets: 3,
            len: Bytes::new(1500),
            stamp,
            round_trip,
        };
        let read = |words| News::read(&record(2, words)).map(|news| news.what);
        assert_eq!(read([3, 1500, 99, 1, 5000]), Some(arrived(Some(99), Some(ms(5)))));
        assert_eq!(read([3, 1500, 99, 0, 0]), Some(arrived(None, None)));
        assert_eq!(News::read(&record(3, [0; 5])), None);
        assert_eq!(News::read(&record(2, [0; 5])[..39]), None);
    }
}
