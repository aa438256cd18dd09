//! Credit accounts: giving, setting right, charging (CL-01, CL-07).
//!
//! Invariants: a balance changes only together with an entry that says so (C77); a charge never takes an account below
//! what it is allowed to owe, whoever else charges it (the account's revision lets one of two deciders through); sums are
//! checked, so no amount wraps (C111). A charge without a job is made once per account and reference. Deliberately
//! absent: jobs. Read next: [`crate::credit`].

use std::sync::Arc;

use crate::changes::ChangeSet;
use crate::credit::{Account, BALANCE_LIMIT, CREDITS_LIMIT, Credits, Entry, EntryKind};
use crate::decide::Draft;
use crate::error::{Code, Error};
use crate::facts::Facts;
use crate::guard::Guard;
use crate::id::{AccountId, JobId};

/// Somebody gives credits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grant {
    /// To whom; an account that is not known yet begins with this.
    pub account: AccountId,
    /// How many.
    pub amount: Credits,
    /// What the giver calls it.
    pub reference: Arc<str>,
    /// Who.
    pub actor: Arc<str>,
}

/// A person sets a balance right.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Adjust {
    /// Whose.
    pub account: AccountId,
    /// By how much, signed, not zero.
    pub amount: i64,
    /// Why.
    pub reason: Arc<str>,
    /// Who.
    pub actor: Arc<str>,
}

/// Somebody says how far an account may be overdrawn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PutAccount {
    /// Which; one that is not known yet is opened.
    pub account: AccountId,
    /// How far below zero a charge may take it.
    pub overdraft: i64,
}

/// Something is paid for out of an account: a group order's wallet charge, for one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Charge {
    /// Whose.
    pub account: AccountId,
    /// How many.
    pub amount: Credits,
    /// What for; the same account and reference are charged once.
    pub reference: Arc<str>,
    /// Who.
    pub actor: Arc<str>,
}

/// What came of a charge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Charged {
    /// It was made now.
    Now(Entry),
    /// It had been made before.
    Before(Entry),
}

/// Whether an account is there since now or before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Put {
    /// It was opened now.
    Opened(Account),
    /// It was there, and allows now what was asked for.
    Known(Account),
}

/// Gives credits. Needs `accounts`.
///
/// # Errors
/// [`Code::Invalid`] where the balance would pass [`BALANCE_LIMIT`].
pub fn grant(facts: &mut Facts, command: &Grant) -> Result<(ChangeSet, Entry), Error> {
    let mut draft = Draft::default();
    let posting = Posting {
        kind: EntryKind::Grant,
        amount: command.amount.amount(),
        job: None,
        reference: Some(command.reference.clone()),
        reason: None,
        actor: command.actor.clone(),
    };
    check_ceiling(facts, &command.account, posting.amount)?;
    open_where_unknown(facts, &mut draft, &command.account);
    let entry = draft.enter(facts, &command.account, posting)?;
    Ok((draft.finish(facts), entry))
}

/// Sets a balance right. Needs `accounts`.
///
/// # Errors
/// [`Code::NotFound`] for an unknown account; [`Code::Invalid`] for zero, for more than [`CREDITS_LIMIT`] either way, and
/// where the balance would pass [`BALANCE_LIMIT`]; [`Code::InsufficientCredit`] where the account may not owe that much.
pub fn adjust(facts: &mut Facts, command: &Adjust) -> Result<(ChangeSet, Entry), Error> {
    let about = || format!("adjusting account {} by {}", command.account, command.amount);
    if command.amount == 0 || command.amount.unsigned_abs() > CREDITS_LIMIT.unsigned_abs() {
        return Err(Error::new(Code::Invalid, about()));
    }
    let account = facts.accounts.get(&command.account).ok_or_else(|| Error::new(Code::NotFound, about()))?;
    if command.amount < 0 && account.available() < -command.amount {
        return Err(Error::new(Code::InsufficientCredit, about()));
    }
    check_ceiling(facts, &command.account, command.amount)?;
    let mut draft = Draft::default();
    let posting = Posting {
        kind: EntryKind::Adjust,
        amount: command.amount,
        job: None,
        reference: None,
        reason: Some(command.reason.clone()),
        actor: command.actor.clone(),
    };
    let entry = draft.enter(facts, &command.account, posting)?;
    Ok((draft.finish(facts), entry))
}

/// Opens an account, or says anew how far it may be overdrawn; what it owes already stays owed. Needs `accounts`.
///
/// # Errors
/// [`Code::Invalid`] for an overdraft below 0 or above [`BALANCE_LIMIT`].
pub fn put(facts: &mut Facts, command: &PutAccount) -> Result<(ChangeSet, Put), Error> {
    if !(0..=BALANCE_LIMIT).contains(&command.overdraft) {
        return Err(Error::new(Code::Invalid, format!("allowing account {} to owe", command.account)));
    }
    let mut draft = Draft::default();
    let is_new = open_where_unknown(facts, &mut draft, &command.account);
    let now = facts.now;
    let account = facts.accounts.get_mut(&command.account).expect("it is known since the line above");
    if account.overdraft != command.overdraft {
        account.overdraft = command.overdraft;
        account.updated_at = account.updated_at.max(now);
        draft.touch_account(&command.account);
    }
    let account = account.clone();
    let put = if is_new { Put::Opened(account) } else { Put::Known(account) };
    Ok((draft.finish(facts), put))
}

/// Charges accounts, each command as if it had come alone. Needs `charges`.
#[must_use]
pub fn charge(facts: &mut Facts, commands: &[Charge]) -> (ChangeSet, Vec<Result<Charged, Error>>) {
    let mut draft = Draft::default();
    let outcomes = commands.iter().map(|command| charge_into(facts, &mut draft, command)).collect();
    (draft.finish(facts), outcomes)
}

/// Charges an account as part of another decision, whose changes then hold the entry. Needs `charges`.
///
/// # Errors
/// [`Code::InsufficientCredit`], also for an account that nobody has heard of; [`Code::Differs`] where the reference was
/// charged with another amount. Nothing is changed then.
pub(crate) fn charge_into(facts: &mut Facts, draft: &mut Draft, command: &Charge) -> Result<Charged, Error> {
    let key = (command.account.clone(), command.reference.clone());
    if let Some(entry) = facts.charges.get(&key) {
        return if entry.amount == -command.amount.amount() {
            Ok(Charged::Before(entry.clone()))
        } else {
            let about = format!("charging {} again to {}", command.reference, command.account);
            Err(Error::new(Code::Differs, about))
        };
    }
    check_funds(facts, &command.account, command.amount)?;
    let posting = Posting {
        kind: EntryKind::Charge,
        amount: -command.amount.amount(),
        job: None,
        reference: Some(command.reference.clone()),
        reason: None,
        actor: command.actor.clone(),
    };
    let entry = draft.enter(facts, &command.account, posting)?;
    facts.charges.insert(key, entry.clone());
    Ok(Charged::Now(entry))
}

/// An entry in the making.
pub(super) struct Posting {
    pub(super) kind: EntryKind,
    pub(super) amount: i64,
    pub(super) job: Option<JobId>,
    pub(super) reference: Option<Arc<str>>,
    pub(super) reason: Option<Arc<str>>,
    pub(super) actor: Arc<str>,
}

impl Draft {
    /// Appends an entry to an account that was loaded, and moves its balance with it. Whether the account may owe so much
    /// is the caller's question: a reclaim takes back what was given too early, whatever was bought with it meanwhile.
    pub(super) fn enter(
        &mut self,
        facts: &mut Facts,
        id: &AccountId,
        posting: Posting,
    ) -> Result<Entry, Error> {
        let Posting { kind, amount, job, reference, reason, actor } = posting;
        assert!(kind.fits(amount), "a {} entry of {amount}", kind.name());
        let account = facts.accounts.get_mut(id).expect("the caller loaded the account");
        let sum = account.balance.checked_add(amount);
        let balance_after = sum.ok_or_else(|| {
            Error::new(
                Code::Invalid,
                format!("a {} of {amount} leaves the range of account {id}", kind.name()),
            )
        })?;
        // The times of an account's entries never run backwards, whatever clock the store was opened with.
        let at = facts.now.max(account.updated_at);
        account.balance = balance_after;
        account.entries += 1;
        account.updated_at = at;
        let entry = Entry {
            account: id.clone(),
            number: account.entries,
            kind,
            amount,
            balance_after,
            job,
            reference,
            reason,
            actor,
            at,
        };
        self.touch_account(id);
        self.changes.entries.push(entry.clone());
        Ok(entry)
    }
}

/// Whether the account may be charged this much (CL-07). One that nobody has heard of holds nothing.
pub(super) fn check_funds(facts: &Facts, id: &AccountId, amount: Credits) -> Result<(), Error> {
    let available = facts.accounts.get(id).map_or(0, Account::available);
    if !Guard::ChargeNeedsCredit.holds(available >= amount.amount()) {
        return Err(Error::new(Code::InsufficientCredit, format!("charging {amount} to account {id}")));
    }
    Ok(())
}

fn check_ceiling(facts: &Facts, id: &AccountId, amount: i64) -> Result<(), Error> {
    let balance = facts.accounts.get(id).map_or(0, |account| account.balance);
    if amount > 0 && balance.saturating_add(amount) > BALANCE_LIMIT {
        return Err(Error::new(
            Code::Invalid,
            format!("giving {amount} to account {id}, which holds {balance}"),
        ));
    }
    Ok(())
}

fn open_where_unknown(facts: &mut Facts, draft: &mut Draft, id: &AccountId) -> bool {
    if facts.accounts.contains_key(id) {
        return false;
    }
    let account = Account::empty(id.clone(), facts.now);
    draft.changes.new_accounts.push(account.clone());
    facts.accounts.insert(id.clone(), account);
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::{Millis, Timestamp};

    fn account(name: &str) -> AccountId {
        AccountId::trusted(name)
    }

    fn credits(amount: i64) -> Credits {
        Credits::new(amount).unwrap()
    }

    fn giving(name: &str, amount: i64) -> Grant {
        Grant {
            account: account(name),
            amount: credits(amount),
            reference: "gift".into(),
            actor: "giver".into(),
        }
    }

    fn charging(name: &str, amount: i64, reference: &str) -> Charge {
        Charge {
            account: account(name),
            amount: credits(amount),
            reference: reference.into(),
            actor: "till".into(),
        }
    }

    fn holding(name: &str, amount: i64) -> Facts {
        let mut facts = Facts::empty(Timestamp(1_000));
        grant(&mut facts, &giving(name, amount)).unwrap();
        facts
    }

    fn codes<T>(outcomes: &[Result<T, Error>]) -> Vec<Option<Code>> {
        outcomes.iter().map(|one| one.as_ref().err().map(Error::code)).collect()
    }

    #[test]
    fn cl_01_a_first_gift_opens_the_account_with_an_entry() {
        let mut facts = Facts::empty(Timestamp(1_000));
        let (changes, entry) = grant(&mut facts, &giving("a", 40)).unwrap();
        assert_eq!((entry.number, entry.amount, entry.balance_after), (1, 40, 40));
        assert_eq!(
            changes.new_accounts,
            [Account::empty(account("a"), Timestamp(1_000))],
            "C77: it begins at 0"
        );
        assert_eq!(changes.entries, [entry]);
        assert_eq!((changes.accounts[0].balance, changes.accounts[0].entries), (40, 1));
    }

    #[test]
    fn c_66_c_75_charges_of_one_batch_see_each_other_and_stop_where_nothing_is_left() {
        let mut facts = holding("a", 5_000);
        let six: Vec<Charge> = (0..6).map(|n| charging("a", 1_000, &format!("hold-{n}"))).collect();
        let (changes, outcomes) = charge(&mut facts, &six);
        let expected = [None, None, None, None, None, Some(Code::InsufficientCredit)];
        assert_eq!(codes(&outcomes), expected);
        assert_eq!((changes.entries.len(), changes.accounts.len()), (5, 1), "one row for the account");
        assert_eq!((changes.accounts[0].balance, changes.accounts[0].entries), (0, 6));
        let after: Vec<i64> = changes.entries.iter().map(|entry| entry.balance_after).collect();
        assert_eq!(after, [4_000, 3_000, 2_000, 1_000, 0]);
    }

    #[test]
    fn c_101_one_reference_is_one_charge() {
        let mut facts = holding("a", 100);
        let commands = [charging("a", 10, "k"), charging("a", 10, "k"), charging("a", 12, "k")];
        let (changes, outcomes) = charge(&mut facts, &commands);
        assert_eq!(changes.entries.len(), 1);
        let entry = changes.entries[0].clone();
        assert_eq!(outcomes[0].as_ref().unwrap(), &Charged::Now(entry.clone()));
        assert_eq!(outcomes[1].as_ref().unwrap(), &Charged::Before(entry));
        assert_eq!(codes(&outcomes), [None, None, Some(Code::Differs)]);
    }

    #[test]
    fn cl_07_an_account_owes_only_what_it_is_allowed_to() {
        let mut facts = holding("a", 10);
        let allowed = PutAccount { account: account("a"), overdraft: 5 };
        assert!(matches!(put(&mut facts, &allowed).unwrap().1, Put::Known(_)));
        let (_, outcomes) =
            charge(&mut facts, &[charging("a", 16, "k1"), charging("a", 15, "k2"), charging("a", 1, "k3")]);
        assert_eq!(codes(&outcomes), [Some(Code::InsufficientCredit), None, Some(Code::InsufficientCredit)]);
        assert_eq!(facts.accounts[&account("a")].balance, -5);
        let (_, outcomes) = charge(&mut facts, &[charging("nobody", 1, "k")]);
        assert_eq!(codes(&outcomes), [Some(Code::InsufficientCredit)]);
        let (changes, opened) =
            put(&mut facts, &PutAccount { account: account("new"), overdraft: 3 }).unwrap();
        assert!(matches!(opened, Put::Opened(_)));
        assert_eq!((changes.new_accounts.len(), changes.accounts.len()), (1, 1));
        let (changes, _) = put(&mut facts, &PutAccount { account: account("new"), overdraft: 3 }).unwrap();
        assert!(changes.is_empty(), "a repeat changes nothing");
    }

    #[test]
    fn c_110_c_111_c_112_big_amounts_are_kept_or_refused_and_never_wrap() {
        let mut facts = holding("a", 3_616_672_277);
        assert_eq!(facts.accounts[&account("a")].balance, 3_616_672_277);
        for _ in 0..9 {
            grant(&mut facts, &giving("a", CREDITS_LIMIT)).unwrap();
        }
        let refused = grant(&mut facts, &giving("a", CREDITS_LIMIT)).unwrap_err();
        assert_eq!(refused.code(), Code::Invalid);
        let by = |amount| Adjust { account: account("a"), amount, reason: "r".into(), actor: "p".into() };
        for amount in [0, CREDITS_LIMIT + 1, -CREDITS_LIMIT - 1, i64::MAX, i64::MIN] {
            assert_eq!(adjust(&mut facts, &by(amount)).unwrap_err().code(), Code::Invalid, "{amount}");
        }
        for overdraft in [-1, i64::MIN, BALANCE_LIMIT + 1] {
            let command = PutAccount { account: account("a"), overdraft };
            assert_eq!(put(&mut facts, &command).unwrap_err().code(), Code::Invalid, "{overdraft}");
        }
        let mut draft = Draft::default();
        facts.accounts.get_mut(&account("a")).unwrap().balance = i64::MAX;
        let posting = Posting {
            kind: EntryKind::Refund,
            amount: 1,
            job: None,
            reference: None,
            reason: None,
            actor: "engine".into(),
        };
        assert_eq!(draft.enter(&mut facts, &account("a"), posting).unwrap_err().code(), Code::Invalid);
        assert!(draft.finish(&facts).is_empty());
    }

    #[test]
    fn cl_01_a_person_sets_right_with_a_reason_and_never_below_what_is_allowed() {
        let mut facts = holding("a", 10);
        let by = |name, amount| Adjust {
            account: account(name),
            amount,
            reason: "goodwill".into(),
            actor: "ann".into(),
        };
        let (changes, entry) = adjust(&mut facts, &by("a", -10)).unwrap();
        assert_eq!(
            (entry.balance_after, entry.reason.as_deref(), &*entry.actor),
            (0, Some("goodwill"), "ann")
        );
        assert_eq!(changes.entries.len(), 1);
        assert_eq!(adjust(&mut facts, &by("a", -1)).unwrap_err().code(), Code::InsufficientCredit);
        assert_eq!(adjust(&mut facts, &by("nobody", 1)).unwrap_err().code(), Code::NotFound);
    }

    #[test]
    fn dr_06_the_times_of_an_account_never_run_backwards() {
        let mut facts = holding("a", 10);
        facts.now = facts.now.minus(Millis(500));
        let (_, entry) = grant(&mut facts, &giving("a", 1)).unwrap();
        assert_eq!(entry.at, Timestamp(1_000));
    }

    #[test]
    fn c_76_a_thousand_small_charges_are_their_sum_to_the_unit() {
        let mut facts = holding("a", 100_000);
        let commands: Vec<Charge> = (0..1_000).map(|n| charging("a", n % 7 + 1, &format!("k{n}"))).collect();
        let (changes, _) = charge(&mut facts, &commands);
        let sum: i64 = changes.entries.iter().map(|entry| entry.amount).sum();
        assert_eq!(facts.accounts[&account("a")].balance, 100_000 + sum);
        assert_eq!(changes.entries.last().unwrap().balance_after, 100_000 + sum);
    }
}
