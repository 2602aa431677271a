//! What carries packets past the eBPF programs: flow offload and hardware NAT (rule 11 of [`lasthop_laws::oal::rwnd`]).
//!
//! A connection in a hardware flow table is forwarded by the switch or by the radio's own processor. The acknowledgements
//! of its station never reach the programs, so no window is ever lowered, and nothing says so. nf_tables tells which of its
//! flow tables are in hardware; vendors' accelerators are known by the names of their modules.
//!
//! A flow table in software takes packets at netfilter's ingress hook of its devices, which comes after that of TCX and clsact,
//! and sends them through the egress hook (`__netif_receive_skb_core()`, `__dev_queue_xmit()` of Linux). So it passes the
//! programs by only where they are on a device above its own: a bridge or a VLAN, which such packets never reach.
//!
//! Receive offload that gathers segments in lists (`rx-gro-list`) brings them to the programs, but only the first of each is
//! seen.
//!
//! tc filters in hardware (flower with `skip_sw`, `act_ct`) are not looked for.

use super::Error;
use crate::service::{self, fraglist};
use lasthop_system::netlink::{Netlink, Raw, next};
use netlink_packet_core::{NLM_F_DUMP, NlaBuffer, NlasIterator, parse_string, parse_u32_be};
use std::fmt;
use std::io;
use std::path::Path;

/// Something that may carry packets past the programs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Bypass {
    /// A flow table of nf_tables that is in hardware, or below the interface.
    Flowtable {
        /// `inet`, `ip` or `ip6`, as `nft` writes it.
        family: &'static str,
        /// The table that it is in.
        table: String,
        /// Its name.
        name: String,
        /// The device through which it takes packets below the interface; `None` if it is in hardware.
        below: Option<String>,
    },
    /// A vendor's accelerator.
    Accelerator {
        /// The kernel module.
        module: &'static str,
        /// The vendor's name for it.
        what: &'static str,
    },
    /// Segments come in lists, of which only the first would be limited.
    Fraglist {
        /// The interface that gathers them.
        device: String,
    },
}

impl fmt::Display for Bypass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Bypass::Flowtable { family, table, name, below } => {
                match below {
                    None => write!(f, "hardware flow table {name}")?,
                    Some(device) => {
                        write!(f, "flow table {name}, which takes packets at {device}, below this interface")?
                    }
                }
                write!(f, " (`nft list flowtables {family}`, table {table})")
            }
            Bypass::Fraglist { device } => write!(
                f,
                "rx-gro-list of {device}, with which segments come in lists and only the first of each would be limited \
                 (`ethtool -K {device} rx-gro-list off`)"
            ),
            Bypass::Accelerator { module, what } => write!(f, "{what} (module {module})"),
        }
    }
}

/// Accelerators that take packets before any hook of the kernel, by their modules.
const ACCELERATORS: [(&str, &str); 7] = [
    ("shortcut_fe", "Qualcomm Shortcut Forwarding Engine"),
    ("fast_classifier", "Qualcomm Shortcut Forwarding Engine"),
    ("ecm", "Qualcomm Enhanced Connection Manager"),
    ("hw_nat", "Ralink hardware NAT"),
    ("mtkhnat", "MediaTek hardware NAT"),
    ("pktflow", "Broadcom Packet Flow Cache"),
    ("ctf", "Broadcom Cut-Through Forwarding"),
];

/// Everything of the kind in the calling thread's network namespace and in the kernel; what passes by one interface alone only
/// if that is named. Needs `CAP_NET_ADMIN`.
///
/// # Errors
/// [`service::Error::Permission`], [`service::Error::System`].
pub fn find(iface: Option<&str>) -> Result<Vec<Bypass>, service::Error> {
    let tables = flowtables().map_err(refusal("the list of flow tables"))?;
    Ok(among(iface, tables))
}

/// For `map_err`: what nf_tables refuses.
pub(super) fn refusal(what: &'static str) -> impl FnOnce(io::Error) -> service::Error {
    move |error| match error.raw_os_error() {
        Some(libc::EPERM) => service::Error::Permission { what },
        _ => service::system(what)(error),
    }
}

/// Those of the flow tables that pass the programs by, and the accelerators.
pub(super) fn among(iface: Option<&str>, tables: Vec<Flowtable>) -> Vec<Bypass> {
    let lower = iface.map(|iface| lower_devices(Path::new("/sys/class/net"), iface)).unwrap_or_default();
    let tables = tables.into_iter().filter_map(|table| table.bypass(&lower));
    let others = fraglists(iface, &lower).chain(accelerators(Path::new("/sys/module")));
    tables.chain(others).collect()
}

/// A chain of devices is not longer than this: the kernel nests no more (`MAX_NEST_DEV`).
const DEEPEST: usize = 8;

/// The devices that a bridge, a bond or a VLAN is made of, those that these are made of, and so on; each once. `/sys` shows those of
/// the namespace that it was mounted in, which is another's for a process that has changed its own by hand; `ip netns exec` mounts it
/// anew.
fn lower_devices(devices: &Path, iface: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let mut layer = vec![iface.to_owned()];
    for _ in 0..DEEPEST {
        let mut next: Vec<String> = layer.iter().flat_map(|upper| just_below(devices, upper)).collect();
        next.sort();
        next.dedup();
        // What is made of itself is no more than what it is.
        next.retain(|device| device != iface && !found.contains(device));
        found.extend_from_slice(&next);
        layer = next;
    }
    found
}

/// The devices one step below.
fn just_below(devices: &Path, upper: &str) -> Vec<String> {
    let entries = std::fs::read_dir(devices.join(upper)).into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    names.filter_map(|name| name.strip_prefix("lower_").map(str::to_owned)).collect()
}

/// Refuses to begin, or to go on, where packets may go past the programs.
pub(super) fn refuse(found: &[Bypass]) -> Result<(), Error> {
    if found.is_empty() {
        return Ok(());
    }
    Err(Error::Offloaded { found: found.iter().map(Bypass::to_string).collect::<Vec<_>>().join("; ") })
}

/// Of the interface and of those below it, where lists would be gathered before they reach it. An interface that does not answer
/// gathers none.
fn fraglists(iface: Option<&str>, lower: &[String]) -> impl Iterator<Item = Bypass> {
    let devices = iface.into_iter().chain(lower.iter().map(String::as_str));
    let gathering = devices.filter(|device| fraglist::is_on(device).unwrap_or(false));
    gathering.map(|device| Bypass::Fraglist { device: device.to_owned() }).collect::<Vec<_>>().into_iter()
}

fn accelerators(modules: &Path) -> impl Iterator<Item = Bypass> {
    let there = ACCELERATORS.into_iter().filter(|(module, _)| modules.join(module).exists());
    there.map(|(module, what)| Bypass::Accelerator { module, what })
}

/// All flow tables; none where the kernel knows no nf_tables.
fn flowtables() -> io::Result<Vec<Flowtable>> {
    const UNKNOWN: [libc::c_int; 5] =
        [libc::EPROTONOSUPPORT, libc::EAFNOSUPPORT, libc::EINVAL, libc::EOPNOTSUPP, libc::ENOENT];
    let mut found = Vec::new();
    let asked = Netlink::open(libc::NETLINK_NETFILTER).and_then(|mut netlink| {
        netlink.ask(Raw { kind: GET, body: vec![0; GENERIC_LEN] }, NLM_F_DUMP, |answer| {
            found.extend(answer.ok().filter(|answer| answer.kind == NEW).and_then(|answer| flowtable(&answer.body)));
        })
    });
    match asked {
        Err(error) if error.raw_os_error().is_some_and(|code| UNKNOWN.contains(&code)) => Ok(Vec::new()),
        asked => asked.map(|()| found),
    }
}

/// `NFT_MSG_NEWFLOWTABLE` and `NFT_MSG_GETFLOWTABLE` of `linux/netfilter/nf_tables.h`, in nf_tables' range.
const NEW: u16 = NFTABLES << 8 | 22;
const GET: u16 = NFTABLES << 8 | 23;
/// `NFNL_SUBSYS_NFTABLES`.
const NFTABLES: u16 = 10;
/// `struct nlmsghdr`.
const HEADER_LEN: usize = 16;
/// `struct nfgenmsg`: family, version, resource.
const GENERIC_LEN: usize = 4;
/// `NFTA_FLOWTABLE_…`.
const TABLE: u16 = 1;
const NAME: u16 = 2;
const HOOK: u16 = 3;
const FLAGS: u16 = 7;
/// `NFTA_FLOWTABLE_HOOK_DEVS`, which holds `NFTA_DEVICE_NAME`s.
const HOOK_DEVICES: u16 = 3;
const DEVICE_NAME: u16 = 1;
/// `NFT_FLOWTABLE_HW_OFFLOAD`.
const IN_HARDWARE: u32 = 1;

/// Takes in the messages of one datagram; what makes no sense ends it.
pub(super) fn take(mut datagram: &[u8], found: &mut Vec<Flowtable>) {
    while let Ok(Some(message)) = next(&mut datagram) {
        let (header, body) = message.split_at(HEADER_LEN);
        if header[4..6] == NEW.to_ne_bytes() {
            found.extend(flowtable(body));
        }
    }
}

/// A flow table, as nf_tables tells it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Flowtable {
    family: &'static str,
    table: String,
    name: String,
    in_hardware: bool,
    devices: Vec<String>,
}

impl Flowtable {
    /// What it means for an interface with these devices below it.
    fn bypass(self, lower: &[String]) -> Option<Bypass> {
        let Flowtable { family, table, name, in_hardware, devices } = self;
        let below = devices.into_iter().find(|device| lower.contains(device));
        match (in_hardware, below) {
            (true, _) => Some(Bypass::Flowtable { family, table, name, below: None }),
            (false, Some(device)) => Some(Bypass::Flowtable { family, table, name, below: Some(device) }),
            (false, None) => None,
        }
    }
}

fn flowtable(body: &[u8]) -> Option<Flowtable> {
    let family = match i32::from(*body.first()?) {
        libc::NFPROTO_IPV4 => "ip",
        libc::NFPROTO_IPV6 => "ip6",
        _ => "inet",
    };
    let mut found =
        Flowtable { family, table: String::new(), name: String::new(), in_hardware: false, devices: Vec::new() };
    for attribute in attributes(body.get(GENERIC_LEN..)?) {
        let value = attribute.value();
        match attribute.kind() {
            TABLE => found.table = parse_string(value).unwrap_or_default(),
            NAME => found.name = parse_string(value).unwrap_or_default(),
            FLAGS => found.in_hardware = parse_u32_be(value).unwrap_or_default() & IN_HARDWARE != 0,
            HOOK => {
                for devices in attributes(value).filter(|inner| inner.kind() == HOOK_DEVICES) {
                    let names = attributes(devices.value()).filter(|name| name.kind() == DEVICE_NAME);
                    found.devices.extend(names.filter_map(|name| parse_string(name.value()).ok()));
                }
            }
            _ => {}
        }
    }
    Some(found)
}

fn attributes(bytes: &[u8]) -> impl Iterator<Item = NlaBuffer<&[u8]>> {
    NlasIterator::new(bytes).map_while(Result::ok)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::service::privileges;
    use proptest::prelude::*;

    /// As `nf_tables_fill_flowtable_info()` writes it: table, name, handle, use, flags, hook with its devices.
    pub(in super::super) fn told(family: u8, table: &str, name: &str, flags: u32) -> Vec<u8> {
        let attribute = |kind: u16, value: &[u8]| {
            let mut bytes = ((value.len() + 4) as u16).to_ne_bytes().to_vec();
            bytes.extend_from_slice(&kind.to_ne_bytes());
            bytes.extend_from_slice(value);
            bytes.resize(bytes.len().next_multiple_of(4), 0);
            bytes
        };
        let text = |kind, value: &str| attribute(kind, &[value.as_bytes(), b"\0"].concat());
        let device = attribute(3 | 0x8000, &text(1, "eth0"));
        let body = [
            vec![family, 0, 0, 1],
            text(1, table),
            text(2, name),
            attribute(5, &7u64.to_be_bytes()),
            attribute(4, &1u32.to_be_bytes()),
            attribute(7, &flags.to_be_bytes()),
            attribute(3 | 0x8000, &[attribute(1, &0u32.to_be_bytes()), device].concat()),
        ]
        .concat();
        let len = (HEADER_LEN + body.len()) as u32;
        // Length, type; flags, sequence number and port are of no interest.
        [&len.to_ne_bytes()[..], &NEW.to_ne_bytes(), &[0; 10], &body].concat()
    }

    fn passing(below: Option<&str>, family: &'static str, table: &str, name: &str) -> Bypass {
        Bypass::Flowtable { family, table: table.into(), name: name.into(), below: below.map(str::to_owned) }
    }

    #[test]
    fn tables_in_hardware_count_and_those_below_the_interface() {
        let mut tables = Vec::new();
        // Counters are flag 2.
        let several = [
            told(1, "fw4", "soft", 0),
            told(1, "fw4", "ft", 1),
            told(2, "mine", "counted", 2),
            told(10, "six", "ft6", 3),
        ];
        take(&several.concat(), &mut tables);
        assert_eq!(tables.len(), 4);
        let bypasses = |lower: &[&str]| -> Vec<Bypass> {
            let lower: Vec<String> = lower.iter().map(|name| (*name).to_owned()).collect();
            tables.iter().filter_map(|table| table.clone().bypass(&lower)).collect()
        };
        let in_hardware = [passing(None, "inet", "fw4", "ft"), passing(None, "ip6", "six", "ft6")];
        assert_eq!(bypasses(&[]), in_hardware);
        assert_eq!(bypasses(&["wlan0"]), in_hardware, "their device is eth0");
        let below = Some("eth0");
        let [first, last] = in_hardware;
        let all = [passing(below, "inet", "fw4", "soft"), first, passing(below, "ip", "mine", "counted"), last];
        assert_eq!(bypasses(&["wlan0", "eth0"]), all);
    }

    #[test]
    fn what_a_bridge_is_made_of_is_read_from_its_links() {
        let devices = tempfile::tempdir().expect("a directory");
        for entry in ["lower_eth0", "lower_wlan0", "upper_vlan7", "queues"] {
            std::fs::create_dir_all(devices.path().join("br-lan").join(entry)).expect("a device's directory");
        }
        assert_eq!(lower_devices(devices.path(), "br-lan"), ["eth0", "wlan0"]);
        assert!(lower_devices(devices.path(), "wlan0").is_empty());
    }

    #[test]
    fn devices_are_found_however_deep_and_a_circle_ends() {
        let devices = tempfile::tempdir().expect("a directory");
        let above = |upper: &str, lower: &str| {
            std::fs::create_dir_all(devices.path().join(upper).join(format!("lower_{lower}"))).expect("a directory");
        };
        // A bridge of a VLAN and a radio; the VLAN is on a bond of two cables.
        for (upper, lower) in
            [("br-lan", "bond0.7"), ("br-lan", "wlan0"), ("bond0.7", "bond0"), ("bond0", "eth0"), ("bond0", "eth1")]
        {
            above(upper, lower);
        }
        assert_eq!(lower_devices(devices.path(), "br-lan"), ["bond0.7", "wlan0", "bond0", "eth0", "eth1"]);
        assert_eq!(lower_devices(devices.path(), "bond0.7"), ["bond0", "eth0", "eth1"]);
        // The kernel makes no circles; a directory may hold one.
        above("eth1", "br-lan");
        above("eth0", "bond0");
        assert_eq!(lower_devices(devices.path(), "br-lan"), ["bond0.7", "wlan0", "bond0", "eth0", "eth1"]);
        // A chain is followed as far as the kernel makes one.
        (0..12).for_each(|n| above(&format!("d{n}"), &format!("d{}", n + 1)));
        let lower = lower_devices(devices.path(), "d0");
        assert_eq!((lower.len(), lower.last().map(String::as_str)), (DEEPEST, Some("d8")));
    }

    #[test]
    fn the_agent_refuses_and_says_what_and_where() {
        refuse(&[]).expect("nothing in the way");
        let table = passing(None, "inet", "fw4", "ft");
        let below = passing(Some("eth0"), "inet", "fw4", "soft");
        let module = Bypass::Accelerator { module: "ecm", what: "Qualcomm Enhanced Connection Manager" };
        let said = refuse(&[table, below, module]).expect_err("three in the way").to_string();
        let parts = [
            "hardware flow table ft",
            "`nft list flowtables inet`, table fw4",
            "flow table soft, which takes packets at eth0, below this interface",
            "module ecm",
            "--allow-offload",
        ];
        for part in parts {
            assert!(said.contains(part), "{said} lacks {part}");
        }
    }

    #[test]
    fn accelerators_are_known_by_their_modules() {
        let modules = tempfile::tempdir().expect("a directory");
        assert_eq!(accelerators(modules.path()).count(), 0);
        for module in ["nf_tables", "mtkhnat"] {
            std::fs::create_dir(modules.path().join(module)).expect("a module's directory");
        }
        let found: Vec<Bypass> = accelerators(modules.path()).collect();
        assert_eq!(found, [Bypass::Accelerator { module: "mtkhnat", what: "MediaTek hardware NAT" }]);
    }

    #[test]
    fn the_kernel_answers_whoever_may_ask() {
        match (find(Some("lo")), privileges::has(privileges::NET_ADMIN)) {
            (Ok(_), true) | (Err(service::Error::Permission { .. }), false) => {}
            // A kernel without nfnetlink has no flow tables, and keeps that from nobody.
            (Ok(found), false) if !found.iter().any(|bypass| matches!(bypass, Bypass::Flowtable { .. })) => {}
            (answer, allowed) => panic!("{answer:?}, and it was allowed: {allowed}"),
        }
    }

    proptest! {
        #[test]
        fn no_octets_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            take(&bytes, &mut Vec::new());
            drop(flowtable(&bytes));
        }
    }
}
