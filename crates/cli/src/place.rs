//! Where a scenario runs on this machine.

use lasthop_agents::ap;
use lasthop_experiment::Place;
use lasthop_lab::doctor::{self, Need, State};
use lasthop_scenario::{SetUp, World};

/// The place for these laws. Where nobody says which, the lab if it can run them here; otherwise the simulator, and then
/// the reason to tell the user. What is wanted is not questioned: its own checks say what is missing.
pub fn choose(wanted: World, laws: &[SetUp]) -> (Place, Option<String>) {
    match wanted {
        World::Sim => (Place::Sim, None),
        World::Lab => (Place::Lab, None),
        _ => match obstacle(laws) {
            None => (Place::Lab, None),
            Some(obstacle) => (Place::Sim, Some(obstacle)),
        },
    }
}

/// What keeps the lab from running these laws.
fn obstacle(laws: &[SetUp]) -> Option<String> {
    if !nix::unistd::geteuid().is_root() {
        return Some("not root, which the lab needs for the kernel's TCP over an emulated hop".into());
    }
    let missing = |finding: doctor::Finding| match finding.state {
        State::Missing { why, .. } if finding.need == Need::Required => Some(format!("{}: {why}", finding.feature)),
        _ => None,
    };
    if let Some(lab) = doctor::examine().into_iter().find_map(missing) {
        return Some(lab);
    }
    let law = laws.iter().find(|law| law.agent().is_some())?;
    let lacking = ap::probe().into_iter().find(ap::Check::hinders)?;
    Some(format!("the agent of law {} lacks {}: {}", law.name, lacking.name, lacking.detail))
}
