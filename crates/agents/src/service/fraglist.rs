//! Receive offload that the rewriter cannot see through: `rx-gro-list` (NETIF_F_GRO_FRAGLIST).
//!
//! With it the kernel hands on several segments of one connection as a list behind the first, and lets them go again after the
//! programs. The programs see, and rewrite, the first alone; 99 of 100 windows would pass as the station wrote them.

use super::error::{Error, system};
use nix::sys::socket::{AddressFamily, SockFlag, SockType, socket};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

/// Its name among the kernel's features.
const NAME: &str = "rx-gro-list";

/// True if an interface of this network namespace gathers segments into lists. Needs no privilege. False for what has no such
/// feature, or has gone.
///
/// # Errors
/// [`Error::System`] if the kernel does not answer.
pub(crate) fn is_on(iface: &str) -> Result<bool, Error> {
    let features = features(iface).map_err(system("the interface's offload features"))?;
    Ok(features.is_some_and(|features| features.is_active()))
}

/// Where the feature stands among an interface's features, and their states.
struct Features {
    at: u32,
    /// A bit each, set for those that are on.
    active: Vec<u32>,
}

impl Features {
    fn is_active(&self) -> bool {
        self.active.get(self.at as usize / 32).is_some_and(|bits| bits >> (self.at % 32) & 1 == 1)
    }
}

/// `ETHTOOL_GSSET_INFO`, `ETHTOOL_GSTRINGS`, `ETHTOOL_GFEATURES` and `ETH_SS_FEATURES` of `linux/ethtool.h`.
const GSSET_INFO: u32 = 0x37;
const GSTRINGS: u32 = 0x1b;
const GFEATURES: u32 = 0x3a;
const SS_FEATURES: u32 = 4;
/// `ETH_GSTRING_LEN`.
const STRING_LEN: usize = 32;
const SIOCETHTOOL: libc::c_ulong = 0x8946;
/// More features than any kernel has.
const MOST: u32 = 4096;

fn features(iface: &str) -> io::Result<Option<Features>> {
    let socket = socket(AddressFamily::Inet, SockType::Datagram, SockFlag::SOCK_CLOEXEC, None)?;
    // `struct ethtool_sset_info`: command, reserved, mask of sets, and room for one count.
    let mut info = [GSSET_INFO, 0, 1 << SS_FEATURES, 0, 0];
    if !ask(&socket, iface, &mut info)? {
        return Ok(None);
    }
    let count = info[4].min(MOST);
    // `struct ethtool_gstrings`: command, set, count, then the names.
    let mut strings = vec![0u32; 3 + count as usize * STRING_LEN / 4];
    strings[..3].copy_from_slice(&[GSTRINGS, SS_FEATURES, count]);
    if !ask(&socket, iface, &mut strings)? {
        return Ok(None);
    }
    let names: Vec<u8> = strings[3..].iter().flat_map(|word| word.to_ne_bytes()).collect();
    let is_it = |name: &[u8]| name.split(|octet| *octet == 0).next() == Some(NAME.as_bytes());
    let Some(at) = (0u32..).zip(names.chunks_exact(STRING_LEN)).find_map(|(at, name)| is_it(name).then_some(at)) else {
        return Ok(None);
    };
    // `struct ethtool_gfeatures`: command, number of blocks, then the blocks.
    let size = count.div_ceil(32);
    let mut words = vec![0u32; 2 + 4 * size as usize];
    words[..2].copy_from_slice(&[GFEATURES, size]);
    if !ask(&socket, iface, &mut words)? {
        return Ok(None);
    }
    // Of each block, what is available, requested, active and never changed.
    Ok(Some(Features { at, active: words[2..].chunks_exact(4).map(|block| block[2]).collect() }))
}

/// False if the interface has gone or knows nothing of this.
fn ask(socket: &OwnedFd, iface: &str, words: &mut [u32]) -> io::Result<bool> {
    // SAFETY: all zeros is a value of this struct of integers.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    // The last octet stays 0.
    for (to, from) in request.ifr_name.iter_mut().take(libc::IFNAMSIZ - 1).zip(iface.bytes()) {
        *to = from as libc::c_char;
    }
    request.ifr_ifru.ifru_data = words.as_mut_ptr().cast();
    // SAFETY: SIOCETHTOOL takes an `ifreq` with a name and a pointer to a command's struct, which says how much room it has.
    let failed = unsafe { libc::ioctl(socket.as_raw_fd(), SIOCETHTOOL, &mut request) };
    if failed == 0 {
        return Ok(true);
    }
    match io::Error::last_os_error() {
        error if matches!(error.raw_os_error(), Some(libc::ENODEV | libc::EOPNOTSUPP)) => Ok(false),
        error => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_says_whether_lists_are_gathered() {
        // Nobody gathers lists of what this machine sends itself.
        assert!(!is_on("lo").expect("an answer"));
        assert!(!is_on("no-such-dev").expect("an answer"));
        let known = features("lo").expect("an answer").expect("Linux 5.6 has this feature");
        assert!(known.at > 0 && known.at / 32 < known.active.len() as u32);
        assert!(
            Features { at: 33, active: vec![0, 2] }.is_active() && !Features { at: 33, active: vec![2, 1] }.is_active()
        );
    }
}
