//! Claiming due work under a lease (design.md §6).
//!
//! Invariants: a token is given out once, ever, also where the claim was rolled back; what two claims want, one gets, and
//! nobody waits for it, but for a strict lane, whose head is waited for, so that nothing behind it is given out. A claim that
//! was committed although its answer was lost is handed out all the same. Read next: `queries/due/`.

use onceward_domain::due::{ClaimRequest, Claimed, Held, Sequence, Token};
use onceward_domain::error::Error;
use onceward_domain::time::Timestamp;
use tokio_postgres::Row;

use crate::commit::commit;
use crate::due::LANE_LOCK;
use crate::link::Link;
use crate::open::Shared;
use crate::pipeline::{Questions, params};
use crate::queries;
use crate::rows::{get, kept, number, time};
use crate::transact::{Refusal, undo};

/// Claims due members, durably.
pub(crate) async fn claim(shared: &Shared, request: ClaimRequest) -> Result<Vec<Claimed>, Error> {
    let link = shared.works.link().await?;
    let lane = shared.works.answered(link.giving_up(), shared.refs.lane(&link, &request.lane)).await?;
    let Some(lane) = lane else { return Ok(Vec::new()) };
    match shared.works.answered(link.giving_up(), run(shared, &link, &request, lane)).await {
        Ok((claimed, transaction)) => {
            commit(shared, link, transaction).await?;
            Ok(claimed)
        }
        Err(error) => Err(undo(shared, link, Refusal::from(error)).await.error),
    }
}

/// What the rows of a claim's first trip are.
enum Kind {
    Paused,
}

async fn run(
    shared: &Shared,
    link: &Link,
    request: &ClaimRequest,
    lane: i32,
) -> Result<(Vec<Claimed>, Option<String>), Error> {
    let mut questions = Questions::new(link, "beginning a claim");
    questions.begin("BEGIN ISOLATION LEVEL READ COMMITTED");
    link.set_in_transaction(true);
    questions.run(queries::DUE_LOCK_LANE, params![LANE_LOCK, lane]).await?;
    questions.ask(Kind::Paused, queries::LANE_IS_PAUSED, params![lane]).await?;
    let known = questions.answers().await?.into_iter().flat_map(|(Kind::Paused, rows)| rows).next();
    match known {
        Some(row) if get(&row, 0)? => return Ok((Vec::new(), None)),
        Some(_) => {}
        None => drop(link.rows("opening a lane", queries::LANE_OPEN, params![lane]).await?),
    }
    let statement = match request.sequence {
        Sequence::ByDue => queries::DUE_CLAIM_BY_TIME,
        Sequence::Strict => queries::DUE_CLAIM_BY_ARRIVAL,
    };
    let given = shared.time.given().map(|now| now.0);
    let parameters = params![lane, given, i64::from(request.limit), request.lease.0];
    let rows = link.rows("claiming due work", statement, parameters).await?;
    let Some(first) = rows.first() else { return Ok((Vec::new(), None)) };
    let now: i64 = get(first, 8)?;
    let mut ended = Questions::new(link, "noting a claim");
    ended.run(queries::LANE_CLAIMED, params![lane, now]).await?;
    ended.ask((), queries::TRANSACTION_ID, params![]).await?;
    let answers = ended.answers().await?;
    let named = answers.first().and_then(|(_, rows)| rows.first());
    let transaction = named.map(|row| get(row, 0)).transpose()?.flatten();
    let mut claimed: Vec<(Timestamp, i64, Claimed)> =
        rows.iter().map(|row| one(request, row)).collect::<Result<_, _>>()?;
    match request.sequence {
        Sequence::ByDue => claimed.sort_unstable_by_key(|(due_at, seq, _)| (*due_at, *seq)),
        Sequence::Strict => claimed.sort_unstable_by_key(|(_, seq, _)| *seq),
    }
    Ok((claimed.into_iter().map(|(_, _, claimed)| claimed).collect(), transaction))
}

fn one(request: &ClaimRequest, row: &Row) -> Result<(Timestamp, i64, Claimed), Error> {
    let due_at = time(row, 2)?;
    let held = Held { lane: request.lane.clone(), member: kept(row, 1)?, token: Token(get(row, 5)?) };
    let claimed = Claimed {
        held,
        attempts: number(row, 4)?,
        due_at,
        created_at: time(row, 3)?,
        lease_until: time(row, 6)?,
        body: get(row, 7)?,
    };
    Ok((due_at, get(row, 0)?, claimed))
}
