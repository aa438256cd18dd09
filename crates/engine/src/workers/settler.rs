//! Settles group orders at their deadline (GS-01 to GS-07): from the due work of a group, a turn at a time.
//!
//! Invariants: a provider is called for charges whose rows say so already, outside any transaction, and for a bounded number
//! of them at a time; one that may have been asked before is asked about first, and charged again only under its
//! own id (GS-04); every write is guarded by the claim's token, so what a worker that overslept its lease learns is dropped,
//! and whoever holds the group then asks the provider. A large group takes several turns, so that it holds up neither other
//! groups nor a drain. Read next: [`onceward_domain::decide::settle`].

use std::sync::Arc;

use futures_util::future::join_all;
use onceward_domain::decide::settle::{self as decide, Answer, Begun, Ended, Heard, Reach, Step, Turn};
use onceward_domain::due::{ClaimRequest, Claimed, Lane, Sequence};
use onceward_domain::error::{Class, Error};
use onceward_domain::facts::Need;
use onceward_domain::group::{GroupOrder, Participant};
use onceward_domain::id::{AccountId, GroupId};
use onceward_domain::machine::group_charge::GroupCharge;
use onceward_domain::payment::ChargeWord;
use onceward_domain::ports::provider::{ChargeOrder, Provider};

use crate::engine::Engine;
use crate::execute::execute;
use crate::observe;
use crate::workers::{Next, wait_until};

/// Claims groups whose time has come and takes a turn at each.
///
/// # Errors
/// The store's; what was claimed comes again after its lease.
pub async fn step(engine: &Engine) -> Result<Next, Error> {
    let lane = Lane::new(Lane::SETTLEMENT);
    let (limit, lease) = (engine.settings().settlement_batch, engine.settings().settlement_lease);
    let request = ClaimRequest { lane: lane.clone(), limit, lease, sequence: Sequence::ByDue };
    let claimed = engine.store().claim_due(request).await?;
    if claimed.is_empty() {
        return wait_until(engine, engine.store().next_due(lane).await?).await;
    }
    for outcome in join_all(claimed.iter().map(|claim| take_turn(engine, claim))).await {
        outcome?;
    }
    Ok(Next::Again)
}

/// A turn that meets trouble is ended as a failed attempt; where that is impossible too, its lease ends it.
async fn take_turn(engine: &Engine, claim: &Claimed) -> Result<(), Error> {
    let turn = Turn {
        group: GroupId::trusted(&claim.held.member),
        held: claim.held.clone(),
        attempts: claim.attempts,
        policy: engine.settings().settlement_retry,
    };
    let trouble = match run(engine, &turn).await {
        Ok(ended) => {
            observe::group_turn(&turn.group, ended);
            return Ok(());
        }
        Err(trouble) => trouble,
    };
    observe::settlement_troubled(&turn.group, &trouble);
    let reach = Reach::Whole(Arc::from(trouble.code().caller_text()));
    match conclude(engine, &turn, Vec::new(), reach).await {
        Ok(ended) => observe::group_turn(&turn.group, ended),
        // The lease was lost, or the step had taken effect though its answer was lost: somebody else sees to it, or nobody need.
        Err(error) if error.class() == Class::Conflict => {}
        Err(error) if error.class() == Class::UnknownOutcome => {}
        Err(error) => return Err(error),
    }
    Ok(())
}

async fn run(engine: &Engine, turn: &Turn) -> Result<Ended, Error> {
    let need = need_of(&turn.group);
    let begun = {
        let turn = turn.clone();
        execute(engine, "settle.begin", need, move |facts| decide::begin(facts, &turn)).await?
    };
    match begun {
        Begun::Ended(ended) => Ok(ended),
        Begun::Charge { group, open } if group.terms.is_via_wallet() => {
            charge_wallets(engine, turn, &open).await
        }
        Begun::Charge { group, open } => charge_by_provider(engine, turn, &group, open).await,
    }
}

fn need_of(group: &GroupId) -> Need {
    Need { groups: vec![group.clone()], participants_of: vec![group.clone()], ..Need::default() }
}

async fn charge_wallets(engine: &Engine, turn: &Turn, open: &[Participant]) -> Result<Ended, Error> {
    let charges =
        open.iter().map(|one| (AccountId::trusted(one.user.as_str()), Arc::from(one.charge_id().as_str())));
    let need = Need { charges: charges.collect(), ..need_of(&turn.group) };
    let turn = turn.clone();
    execute(engine, "settle.wallets", need, move |facts| decide::charge_wallets(facts, &turn)).await
}

async fn charge_by_provider(
    engine: &Engine,
    turn: &Turn,
    group: &GroupOrder,
    mut open: Vec<Participant>,
) -> Result<Ended, Error> {
    let via = &group.terms.charge_via;
    let Some(provider) = engine.provider(via) else {
        let trouble = Arc::from(format!("there is no provider {via}"));
        return conclude(engine, turn, Vec::new(), Reach::Whole(trouble)).await;
    };
    let (at_once, rounds) = (engine.settings().charge_round, engine.settings().charge_rounds);
    let is_part = open.len() > at_once * rounds;
    open.truncate(at_once * rounds);
    let mut heard = Vec::new();
    let mut unanswered = 0;
    for round in open.chunks(at_once) {
        advance(engine, turn, heard, round).await?;
        heard = join_all(round.iter().map(|one| ask(&*provider, one))).await;
        let silent = heard.iter().filter(|one| !matches!(one.answer, Answer::Word(_))).count();
        unanswered += silent;
        if silent == round.len() {
            // Nobody answers: asking on would only hold up everybody else.
            let trouble = Arc::from(format!("{via} answered none of {silent} requests"));
            return conclude(engine, turn, heard, Reach::Whole(trouble)).await;
        }
    }
    let trouble = match unanswered {
        0 => format!("{via} took another amount than was asked for"),
        _ => format!("{via} left {unanswered} of {} requests without an answer", open.len()),
    };
    let trouble = Arc::from(trouble);
    let reach = if is_part { Reach::Part } else { Reach::Whole(trouble) };
    conclude(engine, turn, heard, reach).await
}

/// Writes down what was heard and who is asked next, before anybody is.
async fn advance(
    engine: &Engine,
    turn: &Turn,
    heard: Vec<Heard>,
    round: &[Participant],
) -> Result<(), Error> {
    let next = round.iter().map(|one| one.user.clone()).collect();
    let step = Step { heard, next, lease: engine.settings().settlement_lease };
    let users = step.heard.iter().map(|one| &one.user).chain(&step.next);
    let participants = users.map(|user| (turn.group.clone(), user.clone())).collect();
    let need = Need { groups: vec![turn.group.clone()], participants, ..Need::default() };
    let turn = turn.clone();
    execute(engine, "settle.advance", need, move |facts| Ok((decide::advance(facts, &turn, &step)?, ())))
        .await
}

/// Asks about a charge that may have been asked for before; asks for it where it was not, or was never heard of. One that had
/// no answer is asked about at once, so that a provider whose answers get lost still gets on.
async fn ask(provider: &dyn Provider, participant: &Participant) -> Heard {
    let was_asked = participant.charge == GroupCharge::Unknown;
    let charge = participant.charge_id();
    let told = if was_asked { provider.query_charge(charge.clone()).await } else { Ok(ChargeWord::Unheard) };
    let told = match told {
        Ok(ChargeWord::Unheard) => {
            let (customer, amount) = (participant.user.clone(), participant.amount);
            let asked = provider.charge(ChargeOrder { charge: charge.clone(), customer, amount }).await;
            match asked {
                Err(error) if error.class() == Class::UnknownOutcome => {
                    observe::provider_silent(provider.name(), &error);
                    provider.query_charge(charge).await.map_err(|_| error)
                }
                asked => asked,
            }
        }
        told => told,
    };
    let answer = match told {
        // It was asked for, and was not heard of just now: it may be on its way.
        Ok(ChargeWord::Unheard) => Answer::Silent,
        Ok(word) => Answer::Word(word),
        Err(error) => {
            observe::provider_silent(provider.name(), &error);
            if error.class() == Class::Retryable { Answer::Refused } else { Answer::Silent }
        }
    };
    Heard { user: participant.user.clone(), was_asked, answer }
}

async fn conclude(engine: &Engine, turn: &Turn, heard: Vec<Heard>, reach: Reach) -> Result<Ended, Error> {
    let need = need_of(&turn.group);
    let turn = turn.clone();
    execute(engine, "settle.conclude", need, move |facts| decide::conclude(facts, &turn, &heard, &reach))
        .await
}
