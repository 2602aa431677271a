//! Hosts, cables and routes beside the short form.

use crate::Scenario;
use crate::bounds::{name, unique, unknown_name};
use crate::cable::{Link, Route};
use crate::graph::{self, Cable, Graph, HostRole, Medium};
use crate::group::group;
use crate::model::Further;
use crate::problem::Kind;
use crate::read::{At, Context, Entry};
use crate::tables::Tables;
use lasthop_radio::{LastHop, wired};
use lasthop_signals::{HostId, Node};
use lasthop_units::{Rate, Span};

/// What was made of the tables, and the names by which hosts are known.
pub(crate) struct Known {
    /// `None` if a table is wrong.
    pub made: Option<Further>,
    names: Vec<(String, HostId)>,
}

impl Known {
    /// The host called `name`.
    pub fn host(&self, name: &str) -> Option<HostId> {
        self.names.iter().find(|(known, _)| known == name).map(|(_, host)| *host)
    }

    /// The names of all hosts.
    pub fn names(&self) -> impl Iterator<Item = &str> + Clone {
        self.names.iter().map(|(name, _)| name.as_str())
    }

    /// The host that a key names.
    fn named(&self, name: &str, at: &At, cx: &mut Context) -> Option<HostId> {
        let found = self.host(name);
        if found.is_none() {
            unknown_name(at, format!("there is no host \"{name}\""), name, self.names(), cx);
        }
        found
    }
}

/// The server, the access point, the stations, and what the file adds.
pub(crate) fn further(raw: &Tables, stations: &[String], hop: Option<&LastHop>, cx: &mut Context) -> Option<Known> {
    let (tables, links, routes) = (raw.host.get()?, raw.link.get()?, raw.route.get()?);
    for table in &tables {
        name(&table.name, &["each", "server", "ap", "edge", "default", "law"], cx);
    }
    let hosts = tables.iter().map(|table| &table.name);
    let all: Vec<&Entry<String>> = hosts.collect();
    unique(&all, "host", cx);
    let aps: Vec<String> = raw.access_point.get()?.iter().filter_map(|table| table.name.get()).collect();
    for table in &tables {
        let Some(taken) = table.name.get() else { continue };
        let who = if stations.contains(&taken) {
            "a station is"
        } else if !group(&taken, stations).is_empty() {
            "a group of stations is"
        } else if aps.contains(&taken) {
            "an access point is"
        } else {
            continue;
        };
        let what = format!("{who} called \"{taken}\" too");
        cx.impossible(&table.name.at, what, "give each host a name of its own");
    }
    let first = Scenario::station_host(stations.len()).index() + usize::from(raw.backhaul.given);
    let id = |place: usize| u16::try_from(place).ok().map(HostId);
    let mut names = vec![("server".to_owned(), Scenario::SERVER), ("ap".to_owned(), Scenario::AP_HOST)];
    names.extend(stations.iter().enumerate().map(|(place, name)| (name.clone(), Scenario::station_host(place))));
    for (place, table) in tables.iter().enumerate() {
        names.extend(table.name.get().zip(id(first + place)));
    }
    let hosts: Option<Vec<String>> = tables.iter().map(|table| table.name.get()).collect();
    let mut known = Known { made: None, names };
    let cables: Vec<_> = links.iter().map(|table| cable(table, &known, cx)).collect();
    let made: Vec<_> = routes.iter().map(|table| route(table, &known, cx)).collect();
    for (n, table) in routes.iter().enumerate() {
        let same = |other: &Option<graph::Route>| other.zip(made[n]).is_some_and(|(a, b)| (a.at, a.to) == (b.at, b.to));
        if made[..n].iter().any(same) {
            let what = "a second route from the same host to the same host";
            cx.impossible(&table.place, what, "keep one of them");
        }
    }
    let whole = cables.into_iter().collect::<Option<_>>().zip(made.into_iter().collect::<Option<_>>()).zip(hosts);
    if let Some(((cables, routes), hosts)) = whole {
        let made = Further { hosts, cables, routes };
        known.made = reachable(raw, (&known, &made), (stations.len(), hop), cx).map(|()| made);
    }
    Some(known)
}

fn cable(table: &Link, known: &Known, cx: &mut Context) -> Option<(Cable, [HostId; 2])> {
    let cable = table.cable.cable(cx);
    let between = table.between.get()?;
    let [a, b] = between.as_slice() else {
        let what = format!("a cable has two ends, and here are {}", between.len());
        cx.problem(Kind::OutOfRange, &table.between.at, what, "write two names: `between = [\"server\", \"ap\"]`");
        return None;
    };
    if a == b {
        let what = format!("a cable from \"{a}\" to itself");
        cx.impossible(&table.between.at, what, "write two different hosts");
        return None;
    }
    let ends = [known.named(a, &table.between.at, cx), known.named(b, &table.between.at, cx)];
    Some((cable?, [ends[0]?, ends[1]?]))
}

fn route(table: &Route, known: &Known, cx: &mut Context) -> Option<graph::Route> {
    let mut host = |entry: &Entry<String>| known.named(&entry.get()?, &entry.at, cx);
    let (at, to, via) = (host(&table.at), host(&table.to), host(&table.via));
    let (at, to, via) = (at?, to?, via?);
    if at == to {
        cx.impossible(&table.to.at, "a host needs no route to itself", "name another host, or delete this table");
        return None;
    }
    Some(graph::Route { at, to, via })
}

/// Every host must lead to every other, and no route may go in a circle.
fn reachable(
    raw: &Tables,
    (known, made): (&Known, &Further),
    (stations, hop): (usize, Option<&LastHop>),
    cx: &mut Context,
) -> Option<()> {
    let Further { cables, routes, .. } = made;
    if *made == Further::default() {
        return Some(());
    }
    let graph = sketch(raw, (known, made), (stations, hop));
    let tables = raw.route.get()?;
    for (table, route) in tables.iter().zip(routes) {
        if !graph.steps(route.at).any(|(_, there)| there == route.via) {
            let what = format!("\"{}\" has no link to \"{}\"", table.at.get()?, table.via.get()?);
            cx.impossible(&table.via.at, what, "name a host at the other end of one of its links");
            return None;
        }
    }
    let forwarding = graph.forwarding();
    let place = |host: HostId| {
        let given = usize::from(host.0).checked_sub(graph.hosts.len() - made.hosts.len());
        given.and_then(|place| Some(raw.host.get()?.get(place)?.name.at.clone()))
    };
    for from in 0..graph.hosts.len() {
        for to in (0..graph.hosts.len()).filter(|to| *to != from) {
            let (mut at, mut circle, to) = (HostId(from as u16), Vec::new(), HostId(to as u16));
            while at != to {
                let next = forwarding[at.index()].next(to);
                let there = next.and_then(|step| graph.links[usize::from(step.link)].ends[step.to.index()]);
                let again = circle.contains(&at);
                circle.push(at);
                let (Some(there), false) = (there, again) else {
                    let (a, b) = (&graph.hosts[from].name, &graph.hosts[to.index()].name);
                    let circles = next.is_some();
                    let what = if circles {
                        format!("packets from \"{a}\" to \"{b}\" go in a circle")
                    } else {
                        format!("no way leads from \"{a}\" to \"{b}\"")
                    };
                    let remedy = if circles {
                        "change this route, or another of the circle"
                    } else {
                        "add a `[[link]]` that connects them"
                    };
                    let given = place(HostId(from as u16)).or_else(|| place(to));
                    let turn =
                        tables.iter().zip(routes).find(|(_, route)| route.to == to && circle.contains(&route.at));
                    let at = if circles { turn.map(|(table, _)| table.place.clone()) } else { given };
                    let at = at.unwrap_or_else(|| if circles { raw.route.at.clone() } else { raw.link.at.clone() });
                    cx.impossible(&at, what, remedy);
                    return None;
                };
                at = there;
            }
        }
    }
    debug_assert!(cables.len() <= graph.links.len());
    Some(())
}

/// The graph of the file as far as routes go: rates and delays do not matter.
fn sketch(raw: &Tables, (known, made): (&Known, &Further), (stations, hop): (usize, Option<&LastHop>)) -> Graph {
    let line = wired::Params { rate: Rate::from_mbit(1), delay: Span::ZERO, queue_packets: 1 };
    let cable =
        |ends: [HostId; 2]| graph::Link { medium: Medium::Cable(Cable::plain(line)), ends: ends.map(Some).to_vec() };
    let role = |name: &str| crate::graph::Host { name: name.to_owned(), role: HostRole::Wired };
    let edge = if raw.backhaul.given { Scenario::station_host(stations) } else { Scenario::AP_HOST };
    let star = || (0..stations).map(|place| (Scenario::AP, Scenario::station_node(place))).collect();
    let radio = hop.and_then(|hop| hop.plan().mesh()).unwrap_or_else(star);
    let mut ends = vec![Some(Scenario::AP_HOST)];
    ends.extend((0..stations).map(|place| Some(Scenario::station_host(place))));
    let hop = graph::Link { medium: Medium::LastHop, ends };
    let mut links = vec![cable([Scenario::SERVER, edge]), hop];
    if raw.backhaul.given {
        links.push(cable([edge, Scenario::AP_HOST]));
    }
    links.extend(made.cables.iter().map(|(_, ends)| cable(*ends)));
    let mut hosts: Vec<_> = known.names().take(2 + stations).map(role).collect();
    hosts.extend(raw.backhaul.given.then(|| role("edge")));
    hosts.extend(made.hosts.iter().map(|name| role(name)));
    debug_assert_eq!(Node(0), Scenario::AP);
    Graph { hosts, links, radio, routes: made.routes.clone() }
}
