use super::*;
use lasthop_signals::phy::{Format, GuardInterval, TxVector, Width};

fn header(words: &[u32], fields: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0, 0, 0, 0];
    words.iter().for_each(|word| bytes.extend_from_slice(&word.to_le_bytes()));
    bytes.extend_from_slice(fields);
    let len = u16::try_from(bytes.len()).expect("short");
    bytes[2..4].copy_from_slice(&len.to_le_bytes());
    bytes
}

#[test]
fn fields_are_aligned_from_the_header_not_from_each_other() {
    // Flags, then channel: one octet of padding between them. The buffer's own address does not matter.
    let bytes = header(&[0b1010], &[0x10, 0xff, 0x6c, 0x09, 0xa0, 0x00]);
    let (radiotap, len) = Radiotap::parse(&bytes).expect("well formed");
    assert_eq!(len, 14);
    assert_eq!(radiotap.channel, Some(Channel { mhz: 2_412, flags: 0xa0 }));
    assert!(radiotap.has_fcs() && !radiotap.bad_fcs());
}

#[test]
fn bit_20_of_a_second_word_is_not_a_mpdu_status() {
    // Counting on from 32: nobody knows how long bit 52's field is, so reading stops there.
    let (radiotap, _) = Radiotap::parse(&header(&[MORE | 0b10, 1 << 20], &[0x40, 0, 0, 0])).expect("well formed");
    assert_eq!((radiotap.flags, radiotap.ampdu), (Some(Flags(0x40)), None));
    // Starting again from 0 it is one.
    let fields = [0x40, 0, 0, 0, 5, 0, 0, 0, 0x0c, 0, 0, 0];
    let (radiotap, _) = Radiotap::parse(&header(&[MORE | RESET | 0b10, 1 << 20], &fields)).expect("well formed");
    assert_eq!(radiotap.ampdu.map(|ampdu| (ampdu.reference, ampdu.last())), Some((5, Some(true))));
}

#[test]
fn a_second_antenna_does_not_hide_the_first() {
    let words = [MORE | RESET | 1 << 5, MORE | RESET | 1 << 5 | 1 << 11, 1 << 5 | 1 << 11];
    let (radiotap, _) = Radiotap::parse(&header(&words, &[0xd0, 0xc0, 0, 0xb0, 1])).expect("well formed");
    assert_eq!((radiotap.signal, radiotap.antenna), (Some(-48), Some(0)));
}

#[test]
fn a_vendors_fields_are_skipped_whole() {
    // Flags, five octets of a vendor (its word names bits 0, 3 and 20), then radiotap again with a signal.
    let words = [MORE | VENDOR | 0b10, MORE | RESET | 1 << 20 | 0b1001, 1 << 5];
    let fields = [0x10, 0, 0x00, 0x11, 0x22, 7, 5, 0, 9, 9, 9, 9, 9, 0xc4];
    let (radiotap, len) = Radiotap::parse(&header(&words, &fields)).expect("well formed");
    assert_eq!(radiotap, Radiotap { flags: Some(Flags(0x10)), signal: Some(-60), ..Radiotap::default() });
    assert_eq!(len, 16 + fields.len());
    // A vendor that claims more than there is.
    let greedy = header(&words, &[0x10, 0, 0x00, 0x11, 0x22, 7, 200, 0, 9]);
    assert!(matches!(Radiotap::parse(&greedy), Err(Error::Length { .. })));
}

#[test]
fn headers_that_cannot_be_are_refused() {
    assert_eq!(Radiotap::parse(&[1, 0, 8, 0, 0, 0, 0, 0]), Err(Error::Radiotap(1)));
    assert_eq!(Radiotap::parse(&[0, 0, 8]), Err(Error::Truncated { needed: 8, got: 3 }));
    assert_eq!(Radiotap::parse(&[0, 0, 9, 0, 0, 0, 0, 0]), Err(Error::Truncated { needed: 9, got: 8 }));
    assert!(Radiotap::parse(&[0, 0, 4, 0, 0, 0, 0, 0]).is_err(), "shorter than its own beginning");
    assert!(Radiotap::parse(&header(&[1], &[0; 4])).is_err(), "a TSFT of four octets");
    assert!(Radiotap::parse(&header(&[MORE, MORE, MORE], &[])).is_err(), "words without end");
}

#[test]
fn known_type_length_value_fields_are_read() {
    // Flags, then a value of no octets, one of nobody's, and one that reaches beyond the header.
    let of = |values: &[u8]| header(&[VALUES | 0b10], &[&[0x10, 0, 0, 0], values].concat());
    let (radiotap, len) = Radiotap::parse(&of(&[34, 0, 0, 0, 0x50, 0, 1, 0, 9])).expect("fine");
    assert_eq!((radiotap.flags, radiotap.eht, len), (Some(Flags(0x10)), None, 21));
    assert!(matches!(Radiotap::parse(&of(&[34, 0, 9, 0, 1])), Err(Error::Length { .. })));
}

/// As Linux's iwlwifi fills them in for one user at 320 MHz, MCS 13, two streams, short guard interval.
#[test]
fn an_802_11be_rate_is_read_from_u_sig_and_eht() {
    let usig = [33, 0, 12, 0, 0x02, 0x00, 0x02, 0x00, 0, 0, 0, 0, 0, 0, 0, 0];
    let known = [34, 0, 44, 0, 0x04, 0, 0, 0];
    let user = [0xb6, 0x01, 0xd8, 0x01];
    let values = [&usig[..], &known, &[0; 36], &user].concat();
    let (radiotap, _) = Radiotap::parse(&header(&[VALUES], &values)).expect("fine");
    let tx = radiotap.tx_vector().expect("a rate");
    assert_eq!((tx.format, tx.mcs, tx.nss, tx.width), (Format::Eht, 13, 2, Width::Mhz320));
    // IEEE 802.11be: 5764.7 Mbit/s.
    assert_eq!(tx.rate().map(|rate| rate.as_bps() / 100_000), Some(57_647));
}

#[test]
fn each_format_survives_being_written_and_read() {
    let vector = |format, mcs, nss, width, guard_interval| TxVector { format, mcs, nss, width, guard_interval };
    for tx in [
        vector(Format::Dsss, 2, 1, Width::Mhz20, GuardInterval::Ns800),
        vector(Format::NonHt, 7, 1, Width::Mhz20, GuardInterval::Ns800),
        vector(Format::Ht, 7, 4, Width::Mhz40, GuardInterval::Ns400),
        vector(Format::Vht, 9, 3, Width::Mhz80, GuardInterval::Ns400),
        vector(Format::Vht, 0, 8, Width::Mhz160, GuardInterval::Ns800),
        vector(Format::He, 11, 2, Width::Mhz160, GuardInterval::Ns3200),
        vector(Format::Eht, 13, 8, Width::Mhz320, GuardInterval::Ns1600),
    ] {
        let mut radiotap = Radiotap::default();
        radiotap.set_tx_vector(tx);
        let mut bytes = Vec::new();
        radiotap.write(&mut bytes);
        let (again, len) = Radiotap::parse(&bytes).expect("just written");
        assert_eq!((again, len), (radiotap, bytes.len()));
        assert_eq!(again.tx_vector(), Some(tx));
    }
}
