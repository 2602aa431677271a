//! Programs that take part in a run.

use lasthop_signals::{HostId, Node};
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::path::PathBuf;

/// Where programs of a station find an agent that opens connections for them.
pub const DOOR: SocketAddr = SocketAddr::V4(SocketAddrV4::new(Ipv4Addr::LOCALHOST, 1080));

/// A program that runs on a host beside the traffic. Programs start in the order of their list, and the run begins when all are
/// ready.
///
/// In its arguments the lab fills in what only it knows:
///
/// - `{log}`: the path of its log;
/// - `{file:NAME}`: the path of a file in the run's own directory; programs that name the same file share it;
/// - `{cgroup}`: the directory of the cgroup in which all sockets of the run are;
/// - `{iface}`: the name of its interface on the last hop, that of its node if it has one;
/// - `{driver}`: the path of the socket of its node's emulated driver;
/// - `{monitor}`: its monitor interface, which shows what its own radio sends and takes;
/// - `{control:CARRIER}`: the pipe of what its station decodes of that carrier of a cell, counted from 0;
/// - `{network-key}`: a file with a fresh key, the same for all programs of the run.
#[derive(Clone, Debug)]
pub struct ProgramSpec {
    /// What messages call it.
    pub name: String,
    /// Where it runs.
    pub host: HostId,
    /// Its node on the last hop; `None` if it has nothing to do with that node's driver.
    pub node: Option<Node>,
    /// The program.
    pub program: PathBuf,
    /// Its arguments.
    pub arguments: Vec<String>,
    /// Further arguments for each port `{local}` of its own that is to lead to `{target}`, for programs that cannot ask for a
    /// connection; none if it opens no connections for others.
    pub forward: Vec<String>,
    /// The name of its log in the run's own directory: the outcome has what it wrote there. `None` if it writes none.
    pub log: Option<String>,
    /// The kernel's name of the congestion control that it brings; names are the whole kernel's.
    pub brings: Option<String>,
    /// When it counts as ready.
    pub ready: Ready,
    /// True if it ends after the others have: they talk to it when they end.
    pub outlives: bool,
    /// What becomes of its account of itself; `None` if it gives none.
    pub account: Option<AccountSpec>,
}

impl ProgramSpec {
    /// A program on `host`, of which nothing is known but how it starts.
    pub fn new(name: String, host: HostId, program: PathBuf, arguments: Vec<String>) -> ProgramSpec {
        ProgramSpec {
            name,
            host,
            node: None,
            program,
            arguments,
            forward: Vec::new(),
            log: None,
            brings: None,
            ready: Ready::Started,
            outlives: false,
            account: None,
        }
    }

    /// The arguments by which its port `local` leads to `target`.
    pub(crate) fn forwarding(&self, local: SocketAddr, target: SocketAddr) -> impl Iterator<Item = String> {
        let (local, target) = (local.to_string(), target.to_string());
        self.forward.iter().map(move |argument| argument.replace("{local}", &local).replace("{target}", &target))
    }

    /// True if `placeholder` is among its arguments.
    pub(crate) fn asks_for(&self, placeholder: &str) -> bool {
        self.arguments.iter().any(|argument| argument.contains(placeholder))
    }
}

/// Where programs of a host that cannot ask for a connection find what has this port elsewhere.
pub(crate) fn forwarded(port: u16) -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, port))
}

/// When a program counts as ready.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Ready {
    /// Once it has ended, with success. No other starts before.
    Ended,
    /// At once.
    Started,
    /// Once it has connected to its node's driver.
    Connected,
    /// Once it has printed something to standard output.
    Spoken,
    /// Once it has written into its log.
    Logged,
    /// Once it listens at this address.
    Listening(SocketAddr),
}

/// What becomes of a program's account of itself, the last line that it prints.
#[derive(Clone, Debug)]
pub struct AccountSpec {
    /// The key of the line: `{"KEY":{…}}`.
    pub line: &'static str,
    /// Its name in the outcome. Accounts of one name are added up.
    pub name: &'static str,
    /// True if the accounts of one name are not added up, but stand by the names of their hosts.
    pub by_host: bool,
    /// What the program's share of a [`Cause::Short`] is.
    pub expected: u64,
    /// What of all accounts of that name makes the run doubtful.
    pub doubts: &'static [(Cause, &'static str)],
}

/// Why accounts make a run doubtful. `{n}` in the text that stands with it is the number of what each says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Cause {
    /// Programs gave no account.
    Silent,
    /// A counter of theirs is not 0: its sum.
    Counted(&'static str),
    /// Programs have 0 in a counter.
    Idle(&'static str),
    /// A counter's sum is below what was expected: how much is missing.
    Short(&'static str),
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
