//! The end of a session, told to the other side.

use super::Keyring;
use super::link::Link;
use super::path::Path;
use lasthop_transport::tunnel::Endpoint;
use lasthop_units::Time;

/// Tells the other end that the session is over. It is said once: whoever does not hear it notices the silence.
pub fn farewell(now: Time, endpoint: &mut Endpoint, keys: &mut Keyring, link: &Link, path: &mut Path) {
    endpoint.close();
    let (mut packet, mut datagram) = (Vec::new(), Vec::new());
    path.preface(&mut datagram);
    if let Some(departure) = endpoint.poll_transmit(now, &mut packet)
        && keys.seal(now, departure.number, &packet, &mut datagram)
    {
        let _ = link.send_train(path, &datagram);
    }
}
