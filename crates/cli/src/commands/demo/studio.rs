//! A few jobs that credits pay for: delivered, failed, delivered after they had failed, and run again by a worker.
//!
//! Invariants: whatever is said of a job is said twice, as a queue would deliver it; a job that failed costs nothing, one that
//! was delivered costs once, whatever was said before; the balance is what was given less what the jobs cost, and the
//! statement says so entry by entry.

use serde_json::{Value, json};

use super::sale::Sale;
use crate::client::{Client, pause};
use crate::failure::Failure;
use crate::outside::check::Check;

/// Whose credits pay.
const ACCOUNT: &str = "demo-studio";
/// What the account is given.
const GIVEN: i64 = 1_000;
/// What a job costs.
const COST: i64 = 40;
/// Jobs of each kind.
const JOBS_EACH: usize = 3;
/// The lease of the worker: what it had claimed before a power cut is given out again soon.
const LEASE_MS: u64 = 1_000;
/// Between two looks at the queue.
const LOOK: std::time::Duration = std::time::Duration::from_millis(50);

/// How a job goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    /// It delivers.
    Delivered,
    /// It fails for good.
    Failed,
    /// It is taken for failed, and had delivered.
    DeliveredLate,
    /// It fails, and a worker runs it again.
    RunAgain,
}

impl Fate {
    const ALL: [Self; 4] = [Self::Delivered, Self::Failed, Self::DeliveredLate, Self::RunAgain];

    /// Status, refunded, reclaimed, net.
    fn end(self) -> (&'static str, bool, bool, i64) {
        match self {
            Self::Delivered => ("DELIVERED", false, false, -COST),
            Self::Failed => ("FAILED", true, false, 0),
            Self::DeliveredLate | Self::RunAgain => ("DELIVERED", true, true, -COST),
        }
    }
}

/// What became of the jobs.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Produced {
    /// Jobs.
    pub(crate) jobs: usize,
    /// Jobs whose cost was given back.
    pub(crate) refunded: usize,
    /// Jobs whose cost was taken again after that.
    pub(crate) reclaimed: usize,
}

fn jobs() -> impl Iterator<Item = (String, Fate)> {
    let each = |fate: Fate| (0..JOBS_EACH).map(move |number| (format!("demo-{fate:?}-{number}"), fate));
    Fate::ALL.into_iter().flat_map(each)
}

impl Sale<'_> {
    /// Opens every job and has it done.
    ///
    /// # Errors
    /// When the server gives no answer.
    pub(crate) async fn produce(&self) -> Result<(), Failure> {
        let mut client = self.client();
        let gift = json!({"amount": GIVEN, "reference": "a gift"});
        let given = client.post_once(&format!("/v1/accounts/{ACCOUNT}/grants"), "studio", &gift).await?;
        self.expect(given.status == 201, || format!("giving credits is {}", given.short()));
        for (job, fate) in jobs() {
            let terms = json!({"account_id": ACCOUNT, "cost": COST, "payload": {"scene": job}});
            let opened = client.put(&format!("/v1/jobs/{job}"), &terms).await?;
            self.expect(matches!(opened.status, 200 | 201), || {
                format!("opening {job} is {}", opened.short())
            });
            let for_now = json!({"reason": "no paper", "retryable": true});
            match fate {
                Fate::Delivered => self.say(&mut client, &job, "succeed", &json!({})).await?,
                Fate::Failed => {
                    let for_good = json!({"reason": "no such scene", "retryable": false});
                    self.say(&mut client, &job, "fail", &for_good).await?;
                }
                Fate::DeliveredLate => {
                    self.say(&mut client, &job, "fail", &for_now).await?;
                    self.say(&mut client, &job, "succeed", &json!({})).await?;
                }
                Fate::RunAgain => self.say(&mut client, &job, "fail", &for_now).await?,
            }
        }
        self.work(&mut client).await
    }

    /// Says something of a job, twice.
    async fn say(&self, client: &mut Client<'_>, job: &str, verb: &str, body: &Value) -> Result<(), Failure> {
        for _redelivery in 0..2 {
            let heard = client.post(&format!("/v1/jobs/{job}/{verb}"), body).await?;
            // Who was away for longer than its lease is told so; what it delivered counts.
            let is_heard = heard.status == 200 || heard.text("code") == "lease_lost";
            self.expect(is_heard, || format!("{verb} of {job} is {}", heard.short()));
        }
        Ok(())
    }

    /// One worker: takes what is due until every job that failed for now was delivered.
    async fn work(&self, client: &mut Client<'_>) -> Result<(), Failure> {
        let mut open: Vec<String> =
            jobs().filter(|(_, fate)| *fate == Fate::RunAgain).map(|(job, _)| job).collect();
        while !open.is_empty() {
            let wish = json!({"worker": "demo", "limit": 10, "lease_ms": LEASE_MS});
            let claimed = client.post("/v1/job-queue/claim", &wish).await?;
            for given in claimed.body["data"].as_array().map_or(&[][..], Vec::as_slice) {
                let job = given["job_id"].as_str().unwrap_or_default();
                self.expect(given["payload"]["scene"] == job, || format!("{job} is given as {given}"));
                self.say(client, job, "succeed", &json!({"token": given["token"]})).await?;
                open.retain(|one| one != job);
            }
            self.in_time("every job is delivered")?;
            pause(LOOK).await;
        }
        Ok(())
    }
}

/// Holds the jobs against what was said of them, and the account against its entries.
///
/// # Errors
/// When the server does not answer.
pub(crate) async fn reckon(client: &mut Client<'_>) -> Result<(Check, Produced), Failure> {
    let (mut wrong, mut produced, mut balance) = (Vec::new(), Produced::default(), GIVEN);
    for (job, fate) in jobs() {
        let found = client.get(&format!("/v1/jobs/{job}")).await?;
        let (status, refunded, reclaimed, net) = fate.end();
        let is_right = found.text("status") == status
            && found.body["is_refunded"] == refunded
            && found.body["is_reclaimed"] == reclaimed
            && found.body["net"] == net;
        if !is_right {
            wrong.push(format!("{job} is {}", found.short()));
        }
        produced.jobs += 1;
        produced.refunded += usize::from(refunded);
        produced.reclaimed += usize::from(reclaimed);
        balance += net;
    }
    let account = client.get(&format!("/v1/accounts/{ACCOUNT}")).await?;
    let statement = client.get(&format!("/v1/accounts/{ACCOUNT}/statement?limit=200")).await?;
    let rows = statement.body["data"].as_array().map_or(&[][..], Vec::as_slice);
    let sum: i64 = rows.iter().filter_map(|row| row["amount"].as_i64()).sum();
    let entries = 1 + produced.jobs + produced.refunded + produced.reclaimed;
    if account.body["balance"] != balance || sum != balance || rows.len() != entries {
        wrong.push(format!("{} entries add up to {sum}, the account is {}", rows.len(), account.short()));
    }
    let compared = format!("{} jobs, {} entries, balance {balance}", produced.jobs, rows.len());
    Ok((Check::of("jobs_are_paid_as_they_ended", &compared, &wrong), produced))
}
