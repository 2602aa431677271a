//! Transparent mode: connections that servers' side makes to a station's address end at the proxy, which brings them to the
//! station through the tunnel.
//!
//! What netfilter's TPROXY does with a rule is done here by an eBPF program on the interface's ingress (`bpf_sk_assign`): it
//! needs neither `nft` nor `iptables`, and it goes with the process however that ends, so that packets then take their
//! ordinary way to the station. So do packets of stations without a running agent, of ports that an agent has refused
//! to serve, and of all connections that did not begin here. A route that takes marked packets for this machine is
//! needed too. It stays behind, without effect since nobody sets the mark, until [`clean`]. IPv4 only.

mod error;
#[cfg(feature = "bpf")]
mod kernel;

pub use error::Error;
#[cfg(feature = "bpf")]
pub(crate) use kernel::Interception;

use lasthop_signals::Node;
use std::net::Ipv4Addr;
use std::process::Command;

/// The stations to which connections are taken over, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// The interface towards the servers.
    pub iface: String,
    /// Addresses of stations.
    pub stations: Vec<(Ipv4Addr, Node)>,
}

/// Marks packets that were assigned to the proxy ("LH").
const MARK: u32 = 0x4c48;
/// The routing table, and the priority of the rule that leads there.
const TABLE: &str = "4848";

/// Removes the route and the rule that a proxy left; says whether there was a rule.
///
/// # Errors
/// [`Error::Ip`], [`Error::Refused`].
pub fn clean() -> Result<bool, Error> {
    let there = has_rule()?;
    if there {
        ip(&["rule", "del", "priority", TABLE])?;
    }
    // An empty table is no table: the kernel says so with an error.
    let _ = ip(&["route", "flush", "table", TABLE]);
    Ok(there)
}

/// Makes routing take marked packets for this machine.
#[cfg_attr(not(feature = "bpf"), allow(dead_code))]
fn route() -> Result<(), Error> {
    if !has_rule()? {
        ip(&["rule", "add", "fwmark", &format!("{MARK:#x}"), "lookup", TABLE, "priority", TABLE])?;
    }
    ip(&["route", "replace", "local", "0.0.0.0/0", "dev", "lo", "table", TABLE]).map(drop)
}

fn has_rule() -> Result<bool, Error> {
    Ok(ip(&["-4", "rule", "show", "priority", TABLE])?.contains("fwmark"))
}

/// `ip`, of iproute2.
fn ip(arguments: &[&str]) -> Result<String, Error> {
    let output = Command::new("ip").args(arguments).output();
    let arguments = arguments.join(" ");
    match output {
        Ok(output) if output.status.success() => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        Ok(output) => {
            Err(Error::Refused { arguments, said: String::from_utf8_lossy(&output.stderr).trim().to_owned() })
        }
        Err(source) => Err(Error::Ip { arguments, source }),
    }
}
