//! Notices in the model.
//!
//! Invariants: a notice is there once, a repeat is ignored; changed ones name the revision they were decided on.

use onceward_domain::error::Error;
use onceward_domain::notice::Notice;
use onceward_domain::ports::store::PageRequest;

use super::Defect;
use super::apply::lost;
use super::rows::Rows;

impl Rows {
    pub(super) fn apply_notices(
        &mut self,
        new: Vec<Notice>,
        changed: Vec<Notice>,
        defect: Defect,
    ) -> Result<(), Error> {
        for notice in new {
            if !self.notices.contains(&notice.id) {
                let number = self.number();
                self.notices_by_age.put(number, notice.id);
                self.notices.put(notice.id, notice);
            }
        }
        for mut notice in changed {
            let before = self.notices.get(&notice.id);
            let before =
                before.filter(|row| row.revision == notice.revision || defect == Defect::IgnoreRevisions);
            let before = before.ok_or_else(|| lost(format!("moving notice {}", notice.id)))?;
            notice.revision = before.revision + 1;
            self.notices.put(notice.id, notice);
        }
        Ok(())
    }

    /// Notices, newest first.
    pub(super) fn list_notices(&self, page: PageRequest) -> Vec<(i64, Notice)> {
        let limit = usize::try_from(page.limit).unwrap_or(usize::MAX);
        let ids = self.notices_by_age.range(..page.before.unwrap_or(i64::MAX)).rev();
        let rows = ids.filter_map(|(number, id)| Some((*number, self.notices.get(id)?.clone())));
        rows.take(limit).collect()
    }
}
