//! What can be found wrong before anything runs: nobody should wait for five minutes of runs to learn that the results
//! have nowhere to go.

use anyhow::{Context, bail};
use lasthop_experiment::{Place, Plan};
use nix::unistd::{AccessFlags, access};
use std::io::{self, ErrorKind};
use std::path::Path;

/// Checks that the runs can be made and that their results can be written to `out`. Changes nothing.
pub fn check(plan: &Plan<'_>, out: &Path) -> anyhow::Result<()> {
    place_for(out).with_context(|| format!("cannot write results into {}", out.display()))?;
    plan.check()?;
    match plan.laws.iter().find(|law| law.needs_programs()) {
        Some(law) if plan.place == Place::Lab => {
            agent(&law.name, "name the others with --law (run) or --laws (compare), or use --world sim")
        }
        _ => Ok(()),
    }
}

/// The directory itself, or the nearest one above it that exists, must be one that we may write into.
fn place_for(out: &Path) -> io::Result<()> {
    let refused = |path: &Path, why: String| io::Error::other(format!("{}: {why}", path.display()));
    for path in out.ancestors().map(|path| if path.as_os_str().is_empty() { Path::new(".") } else { path }) {
        match path.metadata() {
            Ok(found) if !found.is_dir() => {
                return Err(refused(path, "this is a file; name a directory, or leave --out away".into()));
            }
            Ok(_) => {
                let may = access(path, AccessFlags::W_OK | AccessFlags::X_OK);
                return may.map_err(|error| refused(path, io::Error::from(error).to_string()));
            }
            // A file on the way is named when its turn comes.
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {}
            Err(error) => return Err(refused(path, error.to_string())),
        }
    }
    Ok(())
}

/// Without its eBPF programs an agent would only fail later, with runs of other laws done.
/// `instead`: how to do without the law.
pub fn agent(law: &str, instead: &str) -> anyhow::Result<()> {
    match lasthop_agents::ap::probe().into_iter().find(lasthop_agents::ap::Check::hinders) {
        None => Ok(()),
        Some(check) => bail!(
            "the law {law} needs the agent, which cannot run here: {}: {}\n  to get it: {}; or leave this law out: {instead}",
            check.name,
            check.detail,
            check.remedy
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_go_into_directories_only() {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml");
        let error = place_for(&file).expect_err("a file");
        assert!(error.to_string().contains("Cargo.toml: this is a file"), "{error}");
        let error = place_for(&file.join("below/it")).expect_err("below a file");
        assert!(error.to_string().contains("Cargo.toml: this is a file"), "{error}");
        place_for(&std::env::temp_dir().join("made/when/needed")).expect("made later");
        place_for(Path::new("relative")).expect("below the current directory");
    }
}
