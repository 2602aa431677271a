//! A carrier of the terminal: the rows of its log become subframes, as the law wants them.
//!
//! A subframe is a millisecond. In NR it has several slots, and their blocks are added up; a carrier then has as many
//! times its PRB in a subframe. A log of several carriers stands for that of its first downlink row.

use super::error::Error;
use super::input::{Got, Input};
use crate::service::Say;
use lasthop_signals::{CellSubframe, Dci, Rnti};
use lasthop_units::{Span, Time};
use lasthop_wire::dci::{Direction, Format, HEAD, Item, Order, Reader, Record, Slot, detect};
use std::os::fd::BorrowedFd;
use std::path::Path;

/// Slots of a frame of 10 ms in LTE; a subframe has a tenth of those that there are.
const LTE_SLOTS: u8 = 10;
/// A secondary carrier is the terminal's as long as it was given something there within this time: about as long as the longest timers that
/// deactivate carriers (sCellDeactivationTimer, 3GPP TS 36.331).
const ACTIVE: Span = Span::from_millis(1280);
/// Slots without a row that count as idle, where a log leaves those out: a longer gap is one of the decoder.
const LONGEST_IDLE: u64 = 1000;

/// Octets that are read at once.
const AT_ONCE: usize = 1 << 14;

/// What is known of carriers beforehand.
#[derive(Clone, Copy, Debug)]
pub(super) struct Known {
    /// The terminal's own number.
    pub(super) own: Rnti,
    /// PRB pairs, if they were said.
    pub(super) prb: Option<u16>,
    /// Slots of a frame, if they were said.
    pub(super) slots: Option<u8>,
    /// How long a row may come after those of later slots.
    pub(super) window: Span,
}

/// One carrier.
pub(super) struct Carrier {
    number: u8,
    name: String,
    known: Known,
    input: Input,
    /// What was read before it was known what it is.
    head: Vec<u8>,
    log: Option<Log>,
    over: bool,
    unread: u64,
    /// Room for what is read at once.
    buffer: Vec<u8>,
    say: Say,
}

/// A log in a known format.
struct Log {
    format: Format,
    named: Option<Direction>,
    reader: Box<dyn Reader + Send>,
    order: Order,
    /// The decoder's number of the carrier that is looked at.
    carrier: Option<u8>,
    subframes: Subframes,
}

/// Slots on their way to subframes.
struct Subframes {
    known: Known,
    number: u8,
    slots: u8,
    prb: u16,
    leaves_out_idle: bool,
    last_slot: Option<u64>,
    open: Option<(u64, Vec<Dci>)>,
    /// When the terminal was given something here.
    given: Option<Time>,
}

impl Carrier {
    /// Opens the log of the carrier with this number: 0 for the primary one's.
    pub(super) fn open(number: u8, path: &Path, known: Known, say: Say) -> Result<Carrier, Error> {
        let name = if path == Path::new("-") { "standard input".to_owned() } else { path.display().to_string() };
        let input = Input::open(path).map_err(|source| Error::Read { name: name.clone(), source })?;
        Ok(Carrier {
            number,
            name,
            known,
            input,
            head: Vec::new(),
            log: None,
            over: false,
            unread: 0,
            buffer: Vec::new(),
            say,
        })
    }

    /// What tells that there is something to read; `None`: it is to be looked for.
    pub(super) fn waits_on(&self) -> Option<BorrowedFd<'_>> {
        self.input.waits_on()
    }

    /// True if nothing will come any more.
    pub(super) fn is_over(&self) -> bool {
        self.over
    }

    /// Rows that say nothing that can be understood.
    pub(super) fn unread(&self) -> u64 {
        self.unread
    }

    /// Reads what there is, and gives the subframes that are whole with it.
    pub(super) fn read(&mut self, now: Time, each: &mut dyn FnMut(&CellSubframe)) -> Result<(), Error> {
        let mut buffer = std::mem::take(&mut self.buffer);
        buffer.resize(AT_ONCE, 0);
        let done = self.read_into(&mut buffer, now, each);
        self.buffer = buffer;
        done
    }

    fn read_into(&mut self, buffer: &mut [u8], now: Time, each: &mut dyn FnMut(&CellSubframe)) -> Result<(), Error> {
        while !self.over {
            let got = self.input.read(buffer);
            match got.map_err(|source| Error::Read { name: self.name.clone(), source })? {
                Got::Octets(count) => {
                    self.take(now, &buffer[..count], each)?;
                    if count < buffer.len() {
                        break;
                    }
                }
                Got::Nothing => break,
                Got::Anew => {
                    self.head.clear();
                    if let Some(log) = &mut self.log {
                        (self.say)(&format!("{}: another file has taken its place", self.name));
                        log.reader = log.format.reader(log.named);
                    }
                }
                Got::End => {
                    self.over = true;
                    (self.say)(&format!("{} has ended", self.name));
                }
            }
        }
        Ok(())
    }

    fn take(&mut self, now: Time, octets: &[u8], each: &mut dyn FnMut(&CellSubframe)) -> Result<(), Error> {
        if self.log.is_some() {
            self.push(now, octets, each);
            return Ok(());
        }
        self.head.extend_from_slice(octets);
        let none = |why| Error::NoLog { name: self.name.clone(), why };
        let Some(format) = detect(&self.head, self.head.len() >= HEAD).map_err(none)? else { return Ok(()) };
        self.log = Some(self.begin(format)?);
        let head = std::mem::take(&mut self.head);
        let far = self.input.skip().map_err(|source| Error::Read { name: self.name.clone(), source })?;
        if !far {
            self.push(now, &head, each);
        }
        Ok(())
    }

    fn begin(&self, format: Format) -> Result<Log, Error> {
        let slots = match (self.known.slots, format.is_lte()) {
            (Some(slots), false) => slots,
            (None | Some(LTE_SLOTS), true) => LTE_SLOTS,
            (Some(_), true) => {
                let why = "is of LTE, whose subcarriers are 15 kHz apart: leave out --scs";
                return Err(Error::Spacing { name: self.name.clone(), why });
            }
            (None, false) => {
                let why = "is of NR: say how far apart its subcarriers are, as with --scs \"30 kHz\"";
                return Err(Error::Spacing { name: self.name.clone(), why });
            }
        };
        let file = Path::new(&self.name).file_name().unwrap_or_default().to_string_lossy().into_owned();
        let named = match (file.contains("_dl_"), file.contains("_ul_")) {
            (true, false) => Some(Direction::Down),
            (false, true) => Some(Direction::Up),
            _ => None,
        };
        let subframes = Subframes {
            known: self.known,
            number: self.number,
            slots,
            prb: self.known.prb.unwrap_or(0),
            leaves_out_idle: format.leaves_out_idle(),
            last_slot: None,
            open: None,
            given: None,
        };
        let order = Order::new(slots, self.known.window);
        Ok(Log { format, named, reader: format.reader(named), order, carrier: None, subframes })
    }

    fn push(&mut self, now: Time, octets: &[u8], each: &mut dyn FnMut(&CellSubframe)) {
        let (Some(log), unread) = (&mut self.log, &mut self.unread) else { return };
        let Log { format, reader, order, carrier, subframes, .. } = log;
        reader.push(octets, &mut |item| match item {
            Item::Record(record) if is_of(&record, carrier) => {
                subframes.grow(*format, &record);
                order.push(&record, &mut |slot| subframes.on_slot(now, slot, each));
            }
            Item::Record(_) | Item::Header => {}
            Item::Unread(_) => *unread += 1,
        });
    }
}

/// True for rows of the carrier that is looked at; the first downlink row says which that is.
fn is_of(record: &Record, carrier: &mut Option<u8>) -> bool {
    record.direction == Direction::Down && record.carrier == *carrier.get_or_insert(record.carrier)
}

impl Subframes {
    /// A carrier has at least as many PRB as are assigned at once.
    fn grow(&mut self, format: Format, record: &Record) {
        if self.known.prb.is_none() && record.reach() > self.prb {
            self.prb = format.next_size(self.slots, record.reach());
        }
    }

    /// Slots of a subframe.
    fn per(&self) -> u64 {
        u64::from(self.slots / LTE_SLOTS).max(1)
    }

    fn on_slot(&mut self, now: Time, slot: Slot, each: &mut dyn FnMut(&CellSubframe)) {
        let before = self.last_slot.replace(slot.number).filter(|_| !slot.fresh);
        let missed = before.map_or(0, |before| slot.number.saturating_sub(before + 1));
        if self.leaves_out_idle && missed <= LONGEST_IDLE {
            (slot.number - missed..slot.number).for_each(|number| self.add(now, number, &[], each));
        }
        self.add(now, slot.number, &slot.dcis, each);
    }

    fn add(&mut self, now: Time, slot: u64, dcis: &[Dci], each: &mut dyn FnMut(&CellSubframe)) {
        let per = self.per();
        let number = slot / per;
        if dcis.iter().any(|dci| dci.rnti == self.known.own && dci.is_possible()) {
            self.given = Some(now);
        }
        if self.open.as_ref().is_some_and(|(open, _)| *open != number) {
            self.give(now, each);
        }
        self.open.get_or_insert((number, Vec::new())).1.extend_from_slice(dcis);
        if slot % per == per - 1 {
            self.give(now, each);
        }
    }

    fn give(&mut self, now: Time, each: &mut dyn FnMut(&CellSubframe)) {
        let Some((number, dcis)) = self.open.take() else { return };
        let active = self.number == 0 || self.given.is_some_and(|given| now.since(given) < ACTIVE);
        let prb = u64::from(self.prb) * self.per();
        each(&CellSubframe {
            carrier: self.number,
            number,
            prb: u16::try_from(prb).unwrap_or(u16::MAX),
            own: active.then_some(self.known.own),
            dcis,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;

    const OWN: Rnti = Rnti(100);

    fn known(prb: Option<u16>, slots: Option<u8>) -> Known {
        Known { own: OWN, prb, slots, window: Span::from_millis(1) }
    }

    /// A row of NG-Scope: so many PRB of subframe `tti` for `rnti`, with `bits`.
    fn row(tti: u64, rnti: u16, prb: u16, bits: u32) -> String {
        let at = 1_700_000_000_000_000 + tti * 1000;
        format!("{tti}\t{rnti}\t{prb}\t{prb}\t20\t0\t{bits}\t0\t0\t0\t0\t{at}\t1\t0\t\n")
    }

    /// What becomes of text that comes at `now`, octet by octet.
    fn subframes(number: u8, known: Known, text: &str) -> Result<Vec<CellSubframe>, String> {
        let folder = tempfile::tempdir().expect("a directory");
        let path = folder.path().join("log");
        std::fs::File::create(&path).and_then(|mut file| file.write_all(text.as_bytes())).expect("written");
        let mut carrier = Carrier::open(number, &path, known, |_| {}).map_err(|error| error.to_string())?;
        let mut seen = Vec::new();
        let read = carrier.read(Time::ZERO, &mut |subframe| seen.push(subframe.clone()));
        read.map(|()| seen).map_err(|error| error.to_string())
    }

    #[test]
    fn rows_become_subframes_of_the_size_that_carriers_have() {
        let text: String = (0..40).map(|tti| row(tti, 100, 30, 20_000) + &row(tti, 200, 10, 5000)).collect();
        let seen = subframes(0, known(None, None), &text).expect("a log");
        assert!(seen.len() >= 38, "{}", seen.len());
        assert!(seen.windows(2).all(|pair| pair[0].number + 1 == pair[1].number));
        assert!(
            seen.iter().all(|subframe| (subframe.prb, subframe.own) == (50, Some(OWN)) && subframe.dcis.len() == 2)
        );
        let said = subframes(0, known(Some(100), None), &text).expect("a log");
        assert!(said.iter().all(|subframe| subframe.prb == 100));
    }

    #[test]
    fn a_secondary_carrier_is_own_from_its_first_allocation() {
        let text: String = (0..40).map(|tti| row(tti, if tti < 20 { 200 } else { 100 }, 10, 5000)).collect();
        let owns: Vec<bool> =
            subframes(1, known(None, None), &text).expect("a log").iter().map(|seen| seen.own.is_some()).collect();
        assert_eq!(owns.iter().position(|own| *own), Some(20));
        assert!(owns[20..].iter().all(|own| *own));
    }

    #[test]
    fn what_is_no_log_is_told() {
        let refused = |text: &str, slots| subframes(0, known(None, slots), text).expect_err("no log");
        let wrong = "this is\nno log\n".repeat(20);
        assert!(refused(&wrong, None).contains("is no log of assignments"), "{}", refused(&wrong, None));
        let text: String = (0..40).map(|tti| row(tti, 100, 30, 20_000)).collect();
        assert!(refused(&text, Some(20)).contains("leave out --scs"));
    }

    #[test]
    fn slots_of_nr_are_added_up_and_left_out_ones_are_idle() {
        let mut carrier = Subframes {
            known: known(Some(51), Some(20)),
            number: 0,
            slots: 20,
            prb: 51,
            leaves_out_idle: true,
            last_slot: None,
            open: None,
            given: None,
        };
        let dci = Dci { rnti: OWN, prb: 20, process: 0, blocks: [None; 2] };
        let mut seen = Vec::new();
        for (number, fresh) in [(0, true), (1, false), (6, false), (7, false)] {
            let slot = Slot { number, at: Time::ZERO, fresh, dcis: vec![dci] };
            carrier.on_slot(Time::ZERO, slot, &mut |subframe| {
                seen.push((subframe.number, subframe.prb, subframe.dcis.len()))
            });
        }
        assert_eq!(seen, [(0, 102, 2), (1, 102, 0), (2, 102, 0), (3, 102, 2)]);
    }
}
