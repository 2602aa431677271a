//! Where output goes wrong: full disks, files in the way, readers that stop reading.

use lasthop_tests::{Ended, is_root, lasthop, own_scenario, run};
use nix::mount::{MntFlags, MsFlags, mount, umount2};
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

fn short(out: &Path) -> Command {
    let mut command = lasthop(["run", "--world", "sim", "--law", "cubic", "--out"]);
    command.arg(out).arg(own_scenario("short"));
    command
}

/// Every file below `folder`.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).expect("readable").map(|entry| entry.expect("readable").path());
    entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

/// A disk of a few pages that goes away with the value.
struct TinyDisk(tempfile::TempDir);

impl TinyDisk {
    fn of(bytes: u32, flags: MsFlags) -> TinyDisk {
        let folder = tempfile::tempdir().expect("a directory");
        let size = format!("size={bytes}");
        mount(Some("tmpfs"), folder.path(), Some("tmpfs"), flags, Some(size.as_str())).expect("root mounts");
        TinyDisk(folder)
    }
}

impl Drop for TinyDisk {
    fn drop(&mut self) {
        let _ = umount2(self.0.path(), MntFlags::MNT_DETACH);
    }
}

#[test]
fn a_full_disk_is_named_and_no_file_is_left_half_written() {
    if !is_root() {
        return;
    }
    // Room for nothing, for result.json, and for some of the page.
    for bytes in [4096, 16 << 10, 64 << 10] {
        let disk = TinyDisk::of(bytes, MsFlags::empty());
        let out = disk.0.path().join("results");
        let ended = run(&mut short(&out));
        let path = out.display().to_string();
        let ended = ended.failed_saying(&["cannot write", &path, "No space left on device"]);
        assert_eq!(ended.err.matches("No space left").count(), 1, "said twice:\n{}", ended.err);
        assert!(ended.out.contains("Throughput"), "the figures that could not be written are at least shown");
        for file in files(disk.0.path()) {
            let whole = match file.extension().and_then(|ext| ext.to_str()) {
                Some("json") => {
                    serde_json::from_slice::<serde_json::Value>(&std::fs::read(&file).expect("read")).is_ok()
                }
                Some("html") => std::fs::read_to_string(&file).expect("read").trim_end().ends_with("</html>"),
                _ => false,
            };
            assert!(whole, "{} was left half-written", file.display());
        }
    }
}

/// A run that is refused before it begins: no run is announced, and no time is lost.
fn refused_at_once(out: &Path) -> Ended {
    let ended = run(&mut short(out)).failed_saying(&["cannot write results into", &out.display().to_string()]);
    assert!(!ended.err.contains("run 1 of"), "it was found out after the run:\n{}", ended.err);
    ended
}

#[test]
fn a_file_in_the_way_of_results_is_found_before_the_run() {
    let folder = tempfile::tempdir().expect("a directory");
    let file = folder.path().join("taken");
    std::fs::write(&file, "precious").expect("written");
    for out in [file.clone(), file.join("below")] {
        refused_at_once(&out).failed_saying(&["taken: this is a file", "name a directory"]);
    }
    assert_eq!(std::fs::read_to_string(&file).expect("still there"), "precious");
}

#[test]
fn a_place_that_cannot_be_written_is_found_before_the_run() {
    refused_at_once(Path::new("/dev/null")).failed_saying(&["this is a file"]);
    if is_root() {
        let disk = TinyDisk::of(4096, MsFlags::MS_RDONLY);
        refused_at_once(&disk.0.path().join("results")).failed_saying(&["Read-only file system"]);
    }
}

#[test]
fn readers_may_stop_reading() {
    let folder = tempfile::tempdir().expect("a directory");
    let schema = || lasthop(["check", "--schema"]);
    for (mut command, both) in [(schema(), false), (short(folder.path()), false), (short(folder.path()), true)] {
        // As `lasthop … | true`, and as `lasthop … 2>&1 | true`.
        let (reader, writer) = std::io::pipe().expect("a pipe");
        drop(reader);
        let complaints = tempfile::NamedTempFile::new().expect("a file");
        command.stdout(writer.try_clone().expect("a copy"));
        if both {
            command.stderr(writer);
        } else {
            command.stderr(complaints.reopen().expect("the file"));
        }
        let status = command.status().expect("it starts");
        let said = std::fs::read_to_string(complaints.path()).expect("the file");
        assert!(status.success() && !said.contains("panicked"), "{command:?}: {status}\n{said}");
    }
    assert!(folder.path().join("result.json").exists(), "the results are written though nobody reads the table");
}

#[test]
fn the_first_line_can_be_read_alone() {
    let mut child = lasthop(["doctor"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
    let mut line = String::new();
    BufReader::new(child.stdout.take().expect("piped")).read_line(&mut line).expect("a line");
    assert!(line.starts_with("simulator"), "{line}");
    let ended = child.wait_with_output().expect("our child");
    assert!(!String::from_utf8_lossy(&ended.stderr).contains("panicked"), "{ended:?}");
}

#[test]
fn a_full_standard_output_is_an_error_and_no_panic() {
    let full = || File::options().write(true).open("/dev/full").expect("/dev/full");
    let ended = run(lasthop(["check", "--schema"]).stdout(full()));
    ended.failed_saying(&["cannot write to standard output", "No space left on device"]);
}

#[test]
fn a_narrow_screen_gets_a_table_all_the_same() {
    let folder = tempfile::tempdir().expect("a directory");
    for columns in ["0", "1", "20", "nonsense"] {
        let ended = run(short(folder.path()).env("COLUMNS", columns)).succeeded();
        assert!(ended.out.contains("cubic"), "COLUMNS={columns}:\n{}", ended.out);
    }
    let out = folder.path();
    let mut both = lasthop(["compare", "--world", "sim", "--laws", "cubic,cubic+ap", "--out"]);
    let ended = run(both.arg(out).arg(own_scenario("short")).env("COLUMNS", "50")).succeeded();
    for line in ended.out.lines().filter(|line| !line.contains("Written: ")) {
        assert!(line.chars().count() <= 50, "wider than the screen: {line}");
    }
}
