//! What a rule is and what it found, and how that reads on a terminal.

use std::fmt;

/// A rule of the house. The reason is part of it: a rule that nobody can argue with is a rule that nobody keeps.
#[derive(Debug, PartialEq)]
pub(super) struct Rule {
    /// Short and stable, for searching.
    pub(super) id: &'static str,
    /// A sentence that says what goes wrong without the rule, and what to do instead.
    pub(super) reason: &'static str,
}

/// One place where a rule is broken.
#[derive(Debug)]
pub(super) struct Finding {
    pub(super) rule: &'static Rule,
    /// Path from the root of the repository.
    pub(super) path: String,
    /// Counted from 1.
    pub(super) line: usize,
    /// What is there.
    pub(super) detail: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Finding { rule, path, line, detail } = self;
        write!(f, "{path}:{line}: [{}] {detail}. {}", rule.id, rule.reason)
    }
}

#[cfg(test)]
mod tests {
    //! The line a person reads has the place, the rule, what is there and why it matters.

    use super::*;

    static SAMPLE: Rule = Rule { id: "sample", reason: "Because it breaks." };

    #[test]
    fn a_finding_names_place_rule_and_reason() {
        let finding =
            Finding { rule: &SAMPLE, path: "a/b.rs".to_owned(), line: 7, detail: "something".to_owned() };
        assert_eq!(finding.to_string(), "a/b.rs:7: [sample] something. Because it breaks.");
    }
}
