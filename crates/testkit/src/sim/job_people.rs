//! People of jobs that credits pay for: who opens them, and two workers who take them from the retry lane.
//!
//! Invariants checked here, from outside: a repeat is an answer, other terms are refused; whoever says that a job delivered
//! hears that it has, also without holding it; a failure that is heard has cost nothing, unless the job had delivered; no run
//! is handed out beyond those a job may have. What they do is drawn on the way.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;

use onceward::Engine;
use onceward::execute::execute;
use onceward::operations::job::{self, Claim, Command, Given, Job, OpenJob, Outcome, Report, Word};
use onceward::operations::queue;
use onceward_domain::credit::Credits;
use onceward_domain::decide::credit::{Grant, grant};
use onceward_domain::decide::job::{decide, need_of_commands};
use onceward_domain::due::{Lane, Token};
use onceward_domain::error::Code;
use onceward_domain::facts::Need;
use onceward_domain::id::{AccountId, JobId};
use onceward_domain::machine::job::Job as Status;
use onceward_domain::time::Millis;

use super::net::Net;
use super::scenario::{Chore, Studio};

/// How often somebody looks before giving up: for as long as a line can be bad.
const LOOKS: u32 = 5_000;
/// Between two looks of a worker, at most.
const WORKER_REST: i64 = 8_000;
/// Between two looks of whoever keeps a job, at most.
const KEEPER_REST: i64 = 20_000;
/// Most jobs of one claim.
const CLAIM: u32 = 3;

/// All that belong to one studio.
#[derive(Clone)]
struct Crew {
    net: Net,
    account: AccountId,
    lease: Millis,
    /// Jobs whose keeper still looks after them.
    kept: Rc<Cell<usize>>,
}

/// Fills the account, opens every job, and lets two workers come.
pub(crate) async fn produce(net: Net, studio: Studio) {
    let kept = Rc::new(Cell::new(studio.jobs.len()));
    let crew = Crew { net, account: AccountId::trusted("studio"), lease: studio.lease, kept };
    crew.fill(studio.credits).await;
    for (number, chore) in studio.jobs.into_iter().enumerate() {
        let keeper = crew.clone();
        crew.net.send_out(async move {
            keeper.keep(&JobId::trusted(&format!("job-{number}")), chore).await;
            keeper.kept.set(keeper.kept.get() - 1);
        });
    }
    for name in ["early worker", "late worker"] {
        let worker = crew.clone();
        crew.net.send_out(async move { worker.work(name).await });
    }
}

impl Crew {
    fn draw(&self, bound: u64) -> u64 {
        self.net.world.draw(|rng| rng.below(bound))
    }

    async fn rest(&self, most: i64) {
        let length = self.net.world.draw(|rng| rng.between(0, most));
        self.net.world.sleep(Millis(length)).await;
    }

    async fn fill(&self, amount: i64) {
        let account = self.account.clone();
        let wish = move |engine: Engine| {
            let command = Grant {
                account: account.clone(),
                amount: Credits::new(amount).expect("a small amount"),
                reference: Arc::from("spring"),
                actor: Arc::from("patron"),
            };
            let need = Need { accounts: vec![account.clone()], ..Need::default() };
            async move { execute(&engine, "simulation.grant", need, move |facts| grant(facts, &command)).await }
        };
        drop(self.net.ask(wish).await);
    }

    /// Says one thing of a job, as the front of the ledger does.
    async fn tell(&self, command: Command) -> Option<Result<Outcome, Code>> {
        let wish = move |engine: Engine| {
            let commands = vec![command.clone()];
            async move {
                let (policy, need) = (engine.settings().job_retry, need_of_commands(&commands));
                let decided = execute(&engine, "simulation.jobs", need, move |facts| {
                    Ok(decide(facts, &policy, &commands))
                });
                decided.await?.remove(0)
            }
        };
        self.net.ask(wish).await
    }

    /// Opens a job, twice; then, perhaps, with other terms. Answers whether it is there.
    async fn open(&self, id: &JobId, chore: Chore) -> bool {
        let world = &self.net.world;
        let open = |cost: i64| {
            Command::Open(OpenJob {
                id: id.clone(),
                account: self.account.clone(),
                cost: Credits::new(cost).expect("a small cost"),
                max_attempts: chore.max_attempts,
                payload: None,
                actor: Arc::from("studio"),
            })
        };
        match self.tell(open(chore.cost)).await {
            Some(Ok(Outcome::Opened(_) | Outcome::Heard(_))) => world.sometimes("job_opened"),
            Some(Err(Code::InsufficientCredit)) => {
                world.sometimes("job_refused");
                return false;
            }
            other => {
                world.violated(format!("opening {id} heard {other:?}"));
                return false;
            }
        }
        match self.tell(open(chore.cost)).await {
            Some(Ok(Outcome::Heard(_))) => {}
            other => world.violated(format!("CL-02: opening {id} again heard {other:?}")),
        }
        if self.draw(5) == 0 {
            match self.tell(open(chore.cost + 1)).await {
                Some(Err(Code::Differs)) => world.sometimes("job_conflict"),
                other => world.violated(format!("CL-04: opening {id} with another cost heard {other:?}")),
            }
        }
        true
    }

    /// Says how a run ended, and checks what comes back.
    async fn report(&self, id: &JobId, token: Option<Token>, word: Word) {
        let world = &self.net.world;
        let is_delivery = word == Word::Succeeded;
        let report = Report { job: id.clone(), token, word, actor: Arc::from("worker") };
        let outcome = match self.tell(Command::Report(report)).await {
            Some(Ok(outcome)) => outcome,
            other => return world.violated(format!("saying something of {id} heard {other:?}")),
        };
        let (job, is_stale) = match outcome {
            Outcome::Heard(job) => (job, false),
            Outcome::LeaseLost(job) => (job, true),
            Outcome::Opened(job) => return world.violated(format!("a word opened {job:?}")),
        };
        if is_stale {
            world.sometimes("job_lease_lost");
        }
        if is_delivery {
            world.saw_delivery(job.id.clone());
            if is_stale {
                world.sometimes("job_delivered_by_a_former_holder");
            }
        }
        let is_right = match job.status {
            Status::Delivered => job.net() == -job.cost.amount(),
            Status::WaitingRetry | Status::Failed | Status::DeadLetter => !is_delivery && job.net() == 0,
            // A failure under a former claim says nothing of the run that goes on.
            Status::Running => !is_delivery && is_stale,
        };
        if !is_right {
            world.violated(format!(
                "CL-05: after a word (delivery: {is_delivery}, stale: {is_stale}): {job:?}"
            ));
        }
    }

    async fn deliver(&self, id: &JobId, token: Option<Token>) {
        self.report(id, token, Word::Succeeded).await;
    }

    async fn fail(&self, id: &JobId, token: Option<Token>) {
        self.report(id, token, Word::FailedForNow(Arc::from("it broke"))).await;
    }

    async fn fail_for_good(&self, id: &JobId, token: Option<Token>) {
        self.report(id, token, Word::FailedForGood(Arc::from("it cannot work"))).await;
    }

    /// Opens a job, runs it once, and looks after it until it has its end.
    async fn keep(&self, id: &JobId, chore: Chore) {
        if !self.open(id, chore).await {
            return;
        }
        self.rest(KEEPER_REST).await;
        self.run_first(id).await;
        for _ in 0..LOOKS {
            self.rest(KEEPER_REST).await;
            let Some(job) = self.look(id).await else { return };
            match job.status {
                Status::Delivered | Status::Failed => return self.speak_late(id).await,
                Status::DeadLetter if self.draw(10) < 6 => self.replay(id).await,
                Status::DeadLetter => return self.speak_late(id).await,
                // The run that was taken for failed had delivered.
                Status::WaitingRetry | Status::Running if self.draw(15) == 0 => self.deliver(id, None).await,
                Status::WaitingRetry | Status::Running => {}
            }
        }
        self.net.world.violated(format!("{id} had no end"));
    }

    /// The run that began with the job. What is said of it may come twice, and in any order.
    async fn run_first(&self, id: &JobId) {
        match self.draw(8) {
            0 | 1 => self.deliver(id, None).await,
            2 => self.fail_for_good(id, None).await,
            3 => {
                self.fail(id, None).await;
                self.rest(KEEPER_REST).await;
                self.fail(id, None).await;
            }
            _ => self.fail(id, None).await,
        }
    }

    /// Redeliveries after the end.
    async fn speak_late(&self, id: &JobId) {
        self.rest(KEEPER_REST).await;
        match self.draw(5) {
            0 => self.deliver(id, None).await,
            1 => self.fail(id, None).await,
            2 => {
                self.deliver(id, None).await;
                self.fail_for_good(id, None).await;
            }
            _ => {}
        }
    }

    async fn look(&self, id: &JobId) -> Option<Job> {
        let name = id.clone();
        let seen = self.net.ask(move |engine: Engine| {
            let name = name.clone();
            async move { job::get(&engine, name).await }
        });
        match seen.await {
            Some(Ok(job)) => Some(job),
            other => {
                self.net.world.violated(format!("{id} was opened and is not found: {other:?}"));
                None
            }
        }
    }

    /// A person sets a dead job going again. Whoever asks twice for lack of an answer hears that it is no longer dead.
    async fn replay(&self, id: &JobId) {
        let member = id.clone();
        let wish = move |engine: Engine| {
            let member = member.clone();
            async move { queue::replay_dead_letter(&engine, member.as_str(), "back office").await }
        };
        match self.net.ask(wish).await {
            Some(Ok(()) | Err(Code::NotFound)) => self.net.world.sometimes("job_replayed"),
            other => self.net.world.violated(format!("replaying {id} heard {other:?}")),
        }
    }

    /// Takes jobs from the retry lane until nobody keeps one and none is left.
    async fn work(&self, name: &'static str) {
        for _ in 0..LOOKS {
            self.rest(WORKER_REST).await;
            if self.kept.get() == 0 && self.is_lane_empty() {
                return;
            }
            let claim = Claim { worker: Arc::from(name), limit: CLAIM, lease: self.lease };
            let wish = move |engine: Engine| {
                let claim = claim.clone();
                async move { job::claim(&engine, claim).await }
            };
            match self.net.ask(wish).await {
                Some(Ok(given)) => {
                    for one in given {
                        self.run(one).await;
                    }
                }
                other => return self.net.world.violated(format!("claiming jobs heard {other:?}")),
            }
        }
        self.net.world.violated(format!("the {name} never had nothing to do"));
    }

    fn is_lane_empty(&self) -> bool {
        let lane = Lane::new(Lane::JOB_RETRY);
        !self.net.world.store.rows().due.iter().any(|((one, _), _)| *one == lane)
    }

    /// Runs a job that was handed out: well or badly, in time or not, or without a word.
    async fn run(&self, given: Given) {
        let world = &self.net.world;
        world.sometimes("job_given");
        if given.job.attempts > 2 {
            world.sometimes("job_given_again");
        }
        if given.job.status != Status::Running || given.job.attempts > given.job.max_attempts {
            world.violated(format!("CL-06: a run that should not be was handed out: {:?}", given.job));
        }
        let (id, token) = (&given.job.id, Some(given.token));
        match self.draw(10) {
            0 | 1 => self.deliver(id, token).await,
            2 | 3 => self.fail(id, token).await,
            4 => self.fail_for_good(id, token).await,
            5 => {
                self.extend(id, given.token).await;
                self.rest(self.lease.0).await;
                self.deliver(id, token).await;
            }
            6 => {
                self.oversleep().await;
                self.deliver(id, token).await;
            }
            7 => {
                self.oversleep().await;
                self.fail(id, token).await;
            }
            8 => {
                self.fail(id, token).await;
                self.deliver(id, token).await;
                self.deliver(id, token).await;
            }
            _ => world.sometimes("job_worker_vanished"),
        }
    }

    async fn oversleep(&self) {
        let longer = self.net.world.draw(|rng| rng.between(0, self.lease.0));
        self.net.world.sleep(Millis(self.lease.0 + longer)).await;
    }

    async fn extend(&self, id: &JobId, token: Token) {
        let (name, lease) = (id.clone(), self.lease);
        let wish = move |engine: Engine| {
            let name = name.clone();
            async move { job::extend(&engine, name, token, lease).await }
        };
        match self.net.ask(wish).await {
            Some(Ok(_)) => self.net.world.sometimes("job_lease_extended"),
            Some(Err(Code::LeaseLost)) => self.net.world.sometimes("job_lease_lost"),
            other => self.net.world.violated(format!("extending {id} heard {other:?}")),
        }
    }
}
