//! Local programs: what they ask for, before a stream is theirs.

use lasthop_wire::proxy::{Target, connect, socks5};
use lasthop_wire::tunnel::OpenResult;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};

/// A connection of a local program.
pub(crate) struct Local {
    pub(crate) socket: TcpStream,
    said: Vec<u8>,
    dialect: Dialect,
    /// Where a connection goes that was led here without its program's knowing.
    pub(crate) diverted: Option<SocketAddr>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Dialect {
    Unknown,
    /// SOCKS5, greeted.
    Socks,
    Http,
    /// Nothing needs to be said: the port tells.
    Silent,
}

/// What came of listening to it.
pub(crate) enum Heard {
    /// It has more to say.
    More,
    /// It wants to be connected.
    Wants(Target),
    /// It has gone, or talks nonsense; it has been told so.
    Over,
}

/// Octets after which nobody has asked for anything sensible.
const MOST: usize = connect::MAX_REQUEST + 1024;

impl Local {
    pub(crate) fn new(socket: TcpStream) -> io::Result<Local> {
        socket.set_nonblocking(true)?;
        Ok(Local { socket, said: Vec::new(), dialect: Dialect::Unknown, diverted: None })
    }

    /// A connection with a known target.
    pub(crate) fn silent(socket: TcpStream) -> io::Result<Local> {
        Ok(Local { dialect: Dialect::Silent, ..Local::new(socket)? })
    }

    /// True if it is told nothing: neither that it is connected, nor why it is not.
    pub(crate) fn is_silent(&self) -> bool {
        self.dialect == Dialect::Silent
    }

    /// Reads what there is.
    pub(crate) fn listen(&mut self) -> Heard {
        let mut piece = [0; 2048];
        loop {
            match self.socket.read(&mut piece) {
                Ok(0) => return Heard::Over,
                Ok(count) => {
                    self.said.extend_from_slice(&piece[..count]);
                    match self.understand() {
                        Ok(Some(target)) => return Heard::Wants(target),
                        Ok(None) if self.said.len() < MOST => {}
                        Ok(None) | Err(()) => return Heard::Over,
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Heard::More,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return Heard::Over,
            }
        }
    }

    fn understand(&mut self) -> Result<Option<Target>, ()> {
        if self.dialect == Dialect::Unknown {
            match self.said.first() {
                Some(&socks5::VERSION) => match socks5::greeting(&self.said).map_err(drop)? {
                    None => return Ok(None),
                    Some((true, used)) => {
                        self.said.drain(..used);
                        self.say(&socks5::GREETING_REPLY);
                        self.dialect = Dialect::Socks;
                    }
                    Some((false, _)) => {
                        self.say(&socks5::GREETING_REFUSAL);
                        return Err(());
                    }
                },
                Some(_) => self.dialect = Dialect::Http,
                None => return Ok(None),
            }
        }
        if self.dialect == Dialect::Http {
            return match connect::request(&self.said) {
                Ok(Some((target, used))) => {
                    self.said.drain(..used);
                    Ok(Some(target))
                }
                Ok(None) => Ok(None),
                Err(_) => {
                    let refusal = connect::refusal(&self.said);
                    self.say(refusal);
                    Err(())
                }
            };
        }
        match socks5::request(&self.said) {
            Ok(Some((socks5::Request::Connect(target), used))) => {
                self.said.drain(..used);
                Ok(Some(target))
            }
            Ok(Some((socks5::Request::Other, _))) => {
                self.say(&socks5::reply(socks5::NOT_SUPPORTED));
                Err(())
            }
            Ok(Some((socks5::Request::UnknownAddress, _))) => {
                self.say(&socks5::reply(socks5::ADDRESS_NOT_SUPPORTED));
                Err(())
            }
            Ok(None) => Ok(None),
            Err(_) => {
                self.say(&socks5::result_reply(OpenResult::Failed));
                Err(())
            }
        }
    }

    /// Tells the program how it went; what it has said already beyond its request is given back with its connection.
    pub(crate) fn answer(mut self, result: OpenResult) -> (TcpStream, Vec<u8>) {
        match self.dialect {
            Dialect::Socks => self.say(&socks5::result_reply(result)),
            Dialect::Http => self.say(connect::answer(result)),
            Dialect::Unknown | Dialect::Silent => {}
        }
        (self.socket, self.said)
    }

    /// The program has not said in time what it wants. One that has begun to speak HTTP is told so; SOCKS5 has no word
    /// for it.
    pub(crate) fn give_up(mut self) {
        if self.dialect == Dialect::Http {
            self.say(connect::TIMED_OUT);
        }
    }

    /// A few octets into an empty buffer; a program that has gone does not hear them.
    fn say(&mut self, bytes: &[u8]) {
        let _ = self.socket.write_all(bytes);
    }
}
