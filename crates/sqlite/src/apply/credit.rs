//! Writing credit accounts, jobs and ledger entries.
//!
//! Invariants: an account's row is written once, after its entries, on the revision it was decided on; whatever two deciders
//! may have thought, the triggers let an entry only go on from the one before it.

use std::collections::HashMap;

use onceward_domain::changes::ChangeSet;
use onceward_domain::credit::{Account, Entry, EntryKind};
use onceward_domain::error::Error;
use onceward_domain::id::{AccountId, JobId};
use onceward_domain::job::Job;
use onceward_domain::machine::Machine;
use rusqlite::{Connection, params};

use super::catalogue::{peek, revision_lost};
use crate::failure::{defect, failed};
use crate::load::first;
use crate::queries;
use crate::refs::Refs;
use crate::rows::{get, position};

pub(super) fn write(conn: &Connection, refs: &mut Refs, changes: &ChangeSet) -> Result<(), Error> {
    add_accounts(conn, &changes.new_accounts)?;
    let seqs = guarded(conn, &changes.accounts)?;
    let mut jobs = move_jobs(conn, &changes.jobs)?;
    add_jobs(conn, &changes.new_jobs, &seqs, &mut jobs)?;
    add_entries(conn, refs, &changes.entries, (&seqs, &jobs))?;
    move_accounts(conn, &changes.accounts, &seqs)
}

/// The numbers of the jobs that a set touches; every entry of a job comes with its job.
type JobSeqs<'a> = HashMap<&'a JobId, i64>;

fn move_jobs<'a>(conn: &Connection, jobs: &'a [Job]) -> Result<JobSeqs<'a>, Error> {
    let doing = failed("changing a job");
    let mut seqs = JobSeqs::with_capacity(jobs.len());
    for job in jobs {
        let mut statement = conn.prepare_cached(queries::JOB_MOVE).map_err(&doing)?;
        let parameters = params![
            job.status.code(),
            job.attempts,
            job.not_before.map(|at| at.0),
            job.token.map(|token| token.0),
            job.worker,
            job.last_error,
            job.is_refunded,
            job.is_reclaimed,
            job.updated_at.0,
            job.id.as_str(),
            job.revision,
        ];
        let hit = statement.execute(parameters).map_err(&doing)?;
        let there = first(conn, queries::JOB_SEQ_OF, [job.id.as_str()], "looking at a job", |row| {
            Ok((get::<i64>(row, 0)?, get::<i64>(row, 1)?))
        })?;
        match there {
            Some((seq, _)) if hit == 1 => seqs.insert(&job.id, seq),
            there => {
                let there = there.map(|(_, revision)| revision);
                return Err(revision_lost("job", &job.id, job.revision, there));
            }
        };
    }
    Ok(seqs)
}

fn add_jobs<'a>(
    conn: &Connection,
    jobs: &'a [Job],
    accounts: &Seqs<'_>,
    seqs: &mut JobSeqs<'a>,
) -> Result<(), Error> {
    let doing = failed("adding a job");
    for job in jobs {
        let account = accounts.get(&job.account);
        let account = account.ok_or_else(|| defect(format!("job {} is opened without a charge", job.id)))?;
        let mut statement = conn.prepare_cached(queries::JOB_INSERT).map_err(&doing)?;
        let parameters = params![
            job.id.as_str(),
            account,
            job.cost.amount(),
            job.max_attempts,
            job.payload,
            job.status.code(),
            job.attempts,
            job.not_before.map(|at| at.0),
            job.token.map(|token| token.0),
            job.worker,
            job.last_error,
            job.is_refunded,
            job.is_reclaimed,
            job.created_at.0,
            job.updated_at.0,
            job.revision,
        ];
        seqs.insert(&job.id, statement.insert(parameters).map_err(&doing)?);
    }
    Ok(())
}

/// The numbers of the accounts that a set moves.
type Seqs<'a> = HashMap<&'a AccountId, i64>;

/// Finds the accounts that a set moves and asks for their revisions before an entry is written: two deciders of one entry
/// are a lost guard, which is decided again, and not a broken constraint.
fn guarded<'a>(conn: &Connection, accounts: &'a [Account]) -> Result<Seqs<'a>, Error> {
    let mut seqs = Seqs::with_capacity(accounts.len());
    for account in accounts {
        let doing = "finding a credit account";
        let parameters = [account.id.as_str()];
        let found = first(conn, queries::CREDIT_ACCOUNT_SEQ_OF, parameters, doing, |row| {
            Ok((get::<i64>(row, 0)?, get::<i64>(row, 1)?))
        })?;
        match found {
            Some((seq, revision)) if revision == account.revision => seqs.insert(&account.id, seq),
            other => {
                let there = other.map(|(_, revision)| revision);
                return Err(revision_lost("account", &account.id, account.revision, there));
            }
        };
    }
    Ok(seqs)
}

fn add_accounts(conn: &Connection, accounts: &[Account]) -> Result<(), Error> {
    let doing = failed("adding a credit account");
    for account in accounts {
        let mut statement = conn.prepare_cached(queries::CREDIT_ACCOUNT_INSERT).map_err(&doing)?;
        let parameters = params![
            account.id.as_str(),
            account.balance,
            account.entries,
            account.overdraft,
            account.created_at.0,
            account.updated_at.0,
            account.revision,
        ];
        statement.execute(parameters).map_err(&doing)?;
    }
    Ok(())
}

fn add_entries(
    conn: &Connection,
    refs: &mut Refs,
    entries: &[Entry],
    (accounts, jobs): (&Seqs<'_>, &JobSeqs<'_>),
) -> Result<(), Error> {
    let doing = failed("appending a ledger entry");
    for entry in entries {
        let account = accounts.get(&entry.account);
        let account = account
            .ok_or_else(|| defect(format!("an entry of account {} without its move", entry.account)))?;
        let job = match &entry.job {
            None => None,
            Some(id) => Some(jobs.get(id).ok_or_else(|| defect(format!("an entry of job {id} without it")))?),
        };
        let actor = refs.word_ref_or_new(conn, &entry.actor)?;
        let mut statement = conn.prepare_cached(queries::CREDIT_ENTRY_INSERT).map_err(&doing)?;
        let parameters = params![
            account,
            entry.number,
            position(&EntryKind::ALL, entry.kind),
            entry.amount,
            entry.balance_after,
            job,
            entry.reference,
            entry.reason,
            actor,
            entry.at.0,
        ];
        statement.execute(parameters).map_err(&doing)?;
    }
    Ok(())
}

fn move_accounts(conn: &Connection, accounts: &[Account], seqs: &Seqs<'_>) -> Result<(), Error> {
    let doing = failed("moving a credit account");
    for account in accounts {
        let seq = seqs[&account.id];
        let mut statement = conn.prepare_cached(queries::CREDIT_ACCOUNT_MOVE).map_err(&doing)?;
        let parameters = params![
            account.balance,
            account.entries,
            account.overdraft,
            account.updated_at.0,
            seq,
            account.revision,
        ];
        if statement.execute(parameters).map_err(&doing)? != 1 {
            let there = peek(conn, queries::CREDIT_ACCOUNT_PEEK, seq)?;
            return Err(revision_lost("account", &account.id, account.revision, there));
        }
    }
    Ok(())
}
