//! What is said of a job, in every order: its entries add up to −cost, or to 0 while it has failed and was not delivered
//! (CL-05). Every interleaving of ten things that can happen, six in a row, and long lives drawn by chance.

#![expect(clippy::unwrap_used, reason = "in a test a panic is the message, also in what the tests share")]

use std::sync::Arc;

use onceward_domain::changes::ChangeSet;
use onceward_domain::credit::{Credits, Entry, EntryKind};
use onceward_domain::decide::credit::{Grant, grant};
use onceward_domain::decide::job::{Command, OpenJob, Outcome, Report, Word, decide};
use onceward_domain::decide::job_queue::{claim, replay};
use onceward_domain::due::{Claimed, DueEntry, Held, Lane, Token};
use onceward_domain::error::{Code, Error};
use onceward_domain::facts::Facts;
use onceward_domain::id::{AccountId, JobId};
use onceward_domain::job::Job;
use onceward_domain::machine::job::Job as Status;
use onceward_domain::ports::due_queue::Exhaustion;
use onceward_domain::retry::RetryPolicy;
use onceward_domain::time::{Millis, Timestamp};

const COST: i64 = 40;
const GIVEN: i64 = 100;
const TRIES: u32 = 2;
const LEASE: Millis = Millis(30_000);

fn account() -> AccountId {
    AccountId::trusted("a")
}

fn job() -> JobId {
    JobId::trusted("j")
}

fn actor() -> Arc<str> {
    Arc::from("tester")
}

fn opening(id: &str, cost: i64, max_attempts: u32) -> Command {
    Command::Open(OpenJob {
        id: JobId::trusted(id),
        account: account(),
        cost: Credits::new(cost).unwrap(),
        max_attempts,
        payload: None,
        actor: actor(),
    })
}

fn open(cost: i64) -> Command {
    opening("j", cost, TRIES)
}

fn report(word: Word, token: Option<Token>) -> Command {
    Command::Report(Report { job: job(), token, word, actor: actor() })
}

fn failed(token: Option<Token>) -> Command {
    report(Word::FailedForNow(Arc::from("it broke")), token)
}

fn failed_for_good(token: Option<Token>) -> Command {
    report(Word::FailedForGood(Arc::from("it cannot work")), token)
}

fn succeeded(token: Option<Token>) -> Command {
    report(Word::Succeeded, token)
}

/// One job, as the store and its workers see it.
#[derive(Clone)]
struct World {
    facts: Facts,
    entries: Vec<Entry>,
    /// Every token that was ever given out, oldest first.
    tokens: Vec<Token>,
    /// Whether anybody has been heard to say that it delivered.
    was_delivered: bool,
    /// Whether anybody has been heard to say that it failed.
    has_failed: bool,
}

impl World {
    fn new() -> Self {
        let facts = Facts::empty(Timestamp(1_000));
        let mut world =
            Self { facts, entries: Vec::new(), tokens: Vec::new(), was_delivered: false, has_failed: false };
        let gift = Grant {
            account: account(),
            amount: Credits::new(GIVEN).unwrap(),
            reference: Arc::from("gift"),
            actor: actor(),
        };
        let (changes, _) = grant(&mut world.facts, &gift).unwrap();
        world.take(changes);
        world.say(&open(COST)).unwrap();
        world
    }

    fn take(&mut self, changes: ChangeSet) {
        self.entries.extend(changes.entries);
    }

    fn job(&self) -> &Job {
        &self.facts.jobs[&job()]
    }

    fn say(&mut self, command: &Command) -> Result<Outcome, Error> {
        let policy = RetryPolicy::default();
        let (changes, mut outcomes) = decide(&mut self.facts, &policy, std::slice::from_ref(command));
        self.take(changes);
        let outcome = outcomes.remove(0);
        if let (Command::Report(report), Ok(outcome)) = (command, &outcome) {
            match report.word {
                Word::Succeeded => self.was_delivered = true,
                Word::FailedForNow(_) | Word::FailedForGood(_) => {
                    self.has_failed |= matches!(outcome, Outcome::Heard(_));
                }
            }
        }
        outcome
    }

    fn live(&self) -> Option<&DueEntry> {
        self.facts.due.get(&(Lane::new(Lane::JOB_RETRY), Arc::from("j")))
    }

    fn dead(&self) -> Option<&DueEntry> {
        self.facts.due.get(&(Lane::new(Lane::JOB_RETRY).dead_letters(), Arc::from("j")))
    }

    /// What the store does at a claim, once the member is due or its lease has ended.
    fn take_from_lane(&mut self) -> Option<Claimed> {
        let key = (Lane::new(Lane::JOB_RETRY), Arc::from("j"));
        let now = self.facts.now.max(self.live()?.due_at);
        self.facts.now = now;
        let entry = self.facts.due.get_mut(&key)?;
        let token = Token(i64::try_from(self.tokens.len()).unwrap() + 1);
        let due_at = std::mem::replace(&mut entry.due_at, now.plus(LEASE));
        (entry.attempts, entry.token, entry.is_held) = (entry.attempts + 1, token, true);
        let claimed = Claimed {
            held: Held { lane: key.0, member: key.1, token },
            attempts: entry.attempts,
            due_at,
            created_at: entry.created_at,
            lease_until: entry.due_at,
            body: Vec::new(),
        };
        self.tokens.push(token);
        Some(claimed)
    }

    fn claim(&mut self) {
        let Some(claimed) = self.take_from_lane() else { return };
        let (changes, given) = claim(&mut self.facts, &Arc::from("worker"), &[claimed]).unwrap();
        // A lease that ended with the last try is a failure that nobody had to say.
        self.has_failed |= given == [None] && self.job().status == Status::DeadLetter;
        self.take(changes);
    }

    fn replay(&mut self) {
        let token = self.dead().map_or(Token(77), |entry| entry.token);
        let (changes, _) = replay(&mut self.facts, &[Exhaustion { member: Arc::from("j"), token }]);
        self.take(changes);
    }

    /// The ten things that can happen. A redelivery is the same thing once more.
    fn happen(&mut self, what: u32) {
        let last = self.tokens.last().copied().or(Some(Token(99)));
        let first = self.tokens.first().copied().or(Some(Token(98)));
        let said = match what {
            0 => self.say(&failed(None)),
            1 => self.say(&failed_for_good(None)),
            2 => self.say(&succeeded(None)),
            3 => self.say(&failed(last)),
            4 => self.say(&succeeded(last)),
            5 => self.say(&failed(first)),
            6 => self.say(&succeeded(first)),
            7 => return self.claim(),
            // The claim's answer is lost, or the process dies before the job is handed out.
            8 => return drop(self.take_from_lane()),
            _ => return self.replay(),
        };
        said.expect("what is said of a known job is heard");
    }

    /// All that must hold, whatever happened.
    fn check(&self, path: &str) {
        let of = |kind| self.entries.iter().filter(move |entry| entry.kind == kind).count();
        let net: i64 =
            self.entries.iter().filter(|entry| entry.job.is_some()).map(|entry| entry.amount).sum();
        let job = self.job();
        assert!(net == 0 || net == -COST, "{path}: net {net}");
        assert_eq!(net, job.net(), "{path}: the marks are the entries");
        if self.was_delivered {
            assert_eq!((net, job.status), (-COST, Status::Delivered), "{path}: delivered");
        } else {
            let expected = if self.has_failed { 0 } else { -COST };
            assert_eq!(net, expected, "{path}: not delivered, failed: {}", self.has_failed);
        }
        let counts = [EntryKind::Charge, EntryKind::Refund, EntryKind::Reclaim].map(of);
        let marks = [1, usize::from(job.is_refunded), usize::from(job.is_reclaimed)];
        assert_eq!(counts, marks, "{path}: entries by kind");
        let mut balance = 0;
        for (number, entry) in (1..).zip(&self.entries) {
            balance += entry.amount;
            assert_eq!((entry.number, entry.balance_after), (number, balance), "{path}");
        }
        let account = &self.facts.accounts[&account()];
        assert_eq!((account.balance, balance), (GIVEN + net, GIVEN + net), "{path}: balance");
        assert!(job.attempts <= TRIES, "{path}: {} runs", job.attempts);
        self.check_lane(path);
    }

    /// A job is in one place of the lane, and in none once there is nothing left to run (F12).
    fn check_lane(&self, path: &str) {
        let status = self.job().status;
        assert!(self.live().is_none() || self.dead().is_none(), "{path}: in two places");
        match status {
            Status::WaitingRetry => assert!(self.live().is_some(), "{path}: waits nowhere"),
            Status::DeadLetter => assert!(self.dead().is_some(), "{path}: laid aside nowhere"),
            Status::Running => assert!(self.dead().is_none(), "{path}"),
            Status::Delivered | Status::Failed => {
                // One who lost the lease may have delivered; the present holder still has to say so.
                let is_free = self.live().is_none_or(|entry| entry.is_held);
                assert!(is_free && self.dead().is_none(), "{path}: {status:?} and still in the lane");
            }
        }
    }
}

const LETTERS: u32 = 10;

fn walk(world: &World, depth: u32, path: &mut String, leaves: &mut u64) {
    world.check(path);
    if depth == 0 {
        *leaves += 1;
        return;
    }
    for what in 0..LETTERS {
        let mut next = world.clone();
        path.push(char::from_digit(what, LETTERS).unwrap());
        next.happen(what);
        walk(&next, depth - 1, path, leaves);
        path.pop();
    }
}

#[test]
fn cl_05_a_million_interleavings_end_at_the_cost_or_at_nothing() {
    let mut leaves = 0;
    walk(&World::new(), 6, &mut String::new(), &mut leaves);
    assert_eq!(leaves, 1_000_000, "every row of six");
}

#[test]
fn cl_05_long_lives_of_jobs_end_at_the_cost_or_at_nothing() {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut draw = move || {
        state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        u32::try_from(state >> 33).unwrap()
    };
    let mut delivered_after_dead_letter = 0;
    for life in 0..5_000 {
        let mut world = World::new();
        let mut path = format!("life {life}: ");
        for _ in 0..40 {
            // Deliveries end the story, and failures for good nearly do, so they are rare.
            let what = loop {
                let what = draw() % LETTERS;
                let ends_it = matches!(what, 1 | 2 | 4 | 6);
                if !ends_it || draw().is_multiple_of(12) {
                    break what;
                }
            };
            let was_dead = world.job().status == Status::DeadLetter;
            path.push(char::from_digit(what, LETTERS).unwrap());
            world.happen(what);
            world.check(&path);
            delivered_after_dead_letter += u32::from(was_dead && world.was_delivered);
        }
    }
    assert!(
        delivered_after_dead_letter > 100,
        "the interesting case came {delivered_after_dead_letter} times"
    );
}

fn held_world() -> (World, Token) {
    let mut world = World::new();
    world.say(&failed(None)).unwrap();
    world.claim();
    let token = world.tokens[0];
    (world, token)
}

#[test]
fn cl_02_cl_03_the_story_of_the_reference() {
    let mut world = World::new();
    assert_eq!((world.job().status, world.job().attempts, world.job().net()), (Status::Running, 1, -COST));
    for _ in 0..5 {
        world.say(&failed(None)).unwrap();
    }
    assert_eq!((world.job().status, world.job().net()), (Status::WaitingRetry, 0));
    assert_eq!(world.job().not_before, Some(Timestamp(2_000)), "the first wait is a second");
    world.claim();
    assert_eq!((world.job().status, world.job().attempts), (Status::Running, 2));
    for _ in 0..5 {
        world.say(&succeeded(Some(world.tokens[0]))).unwrap();
    }
    assert_eq!((world.job().status, world.job().net()), (Status::Delivered, -COST));
    let kinds: Vec<_> = world.entries.iter().map(|entry| (entry.kind.name(), entry.amount)).collect();
    assert_eq!(kinds, [("grant", 100), ("charge", -40), ("refund", 40), ("reclaim", -40)]);
    world.say(&failed(None)).unwrap();
    assert_eq!((world.job().status, world.job().net()), (Status::Delivered, -COST), "failure after reclaim");
}

#[test]
fn cl_03_a_job_that_works_at_once_is_charged_and_nothing_else() {
    let mut world = World::new();
    for _ in 0..3 {
        world.say(&succeeded(None)).unwrap();
    }
    world.say(&failed(None)).unwrap();
    assert_eq!((world.entries.len(), world.job().net()), (2, -COST));
}

#[test]
fn cl_04_amounts_come_from_the_record_and_a_second_opening_must_be_equal() {
    let mut world = World::new();
    assert!(matches!(world.say(&open(COST)).unwrap(), Outcome::Heard(_)));
    assert_eq!(world.say(&open(COST + 1)).unwrap_err().code(), Code::Differs);
    assert_eq!(world.entries.len(), 2);
}

#[test]
fn cl_07_a_job_that_cannot_be_paid_is_not_opened() {
    let mut facts = Facts::empty(Timestamp(0));
    let (changes, outcomes) = decide(&mut facts, &RetryPolicy::default(), &[open(COST), succeeded(None)]);
    let codes: Vec<Code> = outcomes.into_iter().map(|one| one.unwrap_err().code()).collect();
    assert_eq!(codes, [Code::InsufficientCredit, Code::NotFound]);
    assert!(changes.is_empty());
}

#[test]
fn cl_05_c_67_what_was_given_back_and_spent_is_taken_again_as_debt() {
    let mut world = World::new();
    world.say(&failed(None)).unwrap();
    assert!(matches!(world.say(&opening("k", GIVEN, 1)).unwrap(), Outcome::Opened(_)));
    world.say(&succeeded(None)).unwrap();
    assert_eq!(world.facts.accounts[&account()].balance, -COST, "a debt, not a gift");
    let refused = world.say(&opening("l", 1, 1)).unwrap_err();
    assert_eq!(refused.code(), Code::InsufficientCredit);
}

#[test]
fn cl_06_tries_are_used_up_into_a_dead_letter_with_one_notice_and_only_a_person_replays() {
    let (mut world, token) = held_world();
    let twice = [failed(Some(token)), failed(Some(token))];
    let (changes, _) = decide(&mut world.facts, &RetryPolicy::default(), &twice);
    assert_eq!((changes.new_notices.len(), changes.entries.len()), (1, 0), "told once, refunded before");
    assert_eq!((world.job().status, world.live().is_some()), (Status::DeadLetter, false));
    world.claim();
    assert_eq!(world.job().status, Status::DeadLetter, "nothing takes it by itself");
    world.replay();
    assert_eq!((world.job().status, world.job().attempts), (Status::WaitingRetry, 0));
    world.claim();
    assert_eq!((world.job().status, world.job().attempts, world.job().net()), (Status::Running, 1, 0));
}

#[test]
fn cl_06_a_job_with_one_try_is_laid_aside_at_its_first_failure() {
    let mut facts = World::new().facts;
    let fails = Command::Report(Report {
        job: JobId::trusted("once"),
        token: None,
        word: Word::FailedForNow(Arc::from("it broke")),
        actor: actor(),
    });
    let (changes, outcomes) = decide(&mut facts, &RetryPolicy::default(), &[opening("once", 1, 1), fails]);
    assert!(outcomes.iter().all(Result::is_ok));
    assert_eq!((changes.new_jobs.len(), changes.jobs.len(), changes.entries.len()), (1, 0, 2));
    assert_eq!((changes.new_jobs[0].status, changes.new_notices.len()), (Status::DeadLetter, 1));
}

#[test]
fn lq_02_f2_a_stale_token_moves_nothing_and_a_late_delivery_is_true_all_the_same() {
    let (mut world, first) = held_world();
    world.facts.jobs.get_mut(&job()).unwrap().max_attempts = 5;
    world.claim();
    let second = world.tokens[1];
    let before = (world.job().clone(), world.live().cloned());
    assert!(matches!(world.say(&failed(Some(first))).unwrap(), Outcome::LeaseLost(_)));
    assert_eq!((world.job().clone(), world.live().cloned()), before, "F2: no field changes");
    assert!(matches!(world.say(&succeeded(Some(first))).unwrap(), Outcome::LeaseLost(_)));
    assert_eq!((world.job().status, world.job().net()), (Status::Delivered, -COST));
    assert_eq!(world.live().cloned(), before.1, "its holder keeps the member");
    assert!(matches!(world.say(&failed(Some(second))).unwrap(), Outcome::Heard(_)));
    assert_eq!((world.job().net(), world.live().is_none()), (-COST, true), "and lays it down");
    assert!(
        matches!(world.say(&succeeded(Some(second))).unwrap(), Outcome::Heard(_)),
        "a repeat is harmless"
    );
}
