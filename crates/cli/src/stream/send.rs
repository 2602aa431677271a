//! `lasthop send`.

use super::{Account, failed};
use crate::{INTERRUPTED, flag, note};
use anyhow::Context as _;
use clap::Args as ClapArgs;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser as _};
use lasthop_agents::endpoint::{Digest, Failure, Law, Outbound, OutboundOptions, laws};
use lasthop_agents::service;
use lasthop_agents::service::clock;
use lasthop_agents::tunnel::keys;
use lasthop_units::{Bytes, Span, Time};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use serde_json::{Map, json};
use std::fs::File;
use std::io::{self, ErrorKind, Read as _};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Octets that are read and written at once.
const PAGE: usize = 1 << 16;
/// Octets that are written ahead of the network where a time is to be kept: a quarter of a second at 1 Mbit/s.
const AHEAD: Bytes = Bytes::new(1 << 15);

/// Its command line.
#[derive(ClapArgs)]
pub struct Args {
    /// Where `lasthop recv` listens: a host, by name or address, and a port
    #[arg(value_name = "HOST:PORT", value_parser = flag::destination::<{ flag::MESH }>)]
    to: flag::Destination,
    /// What to send: a file, or `-` for standard input; without it, as much as goes in ten seconds
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
    /// Send for so long, whatever there is
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = flag::quantity::<Span>, conflicts_with_all = ["file", "bytes"])]
    time: Option<Span>,
    /// Send so many octets, whatever there is
    #[arg(long, value_name = "BYTES", allow_hyphen_values = true, value_parser = flag::quantity::<Bytes>, conflicts_with = "file")]
    bytes: Option<Bytes>,
    /// What sets the pace, and by that the transport: ATP by the name of its variant, or TCP by that of its congestion control
    #[arg(long, value_name = "NAME", default_value = "adaptive", value_parser = law_parser())]
    law: Law,
    /// File of a key that the receiver has too: nobody else can change or forge what is sent; it is not hidden
    ///
    /// One line, `station NUMBER KEY`, the key as 64 hexadecimal digits; `lasthop pair` makes such files.
    #[arg(long, value_name = "FILE")]
    key: Option<PathBuf>,
    /// Give up when the receiver has not been heard for so long
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, default_value = "15 s", value_parser = super::recv::patience)]
    patience: Span,
    /// Tell the SHA-256 of what was sent
    #[arg(long)]
    sha256: bool,
    /// Print JSON, a line an interval and a last one for all
    #[arg(long)]
    json: bool,
}

fn law_parser() -> impl clap::builder::TypedValueParser<Value = Law> {
    let names = laws().into_iter().map(|(name, doc)| PossibleValue::new(name).help(doc.trim_end_matches('.')));
    PossibleValuesParser::new(names).try_map(|name| Law::named(&name).ok_or("there is no such law"))
}

/// Where the octets come from.
enum Source {
    /// A file, and its length if it is an ordinary one.
    File(File, Option<u64>),
    Stdin,
    /// So many of no meaning.
    Bytes(u64),
    /// The same, until a moment.
    Until(Span),
}

impl Source {
    fn open(args: &Args) -> anyhow::Result<Source> {
        let Some(path) = args.file.as_deref() else {
            let time = args.time.unwrap_or(Span::from_secs(10));
            return Ok(args.bytes.map_or(Source::Until(time), |bytes| Source::Bytes(bytes.get())));
        };
        if path == Path::new("-") {
            return Ok(Source::Stdin);
        }
        let file = File::open(path).with_context(|| format!("cannot read {}", path.display()))?;
        let about = file.metadata().with_context(|| format!("cannot read {}", path.display()))?;
        anyhow::ensure!(
            !about.is_dir(),
            "{}: this is a directory; name a file, or send `tar c` by way of `-`",
            path.display()
        );
        Ok(Source::File(file, about.is_file().then_some(about.len())))
    }

    fn size(&self) -> Option<u64> {
        match self {
            Source::File(_, size) => *size,
            Source::Bytes(size) => Some(*size),
            Source::Stdin | Source::Until(_) => None,
        }
    }

    /// The next octets; `None` if there are none yet, and zero at the end.
    fn read(&mut self, page: &mut [u8], elapsed: Span) -> io::Result<Option<usize>> {
        match self {
            Source::File(file, Some(_)) => file.read(page).map(Some),
            Source::File(file, None) if !is_ready(file)? => Ok(None),
            Source::File(file, None) => come(file.read(page)),
            Source::Stdin if !is_ready(&io::stdin())? => Ok(None),
            Source::Stdin => come(io::stdin().lock().read(page)),
            Source::Bytes(left) => {
                let count = usize::try_from(*left).unwrap_or(usize::MAX).min(page.len());
                *left -= count as u64;
                Ok(Some(count))
            }
            Source::Until(time) => Ok(Some(if elapsed < *time { page.len() } else { 0 })),
        }
    }
}

/// True if a read would not wait: a pipe may have nothing for long, and the receiver is to hear of this end meanwhile.
fn is_ready(file: &impl AsFd) -> io::Result<bool> {
    let mut ready = [PollFd::new(file.as_fd(), PollFlags::POLLIN)];
    match poll(&mut ready, PollTimeout::ZERO) {
        Ok(0) | Err(nix::errno::Errno::EINTR) => Ok(false),
        Ok(_) => Ok(true),
        Err(error) => Err(error.into()),
    }
}

fn come(read: io::Result<usize>) -> io::Result<Option<usize>> {
    match read {
        Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => Ok(None),
        other => other.map(Some),
    }
}

/// Sends one stream.
pub fn send(args: &Args) -> anyhow::Result<ExitCode> {
    let mut source = Source::open(args)?;
    let key = args.key.as_deref().map(keys::station_key).transpose().map_err(failed)?;
    let to = args.to.resolve()?[0];
    let stop = service::stop_on_signals()?;
    let options = OutboundOptions {
        law: args.law.clone(),
        key: key.map(|(_, key)| key),
        size: source.size(),
        patience: args.patience,
    };
    let mut outbound = Outbound::connect(to, &options).map_err(failed)?;
    if matches!(source, Source::Until(_)) {
        outbound.limit_unsent(AHEAD);
    }
    let (mut page, mut filled, mut ended) = (vec![0; PAGE], 0..0, false);
    let mut digest = args.sha256.then(Digest::default);
    let mut account: Option<Account> = None;
    let mut began: Option<Time> = None;
    loop {
        if stop.is_asked() && outbound.end().is_none() {
            outbound.stop().map_err(failed)?;
            note!(
                "stopped{}",
                if account.is_some() { "; the receiver has been told" } else { " before the receiver answered" }
            );
            if let Some(account) = account {
                account.interrupt(&outbound.figures(), args.law.name())?;
            }
            return Ok(ExitCode::from(INTERRUPTED));
        }
        if outbound.is_open() && account.is_none() {
            began = Some(clock::now());
            account = Some(Account::new(args.json, source.size(), &outbound.figures()));
        }
        // Before it has answered nothing is read: what comes from a pipe would be lost with the process.
        while account.is_some() && !ended {
            if filled.is_empty() {
                let elapsed = clock::now().since(began.unwrap_or_else(clock::now));
                let Some(count) = source.read(&mut page, elapsed).context("cannot read what is to be sent")? else {
                    break;
                };
                filled = 0..count;
                if count == 0 {
                    ended = true;
                    outbound.close();
                } else if let Some(digest) = &mut digest {
                    digest.update(&page[..count]);
                }
            }
            let count = outbound.write(&page[filled.clone()]);
            filled.start += count;
            if !filled.is_empty() {
                break;
            }
        }
        let now = clock::now();
        let waits = matches!(source, Source::Stdin | Source::File(_, None)) && !ended && filled.is_empty();
        let soon = if waits { Span::from_millis(5) } else { Span::from_millis(200) };
        let until = account.as_ref().map_or(now + soon, |account| account.due().min(now + soon));
        outbound.step(until).map_err(failed)?;
        let figures = outbound.figures();
        if let Some(account) = &mut account {
            account.look(&figures)?;
        }
        match outbound.end().cloned() {
            None => {}
            Some(Ok(())) => {
                let Some(account) = account.take() else { continue };
                let mut more = Map::new();
                if let Some(digest) = digest.take() {
                    more.insert("sha256".into(), json!(digest.finish()));
                }
                if outbound.unsent() > 0 {
                    more.insert("unsent_datagrams".into(), json!(outbound.unsent()));
                }
                account.finish(&figures, args.law.name(), more)?;
                return Ok(ExitCode::SUCCESS);
            }
            Some(Err(why)) => {
                if let Some(account) = account.take() {
                    account.abandon(&figures);
                }
                return Err(why_of(why, to));
            }
        }
    }
}

fn why_of(why: Failure, to: std::net::SocketAddr) -> anyhow::Error {
    anyhow::Error::new(why).context(format!("the stream to {to} has failed"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_line::Line;
    use clap::Parser;

    #[test]
    fn a_flag_that_cannot_be_is_told_with_what_would_be_right() {
        for (wrong, says) in [
            ("h:1 --bytes -3", "invalid value '-3' for '--bytes"),
            ("h:1 --time -1s", "invalid value '-1s' for '--time"),
            ("h:1 --patience -2s", "invalid value '-2s' for '--patience"),
            ("h:1 --patience 1s", "at least 2 s"),
            ("h:1 --law nosuch", "adaptive"),
            ("h", "such as host.example.org:4900"),
        ] {
            let words = ["send"].into_iter().chain(wrong.split_whitespace());
            let told = Line::<Args>::try_parse_from(words).map(drop).expect_err(wrong).to_string();
            assert!(told.contains(says) && !told.contains("-- -"), "{wrong}: {told}");
        }
        let args = Line::<Args>::parse_from(["send", "h:1", "--bytes", "3 kB"]).args;
        assert_eq!(args.bytes, Some(Bytes::new(3_000)));
    }
}
