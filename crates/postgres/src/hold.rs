//! Who uses a schema, and having it alone while it is moved as a whole.
//!
//! Every session of a store takes a lock of the schema together with others, for as long as it lives, and whoever moves the schema
//! takes it alone. So it does not matter what a node is called, whether a pool lies between, or when a session is given up for a new
//! one: what can write has the lock, and what comes while it is held waits, and is then told to come back later. Invariants: the
//! lock ends with its session, whatever ends that; schemas are apart. Deliberately absent: keeping a node from writing after the
//! hold; whoever moves a schema leaves its nodes stopped. Read next: `archive`.

use std::fmt;

use onceward_domain::error::{Code, Error};
use tokio_postgres::error::SqlState;

use crate::failure::failed;
use crate::link::Link;
use crate::pipeline::params;
use crate::queries;

/// The first half of the lock's name, `ONCE` in ASCII; the schema is the other.
const LOCK: i32 = 0x4f4e_4345;

/// It does nothing for as long as the move takes, and a server may be set to end sessions that do nothing.
const PATIENT: &str = "SET idle_session_timeout = 0";

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
}

impl fmt::Debug for Hold {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Hold").finish_non_exhaustive()
    }
}

impl Hold {
    /// Waits, no longer than sessions wait for any lock, until nobody else uses the schema.
    pub(crate) async fn take(link: Link) -> Result<Self, Error> {
        let doing = "waiting until nobody uses the schema";
        link.batch(doing, PATIENT).await?;
        let statement = link.statement(queries::SCHEMA_HOLD).await.map_err(failed(doing))?;
        match link.rows_of(&statement, params![LOCK]).await {
            Ok(_) => Ok(Self { link }),
            Err(cause) if cause.code() == Some(&SqlState::LOCK_NOT_AVAILABLE) => {
                let text = "the schema has other sessions of onceward: stop every node first, or what they still do is left behind";
                Err(Error::new(Code::Unavailable, text).because(cause))
            }
            Err(cause) => Err(failed(doing)(cause)),
        }
    }

    /// Asks whether it is still held: a session may end without anybody's doing.
    ///
    /// # Errors
    /// `Unavailable` where it is not; then others may have come meanwhile.
    pub async fn check(&self) -> Result<(), Error> {
        let asked =
            self.link.first("asking whether the schema is still held", queries::SERVER_NOW, Vec::new());
        asked.await.map(drop)
    }
}

/// Says for as long as the session lives that it uses the schema.
pub(crate) async fn share(link: &Link) -> Result<(), Error> {
    let doing = "waiting for the end of an export or an import";
    link.rows(doing, queries::SCHEMA_SHARE, params![LOCK]).await.map(drop)
}
