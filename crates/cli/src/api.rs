//! Asking a running server, one request at a time: what operator commands are made of.
//!
//! Invariants: each request is sent once; an answer that did not come after sending is an unknown outcome and exits as one,
//! because the caller must look before it repeats; a problem's stable code decides the exit code. The API key is read from a
//! file and never shown. Deliberately absent: retries, TLS; a server is asked where it runs.

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
        self.ask("GET", path).await
    }

    /// Asks for something to be done.
    ///
    /// # Errors
    /// As [`Self::get`].
    pub(crate) async fn post(&self, path: &str) -> Result<Value, Failure> {
        self.ask("POST", path).await
    }

    async fn ask(&self, method: &str, path: &str) -> Result<Value, Failure> {
        let doing = format!("{method} {path} at {}", self.address);
        let connected = timeout(PATIENCE, TcpStream::connect(self.address)).await;
        let stream = connected
            .map_err(|_| "it took too long".to_owned())
            .and_then(|tried| tried.map_err(|cause| cause.to_string()));
        let stream = stream.map_err(|cause| Error::new(Code::Unavailable, format!("{doing}: {cause}")))?;
        let request = format!(
            "{method} {path} HTTP/1.1\r\nhost: onceward\r\nconnection: close\r\n{}content-length: 0\r\n\r\n",
            self.authorization
        );
        let unknown = |why: &str| Error::new(Code::OutcomeUnknown, format!("{doing}: {why}"));
        let answered = timeout(PATIENCE, exchange(stream, request.as_bytes())).await;
        let answer =
            answered.map_err(|_| unknown("no answer came"))?.map_err(|cause| unknown(&cause.to_string()))?;
        judge(&doing, answer)
    }
}

async fn exchange(mut stream: TcpStream, request: &[u8]) -> io::Result<Answer> {
    stream.write_all(request).await?;
    read_answer(&mut stream, &mut Vec::new()).await.map(|(answer, _is_last)| answer)
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
    fn names_with_slashes_are_one_segment() {
        assert_eq!(segment("bus/onceward-events|m 1"), "bus%2Fonceward-events%7Cm%201");
    }
}
