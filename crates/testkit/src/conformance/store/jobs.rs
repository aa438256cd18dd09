//! Jobs and their entries: once each, and only together (CL-02, CL-04).

use std::sync::Arc;

use onceward_domain::changes::ChangeSet;
use onceward_domain::credit::{Account, CREDITS_LIMIT, Credits, Entry, EntryKind};
use onceward_domain::decide::credit::{Grant, grant};
use onceward_domain::decide::job::{self, Command, OpenJob, Report, Word};
use onceward_domain::due::Token;
use onceward_domain::error::{Class, Code, Error};
use onceward_domain::facts::Need;
use onceward_domain::id::{AccountId, JobId};
use onceward_domain::job::Job;
use onceward_domain::machine::Machine;
use onceward_domain::machine::job::Job as Status;
use onceward_domain::ports::store::{Decide, Store, Work};
use onceward_domain::retry::RetryPolicy;
use onceward_domain::tally::CreditTally;
use onceward_domain::time::{Millis, Timestamp};

use super::Case;
use super::ground::{Ground, START};
use super::threads::at_once;
use crate::block_on::block_on;

pub(super) const CASES: &[Case] = &[
    Case::new("cl_04_jobs_come_back_whole_in_every_state", come_back_whole),
    Case::new("ot_01_a_stale_job_revision_loses", stale_job),
    Case::new("cl_02_each_entry_of_a_job_is_made_once", entries_once),
    Case::new("cl_04_a_job_keeps_its_terms", keeps_terms),
    Case::new("cl_04_a_job_is_never_there_without_its_charge", no_job_without_charge),
    Case::new("cl_05_what_contradicts_a_job_is_counted", contradictions),
    Case::new("cl_02_sixty_four_threads_refund_and_reclaim_once", refunded_once),
];

const COST: i64 = 40;

fn account() -> AccountId {
    AccountId::trusted("a")
}

fn funded(ground: &Ground, amount: i64) -> Account {
    let gift = Grant {
        account: account(),
        amount: Credits::new(amount).expect("within the limit"),
        reference: Arc::from("gift"),
        actor: Arc::from("tester"),
    };
    let need = Need { accounts: vec![account()], ..Need::default() };
    let given = ground.decide(need, move |facts| grant(facts, &gift).map(|(changes, _)| changes));
    given.expect("a gift is taken");
    payer(ground)
}

fn payer(ground: &Ground) -> Account {
    let facts = ground.view(Need { accounts: vec![account()], ..Need::default() });
    facts.accounts[&account()].clone()
}

fn read(ground: &Ground, name: &str) -> Option<Job> {
    let facts = ground.view(Need { jobs: vec![JobId::trusted(name)], ..Need::default() });
    let found = facts.jobs.get(&JobId::trusted(name)).cloned();
    assert_eq!(found.is_some(), facts.accounts.contains_key(&account()), "a job comes with its account");
    found
}

fn new_job(name: &str, cost: i64) -> Job {
    Job {
        id: JobId::trusted(name),
        account: account(),
        cost: Credits::new(cost).expect("within the limit"),
        max_attempts: 5,
        payload: None,
        status: Status::Running,
        attempts: 1,
        not_before: None,
        token: None,
        worker: None,
        last_error: None,
        is_refunded: false,
        is_reclaimed: false,
        created_at: START,
        updated_at: START,
        revision: 0,
    }
}

/// A set with these entries of one job, each going on from the one before.
fn entering(ground: &Ground, job: &Job, kinds: &[(EntryKind, i64)]) -> ChangeSet {
    let mut account = payer(ground);
    let mut entries = Vec::new();
    for (kind, amount) in kinds {
        account.balance += amount;
        account.entries += 1;
        entries.push(Entry {
            account: account.id.clone(),
            number: account.entries,
            kind: *kind,
            amount: *amount,
            balance_after: account.balance,
            job: Some(job.id.clone()),
            reference: None,
            reason: None,
            actor: Arc::from("tester"),
            at: START,
        });
    }
    ChangeSet { accounts: vec![account], entries, ..ChangeSet::default() }
}

fn open(ground: &Ground, name: &str, cost: i64) -> Job {
    let job = new_job(name, cost);
    let charge = entering(ground, &job, &[(EntryKind::Charge, -cost)]);
    ground.must(ChangeSet { new_jobs: vec![job.clone()], ..charge });
    job
}

fn come_back_whole(ground: &Ground) {
    funded(ground, CREDITS_LIMIT);
    assert_eq!(read(ground, "nothing"), None);
    for (index, status) in Status::STATES.iter().enumerate() {
        let name = format!("job-{index}");
        let mut job = new_job(&name, i64::try_from(index).expect("small") + 1);
        job.payload = Some(Arc::from(r#"{"video":"影片 🎬","n":[1,2.5,null]}"#));
        job.max_attempts = u32::MAX;
        let charge = entering(ground, &job, &[(EntryKind::Charge, -job.cost.amount())]);
        ground.must(ChangeSet { new_jobs: vec![job.clone()], ..charge });
        assert_eq!(read(ground, &name), Some(job.clone()));
        job.status = *status;
        job.attempts = u32::MAX;
        job.not_before = Some(Timestamp(i64::MAX));
        job.token = Some(Token(i64::MAX));
        job.worker = Some(Arc::from("gpu-7"));
        job.last_error = Some(Arc::from("time-out \"quoted\""));
        (job.is_refunded, job.is_reclaimed) = (true, index > 1);
        job.updated_at = START.plus(Millis(9));
        ground.must(ChangeSet { jobs: vec![job.clone()], ..ChangeSet::default() });
        job.revision += 1;
        assert_eq!(read(ground, &name), Some(job));
    }
}

fn stale_job(ground: &Ground) {
    funded(ground, 100);
    let job = open(ground, "j", COST);
    let failed = || ChangeSet {
        jobs: vec![Job { status: Status::Failed, is_refunded: true, ..job.clone() }],
        ..entering(ground, &job, &[(EntryKind::Refund, COST)])
    };
    ground.must(failed());
    ground.refuses(failed(), Code::GuardLost);
    assert_eq!((payer(ground).balance, payer(ground).entries), (100, 3), "no entry without its move");
    let gone = new_job("gone", COST);
    ground.refuses(ChangeSet { jobs: vec![gone], ..ChangeSet::default() }, Code::GuardLost);
}

fn entries_once(ground: &Ground) {
    funded(ground, 1_000);
    let job = open(ground, "j", COST);
    let moved = |job: &Job, kind, amount| ChangeSet {
        jobs: vec![Job { is_refunded: true, ..job.clone() }],
        ..entering(ground, job, &[(kind, amount)])
    };
    ground.refuses(moved(&job, EntryKind::Charge, -COST), Code::ConstraintViolated);
    ground.must(moved(&job, EntryKind::Refund, COST));
    let job = read(ground, "j").expect("it is there");
    ground.refuses(moved(&job, EntryKind::Refund, COST), Code::ConstraintViolated);
    ground.must(moved(&job, EntryKind::Reclaim, -COST));
    let job = read(ground, "j").expect("it is there");
    ground.refuses(moved(&job, EntryKind::Reclaim, -COST), Code::ConstraintViolated);
    assert_eq!(payer(ground).balance, 1_000 - COST);
    let again = entering(ground, &job, &[(EntryKind::Grant, 1)]);
    ground.refuses(again, Code::ConstraintViolated);
}

fn keeps_terms(ground: &Ground) {
    funded(ground, 100);
    let job = open(ground, "j", COST);
    let again = entering(ground, &job, &[(EntryKind::Charge, -COST)]);
    ground.refuses(ChangeSet { new_jobs: vec![job.clone()], ..again }, Code::ConstraintViolated);
    let cheaper = Job {
        cost: Credits::new(1).expect("it is 1"),
        max_attempts: 9,
        payload: Some(Arc::from("{}")),
        created_at: START.plus(Millis(1)),
        ..job.clone()
    };
    ground.must(ChangeSet { jobs: vec![cheaper], ..ChangeSet::default() });
    assert_eq!(read(ground, "j"), Some(Job { revision: 1, ..job }));
}

fn no_job_without_charge(ground: &Ground) {
    funded(ground, 100);
    let alone = ChangeSet { new_jobs: vec![new_job("j", COST)], ..ChangeSet::default() };
    ground.refuses(alone, Code::ConstraintViolated);
    let stranger = Job { account: AccountId::trusted("nobody"), ..new_job("j", COST) };
    let charge = entering(ground, &stranger, &[(EntryKind::Charge, -COST)]);
    ground.refuses(ChangeSet { new_jobs: vec![stranger], ..charge }, Code::ConstraintViolated);
    let contradictory = Job { is_reclaimed: true, ..new_job("j", COST) };
    let charge = entering(ground, &contradictory, &[(EntryKind::Charge, -COST)]);
    ground.refuses(ChangeSet { new_jobs: vec![contradictory], ..charge }, Code::ConstraintViolated);
    assert_eq!((read(ground, "j"), payer(ground).balance), (None, 100));
}

fn sums(ground: &Ground) -> CreditTally {
    block_on(ground.store.tally()).expect("tally answers").credit
}

fn contradictions(ground: &Ground) {
    funded(ground, 1_000);
    let mut expected = 0;
    let mut contradicts = |name: &str, change: fn(&mut Job)| {
        let mut job = open(ground, name, COST);
        assert_eq!(sums(ground).job_contradictions, expected, "{name}: nothing wrong yet");
        change(&mut job);
        ground.must(ChangeSet { jobs: vec![job], ..ChangeSet::default() });
        expected += 1;
        assert_eq!(sums(ground).job_contradictions, expected, "{name}");
    };
    contradicts("refunded without an entry", |job| job.is_refunded = true);
    contradicts("delivered after a refund alone", |job| {
        (job.status, job.is_refunded) = (Status::Delivered, true);
    });
    contradicts("reclaimed without an entry", |job| (job.is_refunded, job.is_reclaimed) = (true, true));
    assert_eq!(sums(ground).jobs_nowhere, 0);
    for (nowhere, status) in (1..).zip([Status::WaitingRetry, Status::DeadLetter]) {
        let job = open(ground, status.name(), COST);
        ground.must(ChangeSet { jobs: vec![Job { status, ..job }], ..ChangeSet::default() });
        assert_eq!(sums(ground).jobs_nowhere, nowhere, "{}", status.name());
    }
}

/// Decides as the engine does: again, where somebody else was first.
fn say(store: &dyn Store, commands: Vec<Command>) -> Result<(), Error> {
    let need = job::need_of_commands(&commands);
    let decide: Decide = Arc::new(move |facts| {
        let (changes, outcomes) = job::decide(facts, &RetryPolicy::default(), &commands);
        outcomes.into_iter().collect::<Result<Vec<_>, _>>().map(|_| changes)
    });
    let work = Work { name: "say", need, decide };
    for _ in 0..64 {
        match block_on(store.transact(work.clone())) {
            Err(error) if error.class() == Class::Conflict => {}
            answer => return answer,
        }
    }
    Err(Error::new(Code::GuardLost, "every try met a conflict"))
}

fn report(word: Word) -> Command {
    Command::Report(Report { job: JobId::trusted("j"), token: None, word, actor: Arc::from("tester") })
}

fn refunded_once(ground: &Ground) {
    funded(ground, 100);
    let opening = OpenJob {
        id: JobId::trusted("j"),
        account: account(),
        cost: Credits::new(COST).expect("within the limit"),
        max_attempts: 5,
        payload: None,
        actor: Arc::from("tester"),
    };
    let store = Arc::clone(&ground.store);
    let answers = at_once(move |_| say(&*store, vec![Command::Open(opening.clone())]));
    assert!(answers.iter().all(Result::is_ok), "{answers:?}");
    assert_eq!((payer(ground).balance, payer(ground).entries), (60, 2), "64 openings are one charge");
    let store = Arc::clone(&ground.store);
    let answers = at_once(move |_| say(&*store, vec![report(Word::FailedForNow(Arc::from("it broke")))]));
    assert!(answers.iter().all(Result::is_ok), "{answers:?}");
    assert_eq!((payer(ground).balance, payer(ground).entries), (100, 3), "64 failures are one refund");
    let store = Arc::clone(&ground.store);
    let answers = at_once(move |number| {
        let failed = Word::FailedForNow(Arc::from("it broke"));
        say(&*store, vec![report(if number % 2 == 0 { Word::Succeeded } else { failed })])
    });
    assert!(answers.iter().all(Result::is_ok), "{answers:?}");
    assert_eq!(
        (payer(ground).balance, payer(ground).entries),
        (60, 4),
        "deliveries and failures: one reclaim"
    );
    let sums = sums(ground);
    assert_eq!((sums.job_contradictions, sums.balance_contradictions, sums.jobs_nowhere), (0, 0, 0));
}
