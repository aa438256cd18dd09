//! A line to the bank that refuses, falls silent, or loses the answer after the money moved.
//!
//! Invariants: what the bank did stays done, whoever crashed meanwhile; between a call, its effect and its answer others may
//! run and the node may die. Deliberately absent: signatures; a callback is a plain word, its event named in a header.

use std::sync::Arc;

use onceward::wire;
use onceward_domain::error::{Code, Error};
use onceward_domain::id::{ChargeId, PaymentId};
use onceward_domain::payment::{ChargeWord, Word};
use onceward_domain::ports::Answer;
use onceward_domain::ports::provider::{
    ChargeOrder, ClientData, PaymentOrder, Provider, RawCallback, RefundOrder, Verified,
};

use super::Adapter;
use super::courier::EVENT_HEADER;
use super::world::{Fate, Fault, World};
use crate::bank::Mood;

/// How often the bank refuses a refund, in thousandths.
const REFUSES_REFUND: u32 = 120;

/// How often the bank declines a charge that it did not know, in thousandths.
const DECLINES_CHARGE: u32 = 80;

/// One node's line to the bank.
pub(crate) struct FaultyProvider {
    world: Arc<World>,
    node: usize,
    adapter: Adapter,
}

impl FaultyProvider {
    pub(crate) fn new(world: Arc<World>, node: usize, adapter: Adapter) -> Self {
        Self { world, node, adapter }
    }

    fn fate(&self, name: &str) -> Fate {
        let fate = self.world.fate(name, false);
        let bank = self.world.rates().bank;
        if fate != Fate::Go || !self.world.draw(|rng| rng.chance(bank)) {
            return fate;
        }
        let fates = [Fate::Refuse, Fate::Meet(Fault::LoseCall), Fate::Meet(Fault::LoseAnswer)];
        fates[self.world.draw(|rng| rng.index(fates.len()))]
    }

    async fn call<T>(&self, name: &'static str, run: Answer<'_, T>) -> Result<T, Error> {
        let world = &*self.world;
        world.linger().await;
        let fate = self.fate(name);
        match fate {
            Fate::Go | Fate::Meet(Fault::CrashAfter | Fault::LoseAnswer) => {}
            Fate::Refuse => {
                world.sometimes("bank_away");
                return Err(Error::new(Code::Unavailable, format!("{name}: the bank is away")));
            }
            Fate::Meet(Fault::LoseCall) => {
                world.sometimes("bank_silent");
                return Err(silent(name));
            }
            Fate::Meet(Fault::CrashBefore) => self.die().await,
        }
        let answer = run.await;
        world.trace(name, u64::from(answer.is_err()));
        // The auditor looks after every poll, so each move of money ends one.
        world.step_aside().await;
        world.linger().await;
        match fate {
            Fate::Meet(Fault::CrashAfter) => self.die().await,
            Fate::Meet(Fault::LoseAnswer) => {
                world.sometimes(match name {
                    "bank.close" => "close_answer_lost",
                    "bank.refund" => "refund_answer_lost",
                    "bank.charge" => "charge_answer_lost",
                    _ => "bank_answer_lost",
                });
                return Err(silent(name));
            }
            Fate::Go | Fate::Refuse | Fate::Meet(Fault::CrashBefore | Fault::LoseCall) => {}
        }
        answer
    }

    /// Asks for this node's death and never goes on.
    async fn die(&self) {
        self.world.doom(self.node);
        std::future::pending::<()>().await;
    }

    async fn asked(&self, payment: PaymentId) -> Result<Word, Error> {
        let answer = self.call("bank.query", Box::pin(async { self.world.bank.query(payment).await })).await;
        match self.adapter {
            Adapter::TakesSilenceForClosed => answer.or(Ok(Word::Closed { payment })),
            Adapter::Careful => answer,
        }
    }

    async fn give_back(&self, order: RefundOrder) -> Result<Word, Error> {
        let (bank, rates) = (&self.world.bank, self.world.rates());
        let refuses = rates.bank > 0 && self.world.draw(|rng| rng.chance(REFUSES_REFUND));
        bank.when_refunding(Mood::Ok, refuses);
        bank.refund(order).await
    }

    async fn take(&self, order: ChargeOrder) -> Result<ChargeWord, Error> {
        let (bank, rates) = (&self.world.bank, self.world.rates());
        let declines = rates.bank > 0 && self.world.draw(|rng| rng.chance(DECLINES_CHARGE));
        bank.when_charging(Mood::Ok, declines);
        bank.charge(order).await
    }
}

fn silent(name: &str) -> Error {
    Error::new(Code::OutcomeUnknown, format!("{name}: no answer came"))
}

impl Provider for FaultyProvider {
    fn name(&self) -> &'static str {
        "sandbox"
    }

    fn create(&self, order: PaymentOrder) -> Answer<'_, ClientData> {
        Box::pin(self.call("bank.create", Box::pin(async move { self.world.bank.create(order).await })))
    }

    fn query(&self, payment: PaymentId) -> Answer<'_, Word> {
        Box::pin(self.asked(payment))
    }

    fn close(&self, payment: PaymentId) -> Answer<'_, Word> {
        Box::pin(self.call("bank.close", Box::pin(async move { self.world.bank.close(payment).await })))
    }

    fn refund(&self, order: RefundOrder) -> Answer<'_, Word> {
        Box::pin(self.call("bank.refund", Box::pin(async move { self.give_back(order).await })))
    }

    fn charge(&self, order: ChargeOrder) -> Answer<'_, ChargeWord> {
        Box::pin(self.call("bank.charge", Box::pin(async move { self.take(order).await })))
    }

    fn query_charge(&self, charge: ChargeId) -> Answer<'_, ChargeWord> {
        let ask = Box::pin(async move { self.world.bank.query_charge(charge).await });
        Box::pin(self.call("bank.query_charge", ask))
    }

    fn verify(&self, callback: &RawCallback<'_>) -> Result<Verified, Error> {
        let event = callback.headers.iter().find(|(name, _)| name == EVENT_HEADER);
        let (_, event) = event.ok_or_else(|| Error::new(Code::BadSignature, "a callback names its event"))?;
        Ok(Verified { event: Arc::from(event.as_str()), word: wire::decode_word(callback.body)? })
    }
}
