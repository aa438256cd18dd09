//! Reading what scripts answer.
//!
//! Invariant: an answer of another shape than the script's head says is a defect, not a guess.

use onceward_domain::error::{Code, Error};
use onceward_domain::time::Timestamp;
use redis::Value;

fn strange(doing: &str) -> Error {
    Error::new(Code::ConstraintViolated, format!("reading what Redis answered to {doing}"))
}

/// A whole number, also where it comes as text.
pub(crate) fn number(doing: &str, value: &Value) -> Result<i64, Error> {
    if let Value::Int(number) = value {
        return Ok(*number);
    }
    let Value::BulkString(bytes) = value else { return Err(strange(doing)) };
    text(doing, bytes)?.parse().map_err(|_| strange(doing))
}

/// A list. Newer forms of the protocol tell sets and maps apart from it.
pub(crate) fn list(doing: &str, value: Value) -> Result<Vec<Value>, Error> {
    if let Value::Map(pairs) = value {
        return Ok(pairs.into_iter().flat_map(|(name, value)| [name, value]).collect());
    }
    let (Value::Array(values) | Value::Set(values)) = value else { return Err(strange(doing)) };
    Ok(values)
}

/// Whether a script has said this instead of a list.
pub(crate) fn is_number(value: &Value, number: i64) -> bool {
    matches!(value, Value::Int(said) if *said == number)
}

/// Numbers.
pub(crate) fn numbers(doing: &str, value: Value) -> Result<Vec<i64>, Error> {
    list(doing, value)?.iter().map(|one| number(doing, one)).collect()
}

/// Bytes.
pub(crate) fn bytes(doing: &str, value: Value) -> Result<Vec<u8>, Error> {
    let Value::BulkString(bytes) = value else { return Err(strange(doing)) };
    Ok(bytes)
}

/// Many of them.
pub(crate) fn all_bytes(doing: &str, values: Vec<Value>) -> Result<Vec<Vec<u8>>, Error> {
    values.into_iter().map(|one| bytes(doing, one)).collect()
}

/// Text.
pub(crate) fn text<'a>(doing: &str, bytes: &'a [u8]) -> Result<&'a str, Error> {
    std::str::from_utf8(bytes).map_err(|_| strange(doing))
}

/// A score: a whole number of milliseconds; servers may write a large one with an exponent.
pub(crate) fn score(doing: &str, value: &Value) -> Result<Timestamp, Error> {
    let score = if let Value::Double(score) = value {
        *score
    } else {
        let Value::BulkString(bytes) = value else { return Err(strange(doing)) };
        text(doing, bytes)?.parse().map_err(|_| strange(doing))?
    };
    #[expect(clippy::cast_possible_truncation, reason = "a score is a whole number below 2^53")]
    Ok(Timestamp(score as i64))
}

/// Sixteen bytes, as ids have.
pub(crate) fn id(doing: &str, bytes: &[u8]) -> Result<onceward_domain::id::PurchaseId, Error> {
    let bytes: [u8; 16] = bytes.try_into().map_err(|_| strange(doing))?;
    Ok(onceward_domain::id::PurchaseId::from_bytes(bytes))
}

/// The error of a record that a script could not read.
pub(crate) fn damaged(doing: &str) -> Error {
    Error::new(Code::ConstraintViolated, format!("{doing}: the reservation's record cannot be read"))
}

/// The error of an answer that no script gives.
pub(crate) fn unexpected(doing: &str) -> Error {
    strange(doing)
}
