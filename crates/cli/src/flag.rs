//! Wrong values of flags. Libraries name the parameter that cannot be; who typed a command line wants to hear of the flag.

use lasthop_agents::{ap, tunnel};
use lasthop_laws::ParamError;
use lasthop_scenario::quantity::{self, Measured};
use lasthop_signals::Node;
use std::net::SocketAddr;
use std::str::FromStr;

/// A value of a flag that cannot be, found out after the command line was read. The exit status is that of a wrong command
/// line.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Wrong(String);

/// Parameters that bounds of others name.
const OTHERS: [&str; 2] = ["slack", "max-packets"];

impl Wrong {
    fn of(key: &str, got: String, bound: &'static str) -> anyhow::Error {
        // The law's control interval is the slot of those who report to it.
        let name = if key == "interval" { "slot".to_owned() } else { key.replace('_', "-") };
        // A bound may be another flag's value.
        let word = |word: &str| {
            if OTHERS.contains(&word.trim_end_matches(',')) { format!("--{word}") } else { word.to_owned() }
        };
        let bound: Vec<String> = bound.split(' ').map(word).collect();
        Wrong(format!("--{name} {got}: it must be {}", bound.join(" "))).into()
    }

    /// A flag that only `of` look at, and `runs` does not.
    pub fn idle(flag: &str, of: &[&str], runs: &str) -> anyhow::Error {
        Wrong(format!("{flag} has no meaning with {runs}: leave it out, or use {}", of.join(" or "))).into()
    }
}

/// An error of a law, with the flag that its parameter came from.
pub fn of_law(error: ParamError) -> anyhow::Error {
    match error {
        ParamError::OutOfBounds { key, got, bound } => Wrong::of(key, got, bound),
        other => anyhow::Error::new(other).context("these parameters make no law"),
    }
}

/// An error of the access point's agent, likewise.
pub fn of_ap(error: ap::Error) -> anyhow::Error {
    match error {
        ap::Error::Config { key, got, bound } => Wrong::of(key, got, bound),
        other => other.into(),
    }
}

/// An error of a proxy or of a station's agent, likewise.
pub fn of_tunnel(error: tunnel::Error) -> anyhow::Error {
    match error {
        tunnel::Error::Config { key, got, bound } => Wrong::of(key, got, bound),
        tunnel::Error::Law(error) => of_law(error),
        tunnel::Error::Kernel(error) => of_ap(error),
        other => other.into(),
    }
}

/// An address with a port, of this machine or of another.
pub fn address(text: &str) -> Result<SocketAddr, String> {
    let right = "write an IP address and a port, such as 192.0.2.1:4848 or [2001:db8::1]:4848";
    text.parse().map_err(|_| match text.rsplit_once(':') {
        Some((host, port)) if !host.contains(':') && port.parse::<u16>().is_ok() => {
            format!("`{host}` is not an IP address, and names are not looked up; {right}")
        }
        _ => format!("not an address with a port; {right}"),
    })
}

/// As [`address`], of somebody who is to be reached there.
pub fn destination(text: &str) -> Result<SocketAddr, String> {
    match address(text)? {
        address if address.port() == 0 => {
            Err("nobody can be reached at port 0; write the port at which it listens".into())
        }
        address => Ok(address),
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
    use lasthop_laws::{aggregation, oal};
    use lasthop_units::Span;
    use std::net::IpAddr;

    #[test]
    fn a_parameter_that_cannot_be_is_told_by_its_flag() {
        let told = |error: ParamError| of_law(error).to_string();
        let params = oal::Params { slack_max: Span::from_millis(1), ..oal::Params::default() };
        assert_eq!(
            told(params.validate().expect_err("less than the slack")),
            "--slack-max 1 ms: it must be at least --slack"
        );
        let params = oal::Params { trigger: Span::from_millis(6), ..oal::Params::default() };
        let error = told(params.validate().expect_err("more than the slack"));
        assert_eq!(error, "--trigger 6 ms: it must be below --slack, or a tight window releases itself");
        let params = aggregation::Params { interval: Span::ZERO, ..aggregation::Params::default() };
        let error = of_tunnel(tunnel::Error::Law(params.validate().expect_err("no time at all")));
        assert_eq!(error.to_string(), "--slot 0 ns: it must be from 10 ms to 60 s");
        assert!(error.is::<Wrong>());
        let config = ap::Config { max_flows: 1, ..ap::Config::new("lo", "driver") };
        let error = of_ap(config.validate().expect_err("too few"));
        assert_eq!(error.to_string(), "--max-flows 1: it must be 128 to 1048576");
    }

    #[test]
    fn an_address_that_is_none_is_told_with_what_would_be_right() {
        assert_eq!(address("[::1]:0"), Ok("[::1]:0".parse().expect("an address")));
        for (wrong, says) in [
            ("4848", "not an address with a port"),
            ("::1:80", "[2001:db8::1]:4848"),
            ("10.0.0.1", "such as 192.0.2.1:4848"),
            ("example.org:80", "`example.org` is not an IP address, and names are not looked up"),
            ("10.0.0.1:0", "port 0"),
        ] {
            let told = destination(wrong).expect_err(wrong);
            assert!(told.contains(says), "{told}");
        }
    }

    #[test]
    fn stations_are_addresses_with_numbers() {
        let station = |text| station::<IpAddr>(text, "IP");
        assert_eq!(station("fd00::2=3"), Ok(("fd00::2".parse().expect("an address"), Node(3))));
        assert!(station("10.0.0.1").is_err());
        assert!(station("desk=1").is_err());
    }
}
