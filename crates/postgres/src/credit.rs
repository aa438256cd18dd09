//! Reading credit accounts and entries.
//!
//! Invariant: the times of an account's entries never run backwards (a trigger sees to it), so the entry that was the last
//! at a moment is found by halving, without an index on times. Read next: `queries/credit_entry/`.

use onceward_domain::credit::{Account, Entry, EntryKind, Standing};
use onceward_domain::error::Error;
use onceward_domain::facts::{Facts, Need};
use onceward_domain::id::{AccountId, JobId};
use onceward_domain::ports::store::PageRequest;
use onceward_domain::time::Timestamp;
use tokio_postgres::Row;

use crate::failure::defect;
use crate::link::Link;
use crate::load::{Kind, each};
use crate::pipeline::{Questions, params};
use crate::queries;
use crate::rows::{get, kept, kept_if, listed, text, time};

/// Asks for what a need names of credits: accounts, also those of charges and jobs, and charges.
pub(crate) async fn ask<'a>(questions: &mut Questions<'a, Kind>, need: &'a Need) -> Result<(), Error> {
    let jobs: Vec<&str> = need.jobs.iter().map(|id| id.as_str()).collect();
    let charged = need.charges.iter().map(|(account, _)| account);
    let accounts: Vec<&str> = need.accounts.iter().chain(charged).map(|id| id.as_str()).collect();
    if !accounts.is_empty() || !jobs.is_empty() {
        questions.ask(Kind::Accounts, queries::CREDIT_ACCOUNT_BY_IDS, params![accounts, jobs]).await?;
    }
    if !need.charges.is_empty() {
        let accounts: Vec<&str> = need.charges.iter().map(|(account, _)| account.as_str()).collect();
        let references: Vec<&str> = need.charges.iter().map(|(_, reference)| &**reference).collect();
        let parameters = params![accounts, references];
        questions.ask(Kind::Charges, queries::CREDIT_ENTRY_OF_REFERENCES, parameters).await?;
    }
    Ok(())
}

/// Loads the accounts of jobs that were opened between the two statements.
pub(crate) async fn complete(link: &Link, facts: &mut Facts) -> Result<(), Error> {
    let missing = facts.jobs.values().map(|job| &job.account).filter(|id| !facts.accounts.contains_key(*id));
    let missing: Vec<String> = missing.map(|id| id.as_str().to_owned()).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let parameters = params![missing, Vec::<&str>::new()];
    let rows = link.rows("loading credit accounts", queries::CREDIT_ACCOUNT_BY_IDS, parameters).await?;
    accounts(&rows, facts)
}

/// Notes accounts.
pub(crate) fn accounts(rows: &[Row], facts: &mut Facts) -> Result<(), Error> {
    each(rows, |row| {
        let account = Account {
            id: AccountId::trusted(text(row, 0)?),
            balance: get(row, 1)?,
            entries: get(row, 2)?,
            overdraft: get(row, 3)?,
            created_at: time(row, 4)?,
            updated_at: time(row, 5)?,
            revision: get(row, 6)?,
        };
        facts.accounts.insert(account.id.clone(), account);
        Ok(())
    })
}

/// Notes charges that belong to no job.
pub(crate) fn charges(rows: &[Row], facts: &mut Facts) -> Result<(), Error> {
    each(rows, |row| {
        let account = AccountId::trusted(text(row, 9)?);
        let reference = kept(row, 5)?;
        facts.charges.insert((account.clone(), reference), entry(account, row)?);
        Ok(())
    })
}

fn entry(account: AccountId, row: &Row) -> Result<Entry, Error> {
    Ok(Entry {
        account,
        number: get(row, 0)?,
        kind: listed(&EntryKind::ALL, get(row, 1)?, "kind of ledger entry")?,
        amount: get(row, 2)?,
        balance_after: get(row, 3)?,
        job: get::<Option<&str>>(row, 4)?.map(JobId::trusted),
        reference: kept_if(row, 5)?,
        reason: kept_if(row, 6)?,
        actor: kept(row, 7)?,
        at: time(row, 8)?,
    })
}

async fn seq_of(link: &Link, id: &AccountId) -> Result<Option<i64>, Error> {
    let doing = "finding a credit account";
    let row = link.first(doing, queries::CREDIT_ACCOUNT_SEQ_OF, params![id.as_str()]).await?;
    row.map(|row| get(&row, 0)).transpose()
}

/// Entries of an account, newest first.
pub(crate) async fn entries(
    link: &Link,
    account: &AccountId,
    page: PageRequest,
) -> Result<Vec<Entry>, Error> {
    let Some(seq) = seq_of(link, account).await? else { return Ok(Vec::new()) };
    let parameters = params![seq, page.before.unwrap_or(i64::MAX), i64::from(page.limit)];
    let rows = link.rows("listing ledger entries", queries::CREDIT_ENTRY_LIST, parameters).await?;
    rows.iter().map(|row| entry(account.clone(), row)).collect()
}

/// How an account stood at a moment.
pub(crate) async fn standing(
    link: &Link,
    account: &AccountId,
    at: Timestamp,
) -> Result<Option<Standing>, Error> {
    let doing = "finding the last entry at a moment";
    let Some(seq) = seq_of(link, account).await? else { return Ok(None) };
    let last = link.first(doing, queries::CREDIT_ENTRY_LAST_NUMBER, params![seq]).await?;
    let last: Option<i64> = last.map(|row| get(&row, 0)).transpose()?.flatten();
    let mut standing = Standing { balance: 0, entries: 0, as_of: at };
    // Every entry up to `standing.entries` was there at the moment, none from `later` on.
    let mut later = last.unwrap_or(0) + 1;
    while later - standing.entries > 1 {
        let middle = standing.entries + (later - standing.entries) / 2;
        let row = link.first(doing, queries::CREDIT_ENTRY_AT_NUMBER, params![seq, middle]).await?;
        let row = row.ok_or_else(|| defect(format!("entry {middle} of account {account} is not there")))?;
        if time(&row, 0)? <= at {
            (standing.entries, standing.balance) = (middle, get(&row, 1)?);
        } else {
            later = middle;
        }
    }
    Ok(Some(standing))
}
