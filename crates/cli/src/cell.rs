//! `lasthop cell`.

mod account;
mod choice;
mod own;
mod page;
mod print;
mod source;
mod timeline;

use crate::{flag, note};
use account::Account;
use anyhow::{Context as _, bail};
use choice::{Choice, Survey};
use clap::Args as ClapArgs;
use lasthop_units::Span;
use lasthop_wire::dci::{Direction, Format, HEAD, Item, LONGEST_WINDOW, Reader, Record, detect};
use source::{Got, Source};
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// What to look at.
#[derive(ClapArgs)]
#[command(after_help = "\
Examples:
  lasthop cell dci_raw_log_dl_freq_2127500000.dciLog
  lasthop cell --interval \"1 s\" --out pages capture.csv
  lasthop cell -f --prb 50 dci_raw_log_dl_freq_2127500000.dciLog
  lasthop cell --traffic received.pcap --to 10.20.30.40 --json capture.csv")]
pub struct Args {
    /// A log of NG-Scope (lines or JSON) or NR-Scope (CSV); `-` is standard input
    file: PathBuf,
    /// Go on while the log grows, also when another file takes its place, until Ctrl-C: as `tail -F`
    #[arg(short, long)]
    follow: bool,
    /// Report every so often, by the log's own times; with --follow every 1 s if nothing is said
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = interval)]
    interval: Option<Span>,
    /// One JSON object a line: intervals, then the whole
    #[arg(long)]
    json: bool,
    /// Write a page with pictures into this directory: cell.md, and cell/*.svg beside it
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Look at the uplink, not the downlink
    #[arg(long)]
    up: bool,
    /// Look at this carrier, of a log of several; without it at the one with most rows
    #[arg(long, value_name = "NUMBER")]
    carrier: Option<u8>,
    /// PRB pairs that the carrier has; without it guessed from the largest that was assigned
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u16).range(1..=275))]
    prb: Option<u16>,
    /// How far apart an NR carrier's subcarriers are: 15, 30, 60 or 120 kHz; without it guessed from the slots that a frame has
    #[arg(long, value_name = "SPACING", value_parser = spacing)]
    scs: Option<u8>,
    /// The own terminal's number in the cell
    #[arg(long, value_name = "NUMBER", conflicts_with = "traffic", value_parser = clap::value_parser!(u16).range(1..=65523))]
    rnti: Option<u16>,
    /// Find the own terminal by what it received: a capture of that (pcap or pcapng), by a clock that may differ from the log's
    #[arg(long, value_name = "CAPTURE", conflicts_with = "follow")]
    traffic: Option<PathBuf>,
    /// Of that capture, take what was sent to this address alone
    #[arg(long, value_name = "ADDRESS", requires = "traffic")]
    to: Option<IpAddr>,
    /// The clocks differ by this at most
    #[arg(long, value_name = "TIME", default_value = "2 s", requires = "traffic", value_parser = flag::quantity::<Span>)]
    clocks: Span,
    /// How long a row may come after those of later slots
    #[arg(long, value_name = "TIME", default_value = "1 s", allow_hyphen_values = true, value_parser = window)]
    window: Span,
    /// Lines of the table of terminals
    #[arg(long, value_name = "NUMBER", default_value = "10")]
    top: usize,
}

/// Shorter intervals would be shorter than a slot.
const SHORTEST: Span = Span::from_millis(1);

fn interval(text: &str) -> Result<Span, String> {
    let span = flag::quantity::<Span>(text)?;
    if span >= SHORTEST { Ok(span) } else { Err(format!("must be at least {SHORTEST}")) }
}

pub(crate) fn window(text: &str) -> Result<Span, String> {
    let span = interval(text)?;
    if span <= LONGEST_WINDOW { Ok(span) } else { Err(format!("must be at most {LONGEST_WINDOW}")) }
}

/// Slots of a frame of 10 ms, of the distance between subcarriers.
pub(crate) fn spacing(text: &str) -> Result<u8, String> {
    let number = text.strip_suffix("kHz").map(str::trim_end);
    match number {
        Some("15") => Ok(10),
        Some("30") => Ok(20),
        Some("60") => Ok(40),
        Some("120") => Ok(80),
        _ => Err("write 15 kHz, 30 kHz, 60 kHz or 120 kHz".into()),
    }
}

impl Args {
    fn direction(&self) -> Direction {
        if self.up { Direction::Up } else { Direction::Down }
    }

    /// What messages call the log.
    fn place(&self) -> String {
        if self.file == Path::new("-") { "standard input".to_owned() } else { self.file.display().to_string() }
    }

    /// Which way a log of NG-Scope is for, as its name has it.
    fn named(&self) -> Option<Direction> {
        let name = self.file.file_name()?.to_string_lossy().into_owned();
        match (name.contains("_dl_"), name.contains("_ul_")) {
            (true, false) => Some(Direction::Down),
            (false, true) => Some(Direction::Up),
            _ => None,
        }
    }
}

/// Rows of a log that has no beginning to go back to are looked at before the first is taken, so many or so long a time of them.
const LOOK_ROWS: usize = 4096;
const LOOK_SPAN: Span = Span::from_secs(1);

/// Measures, and prints what was found.
pub fn cell(args: &Args) -> anyhow::Result<ExitCode> {
    let mut source = Source::open(&args.file, args.follow)?;
    let regular = source.is_regular();
    if args.traffic.is_some() && !regular {
        bail!("--traffic needs a log that can be read twice: {} is none, so write it into a file first", args.place());
    }
    let mut log = Log::begin(&mut source, args)?;
    let choice;
    let mut owns = Vec::new();
    if regular {
        let (survey, found) = survey(args, log.format)?;
        owns = found;
        choice = Choice::of(args, log.format, &survey)?;
    } else {
        let mut survey = Survey::default();
        log.look_ahead(&mut source, &mut survey)?;
        choice = Choice::of(args, log.format, &survey)?;
    }
    if let Some(rnti) = args.rnti {
        owns = vec![account::Known::said(rnti)];
    }
    let interval = args.interval.or(args.follow.then_some(Span::from_secs(1)));
    let mut account = Account::new(choice, args.window, interval, owns);
    let mut printer = print::Printer::new(args, log.format);
    loop {
        for item in log.items.drain(..) {
            account.take(item);
        }
        printer.intervals(&mut account)?;
        if !log.read(&mut source)? {
            break;
        }
    }
    account.finish();
    printer.intervals(&mut account)?;
    if account.slots() == 0 {
        bail!("{} has no row of the {} that can be placed", args.place(), choice::name(args.direction()));
    }
    printer.whole(&account)?;
    for text in account.wrong() {
        note!("{}: {text}", args.place());
    }
    if let Some(dir) = &args.out {
        page::write(dir, args, log.format, &account)
            .with_context(|| format!("cannot write the page into {}", dir.display()))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// A log that is being read.
struct Log {
    place: String,
    format: Format,
    named: Option<Direction>,
    reader: Box<dyn Reader + Send>,
    buffer: Vec<u8>,
    /// What was read and not yet taken.
    items: Vec<Item>,
    over: bool,
}

impl Log {
    /// Reads until it is known what it is.
    fn begin(source: &mut Source, args: &Args) -> anyhow::Result<Log> {
        let (mut head, mut buffer) = (Vec::new(), vec![0; HEAD]);
        let (mut over, place, named) = (false, args.place(), args.named());
        let format = loop {
            match source.read(&mut buffer).with_context(|| format!("cannot read {place}"))? {
                Got::Octets(count) => head.extend_from_slice(&buffer[..count]),
                Got::Nothing => {}
                Got::Anew => head.clear(),
                Got::End => over = true,
            }
            let none = || format!("{place} is no log of assignments");
            if let Some(format) = detect(&head, over).with_context(none)? {
                break format;
            }
        };
        let mut reader = format.reader(named);
        let mut items = Vec::new();
        reader.push(&head, &mut |item| items.push(item));
        Ok(Log { place, format, named, reader, buffer, items, over })
    }

    /// Reads on. False if there is no more.
    fn read(&mut self, source: &mut Source) -> anyhow::Result<bool> {
        if self.over {
            return Ok(false);
        }
        let items = &mut self.items;
        match source.read(&mut self.buffer).with_context(|| format!("cannot read {}", self.place))? {
            Got::Octets(count) => self.reader.push(&self.buffer[..count], &mut |item| items.push(item)),
            Got::Nothing => {}
            Got::Anew => {
                note!("{}: another file has taken its place", self.place);
                self.reader = self.format.reader(self.named);
            }
            Got::End => {
                self.over = true;
                // A log that is no longer followed stops in the middle of a row.
                if !source.is_followed() {
                    self.reader.finish(&mut |item| items.push(item));
                }
            }
        }
        Ok(true)
    }

    /// Reads the first second, or what there is until it has come.
    fn look_ahead(&mut self, source: &mut Source, survey: &mut Survey) -> anyhow::Result<()> {
        let mut seen = 0;
        loop {
            for item in &self.items[seen..] {
                survey.take(item);
            }
            seen = self.items.len();
            if survey.span() >= LOOK_SPAN || survey.rows() >= LOOK_ROWS || !self.read(source)? {
                return Ok(());
            }
        }
    }
}

/// Looks through a file: what is in it, and where the own terminal is.
fn survey(args: &Args, format: Format) -> anyhow::Result<(Survey, Vec<account::Known>)> {
    let mut survey = Survey::default();
    all(args, format, &mut |record| survey.add(record))?;
    let Some(traffic) = &args.traffic else { return Ok((survey, Vec::new())) };
    let choice = Choice::of(args, format, &survey)?;
    let mut align = lasthop_laws::pbe::Align::new(args.clocks);
    let slots = choice.order(args.window);
    let found = own::find(&mut align, slots, traffic, args.to, |each| {
        all(args, format, &mut |record| {
            if choice.is_of(record) {
                each(record);
            }
        })
    })?;
    Ok((survey, found))
}

/// Every record of a file.
fn all(args: &Args, format: Format, each: &mut dyn FnMut(&Record)) -> anyhow::Result<()> {
    let mut source = Source::open(&args.file, false)?;
    let (mut reader, mut buffer) = (format.reader(args.named()), vec![0; HEAD]);
    let mut take = |item: Item| {
        if let Item::Record(record) = item {
            each(&record);
        }
    };
    loop {
        match source.read(&mut buffer).with_context(|| format!("cannot read {}", args.place()))? {
            Got::Octets(count) => reader.push(&buffer[..count], &mut take),
            Got::Nothing | Got::Anew => {}
            Got::End => {
                reader.finish(&mut take);
                return Ok(());
            }
        }
    }
}
