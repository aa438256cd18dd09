//! Path and query parameters.
//!
//! Invariants: an unknown or doubled query parameter is refused (400), a bad value is named (422). A path id that
//! cannot be an id names nothing: 404, except in a `PUT`, which would have made the object and so is told what an
//! id looks like (422). A cursor is opaque to callers and refused when it is not ours.

use axum::extract::{FromRequestParts, RawPathParams};
use axum::http::Uri;
use axum::http::request::Parts;
use onceward_domain::error::Code;
use onceward_domain::id::{ActivityId, IdError, SkuKey};
use onceward_domain::ports::store::PageRequest;
use uuid::Uuid;

use crate::check::{self, Faults};
use crate::problem::{self, Problem};
use crate::values::Whole;

/// Most rows of a page.
pub(crate) const PAGE_LIMIT: i64 = 200;
/// Rows of a page where nothing is said.
pub(crate) const PAGE_DEFAULT: u32 = 50;
/// Length of a UUID with hyphens, the only form that is taken.
const UUID_LENGTH: usize = 36;
const CURSOR_PREFIX: &str = "c1";

/// The path's parameters, decoded.
pub(crate) struct PathIds(RawPathParams);

impl<S: Send + Sync> FromRequestParts<S> for PathIds {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let raw = RawPathParams::from_request_parts(parts, state).await;
        // What fails here is text that is not UTF-8, which no id is.
        raw.map(Self).map_err(|_| Problem::code(Code::NotFound))
    }
}

impl PathIds {
    fn get(&self, name: &str) -> &str {
        let found = self.0.iter().find(|(known, _)| *known == name);
        found.map_or("", |(_, value)| value)
    }

    /// An activity that exists, or does not.
    pub(crate) fn activity(&self) -> Result<ActivityId, Problem> {
        self.owned("activity_id", ActivityId::new)
    }

    /// An activity that is to be.
    pub(crate) fn new_activity(&self) -> Result<ActivityId, Problem> {
        self.owned_new("activity_id", ActivityId::new)
    }

    /// A SKU that exists, or does not.
    pub(crate) fn sku(&self) -> Result<SkuKey, Problem> {
        check::sku_key(self.get("activity_id"), self.get("sku_id")).map_err(|_| Problem::code(Code::NotFound))
    }

    /// A SKU that is to be.
    pub(crate) fn new_sku(&self) -> Result<SkuKey, Problem> {
        use onceward_domain::id::SkuId;
        let mut faults = Faults::default();
        let activity = faults.keep("/activity_id", ActivityId::new(self.get("activity_id")));
        let sku = faults.keep("/sku_id", SkuId::new(self.get("sku_id")));
        faults.finish(activity.zip(sku).map(|(activity, sku)| SkuKey { activity, sku }))
    }

    /// A caller-owned id of something that exists, or does not.
    pub(crate) fn owned<T>(&self, name: &str, new: fn(&str) -> Result<T, IdError>) -> Result<T, Problem> {
        new(self.get(name)).map_err(|_| Problem::code(Code::NotFound))
    }

    /// A caller-owned id of something that is to be.
    pub(crate) fn owned_new<T>(&self, name: &str, new: fn(&str) -> Result<T, IdError>) -> Result<T, Problem> {
        let mut faults = Faults::default();
        let id = faults.keep(&format!("/{name}"), new(self.get(name)));
        faults.finish(id)
    }

    /// The id of something that Onceward made.
    pub(crate) fn uuid(&self, name: &str) -> Result<Uuid, Problem> {
        let text = self.get(name);
        let id = (text.len() == UUID_LENGTH).then(|| Uuid::try_parse(text).ok()).flatten();
        id.ok_or_else(|| Problem::code(Code::NotFound))
    }

    /// A parameter that is just text.
    pub(crate) fn text(&self, name: &str) -> &str {
        self.get(name)
    }
}

/// Refuses query parameters that the route does not know, and known ones that come twice.
///
/// # Errors
/// 400 `malformed` with the parameter's name.
pub(crate) fn check_names(query: &str, known: &[&str]) -> Result<(), Problem> {
    let mut seen: Vec<&str> = Vec::with_capacity(known.len());
    for (name, _) in pairs(query)? {
        let Some(name) = known.iter().copied().find(|known| *known == name) else {
            let detail = match known {
                [] => "this request takes no query parameters".to_owned(),
                known => format!("the query parameters are {}", known.join(", ")),
            };
            return Err(Problem::of(&problem::MALFORMED).at("/?", detail));
        };
        if seen.contains(&name) {
            return Err(Problem::of(&problem::MALFORMED).at(format!("/{name}"), "must not be given twice"));
        }
        seen.push(name);
    }
    Ok(())
}

fn pairs(query: &str) -> Result<Vec<(String, String)>, Problem> {
    let uri = Uri::builder().path_and_query(format!("/?{query}")).build();
    let parsed = uri.ok().and_then(|uri| axum::extract::Query::try_from_uri(&uri).ok());
    let parsed: Option<axum::extract::Query<Vec<(String, String)>>> = parsed;
    parsed.map(|pairs| pairs.0).ok_or_else(|| Problem::of(&problem::MALFORMED))
}

/// The query parameters of a request; their names were checked at the edge.
pub(crate) struct Query(Vec<(String, String)>);

impl<S: Sync> FromRequestParts<S> for Query {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        Ok(Self(parts.uri.query().map(pairs).transpose()?.unwrap_or_default()))
    }
}

impl Query {
    /// A parameter's text, where it was given.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// A whole number within a range, or the default.
    pub(crate) fn number(
        &self,
        faults: &mut Faults,
        name: &str,
        range: std::ops::RangeInclusive<i64>,
        default: i64,
    ) -> Option<i64> {
        let Some(text) = self.get(name) else { return Some(default) };
        // `parse` takes a plus sign as well; a number in a query is digits only.
        let is_plain = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let number = if is_plain { text.parse().unwrap_or(i64::MAX) } else { i64::MIN };
        faults.within(&format!("/{name}"), Whole(number), range)
    }

    /// How many rows a page has.
    pub(crate) fn limit(&self, faults: &mut Faults) -> Option<u32> {
        let limit = self.number(faults, "limit", 1..=PAGE_LIMIT, i64::from(PAGE_DEFAULT));
        limit.and_then(|limit| u32::try_from(limit).ok())
    }

    /// A page of a list whose rows have handles.
    pub(crate) fn page(&self, faults: &mut Faults) -> Option<PageRequest> {
        let limit = self.limit(faults);
        let before = match self.get("after").map(handle_of) {
            None => None,
            Some(Some(handle)) => Some(handle),
            Some(None) => {
                faults.add("/after", BAD_CURSOR);
                None
            }
        };
        limit.map(|limit| PageRequest { limit, before })
    }
}

/// What is wrong with a cursor.
pub(crate) const BAD_CURSOR: &str = "must be the next of an answer of this list";

/// The cursor behind a row.
pub(crate) fn cursor(handle: i64) -> String {
    format!("{CURSOR_PREFIX}{:016x}", handle.cast_unsigned())
}

fn handle_of(cursor: &str) -> Option<i64> {
    let digits = cursor.strip_prefix(CURSOR_PREFIX)?;
    let is_plain = digits.len() == 16 && digits.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    is_plain.then(|| u64::from_str_radix(digits, 16).ok()).flatten().map(u64::cast_signed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cursors_come_back_and_others_do_not() {
        for handle in [0, 1, -1, i64::MAX, i64::MIN] {
            assert_eq!(handle_of(&cursor(handle)), Some(handle));
        }
        for text in ["", "c1", "c10", "c1000000000000000G", "c1+00000000000000a", "7", "c2000000000000000a"] {
            assert_eq!(handle_of(text), None, "{text}");
        }
    }

    #[test]
    fn se_04_query_names_are_checked() {
        let table = [
            ("", true),
            ("limit=1", true),
            ("limit=1&after=x", true),
            ("limit=1&limit=2", false),
            ("limits=1", false),
            ("li%6Dit=1", true),
            ("=1", false),
            ("%ff=1", false),
        ];
        for (query, is_fine) in table {
            assert_eq!(check_names(query, &["limit", "after"]).is_ok(), is_fine, "{query}");
        }
    }
}
