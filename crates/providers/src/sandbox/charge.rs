//! Off-session charges: money that the bank takes from a customer who is not there (GS-04).
//!
//! Invariants: a charge is known by the caller's id and is judged once; whatever came of it, a repeat hears the same, and
//! one that was declined is never taken later. Deliberately absent: callbacks; whoever charges is answered, or asks.

use std::sync::Arc;

use onceward_domain::error::{Code, Error};
use onceward_domain::id::{ChargeId, UserId};
use onceward_domain::money::Money;
use onceward_domain::payment::ChargeWord;
use onceward_domain::ports::provider::ChargeOrder;
use onceward_domain::ports::sandbox::{CustomerCharge, MoveKind, StatementLine};
use onceward_domain::time::Timestamp;

use super::bank::{Bank, Policy};
use super::book::{Book, Entry};

/// A charge in the book.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct BankCharge {
    /// From whom.
    customer: UserId,
    /// How much.
    amount: Money,
    /// When it was taken and under which transaction, unless it was declined.
    taken: Option<(Timestamp, Arc<str>)>,
}

impl BankCharge {
    fn word(&self) -> ChargeWord {
        match &self.taken {
            Some((_, transaction)) => {
                ChargeWord::Taken { transaction: transaction.clone(), amount: self.amount }
            }
            None => ChargeWord::Declined,
        }
    }
}

impl Book {
    pub(super) fn apply_to_charge(&mut self, entry: &Entry) {
        match entry {
            Entry::Charged { at, charge, customer, transaction, amount } => {
                let Some(amount) = amount.money() else { return };
                let (id, customer) = (ChargeId::trusted(charge), UserId::trusted(customer));
                let (at, transaction): (_, Arc<str>) = (Timestamp(*at), Arc::from(transaction.as_str()));
                let taken = Some((at, transaction.clone()));
                self.charged.entry(customer.clone()).or_default().push(id.clone());
                self.charges.insert(id.clone(), BankCharge { customer, amount, taken });
                let (kind, charge) = (MoveKind::Charge, Some(id));
                let line =
                    StatementLine { at, kind, payment: None, refund: None, charge, transaction, amount };
                self.moves.push(line);
            }
            Entry::ChargeDeclined { charge, customer, amount } => {
                let Some(amount) = amount.money() else { return };
                let customer = UserId::trusted(customer);
                self.charges.insert(ChargeId::trusted(charge), BankCharge { customer, amount, taken: None });
            }
            Entry::Announced { .. }
            | Entry::Closed { .. }
            | Entry::Declined { .. }
            | Entry::Taken { .. }
            | Entry::GaveBack { .. }
            | Entry::Refused { .. }
            | Entry::Returned { .. }
            | Entry::Call { .. }
            | Entry::Called { .. }
            | Entry::GaveUp { .. }
            | Entry::Moods { .. } => unreachable!("the caller sorts entries"),
        }
    }

    /// What a customer was charged, oldest first.
    fn charges_of(&self, customer: &UserId) -> Vec<CustomerCharge> {
        let ids = self.charged.get(customer).into_iter().flatten();
        let known = ids.map(|id| (id, &self.charges[id]));
        known
            .filter_map(|(id, charge)| {
                let (at, _) = charge.taken.as_ref()?;
                Some(CustomerCharge { charge: id.clone(), amount: charge.amount, at: *at })
            })
            .collect()
    }
}

impl Bank {
    /// Charges a customer, once per charge id, and says what came of it.
    ///
    /// # Errors
    /// [`Code::Differs`] for a known id with another customer or amount.
    pub async fn charge(&self, order: ChargeOrder, policy: Policy) -> Result<ChargeWord, Error> {
        let at = self.now().0;
        let rule = |book: &Book| {
            if let Some(known) = book.charges.get(&order.charge) {
                if known.customer == order.customer && known.amount == order.amount {
                    return Ok(Vec::new());
                }
                let about = format!("asking for charge {} with another customer or amount", order.charge);
                return Err(Error::new(Code::Differs, about));
            }
            let charge = order.charge.to_string();
            let (customer, amount) = (order.customer.to_string(), order.amount.into());
            Ok(vec![match policy {
                Policy::Fair => {
                    let transaction = format!("txn-{charge}");
                    Entry::Charged { at, charge, customer, transaction, amount }
                }
                Policy::Decline => Entry::ChargeDeclined { charge, customer, amount },
            }])
        };
        self.decide(rule, |book| book.charges[&order.charge].word()).await
    }

    /// What came of a charge.
    ///
    /// # Errors
    /// [`Code::OutcomeUnknown`] where the journal failed.
    pub async fn find_charge(&self, id: &ChargeId) -> Result<ChargeWord, Error> {
        let look = |book: &Book| book.charges.get(id).map_or(ChargeWord::Unheard, BankCharge::word);
        self.decide(|_| Ok(Vec::new()), look).await
    }

    /// What a customer was really charged.
    pub(super) async fn customer_charges(&self, customer: &UserId) -> Result<Vec<CustomerCharge>, Error> {
        self.decide(|_| Ok(Vec::new()), |book| book.charges_of(customer)).await
    }
}
