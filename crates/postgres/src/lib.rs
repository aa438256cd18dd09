//! The cluster store over PostgreSQL 15 or newer (design.md §7).
