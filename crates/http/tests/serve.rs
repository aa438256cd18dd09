//! Serving on a real listener: draining, slow heads, and what is counted.
#![allow(clippy::unwrap_used, reason = "tests")]

mod house;

use std::net::SocketAddr;
use std::time::Duration;

use house::House;
use onceward_ground::Mode;
use onceward_http::{Limits, serve};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::timeout;

/// Longer than anything here takes, so that a test that hangs fails.
const PATIENCE: Duration = Duration::from_secs(20);

async fn served(limits: Limits) -> (SocketAddr, oneshot::Sender<()>, JoinHandle<std::io::Result<()>>) {
    let house = House::selling(Mode::Embedded, 1, 1).await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (stop, stopped) = oneshot::channel();
    let until_stopped = async { stopped.await.unwrap_or_default() };
    let serving = tokio::spawn(serve(listener, house.router, None, limits, until_stopped));
    (address, stop, serving)
}

async fn talk(stream: &mut TcpStream, sent: &str) -> String {
    stream.write_all(sent.as_bytes()).await.unwrap();
    let mut answer = String::new();
    timeout(PATIENCE, stream.read_to_string(&mut answer)).await.unwrap().unwrap();
    answer
}

#[tokio::test]
async fn a_shutdown_ends_idle_connections_and_the_server() {
    let (address, stop, serving) = served(Limits::default()).await;
    let mut idle = TcpStream::connect(address).await.unwrap();
    let mut busy = TcpStream::connect(address).await.unwrap();
    let answer = talk(&mut busy, "GET /livez HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").await;
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    assert!(answer.contains("x-request-id: "), "{answer}");
    stop.send(()).unwrap();
    timeout(PATIENCE, serving).await.unwrap().unwrap().unwrap();
    assert_eq!(talk(&mut idle, "").await, "");
    assert!(TcpStream::connect(address).await.is_err());
}

#[tokio::test]
async fn se_03_a_head_that_trickles_is_let_go() {
    let limits = Limits { header_timeout: Duration::from_millis(50), ..Limits::default() };
    let (address, _stop, _serving) = served(limits).await;
    let mut slow = TcpStream::connect(address).await.unwrap();
    let answer = talk(&mut slow, "GET /livez HTTP/1.1\r\nhost: x\r\nx-slow: ").await;
    assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 408"), "{answer}");
}

#[tokio::test]
async fn a_refusal_that_leaves_the_body_unread_says_that_the_connection_ends() {
    let (address, _stop, _serving) = served(Limits::default()).await;
    let json = "content-type: application/json\r\n";
    let slow = "content-length: 60000\r\n";
    let cases = [
        ("POST /nowhere", format!("{json}{slow}"), 404),
        ("POST /livez", format!("{json}{slow}"), 405),
        ("POST /v1/orders", format!("{json}content-length: 70000\r\n"), 413),
        ("POST /v1/orders", slow.to_owned(), 415),
        ("POST /v1/orders", format!("{slow}expect: 100-continue\r\n"), 415),
        ("POST /v1/orders?x=1", format!("{json}{slow}"), 400),
    ];
    for (line, headers, status) in cases {
        let mut stream = TcpStream::connect(address).await.unwrap();
        let answer = talk(&mut stream, &format!("{line} HTTP/1.1\r\nhost: x\r\n{headers}\r\n")).await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{line}: {answer}");
        assert!(answer.contains("connection: close\r\n"), "{line}: {answer}");
    }
    // A small body came with its head, so that its connection goes on.
    let mut stream = TcpStream::connect(address).await.unwrap();
    let small = "POST /nowhere HTTP/1.1\r\nhost: x\r\ncontent-length: 2\r\n\r\n{}";
    let last = "GET /livez HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n";
    let answers = talk(&mut stream, &format!("{small}{small}{last}")).await;
    assert_eq!(answers.matches("HTTP/1.1 404 ").count(), 2, "{answers}");
    assert!(answers.contains("HTTP/1.1 200 "), "{answers}");
}

#[tokio::test]
async fn se_03_a_head_that_is_too_long_is_refused() {
    let (address, _stop, _serving) = served(Limits::default()).await;
    let mut stream = TcpStream::connect(address).await.unwrap();
    let head = format!(
        "GET /livez HTTP/1.1\r\nhost: x\r\nconnection: close\r\nx-long: {}\r\n\r\n",
        "x".repeat(40_000)
    );
    let answer = talk(&mut stream, &head).await;
    assert!(answer.starts_with("HTTP/1.1 431"), "{answer}");
}

#[tokio::test]
async fn ob_01_answers_are_counted_by_route_and_class_without_ids() {
    let recorder = onceward_http::recorder().unwrap().build_recorder();
    let handle = recorder.handle();
    let recording = metrics::set_default_local_recorder(&recorder);
    let house = House::empty(Mode::Embedded).await;
    drop(recording);
    house.get("/livez").await;
    house.get("/v1/activities/a-very-private-id").await;
    house.get("/nowhere").await;
    let text = handle.render();
    let expected = [
        "onceward_http_requests_total{route=\"GET /livez\",status_class=\"2xx\"} 1",
        "onceward_http_requests_total{route=\"GET /v1/activities/{activity_id}\",status_class=\"4xx\"} 1",
        "onceward_http_requests_total{route=\"none\",status_class=\"4xx\"} 1",
        "onceward_http_request_duration_seconds_bucket{route=\"GET /livez\",le=\"0.00025\"}",
    ];
    for line in expected {
        assert!(text.contains(line), "{line} is missing in {text}");
    }
    assert!(!text.contains("private"));
}
