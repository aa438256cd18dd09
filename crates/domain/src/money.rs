//! Money: whole minor units of an ISO 4217 currency.
//!
//! Invariants: 0 ≤ amount ≤ 10^15; arithmetic is checked and never mixes currencies. The exponent comes from
//! the standard's own table, kept by a crate. Deliberately absent: fractions, rates and rounding.

use std::fmt;

pub use iso_currency::Currency;

/// Largest amount, in minor units (api.md, Conventions).
pub const AMOUNT_LIMIT: i64 = 1_000_000_000_000_000;

/// An amount of one currency.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Money {
    amount: i64,
    currency: Currency,
}

/// Why an amount was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum MoneyError {
    /// Below zero or above [`AMOUNT_LIMIT`].
    #[error("must be a whole number from 0 to 1000000000000000")]
    OutOfRange,
    /// Not an ISO 4217 code.
    #[error("is not an ISO 4217 currency code")]
    UnknownCurrency,
    /// Two currencies in one sum.
    #[error("mixes two currencies")]
    MixedCurrencies,
}

impl Money {
    /// Checks and keeps an amount in minor units.
    ///
    /// ```
    /// use onceward_domain::money::{Currency, Money};
    /// let price = Money::new(1999, Currency::CNY).unwrap();
    /// assert_eq!(price.times(2).unwrap().amount(), 3998);
    /// ```
    ///
    /// # Errors
    /// [`MoneyError::OutOfRange`] below zero or above the limit.
    pub fn new(amount: i64, currency: Currency) -> Result<Self, MoneyError> {
        if !(0..=AMOUNT_LIMIT).contains(&amount) {
            return Err(MoneyError::OutOfRange);
        }
        Ok(Self { amount, currency })
    }

    /// Checks an amount and a three-letter code.
    ///
    /// # Errors
    /// [`MoneyError::UnknownCurrency`] for a code outside the standard, else as [`Self::new`].
    pub fn parse(amount: i64, code: &str) -> Result<Self, MoneyError> {
        let currency = Currency::from_code(code).ok_or(MoneyError::UnknownCurrency)?;
        Self::new(amount, currency)
    }

    /// Nothing, in this currency.
    #[must_use]
    pub fn zero(currency: Currency) -> Self {
        Self { amount: 0, currency }
    }

    /// Minor units.
    #[must_use]
    pub fn amount(&self) -> i64 {
        self.amount
    }

    /// The currency.
    #[must_use]
    pub fn currency(&self) -> Currency {
        self.currency
    }

    /// Digits behind the point in the standard: JPY 0, CNY 2, KWD 3.
    #[must_use]
    pub fn exponent(&self) -> u16 {
        self.currency.exponent().unwrap_or(0)
    }

    /// This many times the amount.
    ///
    /// # Errors
    /// [`MoneyError::OutOfRange`] where the product passes the limit.
    pub fn times(&self, quantity: u32) -> Result<Self, MoneyError> {
        let product = self.amount.checked_mul(i64::from(quantity)).ok_or(MoneyError::OutOfRange)?;
        Self::new(product, self.currency)
    }

    /// The sum.
    ///
    /// # Errors
    /// [`MoneyError::MixedCurrencies`], or [`MoneyError::OutOfRange`] past the limit.
    pub fn plus(&self, other: &Self) -> Result<Self, MoneyError> {
        if self.currency != other.currency {
            return Err(MoneyError::MixedCurrencies);
        }
        let sum = self.amount.checked_add(other.amount).ok_or(MoneyError::OutOfRange)?;
        Self::new(sum, self.currency)
    }

    /// The difference.
    ///
    /// # Errors
    /// [`MoneyError::MixedCurrencies`], or [`MoneyError::OutOfRange`] below zero.
    pub fn minus(&self, other: &Self) -> Result<Self, MoneyError> {
        if self.currency != other.currency {
            return Err(MoneyError::MixedCurrencies);
        }
        let difference = self.amount.checked_sub(other.amount).ok_or(MoneyError::OutOfRange)?;
        Self::new(difference, self.currency)
    }
}

impl fmt::Display for Money {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} {}", self.amount, self.currency.code())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn c_105_c_106_c_107_exponents_follow_the_standard() {
        for (code, exponent) in [("JPY", 0), ("CNY", 2), ("KWD", 3), ("HUF", 2), ("BHD", 3), ("JOD", 3)] {
            assert_eq!(Money::parse(1, code).unwrap().exponent(), exponent, "{code}");
        }
        assert_eq!(Money::parse(1, "XXQ").unwrap_err(), MoneyError::UnknownCurrency);
    }

    #[test]
    fn c_110_c_111_c_112_limits_refuse_and_never_wrap() {
        assert!(Money::parse(3_616_672_277, "CNY").is_ok());
        assert_eq!(Money::parse(AMOUNT_LIMIT + 1, "CNY").unwrap_err(), MoneyError::OutOfRange);
        assert_eq!(Money::parse(-1, "CNY").unwrap_err(), MoneyError::OutOfRange);
        let most = Money::parse(AMOUNT_LIMIT, "CNY").unwrap();
        assert_eq!(most.times(u32::MAX).unwrap_err(), MoneyError::OutOfRange);
        let none = Money::zero(Currency::CNY);
        assert_eq!(none.minus(&most).unwrap_err(), MoneyError::OutOfRange);
        assert_eq!(most.plus(&most).unwrap_err(), MoneyError::OutOfRange);
    }

    proptest! {
        #[test]
        fn plus_then_minus_gives_the_first_back(left in 0..AMOUNT_LIMIT / 2, right in 0..AMOUNT_LIMIT / 2) {
            let (left, right) = (Money::parse(left, "CNY").unwrap(), Money::parse(right, "CNY").unwrap());
            prop_assert_eq!(left.plus(&right).unwrap().minus(&right).unwrap(), left);
        }
    }
}
