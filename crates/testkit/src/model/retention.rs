//! Records by age in the model, and forgetting them.
//!
//! Invariant: what goes is as it was seen. There is no index by age: the model is small.

use std::sync::Arc;

use onceward_domain::error::Error;
use onceward_domain::retention::{Aged, Record, RecordKind};

use super::apply::lost;
use super::rows::Rows;

impl Rows {
    /// Records of one kind behind a place, oldest first.
    pub(super) fn aged(&self, limit: u32, after: &Aged) -> Vec<Aged> {
        let mut all: Vec<Aged> = match after.record.kind() {
            RecordKind::Answer => {
                let passing = self.answers.iter().filter(|(_, row)| !row.lasting);
                passing.map(|(key, row)| Aged { at: row.at, record: Record::Answer(key.clone()) }).collect()
            }
            RecordKind::Callback => {
                let record = |(provider, event): &(Arc<str>, Arc<str>)| {
                    Record::Callback(provider.clone(), event.clone())
                };
                let rows = self.callbacks.iter();
                rows.map(|(key, row)| Aged { at: row.received_at, record: record(key) }).collect()
            }
            RecordKind::Notice => {
                let rows = self.notices.iter();
                rows.map(|(id, row)| Aged { at: row.updated_at, record: Record::Notice(*id) }).collect()
            }
        };
        all.retain(|one| one > after);
        all.sort();
        all.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
        all
    }

    pub(super) fn forget(&mut self, records: Vec<Aged>) -> Result<(), Error> {
        for Aged { at, record } in records {
            let there = match &record {
                Record::Answer(key) => self.answers.get(key).map(|row| row.at),
                Record::Callback(provider, event) => {
                    self.callbacks.get(&(provider.clone(), event.clone())).map(|row| row.received_at)
                }
                Record::Notice(id) => self.notices.get(id).map(|row| row.updated_at),
            };
            if there != Some(at) {
                return Err(lost(format!("forgetting {record:?}")));
            }
            match record {
                Record::Answer(key) => self.answers.remove(&key),
                Record::Callback(provider, event) => self.callbacks.remove(&(provider, event)),
                Record::Notice(id) => {
                    self.notices.remove(&id);
                    let number = self.notices_by_age.iter().find(|(_, one)| **one == id).map(|(key, _)| *key);
                    if let Some(number) = number {
                        self.notices_by_age.remove(&number);
                    }
                }
            }
        }
        Ok(())
    }
}
