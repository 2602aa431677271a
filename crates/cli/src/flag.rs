//! Wrong values of flags. Libraries name the parameter that cannot be; the user, who typed a command line, wants to
//! hear of the flag.

use anyhow::bail;
use lasthop_agents::service::{self, AgentError};
use lasthop_experiment::agent;
use lasthop_laws::{ParamError, Place};
use lasthop_scenario::quantity::{self, Measured};
use lasthop_signals::Node;
use std::fmt;
use std::net::{Ipv6Addr, SocketAddr, ToSocketAddrs as _};
use std::str::FromStr;

/// A value of a flag that cannot be, found out after the command line was read. The exit status is that of a wrong command
/// line.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Wrong(String);

/// Parameters that bounds of others name.
const OTHERS: [&str; 2] = ["slack", "max-packets"];

impl Wrong {
    fn of(place: Place, key: &str, got: String, bound: &'static str) -> anyhow::Error {
        let name = agent::flag(place, key).replace('_', "-");
        // A bound may be another flag's value.
        let word = |word: &str| {
            if OTHERS.contains(&word.trim_end_matches(',')) { format!("--{word}") } else { word.to_owned() }
        };
        let bound: Vec<String> = bound.split(' ').map(word).collect();
        Wrong(format!("--{name} {got}: it must be {}", bound.join(" "))).into()
    }

    /// What is wrong with the command line.
    pub fn line(text: String) -> anyhow::Error {
        Wrong(text).into()
    }

    /// A flag that only `of` look at, and `runs` does not.
    pub fn idle(flag: &str, of: &[&str], runs: &str) -> anyhow::Error {
        Wrong(format!(
            "{flag} has no meaning with {runs}: leave out {flag}, or use {} in place of {runs}",
            of.join(" or ")
        ))
        .into()
    }
}

/// An error of a law at `place`, with the flag that its parameter came from.
pub fn of_law(error: ParamError, place: Place) -> anyhow::Error {
    match error {
        ParamError::OutOfBounds { key, got, bound } => Wrong::of(place, key, got, bound),
        other => anyhow::Error::new(other).context("these parameters make no law"),
    }
}

/// An error of the access point's agent, likewise.
pub fn of_ap(error: impl AgentError) -> anyhow::Error {
    of_agent(error, Place::AccessPoint)
}

/// An error of any other agent, likewise.
pub fn of_tunnel(error: impl AgentError) -> anyhow::Error {
    of_agent(error, Place::Proxy)
}

fn of_agent(error: impl AgentError, place: Place) -> anyhow::Error {
    match error.common() {
        Ok(service::Error::Config { key, got, bound }) => Wrong::of(place, key, got, bound),
        Ok(service::Error::Law(error)) => of_law(error, place),
        Ok(other) => other.into(),
        Err(own) => own.into(),
    }
}

/// The port of a proxy, if nobody says otherwise.
pub const PROXY: u16 = 4848;
/// That of streams, and of gateways of a mesh.
pub const MESH: u16 = 4900;

/// An address with a port, of this machine or of another. `USUAL`: a port that is right there.
pub fn address<const USUAL: u16>(text: &str) -> Result<SocketAddr, String> {
    let right = format!("write an IP address and a port, such as 192.0.2.1:{USUAL} or [2001:db8::1]:{USUAL}");
    text.parse().map_err(|_| match text.rsplit_once(':') {
        Some((host, port)) if !host.contains(':') && port.parse::<u16>().is_ok() => {
            format!("`{host}` is not an IP address, and names are not looked up; {right}")
        }
        _ => format!("not an address with a port; {right}"),
    })
}

/// A host that is to be reached, by name or by address, and a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Destination {
    host: String,
    port: u16,
}

impl Destination {
    /// Its addresses, in the order in which the system would try them: never none.
    pub fn resolve(&self) -> anyhow::Result<Vec<SocketAddr>> {
        let found = (self.host.as_str(), self.port).to_socket_addrs().map(Iterator::collect::<Vec<_>>);
        let why = match found {
            Ok(addresses) if !addresses.is_empty() => return Ok(addresses),
            Ok(_) => "it has none".to_owned(),
            Err(error) => error.to_string(),
        };
        bail!(
            "cannot find the address of `{}`: {why}; look the name up with `getent ahosts {}`, or give an IP address",
            self.host,
            self.host
        )
    }
}

impl fmt::Display for Destination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Destination { host, port } = self;
        if host.contains(':') { write!(f, "[{host}]:{port}") } else { write!(f, "{host}:{port}") }
    }
}

/// The host and the port that are to be reached. `USUAL`: a port at which one listens.
pub fn destination<const USUAL: u16>(text: &str) -> Result<Destination, String> {
    let right = format!(
        "write a host and a port, such as host.example.org:{USUAL}, 192.0.2.1:{USUAL} or [2001:db8::1]:{USUAL}"
    );
    let (host, port) = text.rsplit_once(':').ok_or(format!("there is no port; {right}"))?;
    let bare = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    let is_name = |host: &str| {
        let part = |part: &str| {
            let letters = part.bytes().all(|octet| octet.is_ascii_alphanumeric() || b"-_".contains(&octet));
            (1..=63).contains(&part.len()) && letters && !part.starts_with('-') && !part.ends_with('-')
        };
        host.len() <= 253 && host.strip_suffix('.').unwrap_or(host).split('.').all(part)
    };
    // Zones are for the system to know.
    let is_v6 = |host: &str| host.split('%').next().is_some_and(|address| address.parse::<Ipv6Addr>().is_ok());
    match bare {
        Some(bare) if !is_v6(bare) => return Err(format!("`{bare}` is no IPv6 address; {right}")),
        None if host.contains(':') && !host.contains('/') => {
            return Err(format!("an IPv6 address stands in brackets; {right}"));
        }
        None if !is_name(host) => return Err(format!("`{host}` is neither a name nor an address; {right}")),
        _ => {}
    }
    match port.parse() {
        Ok(0) => Err("nobody can be reached at port 0; write the port at which it listens".into()),
        Ok(port) => Ok(Destination { host: bare.unwrap_or(host).to_owned(), port }),
        Err(_) => Err(format!("`{port}` is not a port (1 to 65535); {right}")),
    }
}

/// A value with its unit, as scenario files have it.
pub fn quantity<T: Measured>(text: &str) -> Result<T, String> {
    quantity::parse(text).map_err(|error| format!("{error}; {}", error.remedy()))
}

/// The address of a station and its number in the reports, such as `192.168.1.20=1`; `kind` says what address.
pub fn station<A: FromStr>(text: &str, kind: &str) -> Result<(A, Node), String> {
    let (address, number) = text.rsplit_once('=').ok_or("write ADDRESS=NUMBER, such as 192.168.1.20=1")?;
    let address = address.parse().map_err(|_| format!("`{address}` is not an {kind} address"))?;
    let number = number.parse().map_err(|_| format!("`{number}` is not a station number (0 to 65535)"))?;
    Ok((address, Node(number)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use lasthop_agents::ap;
    use lasthop_laws::{aggregation, oal};
    use lasthop_units::Span;
    use std::net::IpAddr;

    #[test]
    fn a_parameter_that_cannot_be_is_told_by_its_flag() {
        let told = |error: ParamError| of_law(error, Place::AccessPoint).to_string();
        let params = oal::Params { slack_max: Span::from_millis(1), ..oal::Params::default() };
        assert_eq!(
            told(params.validate().expect_err("less than the slack")),
            "--slack-max 1 ms: it must be at least --slack"
        );
        let params = oal::Params { trigger: Span::from_millis(6), ..oal::Params::default() };
        let error = told(params.validate().expect_err("more than the slack"));
        assert_eq!(error, "--trigger 6 ms: it must be below --slack, or a tight window releases itself");
        let params = aggregation::Params { interval: Span::ZERO, ..aggregation::Params::default() };
        let error = of_tunnel(service::Error::Law(params.validate().expect_err("no time at all")));
        assert_eq!(error.to_string(), "--slot 0 ns: it must be from 10 ms to 60 s");
        assert!(error.is::<Wrong>());
        let config = ap::Config { max_flows: 1, ..ap::Config::new("lo") };
        let error = of_ap(config.validate().expect_err("too few"));
        assert_eq!(error.to_string(), "--max-flows 1: it must be 128 to 1048576");
    }

    #[test]
    fn an_address_that_is_none_is_told_with_what_would_be_right() {
        assert_eq!(address::<PROXY>("[::1]:0"), Ok("[::1]:0".parse().expect("an address")));
        for (wrong, says) in [
            ("4848", "not an address with a port"),
            ("::1:80", "[2001:db8::1]:4848"),
            ("10.0.0.1", "such as 192.0.2.1:4848"),
            ("example.org:80", "`example.org` is not an IP address, and names are not looked up"),
        ] {
            let told = address::<PROXY>(wrong).expect_err(wrong);
            assert!(told.contains(says), "{told}");
        }
        assert!(address::<MESH>("4900").is_err_and(|told| told.ends_with("192.0.2.1:4900 or [2001:db8::1]:4900")));
    }

    #[test]
    fn who_is_to_be_reached_has_a_name_or_an_address_and_a_port() {
        for (right, host) in [
            ("proxy.example.org:4848", "proxy.example.org"),
            ("localhost:1", "localhost"),
            ("my_host-2.:65535", "my_host-2."),
            ("192.0.2.1:4848", "192.0.2.1"),
            ("[2001:db8::1]:4848", "2001:db8::1"),
            ("[fe80::1%eth0]:4848", "fe80::1%eth0"),
        ] {
            let found = destination::<PROXY>(right).expect(right);
            assert_eq!((found.host.as_str(), found.to_string().as_str()), (host, right));
        }
        for (wrong, says) in [
            ("proxy.example.org", "there is no port"),
            ("10.0.0.1:0", "port 0"),
            ("host:http", "`http` is not a port"),
            ("host:65536", "`65536` is not a port"),
            (":4848", "`` is neither"),
            ("a b:4848", "`a b` is neither"),
            ("-x:4848", "`-x` is neither"),
            ("2001:db8::1:4848", "in brackets"),
            ("[example.org]:4848", "no IPv6 address"),
            ("http://example.org:80", "is neither"),
        ] {
            let told = destination::<PROXY>(wrong).expect_err(wrong);
            assert!(told.contains(says), "{wrong}: {told}");
        }
        assert!(
            destination::<MESH>("host").is_err_and(|told| told.contains("192.0.2.1:4900") && !told.contains("4848"))
        );
    }

    #[test]
    fn addresses_are_looked_up_where_they_are_not_given() {
        let resolve = |text: &str| destination::<PROXY>(text).expect("legal").resolve();
        let one = |text: &str| vec![text.parse::<SocketAddr>().expect("an address")];
        assert_eq!(resolve("192.0.2.1:4848").expect("given"), one("192.0.2.1:4848"));
        assert_eq!(resolve("[2001:db8::1]:1").expect("given"), one("[2001:db8::1]:1"));
        let local = resolve("localhost:7").expect("every host has it");
        assert!(local.iter().all(|address| address.ip().is_loopback() && address.port() == 7), "{local:?}");
        // A top-level domain that there will never be (RFC 2606).
        let error = resolve("proxy.invalid:4848").expect_err("nobody has it").to_string();
        assert!(error.contains("`proxy.invalid`") && error.contains("getent"), "{error}");
    }

    #[test]
    fn stations_are_addresses_with_numbers() {
        let station = |text| station::<IpAddr>(text, "IP");
        assert_eq!(station("fd00::2=3"), Ok(("fd00::2".parse().expect("an address"), Node(3))));
        assert!(station("10.0.0.1").is_err());
        assert!(station("desk=1").is_err());
    }
}
