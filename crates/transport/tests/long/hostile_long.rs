//! Sixty-four megabytes over a hostile network, by any transport.

use crate::harness;

use harness::abuse::{AT_ONCE, Abuse, LAWS, ends, random_data, run, secs};
use lasthop_units::Span;

#[test]
fn sixty_four_mb_arrive_intact_for_any_transport_and_loss() {
    let data = random_data(64 << 20, 1);
    for law in LAWS {
        for lost in [0, 50, 200] {
            let abuse = Abuse { seed: 3, lost, doubled: 20, jitter: Span::from_millis(3), turned: 0 };
            let run = run(ends(law, 5), &data, abuse, AT_ONCE, secs(30_000));
            assert!(run.done, "{law:?} at {lost}: {} octets after {}", run.got.len(), run.took);
            assert!(run.got == data, "{law:?} at {lost}: other octets");
            let packets = data.len() as u64 / 1400;
            println!("{law:?} at {lost}: {} of {packets} sent again, {}", run.resent, run.took);
        }
    }
}
