//! Where a scenario runs on this machine.

use lasthop_agents::ap;
use lasthop_experiment::Place;
use lasthop_lab::doctor::{self, Need, State};
use lasthop_lab::{LabError, Spec};
use lasthop_scenario::{Scenario, SetUp, World};

/// The place for a scenario under these laws. Where nobody says which, the lab if it can run them here; otherwise the simulator, and then
/// the reason to tell the user. What is wanted is not questioned: its own checks say what is missing.
pub fn choose(wanted: World, scenario: &Scenario, laws: &[SetUp]) -> (Place, Option<String>) {
    match wanted {
        World::Sim => (Place::Sim, None),
        World::Lab => (Place::Lab, None),
        _ => match obstacle(scenario, laws) {
            None => (Place::Lab, None),
            Some(obstacle) => (Place::Sim, Some(obstacle)),
        },
    }
}

/// What keeps the lab from running a scenario under these laws.
fn obstacle(scenario: &Scenario, laws: &[SetUp]) -> Option<String> {
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
    // What the lab does not have, such as a backhaul, is the same for every seed.
    let beyond = |law: &SetUp| match Spec::of(scenario, law, 1).check() {
        Err(LabError::Spec(why)) => Some(why),
        _ => None,
    };
    if let Some(why) = laws.iter().find_map(beyond) {
        return Some(why);
    }
    let law = laws.iter().find(|law| law.needs_programs())?;
    let lacking = ap::probe().into_iter().find(ap::Check::hinders)?;
    Some(format!("the agent of law {} lacks {}: {}", law.name, lacking.name, lacking.detail))
}
