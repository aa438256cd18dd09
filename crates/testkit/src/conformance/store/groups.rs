//! Group orders and their participants: what was written comes back, guards hold, and sums see contradictions.

use std::sync::Arc;

use onceward_domain::changes::ChangeSet;
use onceward_domain::credit::{Account, Entry, EntryKind};
use onceward_domain::due::Lane;
use onceward_domain::error::Code;
use onceward_domain::facts::Need;
use onceward_domain::group::{
    GroupOrder, GroupTerms, GroupTransition, PARTICIPANTS_LIMIT, Participant, WALLET,
};
use onceward_domain::id::{AccountId, GroupId, UserId};
use onceward_domain::machine::Machine;
use onceward_domain::machine::group::Group as Status;
use onceward_domain::machine::group_charge::GroupCharge;
use onceward_domain::money::{AMOUNT_LIMIT, Currency, Money};
use onceward_domain::ports::store::PageRequest;
use onceward_domain::tally::GroupTally;
use onceward_domain::time::{LATEST, Millis};

use super::Case;
use super::ground::{Ground, START, cny, put, user};
use crate::block_on::block_on;

pub(super) const CASES: &[Case] = &[
    Case::new("gs_01_groups_and_participants_come_back_whole_in_every_state", come_back_whole),
    Case::new("gs_01_absent_groups_and_participants_are_absent", absent),
    Case::new("gs_01_a_group_and_a_participant_are_added_once", added_once),
    Case::new("gs_03_a_group_moves_on_the_revision_it_was_decided_on", guarded_group),
    Case::new("gs_04_a_charge_moves_on_the_revision_it_was_decided_on", guarded_charge),
    Case::new("gs_01_who_leaves_is_gone_and_may_come_again", leave),
    Case::new("gs_04_who_was_charged_never_leaves", charged_stays),
    Case::new("gs_01_a_refused_set_leaves_no_trace_of_a_group", all_or_nothing),
    Case::new("gs_06_the_history_of_a_group_is_kept_in_order", history),
    Case::new("gs_01_groups_are_listed_newest_first_in_pages_and_by_state", pages),
    Case::new("rc_02_group_orders_are_summed_and_contradictions_counted", sums),
    Case::new("rc_02_gs_03_wallet_charges_are_held_against_the_ledger", wallets),
];

fn id(name: &str) -> GroupId {
    GroupId::trusted(name)
}

fn group(name: &str) -> GroupOrder {
    let terms = GroupTerms {
        id: id(name),
        leader: user("lea"),
        deadline: START.plus(Millis(60_000)),
        charge_via: Arc::from(WALLET),
        currency: Currency::CNY,
        min_participants: 2,
    };
    GroupOrder::new(terms, START)
}

fn participant(name: &str, who: &str) -> Participant {
    Participant {
        group: id(name),
        user: user(who),
        amount: cny(700),
        charge: GroupCharge::None,
        transaction: None,
        joined_at: START,
        updated_at: START,
        revision: 0,
    }
}

fn counted(name: &str, participants: u32) -> GroupOrder {
    GroupOrder { participants, ..group(name) }
}

/// The same, charged by a provider.
fn at_bank(name: &str) -> GroupOrder {
    let known = counted(name, 1);
    GroupOrder { terms: GroupTerms { charge_via: Arc::from("sandbox"), ..known.terms.clone() }, ..known }
}

fn of_group(ground: &Ground, name: &str) -> Option<GroupOrder> {
    ground.view(Need { groups: vec![id(name)], ..Need::default() }).groups.remove(&id(name))
}

fn of_user(ground: &Ground, name: &str, who: &str) -> Option<Participant> {
    let key = (id(name), user(who));
    ground.view(Need { participants: vec![key.clone()], ..Need::default() }).participants.remove(&key)
}

fn all_of(ground: &Ground, name: &str) -> Vec<Participant> {
    let facts = ground.view(Need { participants_of: vec![id(name)], ..Need::default() });
    facts.participants.into_values().collect()
}

fn adding(group: GroupOrder, participants: Vec<Participant>) -> ChangeSet {
    ChangeSet { new_groups: vec![group], new_participants: participants, ..ChangeSet::default() }
}

fn come_back_whole(ground: &Ground) {
    for (number, status) in Status::STATES.iter().enumerate() {
        let name = format!("g-{number}");
        let far = GroupTerms {
            leader: UserId::trusted(&"l".repeat(64)),
            deadline: LATEST,
            charge_via: Arc::from("sandbox"),
            currency: Currency::KWD,
            min_participants: PARTICIPANTS_LIMIT,
            ..group(&name).terms
        };
        let whole = GroupOrder {
            status: *status,
            participants: 1,
            attempts: u32::MAX,
            retries: 7,
            next_attempt_at: Some(LATEST),
            last_error: Some(Arc::from("ünreachable")),
            updated_at: START.plus(Millis(5)),
            ..GroupOrder::new(far, START)
        };
        ground.must(adding(whole.clone(), Vec::new()));
        let found = of_group(ground, &name).expect("it is there");
        assert!(found.handle > 0);
        assert_eq!(found, GroupOrder { handle: found.handle, ..whole });
    }
    for (number, charge) in GroupCharge::STATES.iter().enumerate() {
        let amount = Money::new(AMOUNT_LIMIT, Currency::KWD).expect("it is the limit");
        let transaction = Some(Arc::from("txn-1"));
        let whole =
            Participant { amount, charge: *charge, transaction, ..participant("g-0", &format!("u{number}")) };
        ground.must(ChangeSet { new_participants: vec![whole.clone()], ..ChangeSet::default() });
        assert_eq!(of_user(ground, "g-0", &format!("u{number}")), Some(whole));
    }
    assert_eq!(all_of(ground, "g-0").len(), GroupCharge::STATES.len());
    assert!(all_of(ground, "g-1").is_empty(), "they belong to their own group");
}

fn absent(ground: &Ground) {
    assert_eq!(of_group(ground, "none"), None);
    assert_eq!(of_user(ground, "none", "u"), None);
    assert!(all_of(ground, "none").is_empty());
    ground.must(adding(counted("g", 1), vec![participant("g", "u")]));
    assert_eq!(of_user(ground, "g", "v"), None);
    assert!(ground.view(Need::default()).groups.is_empty(), "nobody asked");
}

fn added_once(ground: &Ground) {
    ground.must(adding(counted("g", 1), vec![participant("g", "u")]));
    ground.refuses(adding(group("g"), Vec::new()), Code::ConstraintViolated);
    let again = ChangeSet { new_participants: vec![participant("g", "u")], ..ChangeSet::default() };
    ground.refuses(again, Code::ConstraintViolated);
    let homeless = ChangeSet { new_participants: vec![participant("none", "u")], ..ChangeSet::default() };
    ground.refuses(homeless, Code::ConstraintViolated);
}

fn guarded_group(ground: &Ground) {
    ground.must(adding(group("g"), Vec::new()));
    let known = of_group(ground, "g").expect("it is there");
    let closed = GroupOrder { status: Status::Closed, attempts: 1, ..known.clone() };
    ground.must(ChangeSet { groups: vec![closed.clone()], ..ChangeSet::default() });
    let after = of_group(ground, "g").expect("it is there");
    assert_eq!(after, GroupOrder { revision: known.revision + 1, ..closed.clone() });
    ground.refuses(ChangeSet { groups: vec![closed], ..ChangeSet::default() }, Code::GuardLost);
    ground.refuses(ChangeSet { groups: vec![group("none")], ..ChangeSet::default() }, Code::GuardLost);
    assert_eq!(of_group(ground, "g"), Some(after));
}

fn guarded_charge(ground: &Ground) {
    ground.must(adding(counted("g", 1), vec![participant("g", "u")]));
    let known = of_user(ground, "g", "u").expect("it is there");
    let charged = Participant {
        amount: cny(900),
        charge: GroupCharge::Charged,
        transaction: Some(Arc::from("txn")),
        updated_at: START.plus(Millis(9)),
        ..known.clone()
    };
    let set = |one: &Participant| ChangeSet { participants: vec![one.clone()], ..ChangeSet::default() };
    ground.must(set(&charged));
    let after = Participant { revision: known.revision + 1, ..charged.clone() };
    assert_eq!(of_user(ground, "g", "u"), Some(after.clone()));
    ground.refuses(set(&charged), Code::GuardLost);
    ground.refuses(set(&participant("g", "v")), Code::GuardLost);
    assert_eq!(of_user(ground, "g", "u"), Some(after));
}

fn leave(ground: &Ground) {
    ground.must(adding(counted("g", 2), vec![participant("g", "u"), participant("g", "v")]));
    let set = |one: Participant| ChangeSet { left_participants: vec![one], ..ChangeSet::default() };
    let stale = Participant { revision: 3, ..participant("g", "u") };
    ground.refuses(set(stale), Code::GuardLost);
    ground.must(set(participant("g", "u")));
    assert_eq!(of_user(ground, "g", "u"), None);
    assert_eq!(all_of(ground, "g").len(), 1);
    ground.refuses(set(participant("g", "u")), Code::GuardLost);
    ground.must(ChangeSet { new_participants: vec![participant("g", "u")], ..ChangeSet::default() });
    assert!(of_user(ground, "g", "u").is_some());
}

fn charged_stays(ground: &Ground) {
    for charge in GroupCharge::STATES.iter().filter(|charge| **charge != GroupCharge::None) {
        let name = charge.name().to_lowercase();
        let begun = Participant { charge: *charge, ..participant(&name, "u") };
        ground.must(adding(counted(&name, 1), vec![begun.clone()]));
        let set = ChangeSet { left_participants: vec![begun], ..ChangeSet::default() };
        ground.refuses(set, Code::ConstraintViolated);
        assert!(of_user(ground, &name, "u").is_some());
    }
}

fn all_or_nothing(ground: &Ground) {
    ground.must(adding(counted("g", 1), vec![participant("g", "u")]));
    let line = GroupTransition {
        group: id("g"),
        at: START,
        from: None,
        to: "OPEN",
        cause: "made",
        actor: Arc::from("a"),
    };
    let set = ChangeSet {
        new_participants: vec![participant("g", "v")],
        participants: vec![Participant { amount: cny(1), ..participant("g", "u") }],
        group_transitions: vec![line],
        groups: vec![GroupOrder { revision: 5, ..group("g") }],
        ..ChangeSet::default()
    };
    ground.refuses(set, Code::GuardLost);
    assert_eq!(of_user(ground, "g", "v"), None);
    assert_eq!(of_user(ground, "g", "u"), Some(participant("g", "u")));
    assert!(block_on(ground.store.group_transitions(id("g"))).expect("it answers").is_empty());
}

fn history(ground: &Ground) {
    ground.must(adding(group("g"), Vec::new()));
    ground.must(adding(group("other"), Vec::new()));
    let line = |name: &str, number: i64, from, to, cause, actor: &str| GroupTransition {
        group: id(name),
        at: START.plus(Millis(number)),
        from,
        to,
        cause,
        actor: Arc::from(actor),
    };
    let lines = [
        line("g", 1, Some("OPEN"), "CLOSED", "closed", "engine"),
        line("g", 2, Some("CLOSED"), "FAILED", "failed", "engine"),
        line("g", 3, Some("FAILED"), "CLOSED", "retried", "ops-ann"),
    ];
    let set =
        |lines: &[GroupTransition]| ChangeSet { group_transitions: lines.to_vec(), ..ChangeSet::default() };
    ground.must(set(&lines[..2]));
    ground.must(set(&[line("other", 2, None, "OPEN", "made", "x")]));
    ground.must(set(&lines[2..]));
    let found = block_on(ground.store.group_transitions(id("g"))).expect("it answers");
    assert_eq!(found, lines);
    assert!(block_on(ground.store.group_transitions(id("none"))).expect("it answers").is_empty());
}

fn pages(ground: &Ground) {
    for number in 0..5 {
        let status = if number % 2 == 0 { Status::Open } else { Status::Failed };
        ground.must(adding(GroupOrder { status, ..group(&format!("g-{number}")) }, Vec::new()));
    }
    let list = |status, limit, before| {
        let page = PageRequest { limit, before };
        block_on(ground.store.list_groups(status, page)).expect("it answers")
    };
    let names =
        |groups: &[GroupOrder]| groups.iter().map(|group| group.id().as_str().to_owned()).collect::<Vec<_>>();
    let first = list(None, 2, None);
    assert_eq!(names(&first), ["g-4", "g-3"]);
    ground.must(adding(group("late"), Vec::new()));
    let second = list(None, 2, Some(first[1].handle));
    assert_eq!(names(&second), ["g-2", "g-1"], "a page is stable under inserts");
    assert_eq!(names(&list(None, 2, Some(second[1].handle))), ["g-0"]);
    assert_eq!(names(&list(Some(Status::Failed), 9, None)), ["g-3", "g-1"]);
    assert!(list(Some(Status::Settled), 9, None).is_empty());
}

fn sums(ground: &Ground) {
    let tally = || block_on(ground.store.tally()).expect("tally answers").group_orders;
    assert_eq!(tally(), GroupTally::default());
    let lane = Lane::new(Lane::SETTLEMENT);
    let in_state = |name: &str, status, charge| {
        let group = GroupOrder { status, ..at_bank(name) };
        adding(group, vec![Participant { charge, ..participant(name, "u") }])
    };
    let fine = [
        ("open", Status::Open, GroupCharge::None),
        ("cancelled", Status::Cancelled, GroupCharge::None),
        ("closed", Status::Closed, GroupCharge::Unknown),
        ("failed", Status::Failed, GroupCharge::Pending),
        ("settled", Status::Settled, GroupCharge::Charged),
        ("declined", Status::Settled, GroupCharge::Declined),
    ];
    for (name, status, charge) in fine {
        ground.must(in_state(name, status, charge));
    }
    ground.put(&lane, "open", START);
    ground.must(super::ground::due(vec![put(&lane, "closed", START)]));
    let expected = GroupTally { groups: 6, participants: 6, ..GroupTally::default() };
    assert_eq!(tally(), expected);
    let wrong = [
        ("begun", Status::Open, GroupCharge::Pending),
        ("charged", Status::Cancelled, GroupCharge::Charged),
        ("idle", Status::Closed, GroupCharge::None),
        ("hasty", Status::Settled, GroupCharge::Unknown),
    ];
    for (name, status, charge) in wrong {
        ground.must(in_state(name, status, charge));
    }
    ground.must(adding(counted("empty", 3), Vec::new()));
    let found = tally();
    assert_eq!((found.state_contradictions, found.unscheduled), (5, 3));
}

/// What a wallet was given, and perhaps what it paid under the id of its charge in a group.
fn wallet(ground: &Ground, name: &str, who: &str, paid: Option<i64>) {
    let empty = Account::empty(AccountId::trusted(who), START);
    ground.must(ChangeSet { new_accounts: vec![empty.clone()], ..ChangeSet::default() });
    let entry = |number, kind, amount, balance_after, reference: Arc<str>| Entry {
        account: empty.id.clone(),
        number,
        kind,
        amount,
        balance_after,
        job: None,
        reference: Some(reference),
        reason: None,
        actor: Arc::from("tester"),
        at: START,
    };
    let mut entries = vec![entry(1, EntryKind::Grant, 1_000, 1_000, Arc::from("gift"))];
    let charge_id = Arc::from(participant(name, who).charge_id().as_str());
    entries.extend(paid.map(|paid| entry(2, EntryKind::Charge, -paid, 1_000 - paid, charge_id)));
    let last = entries.last().expect("there is a gift");
    let account = Account { balance: last.balance_after, entries: last.number, ..empty.clone() };
    ground.must(ChangeSet { accounts: vec![account], entries, ..ChangeSet::default() });
}

fn wallets(ground: &Ground) {
    let contradictions =
        || block_on(ground.store.tally()).expect("tally answers").group_orders.wallet_contradictions;
    // A colon in the group's own id is written another way in the charge's.
    let name = "dinner:friday";
    let settled = GroupOrder { status: Status::Settled, ..counted(name, 5) };
    ground.must(adding(settled, Vec::new()));
    let table = [
        ("paid", GroupCharge::Charged, Some(700), 0),
        ("poor", GroupCharge::Declined, None, 0),
        ("free", GroupCharge::Charged, None, 1),
        ("cheap", GroupCharge::Charged, Some(699), 2),
        ("robbed", GroupCharge::Declined, Some(700), 3),
    ];
    for (who, charge, paid, found) in table {
        wallet(ground, name, who, paid);
        let one = Participant { charge, ..participant(name, who) };
        ground.must(ChangeSet { new_participants: vec![one], ..ChangeSet::default() });
        assert_eq!(contradictions(), found, "{who}");
    }
    let charged = Participant { charge: GroupCharge::Charged, ..participant("bank", "paid") };
    ground.must(adding(GroupOrder { status: Status::Settled, ..at_bank("bank") }, vec![charged]));
    assert_eq!(contradictions(), 3, "a provider's charge has no entry");
}
