//! The program that stamps datagrams as they leave (`bpf/relay.bpf.c`): loaded, told D, its counters read.

use crate::service::attach::{self, Attachment, EGRESS, Family};
use crate::service::said::Captured;
use crate::service::shared_memory::{shared, shared32};
use crate::service::skeleton::{room, skeleton};
use crate::service::{Error, Method};
use lasthop_units::{Span, Time};
use libbpf_rs::skel::{OpenSkel, SkelBuilder};
use libbpf_rs::{AsRawLibbpf, ProgramInput};
use std::sync::atomic::Ordering;

skeleton!("relay", RelaySkel, RelaySkelBuilder);
use super::{Counters, MAX_DEVICES, MAX_PORTS};
use skeleton::types::relay_hop;

/// The program. The priority reads "LR".
pub(super) static RELAY: Family = Family { kind: "relay", name_prefix: b"relay_", priority: 0x4c52, sides: &[EGRESS] };

/// The loaded program. Dropping it detaches and unloads it.
pub struct Stamper {
    // Dropped first: nothing is to run while maps go away.
    attachments: Vec<Attachment>,
    skeleton: RelaySkel<'static>,
    devices: usize,
}

/// One of the stamper's interfaces.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Place(pub(super) usize);

impl Stamper {
    /// Loads the program into the kernel, attached to nothing: it stamps datagrams of these ports, and marks packets while D is at least
    /// `mark_above`, if that is said.
    ///
    /// # Errors
    /// [`Error::Load`] with what the verifier said, [`Error::Permission`].
    ///
    /// # Panics
    /// If there are more than [`MAX_PORTS`].
    pub fn load(ports: &[u16], mark_above: Option<Span>) -> Result<Stamper, Error> {
        assert!(ports.len() <= MAX_PORTS, "checked by who asks");
        let said = Captured::begin();
        let failed = |error| said.refusal(error);
        let mut open = RelaySkelBuilder::default().open(room()).map_err(failed)?;
        let constants = open.maps.rodata_data.as_deref_mut().expect("the program has constants");
        constants.ports.iter_mut().zip(ports).for_each(|(to, port)| *to = port.to_be());
        constants.mark_above = mark_above.map_or(0, |least| micros(least).max(1));
        let skeleton = open.load().map_err(failed)?;
        Ok(Stamper { attachments: Vec::new(), skeleton, devices: 0 })
    }

    /// Takes an interface in without attaching to it; its packets have `link_len` octets before the IP header.
    ///
    /// # Panics
    /// If there are [`MAX_DEVICES`] already.
    pub fn add(&mut self, ifindex: i32, link_len: u32) -> Place {
        assert!(self.devices < MAX_DEVICES, "checked by who asks");
        let place = Place(self.devices);
        self.devices += 1;
        let hop = self.hop(place);
        shared32(&hop.link_len).store(link_len, Ordering::Relaxed);
        // Last: from now on the program goes by this place.
        shared32(&hop.ifindex).store(ifindex as u32, Ordering::Release);
        place
    }

    /// Attaches to an interface's egress, until dropped.
    ///
    /// # Errors
    /// [`Error::Attach`], [`Error::Busy`].
    pub fn attach(&mut self, ifindex: i32, method: Method) -> Result<Method, Error> {
        let program = self.skeleton.progs.relay_egress.as_libbpf_object();
        let (method, attached) = attach::attach(&RELAY, ifindex, &[program], method)?;
        self.attachments.extend(attached);
        Ok(method)
    }

    /// True if the program is still wherever it was attached.
    pub fn is_attached(&self) -> bool {
        self.attachments.iter().all(Attachment::is_there)
    }

    /// Says what D is, and until when that holds (`CLOCK_MONOTONIC`).
    pub fn set(&self, place: Place, delay: Span, until: Time) {
        let hop = self.hop(place);
        shared(&hop.delay).store(micros(delay).into(), Ordering::Relaxed);
        shared(&hop.until).store(until.as_nanos(), Ordering::Release);
    }

    /// What the program has counted at an interface.
    pub fn counters(&self, place: Place) -> Counters {
        let hop = self.hop(place);
        let read = |word| shared(word).load(Ordering::Relaxed);
        let (kept, stamped, stale) = (read(&hop.kept), read(&hop.stamped), read(&hop.stale));
        Counters { seen: kept + stamped + stale, stamped, stale, other: read(&hop.other), marked: read(&hop.marked) }
    }

    /// Runs one packet through the program without a device (BPF_PROG_TEST_RUN, which lets it leave through the loopback interface, number 1) and
    /// gives what comes out. `segment`: the payload of each datagram, of a packet that is still to be segmented.
    ///
    /// # Errors
    /// [`Error::Map`].
    pub fn test_run(&self, packet: &[u8], segment: Option<u32>) -> Result<Vec<u8>, Error> {
        let mut out = vec![0; packet.len() + 64];
        let mut context = [0u8; CONTEXT_LEN];
        if let Some(segment) = segment {
            let count = (packet.len() as u32).div_ceil(segment.max(1));
            context[GSO_SEGS_AT..GSO_SEGS_AT + 4].copy_from_slice(&count.to_ne_bytes());
            context[GSO_SIZE_AT..GSO_SIZE_AT + 4].copy_from_slice(&segment.to_ne_bytes());
        }
        let input = ProgramInput {
            context_in: segment.map(|_| &mut context[..]),
            data_in: Some(packet),
            data_out: Some(&mut out),
            ..ProgramInput::default()
        };
        let output = self.skeleton.progs.relay_egress.test_run(input).map_err(Error::map)?;
        let len = output.data.map_or(0, |data| data.len());
        out.truncate(len);
        Ok(out)
    }

    /// The mean time of one run when a packet is run `times` over.
    ///
    /// # Errors
    /// [`Error::Map`].
    pub fn time_test_runs(&self, packet: &[u8], times: u32) -> Result<Span, Error> {
        let input = ProgramInput { data_in: Some(packet), repeat: times, ..ProgramInput::default() };
        let output = self.skeleton.progs.relay_egress.test_run(input).map_err(Error::map)?;
        Ok(output.duration.into())
    }

    fn hop(&self, place: Place) -> &relay_hop {
        &self.skeleton.maps.bss_data.as_deref().expect("the skeleton maps .bss").hops[place.0]
    }
}

/// `struct __sk_buff`, as a test run takes it.
const CONTEXT_LEN: usize = 192;
const GSO_SEGS_AT: usize = 164;
const GSO_SIZE_AT: usize = 176;

/// Whole microseconds, as many as a header holds.
fn micros(span: Span) -> u32 {
    u32::try_from(span.as_nanos() / 1000).unwrap_or(u32::MAX)
}

const _: () = {
    use std::mem::offset_of;
    assert!(size_of::<relay_hop>() == 128 && offset_of!(relay_hop, until) == 8 && offset_of!(relay_hop, kept) == 64);
};
