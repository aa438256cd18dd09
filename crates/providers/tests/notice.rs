//! Notices over a real connection and into a real file (LQ-05, SE-02).
#![allow(clippy::unwrap_used, reason = "in a test a panic is the message")]

mod folder;

use std::collections::BTreeSet;
use std::io::Write as _;
use std::sync::Arc;
use std::time::Duration;

use folder::Folder;
use onceward_domain::due::{Lane, Token};
use onceward_domain::error::{Class, Error};
use onceward_domain::notice::{Notice, work_exhausted};
use onceward_domain::ports::notifier::Notifier;
use onceward_domain::ports::provider::RawCallback;
use onceward_domain::time::Timestamp;
use onceward_providers::notice::webhook::WebhookOptions;
use onceward_providers::notice::{FileNotifier, Target, WebhookNotifier};
use onceward_providers::signature::Signer;
use onceward_testkit::clock::ManualClock;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

const NOW: Timestamp = Timestamp(1_794_355_200_000);
const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

fn notice(token: i64) -> Notice {
    work_exhausted(&Lane::new("settlement"), "g1", Token(token), NOW)
}

fn notifier(url: &str, timeout: Duration) -> WebhookNotifier {
    let options = WebhookOptions {
        target: Target::parse(url).unwrap(),
        signer: Signer::from_text(SECRET).unwrap(),
        clock: Arc::new(ManualClock::new(NOW)),
        timeout,
    };
    WebhookNotifier::new(options).unwrap()
}

/// What a receiver saw of one request.
struct Seen {
    line: String,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
}

/// Takes one request and answers this; an empty answer means that it hangs up.
async fn receive(listener: &TcpListener, answer: &str) -> Seen {
    let (mut stream, _) = listener.accept().await.unwrap();
    let mut bytes = Vec::new();
    loop {
        stream.read_buf(&mut bytes).await.unwrap();
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let mut lines = head.lines();
        let line = lines.next().unwrap().to_owned();
        let headers: Vec<_> =
            lines.filter_map(|one| one.split_once(": ")).map(|(n, v)| (n.to_owned(), v.to_owned())).collect();
        let length: usize =
            headers.iter().find(|(name, _)| name == "content-length").unwrap().1.parse().unwrap();
        if body.len() >= length {
            stream.write_all(answer.as_bytes()).await.unwrap();
            return Seen { line, headers, body: body.as_bytes().to_vec() };
        }
    }
}

async fn tell(answer: &str) -> (Result<(), Error>, Seen) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/hook?for=ops", listener.local_addr().unwrap());
    let notifier = notifier(&url, Duration::from_secs(20));
    tokio::join!(notifier.notify(notice(1)), receive(&listener, answer))
}

#[tokio::test]
async fn lq_05_se_02_a_notice_is_posted_signed_under_its_own_id() {
    let (told, seen) = tell("HTTP/1.1 204 No Content\r\n\r\n").await;
    told.unwrap();
    assert_eq!(seen.line, "POST /hook?for=ops HTTP/1.1");
    let callback = RawCallback { headers: &seen.headers, body: &seen.body, now: NOW };
    let id = Signer::from_text(SECRET).unwrap().check(&callback).unwrap();
    assert_eq!(id, notice(1).id.to_string());
    let body: serde_json::Value = serde_json::from_slice(&seen.body).unwrap();
    assert_eq!((&body["type"], &body["data"]["notice_id"]), (&"work.exhausted".into(), &id.into()));
    let (_, again) = tell("HTTP/1.1 200 OK\r\n\r\n").await;
    assert_eq!((&again.body, again.headers.len()), (&seen.body, seen.headers.len()), "a repeat is the same");
}

#[tokio::test]
async fn lq_05_only_a_2xx_means_that_it_arrived_and_silence_is_unknown() {
    for answer in ["HTTP/1.1 500 x\r\n\r\n", "HTTP/1.1 404 x\r\n\r\n", "HTTP/1.1 410 x\r\n\r\n"] {
        let (told, _) = tell(answer).await;
        assert_eq!(told.unwrap_err().class(), Class::Retryable, "{answer}");
    }
    for answer in ["", "no HTTP at all\n"] {
        let (told, _) = tell(answer).await;
        assert_eq!(told.unwrap_err().class(), Class::UnknownOutcome, "{answer}");
    }
}

#[tokio::test]
async fn se_02_a_redirect_is_not_followed() {
    let trap = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let place = trap.local_addr().unwrap();
    let answer = format!("HTTP/1.1 307 Temporary Redirect\r\nlocation: http://{place}/\r\n\r\n");
    let (told, _) = tell(&answer).await;
    assert!(told.unwrap_err().operator_text().contains("307"));
    let visitor = tokio::time::timeout(Duration::from_millis(1), trap.accept()).await;
    assert!(visitor.is_err(), "nobody came");
}

#[tokio::test]
async fn se_02_where_no_receiver_can_be_nobody_is_asked() {
    for url in ["http://169.254.169.254/latest", "http://0.0.0.0:1/", "http://[fe80::1]:1/"] {
        let told = notifier(url, Duration::from_secs(20)).notify(notice(1)).await;
        assert!(told.unwrap_err().operator_text().contains("no address that is allowed"), "{url}");
    }
}

#[tokio::test]
async fn dr_02_a_receiver_that_never_answers_does_not_hold_the_herald_up() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let told = notifier(&url, Duration::from_millis(50)).notify(notice(1)).await;
    assert_eq!(told.unwrap_err().class(), Class::UnknownOutcome);
}

#[tokio::test]
async fn lq_05_a_file_has_each_notice_once_also_after_a_torn_line() {
    let folder = Folder::new("notices");
    let path = folder.path().join("notices.jsonl");
    for _start in 0..3 {
        let notifier = FileNotifier::open(&path).unwrap();
        for token in [1, 2, 1] {
            notifier.notify(notice(token)).await.unwrap();
        }
        // A crash in the middle of a line.
        let mut file = std::fs::OpenOptions::new().append(true).open(&path).unwrap();
        file.write_all(br#"{"type":"work.exhau"#).unwrap();
    }
    let text = std::fs::read_to_string(&path).unwrap();
    let whole: Vec<serde_json::Value> =
        text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let ids: BTreeSet<_> = whole.iter().map(|one| one["data"]["notice_id"].as_str().unwrap()).collect();
    assert_eq!((whole.len(), ids.len()), (2, 2), "{text}");
}
