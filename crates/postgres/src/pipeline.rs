//! Statements that go out together: one round trip for many (design.md §7).
//!
//! Invariants: statements are sent, and carried out, in the order in which they were added, because locks are taken in that
//! order; the first that fails is the one that is reported. Whatever was to be prepared is prepared before the first is sent.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::Poll;

use onceward_domain::error::Error;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Row, Statement};

use crate::failure::failed;
use crate::link::Link;

/// The values of a statement, in the order of its parameters.
pub(crate) type Params<'a> = Vec<Box<dyn ToSql + Sync + Send + 'a>>;

/// Puts values into boxes.
macro_rules! params {
    ($($value:expr),* $(,)?) => {
        vec![$(Box::new($value) as Box<dyn tokio_postgres::types::ToSql + Sync + Send + '_>),*]
    };
}
pub(crate) use params;

/// Something that was sent and waits for its answer.
pub(crate) type Waiting<'a, T, E> = Pin<Box<dyn Future<Output = Result<T, E>> + Send + 'a>>;

/// Waits for everything, asking in order. The first failure in that order ends it.
pub(crate) async fn in_order<T, E>(mut waiting: Vec<Waiting<'_, T, E>>) -> Result<Vec<T>, E> {
    let mut answers: Vec<Option<T>> = waiting.iter().map(|_| None).collect();
    poll_fn(|context| {
        let mut pending = false;
        for (one, answer) in waiting.iter_mut().zip(&mut answers).filter(|(_, answer)| answer.is_none()) {
            match one.as_mut().poll(context) {
                Poll::Ready(Ok(value)) => *answer = Some(value),
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                Poll::Pending => pending = true,
            }
        }
        if pending { Poll::Pending } else { Poll::Ready(Ok(())) }
    })
    .await?;
    Ok(answers.into_iter().flatten().collect())
}

/// What a question is for.
enum Ask {
    Begin(&'static str),
    Statement(Statement),
}

/// Questions that are asked together.
pub(crate) struct Questions<'a, K> {
    link: &'a Link,
    doing: &'static str,
    asked: Vec<(Option<K>, Ask, Params<'a>)>,
}

impl<'a, K> Questions<'a, K> {
    /// No questions yet.
    pub(crate) fn new(link: &'a Link, doing: &'static str) -> Self {
        Self { link, doing, asked: Vec::new() }
    }

    /// Begins a transaction before what follows.
    pub(crate) fn begin(&mut self, how: &'static str) {
        self.asked.push((None, Ask::Begin(how), Params::new()));
    }

    /// Adds a question whose rows matter to nobody, such as a lock.
    pub(crate) async fn run(&mut self, sql: &'static str, params: Params<'a>) -> Result<(), Error> {
        self.add(None, sql, params).await
    }

    /// Adds a question whose rows are wanted under this name.
    pub(crate) async fn ask(&mut self, kind: K, sql: &'static str, params: Params<'a>) -> Result<(), Error> {
        self.add(Some(kind), sql, params).await
    }

    async fn add(&mut self, kind: Option<K>, sql: &'static str, params: Params<'a>) -> Result<(), Error> {
        let statement = self.link.statement(sql).await.map_err(failed(self.doing))?;
        self.asked.push((kind, Ask::Statement(statement), params));
        Ok(())
    }

    /// Asks them all, and gives the rows of those that have a name.
    pub(crate) async fn answers(self) -> Result<Vec<(K, Vec<Row>)>, Error> {
        let (link, doing) = (self.link, self.doing);
        let mut kinds = Vec::with_capacity(self.asked.len());
        let mut waiting: Vec<Waiting<'_, Vec<Row>, tokio_postgres::Error>> =
            Vec::with_capacity(self.asked.len());
        for (kind, ask, params) in self.asked {
            let wants_rows = kind.is_some();
            kinds.push(kind);
            waiting.push(match ask {
                Ask::Begin(how) => {
                    Box::pin(async move { link.client().batch_execute(how).await.map(|()| Vec::new()) })
                }
                Ask::Statement(statement) if wants_rows => {
                    Box::pin(async move { link.rows_of(&statement, params).await })
                }
                Ask::Statement(statement) => Box::pin(async move {
                    link.client().execute_raw(&statement, params).await.map(|_| Vec::new())
                }),
            });
        }
        let answers = in_order(waiting).await.map_err(failed(doing))?;
        Ok(kinds.into_iter().zip(answers).filter_map(|(kind, rows)| Some((kind?, rows))).collect())
    }
}
