//! Queues, dead letters and notices, on the wire.

use onceward_domain::due::{LaneStatus, Waiting};
use onceward_domain::machine::Machine;
use onceward_domain::notice::{Notice, Recipient};
use onceward_domain::time::Timestamp;
use serde::Serialize;
use utoipa::ToSchema;

use crate::when::Time;

/// Most bytes of a dead letter's body that are shown.
const BODY_SHOWN: usize = 256;

/// One queue at a glance.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Queue)]
pub(crate) struct QueueView {
    name: String,
    /// Members in it.
    size: u64,
    /// Members under a lease.
    leased: u64,
    /// Members whose tries are used up; they are its dead letters.
    exhausted: u64,
    /// Whether nothing of it is given out.
    paused: bool,
    /// Earliest due-time, or lease end.
    #[schema(required = true)]
    next_due_at: Option<Time>,
    /// How long that is overdue; 0 where nothing is late.
    #[schema(minimum = 0)]
    overdue_ms: i64,
    /// When the oldest member was put in.
    #[schema(required = true)]
    oldest_at: Option<Time>,
    /// When something of it was last given out.
    #[schema(required = true)]
    last_claim_at: Option<Time>,
    /// How long ago that was.
    #[schema(required = true)]
    since_last_claim_ms: Option<i64>,
}

impl QueueView {
    /// As of the store's time.
    pub(crate) fn of(now: Timestamp, lane: &LaneStatus, exhausted: u64) -> Self {
        Self {
            name: lane.lane.as_str().to_owned(),
            size: lane.size,
            leased: lane.leased,
            exhausted,
            paused: lane.paused,
            next_due_at: lane.next_due.map(Time),
            overdue_ms: lane.next_due.map_or(0, |due| now.since(due).0),
            oldest_at: lane.oldest.map(Time),
            last_claim_at: lane.last_claim.map(Time),
            since_last_claim_ms: lane.last_claim.map(|at| now.since(at).0),
        }
    }
}

/// Work whose tries are used up.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = DeadLetter)]
pub(crate) struct DeadLetterView {
    /// Names it for a replay.
    id: String,
    /// The queue it came from, with the prefix `dead/`.
    queue: String,
    created_at: Time,
    #[schema(value_type = i64, minimum = 0)]
    attempts: u32,
    /// Size of what the worker needs.
    body_bytes: usize,
    /// Its beginning, in hexadecimal digits.
    body_hex: String,
}

impl From<&Waiting> for DeadLetterView {
    fn from(letter: &Waiting) -> Self {
        let shown = &letter.body[..letter.body.len().min(BODY_SHOWN)];
        Self {
            id: letter.member.to_string(),
            queue: letter.lane.as_str().to_owned(),
            created_at: Time(letter.created_at),
            attempts: letter.attempts,
            body_bytes: letter.body.len(),
            body_hex: shown.iter().map(|byte| format!("{byte:02x}")).collect(),
        }
    }
}

/// Something that people are told.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Notice)]
pub(crate) struct NoticeView {
    notice_id: String,
    /// What it says, such as `work.exhausted`.
    kind: &'static str,
    /// Id of what it is about.
    subject: String,
    /// The user who is told; `null` for the administrators.
    #[schema(required = true)]
    user_id: Option<String>,
    /// A sentence for a person.
    detail: String,
    /// `PENDING` until the notifier has it, then `SENT`.
    status: &'static str,
    created_at: Time,
    updated_at: Time,
}

impl From<&Notice> for NoticeView {
    fn from(notice: &Notice) -> Self {
        Self {
            notice_id: notice.id.to_string(),
            kind: notice.kind.name(),
            subject: notice.subject.to_string(),
            user_id: match &notice.recipient {
                Recipient::Administrators => None,
                Recipient::User(user) => Some(user.as_str().to_owned()),
            },
            detail: notice.detail.to_string(),
            status: notice.status.name(),
            created_at: Time(notice.created_at),
            updated_at: Time(notice.updated_at),
        }
    }
}
