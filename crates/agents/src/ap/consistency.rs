//! Refuses driver records that contradict themselves, the record before, or the time that has passed.
//!
//! A law takes differences of counters. One that jumps, stands still beside others that move, or comes twice would be taken for
//! a hop that others fill, and every window would become small. So each record is compared with what its counters mean: a part
//! is no more than the whole, time does not grow faster than the clock, and frames are no faster than their PHY rate.
//!
//! A record that is refused moves nothing: the law is told of the growth between records that agree, added up, so that it never
//! sees a jump. A driver that begins anew therefore costs one record.
//!
//! A PHY rate is that of now, and the frames of a record are those of the time before: one that has just fallen contradicts
//! them and is true. It counts once frames agree, or none has contradicted it for [`RATE_PATIENCE`]; until then the rate before
//! counts, and after as long a time of contradictions records are refused.

use lasthop_signals::{ChannelTime, HopReport, Node, StationReport};
use lasthop_units::{Bytes, Rate, Span, Time};
use lasthop_wire::driver::Record;
use std::collections::BTreeMap;

/// What a record contradicts.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Contradiction {
    /// It was read later than now.
    #[error("it was read {0} later than now on CLOCK_MONOTONIC")]
    Future(Span),
    /// It was read before the one before.
    #[error("it was read before the record that came before it")]
    Earlier,
    /// A station stands in it twice.
    #[error("station {} is listed twice", .0.0)]
    Twice(Node),
    /// A part of something is more than the whole.
    #[error("{part} is more than {whole}")]
    Part {
        /// Which counter.
        part: &'static str,
        /// Of what it is a part.
        whole: &'static str,
    },
    /// A counter fell, as it does when a driver begins anew.
    #[error("{0} is less than before: the driver has begun anew, or its counters overflow")]
    Fell(&'static str),
    /// Something grew faster than it can.
    #[error("{what} grew by {by} while {within} allowed {most}")]
    Grew {
        /// What grew.
        what: &'static str,
        /// By how much.
        by: Span,
        /// What bounds it.
        within: &'static str,
        /// Its growth.
        most: Span,
    },
    /// Octets or frames went out faster than the PHY rate is.
    #[error(
        "station {}: what was sent to it takes {takes} at its PHY rate of {rate}, and {took} passed with it", .station.0
    )]
    Faster {
        /// To which station.
        station: Node,
        /// At which rate.
        rate: Rate,
        /// The least that it takes.
        takes: Span,
        /// What it took.
        took: Span,
    },
}

impl Contradiction {
    /// A number for each kind, from 0.
    pub(super) const fn kind(self) -> usize {
        match self {
            Contradiction::Future(_) => 0,
            Contradiction::Earlier => 1,
            Contradiction::Twice(_) => 2,
            Contradiction::Part { .. } => 3,
            Contradiction::Fell(_) => 4,
            Contradiction::Grew { .. } => 5,
            Contradiction::Faster { .. } => 6,
        }
    }

    /// How many kinds there are.
    pub(super) const KINDS: usize = 7;
}

/// Compares each record with the one before.
#[derive(Debug, Default)]
pub(super) struct Consistency {
    /// The last record that agrees with itself.
    before: Option<Record>,
    /// Counters as the law knows them: the growth between records that agree.
    channel: Option<ChannelTime>,
    stations: BTreeMap<Node, Station>,
    active: Allowance,
    busy: Allowance,
    rx: Allowance,
    tx: Allowance,
    tx_airtime: Allowance,
    rx_airtime: Allowance,
}

/// What is known of one station.
#[derive(Debug)]
struct Station {
    told: StationReport,
    /// The rate that counts, and whether the driver tells a lower one that frames have not agreed with.
    rate: Rate,
    doubted: Option<Doubt>,
    air: Allowance,
    goodput: Allowance,
}

/// A rate that frames contradict, or may yet.
#[derive(Clone, Copy, Debug)]
struct Doubt {
    since: Time,
    /// When frames last contradicted it, or it was first told.
    newest: Time,
    /// By what.
    why: Contradiction,
}

/// Clocks of driver and radio tick in milliseconds, and a record's counters are read one after the other.
const CLOCK: Span = Span::from_millis(5);
/// An exchange is booked when it is over. The longest is a frame of 1500 octets at 1 Mbit/s with its answers; two may be booked
/// in one record.
const BOOKED: Span = Span::from_millis(25);
/// Clocks differ, and what was spent of an allowance comes back: one part in so many of the time that passes.
const DRIFT: u64 = 20;
/// Share of an exchange that is neither sent nor received: the gaps of RTS, CTS, a short frame and its Ack are less than that.
const GAPS: u64 = 2;
/// For so long frames of the time before may speak against a new rate: what is counted when it arrives comes after a delay, and a rate
/// may go on falling.
const RATE_PATIENCE: Span = Span::from_millis(100);
/// Frames that seem to take so many times as long as they took contradict a rate: some drivers tell a mean.
const RATE_MARGIN: u64 = 2;
/// How much longer frames may seem to take than they took: counters are not read in one moment.
const RATE_SLACK: Span = Span::from_millis(1);

impl Consistency {
    /// The record as the law is to know it: of counters that only grow as they can.
    ///
    /// # Errors
    /// What it contradicts. The next one is compared with it if it agrees with itself.
    pub(super) fn admit(&mut self, now: Time, mut record: Record) -> Result<Record, Contradiction> {
        // As they should be: then each is found again without looking at all.
        record.report.stations.sort_by_key(|station| station.station);
        agrees_with_itself(&record.report)?;
        if record.at > now + CLOCK {
            return Err(Contradiction::Future(record.at.since(now)));
        }
        let grown = match &self.before {
            Some(before) if record.at < before.at => return Err(Contradiction::Earlier),
            Some(_) => self.check(&record),
            None => Ok(()),
        };
        let before = self.before.replace(record);
        grown?;
        Ok(self.tell(before.as_ref()))
    }

    /// Compares the growth since the record before with what bounds it.
    fn check(&mut self, record: &Record) -> Result<(), Contradiction> {
        let Some(before) = &self.before else { return Ok(()) };
        let (old, new) = (&before.report, &record.report);
        if let Some(counter) = fell(old, new) {
            return Err(Contradiction::Fell(counter));
        }
        let passed = record.at.since(before.at);
        let active = new.channel.active.saturating_sub(old.channel.active);
        let [busy, rx, tx] = [|c: &ChannelTime| c.busy, |c: &ChannelTime| c.rx, |c: &ChannelTime| c.tx].map(|of| {
            let (old, new) = (of(&old.channel)?, of(&new.channel)?);
            Some(new.saturating_sub(old))
        });
        let sum =
            |of: fn(&StationReport) -> Option<Span>| pairs(old, new).map(|pair| grown(pair, of)).sum::<Option<Span>>();
        let (to, from) = (sum(|s| s.tx_airtime), sum(|s| s.rx_airtime));
        // Every allowance is used whatever the others say: none is left out because of another.
        let checks = [
            self.active.spend("the time on the channel", Some(active), "the clock", Some(passed), CLOCK),
            self.busy.spend("busy time", busy, "the time on the channel", Some(active), CLOCK),
            self.rx.spend("receiving time", rx, "the time on the channel", Some(active), BOOKED),
            self.tx.spend("transmitting time", tx, "busy time", busy, CLOCK),
            self.tx_airtime.spend(
                "the airtime towards stations",
                to,
                "transmitting and receiving",
                tx.zip(rx).map(|(tx, rx)| (tx + rx) * GAPS),
                BOOKED,
            ),
            self.rx_airtime.spend("the airtime from stations", from, "busy time", busy.map(|busy| busy * GAPS), BOOKED),
        ];
        let mut found = checks.into_iter().find_map(Result::err);
        for (old, new) in pairs(old, new) {
            let Some(station) = self.stations.get_mut(&new.station) else { continue };
            let checked = station.check(record.at, active, old, new);
            found = found.or(checked.err());
        }
        found.map_or(Ok(()), Err)
    }

    /// Adds what has grown to what the law knows, and gives that.
    fn tell(&mut self, before: Option<&Record>) -> Record {
        let Consistency { before: Some(record), channel, stations, .. } = self else { return Record::default() };
        let new = record.report.channel;
        let old = before.map_or(new, |before| before.report.channel);
        let total = channel.get_or_insert(new);
        total.active = onward(total.active, old.active, new.active);
        total.busy = onward_if(total.busy, old.busy, new.busy);
        total.rx = onward_if(total.rx, old.rx, new.rx);
        total.tx = onward_if(total.tx, old.tx, new.tx);
        total.scan = onward_if(total.scan, old.scan, new.scan);
        // What is lacking now is kept for when it is there again, and not told.
        let mut told = HopReport {
            channel: ChannelTime {
                active: total.active,
                busy: new.busy.and(total.busy),
                rx: new.rx.and(total.rx),
                tx: new.tx.and(total.tx),
                scan: new.scan.and(total.scan),
                noise: new.noise,
            },
            stations: Vec::with_capacity(record.report.stations.len()),
            queues: record.report.queues.clone(),
        };
        stations.retain(|node, _| of(&record.report, *node).is_some());
        for new in &record.report.stations {
            let old = before.and_then(|before| of(&before.report, new.station));
            let station = stations.entry(new.station).or_insert_with(|| Station::new(*new));
            told.stations.push(station.tell(old.unwrap_or(new), new));
        }
        // Records are compared by what they count.
        Record { at: record.at, report: told, addresses: std::mem::take(&mut record.addresses) }
    }
}

impl Station {
    fn new(told: StationReport) -> Station {
        let (air, goodput) = (Allowance::default(), Allowance::default());
        Station { told, rate: told.phy_rate, doubted: None, air, goodput }
    }

    fn check(&mut self, at: Time, active: Span, old: &StationReport, new: &StationReport) -> Result<(), Contradiction> {
        let [towards, from] =
            [|s: &StationReport| s.tx_airtime, |s: &StationReport| s.rx_airtime].map(|of| grown((old, new), of));
        let most = towards.into_iter().chain(from).max();
        let air = self.air.spend("a station's airtime", most, "the time on the channel", Some(active), BOOKED);
        let sent = new.tx_bytes.saturating_sub(old.tx_bytes);
        let rate = old.phy_rate.max(new.phy_rate).max(self.rate);
        let goodput = match rate.time_for(sent).filter(|_| !rate.is_zero()) {
            Some(takes) if self.goodput.spend("", Some(takes), "", Some(active), BOOKED).is_err() => {
                Err(Contradiction::Faster { station: new.station, rate, takes, took: active })
            }
            _ => Ok(()),
        };
        let rate = self.check_rate(at, towards.unwrap_or(active), old, new);
        air.and(goodput).and(rate)
    }

    /// Decides which PHY rate counts: the frames of this record took `took`.
    fn check_rate(
        &mut self,
        at: Time,
        took: Span,
        old: &StationReport,
        new: &StationReport,
    ) -> Result<(), Contradiction> {
        let packets = new.tx_packets.saturating_sub(old.tx_packets);
        let attempts = new.tx_attempts.zip(old.tx_attempts).map_or(packets, |(new, old)| new.saturating_sub(old));
        let bytes = new.tx_bytes.saturating_sub(old.tx_bytes).get();
        // Repeats are as long as what arrives is on average; an aggregate of several packets in one attempt is longer.
        let octets = u128::from(bytes) * u128::from(attempts.max(packets)) / u128::from(packets.max(1));
        let octets = Bytes::new(u64::try_from(octets).unwrap_or(u64::MAX));
        let takes = new.phy_rate.time_for(octets).filter(|_| !new.phy_rate.is_zero()).unwrap_or(Span::ZERO);
        let contradicts = takes > took * RATE_MARGIN + RATE_SLACK;
        // Frames that would not seem too long at any rate speak for none.
        let agrees = !contradicts && takes > RATE_SLACK;
        let why = Contradiction::Faster { station: new.station, rate: new.phy_rate, takes, took };
        let Some(doubt) = &mut self.doubted else {
            // Of a rate that is not much lower no frames could say that it is wrong.
            let near = new.phy_rate.as_bps() >= self.rate.as_bps() / RATE_MARGIN;
            if !contradicts && (agrees || near) {
                self.rate = new.phy_rate;
                return Ok(());
            }
            self.doubted = Some(Doubt { since: at, newest: at, why });
            return if new.phy_rate == self.rate { Err(why) } else { Ok(()) };
        };
        if contradicts {
            (doubt.newest, doubt.why) = (at, why);
        }
        let (since, newest, why) = (doubt.since, doubt.newest, doubt.why);
        if !contradicts && (agrees || new.phy_rate == self.rate || at.since(newest) > RATE_PATIENCE) {
            (self.rate, self.doubted) = (new.phy_rate, None);
            return Ok(());
        }
        // Records without frames among those that contradict are refused with them: they alone would show a hop that carries nothing.
        if at.since(since) > RATE_PATIENCE || (contradicts && new.phy_rate == self.rate) {
            return Err(why);
        }
        Ok(())
    }

    fn tell(&mut self, old: &StationReport, new: &StationReport) -> StationReport {
        let total = self.told;
        self.told = StationReport {
            queue_drops: onward(total.queue_drops, old.queue_drops, new.queue_drops),
            tx_attempts: onward_if(total.tx_attempts, old.tx_attempts, new.tx_attempts),
            tx_retries: onward_if(total.tx_retries, old.tx_retries, new.tx_retries),
            tx_failed: onward_if(total.tx_failed, old.tx_failed, new.tx_failed),
            tx_packets: onward(total.tx_packets, old.tx_packets, new.tx_packets),
            tx_bytes: onward(total.tx_bytes, old.tx_bytes, new.tx_bytes),
            rx_packets: onward(total.rx_packets, old.rx_packets, new.rx_packets),
            rx_bytes: onward(total.rx_bytes, old.rx_bytes, new.rx_bytes),
            tx_airtime: onward_if(total.tx_airtime, old.tx_airtime, new.tx_airtime),
            rx_airtime: onward_if(total.rx_airtime, old.rx_airtime, new.rx_airtime),
            tx_ppdus: onward_if(total.tx_ppdus, old.tx_ppdus, new.tx_ppdus),
            phy_rate: self.rate,
            ..*new
        };
        StationReport {
            tx_attempts: new.tx_attempts.and(self.told.tx_attempts),
            tx_retries: new.tx_retries.and(self.told.tx_retries),
            tx_failed: new.tx_failed.and(self.told.tx_failed),
            tx_airtime: new.tx_airtime.and(self.told.tx_airtime),
            rx_airtime: new.rx_airtime.and(self.told.rx_airtime),
            tx_ppdus: new.tx_ppdus.and(self.told.tx_ppdus),
            ..self.told
        }
    }
}

/// By how much something may have grown more than what bounds it.
#[derive(Clone, Copy, Debug, Default)]
struct Allowance {
    /// Of [`CLOCK`] or [`BOOKED`]: what has been used up, nanoseconds.
    used: i128,
}

impl Allowance {
    /// Something grew by this much while what bounds it grew by so much. What is not known bounds nothing.
    fn spend(
        &mut self,
        what: &'static str,
        by: Option<Span>,
        within: &'static str,
        most: Option<Span>,
        slack: Span,
    ) -> Result<(), Contradiction> {
        let (Some(by), Some(most)) = (by, most) else { return Ok(()) };
        let slack = i128::from(slack.as_nanos());
        let used = self.used + i128::from(by.as_nanos()) - i128::from((most + most / DRIFT).as_nanos());
        // What was refused is not owed: the next record is judged by what it says itself, but has no more to spend.
        self.used = used.clamp(0, slack);
        if used <= slack { Ok(()) } else { Err(Contradiction::Grew { what, by, within, most }) }
    }
}

/// What needs no other record to be wrong.
fn agrees_with_itself(report: &HopReport) -> Result<(), Contradiction> {
    let within = |part: Option<Span>, whole: Option<Span>, slack: Span| {
        part.zip(whole).is_none_or(|(part, whole)| part <= whole + slack)
    };
    let ChannelTime { active, busy, rx, tx, .. } = report.channel;
    let among = |part: Option<u64>, whole: Option<u64>| part.zip(whole).is_none_or(|(part, whole)| part <= whole);
    let parts = [
        ("busy time", "the time on the channel", within(busy, Some(active), CLOCK)),
        ("receiving time", "the time on the channel", within(rx, Some(active), BOOKED)),
        ("transmitting time", "busy time", within(tx, busy, CLOCK)),
    ];
    if let Some(pair) = report.stations.windows(2).find(|pair| pair[0].station == pair[1].station) {
        return Err(Contradiction::Twice(pair[0].station));
    }
    let of_stations = report.stations.iter().flat_map(|station| {
        let longest = u64::from(station.backlog_packets) * LONGEST_PACKET;
        [
            ("the repeats of a station", "its attempts", among(station.tx_retries, station.tx_attempts)),
            ("the PPDUs of a station", "its attempts", among(station.tx_ppdus, station.tx_attempts)),
            ("the backlog of a station", "its packets hold", station.backlog_bytes.get() <= longest),
        ]
    });
    match parts.into_iter().chain(of_stations).find(|(.., right)| !right) {
        Some((part, whole, _)) => Err(Contradiction::Part { part, whole }),
        None => Ok(()),
    }
}

/// Octets of the longest IP packet.
const LONGEST_PACKET: u64 = 65_535;

/// What a counter is called, and where it is; some drivers lack it.
type Named<T> = (&'static str, fn(&T) -> Option<u64>);

const OF_CHANNEL: [Named<ChannelTime>; 4] = [
    ("the time on the channel", |c| Some(c.active.as_nanos())),
    ("busy time", |c| c.busy.map(Span::as_nanos)),
    ("receiving time", |c| c.rx.map(Span::as_nanos)),
    ("transmitting time", |c| c.tx.map(Span::as_nanos)),
];

const OF_STATION: [Named<StationReport>; 11] = [
    ("a station's count of drops", |s| Some(s.queue_drops)),
    ("a station's count of attempts", |s| s.tx_attempts),
    ("a station's count of repeats", |s| s.tx_retries),
    ("a station's count of packets given up", |s| s.tx_failed),
    ("a station's count of packets", |s| Some(s.tx_packets)),
    ("a station's count of octets", |s| Some(s.tx_bytes.get())),
    ("a station's count of packets received", |s| Some(s.rx_packets)),
    ("a station's count of octets received", |s| Some(s.rx_bytes.get())),
    ("a station's airtime", |s| s.tx_airtime.map(Span::as_nanos)),
    ("a station's airtime", |s| s.rx_airtime.map(Span::as_nanos)),
    ("a station's count of PPDUs", |s| s.tx_ppdus),
];

/// The first counter that is less than it was.
fn fell(old: &HopReport, new: &HopReport) -> Option<&'static str> {
    fn first<T>(counters: &[Named<T>], old: &T, new: &T) -> Option<&'static str> {
        let less = |(_, of): &&Named<T>| of(old).zip(of(new)).is_some_and(|(old, new)| new < old);
        counters.iter().find(less).map(|(name, _)| *name)
    }
    first(&OF_CHANNEL, &old.channel, &new.channel)
        .or_else(|| pairs(old, new).find_map(|(old, new)| first(&OF_STATION, old, new)))
}

/// A station of a record. The record's stations are in order.
fn of(report: &HopReport, node: Node) -> Option<&StationReport> {
    let at = report.stations.binary_search_by_key(&node, |station| station.station).ok()?;
    report.stations.get(at)
}

/// Stations that stand in both records.
fn pairs<'a>(old: &'a HopReport, new: &'a HopReport) -> impl Iterator<Item = (&'a StationReport, &'a StationReport)> {
    new.stations.iter().filter_map(|station| Some((of(old, station.station)?, station)))
}

fn grown((old, new): (&StationReport, &StationReport), of: fn(&StationReport) -> Option<Span>) -> Option<Span> {
    Some(of(new)?.saturating_sub(of(old)?))
}

/// A counter's kind of number.
trait Count: Copy {
    fn raw(self) -> u64;
    fn of(raw: u64) -> Self;
}

impl Count for u64 {
    fn raw(self) -> u64 {
        self
    }

    fn of(raw: u64) -> u64 {
        raw
    }
}

impl Count for Span {
    fn raw(self) -> u64 {
        self.as_nanos()
    }

    fn of(raw: u64) -> Span {
        Span::from_nanos(raw)
    }
}

impl Count for Bytes {
    fn raw(self) -> u64 {
        self.get()
    }

    fn of(raw: u64) -> Bytes {
        Bytes::new(raw)
    }
}

/// A total, and what a counter has grown by.
fn onward<C: Count>(total: C, old: C, new: C) -> C {
    C::of(total.raw().saturating_add(new.raw().saturating_sub(old.raw())))
}

fn onward_if<C: Count>(total: Option<C>, old: Option<C>, new: Option<C>) -> Option<C> {
    match (total, old.zip(new)) {
        (Some(total), Some((old, new))) => Some(onward(total, old, new)),
        (total, _) => total.or(new),
    }
}

#[cfg(test)]
#[path = "consistency/tests.rs"]
mod tests;
