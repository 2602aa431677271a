//! The machine that an experiment runs on, for `run.json`.

use nix::sys::utsname::uname;

/// Name and kernel release of this machine; empty where the system does not tell.
pub fn name_and_kernel() -> (String, String) {
    let Ok(names) = uname() else { return Default::default() };
    (names.nodename().to_string_lossy().into_owned(), names.release().to_string_lossy().into_owned())
}

/// Processor model and count.
pub fn cpu() -> String {
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = info.lines().find_map(|line| line.strip_prefix("model name")).unwrap_or("unknown processor");
    let count = std::thread::available_parallelism().map_or(1, usize::from);
    format!("{count} x {}", model.trim_start_matches([' ', '\t', ':']))
}
