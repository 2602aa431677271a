//! Downloads of one station through a proxy that serves it at a fixed rate, over a wire with a delay.

use super::delay::DelayWire;
use super::edge::{Agent, Edge};
use super::netns::Netns;
use super::slots::{self, Slot};
use lasthop_agents::proxy::{self, Rule};
use lasthop_agents::station::{self, Forward};
use lasthop_units::{Rate, Span};
use lasthop_wire::proxy::Target;
use std::io::{self, Read};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

const FORWARDED: &str = "127.0.0.1:9000";

/// Server, proxy and station with their agents.
pub struct Downloads {
    net: u8,
    log: PathBuf,
    _agents: (Agent<station::Summary>, Agent<proxy::Summary>),
    pub edge: Edge,
    _wire: DelayWire,
}

impl Downloads {
    /// In networks 10.`net`, with `round_trip` between proxy and server. `retracts`: the proxy's kernel lets windows be taken back.
    pub fn new(net: u8, rate: Rate, round_trip: Duration, retracts: bool) -> Downloads {
        let wire = |server: &Netns, proxy: &Netns| DelayWire::new((server, "s0"), (proxy, "p0"), round_trip / 2);
        let (edge, wire) = Edge::joined(net, wire);
        let set = |text| edge.proxy.within(|| std::fs::write("/proc/sys/net/ipv4/tcp_shrink_window", text));
        // Kernels that do not know of it never do.
        let set = set(if retracts { "1" } else { "0" });
        assert!(set.is_ok() || !retracts, "Linux 6.5 or later is needed");
        let log = edge.path("log");
        let listen = format!("10.{net}.2.1:4848").parse().expect("an address");
        let proxy = edge.start_proxy(proxy::Config {
            log: Some(log.clone()),
            ..proxy::Config::new(listen, edge.keys(), Rule::Fixed(rate))
        });
        let target = Target::new(&server(net), 7).expect("a target");
        let station = edge.start_station(station::Config {
            forwards: vec![Forward { listen: FORWARDED.parse().expect("an address"), target }],
            slot: Span::from_millis(100),
            ..station::Config::new(listen, edge.key())
        });
        Downloads { net, log, _agents: (station, proxy), edge, _wire: wire }
    }

    /// A server that gives each connection a thread.
    pub fn serve(&self, each: impl Fn(TcpStream) + Clone + Send + 'static) {
        let address = (server(self.net), 7);
        let listener = self.edge.server.within(|| TcpListener::bind((&*address.0, address.1))).expect("a listener");
        std::thread::spawn(move || {
            for socket in listener.incoming().map_while(Result::ok) {
                let each = each.clone();
                std::thread::spawn(move || each(socket));
            }
        });
    }

    /// So many connections, each of which has done what is to be done `first`: while the tunnel is down they end at once, and are made anew.
    pub fn connect(&self, count: usize, first: impl Fn(&mut TcpStream) -> io::Result<()>) -> Vec<TcpStream> {
        let until = Instant::now() + Duration::from_secs(180);
        let mut open: Vec<TcpStream> = Vec::new();
        while open.len() < count {
            assert!(Instant::now() < until, "{} of {count} connections stand", open.len());
            let mut socket = self.edge.station.within(|| TcpStream::connect(FORWARDED)).expect("the agent listens");
            socket.set_read_timeout(Some(Duration::from_secs(5))).expect("a socket");
            match first(&mut socket) {
                Ok(()) => open.push(socket),
                Err(_) => std::thread::sleep(Duration::from_millis(20)),
            }
        }
        open
    }

    /// The proxy's slots from the one after the first `skipped` on.
    pub fn slots(&self, skipped: usize) -> Vec<Slot> {
        slots::read(&self.log, skipped)
    }

    /// How many slots there are so far.
    pub fn count(&self) -> usize {
        slots::count(&self.log)
    }
}

/// Reads from all at once for so long: how much each has brought.
pub fn read_for(open: Vec<TcpStream>, lasts: Duration) -> Vec<usize> {
    let ends = Instant::now() + lasts;
    let read = |mut socket: TcpStream| {
        std::thread::spawn(move || {
            let (mut bytes, mut count) = (vec![0; 1 << 16], 0);
            while Instant::now() < ends {
                count += socket.read(&mut bytes).expect("data comes");
            }
            count
        })
    };
    let readers: Vec<JoinHandle<usize>> = open.into_iter().map(read).collect();
    readers.into_iter().map(|reader| reader.join().expect("no panic")).collect()
}

fn server(net: u8) -> String {
    format!("10.{net}.1.1")
}
