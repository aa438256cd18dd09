//! A buyer's HTTP client: one kept-alive connection on loopback, and the patience to ask again.
//!
//! Invariants: a request whose answer was lost is asked again with the very same bytes, until there is an answer or
//! the sale's time is over; every wait is bounded. An answer is lost when the connection broke after the request left;
//! that it "failed" is never concluded. Deliberately absent: other hosts, TLS, chunked bodies.

use std::io::{self, Write as _};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::time::{Instant, timeout, timeout_at};

use crate::bench::response::read_head;
use crate::failure::Failure;

/// How long one answer may take; the longest `wait_ms` asked for here is much shorter.
const ANSWER_TIME: Duration = Duration::from_secs(10);
/// Between two tries. A new server needs some tens of milliseconds to be there.
const PAUSE: Duration = Duration::from_millis(10);

/// Where the server listens now; `None` while it is down.
pub(crate) type Address = watch::Receiver<Option<SocketAddr>>;

/// How often answers were lost, over all clients.
#[derive(Debug, Default)]
pub(crate) struct Losses {
    /// Requests that were sent and got no answer.
    pub(crate) lost: AtomicU64,
    /// Requests that got one when they were asked again.
    pub(crate) recovered: AtomicU64,
    /// Answers that said "come back later".
    pub(crate) postponed: AtomicU64,
}

/// An answer.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Answer {
    /// The status.
    pub(crate) status: u16,
    /// The body; `null` where there is none, a text where it is no JSON object or list.
    pub(crate) body: Value,
}

impl Answer {
    /// A text field of the body, or nothing.
    pub(crate) fn text(&self, name: &str) -> &str {
        self.body[name].as_str().unwrap_or_default()
    }

    /// Status and code, or the body where it has none.
    pub(crate) fn short(&self) -> String {
        match self.body["code"].as_str() {
            Some(code) => format!("{} {code}", self.status),
            None => format!("{} {}", self.status, self.body),
        }
    }

    /// Whether the same request should be sent again later: there was no room, or an earlier try of it is still running.
    fn is_postponed(&self) -> bool {
        matches!(self.status, 429 | 503) || self.text("code") == "idempotency_in_progress"
    }
}

/// One connection and its patience.
pub(crate) struct Client<'a> {
    address: Address,
    losses: &'a Losses,
    deadline: Instant,
    stream: Option<(SocketAddr, TcpStream)>,
    outgoing: Vec<u8>,
    incoming: Vec<u8>,
}

impl<'a> Client<'a> {
    /// A client without a connection yet, that gives up at the deadline.
    pub(crate) fn new(address: Address, losses: &'a Losses, deadline: Instant) -> Self {
        Self { address, losses, deadline, stream: None, outgoing: Vec::new(), incoming: Vec::new() }
    }

    /// Reads.
    ///
    /// # Errors
    /// When there is no answer until the deadline.
    pub(crate) async fn get(&mut self, path: &str) -> Result<Answer, Failure> {
        self.ask("GET", path, None, None).await
    }

    /// Sends a body by `POST`.
    ///
    /// # Errors
    /// As [`Self::get`].
    pub(crate) async fn post(&mut self, path: &str, body: &Value) -> Result<Answer, Failure> {
        self.ask("POST", path, None, Some(body)).await
    }

    /// The same under an idempotency key.
    ///
    /// # Errors
    /// As [`Self::get`].
    pub(crate) async fn post_once(&mut self, path: &str, key: &str, body: &Value) -> Result<Answer, Failure> {
        self.ask("POST", path, Some(key), Some(body)).await
    }

    /// Sends a body by `PUT`.
    ///
    /// # Errors
    /// As [`Self::get`].
    pub(crate) async fn put(&mut self, path: &str, body: &Value) -> Result<Answer, Failure> {
        self.ask("PUT", path, None, Some(body)).await
    }

    /// Asks until there is an answer that is not "come back later".
    async fn ask(
        &mut self,
        method: &str,
        path: &str,
        key: Option<&str>,
        body: Option<&Value>,
    ) -> Result<Answer, Failure> {
        let written = self.write_request(method, path, key, body);
        written.map_err(|cause| Failure::other("writing a request", cause))?;
        let mut was_lost = false;
        loop {
            let address = self.whereabouts(path).await?;
            match self.exchange(address).await {
                Ok(answer) if !answer.is_postponed() => {
                    if was_lost {
                        self.losses.recovered.fetch_add(1, Ordering::Relaxed);
                    }
                    return Ok(answer);
                }
                Ok(_) => {
                    self.losses.postponed.fetch_add(1, Ordering::Relaxed);
                }
                Err(Broken::BeforeSending) => {}
                Err(Broken::AfterSending) => {
                    if !was_lost {
                        self.losses.lost.fetch_add(1, Ordering::Relaxed);
                    }
                    was_lost = true;
                }
            }
            pause(PAUSE).await;
        }
    }

    async fn whereabouts(&mut self, path: &str) -> Result<SocketAddr, Failure> {
        let known = timeout_at(self.deadline, self.address.wait_for(Option::is_some)).await;
        match known {
            Ok(Ok(address)) if Instant::now() < self.deadline => {
                address.ok_or_else(|| Failure::Other("the server has no address".to_owned()))
            }
            Ok(Ok(_)) | Err(_) => Err(Failure::Other(format!("{path} got no answer until the time was up"))),
            Ok(Err(_)) => Err(Failure::Other("the server is gone".to_owned())),
        }
    }

    fn write_request(
        &mut self,
        method: &str,
        path: &str,
        key: Option<&str>,
        body: Option<&Value>,
    ) -> io::Result<()> {
        let body = body.map(Value::to_string).unwrap_or_default();
        self.outgoing.clear();
        write!(self.outgoing, "{method} {path} HTTP/1.1\r\nhost: onceward\r\n")?;
        if let Some(key) = key {
            write!(self.outgoing, "idempotency-key: {key}\r\n")?;
        }
        if !body.is_empty() {
            write!(self.outgoing, "content-type: application/json\r\n")?;
        }
        write!(self.outgoing, "content-length: {}\r\n\r\n{body}", body.len())
    }

    /// Asks once. A connection that failed is thrown away.
    async fn exchange(&mut self, address: SocketAddr) -> Result<Answer, Broken> {
        let mut stream = match self.stream.take() {
            Some((known, stream)) if known == address => stream,
            Some(_) | None => connect(address).await.map_err(|_| Broken::BeforeSending)?,
        };
        stream.write_all(&self.outgoing).await.map_err(|_| Broken::AfterSending)?;
        let read = timeout(ANSWER_TIME, read_answer(&mut stream, &mut self.incoming)).await;
        let (answer, is_last) = read.map_err(|_| Broken::AfterSending)?.map_err(|_| Broken::AfterSending)?;
        if !is_last {
            self.stream = Some((address, stream));
        }
        Ok(answer)
    }
}

/// Where a try ended.
enum Broken {
    BeforeSending,
    AfterSending,
}

async fn connect(address: SocketAddr) -> io::Result<TcpStream> {
    let stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

/// Reads one answer, and whether it is the last of its connection.
///
/// # Errors
/// Where it breaks off, or is no answer.
pub(crate) async fn read_answer(
    stream: &mut TcpStream,
    incoming: &mut Vec<u8>,
) -> io::Result<(Answer, bool)> {
    incoming.clear();
    let mut known = None;
    loop {
        if stream.read_buf(incoming).await? == 0 {
            let why = "it hung up in the middle of its answer";
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, why));
        }
        if known.is_none() {
            known = read_head(incoming).map_err(io::Error::other)?;
        }
        let Some(head) = known.filter(|head| incoming.len() >= head.response_bytes) else { continue };
        let body = incoming.get(head.head_bytes..head.response_bytes).unwrap_or_default();
        let body = match body.first() {
            None => Value::Null,
            Some(b'{' | b'[') => serde_json::from_slice(body)?,
            Some(_) => Value::String(String::from_utf8_lossy(body).into_owned()),
        };
        return Ok((Answer { status: head.status, body }, head.is_last));
    }
}

/// Lets others go on for a moment before a condition is looked at again.
pub(crate) async fn pause(length: Duration) {
    drop(timeout(length, std::future::pending::<()>()).await);
}
