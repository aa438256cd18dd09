//! `cargo xtask tidy`: the rules of the house that neither the compiler nor clippy knows.
//!
//! Each rule is a constant beside its check: an id, and the reason that is printed with every finding. There
//! is no way to switch a rule off for one place: either the place changes, or the rule does, in one change.
//!
//! Read next: `imports` (which crate may see which), then `tokens` (what Rust source may not contain).

mod finding;
mod imports;
mod layout;
mod paths;
mod sql;
mod tokens;

use std::io::{self, Write};

use finding::Finding;

use crate::{Failure, say, workspace};

/// Checks the whole repository and prints one line per finding to stdout.
pub(crate) fn run() -> Result<(), Failure> {
    let root = workspace::root();
    let files = workspace::source_files(&root)?;

    let mut findings = imports::check(&imports::Graph::of_workspace(&root)?);
    for file in &files {
        findings.extend(layout::check(file));
        findings.extend(tokens::check(file));
        findings.extend(sql::check(file));
        findings.extend(paths::check(file));
    }
    findings.sort_by(|a, b| (&a.path, a.line, a.rule.id).cmp(&(&b.path, b.line, b.rule.id)));

    if findings.is_empty() {
        say(&format!("tidy: {} files, nothing to report", files.len()));
        return Ok(());
    }
    print(&findings)?;
    Err(format!("tidy found {} things in {} files", findings.len(), files.len()).into())
}

fn print(findings: &[Finding]) -> io::Result<()> {
    let mut out = io::stdout().lock();
    for finding in findings {
        writeln!(out, "{finding}")?;
    }
    Ok(())
}
