//! Notifiers: adapters of [`onceward_domain::ports::notifier::Notifier`] (LQ-05).
//!
//! Invariants: `Ok` is said only when the other side has the notice: a 2xx answer, or a line that is synced; the notice's id
//! goes with it, so that a repeat can be dropped. Deliberately absent: who the people are; the receiver knows that.
//! Read next: [`webhook`].

pub mod file;
pub mod target;
pub mod webhook;

use jiff::Timestamp as Instant;
use onceward_domain::notice::{Notice, Recipient};
use serde::Serialize;

pub use file::FileNotifier;
pub use target::Target;
pub use webhook::WebhookNotifier;

/// A notice as it goes out.
#[derive(Serialize)]
struct Outgoing<'a> {
    /// The notice's kind, such as `work.exhausted`.
    r#type: &'static str,
    /// When it was decided.
    timestamp: String,
    data: Data<'a>,
}

#[derive(Serialize)]
struct Data<'a> {
    notice_id: String,
    recipient: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    user_id: Option<&'a str>,
    subject: &'a str,
    detail: &'a str,
}

/// The bytes of a notice: equal for every sending of it, so that signatures and repeats can be compared.
fn encode(notice: &Notice) -> Vec<u8> {
    let (recipient, user_id) = match &notice.recipient {
        Recipient::Administrators => ("administrators", None),
        Recipient::User(user) => ("user", Some(user.as_str())),
    };
    let at = Instant::from_millisecond(notice.created_at.0).unwrap_or(Instant::UNIX_EPOCH);
    let outgoing = Outgoing {
        r#type: notice.kind.name(),
        timestamp: format!("{at:.3}"),
        data: Data {
            notice_id: notice.id.to_string(),
            recipient,
            user_id,
            subject: &notice.subject,
            detail: &notice.detail,
        },
    };
    serde_json::to_vec(&outgoing).expect("plain fields always encode")
}

#[cfg(test)]
mod tests {
    use super::*;
    use onceward_domain::due::{Lane, Token};
    use onceward_domain::notice::work_exhausted;
    use onceward_domain::time::Timestamp;

    #[test]
    fn lq_05_a_notice_has_the_form_of_the_standard() {
        let notice = work_exhausted(&Lane::new("q"), "m", Token(7), Timestamp(1_767_225_600_042));
        let text = String::from_utf8(encode(&notice)).unwrap();
        let id = notice.id;
        let expected = format!(
            r#"{{"type":"work.exhausted","timestamp":"2026-01-01T00:00:00.042Z","data":{{"notice_id":"{id}","recipient":"administrators","subject":"q|m","detail":"The tries of m in queue q are used up; it waits to be replayed."}}}}"#
        );
        assert_eq!(text, expected);
    }
}
