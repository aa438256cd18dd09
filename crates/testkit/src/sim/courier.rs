//! The bank's courier: brings its word to any node, as a callback, and is no better than the line.
//!
//! Invariants: a callback is brought until a node takes it; one that is not sent at all is about something that the engine
//! must find by asking, unless nothing will ever ask again — that one the bank tells at last, in its statement.

use onceward::Engine;
use onceward::operations::payment::{self, Recorded};
use onceward::operations::statement::{self, Entry, Line, Said};
use onceward::wire;
use onceward_domain::due::Lane;
use onceward_domain::id::PaymentId;
use onceward_domain::machine::order::Order as OrderStatus;
use onceward_domain::money::Money;
use onceward_domain::payment::Word;
use onceward_domain::ports::provider::RawCallback;
use onceward_domain::time::Millis;

use super::money;
use super::net::Net;
use super::world::World;

/// The header that names the event.
pub(crate) const EVENT_HEADER: &str = "event";

/// How often a callback about money names a wrong amount besides, in thousandths.
const WRONG_AMOUNT: u32 = 15;

/// Sends a word about a payment: late, more than once, not at all.
pub(crate) fn send(net: &Net, payment: PaymentId, word: &Word) {
    let world = &net.world;
    let copies = match world.draw(|rng| rng.below(10)) {
        0..=3 => 0,
        4..=7 => 1,
        8 => 2,
        _ => 3,
    };
    if copies == 0 && (!is_money(word) || will_be_asked(world, payment)) {
        world.sometimes("callback_dropped");
        return world.keep_unsent(payment, word.clone());
    }
    for _ in 0..copies.max(1) {
        bring(net, word.clone());
    }
    if let Word::Succeeded { payment, transaction, amount } = word
        && world.draw(|rng| rng.chance(WRONG_AMOUNT))
        && let Ok(amount) = Money::new(amount.amount() + 7, amount.currency())
    {
        let (payment, transaction) = (*payment, transaction.clone());
        bring(net, Word::Succeeded { payment, transaction, amount });
    }
}

/// Brings one copy, some time.
pub(crate) fn bring(net: &Net, word: Word) {
    let world = &net.world;
    let late = if world.draw(|rng| rng.chance(600)) { 3_000 } else { 120_000 };
    let delay = Millis(world.draw(|rng| rng.between(0, late)));
    // Copies of one event, and sometimes the same said by two events.
    let number = world.draw(|rng| rng.below(2));
    net.send_out(deliver(net.clone(), delay, format!("{word:?} {number}"), word));
}

fn is_money(word: &Word) -> bool {
    matches!(word, Word::Succeeded { .. })
}

/// Whether the engine is bound to ask about this payment from now on, without being told anything.
fn will_be_asked(world: &World, payment: PaymentId) -> bool {
    let rows = world.store.rows();
    let purchase = rows.payments.get(&payment).and_then(|row| rows.purchases.get(&row.purchase));
    let Some((id, order)) = purchase.and_then(|one| Some((one.id, one.order.as_ref()?))) else {
        return false;
    };
    match order.status {
        OrderStatus::Created | OrderStatus::Paying | OrderStatus::CancelPending => true,
        OrderStatus::Cancelled => {
            let member = std::sync::Arc::from(id.order().to_string());
            // One that was claimed may have had its answer already.
            rows.due.get(&(Lane::new(Lane::CONFIRMATION), member)).is_some_and(|row| row.attempts == 0)
        }
        OrderStatus::Paid | OrderStatus::Refunding | OrderStatus::Refunded | OrderStatus::ManualReview => {
            false
        }
    }
}

/// The bank's statement: what it never told and nothing asks about any more.
pub(crate) fn send_statement(net: &Net) {
    for payment in money::beyond_asking(&net.world) {
        if let Some(word) = net.world.take_unsent(payment) {
            net.world.sometimes("statement_told_the_rest");
            match line_of(&word) {
                Some(line) => net.send_out(state(net.clone(), line)),
                None => net.send_out(deliver(net.clone(), Millis(0), format!("statement {payment}"), word)),
            }
        }
    }
}

/// The word as a line of a statement, which lists money that moved and nothing else.
fn line_of(word: &Word) -> Option<Line> {
    let Word::Succeeded { payment, transaction, amount } = word else { return None };
    let said = Said::Taken { transaction: transaction.clone() };
    Some(Line { number: 2, entry: Entry { payment: *payment, said, amount: *amount } })
}

async fn state(net: Net, line: Line) {
    let told = line.clone();
    let wish = move |engine: Engine| {
        let line = line.clone();
        async move { statement::read(&engine, "sandbox", &[line]).await }
    };
    match net.ask(wish).await {
        Some(Ok(reading)) if reading.unknown > 0 => {
            net.world.violated(format!("a statement's line about a known payment was unknown: {told:?}"));
        }
        Some(Ok(_)) | None => {}
        Some(Err(code)) => net.world.violated(format!("a statement of {told:?} heard {code:?}")),
    }
}

async fn deliver(net: Net, delay: Millis, event: String, word: Word) {
    net.world.sleep(delay).await;
    let body = wire::encode_word(&word);
    let headers = vec![(EVENT_HEADER.to_owned(), event)];
    let received = net.world.now();
    let wish = move |engine: Engine| {
        let (headers, body) = (headers.clone(), body.clone());
        async move {
            let raw = RawCallback { headers: &headers, body: &body, now: received };
            payment::callback(&engine, "sandbox", &raw).await
        }
    };
    match net.ask(wish).await {
        Some(Ok(Recorded::Heard)) => net.world.sometimes("callback_heard"),
        Some(Ok(Recorded::Kept)) => net.world.sometimes("callback_before_known"),
        Some(Err(code)) => net.world.violated(format!("a callback of {word:?} heard {code:?}")),
        None => {}
    }
}
