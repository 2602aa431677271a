//! What carries packets past the eBPF programs: flow offload and hardware NAT (systems/oal.md A.7, rule 11).
//!
//! A connection in a hardware flow table is forwarded by the switch or by the radio's own processor. The acknowledgements
//! of its station never reach the programs, so no window is ever lowered, and nothing says so. nf_tables tells which of its
//! flow tables are in hardware; vendors' accelerators are known by the names of their modules.
//!
//! A flow table in software is none of these: it takes packets at netfilter's ingress hook, which comes after that of TCX
//! and clsact, and sends them through the egress hook (`__netif_receive_skb_core()`, `__dev_queue_xmit()` of Linux).

use super::Error;
use netlink_packet_core::{
    NLM_F_DUMP, NLM_F_REQUEST, NetlinkDeserializable, NetlinkHeader, NetlinkMessage, NetlinkPayload,
    NetlinkSerializable, NlasIterator, parse_string, parse_u32_be,
};
use nix::errno::Errno;
use nix::sys::socket::{AddressFamily, MsgFlags, NetlinkAddr, SockFlag, SockProtocol, SockType, recv, sendto, socket};
use std::convert::Infallible;
use std::fmt;
use std::os::fd::AsRawFd;
use std::path::Path;

/// Something that may carry packets past the programs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Bypass {
    /// A flow table of nf_tables that is in hardware.
    Flowtable {
        /// `inet`, `ip` or `ip6`, as `nft` writes it.
        family: &'static str,
        /// The table that it is in.
        table: String,
        /// Its name.
        name: String,
    },
    /// A vendor's accelerator.
    Accelerator {
        /// The kernel module.
        module: &'static str,
        /// Whose it is.
        what: &'static str,
    },
}

impl fmt::Display for Bypass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Bypass::Flowtable { family, table, name } => {
                write!(f, "hardware flow table {name} (`nft list flowtables {family}`, table {table})")
            }
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

/// Everything of the kind in the calling thread's network namespace and in the kernel. Needs `CAP_NET_ADMIN`.
///
/// # Errors
/// [`Error::Permission`], [`Error::System`].
pub fn find() -> Result<Vec<Bypass>, Error> {
    let tables = flowtables().map_err(|errno| match errno {
        Errno::EPERM => Error::Permission { what: "the list of flow tables" },
        other => Error::System { what: "the list of flow tables", source: other.into() },
    })?;
    Ok(tables.into_iter().chain(accelerators(Path::new("/sys/module"))).collect())
}

/// Refuses to begin where packets may go past the programs.
pub(super) fn refuse(found: &[Bypass]) -> Result<(), Error> {
    if found.is_empty() {
        return Ok(());
    }
    Err(Error::Offloaded { found: found.iter().map(Bypass::to_string).collect::<Vec<_>>().join("; ") })
}

fn accelerators(modules: &Path) -> impl Iterator<Item = Bypass> {
    let there = ACCELERATORS.into_iter().filter(|(module, _)| modules.join(module).exists());
    there.map(|(module, what)| Bypass::Accelerator { module, what })
}

/// Flow tables in hardware; none where the kernel knows no nf_tables.
fn flowtables() -> nix::Result<Vec<Bypass>> {
    let unknown = |errno: &Errno| {
        matches!(
            errno,
            Errno::EPROTONOSUPPORT | Errno::EAFNOSUPPORT | Errno::EINVAL | Errno::EOPNOTSUPP | Errno::ENOENT
        )
    };
    match ask() {
        Err(errno) if unknown(&errno) => Ok(Vec::new()),
        result => result,
    }
}

fn ask() -> nix::Result<Vec<Bypass>> {
    let fd = socket(AddressFamily::Netlink, SockType::Raw, SockFlag::SOCK_CLOEXEC, SockProtocol::NetlinkNetFilter)?;
    sendto(fd.as_raw_fd(), &request(), &NetlinkAddr::new(0, 0), MsgFlags::empty())?;
    let (mut found, mut buffer) = (Vec::new(), vec![0; 65_536]);
    loop {
        let len = recv(fd.as_raw_fd(), &mut buffer, MsgFlags::empty())?;
        if take(&buffer[..len], &mut found)? == End::Yes {
            return Ok(found);
        }
    }
}

/// `NFT_MSG_NEWFLOWTABLE` and `NFT_MSG_GETFLOWTABLE` of `linux/netfilter/nf_tables.h`, in nf_tables' range.
const NEW: u16 = NFTABLES << 8 | 22;
const GET: u16 = NFTABLES << 8 | 23;
/// `NFNL_SUBSYS_NFTABLES`.
const NFTABLES: u16 = 10;
/// `struct nfgenmsg`: family, version, resource.
const GENERIC_LEN: usize = 4;
/// `NFTA_FLOWTABLE_…`.
const TABLE: u16 = 1;
const NAME: u16 = 2;
const FLAGS: u16 = 7;
/// `NFT_FLOWTABLE_HW_OFFLOAD`.
const IN_HARDWARE: u32 = 1;

fn request() -> Vec<u8> {
    let mut header = NetlinkHeader::default();
    header.flags = NLM_F_REQUEST | NLM_F_DUMP;
    let mut message =
        NetlinkMessage::new(header, NetlinkPayload::from(Message { kind: GET, body: vec![0; GENERIC_LEN] }));
    message.finalize();
    let mut bytes = vec![0; message.buffer_len()];
    message.serialize(&mut bytes);
    bytes
}

#[derive(PartialEq, Eq, Debug)]
enum End {
    Yes,
    No,
}

/// Takes in the messages of one datagram; what makes no sense ends it.
fn take(mut bytes: &[u8], found: &mut Vec<Bypass>) -> nix::Result<End> {
    while let Ok(message) = NetlinkMessage::<Message>::deserialize(bytes) {
        let len = message.header.length as usize;
        match message.payload {
            NetlinkPayload::InnerMessage(Message { kind: NEW, body }) => found.extend(flowtable(&body)),
            NetlinkPayload::Done(_) => return Ok(End::Yes),
            NetlinkPayload::Error(error) => {
                return error.code.map_or(Ok(End::Yes), |code| Err(Errno::from_raw(code.get().saturating_neg())));
            }
            _ => {}
        }
        match bytes.get(len.next_multiple_of(4)..) {
            Some(rest) if len > 0 && !rest.is_empty() => bytes = rest,
            _ => return Ok(End::No),
        }
    }
    Ok(End::No)
}

/// A flow table, if it is in hardware.
fn flowtable(body: &[u8]) -> Option<Bypass> {
    let (mut table, mut name, mut flags) = (String::new(), String::new(), 0);
    for attribute in NlasIterator::new(body.get(GENERIC_LEN..)?).map_while(Result::ok) {
        match attribute.kind() {
            TABLE => table = parse_string(attribute.value()).unwrap_or_default(),
            NAME => name = parse_string(attribute.value()).unwrap_or_default(),
            FLAGS => flags = parse_u32_be(attribute.value()).unwrap_or_default(),
            _ => {}
        }
    }
    let family = match i32::from(body[0]) {
        libc::NFPROTO_IPV4 => "ip",
        libc::NFPROTO_IPV6 => "ip6",
        _ => "inet",
    };
    (flags & IN_HARDWARE != 0).then_some(Bypass::Flowtable { family, table, name })
}

/// A message of nf_tables as it is.
#[derive(Debug)]
struct Message {
    kind: u16,
    body: Vec<u8>,
}

impl NetlinkDeserializable for Message {
    type Error = Infallible;

    fn deserialize(header: &NetlinkHeader, body: &[u8]) -> Result<Message, Infallible> {
        Ok(Message { kind: header.message_type, body: body.to_vec() })
    }
}

impl NetlinkSerializable for Message {
    fn message_type(&self) -> u16 {
        self.kind
    }

    fn buffer_len(&self) -> usize {
        self.body.len()
    }

    fn serialize(&self, buffer: &mut [u8]) {
        buffer.copy_from_slice(&self.body);
    }
}

impl From<Message> for NetlinkPayload<Message> {
    fn from(message: Message) -> NetlinkPayload<Message> {
        NetlinkPayload::InnerMessage(message)
    }
}

#[cfg(test)]
mod tests {
    use super::super::privileges;
    use super::*;
    use proptest::prelude::*;

    /// As `nf_tables_fill_flowtable_info()` writes it: table, name, handle, use, flags, hook with its devices.
    fn told(family: u8, table: &str, name: &str, flags: u32) -> Vec<u8> {
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
        let mut message = NetlinkMessage::new(NetlinkHeader::default(), Message { kind: NEW, body }.into());
        message.finalize();
        let mut bytes = vec![0; message.buffer_len()];
        message.serialize(&mut bytes);
        bytes
    }

    #[test]
    fn only_tables_in_hardware_count() {
        let mut found = Vec::new();
        // Counters are flag 2.
        let several = [
            told(1, "fw4", "soft", 0),
            told(1, "fw4", "ft", 1),
            told(2, "mine", "counted", 2),
            told(10, "six", "ft6", 3),
        ];
        assert_eq!(take(&several.concat(), &mut found), Ok(End::No));
        let flowtable =
            |family, table: &str, name: &str| Bypass::Flowtable { family, table: table.into(), name: name.into() };
        assert_eq!(found, [flowtable("inet", "fw4", "ft"), flowtable("ip6", "six", "ft6")]);
    }

    #[test]
    fn the_agent_refuses_and_says_what_and_where() {
        refuse(&[]).expect("nothing in the way");
        let table = Bypass::Flowtable { family: "inet", table: "fw4".into(), name: "ft".into() };
        let module = Bypass::Accelerator { module: "ecm", what: "Qualcomm Enhanced Connection Manager" };
        let said = refuse(&[table, module]).expect_err("two in the way").to_string();
        for part in ["hardware flow table ft", "`nft list flowtables inet`, table fw4", "module ecm", "--allow-offload"]
        {
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
        match (find(), privileges::has(privileges::NET_ADMIN)) {
            (Ok(_), true) | (Err(Error::Permission { .. }), false) => {}
            (answer, allowed) => panic!("{answer:?}, and it was allowed: {allowed}"),
        }
    }

    proptest! {
        #[test]
        fn no_octets_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            drop(take(&bytes, &mut Vec::new()));
            drop(flowtable(&bytes));
        }
    }
}
