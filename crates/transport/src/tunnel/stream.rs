//! One stream of a session.

use super::credit::INITIAL_WINDOW;
use super::recv_half::RecvHalf;
use super::send_half::SendHalf;
use lasthop_wire::tunnel::OpenResult;

/// A stream's two halves and what must be told of it.
#[derive(Clone)]
pub(super) struct Stream {
    pub(super) send: SendHalf,
    pub(super) recv: RecvHalf,
    /// Where it shall lead, until the other end knows.
    pub(super) target: Option<(String, u16)>,
    pub(super) result: Option<OpenResult>,
    /// It stands in `ready`.
    pub(super) queued: bool,
    /// It stands in `blocked`.
    pub(super) blocked: bool,
    /// The reader has been told that there is something.
    pub(super) told: bool,
    /// The other end's opening has come, or it is ours.
    pub(super) known: bool,
}

impl Stream {
    pub(super) fn new() -> Stream {
        Stream {
            send: SendHalf::new(INITIAL_WINDOW),
            recv: RecvHalf::new(INITIAL_WINDOW),
            target: None,
            result: None,
            queued: false,
            blocked: false,
            told: false,
            known: false,
        }
    }
}
