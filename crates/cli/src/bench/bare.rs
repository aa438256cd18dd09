//! The bare endpoint: the reservation route with nothing behind it.
//!
//! Purpose: the most that this machine, this HTTP stack and this load generator can do together; the engine's
//! figure over HTTP is given as a ratio to it.
//!
//! Invariants: it reads and writes JSON of the same shape as the real route, winner and refusal alike, and
//! makes an id for each answer. It stores, checks and remembers nothing.
//!
//! Deliberately absent: every layer that the real server adds (limits, request ids, metrics, authentication).
//! What they cost is part of what the ratio is to show.
//!
//! Read next: `load`, which asks it.

use std::io;
use std::net::SocketAddr;

use axum::extract::Path;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use axum::{Json, Router};
use serde::{Deserialize, Serialize, Serializer};
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use uuid::Uuid;

const ROUTE: &str = "/v1/activities/{activity_id}/skus/{sku_id}/reservations";

/// What the bare endpoint answers to every request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BareAnswer {
    /// 202 with a reservation, as a winner gets it.
    Queued,
    /// 409 with a problem document, as a buyer gets it when the stock is gone.
    SoldOut,
}

/// A bare endpoint that is being served; dropping it stops it.
#[derive(Debug)]
pub(crate) struct BareServer {
    address: SocketAddr,
    /// Never sent on: that it is dropped is the signal.
    _stop: oneshot::Sender<()>,
}

impl BareServer {
    /// Where it listens: a free port on loopback.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }
}

/// Starts serving on a free loopback port, on the runtime of the caller.
///
/// # Errors
/// When no port can be had.
pub(crate) async fn serve(answer: BareAnswer) -> io::Result<BareServer> {
    let router = match answer {
        BareAnswer::Queued => Router::new().route(ROUTE, post(queued)),
        BareAnswer::SoldOut => Router::new().route(ROUTE, post(sold_out)),
    };
    let listener = TcpListener::bind((std::net::Ipv4Addr::LOCALHOST, 0)).await?;
    let address = listener.local_addr()?;
    let (stop, stopped) = oneshot::channel::<()>();
    tokio::spawn(async move {
        let until_dropped = async {
            // An error is what a dropped sender looks like from here.
            stopped.await.unwrap_or_default();
        };
        axum::serve(NoDelay(listener), router).with_graceful_shutdown(until_dropped).await
    });
    Ok(BareServer { address, _stop: stop })
}

/// Accepts connections with Nagle's algorithm off, as any server of small answers does.
struct NoDelay(TcpListener);

impl axum::serve::Listener for NoDelay {
    type Io = tokio::net::TcpStream;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        let (stream, address) = axum::serve::Listener::accept(&mut self.0).await;
        // A socket that refuses the option is slower, not wrong.
        stream.set_nodelay(true).unwrap_or_default();
        (stream, address)
    }

    fn local_addr(&self) -> io::Result<Self::Addr> {
        self.0.local_addr()
    }
}

/// The body of a reservation request.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ReserveRequest {
    user_id: String,
    request_id: String,
    quantity: u32,
}

/// The body of a winner's answer.
#[derive(Serialize)]
struct Queued {
    code: &'static str,
    #[serde(serialize_with = "as_text")]
    reservation_id: Uuid,
    status: &'static str,
    message: &'static str,
}

/// The body of a refusal.
#[derive(Serialize)]
struct Problem {
    r#type: &'static str,
    title: &'static str,
    status: u16,
    detail: &'static str,
    code: &'static str,
    #[serde(serialize_with = "as_text")]
    request_id: Uuid,
}

/// A new id for each answer, as the real route derives one.
#[expect(clippy::disallowed_methods, reason = "the baseline stands outside the engine and its ports")]
fn new_id() -> Uuid {
    Uuid::now_v7()
}

async fn queued(path: Path<(String, String)>, body: Json<ReserveRequest>) -> Response {
    if !is_read(&path, &body) {
        return StatusCode::UNPROCESSABLE_ENTITY.into_response();
    }
    let answer = Queued {
        code: "QUEUED",
        reservation_id: new_id(),
        status: "RESERVED",
        message: "The reservation is queued; the order follows.",
    };
    (StatusCode::ACCEPTED, Json(answer)).into_response()
}

async fn sold_out(path: Path<(String, String)>, body: Json<ReserveRequest>) -> Response {
    if !is_read(&path, &body) {
        return StatusCode::UNPROCESSABLE_ENTITY.into_response();
    }
    let problem = Problem {
        r#type: "urn:onceward:problem:sold_out",
        title: "Sold out",
        status: StatusCode::CONFLICT.as_u16(),
        detail: "No unit of this SKU is left.",
        code: "sold_out",
        request_id: new_id(),
    };
    let mut response = (StatusCode::CONFLICT, Json(problem)).into_response();
    let media_type = HeaderValue::from_static("application/problem+json");
    response.headers_mut().insert(header::CONTENT_TYPE, media_type);
    response
}

fn as_text<S: Serializer>(id: &Uuid, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(id.hyphenated().encode_lower(&mut Uuid::encode_buffer()))
}

/// Looks at every field, so that reading the request cannot be optimised away.
fn is_read(path: &(String, String), body: &ReserveRequest) -> bool {
    let texts = [&path.0, &path.1, &body.user_id, &body.request_id];
    body.quantity > 0 && texts.iter().all(|text| !text.is_empty())
}

#[cfg(test)]
mod tests {
    use super::super::load::{Load, LoadError, LoadReport, run};
    use super::*;
    use std::time::Duration;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpStream;

    const PATH: &str = "/v1/activities/a1/skus/s1/reservations";

    async fn ask(address: SocketAddr, quantity: u32) -> Result<LoadReport, LoadError> {
        let load = Load { address, connections: 4, requests: 200, time_limit: Duration::from_secs(30) };
        run(&load, move |number| {
            let body = format!("{{\"user_id\":\"u{number}\",\"request_id\":\"r\",\"quantity\":{quantity}}}");
            (PATH.to_owned(), body)
        })
        .await
    }

    #[tokio::test]
    async fn every_buyer_gets_the_same_kind_of_answer() {
        let cases =
            [(BareAnswer::Queued, 1, 202), (BareAnswer::SoldOut, 1, 409), (BareAnswer::Queued, 0, 422)];
        for (answer, quantity, status) in cases {
            let server = serve(answer).await.unwrap();
            let report = ask(server.address(), quantity).await.unwrap();
            assert!(report.is_all(status), "{answer:?}: {report:?}");
        }
    }

    #[tokio::test]
    async fn a_refusal_is_a_problem_document() {
        let server = serve(BareAnswer::SoldOut).await.unwrap();
        let body = r#"{"user_id":"u","request_id":"r","quantity":1}"#;
        let request = format!(
            "POST {PATH} HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-type: application/json\r\n\
             content-length: {}\r\n\r\n{body}",
            body.len()
        );
        let mut stream = TcpStream::connect(server.address()).await.unwrap();
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        let (head, document) = answer.split_once("\r\n\r\n").unwrap();
        assert!(head.contains("content-type: application/problem+json"), "{head}");
        let document: serde_json::Map<String, serde_json::Value> = serde_json::from_str(document).unwrap();
        for field in ["type", "title", "status", "detail", "code", "request_id"] {
            assert!(document.contains_key(field), "{field} is missing");
        }
    }

    #[tokio::test]
    async fn dropping_it_stops_it() {
        let server = serve(BareAnswer::Queued).await.unwrap();
        let address = server.address();
        let mut idle = TcpStream::connect(address).await.unwrap();
        drop(server);
        // The open connection ends first; then the listener is gone as well.
        assert_eq!(idle.read(&mut [0; 1]).await.unwrap_or(0), 0);
    }
}
