//! Why a run should not be believed.

use crate::agent::Left;
use crate::log::EmulatorLog;
use crate::outcome::{Doubt, LATEST};
use lasthop_report::{AgentAccount, PbeAccount, RelayAccount, TerminalAccount};
use lasthop_units::Span;

/// What was lost because somebody was late.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Unread {
    /// Packets that interfaces dropped.
    pub dropped: u64,
    /// Datagrams that stations' programs did not take.
    pub datagrams: u64,
    /// Frames of monitors that stations' agents did not take.
    pub frames: u64,
}

/// What makes a run unreliable.
pub(crate) fn of_run(
    log: &EmulatorLog,
    unread: Unread,
    late_start: Span,
    agents: usize,
    accounts: &[AgentAccount],
) -> Vec<Doubt> {
    let driver_losses: u64 = accounts.iter().map(|account| account.driver_losses).sum();
    let late = log.lateness.summaries().into_iter().filter(|(_, summary)| summary.p99 > LATEST);
    let late = late.map(|(kind, summary)| Doubt::Late(kind, summary.p99));
    let found = [
        (!late_start.is_zero()).then_some(Doubt::LateStart(late_start)),
        (unread.dropped > 0).then_some(Doubt::InterfaceDrops(unread.dropped)),
        (log.refused > 0).then_some(Doubt::Refused(log.refused)),
        (unread.datagrams > 0).then_some(Doubt::UnreadDatagrams(unread.datagrams)),
        (unread.frames > 0).then_some(Doubt::UnreadFrames(unread.frames)),
        (log.unread_reports > 0).then_some(Doubt::UnreadReports(log.unread_reports)),
        (log.unread_subframes > 0).then_some(Doubt::UnreadSubframes(log.unread_subframes)),
        (driver_losses > 0).then_some(Doubt::DriverSilent(driver_losses)),
        (accounts.len() < agents).then_some(Doubt::AgentSilent),
    ];
    found.into_iter().flatten().chain(late).collect()
}

/// Why a run with so many stations' agents should not be believed.
pub(crate) fn of_terminals(had: usize, accounts: &[TerminalAccount]) -> impl Iterator<Item = Doubt> {
    let (silent, idle) = (had - accounts.len(), accounts.iter().filter(|account| account.adopted == 0).count());
    let found = [(silent > 0).then_some(Doubt::TerminalsSilent(silent)), (idle > 0).then_some(Doubt::NotAdopted(idle))];
    found.into_iter().flatten()
}

/// Why a run with relays should not be believed.
pub(crate) fn of_relays<'a>(
    silent: usize,
    accounts: impl Iterator<Item = &'a RelayAccount>,
) -> impl Iterator<Item = Doubt> {
    let losses: u64 = accounts.map(|account| account.driver_losses).sum();
    let found =
        [(silent > 0).then_some(Doubt::RelaysSilent(silent)), (losses > 0).then_some(Doubt::DelayUnknown(losses))];
    found.into_iter().flatten()
}

/// Why a run with the pair of PBE-CC should not be believed, in which so many connections at least were to be told.
pub(crate) fn of_pbe(expected: u64, left: &[Left<PbeAccount>]) -> impl Iterator<Item = Doubt> {
    let accounts = || left.iter().filter_map(|left| left.account);
    let silent = left.len() - accounts().count();
    let lost: u64 = accounts().map(|account| account.lost).sum();
    let agreed: u64 = accounts().map(|account| account.agreed).sum();
    let found = [
        (silent > 0).then_some(Doubt::PbeSilent(silent)),
        (lost > 0).then_some(Doubt::UnreadArrivals(lost)),
        (agreed < expected).then_some(Doubt::NotAgreed(expected - agreed)),
    ];
    found.into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_with_late_monitor_reads_is_unreliable() {
        let of = |frames| {
            let unread = Unread { frames, ..Unread::default() };
            of_run(&EmulatorLog::default(), unread, Span::ZERO, 0, &[])
        };
        assert_eq!((of(0), of(3)), (vec![], vec![Doubt::UnreadFrames(3)]));
        assert!(of(3)[0].to_string().contains("did not read 3 frames of their monitors"));
    }

    #[test]
    fn a_pbe_run_is_reliable_if_all_ends_agreed_and_kept_up() {
        let left = |account| Left { account, said: String::new() };
        let account = |agreed, lost| Some(PbeAccount { agreed, lost, ..PbeAccount::default() });
        let of = |expected, left: &[Left<PbeAccount>]| of_pbe(expected, left).collect::<Vec<_>>();
        let both = [left(account(0, 0)), left(account(2, 0))];
        assert_eq!((of(2, &both), of(3, &both)), (vec![], vec![Doubt::NotAgreed(1)]));
        let wrong = [left(None), left(account(2, 7))];
        assert_eq!(of(2, &wrong), [Doubt::PbeSilent(1), Doubt::UnreadArrivals(7)]);
    }
}
