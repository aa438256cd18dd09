//! Group orders, requirement by requirement (requirements.md §5; scenarios C80 to C82).

mod house;

use std::sync::Arc;

use house::circle::{Circle, DEADLINE, cny, g, terms, user};
use onceward::operations::group::{self, GroupTerms, Join, Put};
use onceward_domain::due::Lane;
use onceward_domain::error::Code;
use onceward_domain::group::{PARTICIPANTS_LIMIT, WALLET};
use onceward_domain::id::ChargeId;
use onceward_domain::machine::group::Group as Status;
use onceward_domain::machine::group_charge::GroupCharge as Charge;
use onceward_domain::money::{Currency, Money};
use onceward_domain::notice::NoticeKind;
use onceward_domain::payment::CaseKind;
use onceward_domain::ports::due_queue::{Due, NewWork, Put as Added};
use onceward_domain::ports::provider::{ChargeOrder, Provider};
use onceward_domain::ports::store::PageRequest;
use onceward_domain::time::{Millis, Timestamp};
use onceward_testkit::bank::Mood;
use onceward_testkit::block_on::block_on;

fn after(length: i64) -> Timestamp {
    DEADLINE.plus(Millis(length))
}

fn states(charges: &[(String, Charge)]) -> Vec<Charge> {
    charges.iter().map(|(_, charge)| *charge).collect()
}

#[test]
fn gs_01_a_group_is_made_once_and_never_changes() {
    let circle = Circle::empty();
    let (put, made) = circle.put(terms("sandbox", 2)).unwrap();
    assert_eq!((put, made.status), (Put::Created, Status::Open));
    assert_eq!(circle.put(terms("sandbox", 2)).unwrap().0, Put::Unchanged);
    let others = [
        GroupTerms { leader: user("other"), ..terms("sandbox", 2) },
        GroupTerms { deadline: after(1), ..terms("sandbox", 2) },
        GroupTerms { currency: Currency::KWD, ..terms("sandbox", 2) },
        terms(WALLET, 2),
        terms("sandbox", 3),
    ];
    for other in others {
        assert_eq!(circle.put(other).unwrap_err(), Code::Differs);
    }
    assert_eq!(circle.put(terms("nobody", 2)).unwrap_err(), Code::UnknownProvider);
    circle.at(DEADLINE);
    assert_eq!(
        circle.put(terms("sandbox", 2)).unwrap().0,
        Put::Unchanged,
        "a repeat is an answer, also late"
    );
    let late = GroupTerms { id: onceward_domain::id::GroupId::trusted("late"), ..terms("sandbox", 2) };
    assert_eq!(circle.put(late).unwrap_err(), Code::Invalid, "its deadline has come");
}

#[test]
fn gs_01_people_join_and_leave_while_it_is_open() {
    let circle = Circle::with("sandbox", 1, &["ann", "bob"]);
    assert_eq!(circle.join("ann", 10), Ok(Put::Unchanged));
    assert_eq!(circle.join("ann", 11), Err(Code::Differs));
    assert_eq!(circle.join("cid", 0), Err(Code::Invalid));
    let foreign = Join { group: g(), user: user("cid"), amount: Money::new(1, Currency::KWD).unwrap() };
    assert_eq!(block_on(group::join(&circle.engine, foreign)).unwrap_err().code(), Code::Invalid);
    let nowhere =
        Join { group: onceward_domain::id::GroupId::trusted("none"), user: user("cid"), amount: cny(1) };
    assert_eq!(block_on(group::join(&circle.engine, nowhere)).unwrap_err().code(), Code::NotFound);
    assert_eq!(circle.leave("cid"), Err(Code::NotFound));
    assert_eq!(circle.leave("bob"), Ok(()));
    assert_eq!(circle.leave("bob"), Err(Code::NotFound));
    assert_eq!(circle.join("bob", 7), Ok(Put::Created), "another amount is leaving and joining");
    assert_eq!(circle.group().participants, 2);
    assert_eq!(states(&circle.charges()), [Charge::None; 2]);
    circle.assert_invariants();
}

#[test]
fn c_82_one_clock_decides_at_the_end_minus_one_zero_and_plus_one() {
    for (offset, is_open) in [(-1, true), (0, false), (1, false)] {
        let circle = Circle::with("sandbox", 1, &["ann", "bob"]);
        circle.clock.set(after(offset));
        // Nobody has written the close yet: the time alone decides.
        assert_eq!(circle.status(), Status::Open);
        assert_eq!(circle.join("cid", 5).is_ok(), is_open, "joining at {offset}");
        assert_eq!(circle.leave("bob").is_ok(), is_open, "leaving at {offset}");
        if !is_open {
            assert_eq!(circle.join("dan", 5), Err(Code::GroupClosed));
            assert_eq!(circle.leave("ann"), Err(Code::GroupClosed));
            assert_eq!(circle.join("ann", 10), Ok(Put::Unchanged), "who takes part is told so");
        }
        circle.rest();
        assert_eq!(circle.status() == Status::Open, is_open, "settling at {offset}");
        assert_eq!(circle.taken().is_empty(), is_open);
    }
}

#[test]
fn gs_01_gs_04_a_group_closes_charges_and_settles() {
    let circle = Circle::with("sandbox", 2, &["ann", "bob"]);
    circle.at(DEADLINE);
    let group = circle.group();
    assert_eq!((group.status, group.attempts, group.next_attempt_at), (Status::Settled, 1, None));
    assert_eq!(states(&circle.charges()), [Charge::Charged; 2]);
    let ids: Vec<String> = circle.bank.charges().keys().map(ToString::to_string).collect();
    assert_eq!(ids, ["settle:g:ann", "settle:g:bob"]);
    let causes: Vec<&str> = circle.timeline().iter().map(|line| line.cause).collect();
    assert_eq!(causes, ["made", "closed", "settled"]);
    assert_eq!(circle.join("cid", 5), Err(Code::GroupClosed), "C81: settled stays settled");
    assert_eq!(circle.leave("ann"), Err(Code::GroupClosed));
    circle.at(after(3_600_000));
    assert_eq!(circle.group(), group);
    assert!(circle.told(NoticeKind::GroupFailed).is_empty());
    circle.assert_invariants();
}

#[test]
fn gs_07_c_80_too_few_at_the_deadline_nobody_is_charged_and_all_are_told_once() {
    for via in ["sandbox", WALLET] {
        let circle = Circle::with(via, 5, &["ann", "bob", "cid", "dan"]);
        circle.give("ann", 100);
        circle.at(DEADLINE);
        circle.at(after(100_000));
        assert_eq!(circle.status(), Status::Cancelled);
        assert_eq!(states(&circle.charges()), [Charge::None; 4]);
        assert!(circle.taken().is_empty());
        assert_eq!(circle.balance("ann"), 100);
        assert_eq!(circle.told(NoticeKind::GroupCancelled), ["ann", "bob", "cid", "dan", "lea"]);
        assert_eq!(circle.settle_by_hand("k").body, b"group_not_retryable");
        circle.assert_invariants();
    }
    let nobody = Circle::with("sandbox", 1, &[]);
    nobody.at(DEADLINE);
    assert_eq!(
        (nobody.status(), nobody.told(NoticeKind::GroupCancelled)),
        (Status::Cancelled, vec!["lea".to_owned()])
    );
}

#[test]
fn gs_02_a_settlement_takes_open_and_closed_groups_and_skips_what_is_settled() {
    let circle = Circle::with("sandbox", 1, &["ann", "bob"]);
    circle.bank.when_charging(Mood::Away, false);
    assert_eq!(circle.status(), Status::Open);
    circle.at(DEADLINE);
    assert_eq!(circle.status(), Status::Closed, "the first turn found it open");
    circle.bank.when_charging(Mood::Ok, false);
    circle.at(after(1_000));
    let settled = circle.group();
    assert_eq!((settled.status, settled.attempts), (Status::Settled, 2), "the second resumed at the charge");
    let causes: Vec<&str> = circle.timeline().iter().map(|line| line.cause).collect();
    assert_eq!(causes, ["made", "closed", "settled"], "and did not close again");
    // Work for it comes once more, from wherever.
    let again = NewWork { member: Arc::from("g"), due: Due::After(Millis(0)), body: Vec::new() };
    let put = circle.engine.queue().put(Lane::new(Lane::SETTLEMENT), vec![again]);
    assert_eq!(block_on(put).unwrap(), [Added::Added]);
    circle.bank.when_charging(Mood::Ok, true);
    circle.rest();
    assert_eq!(circle.group(), settled);
    assert_eq!(circle.taken(), [("ann".to_owned(), 1), ("bob".to_owned(), 1)]);
    let lanes = block_on(circle.store.lanes()).unwrap();
    assert!(lanes.iter().all(|one| one.lane.as_str() != Lane::SETTLEMENT || one.size == 0), "{lanes:?}");
    circle.assert_invariants();
}

#[test]
fn gs_03_gs_05_wallets_are_charged_with_the_settlement_or_declined_for_good() {
    let circle = Circle::with_wallets(&[("ann", 10), ("bob", 9), ("cid", 0), ("dan", 25)]);
    circle.at(DEADLINE);
    let group = circle.group();
    assert_eq!((group.status, group.attempts), (Status::Settled, 1), "no funds burn no tries");
    let expected = [Charge::Charged, Charge::Declined, Charge::Declined, Charge::Charged];
    assert_eq!(states(&circle.charges()), expected);
    let balances = ["ann", "bob", "cid", "dan"].map(|name| circle.balance(name));
    assert_eq!(balances, [0, 9, 0, 15], "one credit for each minor unit");
    let entry = circle.entries("ann").pop().unwrap();
    assert_eq!((entry.amount, entry.reference.as_deref()), (-10, Some("settle:g:ann")));
    let transaction =
        circle.view().participants.iter().find(|one| one.user == user("ann")).unwrap().transaction.clone();
    assert_eq!(transaction.as_deref(), Some(&*entry.id().to_string()));
    assert_eq!(circle.told(NoticeKind::GroupChargeDeclined), ["bob", "cid", "lea"]);
    circle.give("bob", 100);
    circle.at(after(100_000));
    assert_eq!(circle.balance("bob"), 109, "declined is final");
    circle.assert_invariants();
}

#[test]
fn gs_05_a_declined_charge_is_final_and_burns_no_tries() {
    let circle = Circle::with("sandbox", 1, &["ann", "bob"]);
    circle.bank.when_charging(Mood::Ok, true);
    circle.at(DEADLINE);
    let group = circle.group();
    assert_eq!((group.status, group.attempts, group.last_error), (Status::Settled, 1, None));
    assert_eq!(states(&circle.charges()), [Charge::Declined; 2]);
    circle.bank.when_charging(Mood::Ok, false);
    circle.at(after(100_000));
    assert_eq!(circle.taken().iter().map(|(_, times)| times).sum::<u32>(), 0);
    assert_eq!(circle.told(NoticeKind::GroupChargeDeclined), ["ann", "bob", "lea"]);
    assert_eq!(circle.settle_by_hand("k").body, b"group_not_retryable");
}

#[test]
fn gs_04_a_lost_answer_is_asked_about_and_never_charged_again_blind() {
    let circle = Circle::with("sandbox", 1, &["ann", "bob"]);
    circle.bank.when_charging(Mood::SilentAfterEffect, false);
    circle.bank.when_asked(Mood::Silent, Mood::Ok);
    circle.at(DEADLINE);
    let group = circle.group();
    assert_eq!(
        (group.status, group.attempts, group.next_attempt_at),
        (Status::Closed, 1, Some(after(1_000)))
    );
    assert_eq!(&*group.last_error.unwrap(), "sandbox answered none of 2 requests");
    assert_eq!(states(&circle.charges()), [Charge::Unknown; 2]);
    // From now on a charge would be declined: only who asks learns that the money was taken.
    circle.bank.when_asked(Mood::Ok, Mood::Ok);
    circle.bank.when_charging(Mood::Silent, true);
    circle.at(after(1_000));
    assert_eq!((circle.status(), circle.group().attempts), (Status::Settled, 2));
    assert_eq!(states(&circle.charges()), [Charge::Charged; 2]);
    assert_eq!(circle.taken(), [("ann".to_owned(), 1), ("bob".to_owned(), 1)]);
}

#[test]
fn gs_04_a_retry_charges_only_those_who_are_not_charged_yet() {
    let circle = Circle::with("sandbox", 1, &["ann", "bob", "cid"]);
    let early = ChargeOrder {
        charge: ChargeId::settling(&g(), &user("bob")),
        customer: user("bob"),
        amount: cny(10),
    };
    circle.bank.when_charging(Mood::Away, false);
    circle.at(DEADLINE);
    assert_eq!(states(&circle.charges()), [Charge::Pending; 3], "the provider took no request");
    // One got through though its first line was bad.
    circle.bank.when_charging(Mood::Ok, false);
    block_on(circle.bank.charge(early)).unwrap();
    circle.at(after(1_000));
    assert_eq!(circle.status(), Status::Settled);
    assert_eq!(circle.taken().iter().map(|(_, times)| *times).collect::<Vec<_>>(), [1, 1, 1]);
}

#[test]
fn gs_04_another_amount_under_the_id_is_a_case_and_no_charge() {
    let circle = Circle::with("sandbox", 1, &["ann"]);
    let other =
        ChargeOrder { charge: ChargeId::settling(&g(), &user("ann")), customer: user("ann"), amount: cny(9) };
    block_on(circle.bank.charge(other)).unwrap();
    circle.at(DEADLINE);
    circle.at(after(1_000));
    assert_eq!((circle.status(), states(&circle.charges())), (Status::Closed, vec![Charge::Unknown]));
    let cases = block_on(circle.store.list_cases(PageRequest { limit: 9, before: None })).unwrap();
    let found: Vec<_> = cases.iter().map(|(_, case)| (case.kind, &*case.subject)).collect();
    assert_eq!(found, [(CaseKind::AmountMismatch, "settle:g:ann")]);
}

#[test]
fn gs_01_gs_05_lq_04_transient_failures_wait_1_2_4_8_16_s_and_then_it_fails_and_two_are_told() {
    let circle = Circle::with("sandbox", 1, &["ann"]);
    circle.bank.when_charging(Mood::Away, false);
    let mut now = DEADLINE;
    circle.at(now);
    for (number, wait) in [1_000, 2_000, 4_000, 8_000, 16_000].into_iter().enumerate() {
        let group = circle.group();
        let attempts = u32::try_from(number).unwrap() + 1;
        assert_eq!((group.status, group.attempts), (Status::Closed, attempts));
        assert_eq!(group.next_attempt_at, Some(now.plus(Millis(wait))));
        circle.at(now.plus(Millis(wait - 1)));
        assert_eq!(circle.group(), group, "not a millisecond early");
        now = now.plus(Millis(wait));
        assert!(circle.told(NoticeKind::GroupFailed).is_empty());
        circle.at(now);
    }
    let failed = circle.group();
    assert_eq!((failed.status, failed.attempts, failed.next_attempt_at), (Status::Failed, 6, None));
    assert_eq!(circle.told(NoticeKind::GroupFailed), ["administrators", "lea"]);
    circle.bank.when_charging(Mood::Ok, false);
    circle.at(now.plus(Millis(1_000_000)));
    assert_eq!(circle.group(), failed, "GS-06: the engine never retries it");
    assert!(circle.taken().is_empty());
    circle.assert_invariants();
}

#[test]
fn gs_06_a_person_gives_a_failed_group_another_round_and_it_is_recorded_who() {
    let circle = Circle::with("sandbox", 1, &["ann"]);
    assert_eq!(circle.settle_by_hand("early").body, b"group_not_retryable");
    circle.bank.when_charging(Mood::Away, false);
    for time in [0, 1_000, 3_000, 7_000, 15_000, 31_000] {
        circle.at(after(time));
    }
    assert_eq!(circle.status(), Status::Failed);
    let answer = circle.settle_by_hand("k");
    assert_eq!((answer.status, answer.body), (201, b"Closed".to_vec()));
    assert!(circle.settle_by_hand("k").replayed);
    assert_eq!(circle.settle_by_hand("k2").body, b"group_not_retryable", "it is being settled");
    for time in [0, 1_000, 3_000, 7_000, 15_000, 31_000] {
        circle.at(after(100_000 + time));
    }
    assert_eq!(circle.status(), Status::Failed, "a round has as many attempts as the first");
    assert_eq!(circle.told(NoticeKind::GroupFailed).len(), 4, "each failure is told, once to each");
    circle.bank.when_charging(Mood::Ok, false);
    circle.settle_by_hand("k3");
    circle.rest();
    assert_eq!((circle.status(), circle.group().attempts), (Status::Settled, 1));
    assert_eq!(circle.taken(), [("ann".to_owned(), 1)]);
    let by: Vec<_> = circle.timeline().into_iter().filter(|line| line.cause == "retried").collect();
    assert!(by.len() == 2 && by.iter().all(|line| &*line.actor == "ops-ann"), "{by:?}");
    assert_eq!(circle.settle_by_hand("k4").body, b"group_not_retryable");
}

#[test]
fn lq_03_leases_that_ran_out_use_up_the_same_tries() {
    let circle = Circle::with("sandbox", 1, &["ann"]);
    circle.clock.set(DEADLINE);
    for _ in 0..6 {
        let request = onceward_domain::due::ClaimRequest {
            lane: onceward_domain::due::Lane::new(onceward_domain::due::Lane::SETTLEMENT),
            limit: 1,
            lease: Millis(1_000),
            sequence: onceward_domain::due::Sequence::ByDue,
        };
        assert_eq!(block_on(circle.store.claim_due(request)).unwrap().len(), 1, "and its worker dies");
        circle.wait(1_000);
    }
    circle.rest();
    let group = circle.group();
    assert_eq!((group.status, group.attempts), (Status::Failed, 6));
    assert_eq!(circle.told(NoticeKind::GroupFailed), ["administrators", "lea"]);
    assert!(circle.taken().is_empty());
    circle.settle_by_hand("k");
    circle.rest();
    assert_eq!(circle.status(), Status::Settled);
}

#[test]
fn gs_01_a_group_has_as_many_participants_as_one_transaction_can_charge() {
    let circle = Circle::of_many("sandbox", PARTICIPANTS_LIMIT);
    assert_eq!(circle.join("one-more", 1), Err(Code::GroupFull));
    let arc: Arc<str> = Arc::from("sandbox");
    assert_eq!(circle.group().terms.charge_via, arc);
}
