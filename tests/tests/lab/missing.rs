//! A machine that lacks something: found out before anything is put up, and said with how to get it.

use lasthop_tests::{Ended, PATIENCE, ends_within, lab, lab_run, lasthop, leavings, own_scenario};
use std::io;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

/// Runs a command that is to fail before its first run, and leave nothing.
fn refused(command: &mut Command, out: &Path) -> Ended {
    let child = command.arg("--out").arg(out).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
    let pid = child.id();
    let ended = ends_within(child, PATIENCE);
    assert!(!ended.err.contains("panicked"), "{}", ended.err);
    assert!(!ended.err.contains("run 1 of"), "it was found out too late:\n{}", ended.err);
    assert!(!out.exists(), "{} was made for nothing", out.display());
    assert_eq!(leavings(pid), [""; 0]);
    ended
}

#[test]
fn without_iperf3_a_scenario_that_names_it_is_refused() {
    let Some(_lab) = lab() else { return };
    let folder = tempfile::tempdir().expect("a directory");
    let mut command = lasthop(["run"]);
    command.arg(own_scenario("iperf3")).env("PATH", folder.path());
    refused(&mut command, &folder.path().join("results"))
        .failed_saying(&["iperf3 is missing", "apt-get install iperf3"]);
}

#[test]
fn the_doctor_tells_which_congestion_controls_there_are() {
    let Some(_lab) = lab() else { return };
    let folder = tempfile::tempdir().expect("a directory");
    let ended = lasthop_tests::run(lasthop(["doctor"]).current_dir(folder.path()));
    // Asking loads those that are modules, so the list is read afterwards.
    let offered = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control").unwrap_or_default();
    for name in ["cubic", "bbr", "reno"] {
        let line = format!("congestion control {name}: ok");
        assert_eq!(offered.split_whitespace().any(|offer| offer == name), ended.out.contains(&line), "{}", ended.out);
    }
}

#[test]
fn without_bpf_a_law_with_the_agent_is_refused_and_others_run() {
    let Some(_lab) = lab() else { return };
    let folder = tempfile::tempdir().expect("a directory");
    let out = folder.path().join("results");
    let mut command = lasthop(["run", "--world", "lab"]);
    command.arg(own_scenario("short"));
    // SAFETY: the closure makes system calls only.
    unsafe { command.pre_exec(refuse_bpf) };
    let parts = ["the law cubic+ap needs the agent", "to get it: ", "--law", "--world sim"];
    refused(&mut command, &out).failed_saying(&parts);

    let mut command = lab_run("cubic", "short", &out);
    // SAFETY: the closure makes system calls only.
    unsafe { command.pre_exec(refuse_bpf) };
    lasthop_tests::run(&mut command).succeeded();
}

/// From now on bpf(2) fails with EPERM, as on a locked-down kernel.
fn refuse_bpf() -> io::Result<()> {
    const LOAD_WORD: u16 = (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16;
    const JUMP_IF_EQUAL: u16 = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
    const RETURN: u16 = (libc::BPF_RET | libc::BPF_K) as u16;
    let step = |code: u16, k: u32, jf: u8| libc::sock_filter { code, jt: 0, jf, k };
    let mut filter = [
        // The number of the system call stands first in what a filter sees.
        step(LOAD_WORD, 0, 0),
        step(JUMP_IF_EQUAL, libc::SYS_bpf as u32, 1),
        step(RETURN, libc::SECCOMP_RET_ERRNO | libc::EPERM as u32, 0),
        step(RETURN, libc::SECCOMP_RET_ALLOW, 0),
    ];
    let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_mut_ptr() };
    // SAFETY: the kernel copies the program, which lives until the call returns.
    let done = unsafe { libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &program) };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[test]
fn without_tap_devices_the_lab_names_it_and_leaves_nothing() {
    let Some(_lab) = lab() else { return };
    let folder = tempfile::tempdir().expect("a directory");
    let mut command = lab_run("cubic", "short", folder.path());
    // SAFETY: the closure makes system calls only.
    unsafe { command.pre_exec(hide_tun) };
    let child = command.spawn().expect("it starts");
    let pid = child.id();
    ends_within(child, PATIENCE).failed_saying(&["/dev/net/tun"]);
    assert_eq!(leavings(pid), [""; 0]);
}

/// In a mount namespace of its own, `/dev/net/tun` becomes something that is no TUN device.
fn hide_tun() -> io::Result<()> {
    use nix::mount::{MsFlags, mount};
    nix::sched::unshare(nix::sched::CloneFlags::CLONE_NEWNS)?;
    let slave = MsFlags::MS_SLAVE | MsFlags::MS_REC;
    mount(None::<&str>, "/", None::<&str>, slave, None::<&str>)?;
    mount(Some("/dev/null"), "/dev/net/tun", None::<&str>, MsFlags::MS_BIND, None::<&str>)?;
    Ok(())
}
