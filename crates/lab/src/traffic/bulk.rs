//! Bulk transfers: one host sends another as much as it can, or a file of some size, for as long as the flow lasts. Either may
//! be the one that calls.

use super::door::Door;
use super::{Call, End, Period, TICK, accept, is_transient, join, listen, mark, spawn, tcp_info};
use crate::error::{Doing, Result};
use crate::log::Blocks;
use lasthop_units::{Bytes, Span, Time};
use lasthop_wire::tcp_info::TcpInfo;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sched::{CloneFlags, setns};
use nix::sys::socket::setsockopt;
use nix::sys::socket::sockopt::SndBufForce;
use socket2::Socket;
use std::fs::File;
use std::mem::MaybeUninit;
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// What became of a bulk transfer.
#[derive(Clone, Debug, Default)]
pub struct BulkLog {
    /// Payload that the receiving program read, in bins of [`BIN`] since the world began.
    pub received: Vec<Bytes>,
    /// When the receiving program read, and how much it had then in all.
    pub reads: Blocks<(Time, Bytes)>,
    /// The sender's connection at the end.
    pub last: Box<TcpInfo>,
    /// The sender's connection as it went.
    pub samples: Vec<(Time, TcpInfo)>,
}

/// Width of a bin of received payload, and time between two looks at the sender.
pub const BIN: Span = Span::from_millis(10);

/// What the receiving program saw.
#[derive(Debug, Default)]
struct Received {
    bins: Vec<Bytes>,
    reads: Blocks<(Time, Bytes)>,
}

/// What a sender is to send.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Upload {
    /// In all; `None`: as much as goes.
    pub(crate) size: Option<Bytes>,
    /// Its socket's send buffer, memory overhead included; `None`: the kernel's.
    pub(crate) buffer: Option<Bytes>,
}

/// A running transfer.
#[derive(Debug)]
pub(crate) struct Bulk {
    sender: JoinHandle<Result<TcpInfo>>,
    receiver: JoinHandle<Result<Received>>,
    sampler: JoinHandle<Vec<(Time, TcpInfo)>>,
}

/// One end of the connection.
enum Side {
    /// Takes the call.
    Listens(Socket),
    /// Calls from its host.
    Calls { host: File, door: Door, to: SocketAddr, congestion: String },
}

impl Bulk {
    /// Prepares a transfer over `call`, which is made when `period` starts; `sender` has the data.
    pub(crate) fn start(call: &Call<'_>, sender: End, upload: Upload, period: &Period) -> Result<Bulk> {
        let listener = listen(call.listener, call.address, call.congestion_of(End::Listener))?;
        // A connection inherits what its listener marks.
        mark(&listener, call.door.tos).doing(|| "marking a socket".into())?;
        let host = call.caller.file().try_clone().doing(|| "copying a namespace's descriptor".into())?;
        let congestion = call.congestion_of(End::Caller).to_owned();
        let listens = Side::Listens(listener);
        let calls = Side::Calls { host, door: call.door, to: call.address, congestion };
        let (from, to) = match sender {
            End::Listener => (listens, calls),
            End::Caller => (calls, listens),
        };
        let connection = Arc::new(Mutex::new(None));
        let (ours, theirs) = (Arc::clone(&connection), connection);
        let (p1, p2, p3) = (period.clone(), period.clone(), period.clone());
        Ok(Bulk {
            sender: spawn("lasthop-send", move || send(from, upload, &ours, &p1))?,
            receiver: spawn("lasthop-receive", move || receive(to, &p2))?,
            sampler: spawn("lasthop-sample", move || sample(&theirs, &p3))?,
        })
    }

    /// Waits for its end.
    pub(crate) fn finish(self) -> Result<BulkLog> {
        let (last, received, samples) = (join(self.sender), join(self.receiver), join(self.sampler));
        let Received { bins, reads } = received?;
        Ok(BulkLog { received: bins, reads, last: Box::new(last?), samples })
    }
}

impl Side {
    /// The connection, once the period has started; `None` if it ends before. Reads and writes time out after [`TICK`].
    fn open(self, period: &Period) -> Result<Option<Socket>> {
        let socket = match self {
            Side::Listens(listener) => accept(&listener, period)?,
            Side::Calls { host, door, to, congestion } => {
                // The thread ends with the stream, so it may stay in the host's namespace for good.
                setns(&host, CloneFlags::CLONE_NEWNET).doing(|| "entering a host's namespace".into())?;
                if !period.wait_until(period.start) {
                    return Ok(None);
                }
                door.connect(to, period, || door.socket(to, &congestion)).doing(|| format!("connecting to {to}"))?
            }
        };
        if let Some(socket) = &socket {
            let timeouts = socket.set_read_timeout(Some(TICK)).and_then(|()| socket.set_write_timeout(Some(TICK)));
            timeouts.doing(|| "preparing a connection".into())?;
        }
        Ok(socket)
    }
}

/// What iperf3 (3.12) writes at once, and how often when the kernel has said that there is room, which it does when a third of the buffer is
/// free. How a program writes matters: of one that writes on and on, Linux (6.18) takes far more than the buffer holds, since what
/// goes out at once leaves an skb behind that is filled up again without a look at the memory.
const PIECE: usize = 128 * 1024;
const PIECES: u32 = 10;

/// Writes `size`, or until the period ends. Then it aborts: what still waits in the socket shall not go on filling the
/// hop.
fn send(side: Side, upload: Upload, shared: &Mutex<Option<Socket>>, period: &Period) -> Result<TcpInfo> {
    let Some(socket) = side.open(period)? else { return Ok(TcpInfo::default()) };
    let Upload { size, buffer } = upload;
    let prepare = || {
        socket.set_linger(Some(Duration::ZERO))?;
        if let Some(bytes) = buffer {
            // The kernel doubles what it is told (socket(7)).
            setsockopt(&socket, SndBufForce, &usize::try_from(bytes.get() / 2).unwrap_or(usize::MAX))?;
        }
        socket.try_clone()
    };
    let copy = prepare().doing(|| "preparing a connection".into())?;
    *shared.lock().unwrap_or_else(PoisonError::into_inner) = Some(copy);
    let piece = vec![0; PIECE];
    let mut left = size.map_or(u64::MAX, Bytes::get);
    // Pieces until the kernel is asked again whether there is room.
    let mut more = 0;
    while period.lasts() && left > 0 {
        if more == 0 {
            more = if writable(&socket).doing(|| "waiting for room to send".into())? { PIECES } else { 0 };
            continue;
        }
        more -= 1;
        let part = &piece[..PIECE.min(usize::try_from(left).unwrap_or(usize::MAX))];
        match socket.send_with_flags(part, libc::MSG_DONTWAIT) {
            Ok(len) => left = left.saturating_sub(len as u64),
            Err(error) if is_transient(&error) => more = 0,
            // The receiver may be the first to notice the end.
            Err(_) if !period.lasts() => break,
            Err(error) => return Err(error).doing(|| "sending bulk data".into()),
        }
    }
    // What was written of a file must arrive; of an endless download nobody waits for the rest.
    let unacknowledged = |info: &TcpInfo| size.is_some_and(|size| info.bytes_acked < Some(size));
    while period.lasts() && tcp_info::of(socket.as_fd()).is_ok_and(|info| unacknowledged(&info)) {
        std::thread::sleep(Duration::from_millis(10));
    }
    tcp_info::of(socket.as_fd()).doing(|| "reading TCP_INFO".into())
}

/// Whether the kernel calls a socket writable within [`TICK`].
fn writable(socket: &Socket) -> nix::Result<bool> {
    let mut fds = [PollFd::new(socket.as_fd(), PollFlags::POLLOUT)];
    match poll(&mut fds, PollTimeout::try_from(TICK).unwrap_or(PollTimeout::MAX)) {
        Ok(ready) => Ok(ready > 0),
        Err(Errno::EINTR) => Ok(false),
        Err(error) => Err(error),
    }
}

fn receive(side: Side, period: &Period) -> Result<Received> {
    // Room for the whole flow, so that the thread does not move megabytes while it measures.
    let bins = period.end.as_nanos() / BIN.as_nanos() + 1;
    let mut received = Vec::with_capacity(usize::try_from(bins).unwrap_or(0).min(1 << 20));
    let (mut reads, mut total) = (Blocks::default(), Bytes::ZERO);
    let Some(socket) = side.open(period)? else { return Ok(Received::default()) };
    let mut sink = vec![MaybeUninit::uninit(); 1 << 20];
    while period.lasts() {
        // With MSG_TRUNC the kernel discards the data as if it had been copied (tcp(7)): flow control is unchanged,
        // and the processor is left to the emulator.
        match socket.recv_with_flags(&mut sink, libc::MSG_TRUNC) {
            Ok(0) => break,
            Ok(len) => {
                let now = period.clock.now();
                total += Bytes::new(len as u64);
                reads.push((now, total));
                let bin = (now.as_nanos() / BIN.as_nanos()) as usize;
                if received.len() <= bin {
                    received.resize(bin + 1, Bytes::ZERO);
                }
                received[bin] += Bytes::new(len as u64);
            }
            Err(error) if is_transient(&error) => {}
            Err(_) if !period.lasts() => break,
            Err(error) => return Err(error).doing(|| "receiving bulk data".into()),
        }
    }
    Ok(Received { bins: received, reads })
}

fn sample(shared: &Mutex<Option<Socket>>, period: &Period) -> Vec<(Time, TcpInfo)> {
    let mut samples = Vec::new();
    let mut next = period.start;
    while period.wait_until(next) {
        let now = period.clock.now();
        let socket = shared.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(info) = socket.as_ref().and_then(|socket| tcp_info::of(socket.as_fd()).ok()) {
            samples.push((now, info));
        }
        drop(socket);
        next = now + BIN;
    }
    // The abort at the end happens only once no copy of the socket is left.
    shared.lock().unwrap_or_else(PoisonError::into_inner).take();
    samples
}
