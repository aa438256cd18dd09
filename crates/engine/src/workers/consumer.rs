//! The order consumer: from messages to orders (FS-06 to FS-10).
//!
//! Invariants: a batch is one store transaction and is acknowledged only after its commit; a message that makes a batch
//! fail is found by halving and set aside alone; an unknown commit is looked up by message id and never compensated,
//! never re-created (reference 003 §9.8), and it uses up no tries, nor does a store or a gate that is away (`outage.rs`). Read next: [`onceward_domain::decide::create_order`].

use std::sync::Arc;

use onceward_domain::changes::{ChangeSet, Quarantined};
use onceward_domain::decide::behind;
use onceward_domain::decide::create_order::{Incoming, Outcome, create_orders};
use onceward_domain::derive::payload_hash;
use onceward_domain::error::{Class, Code, Error};
use onceward_domain::event::OrderCreateRequested;
use onceward_domain::facts::{Facts, Need};
use onceward_domain::id::PurchaseId;
use onceward_domain::ports::admission::Birth;
use onceward_domain::ports::bus::{Delivery, Settlement, Topic};
use onceward_domain::purchase::InboxResult;
use onceward_domain::time::{Millis, Timestamp};

use crate::engine::Engine;
use crate::execute::{decide_apart, execute, transact};
use crate::governor::Word;
use crate::observe;
use crate::outage::{outage_in, try_to_write};
use crate::wire;
use crate::workers::{Next, need_of_messages, strays, wait_of_delivery, wait_until};

/// Takes deliveries, decides them batch by batch, settles each batch after its commit.
///
/// # Errors
/// The bus's or the store's; what was not settled comes again.
pub async fn step(engine: &Engine) -> Result<Next, Error> {
    let settings = engine.settings();
    if let Some((rest, now)) = rest(engine).await? {
        say_how_far(engine, Some(now)).await?;
        return Ok(Next::Wait(Some(rest)));
    }
    let outage = engine.outage(Topic::OrderCreate);
    outage.look(engine, |engine, _refused| Box::pin(try_to_write(engine))).await?;
    let limit = u32::try_from(settings.order_batch).unwrap_or(u32::MAX);
    let deliveries = engine.bus().consume(Topic::OrderCreate, limit, settings.lease).await?;
    engine.governor().taken(&deliveries);
    if deliveries.is_empty() {
        say_how_far(engine, None).await?;
        return wait_until(engine, engine.bus().next_delivery(Topic::OrderCreate).await?).await;
    }
    outage
        .decide_all(engine, Topic::OrderCreate, &deliveries, |engine, batch| Box::pin(handle(engine, batch)))
        .await?;
    if settings.governor.orders_per_second.is_some() {
        engine.governor().asked(engine.store().now().await?, deliveries.len(), &settings.governor);
    }
    Ok(Next::Again)
}

/// How long the consumer rests from now on, so that the store is asked for no more than it can do (FS-17).
async fn rest(engine: &Engine) -> Result<Option<(Millis, Timestamp)>, Error> {
    if engine.settings().governor.orders_per_second.is_none() {
        return Ok(None);
    }
    let now = engine.store().now().await?;
    Ok(engine.governor().rest(now).map(|rest| (rest, now)))
}

/// Tells the deadline workers of every process whether these consumers are far behind (FS-17). It is said after every batch and in
/// every rest, because several batches and a rest may take longer than what was said holds.
async fn say_how_far(engine: &Engine, resting: Option<Timestamp>) -> Result<(), Error> {
    let name = || engine.ids().member();
    let Some(word) = engine.governor().word(&engine.settings().governor, resting, name) else {
        return Ok(());
    };
    let changes = match &word {
        Word::Behind(said) => behind::say(&said.process, said.at),
        Word::CaughtUp(process) => behind::take_back(process),
    };
    transact(engine.store(), "say_how_far", Need::default(), move |_| Ok((changes.clone(), ()))).await?;
    engine.governor().said(word);
    Ok(())
}

async fn handle(engine: &Engine, batch: &[Delivery]) -> Result<Vec<Settlement>, Error> {
    let mut settlements = Vec::with_capacity(batch.len());
    let mut incoming = Vec::with_capacity(batch.len());
    let mut deliveries = Vec::with_capacity(batch.len());
    for delivery in batch {
        if engine.settings().retry().is_spent(delivery.attempts) {
            settlements.push(dead(delivery, "tries are used up"));
            continue;
        }
        match read(engine, delivery) {
            Ok(message) => {
                let payload: Arc<[u8]> = Arc::from(delivery.message.payload.as_slice());
                let payload_hash = payload_hash(&payload);
                let (birth, gate_may_forget) = (Birth::Absent, !engine.admission().lives_in_store());
                incoming.push(Incoming { message, payload_hash, payload, birth, gate_may_forget });
                deliveries.push(delivery);
            }
            Err(error) => {
                quarantine(engine, delivery, &error).await?;
                settlements.push(Settlement::Ack(delivery.receipt.clone()));
            }
        }
    }
    let messages = incoming.iter().map(|one| one.message.clone()).collect();
    for (one, birth) in incoming.iter_mut().zip(engine.admission().births(messages).await?) {
        one.birth = birth;
    }
    let ids: Vec<PurchaseId> = incoming.iter().map(|one| one.message.purchase).collect();
    let mut outcomes = decide_apart(incoming, |part| Box::pin(decide(engine, part))).await;
    if let Some(error) = outage_in(&mut outcomes) {
        return Err(error);
    }
    if let Err(error) = say_how_far(engine, None).await {
        // These are decided all the same, and it is said with the next ones.
        tracing::warn!(target: "onceward", event = "behind.not_said", ?error);
    }
    let refused_before = ids.iter().zip(&outcomes).filter(|(_, outcome)| is_refused_before(outcome));
    let kept = strays::give_back(engine, refused_before.map(|(id, _)| *id).collect()).await?;
    for ((delivery, id), outcome) in deliveries.into_iter().zip(ids).zip(outcomes) {
        // What its part of the gate still holds is given back when the message comes again.
        settlements.push(if kept.contains(&id) {
            engine.outage(Topic::OrderCreate).hand_back(engine, delivery)
        } else {
            conclude(engine, delivery, outcome)
        });
    }
    Ok(settlements)
}

/// Whether a decision stood that lets no order be.
fn is_refused_before(outcome: &Result<Outcome, Error>) -> bool {
    match outcome {
        Ok(Outcome::Late | Outcome::Duplicate(InboxResult::OrderRejected | InboxResult::LateRejected)) => {
            true
        }
        Ok(
            Outcome::Duplicate(InboxResult::OrderCreated)
            | Outcome::Created(_)
            | Outcome::Rejected(_)
            | Outcome::PayloadConflict
            | Outcome::UnknownSku
            | Outcome::Frozen,
        )
        | Err(_) => false,
    }
}

/// Decodes a message and proves that its ids are ours (FS-02).
fn read(engine: &Engine, delivery: &Delivery) -> Result<OrderCreateRequested, Error> {
    let message = wire::decode_message(&delivery.message.payload)?;
    if !engine.keys().owns(message.purchase, &message.key, &message.user, &message.request) {
        return Err(Error::new(Code::Invalid, "the reservation id does not belong to this request"));
    }
    Ok(message)
}

async fn quarantine(engine: &Engine, delivery: &Delivery, why: &Error) -> Result<(), Error> {
    tracing::error!(target: "onceward", event = "order.message_quarantined", id = %delivery.message.id, error = %why);
    observe::messages_consumed("payload_conflict", 1);
    let message = delivery.message.clone();
    execute(engine, "quarantine", Need::default(), move |facts: &mut Facts| {
        let quarantined = vec![Quarantined {
            message_id: message.id.clone(),
            payload_hash: payload_hash(&message.payload),
            reason: "unreadable",
            payload: message.payload.clone(),
            at: facts.now,
        }];
        Ok((ChangeSet { quarantined, ..ChangeSet::default() }, ()))
    })
    .await
}

/// Decides messages in one transaction.
async fn decide(engine: &Engine, batch: Arc<[Incoming]>) -> Result<Vec<Outcome>, Error> {
    let need = need_of_messages(batch.iter().map(|incoming| &incoming.message));
    let decided = batch.clone();
    let decision = move |facts: &mut Facts| {
        let (changes, outcomes) = create_orders(facts, &decided)?;
        Ok((changes, (outcomes, facts.now)))
    };
    match execute(engine, "create_orders", need.clone(), decision).await {
        Ok((outcomes, now)) => {
            engine.governor().decided(now);
            tell(engine, &outcomes);
            Ok(outcomes)
        }
        Err(error) if error.class() == Class::UnknownOutcome => {
            observe::commit_unknown(&error);
            look_up(engine, need, &batch, error).await
        }
        Err(error) => Err(error),
    }
}

/// FS-10: the inbox says whether the commit landed. All there with the same hash: it did. Else the messages stay
/// unacknowledged and come again with the same ids.
async fn look_up(engine: &Engine, need: Need, part: &[Incoming], lost: Error) -> Result<Vec<Outcome>, Error> {
    let facts = engine.store().view(need).await?;
    let mut outcomes = Vec::with_capacity(part.len());
    for incoming in part {
        let inbox = facts.purchases.get(&incoming.message.purchase).and_then(|purchase| purchase.inbox);
        match inbox {
            Some(inbox) if inbox.payload_hash == incoming.payload_hash => {
                outcomes.push(Outcome::Duplicate(inbox.result));
            }
            _ => return Err(lost),
        }
    }
    wake(engine);
    Ok(outcomes)
}

fn tell(engine: &Engine, outcomes: &[Outcome]) {
    let mut created = 0;
    for outcome in outcomes {
        match outcome {
            Outcome::Created(_) => created += 1,
            Outcome::Rejected(reason) => {
                observe::order_refused(reason.name());
                observe::messages_consumed(outcome.name(), 1);
            }
            Outcome::Duplicate(_)
            | Outcome::Late
            | Outcome::PayloadConflict
            | Outcome::UnknownSku
            | Outcome::Frozen => observe::messages_consumed(outcome.name(), 1),
        }
    }
    if created > 0 {
        observe::messages_consumed("created", created);
    }
    wake(engine);
}

fn wake(engine: &Engine) {
    engine.signals().relay.notify_one();
    engine.signals().compensate.notify_one();
    engine.signals().decided.notify_waiters();
}

fn conclude(engine: &Engine, delivery: &Delivery, outcome: Result<Outcome, Error>) -> Settlement {
    let settings = engine.settings();
    let retry = || Settlement::Retry(delivery.receipt.clone(), wait_of_delivery(engine, delivery));
    match outcome {
        Ok(Outcome::Frozen) if delivery.attempts >= settings.attempts_limit => dead(delivery, "frozen"),
        Ok(Outcome::Frozen) => retry(),
        Ok(
            Outcome::Created(_)
            | Outcome::Rejected(_)
            | Outcome::Duplicate(_)
            | Outcome::Late
            | Outcome::PayloadConflict
            | Outcome::UnknownSku,
        ) => Settlement::Ack(delivery.receipt.clone()),
        Err(error) if matches!(error.class(), Class::Manual) => {
            tracing::error!(target: "onceward", event = "order.poison", id = %delivery.message.id, error = ?error);
            observe::messages_consumed("manual", 1);
            dead(delivery, "a defect")
        }
        Err(error) => {
            tracing::warn!(target: "onceward", event = "order.retry", id = %delivery.message.id, error = ?error);
            observe::messages_consumed("retry", 1);
            // It is looked up when it comes again; only a failure that is known costs a try (DR-02).
            let is_known = error.class() != Class::UnknownOutcome;
            if is_known { retry() } else { engine.outage(Topic::OrderCreate).hand_back(engine, delivery) }
        }
    }
}

fn dead(delivery: &Delivery, why: &'static str) -> Settlement {
    tracing::error!(target: "onceward", event = "order.dead_letter", id = %delivery.message.id, why);
    Settlement::Dead(delivery.receipt.clone())
}
