//! The command is there and says what it is. Since this test names it, cargo builds it with the tests: those that start it need no build
//! of their own (scripts/run-tests).

use std::process::Command;

#[test]
fn the_command_says_its_version() {
    let said = Command::new(env!("CARGO_BIN_EXE_lasthop")).arg("--version").output().expect("it starts");
    assert!(said.status.success());
    let said = String::from_utf8_lossy(&said.stdout).into_owned();
    assert_eq!(said.trim(), concat!("lasthop ", env!("CARGO_PKG_VERSION")));
}
