//! Bulk transfers by two programs that carry them over UDP, each in its host's namespace.

use super::Period;
use super::listening::{self, Transport};
use crate::child::{Child, Ended};
use crate::error::{LabError, Result};
use crate::netns::Namespace;
use crate::spec::CarrierSpec;
use lasthop_units::{Bytes, Span, Time};
use serde_json::Value;
use std::net::SocketAddr;

/// What the two programs measured, in the time since the stream began.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CarriedLog {
    /// When the stream should begin; that of its programs begins some milliseconds later.
    pub start: Time,
    /// Payload that came, in the order sent.
    pub received: Vec<Bin>,
    /// What the sender said of itself at the end of each of its intervals.
    pub sent: Vec<Sent>,
}

/// Payload of an interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bin {
    /// When it began.
    pub start: Span,
    /// How long it was.
    pub length: Span,
    /// What came in it.
    pub payload: Bytes,
}

/// Packets up to a moment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sent {
    /// The moment.
    pub at: Span,
    /// Packets with payload, those sent again included.
    pub packets: u64,
    /// Those sent again.
    pub again: u64,
    /// The round trip, if one is known.
    pub round_trip: Option<Span>,
}

/// A receiver that waits, and from the stream's begin on its sender.
#[derive(Debug)]
pub(crate) struct Carried {
    receiver: Child,
    sender: Option<Child>,
    address: SocketAddr,
}

/// How long a receiver may take until it listens.
const PATIENCE: Span = Span::from_secs(5);
/// How long the programs may take to end.
const FAREWELL: Span = Span::from_secs(2);

impl Carried {
    /// Starts the receiver, and waits until it listens at `address`.
    pub(crate) fn receive(
        host: &Namespace,
        spec: &CarrierSpec,
        address: SocketAddr,
        period: &Period,
    ) -> Result<Carried> {
        let bind = address.to_string();
        let patience = patience(period);
        let fill = |argument: &String| argument.replace("{bind}", &bind).replace("{patience}", &patience);
        let arguments: Vec<String> = spec.receive.iter().map(fill).collect();
        let mut receiver = Child::start(host, spec.program.as_os_str(), &arguments)?;
        let (step, mut waited) = (Span::from_millis(5), Span::ZERO);
        while !host.within(|| Ok(listening::is_taken(Transport::Udp, address.port())))? {
            if period.stop.is_raised() {
                return Err(LabError::Stopped);
            }
            if receiver.has_ended() {
                return Err(LabError::Program { program: of("receiver", address), why: receiver.ended_early() });
            }
            if waited >= PATIENCE {
                let why = format!("it does not listen after {PATIENCE}");
                return Err(LabError::Program { program: of("receiver", address), why });
            }
            std::thread::sleep(step.into());
            waited += step;
        }
        Ok(Carried { receiver, sender: None, address })
    }

    /// True once the sender was started.
    pub(crate) fn has_begun(&self) -> bool {
        self.sender.is_some()
    }

    /// Starts the sender: of `size`, or of as much as goes.
    pub(crate) fn send(
        &mut self,
        host: &Namespace,
        spec: &CarrierSpec,
        size: Option<Bytes>,
        period: &Period,
    ) -> Result<()> {
        // The end of the period is what ends it.
        let (limit, amount) = match size {
            Some(size) => ("--bytes", format!("{} B", size.get())),
            None => ("--time", patience(period)),
        };
        let (to, patience) = (self.address.to_string(), patience(period));
        let fill = |argument: &String| {
            argument
                .replace("{to}", &to)
                .replace("{limit}", limit)
                .replace("{amount}", &amount)
                .replace("{patience}", &patience)
        };
        let arguments: Vec<String> = spec.send.iter().map(fill).collect();
        self.sender = Some(Child::start(host, spec.program.as_os_str(), &arguments)?);
        Ok(())
    }

    /// Waits for the period's end, or for both programs' if that comes before, and takes what they measured.
    pub(crate) fn finish(self, period: &Period) -> Result<CarriedLog> {
        let Carried { mut receiver, sender, address } = self;
        let Some(mut sender) = sender else { return Err(LabError::Stopped) };
        while period.lasts() && !(sender.has_ended() && receiver.has_ended()) {
            std::thread::sleep(super::TICK);
        }
        if period.stop.is_raised() {
            return Err(LabError::Stopped);
        }
        // The end of one tells the other to end.
        let over = [receiver.has_ended(), sender.has_ended()];
        let received = left(("receiver", address), receiver.stop(FAREWELL, &period.stop)?, over[0])?;
        let sent = left(("sender", address), sender.stop(FAREWELL, &period.stop)?, over[1])?;
        if period.stop.is_raised() {
            return Err(LabError::Stopped);
        }
        let wrong = |end, why| LabError::Program { program: of(end, address), why };
        Ok(CarriedLog {
            start: period.start,
            received: received_in(&received).map_err(|why| wrong("receiver", why))?,
            sent: sent_by(&sent).map_err(|why| wrong("sender", why))?,
        })
    }
}

fn of(end: &str, address: SocketAddr) -> String {
    format!("the {end} of the stream to {address}")
}

/// Longer than the period.
fn patience(period: &Period) -> String {
    format!("{} s", (period.end.since(period.start) + Span::from_secs(60)).as_secs_f64().ceil())
}

/// Exit status of a program of ours that was asked to end, and of one at the other end of such a program.
const INTERRUPTED: [i32; 2] = [130, 1];

/// What an end printed, which had ended by itself if `over`.
fn left((end, address): (&str, SocketAddr), ended: Ended, over: bool) -> Result<String> {
    match ended.status.code() {
        Some(0) => Ok(ended.stdout),
        Some(code) if !over && INTERRUPTED.contains(&code) => Ok(ended.stdout),
        _ => Err(LabError::Program { program: of(end, address), why: ended.complaint() }),
    }
}

/// The lines of one kind.
fn lines(printed: &str, kind: &'static str) -> impl Iterator<Item = Value> {
    printed.lines().filter_map(|line| serde_json::from_str(line).ok()).filter(move |line: &Value| line["kind"] == kind)
}

fn number(line: &Value, name: &str) -> std::result::Result<f64, String> {
    line[name].as_f64().filter(|number| *number >= 0.0).ok_or_else(|| format!("its JSON lacks {name}: {line}"))
}

fn received_in(printed: &str) -> std::result::Result<Vec<Bin>, String> {
    let bin = |line: Value| {
        let (from, to) = (number(&line, "from_s")?, number(&line, "to_s")?);
        let length = Span::from_secs_f64((to - from).max(0.0));
        Ok(Bin { start: Span::from_secs_f64(from), length, payload: Bytes::new(number(&line, "bytes")? as u64) })
    };
    lines(printed, "interval").map(bin).collect()
}

fn sent_by(printed: &str) -> std::result::Result<Vec<Sent>, String> {
    let (mut packets, mut again) = (0, 0);
    let mut at = |line: Value| {
        packets += number(&line, "packets")? as u64;
        again += number(&line, "retransmitted")? as u64;
        let round_trip = line["rtt_ms"].as_f64().map(|ms| Span::from_secs_f64(ms / 1e3));
        Ok(Sent { at: Span::from_secs_f64(number(&line, "to_s")?), packets, again, round_trip })
    };
    lines(printed, "interval").map(&mut at).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_of_both_ends_are_read_and_missing_keys_named() {
        let printed = r#"a word
{"kind":"interval","from_s":0.0,"to_s":1.0,"bytes":1400,"packets":3,"retransmitted":1,"rtt_ms":12.5}
{"kind":"interval","from_s":1.0,"to_s":1.5,"bytes":700,"packets":2,"retransmitted":0,"rtt_ms":null}
{"kind":"summary","bytes":2100}
"#;
        let ms = Span::from_millis;
        let bin = |start, length, payload| Bin { start: ms(start), length: ms(length), payload: Bytes::new(payload) };
        assert_eq!(received_in(printed), Ok(vec![bin(0, 1000, 1400), bin(1000, 500, 700)]));
        let first = Sent { at: ms(1000), packets: 3, again: 1, round_trip: Some(Span::from_micros(12_500)) };
        let second = Sent { at: ms(1500), packets: 5, again: 1, round_trip: None };
        assert_eq!(sent_by(printed), Ok(vec![first, second]));
        let lacking = r#"{"kind":"interval","from_s":0.0,"to_s":1.0}"#;
        assert!(received_in(lacking).is_err_and(|why| why.contains("bytes")));
        assert!(sent_by(lacking).is_err_and(|why| why.contains("packets")));
    }
}
