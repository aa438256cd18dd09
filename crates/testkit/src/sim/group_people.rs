//! People of group orders: a leader, those who join and leave around the deadline, and somebody who sees to what failed.
//!
//! Invariants checked here, from outside: a repeat is an answer, never a refusal; nobody is let in whose joining is later
//! than the deadline; a person's wish to settle is refused exactly where nothing has failed. What they do is drawn on the way.

use std::sync::Arc;

use onceward::Engine;
use onceward::execute::execute;
use onceward::operations::group::{self, GroupTerms, Join, Leave, Put, PutGroup, SettleByHand};
use onceward::operations::once::Idempotent;
use onceward_domain::credit::Credits;
use onceward_domain::decide::credit::{Grant, grant};
use onceward_domain::error::{Code, Error};
use onceward_domain::facts::Need;
use onceward_domain::group::{GroupOrder, WALLET};
use onceward_domain::id::{AccountId, GroupId, UserId};
use onceward_domain::machine::Machine;
use onceward_domain::machine::group::Group as GroupStatus;
use onceward_domain::money::{Currency, Money};
use onceward_domain::time::{Millis, Timestamp};

use super::net::Net;
use super::scenario::Circle;

/// How often somebody looks after a group before giving up: for as long as a line can be bad.
const LOOKS: u32 = 2_000;
/// How an accepted wish is written down.
const ACCEPTED: u16 = 202;
/// How a refused one is.
const REFUSED: u16 = 409;

#[derive(Clone)]
struct People {
    net: Net,
    group: GroupId,
    deadline: Timestamp,
    circle: Circle,
}

/// Makes a group and lets everybody come.
pub(crate) async fn gather(net: Net, circle: Circle) {
    let group = GroupId::trusted(&format!("group-{}", circle.number));
    let deadline = net.world.now().plus(circle.open_for);
    let people = People { net, group, deadline, circle };
    if !people.make().await {
        return;
    }
    for number in 0..people.circle.members {
        let member = people.clone();
        people.net.send_out(async move { member.take_part(number).await });
    }
    people.look_after().await;
}

impl People {
    fn draw(&self, bound: u64) -> u64 {
        self.net.world.draw(|rng| rng.below(bound))
    }

    async fn rest(&self, most: i64) {
        let length = self.net.world.draw(|rng| rng.between(0, most));
        self.net.world.sleep(Millis(length)).await;
    }

    fn user(&self, number: u64) -> UserId {
        UserId::trusted(&format!("member-{number}"))
    }

    /// Makes the group, twice.
    async fn make(&self) -> bool {
        let terms = GroupTerms {
            id: self.group.clone(),
            leader: UserId::trusted("leader"),
            deadline: self.deadline,
            charge_via: Arc::from(if self.circle.via_wallet { WALLET } else { "sandbox" }),
            currency: Currency::CNY,
            min_participants: self.circle.min_participants,
        };
        let wish = move |engine: Engine| {
            let command = PutGroup { terms: terms.clone(), actor: Arc::from("leader") };
            async move { group::put(&engine, command).await }
        };
        for _ in 0..2 {
            match self.net.ask(wish.clone()).await {
                Some(Ok((Put::Created, _))) => self.net.world.sometimes("group_made"),
                Some(Ok((Put::Unchanged, _))) => {}
                // The line was bad for so long that the deadline came first.
                Some(Err(Code::Invalid)) if self.net.world.now() >= self.deadline => return false,
                other => {
                    let heard = other.map(|one| one.map(|(put, _)| put));
                    self.net.world.violated(format!("making {} heard {heard:?}", self.group));
                    return false;
                }
            }
        }
        true
    }

    /// Comes, mostly around the deadline, and sometimes leaves again.
    async fn take_part(&self, number: u64) {
        if self.circle.via_wallet && self.draw(10) < 8 {
            self.fill_wallet(number).await;
        }
        self.wait_for_moment().await;
        let amount = self.net.world.draw(|rng| rng.between(1, 50));
        self.join(number, amount).await;
        if self.draw(10) < 3 {
            self.join(number, amount).await;
        }
        if self.draw(10) < 3 {
            self.wait_for_moment().await;
            self.leave(number).await;
        }
    }

    /// Waits: a little, or until the last or the first millisecond on one side of the deadline (C82).
    async fn wait_for_moment(&self) {
        let now = self.net.world.now();
        let left = self.deadline.since(now).0;
        match self.draw(6) {
            0 => self.net.world.sleep(Millis((left - 1).max(0))).await,
            1 => self.net.world.sleep(Millis(left)).await,
            2 => self.net.world.sleep(Millis(left + 1)).await,
            _ => self.rest(left.max(1)).await,
        }
    }

    async fn fill_wallet(&self, number: u64) {
        let amount = self.net.world.draw(|rng| rng.between(1, 60));
        let account = AccountId::trusted(self.user(number).as_str());
        let wish = move |engine: Engine| {
            let command = Grant {
                account: account.clone(),
                amount: Credits::new(amount).expect("a small amount"),
                reference: Arc::from("pocket money"),
                actor: Arc::from("parents"),
            };
            let need = Need { accounts: vec![account.clone()], ..Need::default() };
            async move { execute(&engine, "simulation.grant", need, move |facts| grant(facts, &command)).await }
        };
        drop(self.net.ask(wish).await);
    }

    async fn join(&self, number: u64, amount: i64) {
        let join = Join {
            group: self.group.clone(),
            user: self.user(number),
            amount: Money::new(amount, Currency::CNY).expect("a small amount"),
        };
        let wish = move |engine: Engine| {
            let join = join.clone();
            async move { group::join(&engine, join).await }
        };
        match self.net.ask(wish).await {
            Some(Ok((_, participant))) if participant.joined_at < self.deadline => {
                self.net.world.sometimes("group_joined");
            }
            Some(Err(Code::GroupClosed)) => self.net.world.sometimes("group_joined_too_late"),
            other => {
                let heard = other.map(|one| one.map(|(put, one)| (put, one.joined_at)));
                self.net.world.violated(format!("joining {} heard {heard:?}", self.group));
            }
        }
    }

    async fn leave(&self, number: u64) {
        let leave = Leave { group: self.group.clone(), user: self.user(number) };
        let wish = move |engine: Engine| {
            let leave = leave.clone();
            async move { group::leave(&engine, leave).await }
        };
        match self.net.ask(wish).await {
            // Who was let in too late takes no part; who left, and did not hear so, took part before.
            Some(Ok(()) | Err(Code::NotFound)) => self.net.world.sometimes("group_left"),
            Some(Err(Code::GroupClosed)) => self.net.world.sometimes("group_left_too_late"),
            other => self.net.world.violated(format!("leaving {} heard {other:?}", self.group)),
        }
    }

    /// Looks at the group until it has its end; where it failed, asks for another round.
    async fn look_after(&self) {
        for look in 0..LOOKS {
            self.rest(60_000).await;
            let id = self.group.clone();
            let seen = self.net.ask(move |engine: Engine| {
                let id = id.clone();
                async move { group::get(&engine, &id).await }
            });
            let Some(Ok(view)) = seen.await else {
                return self.net.world.violated(format!("{} was made and is not found", self.group));
            };
            match view.group.status {
                GroupStatus::Settled | GroupStatus::Cancelled => return,
                GroupStatus::Failed => self.settle_by_hand(look).await,
                GroupStatus::Open | GroupStatus::Closed => {}
            }
        }
        self.net.world.violated(format!("{} had no end", self.group));
    }

    async fn settle_by_hand(&self, number: u32) {
        let command = SettleByHand {
            group: self.group.clone(),
            actor: Arc::from("back office"),
            idempotent: Idempotent {
                key: Arc::from(format!("back-office/{}-{number}", self.group)),
                fingerprint: [9; 32],
                render: Arc::new(|outcome: Result<&GroupOrder, &Error>| match outcome {
                    Ok(group) => (ACCEPTED, group.status.name().as_bytes().to_vec()),
                    Err(error) => (REFUSED, error.code().as_str().as_bytes().to_vec()),
                }),
            },
        };
        let wish = move |engine: Engine| {
            let command = command.clone();
            async move { group::settle_by_hand(&engine, command).await }
        };
        match self.net.ask(wish).await {
            Some(Ok(answer)) if answer.status == ACCEPTED => self.net.world.sometimes("group_retried"),
            other => self.net.world.violated(format!("settling {} by hand heard {other:?}", self.group)),
        }
    }
}
