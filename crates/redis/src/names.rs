//! The names of keys (design.md §5, reference 003 §8.2): `seckill:{activity:sku}:counter`, with `:bucket` inside the braces
//! for every bucket but the first.
//!
//! Invariants: what stands in braces is the same for all keys of one bucket, so they share a slot of a cluster; two buckets
//! never share a name, because a colon inside an id is written `%3A`.

use std::fmt::Write;

use onceward_domain::due::Member;
use onceward_domain::id::{ActivityId, SkuId, SkuKey, UserId};

/// A part of a SKU's units with a slot of its own (FS-19).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct BucketId {
    pub(crate) key: SkuKey,
    /// Counted from 0.
    pub(crate) number: u16,
}

/// The keys of one bucket.
#[derive(Debug)]
pub(crate) struct Keys {
    pub(crate) counter: String,
    pub(crate) reservation: String,
    pub(crate) user: String,
    pub(crate) send_due: String,
    pub(crate) send: String,
    pub(crate) deadline: String,
    pub(crate) overdue: String,
    pub(crate) comp: String,
    pub(crate) loans: String,
    pub(crate) borrowed: String,
}

/// The set of all buckets that were ever opened, for workers that were not told of them.
pub(crate) fn registry(prefix: &str) -> String {
    format!("{prefix}:buckets")
}

impl Keys {
    pub(crate) fn of(prefix: &str, bucket: &BucketId) -> Self {
        let part = |id: &str| id.replace(':', "%3A");
        let (activity, sku) = (part(bucket.key.activity.as_str()), part(bucket.key.sku.as_str()));
        let number = if bucket.number == 0 { String::new() } else { format!(":{}", bucket.number) };
        let name = |what: &str| format!("{prefix}:{{{activity}:{sku}{number}}}:{what}");
        Self {
            counter: name("counter"),
            reservation: name("reservation"),
            user: name("user"),
            send_due: name("send_due"),
            send: name("send"),
            deadline: name("deadline"),
            overdue: name("overdue"),
            comp: name("comp"),
            loans: name("loans"),
            borrowed: name("borrowed"),
        }
    }

    /// Those that letting a buyer in changes, as its script takes them.
    pub(crate) fn reserving(&self) -> [&str; 7] {
        [
            &self.counter,
            &self.reservation,
            &self.user,
            &self.send_due,
            &self.send,
            &self.deadline,
            &self.overdue,
        ]
    }
}

impl BucketId {
    /// As the registry keeps it. No id has a slash in it.
    pub(crate) fn text(&self) -> String {
        format!("{}/{}/{}", self.key.activity, self.key.sku, self.number)
    }

    pub(crate) fn parse(text: &str) -> Option<Self> {
        let mut parts = text.splitn(3, '/');
        let (activity, sku, number) = (parts.next()?, parts.next()?, parts.next()?.parse().ok()?);
        Some(Self {
            key: SkuKey { activity: ActivityId::trusted(activity), sku: SkuId::trusted(sku) },
            number,
        })
    }

    /// A batch of this bucket, as claims name it.
    pub(crate) fn member(&self, batch: &[u8]) -> Member {
        let mut text = self.text();
        text.push('/');
        for byte in batch {
            write!(text, "{byte:02x}").expect("a text takes everything");
        }
        Member::from(text.as_str())
    }

    /// What [`Self::member`] named.
    pub(crate) fn of_member(member: &str) -> Option<(Self, Vec<u8>)> {
        let (bucket, batch) = member.rsplit_once('/')?;
        let byte = |at: usize| u8::from_str_radix(batch.get(at..at + 2)?, 16).ok();
        let batch: Option<Vec<u8>> = (0..batch.len()).step_by(2).map(byte).collect();
        Some((Self::parse(bucket)?, batch?))
    }
}

/// Which of a SKU's buckets keeps this buyer: always the same one, so that limit and requests are known there.
pub(crate) fn home_of(user: &UserId, buckets: u16) -> u16 {
    if buckets <= 1 {
        return 0;
    }
    let spread = user.as_str().bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    // The low bits of such a sum depend on the last bytes alone.
    u16::try_from((spread ^ (spread >> 32)) % u64::from(buckets))
        .expect("it is less than a number of 16 bits")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bucket(activity: &str, sku: &str, number: u16) -> BucketId {
        BucketId { key: SkuKey { activity: ActivityId::trusted(activity), sku: SkuId::trusted(sku) }, number }
    }

    #[test]
    fn fs_01_buckets_have_names_of_their_own_and_one_slot_each() {
        let all = [bucket("a", "b", 0), bucket("a:b", "c", 0), bucket("a", "b:c", 0), bucket("a", "b", 1)];
        let names: std::collections::BTreeSet<String> =
            all.iter().map(|one| Keys::of("seckill", one).counter).collect();
        assert_eq!(names.len(), all.len());
        assert!(names.contains("seckill:{a:b}:counter") && names.contains("seckill:{a:b:1}:counter"));
    }

    #[test]
    fn a_claim_names_its_bucket_and_batch() {
        let one = bucket("a:1", "s", 7);
        let batch = [0, 255, 16, 1, 2, 3, 4, 5];
        assert_eq!(BucketId::of_member(&one.member(&batch)), Some((one.clone(), batch.to_vec())));
        assert_eq!(BucketId::parse(&one.text()), Some(one));
        assert_eq!(BucketId::of_member("nonsense"), None);
    }

    #[test]
    fn fs_19_buyers_are_spread_over_the_buckets() {
        let mut counts = [0_u32; 8];
        for number in 0..8_000 {
            counts[usize::from(home_of(&UserId::trusted(&format!("user-{number}")), 8))] += 1;
        }
        assert!(counts.iter().all(|count| (700..1_300).contains(count)), "{counts:?}");
    }
}
