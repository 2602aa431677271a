//! What a kernel sent on nl80211 (`nl80211/README.md`) beside what `iw` showed of the same messages.
//!
//! `make test-hwsim` has the same read of what its own virtual machine has recorded, in the folder that `LASTHOP_HWSIM` names.

#[path = "../nl80211/iw.rs"]
mod iw;

use iw::{Shown, shown};
use lasthop_units::{Rate, Span};
use lasthop_wire::nl80211::{self, Interface, Queues, Station, Survey};
use lasthop_wire::pcap::Stream;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Link type of netlink messages: each packet has a header of 16 octets before them.
const LINK_NETLINK: u32 = 253;
/// `NLM_F_REQUEST`, and the types that say how a question ended.
const REQUEST: u16 = 1;
const ERROR: u16 = 2;
const DONE: u16 = 3;
/// The interface's index in the virtual machine.
const INDEX: u32 = 2;

/// What was recorded while `iw` asked once: questions and answers, of the controller first, as the bodies of generic netlink messages.
struct Recorded {
    text: String,
    questions: Vec<Vec<u8>>,
    answers: Vec<(u16, Vec<u8>)>,
}

fn folders() -> Vec<PathBuf> {
    let own = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/nl80211");
    let fresh = std::env::var_os("LASTHOP_HWSIM").map(|folder| PathBuf::from(folder).join("recorded"));
    [Some(own), fresh].into_iter().flatten().collect()
}

/// The same recording in each folder.
fn recorded(name: &str) -> Vec<Recorded> {
    folders().into_iter().map(|folder| read(folder.join(name))).collect()
}

fn read(path: PathBuf) -> Recorded {
    let file =
        |suffix| std::fs::read(path.with_extension(suffix)).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let text = String::from_utf8(file("txt")).expect("text");
    let bytes = file("pcap");
    let mut stream = Stream::of(&bytes);
    let (mut questions, mut answers, mut ended) = (Vec::new(), Vec::new(), 0);
    let mut asked = Vec::new();
    while let Some(packet) = stream.packet().expect("a capture") {
        assert_eq!((packet.on.link, packet.bytes.len()), (LINK_NETLINK, packet.original as usize));
        let mut rest = &packet.bytes[16..];
        while !rest.is_empty() {
            let half = |at: usize| u16::from_ne_bytes([rest[at], rest[at + 1]]);
            let len = u32::from_ne_bytes([rest[0], rest[1], rest[2], rest[3]]) as usize;
            let (sequence, body) = (rest[8..12].to_vec(), rest[16..len].to_vec());
            match (half(4), half(6) & REQUEST) {
                (_, REQUEST) => {
                    questions.push(body);
                    asked.push(sequence);
                }
                // What the kernel tells everybody, such as that the radio is back on its channel, is no answer.
                _ if !asked.contains(&sequence) => {}
                (ERROR | DONE, _) => ended += 1,
                (family, _) => answers.push((family, body)),
            }
            rest = rest.get(len.next_multiple_of(4)..).unwrap_or_default();
        }
    }
    assert_eq!(stream.finish(), Ok(false), "the capture is whole");
    assert_eq!((questions.len(), ended), (2, 2), "iw asked for the family and once more: {}", path.display());
    Recorded { text, questions, answers }
}

impl Recorded {
    /// What answers iw's second question, which ours must be like.
    fn answers(&self, question: &[u8]) -> impl Iterator<Item = &[u8]> {
        // The version, which iw leaves at zero, is nothing that the kernel looks at.
        let of = |question: &[u8]| (question[0], question[4..].to_vec());
        assert_eq!(of(&self.questions[0]), of(&nl80211::family_request()));
        assert_eq!(of(&self.questions[1]), of(question));
        let (controller, rest) = self.answers.split_first().expect("answers");
        assert_eq!(controller.0, nl80211::CONTROLLER);
        let family = nl80211::family(&controller.1).expect("in order").expect("a family");
        rest.iter().map(move |(of, body)| {
            assert_eq!(*of, family);
            &body[..]
        })
    }
}

#[test]
fn an_interface_is_what_iw_shows() {
    for recorded in recorded("interface") {
        let answers: Vec<_> = recorded.answers(&nl80211::interface_request(INDEX)).collect();
        let [answer] = answers[..] else { panic!("one interface: {}", answers.len()) };
        let interface = Interface::parse(answer).expect("in order");
        assert!(recorded.text.contains("\ttype AP\n"), "{}", recorded.text);
        assert_eq!(interface.kind, Some(Interface::ACCESS_POINT));
        let frequency = interface.frequency.expect("a channel");
        assert!(recorded.text.contains(&format!("({frequency} MHz)")), "{frequency}: {}", recorded.text);
    }
}

#[test]
fn surveys_are_what_iw_shows() {
    for recorded in recorded("survey") {
        let surveys: Vec<Survey> = recorded
            .answers(&nl80211::survey_request(INDEX))
            .map(|answer| Survey::parse(answer).expect("in order"))
            .collect();
        let channels = shown(&recorded.text, "Survey data from");
        assert!(surveys.len() == channels.len() && surveys.len() >= 2, "{}", recorded.text);
        for (survey, shown) in surveys.iter().zip(&channels) {
            let ms = |name| shown.known(name).map(Span::from_millis);
            let expected = Survey {
                in_use: shown.fields["frequency"].contains("[in use]"),
                frequency: shown.known("frequency"),
                noise: shown.known("noise"),
                active: ms("channel active time"),
                busy: ms("channel busy time"),
                rx: ms("channel receive time"),
                bss_rx: ms("channel BSS receive time"),
                tx: ms("channel transmit time"),
                // iw knows nothing of it.
                scan: survey.scan,
            };
            assert_eq!(*survey, expected, "{shown:?}");
        }
        assert!(surveys.iter().any(|survey| survey.busy.is_some_and(|busy| !busy.is_zero())), "{surveys:?}");
    }
}

#[test]
fn stations_and_their_queues_are_what_iw_shows() {
    for recorded in recorded("stations") {
        let stations: Vec<Station> = recorded
            .answers(&nl80211::station_request(INDEX))
            .map(|answer| Station::parse(answer).expect("in order").expect("a station"))
            .collect();
        let all = shown(&recorded.text, "Station ");
        assert_eq!((stations.len(), all.len()), (2, 2), "{}", recorded.text);
        for (station, shown) in stations.iter().zip(&all) {
            // iw shows a part of it only.
            let since = station.associated.map(|since| Span::from_millis(since.as_nanos() / 1_000_000));
            assert_eq!(since, shown.known::<f64>("associated at [boottime]").map(ms), "{shown:?}");
            assert_eq!(*station, Station { associated: station.associated, ..expected(shown) }, "{shown:?}");
        }
        let busy = |shown: &Shown| shown.queues.iter().filter(|queue| queue["qsz-pkt"] > 0).count();
        assert_eq!(all.iter().map(busy).max(), Some(2), "packets of two TIDs wait: {}", recorded.text);
    }
}

fn ms(seconds: f64) -> Span {
    Span::from_millis((seconds * 1e3).round() as u64)
}

fn expected(shown: &Shown) -> Station {
    let mut address = [0; 6];
    let octets = shown.title.split(' ').next().expect("an address").split(':');
    for (octet, text) in address.iter_mut().zip(octets) {
        *octet = u8::from_str_radix(text, 16).expect("two digits");
    }
    let us = |name| shown.known(name).map(Span::from_micros);
    Station {
        address,
        tx_bytes: shown.known("tx bytes"),
        rx_bytes: shown.known("rx bytes"),
        tx_packets: shown.known("tx packets"),
        rx_packets: shown.known("rx packets"),
        tx_retries: shown.known("tx retries"),
        tx_failed: shown.known("tx failed"),
        tx_rate: shown.known::<f64>("tx bitrate").map(|rate| Rate::from_bps((rate * 1e6).round() as u64)),
        tx_airtime: us("tx duration"),
        rx_airtime: us("rx duration"),
        signal: shown.known("signal avg").or(shown.known("signal")),
        associated: None,
        queues: Some(Queues {
            backlog: lasthop_units::Bytes::new(shown.sum("qsz-byt")),
            packets: u32::try_from(shown.sum("qsz-pkt")).expect("few"),
            drops: shown.sum("drops") + shown.sum("overlmt"),
            marks: shown.sum("marks"),
        }),
    }
}

/// The fuzz target `nl80211` begins with these messages. `LASTHOP_BLESS=1` writes them.
#[test]
fn fuzzing_begins_with_these_messages() {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let seeds = root.join("../../fuzz/seeds/nl80211");
    let mut wanted = BTreeMap::new();
    for name in ["interface", "survey", "stations"] {
        // The controller's answer is the same each time.
        let answers = read(root.join("tests/nl80211").join(name)).answers;
        let named = |at| if at == 0 { "family".to_owned() } else { format!("{name}-{at}") };
        wanted.extend(answers.into_iter().enumerate().map(|(at, (_, body))| (named(at), body)));
    }
    if std::env::var_os("LASTHOP_BLESS").is_some() {
        std::fs::create_dir_all(&seeds).expect("a folder");
        wanted.iter().for_each(|(name, body)| std::fs::write(seeds.join(name), body).expect("a file"));
    }
    let names = std::fs::read_dir(&seeds).expect("seeds").map(|entry| entry.expect("an entry").file_name());
    let found = names.map(|name| {
        let name = name.into_string().expect("text");
        (name.clone(), std::fs::read(seeds.join(name)).expect("a file"))
    });
    let found: BTreeMap<_, _> = found.collect();
    assert!(
        found == wanted,
        "fuzz/seeds/nl80211: run LASTHOP_BLESS=1 cargo test --workspace --test integration nl80211"
    );
}
