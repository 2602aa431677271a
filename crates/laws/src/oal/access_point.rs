//! The access-point law: from the hop's state to one receive window a flow.
//! Source:     \[oal\]; its equations 1.1 to 1.4 are reconstructed.
//! Equations:  see [`super::share`], [`super::capacity`], [`super::window`]
//! Symbols:    as there.
//! Deviations: every managed flow has a loose standing ceiling while the hop is well: a window that exists only once the
//!             queue is long comes a round trip late, since a right edge that was let pass cannot be taken back. Each station has
//!             a class of its own; the worst of them decides for all flows, because they share the driver's queue and the air. The
//!             threshold gives all stations the same.
//! Validity:   flows are reported before the driver's counters of the same interval; a control interval is the time
//!             between two driver reports (4 ms).
//! Checked by: tests::*, tests/integration/conformance

use super::capacity::Capacity;
use super::label::Timing;
use super::learned::{Learned, Learning};
use super::map::{self, Map};
use super::predictor::{BacklogThreshold, Hysteresis, LossClass, Predictor, StationState};
use super::share::{self, Claim};
use super::trainer::Growth;
use super::window;
use super::{CapacityRule, Params, Prediction, Weights, WindowRule};
use crate::{Decision, HopLaw, Model, ParamError, Why};
use lasthop_signals::{FlowId, FlowReport, HopReport, Node, Signal};
use lasthop_units::{Bytes, Rate, Span, Time};
use std::collections::BTreeMap;

/// A flow counts as backlogged for this long after its last data passed, or for a round trip if that is longer.
const ACTIVE: Span = Span::from_millis(50);
/// Horizon of a flow's rate estimate.
const RATE_HORIZON: Span = Span::from_millis(40);
/// A flow that takes this share of what it was given takes all it gets: the rest is what ACK clocking and the rate
/// estimate's 40 ms lose. Chosen, not fitted: a lower value lends out shares that are wanted a moment later.
const GREEDY: f64 = 0.85;
/// A modest flow is expected to want at most this much more than it takes within a control interval; BBR, the law that
/// probes hardest in steady state, asks for 1.25 times its rate.
const DEMAND_GROWTH: f64 = 1.25;

/// Decides for all flows of one access point.
#[derive(Clone)]
pub struct AccessPoint {
    params: Params,
    capacity: Capacity,
    predictor: Box<dyn Predictor>,
    hysteresis: Hysteresis,
    /// Nobody does what it decides.
    watches: bool,
    /// The worst of all stations.
    class: LossClass,
    /// Queue drops counted so far: what is new is what came after its first report.
    drops: BTreeMap<Place, u64>,
    flows: BTreeMap<FlowId, Flow>,
}

/// Where packets are dropped: a station's queue, or one that all share.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Place {
    Station(Node),
    Queue(u16),
}

#[derive(Clone, Debug)]
struct Flow {
    report: FlowReport,
    rate: Rate,
    measured_at: Time,
    measured_acked: Bytes,
    /// Rates by windows, where windows come from it.
    map: Option<Map>,
    given: Option<Rate>,
    decision: Decision,
}

impl AccessPoint {
    /// A law with the predictor that its parameters name.
    ///
    /// # Errors
    /// If a parameter is out of bounds.
    pub fn new(params: Params) -> Result<AccessPoint, ParamError> {
        let threshold = BacklogThreshold::new(params.trigger);
        let predictor: Box<dyn Predictor> = match params.predictor {
            Prediction::Threshold => Box::new(threshold),
            Prediction::Learned => Box::new(Learned::new(params.learning(), threshold)),
        };
        AccessPoint::with_predictor(params, predictor)
    }

    /// A law with a predictor of its own.
    ///
    /// # Errors
    /// If a parameter is out of bounds.
    pub fn with_predictor(params: Params, predictor: Box<dyn Predictor>) -> Result<AccessPoint, ParamError> {
        params.validate()?;
        let hysteresis = Hysteresis::new(params.release_after);
        Ok(AccessPoint {
            params,
            capacity: Capacity::default(),
            predictor,
            hysteresis,
            watches: false,
            class: LossClass::Good,
            drops: BTreeMap::new(),
            flows: BTreeMap::new(),
        })
    }

    fn slack(&self) -> Span {
        self.capacity.service_round().max(self.params.slack).min(self.params.slack_max)
    }

    fn on_flow(&mut self, now: Time, report: &FlowReport) {
        let fresh = Flow {
            report: *report,
            rate: Rate::ZERO,
            measured_at: now,
            measured_acked: report.acked,
            map: (self.params.window == WindowRule::Learned).then(Map::default),
            given: None,
            decision: Decision::unlimited(Why::Unmanaged),
        };
        self.flows.entry(report.flow).or_insert(fresh).observe(now, report);
    }

    fn on_hop(&mut self, now: Time, report: &HopReport) {
        self.capacity.update(now, report, self.class);
        let drains_in = self.capacity.drains_in(report, self.slack());
        let drops = self.new_drops(report);
        self.class = LossClass::Good;
        for station in report.stations.iter().map(|station| station.station) {
            let class = self.predictor.predict(&StationState { now, station, drains_in, drops });
            self.class = self.class.max(class);
        }
        let tight = self.hysteresis.update(self.class.acts()) && !self.predictor.abstains(now);
        self.predictor.acted(tight && !self.watches);
        self.allocate(now, tight);
    }

    fn new_drops(&mut self, report: &HopReport) -> u64 {
        let before = std::mem::take(&mut self.drops);
        let stations = report.stations.iter().map(|station| (Place::Station(station.station), station.queue_drops));
        let queues = report.queues.iter().map(|queue| (Place::Queue(queue.queue), queue.drops));
        self.drops = stations.chain(queues).collect();
        let new = |(place, drops): (&Place, &u64)| drops.saturating_sub(*before.get(place).unwrap_or(drops));
        self.drops.iter().map(new).sum()
    }

    /// Gives each flow its rate and turns it into a window.
    fn allocate(&mut self, now: Time, tight: bool) {
        let slack = self.slack();
        // A flow to a station with an unknown link is left alone: it neither gets a share nor a window.
        let known = |flow: &Flow| self.capacity.link(flow.report.station, slack);
        let sharing: Vec<(FlowId, f64)> = self
            .flows
            .iter()
            .filter(|(_, flow)| flow.is_active(now))
            .filter_map(|(id, flow)| Some((*id, known(flow)?)))
            .collect();
        let mut flows_of: BTreeMap<Node, f64> = BTreeMap::new();
        for (id, _) in &sharing {
            *flows_of.entry(self.flows[id].report.station).or_default() += 1.0;
        }
        let claims: Vec<Claim> = sharing
            .iter()
            .map(|&(id, link)| {
                let flow = &self.flows[&id];
                let beside = flows_of[&flow.report.station];
                let weight = match self.params.weights {
                    Weights::Flow => 1.0,
                    Weights::Station => 1.0 / beside,
                    Weights::Airtime => link / beside,
                    Weights::PotentialDelay => link.sqrt(),
                };
                Claim { weight, link, demand: flow.demand(slack) }
            })
            .collect();
        let rates = match self.params.capacity {
            CapacityRule::Airtime => Some(share::by_airtime(&claims, self.capacity.airtime())),
            // Before there was a slot to go by, the paper's rule knows nothing and limits nothing.
            CapacityRule::Paper => self.capacity.paper().map(|capacity| share::by_capacity(&claims, capacity)),
        };
        for ((id, _), rate) in sharing.iter().zip(rates.iter().flatten()) {
            self.flows.get_mut(id).expect("listed above").given = Some(*rate);
        }
        let (params, capacity) = (&self.params, &self.capacity);
        for flow in self.flows.values_mut() {
            let link = capacity.link(flow.report.station, slack);
            let alone = link.map(|link| Rate::from_bps((link * capacity.airtime()) as u64));
            flow.decision = match (alone, params.window) {
                (None, _) => Decision::unlimited(Why::Unmanaged),
                (Some(alone), WindowRule::Unloaded) => flow.unloaded(params, alone, slack, tight),
                (Some(_), WindowRule::Paper | WindowRule::Learned) => flow.paper(tight),
            };
        }
    }
}

impl Params {
    /// How a learning predictor with these parameters learns.
    pub fn learning(&self) -> Learning {
        let timing = Timing { horizon: self.horizon, repair: self.repair };
        let growth = Growth { depth: self.depth, ..Growth::default() };
        let (explore, seed, age_limit) = (self.explore, self.explore_seed, self.tree_age_limit);
        Learning { timing, growth, explore, seed, age_limit }
    }
}

impl HopLaw for AccessPoint {
    fn sense(&mut self, now: Time, signal: &Signal) {
        self.predictor.sense(now, signal);
        match signal {
            Signal::Flow(report) => self.on_flow(now, report),
            Signal::FlowGone(flow) => {
                self.flows.remove(flow);
            }
            Signal::Hop(report) => self.on_hop(now, report),
            _ => {}
        }
    }

    fn wants_segments(&self) -> bool {
        self.predictor.wants_segments()
    }

    fn only_watches(&mut self) {
        self.watches = true;
    }

    fn decide(&self, _now: Time, each: &mut dyn FnMut(FlowId, Decision)) {
        self.flows.iter().for_each(|(id, flow)| each(*id, flow.decision));
    }

    fn model(&self, now: Time) -> Option<Model> {
        self.predictor.model(now)
    }

    fn name(&self) -> &'static str {
        super::NAME
    }
}

impl Flow {
    fn observe(&mut self, now: Time, report: &FlowReport) {
        self.report = *report;
        let span = now.since(self.measured_at);
        if span < RATE_HORIZON {
            return;
        }
        let carried = report.acked.saturating_sub(self.measured_acked);
        self.rate = Rate::of(carried, span).unwrap_or(Rate::ZERO);
        self.measured_at = now;
        self.measured_acked = report.acked;
        if let (Some(map), Some(window)) = (&mut self.map, map::inferred_window(report, self.rate)) {
            map.learn(now, window, self.rate);
        }
    }

    fn is_active(&self, now: Time) -> bool {
        let patience = window::unloaded_round_trip(&self.report).unwrap_or(Span::ZERO).max(ACTIVE);
        self.report.last_data + patience >= now && !self.report.forwarded.is_zero()
    }

    /// The most that the flow will use, in bits per second.
    fn demand(&self, slack: Span) -> f64 {
        let took = self.rate.as_bps() as f64;
        match self.given {
            Some(given) if took < GREEDY * given.as_bps() as f64 => {
                // Two segments a round trip beyond what it takes: a flow that starts from nothing can show itself.
                let round_trip = window::unloaded_round_trip(&self.report).unwrap_or(ACTIVE) + slack;
                let step = Rate::of(self.report.mss * 2, round_trip).unwrap_or(Rate::ZERO);
                took * DEMAND_GROWTH + step.as_bps() as f64
            }
            _ => f64::INFINITY,
        }
    }

    fn unloaded(&self, params: &Params, alone: Rate, slack: Span, tight: bool) -> Decision {
        let Some(round_trip) = window::unloaded_round_trip(&self.report) else {
            return Decision::unlimited(Why::Unmanaged);
        };
        let mss = self.report.mss;
        let ceiling = window::for_rate(alone.scale(params.ceiling_gain), round_trip, slack, mss);
        match self.given {
            Some(rate) if tight => {
                let rwnd = window::for_rate(rate, round_trip, slack, mss).min(ceiling);
                Decision { rwnd: Some(rwnd), ..Decision::unlimited(Why::Tight) }
            }
            _ => Decision { rwnd: Some(ceiling), ..Decision::unlimited(Why::Ceiling) },
        }
    }

    fn paper(&self, tight: bool) -> Decision {
        let round_trip = self.given.and_then(|_| window::loaded_round_trip(&self.report, self.rate));
        match (self.given, round_trip) {
            (Some(rate), Some(round_trip)) if tight => {
                let learned = self.map.and_then(|map| map.window(rate)).map(|window| window.max(self.report.mss * 2));
                let rwnd = learned.unwrap_or_else(|| window::for_rate(rate, round_trip, Span::ZERO, self.report.mss));
                Decision { rwnd: Some(rwnd), ..Decision::unlimited(Why::Tight) }
            }
            _ => Decision::unlimited(Why::Unmanaged),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lasthop_signals::{ChannelTime, StationReport};

    const MS: u64 = 1_000_000;

    fn flow(id: u32, station: u16, at: Time, acked: u64) -> Signal {
        Signal::Flow(FlowReport {
            flow: FlowId(id),
            station: Node(station),
            forwarded: Bytes::new(acked + 1),
            acked: Bytes::new(acked),
            in_flight: Bytes::new(100_000),
            wired_rtt: Some(Span::from_millis(20)),
            wireless_rtt: Some(Span::from_millis(1)),
            mss: Bytes::new(1448),
            advertised: Bytes::new(3_000_000),
            last_data: at,
            recovering: false,
        })
    }

    /// Two stations at 390 Mbit/s; in 4 ms each gets two exchanges of 20 MPDUs.
    fn hop(n: u64, backlog: u32) -> Signal {
        let station = |station| StationReport {
            station: Node(station),
            backlog_packets: backlog,
            backlog_bytes: Bytes::new(u64::from(backlog) * 1500),
            head_wait: Some(Span::ZERO),
            queue_drops: 0,
            tx_attempts: Some(n * 40),
            tx_retries: Some(0),
            tx_failed: Some(0),
            tx_packets: n * 40,
            tx_bytes: Bytes::new(n * 40 * 1500),
            rx_packets: 0,
            rx_bytes: Bytes::ZERO,
            tx_airtime: Some(Span::from_micros(n * 2 * 725)),
            rx_airtime: Some(Span::ZERO),
            tx_ppdus: Some(n * 2),
            phy_rate: Rate::from_mbit(390),
        };
        let tx = Span::from_micros(n * 4 * 725);
        Signal::Hop(HopReport {
            channel: ChannelTime {
                active: Span::from_millis(n * 4),
                busy: Some(tx),
                rx: Some(Span::ZERO),
                tx: Some(tx),
                ..ChannelTime::default()
            },
            stations: vec![station(1), station(2)],
            ..HopReport::default()
        })
    }

    fn run(params: Params, backlog: u32) -> Vec<(FlowId, Decision)> {
        let mut law = AccessPoint::new(params).expect("valid parameters");
        for n in 1..100 {
            let now = Time::from_nanos(n * 4 * MS);
            // 14.5 MB/s each: the payload that the exchanges carry.
            for id in 1..=2u16 {
                law.sense(now, &flow(u32::from(id), id, now, n * 40 * 1448));
            }
            law.sense(now, &hop(n, backlog));
        }
        let mut decisions = Vec::new();
        law.decide(Time::from_nanos(400 * MS), &mut |id, decision| decisions.push((id, decision)));
        decisions
    }

    #[test]
    fn a_backlogged_hop_gives_each_flow_half_of_what_it_carries() {
        let decisions = run(Params::default(), 100);
        assert_eq!(decisions.len(), 2);
        for (_, decision) in &decisions {
            assert_eq!(decision.why, Why::Tight);
            // Each carries 40 * 1500 B in 4 ms, 120 Mbit/s, of a channel that is 72.5 % busy with it; extrapolated to
            // the frames of a 5 ms round (2.5 ms a station, 58 MPDUs) that is 156 Mbit/s: 507 kB over 21 + 5 ms.
            let kb = decision.rwnd.expect("limited").get() / 1000;
            assert!((430..=530).contains(&kb), "{kb} kB");
        }
        assert_eq!(decisions[0].1, decisions[1].1);
    }

    #[test]
    fn a_hop_without_backlog_keeps_only_the_ceiling() {
        let loose = run(Params::default(), 0)[0].1;
        let tight = run(Params::default(), 100)[0].1;
        assert_eq!(loose.why, Why::Ceiling);
        assert!(loose.rwnd > tight.rwnd);
    }

    #[test]
    fn the_papers_rules_leave_a_calm_hop_alone() {
        let params = Params { capacity: CapacityRule::Paper, window: WindowRule::Paper, ..Params::default() };
        assert_eq!(run(params.clone(), 0)[0].1, Decision::unlimited(Why::Unmanaged));
        assert!(run(params, 100)[0].1.rwnd.is_some());
    }
}
