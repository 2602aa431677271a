//! `lasthop recv`.

use super::sink::Sink;
use super::{Account, failed};
use crate::{INTERRUPTED, flag, note};
use clap::Args as ClapArgs;
use lasthop_agents::endpoint::{Event, Failure, Inbound, InboundOptions};
use lasthop_agents::service;
use lasthop_agents::service::clock;
use lasthop_agents::tunnel::keys;
use lasthop_transport::stream::Figures;
use lasthop_units::Span;
use serde_json::{Map, json};
use std::net::{Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::process::ExitCode;

/// Octets that are read at once.
const PAGE: usize = 1 << 18;

/// Its command line.
#[derive(ClapArgs)]
pub struct Args {
    /// Where to listen
    #[arg(long, value_name = "ADDR:PORT", default_value_t = (Ipv6Addr::UNSPECIFIED, flag::MESH).into(), value_parser = flag::address::<{ flag::MESH }>)]
    bind: SocketAddr,
    /// Put one stream into this file, or on standard output (`-`), and end; without it, what comes is counted and forgotten
    ///
    /// The file must not be there. Until the stream is whole its name has `.part` behind it.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// File of a key that senders must have
    ///
    /// One line, `station NUMBER KEY`, the key as 64 hexadecimal digits; `lasthop pair` makes such files.
    #[arg(long, value_name = "FILE")]
    key: Option<PathBuf>,
    /// End after one stream
    #[arg(long)]
    once: bool,
    /// Give a stream up when its sender has not been heard for so long
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, default_value = "15 s", value_parser = patience)]
    patience: Span,
    /// Tell the SHA-256 of what came
    #[arg(long)]
    sha256: bool,
    /// Print JSON, a line an interval and a last one for all; nothing with `--out -`
    #[arg(long, conflicts_with = "quiet")]
    json: bool,
    /// Print nothing but errors
    #[arg(long)]
    quiet: bool,
}

/// How long an end waits for the other one.
pub fn patience(text: &str) -> Result<Span, String> {
    let span: Span = flag::quantity(text)?;
    let least = Span::from_secs(2);
    if span < least {
        Err(format!("it must be at least {least}: the other end shows itself once a second"))
    } else {
        Ok(span)
    }
}

/// One stream that is being received.
struct Current {
    sink: Sink,
    account: Option<Account>,
    name: &'static str,
    figures: Figures,
}

/// Receives streams until it is told to stop, or one.
pub fn recv(args: &Args) -> anyhow::Result<ExitCode> {
    let key = args.key.as_deref().map(keys::station_key).transpose();
    let key = key.map_err(failed)?.map(|(_, key)| key);
    let stop = service::stop_on_signals()?;
    let mut inbound =
        Inbound::bind(&InboundOptions { bind: args.bind, key, patience: args.patience }).map_err(failed)?;
    let once = args.once || args.out.is_some();
    // Before anybody calls: nobody should send a gigabyte to learn that there is no place for it.
    let mut spare = Some(Sink::open(args.out.as_deref(), args.sha256)?);
    if !args.quiet {
        note!("listening at {}", inbound.address().map_err(failed)?);
    }
    // Where standard output has the stream itself, nothing else may stand there.
    let silent = args.quiet || args.out.as_deref() == Some(std::path::Path::new("-"));
    let (mut page, mut current): (_, Option<Current>) = (vec![0; PAGE], None);
    loop {
        if stop.is_asked() {
            inbound.stop().map_err(failed)?;
            let (sink, account) = match current {
                Some(Current { sink, account, name, figures }) => {
                    (Some(sink), account.map(|account| (account, name, figures)))
                }
                None => (spare, None),
            };
            let left = sink.and_then(Sink::abandon);
            note!("stopped{}", left.map_or_else(String::new, |left| format!(": {left}")));
            if let Some((account, name, figures)) = account {
                account.interrupt(&figures, name)?;
            }
            return Ok(ExitCode::from(INTERRUPTED));
        }
        let due = current.as_ref().and_then(|current| current.account.as_ref()).map(Account::due);
        let until = (clock::now() + Span::from_millis(200)).min(due.unwrap_or(lasthop_units::Time::MAX));
        let event = inbound.step(until).map_err(failed)?;
        if let Some(Event::Begun(from, name, size)) = &event {
            if !silent && !args.json {
                note!("a stream from {from} by {name}");
            }
            let sink = match spare.take() {
                Some(sink) => sink,
                None => Sink::open(args.out.as_deref(), args.sha256)?,
            };
            let account = (!silent).then(|| Account::new(args.json, *size, &Figures::default()));
            current = Some(Current { sink, account, name, figures: Figures::default() });
        }
        if let Some(stream) = &mut current {
            loop {
                let count = inbound.read(&mut page);
                if count == 0 {
                    break;
                }
                if let Err(error) = stream.sink.take(&page[..count]) {
                    inbound.cannot_keep().map_err(failed)?;
                    let left = current.take().and_then(|current| current.sink.abandon());
                    left.into_iter().for_each(|left| note!("{left}"));
                    return Err(error);
                }
            }
            stream.figures = inbound.figures().unwrap_or(stream.figures);
            if let Some(account) = &mut stream.account {
                account.look(&stream.figures)?;
            }
        }
        match event {
            Some(Event::Complete) => {
                let Some(Current { sink, account, name, figures }) = current.take() else { continue };
                let digest = match sink.finish() {
                    Ok(digest) => digest,
                    Err(error) => {
                        inbound.cannot_keep().map_err(failed)?;
                        return Err(error);
                    }
                };
                inbound.kept();
                let mut more = Map::new();
                digest.clone().into_iter().for_each(|digest| drop(more.insert("sha256".into(), json!(digest))));
                match account {
                    Some(account) => account.finish(&figures, name, more)?,
                    None => digest.into_iter().filter(|_| !args.quiet).for_each(|digest| note!("sha256: {digest}")),
                }
            }
            Some(Event::Over) if once => return Ok(ExitCode::SUCCESS),
            Some(Event::Failed(why)) => {
                let left = current.take().and_then(|current| {
                    current.account.into_iter().for_each(|account| account.abandon(&current.figures));
                    current.sink.abandon()
                });
                if once {
                    return Err(failure(why, left));
                }
                note!("a stream has failed: {why}");
                left.into_iter().for_each(|left| note!("{left}"));
            }
            _ => {}
        }
    }
}

fn failure(why: Failure, left: Option<String>) -> anyhow::Error {
    let left = left.map_or_else(String::new, |left| format!("; {left}"));
    anyhow::Error::new(why).context(format!("the stream has failed{left}"))
}
