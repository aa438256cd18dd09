//! Money on the wire.

use std::borrow::Cow;

use onceward_domain::money::{Currency, Money};
use serde::{Deserialize, Serialize};
use utoipa::openapi::schema::{ObjectBuilder, Type};
use utoipa::openapi::{RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

use crate::check::Faults;
use crate::values::{Object, Text, Whole};

/// An amount in the currency's minor units (ISO 4217 exponent: JPY 0, CNY 2, KWD 3).
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, expecting = "an object")]
#[schema(as = Price)]
pub(crate) struct MoneyBody<'a> {
    #[schema(value_type = i64, minimum = 0, maximum = 1_000_000_000_000_000_i64)]
    amount: Whole,
    /// ISO 4217 code.
    #[serde(borrow)]
    #[schema(value_type = CurrencyCode)]
    currency: Text<'a>,
}

/// The codes that are known, for the OpenAPI document.
struct CurrencyCode;

impl PartialSchema for CurrencyCode {
    fn schema() -> RefOr<Schema> {
        let letters = || 'A'..='Z';
        let words = letters().flat_map(|a| letters().flat_map(move |b| letters().map(move |c| [a, b, c])));
        let codes = words.map(|word| word.iter().collect::<String>());
        let known: Vec<String> = codes.filter(|code| Currency::from_code(code).is_some()).collect();
        let schema = ObjectBuilder::new().schema_type(Type::String).enum_values(Some(known));
        RefOr::T(schema.description(Some("ISO 4217 code.")).build().into())
    }
}

impl ToSchema for CurrencyCode {
    fn name() -> Cow<'static, str> {
        Cow::Borrowed("CurrencyCode")
    }
}

impl MoneyBody<'_> {
    /// The amount, judged.
    pub(crate) fn judge(price: &Object<Self>, pointer: &str, faults: &mut Faults) -> Option<Money> {
        faults.money(pointer, price.0.amount, &price.0.currency)
    }
}

/// An amount in an answer.
#[derive(Debug, Clone, Copy, Serialize, ToSchema)]
#[schema(as = Money)]
pub(crate) struct MoneyView {
    #[schema(minimum = 0, maximum = 1_000_000_000_000_000_i64)]
    amount: i64,
    #[schema(pattern = "^[A-Z]{3}$")]
    currency: &'static str,
}

/// What has come together on an order, in minor units; paid twice, it may pass the limit of a single amount.
#[derive(Debug, Clone, Copy, Serialize, ToSchema)]
#[schema(as = MoneySum)]
pub(crate) struct SumView {
    #[schema(minimum = 0)]
    amount: i64,
    #[schema(pattern = "^[A-Z]{3}$")]
    currency: &'static str,
}

impl SumView {
    /// The sum as it is: what happened is shown, whether or not it should have.
    pub(crate) fn of(amount: i64, currency: Currency) -> Self {
        Self { amount, currency: currency.code() }
    }
}

impl From<Money> for MoneyView {
    fn from(money: Money) -> Self {
        Self { amount: money.amount(), currency: money.currency().code() }
    }
}
