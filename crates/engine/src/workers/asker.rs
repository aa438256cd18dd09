//! Asks providers about the attempts of cancelled orders (OT-05, OT-07): before the cancel is final, and once after it. A paid
//! order whose other attempts are not all ended goes the same way.
//!
//! Invariants: providers are asked outside any transaction; silence keeps the order pending, however long it lasts; for a
//! pending cancel each open attempt is queried, closed and queried again, because "closed" alone proves nothing; what is
//! learnt and what follows from it are one transaction.

use std::sync::Arc;

use futures_util::future::join_all;
use onceward_domain::decide::cancel::{Asked, Concluded, conclude, confirm};
use onceward_domain::due::{Claimed, Lane, unpack_ids};
use onceward_domain::error::{Class, Error};
use onceward_domain::facts::{Facts, Need};
use onceward_domain::guard::Guard;
use onceward_domain::id::PurchaseId;
use onceward_domain::machine::payment::Payment as PaymentStatus;
use onceward_domain::payment::{Payment, Word};
use onceward_domain::ports::provider::Provider;

use crate::engine::Engine;
use crate::execute::execute;
use crate::observe;
use crate::workers::{Next, claim_for_provider, wait_of, wait_until};

/// Which round of asking.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Round {
    /// Before the cancel: query, close, query again.
    Cancellation,
    /// After it: query only.
    Confirmation,
}

impl Round {
    fn lane(self) -> &'static str {
        match self {
            Self::Cancellation => Lane::CANCELLATION,
            Self::Confirmation => Lane::CONFIRMATION,
        }
    }

    fn source(self) -> &'static str {
        match self {
            Self::Cancellation => "cancellation_query",
            Self::Confirmation => "second_confirmation",
        }
    }
}

/// Claims orders of this round, asks about each, writes what follows.
///
/// # Errors
/// The store's; what was claimed comes again after its lease.
pub async fn step(engine: &Engine, round: Round) -> Result<Next, Error> {
    let claimed = claim_for_provider(engine, round.lane()).await?;
    if claimed.is_empty() {
        return wait_until(engine, engine.store().next_due(Lane::new(round.lane())).await?).await;
    }
    for outcome in join_all(claimed.iter().map(|entry| ask_about(engine, round, entry))).await {
        match outcome {
            Ok(_) => wake(engine),
            // The lease was lost: whoever holds it now asks the same.
            Err(error) if error.class() == Class::Conflict => {}
            // A defect of one must not hold up the others; it comes again after its lease, and is told each time.
            Err(error) if error.class() == Class::Manual => {
                tracing::error!(target: "onceward", event = "payment.ask_failed", error = ?error);
            }
            Err(error) => return Err(error),
        }
    }
    Ok(Next::Again)
}

fn wake(engine: &Engine) {
    engine.signals().relay.notify_one();
    engine.signals().refund.notify_one();
    engine.signals().confirm.notify_one();
}

async fn ask_about(engine: &Engine, round: Round, entry: &Claimed) -> Result<Concluded, Error> {
    let Some(id) = unpack_ids(&entry.body).first().copied() else { return Ok(Concluded::Settled) };
    let known =
        engine.store().view(Need { purchases: vec![id], attempts: vec![id], ..Need::default() }).await?;
    let mut words = Vec::new();
    for payment in known.payments_of(id).filter(|one| must_ask(round, one)) {
        words.push(ask(engine, round, payment).await);
    }
    let asked = Asked {
        purchase: id,
        words,
        held: entry.held.clone(),
        wait: wait_of(engine, entry),
        source: Arc::from(round.source()),
    };
    let need = need_of(&known, id);
    execute(engine, round.source(), need, move |facts| match round {
        Round::Cancellation => conclude(facts, &asked),
        Round::Confirmation => confirm(facts, &asked),
    })
    .await
}

/// Before the cancel only open attempts matter; after it, every one that did not bring its money already.
fn must_ask(round: Round, payment: &Payment) -> bool {
    match round {
        Round::Cancellation => payment.is_open(),
        Round::Confirmation if Guard::ClosedAttemptsAreConfirmed.stands() => {
            payment.status != PaymentStatus::Succeeded
        }
        Round::Confirmation => payment.is_open(),
    }
}

/// Everything that hearing a word about a purchase may touch.
pub(crate) fn need_of(known: &Facts, id: PurchaseId) -> Need {
    let mut need = Need { purchases: vec![id], attempts: vec![id], ..Need::default() };
    if let Some(purchase) = known.purchases.get(&id) {
        need.skus = purchase.lines.iter().map(|line| line.key.clone()).collect();
        need.buyers = purchase.lines.iter().map(|line| (line.key.clone(), purchase.user.clone())).collect();
    }
    need
}

async fn ask(engine: &Engine, round: Round, payment: &Payment) -> Word {
    let silent = Word::Silent { payment: payment.id };
    let Some(provider) = engine.provider(&payment.provider) else { return silent };
    let first = listen(&*provider, payment, Asking::Query).await;
    let is_open = matches!(first, Word::Processing { .. });
    if round == Round::Confirmation || !is_open {
        return first;
    }
    let closed = listen(&*provider, payment, Asking::Close).await;
    // The provider's word after closing counts, not its answer to the close.
    if Guard::CloseIsNoProof.stands() { listen(&*provider, payment, Asking::Query).await } else { closed }
}

#[derive(Clone, Copy)]
enum Asking {
    Query,
    Close,
}

async fn listen(provider: &dyn Provider, payment: &Payment, asking: Asking) -> Word {
    let answer = match asking {
        Asking::Query => provider.query(payment.id).await,
        Asking::Close => provider.close(payment.id).await,
    };
    answer.unwrap_or_else(|error| {
        observe::provider_silent(provider.name(), &error);
        let payment = payment.id;
        if Guard::SilenceIsNoWord.stands() { Word::Silent { payment } } else { Word::Closed { payment } }
    })
}
