//! An 802.11 BSS: what its standard knows, and what stations and neighbours may be on it.

mod access_points;
mod channels;
mod hearing;
mod links;
mod mesh;
mod neighbours;
mod phy;
mod places;
mod rates;
mod single_links;
mod station;
pub mod table;

pub(crate) use access_points::access_points;

use super::kind::HopTable;
use crate::bounds::{Run, packets, plain, span};
use crate::quantity::{Hertz, either, show};
use crate::queue::{Queue, of_radio};
use crate::read::{Context, Entry, Quantity};
use crate::tables::Tables;
use lasthop_radio::LastHop;
use lasthop_radio::queue::{self, HopQueue};
use lasthop_radio::wifi::{
    Amsdu, Background, Beacons, Fading, GuardInterval, LinkParams, Mcs, Mode, NodeParams, Params, PathLoss, Profile,
    ReachMatrix, Role,
};
use lasthop_signals::Node;
use lasthop_units::{Bytes, Span};
use table::{MeshRouting, RateSet, Standard, WifiHop};

/// 9.4.1.3: the beacon interval is a 16-bit count of time units.
const TIME_UNIT: Span = Span::from_nanos(1_024_000);
const MOST_TIME_UNITS: u64 = 65_535;
/// The longest bitmap of a compressed BlockAck (9.3.1.8), of ax and of the others.
const BLOCK_ACK_WINDOW: (u64, u64) = (256, 64);
/// Longer than any PSDU that 5.484 ms hold (27.5).
const LONGEST_PSDU: Bytes = Bytes::new(6_500_631);
/// Above this a packet is as good as never received.
const MOST_ERRORS: f64 = 0.99;

/// A host that takes longer queues.
const LONGEST_HOST_DELAY: Span = Span::from_millis(10);

/// The guard interval that every standard has.
const LONG: GuardInterval = GuardInterval::Ns800;

/// What rates depend on. `None` is a value that is itself wrong: what depends on it is not checked then.
#[derive(Clone, Copy)]
struct Air {
    standard: Standard,
    /// Of 802.11g.
    rate_set: RateSet,
    channel: Option<u8>,
    width: Option<Hertz>,
}

impl Air {
    /// The mode of an MCS; the guard interval has no say in which exist.
    fn mode(self, mcs: Mcs) -> Option<Mode> {
        let width = phy::radio_width(self.width?)?;
        let standard = phy::radio_standard(self.standard, self.channel?, self.rate_set);
        Mode::data(standard, width, LONG, mcs, Profile::Standard)
    }
}

impl HopTable<Tables> for WifiHop {
    const CALLED: &'static str = "a Wi-Fi hop";
    const INSTEAD: &'static str = "on Wi-Fi, write `mcs` or `rate`";

    fn plan(&self, raw: &Tables, run: Run, cx: &mut Context) -> Option<LastHop> {
        let standard = self.standard.get();
        let rate_set = standard.and_then(|standard| rate_set(&self.rate_set, standard, cx));
        let width = standard.and_then(|standard| width(&self.width, standard, cx));
        let guard_interval = standard.and_then(|standard| guard_interval(&self.guard_interval, standard, cx));
        let channel = standard.and_then(|standard| channel(&self.channel, standard, width, cx));
        let max_ampdu = standard.and_then(|standard| max_ampdu(&self.max_ampdu, standard, cx));
        let amsdu = standard.and_then(|standard| amsdu(self, standard, cx));
        let beacon_interval = beacon_interval(&self.beacon_interval, cx);
        let why = "IEEE 802.11-2020, dot11ShortRetryLimit; the radio model ends at 127";
        let retry_limit = cx.within(&self.retry_limit, (1, 127), |n| n.to_string(), why);
        let queue = self.queue.get().and_then(|queue| of_radio(&queue, cx));
        let station_queue = station_queue(self, cx);
        let rts_threshold = rts_threshold(&self.rts_threshold, cx);
        // Rates mean nothing without a standard.
        let air = Air { standard: standard?, rate_set: rate_set?, channel, width };
        let loss = links::path_loss(self, cx);
        let stations = station::stations(raw, air, loss, cx);
        let further_channels = channels::further(raw, air, cx);
        let used: Option<Vec<u8>> =
            further_channels.as_ref().zip(channel).map(|(further, own)| [&[own], &further[..]].concat());
        let neighbours = neighbours::neighbours(raw, (air, used.as_deref()), guard_interval, run, cx);
        let mesh = self.mesh.given.then(|| self.mesh.get());
        let hearing = match &mesh {
            Some(mesh) => mesh.as_ref().and_then(|mesh| mesh::hearing(mesh, raw, cx)),
            None => {
                mesh::no_mesh(raw, cx);
                hearing::hearing(raw, cx)
            }
        };

        let homes = station::homes(raw, cx);
        let (reach, homes, further_channels) = (hearing?, homes?, further_channels?);
        let reach = separated(reach, raw, (channel?, &further_channels), &homes)?;
        let links = single_links::links(self, raw, (&homes, &reach), air, cx);
        let fading = mesh::fading(self, cx);

        // Too many stations were reported with their names.
        let guard_interval = phy::radio_guard_interval(guard_interval?)?;
        let mut nodes = vec![NodeParams::new(Role::Ap, Mcs::new(0, 1))];
        nodes.extend(stations?);
        for (node, home) in nodes[1..].iter_mut().zip(homes) {
            node.role = Role::Station { ap: home };
        }
        let queue = queue?;
        if mesh.is_some() {
            mesh::peers(&mut nodes, queue);
        }
        let rts_threshold = rts_threshold?;
        nodes.iter_mut().for_each(|node| node.rts_threshold = rts_threshold);
        let mut background = Vec::new();
        for neighbour in neighbours? {
            let from = Node(u16::try_from(nodes.len()).ok()?);
            let mut node = NodeParams::new(Role::Neighbour, neighbour.mcs);
            (node.phy, node.rts_threshold) = (Some(neighbour.phy), neighbour.rts_threshold);
            nodes.extend([node.clone(), node]);
            background.push(Background {
                from,
                to: Node(from.0.checked_add(1)?),
                class: neighbour.class,
                packet: neighbour.packet,
                load: neighbour.load,
                active: neighbour.active,
            });
        }
        for _ in raw.access_point.get()? {
            nodes.push(NodeParams { rts_threshold, ..NodeParams::new(Role::Ap, Mcs::new(0, 1)) });
        }
        let standard = phy::radio_standard(air.standard, channel?, air.rate_set);
        let params = Params {
            ap_queue: queue,
            station_queue: station_queue?,
            client_isolation: self.client_isolation.get()?,
            retry_limit: u8::try_from(retry_limit?).ok()?,
            max_ampdu_mpdus: max_ampdu?,
            amsdu: amsdu?,
            beacons: Some(Beacons { interval: beacon_interval?, ..Beacons::default() }),
            background,
            links: strengths(links?, &reach, (self, raw), (loss?, fading?))?,
            reach,
            capture: self.capture.get()?,
            ..Params::new(standard, phy::radio_width(width?)?, guard_interval, nodes)
        };
        // The radio knows best what it can be built from. Whatever it refuses beyond the checks here has no line of its own.
        params
            .validate()
            .map_err(|error| cx.impossible(&self.place, error.to_string(), "change what it names"))
            .map(LastHop::from)
            .ok()
    }

    fn queue(table: &Queue, cx: &mut Context) -> Option<HopQueue> {
        of_radio(table, cx).map(HopQueue::Stations)
    }
}

/// Which nodes hear each other, when those of other channels do not.
fn separated(mut reach: ReachMatrix, raw: &Tables, (own, further): (u8, &[u8]), homes: &[Node]) -> Option<ReachMatrix> {
    let first = reach.nodes() - further.len();
    let mut of_nodes = vec![own];
    // The home of a station is the hop's own access point, or one of the last nodes.
    of_nodes.extend(homes.iter().map(|home| home.index().checked_sub(first).map_or(own, |place| further[place])));
    for table in raw.neighbour.get()? {
        let channel = if table.channel.given { u8::try_from(table.channel.get()?).ok()? } else { own };
        of_nodes.extend([channel; 2]);
    }
    of_nodes.extend(further);
    channels::separate(&mut reach, &of_nodes);
    Some(reach)
}

/// The single links, in a mesh with capture with strengths by where nodes stand.
fn strengths(
    mut links: Vec<LinkParams>,
    reach: &ReachMatrix,
    (hop, raw): (&WifiHop, &Tables),
    air: (PathLoss, Option<Fading>),
) -> Option<Vec<LinkParams>> {
    if hop.mesh.given && hop.capture.get()? {
        let (mesh, stations) = (hop.mesh.get()?, raw.station.get()?);
        single_links::add_strengths(&mut links, reach, |a, b| mesh::strength(&mesh, &stations, air, [a, b]));
    }
    Some(links)
}

fn width(entry: &Entry<Quantity<Hertz>>, standard: Standard, cx: &mut Context) -> Option<Hertz> {
    let Quantity(width) = entry.get()?;
    among(entry, width, standard.widths(), &format!("{standard} is not {} wide", show(width)), standard, cx)
}

fn guard_interval(entry: &Entry<Quantity<Span>>, standard: Standard, cx: &mut Context) -> Option<Span> {
    let Quantity(interval) = entry.get()?;
    let what = format!("{standard} has no guard interval of {}", show(interval));
    among(entry, interval, standard.guard_intervals(), &what, standard, cx)
}

/// `value` if it is one of the standard's `choices`.
fn among<T: crate::quantity::Measured + PartialEq>(
    entry: &Entry<Quantity<T>>,
    value: T,
    choices: &[T],
    what: &str,
    standard: Standard,
    cx: &mut Context,
) -> Option<T> {
    if choices.contains(&value) {
        return Some(value);
    }
    let choices: Vec<String> = choices.iter().map(|choice| format!("\"{}\"", show(*choice))).collect();
    cx.impossible(&entry.at, what, format!("write {} ({})", either(&choices), standard.clause()));
    None
}

fn rate_set(entry: &Entry<RateSet>, standard: Standard, cx: &mut Context) -> Option<RateSet> {
    if !entry.given {
        return Some(RateSet::Ofdm);
    }
    let set = entry.get()?;
    if standard != Standard::G {
        let what = format!("{standard} has one set of rates, whatever `rate-set` says");
        cx.impossible(&entry.at, what, "delete this key, or write `standard = \"802.11g\"`");
        return None;
    }
    Some(set)
}

/// The primary channel, which decides the band.
fn channel(entry: &Entry<u64>, standard: Standard, width: Option<Hertz>, cx: &mut Context) -> Option<u8> {
    if !entry.given {
        return Some(if standard == Standard::G { 1 } else { 36 });
    }
    let (channel, width) = (entry.get()?, width?);
    let legal = phy::channels(standard, width);
    if !legal.contains(&channel) {
        let what = format!("channel {channel} cannot be the primary channel of {standard} at {}", show(width));
        let legal: Vec<String> = legal.iter().map(u64::to_string).collect();
        cx.impossible(&entry.at, what, format!("write {} (IEEE 802.11-2020, Annex E)", either(&legal)));
        return None;
    }
    u8::try_from(channel).ok()
}

fn max_ampdu(entry: &Entry<u64>, standard: Standard, cx: &mut Context) -> Option<u16> {
    if !standard.has_mcs() {
        if entry.given {
            cx.impossible(&entry.at, format!("{standard} does not aggregate"), "delete this key");
            return None;
        }
        return Some(1);
    }
    if !entry.given {
        return Some(64);
    }
    let why = "the bitmap of a BlockAck, IEEE 802.11-2020, 9.3.1.8";
    let (he, older) = BLOCK_ACK_WINDOW;
    let window = if standard == Standard::Ax { he } else { older };
    let most = cx.within(entry, (1, window), |n| n.to_string(), why)?;
    u16::try_from(most).ok()
}

/// `Some(None)`: one packet an MPDU.
fn amsdu(hop: &WifiHop, standard: Standard, cx: &mut Context) -> Option<Option<Amsdu>> {
    if !hop.max_amsdu.given {
        if hop.amsdu_packets.given {
            let what = "`amsdu-packets` means nothing without `max-amsdu`";
            cx.impossible(&hop.amsdu_packets.at, what, "add `max-amsdu`, or delete this key");
            return None;
        }
        return Some(None);
    }
    if !standard.has_mcs() {
        cx.impossible(&hop.max_amsdu.at, format!("{standard} does not aggregate"), "delete this key");
        return None;
    }
    // An MPDU of 802.11n within an A-MPDU ends at 4095 octets (10.12.4).
    let sizes: &[Bytes] = if standard == Standard::N { &AMSDU[..1] } else { &AMSDU };
    let Quantity(size) = hop.max_amsdu.get()?;
    let what = format!("{standard} has no A-MSDUs of up to {}", show(size));
    let size = among(&hop.max_amsdu, size, sizes, &what, standard, cx)?;
    let packets = if hop.amsdu_packets.given {
        let why = "an A-MSDU holds two packets at least";
        cx.within(&hop.amsdu_packets, (2, MOST_PACKETS), |n| n.to_string(), why)?
    } else {
        MOST_PACKETS
    };
    Some(Some(Amsdu { octets: u32::try_from(size.get()).ok()?, packets: u16::try_from(packets).ok()? }))
}

/// Lengths of A-MSDUs that devices may announce (9.4.2.55.2, 9.4.2.157.2).
const AMSDU: [Bytes; 3] = [Bytes::new(3_839), Bytes::new(7_935), Bytes::new(11_454)];
/// More than the longest A-MSDU holds of any but tiny packets.
const MOST_PACKETS: u64 = 128;

/// The queue of every station that has none of its own.
fn station_queue(hop: &WifiHop, cx: &mut Context) -> Option<queue::Kind> {
    if !hop.station_queue.given {
        return packets(&hop.uplink_queue, cx).map(|packets| queue::Kind::Fifo { packets });
    }
    if hop.uplink_queue.given {
        let what = "`uplink-queue` and `station-queue` contradict each other";
        cx.impossible(
            &hop.station_queue.at,
            what,
            "keep one of them; `uplink-queue` is short for one of kind \"fifo\"",
        );
        return None;
    }
    hop.station_queue.get().and_then(|queue| of_radio(&queue, cx))
}

/// `Some(None)`: never.
fn rts_threshold(entry: &Entry<Quantity<Bytes>>, cx: &mut Context) -> Option<Option<Bytes>> {
    if !entry.given {
        return Some(None);
    }
    let why = "a PSDU; at 0 B every data frame is announced";
    cx.within(&plain(entry), (Bytes::ZERO, LONGEST_PSDU), show, why).map(Some)
}

fn beacon_interval(entry: &Entry<Quantity<Span>>, cx: &mut Context) -> Option<Span> {
    let why = "a 16-bit count of time units, IEEE 802.11-2020, 9.4.1.3";
    let interval = span(entry, (TIME_UNIT, TIME_UNIT * MOST_TIME_UNITS), why, cx)?;
    let rest = interval.as_nanos() % TIME_UNIT.as_nanos();
    if rest != 0 {
        let below = interval - Span::from_nanos(rest);
        let what = format!("{} is not a multiple of the time unit of 1024 us", show(interval));
        let remedy = format!("write \"{}\" or \"{}\" (9.4.1.3)", show(below), show(below + TIME_UNIT));
        cx.impossible(&entry.at, what, remedy);
        return None;
    }
    Some(interval)
}

/// What the hosts of a radio hop take to answer; nothing on another hop.
pub(crate) fn host_delay(raw: &Tables, cx: &mut Context) -> Option<Span> {
    match raw.hop.get()?.wifi.get() {
        Some(hop) => span(
            &hop.host_delay,
            (Span::ZERO, LONGEST_HOST_DELAY),
            "a host that takes longer is no delay of interrupt and stack but a queue",
            cx,
        ),
        None => Some(Span::ZERO),
    }
}

/// Where the routes of a mesh's nodes come from; `None` without a mesh.
pub(crate) fn mesh_routing(raw: &Tables) -> Option<MeshRouting> {
    let wifi = raw.hop.get()?.wifi.get()?;
    if wifi.mesh.given { wifi.mesh.get()?.routing.get() } else { None }
}
