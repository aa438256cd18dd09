//! Writing credit accounts, jobs and ledger entries.
//!
//! Invariants: an account's row is written once, after its entries, on the revision it was decided on; whatever two deciders
//! may have thought, the triggers let an entry only go on from the one before it.

use std::collections::HashSet;

use onceward_domain::changes::ChangeSet;
use onceward_domain::credit::{Account, Entry, EntryKind};
use onceward_domain::error::Error;
use onceward_domain::id::{AccountId, JobId};
use onceward_domain::job::Job;

use super::script::{Guarded, Loss, Script, column};
use crate::failure::defect;
use crate::pipeline::params;
use crate::queries;
use crate::refs::Names;
use crate::rows::{code, position};
use crate::transact::Refusal;

pub(super) async fn write<'a>(
    script: &mut Script<'a>,
    names: &Names<'_>,
    changes: &'a ChangeSet,
) -> Result<(), Refusal> {
    belong_together(changes)?;
    if !changes.new_accounts.is_empty() {
        add_accounts(script, &changes.new_accounts).await?;
    }
    if !changes.accounts.is_empty() {
        guard_accounts(script, &changes.accounts).await?;
    }
    if !changes.jobs.is_empty() {
        move_jobs(script, &changes.jobs).await?;
    }
    if !changes.new_jobs.is_empty() {
        add_jobs(script, &changes.new_jobs).await?;
    }
    if !changes.entries.is_empty() {
        add_entries(script, names, &changes.entries).await?;
    }
    if !changes.accounts.is_empty() {
        move_accounts(script, &changes.accounts).await?;
    }
    Ok(())
}

/// Every entry comes with the move of its account and with its job, and every job with its charge.
fn belong_together(changes: &ChangeSet) -> Result<(), Error> {
    let accounts: HashSet<&AccountId> = changes.accounts.iter().map(|account| &account.id).collect();
    let jobs: HashSet<&JobId> = changes.jobs.iter().chain(&changes.new_jobs).map(|job| &job.id).collect();
    for job in &changes.new_jobs {
        if !accounts.contains(&job.account) {
            return Err(defect(format!("job {} is opened without a charge", job.id)));
        }
    }
    for entry in &changes.entries {
        if !accounts.contains(&entry.account) {
            return Err(defect(format!("an entry of account {} without its move", entry.account)));
        }
        if let Some(id) = entry.job.as_ref().filter(|id| !jobs.contains(*id)) {
            return Err(defect(format!("an entry of job {id} without it")));
        }
    }
    Ok(())
}

async fn add_accounts<'a>(script: &mut Script<'a>, accounts: &'a [Account]) -> Result<(), Refusal> {
    let parameters = params![
        column(accounts, |one| one.id.as_str()),
        column(accounts, |one| one.balance),
        column(accounts, |one| one.entries),
        column(accounts, |one| one.overdraft),
        column(accounts, |one| one.created_at.0),
        column(accounts, |one| one.updated_at.0),
        column(accounts, |one| one.revision),
    ];
    script.any("adding a credit account", queries::CREDIT_ACCOUNT_INSERT, parameters).await
}

fn account_lost(accounts: &[Account]) -> Loss {
    let row = |one: &Account| Guarded {
        shown: one.id.to_string(),
        key: params![one.id.as_str().to_owned()],
        revision: one.revision,
    };
    Loss::Revision {
        what: "account",
        peek: queries::CREDIT_ACCOUNT_PEEK,
        rows: accounts.iter().map(row).collect(),
    }
}

async fn guard_accounts<'a>(script: &mut Script<'a>, accounts: &'a [Account]) -> Result<(), Refusal> {
    let parameters = params![column(accounts, |one| one.id.as_str()), column(accounts, |one| one.revision)];
    let guard = (accounts.len(), move || account_lost(accounts));
    script.guarded("finding a credit account", queries::CREDIT_ACCOUNT_GUARD, parameters, guard).await
}

async fn move_jobs<'a>(script: &mut Script<'a>, jobs: &'a [Job]) -> Result<(), Refusal> {
    let parameters = params![
        column(jobs, |one| one.id.as_str()),
        column(jobs, |one| one.revision),
        column(jobs, |one| code(one.status)),
        column(jobs, |one| i64::from(one.attempts)),
        column(jobs, |one| one.not_before.map(|at| at.0)),
        column(jobs, |one| one.token.map(|token| token.0)),
        column(jobs, |one| one.worker.as_deref()),
        column(jobs, |one| one.last_error.as_deref()),
        column(jobs, |one| one.is_refunded),
        column(jobs, |one| one.is_reclaimed),
        column(jobs, |one| one.updated_at.0),
    ];
    let row = |one: &Job| Guarded {
        shown: one.id.to_string(),
        key: params![one.id.as_str().to_owned()],
        revision: one.revision,
    };
    let loss =
        move || Loss::Revision { what: "job", peek: queries::JOB_PEEK, rows: jobs.iter().map(row).collect() };
    script.guarded("changing a job", queries::JOB_MOVE, parameters, (jobs.len(), loss)).await
}

async fn add_jobs<'a>(script: &mut Script<'a>, jobs: &'a [Job]) -> Result<(), Refusal> {
    let parameters = params![
        column(jobs, |one| one.id.as_str()),
        column(jobs, |one| one.account.as_str()),
        column(jobs, |one| one.cost.amount()),
        column(jobs, |one| i64::from(one.max_attempts)),
        column(jobs, |one| one.payload.as_deref()),
        column(jobs, |one| code(one.status)),
        column(jobs, |one| i64::from(one.attempts)),
        column(jobs, |one| one.not_before.map(|at| at.0)),
        column(jobs, |one| one.token.map(|token| token.0)),
        column(jobs, |one| one.worker.as_deref()),
        column(jobs, |one| one.last_error.as_deref()),
        column(jobs, |one| one.is_refunded),
        column(jobs, |one| one.is_reclaimed),
        column(jobs, |one| one.created_at.0),
        column(jobs, |one| one.updated_at.0),
        column(jobs, |one| one.revision),
    ];
    let missing = (jobs.len(), "a job names an account that is not there");
    script.each("adding a job", queries::JOB_INSERT, parameters, missing).await
}

async fn add_entries<'a>(
    script: &mut Script<'a>,
    names: &Names<'_>,
    entries: &'a [Entry],
) -> Result<(), Refusal> {
    let actors: Vec<i32> = entries.iter().map(|entry| names.word(&entry.actor)).collect::<Result<_, _>>()?;
    let parameters = params![
        column(entries, |one| one.account.as_str()),
        column(entries, |one| one.number),
        column(entries, |one| position(&EntryKind::ALL, one.kind)),
        column(entries, |one| one.amount),
        column(entries, |one| one.balance_after),
        column(entries, |one| one.job.as_ref().map(|id| id.as_str())),
        column(entries, |one| one.reference.as_deref()),
        column(entries, |one| one.reason.as_deref()),
        actors,
        column(entries, |one| one.at.0),
    ];
    let missing = (entries.len(), "an entry names an account that is not there");
    script.each("appending a ledger entry", queries::CREDIT_ENTRY_INSERT, parameters, missing).await
}

async fn move_accounts<'a>(script: &mut Script<'a>, accounts: &'a [Account]) -> Result<(), Refusal> {
    let parameters = params![
        column(accounts, |one| one.id.as_str()),
        column(accounts, |one| one.revision),
        column(accounts, |one| one.balance),
        column(accounts, |one| one.entries),
        column(accounts, |one| one.overdraft),
        column(accounts, |one| one.updated_at.0),
    ];
    let guard = (accounts.len(), move || account_lost(accounts));
    script.guarded("moving a credit account", queries::CREDIT_ACCOUNT_MOVE, parameters, guard).await
}
