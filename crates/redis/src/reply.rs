//! Reading what scripts answer.
//!
//! Invariant: an answer of another shape than the script's head says is a defect, not a guess.

use onceward_domain::error::{Code, Error};
use redis::Value;

fn strange(doing: &str) -> Error {
    Error::new(Code::ConstraintViolated, format!("reading what Redis answered to {doing}"))
}

/// A whole number, also where it comes as text.
pub(crate) fn number(doing: &str, value: &Value) -> Result<i64, Error> {
    match value {
        Value::Int(number) => Ok(*number),
        Value::BulkString(bytes) => text(doing, bytes)?.parse().map_err(|_| strange(doing)),
        _ => Err(strange(doing)),
    }
}

/// A list.
pub(crate) fn list(doing: &str, value: Value) -> Result<Vec<Value>, Error> {
    match value {
        Value::Array(values) => Ok(values),
        _ => Err(strange(doing)),
    }
}

/// Numbers.
pub(crate) fn numbers(doing: &str, value: Value) -> Result<Vec<i64>, Error> {
    list(doing, value)?.iter().map(|one| number(doing, one)).collect()
}

/// Bytes.
pub(crate) fn bytes(doing: &str, value: Value) -> Result<Vec<u8>, Error> {
    match value {
        Value::BulkString(bytes) => Ok(bytes),
        _ => Err(strange(doing)),
    }
}

/// Many of them.
pub(crate) fn all_bytes(doing: &str, values: Vec<Value>) -> Result<Vec<Vec<u8>>, Error> {
    values.into_iter().map(|one| bytes(doing, one)).collect()
}

/// Text.
pub(crate) fn text<'a>(doing: &str, bytes: &'a [u8]) -> Result<&'a str, Error> {
    std::str::from_utf8(bytes).map_err(|_| strange(doing))
}

/// Sixteen bytes, as ids have.
pub(crate) fn id(doing: &str, bytes: &[u8]) -> Result<onceward_domain::id::PurchaseId, Error> {
    let bytes: [u8; 16] = bytes.try_into().map_err(|_| strange(doing))?;
    Ok(onceward_domain::id::PurchaseId::from_bytes(bytes))
}

/// The error of an answer that no script gives.
pub(crate) fn unexpected(doing: &str) -> Error {
    strange(doing)
}
