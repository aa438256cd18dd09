//! One work: load under locks, decide, apply, commit.
//!
//! Invariants: a work is one transaction on one session; what fails is rolled back, and a session that cannot be rolled back
//! is given up. A decision that panics is that work's error. A key that is there already may be a race that two deciders of a
//! row which was not there have run: the work is decided once more on fresh rows, and only where the same key stands in its way
//! again is it a defect. Deliberately absent: any other retry; the engine decides on them. Read next: `load`, `apply`, `commit`.

use std::any::Any;
use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

use onceward_domain::error::Error;
use onceward_domain::facts::Facts;
use onceward_domain::ports::store::Work;
use onceward_domain::purchase::Route;

use crate::apply::{Loss, apply};
use crate::commit::commit;
use crate::failure::{defect, doubled, failed, guard_lost};
use crate::link::Link;
use crate::load::{Mode, load};
use crate::open::Shared;
use crate::pool::Lent;
use crate::refs::{Fresh, Names};

/// Why a work was refused, with what is needed to judge it.
#[derive(Debug)]
pub(crate) struct Refusal {
    /// What its caller hears.
    pub(crate) error: Error,
    /// The key that is there already, where that is why.
    doubled: Option<String>,
    /// The guards of which one was lost, where that is why.
    loss: Option<Box<Loss>>,
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        Self { error, doubled: None, loss: None }
    }
}

impl From<Loss> for Refusal {
    fn from(loss: Loss) -> Self {
        Self { error: guard_lost(loss.what()), doubled: None, loss: Some(Box::new(loss)) }
    }
}

impl Refusal {
    /// The refusal of a statement that writes.
    pub(crate) fn of(doing: &str, cause: tokio_postgres::Error) -> Self {
        let doubled = doubled(&cause);
        Self { error: failed(doing)(cause), doubled, loss: None }
    }
}

/// Which place each purchase that was loaded keeps in its row; none where it is direct and keeps them in its lines.
pub(crate) type Places = HashMap<i64, Option<i64>>;

/// What a transaction has written, before its commit.
struct Written {
    /// The transaction's name; none where nothing was written.
    transaction: Option<String>,
    fresh: Fresh,
}

/// Carries out a work, durably.
pub(crate) async fn transact(shared: &Shared, work: Work) -> Result<(), Error> {
    let first = match attempt(shared, &work).await {
        Ok(()) => return Ok(()),
        Err(refusal) => refusal,
    };
    let Some(met) = first.doubled else { return Err(first.error) };
    match attempt(shared, &work).await {
        Ok(()) => Ok(()),
        Err(again) => match again.doubled {
            Some(key) if key != met => Err(guard_lost(format!("{}: two keys were taken first", work.name))),
            _ => Err(again.error),
        },
    }
}

async fn attempt(shared: &Shared, work: &Work) -> Result<(), Refusal> {
    let link = shared.works.link().await?;
    match shared.works.answered(link.giving_up(), run(shared, &link, work)).await {
        Ok(written) => {
            commit(shared, link, written.transaction).await?;
            shared.refs.learn(written.fresh);
            Ok(())
        }
        Err(refusal) => {
            tracing::debug!(work = work.name, error = %refusal.error, "a work was refused");
            Err(undo(shared, link, refusal).await)
        }
    }
}

async fn run(shared: &Shared, link: &Link, work: &Work) -> Result<Written, Refusal> {
    let mut facts = load(shared, link, &work.need, Mode::Locked).await?;
    let (now, places) = (facts.now, places(&facts));
    let decided = catch_unwind(AssertUnwindSafe(|| (work.decide)(&mut facts)));
    let changes = decided
        .unwrap_or_else(|panic| Err(panicked(&format!("the decision of {}", work.name), panic.as_ref())))?;
    let mut names = Names::new(&shared.refs);
    let transaction = apply(link, &mut names, &changes, (now, &places)).await?;
    Ok(Written { transaction, fresh: names.into_fresh() })
}

fn places(facts: &Facts) -> Places {
    let place = |purchase: &onceward_domain::purchase::Purchase| match purchase.route {
        Route::Flash => purchase.lines.first().map(|line| line.place),
        Route::Direct => None,
    };
    facts.purchases.values().map(|purchase| (purchase.handle, place(purchase))).collect()
}

/// Rolls back, and reads what is there where a guard was lost. Nothing is asked on a session that was given up, whose end rolls back.
pub(crate) async fn undo(shared: &Shared, link: Lent, refusal: Refusal) -> Refusal {
    if link.is_given_up() {
        drop(Lent::take(link));
        return refusal;
    }
    let undone = shared.works.answered(link.giving_up(), link.batch("rolling back", "ROLLBACK"));
    if let Err(error) = undone.await {
        tracing::debug!(%error, "a session that could not roll back is given up");
        drop(Lent::take(link));
        return refusal;
    }
    link.set_in_transaction(false);
    match refusal.loss {
        Some(loss) => {
            let explained = async { Ok::<_, Error>(loss.explain(&link).await) };
            let explained = shared.works.answered(link.giving_up(), explained).await;
            Refusal::from(explained.unwrap_or_else(|unanswered| unanswered))
        }
        None => refusal,
    }
}

/// A panic as an error, with its message for the operator.
pub(crate) fn panicked(what: &str, panic: &(dyn Any + Send)) -> Error {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("no message");
    defect(format!("{what} panicked: {text}"))
}
