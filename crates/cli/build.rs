//! Tells the build which revision of the sources and which compiler it is made of, for `run.json`.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let compiler = env::var_os("RUSTC").map(PathBuf::from).unwrap_or_else(|| "rustc".into());
    if let Some(version) = said(Command::new(compiler).arg("--version")) {
        println!("cargo::rustc-env=LASTHOP_RUSTC={version}");
    }
    if let Some(revision) = revision() {
        println!("cargo::rustc-env=LASTHOP_GIT_REVISION={revision}");
    }
}

/// The commit that is checked out; `None` outside a checkout, or in one of something else that merely contains this.
fn revision() -> Option<String> {
    let package = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR")?);
    let git = |arguments: &[&str]| said(Command::new("git").arg("-C").arg(&package).args(arguments));
    let root = git(&["rev-parse", "--show-toplevel"])?;
    if Path::new(&root).canonicalize().ok()? != package.join("../..").canonicalize().ok()? {
        return None;
    }
    // HEAD changes when another branch is checked out; its log also when something is committed.
    for file in ["HEAD", "logs/HEAD"] {
        let path = git(&["rev-parse", "--path-format=absolute", "--git-path", file])?;
        if Path::new(&path).exists() {
            println!("cargo::rerun-if-changed={path}");
        }
    }
    git(&["rev-parse", "HEAD"])
}

fn said(command: &mut Command) -> Option<String> {
    let output = command.output().ok().filter(|output| output.status.success())?;
    Some(String::from_utf8(output.stdout).ok()?.trim().to_owned())
}
