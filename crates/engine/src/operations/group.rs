//! Making group orders, joining and leaving them, looking at them, and a person's wish to settle one that failed.

use std::sync::Arc;

pub use onceward_domain::decide::catalogue::Put;
use onceward_domain::decide::group::{self as decide, Retry};
pub use onceward_domain::decide::group::{Join, Leave, PutGroup};
use onceward_domain::error::{Code, Error};
use onceward_domain::facts::Need;
pub use onceward_domain::group::{GroupOrder, GroupTerms, GroupTransition, Participant};
use onceward_domain::id::GroupId;
use onceward_domain::machine::group::Group as GroupStatus;
use onceward_domain::ports::store::PageRequest;

use crate::engine::Engine;
use crate::execute::execute;
use crate::operations::once::{Idempotent, StoredAnswer, once};

/// A group order with everybody who takes part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupView {
    /// The group.
    pub group: GroupOrder,
    /// Who takes part, in the order of joining.
    pub participants: Vec<Participant>,
}

/// Makes a group order.
///
/// # Errors
/// [`Code::UnknownProvider`] where nobody of that name charges; those of [`decide::put`]; the store's.
pub async fn put(engine: &Engine, command: PutGroup) -> Result<(Put, GroupOrder), Error> {
    let terms = &command.terms;
    if !terms.is_via_wallet() && engine.provider(&terms.charge_via).is_none() {
        return Err(Error::new(Code::UnknownProvider, format!("putting group {}", terms.id)));
    }
    let need = Need { groups: vec![terms.id.clone()], ..Need::default() };
    let put = execute(engine, "put_group", need, move |facts| decide::put(facts, &command)).await?;
    engine.signals().settle.notify_one();
    Ok(put)
}

/// Lets somebody join.
///
/// # Errors
/// Those of [`decide::join`]; the store's.
pub async fn join(engine: &Engine, command: Join) -> Result<(Put, Participant), Error> {
    let need = Need {
        groups: vec![command.group.clone()],
        participants: vec![(command.group.clone(), command.user.clone())],
        ..Need::default()
    };
    execute(engine, "join_group", need, move |facts| decide::join(facts, &command)).await
}

/// Lets somebody leave.
///
/// # Errors
/// Those of [`decide::leave`]; the store's.
pub async fn leave(engine: &Engine, command: Leave) -> Result<(), Error> {
    let need = Need {
        groups: vec![command.group.clone()],
        participants: vec![(command.group.clone(), command.user.clone())],
        ..Need::default()
    };
    execute(engine, "leave_group", need, move |facts| Ok((decide::leave(facts, &command)?, ()))).await
}

/// Looks at a group order.
///
/// # Errors
/// [`Code::NotFound`]; the store's.
pub async fn get(engine: &Engine, id: &GroupId) -> Result<GroupView, Error> {
    let need = Need { groups: vec![id.clone()], participants_of: vec![id.clone()], ..Need::default() };
    let mut facts = engine.store().view(need).await?;
    let group = facts.groups.remove(id);
    let group = group.ok_or_else(|| Error::new(Code::NotFound, format!("looking at group {id}")))?;
    let mut participants: Vec<Participant> = facts.participants.into_values().collect();
    participants.sort_by_key(|one| one.joined_at);
    Ok(GroupView { group, participants })
}

/// Group orders, newest first.
///
/// # Errors
/// The store's.
pub async fn list(
    engine: &Engine,
    status: Option<GroupStatus>,
    page: PageRequest,
) -> Result<Vec<GroupOrder>, Error> {
    engine.store().list_groups(status, page).await
}

/// What happened to a group order, oldest first.
///
/// # Errors
/// [`Code::NotFound`]; the store's.
pub async fn timeline(engine: &Engine, id: &GroupId) -> Result<Vec<GroupTransition>, Error> {
    let found = engine.store().group_transitions(id.clone()).await?;
    // A group begins with a line of history.
    if found.is_empty() {
        return Err(Error::new(Code::NotFound, format!("looking at the history of group {id}")));
    }
    Ok(found)
}

/// A person wants a failed group to be settled after all (GS-06).
#[derive(Clone)]
pub struct SettleByHand {
    /// Which.
    pub group: GroupId,
    /// Who.
    pub actor: Arc<str>,
    /// Key, fingerprint and rendering.
    pub idempotent: Idempotent<GroupOrder>,
}

/// Gives a failed group another round of attempts; the settlement itself is the worker's.
///
/// # Errors
/// [`Code::IdempotencyKeyReused`]; the store's. Refusals of the rule are answers.
pub async fn settle_by_hand(engine: &Engine, command: SettleByHand) -> Result<StoredAnswer, Error> {
    let need = Need {
        groups: vec![command.group.clone()],
        answers: vec![command.idempotent.key.clone()],
        ..Need::default()
    };
    let retry = Retry { group: command.group, actor: command.actor };
    let idempotent = command.idempotent;
    let answer = execute(engine, "settle_by_hand", need, move |facts| {
        once(facts, &idempotent, |facts| decide::retry(facts, &retry))
    })
    .await?;
    engine.signals().settle.notify_one();
    Ok(answer)
}
