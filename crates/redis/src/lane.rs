//! One lane of the due-work queue: the names of its keys, what it keeps of its work, and how that is told to scripts.
//!
//! Layout of work: `1` while a claim holds it, else `0`; claims (4 bytes); last token (8 bytes); when it was put in (8
//! bytes); body. Numbers are big-endian. Invariant: all keys of a lane share a slot; two lanes never share a name.

use onceward_domain::due::{Claimed, Held, Lane, Member, Token, Waiting};
use onceward_domain::error::{Code, Error};
use onceward_domain::ports::due_queue::{Due, Settled, Settlement};
use onceward_domain::retry::{After, RetryPolicy};
use onceward_domain::time::Timestamp;
use redis::Value;

use crate::reply;

/// After so many attempts a wait that doubles is longer than any time; from there on it stays.
const WAITS_LIMIT: u32 = 41;
/// Stands where no lease is.
pub(crate) const START: Timestamp = Timestamp(0);

const DOING: &str = "the due-work queue";

/// The keys of one lane.
pub(crate) struct Keys {
    /// Members by due-time, or by the end of their lease.
    pub(crate) due: String,
    /// What they are.
    pub(crate) work: String,
    /// What exhausted members are.
    pub(crate) dead: String,
    /// Members in the order in which they were put in.
    pub(crate) age: String,
    /// Pause, tokens, counts.
    pub(crate) lane: String,
    /// Exhausted members by when that was.
    pub(crate) exhausted: String,
    /// Exhaustions that nobody has been told of.
    pub(crate) announce: String,
}

impl Keys {
    pub(crate) fn of(prefix: &str, lane: &Lane) -> Self {
        // Braces choose the slot.
        let lane = lane.as_str().replace('%', "%25").replace('{', "%7B").replace('}', "%7D");
        let name = |what: &str| format!("{prefix}:queue:{{{lane}}}:{what}");
        Self {
            due: name("due"),
            work: name("work"),
            dead: name("dead"),
            age: name("age"),
            lane: name("lane"),
            exhausted: name("exhausted"),
            announce: name("announce"),
        }
    }

    /// All of them, in the order in which claims and settlements take them.
    pub(crate) fn all(&self) -> [&str; 7] {
        [&self.due, &self.work, &self.dead, &self.age, &self.lane, &self.exhausted, &self.announce]
    }
}

/// A piece of work, read.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Work {
    pub(crate) is_held: bool,
    pub(crate) attempts: u32,
    pub(crate) token: Token,
    pub(crate) created_at: Timestamp,
    pub(crate) body: Vec<u8>,
}

impl Work {
    pub(crate) fn read(bytes: &[u8]) -> Result<Self, Error> {
        let damaged = || Error::new(Code::ConstraintViolated, "reading due work whose entry is damaged");
        let (held, rest) = bytes.split_first().ok_or_else(damaged)?;
        let (attempts, rest) = rest.split_first_chunk::<4>().ok_or_else(damaged)?;
        let (token, rest) = rest.split_first_chunk::<8>().ok_or_else(damaged)?;
        let (created_at, body) = rest.split_first_chunk::<8>().ok_or_else(damaged)?;
        Ok(Self {
            is_held: *held == b'1',
            attempts: u32::from_be_bytes(*attempts),
            token: Token(i64::from_be_bytes(*token)),
            created_at: Timestamp(i64::from_be_bytes(*created_at)),
            body: body.to_vec(),
        })
    }
}

/// A number as scripts take it.
pub(crate) fn text_of(number: i64) -> Vec<u8> {
    number.to_string().into_bytes()
}

/// A due-time as scripts take it.
pub(crate) fn due_of(due: Due) -> (&'static str, i64) {
    match due {
        Due::At(time) => ("at", time.0),
        Due::After(wait) => ("after", wait.0),
    }
}

/// A settlement as the script takes it: its name, and its value.
pub(crate) fn how_of(settlement: &Settlement) -> (&'static str, Vec<u8>) {
    match settlement {
        Settlement::Complete(_) => ("complete", Vec::new()),
        Settlement::Retry { held, policy } => ("retry", waits_of(policy, held.seed())),
        Settlement::Extend { lease, .. } => ("extend", text_of(lease.0)),
        Settlement::HandBack { wait, .. } => ("back", text_of(wait.0)),
    }
}

/// What the policy says after each attempt, as a list: how often it was tried, only the script will know.
fn waits_of(policy: &RetryPolicy, seed: u64) -> Vec<u8> {
    let allowed = policy.attempts.map(|allowed| allowed.to_string()).unwrap_or_default();
    let waits = (1..=WAITS_LIMIT).map_while(|attempt| match policy.after(attempt, seed) {
        After::Again(wait) => Some(wait.0.to_string()),
        After::Exhausted => None,
    });
    format!("{allowed}:{}", waits.collect::<Vec<_>>().join(",")).into_bytes()
}

/// What the script's number says of a settlement.
pub(crate) fn settled_of(settlement: &Settlement, number: i64) -> Result<Settled, Error> {
    match (number, settlement) {
        (-1, _) => Ok(Settled::LeaseLost),
        (-2, Settlement::Retry { .. }) => Ok(Settled::Exhausted),
        (0, Settlement::Complete(_)) => Ok(Settled::Completed),
        (time, Settlement::Extend { .. }) => Ok(Settled::Extended(Timestamp(time))),
        (time, Settlement::Retry { .. } | Settlement::HandBack { .. }) => Ok(Settled::Again(Timestamp(time))),
        (_, Settlement::Complete(_)) => Err(reply::unexpected(DOING)),
    }
}

/// A time, or an empty text.
pub(crate) fn time_or_none(value: &Value) -> Result<Option<Timestamp>, Error> {
    let is_empty = matches!(value, Value::BulkString(bytes) if bytes.is_empty());
    if is_empty { Ok(None) } else { reply::score(DOING, value).map(Some) }
}

fn member_of(value: Value) -> Result<Member, Error> {
    Ok(Member::from(reply::text(DOING, &reply::bytes(DOING, value)?)?))
}

/// Reads claims, three parts each.
pub(crate) fn read_claims(
    lane: &Lane,
    lease_until: Timestamp,
    mut parts: impl Iterator<Item = Value>,
) -> Result<Vec<Claimed>, Error> {
    let mut claimed = Vec::new();
    while let Some(member) = parts.next() {
        let (Some(score), Some(entry)) = (parts.next(), parts.next()) else {
            return Err(reply::unexpected(DOING));
        };
        let Work { attempts, token, created_at, body, .. } = Work::read(&reply::bytes(DOING, entry)?)?;
        let held = Held { lane: lane.clone(), member: member_of(member)?, token };
        let due_at = reply::score(DOING, &score)?;
        claimed.push(Claimed { held, attempts, due_at, created_at, lease_until, body });
    }
    Ok(claimed)
}

/// Reads a page of a list, three parts each.
pub(crate) fn read_page(lane: &Lane, answer: Vec<Value>) -> Result<Vec<Waiting>, Error> {
    let claims = read_claims(lane, START, answer.iter().cloned())?;
    let held = answer
        .iter()
        .skip(2)
        .step_by(3)
        .map(|entry| matches!(entry, Value::BulkString(bytes) if bytes.first() == Some(&b'1')));
    let waiting = |(one, leased): (Claimed, bool)| Waiting {
        lane: lane.clone(),
        member: one.held.member,
        due_at: one.due_at,
        created_at: one.created_at,
        attempts: one.attempts,
        leased,
        token: one.held.token,
        body: one.body,
    };
    Ok(claims.into_iter().zip(held).map(waiting).collect())
}

#[cfg(test)]
mod tests {
    use onceward_domain::time::Millis;

    use super::*;

    #[test]
    fn lq_07_lanes_have_names_of_their_own_and_one_slot_each() {
        let due = |lane: &str| Keys::of("p", &Lane::new(lane)).due;
        assert_eq!(due("outbox"), "p:queue:{outbox}:due");
        assert_eq!(due("a}b{c"), "p:queue:{a%7Db%7Bc}:due");
        assert_ne!(due("a}b"), due("a%7Db"));
    }

    #[test]
    fn q_a8_a_body_comes_back_as_it_is_and_a_stump_is_an_error() {
        let mut bytes = b"1\0\0\0\x02\0\0\0\0\0\0\0\x09\0\0\0\0\0\0\0\x05".to_vec();
        bytes.extend_from_slice(b"\xff\0body");
        let work = Work::read(&bytes).unwrap();
        assert_eq!((work.is_held, work.attempts, work.token.0, work.created_at.0), (true, 2, 9, 5));
        assert_eq!(work.body, b"\xff\0body");
        assert!((0..21).all(|end| Work::read(&bytes[..end]).is_err()));
    }

    #[test]
    fn lq_04_the_script_is_told_the_policys_own_waits() {
        let text = |policy: RetryPolicy| String::from_utf8(waits_of(&policy, 7)).unwrap();
        assert_eq!(text(RetryPolicy::default()), "6:1000,2000,4000,8000,16000");
        let capped = RetryPolicy { cap: Some(Millis(3_000)), ..RetryPolicy::default().for_ever() };
        assert!(text(capped).starts_with(":1000,2000,3000,3000,"));
        assert_eq!(text(RetryPolicy { attempts: Some(1), ..RetryPolicy::default() }), "1:");
    }
}
