//! What changes over time: the first step at zero, times rising.

use crate::bounds::{LONGEST_RUN, span};
use crate::problem::Kind;
use crate::quantity::show;
use crate::read::{Context, Entry, Step, Trace};
use lasthop_units::{Span, Time};

/// The steps of a trace, with what `legal` makes of their values.
pub(crate) fn steps<T: Step, V>(
    trace: &Trace<T>,
    legal: impl Fn(&Entry<T::Value>, &mut Context) -> Option<V>,
    cx: &mut Context,
) -> Option<Vec<(Time, V)>> {
    if trace.steps.is_empty() {
        cx.problem(Kind::OutOfRange, &trace.place, "the trace is empty", "add a first step at 0 s");
        return None;
    }
    let mut last: Option<Span> = None;
    let mut steps = Vec::new();
    for (entry, value) in trace.steps.iter().map(Step::parts) {
        let time = span(entry, (Span::ZERO, LONGEST_RUN), "no run lasts longer", cx);
        let value = legal(value, cx);
        let Some(time) = time else { continue };
        match last {
            None if !time.is_zero() => {
                let what = format!("the trace begins at {}, and the run at 0 s", show(time));
                cx.impossible(&entry.at, what, "add a first step at 0 s");
            }
            Some(before) if time <= before => {
                let what = format!("the step at {} follows the one at {}", show(time), show(before));
                cx.impossible(&entry.at, what, "put the steps in order, one at each time");
            }
            _ => {}
        }
        last = Some(time);
        steps.extend(value.map(|value| (Time::ZERO + time, value)));
    }
    // Fewer are left where some are wrong, and then they were reported.
    (steps.len() == trace.steps.len()).then_some(steps)
}
