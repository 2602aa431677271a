//! A hop that plays recorded traces.

use super::kind::HopTable;
use crate::bounds::{LONGEST_DELAY, Run, span};
use crate::file;
use crate::problem::Kind;
use crate::queue::{Queue, of_link};
use crate::read::{At, Context, Quantity, Read, Value, inline_schema, table};
use lasthop_radio::queue::HopQueue;
use lasthop_radio::{LastHop, trace};
use lasthop_units::Span;
use lasthop_wire::delivery::DeliveryTrace;
use schemars::json_schema;
use std::path::PathBuf;

table! {
    /// For each station a link that delivers when a recorded trace says so, as in mahimahi.
    TraceHop {
        /// Trace towards the station: a time in ms a line, at which up to 1504 bytes leave.
        /// Relative to the scenario, or `$LASTHOP_REFERENCE/…`.
        required downlink: DeliveryFile,
        /// Trace from the station, likewise.
        required uplink: DeliveryFile,
        /// Propagation delay in each direction.
        default("\"0 s\"") delay: Quantity<Span>,
        /// Queue towards the station: `fifo`, `infinite`, `codel` or `pie`.
        required queue: Queue,
        /// Queue at the station. Default: as `queue`.
        optional uplink_queue: Queue,
    }
}

/// A packet-delivery trace, read from the file that is named.
#[derive(Clone, Debug)]
pub(crate) struct DeliveryFile(pub DeliveryTrace);

/// The variable that names a folder of traces, and how a path says so.
const REFERENCE: (&str, &str) = ("LASTHOP_REFERENCE", "$LASTHOP_REFERENCE/");

impl Read for DeliveryFile {
    fn read(value: &Value<'_>, at: &At, cx: &mut Context) -> Option<Self> {
        let Some(path) = value.get_ref().as_str() else {
            cx.wrong_type(
                value,
                at,
                "the path of a packet-delivery trace",
                "write a path, such as \"cell.down\"".to_owned(),
            );
            return None;
        };
        let full = match (path.strip_prefix(REFERENCE.1), std::env::var_os(REFERENCE.0)) {
            (None, _) => cx.base_dir.join(path),
            (Some(rest), Some(folder)) => PathBuf::from(folder).join(rest),
            (Some(_), None) => {
                let what = format!("{path} is in a folder that the environment names, and {} is not set", REFERENCE.0);
                cx.problem(Kind::File, at, what, format!("export {}=FOLDER, or write another path", REFERENCE.0));
                return None;
            }
        };
        let shown = full.display();
        let bytes = file::deliveries(&full)
            .map_err(|error| {
                let what = format!("the trace {shown} cannot be read: {error}");
                cx.problem(Kind::File, at, what, "write a path relative to the scenario file");
            })
            .ok()?;
        let wrong = |error| {
            let what = format!("{shown} is no packet-delivery trace: {error}");
            cx.problem(Kind::File, at, what, "make one with `lasthop trace convert` or `lasthop trace record`");
        };
        DeliveryTrace::parse(&bytes).map(DeliveryFile).map_err(wrong).ok()
    }
}

inline_schema!(DeliveryFile, _ => json_schema!({ "title": "the path of a packet-delivery trace", "type": "string" }));

impl<F> HopTable<F> for TraceHop {
    const CALLED: &'static str = "a trace hop";
    const INSTEAD: &'static str = "when it carries something says `hop.trace.downlink`";

    fn plan(&self, _: &F, _: Run, cx: &mut Context) -> Option<LastHop> {
        let delay = span(&self.delay, (Span::ZERO, LONGEST_DELAY), "TCP gives up a connection on longer paths", cx);
        let queue = self.queue.get().and_then(|queue| of_link(&queue, cx));
        let uplink_queue = match self.uplink_queue.given {
            true => self.uplink_queue.get().and_then(|queue| of_link(&queue, cx)),
            false => queue,
        };
        let (DeliveryFile(down), DeliveryFile(up)) = (self.downlink.get()?, self.uplink.get()?);
        let params = |trace, queue| trace::Params { trace, queue, delay: delay.unwrap_or_default(), shown: false };
        delay?;
        Some(trace::Plan { down: params(down, queue?), up: params(up, uplink_queue?) }.into())
    }

    fn queue(table: &Queue, cx: &mut Context) -> Option<HopQueue> {
        of_link(table, cx).map(HopQueue::Trace)
    }
}
