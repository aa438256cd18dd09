//! Credit accounts and their entries on the wire.

use std::sync::Arc;

use onceward_domain::credit::{Account, BALANCE_LIMIT, CREDITS_LIMIT, Credits, Entry, Standing};
use onceward_domain::decide::credit::{Adjust, Grant, PutAccount};
use onceward_domain::id::AccountId;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::sku::REASON_LIMIT;
use crate::check::Faults;
use crate::problem::Problem;
use crate::values::{Id, Text, Whole};
use crate::when::Time;

/// Most characters of a reference.
const REFERENCE_LIMIT: usize = 200;

/// Credits to be given.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, expecting = "an object")]
#[schema(as = CreditGrant)]
pub(crate) struct GrantBody<'a> {
    /// How many.
    #[schema(value_type = i64, minimum = 1, maximum = 1_000_000_000_000_000_i64)]
    amount: Whole,
    /// What the giver calls it.
    #[serde(borrow)]
    #[schema(value_type = String, min_length = 1, max_length = 200, pattern = "^[^\\x00-\\x1f\\x7f-\\x9f]+$")]
    reference: Text<'a>,
}

/// The values of a gift, in the form that its fingerprint is taken of.
#[derive(Debug, Serialize)]
pub(crate) struct Gift {
    amount: i64,
    reference: String,
}

impl GrantBody<'_> {
    /// The gift, judged.
    ///
    /// # Errors
    /// 422 `invalid` with every fault.
    pub(crate) fn into_grant(self, account: AccountId, actor: Arc<str>) -> Result<(Gift, Grant), Problem> {
        let mut faults = Faults::default();
        let amount = faults.keep("/amount", Credits::new(self.amount.0));
        let reference = faults.words("/reference", &self.reference, REFERENCE_LIMIT);
        let (amount, reference) = faults.finish(amount.zip(reference))?;
        let gift = Gift { amount: amount.amount(), reference: reference.as_ref().to_owned() };
        Ok((gift, Grant { account, amount, reference, actor }))
    }
}

/// A correction of a balance by a person.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, expecting = "an object")]
#[schema(as = CreditAdjustment)]
pub(crate) struct AdjustCreditBody<'a> {
    /// Credits to add, or with a minus sign to take away; not 0.
    #[schema(value_type = i64, minimum = -1_000_000_000_000_000_i64, maximum = 1_000_000_000_000_000_i64)]
    amount: Whole,
    /// Why.
    #[serde(borrow)]
    #[schema(value_type = String, min_length = 1, max_length = 500, pattern = "^[^\\x00-\\x1f\\x7f-\\x9f]+$")]
    reason: Text<'a>,
}

/// The values of a correction, in the form that its fingerprint is taken of.
#[derive(Debug, Serialize)]
pub(crate) struct Correction {
    amount: i64,
    reason: String,
}

impl AdjustCreditBody<'_> {
    /// The correction, judged.
    ///
    /// # Errors
    /// 422 `invalid` with every fault.
    pub(crate) fn into_adjust(
        self,
        account: AccountId,
        actor: Arc<str>,
    ) -> Result<(Correction, Adjust), Problem> {
        let mut faults = Faults::default();
        let amount = faults.within("/amount", self.amount, -CREDITS_LIMIT..=CREDITS_LIMIT);
        if amount == Some(0) {
            faults.add("/amount", "must not be 0");
        }
        let reason = faults.words("/reason", &self.reason, REASON_LIMIT);
        let (amount, reason) = faults.finish(amount.zip(reason))?;
        let correction = Correction { amount, reason: reason.as_ref().to_owned() };
        Ok((correction, Adjust { account, amount, reason, actor }))
    }
}

/// What an account may do.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, expecting = "an object")]
#[schema(as = AccountTerms)]
pub(crate) struct AccountBody {
    /// How far below zero a charge may take the balance; may change.
    #[serde(default = "nothing")]
    #[schema(value_type = i64, minimum = 0, maximum = 9_007_199_254_740_991_i64, default = 0)]
    overdraft: Whole,
}

fn nothing() -> Whole {
    Whole(0)
}

impl AccountBody {
    /// The terms, judged.
    ///
    /// # Errors
    /// 422 `invalid`.
    pub(crate) fn into_put(self, account: AccountId) -> Result<PutAccount, Problem> {
        let mut faults = Faults::default();
        let overdraft = faults.within("/overdraft", self.overdraft, 0..=BALANCE_LIMIT);
        faults.finish(overdraft.map(|overdraft| PutAccount { account, overdraft }))
    }
}

/// An account and its terms.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = AccountWithTerms)]
pub(crate) struct AccountTermsView {
    account_id: String,
    balance: i64,
    overdraft: i64,
}

impl From<&Account> for AccountTermsView {
    fn from(account: &Account) -> Self {
        Self {
            account_id: account.id.as_str().to_owned(),
            balance: account.balance,
            overdraft: account.overdraft,
        }
    }
}

/// An account at a moment.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Account)]
pub(crate) struct AccountView {
    account_id: String,
    /// The sum of the entries until then. Below 0 where it was overdrawn, or where a delivered job's refund was spent.
    balance: i64,
    as_of: Time,
    /// How many entries there were.
    entries: i64,
}

impl AccountView {
    pub(crate) fn of(account: &AccountId, standing: Standing) -> Self {
        Self {
            account_id: account.as_str().to_owned(),
            balance: standing.balance,
            as_of: standing.as_of.into(),
            entries: standing.entries,
        }
    }
}

/// The kinds of entries.
#[derive(ToSchema)]
#[schema(as = CreditEntryType, rename_all = "snake_case")]
#[expect(dead_code, reason = "it is the shape for the OpenAPI document; the names are the domain's")]
pub(crate) enum EntryTypeName {
    Charge,
    Refund,
    Reclaim,
    Grant,
    Adjust,
}

/// One entry of the ledger.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = CreditEntry)]
pub(crate) struct EntryView {
    entry_id: Id,
    account_id: String,
    #[schema(required = true)]
    job_id: Option<String>,
    #[serde(rename = "type")]
    #[schema(value_type = EntryTypeName)]
    kind: &'static str,
    /// Signed.
    amount: i64,
    balance_after: i64,
    created_at: Time,
    #[schema(required = true)]
    reference: Option<String>,
    /// Why, for a refund or an adjustment.
    #[schema(required = true)]
    reason: Option<String>,
    /// Who: the name of an API key, or `engine`.
    actor: String,
}

impl From<&Entry> for EntryView {
    fn from(entry: &Entry) -> Self {
        Self {
            entry_id: Id(entry.id().0),
            account_id: entry.account.as_str().to_owned(),
            job_id: entry.job.as_ref().map(|job| job.as_str().to_owned()),
            kind: entry.kind.name(),
            amount: entry.amount,
            balance_after: entry.balance_after,
            created_at: entry.at.into(),
            reference: entry.reference.as_deref().map(str::to_owned),
            reason: entry.reason.as_deref().map(str::to_owned),
            actor: entry.actor.as_ref().to_owned(),
        }
    }
}

/// Entries as CSV, with a head.
pub(crate) fn csv(entries: &[Entry]) -> String {
    let mut text =
        "entry_id,account_id,job_id,type,amount,balance_after,created_at,reference,reason,actor\r\n"
            .to_owned();
    for entry in entries {
        let fields = [
            entry.id().to_string(),
            entry.account.to_string(),
            entry.job.as_ref().map(ToString::to_string).unwrap_or_default(),
            entry.kind.name().to_owned(),
            entry.amount.to_string(),
            entry.balance_after.to_string(),
            crate::when::format(entry.at),
            quoted(entry.reference.as_deref()),
            quoted(entry.reason.as_deref()),
            quoted(Some(&entry.actor)),
        ];
        text.push_str(&fields.join(","));
        text.push_str("\r\n");
    }
    text
}

/// A text that somebody chose, as a CSV field. A spreadsheet would take a leading `=`, `+`, `-` or `@` for a formula.
fn quoted(text: Option<&str>) -> String {
    let Some(text) = text else { return String::new() };
    let guard = if text.starts_with(['=', '+', '-', '@']) { "'" } else { "" };
    format!("\"{guard}{}\"", text.replace('"', "\"\""))
}
