//! A way to the server that loses answers: bytes go through it both ways until it meets a COMMIT while it is armed,
//! or is told to fall silent.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicUsize, Ordering};
use std::thread;

/// What happens to the next COMMIT, and to those who connect afterwards.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Loss {
    /// It arrives, and its answer does not.
    Answer = 1,
    /// It does not arrive.
    Request = 2,
    /// It arrives, its answer does not, and nobody gets through any more.
    AnswerAndWay = 3,
    /// The same, but whoever comes is let wait.
    AnswerAndVoice = 4,
}

const NOTHING: u8 = 0;
const COMMIT: &[u8] = b"COMMIT\0";

/// The way. It ends with the test's process.
pub(crate) struct Proxy {
    port: u16,
    armed: Arc<AtomicU8>,
    /// How many connections it has taken up, and how many of them are silent.
    taken: Arc<AtomicUsize>,
    silent: Arc<AtomicUsize>,
}

impl Proxy {
    /// Opens a way to the server in a URL.
    pub(crate) fn to(url: &str) -> (Self, String) {
        let (before, rest) = url.split_once('@').unwrap();
        let (server, path) = rest.split_once('/').unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let (armed, closed) = (Arc::new(AtomicU8::new(NOTHING)), Arc::new(AtomicU8::new(NOTHING)));
        let (taken, silent) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let (server, watched) = (server.to_owned(), Arc::clone(&armed));
        let (counted, hushed) = (Arc::clone(&taken), Arc::clone(&silent));
        thread::spawn(move || {
            let mut waiting = Vec::new();
            for client in listener.incoming().map_while(Result::ok) {
                match closed.load(Ordering::SeqCst) {
                    NOTHING => {}
                    // Nobody ever looks at them again.
                    voice if voice == Loss::AnswerAndVoice as u8 => {
                        waiting.push(client);
                        continue;
                    }
                    _ => continue,
                }
                let server = TcpStream::connect(&server).unwrap();
                let number = counted.fetch_add(1, Ordering::SeqCst);
                let hushed = Arc::clone(&hushed);
                let is_silent = move || number < hushed.load(Ordering::SeqCst);
                carry(client, server, is_silent, (&watched, &closed));
            }
        });
        (Self { port, armed, taken, silent }, format!("{before}@127.0.0.1:{port}/{path}"))
    }

    /// The next COMMIT is the one.
    pub(crate) fn arm(&self, loss: Loss) {
        assert!(self.port > 0);
        self.armed.store(loss as u8, Ordering::SeqCst);
    }

    /// Nothing comes from the server any more to those who are connected, and they stay so.
    pub(crate) fn hush(&self) {
        self.silent.store(self.taken.load(Ordering::SeqCst), Ordering::SeqCst);
    }

    /// Whether it has met its COMMIT.
    pub(crate) fn has_struck(&self) -> bool {
        self.armed.load(Ordering::SeqCst) == NOTHING
    }
}

fn carry(
    client: TcpStream,
    server: TcpStream,
    is_silent: impl Fn() -> bool + Send + 'static,
    (armed, closed): (&Arc<AtomicU8>, &Arc<AtomicU8>),
) {
    let deaf = Arc::new(AtomicBool::new(false));
    let (mut from_server, mut to_client) = (server.try_clone().unwrap(), client.try_clone().unwrap());
    let is_deaf = Arc::clone(&deaf);
    thread::spawn(move || {
        let mut bytes = [0; 8192];
        while let Ok(count @ 1..) = from_server.read(&mut bytes) {
            if is_silent() {
                continue;
            }
            if is_deaf.load(Ordering::SeqCst) || to_client.write_all(&bytes[..count]).is_err() {
                break;
            }
        }
        let _ = to_client.shutdown(Shutdown::Both);
    });
    let (armed, closed) = (Arc::clone(armed), Arc::clone(closed));
    let (mut from_client, mut to_server) = (client, server);
    thread::spawn(move || {
        let mut bytes = [0; 8192];
        while let Ok(count @ 1..) = from_client.read(&mut bytes) {
            let met = bytes[..count].windows(COMMIT.len()).any(|window| window == COMMIT);
            let loss = if met { armed.swap(NOTHING, Ordering::SeqCst) } else { NOTHING };
            deaf.fetch_or(loss != NOTHING, Ordering::SeqCst);
            if loss >= Loss::AnswerAndWay as u8 {
                closed.store(loss, Ordering::SeqCst);
            }
            if loss != Loss::Request as u8 && to_server.write_all(&bytes[..count]).is_err() {
                break;
            }
            if loss != NOTHING {
                let _ = from_client.shutdown(Shutdown::Both);
                break;
            }
        }
        // The server finishes what it has, and then sees that nobody is there.
        let _ = to_server.shutdown(Shutdown::Write);
    });
}
