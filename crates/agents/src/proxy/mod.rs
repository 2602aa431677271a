//! The edge proxy: ends TCP connections on behalf of stations and paces what comes out of them, each station at the rate
//! that the law decides, so that nothing queues at the access point.
//!
//! [`run()`] listens for stations that hold a key, opens the connections that they ask for, and reads from those only
//! what can leave: what waits, waits in the server, held back by the window that this side advertises (`window`).
//!
//! In transparent mode it also takes connections that others make to a station's address ([`crate::transparent`]).
//!
//! ## The bound on its memory
//!
//! For a station that is served at x octets a second at most x times (wired RTT + allowance) waits in the proxy: what has been
//! received from servers and not been read (socket queue), and what has been read and not been sent. The wired RTT is the
//! largest of its servers' least RTTs; the allowance is 10 ms. Every connection may have one segment on its way whatever that
//! leaves, and all that are quiet together what those that send leave of the allowance: where that is more than the bound, as with
//! some hundreds of connections, so much may wait when all begin at once. In transparent mode a caller of a station is
//! told of one segment, since nobody knows how many will call. A window that was advertised is not taken back, so that
//! the bound follows a falling rate with a delay of one wired RTT, and so that connections which have all brought much,
//! one after the other, may each bring ten segments and more if they begin anew at one moment; where the kernel lets
//! windows shrink, the request that makes them go on takes back what is more than their part. And a process that is
//! held up for longer than a few milliseconds cannot close windows: what all were allowed then comes, up to 1.9 times
//! the bound. What has been sent stands in the hop's queue, where the law measures it. `budget` has the equations.

pub(crate) mod arrivals;
mod budget;
mod config;
mod control;
pub(crate) mod key_file;
mod log;
pub(crate) mod reception;
pub(crate) mod refusals;
pub(crate) mod resolve;
mod rotation;
pub(crate) mod route;
mod run;
mod server;
mod session;
mod slot_length;
mod window;

pub use config::{Config, Doubted, Rule, Summary};
pub use run::{Proxy, run};
