//! `iperf3` as the program behind a bulk download.

use super::Period;
use crate::child::Child;
use crate::error::{LabError, Result};
use crate::netns::Namespace;
use lasthop_units::{Bytes, Rate, Span};
use serde_json::Value;
use std::ffi::OsStr;
use std::net::SocketAddr;
use std::process::{Command, Stdio};
use std::time::Duration;

/// What `iperf3` measured.
#[derive(Clone, Debug, PartialEq)]
pub struct Iperf3Log {
    /// Goodput at the receiver over the whole test.
    pub goodput: Rate,
    /// Payload received in each of its intervals, with the interval's start since the test began and its length.
    pub intervals: Vec<(Span, Span, Bytes)>,
    /// Payload that the sender sent, retransmissions not included.
    pub sent: Bytes,
    /// Segments that the sender retransmitted; `None` where the kernel does not say.
    pub retransmits: Option<u64>,
}

/// A running test.
#[derive(Debug)]
pub(crate) struct Iperf3 {
    server: Child,
    station: Child,
}

/// Between whom it runs.
pub(crate) struct Ends<'a> {
    pub server: &'a Namespace,
    pub station: &'a Namespace,
    /// Where the server listens.
    pub listens: SocketAddr,
    /// Where the station calls it.
    pub called: SocketAddr,
    /// What its packets are marked with, both ways.
    pub tos: u8,
}

const PROGRAM: &str = "iperf3";

/// True if the program starts.
pub(crate) fn is_installed() -> bool {
    let mut command = Command::new(PROGRAM);
    command.arg("--version").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

impl Iperf3 {
    /// Starts a download. Call it when the flow shall start, from a thread that outlives the test.
    pub(crate) fn start(ends: &Ends<'_>, congestion: &str, size: Option<Bytes>, lasts: Span) -> Result<Iperf3> {
        let Ends { server, station, listens, called, tos } = ends;
        let (host, port) = (listens.ip().to_string(), listens.port().to_string());
        let program = OsStr::new(PROGRAM);
        let serve = Child::start(server, program, &["--server", "--one-off", "--bind", &host, "--port", &port])?;
        // It has no way to say that it listens.
        std::thread::sleep(Duration::from_millis(100));
        // Whole seconds only, and at least one: the nearest, since the period that is left has lost some milliseconds.
        let (limit, amount) = match size {
            Some(size) => ("--bytes", size.get().to_string()),
            None => ("--time", lasts.as_secs_f64().round().max(1.0).to_string()),
        };
        let tos = tos.to_string();
        let (host, port) = (called.ip().to_string(), called.port().to_string());
        #[rustfmt::skip]
        let arguments = [
            "--client", &host, "--port", &port, "--reverse", limit, &amount, "--interval", "0.1",
            "--congestion", congestion, "--connect-timeout", "3000", "--tos", &tos, "--json",
        ];
        let call = Child::start(station, program, &arguments)?;
        Ok(Iperf3 { server: serve, station: call })
    }

    /// Waits for its end, and a little beyond the period's.
    pub(crate) fn finish(self, period: &Period) -> Result<Iperf3Log> {
        let mut station = self.station;
        let patience = period.end + Span::from_secs(3);
        while !station.has_ended() && !period.stop.is_raised() && period.clock.now() < patience {
            std::thread::sleep(Duration::from_millis(20));
        }
        let failed = |why: String| LabError::Program { program: PROGRAM.into(), why };
        if !station.has_ended() {
            return Err(if period.stop.is_raised() { LabError::Stopped } else { failed("it does not end".into()) });
        }
        let ended = station.over()?;
        self.server.stop(Span::from_millis(200), &period.stop)?;
        let said: Value = serde_json::from_str(&ended.stdout).map_err(|_| failed(ended.complaint()))?;
        parse(&said).map_err(failed)
    }
}

/// Reads the JSON of a `--reverse` client.
fn parse(said: &Value) -> std::result::Result<Iperf3Log, String> {
    if let Some(error) = said["error"].as_str() {
        return Err(error.to_owned());
    }
    let number = |path: &str| said.pointer(path).and_then(Value::as_f64).ok_or(format!("its JSON lacks {path}"));
    let mut intervals = Vec::new();
    for (n, _) in said["intervals"].as_array().into_iter().flatten().enumerate() {
        let field = |name: &str| number(&format!("/intervals/{n}/sum/{name}"));
        let (start, length) = (Span::from_secs_f64(field("start")?), Span::from_secs_f64(field("seconds")?));
        intervals.push((start, length, Bytes::new(field("bytes")? as u64)));
    }
    Ok(Iperf3Log {
        goodput: Rate::from_bps(number("/end/sum_received/bits_per_second")? as u64),
        intervals,
        sent: Bytes::new(number("/end/sum_sent/bytes")? as u64),
        retransmits: said.pointer("/end/sum_sent/retransmits").and_then(Value::as_u64),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_reverse_test_is_read() {
        let said = json!({
            "intervals": [{"sum": {"start": 0, "seconds": 0.1, "bytes": 1000}}],
            "end": {
                "sum_sent": {"bytes": 1200, "retransmits": 3},
                "sum_received": {"bits_per_second": 80_000.5, "bytes": 1000},
            },
        });
        let log = parse(&said).expect("complete");
        assert_eq!(log.goodput, Rate::from_bps(80_000));
        assert_eq!(log.intervals, [(Span::ZERO, Span::from_millis(100), Bytes::new(1000))]);
        assert_eq!((log.sent, log.retransmits), (Bytes::new(1200), Some(3)));
    }

    #[test]
    fn its_own_error_and_a_missing_field_are_told() {
        assert_eq!(parse(&json!({"error": "unable to connect"})), Err("unable to connect".into()));
        assert_eq!(parse(&json!({})), Err("its JSON lacks /end/sum_received/bits_per_second".into()));
    }
}
