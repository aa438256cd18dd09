//! The bank's memory and its callbacks.
#![allow(clippy::unwrap_used, reason = "tests")]

mod folder;

use std::fs;
use std::sync::Arc;

use onceward_domain::error::{Code, Error};
use onceward_domain::id::{ChargeId, IdKind, PaymentId, PurchaseId, RefundId, UserId};
use onceward_domain::money::{Currency, Money};
use onceward_domain::payment::{ChargeWord, Word};
use onceward_domain::ports::provider::{ChargeOrder, Provider, RawCallback, RefundOrder};
use onceward_domain::ports::sandbox::{
    Act, BankPayment, BankStatus, Calling, Deed, Mood, MoodChange, Sandbox, StatementLine,
};
use onceward_domain::time::{LATEST, Millis, Timestamp};
use onceward_providers::sandbox::{Bank, Courier, Policy, SandboxProvider, Target};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use folder::Folder;

const PAY: Deed = Deed::Succeed { amount: None, force: false };

fn payment(number: u8) -> PaymentId {
    PaymentId(PurchaseId::from_digest([number; 16], 1).with_kind(IdKind::Payment))
}

fn refund(number: u8) -> RefundId {
    RefundId(PurchaseId::from_digest([number; 16], 1).with_kind(IdKind::Refund))
}

fn cny(amount: i64) -> Money {
    Money::new(amount, Currency::CNY).unwrap()
}

async fn play(bank: &Bank, number: u8, deed: Deed, calling: Calling) -> Result<BankPayment, Error> {
    bank.play(payment(number), Act { deed, calling, delay: Millis(0) }).await
}

/// Everything the bank tells about three payments, and its statement.
async fn truth(bank: &Bank) -> (Vec<Option<BankPayment>>, Vec<StatementLine>) {
    let mut known = Vec::new();
    for number in 1..=3 {
        known.push(bank.find(payment(number)).await.unwrap());
    }
    (known, bank.statement(Timestamp(0), LATEST).await.unwrap())
}

fn charge(id: &str) -> ChargeOrder {
    ChargeOrder { charge: ChargeId::trusted(id), customer: UserId::trusted("u"), amount: cny(7) }
}

/// A bank in which everything has happened once.
async fn eventful(bank: &Bank) {
    bank.announce(payment(1), cny(100)).await.unwrap();
    play(bank, 1, PAY, Calling::Duplicate).await.unwrap();
    let order =
        |number, amount| RefundOrder { refund: refund(number), payment: payment(1), amount: cny(amount) };
    assert!(bank.refund(order(1, 60), Policy::Fair).await.unwrap());
    assert!(!bank.refund(order(2, 60), Policy::Fair).await.unwrap());
    bank.return_refund(refund(1), Calling::Send).await.unwrap();
    bank.announce(payment(2), cny(100)).await.unwrap();
    play(bank, 2, Deed::Fail, Calling::Drop).await.unwrap();
    assert!(matches!(bank.charge(charge("c-1"), Policy::Fair).await.unwrap(), ChargeWord::Taken { .. }));
    assert_eq!(bank.charge(charge("c-2"), Policy::Decline).await.unwrap(), ChargeWord::Declined);
    bank.set_moods(MoodChange { query: Some(Mood::Error), ..MoodChange::default() }).await.unwrap();
    bank.close(payment(3)).await.unwrap();
}

#[tokio::test]
async fn dr_02_a_bank_that_is_opened_again_has_forgotten_nothing() {
    let folder = Folder::new("again");
    let bank = folder.bank("bank.jsonl").unwrap();
    eventful(&bank).await;
    let before = truth(&bank).await;
    drop(bank);
    let bank = folder.bank("bank.jsonl").unwrap();
    assert_eq!(truth(&bank).await, before);
    assert_eq!(before.0[0].as_ref().unwrap().refunded, Some(cny(0)), "the refund came back");
    assert_eq!(bank.charges(UserId::trusted("u")).await.unwrap().len(), 1);
    for (id, mood, word) in [("c-1", Policy::Decline, "Taken"), ("c-2", Policy::Fair, "Declined")] {
        let heard = format!("{:?}", bank.charge(charge(id), mood).await.unwrap());
        assert!(heard.starts_with(word), "{id}: {heard}");
    }
    let moods = bank.set_moods(MoodChange::default()).await.unwrap();
    assert_eq!((moods.query, moods.close), (Mood::Error, Mood::Ok));
}

#[tokio::test]
async fn dr_02_a_kill_at_every_byte_of_the_last_line_loses_that_line_alone() {
    let folder = Folder::new("torn");
    let bank = folder.bank("bank.jsonl").unwrap();
    eventful(&bank).await;
    drop(bank);
    let whole = fs::read(folder.file("bank.jsonl")).unwrap();
    let start = whole[..whole.len() - 1].iter().rposition(|byte| *byte == b'\n').unwrap() + 1;
    assert!(whole.len() - start > 40, "the last line is a line");
    for cut in start..whole.len() {
        fs::write(folder.file("cut.jsonl"), &whole[..cut]).unwrap();
        let bank = folder.bank("cut.jsonl").unwrap();
        assert_eq!(bank.find(payment(3)).await.unwrap(), None, "cut at {cut}");
        assert_eq!(bank.find(payment(2)).await.unwrap().unwrap().status, BankStatus::Failed);
        bank.close(payment(3)).await.unwrap();
        drop(bank);
        assert_eq!(
            fs::read(folder.file("cut.jsonl")).unwrap(),
            whole,
            "cut at {cut}: written again, cleanly"
        );
    }
}

#[tokio::test]
async fn a_journal_that_is_damaged_before_its_end_is_refused() {
    let folder = Folder::new("damaged");
    let bank = folder.bank("bank.jsonl").unwrap();
    eventful(&bank).await;
    drop(bank);
    let mut content = fs::read(folder.file("bank.jsonl")).unwrap();
    content[0] = b'X';
    fs::write(folder.file("bank.jsonl"), &content).unwrap();
    let refused = folder.bank("bank.jsonl").err().unwrap();
    assert!(refused.to_string().contains("byte 0"), "{refused}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ot_09_a_hundred_refunds_at_once_never_pass_what_was_taken() {
    let folder = Folder::new("hundred");
    let bank = folder.bank("bank.jsonl").unwrap();
    bank.announce(payment(1), cny(100)).await.unwrap();
    play(&bank, 1, PAY, Calling::Drop).await.unwrap();
    let mut asked = tokio::task::JoinSet::new();
    for number in 1..=100 {
        let order = RefundOrder { refund: refund(number), payment: payment(1), amount: cny(60) };
        let bank = bank.clone();
        asked.spawn(async move { bank.refund(order, Policy::Fair).await.unwrap() });
    }
    let went = asked.join_all().await.into_iter().filter(|went| *went).count();
    assert_eq!(went, 1);
    assert_eq!(bank.find(payment(1)).await.unwrap().unwrap().refunded, Some(cny(60)));
}

/// A webhook that answers as it is told and keeps what it was sent.
struct Ear {
    listener: TcpListener,
}

struct Heard {
    headers: Vec<(String, String)>,
    body: Vec<u8>,
}

impl Ear {
    async fn listen() -> (Self, Target) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let target = Target::at(listener.local_addr().unwrap());
        (Self { listener }, target)
    }

    async fn hear(&self, status: u16) -> Heard {
        let (mut stream, _) = self.listener.accept().await.unwrap();
        let heard = read_request(&mut stream).await;
        stream
            .write_all(format!("HTTP/1.1 {status} X\r\ncontent-length: 0\r\n\r\n").as_bytes())
            .await
            .unwrap();
        heard
    }
}

async fn read_request(stream: &mut TcpStream) -> Heard {
    let mut bytes = Vec::new();
    loop {
        assert_ne!(stream.read_buf(&mut bytes).await.unwrap(), 0, "it ended early");
        let text = String::from_utf8(bytes.clone()).unwrap();
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let mut lines = head.lines();
        assert_eq!(lines.next().unwrap(), "POST /v1/webhooks/sandbox HTTP/1.1");
        let headers: Vec<(String, String)> = lines
            .map(|line| line.split_once(": ").unwrap())
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect();
        let length: usize =
            headers.iter().find(|(name, _)| name == "content-length").unwrap().1.parse().unwrap();
        if body.len() == length {
            return Heard { headers, body: body.as_bytes().to_vec() };
        }
    }
}

#[tokio::test]
async fn ot_08_callbacks_are_signed_doubled_dropped_and_delayed() {
    let folder = Folder::new("callbacks");
    let bank = folder.bank("bank.jsonl").unwrap();
    let (ear, target) = Ear::listen().await;
    let courier = Courier::new(bank.clone(), target);
    for number in 1..=3 {
        bank.announce(payment(number), cny(100)).await.unwrap();
    }
    play(&bank, 1, PAY, Calling::Duplicate).await.unwrap();
    play(&bank, 2, PAY, Calling::Drop).await.unwrap();
    let late = Act { deed: PAY, calling: Calling::Send, delay: Millis(500) };
    bank.play(payment(3), late).await.unwrap();

    let (first, second, step) = tokio::join!(ear.hear(200), ear.hear(202), courier.step());
    assert_eq!(step.unwrap(), Some(Millis(500)), "the late one waits, the dropped one is gone");
    assert_eq!(first.body, second.body, "the same callback twice");
    let provider = SandboxProvider::new(bank.clone());
    let callback = RawCallback { headers: &first.headers, body: &first.body, now: folder::NOON };
    let verified = provider.verify(&callback).unwrap();
    let transaction = bank.find(payment(1)).await.unwrap().unwrap().transaction.unwrap();
    assert_eq!(verified.word, Word::Succeeded { payment: payment(1), transaction, amount: cny(100) });
    let tampered =
        first.body.iter().map(|byte| if *byte == b'1' { b'2' } else { *byte }).collect::<Vec<u8>>();
    let callback = RawCallback { headers: &first.headers, body: &tampered, now: folder::NOON };
    assert_eq!(provider.verify(&callback).unwrap_err().code(), Code::BadSignature);

    folder.clock.advance(Millis(500));
    let (third, step) = tokio::join!(ear.hear(200), courier.step());
    assert_eq!(step.unwrap(), None);
    assert!(String::from_utf8(third.body).unwrap().contains(&payment(3).to_string()));
}

#[tokio::test]
async fn ot_08_a_callback_nobody_takes_comes_again_also_after_a_kill() {
    let folder = Folder::new("retry");
    let bank = folder.bank("bank.jsonl").unwrap();
    let (ear, target) = Ear::listen().await;
    bank.announce(payment(1), cny(100)).await.unwrap();
    play(&bank, 1, PAY, Calling::Send).await.unwrap();
    let courier = Courier::new(bank.clone(), target.clone());
    for (status, wait) in [(503, 100), (401, 200), (302, 400)] {
        let (_, step) = tokio::join!(ear.hear(status), courier.step());
        assert_eq!(step.unwrap(), Some(Millis(wait)));
        assert_eq!(courier.step().await.unwrap(), Some(Millis(wait)), "nothing is due");
        folder.clock.advance(Millis(wait));
    }
    drop((courier, bank));
    let courier = Courier::new(folder.bank("bank.jsonl").unwrap(), target);
    let (_, step) = tokio::join!(ear.hear(200), courier.step());
    assert_eq!(step.unwrap(), None);
}

#[tokio::test]
async fn ot_08_a_callback_is_given_up_at_last() {
    let folder = Folder::new("given-up");
    let bank = Arc::new(folder.bank("bank.jsonl").unwrap());
    let (ear, target) = Ear::listen().await;
    drop(ear);
    bank.announce(payment(1), cny(100)).await.unwrap();
    play(&bank, 1, PAY, Calling::Send).await.unwrap();
    let courier = Courier::new((*bank).clone(), target);
    let mut tries = 1;
    while let Some(wait) = courier.step().await.unwrap() {
        assert!(wait <= Millis(10_000) && tries < 1_000);
        folder.clock.advance(wait);
        tries += 1;
    }
    assert_eq!(tries, 64);
}
