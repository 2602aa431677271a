//! The command lines of what the lab starts for senders with another transport than the kernel's TCP: what an operator
//! would type.

use super::Wanted;
use super::agent::words;
use lasthop_lab::{AccountSpec, CarrierSpec, Cause, ProgramSpec, Ready, Spec};
use lasthop_laws::atp::Params;
use lasthop_laws::{Choice, Parameters as _, Transport};
use std::path::Path;

const ACCOUNT: AccountSpec = AccountSpec {
    line: "relay",
    name: "relays",
    by_host: true,
    expected: 0,
    doubts: &[
        (Cause::Silent, "the relays of {n} nodes gave no account of themselves"),
        (Cause::Counted("driver_losses"), "relays lost their drivers {n} times, and wrote no delays meanwhile"),
    ],
};

/// `program send …` and `program recv …` under the law of a sender, if no kernel's TCP can have it.
fn command(program: &Path, sender: &Choice) -> Option<CarrierSpec> {
    let law = match sender.transport() {
        Transport::Atp => Params::with(sender.settings()).ok()?.variant.as_str(),
        Transport::ReceiverFeedback => return None,
        Transport::TCP if !sender.is_ours_alone() => return None,
        Transport::Tcp(_) => sender.name(),
    };
    let receive = words("recv --bind {bind} --once --json --patience {patience}");
    let mut send = words("send {to} {limit} {amount} --json --patience {patience}");
    send.extend(["--law".to_owned(), law.to_owned()]);
    Some(CarrierSpec { program: program.to_owned(), receive, send })
}

/// What carries the transfers of each host. If ATP does, `program relay …` on each node of the last hop that has a driver, for the
/// UDP ports of carriers, with the node's delay as its driver tells it.
pub(super) fn add(Wanted { program, scenario, law }: Wanted<'_>, spec: &mut Spec) {
    for (carrier, host) in spec.carriers.iter_mut().zip(scenario.hosts()) {
        *carrier = command(program, law.sender(&host.name));
    }
    if law.senders().all(|sender| sender.transport() != Transport::Atp) {
        return;
    }
    let mut arguments = words("relay --dev {iface} --d-source driver:{driver}");
    arguments.extend(spec.carried_ports().flat_map(|port| ["--port".to_owned(), port.to_string()]));
    for (node, host) in spec.reporters() {
        let name = format!("the relay on {}", spec.host_name(host));
        spec.programs.push(ProgramSpec {
            node: Some(node),
            ready: Ready::Connected,
            account: Some(ACCOUNT),
            ..ProgramSpec::new(name, host, program.to_owned(), arguments.clone())
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lasthop_laws::Place;

    #[test]
    fn what_no_kernel_has_goes_over_udp() {
        let carried = |name: &str| {
            let law = Choice::of(Place::Sender.law(name).expect("a law"));
            command(Path::new("lasthop"), &law).map(|carrier| carrier.send.join(" "))
        };
        for kernels in lasthop_laws::tcp::LINUX {
            assert_eq!(carried(kernels), None);
        }
        let vivace = carried("vivace").expect("no kernel has it");
        assert!(vivace.ends_with("--law vivace"), "{vivace}");
    }
}
