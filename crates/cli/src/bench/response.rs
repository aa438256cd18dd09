//! Reading one HTTP/1.1 response off a connection, as cheaply as possible.
//!
//! Purpose: the load generator shares its cores with the server it measures, so it reads only what it must: the
//! status, where the body ends, and whether the connection stays open.
//!
//! Invariants: the answer depends on the bytes alone, not on how reads cut them; input is bounded; malformed
//! input is an error and never a panic.
//!
//! Deliberately absent: chunked bodies (our server and the baseline both send a length), header values, bodies.
//!
//! Read next: `load`, which measures with it.

use std::fmt;

/// A head longer than this is refused: ours are about 200 bytes.
const HEAD_BYTES_MAX: usize = 16 * 1024;
/// A body longer than this is refused: a benchmark of small answers that gets a large one is measuring a mistake.
const BODY_BYTES_MAX: usize = 1024 * 1024;

/// What the head of a response says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Head {
    /// The status code, 200 to 999.
    pub(crate) status: u16,
    /// Length of the head, with the empty line.
    pub(crate) head_bytes: usize,
    /// Length of head and body together.
    pub(crate) response_bytes: usize,
    /// The server will close the connection after this response.
    pub(crate) is_last: bool,
}

/// Why bytes are not a response that the load generator can read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ResponseError {
    /// The first line is not `HTTP/1.1 <status> …`.
    StatusLine,
    /// An interim response (1xx), which nobody asked for.
    Interim,
    /// The `Content-Length` is not a number or is too large.
    ContentLength,
    /// The body has no stated length.
    NoLength,
    /// The head does not end within the limit.
    HeadTooLong,
}

impl fmt::Display for ResponseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::StatusLine => "malformed status line",
            Self::Interim => "interim response",
            Self::ContentLength => "unusable content-length",
            Self::NoLength => "response without content-length",
            Self::HeadTooLong => "response head too long",
        })
    }
}

impl std::error::Error for ResponseError {}

/// Reads the head at the start of `bytes`; `None` means that it has not all arrived yet.
///
/// # Errors
/// When the bytes cannot become a response that is understood here, whatever follows them.
pub(crate) fn read_head(bytes: &[u8]) -> Result<Option<Head>, ResponseError> {
    let Some((status_line, mut rest)) = split_line(bytes) else {
        return incomplete(bytes);
    };
    let status = status_of(status_line)?;
    let mut length = if matches!(status, 204 | 304) { Some(0) } else { None };
    let mut is_last = false;
    while let Some((line, after)) = split_line(rest) {
        rest = after;
        if line.is_empty() {
            let body_bytes = length.ok_or(ResponseError::NoLength)?;
            let head_bytes = bytes.len() - rest.len();
            let response_bytes = head_bytes + body_bytes;
            return Ok(Some(Head { status, head_bytes, response_bytes, is_last }));
        }
        if let Some(value) = value_of(line, b"content-length") {
            length = Some(length_of(value)?);
        } else if let Some(value) = value_of(line, b"connection") {
            is_last = value.eq_ignore_ascii_case(b"close");
        }
    }
    incomplete(bytes)
}

fn incomplete(bytes: &[u8]) -> Result<Option<Head>, ResponseError> {
    if bytes.len() > HEAD_BYTES_MAX { Err(ResponseError::HeadTooLong) } else { Ok(None) }
}

/// The first line without its line end, and what follows; `None` when no line end has arrived.
fn split_line(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = bytes.iter().position(|byte| *byte == b'\n')?;
    let line = &bytes[..end];
    Some((line.strip_suffix(b"\r").unwrap_or(line), &bytes[end + 1..]))
}

fn status_of(line: &[u8]) -> Result<u16, ResponseError> {
    let code = line.strip_prefix(b"HTTP/1.1 ").and_then(|rest| rest.get(..3));
    let status = code.and_then(number_of).ok_or(ResponseError::StatusLine)?;
    match status {
        200..=999 => Ok(status as u16),
        100..=199 => Err(ResponseError::Interim),
        _ => Err(ResponseError::StatusLine),
    }
}

fn length_of(value: &[u8]) -> Result<usize, ResponseError> {
    number_of(value).filter(|length| *length <= BODY_BYTES_MAX).ok_or(ResponseError::ContentLength)
}

fn number_of(digits: &[u8]) -> Option<usize> {
    let is_number = !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
    if is_number { std::str::from_utf8(digits).ok()?.parse().ok() } else { None }
}

/// The trimmed value of a header line, if the line is the header `name` (given in lower case).
fn value_of<'a>(line: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    let (found, rest) = line.split_at_checked(name.len())?;
    let value = rest.strip_prefix(b":")?;
    found.eq_ignore_ascii_case(name).then(|| value.trim_ascii())
}

#[cfg(test)]
mod tests {
    use super::*;

    const QUEUED: &[u8] =
        b"HTTP/1.1 202 Accepted\r\ncontent-type: application/json\r\nCONTENT-length:  15 \r\n\r\n{\"code\":\"Q\"}...";

    #[test]
    fn a_head_is_the_same_however_reads_cut_it() {
        let head_end = QUEUED.len() - 15;
        for cut in 0..=QUEUED.len() {
            let found = read_head(&QUEUED[..cut]);
            if cut < head_end {
                assert_eq!(found, Ok(None), "cut at {cut}");
            } else {
                let response_bytes = QUEUED.len();
                let head = Head { status: 202, head_bytes: head_end, response_bytes, is_last: false };
                assert_eq!(found, Ok(Some(head)), "cut at {cut}");
            }
        }
    }

    #[test]
    fn each_input_has_its_answer() {
        let head = |status, head_bytes, response_bytes, is_last| {
            Ok(Some(Head { status, head_bytes, response_bytes, is_last }))
        };
        type Case = (&'static [u8], Result<Option<Head>, ResponseError>);
        let cases: &[Case] = &[
            (b"HTTP/1.1 204 No Content\r\n\r\n", head(204, 27, 27, false)),
            (b"HTTP/1.1 503 \r\nConnection: Close\r\nContent-Length: 0\r\n\r\n", head(503, 55, 55, true)),
            (b"HTTP/1.1 200 OK\ncontent-length: 2\n\n", head(200, 35, 37, false)),
            (b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n", Err(ResponseError::NoLength)),
            (b"HTTP/1.1 200 OK\r\ncontent-length: -1\r\n\r\n", Err(ResponseError::ContentLength)),
            (b"HTTP/1.1 200 OK\r\ncontent-length: 9999999\r\n\r\n", Err(ResponseError::ContentLength)),
            (b"HTTP/1.1 200 OK\r\ncontent-length: \r\n\r\n", Err(ResponseError::ContentLength)),
            (b"HTTP/1.1 100 Continue\r\n\r\n", Err(ResponseError::Interim)),
            (b"HTTP/1.1 2x0 OK\r\n", Err(ResponseError::StatusLine)),
            (b"HTTP/1.1 20\r\n", Err(ResponseError::StatusLine)),
            (b"SSH-2.0-OpenSSH\r\n", Err(ResponseError::StatusLine)),
            (&[b'x'; HEAD_BYTES_MAX + 1], Err(ResponseError::HeadTooLong)),
            (b"", Ok(None)),
        ];
        for (bytes, expected) in cases {
            assert_eq!(read_head(bytes), *expected, "{}", bytes.escape_ascii());
        }
    }
}
