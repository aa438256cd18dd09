//! Writing notices.
//!
//! Invariants: a notice is added once, a repeat is ignored; a changed one names the revision it was decided on.

use onceward_domain::changes::ChangeSet;
use onceward_domain::notice::{Notice, Recipient};

use super::script::{Guarded, Loss, Script, column};
use crate::pipeline::params;
use crate::queries;
use crate::rows::code;
use crate::transact::Refusal;

pub(super) async fn write<'a>(script: &mut Script<'a>, changes: &'a ChangeSet) -> Result<(), Refusal> {
    let ChangeSet { new_notices, notices, .. } = changes;
    if !new_notices.is_empty() {
        let parameters = params![
            column(new_notices, |one| one.id.0),
            column(new_notices, |one| one.kind.name()),
            column(new_notices, |one| &*one.subject),
            column(new_notices, user),
            column(new_notices, |one| &*one.detail),
            column(new_notices, |one| code(one.status)),
            column(new_notices, |one| one.created_at.0),
            column(new_notices, |one| one.updated_at.0),
            column(new_notices, |one| one.revision),
        ];
        script.any("adding a notice", queries::NOTICE_INSERT, parameters).await?;
    }
    if !notices.is_empty() {
        let parameters = params![
            column(notices, |one| one.id.0),
            column(notices, |one| one.revision),
            column(notices, |one| code(one.status)),
            column(notices, |one| one.updated_at.0),
        ];
        let guard = (notices.len(), move || lost(notices));
        script.guarded("changing a notice", queries::NOTICE_MOVE, parameters, guard).await?;
    }
    Ok(())
}

fn user(notice: &Notice) -> Option<&str> {
    match &notice.recipient {
        Recipient::Administrators => None,
        Recipient::User(user) => Some(user.as_str()),
    }
}

fn lost(notices: &[Notice]) -> Loss {
    let row =
        |one: &Notice| Guarded { shown: one.id.to_string(), key: params![one.id.0], revision: one.revision };
    Loss::Revision { what: "notice", peek: queries::NOTICE_PEEK, rows: notices.iter().map(row).collect() }
}
