//! Values that may be written in more than one way.

use super::{CqiStep, McsStep, SnrStep, WalkPoint};
use crate::file;
use crate::problem::Kind;
use crate::quantity::{Decibels, Hertz, Metres, show};
use crate::read::{At, Context, Entry, Quantity, Read, Step, Value, number, word};
use lasthop_units::{Rate, Span};
use lasthop_wire::delivery::DeliveryTrace;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use std::borrow::Cow;
use std::path::PathBuf;

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

impl JsonSchema for DeliveryFile {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        "DeliveryFile".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "title": "the path of a packet-delivery trace", "type": "string" })
    }
}

/// A number of runs or the seeds themselves.
#[derive(Clone, Debug)]
pub(crate) struct Seeds(pub Vec<u64>);

/// More runs than this say nothing new: the interval of a mean shrinks with the root of their number.
pub(crate) const MOST_SEEDS: u64 = 1000;

impl Read for Seeds {
    fn read(value: &Value<'_>, at: &At, cx: &mut Context) -> Option<Self> {
        let bound = |cx: &mut Context, count: u64| {
            if (1..=MOST_SEEDS).contains(&count) {
                return true;
            }
            let what = format!(
                "{count} runs are outside 1 to {MOST_SEEDS} (an interval shrinks with the root of their number)"
            );
            cx.problem(Kind::OutOfRange, at, what, format!("write a number from 1 to {MOST_SEEDS}, such as 5"));
            false
        };
        if value.get_ref().is_array() {
            let seeds = Vec::<u64>::read(value, at, cx)?;
            let twice = seeds.iter().enumerate().find(|(i, seed)| seeds[..*i].contains(seed));
            if let Some((_, seed)) = twice {
                cx.impossible(
                    at,
                    format!("seed {seed} is listed twice"),
                    "list each once: equal runs are not independent",
                );
                return None;
            }
            return bound(cx, seeds.len() as u64).then_some(Seeds(seeds));
        }
        let count = u64::read(value, at, cx)?;
        bound(cx, count).then(|| Seeds((1..=count).collect()))
    }
}

impl JsonSchema for Seeds {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        "Seeds".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let seeds = serde_json::json!({ "type": "integer", "minimum": 0 });
        json_schema!({
            "title": "a number or a list of numbers",
            "oneOf": [
                { "type": "integer", "minimum": 1, "maximum": MOST_SEEDS },
                { "type": "array", "items": seeds, "minItems": 1, "maxItems": MOST_SEEDS, "uniqueItems": true },
            ],
            "examples": [5],
        })
    }
}

/// What a neighbour offers.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Load {
    Saturated,
    Rate(Rate),
}

impl Read for Load {
    fn read(value: &Value<'_>, at: &At, cx: &mut Context) -> Option<Self> {
        match value.get_ref().as_str() {
            Some("saturated") => Some(Load::Saturated),
            Some(text) if text.starts_with(|c: char| c.is_alphabetic()) => {
                word(value, at, cx, [("saturated", Load::Saturated)].into_iter())
            }
            _ => Quantity::read(value, at, cx).map(|Quantity(rate)| Load::Rate(rate)),
        }
    }
}

impl JsonSchema for Load {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        "Load".into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "title": "a data rate, or \"saturated\"",
            "anyOf": [{ "const": "saturated" }, Quantity::<Rate>::json_schema(generator)],
            "examples": ["20 Mbit/s", "saturated"],
        })
    }
}

/// How wide a carrier of a cell is, in PRB pairs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bandwidth(pub u8);

/// Bandwidths with their PRB pairs (3GPP TS 36.101 table 5.6-1), in hertz.
const BANDWIDTHS: [(u64, u8); 6] =
    [(1_400_000, 6), (3_000_000, 15), (5_000_000, 25), (10_000_000, 50), (15_000_000, 75), (20_000_000, 100)];
/// What resource grids have (36.211, 6.2.1).
const PRBS: (u64, u64) = (6, 110);

impl Read for Bandwidth {
    fn read(value: &Value<'_>, at: &At, cx: &mut Context) -> Option<Self> {
        let remedy = "write \"1.4 MHz\", \"3 MHz\", \"5 MHz\", \"10 MHz\", \"15 MHz\" or \"20 MHz\", or a number of PRB pairs from 6 to 110";
        if value.get_ref().is_integer() {
            let prb = u64::read(value, at, cx)?;
            if (PRBS.0..=PRBS.1).contains(&prb) {
                return u8::try_from(prb).ok().map(Bandwidth);
            }
            cx.problem(Kind::OutOfRange, at, format!("LTE has no carrier of {prb} PRB pairs"), remedy);
            return None;
        }
        let Quantity(hertz) = Quantity::<Hertz>::read(value, at, cx)?;
        let known = BANDWIDTHS.into_iter().find(|(width, _)| *width == hertz.0);
        if known.is_none() {
            cx.problem(Kind::OutOfRange, at, format!("LTE has no carrier of {}", show(hertz)), remedy);
        }
        known.map(|(_, prb)| Bandwidth(prb))
    }
}

impl JsonSchema for Bandwidth {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        "Bandwidth".into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "title": "a frequency, or a number of PRB pairs",
            "anyOf": [
                Quantity::<Hertz>::json_schema(generator),
                { "type": "integer", "minimum": PRBS.0, "maximum": PRBS.1 },
            ],
            "examples": ["10 MHz", 50],
        })
    }
}

impl Step for CqiStep {
    type Value = u64;
    const COLUMNS: &'static str = "at_s,cqi";
    const EXAMPLE: &'static str = "2.5,9";

    fn value(text: &str) -> Result<u64, String> {
        text.parse().map_err(|_| format!("`{text}` is not a CQI"))
    }
    fn from_line(at: Entry<Quantity<Span>>, cqi: Entry<u64>, place: At) -> Self {
        CqiStep { at, cqi, place }
    }
    fn parts(&self) -> (&Entry<Quantity<Span>>, &Entry<u64>) {
        (&self.at, &self.cqi)
    }
}

impl Step for McsStep {
    type Value = u64;
    const COLUMNS: &'static str = "at_s,mcs";
    const EXAMPLE: &'static str = "2.5,4";

    fn value(text: &str) -> Result<u64, String> {
        text.parse().map_err(|_| format!("`{text}` is not an MCS"))
    }
    fn from_line(at: Entry<Quantity<Span>>, mcs: Entry<u64>, place: At) -> Self {
        McsStep { at, mcs, place }
    }
    fn parts(&self) -> (&Entry<Quantity<Span>>, &Entry<u64>) {
        (&self.at, &self.mcs)
    }
}

impl Step for SnrStep {
    type Value = Quantity<Decibels>;
    const COLUMNS: &'static str = "at_s,snr_db";
    const EXAMPLE: &'static str = "2.5,18.5";

    fn value(text: &str) -> Result<Quantity<Decibels>, String> {
        number(text, "dB")
    }
    fn from_line(at: Entry<Quantity<Span>>, snr: Entry<Quantity<Decibels>>, place: At) -> Self {
        SnrStep { at, snr, place }
    }
    fn parts(&self) -> (&Entry<Quantity<Span>>, &Entry<Quantity<Decibels>>) {
        (&self.at, &self.snr)
    }
}

impl Step for WalkPoint {
    type Value = Quantity<Metres>;
    const COLUMNS: &'static str = "at_s,distance_m";
    const EXAMPLE: &'static str = "2.5,8";

    fn value(text: &str) -> Result<Quantity<Metres>, String> {
        number(text, "m")
    }
    fn from_line(at: Entry<Quantity<Span>>, distance: Entry<Quantity<Metres>>, place: At) -> Self {
        WalkPoint { at, distance, place }
    }
    fn parts(&self) -> (&Entry<Quantity<Span>>, &Entry<Quantity<Metres>>) {
        (&self.at, &self.distance)
    }
}
