//! Judging values: everything that is well-formed JSON and still not allowed (422 `invalid`).
//!
//! Invariants: all faults of a body are reported together, each with a JSON pointer; a value is never changed to
//! make it fit. Deliberately absent: rules that need stored state, which are the engine's.

use std::ops::RangeInclusive;
use std::sync::Arc;

use onceward_domain::id::{IdError, SkuKey};
use onceward_domain::money::Money;
use onceward_domain::time::{LONGEST, Millis, Timestamp};

use crate::problem::{self, FieldError, Problem};
use crate::values::{IdText, Text, Whole};
use crate::when;

/// The faults found so far.
#[derive(Debug, Default)]
pub(crate) struct Faults(Vec<FieldError>);

impl Faults {
    /// Notes a fault.
    pub(crate) fn add(&mut self, pointer: impl Into<String>, detail: impl Into<String>) {
        self.0.push(FieldError { pointer: pointer.into(), detail: detail.into() });
    }

    /// How many there are so far.
    pub(crate) fn so_far(&self) -> usize {
        self.0.len()
    }

    /// Keeps the value, or notes the fault.
    pub(crate) fn keep<T, E: ToString>(&mut self, pointer: &str, result: Result<T, E>) -> Option<T> {
        result.map_err(|error| self.add(pointer, error.to_string())).ok()
    }

    /// An id that the caller owns.
    pub(crate) fn id<T>(
        &mut self,
        pointer: &str,
        text: &IdText<'_>,
        new: fn(&str) -> Result<T, IdError>,
    ) -> Option<T> {
        self.keep(pointer, new(&text.0))
    }

    /// A whole number within a range.
    pub(crate) fn within(&mut self, pointer: &str, number: Whole, range: RangeInclusive<i64>) -> Option<i64> {
        if range.contains(&number.0) {
            return Some(number.0);
        }
        self.add(pointer, format!("must be a whole number from {} to {}", range.start(), range.end()));
        None
    }

    /// A whole number from `least` to the most that 32 bits hold.
    pub(crate) fn count(&mut self, pointer: &str, number: Whole, least: u32) -> Option<u32> {
        let found = self.within(pointer, number, i64::from(least)..=i64::from(u32::MAX));
        found.and_then(|count| u32::try_from(count).ok())
    }

    /// A length of time: 0 to ten years.
    pub(crate) fn length(&mut self, pointer: &str, number: Whole) -> Option<Millis> {
        self.within(pointer, number, 0..=LONGEST.0).map(Millis)
    }

    /// A time.
    pub(crate) fn time(&mut self, pointer: &str, text: &Text<'_>) -> Option<Timestamp> {
        self.keep(pointer, when::parse(&text.0))
    }

    /// A text for people: 1 to `most` characters, none of them a control character.
    pub(crate) fn words(&mut self, pointer: &str, text: &Text<'_>, most: usize) -> Option<Arc<str>> {
        let length = text.0.chars().count();
        if length == 0 || length > most {
            self.add(pointer, format!("must have 1 to {most} characters"));
            return None;
        }
        if text.0.chars().any(char::is_control) {
            self.add(pointer, "must not hold control characters");
            return None;
        }
        Some(Arc::from(&*text.0))
    }

    /// An amount of money.
    pub(crate) fn money(&mut self, pointer: &str, amount: Whole, currency: &Text<'_>) -> Option<Money> {
        use onceward_domain::money::MoneyError;
        let field = |error: MoneyError| match error {
            MoneyError::OutOfRange => "amount",
            MoneyError::UnknownCurrency | MoneyError::MixedCurrencies => "currency",
        };
        match Money::parse(amount.0, &currency.0) {
            Ok(money) => Some(money),
            Err(error) => {
                self.add(format!("{pointer}/{}", field(error)), error.to_string());
                None
            }
        }
    }

    /// One of a list of names.
    pub(crate) fn one_of<T: Copy>(
        &mut self,
        pointer: &str,
        text: &str,
        all: &[T],
        name: fn(T) -> &'static str,
    ) -> Option<T> {
        let found = all.iter().copied().find(|value| name(*value) == text);
        if found.is_none() {
            let names: Vec<&str> = all.iter().map(|value| name(*value)).collect();
            self.add(pointer, format!("must be one of {}", names.join(", ")));
        }
        found
    }

    /// The value, where nothing was wrong with any part.
    ///
    /// # Errors
    /// 422 `invalid` with every fault.
    pub(crate) fn finish<T>(self, value: Option<T>) -> Result<T, Problem> {
        match value {
            Some(value) if self.0.is_empty() => Ok(value),
            Some(_) | None => Err(Problem::of(&problem::INVALID).with_errors(self.0)),
        }
    }
}

/// A SKU named by two texts.
pub(crate) fn sku_key(activity: &str, sku: &str) -> Result<SkuKey, IdError> {
    use onceward_domain::id::{ActivityId, SkuId};
    Ok(SkuKey { activity: ActivityId::new(activity)?, sku: SkuId::new(sku)? })
}
