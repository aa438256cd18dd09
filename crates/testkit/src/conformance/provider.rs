//! What every [`Provider`] promises, as a table of cases.
//!
//! A provider is played with through the [`Sandbox`] port of the bank behind it, so each case can put the truth where it
//! wants it and then listen to what the provider says. Invariants: a case gets a fresh bank, and moods in which every
//! call is answered unless the case changes them. Deliberately absent: a runtime — answers are awaited on the calling
//! thread, and a bank that waits for a time-out brings its own.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use onceward_domain::error::{Class, Code};
use onceward_domain::id::{ChargeId, GroupId, IdKind, PaymentId, PurchaseId, RefundId, UserId};
use onceward_domain::money::{Currency, Money};
use onceward_domain::payment::{ChargeWord, Word};
use onceward_domain::ports::provider::{ChargeOrder, PaymentOrder, Provider, RawCallback, RefundOrder};
use onceward_domain::ports::sandbox::{
    Act, BankPayment, BankStatus, Calling, Deed, Mood, MoodChange, MoveKind, Sandbox,
};
use onceward_domain::time::{LATEST, Millis, Timestamp};

use crate::block_on::block_on;

/// A provider and the bank behind it.
pub struct Stage {
    /// The provider.
    pub provider: Arc<dyn Provider>,
    /// Its bank.
    pub bank: Arc<dyn Sandbox>,
}

/// Makes a fresh, empty bank.
pub type MakeStage<'a> = &'a dyn Fn() -> Stage;

/// One promise.
#[derive(Clone, Copy)]
pub struct Case {
    /// Requirement or scenario, and what is shown.
    pub name: &'static str,
    check: fn(&Stage),
}

impl std::fmt::Debug for Case {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Case").field("name", &self.name).finish_non_exhaustive()
    }
}

/// Every case, in reading order.
pub const CASES: &[Case] = &[
    Case { name: "ot_03_announcing_twice_is_announcing_once", check: announcing },
    Case { name: "ot_03_another_amount_is_not_a_repeat", check: another_amount },
    Case { name: "ot_03_an_attempt_nobody_announced_is_never_called_unpaid", check: never_announced },
    Case { name: "ot_05_closing_leaves_a_tombstone", check: tombstone },
    Case { name: "ot_03_every_end_has_its_word", check: every_end },
    Case { name: "ot_07_money_may_move_after_a_close", check: after_close },
    Case { name: "ot_08_the_amount_is_the_one_that_was_taken", check: other_amount },
    Case { name: "ot_03_transactions_are_unique", check: transactions },
    Case { name: "ot_09_a_refund_is_known_by_its_id", check: refund_repeats },
    Case { name: "ot_09_refunds_never_pass_what_was_taken", check: refund_sum },
    Case { name: "ot_09_a_declined_refund_stays_declined", check: refund_declined },
    Case { name: "gs_04_a_charge_is_known_by_its_id", check: charge_repeats },
    Case { name: "gs_04_another_customer_or_amount_is_not_a_repeat", check: charge_differs },
    Case { name: "gs_04_a_declined_charge_stays_declined", check: charge_declined },
    Case { name: "gs_04_a_charge_nobody_asked_for_is_unheard_and_asking_makes_none", check: charge_unheard },
    Case { name: "gs_04_a_lost_answer_is_found_by_asking", check: charge_answer_lost },
    Case { name: "gs_04_a_charge_that_met_silence_or_an_error_took_nothing", check: charge_not_taken },
    Case { name: "dr_02_silence_is_an_unknown_outcome", check: silence },
    Case { name: "dr_02_a_lost_answer_may_hide_an_effect", check: lost_answers },
    Case { name: "dr_02_an_error_has_no_effect", check: errors },
    Case { name: "se_02_what_nobody_signed_is_refused", check: unsigned },
];

/// Runs every case, each on a fresh bank, and panics at the end with the names of those that failed.
///
/// # Panics
/// Where a case fails.
pub fn run_all(make: MakeStage<'_>) {
    let failed: Vec<&str> = CASES
        .iter()
        .filter(|case| catch_unwind(AssertUnwindSafe(|| (case.check)(&make()))).is_err())
        .map(|case| case.name)
        .collect();
    assert!(failed.is_empty(), "the provider breaks {} promises: {failed:#?}", failed.len());
}

fn payment(number: u8) -> PaymentId {
    PaymentId(PurchaseId::from_digest([number; 16], 1).with_kind(IdKind::Payment))
}

fn refund(number: u8) -> RefundId {
    RefundId(PurchaseId::from_digest([number; 16], 1).with_kind(IdKind::Refund))
}

fn cny(amount: i64) -> Money {
    Money::new(amount, Currency::CNY).expect("within the limit")
}

fn charge(number: u8) -> ChargeId {
    ChargeId::settling(&GroupId::trusted("g"), &customer(number))
}

fn customer(number: u8) -> UserId {
    UserId::trusted(&format!("u-{number}"))
}

const PAY: Deed = Deed::Succeed { amount: None, force: false };
const FORCE: Deed = Deed::Succeed { amount: None, force: true };

impl Stage {
    fn announce(&self, number: u8) {
        let order = PaymentOrder { payment: payment(number), amount: cny(100) };
        let client = block_on(self.provider.create(order)).expect("a payment is announced");
        assert!(client.starts_with('{') && client.ends_with('}'), "not an object: {client}");
    }

    fn play(&self, number: u8, deed: Deed) -> Result<BankPayment, Code> {
        let act = Act { deed, calling: Calling::Drop, delay: Millis(0) };
        block_on(self.bank.play(payment(number), act)).map_err(|error| error.code())
    }

    fn paid(&self, number: u8) {
        self.announce(number);
        self.play(number, PAY).expect("an open payment can be paid");
    }

    fn query(&self, number: u8) -> Word {
        block_on(self.provider.query(payment(number))).expect("it answers")
    }

    fn close(&self, number: u8) -> Word {
        block_on(self.provider.close(payment(number))).expect("it answers")
    }

    fn refund(&self, number: u8, of: u8, amount: i64) -> Result<Word, Code> {
        let order = RefundOrder { refund: refund(number), payment: payment(of), amount: cny(amount) };
        block_on(self.provider.refund(order)).map_err(|error| error.code())
    }

    fn charge(&self, number: u8, of: u8, amount: i64) -> Result<ChargeWord, Code> {
        let order = ChargeOrder { charge: charge(number), customer: customer(of), amount: cny(amount) };
        block_on(self.provider.charge(order)).map_err(|error| error.code())
    }

    fn query_charge(&self, number: u8) -> Result<ChargeWord, Code> {
        block_on(self.provider.query_charge(charge(number))).map_err(|error| error.code())
    }

    /// What the customer was really charged.
    fn charged(&self, of: u8) -> Vec<(ChargeId, i64)> {
        let found = block_on(self.bank.charges(customer(of))).expect("it answers");
        found.into_iter().map(|one| (one.charge, one.amount.amount())).collect()
    }

    fn moods(&self, change: MoodChange) {
        block_on(self.bank.set_moods(change)).expect("moods change");
    }

    fn bank(&self, number: u8) -> BankPayment {
        block_on(self.bank.payment(payment(number))).expect("the bank knows it")
    }

    fn moves(&self) -> Vec<(MoveKind, i64)> {
        let lines = block_on(self.bank.statement(Timestamp(0), LATEST)).expect("it has a statement");
        lines.iter().map(|line| (line.kind, line.amount.amount())).collect()
    }
}

fn announcing(stage: &Stage) {
    stage.announce(1);
    stage.announce(1);
    assert_eq!(stage.query(1), Word::Processing { payment: payment(1) });
    let known = stage.bank(1);
    assert_eq!(
        (known.status, known.amount, known.refunded),
        (BankStatus::Open, Some(cny(100)), Some(cny(0)))
    );
    stage.play(1, PAY).expect("it is open");
    stage.announce(1);
    assert_eq!(stage.bank(1).status, BankStatus::Succeeded, "a late repeat opens nothing");
}

fn another_amount(stage: &Stage) {
    stage.announce(1);
    let order = PaymentOrder { payment: payment(1), amount: cny(99) };
    let refused = block_on(stage.provider.create(order)).expect_err("it is not the same payment");
    assert_eq!(refused.class(), Class::Rejected);
    assert_eq!(stage.bank(1).amount, Some(cny(100)));
}

fn never_announced(stage: &Stage) {
    assert_eq!(
        stage.query(1),
        Word::Processing { payment: payment(1) },
        "its announcement may be on its way"
    );
    assert!(block_on(stage.bank.payment(payment(1))).is_err(), "asking makes nothing");
    assert_eq!(stage.play(1, PAY), Err(Code::NotFound));
}

fn tombstone(stage: &Stage) {
    assert_eq!(stage.close(1), Word::Closed { payment: payment(1) });
    stage.announce(1);
    assert_eq!(stage.query(1), Word::Closed { payment: payment(1) }, "a late announcement opens nothing");
    assert_eq!(stage.play(1, PAY), Err(Code::Differs));
}

fn every_end(stage: &Stage) {
    stage.paid(1);
    let Word::Succeeded { payment: of, amount, transaction } = stage.query(1) else { panic!("it was paid") };
    assert_eq!((of, amount), (payment(1), cny(100)));
    assert!(!transaction.is_empty());
    assert!(matches!(stage.close(1), Word::Succeeded { .. }), "closing says what is, and changes nothing");
    stage.announce(2);
    stage.play(2, Deed::Fail).expect("it is open");
    assert_eq!(stage.query(2), Word::Failed { payment: payment(2) });
    assert_eq!(stage.close(2), Word::Failed { payment: payment(2) });
    stage.announce(3);
    assert_eq!(stage.close(3), Word::Closed { payment: payment(3) });
    assert_eq!(stage.query(3), Word::Closed { payment: payment(3) });
    assert_eq!(stage.play(1, Deed::Fail), Err(Code::Differs), "what was paid cannot fail");
}

fn after_close(stage: &Stage) {
    stage.announce(1);
    stage.close(1);
    assert_eq!(stage.play(1, PAY), Err(Code::Differs));
    stage.play(1, FORCE).expect("as real providers sometimes do");
    assert!(matches!(stage.query(1), Word::Succeeded { .. }));
    stage.announce(2);
    stage.play(2, Deed::Fail).expect("it is open");
    stage.play(2, FORCE).expect("a provider may correct itself");
    assert!(matches!(stage.query(2), Word::Succeeded { .. }));
    assert_eq!(stage.moves(), [(MoveKind::Payment, 100); 2]);
}

fn other_amount(stage: &Stage) {
    stage.announce(1);
    let less = Deed::Succeed { amount: Some(cny(99)), force: false };
    stage.play(1, less).expect("it is open");
    assert!(matches!(stage.query(1), Word::Succeeded { amount, .. } if amount == cny(99)));
    stage.play(1, less).expect("a repeat is harmless");
    stage.play(1, PAY).expect("so is one that names no amount");
    let more = Deed::Succeed { amount: Some(cny(101)), force: true };
    assert_eq!(stage.play(1, more), Err(Code::Differs), "money moves once");
    assert_eq!(stage.moves(), [(MoveKind::Payment, 99)]);
}

fn transactions(stage: &Stage) {
    let mut seen = Vec::new();
    for number in 1..=9 {
        stage.paid(number);
        seen.push(stage.bank(number).transaction.expect("money was taken"));
    }
    seen.sort();
    seen.dedup();
    assert_eq!(seen.len(), 9);
}

fn refund_repeats(stage: &Stage) {
    stage.paid(1);
    for _ in 0..3 {
        assert_eq!(stage.refund(1, 1, 60), Ok(Word::Refunded { refund: refund(1) }));
    }
    assert_eq!(stage.bank(1).refunded, Some(cny(60)));
    assert_eq!(stage.refund(1, 1, 59), Err(Code::Differs), "one id is one refund");
    assert_eq!(stage.moves(), [(MoveKind::Payment, 100), (MoveKind::Refund, 60)]);
}

fn refund_sum(stage: &Stage) {
    stage.paid(1);
    let refused = |number| Ok(Word::RefundFailed { refund: refund(number) });
    assert_eq!(stage.refund(1, 1, 101), refused(1));
    assert_eq!(stage.refund(2, 1, 60), Ok(Word::Refunded { refund: refund(2) }));
    assert_eq!(stage.refund(3, 1, 60), refused(3));
    assert_eq!(stage.refund(4, 1, 40), Ok(Word::Refunded { refund: refund(4) }));
    assert_eq!(stage.refund(5, 1, 1), refused(5));
    stage.announce(2);
    assert_eq!(stage.refund(6, 2, 1), refused(6), "nothing was taken");
    assert_eq!(stage.refund(7, 3, 1), refused(7), "nobody knows it");
    assert_eq!(stage.bank(1).refunded, Some(cny(100)));
}

fn refund_declined(stage: &Stage) {
    stage.paid(1);
    let failed = Ok(Word::RefundFailed { refund: refund(1) });
    stage.moods(MoodChange { refund: Some(Mood::Decline), ..MoodChange::default() });
    assert_eq!(stage.refund(1, 1, 60), failed);
    stage.moods(MoodChange { refund: Some(Mood::Ok), ..MoodChange::default() });
    assert_eq!(stage.refund(1, 1, 60), failed, "the word was given");
    assert_eq!(stage.refund(2, 1, 60), Ok(Word::Refunded { refund: refund(2) }));
}

fn charge_repeats(stage: &Stage) {
    let Ok(ChargeWord::Taken { transaction, amount }) = stage.charge(1, 1, 60) else { panic!("it is taken") };
    assert_eq!(amount, cny(60));
    for _ in 0..3 {
        let same = ChargeWord::Taken { transaction: transaction.clone(), amount };
        assert_eq!(stage.charge(1, 1, 60), Ok(same.clone()));
        assert_eq!(stage.query_charge(1), Ok(same));
    }
    let Ok(ChargeWord::Taken { transaction: second, .. }) = stage.charge(2, 1, 60) else {
        panic!("so is it")
    };
    assert_ne!(transaction, second);
    assert_eq!(stage.charged(1), [(charge(1), 60), (charge(2), 60)]);
    assert_eq!(stage.charged(2), []);
    assert_eq!(stage.moves(), [(MoveKind::Charge, 60); 2]);
}

fn charge_differs(stage: &Stage) {
    stage.charge(1, 1, 60).expect("it is taken");
    assert_eq!(stage.charge(1, 1, 59), Err(Code::Differs));
    assert_eq!(stage.charge(1, 2, 60), Err(Code::Differs));
    assert_eq!(stage.charged(1), [(charge(1), 60)]);
    assert_eq!(stage.charged(2), []);
}

fn charge_declined(stage: &Stage) {
    stage.charge(1, 1, 60).expect("it is taken");
    stage.moods(MoodChange { charge: Some(Mood::Decline), ..MoodChange::default() });
    assert_eq!(stage.charge(2, 2, 60), Ok(ChargeWord::Declined));
    assert!(matches!(stage.charge(1, 1, 60), Ok(ChargeWord::Taken { .. })), "the word was given");
    stage.moods(MoodChange { charge: Some(Mood::Ok), ..MoodChange::default() });
    assert_eq!(stage.charge(2, 2, 60), Ok(ChargeWord::Declined), "the word was given");
    assert_eq!(stage.query_charge(2), Ok(ChargeWord::Declined));
    assert_eq!(stage.charged(2), []);
    assert_eq!(stage.moves(), [(MoveKind::Charge, 60)]);
}

fn charge_unheard(stage: &Stage) {
    for _ in 0..2 {
        assert_eq!(stage.query_charge(1), Ok(ChargeWord::Unheard));
    }
    assert!(matches!(stage.charge(1, 1, 60), Ok(ChargeWord::Taken { .. })));
}

fn charge_answer_lost(stage: &Stage) {
    stage.moods(MoodChange { charge: Some(Mood::TimeoutAfterEffect), ..MoodChange::default() });
    assert_eq!(stage.charge(1, 1, 60), Err(Code::OutcomeUnknown));
    assert_eq!(stage.charge(1, 1, 60), Err(Code::OutcomeUnknown));
    assert_eq!(stage.charged(1), [(charge(1), 60)], "it happened, once");
    assert!(matches!(stage.query_charge(1), Ok(ChargeWord::Taken { amount, .. }) if amount == cny(60)));
    stage.moods(MoodChange { charge: Some(Mood::Ok), ..MoodChange::default() });
    assert!(matches!(stage.charge(1, 1, 60), Ok(ChargeWord::Taken { .. })));
    assert_eq!(stage.charged(1), [(charge(1), 60)]);
}

fn charge_not_taken(stage: &Stage) {
    for (mood, code) in [(Mood::Timeout, Code::OutcomeUnknown), (Mood::Error, Code::Unavailable)] {
        stage.moods(MoodChange { charge: Some(mood), query: Some(mood), ..MoodChange::default() });
        assert_eq!(stage.charge(1, 1, 60), Err(code));
        assert_eq!(stage.query_charge(1), Err(code));
        stage.moods(MoodChange { query: Some(Mood::Ok), ..MoodChange::default() });
        assert_eq!(stage.query_charge(1), Ok(ChargeWord::Unheard));
        assert_eq!(stage.charged(1), []);
    }
}

fn silence(stage: &Stage) {
    stage.paid(1);
    stage.announce(2);
    let mute = Some(Mood::Timeout);
    stage.moods(MoodChange { query: mute, close: mute, refund: mute, charge: None });
    let class = |error: onceward_domain::error::Error| error.class();
    let unknown = Err(Class::UnknownOutcome);
    assert_eq!(block_on(stage.provider.query(payment(1))).map_err(class), unknown);
    assert_eq!(block_on(stage.provider.close(payment(2))).map_err(class), unknown);
    assert_eq!(stage.refund(1, 1, 60), Err(Code::OutcomeUnknown));
    assert_eq!(stage.bank(2).status, BankStatus::Open);
    assert_eq!(stage.bank(1).refunded, Some(cny(0)));
}

fn lost_answers(stage: &Stage) {
    stage.paid(1);
    stage.moods(MoodChange { refund: Some(Mood::TimeoutAfterEffect), ..MoodChange::default() });
    assert_eq!(stage.refund(1, 1, 60), Err(Code::OutcomeUnknown));
    assert_eq!(stage.refund(1, 1, 60), Err(Code::OutcomeUnknown));
    assert_eq!(stage.bank(1).refunded, Some(cny(60)), "it happened, once");
    stage.moods(MoodChange { refund: Some(Mood::Ok), ..MoodChange::default() });
    assert_eq!(stage.refund(1, 1, 60), Ok(Word::Refunded { refund: refund(1) }));
    assert_eq!(stage.bank(1).refunded, Some(cny(60)));
}

fn errors(stage: &Stage) {
    stage.paid(1);
    stage.announce(2);
    let cross = Some(Mood::Error);
    stage.moods(MoodChange { query: cross, close: cross, refund: cross, charge: None });
    let class = |error: onceward_domain::error::Error| error.class();
    assert_eq!(block_on(stage.provider.query(payment(1))).map_err(class), Err(Class::Retryable));
    assert_eq!(block_on(stage.provider.close(payment(2))).map_err(class), Err(Class::Retryable));
    assert_eq!(stage.refund(1, 1, 60), Err(Code::Unavailable));
    assert_eq!(stage.bank(2).status, BankStatus::Open);
    assert_eq!(stage.bank(1).refunded, Some(cny(0)));
}

fn unsigned(stage: &Stage) {
    let body = br#"{"event_id":"e","type":"payment.failed"}"#;
    let callback = RawCallback { headers: &[], body, now: Timestamp(1_794_355_200_000) };
    let refused = stage.provider.verify(&callback).expect_err("anybody could have sent it");
    assert_eq!(refused.code(), Code::BadSignature);
}
