//! Records by age, and forgetting them (design.md §7).

use std::sync::Arc;

use onceward_domain::changes::{Answered, ChangeSet};
use onceward_domain::error::Code;
use onceward_domain::facts::Need;
use onceward_domain::machine::notice::Notice as Status;
use onceward_domain::notice::{About, Notice, NoticeKind, Recipient};
use onceward_domain::payment::Callback;
use onceward_domain::retention::{Aged, Record, RecordKind};
use onceward_domain::time::{Millis, Timestamp};

use super::Case;
use super::ground::{Ground, START};
use crate::block_on::block_on;

pub(super) const CASES: &[Case] = &[
    Case::new("records_are_listed_oldest_first_behind_any_of_them", listed),
    Case::new("se_04_the_answer_of_an_effect_is_not_listed", lasting),
    Case::new("what_is_forgotten_is_gone_and_its_neighbours_are_not", gone),
    Case::new("a_record_that_is_not_as_it_was_seen_is_not_forgotten_nor_is_any_other", guarded),
    Case::new("a_key_that_was_forgotten_may_be_answered_anew", anew),
];

/// Records of each kind; some are of one age.
const AGES: [i64; 5] = [30, 10, 20, 10, -5];

fn at(age: i64) -> Timestamp {
    START.plus(Millis(age))
}

fn answer(number: usize, age: i64) -> Answered {
    let key = Arc::from(format!("caller\nPOST /x\nk{number}"));
    Answered { key, fingerprint: [1; 32], status: 409, body: vec![7], at: at(age), lasting: false }
}

fn callback(number: usize, age: i64) -> Callback {
    Callback {
        provider: Arc::from(if number.is_multiple_of(2) { "bank" } else { "other" }),
        event: Arc::from(format!("e{number}")),
        payload_hash: [2; 32],
        payload: vec![8],
        received_at: at(age),
    }
}

fn notice(number: usize, age: i64) -> Notice {
    let occasion = number.to_string();
    let about = About { kind: NoticeKind::GroupFailed, subject: "g", occasion: &occasion, detail: "d" };
    let notice = Notice::new(about, Recipient::Administrators, START);
    Notice { status: Status::Sent, updated_at: at(age), ..notice }
}

/// Writes all of them, and answers what is expected of each kind.
fn fill(ground: &Ground) -> [Vec<Aged>; 3] {
    let rows = || AGES.into_iter().enumerate();
    let answers: Vec<Answered> = rows().map(|(number, age)| answer(number, age)).collect();
    let callbacks: Vec<Callback> = rows().map(|(number, age)| callback(number, age)).collect();
    let new_notices: Vec<Notice> = rows().map(|(number, age)| notice(number, age)).collect();
    let mut all = [
        answers.iter().map(|one| Aged { at: one.at, record: Record::Answer(one.key.clone()) }).collect(),
        callbacks.iter().map(of_callback).collect(),
        new_notices
            .iter()
            .map(|one| Aged { at: one.updated_at, record: Record::Notice(one.id) })
            .collect::<Vec<_>>(),
    ];
    all.iter_mut().for_each(|kind| kind.sort());
    ground.must(ChangeSet { answers, callbacks, new_notices, ..ChangeSet::default() });
    all
}

fn of_callback(one: &Callback) -> Aged {
    Aged { at: one.received_at, record: Record::Callback(one.provider.clone(), one.event.clone()) }
}

fn list(ground: &Ground, kind: RecordKind, limit: u32) -> Vec<Aged> {
    let mut all: Vec<Aged> = Vec::new();
    loop {
        let after = all.last().cloned().unwrap_or_else(|| Aged::before_all(kind));
        let page = block_on(ground.store.aged(limit, after)).expect("aged answers");
        assert!(page.len() <= usize::try_from(limit).unwrap_or(usize::MAX));
        if page.is_empty() {
            return all;
        }
        all.extend(page);
    }
}

fn listed(ground: &Ground) {
    for kind in RecordKind::ALL {
        assert_eq!(list(ground, kind, 3), []);
    }
    for (kind, expected) in RecordKind::ALL.into_iter().zip(fill(ground)) {
        for limit in [1, 2, 100] {
            assert_eq!(list(ground, kind, limit), expected, "{kind:?} by {limit}");
        }
    }
}

fn lasting(ground: &Ground) {
    let mut answers = vec![answer(1, 0), answer(2, 0)];
    answers[0].lasting = true;
    let [kept, passing] = [answers[0].clone(), answers[1].clone()];
    ground.must(ChangeSet { answers, ..ChangeSet::default() });
    let expected = Aged { at: passing.at, record: Record::Answer(passing.key) };
    assert_eq!(list(ground, RecordKind::Answer, 10), [expected]);
    let facts = ground.view(Need { answers: vec![kept.key.clone()], ..Need::default() });
    assert_eq!(facts.answers.get(&kept.key), Some(&kept));
}

fn gone(ground: &Ground) {
    let all = fill(ground);
    let middle: Vec<Aged> = all.iter().map(|kind| kind[1].clone()).collect();
    ground.must(ChangeSet { forgotten: middle.clone(), ..ChangeSet::default() });
    for (kind, mut expected) in RecordKind::ALL.into_iter().zip(all) {
        let gone = expected.remove(1);
        assert_eq!(list(ground, kind, 10), expected);
        let facts = ground.view(onceward_domain::decide::forget::need(&[gone]));
        assert!(facts.answers.is_empty() && facts.callbacks.is_empty() && facts.notices.is_empty());
    }
    ground.refuses(ChangeSet { forgotten: middle, ..ChangeSet::default() }, Code::GuardLost);
}

fn guarded(ground: &Ground) {
    let all = fill(ground);
    for kind in &all {
        let changed = Aged { at: kind[2].at.plus(Millis(1)), ..kind[2].clone() };
        let forgotten = vec![kind[0].clone(), changed];
        ground.refuses(ChangeSet { forgotten, ..ChangeSet::default() }, Code::GuardLost);
    }
    for (kind, expected) in RecordKind::ALL.into_iter().zip(all) {
        assert_eq!(list(ground, kind, 10), expected);
    }
}

fn anew(ground: &Ground) {
    let first = answer(1, 0);
    let aged = Aged { at: first.at, record: Record::Answer(first.key.clone()) };
    ground.must(ChangeSet { answers: vec![first.clone()], ..ChangeSet::default() });
    let again = Answered { status: 422, at: at(9), ..first.clone() };
    // Even in one set: what goes, goes before what comes.
    ground.must(ChangeSet { forgotten: vec![aged], answers: vec![again.clone()], ..ChangeSet::default() });
    let facts = ground.view(Need { answers: vec![first.key.clone()], ..Need::default() });
    assert_eq!(facts.answers.get(&first.key), Some(&again));
}
