//! `lasthop aggregation`.

mod table;

use crate::input::{self, Pipe};
use crate::{flag, note, say};
use anyhow::{Context as _, anyhow, bail};
use clap::Args as ClapArgs;
use lasthop_agents::monitor::{MonitorError, MonitorReader, drop_privileges};
use lasthop_agents::service::stop_on_signals;
use lasthop_laws::aggregation::meter::{Frame, Grouping, Meter, Tally};
use lasthop_signals::MacAddress;
use lasthop_units::{Span, Time};
use lasthop_wire::monitor::Captured;
use lasthop_wire::pcap;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, IsTerminal as _, Read as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// What to measure.
#[derive(ClapArgs)]
pub struct Args {
    /// A capture (pcap or pcapng, link type IEEE802_11_RADIO); `-` is standard input
    #[arg(required_unless_present_any = ["interface", "read"], conflicts_with_all = ["interface", "read"])]
    file: Option<PathBuf>,
    /// The same, as with tcpdump
    #[arg(short, long, value_name = "FILE", conflicts_with = "interface")]
    read: Option<PathBuf>,
    /// Listen on a monitor interface instead, until Ctrl-C
    #[arg(short, long, value_name = "NAME")]
    interface: Option<String>,
    /// Report every so often, with its unit; without it a file is reported as a whole, an interface every 1 s
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = interval)]
    interval: Option<Span>,
    /// Tell A-MPDUs by their reference numbers alone, as other tools do, and infer no losses
    #[arg(long)]
    by_reference: bool,
    /// One JSON object a line
    #[arg(long)]
    json: bool,
}

/// Shorter intervals would hold less than a frame each.
const SHORTEST: Span = Span::from_millis(1);

fn interval(text: &str) -> Result<Span, String> {
    let span = flag::quantity::<Span>(text)?;
    if span >= SHORTEST { Ok(span) } else { Err(format!("must be at least {SHORTEST}")) }
}

/// More intervals than these in a row, in which nothing was captured, are left out.
const SILENT: u64 = 1_000;

/// The addresses of transmitter and receiver.
type Conversation = (MacAddress, MacAddress);

/// What came in one interval.
#[derive(Default)]
struct Account {
    conversations: BTreeMap<Conversation, Tally>,
    /// Every captured frame.
    captured: u64,
    unreadable: u64,
}

impl Account {
    fn add(&mut self, frame: &Frame) {
        self.conversations.entry((frame.transmitter, frame.receiver)).or_default().add(frame);
    }
}

/// Measures, and prints what was found.
pub fn aggregation(args: &Args) -> anyhow::Result<ExitCode> {
    match (args.file.as_ref().or(args.read.as_ref()), &args.interface) {
        (Some(file), _) => capture(file, args)?,
        (None, Some(name)) => live(name, args)?,
        (None, None) => bail!("name a capture file, or an interface with -i"),
    }
    Ok(ExitCode::SUCCESS)
}

fn meter(args: &Args) -> Meter {
    Meter::new(if args.by_reference { Grouping::Reference } else { Grouping::Air })
}

/// Accounts by interval, printed when each is over.
struct Printer<'a> {
    args: &'a Args,
    account: Account,
    /// Begin of the interval, and of everything.
    start: Option<Time>,
    origin: Time,
    /// Which of several interfaces it is about.
    name: Option<String>,
}

impl<'a> Printer<'a> {
    fn new(args: &'a Args) -> Printer<'a> {
        Printer { args, account: Account::default(), start: None, origin: Time::ZERO, name: None }
    }

    /// Prints the intervals that have ended by `now`.
    fn advance(&mut self, now: Time, interval: Option<Span>) -> anyhow::Result<()> {
        let start = *self.start.get_or_insert_with(|| {
            self.origin = now;
            now
        });
        let Some(interval) = interval else { return Ok(()) };
        let mut start = start;
        while start + interval <= now {
            self.print(start, start + interval)?;
            start += interval;
            // A clock that was set while it captured leaves years between two packets.
            let silent = now.since(start).as_nanos() / interval.as_nanos();
            if silent > SILENT {
                start += interval * silent;
                note!(
                    "{silent} intervals without a frame, up to {:.0} s, are left out",
                    start.since(self.origin).as_secs_f64()
                );
            }
        }
        self.start = Some(start);
        Ok(())
    }

    fn print(&mut self, start: Time, end: Time) -> anyhow::Result<()> {
        let account = std::mem::take(&mut self.account);
        let (from, to) = (start.since(self.origin), end.since(self.origin));
        let name = self.name.as_deref();
        if self.args.json {
            say!("{}", table::json(&account, name, (from, to)))?;
        } else {
            say!("{}", table::text(&account, name, (from, to)))?;
        }
        Ok(())
    }
}

/// What a capture is read from.
enum Source {
    File(File),
    Pipe(Pipe),
}

impl Source {
    fn open(path: &Path) -> anyhow::Result<Source> {
        if path == Path::new("-") {
            if std::io::stdin().is_terminal() {
                bail!(
                    "a capture cannot be typed: name a file, or send one here, as with `tcpdump -i mon0 -w - | lasthop aggregation -`"
                );
            }
            return Ok(Source::Pipe(Pipe::open()?));
        }
        input::file(path, "the capture", "name a file, or `-i` and an interface").map(Source::File)
    }

    /// The next octets; none at the end.
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Source::File(file) => file.read(buffer),
            Source::Pipe(pipe) => pipe.read(buffer),
        }
    }
}

fn capture(path: &Path, args: &Args) -> anyhow::Result<()> {
    let mut source = Source::open(path)?;
    let place = || if path == Path::new("-") { "standard input".to_owned() } else { path.display().to_string() };
    let none = || format!("{} is no capture that can be read", place());
    let no_radio = |links: &str| {
        anyhow!(
            "{}: link type {links}, not {} (IEEE802_11_RADIO): capture on a monitor interface, as with `tcpdump -i mon0 -w FILE`",
            place(),
            pcap::LINK_RADIOTAP
        )
    };
    let (mut stream, mut buffer) = (pcap::Stream::new(), vec![0; 1 << 16]);
    let (mut radios, mut others) = (BTreeMap::<usize, Radio>::new(), BTreeSet::new());
    loop {
        let count = match source.read(&mut buffer) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            read => read.with_context(|| format!("cannot read the capture {}", place()))?,
        };
        if count == 0 {
            break;
        }
        stream.push(&buffer[..count]);
        while let Some(packet) = stream.packet().with_context(none)? {
            let (number, on) = (packet.interface, packet.on);
            if on.link == pcap::LINK_RADIOTAP {
                let name = packet.of_many.then(|| label(number, on));
                radios.entry(number).or_insert_with(|| Radio::new(args, name)).hear(&packet)?;
            } else if !packet.of_many {
                return Err(no_radio(&on.link.to_string()));
            } else if others.insert(number) {
                let (name, link) = (label(number, on), on.link);
                note!("{}: {name} has link type {link}, without 802.11: its packets are passed over", place());
            }
        }
    }
    let truncated = stream.finish().with_context(none)?;
    let links: BTreeSet<u32> = stream.interfaces().iter().map(|interface| interface.link).collect();
    if radios.is_empty() {
        if !links.is_empty() && !links.contains(&pcap::LINK_RADIOTAP) {
            let links: Vec<String> = links.iter().map(u32::to_string).collect();
            return Err(no_radio(&links.join(", ")));
        }
        radios.insert(0, Radio::new(args, None));
    }
    for radio in radios.into_values() {
        radio.finish(&place())?;
    }
    if truncated {
        note!("{}: the file ends within a packet; what was whole has been counted", place());
    }
    if stream.untimed() > 0 {
        note!("{}: {} packets without a time are passed over", place(), stream.untimed());
    }
    Ok(())
}

/// What an interface of a capture with several is called.
fn label(number: usize, interface: &pcap::Interface) -> String {
    match &interface.name {
        Some(name) => format!("interface {number} ({name})"),
        None => format!("interface {number}"),
    }
}

/// A captured interface with radiotap headers: what it heard is counted apart from what others did.
struct Radio<'a> {
    meter: Meter,
    printer: Printer<'a>,
    last: Time,
}

impl<'a> Radio<'a> {
    fn new(args: &'a Args, name: Option<String>) -> Radio<'a> {
        Radio { meter: meter(args), printer: Printer { name, ..Printer::new(args) }, last: Time::ZERO }
    }

    fn hear(&mut self, packet: &pcap::Packet<'_>) -> anyhow::Result<()> {
        let Radio { meter, printer, last } = self;
        *last = packet.at.max(*last);
        meter.advance(packet.at, &mut |frame| printer.account.add(frame));
        printer.advance(packet.at, printer.args.interval)?;
        printer.account.captured += 1;
        let original = usize::try_from(packet.original).unwrap_or(usize::MAX);
        match Captured::parse(packet.bytes, original) {
            Err(_) => printer.account.unreadable += 1,
            Ok(found) => {
                if let Some(mpdu) = found.mpdu() {
                    meter.receive(packet.at, &mpdu, &mut |frame| printer.account.add(frame));
                }
            }
        }
        Ok(())
    }

    fn finish(mut self, place: &str) -> anyhow::Result<()> {
        self.meter.finish(&mut |frame| self.printer.account.add(frame));
        let start = self.printer.start.unwrap_or(self.last);
        self.printer.print(start, self.last)?;
        if self.meter.unattributed() > 0 {
            note!("{place}: {} damaged PPDUs of which nobody can say who sent them", self.meter.unattributed());
        }
        Ok(())
    }
}

fn live(name: &str, args: &Args) -> anyhow::Result<()> {
    let mut reader = MonitorReader::open(name)?;
    drop_privileges()?;
    let stop = stop_on_signals()?;
    let interval = args.interval.unwrap_or(Span::from_secs(1));
    let (mut meter, mut printer) = (meter(args), Printer::new(args));
    let (mut dropped, mut since_looked) = (0, 0);
    // What was heard before the interface went is told before that is.
    let mut gone = None;
    while !stop.is_asked() {
        let heard = match reader.hear(std::time::Duration::from_millis(50)) {
            Err(error @ (MonitorError::Gone { .. } | MonitorError::Down { .. })) => {
                gone = Some(error);
                break;
            }
            heard => heard?,
        };
        let now = match &heard {
            Some(heard) => heard.at,
            None => MonitorReader::now()?,
        };
        meter.advance(now, &mut |frame| printer.account.add(frame));
        printer.advance(now, Some(interval))?;
        let Some(heard) = heard else { continue };
        printer.account.captured += 1;
        if let Some(mpdu) = &heard.mpdu {
            meter.receive(heard.at, mpdu, &mut |frame| printer.account.add(frame));
        }
        since_looked += 1;
        if since_looked == LOOK_EVERY {
            since_looked = 0;
            let lost = reader.dropped()?;
            if lost > dropped {
                note!("{name}: {} frames came faster than they were read", lost - dropped);
                dropped = lost;
            }
        }
    }
    meter.finish(&mut |frame| printer.account.add(frame));
    if let Some(start) = printer.start {
        printer.print(start, MonitorReader::now()?)?;
    }
    gone.map_or(Ok(()), |error| Err(error.into()))
}

/// Frames between two looks at the kernel's count of those that were not read in time.
const LOOK_EVERY: u32 = 1_024;
