//! Whom a server must be vouched for by, for every adapter that speaks TLS.
//!
//! **Invariants.** Authorities are the system's or those of one file, never both: who names a file trusts nobody else. A file
//! without a certificate is refused where it is named, not at the first handshake. Nothing here is a secret, so all of it may be
//! shown.
//!
//! **Deliberately absent.** Sockets, protocols, and a certificate of our own: servers know us by a password.
//!
//! **Read next.** [`authorities`], then [`judgement`] (what of a certificate counts) and [`refusal`](mod@refusal).

pub mod authorities;
pub mod judgement;
pub mod refusal;

pub use authorities::Authorities;
pub use judgement::Judgement;
pub use refusal::refusal;
pub use tokio_rustls::rustls;
