//! The bodies of requests and answers; domain types do not serialize.
//!
//! Invariants: every field of api.md under its name; a `null` only where api.md has one; what a default stands for
//! is written once, here. Read next: [`crate::values`] for the leaves, [`crate::check`] for the limits.

pub(crate) mod activity;
pub(crate) mod money;
pub(crate) mod ops;
pub(crate) mod order;
pub(crate) mod payment;
pub(crate) mod reservation;
pub(crate) mod sandbox;
pub(crate) mod sku;

use serde::Serialize;
use utoipa::ToSchema;

/// One page of a list.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Page<T: ToSchema> {
    /// The rows.
    pub(crate) data: Vec<T>,
    /// Cursor of the next page; `null` at the end.
    #[schema(required = true)]
    pub(crate) next: Option<String>,
}

/// A list without pages.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Data<T: ToSchema> {
    /// The rows.
    pub(crate) data: Vec<T>,
}
