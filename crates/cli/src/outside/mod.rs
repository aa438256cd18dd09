//! A server and how it is looked at from outside: as a child process, and over its HTTP port.
//!
//! Purpose: what `demo` and `torture` share. Both know of a server only what anybody could find out by asking it, so that
//! what they find holds for everybody. Deliberately absent: what either of them wants to see.

pub(crate) mod check;
pub(crate) mod list;
pub(crate) mod rest;
pub(crate) mod server;
pub(crate) mod statement;
pub(crate) mod together;
