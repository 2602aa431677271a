//! What runs where.

pub mod table;

use crate::bounds::unknown_name;
use crate::group::group;
use crate::problem::Kind;
use crate::quantity::either;
use crate::read::{At, Context, Entry};
use crate::tables::{Tables, World};
use crate::{Hosts, Part, SetUp};
use lasthop_laws::Place;
use lasthop_laws::aggregation::FRAMES;
use table::{Agent, Law, Picked};

pub(crate) fn laws(raw: &Tables, cx: &mut Context) -> Option<Vec<SetUp>> {
    let wired = raw.hop.get().is_some_and(|hop| !hop.wifi.given && !hop.cell.given);
    let tables = raw.laws.get()?.0;
    if tables.is_empty() {
        let remedy = "add a table such as `[laws.cubic]` with `sender = \"cubic\"`";
        cx.problem(Kind::OutOfRange, &raw.laws.at, "a scenario without laws compares nothing", remedy);
        return None;
    }
    let read: Vec<Option<SetUp>> = tables.iter().map(|(name, table)| law(name, table, (raw, wired), cx)).collect();
    read.into_iter().collect()
}

fn law(name: &str, table: &Law, (raw, wired): (&Tables, bool), cx: &mut Context) -> Option<SetUp> {
    let legal = |c: char| c.is_ascii_alphanumeric() || "+-_.".contains(c);
    if name.is_empty() || name.len() > 64 || !name.chars().all(legal) {
        let what = format!("\"{name}\" is not a name for a law");
        cx.problem(
            Kind::OutOfRange,
            &table.place,
            what,
            "use 1 to 64 letters, digits, `+`, `-`, `_` and `.`: names are listed with commas after --laws",
        );
    }
    let cell = raw.hop.get().is_some_and(|hop| hop.cell.given);
    let queue = optional(&table.queue, cx, |queue, cx| raw.hop.get()?.queue::<Tables>(&queue, cx));
    let parts = parts(table, raw, cx);
    let full = |place| {
        let part = parts.iter().flatten().find(|(part, _)| part.place == place);
        part.map(|(_, at)| at.clone())
    };
    if let Some(at) = table.regulator.given_at().cloned().or_else(|| full(Place::Proxy)).filter(|_| !cell) {
        proxy(&at, table.agent.given || full(Place::AccessPoint).is_some(), (raw, wired), cx);
    }
    let frames = parts.iter().flatten().find(|(part, _)| part.law.name() == FRAMES.name);
    if let (Some((_, at)), None) = (frames, full(Place::Proxy)) {
        let remedy = "add `regulator = {}`, or delete this part";
        cx.impossible(at, "what a station tells is for the law of a proxy, and there is none", remedy);
    }
    if let Some(at) = full(Place::Terminal).filter(|_| wired) {
        let remedy = "delete this part, or use `[hop.wifi]`";
        cx.impossible(&at, "terminals count each other by what they hear on a radio, and this hop is wired", remedy);
    }
    let mesh = raw.hop.get().and_then(|hop| hop.wifi.get()).is_some_and(|wifi| wifi.mesh.given);
    for (part, at) in parts.iter().flatten().filter(|(part, _)| mesh && part.place != Place::Sender) {
        let what = format!("a law at `{}` is for a BSS, and this hop is a mesh", part.place);
        cx.impossible(at, what, "delete this part, or the key `mesh` of the hop");
    }
    let at_ends = |place| matches!(place, Place::Sender | Place::Receiver);
    for (part, at) in parts.iter().flatten().filter(|(part, _)| cell && !at_ends(part.place)) {
        let what = format!("a law at `{}` is for a BSS, and this hop is a cell", part.place);
        cx.impossible(at, what, "delete this part, or use `[hop.wifi]`");
    }
    if raw.world.get() == Some(World::Sim) {
        let kernels = parts.iter().flatten().filter(|(part, _)| part.law.is_kernel());
        for (part, at) in kernels {
            let what = format!("`{}` is the kernel's, and the simulator has none", part.law.name());
            cx.impossible(at, what, "write `world = \"lab\"`, or a law of ours");
        }
    }
    let sender = parts
        .as_ref()
        .and_then(|parts| parts.iter().find(|(part, _)| part.place == Place::Sender && part.hosts == Hosts::All));
    let bare = Place::Sender.law(name);
    if let (Some(bare), Some((sender, at))) = (bare, sender)
        && sender.law.name() != bare.name
    {
        let what = format!("a law called \"{name}\" would run {}", sender.law.name());
        cx.impossible(at, what, format!("write `sender = \"{}\"`, or call the law otherwise", bare.name));
    }
    if parts.is_some() && sender.is_none() {
        let remedy = "add `sender = \"cubic\"`, or `default` to the hosts of `sender`";
        cx.problem(Kind::Missing, &table.place.below("sender"), "nothing says what all senders run", remedy);
        return None;
    }
    let parts = parts?.into_iter().map(|(part, _)| part).collect();
    Some(SetUp { name: name.to_owned(), queue: queue?, parts })
}

/// What an edge proxy cannot stand beside.
fn proxy(at: &At, agent: bool, (raw, wired): (&Tables, bool), cx: &mut Context) {
    if wired {
        let remedy = "delete this key, or use `[hop.wifi]`";
        cx.impossible(at, "a wired hop has no frames that a station could report", remedy);
    }
    let wifi = raw.hop.get().and_then(|hop| hop.wifi.get());
    if let Some(standard) = wifi.and_then(|wifi| wifi.standard.get()).filter(|standard| !standard.has_mcs()) {
        let what = format!("{standard} does not aggregate, and the regulator goes by how many packets share a frame");
        cx.impossible(at, what, "delete this key, or use \"802.11n\", \"802.11ac\" or \"802.11ax\"");
    }
    if agent {
        let what = "the agent rewrites TCP windows, and the proxy ends TCP connections before they reach it";
        cx.impossible(at, what, "keep one of `agent` and `regulator`");
    }
}

/// The parts of a set-up, each with its place in the file.
fn parts(table: &Law, raw: &Tables, cx: &mut Context) -> Option<Vec<(Part, At)>> {
    let mut parts: Vec<(Part, At)> = Vec::new();
    let all = |place, picked: Picked| (Part { place, hosts: Hosts::All, law: picked.choice }, picked.at);
    let mut whole = true;
    if table.sender.given {
        let senders = table.sender.get();
        whole &= senders.is_some();
        if let Some(senders) = senders {
            parts.extend(senders.default.map(|law| all(Place::Sender, law)));
            for (name, law) in senders.named {
                let hosts = hosts(Place::Sender, &[name], &law.at, raw, cx);
                whole &= hosts.is_some();
                let part = |names| Part { place: Place::Sender, hosts: Hosts::Named(names), law: law.choice };
                parts.extend(hosts.map(|names| (part(names), law.at)));
            }
        }
    }
    if table.agent.given {
        let agent = table.agent.get();
        whole &= agent.is_some();
        parts.extend(agent.map(|Agent(law)| all(Place::AccessPoint, law)));
    }
    if table.regulator.given {
        let regulator = table.regulator.get();
        whole &= regulator.is_some();
        if let Some(regulator) = regulator {
            parts.extend([all(Place::Proxy, regulator.law), all(Place::Station, regulator.frames)]);
        }
    }
    for part in table.part.get()? {
        let Some(place) = part.at.get() else { continue };
        let hosts = match &part.on.value {
            None if part.on.given => None,
            None => Some(Hosts::All),
            Some(names) if matches!(place, Place::Sender | Place::AccessPoint | Place::Terminal) => {
                hosts(place, names, &part.on.at, raw, cx).map(Hosts::Named)
            }
            Some(names) => everywhere(place, names, &part.on.at, raw, cx),
        };
        whole &= hosts.is_some();
        parts.extend(hosts.map(|hosts| (Part { place, hosts, law: part.law.choice }, part.law.at)));
    }
    for (i, (part, at)) in parts.iter().enumerate() {
        let earlier = || parts[..i].iter().map(|(earlier, _)| earlier).filter(|earlier| earlier.place == part.place);
        let twice = match &part.hosts {
            Hosts::All => earlier().any(|earlier| earlier.hosts == Hosts::All).then(|| "all hosts".to_owned()),
            Hosts::Named(names) => names.iter().enumerate().find_map(|(n, name)| {
                let named = |hosts: &Hosts| matches!(hosts, Hosts::Named(names) if names.contains(name));
                let again = names[..n].contains(name) || earlier().any(|earlier| named(&earlier.hosts));
                again.then(|| format!("\"{name}\""))
            }),
        };
        if let Some(who) = twice {
            let what = format!("two laws at `{}` for {who}", part.place);
            cx.impossible(at, what, "keep one of them: a host runs one law at a place");
            whole = false;
        }
    }
    whole.then_some(parts)
}

/// All hosts of the place, if `names` are all of them: no world runs a law there on some yet.
fn everywhere(place: Place, names: &[String], at: &At, raw: &Tables, cx: &mut Context) -> Option<Hosts> {
    let found = hosts(place, names, at, raw, cx)?;
    let further = raw.access_point.get()?.len();
    let all = if place == Place::Station { raw.station.get()?.len() } else { 1 + further };
    if found.len() < all {
        let what = format!("a law at `{place}` on some of its hosts only, and no world can have that");
        cx.impossible(at, what, "delete this key, or name all of them");
        return None;
    }
    Some(Hosts::All)
}

/// The hosts of these names that can have a law at `place`, groups of stations spelled out.
fn hosts(place: Place, names: &[String], at: &At, raw: &Tables, cx: &mut Context) -> Option<Vec<String>> {
    let stations: Vec<String> = raw.station.get()?.iter().filter_map(|station| station.name.get()).collect();
    let further = raw.access_point.get()?;
    let access_points: Vec<String> =
        std::iter::once(SetUp::AP.to_owned()).chain(further.iter().filter_map(|table| table.name.get())).collect();
    let wired: Vec<String> = raw.host.get()?.iter().filter_map(|table| table.name.get()).collect();
    let wired: Vec<String> = std::iter::once(SetUp::SERVER.to_owned()).chain(wired).collect();
    let here: Vec<&String> = match place {
        Place::Sender | Place::Receiver => wired.iter().chain(&access_points).chain(&stations).collect(),
        Place::Station | Place::Terminal => stations.iter().collect(),
        Place::AccessPoint | Place::Proxy | Place::Relay => access_points.iter().collect(),
    };
    let has_stations = !matches!(place, Place::AccessPoint | Place::Proxy | Place::Relay);
    if names.is_empty() {
        cx.problem(Kind::OutOfRange, at, "a law on no host", "name a host, or delete `on` for all of them");
        return None;
    }
    let mut found = Vec::new();
    for (n, name) in names.iter().enumerate() {
        if names[..n].contains(name) {
            cx.impossible(at, format!("\"{name}\" stands here twice"), "name each host once");
            return None;
        }
        let group = || group(name, &stations).into_iter().map(|place| stations[place].clone());
        if here.contains(&name) {
            found.push(name.clone());
        } else if has_stations && group().next().is_some() {
            found.extend(group());
        } else if wired.iter().chain(&access_points).chain(&stations).any(|host| host == name) {
            let what = format!("\"{name}\" cannot have a law at `{place}`");
            let all: Vec<String> = here.iter().map(|host| format!("\"{host}\"")).collect();
            cx.impossible(at, what, format!("write {}", either(&all)));
            return None;
        } else {
            let known = here.iter().map(|host| host.as_str());
            unknown_name(at, format!("there is no host \"{name}\""), name, known, cx);
            return None;
        }
    }
    Some(found)
}

/// `Some(None)` if the key is absent, `None` if it is wrong.
fn optional<T: Clone, U>(
    entry: &Entry<T>,
    cx: &mut Context,
    build: impl FnOnce(T, &mut Context) -> Option<U>,
) -> Option<Option<U>> {
    if !entry.given {
        return Some(None);
    }
    build(entry.get()?, cx).map(Some)
}
