//! Forgetting records.
//!
//! Invariant: what goes is as it was seen, or the whole set is refused; whether it may go was decided before.

use onceward_domain::retention::{Aged, Record};

use super::script::{Loss, Script, column};
use crate::pipeline::params;
use crate::queries;
use crate::transact::Refusal;

pub(super) async fn write<'a>(script: &mut Script<'a>, records: &'a [Aged]) -> Result<(), Refusal> {
    let doing = "forgetting records";
    let mut answers = Vec::new();
    let mut callbacks = Vec::new();
    let mut notices = Vec::new();
    for Aged { at, record } in records {
        match record {
            Record::Answer(key) => answers.push((&**key, at.0)),
            Record::Callback(provider, event) => callbacks.push((&**provider, &**event, at.0)),
            Record::Notice(id) => notices.push((id.0, at.0)),
        }
    }
    if !answers.is_empty() {
        let parameters = params![column(&answers, |one| one.0), column(&answers, |one| one.1)];
        script.guarded(doing, queries::ANSWER_FORGET, parameters, guard(answers.len())).await?;
    }
    if !callbacks.is_empty() {
        let parameters = params![
            column(&callbacks, |one| one.0),
            column(&callbacks, |one| one.1),
            column(&callbacks, |one| one.2)
        ];
        script.guarded(doing, queries::CALLBACK_FORGET, parameters, guard(callbacks.len())).await?;
    }
    if !notices.is_empty() {
        let parameters = params![column(&notices, |one| one.0), column(&notices, |one| one.1)];
        script.guarded(doing, queries::NOTICE_FORGET, parameters, guard(notices.len())).await?;
    }
    Ok(())
}

fn guard(count: usize) -> (usize, impl FnOnce() -> Loss + Send) {
    (count, || Loss::Said("a record that was to be forgotten has changed, or is gone".to_owned()))
}
