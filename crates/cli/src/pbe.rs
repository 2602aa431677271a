//! `lasthop pbe`.

mod params;

use crate::logs::LogArgs;
use crate::{flag, note, say};
use anyhow::Context as _;
use clap::{ArgGroup, Args as ClapArgs, Subcommand};
use lasthop_agents::pbe::{NAME, Receiver, ReceiverConfig, Sender, SenderConfig};
use lasthop_agents::service;
use lasthop_laws::{Choice, Parameters as _, Place};
use lasthop_report::account;
use lasthop_units::count;
use params::Params;
use std::path::PathBuf;
use std::process::ExitCode;

/// Which end.
#[derive(Subcommand)]
pub enum Args {
    /// Be a sender: register the congestion control `lasthop_pbe`, which goes at the capacity that receivers tell
    ///
    /// Programs of the cgroup choose it for a connection (TCP_CONGESTION; `iperf3 -C lasthop_pbe`). Where the other end tells nothing, a connection is the
    /// kernel's BBR. When the agent stops or is killed, connections are BBR within six round trips. Needs Linux 6.10 with BTF and BBR.
    Sender(SenderArgs),
    /// Be a terminal in a cell: tell senders what its connections can have of the cell
    ///
    /// Reads what a decoder of the cell's control channel writes (NG-Scope, NR-Scope), while it is written, and tells what follows in a TCP option of segments
    /// that leave. A peer that does not want to be told sees the option in a SYN alone. When the agent stops, is killed, or hears nothing of the cell, nothing is
    /// told within a second. It cannot help QUIC, UDP, or connections that began before it.
    Receiver(ReceiverArgs),
}

/// The sender's command line.
#[derive(ClapArgs)]
#[command(after_help = "\
Example:
  lasthop pbe sender --cgroup /sys/fs/cgroup --user nobody
  iperf3 -c 192.0.2.1 -C lasthop_pbe")]
pub struct SenderArgs {
    /// For the connections of this cgroup's programs
    ///
    /// A directory of a cgroup2 file system: /sys/fs/cgroup (or /sys/fs/cgroup/unified) for the whole machine, or that of a service
    /// or a container. A server that listens already is to be started again.
    #[arg(long, value_name = "CGROUP")]
    cgroup: PathBuf,
    /// What the congestion control is called: a name of its own for each agent of a kernel
    #[arg(long, value_name = "NAME", default_value = NAME)]
    name: String,
    #[command(flatten)]
    law: Params<true>,
    /// Become this user (name or number) once everything is open that needs root
    #[arg(long, value_name = "USER")]
    user: Option<String>,
}

/// The receiver's.
#[derive(ClapArgs)]
#[command(after_help = "\
Examples:
  lasthop pbe receiver --cgroup /sys/fs/cgroup --dci dci_raw_log_dl_freq_2127500000.dciLog --prb 50 --rnti 20001
  ssh sniffer tail -n +1 -F capture.csv | lasthop pbe receiver --cgroup /sys/fs/cgroup --dci - --scs \"30 kHz\" --rnti 17921")]
#[command(group(ArgGroup::new("cell").arg("logs").required(true)))]
pub struct ReceiverArgs {
    /// For the connections of this cgroup's programs
    ///
    /// A directory of a cgroup2 file system: /sys/fs/cgroup (or /sys/fs/cgroup/unified) for the whole machine, or that of a service
    /// or a container. A server that listens already is to be started again.
    #[arg(long, value_name = "CGROUP")]
    cgroup: PathBuf,
    #[command(flatten)]
    logs: LogArgs,
    #[command(flatten)]
    law: Params<false>,
    /// Become this user (name or number) once everything is open that needs root
    #[arg(long, value_name = "USER")]
    user: Option<String>,
}

/// Runs an end until it is told to stop.
pub fn pbe(args: &Args) -> anyhow::Result<ExitCode> {
    match args {
        Args::Sender(args) => sender(args),
        Args::Receiver(args) => receiver(args),
    }
}

fn sender(args: &SenderArgs) -> anyhow::Result<ExitCode> {
    let stop = service::stop_on_signals()?;
    let law = lasthop_laws::pbe::Params::with(&args.law.0).map_err(|error| flag::of_law(error, Place::Sender))?;
    let config =
        SenderConfig { name: args.name.clone(), law, user: args.user.clone(), ..SenderConfig::new(&args.cgroup) };
    let sender = Sender::open(&config).map_err(flag::of_tunnel)?;
    let (name, cgroup) = (&args.name, args.cgroup.display());
    say!("pbe sender: programs of {cgroup} can choose {name}, as with iperf3 -C {name}")?;
    let summary = sender.run(stop).map_err(flag::of_tunnel)?;
    say!("{}", account::line("pbe_sender", &summary))?;
    note!(
        "{} with a peer that tells; {} read",
        count(summary.promised, "connection"),
        count(summary.options, "option")
    );
    Ok(ExitCode::SUCCESS)
}

fn receiver(args: &ReceiverArgs) -> anyhow::Result<ExitCode> {
    let stop = service::stop_on_signals()?;
    let law = Choice::of(&lasthop_laws::pbe::RECEIVER).with(args.law.0.clone());
    law.check().map_err(|error| flag::of_law(error, Place::Receiver))?;
    let logs = args.logs.given().context("clap asks for --dci")?;
    let (carriers, rnti) = (count(logs.files.len() as u64, "carrier"), logs.rnti.0);
    let config = ReceiverConfig {
        cgroup: args.cgroup.clone(),
        logs,
        law,
        drop_privileges: true,
        user: args.user.clone(),
        say: |line| note!("{line}"),
    };
    let receiver = Receiver::open(&config).map_err(flag::of_tunnel)?;
    say!("pbe receiver: connections of {} tell what RNTI {rnti} can have of {carriers}", args.cgroup.display())?;
    let summary = receiver.run(stop).map_err(flag::of_tunnel)?;
    say!("{}", account::line("pbe_receiver", &summary))?;
    note!(
        "{} with a peer that has the option; {} with it; {}, {} unread",
        count(summary.agreed, "connection"),
        count(summary.written, "segment"),
        count(summary.subframes, "subframe"),
        count(summary.unread, "row")
    );
    if summary.lost > 0 {
        note!("{} of packets found no place: the agent was too slow", summary.lost);
    }
    Ok(ExitCode::SUCCESS)
}
