//! Asking a running server, one request at a time: what operator commands are made of.
//!
//! Invariants: each request is sent once; an answer that did not come after sending is an unknown outcome and exits as one,
//! because the caller must look before it repeats; what makes something is sent under an idempotency key, and where its answer
//! is lost the key is told, because under it a repeat is safe; a problem's stable code decides the exit code. The API key is
//! read from a file and never shown. Deliberately absent: retries, TLS; a server is asked where it runs.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use onceward_domain::error::{Code, Error};
use serde_json::Value;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::client::{Answer, read_answer};
use crate::data_dir;
use crate::failure::Failure;

/// How long a connection, and then an answer, may take.
const PATIENCE: Duration = Duration::from_secs(30);

/// Which server, and with which key.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Server {
    /// Where the server listens
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:7070")]
    server: SocketAddr,
    /// A file with an API key of scope ops; not needed with --dev
    #[arg(long, value_name = "FILE", env = "ONCEWARD_KEY_FILE")]
    key_file: Option<PathBuf>,
}

/// What every command has that asks a server and answers.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Options {
    #[command(flatten)]
    pub(crate) server: Server,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

/// What every command has that makes something.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Naming {
    /// Names this request: with the same key it takes effect once, however often it is sent
    #[arg(long = "key", value_name = "TEXT")]
    key: Option<String>,
}

impl Naming {
    /// The key; a new one where none was given.
    ///
    /// # Errors
    /// Where it cannot be a key, or no chance is to be had.
    pub(crate) fn key(&self) -> Result<String, Failure> {
        match &self.key {
            None => Ok(format!("cli-{:032x}", u128::from_le_bytes(data_dir::random()?))),
            Some(key)
                if (1..=255).contains(&key.len()) && key.bytes().all(|byte| byte.is_ascii_graphic()) =>
            {
                Ok(key.clone())
            }
            Some(_) => Err(Failure::Usage("--key takes 1 to 255 visible ASCII characters".to_owned())),
        }
    }
}

/// A server that can be asked.
pub(crate) struct Api {
    address: SocketAddr,
    authorization: String,
}

impl Api {
    /// Reads the key, where there is one.
    ///
    /// # Errors
    /// When the file cannot be read or cannot hold a key.
    pub(crate) fn of(server: &Server) -> Result<Self, Failure> {
        let authorization = match &server.key_file {
            None => String::new(),
            Some(path) => {
                let bytes = data_dir::read_bounded(path);
                let bytes = bytes.map_err(|cause| Failure::file("reading the API key", path, &cause))?;
                let key = String::from_utf8(bytes).unwrap_or_default().trim().to_owned();
                if key.is_empty() || !key.bytes().all(|byte| byte.is_ascii_graphic()) {
                    return Err(Failure::Usage(format!("{} holds no API key", path.display())));
                }
                format!("authorization: Bearer {key}\r\n")
            }
        };
        Ok(Self { address: server.server, authorization })
    }

    /// Reads.
    ///
    /// # Errors
    /// What the server refuses, or that it gave no answer.
    pub(crate) async fn get(&self, path: &str) -> Result<Value, Failure> {
        Ok(self.ask(&Request::new("GET", path)).await?.body)
    }

    /// Reads a page of CSV, and where the next one is.
    ///
    /// # Errors
    /// As [`Self::get`].
    pub(crate) async fn get_csv(&self, path: &str) -> Result<(String, Option<String>), Failure> {
        let page = self.ask(&Request { accept: "text/csv", ..Request::new("GET", path) }).await?;
        Ok((page.body.as_str().unwrap_or_default().to_owned(), page.next))
    }

    /// Asks for something to be done that may be asked for again.
    ///
    /// # Errors
    /// As [`Self::get`].
    pub(crate) async fn post(&self, path: &str) -> Result<Value, Failure> {
        Ok(self.ask(&Request::new("POST", path)).await?.body)
    }

    /// Asks for something to be made, once under this key.
    ///
    /// # Errors
    /// As [`Self::get`]; where no answer came, with the key under which it can be sent again.
    pub(crate) async fn post_once(&self, path: &str, key: &str, body: &Value) -> Result<Value, Failure> {
        let request = Request { key: Some(key), body: Some(body), ..Request::new("POST", path) };
        match self.ask(&request).await {
            Ok(page) => Ok(page.body),
            Err(Failure::Engine(error)) if error.code() == Code::OutcomeUnknown => {
                let said = format!("{}; with `--key {key}` it can be sent again", error.operator_text());
                Err(Error::new(Code::OutcomeUnknown, said).into())
            }
            Err(failure) => Err(failure),
        }
    }

    async fn ask(&self, request: &Request<'_>) -> Result<Page, Failure> {
        let doing = format!("{} {} at {}", request.method, request.path, self.address);
        let connected = timeout(PATIENCE, TcpStream::connect(self.address)).await;
        let stream = connected
            .map_err(|_| "it took too long".to_owned())
            .and_then(|tried| tried.map_err(|cause| cause.to_string()));
        let stream = stream.map_err(|cause| Error::new(Code::Unavailable, format!("{doing}: {cause}")))?;
        let unknown = |why: &str| Error::new(Code::OutcomeUnknown, format!("{doing}: {why}"));
        let bytes = request.bytes(&self.authorization);
        let answered = timeout(PATIENCE, exchange(stream, bytes.as_bytes())).await;
        let (answer, next) =
            answered.map_err(|_| unknown("no answer came"))?.map_err(|cause| unknown(&cause.to_string()))?;
        Ok(Page { body: judge(&doing, answer)?, next })
    }
}

/// A request that was not sent yet.
struct Request<'a> {
    method: &'a str,
    path: &'a str,
    accept: &'a str,
    key: Option<&'a str>,
    body: Option<&'a Value>,
}

impl<'a> Request<'a> {
    fn new(method: &'a str, path: &'a str) -> Self {
        Self { method, path, accept: "application/json", key: None, body: None }
    }

    fn bytes(&self, authorization: &str) -> String {
        let Self { method, path, accept, key, body } = self;
        let body = body.map(Value::to_string).unwrap_or_default();
        let key = key.map(|key| format!("idempotency-key: {key}\r\n")).unwrap_or_default();
        let kind = if body.is_empty() { "" } else { "content-type: application/json\r\n" };
        format!(
            "{method} {path} HTTP/1.1\r\nhost: onceward\r\nconnection: close\r\naccept: {accept}\r\n{authorization}{key}{kind}content-length: {}\r\n\r\n{body}",
            body.len()
        )
    }
}

/// An answer that is no refusal.
struct Page {
    body: Value,
    /// Where the next page is, if the head of the answer said so.
    next: Option<String>,
}

async fn exchange(mut stream: TcpStream, request: &[u8]) -> io::Result<(Answer, Option<String>)> {
    stream.write_all(request).await?;
    let mut incoming = Vec::new();
    let (answer, _is_last) = read_answer(&mut stream, &mut incoming).await?;
    Ok((answer, next_page(&String::from_utf8_lossy(&incoming))))
}

/// The target of `Link: <…>; rel="next"` in the head of an answer.
fn next_page(answer: &str) -> Option<String> {
    let (head, _) = answer.split_once("\r\n\r\n")?;
    let links = head.lines().filter_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("link").then_some(value.trim())
    });
    let is_next = |link: &&str| link.ends_with("rel=\"next\"");
    let target = links.filter(is_next).find_map(|link| link.strip_prefix('<')?.split_once('>'));
    target.map(|(target, _)| target.to_owned())
}

/// A refusal as the error class of its code; one that this program does not know is a refusal all the same.
fn judge(doing: &str, answer: Answer) -> Result<Value, Failure> {
    if (200..300).contains(&answer.status) {
        return Ok(answer.body);
    }
    let text = answer.text("code");
    let known = Code::ALL.iter().copied().find(|code| code.as_str() == text);
    let by_status = if answer.status >= 500 { Code::Unavailable } else { Code::Invalid };
    let detail = answer.text("detail");
    let said = format!("{doing}: {} {text} {detail}", answer.status);
    Err(Error::new(known.unwrap_or(by_status), said.trim_end()).into())
}

/// A text as one segment of a path.
pub(crate) fn segment(text: &str) -> String {
    let keeps = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    text.bytes()
        .map(|byte| if keeps(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") })
        .collect()
}

/// Runs a command that asks a server.
///
/// # Errors
/// The command's own.
pub(crate) fn block_on<T>(command: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(|cause| Failure::other("starting the runtime", cause))?.block_on(command)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_refusal_exits_by_its_code() {
        let refused = |status, code: &str| {
            let answer = Answer { status, body: json!({ "code": code, "detail": "No." }) };
            judge("GET /x", answer).unwrap_err().exit_code()
        };
        assert_eq!(refused(404, "not_found"), 10);
        assert_eq!(refused(401, "unauthenticated"), 10);
        assert_eq!(refused(503, "unavailable"), 12);
        assert_eq!(refused(503, "outcome_unknown"), 13);
        assert_eq!(refused(500, "needs_operator"), 14);
        assert_eq!(refused(502, "who knows"), 12);
    }

    #[test]
    fn the_next_page_is_found_in_the_head_only() {
        let head = "HTTP/1.1 200 OK\r\nlink: </v1/x?after=c1>; rel=\"next\"\r\ncontent-length: 0\r\n\r\n";
        assert_eq!(next_page(head).as_deref(), Some("/v1/x?after=c1"));
        assert_eq!(next_page(&head.replace("next", "prev")), None);
        assert_eq!(next_page("HTTP/1.1 200 OK\r\n\r\nlink: <y>; rel=\"next\"\r\n\r\n"), None);
    }

    #[test]
    fn a_key_is_visible_ascii_and_a_new_one_each_time() {
        let key = |text: Option<&str>| Naming { key: text.map(str::to_owned) }.key();
        assert_ne!(key(None).unwrap(), key(None).unwrap());
        assert_eq!(key(Some("k-1")).unwrap(), "k-1");
        for wrong in ["", "two words", "a\r\nb", "ü"] {
            assert_eq!(key(Some(wrong)).unwrap_err().exit_code(), 2, "{wrong:?}");
        }
    }

    #[test]
    fn names_with_slashes_are_one_segment() {
        assert_eq!(segment("bus/onceward-events|m 1"), "bus%2Fonceward-events%7Cm%201");
    }
}
