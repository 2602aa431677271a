//! D from the kernel: what packets wait at interfaces of this host, and what they take them (`bpf/hop_delay.bpf.c`).

use super::{MAX_DEVICES, Measured};
use crate::service::said::Captured;
use crate::service::shared_memory::{shared, shared32};
use crate::service::skeleton::{room, skeleton};
use crate::service::{Error, netns};
use lasthop_signals::NodeDelay;
use lasthop_units::{Span, Time};
use libbpf_rs::skel::{OpenSkel, SkelBuilder};
use libbpf_rs::{Link, MapCore, MapFlags, ProgramInput};
use std::sync::atomic::{AtomicU64, Ordering};

skeleton!("hop_delay", HopDelaySkel, HopDelaySkelBuilder);
use skeleton::types::hop_delay;

/// Measures for as long as it lives.
pub struct Measure {
    // Dropped first: nothing is to run while maps go away.
    _links: Vec<Link>,
    skeleton: HopDelaySkel<'static>,
}

/// A packet of which nothing is heard for so long is lost track of. It is no queue that a mesh can use.
const LOST: Span = Span::from_secs(2);
/// The programs' own limit for segments.
const FORGOTTEN: Span = Span::from_secs(2);
/// Packets that are read at once.
const BATCH: u32 = 1024;

impl Measure {
    /// Begins, at these interfaces of the calling thread's network namespace.
    ///
    /// # Errors
    /// [`Error::Load`] with what the verifier said, [`Error::Permission`].
    ///
    /// # Panics
    /// If there are more than [`MAX_DEVICES`].
    pub fn begin(devices: &[i32]) -> Result<Measure, Error> {
        let mut measure = Measure::load(devices)?;
        let said = Captured::begin();
        let failed = |error| said.refusal(error);
        let programs = &measure.skeleton.progs;
        // Whoever frees packets first knows of none: no completion is missed.
        let order = [
            &programs.hop_delay_freed,
            &programs.hop_delay_freed_too,
            &programs.hop_delay_consumed,
            &programs.hop_delay_consumed_too,
            &programs.hop_delay_handed_on,
            &programs.hop_delay_handed_on_too,
            &programs.hop_delay_started,
            &programs.hop_delay_started_too,
            &programs.hop_delay_queued,
        ];
        let links = order.into_iter().map(|program| program.attach()).collect::<Result<Vec<_>, _>>().map_err(failed)?;
        measure._links = links;
        Ok(measure)
    }

    /// The programs, attached to nothing.
    ///
    /// # Errors
    /// As [`Measure::begin`].
    ///
    /// # Panics
    /// As [`Measure::begin`].
    pub fn load(devices: &[i32]) -> Result<Measure, Error> {
        assert!(devices.len() <= MAX_DEVICES, "checked by who asks");
        let said = Captured::begin();
        let failed = |error| said.refusal(error);
        let mut open = HopDelaySkelBuilder::default().open(room()).map_err(failed)?;
        let constants = open.maps.rodata_data.as_deref_mut().expect("the programs have constants");
        constants.netns = netns::cookie()?;
        let skeleton = open.load().map_err(failed)?;
        let measure = Measure { _links: Vec::new(), skeleton };
        for (place, ifindex) in devices.iter().enumerate() {
            shared32(&measure.hop(place).ifindex).store(*ifindex as u32, Ordering::Release);
        }
        Ok(measure)
    }

    /// The averages at an interface, in the order of [`Measure::begin`]. They are read while they are written: Q and T may be a packet apart.
    pub fn delay(&self, place: usize) -> NodeDelay {
        let hop = self.hop(place);
        let read = |word| shared(word).load(Ordering::Relaxed);
        let waiting = u32::try_from(self.waiting(place).load(Ordering::Relaxed) as i64).unwrap_or(0);
        let done = read(&hop.last);
        // What waits has not been at the head of the line since before it came.
        let last = if waiting > 0 && done > 0 { done.max(read(&hop.busy)) } else { done };
        NodeDelay {
            queueing: Span::from_nanos(read(&hop.queueing)),
            service: Span::from_nanos(read(&hop.service)),
            last: (last > 0).then_some(Time::from_nanos(last)),
            waiting,
        }
    }

    /// What was counted at an interface.
    pub fn measured(&self, place: usize) -> Measured {
        let hop = self.hop(place);
        let read = |word| shared(word).load(Ordering::Relaxed);
        Measured { done: read(&hop.done), dropped: read(&hop.dropped), missed: read(&hop.missed) }
    }

    /// Counts anew what waits at an interface, unless packets come and go meanwhile, and forgets those that never will: some are freed without a word.
    ///
    /// # Errors
    /// [`Error::Map`].
    pub fn look(&self, place: usize, now: Time) -> Result<(), Error> {
        let waiting = self.waiting(place);
        let before = waiting.load(Ordering::Relaxed);
        if before == 0 {
            return Ok(());
        }
        let packets = &self.skeleton.maps.packets;
        let mut found = 0u64;
        for (key, packet) in packets.lookup_batch(BATCH, MapFlags::ANY, MapFlags::ANY).map_err(Error::map)? {
            let Some((queued, segments, at)) = read_packet(&packet) else { continue };
            if at != place {
                continue;
            }
            if now.since(queued) > LOST {
                // Whoever was faster has done the same.
                let _ = packets.delete(&key);
            } else {
                found += u64::from(segments);
            }
        }
        let hop = self.hop(place);
        let (first, next) = (shared(&hop.first_train), shared(&hop.next_train));
        let (first, next) = (first.load(Ordering::Relaxed), next.load(Ordering::Relaxed));
        let trains = &hop.trains;
        for number in first..next.min(first + trains.len() as u64) {
            let train = &trains[number as usize % trains.len()];
            if now.since(Time::from_nanos(shared(&train.queued).load(Ordering::Relaxed))) <= FORGOTTEN {
                found += shared(&train.left).load(Ordering::Relaxed);
            }
        }
        // Where packets have come or gone meanwhile it is no standstill.
        let _ = waiting.compare_exchange(before, found, Ordering::Relaxed, Ordering::Relaxed);
        Ok(())
    }

    /// One completion at the first interface, as if a packet of so many segments had been queued then and were done with now, or handed on.
    ///
    /// # Errors
    /// [`Error::Map`].
    pub fn complete(&self, now: Time, queued: Time, segments: u64, handed_on: bool) -> Result<(), Error> {
        let mut context: Vec<u8> = [now.as_nanos(), queued.as_nanos(), segments, handed_on.into()]
            .iter()
            .flat_map(|word| word.to_ne_bytes())
            .collect();
        let input = ProgramInput { context_in: Some(&mut context), ..ProgramInput::default() };
        self.skeleton.progs.hop_delay_complete.test_run(input).map_err(Error::map).map(|_| ())
    }

    fn hop(&self, place: usize) -> &hop_delay {
        &self.skeleton.maps.bss_data.as_deref().expect("the skeleton maps .bss").hops[place]
    }

    fn waiting(&self, place: usize) -> &AtomicU64 {
        let waiting = &self.hop(place).waiting;
        // SAFETY: as for `shared`; a signed word has the size and the alignment of an unsigned one.
        unsafe { AtomicU64::from_ptr(std::ptr::from_ref(waiting).cast_mut().cast()) }
    }
}

/// `struct packet` of the programs: when it was queued, its segments, its place.
fn read_packet(bytes: &[u8]) -> Option<(Time, u32, usize)> {
    let (queued, rest) = bytes.split_first_chunk::<8>()?;
    let (segments, rest) = rest.split_first_chunk::<4>()?;
    let (place, _) = rest.split_first_chunk::<2>()?;
    Some((
        Time::from_nanos(u64::from_ne_bytes(*queued)),
        u32::from_ne_bytes(*segments),
        usize::from(u16::from_ne_bytes(*place)),
    ))
}

const _: () = {
    use std::mem::offset_of;
    assert!(offset_of!(hop_delay, queueing) == 8 && offset_of!(hop_delay, waiting) == 40);
    assert!(offset_of!(hop_delay, trains) == 88);
};
