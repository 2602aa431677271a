//! Server, proxy and station in namespaces, and agents on threads in them.

use super::netns::{Netns, Row};
use lasthop_agents::proxy::{self, Proxy};
use lasthop_agents::service::{AgentError, Error, Stop};
use lasthop_agents::station::{self, Station};
use lasthop_agents::tunnel::keys;
use lasthop_signals::Node;
use std::io::ErrorKind;
use std::path::PathBuf;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Server, proxy and station 1, in a [`Row`]. The last two have a key.
pub struct Edge {
    pub server: Netns,
    pub proxy: Netns,
    pub station: Netns,
    dir: tempfile::TempDir,
}

impl Edge {
    /// On cables.
    pub fn new(net: u8) -> Edge {
        Edge::joined(net, |server, proxy| server.veth("s0", proxy, "p0")).0
    }

    /// With devices `s0` and `p0` that `join` makes, and what holds them.
    pub fn joined<W>(net: u8, join: impl FnOnce(&Netns, &Netns) -> W) -> (Edge, W) {
        let (Row { server, proxy, station }, wire) = Row::joined(net, join);
        let dir = tempfile::tempdir().expect("a directory");
        let edge = Edge { server, proxy, station, dir };
        keys::pair(&edge.keys(), Node(1), &edge.key(), false).expect("paired");
        (edge, wire)
    }

    /// Runs a proxy in its namespace.
    pub fn start_proxy(&self, config: proxy::Config) -> Agent<proxy::Summary> {
        Agent::start(&self.proxy, move |ready, stop| {
            let proxy = opened(|| Proxy::open(&config));
            ready();
            proxy.run(stop).expect("it runs")
        })
    }

    /// Runs a station in its namespace.
    pub fn start_station(&self, config: station::Config) -> Agent<station::Summary> {
        Agent::start(&self.station, move |ready, stop| {
            let station = opened(|| Station::open(&config));
            ready();
            station.run(stop).expect("it runs")
        })
    }

    /// The proxy's keys.
    pub fn keys(&self) -> PathBuf {
        self.path("proxy")
    }

    /// The station's.
    pub fn key(&self) -> PathBuf {
        self.path("1")
    }

    /// A file beside them.
    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }
}

/// An agent that may follow one that has just ended. What that had open is open for a moment longer in the child of another test,
/// from its fork to its exec.
fn opened<T, E: AgentError>(open: impl Fn() -> Result<T, E>) -> T {
    let until = Instant::now() + Duration::from_secs(5);
    loop {
        match open().map_err(E::common) {
            Err(Ok(Error::Address { source, .. }))
                if source.kind() == ErrorKind::AddrInUse && Instant::now() < until =>
            {
                std::thread::sleep(Duration::from_millis(10));
            }
            other => return other.expect("an agent"),
        }
    }
}

/// A running agent; told to stop when dropped.
pub struct Agent<T> {
    stop: &'static Stop,
    thread: Option<JoinHandle<T>>,
}

impl<T: Send + 'static> Agent<T> {
    /// Runs on a thread of its own, in the namespace, which loses its privileges as a process would; waits until it is ready.
    pub fn start(netns: &Netns, run: impl FnOnce(&dyn Fn(), &'static Stop) -> T + Send + 'static) -> Agent<T> {
        let stop: &'static Stop = Box::leak(Box::default());
        let (sender, receiver) = std::sync::mpsc::channel();
        let path = format!("/run/netns/{}", netns.name());
        let thread = std::thread::spawn(move || {
            let file = std::fs::File::open(path).expect("a namespace");
            nix::sched::setns(file, nix::sched::CloneFlags::CLONE_NEWNET).expect("root");
            run(&|| sender.send(()).expect("somebody waits"), stop)
        });
        receiver.recv().expect("it starts");
        Agent { stop, thread: Some(thread) }
    }

    /// Stops it and waits.
    pub fn end(mut self) -> T {
        self.stop.ask();
        self.thread.take().expect("it runs").join().expect("no panic")
    }
}

impl<T> Drop for Agent<T> {
    fn drop(&mut self) {
        self.stop.ask();
        self.thread.take().map(JoinHandle::join);
    }
}
