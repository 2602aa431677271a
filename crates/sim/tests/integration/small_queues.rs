//! What waits in a station that uploads: with TCP small queues some milliseconds, without them the whole window.

use crate::support;

use lasthop_report::Key;
use support::{CUBIC, Wifi, simulate, value};

/// One station that uploads to the server without end.
fn upload(small: bool) -> (f64, f64) {
    let station = format!("[[station]]\nname = \"a\"\nmcs = 0\ntcp-small-queues = {small}\n");
    let rest = station + "[[traffic]]\nkind = \"bulk\"\nfrom = \"a\"\nto = \"server\"\n" + CUBIC;
    let scenario = Wifi { times: ("8 s", "3 s"), rest: &rest, ..Wifi::default() }.scenario();
    let record = simulate(&scenario, "cubic", 1);
    (value(&record, Key::ThroughputUp), value(&record, Key::UplinkDelayMean))
}

#[test]
fn a_small_queue_keeps_the_rate_and_takes_the_wait() {
    let ((rate, wait), (whole_rate, whole_wait)) = (upload(true), upload(false));
    eprintln!("small: {rate:.1} Mbit/s, {wait:.2} ms; whole window: {whole_rate:.1} Mbit/s, {whole_wait:.2} ms");
    assert!(rate >= 0.95 * whole_rate, "{rate} of {whole_rate} Mbit/s");
    // 1/128 s at 1.2 times what the window makes of the rate, which is up to twice the rate since slow start may run ahead of
    // use by that; and the frame on the air.
    assert!(wait < 2.4 * 1000.0 / 128.0 + 6.0, "{wait} ms");
    assert!(whole_wait > 2.0 * wait, "{whole_wait} ms without, {wait} ms with");
}
