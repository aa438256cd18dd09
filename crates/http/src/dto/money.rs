//! Money on the wire.

use onceward_domain::money::Money;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::check::Faults;
use crate::values::{Object, Text, Whole};

/// An amount in the currency's minor units (ISO 4217 exponent: JPY 0, CNY 2, KWD 3).
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, expecting = "an object")]
#[schema(as = Money)]
pub(crate) struct MoneyBody<'a> {
    #[schema(value_type = i64, minimum = 0, maximum = 1_000_000_000_000_000_i64)]
    amount: Whole,
    /// ISO 4217 code.
    #[serde(borrow)]
    #[schema(value_type = String, pattern = "^[A-Z]{3}$")]
    currency: Text<'a>,
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

impl From<Money> for MoneyView {
    fn from(money: Money) -> Self {
        Self { amount: money.amount(), currency: money.currency().code() }
    }
}
