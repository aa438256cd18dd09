//! Writing credit accounts and ledger entries.
//!
//! Invariants: an account's row is written once, after its entries, on the revision it was decided on; whatever two deciders
//! may have thought, the triggers let an entry only go on from the one before it.

use std::collections::HashMap;

use onceward_domain::changes::ChangeSet;
use onceward_domain::credit::{Account, Entry, EntryKind};
use onceward_domain::error::Error;
use onceward_domain::id::AccountId;
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
    add_entries(conn, refs, &changes.entries, &seqs)?;
    move_accounts(conn, &changes.accounts, &seqs)
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

fn add_entries(conn: &Connection, refs: &mut Refs, entries: &[Entry], seqs: &Seqs<'_>) -> Result<(), Error> {
    let doing = failed("appending a ledger entry");
    for entry in entries {
        let account = seqs.get(&entry.account);
        let account = account
            .ok_or_else(|| defect(format!("an entry of account {} without its move", entry.account)))?;
        let actor = refs.word_ref_or_new(conn, &entry.actor)?;
        let mut statement = conn.prepare_cached(queries::CREDIT_ENTRY_INSERT).map_err(&doing)?;
        let parameters = params![
            account,
            entry.number,
            position(&EntryKind::ALL, entry.kind),
            entry.amount,
            entry.balance_after,
            None::<i64>,
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
