//! How many runs there are, and with which seeds.

use crate::problem::Kind;
use crate::read::{At, Context, Read, Value, inline_schema};
use schemars::json_schema;

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

inline_schema!(Seeds, _ => {
    let seeds = serde_json::json!({ "type": "integer", "minimum": 0 });
    json_schema!({
        "title": "a number or a list of numbers",
        "oneOf": [
            { "type": "integer", "minimum": 1, "maximum": MOST_SEEDS },
            { "type": "array", "items": seeds, "minItems": 1, "maxItems": MOST_SEEDS, "uniqueItems": true },
        ],
        "examples": [5],
    })
});
