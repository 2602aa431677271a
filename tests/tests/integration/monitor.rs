//! `lasthop monitor` as its users start it: in pipes, on a terminal, and told to stop.

use lasthop_tests::{PATIENCE, catches, ends_within, eventually, lasthop, run};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use std::fs::File;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::fd::{FromRawFd as _, OwnedFd};
use std::process::{Child, Stdio};

/// A connection over loopback; its client has a port of its own.
fn connection() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("loopback");
    let client = TcpStream::connect(listener.local_addr().expect("bound")).expect("listening");
    (client, listener.accept().expect("connected").0)
}

fn filter(client: &TcpStream) -> String {
    format!("sport = :{}", client.local_addr().expect("bound").port())
}

fn stop(child: &Child, signal: Signal) {
    kill(Pid::from_raw(child.id() as i32), signal).expect("our child");
}

#[test]
fn each_look_at_a_connection_is_a_line() {
    let (mut client, mut server) = connection();
    client.write_all(&[0; 100_000]).expect("connected");
    server.read_exact(&mut [0; 100_000]).expect("sent");
    let command = ["monitor", "--json", "--every", "20ms", "--count", "3", &filter(&client)];
    let ended = run(&mut lasthop(command)).succeeded();
    let lines: Vec<Value> = ended.out.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(lines.len(), 3, "{}", ended.out);
    for line in &lines {
        assert_eq!(line["local"], client.local_addr().expect("bound").to_string());
        assert_eq!((&line["schema"], &line["state"]), (&Value::from(1), &Value::from("established")));
        // The caller's SYN counts as an octet.
        assert_eq!(line["acked_bytes"], 100_001);
    }
    assert_eq!((&lines[0]["limit"], &lines[2]["limit"]), (&Value::Null, &Value::from("idle")));
}

#[test]
fn without_a_terminal_there_is_a_plain_table() {
    let (client, _server) = connection();
    let mut command = lasthop(["monitor", "--every", "20ms", "--count", "2", &filter(&client)]);
    let ended = run(command.env("COLUMNS", "80")).succeeded();
    let local = client.local_addr().expect("bound").to_string();
    assert_eq!(ended.out.lines().filter(|line| line.starts_with(&local)).count(), 2, "{}", ended.out);
    assert_eq!(ended.out.matches("rtt ms").count(), 2, "a heading a look");
    assert!(!ended.out.contains('\u{1b}'), "no escape sequence");
}

#[test]
fn a_wrong_filter_is_shown_with_its_place() {
    let ended = run(&mut lasthop(["monitor", "rtt", ">", "fast"]));
    assert_eq!(ended.status, 2, "{}", ended.err);
    assert!(ended.err.contains("such as 50ms") && ended.err.contains("rtt > fast\n        ^"), "{}", ended.err);
}

#[test]
fn a_parquet_file_is_there_when_the_monitor_was_told_to_stop() {
    let (client, _server) = connection();
    let folder = tempfile::tempdir().expect("a directory");
    let path = folder.path().join("x.parquet");
    let mut command = lasthop(["monitor", "--every", "20ms", "--json", &filter(&client), "--parquet"]);
    let command = command.arg(&path).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("it starts");
    // A look has been written.
    child.stdout.as_mut().expect("a pipe").read_exact(&mut [0; 100]).expect("lines");
    assert!(!path.exists(), "only when it is whole");
    stop(&child, Signal::SIGINT);
    ends_within(child, PATIENCE).succeeded();
    let bytes = std::fs::read(&path).expect("it is there");
    assert!(bytes.starts_with(b"PAR1") && bytes.ends_with(b"PAR1"), "whole");
    assert_eq!(std::fs::read_dir(folder.path()).expect("readable").count(), 1, "and nothing beside it");
}

#[test]
fn a_reader_that_stops_reading_ends_it() {
    let (client, _server) = connection();
    let mut command = lasthop(["monitor", "--every", "20ms", "--json", &filter(&client)]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
    drop(child.stdout.take());
    ends_within(child, PATIENCE).succeeded();
}

/// A terminal of this size: its two ends.
fn terminal(columns: u16, rows: u16) -> (File, OwnedFd) {
    let size = libc::winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
    let (mut ours, mut theirs) = (-1, -1);
    // SAFETY: both descriptors and the size outlive the call; names and modes are not asked for.
    let failed = unsafe { libc::openpty(&mut ours, &mut theirs, std::ptr::null_mut(), std::ptr::null(), &size) };
    assert_eq!(failed, 0, "{}", std::io::Error::last_os_error());
    // SAFETY: fresh descriptors, owned by nobody else.
    unsafe { (File::from_raw_fd(ours), OwnedFd::from_raw_fd(theirs)) }
}

#[test]
fn a_terminal_gets_its_screen_back_whatever_ends_the_monitor() {
    let (client, _server) = connection();
    // By a key, by a signal, by itself.
    for way in ["q", "SIGTERM", "--count"] {
        let (mut ours, theirs) = terminal(80, 24);
        let end = || Stdio::from(theirs.try_clone().expect("a descriptor"));
        let mut command = lasthop(["monitor", "--every", "50ms", &filter(&client)]);
        if way == "--count" {
            command.args(["--count", "3"]);
        }
        let child = command.stdin(end()).stdout(end()).stderr(Stdio::piped()).spawn().expect("it starts");
        drop((command, theirs));
        let mut screen = ours.try_clone().expect("a descriptor");
        let reader = std::thread::spawn(move || {
            let (mut all, mut part) = (Vec::new(), [0; 4096]);
            // The end of the other side is an error.
            while let Ok(len @ 1..) = screen.read(&mut part) {
                all.extend_from_slice(&part[..len]);
            }
            String::from_utf8_lossy(&all).into_owned()
        });
        assert!(eventually(PATIENCE, || catches(child.id(), Signal::SIGTERM)));
        match way {
            "q" => ours.write_all(b"q").expect("a terminal"),
            "SIGTERM" => stop(&child, Signal::SIGTERM),
            _ => {}
        }
        let ended = ends_within(child, PATIENCE);
        let text = reader.join().expect("no panic");
        assert_eq!((ended.status, ended.err.as_str()), (0, ""), "{way}: {text}");
        if way == "--count" {
            assert!(text.contains("limited by") && text.contains("rows 1-1 of 1"), "{text}");
        }
        // The other screen and back; a signal may come before the first.
        assert_eq!(text.matches("\u{1b}[?1049h").count(), text.matches("\u{1b}[?1049l").count(), "{way}: {text}");
        assert!(way == "SIGTERM" || text.contains("\u{1b}[?1049l"), "{way}: {text}");
    }
}
