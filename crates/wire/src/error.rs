//! What can be wrong with bytes.

/// Why bytes could not be parsed, or a struct not written.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The buffer ends before the structure does.
    #[error("needs {needed} octets, got {got}")]
    Truncated {
        /// Octets the structure needs.
        needed: usize,
        /// Octets there are.
        got: usize,
    },
    /// Neither IPv4 nor IPv6.
    #[error("IP version {0}")]
    IpVersion(u8),
    /// A length field that contradicts the structure it stands in.
    #[error("{field} is {value}, which contradicts the header around it")]
    Length {
        /// The field's name in its standard.
        field: &'static str,
        /// Its value.
        value: usize,
    },
    /// More IPv6 extension headers or VLAN tags than any honest packet has.
    #[error("more than {0} nested headers")]
    TooDeep(usize),
    /// TCP options that do not fit into the 40 octets that a header has for them.
    #[error("{0} octets of TCP options; 40 fit")]
    OptionSpace(usize),
    /// Source and destination of a flow are of different address families.
    #[error("source and destination addresses are of different families")]
    MixedFamilies,
    /// A packet longer than its length field can say.
    #[error("a payload of {0} octets does not fit an IP packet")]
    TooLong(usize),
    /// Not a driver record.
    #[error("not a driver record: magic {0:#010x}")]
    Magic(u32),
    /// A driver record of a version or kind that this reader does not know.
    #[error("driver record version {version}, kind {kind}: not known here")]
    RecordKind {
        /// Version of the format.
        version: u8,
        /// Kind of the record.
        kind: u8,
    },
    /// More stations than one record may hold.
    #[error("{0} stations in one record; at most 1024 fit")]
    TooManyStations(usize),
    /// More queues than one record may hold.
    #[error("{0} queues of the interface in one record; at most 64 fit")]
    TooManyQueues(usize),
    /// A radiotap header of another version.
    #[error("radiotap version {0}; 0 is the only one there is")]
    Radiotap(u8),
    /// An 802.11 frame of another protocol version.
    #[error("802.11 protocol version {0}; 0 is the only one in use")]
    Dot11Version(u8),
    /// A BlockAck or BlockAckReq that is not of the compressed variant.
    #[error("BlockAck variant {0}; only the compressed one (2) is read")]
    BlockAckVariant(u8),
    /// Not a capture file.
    #[error("neither a pcap nor a pcapng file: it begins with {0:#010x}")]
    PcapMagic(u32),
    /// A pcapng file without an interface.
    #[error("a pcapng file that describes no interface")]
    PcapngEmpty,
    /// A block of a pcapng file that breaks the format.
    #[error("block {block} of the pcapng file is damaged")]
    PcapngBlock {
        /// Number of the block, from 1.
        block: u64,
    },
    /// A packet of an interface that the file does not describe.
    #[error("packet {packet} is of interface {interface}, which the pcapng file does not describe")]
    PcapngInterface {
        /// Number of the packet, from 1.
        packet: u64,
        /// Number of the interface in its section, from 0.
        interface: u32,
    },
    /// A record header that promises more octets than any capture takes.
    #[error("packet {packet} claims {len} octets: the file is damaged")]
    PcapLength {
        /// Number of the packet, from 1.
        packet: u64,
        /// What its header claims.
        len: u32,
    },
    /// A field holds a number that means nothing here.
    #[error("{what}: {value} is not known here")]
    Unknown {
        /// What the field says.
        what: &'static str,
        /// Its value.
        value: u64,
    },
    /// A request to a proxy that cannot be understood.
    #[error("not a request to a proxy: {0}")]
    ProxyRequest(&'static str),
}
