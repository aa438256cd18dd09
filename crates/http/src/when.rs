//! Times on the wire: RFC 3339 in, RFC 3339 UTC with exactly milliseconds out.
//!
//! Invariants: an offset is taken into account and not kept; digits behind the millisecond are dropped; a time that
//! the calendar does not know is refused. Formatting never fails: a time past the calendar's end shows the end.

use std::borrow::Cow;
use std::str::FromStr;

use jiff::fmt::temporal::DateTimePrinter;
use onceward_domain::time::Timestamp;
use serde::{Serialize, Serializer};
use utoipa::openapi::schema::{KnownFormat, ObjectBuilder, SchemaFormat, Type};
use utoipa::openapi::{RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

const PRINTER: DateTimePrinter = DateTimePrinter::new().precision(Some(3));
const NOT_RFC_3339: &str = "must be an RFC 3339 time, as in 2026-11-11T00:00:00.000Z";
/// `YYYY-MM-DDTHH:MM:SS`, the part of RFC 3339 that has a fixed shape.
const SHAPE: &[u8; 19] = b"0000-00-00T00:00:00";

/// A time in an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Time(pub(crate) Timestamp);

impl From<Timestamp> for Time {
    fn from(at: Timestamp) -> Self {
        Self(at)
    }
}

impl Serialize for Time {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&format(self.0))
    }
}

impl PartialSchema for Time {
    fn schema() -> RefOr<Schema> {
        let format = SchemaFormat::KnownFormat(KnownFormat::DateTime);
        RefOr::T(ObjectBuilder::new().schema_type(Type::String).format(Some(format)).build().into())
    }
}

impl ToSchema for Time {
    fn name() -> Cow<'static, str> {
        Cow::Borrowed("Time")
    }
}

/// The time as callers see it.
pub(crate) fn format(at: Timestamp) -> String {
    let edge = if at.0 < 0 { jiff::Timestamp::MIN } else { jiff::Timestamp::MAX };
    PRINTER.timestamp_to_string(&jiff::Timestamp::from_millisecond(at.0).unwrap_or(edge))
}

/// Reads a time.
///
/// # Errors
/// Says what is expected, in words for the caller.
pub(crate) fn parse(text: &str) -> Result<Timestamp, &'static str> {
    if !has_the_shape(text.as_bytes()) {
        return Err(NOT_RFC_3339);
    }
    let at = jiff::Timestamp::from_str(text).map_err(|_| NOT_RFC_3339)?;
    Ok(Timestamp(at.as_nanosecond().div_euclid(1_000_000).try_into().map_err(|_| NOT_RFC_3339)?))
}

/// jiff takes more than RFC 3339 (blanks, zone names, short offsets), so the shape is checked first.
fn has_the_shape(text: &[u8]) -> bool {
    let Some((head, tail)) = text.split_at_checked(SHAPE.len()) else { return false };
    let fits = |(byte, shape): (&u8, &u8)| match shape {
        b'0' => byte.is_ascii_digit(),
        other => byte.eq_ignore_ascii_case(other),
    };
    head.iter().zip(SHAPE).all(fits) && has_offset(after_fraction(tail))
}

fn after_fraction(tail: &[u8]) -> &[u8] {
    match tail {
        [b'.', digits @ ..] => {
            let count = digits.iter().take_while(|byte| byte.is_ascii_digit()).count();
            if count == 0 { b"" } else { &digits[count..] }
        }
        _ => tail,
    }
}

fn has_offset(text: &[u8]) -> bool {
    match text {
        [b'Z' | b'z'] => true,
        [b'+' | b'-', h1, h2, b':', m1, m2] => [h1, h2, m1, m2].iter().all(|byte| byte.is_ascii_digit()),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_rfc_3339_in_and_utc_milliseconds_out() {
        let table: [(&str, Option<&str>); 20] = [
            ("2026-11-11T00:00:00Z", Some("2026-11-11T00:00:00.000Z")),
            ("2026-11-11T00:00:00.123Z", Some("2026-11-11T00:00:00.123Z")),
            ("2026-11-11T00:00:00.1239Z", Some("2026-11-11T00:00:00.123Z")),
            ("2026-11-11t08:00:00.5+08:00", Some("2026-11-11T00:00:00.500Z")),
            ("2026-11-10T19:30:00-04:30", Some("2026-11-11T00:00:00.000Z")),
            ("1969-12-31T23:59:59.9999Z", Some("1969-12-31T23:59:59.999Z")),
            ("2024-02-29T00:00:00Z", Some("2024-02-29T00:00:00.000Z")),
            ("2023-02-29T00:00:00Z", None),
            ("2026-13-01T00:00:00Z", None),
            ("2026-11-11 00:00:00Z", None),
            ("2026-11-11T00:00:00", None),
            ("2026-11-11T00:00:00.Z", None),
            ("2026-11-11T00:00:00+0800", None),
            ("2026-11-11T00:00:00+08", None),
            ("2026-11-11T00:00Z", None),
            ("2026-11-11T00:00:00Z[Europe/Paris]", None),
            ("2026-11-11", None),
            ("1762819200", None),
            ("", None),
            ("２026-11-11T00:00:00Z", None),
        ];
        for (text, expected) in table {
            assert_eq!(parse(text).ok().map(format).as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn a_time_past_the_calendar_shows_its_end() {
        assert!(format(Timestamp(i64::MAX)).starts_with("9999-12-30T"));
        assert!(format(Timestamp(i64::MIN)).starts_with("-009999-"));
    }
}
