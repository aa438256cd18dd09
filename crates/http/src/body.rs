//! Reading request bodies: JSON, whole, small, and with nothing unknown in it.
//!
//! Invariants: what is refused here has changed nothing. 415 for another media type, 413 above [`BODY_LIMIT`], 408
//! for a body that trickles, 400 with a JSON pointer for everything that is not the object that was asked for:
//! bad JSON, bad UTF-8, wrong types, unknown, doubled or missing fields. Values are judged later, by
//! [`crate::check`]. Depth needs no limit of its own: an unknown field is refused before its value is read, and
//! no body nests deeper than its type.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::task::Poll;

use axum::body::{Body, Bytes, to_bytes};
use axum::extract::{FromRequest, Request};
use axum::http::HeaderMap;
use axum::http::header::{CONTENT_LENGTH, CONTENT_TYPE, EXPECT};
use hyper::body::Body as _;
use serde::Deserialize;
use serde_path_to_error::Segment;

use crate::problem::{self, Problem};
use crate::state::AppState;

/// Most bytes of a body.
pub const BODY_LIMIT: usize = 64 * 1024;
/// A field name longer than this is not repeated in an answer.
const ECHO_LIMIT: usize = 64;

/// The bytes of a JSON body, not yet looked into.
pub(crate) struct Payload(Bytes);

impl FromRequest<AppState> for Payload {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &AppState) -> Result<Self, Problem> {
        if !is_json(request.headers()) {
            return Err(unread(Problem::of(&problem::MEDIA), request).await);
        }
        if declared_length(request.headers()).is_some_and(|length| length > BODY_LIMIT as u64) {
            return Err(Problem::of(&problem::TOO_LARGE).closing());
        }
        let mut reading = pin!(read(request.into_body()));
        // A small body mostly came in one packet with its head: then there is nothing to set a timer for.
        if let Poll::Ready(bytes) = poll_fn(|context| Poll::Ready(reading.as_mut().poll(context))).await {
            return bytes.map(Self);
        }
        let arrived = tokio::time::timeout(state.settings.body_timeout, reading);
        arrived.await.map_err(|_| Problem::of(&problem::SLOW_BODY).closing())?.map(Self)
    }
}

impl Payload {
    /// The object in it.
    ///
    /// # Errors
    /// 400 `malformed`, with the place of the fault.
    pub(crate) fn parse<'a, T: Deserialize<'a>>(&'a self) -> Result<T, Problem> {
        // serde would take an array of the fields as well.
        let is_object = self.0.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'{');
        if !is_object {
            return Err(not_an_object(&self.0));
        }
        match serde_json::from_slice(&self.0) {
            Ok(value) => Ok(value),
            Err(_) => Err(explain::<T>(&self.0)),
        }
    }
}

/// A JSON body, or none at all.
pub(crate) struct MaybePayload(pub(crate) Option<Payload>);

impl FromRequest<AppState> for MaybePayload {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &AppState) -> Result<Self, Problem> {
        let is_empty = request.body().is_end_stream() && !request.headers().contains_key(CONTENT_TYPE);
        if is_empty {
            return Ok(Self(None));
        }
        Payload::from_request(request, state).await.map(|payload| Self(Some(payload)))
    }
}

async fn read(body: Body) -> Result<Bytes, Problem> {
    // What fails here is the length or the connection; over a broken connection nobody hears the answer.
    to_bytes(body, BODY_LIMIT).await.map_err(|_| Problem::of(&problem::TOO_LARGE).closing())
}

/// A refusal of a request whose body nobody wanted. Over HTTP/1.1 a body that is still on its way ends the connection,
/// and a client that keeps connections must be told so, or its next request is lost in it; one that came with its head
/// costs nobody a connection.
pub(crate) async fn unread(problem: Problem, request: Request) -> Problem {
    let (parts, body) = request.into_parts();
    // Looking for its body would ask this client to send it.
    let waits_to_send = parts.headers.contains_key(EXPECT) && !body.is_end_stream();
    if waits_to_send || !has_arrived(body).await { problem.closing() } else { problem }
}

/// Whether all of a body is here already, within [`BODY_LIMIT`].
async fn has_arrived(mut body: Body) -> bool {
    let mut room = BODY_LIMIT;
    poll_fn(|context| {
        loop {
            match Pin::new(&mut body).poll_frame(context) {
                Poll::Ready(None) => return Poll::Ready(true),
                Poll::Ready(Some(Err(_))) | Poll::Pending => return Poll::Ready(false),
                Poll::Ready(Some(Ok(frame))) => {
                    let length = frame.data_ref().map_or(1, Bytes::len);
                    let Some(left) = room.checked_sub(length) else { return Poll::Ready(false) };
                    room = left;
                }
            }
        }
    })
    .await
}

fn declared_length(headers: &HeaderMap) -> Option<u64> {
    headers.get(CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

/// `application/json`, with or without `charset=utf-8`.
pub(crate) fn is_json(headers: &HeaderMap) -> bool {
    let mut values = headers.get_all(CONTENT_TYPE).iter();
    let (Some(value), None) = (values.next(), values.next()) else { return false };
    if value == "application/json" {
        return true;
    }
    let Ok(text) = value.to_str() else { return false };
    let mut parts = text.split(';').map(str::trim);
    let is_essence = parts.next().is_some_and(|essence| essence.eq_ignore_ascii_case("application/json"));
    is_essence && parts.all(is_utf_8_charset)
}

fn is_utf_8_charset(parameter: &str) -> bool {
    let Some((name, value)) = parameter.split_once('=') else { return false };
    let value = value.trim_matches('"');
    let is_utf_8 = value.eq_ignore_ascii_case("utf-8") || value.eq_ignore_ascii_case("utf8");
    name.eq_ignore_ascii_case("charset") && is_utf_8
}

fn not_an_object(bytes: &[u8]) -> Problem {
    let detail = match serde_json::from_slice::<serde::de::IgnoredAny>(bytes) {
        Ok(_) => "must be an object".to_owned(),
        Err(error) => words(&error.to_string()),
    };
    Problem::of(&problem::MALFORMED).at("", detail)
}

/// Reads once more, slowly, to find the place.
fn explain<'a, T: Deserialize<'a>>(bytes: &'a [u8]) -> Problem {
    let mut reader = serde_json::Deserializer::from_slice(bytes);
    let error = match serde_path_to_error::deserialize::<_, T>(&mut reader) {
        Err(error) => error,
        // The value was fine: what failed is what comes after it.
        Ok(_) => return Problem::of(&problem::MALFORMED).at("", "must end after the object"),
    };
    let message = error.inner().to_string();
    let mut pointer = pointer(error.path());
    if let Some(field) = named_field(&message) {
        let end = format!("/{}", escape(field));
        if !pointer.ends_with(&end) {
            pointer.push_str(&end);
        }
    }
    Problem::of(&problem::MALFORMED).at(pointer, words(&message))
}

fn pointer(path: &serde_path_to_error::Path) -> String {
    let mut pointer = String::new();
    for segment in path {
        match segment {
            Segment::Seq { index } => pointer.push_str(&format!("/{index}")),
            Segment::Map { key } => pointer.push_str(&format!("/{}", escape(shortened(key)))),
            Segment::Enum { variant } => pointer.push_str(&format!("/{variant}")),
            Segment::Unknown => {}
        }
    }
    pointer
}

fn escape(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}

fn shortened(name: &str) -> &str {
    let end = name.char_indices().nth(ECHO_LIMIT).map_or(name.len(), |(end, _)| end);
    &name[..end]
}

/// The field that serde's message is about, where it names one.
fn named_field(message: &str) -> Option<&str> {
    let openings = ["missing field `", "unknown field `", "duplicate field `"];
    let rest = openings.iter().find_map(|opening| message.strip_prefix(opening))?;
    let end = if message.starts_with("unknown") {
        rest.rfind("`, expected ")
    } else {
        rest.find("` at ").or_else(|| rest.rfind('`'))
    };
    rest.get(..end?).map(shortened)
}

/// serde's message in our words: what is expected, where in the text, and never what was sent.
fn words(message: &str) -> String {
    let place = message.rfind(" at line ").map_or("", |start| &message[start..]);
    let what = &message[..message.len() - place.len()];
    if what.starts_with("missing field") {
        return "is required".to_owned();
    }
    if what.starts_with("unknown field") {
        return "is not a known field".to_owned();
    }
    if what.starts_with("duplicate field") {
        return "must not be given twice".to_owned();
    }
    if what.starts_with("invalid type: ") || what.starts_with("invalid value: ") {
        let expected =
            what.rfind(", expected ").map_or("of another type", |at| &what[at + ", expected ".len()..]);
        return format!("must be {expected}");
    }
    if what.starts_with("must ") {
        return what.to_owned();
    }
    format!("must be JSON: {what}{place}")
}
