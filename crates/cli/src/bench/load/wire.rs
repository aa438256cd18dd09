//! One kept-alive connection of the load generator.
//!
//! Invariant: a request is written in one piece, and its answer read to its end before the next. Deliberately absent: time-outs,
//! which are the run's. Read next: `response`.

use std::fmt;
use std::io::{self, Write as _};
use std::net::SocketAddr;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::bench::response::{Head, ResponseError, read_head};

/// Room for one answer; a larger one (see `response` for the limit) makes the buffer grow.
const READ_BYTES: usize = 4 * 1024;

/// Why one request got no usable answer.
pub(super) enum Fault {
    Io(io::ErrorKind),
    Closed,
    Excess,
    Response(ResponseError),
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(kind) => write!(f, "{kind}"),
            Self::Closed => f.write_str("closed before the answer was complete"),
            Self::Excess => f.write_str("bytes after the end of the answer"),
            Self::Response(error) => write!(f, "{error}"),
        }
    }
}

/// One connection with its two buffers.
pub(super) struct Wire {
    address: SocketAddr,
    stream: TcpStream,
    outgoing: Vec<u8>,
    incoming: Vec<u8>,
}

impl Wire {
    pub(super) async fn open(address: SocketAddr) -> io::Result<Self> {
        let stream = connect(address).await?;
        Ok(Self { address, stream, outgoing: Vec::new(), incoming: Vec::with_capacity(READ_BYTES) })
    }

    pub(super) async fn reconnect(&mut self) -> io::Result<()> {
        self.stream = connect(self.address).await?;
        Ok(())
    }

    /// Sends one request and reads its answer to the end.
    pub(super) async fn exchange(&mut self, path: &str, body: &str) -> Result<Head, Fault> {
        self.outgoing.clear();
        write!(
            self.outgoing,
            "POST {path} HTTP/1.1\r\nhost: {}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            self.address,
            body.len(),
        )
        .map_err(|error| Fault::Io(error.kind()))?;
        self.stream.write_all(&self.outgoing).await.map_err(|error| Fault::Io(error.kind()))?;

        self.incoming.clear();
        let mut known = None;
        loop {
            self.incoming.reserve(READ_BYTES / 2);
            let read = self.stream.read_buf(&mut self.incoming).await;
            if read.map_err(|error| Fault::Io(error.kind()))? == 0 {
                return Err(Fault::Closed);
            }
            if known.is_none() {
                known = read_head(&self.incoming).map_err(Fault::Response)?;
            }
            match known {
                Some(head) if self.incoming.len() == head.response_bytes => return Ok(head),
                Some(head) if self.incoming.len() > head.response_bytes => return Err(Fault::Excess),
                Some(_) | None => {}
            }
        }
    }
}

async fn connect(address: SocketAddr) -> io::Result<TcpStream> {
    let stream = TcpStream::connect(address).await?;
    // Without this a request written in one piece may still wait for the acknowledgement of the one before.
    stream.set_nodelay(true)?;
    Ok(stream)
}
