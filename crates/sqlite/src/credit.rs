//! Reading credit accounts and entries.
//!
//! Invariant: the times of an account's entries never run backwards (a trigger sees to it), so the entry that was the last
//! at a moment is found by halving, without an index on times. Read next: `queries/credit_entry/`.

use std::sync::Arc;

use onceward_domain::credit::{Account, Entry, EntryKind, Standing};
use onceward_domain::error::Error;
use onceward_domain::facts::{Facts, Need};
use onceward_domain::id::{AccountId, JobId};
use onceward_domain::ports::store::PageRequest;
use onceward_domain::time::Timestamp;
use rusqlite::{Connection, Row, params};

use crate::failure::defect;
use crate::job;
use crate::load::{every, first};
use crate::queries;
use crate::refs::Refs;
use crate::rows::{get, listed};

/// Loads what a need names of credits.
pub(crate) fn load(conn: &Connection, refs: &mut Refs, need: &Need, facts: &mut Facts) -> Result<(), Error> {
    for id in &need.accounts {
        load_account(conn, id, facts)?;
    }
    for id in &need.jobs {
        if facts.jobs.contains_key(id) {
            continue;
        }
        if let Some(found) = job::by_id(conn, id)? {
            load_account(conn, &found.account, facts)?;
            facts.jobs.insert(id.clone(), found);
        }
    }
    for key in &need.charges {
        let (account, reference) = key;
        load_account(conn, account, facts)?;
        let parameters = params![account.as_str(), reference];
        let doing = "loading a charge";
        let found = first(conn, queries::CREDIT_ENTRY_OF_REFERENCE, parameters, doing, |row| {
            entry(conn, refs, account, row)
        })?;
        facts.charges.extend(found.map(|one| (key.clone(), one)));
    }
    Ok(())
}

/// Loads an account, once.
fn load_account(conn: &Connection, id: &AccountId, facts: &mut Facts) -> Result<(), Error> {
    if facts.accounts.contains_key(id) {
        return Ok(());
    }
    let doing = "loading a credit account";
    let found = first(conn, queries::CREDIT_ACCOUNT_BY_ID, [id.as_str()], doing, |row| {
        Ok(Account {
            id: id.clone(),
            balance: get(row, 0)?,
            entries: get(row, 1)?,
            overdraft: get(row, 2)?,
            created_at: Timestamp(get(row, 3)?),
            updated_at: Timestamp(get(row, 4)?),
            revision: get(row, 5)?,
        })
    })?;
    facts.accounts.extend(found.map(|one| (id.clone(), one)));
    Ok(())
}

fn entry(conn: &Connection, refs: &mut Refs, account: &AccountId, row: &Row<'_>) -> Result<Entry, Error> {
    let job: Option<String> = get(row, 4)?;
    Ok(Entry {
        account: account.clone(),
        number: get(row, 0)?,
        kind: listed(&EntryKind::ALL, get(row, 1)?, "kind of ledger entry")?,
        amount: get(row, 2)?,
        balance_after: get(row, 3)?,
        job: job.as_deref().map(JobId::trusted),
        reference: get::<Option<Arc<str>>>(row, 5)?,
        reason: get::<Option<Arc<str>>>(row, 6)?,
        actor: refs.word(conn, get(row, 7)?)?,
        at: Timestamp(get(row, 8)?),
    })
}

/// The number of an account.
fn seq_of(conn: &Connection, id: &AccountId) -> Result<Option<i64>, Error> {
    first(conn, queries::CREDIT_ACCOUNT_SEQ_OF, [id.as_str()], "finding a credit account", |row| get(row, 0))
}

/// Entries of an account, newest first.
pub(crate) fn entries(
    conn: &Connection,
    refs: &mut Refs,
    account: &AccountId,
    page: PageRequest,
) -> Result<Vec<Entry>, Error> {
    let Some(seq) = seq_of(conn, account)? else { return Ok(Vec::new()) };
    let parameters = params![seq, page.before.unwrap_or(i64::MAX), page.limit];
    every(conn, queries::CREDIT_ENTRY_LIST, parameters, "listing ledger entries", |row| {
        entry(conn, refs, account, row)
    })
}

/// How an account stood at a moment.
pub(crate) fn standing(
    conn: &Connection,
    account: &AccountId,
    at: Timestamp,
) -> Result<Option<Standing>, Error> {
    let doing = "finding the last entry at a moment";
    let Some(seq) = seq_of(conn, account)? else { return Ok(None) };
    let last =
        first(conn, queries::CREDIT_ENTRY_LAST_NUMBER, [seq], doing, |row| get::<Option<i64>>(row, 0))?;
    let mut standing = Standing { balance: 0, entries: 0, as_of: at };
    // Every entry up to `standing.entries` was there at the moment, none from `later` on.
    let mut later = last.flatten().unwrap_or(0) + 1;
    while later - standing.entries > 1 {
        let middle = standing.entries + (later - standing.entries) / 2;
        let parameters = params![seq, middle];
        let found = first(conn, queries::CREDIT_ENTRY_AT_NUMBER, parameters, doing, |row| {
            Ok((Timestamp(get(row, 0)?), get(row, 1)?))
        })?;
        let (made_at, balance) =
            found.ok_or_else(|| defect(format!("entry {middle} of account {account} is not there")))?;
        if made_at <= at {
            (standing.entries, standing.balance) = (middle, balance);
        } else {
            later = middle;
        }
    }
    Ok(Some(standing))
}
