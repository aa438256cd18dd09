//! The bank as the engine sees it: a [`Provider`] with moods.
//!
//! Invariants: silence is a bounded wait and then an unknown outcome, never a failure (DR-02); a call that the bank did
//! not hear had no effect; a call it heard had its effect whether or not the answer arrives.
//!
//! An attempt the bank never heard of cannot have taken money, but its announcement may still be on its way. So a query
//! answers `Processing`, which proves nothing, and has the engine go on to close it; closing leaves a tombstone under the
//! id, so that an announcement that comes later opens nothing. Read next: [`super::courier`].

use std::future::pending;
use std::sync::Arc;

use onceward_domain::error::{Code, Error};
use onceward_domain::id::{ChargeId, PaymentId};
use onceward_domain::payment::{ChargeWord, Word};
use onceward_domain::ports::Answer;
use onceward_domain::ports::provider::{
    ChargeOrder, ClientData, PaymentOrder, Provider, RawCallback, RefundOrder, Verified,
};
use onceward_domain::ports::sandbox::{BankPayment, BankStatus, Mood};

use super::bank::{Bank, Policy};
use super::{NAME, callback};

/// The sandbox bank behind the provider port.
#[derive(Clone)]
pub struct SandboxProvider {
    bank: Bank,
}

impl SandboxProvider {
    /// The provider that this bank plays.
    #[must_use]
    pub fn new(bank: Bank) -> Self {
        Self { bank }
    }

    /// Nobody answers.
    async fn silence<T>(&self, doing: &str) -> Result<T, Error> {
        // The wait is the effect that is played here; nothing can end it early.
        let waited = tokio::time::timeout(self.bank.options().timeout, pending::<T>()).await;
        waited.map_err(|_| Error::new(Code::OutcomeUnknown, format!("{doing}: the bank did not answer")))
    }

    async fn ask(&self, payment: PaymentId) -> Result<Word, Error> {
        Ok(match self.bank.find(payment).await? {
            Some(known) => word_of(&known),
            None => Word::Processing { payment },
        })
    }

    async fn close_at_bank(&self, payment: PaymentId) -> Result<Word, Error> {
        self.bank.close(payment).await.map(|known| word_of(&known))
    }

    async fn give_back(&self, order: RefundOrder, policy: Policy) -> Result<Word, Error> {
        let refund = order.refund;
        let went = self.bank.refund(order, policy).await?;
        Ok(if went { Word::Refunded { refund } } else { Word::RefundFailed { refund } })
    }
}

fn refusal(doing: &str) -> Error {
    Error::new(Code::Unavailable, format!("{doing}: the bank says that it cannot"))
}

fn word_of(known: &BankPayment) -> Word {
    let payment = known.id;
    match (known.status, known.amount, &known.transaction) {
        (BankStatus::Succeeded, Some(amount), Some(transaction)) => {
            Word::Succeeded { payment, transaction: transaction.clone(), amount }
        }
        (BankStatus::Open | BankStatus::Succeeded, _, _) => Word::Processing { payment },
        (BankStatus::Failed, _, _) => Word::Failed { payment },
        (BankStatus::Closed, _, _) => Word::Closed { payment },
    }
}

impl Provider for SandboxProvider {
    fn name(&self) -> &'static str {
        NAME
    }

    fn create(&self, order: PaymentOrder) -> Answer<'_, ClientData> {
        Box::pin(async move {
            self.bank.announce(order.payment, order.amount).await?;
            Ok(Arc::from(format!(r#"{{"pay_url":"/sandbox/payments/{}"}}"#, order.payment)))
        })
    }

    fn query(&self, payment: PaymentId) -> Answer<'_, Word> {
        Box::pin(async move {
            let doing = format!("asking about payment {payment}");
            match self.bank.moods().query {
                Mood::Ok | Mood::Decline => self.ask(payment).await,
                Mood::Error => Err(refusal(&doing)),
                Mood::Timeout | Mood::TimeoutAfterEffect => self.silence(&doing).await,
            }
        })
    }

    fn close(&self, payment: PaymentId) -> Answer<'_, Word> {
        Box::pin(async move {
            let doing = format!("closing payment {payment}");
            match self.bank.moods().close {
                Mood::Ok | Mood::Decline => self.close_at_bank(payment).await,
                Mood::Error => Err(refusal(&doing)),
                Mood::Timeout => self.silence(&doing).await,
                Mood::TimeoutAfterEffect => {
                    self.close_at_bank(payment).await?;
                    self.silence(&doing).await
                }
            }
        })
    }

    fn refund(&self, order: RefundOrder) -> Answer<'_, Word> {
        Box::pin(async move {
            let doing = format!("asking for refund {}", order.refund);
            match self.bank.moods().refund {
                Mood::Ok => self.give_back(order, Policy::Fair).await,
                Mood::Decline => self.give_back(order, Policy::Decline).await,
                Mood::Error => Err(refusal(&doing)),
                Mood::Timeout => self.silence(&doing).await,
                Mood::TimeoutAfterEffect => {
                    self.give_back(order, Policy::Fair).await?;
                    self.silence(&doing).await
                }
            }
        })
    }

    fn charge(&self, order: ChargeOrder) -> Answer<'_, ChargeWord> {
        Box::pin(async move {
            let doing = format!("asking for charge {}", order.charge);
            match self.bank.moods().charge {
                Mood::Ok => self.bank.charge(order, Policy::Fair).await,
                Mood::Decline => self.bank.charge(order, Policy::Decline).await,
                Mood::Error => Err(refusal(&doing)),
                Mood::Timeout => self.silence(&doing).await,
                Mood::TimeoutAfterEffect => {
                    self.bank.charge(order, Policy::Fair).await?;
                    self.silence(&doing).await
                }
            }
        })
    }

    fn query_charge(&self, charge: ChargeId) -> Answer<'_, ChargeWord> {
        Box::pin(async move {
            let doing = format!("asking about charge {charge}");
            match self.bank.moods().query {
                Mood::Ok | Mood::Decline => self.bank.find_charge(&charge).await,
                Mood::Error => Err(refusal(&doing)),
                Mood::Timeout | Mood::TimeoutAfterEffect => self.silence(&doing).await,
            }
        })
    }

    fn verify(&self, callback: &RawCallback<'_>) -> Result<Verified, Error> {
        let event = self.bank.options().signer.check(callback)?;
        callback::read(event, callback.body)
    }
}
