//! Leaves of request bodies: the JSON forms that are taken, and nothing beside them.
//!
//! Purpose: serde's own rules are generous (a struct may be an array, an enum a map) and its messages repeat what
//! the caller sent. These types take exactly one JSON form each and say what is expected, never what came.
//! Invariants: a wrong form is an error here (400); a value outside its range is not, it is judged by
//! [`crate::check`] (422). No text is cut, trimmed or rounded. Deliberately absent: defaults, which stand with the
//! bodies. Read next: [`crate::check`].

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserialize, Deserializer, Error, MapAccess, Visitor};
use utoipa::openapi::schema::{ObjectBuilder, SchemaFormat, Type};
use utoipa::openapi::{RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

const NUMBER_FOR_ID: &str = "must be a string; this is a number: put it in quotes, as in \"42\"";
const NOT_WHOLE: &str = "must be a whole number, without fraction or exponent, that fits into 64 bits";

/// A JSON string.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Text<'a>(pub(crate) Cow<'a, str>);

/// A JSON string that is to be an id; a number in its place is refused with a hint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct IdText<'a>(pub(crate) Cow<'a, str>);

/// A JSON number without fraction or exponent. Above `i64::MAX` it stays at that value, which no field allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Whole(pub(crate) i64);

/// A JSON object; serde alone would take an array of the fields as well.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Object<T>(pub(crate) T);

struct TextVisitor {
    expected: &'static str,
    number_hint: Option<&'static str>,
}

impl TextVisitor {
    fn number<E: Error>(&self, seen: &'static str) -> E {
        match self.number_hint {
            Some(hint) => E::custom(hint),
            None => E::invalid_type(serde::de::Unexpected::Other(seen), self),
        }
    }
}

impl<'de> Visitor<'de> for TextVisitor {
    type Value = Cow<'de, str>;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.expected)
    }

    fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(Cow::Borrowed(text))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Cow::Owned(text.to_owned()))
    }

    fn visit_string<E: Error>(self, text: String) -> Result<Self::Value, E> {
        Ok(Cow::Owned(text))
    }

    fn visit_u64<E: Error>(self, _: u64) -> Result<Self::Value, E> {
        Err(self.number("number"))
    }

    fn visit_i64<E: Error>(self, _: i64) -> Result<Self::Value, E> {
        Err(self.number("number"))
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<Self::Value, E> {
        Err(self.number("number"))
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Text<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(TextVisitor { expected: "a string", number_hint: None }).map(Self)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for IdText<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let visitor = TextVisitor { expected: "a string", number_hint: Some(NUMBER_FOR_ID) };
        // Asking for a string would have serde_json refuse a number before the visitor can give its hint.
        deserializer.deserialize_any(visitor).map(Self)
    }
}

struct WholeVisitor;

impl Visitor<'_> for WholeVisitor {
    type Value = Whole;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a whole number")
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Whole, E> {
        Ok(Whole(number))
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Whole, E> {
        Ok(Whole(i64::try_from(number).unwrap_or(i64::MAX)))
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<Whole, E> {
        Err(E::custom(NOT_WHOLE))
    }
}

impl<'de> Deserialize<'de> for Whole {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_i64(WholeVisitor)
    }
}

struct ObjectVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for ObjectVisitor<T> {
    type Value = Object<T>;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Object<T>, A::Error> {
        T::deserialize(MapAccessDeserializer::new(map)).map(Object)
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(ObjectVisitor(PhantomData))
    }
}

/// How a caller-owned id looks, for the OpenAPI document.
pub(crate) const CALLER_ID_PATTERN: &str = "^[A-Za-z0-9._~:-]{1,64}$";

impl PartialSchema for IdText<'_> {
    fn schema() -> RefOr<Schema> {
        let schema = ObjectBuilder::new()
            .schema_type(Type::String)
            .min_length(Some(1))
            .max_length(Some(64))
            .pattern(Some(CALLER_ID_PATTERN))
            .description(Some("An id that the caller owns: 1 to 64 characters of A-Z a-z 0-9 . _ ~ : -"));
        RefOr::T(schema.build().into())
    }
}

impl ToSchema for IdText<'_> {
    fn name() -> Cow<'static, str> {
        Cow::Borrowed("CallerId")
    }
}

/// A UUID in an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Id(pub(crate) uuid::Uuid);

impl serde::Serialize for Id {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.0.hyphenated().encode_lower(&mut uuid::Uuid::encode_buffer()))
    }
}

impl PartialSchema for Id {
    fn schema() -> RefOr<Schema> {
        let format = SchemaFormat::Custom("uuid".to_owned());
        RefOr::T(ObjectBuilder::new().schema_type(Type::String).format(Some(format)).build().into())
    }
}

impl ToSchema for Id {
    fn name() -> Cow<'static, str> {
        Cow::Borrowed("Id")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, serde::Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Pair<'a> {
        #[serde(borrow)]
        id: IdText<'a>,
        count: Whole,
    }

    #[test]
    fn se_04_each_leaf_takes_one_json_form() {
        let table: [(&str, Result<i64, &str>); 11] = [
            (r#"{"id":"a","count":1}"#, Ok(1)),
            (r#"{"id":"a","count":9223372036854775808}"#, Ok(i64::MAX)),
            (r#"{"id":"a","count":-1}"#, Ok(-1)),
            (r#"{"id":"a","count":1.0}"#, Err("without fraction")),
            (r#"{"id":"a","count":1e3}"#, Err("without fraction")),
            (r#"{"id":"a","count":1e400}"#, Err("number out of range")),
            (r#"{"id":"a","count":"1"}"#, Err("expected a whole number")),
            (r#"{"id":7,"count":1}"#, Err("put it in quotes")),
            (r#"{"id":7.5,"count":1}"#, Err("put it in quotes")),
            (r#"{"id":null,"count":1}"#, Err("expected a string")),
            (r#"["a",1]"#, Err("expected an object")),
        ];
        for (json, expected) in table {
            let parsed = serde_json::from_str::<Object<Pair<'_>>>(json);
            match (parsed, expected) {
                (Ok(pair), Ok(count)) => {
                    assert_eq!((pair.0.count.0, &*pair.0.id.0), (count, "a"), "{json}");
                }
                (Err(error), Err(part)) => assert!(error.to_string().contains(part), "{json}: {error}"),
                (parsed, expected) => panic!("{json}: {parsed:?}, expected {expected:?}"),
            }
        }
    }

    #[test]
    fn c_115_a_text_with_escapes_is_kept_whole() {
        let text: Text<'_> = serde_json::from_str(r#""a\u0000\n🛒""#).unwrap();
        assert_eq!(text.0, "a\0\n🛒");
    }
}
