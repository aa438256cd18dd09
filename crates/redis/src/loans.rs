//! Stock that moves between the buckets of one SKU: a buyer is refused as sold out only when all of them are empty (FS-19).
//!
//! A buyer's limit and requests are known in one bucket only, so it is the units that move. Two slots cannot change in one
//! step: a loan is taken out of one bucket and written down there, put into the other under its name, and struck off.
//! Invariants: a unit is never in two buckets; a loan that was cut off is finished by whoever meets it next, also twice; one
//! that cannot be read stays for a node that can, and keeps no bucket closed.

use futures_util::stream::{FuturesUnordered, StreamExt};
use onceward_domain::error::Error;

use crate::bucket::{Bucket, Sale};
use crate::core::Core;
use crate::reply;
use crate::retire::Opened;
use crate::script;

const DOING: &str = "a loan";

impl Core {
    /// Brings up to `wanted` units, or more, into an empty bucket. Says whether any came. A lender that does not answer is passed over,
    /// and is an error where nobody else has anything.
    pub(crate) async fn borrow(&self, sale: &Sale, empty: &Bucket, wanted: i64) -> Result<bool, Error> {
        let others: Vec<&Bucket> = sale.buckets.iter().filter(|one| one.id != empty.id).collect();
        let look = |lender| async move { (lender, self.field(lender, "available").await) };
        let mut looks: FuturesUnordered<_> = others.into_iter().map(look).collect();
        let (mut missing, mut failed) = (wanted, None);
        // Whoever answers first lends: one that hangs is waited for where nobody else has enough.
        while missing > 0
            && let Some((lender, free)) = looks.next().await
        {
            match self.borrow_from(sale, lender, free, (empty, missing)).await {
                Ok(lent) => missing -= lent,
                Err(error) => {
                    // That somebody does not answer, or could not be opened, was said when it began.
                    let is_said = self.link.is_silent(&lender.keys.counter) || lender.left_alone().is_some();
                    if !is_said {
                        tracing::warn!(target: "onceward", event = "admission.not_lent", bucket = %lender.id.text(), ?error);
                    }
                    failed = Some(error);
                }
            }
        }
        match failed {
            Some(error) if missing >= wanted => Err(error),
            _ => Ok(missing < wanted),
        }
    }

    /// Brings up to so many units from one bucket, which may have so many, and says how many came.
    async fn borrow_from(
        &self,
        sale: &Sale,
        lender: &Bucket,
        free: Result<Option<i64>, Error>,
        (empty, missing): (&Bucket, i64),
    ) -> Result<i64, Error> {
        let free = match free? {
            Some(free) => free,
            None => {
                // Nobody has been there yet: its units are still to be handed out.
                if self.open(sale, lender).await? == Opened::Retired {
                    return Ok(0);
                }
                self.field(lender, "available").await?.unwrap_or_default()
            }
        };
        self.finish_loans(sale, lender).await?;
        if free <= 0 {
            return Ok(0);
        }
        let name = self.ids.member();
        let (to, units) = (empty.id.number.to_string(), missing.to_string());
        let keys = [lender.keys.counter.as_str(), &lender.keys.loans];
        let arguments = [name.as_bytes(), to.as_bytes(), units.as_bytes()];
        let lent = reply::number(DOING, &self.link.run(&script::LEND, &keys, &arguments).await?)?;
        let has_come = lent > 0 && self.hand_over(lender, empty, name.as_bytes(), lent).await?;
        Ok(if has_come { lent } else { 0 })
    }

    /// Finishes what was cut off between the two buckets.
    pub(crate) async fn finish_loans(&self, sale: &Sale, lender: &Bucket) -> Result<(), Error> {
        let mut command = redis::cmd("HGETALL");
        command.arg(&lender.keys.loans);
        let found = reply::all_bytes(DOING, reply::list(DOING, self.link.call(&command).await?)?)?;
        for pair in found.chunks_exact(2) {
            let Some((to, units)) = read(&pair[1]) else {
                lender.note_damaged_loan();
                continue;
            };
            if let Some(borrower) = sale.buckets.get(to) {
                self.hand_over(lender, borrower, &pair[0], units).await?;
            }
        }
        Ok(())
    }

    /// Puts a loan into its bucket, and strikes it off where it has arrived.
    async fn hand_over(&self, from: &Bucket, to: &Bucket, name: &[u8], units: i64) -> Result<bool, Error> {
        let text = units.to_string();
        let keys = [to.keys.counter.as_str(), &to.keys.borrowed];
        let answer = self.link.run(&script::BORROW, &keys, &[name, text.as_bytes()]).await?;
        if reply::number(DOING, &answer)? < 0 {
            return Ok(false);
        }
        let mut command = redis::cmd("HDEL");
        command.arg(&from.keys.loans).arg(name);
        self.link.call(&command).await?;
        Ok(true)
    }
}

/// The borrower's number and the units of a loan.
fn read(loan: &[u8]) -> Option<(usize, i64)> {
    let (to, units) = std::str::from_utf8(loan).ok()?.split_once(':')?;
    Some((to.parse().ok()?, units.parse().ok()?))
}
