//! Servers that take a connection and then say nothing, or nothing more: whoever asks is told so, and soon.

#![allow(clippy::unwrap_used, reason = "in a test a panic is the message")]

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use onceward_domain::dump::Page;
use onceward_domain::error::{Code, Error};
use onceward_domain::ports::archive::{Archive as _, Sink, Source};
use onceward_postgres::{OpenOptions, PostgresArchive, PostgresStore, begin, migrate};
use onceward_testkit::block_on::block_on;
use tokio::runtime::Runtime;

/// More than one of them waits for a server, which the URLs here allow a second each, on a busy machine.
const SOON: Duration = Duration::from_secs(30);

/// Most connections that one of these servers counts.
const COUNTED: usize = 64;

/// How far a server goes before it falls silent.
#[derive(Clone, Copy, Debug)]
enum Until {
    /// It takes the connection.
    Accepted,
    /// It says that it speaks TLS.
    EncryptionOffered,
    /// It lets everybody in, and says that it is ready.
    Ready,
}

/// A message of the server: its letter, its length, its content.
fn message(letter: u8, content: &[u8]) -> Vec<u8> {
    let length = u32::try_from(content.len() + 4).unwrap().to_be_bytes();
    [&[letter], &length[..], content].concat()
}

fn answer(mut client: &TcpStream, until: Until) {
    let mut bytes = [0; 1024];
    match until {
        Until::Accepted => {}
        Until::EncryptionOffered => {
            client.read_exact(&mut bytes[..8]).unwrap();
            client.write_all(b"S").unwrap();
        }
        Until::Ready => {
            assert!(client.read(&mut bytes).unwrap() > 0, "somebody wants in");
            let ready = [message(b'R', &0_u32.to_be_bytes()), message(b'Z', b"I")].concat();
            client.write_all(&ready).unwrap();
        }
    }
}

/// Such a server, by its URL, and a sign for each connection that it took. It ends with the test's process.
fn server(until: Until) -> (String, Receiver<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (taken, signs) = sync_channel(COUNTED);
    thread::spawn(move || {
        let mut kept = Vec::new();
        for client in listener.incoming().map_while(Result::ok).take(COUNTED) {
            taken.send(()).unwrap();
            answer(&client, until);
            kept.push(client);
        }
    });
    let mode = if matches!(until, Until::EncryptionOffered) { "prefer" } else { "disable" };
    (format!("postgres://me:secret@{address}/shop?sslmode={mode}&connect_timeout=1"), signs)
}

struct Nothing;

impl Sink for Nothing {
    fn take(&mut self, _: Page) -> Result<(), Error> {
        Ok(())
    }
}

impl Source for Nothing {
    fn next(&mut self) -> Result<Option<Page>, Error> {
        Ok(None)
    }
}

/// Everything that makes a session of its own.
fn everything_refuses(runtime: &Runtime, url: &str) -> [Error; 6] {
    let archive = {
        let _inside = runtime.enter();
        PostgresArchive::new(url)
    };
    [
        runtime.block_on(PostgresStore::open(OpenOptions::new(url))).unwrap_err(),
        runtime.block_on(migrate(url)).unwrap_err(),
        runtime.block_on(begin(url)).unwrap_err(),
        block_on(archive.hold()).unwrap_err(),
        block_on(archive.dump(Box::new(Nothing))).unwrap_err(),
        block_on(archive.restore(Box::new(Nothing))).unwrap_err(),
    ]
}

#[test]
fn dr_02_a_server_that_falls_silent_before_there_is_a_session_is_away() {
    let runtime = Runtime::new().unwrap();
    for until in [Until::Accepted, Until::EncryptionOffered, Until::Ready] {
        let (url, signs) = server(until);
        let begun = Instant::now();
        for refused in everything_refuses(&runtime, &url) {
            assert_eq!(refused.code(), Code::Unavailable, "{until:?}: {refused:?}");
            assert!(refused.operator_text().contains("gave no answer within 1 s"), "{until:?}: {refused}");
        }
        assert!(begun.elapsed() < SOON, "{until:?}");
        assert_eq!(signs.try_iter().count(), 6, "{until:?}");
    }
}

#[test]
fn fs_10_a_silent_server_does_not_keep_from_the_next_one() {
    let runtime = Runtime::new().unwrap();
    let ((first, _), (second, signs)) = (server(Until::Accepted), server(Until::Ready));
    let place = |url: &str| url.split(['@', '/']).nth(3).unwrap().to_owned();
    let both = first.replace(&place(&first), &format!("{},{}", place(&first), place(&second)));
    let refused = runtime.block_on(PostgresStore::open(OpenOptions::new(both))).unwrap_err();
    assert_eq!(refused.code(), Code::Unavailable, "{refused}");
    signs.try_recv().expect("the second server was asked");
}
