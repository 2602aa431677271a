//! `iperf3` as the program behind a bulk transfer: from its client to its server, or with `--reverse` back.

use super::listening::{Transport, is_taken};
use super::{Call, End, Period};
use crate::child::{Child, Ended};
use crate::error::{LabError, Result};
use crate::netns::Namespace;
use crate::stop::Stop;
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
    client: Child,
    /// The end that sends.
    sender: End,
}

const PROGRAM: &str = "iperf3";

/// The port of a server and of a client that nobody told another.
pub const PORT: u16 = 5201;

/// True if the program starts.
pub(crate) fn is_installed() -> bool {
    let mut command = Command::new(PROGRAM);
    command.arg("--version").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

impl Iperf3 {
    /// Starts a test in which `sender` sends. Call it when the flow shall start, from a thread that outlives the test. The client
    /// finds the server at `called`; its packets have the mark of the call's door, both ways.
    pub(crate) fn start(
        call: &Call<'_>,
        called: SocketAddr,
        sender: End,
        size: Option<Bytes>,
        lasts: Span,
    ) -> Result<Iperf3> {
        let (host, port) = (call.address.ip().to_string(), call.address.port().to_string());
        let program = OsStr::new(PROGRAM);
        #[rustfmt::skip]
        let arguments = ["--server", "--one-off", "--bind", &host, "--port", &port, "--interval", INTERVAL, "--json"];
        let server = Child::start(call.listener, program, &arguments)?;
        // It has no way to say that it listens.
        std::thread::sleep(Duration::from_millis(100));
        // Whole seconds only, and at least one: the nearest, since the period that is left has lost some milliseconds.
        let (limit, amount) = match size {
            Some(size) => ("--bytes", size.get().to_string()),
            None => ("--time", lasts.as_secs_f64().round().max(1.0).to_string()),
        };
        let (tos, congestion) = (call.door.tos.to_string(), call.congestion_of(sender));
        let (host, port) = (called.ip().to_string(), called.port().to_string());
        #[rustfmt::skip]
        let mut arguments = vec![
            "--client", &host, "--port", &port, limit, &amount, "--interval", INTERVAL,
            "--congestion", congestion, "--connect-timeout", "3000", "--tos", &tos, "--json",
        ];
        if sender == End::Listener {
            arguments.push("--reverse");
        }
        let client = Child::start(call.caller, program, &arguments)?;
        Ok(Iperf3 { server, client, sender })
    }

    /// Waits for its end, and a little beyond the period's.
    pub(crate) fn finish(self, period: &Period) -> Result<Iperf3Log> {
        let mut client = self.client;
        let patience = period.end + Span::from_secs(3);
        while !client.has_ended() && !period.stop.is_raised() && period.clock.now() < patience {
            std::thread::sleep(Duration::from_millis(20));
        }
        let failed = |why: String| LabError::Program { program: PROGRAM.into(), why };
        if !client.has_ended() {
            return Err(if period.stop.is_raised() { LabError::Stopped } else { failed("it does not end".into()) });
        }
        let client = client.over()?;
        // It ends by itself once the client has: what it prints then is wanted of a receiver.
        let server = self.server.wait(Span::from_secs(1), &period.stop)?;
        let read = |ended: &Ended| -> Result<Value> {
            serde_json::from_str(&ended.stdout).map_err(|_| failed(ended.complaint()))
        };
        let said = read(&client)?;
        if let Some(error) = said["error"].as_str() {
            return Err(failed(error.to_owned()));
        }
        match self.sender {
            End::Listener => parse(&said, &said),
            End::Caller => parse(&said, &read(&server)?),
        }
        .map_err(failed)
    }
}

/// A server that takes one test after another from whoever calls. It is killed when dropped.
#[derive(Debug)]
pub(crate) struct Server {
    _child: Child,
}

impl Server {
    /// Starts a server in `namespace` and waits until it listens at [`PORT`]. `None` if it does
    /// not begin to within [`PATIENCE`], or `stop` is raised. The calling thread must outlive it.
    pub(crate) fn start(namespace: &Namespace, stop: &Stop) -> Result<Option<Server>> {
        let mut child = Child::start(namespace, OsStr::new(PROGRAM), &["--server"])?;
        let (step, mut waited) = (Span::from_millis(5), Span::ZERO);
        while !namespace.within(|| Ok(is_taken(Transport::Tcp, PORT)))? {
            if waited >= PATIENCE || stop.is_raised() || child.has_ended() {
                return Ok(None);
            }
            std::thread::sleep(step.into());
            waited += step;
        }
        Ok(Some(Server { _child: child }))
    }
}

/// How long a server may take until it listens.
const PATIENCE: Span = Span::from_secs(3);

/// Seconds between two of its accounts.
const INTERVAL: &str = "0.1";

/// Reads the JSON of the client, which has the totals of both ends, and that of the receiver, which has what it received when.
fn parse(client: &Value, receiver: &Value) -> std::result::Result<Iperf3Log, String> {
    if let Some(error) = [client, receiver].into_iter().find_map(|said| said["error"].as_str()) {
        return Err(error.to_owned());
    }
    let number =
        |said: &Value, path: &str| said.pointer(path).and_then(Value::as_f64).ok_or(format!("its JSON lacks {path}"));
    let mut intervals = Vec::new();
    for (n, _) in receiver["intervals"].as_array().into_iter().flatten().enumerate() {
        let field = |name: &str| number(receiver, &format!("/intervals/{n}/sum/{name}"));
        let (start, length) = (Span::from_secs_f64(field("start")?), Span::from_secs_f64(field("seconds")?));
        intervals.push((start, length, Bytes::new(field("bytes")? as u64)));
    }
    Ok(Iperf3Log {
        goodput: Rate::from_bps(number(client, "/end/sum_received/bits_per_second")? as u64),
        intervals,
        sent: Bytes::new(number(client, "/end/sum_sent/bytes")? as u64),
        retransmits: client.pointer("/end/sum_sent/retransmits").and_then(Value::as_u64),
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
        let log = parse(&said, &said).expect("complete");
        assert_eq!(log.goodput, Rate::from_bps(80_000));
        assert_eq!(log.intervals, [(Span::ZERO, Span::from_millis(100), Bytes::new(1000))]);
        assert_eq!((log.sent, log.retransmits), (Bytes::new(1200), Some(3)));
    }

    #[test]
    fn of_an_upload_the_server_says_when_it_received_what() {
        let end = json!({
            "sum_sent": {"bytes": 1200, "retransmits": 3},
            "sum_received": {"bits_per_second": 80_000, "bytes": 1000},
        });
        let client = json!({"intervals": [{"sum": {"start": 0, "seconds": 0.1, "bytes": 1200}}], "end": end});
        let server = json!({"intervals": [{"sum": {"start": 0.1, "seconds": 0.1, "bytes": 1000}}]});
        let log = parse(&client, &server).expect("complete");
        assert_eq!(log.intervals, [(Span::from_millis(100), Span::from_millis(100), Bytes::new(1000))]);
        assert_eq!((log.sent, log.retransmits), (Bytes::new(1200), Some(3)));
    }

    #[test]
    fn its_own_error_and_a_missing_field_are_told() {
        let of = |said: Value| parse(&said, &said);
        assert_eq!(of(json!({"error": "unable to connect"})), Err("unable to connect".into()));
        assert_eq!(of(json!({})), Err("its JSON lacks /end/sum_received/bits_per_second".into()));
    }
}
