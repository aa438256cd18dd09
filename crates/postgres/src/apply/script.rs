//! The writes of one set, as statements that go out together.
//!
//! Invariants: they are carried out in the order in which they were added, and the first that is refused is the one that is
//! reported. How many rows a statement hit is judged here: a guard that hit fewer rows than were decided on is lost.

use onceward_domain::error::Error;
use tokio_postgres::Statement;

use crate::failure::{defect, failed, guard_lost};
use crate::link::Link;
use crate::pipeline::{Params, Waiting, in_order, params};
use crate::queries;
use crate::rows::get;
use crate::transact::Refusal;

/// One row that a guard was about.
#[derive(Debug)]
pub(crate) struct Guarded {
    /// What people call it.
    pub(crate) shown: String,
    /// The values that find it.
    pub(crate) key: Params<'static>,
    /// The revision it was decided on.
    pub(crate) revision: i64,
}

/// Rows of which at least one is not as it was decided on.
#[derive(Debug)]
pub(crate) enum Loss {
    /// Rows with a revision; `peek` reads the one that is there.
    Revision {
        /// What kind of row.
        what: &'static str,
        /// The statement that reads what is there.
        peek: &'static str,
        /// The rows.
        rows: Vec<Guarded>,
    },
    /// Due work, with what was decided on it: lane, member, and the text for the operator.
    Due {
        /// The rows.
        rows: Vec<(i32, String, i64, String)>,
    },
    /// What can be said already.
    Said(String),
}

impl Loss {
    /// What is known before anything was read.
    pub(crate) fn what(&self) -> String {
        match self {
            Self::Revision { what, .. } => format!("a {what} is not as it was decided on"),
            Self::Due { .. } => "due work is not as it was decided on".to_owned(),
            Self::Said(text) => text.clone(),
        }
    }

    /// Reads what is there instead, for the operator. The caller has rolled back, so whatever this set itself had changed does
    /// not stand in the way.
    pub(crate) async fn explain(self, link: &Link) -> Error {
        let known = self.what();
        match self.read(link).await {
            Ok(Some(text)) => guard_lost(text),
            Ok(None) => guard_lost(known),
            Err(error) => guard_lost(format!("{known}; what is there could not be read: {error}")),
        }
    }

    async fn read(self, link: &Link) -> Result<Option<String>, Error> {
        let doing = "reading what is there instead";
        match self {
            Self::Revision { what, peek, rows } => {
                for Guarded { shown, key, revision } in rows {
                    let row = link.first(doing, peek, key).await?;
                    let there: Option<i64> = row.map(|row| get(&row, 0)).transpose()?;
                    let decided = format!("{what} {shown} was decided on at revision {revision}");
                    match there {
                        Some(there) if there == revision => {}
                        Some(there) => return Ok(Some(format!("{decided}, it is at {there}"))),
                        None => return Ok(Some(format!("{decided}, it is not there"))),
                    }
                }
            }
            Self::Due { rows } => {
                for (lane, member, token, decided) in rows {
                    let row = link.first(doing, queries::DUE_PEEK, params![lane, member]).await?;
                    let there: Option<(i64, bool)> =
                        row.map(|row| Ok::<_, Error>((get(&row, 1)?, get(&row, 2)?))).transpose()?;
                    match there {
                        Some((held, true)) if held == token => {}
                        Some((held, true)) => return Ok(Some(format!("{decided}, but by {held}"))),
                        Some((held, false)) => {
                            return Ok(Some(format!("{decided}; it waits, last held by {held}")));
                        }
                        None => return Ok(Some(format!("{decided}; it is gone"))),
                    }
                }
            }
            Self::Said(_) => {}
        }
        Ok(None)
    }
}

/// How many rows a statement must hit.
enum Rule<'a> {
    /// Any number: a repeat is harmless.
    Any,
    /// As many as were given; otherwise something is named that is not there.
    Each(u64, &'static str),
    /// As many as were decided on; otherwise a guard is lost.
    Guard(u64, Box<dyn FnOnce() -> Loss + Send + 'a>),
    /// None; otherwise this is a defect.
    Never(&'static str),
    /// None; otherwise somebody was faster.
    NeverNow(&'static str),
}

impl Rule<'_> {
    fn judge(self, hit: u64) -> Result<(), Refusal> {
        match self {
            Self::Any => Ok(()),
            Self::Each(expected, _) if hit == expected => Ok(()),
            Self::Each(_, text) => Err(defect(text).into()),
            Self::Guard(expected, _) if hit == expected => Ok(()),
            Self::Guard(_, loss) => Err(loss().into()),
            Self::Never(_) | Self::NeverNow(_) if hit == 0 => Ok(()),
            Self::Never(text) => Err(defect(text).into()),
            Self::NeverNow(text) => Err(Loss::Said(text.to_owned()).into()),
        }
    }
}

/// Statements that were prepared and wait to be sent.
pub(crate) struct Script<'a> {
    link: &'a Link,
    steps: Vec<(&'static str, Statement, Params<'a>, Rule<'a>)>,
}

impl<'a> Script<'a> {
    /// Nothing yet.
    pub(crate) fn new(link: &'a Link) -> Self {
        Self { link, steps: Vec::new() }
    }

    async fn push(
        &mut self,
        doing: &'static str,
        sql: &'static str,
        params: Params<'a>,
        rule: Rule<'a>,
    ) -> Result<(), Refusal> {
        let statement = self.link.statement(sql).await.map_err(failed(doing))?;
        self.steps.push((doing, statement, params, rule));
        Ok(())
    }

    /// Adds a write that may hit any number of rows.
    pub(crate) async fn any(
        &mut self,
        doing: &'static str,
        sql: &'static str,
        params: Params<'a>,
    ) -> Result<(), Refusal> {
        self.push(doing, sql, params, Rule::Any).await
    }

    /// Adds a write of new rows that hang on others; where one of those is not there, `text` says so.
    pub(crate) async fn each(
        &mut self,
        doing: &'static str,
        sql: &'static str,
        params: Params<'a>,
        (count, text): (usize, &'static str),
    ) -> Result<(), Refusal> {
        self.push(doing, sql, params, Rule::Each(wide(count), text)).await
    }

    /// Adds a write that must hit exactly the rows that were decided on.
    pub(crate) async fn guarded(
        &mut self,
        doing: &'static str,
        sql: &'static str,
        params: Params<'a>,
        (count, loss): (usize, impl FnOnce() -> Loss + Send + 'a),
    ) -> Result<(), Refusal> {
        self.push(doing, sql, params, Rule::Guard(wide(count), Box::new(loss))).await
    }

    /// Adds a look that must find nothing, or the set is a defect.
    pub(crate) async fn never(
        &mut self,
        doing: &'static str,
        sql: &'static str,
        params: Params<'a>,
        text: &'static str,
    ) -> Result<(), Refusal> {
        self.push(doing, sql, params, Rule::Never(text)).await
    }

    /// Adds a look that must find nothing, or somebody else was faster.
    pub(crate) async fn never_now(
        &mut self,
        doing: &'static str,
        sql: &'static str,
        params: Params<'a>,
        text: &'static str,
    ) -> Result<(), Refusal> {
        self.push(doing, sql, params, Rule::NeverNow(text)).await
    }

    /// Sends everything, and then asks for the transaction's name.
    pub(crate) async fn carry_out(self) -> Result<Option<String>, Refusal> {
        let doing = "naming the transaction";
        let named = self.link.statement(queries::TRANSACTION_ID).await.map_err(failed(doing))?;
        let link = self.link;
        let mut waiting: Vec<Waiting<'_, Option<String>, Refusal>> = Vec::with_capacity(self.steps.len() + 1);
        for (doing, statement, params, rule) in self.steps {
            waiting.push(Box::pin(async move {
                let hit = link.client().execute_raw(&statement, params).await;
                rule.judge(hit.map_err(|cause| Refusal::of(doing, cause))?)?;
                Ok(None)
            }));
        }
        waiting.push(Box::pin(async move {
            let rows =
                link.rows_of(&named, Params::new()).await.map_err(|cause| Refusal::of(doing, cause))?;
            Ok(rows.first().map(|row| get(row, 0)).transpose()?.flatten())
        }));
        Ok(in_order(waiting).await?.pop().flatten())
    }
}

fn wide(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}

/// One column of many rows.
pub(crate) fn column<'a, T, V>(rows: &'a [T], value: impl Fn(&'a T) -> V) -> Vec<V> {
    rows.iter().map(value).collect()
}
