//! JSON that belongs to somebody else and is given back to them: a job's payload.
//!
//! Purpose: what comes out says the same as what went in, to the last digit; a number is its text here and never a float.
//! Invariants: two texts that differ only in blanks or in the order of their fields become the same text, so that a repeat is
//! recognised; of a field that comes twice the last counts; nesting is bounded. Deliberately absent: looking into it.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::{Deserialize, Deserializer, Error};
use serde_json::value::RawValue;

/// Deepest nesting that is taken: about as deep as serde itself reads.
const DEPTH_LIMIT: u32 = 120;

/// A JSON object in its one form: no blanks, fields in order, numbers as they came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RawObject(pub(crate) String);

impl<'de> Deserialize<'de> for RawObject {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = <&RawValue>::deserialize(deserializer)?;
        object(raw.get()).map(Self).map_err(D::Error::custom)
    }
}

/// Why a text was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RawJsonError {
    NotAnObject,
    TooDeep,
    /// Half of a surrogate pair stands alone.
    NotUnicode,
}

impl fmt::Display for RawJsonError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotAnObject => out.write_str("must be an object"),
            Self::TooDeep => write!(out, "must not nest deeper than {DEPTH_LIMIT}"),
            Self::NotUnicode => out.write_str("must hold whole Unicode characters"),
        }
    }
}

fn object(text: &str) -> Result<String, RawJsonError> {
    if !text.starts_with('{') {
        return Err(RawJsonError::NotAnObject);
    }
    let mut whole = String::with_capacity(text.len());
    write(text, DEPTH_LIMIT, &mut whole)?;
    Ok(whole)
}

/// Writes one value; `depth` is how far it may nest.
fn write(text: &str, depth: u32, out: &mut String) -> Result<(), RawJsonError> {
    let inside = || depth.checked_sub(1).ok_or(RawJsonError::TooDeep);
    match text.as_bytes().first() {
        Some(b'{') => {
            let depth = inside()?;
            let fields: BTreeMap<String, &RawValue> = part(text)?;
            out.push('{');
            for (number, (name, value)) in fields.into_iter().enumerate() {
                out.push_str(if number == 0 { "" } else { "," });
                out.push_str(&quoted(&name));
                out.push(':');
                write(value.get(), depth, out)?;
            }
            out.push('}');
        }
        Some(b'[') => {
            let depth = inside()?;
            let elements: Vec<&RawValue> = part(text)?;
            out.push('[');
            for (number, value) in elements.into_iter().enumerate() {
                out.push_str(if number == 0 { "" } else { "," });
                write(value.get(), depth, out)?;
            }
            out.push(']');
        }
        Some(b'"') => out.push_str(&quoted(&part::<String>(text)?)),
        // A number, or one of three words.
        Some(_) | None => out.push_str(text),
    }
    Ok(())
}

/// Reads a part of a document that was scanned as a whole: only what its escapes mean was not looked at then.
fn part<'a, T: Deserialize<'a>>(text: &'a str) -> Result<T, RawJsonError> {
    serde_json::from_str(text).map_err(|_| RawJsonError::NotUnicode)
}

fn quoted(text: &str) -> String {
    serde_json::to_string(text).expect("a text is always JSON")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Result<String, RawJsonError> {
        object(serde_json::from_str::<&RawValue>(text).unwrap().get())
    }

    #[test]
    fn c_27_digits_stay_and_blanks_and_order_go() {
        let huge = "123456789012345678901234567890.10e-400";
        let table = [
            (
                format!(r#" {{ "b" : {huge} , "a" : [ 1.0 , -0 ] }} "#),
                format!(r#"{{"a":[1.0,-0],"b":{huge}}}"#),
            ),
            (r#"{"a":1,"a":2}"#.to_owned(), r#"{"a":2}"#.to_owned()),
            (r#"{"\u0061":"\u0062\/"}"#.to_owned(), r#"{"a":"b/"}"#.to_owned()),
            (
                r#"{"a":{},"b":[],"c":null,"d":true}"#.to_owned(),
                r#"{"a":{},"b":[],"c":null,"d":true}"#.to_owned(),
            ),
        ];
        for (text, expected) in table {
            let once = of(&text).unwrap();
            assert_eq!(once, expected);
            assert_eq!(of(&once).unwrap(), once, "it is the one form");
        }
    }

    #[test]
    fn se_04_what_is_no_object_or_nests_too_deep_is_refused() {
        for text in ["[]", "7", "\"x\"", "true", "null"] {
            assert_eq!(of(text), Err(RawJsonError::NotAnObject), "{text}");
        }
        assert_eq!(of(r#"{"a":"\ud800"}"#), Err(RawJsonError::NotUnicode));
        assert_eq!(of(r#"{"\udc00":1}"#), Err(RawJsonError::NotUnicode));
        let nested = |depth: usize| format!("{{\"a\":{}{}}}", "[".repeat(depth), "]".repeat(depth));
        let limit = usize::try_from(DEPTH_LIMIT).unwrap();
        assert!(of(&nested(limit - 1)).is_ok());
        assert_eq!(of(&nested(limit)), Err(RawJsonError::TooDeep));
        assert_eq!(of(&nested(20_000)), Err(RawJsonError::TooDeep));
    }
}
