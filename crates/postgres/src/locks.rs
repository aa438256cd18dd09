//! The order in which rows are locked (design.md §7).
//!
//! One order for every work: activities, SKUs, buckets, purchases, compensation tasks, payments, refunds, notices, due work,
//! group orders, participants, credit accounts, jobs; each by its number or id. Two works that want the same rows meet at
//! the first of them, and one waits. Invariants: SKUs come before everything that moves with them, so a work that names its
//! SKU has the buyers' places to itself as well; locks are taken before the time is read, so that what a work decides on is
//! never older than its time. Deliberately absent: locks on what never changes (answers, callbacks, entries), whose
//! uniqueness is enough, also while some of it is forgotten, and on buyers' purchases, whose places are unique.

use std::collections::HashMap;

use onceward_domain::error::Error;
use onceward_domain::facts::Need;
use onceward_domain::id::SkuKey;
use uuid::Uuid;

use crate::load::Wanted;
use crate::pipeline::{Questions, params};
use crate::queries;
use crate::rows::uuid_of;

/// Adds the locks of a need. `lanes` are the numbers of the lanes that it names.
pub(crate) async fn lock<'a, K>(questions: &mut Questions<'a, K>, wanted: &Wanted<'a>) -> Result<(), Error> {
    let Wanted { need, skus, due, .. } = wanted;
    if !need.activities.is_empty() {
        let ids: Vec<&str> = need.activities.iter().map(|id| id.as_str()).collect();
        questions.run(queries::ACTIVITY_LOCK, params![ids]).await?;
    }
    let sku_refs = numbers(skus, need.skus.iter().chain(need.buyers.iter().map(|(key, _)| key)));
    if !sku_refs.is_empty() {
        questions.run(queries::SKU_LOCK, params![sku_refs]).await?;
    }
    let bucket_refs = numbers(skus, need.buckets.iter());
    if !bucket_refs.is_empty() {
        questions.run(queries::BUCKET_LOCK, params![bucket_refs]).await?;
    }
    if !need.purchases.is_empty() {
        let ids: Vec<Uuid> = need.purchases.iter().copied().map(uuid_of).collect();
        questions.run(queries::PURCHASE_LOCK, params![ids]).await?;
    }
    if !need.compensations.is_empty() {
        let ids: Vec<Uuid> = need.compensations.iter().copied().map(uuid_of).collect();
        questions.run(queries::COMPENSATION_LOCK, params![ids]).await?;
    }
    lock_money(questions, need).await?;
    if !due.is_empty() {
        let lanes: Vec<i32> = due.iter().map(|(lane, _)| *lane).collect();
        let members: Vec<&str> = due.iter().map(|(_, key)| &*key.1).collect();
        questions.run(queries::DUE_LOCK, params![lanes, members]).await?;
    }
    lock_groups(questions, need).await?;
    lock_credit(questions, need).await
}

/// The numbers of those SKUs that are there, each once.
pub(crate) fn numbers<'k>(skus: &HashMap<SkuKey, i32>, keys: impl Iterator<Item = &'k SkuKey>) -> Vec<i32> {
    let mut found: Vec<i32> = keys.filter_map(|key| skus.get(key).copied()).collect();
    found.sort_unstable();
    found.dedup();
    found
}

async fn lock_money<'a, K>(questions: &mut Questions<'a, K>, need: &'a Need) -> Result<(), Error> {
    let of: Vec<Uuid> = need.attempts.iter().copied().map(uuid_of).collect();
    if !need.payments.is_empty() || !of.is_empty() {
        let ids: Vec<Uuid> = need.payments.iter().map(|id| id.0).collect();
        questions.run(queries::PAYMENT_LOCK, params![ids, of.clone()]).await?;
    }
    if !need.refunds.is_empty() || !of.is_empty() {
        let ids: Vec<Uuid> = need.refunds.iter().map(|id| id.0).collect();
        questions.run(queries::REFUND_LOCK, params![ids, of]).await?;
    }
    if !need.notices.is_empty() {
        let ids: Vec<Uuid> = need.notices.iter().map(|id| id.0).collect();
        questions.run(queries::NOTICE_LOCK, params![ids]).await?;
    }
    Ok(())
}

async fn lock_groups<'a, K>(questions: &mut Questions<'a, K>, need: &'a Need) -> Result<(), Error> {
    if !need.groups.is_empty() {
        let ids: Vec<&str> = need.groups.iter().map(|id| id.as_str()).collect();
        questions.run(queries::GROUP_ORDER_LOCK, params![ids]).await?;
    }
    if !need.participants.is_empty() {
        let groups: Vec<&str> = need.participants.iter().map(|(group, _)| group.as_str()).collect();
        let users: Vec<&str> = need.participants.iter().map(|(_, user)| user.as_str()).collect();
        questions.run(queries::PARTICIPANT_LOCK, params![groups, users]).await?;
    }
    if !need.participants_of.is_empty() {
        let ids: Vec<&str> = need.participants_of.iter().map(|id| id.as_str()).collect();
        questions.run(queries::PARTICIPANT_LOCK_OF_GROUPS, params![ids]).await?;
    }
    Ok(())
}

async fn lock_credit<'a, K>(questions: &mut Questions<'a, K>, need: &'a Need) -> Result<(), Error> {
    let jobs: Vec<&str> = need.jobs.iter().map(|id| id.as_str()).collect();
    let charged = need.charges.iter().map(|(account, _)| account);
    let accounts: Vec<&str> = need.accounts.iter().chain(charged).map(|id| id.as_str()).collect();
    if !accounts.is_empty() || !jobs.is_empty() {
        questions.run(queries::CREDIT_ACCOUNT_LOCK, params![accounts, jobs.clone()]).await?;
    }
    if !jobs.is_empty() {
        questions.run(queries::JOB_LOCK, params![jobs]).await?;
    }
    Ok(())
}
