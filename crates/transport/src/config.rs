//! What an endpoint is told when it is created.

use lasthop_laws::LossRecovery;
use lasthop_units::{Bytes, Rate, Span};

/// Parameters of one end of a connection. The defaults are those of a current Linux host on an Ethernet path.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Config {
    /// Own port.
    pub local_port: u16,
    /// The peer's port. A passive end may leave it 0 and learns it from the SYN.
    pub remote_port: u16,
    /// Initial sequence number, drawn by the world. Also offsets the timestamp clock, as RFC 7323 section 5.4 asks.
    pub initial_seq: u32,
    /// Largest payload of a segment that carries the timestamps option: 1448 on an Ethernet MTU of 1500 over IPv4.
    pub mss: u16,
    /// Receive buffer at the start, memory overhead included (Linux `tcp_rmem[1]`).
    pub rmem_default: Bytes,
    /// The most that the receive buffer may grow to, memory overhead included (Linux `tcp_rmem[2]`).
    pub rmem_max: Bytes,
    /// What the application may have written and the peer not yet acknowledged, memory overhead included (Linux `tcp_wmem[2]`); `None`:
    /// everything.
    pub send_buffer: Option<Bytes>,
    /// How fast the application reads what has arrived; `None`: at once.
    pub read_rate: Option<Rate>,
    /// The least that the variance term contributes to the retransmission timeout (Linux `rto_min`).
    pub min_rto: Span,
    /// The most that a retransmission timeout backs off to.
    pub max_rto: Span,
    /// Retransmission timeout before the first RTT sample (RFC 6298, rule 2.1).
    pub initial_rto: Span,
    /// How long an acknowledgement of a lone segment may be delayed.
    pub delayed_ack: Span,
    /// How losses are found and repaired. Selective acknowledgements are offered where that needs them.
    pub loss_recovery: LossRecovery,
    /// Timeouts in a row, of data or of a SYN, after which the connection is given up.
    pub max_retries: u32,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            local_port: 0,
            remote_port: 0,
            initial_seq: 0,
            mss: 1448,
            rmem_default: Bytes::new(131_072),
            rmem_max: Bytes::new(32 << 20),
            send_buffer: None,
            read_rate: None,
            min_rto: Span::from_millis(200),
            max_rto: Span::from_secs(120),
            initial_rto: Span::from_secs(1),
            delayed_ack: Span::from_millis(40),
            loss_recovery: LossRecovery::Rack,
            max_retries: 15,
        }
    }
}
