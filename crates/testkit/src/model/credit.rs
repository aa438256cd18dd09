//! Credit accounts and ledger entries in the model.
//!
//! Invariants: an entry goes on from the one before it and is never written twice; an account's balance is that of its last
//! entry; changed accounts name the revision they were decided on.

use std::sync::Arc;

use onceward_domain::changes::ChangeSet;
use onceward_domain::credit::{Account, Entry, EntryKind, Standing};
use onceward_domain::due::Lane;
use onceward_domain::error::Error;
use onceward_domain::facts::{Facts, Need};
use onceward_domain::id::AccountId;
use onceward_domain::job::Job;
use onceward_domain::machine::job::Job as JobStatus;
use onceward_domain::ports::store::PageRequest;
use onceward_domain::tally::CreditTally;
use onceward_domain::time::Timestamp;

use super::Defect;
use super::apply::{lost, violated};
use super::rows::Rows;

impl Rows {
    pub(super) fn apply_credit(&mut self, changes: &mut ChangeSet, defect: Defect) -> Result<(), Error> {
        for account in std::mem::take(&mut changes.new_accounts) {
            if self.accounts.contains(&account.id) || account.balance != 0 || account.entries != 0 {
                return Err(violated(format!("account {} exists, or starts with a balance", account.id)));
            }
            self.accounts.put(account.id.clone(), account);
        }
        for account in &changes.accounts {
            let before = self.accounts.get(&account.id);
            let is_current = before
                .is_some_and(|row| row.revision == account.revision || defect == Defect::IgnoreRevisions);
            if !is_current {
                return Err(lost(format!("moving account {}", account.id)));
            }
        }
        let of_jobs = changes.entries.iter().filter_map(|entry| entry.job.as_ref());
        let jobs = || changes.new_jobs.iter().chain(&changes.jobs);
        if let Some(stray) = of_jobs.into_iter().find(|id| !jobs().any(|job| job.id == **id)) {
            return Err(violated(format!("an entry of job {stray} without it")));
        }
        for job in std::mem::take(&mut changes.new_jobs) {
            let is_charged = changes.accounts.iter().any(|account| account.id == job.account);
            if self.jobs.contains(&job.id) || !is_charged || (job.is_reclaimed && !job.is_refunded) {
                return Err(violated(format!("job {} exists, or is opened without a charge", job.id)));
            }
            self.jobs.put(job.id.clone(), job);
        }
        for job in std::mem::take(&mut changes.jobs) {
            self.move_job(job, defect)?;
        }
        for entry in std::mem::take(&mut changes.entries) {
            if !changes.accounts.iter().any(|account| account.id == entry.account) {
                return Err(violated(format!("an entry of account {} without its move", entry.account)));
            }
            self.append(entry)?;
        }
        for account in std::mem::take(&mut changes.accounts) {
            self.move_account(account)?;
        }
        Ok(())
    }

    fn append(&mut self, entry: Entry) -> Result<(), Error> {
        let (balance, at) =
            self.last_entry(&entry.account).map_or((0, entry.at), |last| (last.balance_after, last.at));
        let number = self.entries_of(&entry.account).count();
        let goes_on = i64::try_from(number).is_ok_and(|number| entry.number == number + 1)
            && balance.checked_add(entry.amount) == Some(entry.balance_after)
            && entry.kind.fits(entry.amount)
            && at <= entry.at;
        if !goes_on {
            return Err(violated(format!("entry {} of {} does not go on", entry.number, entry.account)));
        }
        if let (None, true, Some(reference)) = (&entry.job, entry.amount < 0, &entry.reference) {
            let key = (entry.account.clone(), reference.clone());
            if self.charges.contains(&key) {
                return Err(violated(format!("{reference} was charged to {} before", entry.account)));
            }
            self.charges.put(key, entry.number);
        }
        if let Some(job) = &entry.job {
            let key = (job.clone(), entry.kind);
            if !self.jobs.contains(job) || self.job_entries.contains(&key) {
                return Err(violated(format!("job {job} is not there, or has its {}", entry.kind.name())));
            }
            self.job_entries.put(key, entry.amount);
        }
        self.credit_entries.put((entry.account.clone(), entry.number), entry);
        Ok(())
    }

    /// Moves a job; its terms stay as they are.
    fn move_job(&mut self, job: Job, defect: Defect) -> Result<(), Error> {
        let before = self.jobs.get(&job.id);
        let before = before.filter(|row| row.revision == job.revision || defect == Defect::IgnoreRevisions);
        let before = before.ok_or_else(|| lost(format!("moving job {}", job.id)))?;
        if job.is_reclaimed && !job.is_refunded {
            return Err(violated(format!("job {} is reclaimed and not refunded", job.id)));
        }
        let after = Job {
            account: before.account.clone(),
            cost: before.cost,
            max_attempts: before.max_attempts,
            payload: before.payload.clone(),
            created_at: before.created_at,
            revision: before.revision + 1,
            ..job
        };
        self.jobs.put(after.id.clone(), after);
        Ok(())
    }

    fn move_account(&mut self, mut account: Account) -> Result<(), Error> {
        let last = self.last_entry(&account.id).map_or((0, 0), |last| (last.balance_after, last.number));
        if (account.balance, account.entries) != last {
            return Err(violated(format!("the balance of {} is not that of its last entry", account.id)));
        }
        let before = self.accounts.get(&account.id).expect("the guard found it");
        account.revision = before.revision + 1;
        account.created_at = before.created_at;
        self.accounts.put(account.id.clone(), account);
        Ok(())
    }

    fn entries_of(&self, account: &AccountId) -> impl DoubleEndedIterator<Item = &Entry> {
        let (from, to) = ((account.clone(), i64::MIN), (account.clone(), i64::MAX));
        self.credit_entries.range(from..=to).map(|(_, entry)| entry)
    }

    fn last_entry(&self, account: &AccountId) -> Option<&Entry> {
        self.entries_of(account).next_back()
    }

    pub(super) fn load_credit(&self, need: &Need, facts: &mut Facts) {
        let charged = need.charges.iter().map(|(account, _)| account);
        for id in need.accounts.iter().chain(charged) {
            facts.accounts.extend(self.accounts.get(id).map(|row| (id.clone(), row.clone())));
        }
        for id in &need.jobs {
            let Some(job) = self.jobs.get(id) else { continue };
            facts.jobs.insert(id.clone(), job.clone());
            let account = self.accounts.get(&job.account);
            facts.accounts.extend(account.map(|row| (row.id.clone(), row.clone())));
        }
        for key in &need.charges {
            let entry =
                self.charges.get(key).and_then(|number| self.credit_entries.get(&(key.0.clone(), *number)));
            facts.charges.extend(entry.map(|row| (key.clone(), row.clone())));
        }
    }

    /// Entries of an account, newest first.
    pub(super) fn list_entries(&self, account: &AccountId, page: PageRequest) -> Vec<Entry> {
        let before = page.before.unwrap_or(i64::MAX);
        let limit = usize::try_from(page.limit).unwrap_or(usize::MAX);
        self.entries_of(account).rev().filter(|entry| entry.number < before).take(limit).cloned().collect()
    }

    /// How an account stood at a moment.
    pub(super) fn standing(&self, account: &AccountId, at: Timestamp) -> Option<Standing> {
        self.accounts.get(account)?;
        let last = self.entries_of(account).take_while(|entry| entry.at <= at).last();
        let (balance, entries) = last.map_or((0, 0), |entry| (entry.balance_after, entry.number));
        Some(Standing { balance, entries, as_of: at })
    }

    pub(super) fn tally_credit(&self) -> CreditTally {
        let wrong = self.accounts.iter().filter(|(_, account)| self.contradicts_entries(account)).count();
        let count = |number: usize| u64::try_from(number).expect("memory is smaller");
        CreditTally {
            accounts: count(self.accounts.len()),
            entries: count(self.credit_entries.len()),
            balance_contradictions: count(wrong),
            job_contradictions: count(self.jobs.iter().filter(|(_, job)| self.contradicts_job(job)).count()),
            jobs_nowhere: count(self.jobs.iter().filter(|(_, job)| self.is_nowhere(job)).count()),
        }
    }

    fn contradicts_job(&self, job: &Job) -> bool {
        let entry = |kind| self.job_entries.get(&(job.id.clone(), kind)).copied();
        let cost = job.cost.amount();
        let is_delivered = job.status == JobStatus::Delivered;
        entry(EntryKind::Charge) != Some(-cost)
            || entry(EntryKind::Refund) != job.is_refunded.then_some(cost)
            || entry(EntryKind::Reclaim) != job.is_reclaimed.then_some(-cost)
            || (is_delivered && job.is_refunded != job.is_reclaimed)
            || (!is_delivered && job.is_reclaimed)
    }

    fn is_nowhere(&self, job: &Job) -> bool {
        let lane = Lane::new(Lane::JOB_RETRY);
        let is_in = |lane: Lane| self.due.contains(&(lane, Arc::from(job.id.as_str())));
        match job.status {
            JobStatus::WaitingRetry => !is_in(lane),
            JobStatus::DeadLetter => !is_in(lane.dead_letters()) && !is_in(lane),
            JobStatus::Running | JobStatus::Delivered | JobStatus::Failed => false,
        }
    }

    fn contradicts_entries(&self, account: &Account) -> bool {
        let (mut sum, mut number) = (0_i64, 0);
        let every_entry_goes_on = self.entries_of(&account.id).all(|entry| {
            (sum, number) = (sum + entry.amount, number + 1);
            (entry.balance_after, entry.number) == (sum, number)
        });
        !every_entry_goes_on || (account.balance, account.entries) != (sum, number)
    }
}
