use super::*;
use proptest::prelude::*;

#[test]
fn quantities_are_read_exactly() {
    assert_eq!(parse("20 ms"), Ok(Span::from_millis(20)));
    assert_eq!(parse("0.1ms"), Ok(Span::from_micros(100)));
    assert_eq!(parse("102.4 ms"), Ok(Span::from_micros(102_400)));
    assert_eq!(parse("9 \u{b5}s"), Ok(Span::from_micros(9)));
    assert_eq!(parse("2 min"), Ok(Span::from_secs(120)));
    assert_eq!(parse("50 Mbit/s"), Ok(Rate::from_mbit(50)));
    assert_eq!(parse("1.5 MB"), Ok(Bytes::new(1_500_000)));
    assert_eq!(parse("64 KiB"), Ok(Bytes::new(65_536)));
    assert_eq!(parse("80 MHz"), Ok(Hertz(80_000_000)));
    assert_eq!(parse("1 packet"), Ok(Packets(1)));
}

#[test]
fn what_two_trades_read_differently_is_refused_with_a_hint() {
    let remedy = |error: QuantityError| error.remedy();
    assert!(remedy(parse::<Span>("20 m").unwrap_err()).contains("write `min` or `ms`"));
    assert!(remedy(parse::<Bytes>("3 Mb").unwrap_err()).contains("write `MB`"));
    assert!(remedy(parse::<Rate>("3 Mb").unwrap_err()).contains("write `Mbit/s`"));
    assert!(remedy(parse::<Bytes>("3 KB").unwrap_err()).contains("`kB` or `KiB`"));
}

#[test]
fn a_number_alone_is_told_every_unit_it_could_have() {
    let error = parse::<Span>("20").unwrap_err();
    assert_eq!(error.remedy(), "write \"20 ns\", \"20 us\", \"20 ms\", \"20 s\" or \"20 min\"");
}

#[test]
fn the_wrong_dimension_is_named() {
    let error = parse::<Span>("20 MHz").unwrap_err();
    assert_eq!(error.to_string(), "`MHz` is a unit of frequency, and a time is needed");
}

#[test]
fn precision_is_never_lost_silently() {
    assert_eq!(parse::<Span>("0.5 ns"), Err(QuantityError::TooFine { wanted: &TIME }));
    assert_eq!(parse::<Packets>("1.5 packets"), Err(QuantityError::TooFine { wanted: &PACKETS }));
    assert_eq!(parse::<Span>("99999999999 s"), Err(QuantityError::TooLarge { wanted: &TIME }));
    assert_eq!(parse::<Span>("1,5 s"), Err(QuantityError::NotANumber { wanted: &TIME }));
    assert_eq!(parse::<Span>("-1 s"), Err(QuantityError::Negative { wanted: &TIME }));
}

proptest! {
    #[test]
    fn what_is_shown_reads_back_the_same(base in any::<u64>()) {
        prop_assert_eq!(parse::<Span>(&show(Span::from_nanos(base))), Ok(Span::from_nanos(base)));
        prop_assert_eq!(parse::<Rate>(&show(Rate::from_bps(base))), Ok(Rate::from_bps(base)));
        prop_assert_eq!(parse::<Bytes>(&show(Bytes::new(base))), Ok(Bytes::new(base)));
        prop_assert_eq!(parse::<Hertz>(&show(Hertz(base))), Ok(Hertz(base)));
        prop_assert_eq!(parse::<Packets>(&show(Packets(base))), Ok(Packets(base)));
    }

    #[test]
    fn no_text_panics(text in any::<String>(), near in "[-+0-9.,eE_ ]{0,40}[a-zA-Z/ \u{b5}]{0,8}") {
        for text in [text, near] {
            let _ = parse::<Span>(&text).map_err(|e| (e.to_string(), e.remedy()));
            let _ = parse::<Rate>(&text).map_err(|e| (e.to_string(), e.remedy()));
            let _ = parse::<Bytes>(&text).map_err(|e| (e.to_string(), e.remedy()));
            let _ = parse::<Packets>(&text).map_err(|e| (e.to_string(), e.remedy()));
        }
    }
}
