//! Credit accounts: giving, setting right, looking back (CL-01, CL-07, CL-08).

use std::sync::Arc;

pub use onceward_domain::credit::{Account, Entry, Standing};
use onceward_domain::decide::credit;
pub use onceward_domain::decide::credit::{Adjust, Grant, Put, PutAccount};
use onceward_domain::error::{Code, Error};
use onceward_domain::facts::Need;
use onceward_domain::id::AccountId;
use onceward_domain::ports::store::PageRequest;
use onceward_domain::time::Timestamp;

use crate::engine::Engine;
use crate::execute::execute;
use crate::operations::once::{Idempotent, StoredAnswer, once};

fn need(account: &AccountId, key: &Arc<str>) -> Need {
    Need { accounts: vec![account.clone()], answers: vec![key.clone()], ..Need::default() }
}

/// Gives credits, once per key.
///
/// # Errors
/// [`Code::IdempotencyKeyReused`]; the store's. Refusals of the rule are answers.
pub async fn grant(
    engine: &Engine,
    rule: Grant,
    idempotent: Idempotent<Entry>,
) -> Result<StoredAnswer, Error> {
    let need = need(&rule.account, &idempotent.key);
    execute(engine, "grant", need, move |facts| once(facts, &idempotent, |facts| credit::grant(facts, &rule)))
        .await
}

/// Sets a balance right, once per key.
///
/// # Errors
/// As [`grant`].
pub async fn adjust(
    engine: &Engine,
    rule: Adjust,
    idempotent: Idempotent<Entry>,
) -> Result<StoredAnswer, Error> {
    let need = need(&rule.account, &idempotent.key);
    execute(engine, "adjust", need, move |facts| {
        once(facts, &idempotent, |facts| credit::adjust(facts, &rule))
    })
    .await
}

/// Opens an account, or says anew how far it may be overdrawn.
///
/// # Errors
/// [`Code::Invalid`]; the store's.
pub async fn put(engine: &Engine, rule: PutAccount) -> Result<Put, Error> {
    let need = Need { accounts: vec![rule.account.clone()], ..Need::default() };
    execute(engine, "put_account", need, move |facts| credit::put(facts, &rule)).await
}

/// How an account stood at a moment, or stands now. A moment that is yet to come is now.
///
/// # Errors
/// [`Code::NotFound`]; the store's.
pub async fn standing(engine: &Engine, account: AccountId, at: Option<Timestamp>) -> Result<Standing, Error> {
    let absent = || Error::new(Code::NotFound, format!("looking at account {account}"));
    let facts = engine.store().view(Need { accounts: vec![account.clone()], ..Need::default() }).await?;
    let known = facts.accounts.get(&account).ok_or_else(absent)?;
    match at.filter(|at| *at < facts.now) {
        None => Ok(known.standing(facts.now)),
        Some(at) => engine.store().standing(account.clone(), at).await?.ok_or_else(absent),
    }
}

/// The entries of an account, newest first.
///
/// # Errors
/// [`Code::NotFound`]; the store's.
pub async fn entries(engine: &Engine, account: AccountId, page: PageRequest) -> Result<Vec<Entry>, Error> {
    let found = engine.store().list_entries(account.clone(), page).await?;
    if found.is_empty() {
        standing(engine, account, None).await?;
    }
    Ok(found)
}

/// The entries of an account behind a number, oldest first: what a statement is made of, to be replayed.
///
/// # Errors
/// [`Code::NotFound`]; the store's.
pub async fn statement(
    engine: &Engine,
    account: AccountId,
    after: i64,
    limit: u32,
) -> Result<Vec<Entry>, Error> {
    let before = after.saturating_add(i64::from(limit)).saturating_add(1);
    // Numbers have no gaps, so the rows of the page are known beforehand.
    let mut found = entries(engine, account, PageRequest { limit, before: Some(before) }).await?;
    found.retain(|entry| entry.number > after);
    found.reverse();
    Ok(found)
}
