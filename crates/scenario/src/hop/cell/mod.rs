//! An LTE cell: its carriers, its stations and what it serves beside them.

mod power;
mod station;
pub mod table;

use super::kind::HopTable;
use crate::bounds::{Run, plain, span};
use crate::cable::line;
use crate::problem::Kind;
use crate::quantity::{Decibels, show};
use crate::queue::Queue;
use crate::read::{Context, Entry};
use crate::tables::{Tables, World};
use lasthop_radio::LastHop;
use lasthop_radio::cell::codewords::MOST_LAYERS;
use lasthop_radio::cell::mcs::{self, Cqi};
use lasthop_radio::cell::{
    Aggregation, Background, BlockError, Bursts, Link, MOST_CARRIERS, Params, Scheduler, StationParams,
};
use lasthop_radio::queue::HopQueue;
use lasthop_radio::wifi::Db;
use lasthop_units::{Bytes, Span};
use table::{Bandwidth, BurstSizes, CellBackground, CellHop, CellLoad, CellScheduler, Modulation};

/// Above this hardly a block of the shortest kinds arrives.
const MOST_ERRORS: f64 = 0.01;
/// What a burst holds where nothing is said: a small page.
const BURST: Bytes = Bytes::new(100_000);

impl HopTable<Tables> for CellHop {
    const CALLED: &'static str = "a cell";
    const INSTEAD: &'static str = "in a cell, write `cqi`";

    fn plan(&self, raw: &Tables, _: Run, cx: &mut Context) -> Option<LastHop> {
        alone(self, raw, cx);
        let carriers = carriers(&self.carriers, cx);
        let count = carriers.as_ref().map(Vec::len);
        let scheduler = scheduler(self, cx);
        let why = "a packet must fit, and packets must fit in memory";
        let queue = cx.within(&plain(&self.queue), (Bytes::new(2_000), Bytes::new(1_000_000_000)), show, why);
        let uplink = line(&self.uplink_rate, &self.uplink_delay, &self.uplink_queue, cx);
        let aggregation = aggregation(self, cx);
        let link = link(self, cx);
        let tables = raw.station.get()?;
        let stations: Vec<Option<StationParams>> =
            tables.iter().map(|table| station::station(&table.cell, (uplink, link), count, cx)).collect();
        let tables = self.background.get();
        let background: Option<Vec<Option<Background>>> =
            tables.map(|tables| tables.iter().map(|table| self::background(table, carriers.as_deref(), cx)).collect());
        let params = Params {
            scheduler: scheduler?,
            use_remainder: self.use_remainder.get()?,
            queue: queue?,
            background: background?.into_iter().collect::<Option<_>>()?,
            aggregation: aggregation?,
            // How much of a carrier is given away is told by the base station, whatever decoders see.
            truth: true,
            ..Params::new(carriers?, stations.into_iter().collect::<Option<_>>()?)
        };
        // Whatever is left has been checked above, with its place.
        params
            .validate()
            .map_err(|error| cx.impossible(&self.place, error.to_string(), "change that value"))
            .map(LastHop::from)
            .ok()
    }

    fn queue(table: &Queue, cx: &mut Context) -> Option<HopQueue> {
        let what = "the base station of a cell has a queue for each station, which no law changes";
        cx.impossible(&table.place, what, "delete this key; how long it is says `hop.cell.queue`");
        None
    }
}

/// What a cell cannot stand beside.
fn alone(hop: &CellHop, raw: &Tables, cx: &mut Context) {
    if let Some(neighbour) = raw.neighbour.get().unwrap_or_default().first() {
        let remedy = "delete this table, or write `[[hop.cell.background]]`";
        cx.impossible(&neighbour.place, "a cell has no neighbours on its channel", remedy);
    }
    if let Some(table) = raw.access_point.get().unwrap_or_default().first() {
        cx.impossible(&table.place, "a cell has one base station", "delete this table, or use `[hop.wifi]`");
    }
    if raw.world.get() == Some(World::Lab) {
        cx.impossible(&hop.place, "the lab has no cell", "write `world = \"sim\"`");
    }
}

fn carriers(entry: &Entry<Vec<Bandwidth>>, cx: &mut Context) -> Option<Vec<u8>> {
    let carriers = entry.get()?;
    if !(1..=MOST_CARRIERS).contains(&carriers.len()) {
        let what = format!("{} carriers are outside 1 to {MOST_CARRIERS} (36.331: five serving cells)", carriers.len());
        cx.problem(Kind::OutOfRange, &entry.at, what, "name one carrier at least: `carriers = [\"10 MHz\"]`");
        return None;
    }
    Some(carriers.into_iter().map(|Bandwidth(prb)| prb).collect())
}

fn scheduler(hop: &CellHop, cx: &mut Context) -> Option<Scheduler> {
    match hop.scheduler.get()? {
        CellScheduler::RoundRobin => {
            if let Some(at) = hop.fairness_window.given_at() {
                let remedy = "delete this key, or write `scheduler = \"proportional-fair\"`";
                cx.impossible(at, "round robin measures nobody", remedy);
            }
            Some(Scheduler::RoundRobin)
        }
        CellScheduler::ProportionalFair if hop.fairness_window.given => {
            let bounds = (Span::from_millis(1), Span::from_secs(100));
            let window = span(&hop.fairness_window, bounds, "a subframe at least, and less than a run", cx)?;
            let window = u32::try_from(window.as_nanos() / Span::from_millis(1).as_nanos()).ok()?;
            Some(Scheduler::ProportionalFair { window })
        }
        CellScheduler::ProportionalFair => Some(Scheduler::PROPORTIONAL_FAIR),
    }
}

fn aggregation(hop: &CellHop, cx: &mut Context) -> Option<Aggregation> {
    let ms = Span::from_millis;
    let share = cx.within(&hop.activate_share, (0.01, 1.0), |share| share.to_string(), "a share of what there is");
    let window = span(&hop.activate_window, (ms(1), ms(10_000)), "a subframe at least, and less than a run", cx);
    let delay = span(&hop.activation_delay, (ms(0), ms(10_000)), "less than a run", cx);
    let why = "two radio frames at least, as the timer has it, and less than a run";
    let unused = span(&hop.deactivate_after, (ms(20), Span::from_secs(1000)), why, cx);
    Some(Aggregation { window: window?, share: share?, delay: delay?, unused: Some(unused?) })
}

/// What stands between a station's power and its quality.
fn link(hop: &CellHop, cx: &mut Context) -> Option<Link> {
    let why = "a receiver adds some noise";
    let noise = cx.within(&plain(&hop.noise_figure), (Decibels(0), Decibels(30_000)), show, why);
    let why = "0 dB without other cells, some 30 dB beside a strong one";
    let margin = cx.within(&plain(&hop.interference_margin), (Decibels(0), Decibels(60_000)), show, why);
    let db = |ratio: Decibels| Db(ratio.0 as f64 / 1_000.0);
    Some(Link { noise_figure: db(noise?), margin: db(margin?) })
}

fn background(table: &CellBackground, carriers: Option<&[u8]>, cx: &mut Context) -> Option<Background> {
    let most = carriers.map_or(MOST_CARRIERS, <[u8]>::len) as u64;
    let carrier = cx.within(&table.carrier, (1, most), |n| n.to_string(), "the carriers of the hop");
    let carrier = carrier.and_then(|carrier| u8::try_from(carrier - 1).ok());
    let cqi = cqi(&table.cqi, 1, cx);
    let kind = table.kind.get()?;
    let prb = carriers.zip(carrier).map_or(110, |(carriers, carrier)| carriers[usize::from(carrier)]);
    let (fastest, why) = match kind {
        CellLoad::Data => (1e5, "more than one in each subframe is one long burst"),
        CellLoad::Control => (f64::from(prb / 4) * 1000.0, "four PRB pairs each, and a carrier has no more"),
    };
    let rate = cx.within(&table.per_second, (0.001, fastest), |rate| rate.to_string(), why);
    if kind == CellLoad::Control {
        let data = [
            table.size.given_at(),
            table.sizes.given_at(),
            table.bit_error_rate.given_at(),
            table.layers.given_at(),
            table.modulation.given_at(),
        ];
        for at in data.into_iter().flatten() {
            let what = format!("signalling has no `{}`", at.name());
            cx.impossible(at, what, "delete this key, or write `kind = \"data\"`");
        }
        return Some(Background::Control { carrier: carrier?, cqi: cqi?, rate: rate? });
    }
    let errors = errors(&table.bit_error_rate, cx);
    let layers = layers(&table.layers, cx);
    let tables = tables(&table.modulation);
    let size = if table.size.given {
        let bounds = (Bytes::new(1), Bytes::new(1_000_000_000));
        cx.within(&plain(&table.size), bounds, show, "a byte at least")
    } else {
        Some(BURST)
    };
    let sizes = if table.sizes.given { table.sizes.get()? } else { BurstSizes::Exponential };
    let bursts = match sizes {
        BurstSizes::Fixed => Bursts::Fixed(size?),
        BurstSizes::Exponential => Bursts::Exponential(size?),
    };
    Some(Background::Data {
        carrier: carrier?,
        layers: layers?,
        tables: tables?,
        cqi: cqi?,
        errors: errors?,
        rate: rate?,
        bursts,
    })
}

fn cqi(entry: &Entry<u64>, least: u64, cx: &mut Context) -> Option<Cqi> {
    let number = cx.within(entry, (least, 15), |n| n.to_string(), "36.213: four bits, of which 0 is out of range")?;
    u8::try_from(number).ok().and_then(Cqi::new)
}

fn errors(entry: &Entry<f64>, cx: &mut Context) -> Option<BlockError> {
    if !entry.given {
        return Some(BlockError::NONE);
    }
    let why = "a probability for each bit; above it hardly a block arrives";
    let rate = cx.within(entry, (0.0, MOST_ERRORS), |p| p.to_string(), why)?;
    Some(BlockError::BitErrorRate { rate, combining: BlockError::COMBINING })
}

fn layers(entry: &Entry<u64>, cx: &mut Context) -> Option<u8> {
    optional(entry, 1, (1, u64::from(MOST_LAYERS)), "one to four layers are modelled", cx)
}

fn tables(entry: &Entry<Modulation>) -> Option<mcs::Tables> {
    match if entry.given { entry.get()? } else { Modulation::Qam64 } {
        Modulation::Qam64 => Some(mcs::Tables::Qam64),
        Modulation::Qam256 => Some(mcs::Tables::Qam256),
    }
}

fn optional(entry: &Entry<u64>, default: u64, bounds: (u64, u64), why: &str, cx: &mut Context) -> Option<u8> {
    let number = if entry.given { cx.within(entry, bounds, |n| n.to_string(), why)? } else { default };
    u8::try_from(number).ok()
}
