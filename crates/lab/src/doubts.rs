//! Why a run should not be believed.

use crate::log::EmulatorLog;
use crate::outcome::{Doubt, LATEST};
use crate::programs::Left;
use crate::spec::{AccountSpec, Cause};
use lasthop_report::Account;
use lasthop_report::account::counter;
use lasthop_units::Span;

/// What was lost because a reader was late.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Unread {
    /// Packets that interfaces dropped.
    pub dropped: u64,
    /// Datagrams that stations' programs did not take.
    pub datagrams: u64,
}

/// What makes a run unreliable, its programs apart.
pub(crate) fn of_run(log: &EmulatorLog, unread: Unread, late_start: Span) -> Vec<Doubt> {
    let late = log.lateness.summaries().into_iter().filter(|(_, summary)| summary.p99 > LATEST);
    let late = late.map(|(kind, summary)| Doubt::Late(kind, summary.p99));
    let found = [
        (!late_start.is_zero()).then_some(Doubt::LateStart(late_start)),
        (unread.dropped > 0).then_some(Doubt::InterfaceDrops(unread.dropped)),
        (log.refused > 0).then_some(Doubt::Refused(log.refused)),
        (unread.datagrams > 0).then_some(Doubt::UnreadDatagrams(unread.datagrams)),
        (log.unread_reports > 0).then_some(Doubt::UnreadReports(log.unread_reports)),
        (log.unread_subframes > 0).then_some(Doubt::UnreadSubframes(log.unread_subframes)),
    ];
    found.into_iter().flatten().chain(late).collect()
}

/// What the programs' accounts of themselves say against a run, name by name.
pub(crate) fn of_programs(left: &[Left]) -> Vec<Doubt> {
    let of = |left: &'_ Left| left.spec.account.clone().map(|of| (of, left.account.clone()));
    let all: Vec<(AccountSpec, Option<Account>)> = left.iter().filter_map(of).collect();
    let mut names: Vec<&str> = all.iter().map(|(of, _)| of.name).collect();
    names.dedup();
    let judged = names.into_iter().flat_map(|name| {
        let group: Vec<_> = all.iter().filter(|(of, _)| of.name == name).collect();
        let doubts = group[0].0.doubts;
        let found = move |(cause, says): &(Cause, &str)| {
            let n = extent(*cause, &group);
            (n > 0).then(|| Doubt::OfPrograms(says.replace("{n}", &n.to_string())))
        };
        doubts.iter().filter_map(found).collect::<Vec<_>>()
    });
    judged.collect()
}

/// How much there is of a cause among the accounts of one name.
fn extent(cause: Cause, group: &[&(AccountSpec, Option<Account>)]) -> u64 {
    let accounts = || group.iter().filter_map(|(_, account)| account.as_ref());
    let sum = |name: &str| accounts().map(|account| counter(account, name)).sum::<u64>();
    match cause {
        Cause::Silent => (group.len() - accounts().count()) as u64,
        Cause::Counted(name) => sum(name),
        Cause::Idle(name) => accounts().filter(|account| counter(account, name) == 0).count() as u64,
        Cause::Short(name) => group.iter().map(|(of, _)| of.expected).sum::<u64>().saturating_sub(sum(name)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::ProgramSpec;
    use lasthop_signals::HostId;
    use serde_json::json;

    const DOUBTS: &[(Cause, &str)] = &[
        (Cause::Silent, "{n} are silent"),
        (Cause::Counted("lost"), "{n} were lost"),
        (Cause::Idle("adopted"), "{n} adopted none"),
        (Cause::Short("agreed"), "{n} did not agree"),
    ];

    /// A program's leavings with an account of these counters, of which `expected` connections should agree.
    fn left(name: &'static str, expected: u64, account: Option<serde_json::Value>) -> Left {
        let mut spec = ProgramSpec::new(name.to_owned(), HostId(0), "true".into(), Vec::new());
        spec.account = Some(AccountSpec { line: name, name, by_host: false, expected, doubts: DOUBTS });
        let account = account.and_then(|account| account.as_object().cloned());
        Left { spec, account, log: String::new(), said: String::new() }
    }

    fn told(left: &[Left]) -> Vec<String> {
        of_programs(left).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_pbe_run_is_reliable_if_all_ends_agreed_and_kept_up() {
        let account = |agreed, lost| Some(json!({"agreed": agreed, "lost": lost, "adopted": 1}));
        let both = |expected| [left("pbe", 0, account(0, 0)), left("pbe", expected, account(2, 0))];
        assert_eq!((told(&both(2)), told(&both(3))), (vec![], vec!["1 did not agree".to_owned()]));
        let wrong = [left("pbe", 0, None), left("pbe", 2, account(2, 7))];
        assert_eq!(told(&wrong), ["1 are silent", "7 were lost"]);
    }

    #[test]
    fn programs_of_one_name_are_judged_together_and_others_apart() {
        let idle = json!({"adopted": 0});
        let all = [left("one", 0, Some(idle.clone())), left("one", 0, Some(idle)), left("two", 0, None)];
        assert_eq!(told(&all), ["2 adopted none", "1 are silent"]);
    }
}
