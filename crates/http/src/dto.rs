//! The bodies of requests and answers; domain types do not serialize.
//!
//! Invariants: every field of api.md under its name; a `null` only where api.md has one; what a default stands for
//! is written once, here. Read next: [`crate::values`] for the leaves, [`crate::check`] for the limits.

pub(crate) mod activity;
pub(crate) mod admission;
pub(crate) mod credit;
pub(crate) mod group;
pub(crate) mod job;
pub(crate) mod money;
pub(crate) mod ops;
pub(crate) mod order;
pub(crate) mod payment;
pub(crate) mod queue;
pub(crate) mod reservation;
pub(crate) mod sandbox;
pub(crate) mod sku;
pub(crate) mod statement;

use serde::Serialize;
use utoipa::ToSchema;

use crate::problem::Problem;

/// One page of a list.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Page<T: ToSchema> {
    /// The rows.
    pub(crate) data: Vec<T>,
    /// Cursor of the next page; `null` at the end.
    #[schema(required = true)]
    pub(crate) next: Option<String>,
}

impl<T: ToSchema> Page<T> {
    /// A page out of rows of which one more was asked for than the page holds: that one tells whether a next page
    /// exists, so that the last page never points to an empty one.
    pub(crate) fn of<R>(
        mut rows: Vec<R>,
        limit: u32,
        cursor: impl Fn(&R) -> String,
        view: impl FnMut(&R) -> Result<T, Problem>,
    ) -> Result<Self, Problem> {
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let has_more = rows.len() > limit;
        rows.truncate(limit);
        let next = rows.last().filter(|_| has_more).map(cursor);
        Ok(Self { data: rows.iter().map(view).collect::<Result<_, _>>()?, next })
    }
}

/// A list without pages.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Data<T: ToSchema> {
    /// The rows.
    pub(crate) data: Vec<T>,
}
