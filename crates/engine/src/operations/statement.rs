//! Reading a provider's statement: what our book says already is only looked at; the rest is heard, and reported.
//!
//! Invariants: a line that changes nothing costs no transaction; what is heard is decided in the store's transaction, by the
//! one rule; a line that fails for good is set aside as a case and holds up no other; reading again is harmless, so a reading
//! that was cut off is simply repeated.

use std::collections::BTreeSet;
use std::sync::Arc;

use onceward_domain::changes::ChangeSet;
use onceward_domain::decide::statement::hear;
pub use onceward_domain::decide::statement::{Entry, Said, Verdict};
use onceward_domain::error::{Code, Error};
use onceward_domain::facts::{Facts, Need};
use onceward_domain::id::{PaymentId, PurchaseId};
use onceward_domain::payment::{Case, CaseKind};

use crate::engine::Engine;
use crate::execute::{execute, may_be_one};
use crate::observe;
use crate::workers::asker;

/// Lines that are looked at together, and at most heard in one transaction.
const PART: usize = 200;
/// Most lines that a report names; the counts are of all.
pub const FINDINGS_LIMIT: usize = 1_000;

/// Who says so, in an order's history.
const SOURCE: &str = "statement";

/// A line and where it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// Its number in the statement, from 1.
    pub number: u64,
    /// What it says.
    pub entry: Entry,
}

/// What a statement came to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reading {
    /// Lines that our book agrees with.
    pub matched: u64,
    /// Lines that were news.
    pub newly_heard: u64,
    /// Lines about payments or refunds that we do not know at this provider; each is a case.
    pub unknown: u64,
    /// Lines that our book contradicts; each is a case.
    pub mismatched: u64,
    /// The lines that did not simply match, in order; at most [`FINDINGS_LIMIT`].
    pub findings: Vec<(Line, Verdict)>,
}

impl Reading {
    fn count(&mut self, line: &Line, verdict: Verdict) {
        match verdict {
            Verdict::Matched => self.matched += 1,
            Verdict::NewlyHeard => self.newly_heard += 1,
            Verdict::Unknown => self.unknown += 1,
            Verdict::Mismatched => self.mismatched += 1,
        }
        if verdict != Verdict::Matched && self.findings.len() < FINDINGS_LIMIT {
            self.findings.push((line.clone(), verdict));
        }
    }
}

/// Reads a statement of this provider.
///
/// # Errors
/// [`Code::UnknownProvider`]; the store's. What was heard before an error stays heard.
pub async fn read(engine: &Engine, provider: &str, lines: &[Line]) -> Result<Reading, Error> {
    let about = || format!("reading a statement of {provider}");
    let known = engine.provider(provider).ok_or_else(|| Error::new(Code::UnknownProvider, about()))?;
    let provider = known.name();
    let mut reading = Reading::default();
    for part in lines.chunks(PART) {
        for (line, verdict) in read_part(engine, provider, part).await? {
            reading.count(line, verdict);
        }
        engine.signals().relay.notify_one();
        engine.signals().refund.notify_one();
    }
    for verdict in Verdict::ALL {
        let count = match verdict {
            Verdict::Matched => reading.matched,
            Verdict::NewlyHeard => reading.newly_heard,
            Verdict::Unknown => reading.unknown,
            Verdict::Mismatched => reading.mismatched,
        };
        observe::statement_lines(provider, verdict.name(), count);
    }
    Ok(reading)
}

async fn read_part<'a>(
    engine: &Engine,
    provider: &'static str,
    part: &'a [Line],
) -> Result<Vec<(&'a Line, Verdict)>, Error> {
    let (need, mut facts) = look(engine, part).await?;
    let mut verdicts: Vec<(&Line, Verdict)> = Vec::with_capacity(part.len());
    let mut news: Vec<&Line> = Vec::new();
    let mut touched: BTreeSet<PaymentId> = BTreeSet::new();
    let source: Arc<str> = Arc::from(SOURCE);
    for line in part {
        // Behind a line that is to be heard, what our book says of its payment is not known yet.
        let judged = if touched.contains(&line.entry.payment) {
            None
        } else {
            let (changes, found) = hear(&mut facts, provider, std::slice::from_ref(&line.entry), &source)?;
            changes.is_empty().then(|| found.into_iter().next()).flatten()
        };
        match judged {
            Some(verdict) => verdicts.push((line, verdict)),
            None => {
                touched.insert(line.entry.payment);
                news.push(line);
            }
        }
    }
    // Each round hears at most one line of an order; a statement has as many lines of one as money moved.
    while !news.is_empty() {
        let (round, rest) = one_of_each(&facts, news);
        verdicts.extend(hear_round(engine, provider, &need, round).await?);
        news = rest;
    }
    verdicts.sort_by_key(|(line, _)| line.number);
    Ok(verdicts)
}

/// The rows behind these lines, and how to ask for them again.
async fn look(engine: &Engine, part: &[Line]) -> Result<(Need, Facts), Error> {
    let mut need = Need::default();
    for line in part {
        need.payments.push(line.entry.payment);
        match &line.entry.said {
            Said::Taken { .. } => {}
            Said::WentBack { refund, .. } | Said::CameBack { refund } => need.refunds.push(*refund),
        }
    }
    let known = engine.store().view(need.clone()).await?;
    let purchases: BTreeSet<PurchaseId> = known
        .payments
        .values()
        .map(|one| one.purchase)
        .chain(known.refunds.values().map(|one| one.purchase))
        .collect();
    let known = Need { purchases: purchases.iter().copied().collect(), ..Need::default() };
    let known = engine.store().view(known).await?;
    for id in purchases {
        let mut of_one = asker::need_of(&known, id);
        of_one.skus.retain(|key| !need.skus.contains(key));
        need.skus.append(&mut of_one.skus);
        need.purchases.append(&mut of_one.purchases);
        need.attempts.append(&mut of_one.attempts);
        need.buyers.append(&mut of_one.buyers);
    }
    let facts = engine.store().view(need.clone()).await?;
    Ok((need, facts))
}

/// The first line of each order, and the others. A line of no known order stands for itself.
fn one_of_each<'a>(facts: &Facts, lines: Vec<&'a Line>) -> (Vec<&'a Line>, Vec<&'a Line>) {
    let mut seen: BTreeSet<Result<PurchaseId, PaymentId>> = BTreeSet::new();
    lines.into_iter().partition(|line| {
        let payment = line.entry.payment;
        seen.insert(facts.payments.get(&payment).map(|known| known.purchase).ok_or(payment))
    })
}

async fn hear_round<'a>(
    engine: &Engine,
    provider: &'static str,
    need: &Need,
    round: Vec<&'a Line>,
) -> Result<Vec<(&'a Line, Verdict)>, Error> {
    match hear_together(engine, provider, need.clone(), &round).await {
        Ok(verdicts) => return Ok(round.into_iter().zip(verdicts).collect()),
        Err(error) if may_be_one(&error) => {}
        Err(error) => return Err(error),
    }
    let mut verdicts = Vec::with_capacity(round.len());
    for line in round {
        let heard = hear_together(engine, provider, need.clone(), &[line]).await;
        let verdict = match heard {
            Ok(mut heard) => heard.pop().unwrap_or(Verdict::Unknown),
            Err(error) if may_be_one(&error) => {
                tracing::error!(target: "onceward", event = "statement.refused", line = line.number, error = ?error);
                set_aside(engine, provider, line).await?;
                Verdict::Mismatched
            }
            Err(error) => return Err(error),
        };
        verdicts.push((line, verdict));
    }
    Ok(verdicts)
}

async fn hear_together(
    engine: &Engine,
    provider: &'static str,
    need: Need,
    lines: &[&Line],
) -> Result<Vec<Verdict>, Error> {
    let entries: Vec<Entry> = lines.iter().map(|line| line.entry.clone()).collect();
    let source: Arc<str> = Arc::from(SOURCE);
    execute(engine, "statement.heard", need, move |facts| hear(facts, provider, &entries, &source)).await
}

/// The store itself refuses the line, such as a transaction that is another payment's: a person must look.
async fn set_aside(engine: &Engine, provider: &'static str, line: &Line) -> Result<(), Error> {
    let subject: Arc<str> = match &line.entry.said {
        Said::Taken { transaction } => Arc::from(format!("{provider}:{transaction}/{}", line.entry.payment)),
        Said::WentBack { refund, .. } | Said::CameBack { refund } => Arc::from(refund.to_string()),
    };
    let detail: Arc<str> = Arc::from(format!("a statement says: {:?}", line.entry));
    execute(engine, "statement.set_aside", Need::default(), move |facts: &mut Facts| {
        let (subject, detail) = (subject.clone(), detail.clone());
        let case = Case { kind: CaseKind::TransactionReused, subject, detail, at: facts.now };
        Ok((ChangeSet { cases: vec![case], ..ChangeSet::default() }, ()))
    })
    .await
}
