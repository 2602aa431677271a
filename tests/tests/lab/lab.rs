//! `lasthop lab FILE -- COMMAND`: a program on a host of the lab, what it finds, how it ends, and
//! what is left of it.

use lasthop_tests::{
    Ended, PATIENCE, ends_within, eventually, is_root, lab, lasthop, leavings, own_scenario, run, scenario,
};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::fd::FromRawFd;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// `lasthop lab` with the tests' short scenario.
fn inside(flags: &[&str], command: &[&str]) -> Command {
    let mut line = lasthop(["lab"]);
    line.arg(own_scenario("short")).args(flags).arg("--").args(command);
    line.stdout(Stdio::piped()).stderr(Stdio::piped());
    line
}

/// Its end. Nothing of its world is left.
fn over(child: Child) -> Ended {
    let id = child.id();
    let ended = ends_within(child, Duration::from_secs(20));
    assert!(!ended.err.contains("panicked"), "{}", ended.err);
    assert_eq!(leavings(id), [""; 0], "{}", ended.err);
    ended
}

fn start(flags: &[&str], command: &[&str]) -> Child {
    inside(flags, command).spawn().expect("it starts")
}

/// True once process `pid` has ended, whether or not somebody has asked for its status.
fn is_dead(pid: &str) -> bool {
    std::fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|line| line.is_empty()) || {
        !std::path::Path::new("/proc").join(pid).exists()
    }
}

#[test]
fn a_program_finds_names_and_its_interface_and_leaves_nothing() {
    let Some(_lab) = lab() else { return };
    let script = "sleep 1000 >/dev/null 2>&1 & echo left $!; ls /sys/class/net; getent hosts ap server two; \
                  cat /proc/sys/net/ipv4/tcp_congestion_control; exit 3";
    let ended = over(start(&["--law", "reno", "--host", "two"], &["sh", "-c", script]));
    assert_eq!(ended.status, 3, "{}", ended.err);
    let words: Vec<&str> = ended.out.split_whitespace().collect();
    let [_, left, found @ ..] = &words[..] else { panic!("{}", ended.out) };
    assert_eq!(
        found,
        ["lo", "wlan0", "10.76.1.1", "ap", "10.76.0.1", "server", "10.76.1.3", "two", "reno"],
        "{}",
        ended.err
    );
    assert!(is_dead(left), "what the program left behind lives on");
    let told = ended.err.lines().filter(|line| line.contains("sh runs on two (10.76.1.3), law reno")).count();
    assert_eq!(told, 1, "{}", ended.err);
}

#[test]
fn iperf3_reaches_the_server_beside_the_scenarios_traffic() {
    let Some(_lab) = lab() else { return };
    if Command::new("iperf3").arg("--version").stdout(Stdio::null()).status().is_err() {
        let _ = writeln!(std::io::stderr(), "SKIPPED: iperf3 is not installed");
        return;
    }
    let script = "until [ $(cat /sys/class/net/wlan0/statistics/rx_bytes) -gt 100000 ]; do sleep 0.01; done; \
                  exec iperf3 --client server --bytes 256K --json";
    let ended = over(start(&["--with-traffic"], &["sh", "-c", script])).succeeded();
    assert!(ended.err.contains("iperf3 listens at server"), "{}", ended.err);
    let said: serde_json::Value = serde_json::from_str(&ended.out).expect("JSON");
    assert!(said["end"]["sum_received"]["bytes"].as_u64().is_some_and(|bytes| bytes > 0), "{said}");
    assert_eq!(said["end"]["sender_tcp_congestion"], "cubic", "{said}");
}

#[test]
fn a_program_that_cannot_start_has_the_status_of_a_shell() {
    let Some(_lab) = lab() else { return };
    for (program, status, says) in
        [("lasthop-no-such-program", 127, "cannot start lasthop-no-such-program"), ("/etc/passwd", 126, "/etc/passwd")]
    {
        let ended = over(start(&[], &[program]));
        assert_eq!(ended.status, status, "{}", ended.err);
        assert!(ended.err.contains(says) && ended.err.contains("name a program"), "{}", ended.err);
    }
}

/// A terminal: the end that a person has, and the one that programs have.
fn terminal() -> (File, File) {
    let (mut person, mut programs) = (-1, -1);
    let none = std::ptr::null_mut();
    // SAFETY: the call fills in two descriptors; the rest may be left out.
    let made = unsafe { libc::openpty(&mut person, &mut programs, none, std::ptr::null(), std::ptr::null()) };
    assert_eq!(made, 0, "no pseudo-terminal");
    // SAFETY: fresh descriptors that nobody else owns.
    unsafe { (File::from_raw_fd(person), File::from_raw_fd(programs)) }
}

#[test]
fn ctrl_c_is_the_programs_affair_and_a_polite_kill_ends_both() {
    let Some(_lab) = lab() else { return };
    let (mut person, programs) = terminal();
    let stream = || Stdio::from(programs.try_clone().expect("a descriptor"));
    let mut command =
        inside(&[], &["sh", "-c", "trap 'echo caught' INT; echo began $$.; while :; do sleep 0.02; done"]);
    command.stdin(stream()).stdout(stream()).stderr(stream());
    // SAFETY: the closure makes system calls only.
    unsafe {
        command.pre_exec(|| {
            // The terminal becomes that of a new session, with the command in its foreground.
            let taken = libc::setsid() >= 0 && libc::ioctl(0, libc::TIOCSCTTY, 0) == 0;
            if taken { Ok(()) } else { Err(std::io::Error::last_os_error()) }
        });
    }
    let child = command.spawn().expect("it starts");
    drop((command, programs));
    let shown = Arc::new(Mutex::new(String::new()));
    let (mut screen, shows) = (person.try_clone().expect("a descriptor"), Arc::clone(&shown));
    let reader = std::thread::spawn(move || {
        let mut bytes = [0; 1024];
        // Fails when no program has the terminal any more.
        while let Ok(len @ 1..) = screen.read(&mut bytes) {
            shows.lock().expect("no panic").push_str(&String::from_utf8_lossy(&bytes[..len]));
        }
    });
    let number = || {
        let shown = shown.lock().expect("no panic");
        Some(shown.split_once("began ")?.1.split_once('.')?.0.to_owned())
    };
    assert!(eventually(PATIENCE, || number().is_some()), "the program did not begin");
    person.write_all(b"\x03").expect("a terminal");
    assert!(eventually(PATIENCE, || shown.lock().expect("no panic").contains("caught")), "no SIGINT came");
    // Longer than the grace that a program has when its command was told to stop.
    std::thread::sleep(Duration::from_millis(1200));
    let number = number().expect("it began");
    assert!(!is_dead(&number), "Ctrl-C ended a program that went on");
    kill(Pid::from_raw(child.id() as i32), Signal::SIGTERM).expect("it runs");
    let ended = over(child);
    assert_eq!(ended.status, 128 + Signal::SIGTERM as i32, "{}", shown.lock().expect("no panic"));
    assert!(is_dead(&number), "the program lives on");
    reader.join().expect("no panic");
}

#[test]
fn clean_ends_what_a_program_of_a_killed_command_left_running() {
    let Some(_lab) = lab() else { return };
    let folder = tempfile::tempdir().expect("a directory");
    let began = folder.path().join("began");
    // The second process is nobody's child when the first one has been killed.
    let script = format!("sleep 1000 & echo $! >{}; wait", began.display());
    let mut child = start(&[], &["sh", "-c", &script]);
    let number = || std::fs::read_to_string(&began).ok().filter(|text| text.ends_with('\n'));
    assert!(eventually(PATIENCE, || number().is_some()), "the program did not begin");
    let number = number().expect("written");
    child.kill().expect("our child");
    child.wait().expect("our child");
    assert!(!is_dead(number.trim()), "it was to be left");
    run(&mut lasthop(["lab", "--clean"])).succeeded();
    assert!(is_dead(number.trim()), "what the program left behind lives on");
    assert_eq!(leavings(child.id()), [""; 0]);
}

#[test]
fn what_cannot_be_is_told_before_anything_is_built() {
    let refused = |line: &[&str]| {
        let ended = run(lasthop(["lab"]).args(line));
        assert!(ended.out.is_empty() && !ended.err.contains("runs on"), "{}", ended.err);
        ended
    };
    let short = own_scenario("short");
    let short = short.to_str().expect("UTF-8");
    refused(&[short, "--host", "tow", "--", "true"]).failed_saying(&["no host `tow`", "did you mean `two`?"]);
    refused(&[short, "--host", "sofa", "--", "true"]).failed_saying(&["its hosts are server, ap, one, two"]);
    refused(&[short, "--law", "cubi", "--", "true"]).failed_saying(&["no law `cubi`", "its laws are cubic, cubic+ap"]);
    refused(&["absent.toml", "--", "true"]).failed_saying(&["absent.toml", "No such file"]);
    for (line, says) in [
        (&[short][..], "<COMMAND>"),
        (&[short, "--"], "<COMMAND>"),
        (&[short, "true"], "[-- <COMMAND>...]"),
        (&["--", "true"], "<FILE>"),
        (&["--clean", short], "--clean"),
    ] {
        let ended = refused(line);
        assert!(ended.status == 2 && ended.err.contains(says), "{line:?}: {}", ended.err);
    }
    let backhaul = scenario("aggregation/slow-backhaul");
    let backhaul = [backhaul.to_str().expect("UTF-8"), "--", "true"];
    let says = if nix::unistd::geteuid().is_root() {
        ["slow-backhaul.toml", "the one access point"]
    } else {
        ["root", "sudo"]
    };
    refused(&backhaul).failed_saying(&says);
}

#[test]
fn an_absent_congestion_control_is_reported_with_present_ones() {
    if !is_root() {
        return;
    }
    let offered = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control").expect("Linux");
    let offered: Vec<&str> = offered.split_whitespace().collect();
    let folder = tempfile::tempdir().expect("a directory");
    let (file, out) = (folder.path().join("unknown.toml"), folder.path().join("results"));
    let text = std::fs::read_to_string(own_scenario("short")).expect("readable");
    let text = text.replace("sender = \"cubic\"", "sender = \"kernel:lasthop-none\"").replace("laws.cubic", "laws.own");
    std::fs::write(&file, text).expect("written");
    run(lasthop(["check"]).arg(&file)).succeeded();
    let says = ["`lasthop-none` is missing", &format!("this kernel has {}", offered.join(", "))];
    let ended = run(lasthop(["run", "--world", "lab", "--out"]).arg(&out).arg(&file)).failed_saying(&says);
    assert!(!ended.err.contains("run 1 of") && !out.exists(), "{}", ended.err);
    run(lasthop(["lab"]).arg(&file).args(["--", "true"])).failed_saying(&says);
}
