//! The smallest HTTP/1.1 client: one POST over one connection.
//!
//! Invariants: the whole exchange is bounded in time, and the answer's head in bytes; the body of an answer is not read,
//! because nobody needs it; a redirect is an answer like any other and is not followed. Deliberately absent: names and TLS;
//! whoever calls hands in an address, or a connection that is secured already.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// How long one exchange may take.
pub(crate) const EXCHANGE_LIMIT: Duration = Duration::from_secs(10);
/// Most bytes of an answer that are looked at for its status line.
const STATUS_LINE_LIMIT: usize = 256;

/// One POST.
pub(crate) struct Post<'a> {
    /// Host, with its port where that is not the usual one.
    pub(crate) host: &'a str,
    /// Path, with its query.
    pub(crate) path: &'a str,
    /// Headers beside the usual ones.
    pub(crate) headers: &'a [(&'static str, String)],
    /// JSON body.
    pub(crate) body: &'a [u8],
}

impl Post<'_> {
    /// Connects, sends it and answers the status.
    pub(crate) async fn send_to(&self, address: SocketAddr) -> io::Result<u16> {
        let exchange = async { self.exchange(TcpStream::connect(address).await?).await };
        timeout(EXCHANGE_LIMIT, exchange).await.map_err(|_| io::ErrorKind::TimedOut)?
    }

    /// Sends it over a connection and answers the status. The caller bounds the time.
    pub(crate) async fn exchange(&self, mut stream: impl AsyncRead + AsyncWrite + Unpin) -> io::Result<u16> {
        stream.write_all(&self.bytes()).await?;
        stream.flush().await?;
        let mut head = Vec::with_capacity(STATUS_LINE_LIMIT);
        while !head.contains(&b'\n') && head.len() < STATUS_LINE_LIMIT {
            if stream.read_buf(&mut head).await? == 0 {
                break;
            }
        }
        status_of(&head).ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "not an HTTP answer"))
    }

    fn bytes(&self) -> Vec<u8> {
        let mut text = format!(
            "POST {} HTTP/1.1\r\nhost: {}\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n",
            self.path,
            self.host,
            self.body.len()
        );
        for (name, value) in self.headers {
            text.push_str(&format!("{name}: {value}\r\n"));
        }
        text.push_str("\r\n");
        let mut bytes = text.into_bytes();
        bytes.extend_from_slice(self.body);
        bytes
    }
}

fn status_of(head: &[u8]) -> Option<u16> {
    let line = head.split(|byte| *byte == b'\n').next()?;
    let rest = line.strip_prefix(b"HTTP/1.1 ").or_else(|| line.strip_prefix(b"HTTP/1.0 "))?;
    std::str::from_utf8(rest.get(..3)?).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn status_lines() {
        let table: [(&[u8], Option<u16>); 6] = [
            (b"HTTP/1.1 200 OK\r\nserver: x\r\n", Some(200)),
            (b"HTTP/1.0 503 \r\n", Some(503)),
            (b"HTTP/1.1 20", None),
            (b"HTTP/2 200\r\n", None),
            (b"\xff\xfe", None),
            (b"", None),
        ];
        for (head, status) in table {
            assert_eq!(status_of(head), status, "{head:?}");
        }
    }
}
