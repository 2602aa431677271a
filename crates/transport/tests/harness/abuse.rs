//! Both ends of a stream over a network that loses, reorders, doubles and changes datagrams.

use lasthop_laws::atp::{Average, HopDelay, Params, Rate, Variant};
use lasthop_laws::by_name;
use lasthop_laws::tcp::Setup;
use lasthop_laws::{Choice, Place};
use lasthop_transport::stream::{AtpReceiver, AtpSender, StreamReceiver, StreamSender, TcpReceiver, TcpSender};
use lasthop_units::{Seed, Span, Stream, Time};
use lasthop_wire::datagram::{Datagram, raise_delay};
use proptest::prelude::Rng as _;
use std::collections::BTreeMap;

/// UDP payload of a full packet.
const DATAGRAM: usize = 1472;
/// What the hop takes for a packet, each way's delay beside that, and the longest queue.
const SERVICE: Span = Span::from_micros(500);
const DELAY: Span = Span::from_millis(5);
const QUEUE: usize = 300;

/// What the network does to datagrams, in parts of a thousand.
#[derive(Clone, Copy, Debug, Default)]
pub struct Abuse {
    pub seed: u64,
    pub lost: u64,
    pub doubled: u64,
    /// Each datagram is delayed by up to this much more, which reorders them.
    pub jitter: Span,
    /// A bit of D is turned.
    pub turned: u64,
}

#[derive(Clone, Copy, Debug)]
pub enum Law {
    Atp(Variant),
    Tcp(&'static str),
}

pub const LAWS: [Law; 6] = [
    Law::Atp(Variant::Default),
    Law::Atp(Variant::Aggressive),
    Law::Atp(Variant::Adaptive),
    Law::Atp(Variant::OnChange),
    Law::Tcp("cubic"),
    Law::Tcp("newreno"),
];

pub type Ends = (Box<dyn StreamSender>, Box<dyn StreamReceiver>);

pub fn ends(law: Law, seed: u64) -> Ends {
    let now = Time::ZERO;
    match law {
        Law::Atp(variant) => {
            let params = Params { variant, ..Params::default() };
            let apart = params.reports_apart();
            let sender = AtpSender::new(now, 7, Box::new(Rate::new(params.clone())), DATAGRAM);
            (Box::new(sender), Box::new(AtpReceiver::new(7, Box::new(Average::new(params)), apart)))
        }
        Law::Tcp(name) => {
            let law = |who| by_name(name, Setup::new(TcpSender::mss(DATAGRAM), Seed(seed).stream(who)));
            let loss_recovery = Choice::named(Place::Sender, name).expect("a law").transport().loss_recovery();
            let sender = TcpSender::new(now, 7, seed as u32, law("sender").expect("a law"), loss_recovery, DATAGRAM);
            let receiver = TcpReceiver::new(now, 7, !seed as u32, law("receiver").expect("a law"), DATAGRAM);
            (Box::new(sender), Box::new(receiver))
        }
    }
}

/// How the receiving application reads: so much at a time, and not sooner than so long after the last time.
#[derive(Clone, Copy)]
pub struct Reader {
    pub most: usize,
    pub every: Span,
}

pub const AT_ONCE: Reader = Reader { most: usize::MAX, every: Span::ZERO };

pub struct Run {
    pub got: Vec<u8>,
    pub took: Span,
    /// When each datagram with payload left.
    pub left: Vec<Time>,
    /// The most that waited unread, in octets.
    pub unread: u64,
    pub resent: u64,
    pub done: bool,
}

/// What is under way: by its arrival and a number; true to the receiver.
type UnderWay = BTreeMap<(Time, u64), (bool, Vec<u8>)>;

fn cast(random: &mut Stream, abuse: Abuse, at: Time, way: bool, mut bytes: Vec<u8>, sky: &mut UnderWay) {
    let mut draw = |below: u64| if below == 0 { 0 } else { random.next_u64() % below };
    if draw(1000) < abuse.turned {
        let bit = draw(32);
        bytes[4 + bit as usize / 8] ^= 1 << (bit % 8);
    }
    let copies = match draw(1000) {
        x if x < abuse.lost => 0,
        x if x < abuse.lost + abuse.doubled => 2,
        _ => 1,
    };
    for _ in 0..copies {
        let late = Span::from_nanos(draw(abuse.jitter.as_nanos() + 1));
        sky.insert((at + DELAY + late, sky.len() as u64 + draw(1 << 40)), (way, bytes.clone()));
    }
}

/// Sends `data` over one hop until it is there or `until` has come.
pub fn run((mut sender, mut receiver): Ends, data: &[u8], abuse: Abuse, reader: Reader, until: Time) -> Run {
    let mut random = Seed(abuse.seed).stream("network");
    let (mut hop, mut free) = (HopDelay::new(SERVICE), Time::ZERO);
    let mut waiting: BTreeMap<u64, Time> = BTreeMap::new();
    let mut sky = UnderWay::new();
    let (mut now, mut written, mut served, mut reads) = (Time::ZERO, 0, 0u64, Time::ZERO);
    let mut run = Run { got: Vec::new(), took: Span::ZERO, left: Vec::new(), unread: 0, resent: 0, done: false };
    let mut page = vec![0; 1 << 16];
    loop {
        while written < data.len() {
            let count = sender.write(&data[written..]);
            written += count;
            if count == 0 {
                break;
            }
        }
        if written == data.len() {
            sender.close();
        }
        let mut out = Vec::new();
        while sender.poll_transmit(now, &mut out) {
            let mut bytes = std::mem::take(&mut out);
            let read = Datagram::decode(&bytes).expect("our own");
            let payload = match read {
                Datagram::Atp { payload, .. } | Datagram::Segment { payload, .. } => payload.len(),
                _ => panic!("no transport sends that"),
            };
            if payload > 0 {
                run.left.push(now);
            }
            assert!(bytes.len() <= DATAGRAM);
            while waiting.first_key_value().is_some_and(|(_, done)| *done <= now) {
                waiting.pop_first();
            }
            if waiting.len() >= QUEUE {
                continue;
            }
            hop.on_queued(now);
            raise_delay(&mut bytes, hop.delay(now));
            let head = free.max(now);
            free = head + SERVICE;
            hop.on_done(free, now, head);
            served += 1;
            waiting.insert(served, free);
            cast(&mut random, abuse, free, true, bytes, &mut sky);
        }
        while receiver.poll_transmit(now, &mut out) {
            cast(&mut random, abuse, now, false, std::mem::take(&mut out), &mut sky);
        }
        if reads <= now {
            let most = reader.most.min(page.len());
            loop {
                let count = receiver.read(now, &mut page[..most]);
                run.got.extend_from_slice(&page[..count]);
                if count == 0 || reader.most != usize::MAX {
                    break;
                }
            }
            reads = now + reader.every;
        }
        run.unread = run.unread.max(receiver.figures().delivered.get() - run.got.len() as u64);
        run.done = sender.is_done() && receiver.is_done();
        let reading = (run.unread > 0 && !reader.every.is_zero()).then_some(reads);
        let next =
            [sender.next_timeout(), receiver.next_timeout(), sky.first_key_value().map(|((at, _), _)| *at), reading];
        let Some(next) = next.into_iter().flatten().min().filter(|next| *next < until && !run.done) else { break };
        now = next.max(now);
        while let Some(entry) = sky.first_entry().filter(|entry| entry.key().0 <= now) {
            let (to_receiver, bytes) = entry.remove();
            let datagram = Datagram::decode(&bytes).expect("only D was turned");
            if to_receiver { receiver.on_datagram(now, &datagram) } else { sender.on_datagram(now, &datagram) }
        }
        sender.on_timeout(now);
        receiver.on_timeout(now);
    }
    run.took = now.since(Time::ZERO);
    run.resent = sender.figures().resent;
    run
}

pub fn random_data(len: usize, seed: u64) -> Vec<u8> {
    let mut random = Seed(seed).stream("data");
    (0..len.div_ceil(8)).flat_map(|_| random.next_u64().to_le_bytes()).take(len).collect()
}

pub fn secs(secs: u64) -> Time {
    Time::ZERO + Span::from_secs(secs)
}
