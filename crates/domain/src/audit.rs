//! Judges the invariants.
