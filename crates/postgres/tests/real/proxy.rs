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
    /// It arrives, and nothing comes back on this connection any more, which stays.
    Voice = 3,
    /// It arrives, its answer does not, and nobody gets through any more.
    AnswerAndWay = 4,
    /// The same, but whoever comes is let wait.
    AnswerAndVoice = 5,
}

const NOTHING: u8 = 0;
const COMMIT: &[u8] = b"COMMIT\0";

/// The way. It ends with the test's process.
pub(crate) struct Proxy {
    state: Arc<State>,
}

#[derive(Default)]
struct State {
    armed: AtomicU8,
    closed: AtomicU8,
    /// How many connections were taken up, and how many of them are silent.
    taken: AtomicUsize,
    silent: AtomicUsize,
}

impl State {
    fn hush(&self) {
        self.silent.store(self.taken.load(Ordering::SeqCst), Ordering::SeqCst);
    }
}

impl Proxy {
    /// Opens a way to the server in a URL.
    pub(crate) fn to(url: &str) -> (Self, String) {
        let (before, rest) = url.split_once('@').unwrap();
        let (server, path) = rest.split_once('/').unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let state = Arc::new(State::default());
        let (server, shared) = (server.to_owned(), Arc::clone(&state));
        thread::spawn(move || {
            let mut waiting = Vec::new();
            for client in listener.incoming().map_while(Result::ok) {
                match shared.closed.load(Ordering::SeqCst) {
                    NOTHING => {}
                    // Nobody ever looks at them again.
                    voice if voice == Loss::AnswerAndVoice as u8 => {
                        waiting.push(client);
                        continue;
                    }
                    _ => continue,
                }
                carry(client, TcpStream::connect(&server).unwrap(), &shared);
            }
        });
        (Self { state }, format!("{before}@127.0.0.1:{port}/{path}"))
    }

    /// The next COMMIT is the one.
    pub(crate) fn arm(&self, loss: Loss) {
        self.state.armed.store(loss as u8, Ordering::SeqCst);
    }

    /// Nothing comes from the server any more to those who are connected, and they stay so.
    pub(crate) fn hush(&self) {
        self.state.hush();
    }

    /// Whether it has met its COMMIT.
    pub(crate) fn has_struck(&self) -> bool {
        self.state.armed.load(Ordering::SeqCst) == NOTHING
    }
}

fn carry(client: TcpStream, server: TcpStream, state: &Arc<State>) {
    let number = state.taken.fetch_add(1, Ordering::SeqCst);
    let deaf = Arc::new(AtomicBool::new(false));
    let (mut from_server, mut to_client) = (server.try_clone().unwrap(), client.try_clone().unwrap());
    let (is_deaf, shared) = (Arc::clone(&deaf), Arc::clone(state));
    thread::spawn(move || {
        let mut bytes = [0; 8192];
        while let Ok(count @ 1..) = from_server.read(&mut bytes) {
            if number < shared.silent.load(Ordering::SeqCst) {
                continue;
            }
            if is_deaf.load(Ordering::SeqCst) || to_client.write_all(&bytes[..count]).is_err() {
                break;
            }
        }
        let _ = to_client.shutdown(Shutdown::Both);
    });
    let state = Arc::clone(state);
    let (mut from_client, mut to_server) = (client, server);
    thread::spawn(move || {
        let mut bytes = [0; 8192];
        while let Ok(count @ 1..) = from_client.read(&mut bytes) {
            let met = bytes[..count].windows(COMMIT.len()).any(|window| window == COMMIT);
            let loss = if met { state.armed.swap(NOTHING, Ordering::SeqCst) } else { NOTHING };
            if loss == Loss::Voice as u8 {
                state.hush();
            }
            let ends = loss != NOTHING && loss != Loss::Voice as u8;
            deaf.fetch_or(ends, Ordering::SeqCst);
            if loss >= Loss::AnswerAndWay as u8 {
                state.closed.store(loss, Ordering::SeqCst);
            }
            if loss != Loss::Request as u8 && to_server.write_all(&bytes[..count]).is_err() {
                break;
            }
            if ends {
                let _ = from_client.shutdown(Shutdown::Both);
                break;
            }
        }
        // The server finishes what it has, and then sees that nobody is there.
        let _ = to_server.shutdown(Shutdown::Write);
    });
}
