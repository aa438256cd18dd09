//! Paying, hearing callbacks, giving money back.

use std::sync::Arc;

use onceward_domain::changes::ChangeSet;
use onceward_domain::decide::forget::callback_member;
use onceward_domain::decide::pay::{Heard, StartPayment};
use onceward_domain::decide::refund::AskRefund;
use onceward_domain::decide::{pay, refund};
use onceward_domain::derive::payload_hash;
use onceward_domain::due::{DueChange, Lane};
use onceward_domain::error::{Code, Error};
use onceward_domain::facts::{Facts, Need};
use onceward_domain::guard::Guard;
use onceward_domain::id::{OrderId, PaymentId, PurchaseId};
use onceward_domain::machine::payment::Payment as PaymentStatus;
use onceward_domain::money::Money;
use onceward_domain::payment::{Callback, Case, CaseKind, Word};
pub use onceward_domain::payment::{Payment, Refund};
use onceward_domain::ports::provider::{ClientData, PaymentOrder, RawCallback, Verified};
use onceward_domain::time::Millis;

use crate::engine::Engine;
use crate::execute::execute;
use crate::observe;
use crate::operations::once::{Idempotent, StoredAnswer, once};
use crate::wire;
use crate::workers::{asker, teller};

/// How long a kept callback is left to the request that brought it before the worker takes it.
const CALLBACK_HEAD_START: Millis = Millis(1_000);

/// A buyer starts to pay.
#[derive(Clone)]
pub struct Start {
    /// Which order.
    pub order: OrderId,
    /// At which provider.
    pub provider: Arc<str>,
    /// Who asked.
    pub actor: Arc<str>,
    /// Key, fingerprint and rendering.
    pub idempotent: Idempotent<Payment>,
}

/// Starts a payment attempt; the provider hears of it from the durable row.
///
/// # Errors
/// [`Code::UnknownProvider`], [`Code::NotFound`], [`Code::IdempotencyKeyReused`]; the store's. Refusals of the rule
/// are answers.
pub async fn start(engine: &Engine, command: Start) -> Result<StoredAnswer, Error> {
    let about = || format!("starting a payment of order {}", command.order);
    if engine.provider(&command.provider).is_none() {
        return Err(Error::new(Code::UnknownProvider, about()));
    }
    let purchase = command.order.purchase().map_err(|_| Error::new(Code::NotFound, about()))?;
    let id = engine.keys().payment(purchase, &command.idempotent.key);
    let rule =
        StartPayment { id, purchase, provider: command.provider.clone(), actor: command.actor.clone() };
    let need = Need {
        purchases: vec![purchase],
        attempts: vec![purchase],
        answers: vec![command.idempotent.key.clone()],
        ..Need::default()
    };
    ask_about_open(engine, purchase, id).await?;
    let answer = execute(engine, "start_payment", need, move |facts| {
        once(facts, &command.idempotent, |facts| pay::start(facts, &rule))
    })
    .await?;
    announce(engine, purchase).await;
    Ok(answer)
}

/// Asks about an attempt that is still open before another is started: where the word that it was declined got lost, the
/// buyer could not try again until the order's expiry. Silence leaves it open, and the start then answers it (C47).
async fn ask_about_open(engine: &Engine, purchase: PurchaseId, starting: PaymentId) -> Result<(), Error> {
    let known =
        engine.store().view(Need { purchases: vec![purchase], attempts: vec![purchase], ..Need::default() });
    let known = known.await?;
    if known.payments.contains_key(&starting) || !Guard::OpenAttemptIsAskedAbout.stands() {
        return Ok(());
    }
    for payment in known.payments_of(purchase).filter(|one| one.is_open()) {
        let Some(provider) = engine.provider(&payment.provider) else { continue };
        let Ok(word) = provider.query(payment.id).await else { continue };
        let source: Arc<str> = Arc::from("asked_before_start");
        let need = asker::need_of(&known, purchase);
        let heard =
            execute(engine, "start.heard", need, move |facts| pay::hear(facts, &word, &source)).await?;
        observe::heard(heard, "asked_before_start");
    }
    Ok(())
}

/// Tells the provider at once. Where that fails the durable entry stands and the worker repeats it with the same id.
async fn announce(engine: &Engine, purchase: PurchaseId) {
    let need = Need { attempts: vec![purchase], ..Need::default() };
    let Ok(facts) = engine.store().view(need).await else { return };
    for payment in facts.payments_of(purchase).filter(|one| one.status == PaymentStatus::Pending) {
        let Some(provider) = engine.provider(&payment.provider) else { continue };
        let told = provider.create(PaymentOrder { payment: payment.id, amount: payment.amount }).await;
        if let Err(error) = told {
            tracing::warn!(target: "onceward", event = "payment.announce_failed", payment_id = %payment.id, error = ?error);
        }
    }
}

/// What a buyer's client needs to pay; asking again is harmless.
///
/// # Errors
/// [`Code::NotFound`]; the provider's.
pub async fn client_data(engine: &Engine, id: PaymentId) -> Result<ClientData, Error> {
    let absent = || Error::new(Code::NotFound, format!("looking at payment {id}"));
    let facts = engine.store().view(Need { payments: vec![id], ..Need::default() }).await?;
    let payment = facts.payments.get(&id).ok_or_else(absent)?;
    let provider = engine.provider(&payment.provider).ok_or_else(absent)?;
    provider.create(PaymentOrder { payment: id, amount: payment.amount }).await
}

/// What became of a callback.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recorded {
    /// It is kept, and was heard now or before.
    Heard,
    /// It is kept; its payment is not known yet.
    Kept,
}

/// Takes a callback: verify on the raw bytes, keep, then hear. `raw.now` is the wall clock of whoever received it: the
/// sender's signature names a wall-clock time, and the store's may lag in after a step (DR-06).
///
/// # Errors
/// [`Code::UnknownProvider`], [`Code::BadSignature`], [`Code::Invalid`]; the store's.
pub async fn callback(engine: &Engine, provider: &str, raw: &RawCallback<'_>) -> Result<Recorded, Error> {
    let about = || format!("taking a callback of {provider}");
    let known = engine.provider(provider).ok_or_else(|| Error::new(Code::UnknownProvider, about()))?;
    let Verified { event, word } = known.verify(raw)?;
    let is_new = keep(engine, known.name(), &event, &word, raw.body).await?;
    if !is_new {
        return Ok(Recorded::Heard);
    }
    let need = teller::need_of_word(engine, &word).await?;
    let member: Arc<str> = callback_member(known.name(), &event);
    let source: Arc<str> = Arc::from("callback");
    let heard = execute(engine, "callback.heard", need, move |facts: &mut Facts| {
        let (mut changes, heard) = pay::hear(facts, &word, &source)?;
        if Guard::UnknownPaymentIsKept.holds(heard != Heard::UnknownPayment) {
            changes.due.push(DueChange::Remove { lane: Lane::new(Lane::CALLBACK), member: member.clone() });
        }
        Ok((changes, heard))
    })
    .await;
    engine.signals().relay.notify_one();
    engine.signals().refund.notify_one();
    engine.signals().cancel.notify_one();
    match heard {
        Ok(Heard::UnknownPayment) => Ok(Recorded::Kept),
        // It is kept: whatever went wrong now, the worker hears it again.
        Err(_) => Ok(Recorded::Heard),
        Ok(heard) => {
            observe::heard(heard, "callback");
            Ok(Recorded::Heard)
        }
    }
}

async fn keep(
    engine: &Engine,
    provider: &'static str,
    event: &Arc<str>,
    word: &Word,
    body: &[u8],
) -> Result<bool, Error> {
    let key: (Arc<str>, Arc<str>) = (Arc::from(provider), event.clone());
    let need = Need { callbacks: vec![key.clone()], ..Need::default() };
    let (entry, payload): (Vec<u8>, Vec<u8>) = (wire::encode_word(word), body.to_vec());
    execute(engine, "callback.keep", need, move |facts: &mut Facts| {
        if let Some(first) = facts.callbacks.get(&key).filter(|_| Guard::EventIsKeptOnce.stands()) {
            let mut changes = ChangeSet::default();
            if !Guard::EventHasOneBody.holds(first.payload_hash == payload_hash(&payload)) {
                // Not what was answered before: kept for a person, never applied (C91).
                let subject: Arc<str> = callback_member(&key.0, &key.1);
                let detail: Arc<str> = Arc::from(String::from_utf8_lossy(&payload).into_owned());
                changes.cases.push(Case { kind: CaseKind::EventReused, subject, detail, at: facts.now });
            }
            return Ok((changes, false));
        }
        let callback = Callback {
            provider: key.0.clone(),
            event: key.1.clone(),
            payload_hash: payload_hash(&payload),
            payload: payload.clone(),
            received_at: facts.now,
        };
        let put = DueChange::Put {
            lane: Lane::new(Lane::CALLBACK),
            member: callback_member(&key.0, &key.1),
            due_at: facts.now.plus(CALLBACK_HEAD_START),
            body: entry.clone(),
        };
        Ok((ChangeSet { callbacks: vec![callback], due: vec![put], ..ChangeSet::default() }, true))
    })
    .await
}

/// Somebody asks for money back.
#[derive(Clone)]
pub struct Ask {
    /// Of which order.
    pub order: OrderId,
    /// How much; nothing given means all that is left.
    pub amount: Option<Money>,
    /// Why.
    pub reason: Arc<str>,
    /// Who.
    pub actor: Arc<str>,
    /// Key, fingerprint and rendering.
    pub idempotent: Idempotent<Refund>,
}

/// Opens a refund; the provider hears of it from the durable row.
///
/// # Errors
/// [`Code::NotFound`], [`Code::IdempotencyKeyReused`]; the store's. Refusals of the rule are answers.
pub async fn ask_refund(engine: &Engine, command: Ask) -> Result<StoredAnswer, Error> {
    let about = || format!("refunding order {}", command.order);
    let purchase = command.order.purchase().map_err(|_| Error::new(Code::NotFound, about()))?;
    let rule = AskRefund {
        id: engine.keys().refund(purchase, &command.idempotent.key),
        purchase,
        amount: command.amount,
        reason: command.reason.clone(),
        actor: command.actor.clone(),
    };
    let need = Need {
        purchases: vec![purchase],
        attempts: vec![purchase],
        answers: vec![command.idempotent.key.clone()],
        ..Need::default()
    };
    let answer = execute(engine, "ask_refund", need, move |facts| {
        once(facts, &command.idempotent, |facts| refund::ask(facts, &rule))
    })
    .await?;
    engine.signals().refund.notify_one();
    Ok(answer)
}

/// The refunds of an order, oldest first.
///
/// # Errors
/// [`Code::NotFound`]; the store's.
pub async fn refunds(engine: &Engine, order: OrderId) -> Result<Vec<Refund>, Error> {
    let known = super::order::get(engine, order).await?;
    let facts = engine.store().view(Need { attempts: vec![known.id], ..Need::default() }).await?;
    let mut found: Vec<Refund> = facts.refunds_of(known.id).cloned().collect();
    found.sort_by_key(|one| (one.created_at, one.id));
    Ok(found)
}
