//! The end of a transaction, and what is asked when its answer is lost (reference 003 §9.8).
//!
//! The server has four ways to answer a COMMIT: yes; no, surely; yes, but a warning came with it, which is how it says that
//! nobody confirmed the commit on the standby; and nothing. After nothing, a new session asks how the transaction ended, by the
//! name it had. Transaction ids repeat after a promotion and after a crash that lost the end of the log, so the answer counts
//! only in the same life of the server (`queries/server/epoch.sql`); otherwise, and where nobody can be asked, the outcome is
//! unknown and the caller reads back by its own ids. Invariants: a commit is never cancelled, and is waited for until it is answered
//! or another life of the server answers in its place; `Ok` is said only of what is
//! committed, `Unavailable` only of what surely is not. Deliberately absent: asking again and again.

use std::pin::pin;
use std::time::Duration;

use onceward_domain::error::{Code, Error};
use tokio::time::timeout;

use crate::failure::{failed, surely_refused};
use crate::open::Shared;
use crate::pipeline::params;
use crate::pool::Lent;
use crate::queries;
use crate::rows::get;

/// A commit may wait for a standby for as long as it takes: until it is confirmed nobody sees what it wrote, and a time-out would
/// not undo it but show it to everybody, unconfirmed. Sessions that wait are as many as the pool has.
pub(crate) const COMMIT: &str = "SET LOCAL statement_timeout TO 0; COMMIT";

/// How long it is asked how a transaction ended: making a session, a wait for the old one's lock, and two answers. Asking only reads,
/// so giving up loses nothing but the knowledge.
const RESOLVE_PATIENCE: Duration = Duration::from_secs(30);

/// What the server calls a transaction that is durable.
const COMMITTED: &str = "committed";
/// What it calls one that left nothing behind.
const ABORTED: &str = "aborted";

/// Commits; `transaction` is the name to ask by where the answer is lost, none where nothing was written.
pub(crate) async fn commit(shared: &Shared, link: Lent, transaction: Option<String>) -> Result<(), Error> {
    // Whatever was warned of before is not about this commit.
    link.take_warning();
    let Some(answer) = answer(shared, &link).await else {
        drop(Lent::take(link));
        let text = "the server left a commit unanswered, and lives another life by now";
        tracing::warn!(target: "onceward", event = "postgres.commit_given_up", ?transaction);
        return transaction.map_or(Ok(()), |_| Err(unknown(text)));
    };
    let cause = match answer {
        Ok(()) if link.take_warning() && transaction.is_some() => {
            drop(Lent::take(link));
            return Err(unknown("the server committed with a warning: a standby may not have it"));
        }
        Ok(()) => {
            link.set_in_transaction(false);
            return Ok(());
        }
        Err(cause) => cause,
    };
    let (warned, epoch) = (link.take_warning(), link.epoch().to_owned());
    drop(Lent::take(link));
    let Some(transaction) = transaction else {
        // Nothing was written, so there was nothing to commit.
        return Ok(());
    };
    if let Some(refused) = surely_refused(&cause) {
        return Err(refused);
    }
    let lost = failed("committing")(cause);
    tracing::warn!(target: "onceward", event = "postgres.commit_unanswered", error = ?lost, %transaction);
    if warned {
        return Err(unknown("the server warned, and then its answer was lost").because(lost));
    }
    let resolved = timeout(RESOLVE_PATIENCE, resolve(shared, &epoch, &transaction)).await;
    let resolved = resolved.unwrap_or_else(|_elapsed| {
        Err(Error::new(Code::Unavailable, format!("no answer within {} s", RESOLVE_PATIENCE.as_secs())))
    });
    match resolved {
        Ok(Some(status)) if status == COMMITTED => Ok(()),
        Ok(Some(status)) if status == ABORTED => {
            Err(Error::new(Code::Unavailable, format!("transaction {transaction} was not committed"))
                .because(lost))
        }
        Ok(_) => Err(unknown("the server cannot say any more how the transaction ended").because(lost)),
        Err(silent) => {
            Err(unknown(&format!("nobody can be asked how the transaction ended: {silent}")).because(lost))
        }
    }
}

/// Commits and waits for the answer; none where it is sure never to come, because whoever answers to the server's address now lives
/// another life than the one that was asked: it hung, and somebody else was promoted.
async fn answer(shared: &Shared, link: &Lent) -> Option<Result<(), tokio_postgres::Error>> {
    let mut answer = pin!(link.client().batch_execute(COMMIT));
    loop {
        match timeout(shared.works.patience(), &mut answer).await {
            Ok(answer) => return Some(answer),
            Err(_elapsed) => {
                tracing::warn!(target: "onceward", event = "postgres.commit_waits", seconds = shared.works.patience().as_secs());
                let present = shared.works.fresh().await;
                if present.is_ok_and(|present| present.epoch() != link.epoch()) {
                    return None;
                }
            }
        }
    }
}

fn unknown(text: &str) -> Error {
    Error::new(Code::OutcomeUnknown, text)
}

/// Asks a new session how a transaction ended; none where the server lives another life, or has forgotten.
async fn resolve(shared: &Shared, epoch: &str, transaction: &str) -> Result<Option<String>, Error> {
    let link = shared.works.fresh().await?;
    if link.epoch() != epoch {
        return Ok(None);
    }
    // The old session may still be at work on it: its lock is given free when it has ended, one way or the other.
    if let Ok(key) = transaction.parse::<i64>() {
        link.rows("waiting for the end of a transaction", queries::TRANSACTION_ENDED, params![key]).await?;
    }
    let doing = "asking how a transaction ended";
    let row = link.first(doing, queries::TRANSACTION_STATUS, params![transaction]).await?;
    row.map(|row| get::<Option<String>>(&row, 0)).transpose().map(Option::flatten)
}
