//! Agents that are lied to: the driver's records contradict themselves, each other or the clock.

use crate::case::{Case, Seen};
use crate::liar::Lie;
use crate::program::{Program, account};
use crate::radio::{Radio, Windows, kb};
use crate::scene::Scene;
use crate::support::tcp::Bulk;
use std::collections::BTreeSet;
use std::time::Duration;

const RIGHT: &str = "the window stays in its range, or is released after 500 ms; it is back soon after the truth";

pub const CASES: &[Case] = &[
    lie("lie: none", "the truth, for comparison", |scene| tell(scene, None)),
    lie("lie: busy time jumps", "one record of ten has 100 s of busy time more", |scene| {
        tell(scene, Some(Lie::BusyJumps))
    }),
    lie("lie: all times jump", "channel and busy time jump by 100 s, ten times a second", |scene| {
        tell(scene, Some(Lie::TimeJumps))
    }),
    lie("lie: time runs", "channel and busy time grow three times as fast as the clock", |scene| {
        tell(scene, Some(Lie::TimeRuns))
    }),
    lie("lie: busy time stands", "busy time stands still while the radio sends", |scene| {
        tell(scene, Some(Lie::BusyStands))
    }),
    lie("lie: a station twice", "the station is listed twice", |scene| tell(scene, Some(Lie::Twice))),
    lie("lie: a slow rate", "a PHY rate of 6 Mbit/s amid an 802.11ac flow", |scene| tell(scene, Some(Lie::SlowRate))),
    lie("lie: noise", "every other message is noise", |scene| tell(scene, Some(Lie::Noise))),
    lie("lie: cut short", "every other record lacks its last 40 octets", |scene| tell(scene, Some(Lie::CutShort))),
    Case {
        name: "lie: the account",
        done: "the agent that was lied to is asked to end",
        right: "refused records are counted; of each kind one warning was given",
        run: close,
    },
];

const fn lie(name: &'static str, done: &'static str, run: fn(&mut Scene) -> Seen) -> Case {
    Case { name, done, right: RIGHT, run }
}

/// A download over the hop with an agent that limits it.
pub struct Attended {
    // Ended in this order.
    flow: Bulk,
    agent: Program,
    /// The window that the law has found.
    usual: u32,
    radio: Radio,
}

/// A window that is not limited is wider than this; the hop takes an eighth.
pub const WIDE: u32 = 2_000_000;

impl Attended {
    pub fn start(scene: &mut Scene) -> Attended {
        let radio = scene.radio();
        let agent = radio.agent(scene, &[]);
        let flow = radio.download();
        let usual = settled(scene, &flow).median;
        Attended { flow, agent, usual, radio }
    }

    /// Ends download and agent; the hop is free again.
    pub fn end(self) -> Radio {
        self.radio
    }
}

/// The windows of a download that has begun just now, once the law has found its own.
pub fn settled(scene: &Scene, flow: &Bulk) -> Windows {
    scene.rest(scene.ms(2500, 800));
    let look = || Windows::of(scene, flow, scene.ms(1000, 300));
    let mut windows = look();
    scene.await_that("the agent limits the download", || {
        let limited = windows.median < WIDE;
        if !limited {
            windows = look();
        }
        limited
    });
    windows
}

fn tell(scene: &mut Scene, lie: Option<Lie>) -> Seen {
    let attended = scene.attended();
    let Attended { flow, radio, usual, .. } = &attended;
    // Under the truth it dips to six tenths now and then. Laws that believed such lies went below an eighth, for good.
    let least = usual / scene.pick(3, 4);
    // A machine that is too busy for the hop may make a window small, but not every time.
    let mut tries = scene.pick(1, 3);
    let during = loop {
        radio.liar.tell(lie);
        let during = Windows::of(scene, flow, scene.ms(2000, 350));
        radio.liar.tell(None);
        tries -= 1;
        if tries == 0 || during.least >= least {
            break during;
        }
        scene.rest(Duration::from_secs(1));
    };
    let near = |window: u32| (usual / 10 * 6..usual / 10 * 16).contains(&window);
    // In its range, and not only on its way through it.
    let back = scene.until(Duration::from_secs(10), || near(flow.info().snd_wnd));
    scene.rest(scene.ms(500, 0));
    let after = Windows::of(scene, flow, scene.ms(1000, 100));
    let took = back.map_or("never".to_owned(), |took| format!("{} ms", took.as_millis()));
    let measured = format!(
        "usual {}; meanwhile {} to {}; near the usual again after {took}, then {}",
        kb(*usual),
        kb(during.least),
        kb(during.most),
        kb(after.median)
    );
    let soon = scene.pick(Duration::from_secs(2), Duration::from_secs(10));
    let seen = Seen::new(measured)
        .must(during.least >= least, format_args!("the window fell below {}", kb(least)))
        .must(back.is_some_and(|took| took <= soon), format_args!("not back within {} s", soon.as_secs()))
        .must(!scene.is_whole() || near(after.median), "another window than before");
    scene.keep_attended(attended);
    seen
}

fn close(scene: &mut Scene) -> Seen {
    let Attended { flow, agent, radio, .. } = scene.attended();
    // If no other case came before.
    radio.liar.tell(Some(Lie::Twice));
    scene.rest(Duration::from_millis(100));
    radio.liar.tell(None);
    scene.rest(Duration::from_millis(100));
    let (_, status, said) = agent.stops(scene);
    drop(flow);
    scene.keep(radio);
    let refused = account(&said)["refused_reports"].as_u64().expect("a number");
    // A kind is told by its words without the numbers in it.
    let warnings = said.iter().filter(|line| line.contains("of the driver is refused:"));
    let kinds: Vec<String> =
        warnings.map(|line| line.chars().filter(|c| c.is_alphabetic() || *c == ' ').collect()).collect();
    let different: BTreeSet<&String> = kinds.iter().collect();
    Seen::new(format!("{refused} records refused, {} warnings", kinds.len()))
        .must(status.success(), "it failed")
        .must(refused > 0 && !kinds.is_empty(), "nothing was refused, or nothing said")
        .must(different.len() == kinds.len(), "a kind was told twice")
}
