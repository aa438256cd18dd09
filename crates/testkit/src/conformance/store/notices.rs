//! Notices as rows (LQ-05).

use std::sync::Arc;

use onceward_domain::changes::ChangeSet;
use onceward_domain::error::Code;
use onceward_domain::facts::Need;
use onceward_domain::id::NoticeId;
use onceward_domain::machine::notice::Notice as Status;
use onceward_domain::notice::{About, Notice, NoticeKind, Recipient};
use onceward_domain::ports::store::PageRequest;
use onceward_domain::time::Millis;

use super::Case;
use super::ground::{Ground, START, user};
use crate::block_on::block_on;

pub(super) const CASES: &[Case] = &[
    Case::new("lq_05_a_notice_is_kept_as_it_was_decided_and_once", kept_once),
    Case::new("lq_05_two_machines_cannot_both_mark_a_notice", guarded),
    Case::new("lq_05_notices_are_listed_newest_first", listed),
];

fn notice(subject: &str, recipient: Recipient) -> Notice {
    let about = About { kind: NoticeKind::GroupFailed, subject, occasion: "1", detail: "It failed. 订单" };
    Notice::new(about, recipient, START)
}

fn load(ground: &Ground, id: NoticeId) -> Option<Notice> {
    ground.view(Need { notices: vec![id], ..Need::default() }).notices.remove(&id)
}

fn new(notices: Vec<Notice>) -> ChangeSet {
    ChangeSet { new_notices: notices, ..ChangeSet::default() }
}

fn kept_once(ground: &Ground) {
    let leader = notice("g1", Recipient::User(user("leader")));
    let administrators = notice("g1", Recipient::Administrators);
    ground.must(new(vec![leader.clone(), administrators.clone()]));
    for one in [&leader, &administrators] {
        assert_eq!(load(ground, one.id).as_ref(), Some(one));
    }
    let repeat = Notice { detail: Arc::from("another"), ..leader.clone() };
    ground.must(new(vec![repeat.clone(), repeat]));
    assert_eq!(load(ground, leader.id), Some(leader));
}

fn guarded(ground: &Ground) {
    let first = notice("g1", Recipient::Administrators);
    ground.must(new(vec![first.clone()]));
    let sent = Notice { status: Status::Sent, updated_at: START.plus(Millis(5)), ..first.clone() };
    let moved = ChangeSet { notices: vec![sent.clone()], ..ChangeSet::default() };
    ground.must(moved.clone());
    ground.refuses(moved, Code::GuardLost);
    assert_eq!(load(ground, first.id), Some(Notice { revision: 1, ..sent }));
    let unknown = Notice { revision: 0, ..notice("g2", Recipient::Administrators) };
    ground.refuses(ChangeSet { notices: vec![unknown], ..ChangeSet::default() }, Code::GuardLost);
}

fn listed(ground: &Ground) {
    let names: Vec<String> = (0..5).map(|number| format!("g{number}")).collect();
    for name in &names {
        ground.must(new(vec![notice(name, Recipient::Administrators)]));
    }
    let page = |before| {
        let page = PageRequest { limit: 2, before };
        block_on(ground.store.list_notices(page)).expect("list_notices answers")
    };
    let (mut seen, mut before) = (Vec::new(), None);
    loop {
        let found = page(before);
        let Some((handle, _)) = found.last() else { break };
        before = Some(*handle);
        seen.extend(found.into_iter().map(|(_, one)| one.subject.to_string()));
    }
    seen.reverse();
    assert_eq!(seen, names);
}
