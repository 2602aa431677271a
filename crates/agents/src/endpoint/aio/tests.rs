//! Streams as futures, over loopback.

use super::{Incoming, Listener, SendStream};
use crate::endpoint::{InboundOptions, Law, OutboundOptions, PATIENCE};
use futures_lite::future::{block_on, poll_once, zip};
use futures_lite::{AsyncReadExt as _, AsyncWriteExt as _};
use lasthop_units::Span;
use std::io;

fn listener() -> Listener {
    let bind = "127.0.0.1:0".parse().expect("an address");
    Listener::bind(&InboundOptions { bind, key: None, patience: PATIENCE }).expect("a free port")
}

fn options(law: &str, patience: Span) -> OutboundOptions {
    OutboundOptions { law: Law::named(law).expect("a law"), key: None, size: None, patience }
}

fn sender(to: &Listener, law: &str) -> SendStream {
    SendStream::connect(to.address(), &options(law, PATIENCE)).expect("a socket")
}

async fn read_all(mut stream: Incoming<'_>) -> io::Result<Vec<u8>> {
    let mut got = Vec::new();
    stream.read_to_end(&mut got).await?;
    stream.kept().await?;
    Ok(got)
}

#[test]
fn what_is_written_is_read_and_one_stream_follows_another() {
    let mut listener = listener();
    for (law, len) in [("adaptive", 2_000_000usize), ("newreno", 300_000), ("on-change", 0)] {
        let data: Vec<u8> = (0..len).map(|n| (n * 7 % 251) as u8).collect();
        let mut stream = sender(&listener, law);
        let send = async {
            stream.write_all(&data).await?;
            stream.close().await
        };
        let receive = async {
            let incoming = listener.accept().await?;
            read_all(incoming).await
        };
        let (sent, got) = block_on(zip(send, receive));
        sent.expect("kept");
        assert!(got.expect("whole") == data, "{law}");
        assert_eq!(stream.figures().delivered.get(), len as u64, "{law}");
    }
}

#[test]
fn who_drops_a_stream_ends_it_for_the_other() {
    let mut listener = listener();
    let mut stream = sender(&listener, "adaptive");
    let send = async {
        stream.write_all(b"not everything").await.expect("room");
        stream.close().await
    };
    let drop_it = async { drop(listener.accept().await.expect("it came")) };
    let (sent, ()) = block_on(zip(send, drop_it));
    assert_eq!(sent.map_err(|error| error.kind()), Err(io::ErrorKind::ConnectionAborted));
    assert!(block_on(stream.write(b"more")).is_err());

    // The other way.
    let mut listener = self::listener();
    let mut stream = sender(&listener, "adaptive");
    let got = block_on(async {
        let (written, incoming) = zip(stream.write_all(b"not everything"), listener.accept()).await;
        written.expect("room");
        let mut incoming = incoming.expect("it came");
        incoming.read_exact(&mut [0; 14]).await.expect("it comes");
        drop(stream);
        read_all(incoming).await
    });
    assert_eq!(got.map_err(|error| error.kind()), Err(io::ErrorKind::ConnectionAborted));
}

#[test]
fn a_reader_that_waits_holds_the_writer() {
    let mut listener = listener();
    let mut stream = sender(&listener, "adaptive");
    let data: Vec<u8> = (0..48 << 20).map(|n| (n % 251) as u8).collect();
    block_on(async {
        let mut written = stream.write(&data).await.expect("room");
        let mut incoming = listener.accept().await.expect("it came");
        // Nobody reads: sooner or later nothing is taken any more.
        let mut still = 0;
        while still < 300 && written < data.len() {
            match poll_once(stream.write(&data[written..])).await {
                Some(count) => (written, still) = (written + count.expect("open"), 0),
                None => {
                    std::thread::sleep(std::time::Duration::from_millis(1));
                    still += 1;
                }
            }
        }
        assert!(written < data.len(), "all of it was taken, and nothing read");
        let send = async {
            stream.write_all(&data[written..]).await.expect("room");
            stream.close().await
        };
        let receive = async {
            let mut got = Vec::new();
            incoming.read_to_end(&mut got).await.expect("it comes");
            incoming.kept().await.expect("it is heard");
            got
        };
        let (sent, got) = zip(send, receive).await;
        sent.expect("kept");
        assert!(got == data);
    });
}

#[test]
fn nobody_there_is_an_error_in_time() {
    let to = "127.0.0.1:9".parse().expect("an address");
    let mut stream = SendStream::connect(to, &options("adaptive", Span::from_millis(300))).expect("a socket");
    let end = block_on(stream.close());
    assert_eq!(end.map_err(|error| error.kind()), Err(io::ErrorKind::ConnectionRefused));
}
