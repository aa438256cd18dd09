//! Payment providers: adapters of [`onceward_domain::ports::provider::Provider`]; and notifiers, which tell people.
//!
//! **Purpose.** Speak a provider's language outwards and one [`onceward_domain::payment::Word`] inwards.
//!
//! **Invariants.** An answer that did not come is an unknown outcome, never a failure (DR-02); a callback is believed
//! for its signature over the raw bytes, and for nothing else.
//!
//! **Deliberately absent.** Decisions about orders: what a word means for one is the domain's.
//!
//! **Read next.** [`sandbox`], the bank that plays a real provider; [`notice`], where the engine speaks up.

pub mod notice;
mod post;
pub mod sandbox;
pub mod signature;
