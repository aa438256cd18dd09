//! Many buyers at once, on connections that stay: what tests of a sale under faults share.
//!
//! Invariants: whoever has no answer, or is told to come back, asks again under the same request id, at the next node; nobody
//! waits longer than [`PATIENCE`](crate::house::PATIENCE) for an end.

#![allow(clippy::unwrap_used, reason = "in a test a panic is the message")]

use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::house::{PATIENCE, buyer, comes_true};

/// How many ask at the same time.
pub(crate) const AT_ONCE: usize = 24;
/// How long who was told to come back stays away.
const PAUSE: Duration = Duration::from_millis(20);
/// How long an answer may take; a node that waits for a rebuild answers long before.
const ANSWER_TIME: Duration = Duration::from_secs(20);

/// A connection to one node that is made anew where it broke.
pub(crate) struct Line<'a> {
    address: &'a str,
    stream: Option<BufReader<TcpStream>>,
}

impl<'a> Line<'a> {
    pub(crate) fn to(address: &'a str) -> Self {
        Self { address, stream: None }
    }

    /// Asks once; an error is a lost answer.
    pub(crate) fn ask(&mut self, method: &str, path: &str, body: Option<&Value>) -> io::Result<(u16, Value)> {
        let mut stream = match self.stream.take() {
            Some(stream) => stream,
            None => {
                let stream = TcpStream::connect(self.address)?;
                stream.set_nodelay(true)?;
                stream.set_read_timeout(Some(ANSWER_TIME))?;
                BufReader::new(stream)
            }
        };
        let body = body.map(Value::to_string).unwrap_or_default();
        let kind = if body.is_empty() { "" } else { "content-type: application/json\r\n" };
        let request = format!(
            "{method} {path} HTTP/1.1\r\nhost: onceward\r\n{kind}content-length: {}\r\n\r\n{body}",
            body.len()
        );
        stream.get_mut().write_all(request.as_bytes())?;
        let answer = read_answer(&mut stream)?;
        self.stream = Some(stream);
        Ok(answer)
    }
}

impl Line<'_> {
    /// Reads a text that is no JSON.
    pub(crate) fn text(&mut self, path: &str) -> io::Result<String> {
        let mut stream = TcpStream::connect(self.address)?;
        stream.set_read_timeout(Some(ANSWER_TIME))?;
        stream.write_all(
            format!("GET {path} HTTP/1.1\r\nhost: onceward\r\nconnection: close\r\n\r\n").as_bytes(),
        )?;
        let mut said = String::new();
        stream.read_to_string(&mut said)?;
        Ok(said)
    }
}

fn read_answer(stream: &mut BufReader<TcpStream>) -> io::Result<(u16, Value)> {
    let cut = || io::Error::from(io::ErrorKind::UnexpectedEof);
    let (mut line, mut status, mut length) = (String::new(), None, 0);
    loop {
        line.clear();
        if stream.read_line(&mut line)? == 0 {
            return Err(cut());
        }
        let head = line.trim_end();
        if head.is_empty() {
            break;
        }
        match (status, head.split_once(':')) {
            (None, _) => status = Some(head.get(9..12).and_then(|code| code.parse().ok()).ok_or_else(cut)?),
            (Some(_), Some((name, value))) if name.eq_ignore_ascii_case("content-length") => {
                length = value.trim().parse().map_err(|_| cut())?;
            }
            (Some(_), _) => {}
        }
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body)?;
    let body = if body.is_empty() { Value::Null } else { serde_json::from_slice(&body)? };
    Ok((status.ok_or_else(cut)?, body))
}

/// Who wants a unit, and the name of the wish.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Wish {
    pub(crate) user: String,
    pub(crate) request: String,
}

/// A wish that was taken: the answer was `QUEUED`.
#[derive(Debug, Clone)]
pub(crate) struct Receipt {
    pub(crate) wish: Wish,
    pub(crate) reservation: String,
}

/// What a crowd has heard so far, and how many of it may ask.
#[derive(Debug)]
pub(crate) struct Heard {
    /// So many may ask; the others wait.
    allowed: AtomicUsize,
    /// `QUEUED`, for the first time or again.
    pub(crate) queued: AtomicUsize,
    /// `sold_out`.
    pub(crate) sold_out: AtomicUsize,
    /// `limit_reached`.
    pub(crate) limited: AtomicUsize,
    /// 503 `unavailable`: the gate is closed.
    pub(crate) unavailable: AtomicUsize,
    /// 503 `outcome_unknown`, 503 `backlog`, 429, and answers that did not come.
    pub(crate) again: AtomicUsize,
    /// Set where somebody has given up; the others then do so too.
    is_over: AtomicBool,
}

impl Heard {
    /// Of a crowd of which so many may ask now.
    pub(crate) fn while_allowed(count: usize) -> Self {
        let zero = || AtomicUsize::new(0);
        Self {
            allowed: AtomicUsize::new(count),
            queued: zero(),
            sold_out: zero(),
            limited: zero(),
            unavailable: zero(),
            again: zero(),
            is_over: AtomicBool::new(false),
        }
    }

    /// Of one in which everybody may ask at once.
    pub(crate) fn nothing() -> Self {
        Self::while_allowed(usize::MAX)
    }

    /// From now on so many may ask, all in all.
    pub(crate) fn allow(&self, count: usize) {
        self.allowed.store(count, Ordering::Relaxed);
    }

    pub(crate) fn of(&self, count: fn(&Self) -> &AtomicUsize) -> usize {
        count(self).load(Ordering::Relaxed)
    }
}

/// Asks until there is an answer that is not "come back"; a receipt, or none where it was refused.
pub(crate) fn want(lines: &mut [Line<'_>], path: &str, wish: &Wish, heard: &Heard) -> Option<Receipt> {
    let body = buyer(&wish.user, &wish.request);
    let until = Instant::now() + 2 * PATIENCE;
    let nodes = lines.len();
    for turn in 0.. {
        let answer = lines[turn % nodes].ask("POST", path, Some(&body));
        let count = |which: &AtomicUsize| which.fetch_add(1, Ordering::Relaxed);
        match answer.as_ref().map(|(status, body)| (*status, body["code"].as_str().unwrap_or_default())) {
            Ok((200 | 202, _)) => {
                count(&heard.queued);
                let reservation = answer.unwrap().1["reservation_id"].as_str().unwrap().to_owned();
                return Some(Receipt { wish: wish.clone(), reservation });
            }
            Ok((409, "sold_out")) => {
                count(&heard.sold_out);
                return None;
            }
            Ok((409, "limit_reached")) => {
                count(&heard.limited);
                return None;
            }
            Ok((503, "unavailable")) => count(&heard.unavailable),
            Ok((429 | 503, _)) | Err(_) => count(&heard.again),
            Ok(_) => panic!("{wish:?}: {answer:?}"),
        };
        assert!(!heard.is_over.load(Ordering::Relaxed), "somebody has given up");
        if Instant::now() > until {
            heard.is_over.store(true, Ordering::Relaxed);
            panic!("{wish:?} never had an answer; the last one is {answer:?}");
        }
        std::thread::park_timeout(PAUSE);
    }
    unreachable!("turns do not end")
}

/// Lets everybody ask, [`AT_ONCE`] at a time, at these nodes in turn; gives the receipts.
pub(crate) fn all_want(nodes: &[&str], path: &str, wishes: &[Wish], heard: &Heard) -> Vec<Receipt> {
    let receipts = Mutex::new(Vec::with_capacity(wishes.len()));
    let numbered: Vec<(usize, &Wish)> = wishes.iter().enumerate().collect();
    at_once(nodes, &numbered, |lines, (number, wish)| {
        comes_true("they may ask", || *number < heard.allowed.load(Ordering::Relaxed));
        if let Some(receipt) = want(lines, path, wish, heard) {
            receipts.lock().unwrap().push(receipt);
        }
    });
    receipts.into_inner().unwrap()
}

/// Does something for each of these, some at a time, each of whom has a connection to each node.
pub(crate) fn at_once<T: Sync>(nodes: &[&str], all: &[T], work: impl Fn(&mut [Line<'_>], &T) + Sync) {
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for turn in 0..AT_ONCE {
            let (next, work) = (&next, &work);
            scope.spawn(move || {
                let mut lines: Vec<Line<'_>> = nodes.iter().map(|address| Line::to(address)).collect();
                lines.rotate_left(turn % nodes.len());
                while let Some(one) = all.get(next.fetch_add(1, Ordering::Relaxed)) {
                    work(&mut lines, one);
                }
            });
        }
    });
}
