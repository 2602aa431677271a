//! Keeping processors awake (PM QoS): a processor that sleeps is late by its wake-up, which in a virtual machine is the
//! host's, and hundreds of microseconds at times.

use std::fs::{File, OpenOptions};
use std::io::Write;

/// May keep all processors out of sleep as long as it lives; does nothing where the kernel does not offer that. The request belongs
/// to the open file, so it can be made after privileges were given up, and ends with the process at the latest.
#[derive(Debug)]
pub struct CpuLatencyGuard {
    device: Option<File>,
    held: bool,
}

/// The wake-up latencies, in microseconds, that are asked for: none at all, and the kernel's "any" (linux/pm_qos.h).
const NONE: i32 = 0;
const ANY: i32 = 2_000_000_000;

impl CpuLatencyGuard {
    /// Opens the device, for which the kernel wants root, and asks for nothing yet.
    pub fn open() -> CpuLatencyGuard {
        CpuLatencyGuard { device: OpenOptions::new().write(true).open("/dev/cpu_dma_latency").ok(), held: false }
    }

    /// Somebody for whom there is no device: nothing is ever asked.
    pub fn none() -> CpuLatencyGuard {
        CpuLatencyGuard { device: None, held: false }
    }

    /// Asks, or takes that back; true if processors are being kept awake now. Processors that stay awake take power, and in
    /// a virtual machine the host's time.
    pub fn hold(&mut self, held: bool) -> bool {
        if let Some(device) = &mut self.device
            && self.held != held
        {
            let latency: i32 = if held { NONE } else { ANY };
            // A refusal leaves what was; lateness shows it.
            if device.write_all(&latency.to_ne_bytes()).is_ok() {
                self.held = held;
            }
        }
        self.held
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_made_and_taken_back() {
        assert!(!CpuLatencyGuard::none().hold(true));
        let mut latency_guard = CpuLatencyGuard::open();
        if latency_guard.device.is_none() {
            eprintln!("SKIPPED: /dev/cpu_dma_latency does not open");
            return;
        }
        assert!(!latency_guard.held);
        // Whoever reads the device is told the lowest of all requests.
        assert!(latency_guard.hold(true));
        assert_eq!(lowest(), Some(0));
        assert!(!latency_guard.hold(false));
    }

    fn lowest() -> Option<i32> {
        let bytes = std::fs::read("/dev/cpu_dma_latency").ok()?;
        Some(i32::from_ne_bytes(bytes.get(..4)?.try_into().ok()?))
    }
}
