//! Who uses a schema, and having it alone while it is moved as a whole.
//!
//! Every session of a store takes a lock of the schema together with others, for as long as it lives, and whoever moves the
//! schema takes it alone. So it does not matter what a node is called, or when a session is given up for a new one: what can
//! write has the lock, and what comes while it is held waits, and is then told to come back later. Invariants: the lock ends with
//! its session, whatever ends that, be it a host that dies without a word (`pool` has the server ask); that it is still held is
//! the server's word, asked before anybody says that a move is done; schemas are apart. Deliberately absent: keeping a node from
//! writing after the hold, since whoever moves a schema leaves its nodes stopped; and poolers that lend a session for one
//! transaction. There a lock stays with whoever gets the session next: a hold is refused as soon as the server's word shows it,
//! and nodes are not kept apart. A pooler that lends a session until we leave is no different from none. Read next: `archive`.

use std::fmt;
use std::time::Duration;

use onceward_domain::error::{Code, Error};
use tokio::runtime::Handle;
use tokio::time::timeout;
use tokio_postgres::error::SqlState;

use crate::failure::{defect, failed};
use crate::link::Link;
use crate::pipeline::params;
use crate::queries;
use crate::rows::get;

/// The first half of the lock's name, `ONCE` in ASCII; the schema is the other.
const LOCK: i32 = 0x4f4e_4345;

/// It does nothing for as long as the move takes, and a server may be set to end sessions that do nothing.
const PATIENT: &str = "SET idle_session_timeout = 0";

/// How long the server may take to say whether it is still held. It looks into its own memory.
const ANSWER_PATIENCE: Duration = Duration::from_secs(15);

/// How a store's sessions use their schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tenure {
    /// Beside other nodes: a session waits while somebody holds the schema.
    Shared,
    /// Under a [`Hold`] of the caller's, who has the schema alone.
    Held,
}

/// A schema that nobody else uses, until this is dropped.
pub struct Hold {
    link: Link,
    runtime: Handle,
}

impl fmt::Debug for Hold {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Hold").finish_non_exhaustive()
    }
}

impl Hold {
    /// Waits, no longer than sessions wait for any lock, until nobody else uses the schema. Must be called inside the runtime.
    pub(crate) async fn take(link: Link) -> Result<Self, Error> {
        let doing = "waiting until nobody uses the schema";
        link.batch(doing, PATIENT).await?;
        let statement = link.statement(queries::SCHEMA_HOLD).await.map_err(failed(doing))?;
        match link.rows_of(&statement, params![LOCK]).await {
            Ok(_) => {
                let hold = Self { link, runtime: Handle::current() };
                hold.check().await?;
                Ok(hold)
            }
            Err(cause) if cause.code() == Some(&SqlState::LOCK_NOT_AVAILABLE) => {
                let text = "the schema has other sessions of onceward: stop every node first, or what they still do is left behind";
                Err(Error::new(Code::Unavailable, text).because(cause))
            }
            Err(cause) => Err(failed(doing)(cause)),
        }
    }

    /// Asks whether it is still held: a session may end, or be given to somebody else, without anybody's doing here.
    ///
    /// # Errors
    /// `Unavailable` where it is not, or nobody says so; then others may have come meanwhile.
    pub async fn check(&self) -> Result<(), Error> {
        let doing = "asking whether the schema is still held";
        let asked = self.link.first(doing, queries::SCHEMA_HELD, params![LOCK]);
        let bounded = {
            // The clock is the runtime's, and whoever asks may be outside of it.
            let _inside = self.runtime.enter();
            timeout(ANSWER_PATIENCE, asked)
        };
        let answered = bounded.await.map_err(|_elapsed| {
            let waited = ANSWER_PATIENCE.as_secs();
            Error::new(Code::Unavailable, format!("{doing}: no answer within {waited} s"))
        })?;
        let row = answered?.ok_or_else(|| defect("the server does not know its schema"))?;
        if get::<bool>(&row, 0)? {
            return Ok(());
        }
        let text = "the schema is not held any more, and others may have come to it: between us and the server there must be no pooler \
                    that lends sessions for one transaction";
        Err(Error::new(Code::Unavailable, text))
    }
}

/// Says for as long as the session lives that it uses the schema.
pub(crate) async fn share(link: &Link) -> Result<(), Error> {
    let doing = "waiting for the end of an export or an import";
    link.rows(doing, queries::SCHEMA_SHARE, params![LOCK]).await.map(drop)
}

#[cfg(all(test, feature = "real-postgres"))]
mod tests {
    //! What the server says of a lock that went away under its session, on a real one.

    use super::*;
    use crate::address::Address;
    use crate::pool::{Purpose, configured};

    #[tokio::test]
    async fn em_02_a_hold_is_what_the_server_says_it_is() {
        let server = onceward_testkit::services::address("postgres", "ONCEWARD_TEST_POSTGRES_URL");
        let schema = format!("hold_{}", std::process::id());
        let joint = if server.contains('?') { '&' } else { '?' };
        let url = format!("{server}{joint}options=-csearch_path%3D{schema}");
        let open =
            async || Link::open(&configured(&Address::parse(&url).unwrap(), Purpose::Works)).await.unwrap();
        let people = open().await;
        people.batch("making a schema", &format!("CREATE SCHEMA {schema}")).await.unwrap();

        let hold = Hold::take(open().await).await.unwrap();
        hold.check().await.unwrap();
        // As a session has it that was a node's before, because a pooler lends it by turns.
        share(&hold.link).await.unwrap();
        let lent = hold.check().await.unwrap_err();
        assert!(lent.operator_text().contains("not held any more"), "{lent}");
        hold.link.batch("leaving it", "SELECT pg_advisory_unlock_all()").await.unwrap();
        assert_eq!(hold.check().await.unwrap_err().code(), Code::Unavailable, "its session lives on");
        let used = open().await;
        share(&used).await.unwrap();
        let refused = Hold::take(used).await.unwrap_err();
        assert_eq!(refused.code(), Code::Unavailable, "a session that somebody used before us: {refused}");
        people.batch("dropping it", &format!("DROP SCHEMA {schema}")).await.unwrap();
    }

    #[tokio::test]
    async fn a_session_whose_host_dies_without_a_word_is_ended_by_the_server() {
        let server = onceward_testkit::services::address("postgres", "ONCEWARD_TEST_POSTGRES_URL");
        let link = Link::open(&configured(&Address::parse(&server).unwrap(), Purpose::Works)).await.unwrap();
        for (name, value) in [
            ("tcp_keepalives_idle", "30"),
            ("tcp_keepalives_interval", "10"),
            ("tcp_keepalives_count", "3"),
            ("tcp_user_timeout", "60000"),
        ] {
            let told = link.client().simple_query(&format!("SHOW {name}")).await.unwrap();
            let told = told.iter().find_map(|line| {
                let tokio_postgres::SimpleQueryMessage::Row(row) = line else { return None };
                row.get(0)
            });
            assert_eq!(told, Some(value), "{name}");
        }
    }
}
