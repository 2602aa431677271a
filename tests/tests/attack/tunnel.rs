//! Server, proxy and station in a row on cables, and downloads through the tunnel between the last two.

use crate::program::Program;
use crate::scene::Scene;
use crate::support::netns::Row;
use lasthop_tests::lasthop;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// The number of its networks.
const NET: u8 = 93;
/// Where the server gives whoever comes as much as he takes.
const SERVER: &str = "10.93.1.1:7";
/// Where the proxy waits for stations.
pub const PROXY: &str = "10.93.2.1:4848";
/// At the station: leads to the server through the tunnel.
const FORWARDED: &str = "127.0.0.1:9000";
/// The rate at which the proxy serves the station.
pub const MBIT_S: f64 = 50.0;

/// The namespaces and the keys.
pub struct Tunnel {
    pub row: Row,
    folder: tempfile::TempDir,
}

impl Tunnel {
    pub fn new() -> Tunnel {
        let tunnel = Tunnel { row: Row::new(NET), folder: tempfile::tempdir().expect("a directory") };
        let mut pair = lasthop(["pair", "--station", "1"]);
        pair.args(["--proxy", &tunnel.path("keys"), "--out", &tunnel.path("key")]);
        let _ = lasthop_tests::run(&mut pair).succeeded();
        let listener = tunnel.row.server.within(|| TcpListener::bind(SERVER)).expect("a free port");
        std::thread::spawn(move || {
            for mut socket in listener.incoming().map_while(Result::ok) {
                std::thread::spawn(move || while socket.write_all(&[7; 1 << 14]).is_ok() {});
            }
        });
        tunnel
    }

    fn path(&self, name: &str) -> String {
        let path: PathBuf = self.folder.path().join(name);
        path.into_os_string().into_string().expect("a path in ASCII")
    }

    /// A proxy that serves at [`MBIT_S`], with more arguments.
    pub fn proxy(&self, scene: &Scene, more: &[&str]) -> Program {
        let (keys, rate) = (self.path("keys"), format!("{MBIT_S} Mbit/s"));
        let arguments = ["proxy", "--listen", PROXY, "--keys", &keys, "--rate", &rate, "--no-realtime"];
        let mut proxy = Program::lasthop(&self.row.proxy, &[&arguments, more].concat());
        proxy.says(scene, "waiting for stations");
        proxy
    }

    /// The station's agent, with more arguments.
    pub fn station(&self, scene: &Scene, more: &[&str]) -> Program {
        let (key, forward) = (self.path("key"), format!("{FORWARDED}={SERVER}"));
        let arguments = ["station", "--proxy", PROXY, "--key", &key, "--forward", &forward];
        let mut station = Program::lasthop(&self.row.station, &[&arguments, more].concat());
        station.says(scene, "leads to");
        station
    }

    /// A connection through the tunnel; `None` if the station's agent is not there.
    pub fn connect(&self) -> Option<Download> {
        self.row.station.within(|| TcpStream::connect(FORWARDED)).ok().map(Download::new)
    }

    /// A connection that brings something: while the tunnel is down they end at once. How long it took to have one.
    pub fn download(&self, scene: &Scene) -> (Download, Duration) {
        let mut download: Option<Download> = None;
        let took = scene.await_that("a download through the tunnel", || {
            if download.as_ref().is_none_or(Download::has_ended) {
                download = self.connect();
            }
            download.as_ref().is_some_and(|download| download.octets() > 0)
        });
        (download.expect("it brings something"), took)
    }
}

/// A connection with a thread of its own that counts its octets.
pub struct Download {
    socket: TcpStream,
    octets: Arc<AtomicU64>,
    ended: Arc<AtomicBool>,
}

impl Download {
    fn new(socket: TcpStream) -> Download {
        let mut source = socket.try_clone().expect("a descriptor");
        let (octets, ended) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
        let (count, end) = (Arc::clone(&octets), Arc::clone(&ended));
        std::thread::spawn(move || {
            let mut block = vec![0; 1 << 16];
            while let Ok(len @ 1..) = source.read(&mut block) {
                count.fetch_add(len as u64, Ordering::Relaxed);
            }
            end.store(true, Ordering::Relaxed);
        });
        Download { socket, octets, ended }
    }

    pub fn octets(&self) -> u64 {
        self.octets.load(Ordering::Relaxed)
    }

    pub fn has_ended(&self) -> bool {
        self.ended.load(Ordering::Relaxed)
    }

    /// Mbit/s over a span.
    pub fn rate(&self, scene: &Scene, span: Duration) -> f64 {
        let (before, began) = (self.octets(), std::time::Instant::now());
        scene.rest(span);
        (self.octets() - before) as f64 * 8.0 / began.elapsed().as_secs_f64() / 1e6
    }
}

impl Drop for Download {
    fn drop(&mut self) {
        // Ends the thread, too.
        let _ = self.socket.shutdown(std::net::Shutdown::Both);
    }
}
