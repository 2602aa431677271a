//! Programs that take part in a run.

use lasthop_signals::HostId;
use std::path::PathBuf;

/// An edge proxy and the agents of the stations.
///
/// In their arguments `{keys}` becomes the proxy's file of keys, `{key}` that of the station's own key, `{station}` the station's
/// number, `{proxy}` the address at which stations reach the proxy, `{door}` that at which a station's agent takes requests
/// (HTTP CONNECT), `{monitor}` the station's monitor interface, `{log}` a file for the proxy's log, and `{station_log}` one for
/// the station's.
#[derive(Clone, Debug)]
pub struct TunnelSpec {
    /// The program.
    pub program: PathBuf,
    /// Makes a station's key; run once for each station before the others start.
    pub pair: Vec<String>,
    /// The proxy, in the access point's namespace.
    pub proxy: Vec<String>,
    /// A station's agent, in its namespace. It listens at `{door}` as soon as it runs.
    pub station: Vec<String>,
    /// Further arguments of a station's agent for each port `{local}` of its own that is to lead to `{target}`: for programs
    /// that cannot ask for a connection.
    pub forward: Vec<String>,
}

/// A program on a station that bounds the windows of the station's own uploads.
#[derive(Clone, Debug)]
pub struct TerminalSpec {
    /// The program.
    pub program: PathBuf,
    /// The station, by its place among the scenario's.
    pub station: usize,
    /// Its arguments. `{iface}` becomes the name of the station's interface on the last hop, `{cgroup}` the directory of the cgroup in which
    /// all sockets of the run are, `{key}` the file of a key that all stations share, `{bss}` the access point's BSSID, and
    /// `{log}` a file for the log, into which it writes once it looks after connections.
    pub arguments: Vec<String>,
}

/// A program that acts on the access point, or on a node of a mesh.
#[derive(Clone, Debug)]
pub struct AgentSpec {
    /// The program.
    pub program: PathBuf,
    /// Its arguments. `{driver}` becomes the path of the node's emulated driver's socket, `{iface}` the name of the wireless
    /// interface and `{wire}` that of the wired one. The program connects to the socket once it is ready.
    pub arguments: Vec<String>,
}

/// Two programs that carry a bulk transfer over UDP.
///
/// In their arguments `{bind}` becomes the address and port at which the receiver waits, and `{to}` the same for the sender; `{limit}` becomes
/// `--time` or `--bytes`, and `{amount}` how much of it; `{patience}` is longer than the run. Both print JSON lines as `lasthop send` and
/// `lasthop recv` do.
#[derive(Clone, Debug)]
pub struct CarrierSpec {
    /// The program.
    pub program: PathBuf,
    /// The arguments of the receiver. It has bound its port before the sender starts.
    pub receive: Vec<String>,
    /// The arguments of the sender.
    pub send: Vec<String>,
}

/// PBE-CC's pair on the kernel's TCP: senders' agents, which bring a congestion control, and agents of stations in a cell, which tell senders what they
/// decode.
///
/// In their arguments `{cgroup}` becomes the directory of the cgroup in which all sockets of the run are. Each prints a line once everything is
/// open.
#[derive(Clone, Debug)]
pub struct PbeSpec {
    /// The program of both.
    pub program: PathBuf,
    /// On hosts that send.
    pub senders: Vec<PbeSenderSpec>,
    /// On stations that decode their cell.
    pub receivers: Vec<PbeReceiverSpec>,
}

/// An agent of a sender.
#[derive(Clone, Debug)]
pub struct PbeSenderSpec {
    /// The host with the network namespace that it runs in.
    pub host: HostId,
    /// The kernel's name of the congestion control that it brings; names are the whole kernel's.
    pub name: String,
    /// Its arguments.
    pub arguments: Vec<String>,
}

/// An agent of a station.
#[derive(Clone, Debug)]
pub struct PbeReceiverSpec {
    /// The station, by its place among the scenario's.
    pub station: usize,
    /// Its arguments.
    pub arguments: Vec<String>,
    /// Further arguments for each carrier, that of the station's primary cell first: `{control}` becomes the pipe of what the station decodes there,
    /// `{prb}` how many PRB pairs the carrier has.
    pub carrier: Vec<String>,
}
