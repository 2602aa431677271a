//! The `lasthop` command.

// The command line is where a run meets the clock.
#![allow(clippy::disallowed_methods)]

mod aggregation;
mod ap;
mod cell;
mod check;
mod console;
mod dataset;
mod doctor;
mod flag;
mod gateway;
mod host;
mod http;
mod input;
mod lab;
mod law;
mod learn;
mod logs;
mod metrics;
mod monitor;
mod olsr;
mod pair;
mod pbe;
mod place;
mod progress;
mod proxy;
mod ready;
mod record;
mod relay;
mod reproduce;
mod run;
mod station;
mod status;
mod stream;
#[cfg(test)]
mod test_line;
mod trace;

use clap::{Parser, Subcommand};
use lasthop_experiment::ExperimentError;
use lasthop_lab::LabError;
use miette::MietteHandlerOpts;
use std::process::ExitCode;
use textwrap::{WordSeparator, WordSplitter};

/// A toolkit for the wireless last hop: measure it, decide how fast each flow may go, enforce it.
///
/// Start with `lasthop doctor`, then `lasthop run scenarios/first-light.toml`.
///
/// The exit status is 0 if all went well, 1 if it did not, 2 for a wrong command line and 130 for a run that was told to
/// stop.
#[derive(Parser)]
#[command(name = "lasthop", version, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run a scenario: every law of it, or those you name
    Run(run::RunArgs),
    /// Run a scenario and set the laws you name against the first of them
    Compare(run::CompareArgs),
    /// Run the published results of a system again, and set the paper's figures beside ours
    Reproduce(reproduce::Args),
    /// Record a data set: what access points saw of each station, and what it then lost
    ///
    /// One item an access point, station and 100 ms, in Parquet: features, driver's counters, segments that entered, segments that queues lost. Names are
    /// keyed pseudonyms. `lasthop dataset` works on the file; docs/reference/data-set.md lists its columns.
    Record(record::Args),
    /// Data sets that `lasthop record` wrote: what is in one, merging, parting, studying
    Dataset(dataset::Args),
    /// Check a scenario file without running it, or print the schema of scenario files
    Check(check::Args),
    /// Say what this machine can do, what is missing and how to get it
    Doctor(doctor::Args),
    /// Be the agent on an access point: keep its queue short by rewriting receive windows
    ///
    /// Attaches an eBPF program to the wireless interface, reads the driver's counters 250 times a second, and lowers the receive
    /// windows that stations advertise so that flows send what the hop can carry. When it stops, or is killed, flows are plain TCP
    /// again within a second. Nothing stays attached, but for the filters of a killed agent where there is no TCX (before Linux
    /// 6.6): they let everything pass untouched, and --clean removes them. It cannot help QUIC, UDP, or TCP inside tunnels.
    Ap(ap::Args),
    /// Ask the agents of access points that run here what they do
    Status(status::Args),
    /// Train the trees by which an access point's agent predicts losses, in a process of its own
    ///
    /// `lasthop ap --predictor learned --learn PATH` hands over what it has learned of its flows, without their contents or addresses, and takes trees
    /// back, one a second. It needs no privileges. When it ends, the agent goes on with its last tree until that is too old.
    Learn(learn::Args),
    /// Be the edge proxy: pace what servers send to stations, so that nothing queues at their access point
    ///
    /// Ends TCP connections for stations and sends what comes out of them through an encrypted tunnel, paced for each station so
    /// that its queue at the access point stays short. Stations run `lasthop station`; `lasthop pair` makes their keys.
    Proxy(proxy::Args),
    /// Be the agent on a station: bring local programs' connections to the edge proxy
    ///
    /// Programs use it as SOCKS5 or HTTP CONNECT proxy (both on the same port), connect to a forwarded port, or are led to it
    /// without their knowing (--transparent). It reports to the proxy how the frames that it receives are filled: from a
    /// monitor interface, or from the arrival times of packets.
    Station(station::Args),
    /// Be the agent on a host that uploads over Wi-Fi: keep its windows large enough and no larger
    ///
    /// Looks at the TCP connections of a cgroup's programs twice a second, tells the other terminals of the same access point that
    /// this one sends, and keeps congestion windows within bounds, so that neither data nor acknowledgements drown the hop. When it
    /// stops, is killed, or stands still, connections are plain CUBIC again within a second, and nothing stays attached. It cannot help QUIC,
    /// UDP, connections that began before it, or those over another congestion control than CUBIC.
    Host(host::Args),
    /// Be the routing agent on a node of a mesh: find neighbours, and ways to all others (OLSR, RFC 3626)
    ///
    /// Speaks at UDP port 698 of one interface, installs a route to every node that can be reached, and prints what changes. Routes have
    /// protocol 98; they are removed at the end, and those of a killed agent by the next. OLSR has no authentication: see
    /// docs/how-to/route-a-mesh.md.
    Olsr(olsr::Args),
    /// Be a gateway of a mesh: carry TCP connections to another gateway over ATP
    ///
    /// One gateway calls the other (--peer), and from then on connections may begin at either: programs use it as SOCKS5 or HTTP CONNECT proxy,
    /// connect to a forwarded port, or are led to it without their knowing (--transparent); the other gateway makes their connections. Packets
    /// are encrypted, and leave no faster than the slowest hop of the way allows, as relays on it and this machine's own interface tell.
    MeshGateway(gateway::Args),
    /// Be a relay of ATP on a node of a mesh: write the node's own delay D into datagrams that leave with a smaller one
    ///
    /// Attaches an eBPF program to the egress of the interfaces, and keeps D as packets show it that pass them, or as the driver tells it. When it stops, is
    /// killed, or stands still, datagrams leave untouched within half a second, and nothing stays attached, but for the filters of a killed relay where there is
    /// no TCX (before Linux 6.6): --clean removes them.
    Relay(relay::Args),
    /// Make a key for a station and its edge proxy, or for two gateways of a mesh
    ///
    /// Run it where the proxy is, once for every station, and carry the station's file to the station by a way that you trust.
    /// Both files are secret and readable by you alone. Of two gateways the one that is called has the place of the proxy.
    Pair(pair::Args),
    /// Send a file, standard input or a measuring stream over ATP, or another of our transports, in UDP
    ///
    /// The other end runs `lasthop recv`. Prints goodput, the delay D of the path's slowest hop and the rate S once a second. The exit status is 0
    /// only if the receiver has said that it has kept everything.
    Send(stream::send::Args),
    /// Receive what `lasthop send` sends
    ///
    /// Takes one stream at a time, from anybody, or with --key only from a sender that has the key. A file gets its
    /// name once it is whole; what had come of a stream that failed stays beside it, with `.part` behind the name.
    Recv(stream::recv::Args),
    /// Watch every TCP connection of this host: windows, round trips, queues, rates, and what limits each
    ///
    /// Shows a table that can be sorted and filtered while it runs; a plain one where standard output is no terminal. Works without
    /// root. As root it also counts entries into Recovery and Loss that are over between two looks.
    Monitor(monitor::Args),
    /// Measure how frames are aggregated: in a capture, or live on a monitor interface
    Aggregation(aggregation::Args),
    /// Measure which users share a cell and what it has left: from a log of its control channel, whole or while it
    /// grows
    ///
    /// Reads what NG-Scope (LTE, lines or JSON) and NR-Scope (NR, CSV) write. Tells which terminals are users, as PBE-CC counts them, which PRB nobody has,
    /// and what a terminal that joins could have: its fair share. With a capture of what a terminal received it finds that terminal in the log.
    Cell(cell::Args),
    /// Be one end of PBE-CC on kernel TCP: the sender's congestion control, or what a terminal in a cell tells senders
    #[command(subcommand)]
    Pbe(pbe::Args),
    /// Packet-delivery traces of links: what one carries, recording one, making one of rates
    ///
    /// A trace is a file with a time in milliseconds a line, at each of which a link delivers up to 1504 bytes, as mahimahi records and plays it.
    /// Scenarios play traces as their last hop: `[hop.trace]`.
    Trace(trace::Args),
    /// Run any program on a host of a scenario, over the emulated hop
    ///
    /// Builds the scenario's hosts and hop in the lab and starts the program in the network
    /// namespace of the first station, or of another host (--host). The program has the terminal
    /// as it would without Lasthop, and its exit status is the command's. The names of all hosts
    /// resolve: server, ap and the stations. Where iperf3 is installed, a server listens at
    /// `server`. TCP uses the congestion control that the law has for each host. Needs root.
    #[command(after_long_help = lab::EXAMPLES)]
    Lab(lab::Args),
}

fn main() -> ExitCode {
    keep_paths_whole();
    let done = match Cli::parse().command {
        Command::Run(args) => run::run(args),
        Command::Compare(args) => run::compare(args),
        Command::Reproduce(args) => reproduce::reproduce(&args),
        Command::Record(args) => record::record(&args),
        Command::Dataset(args) => dataset::dataset(&args),
        Command::Check(args) => check::check(&args),
        Command::Doctor(args) => doctor::doctor(&args),
        Command::Ap(args) => ap::ap(args),
        Command::Status(args) => status::status(&args),
        Command::Learn(args) => learn::learn(args),
        Command::Proxy(args) => proxy::proxy(&args),
        Command::Station(args) => station::station(&args),
        Command::Host(args) => host::host(&args),
        Command::Olsr(args) => olsr::olsr(&args),
        Command::MeshGateway(args) => gateway::gateway(&args),
        Command::Relay(args) => relay::relay(&args),
        Command::Pair(args) => pair::pair(&args),
        Command::Send(args) => stream::send::send(&args),
        Command::Recv(args) => stream::recv::recv(&args),
        Command::Monitor(args) => monitor::monitor(&args),
        Command::Aggregation(args) => aggregation::aggregation(&args),
        Command::Cell(args) => cell::cell(&args),
        Command::Pbe(args) => pbe::pbe(&args),
        Command::Trace(args) => trace::trace(&args),
        Command::Lab(args) => lab::lab(&args),
    };
    match done {
        Ok(code) => code,
        Err(error) => {
            explain(&error);
            match error.downcast_ref::<ExperimentError>() {
                Some(ExperimentError::Stopped) => ExitCode::from(INTERRUPTED),
                _ if error.chain().any(is_stop) => ExitCode::from(INTERRUPTED),
                _ if error.is::<flag::Wrong>() => ExitCode::from(WRONG_COMMAND_LINE),
                _ => ExitCode::FAILURE,
            }
        }
    }
}

/// A path that is too long for a line is not broken at hyphens or slashes: it would be no path then.
fn keep_paths_whole() {
    let options = || {
        MietteHandlerOpts::new()
            .word_separator(WordSeparator::AsciiSpace)
            .word_splitter(WordSplitter::NoHyphenation)
            .break_words(false)
    };
    // It fails where a handler is set already, and none is.
    let _ = miette::set_hook(Box::new(move |_| Box::new(options().build())));
}

/// Status that a wrong command line has whoever finds it out: what the argument parser gives.
const WRONG_COMMAND_LINE: u8 = 2;

/// Status of a run that was told to stop: what a shell gives for a program that Ctrl-C ended.
const INTERRUPTED: u8 = 130;

/// True for what the lab says when it was told to stop.
fn is_stop(error: &(dyn std::error::Error + 'static)) -> bool {
    matches!(error.downcast_ref(), Some(LabError::Stopped))
}

/// Scenario errors come with their source; everything else as a chain of causes.
fn explain(error: &anyhow::Error) {
    match error.downcast_ref::<Shown>() {
        Some(Shown(report)) => note!("{report:?}"),
        None => {
            let mut said = error.to_string();
            note!("lasthop: {said}");
            // Some errors tell their cause themselves.
            for cause in error.chain().skip(1).map(ToString::to_string) {
                if !said.contains(&cause) {
                    note!("  because: {cause}");
                }
                said = cause;
            }
        }
    }
}

/// An error that knows how to show itself with its place in a file.
#[derive(Debug)]
struct Shown(miette::Report);

impl std::fmt::Display for Shown {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.0)
    }
}

impl std::error::Error for Shown {}
