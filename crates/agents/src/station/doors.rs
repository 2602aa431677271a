//! Where local programs come in: SOCKS5 and HTTP CONNECT, forwarded ports, and in transparent mode where their connections are led.

use super::config::Forward;
#[cfg(feature = "bpf")]
use super::diversion::{self, Diversion};
use super::local::{Heard, Local};
use crate::service::backoff_listener::BackoffListener;
use crate::service::poll::Poll;
use crate::service::{self, system};
use crate::transparent::Error;
use lasthop_units::{Span, Time};
use lasthop_wire::proxy::Target;
use std::collections::BTreeMap;
use std::net::{SocketAddr, TcpListener};
use std::path::Path;

/// What is to be opened.
pub(crate) struct Wanted<'a> {
    /// Where programs find SOCKS5 and HTTP CONNECT.
    pub(crate) listen: Option<SocketAddr>,
    /// Ports that lead to one target each.
    pub(crate) forwards: &'a [Forward],
    /// Connections of the programs in this cgroup are led here.
    pub(crate) transparent: Option<&'a Path>,
    /// Addresses of the tunnel's other end, which are left alone then.
    pub(crate) others: &'a [SocketAddr],
}

/// The doors of an agent, and programs that have not said yet what they want.
pub(crate) struct Doors {
    listeners: Vec<(BackoffListener, Leads)>,
    #[cfg(feature = "bpf")]
    diversion: Option<Diversion>,
    /// Programs that have not said what they want, and when they came: in that order.
    locals: BTreeMap<u32, (Time, Local)>,
    next_local: u32,
    /// How the sockets of those are told from others.
    local: u64,
}

/// A program that wants to be connected.
pub(crate) type Guest = (Local, Target);

/// Where a listener leads.
#[derive(Clone)]
enum Leads {
    /// Where the program says, in SOCKS5 or HTTP.
    WhereAsked,
    To(Target),
    /// Where the connection was meant to go before it was led here.
    #[cfg(feature = "bpf")]
    WhereMeant,
}

/// A program that has not said by then where it wants to go is not waited for.
const GREETING: Span = Span::from_secs(10);

impl Doors {
    /// Opens them. Sockets are watched under `listener` and `local`, with a number added that is told to [`Doors::accept`] and
    /// [`Doors::listen`].
    ///
    /// # Errors
    /// [`Error`].
    pub(crate) fn open(
        now: Time,
        wanted: &Wanted<'_>,
        poll: &Poll,
        [listener, local]: [u64; 2],
    ) -> Result<Doors, Error> {
        let mut listeners = Vec::new();
        let asked = wanted.listen.map(|address| (address, Leads::WhereAsked));
        let forwards = wanted.forwards.iter().map(|forward| (forward.listen, Leads::To(forward.target.clone())));
        for (address, leads) in asked.into_iter().chain(forwards) {
            let listener = TcpListener::bind(address)
                .and_then(|listener| listener.set_nonblocking(true).map(|()| listener))
                .map_err(service::address("cannot listen on", address))?;
            listeners.push((listener, leads));
        }
        #[cfg(not(feature = "bpf"))]
        if wanted.transparent.is_some() {
            return Err(service::Error::NotBuilt.into());
        }
        #[cfg(feature = "bpf")]
        let diversion = match wanted.transparent {
            Some(cgroup) => {
                let (diversion, own) = Diversion::begin(cgroup, wanted.others.iter().copied(), now)?;
                listeners.extend(own.into_iter().map(|listener| (listener, Leads::WhereMeant)));
                Some(diversion)
            }
            None => None,
        };
        #[cfg(not(feature = "bpf"))]
        let _ = (now, wanted.others);
        let open = |(index, (socket, leads))| {
            Ok((BackoffListener::open(socket, listener | index as u64, poll).map_err(system("epoll"))?, leads))
        };
        let listeners = listeners.into_iter().enumerate().map(open).collect::<Result<_, Error>>()?;
        Ok(Doors {
            listeners,
            #[cfg(feature = "bpf")]
            diversion,
            locals: BTreeMap::new(),
            next_local: 0,
            local,
        })
    }

    /// To be called once privileges are given up: what will not work then fails now.
    ///
    /// # Errors
    /// [`Error::Map`].
    pub(crate) fn check(&self) -> Result<(), Error> {
        #[cfg(feature = "bpf")]
        if let Some(diversion) = &self.diversion {
            // Better now than when the other end is first heard.
            diversion.set_until().map_err(not_taken("eBPF maps without privileges (Linux 5.19)"))?;
        }
        Ok(())
    }

    /// Where local programs reach it: the proxy port and then the forwarded ones, in order.
    ///
    /// # Errors
    /// If the kernel does not say.
    pub(crate) fn addresses(&self) -> Result<Vec<SocketAddr>, Error> {
        let named = self.listeners.iter().filter(|(_, leads)| matches!(leads, Leads::WhereAsked | Leads::To(_)));
        let addresses = named.map(|(listener, _)| listener.address());
        Ok(addresses.collect::<Result<_, _>>().map_err(system("the address of a socket"))?)
    }

    /// Lets in the programs that wait at a door; returns those that want to be connected already.
    pub(crate) fn accept(&mut self, now: Time, index: usize, poll: &Poll) -> Vec<Guest> {
        let mut guests = Vec::new();
        for _ in 0..BackoffListener::BUDGET {
            let Some((listener, leads)) = self.listeners.get_mut(index) else { break };
            let Some(socket) = listener.admit(now, poll) else { break };
            match leads.clone() {
                Leads::To(target) => {
                    if let Ok(local) = Local::silent(socket) {
                        guests.push((local, target));
                    }
                }
                #[cfg(feature = "bpf")]
                Leads::WhereMeant => {
                    // A connection that has come by itself has no known target.
                    let meant = self.diversion.as_ref().and_then(|diversion| diversion.meant(&socket));
                    let target = meant.and_then(|to| Some((to, diversion::target(to)?)));
                    if let (Some((to, target)), Ok(mut local)) = (target, Local::silent(socket)) {
                        local.diverted = Some(to);
                        guests.push((local, target));
                    }
                }
                Leads::WhereAsked => {
                    let Ok(local) = Local::new(socket) else { continue };
                    let number = self.next_local;
                    self.next_local = self.next_local.wrapping_add(1);
                    if poll.add_level(&local.socket, self.local | u64::from(number)).is_ok() {
                        self.locals.insert(number, (now, local));
                        guests.extend(self.listen(number, poll));
                    }
                }
            }
        }
        guests
    }

    /// Hears what a program says; returns it if it wants to be connected.
    pub(crate) fn listen(&mut self, number: u32, poll: &Poll) -> Option<Guest> {
        let (since, mut local) = self.locals.remove(&number)?;
        match local.listen() {
            Heard::More => {
                self.locals.insert(number, (since, local));
                None
            }
            Heard::Wants(target) => {
                poll.remove(&local.socket);
                Some((local, target))
            }
            Heard::Over => None,
        }
    }

    /// Ends connections that have said nothing sensible for long, and asks again where there was no room.
    pub(crate) fn look_after(&mut self, now: Time, poll: &Poll) {
        while let Some(oldest) = self.locals.first_entry().filter(|oldest| now.since(oldest.get().0) >= GREETING) {
            oldest.remove().1.give_up();
        }
        self.listeners.iter_mut().for_each(|(listener, _)| listener.look_after(now, poll));
    }

    /// When [`Doors::look_after`] has something to do.
    pub(crate) fn next_look(&self) -> Option<Time> {
        let local = self.locals.first_key_value().map(|(_, (since, _))| *since + GREETING);
        self.listeners.iter().filter_map(|(listener, _)| listener.next_look()).chain(local).min()
    }

    /// Leads programs' connections here as long as the tunnel's other end is heard, but not to what it does not connect to.
    ///
    /// # Errors
    /// [`Error::Map`].
    pub(crate) fn divert(&mut self, now: Time, heard: Option<Time>, forbidden: Vec<SocketAddr>) -> Result<(), Error> {
        #[cfg(feature = "bpf")]
        if let Some(diversion) = &mut self.diversion {
            let failed = not_taken("an eBPF map");
            if !diversion.is_attached(now) {
                return Err(Error::OffCgroup);
            }
            diversion.look(now, heard).map_err(failed)?;
            forbidden.into_iter().try_for_each(|to| diversion.pass(to)).map_err(failed)?;
        }
        #[cfg(not(feature = "bpf"))]
        let _ = (now, heard, forbidden);
        Ok(())
    }

    /// Leads nobody here any more.
    pub(crate) fn release(&mut self) {
        #[cfg(feature = "bpf")]
        drop(self.diversion.take());
    }
}

/// For `map_err`: a map could not be written.
#[cfg(feature = "bpf")]
fn not_taken(what: &'static str) -> impl Fn(libbpf_rs::Error) -> Error + Copy {
    move |error| Error::Map { what, source: error.into() }
}
