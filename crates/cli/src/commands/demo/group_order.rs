//! Two group orders that settle at their cut-off: one out of wallets, one at a bank whose every answer is lost.
//!
//! Invariants: people join over HTTP like anybody; whoever comes after the deadline is refused and owes nothing; what was
//! charged is compared with the wallets' entries and with what the bank really took. Deliberately absent: waiting for the
//! settlement, which the sale's coming to rest includes.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::sale::Sale;
use super::tally::Seen;
use crate::client::{Answer, Client, pause};
use crate::failure::Failure;
use crate::outside::check::Check;
use crate::outside::server::Server;
use crate::time::{SystemClock, rfc3339};
use onceward_domain::ports::clock::Clock as _;
use onceward_domain::time::Millis;

/// The group that pays out of wallets.
const BY_WALLET: &str = "demo-wallets";
/// The group that pays at the bank.
const BY_BANK: &str = "demo-bank";
/// Who want to take part in each.
const PEOPLE: usize = 12;
/// What each pays.
const SHARE: i64 = 10;
/// What a wallet holds, and what that of the last one holds: too little.
const IN_WALLET: i64 = 25;
const IN_POOR_WALLET: i64 = 9;
/// How long the groups are open: enough to join, also over a kill or two.
const OPEN_FOR: Millis = Millis(2_500);
/// Between two looks at something that needs a moment.
const LOOK: std::time::Duration = std::time::Duration::from_millis(20);

/// What became of the group orders.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Gathered {
    /// Shares that were charged.
    pub(crate) charged: usize,
    /// Shares that were declined.
    pub(crate) declined: usize,
}

fn person(number: usize) -> String {
    format!("friend-{number}")
}

impl Sale<'_> {
    /// Makes the groups and lets everybody join.
    ///
    /// # Errors
    /// When the server gives no answer.
    pub(crate) async fn gather(&self) -> Result<(), Failure> {
        let mut client = self.client();
        // Whatever is charged off-session, the money moves and the answer is lost.
        let mode = client.put("/sandbox/mode", &json!({"charge": "timeout_after_effect"})).await?;
        self.expect(mode.status == 200, || format!("the bank's mode is {}", mode.short()));
        for number in 0..PEOPLE {
            let amount = if number + 1 == PEOPLE { IN_POOR_WALLET } else { IN_WALLET };
            let path = format!("/v1/accounts/{}/grants", person(number));
            let gift = json!({"amount": amount, "reference": "pocket money"});
            let given = client.post_once(&path, &format!("pocket-{number}"), &gift).await?;
            self.expect(given.status == 201, || format!("filling a wallet is {}", given.short()));
        }
        let deadline = rfc3339(SystemClock.now().plus(OPEN_FOR));
        for (group, via) in [(BY_WALLET, "wallet"), (BY_BANK, "sandbox")] {
            let terms = json!({"leader_user_id": person(0), "deadline": deadline, "charge_via": via, "currency": "CNY"});
            let made = client.put(&format!("/v1/groups/{group}"), &terms).await?;
            self.expect(matches!(made.status, 200 | 201), || format!("making {group} is {}", made.short()));
            for number in 0..PEOPLE {
                self.join(&mut client, group, person(number)).await?;
            }
        }
        Ok(())
    }

    async fn join(&self, client: &mut Client<'_>, group: &'static str, user: String) -> Result<(), Failure> {
        let path = format!("/v1/groups/{group}/participants/{user}");
        let share = json!({"amount": {"amount": SHARE, "currency": "CNY"}});
        let joined = client.put(&path, &share).await?;
        let mut seen = self.tally.lock();
        match (joined.status, joined.text("code")) {
            (200 | 201, _) => seen.joined.push((group, user)),
            (409, "group_closed") => seen.refuse("group_closed"),
            _ => seen.contradict(format!("{user} joins {group} and hears {}", joined.short())),
        }
        Ok(())
    }

    /// Cuts the power once more, while the bank is being asked for the shares.
    ///
    /// # Errors
    /// When the deadline does not come, or the server cannot be started again.
    pub(crate) async fn cut_off(&self, server: &mut Server) -> Result<(), Failure> {
        let mut client = self.client();
        while client.get(&format!("/v1/groups/{BY_BANK}")).await?.text("status") == "OPEN" {
            self.in_time("the group orders are cut off")?;
            pause(LOOK).await;
        }
        server.kill().await?;
        server.start().await
    }

    /// Whether an answer is as promised; if not, it is noted.
    pub(crate) fn expect(&self, holds: bool, otherwise: impl FnOnce() -> String) {
        if !holds {
            self.tally.lock().contradict(otherwise());
        }
    }
}

/// Holds the groups against those who joined, the wallets and the bank.
///
/// # Errors
/// When the server does not answer.
pub(crate) async fn reckon(client: &mut Client<'_>, seen: &Seen) -> Result<(Check, Gathered), Failure> {
    let (mut wrong, mut gathered) = (Vec::new(), Gathered::default());
    for group in [BY_WALLET, BY_BANK] {
        let found = client.get(&format!("/v1/groups/{group}")).await?;
        let joined: BTreeSet<&str> =
            seen.joined.iter().filter(|(one, _)| *one == group).map(|(_, user)| user.as_str()).collect();
        wrong.extend(fault_of_group(&found, &joined));
        let people = found.body["participants"].as_array().map_or(&[][..], Vec::as_slice);
        for one in people {
            let charge = one["charge"].as_str().unwrap_or_default();
            let (user, is_charged) = (one["user_id"].as_str().unwrap_or_default(), charge == "CHARGED");
            gathered.charged += usize::from(is_charged);
            gathered.declined += usize::from(charge == "DECLINED");
            let times = times_charged(client, group, user).await?;
            let may_be =
                is_charged || (group == BY_WALLET && user == person(PEOPLE - 1) && charge == "DECLINED");
            if times != usize::from(is_charged) || !may_be {
                wrong.push(format!("{user} of {group} is {charge} and was charged {times} times"));
            }
        }
    }
    let compared = format!("{} charged once each, {} declined", gathered.charged, gathered.declined);
    Ok((Check::of("group_orders_settle_once", &compared, &wrong), gathered))
}

fn fault_of_group(found: &Answer, joined: &BTreeSet<&str>) -> Option<String> {
    let people = found.body["participants"].as_array().map_or(&[][..], Vec::as_slice);
    let present: BTreeSet<&str> = people.iter().filter_map(|one| one["user_id"].as_str()).collect();
    // Where nobody came in time there is nothing to settle.
    let end = if joined.is_empty() { "CANCELLED" } else { "SETTLED" };
    let is_right = found.text("status") == end && present == *joined;
    (!is_right).then(|| format!("{} joined, and the group is {}", joined.len(), found.short()))
}

/// How often somebody was really charged: entries of the wallet, or movements of money at the bank.
async fn times_charged(client: &mut Client<'_>, group: &str, user: &str) -> Result<usize, Failure> {
    let id = format!("settle:{group}:{user}");
    let path = if group == BY_WALLET {
        format!("/v1/accounts/{user}/entries?limit=200")
    } else {
        format!("/sandbox/customers/{user}/charges")
    };
    let found = client.get(&path).await?;
    let rows = found.body["data"].as_array().map_or(&[][..], Vec::as_slice);
    let is_share = |row: &&Value| {
        (row["reference"] == id && row["amount"] == -SHARE)
            || (row["charge_id"] == id && row["amount"]["amount"] == SHARE)
    };
    Ok(rows.iter().filter(is_share).count())
}
