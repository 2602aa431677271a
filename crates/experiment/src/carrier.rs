//! The command lines of what the lab starts for senders with another transport than the kernel's TCP: what an operator
//! would type.

use lasthop_lab::{AgentSpec, CarrierSpec};
use lasthop_laws::atp::Params;
use lasthop_laws::{Choice, Parameters as _, Transport};
use std::path::PathBuf;

/// `program send …` and `program recv …` under the law of a sender, if no kernel's TCP can have it.
pub fn command(program: PathBuf, sender: &Choice) -> Option<CarrierSpec> {
    let law = match sender.transport() {
        Transport::Atp => Params::with(sender.settings()).ok()?.variant.as_str(),
        Transport::ReceiverFeedback => return None,
        Transport::TCP if !sender.is_ours_alone() => return None,
        Transport::Tcp(_) => sender.name(),
    };
    let words = |line: &str| line.split(' ').map(str::to_owned).collect::<Vec<String>>();
    let receive = words("recv --bind {bind} --once --json --patience {patience}");
    let mut send = words("send {to} {limit} {amount} --json --patience {patience}");
    send.extend(["--law".to_owned(), law.to_owned()]);
    Some(CarrierSpec { program, receive, send })
}

/// `program relay …` for these UDP ports, with the node's delay as its driver tells it.
pub fn relay(program: PathBuf, ports: impl Iterator<Item = u16>) -> AgentSpec {
    let line = "relay --dev {iface} --d-source driver:{driver}";
    let mut arguments: Vec<String> = line.split(' ').map(str::to_owned).collect();
    arguments.extend(ports.flat_map(|port| ["--port".to_owned(), port.to_string()]));
    AgentSpec { program, arguments }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lasthop_laws::Place;

    #[test]
    fn what_no_kernel_has_goes_over_udp() {
        let carried = |name: &str| {
            let law = Choice::of(Place::Sender.law(name).expect("a law"));
            command(PathBuf::from("lasthop"), &law).map(|carrier| carrier.send.join(" "))
        };
        for kernels in lasthop_laws::tcp::LINUX {
            assert_eq!(carried(kernels), None);
        }
        let vivace = carried("vivace").expect("no kernel has it");
        assert!(vivace.ends_with("--law vivace"), "{vivace}");
    }
}
