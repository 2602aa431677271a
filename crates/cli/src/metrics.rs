//! What a Prometheus server reads of a program, in the text format of OpenMetrics.

use crate::http;
use anyhow::Context as _;
use lasthop_agents::service::counters::Meaning;
use lasthop_agents::service::status::{Status, Viewer};
use lasthop_report::account::is_maximum;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Registry;
use std::fmt::{self, Debug, Formatter};
use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, Mutex, PoisonError};

/// Serves what was shown last.
pub struct Exporter<Seen> {
    listener: TcpListener,
    prefix: String,
    add: fn(&Seen, &mut Registry),
    seen: Mutex<Seen>,
}

impl<Seen: Default + Send + 'static> Exporter<Seen> {
    /// Takes the address. `add` registers the metrics, to the names of which `prefix` is added.
    pub fn bind(address: SocketAddr, prefix: &str, add: fn(&Seen, &mut Registry)) -> anyhow::Result<Exporter<Seen>> {
        let listener = TcpListener::bind(address).with_context(|| format!("--listen {address}"))?;
        Ok(Exporter { listener, prefix: prefix.to_owned(), add, seen: Mutex::default() })
    }

    /// Where it listens.
    pub fn address(&self) -> anyhow::Result<SocketAddr> {
        self.listener.local_addr().context("--listen")
    }

    /// Replaces what is served.
    pub fn publish(&self, seen: Seen) {
        *self.seen.lock().unwrap_or_else(PoisonError::into_inner) = seen;
    }

    /// Begins to serve, on a thread of its own that ends with the process.
    pub fn begin(self) -> anyhow::Result<Arc<Exporter<Seen>>> {
        let (exporter, thread) = (Arc::new(self), std::thread::Builder::new().name("lasthop-metrics".to_owned()));
        let serving = Arc::clone(&exporter);
        thread.spawn(move || serving.serve()).context("a thread for --listen")?;
        Ok(exporter)
    }

    /// Serves for ever.
    pub fn serve(&self) {
        http::serve(&self.listener, &|| {
            text(&self.prefix, &*self.seen.lock().unwrap_or_else(PoisonError::into_inner), self.add)
        });
    }
}

impl<State: Default + Clone + Send + 'static> Viewer<State> for Exporter<Status<State>> {
    fn serve(&self) {
        Exporter::serve(self);
    }

    fn show(&self, status: &Status<State>) {
        self.publish(status.clone());
    }
}

impl<Seen> Debug for Exporter<Seen> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Exporter").field(&self.listener).finish()
    }
}

/// The metrics that `add` registers.
pub fn text<Seen>(prefix: &str, seen: &Seen, add: fn(&Seen, &mut Registry)) -> String {
    let mut registry = Registry::with_prefix(prefix);
    add(seen, &mut registry);
    let mut out = String::new();
    encode(&mut out, &registry).expect("a string takes everything");
    out
}

/// Registers what an agent shows whatever it does: for how long it has run, and the counters of its
/// account that have these meanings.
pub fn add<State>(status: &Status<State>, meanings: &[Meaning], registry: &mut Registry) {
    registry.register("running_seconds", "Time since the agent began", ConstGauge::new(status.running_s));
    for Meaning { name, metric, doc } in meanings {
        let Some(value) = status.done.get(*name) else { continue };
        let help = doc.iter().map(|line| line.trim()).collect::<Vec<_>>().join(" ");
        let help = help.trim_end_matches('.');
        match (value.as_u64(), value.as_f64()) {
            (Some(count), _) if !is_maximum(name) => registry.register(*metric, help, ConstCounter::new(count)),
            (_, Some(number)) => registry.register(*metric, help, ConstGauge::new(number)),
            _ => {}
        }
    }
}
