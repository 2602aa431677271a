//! Validated parameters, with what follows from them.

use super::error::Error;
use super::frame::Framing;
use super::link::{Link, Snr};
use super::medium::NONE;
use super::params::{Amsdu, Background, Beacons, LinkParams, Load, NodeParams, Params, RateChoice, Reach, Role};
use super::phy::{MAX_STREAMS, Mcs, Mode, Phy, Profile, Standard};
use super::timing::{Timing, classes, contender_of, edca};
use crate::{AccessClass, queue};
use lasthop_signals::Node;
use lasthop_units::{Bytes, Span, Time};

/// Parameters that a hop can be built from: holding one is proof.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    params: Params,
    /// Every PHY mode that a trace may ask for, once.
    modes: Vec<DataMode>,
    /// What holds on links: the nodes' own first, by node, then one for each of [`Params::links`].
    conditions: Vec<Conditions>,
    /// Place in `conditions` of the link from one node to another, row by row, `NONE` where a node's own hold; empty where all do.
    special: Vec<u16>,
}

/// What holds on a link, or on all that a node describes.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Conditions {
    /// What random streams are called by.
    pub name: String,
    /// The transmitter, or whoever describes the link.
    pub node: usize,
    pub rate: RateChoice,
    pub mpdu_error: f64,
    pub link: Option<Link>,
    /// Steps of the rate as indices into `modes`; with a rate control the modes that it chooses from, all at time zero.
    trace: Vec<(Time, u16)>,
}

/// A PHY mode for data, with what hangs on it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct DataMode {
    pub phy: Mode,
    pub framing: Framing,
    /// Mode of the Ack or BlockAck that answers, and of RTS and CTS.
    pub response: Mode,
    pub ack: Span,
    pub block_ack: Span,
    pub rts: Span,
    pub cts: Span,
    /// Largest PSDU within the duration and length limits.
    pub max_psdu: u32,
}

/// Ack: frame control, duration, RA, FCS (9.3.1.4).
pub(super) const ACK: Bytes = Bytes::new(14);
/// CTS: frame control, duration, RA, FCS (9.3.1.3).
pub(super) const CTS: Bytes = Bytes::new(14);
/// RTS: frame control, duration, RA, TA, FCS (9.3.1.2).
pub(super) const RTS: Bytes = Bytes::new(20);
/// BlockAck with a compressed bitmap of 64 (9.3.1.8).
const BLOCK_ACK_64: Bytes = Bytes::new(32);
/// BlockAck with a compressed bitmap of 256 (9.3.1.8).
const BLOCK_ACK_256: Bytes = Bytes::new(56);

impl Params {
    /// Checks everything and prepares what follows from it.
    pub fn validate(self) -> Result<Plan, Error> {
        self.check_limits()?;
        let nodes = self.nodes.len();
        if self.reach.nodes() != nodes {
            return Err(Error::ReachSize { got: self.reach.nodes(), nodes });
        }
        let mut plan = Plan { modes: Vec::new(), conditions: Vec::new(), special: Vec::new(), params: self };
        for index in 0..nodes {
            plan.check_phy(index)?;
        }
        for index in 0..nodes {
            plan.check_node(index)?;
            let NodeParams { rate, mpdu_error, link, .. } = plan.params.nodes[index].clone();
            let name = format!("wifi/node{index}");
            plan.add(
                Conditions { name, node: index, rate, mpdu_error, link, trace: Vec::new() },
                &format!("nodes[{index}]"),
            )?;
        }
        for index in 0..plan.params.links.len() {
            plan.add_link(index)?;
        }
        for index in 0..plan.params.background.len() {
            plan.check_background(index)?;
        }
        Ok(plan)
    }

    fn check_limits(&self) -> Result<(), Error> {
        // Node numbers are u16, and the last one stands for "everybody".
        within("nodes (count)", self.nodes.len() as f64, 1.0, 1024.0)?;
        within("links (count)", self.links.len() as f64, 0.0, MAX_LINKS)?;
        within("retry_limit", f64::from(self.retry_limit), 1.0, 127.0)?;
        let most = f64::from(self.standard.max_ampdu_mpdus());
        within("max_ampdu_mpdus", f64::from(self.max_ampdu_mpdus), 1.0, most)?;
        if let Some(Amsdu { octets, packets }) = self.amsdu {
            within("amsdu.octets", f64::from(octets), 3_839.0, 11_454.0)?;
            within("amsdu.packets", f64::from(packets), 2.0, 128.0)?;
        }
        within("driver_interval (s)", self.driver_interval.as_secs_f64(), 1e-4, 3600.0)?;
        check_queue(&self.ap_queue, "ap_queue")?;
        check_queue(&self.station_queue, "station_queue")?;
        if let Some(Beacons { interval, mpdu }) = self.beacons {
            within("beacons.interval (s)", interval.as_secs_f64(), 0.001, 100.0)?;
            within("beacons.mpdu (bytes)", mpdu.get() as f64, 40.0, 2_304.0)?;
        }
        Ok(())
    }
}

fn check_queue(kind: &queue::Kind, key: &str) -> Result<(), Error> {
    match kind {
        queue::Kind::Fifo { packets } | queue::Kind::RoundRobin { packets } => {
            within(format!("{key}.packets"), *packets as f64, 1.0, MAX_QUEUE)
        }
        queue::Kind::FqCodelAirtime(fq) => {
            within(format!("{key}.packets"), fq.packets as f64, 1.0, MAX_QUEUE)?;
            within(format!("{key}.target (s)"), fq.target.as_secs_f64(), 1e-5, 10.0)?;
            within(format!("{key}.interval (s)"), fq.interval.as_secs_f64(), fq.target.as_secs_f64(), 100.0)?;
            within(format!("{key}.quantum (bytes)"), f64::from(fq.quantum), 1.0, 65_535.0)?;
            within(format!("{key}.airtime_quantum (s)"), fq.airtime_quantum.as_secs_f64(), 1e-6, 1.0)
        }
        queue::Kind::FqCodel(fq) => {
            within(format!("{key}.packets"), fq.packets as f64, 1.0, MAX_QUEUE)?;
            within(format!("{key}.driver_packets"), fq.driver_packets as f64, 1.0, MAX_QUEUE)?;
            within(format!("{key}.target (s)"), fq.target.as_secs_f64(), 1e-5, 10.0)?;
            within(format!("{key}.interval (s)"), fq.interval.as_secs_f64(), fq.target.as_secs_f64(), 100.0)?;
            within(format!("{key}.quantum (bytes)"), f64::from(fq.quantum), 1.0, 65_535.0)
        }
    }
}

fn check_link(link: &Link, key: &str) -> Result<(), Error> {
    let ordered = |name: &str, times: &[Time]| {
        if times.is_empty() {
            return Err(Error::Empty { key: format!("{key}.{name}") });
        }
        match times.windows(2).position(|pair| pair[0] >= pair[1]) {
            Some(at) => Err(Error::Order { key: format!("{key}.{name}[{}]", at + 1) }),
            None => Ok(()),
        }
    };
    match &link.snr {
        Snr::Trace(steps) => {
            ordered("snr", &steps.iter().map(|step| step.0).collect::<Vec<_>>())?;
            for (at, step) in steps.iter().enumerate() {
                within(format!("{key}.snr[{at}] (dB)"), step.1.0, -50.0, 100.0)?;
            }
        }
        Snr::Distance { loss, walk } => {
            ordered("walk", &walk.iter().map(|point| point.0).collect::<Vec<_>>())?;
            for (at, point) in walk.iter().enumerate() {
                within(format!("{key}.walk[{at}] (m)"), point.1, 0.0, 1e5)?;
            }
            within(format!("{key}.loss.exponent"), loss.exponent, 1.0, 8.0)?;
            within(format!("{key}.loss.power (dBm)"), loss.power.0, -50.0, 50.0)?;
            within(format!("{key}.loss.noise_figure (dB)"), loss.noise_figure.0, 0.0, 30.0)?;
        }
    }
    if let Some(fading) = link.fading {
        within(format!("{key}.fading.coherence (s)"), fading.coherence.as_secs_f64(), 1e-4, 3600.0)?;
        within(format!("{key}.fading.k"), fading.k, 0.0, 1e6)?;
    }
    Ok(())
}

/// Packets in the queue of a neighbour.
const NEIGHBOUR_QUEUE: usize = 1_000;

/// With the nodes' own conditions they are numbered by 16 bits.
const MAX_LINKS: f64 = 60_000.0;

/// More packets than any access point has memory for.
const MAX_QUEUE: f64 = 1_000_000.0;

fn within(key: impl Into<String>, got: f64, min: f64, max: f64) -> Result<(), Error> {
    // Written so that NaN fails.
    if (min..=max).contains(&got) { Ok(()) } else { Err(Error::OutOfRange { key: key.into(), got, min, max }) }
}

impl Plan {
    /// What it was made of.
    #[inline]
    pub fn params(&self) -> &Params {
        &self.params
    }

    /// How long a node takes for one packet of best effort on an idle channel, at its first rate: interframe space, mean backoff, the frame and its
    /// acknowledgement.
    ///
    /// # Panics
    /// If there is no such node.
    pub fn lone_exchange(&self, node: Node, len: Bytes) -> Span {
        let index = node.index();
        let standard = self.phy(index).standard;
        let contender = if standard.is_qos() { contender_of(AccessClass::BestEffort) } else { 0 };
        let edca = edca(standard, self.params.profile, self.params.nodes[index].role == Role::Ap)[contender];
        let timing = Timing::new(standard);
        let mode = &self.modes[usize::from(self.trace(index)[0].1)];
        let psdu = mode.framing.single(mode.framing.mpdu(u32::try_from(len.get()).unwrap_or(u32::MAX)));
        let frame = mode.phy.duration(Bytes::new(u64::from(psdu)));
        edca.aifs + timing.slot * u64::from(edca.cw_min) / 2 + frame + timing.sifs + mode.ack
    }

    #[inline]
    pub(super) fn modes(&self) -> &[DataMode] {
        &self.modes
    }

    /// What holds on links, by what [`Plan::link`] says.
    #[inline]
    pub(super) fn conditions(&self) -> &[Conditions] {
        &self.conditions
    }

    /// The rate steps of a link, as indices into `modes`.
    #[inline]
    pub(super) fn trace(&self, link: usize) -> &[(Time, u16)] {
        &self.conditions[link].trace
    }

    /// What describes the link from one node to another, as a place in the conditions: an entry of its own, or else a node: the
    /// station, if the receiver is one.
    #[inline]
    pub(super) fn link(&self, from: usize, to: usize) -> usize {
        match self.special(from, to) {
            Some(own) => own,
            None if matches!(self.params.nodes[to].role, Role::Station { .. }) => to,
            None => from,
        }
    }

    /// A link's own conditions, if it has any.
    #[inline]
    fn special(&self, from: usize, to: usize) -> Option<usize> {
        let place = *self.special.get(from * self.params.nodes.len() + to)?;
        (place != NONE).then_some(usize::from(place))
    }

    /// The conditions that say with which strength a node hears another, if any do: those of a node hold for the links that it
    /// exchanges frames on.
    pub(super) fn strength_of(&self, from: usize, to: usize) -> Option<usize> {
        let place = self.special(from, to).or_else(|| self.linked(from, to).then(|| self.link(from, to)))?;
        self.conditions[place].link.is_some().then_some(place)
    }

    /// The queue of a node.
    pub(super) fn queue(&self, index: usize) -> queue::Kind {
        let params = &self.params.nodes[index];
        match params.role {
            Role::Ap => self.params.ap_queue,
            Role::Neighbour => queue::Kind::Fifo { packets: NEIGHBOUR_QUEUE },
            Role::Station { .. } | Role::Peer => params.queue.unwrap_or(self.params.station_queue),
        }
    }

    /// True if a node's driver reports.
    pub(super) fn reports(&self, index: usize) -> bool {
        let params = &self.params.nodes[index];
        params.role == Role::Ap || params.reports
    }

    /// True if frames from `from` to `to` belong to this hop's traffic: same BSS or two peers, each decoding the other.
    pub(super) fn linked(&self, from: usize, to: usize) -> bool {
        if from == to {
            return false;
        }
        if self.phy(from).standard != self.phy(to).standard {
            return false;
        }
        let related = match (self.params.nodes[from].role, self.params.nodes[to].role) {
            (Role::Ap, Role::Station { ap }) => ap.index() == from,
            (Role::Station { ap }, Role::Ap) => ap.index() == to,
            (Role::Neighbour, Role::Neighbour) | (Role::Peer, Role::Peer) => true,
            _ => false,
        };
        related && self.decodes(from, to) && self.decodes(to, from)
    }

    fn decodes(&self, from: usize, to: usize) -> bool {
        self.reach(from, to) == Reach::Decodes
    }

    pub(super) fn reach(&self, from: usize, to: usize) -> Reach {
        self.params.reach.get(node(from), node(to))
    }

    /// The physical layer of a node.
    #[inline]
    pub(super) fn phy(&self, index: usize) -> Phy {
        self.params.phy(node(index))
    }

    /// Contenders of the node that has most of them: every node has as many, and uses the first of them.
    pub(super) fn classes(&self) -> usize {
        (0..self.params.nodes.len()).map(|index| classes(self.phy(index).standard)).max().unwrap_or(1)
    }

    /// True if a node's MPDUs are handed up as each ends.
    pub(super) fn mpdu_by_mpdu(&self, index: usize) -> bool {
        self.params.profile == Profile::Ns3_3_37 || self.params.nodes[index].mpdu_by_mpdu
    }

    /// Most MPDUs in an A-MPDU of a node; 1 without a BlockAck agreement.
    pub(super) fn max_ampdu(&self, index: usize) -> u16 {
        let standard = self.phy(index).standard;
        if standard.is_qos() { self.params.max_ampdu_mpdus.min(standard.max_ampdu_mpdus()) } else { 1 }
    }

    /// The BlockAck that answers a node: its bitmap covers what the node may send (10.25.6.5).
    #[inline]
    pub(super) fn block_ack(&self, index: usize) -> Bytes {
        if self.max_ampdu(index) > 64 { BLOCK_ACK_256 } else { BLOCK_ACK_64 }
    }

    /// Most packets in an MPDU of a node, and the longest MPDU with more than one: within an A-MPDU an MPDU of 802.11n ends
    /// at 4095 octets (10.12.4), one of later amendments at 11 454.
    pub(super) fn amsdu(&self, index: usize) -> (u16, u32) {
        let standard = self.phy(index).standard;
        let Some(amsdu) = self.params.amsdu.filter(|_| standard.is_qos()) else { return (1, 0) };
        let most = if matches!(standard, Standard::Dot11n(_)) && self.max_ampdu(index) > 1 { 4_095 } else { 11_454 };
        (amsdu.packets, most.min(Framing::new(standard).header() + amsdu.octets))
    }

    fn check_phy(&self, index: usize) -> Result<(), Error> {
        let Phy { standard, width, guard_interval } = self.phy(index);
        if width > standard.widest() {
            return Err(Error::Width { mhz: width.mhz(), standard: standard.name(), most: standard.widest().mhz() });
        }
        if !standard.has_guard_interval(guard_interval) {
            return Err(Error::GuardInterval { got: guard_interval.span(), standard: standard.name() });
        }
        if standard.band() != self.params.standard.band() {
            let (got, hop) = (standard.name(), self.params.standard.name());
            return Err(Error::Band { key: format!("nodes[{index}].phy"), got, hop });
        }
        Ok(())
    }

    fn check_node(&self, index: usize) -> Result<(), Error> {
        let params = &self.params.nodes[index];
        if let Some(queue) = &params.queue {
            let key = format!("nodes[{index}].queue");
            if !matches!(params.role, Role::Station { .. } | Role::Peer) {
                return Err(Error::Node {
                    key,
                    got: node(index),
                    needs: "a station or peer, which alone may have one",
                });
            }
            check_queue(queue, &key)?;
        }
        let in_bss = matches!(params.role, Role::Ap | Role::Station { .. });
        if in_bss && params.phy.is_some_and(|phy| phy.standard != self.params.standard) {
            let (key, got) = (format!("nodes[{index}].phy"), node(index));
            return Err(Error::Node {
                key,
                got,
                needs: "a neighbour or peer, which alone may have a standard of its own",
            });
        }
        if let Role::Station { ap } = params.role {
            let key = format!("nodes[{index}].role.ap");
            if self.params.nodes.get(ap.index()).is_none_or(|node| node.role != Role::Ap) {
                return Err(Error::Node { key, got: ap, needs: "an access point" });
            }
            if !self.linked(index, ap.index()) {
                return Err(Error::OutOfReach { key, from: node(index), to: ap });
            }
        }
        Ok(())
    }

    /// Checks and adds conditions that are called `key` in the parameters.
    fn add(&mut self, conditions: Conditions, key: &str) -> Result<(), Error> {
        within(format!("{key}.mpdu_error"), conditions.mpdu_error, 0.0, 1.0)?;
        if let Some(link) = &conditions.link {
            check_link(link, &format!("{key}.link"))?;
        } else if matches!(conditions.rate, RateChoice::Ideal { .. }) {
            return Err(Error::Empty { key: format!("{key}.link, which an ideal rate control needs,") });
        }
        let trace = self.compile_rate(conditions.node, &conditions.rate, format!("{key}.rate"))?;
        self.conditions.push(Conditions { trace, ..conditions });
        Ok(())
    }

    /// Checks and adds an entry of `links`.
    fn add_link(&mut self, index: usize) -> Result<(), Error> {
        let LinkParams { from, to, rate, mpdu_error, link } = self.params.links[index].clone();
        let nodes = self.params.nodes.len();
        let key = |field: &str| format!("links[{index}].{field}");
        for (field, end) in [("from", from), ("to", to)] {
            if end.index() >= nodes {
                return Err(Error::Node { key: key(field), got: end, needs: "a node of the hop" });
            }
        }
        let (a, b) = (from.index(), to.index());
        if a == b || self.special(a, b).is_some() {
            return Err(Error::Node { key: key("to"), got: to, needs: "the end of a link that has no other entry" });
        }
        if (rate.is_some() || mpdu_error.is_some()) && !self.linked(a, b) {
            return Err(Error::OutOfReach { key: key("to"), from, to });
        }
        let usual = &self.conditions[self.link(a, b)];
        let linked = self.linked(a, b);
        let conditions = Conditions {
            name: format!("wifi/link{a}-{b}"),
            node: a,
            // A rate that nobody uses need not exist on this transmitter.
            rate: rate.unwrap_or_else(|| if linked { usual.rate.clone() } else { self.conditions[a].rate.clone() }),
            mpdu_error: mpdu_error.unwrap_or(usual.mpdu_error),
            link: link.or_else(|| usual.link.clone().filter(|_| linked)),
            trace: Vec::new(),
        };
        if self.special.is_empty() {
            self.special = vec![NONE; nodes * nodes];
        }
        self.special[a * nodes + b] = u16::try_from(self.conditions.len()).expect("checked: check_limits");
        self.add(conditions, &format!("links[{index}]"))
    }

    fn compile_rate(&mut self, index: usize, rate: &RateChoice, key: String) -> Result<Vec<(Time, u16)>, Error> {
        let standard = self.phy(index).standard;
        let steps = match rate {
            RateChoice::Fixed(mcs) => vec![(Time::ZERO, *mcs)],
            RateChoice::Trace(steps) => steps.clone(),
            RateChoice::Ideal { nss } | RateChoice::Minstrel { nss } => {
                within(format!("{key}.nss"), f64::from(*nss), 1.0, f64::from(MAX_STREAMS))?;
                return self.candidates(index, *nss, &key);
            }
            control @ (RateChoice::Arf | RateChoice::Aarf) if standard.is_qos() => {
                let control = if *control == RateChoice::Arf { "ARF" } else { "AARF" };
                return Err(Error::RateControl { key, control, standard: standard.name() });
            }
            RateChoice::Arf | RateChoice::Aarf => return self.candidates(index, 1, &key),
        };
        if steps.is_empty() {
            return Err(Error::Empty { key });
        }
        if let Some(at) = steps.windows(2).position(|pair| pair[0].0 >= pair[1].0) {
            return Err(Error::Order { key: format!("{key}[{}]", at + 1) });
        }
        steps.into_iter().map(|(at, mcs)| Ok((at, self.mode_of(index, mcs, &key)?))).collect()
    }

    /// Every mode that a node has with up to `nss` streams: by rising rate where there are no streams to tell apart.
    fn candidates(&mut self, index: usize, nss: u8, key: &str) -> Result<Vec<(Time, u16)>, Error> {
        let Phy { standard, width, guard_interval } = self.phy(index);
        let all = (1..=nss).flat_map(|nss| (0..12).map(move |mcs| Mcs::new(mcs, nss)));
        let legal = all.filter(|&mcs| Mode::data(standard, width, guard_interval, mcs, self.params.profile).is_some());
        let mut legal: Vec<Mcs> = legal.collect();
        if !standard.is_qos() {
            let rate =
                |&mcs: &Mcs| Mode::data(standard, width, guard_interval, mcs, self.params.profile).map(|m| m.rate());
            legal.sort_by_key(rate);
        }
        legal.into_iter().map(|mcs| Ok((Time::ZERO, self.mode_of(index, mcs, key)?))).collect()
    }

    /// The index of a node's mode for `mcs`, made if it is new.
    fn mode_of(&mut self, index: usize, mcs: Mcs, key: &str) -> Result<u16, Error> {
        let Phy { standard, width, guard_interval } = self.phy(index);
        let Some(phy) = Mode::data(standard, width, guard_interval, mcs, self.params.profile) else {
            let (mhz, standard) = (width.mhz(), standard.name());
            return Err(Error::Mcs { key: key.to_owned(), mcs: mcs.index, nss: mcs.nss, mhz, standard });
        };
        if let Some(known) = self.modes.iter().position(|mode| mode.phy == phy) {
            return Ok(u16::try_from(known).expect("fewer than 1000 combinations of format, MCS, width and interval"));
        }
        let response = phy.response(standard, self.params.profile);
        let max_psdu = phy.max_psdu().min(standard.max_ampdu());
        self.modes.push(DataMode {
            phy,
            framing: Framing::new(standard),
            response,
            ack: response.duration(ACK),
            block_ack: response.duration(self.block_ack(index)),
            rts: response.duration(RTS),
            cts: response.duration(CTS),
            max_psdu: u32::try_from(max_psdu.get()).expect("an A-MPDU has at most 23 bits of length"),
        });
        self.mode_of(index, mcs, key)
    }

    fn check_background(&self, index: usize) -> Result<(), Error> {
        let Background { from, to, packet, load, ref active, .. } = self.params.background[index];
        let key = |field: &str| format!("background[{index}].{field}");
        for (field, end) in [("from", from), ("to", to)] {
            if end.index() >= self.params.nodes.len() {
                return Err(Error::Node { key: key(field), got: end, needs: "a node of the hop" });
            }
        }
        if !self.linked(from.index(), to.index()) {
            return Err(Error::OutOfReach { key: key("to"), from, to });
        }
        within(key("packet (bytes)"), packet.get() as f64, 1.0, MAX_MSDU as f64)?;
        if let Load::Offered(rate) = load {
            within(key("load (bit/s)"), rate.as_bps() as f64, 1.0, 1e11)?;
        }
        let order = |at: usize| Error::Order { key: key(&format!("active[{at}]")) };
        if let Some(at) = active.iter().position(|(start, end)| start >= end) {
            return Err(order(at));
        }
        match active.windows(2).position(|pair| pair[0].1 > pair[1].0) {
            Some(at) => Err(order(at + 1)),
            None => Ok(()),
        }
    }
}

/// Largest MSDU (9.2.4.7.1): larger packets cannot be sent.
pub(super) const MAX_MSDU: u64 = 2_304;

fn node(index: usize) -> Node {
    Node(u16::try_from(index).expect("at most 1024 nodes"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::AccessClass;
    use crate::wifi::{GuardInterval, Standard, Width};
    use lasthop_units::Rate;

    fn bss() -> Params {
        let mcs = Mcs::new(9, 1);
        let nodes =
            vec![NodeParams::new(Role::Ap, mcs), NodeParams::new(Role::Station { ap: Node(0) }, Mcs::new(4, 2))];
        Params::new(Standard::Dot11ac, Width::Mhz80, GuardInterval::Ns400, nodes)
    }

    fn message(change: impl FnOnce(&mut Params)) -> String {
        let mut params = bss();
        change(&mut params);
        params.validate().expect_err("broken on purpose").to_string()
    }

    #[test]
    fn a_plain_bss_is_valid() {
        let plan = bss().validate().expect("valid");
        assert!(plan.linked(0, 1) && plan.linked(1, 0) && !plan.linked(1, 1));
        assert_eq!(plan.modes()[usize::from(plan.trace(1)[0].1)].phy.rate(), Rate::from_mbit(390));
    }

    #[test]
    fn each_mistake_is_named_with_its_key_and_bound() {
        assert_eq!(message(|p| p.retry_limit = 0), "retry_limit = 0 is outside 1 to 127");
        assert_eq!(message(|p| p.nodes[1].mpdu_error = f64::NAN), "nodes[1].mpdu_error = NaN is outside 0 to 1");
        assert_eq!(message(|p| p.max_ampdu_mpdus = 65), "max_ampdu_mpdus = 65 is outside 1 to 64");
        assert_eq!(
            message(|p| p.nodes[1].rate = RateChoice::Fixed(Mcs::new(6, 3))),
            "nodes[1].rate: MCS 6 with 3 spatial stream(s) at 80 MHz is not part of 802.11ac"
        );
        assert_eq!(message(|p| p.nodes[1].rate = RateChoice::Trace(Vec::new())), "nodes[1].rate is empty");
        let step = |s: u64| (Time::ZERO + Span::from_secs(s), Mcs::new(1, 1));
        assert_eq!(
            message(|p| p.nodes[1].rate = RateChoice::Trace(vec![step(1), step(1)])),
            "nodes[1].rate[1] does not come after the one before it"
        );
        assert_eq!(
            message(|p| p.nodes[1].role = Role::Station { ap: Node(1) }),
            "nodes[1].role.ap = Node(1) is not an access point"
        );
        assert_eq!(
            message(|p| p.reach.set(Node(0), Node(1), Reach::Senses)),
            "nodes[1].role.ap: Node(1) and Node(0) must decode each other, but reach says otherwise"
        );
        assert_eq!(
            message(|p| p.standard = Standard::Dot11a),
            "width = 80 MHz is not part of 802.11a; it ends at 20 MHz"
        );
        assert_eq!(
            message(|p| p.reach = crate::wifi::ReachMatrix::nobody(3)),
            "reach is a matrix for 3 nodes, but there are 2"
        );
    }

    #[test]
    fn a_standard_of_ones_own_must_fit_the_channel_and_ones_peers() {
        let (width, guard_interval) = (Width::Mhz20, GuardInterval::Ns800);
        let with = |standard, role| {
            move |p: &mut Params| {
                p.nodes.push(NodeParams::new(role, Mcs::new(0, 1)));
                p.nodes[2].phy = Some(Phy { standard, width, guard_interval });
                p.reach = crate::wifi::ReachMatrix::all_hear_all(3);
            }
        };
        assert_eq!(
            message(with(Standard::Dot11g, Role::Neighbour)),
            "nodes[2].phy: 802.11g is in another band than the hop, which is 802.11ac"
        );
        let station = message(with(Standard::Dot11a, Role::Station { ap: Node(0) }));
        assert!(station.starts_with("nodes[2].phy = Node(2) is not a neighbour or peer"), "{station}");
        let mut legal = bss();
        with(Standard::Dot11a, Role::Neighbour)(&mut legal);
        let plan = legal.validate().expect("a legacy neighbour");
        assert_eq!((plan.max_ampdu(1), plan.max_ampdu(2), plan.classes()), (64, 1, 4));
    }

    #[test]
    fn a_neighbour_sends_only_to_neighbours() {
        let background = Background {
            from: Node(0),
            to: Node(2),
            class: AccessClass::BestEffort,
            packet: Bytes::new(1500),
            load: Load::Saturated,
            active: Vec::new(),
        };
        let error = message(|p| {
            p.nodes.push(NodeParams::new(Role::Neighbour, Mcs::new(0, 1)));
            p.reach = crate::wifi::ReachMatrix::all_hear_all(3);
            p.background.push(background);
        });
        assert!(error.starts_with("background[0].to:"), "{error}");
    }
}
