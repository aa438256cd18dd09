//! Rules on query files: one statement each, opened by a comment.
//!
//! A query is any `.sql` file below a folder `queries` of a crate. Migrations and the schema live elsewhere
//! and may hold many statements, and triggers with inner ones.

use super::finding::{Finding, Rule};
use crate::workspace::SourceFile;

static ONE_STATEMENT: Rule = Rule {
    id: "sql-one-statement",
    reason: "A query file is one statement that ends with `;`: it is prepared, explained and named as one.",
};

static COMMENT_FIRST: Rule = Rule {
    id: "sql-comment",
    reason: "Open with `--`: what the statement guards, what zero rows mean, which index it uses.",
};

pub(super) fn check(file: &SourceFile) -> Vec<Finding> {
    if !is_query(&file.path) {
        return Vec::new();
    }
    let mut findings = Vec::new();
    if !file.text.starts_with("--") {
        findings.push(found(&COMMENT_FIRST, file, 1, "the file does not begin with a comment".to_owned()));
    }
    let shape = Shape::of(&file.text);
    if shape.complete != 1 {
        let detail = format!("{} complete statements", shape.complete);
        findings.push(found(&ONE_STATEMENT, file, shape.last_line, detail));
    } else if shape.unfinished {
        let detail = "text after the statement".to_owned();
        findings.push(found(&ONE_STATEMENT, file, shape.last_line, detail));
    }
    findings
}

fn is_query(path: &str) -> bool {
    path.starts_with("crates/") && path.ends_with(".sql") && path.split('/').any(|part| part == "queries")
}

fn found(rule: &'static Rule, file: &SourceFile, line: usize, detail: String) -> Finding {
    Finding { rule, path: file.path.clone(), line, detail }
}

/// How many statements a text holds.
struct Shape {
    /// Statements that end with `;`. An empty one counts: it is a mistake as well.
    complete: usize,
    /// Something other than space and comments follows the last `;`.
    unfinished: bool,
    /// The line of the last `;` or of the text after it.
    last_line: usize,
}

impl Shape {
    fn of(text: &str) -> Self {
        let mut shape = Self { complete: 0, unfinished: false, last_line: 1 };
        let mut line = 1;
        let mut rest = text;
        while let Some(first) = rest.chars().next() {
            let length = span(rest, first);
            let (span, after) = rest.split_at(length);
            let is_comment = span.starts_with("--") || span.starts_with("/*");
            if first == ';' {
                shape.complete += 1;
                shape.unfinished = false;
                shape.last_line = line;
            } else if !is_comment && !first.is_whitespace() {
                shape.unfinished = true;
                shape.last_line = line;
            }
            line += span.matches('\n').count();
            rest = after;
        }
        shape
    }
}

/// The length in bytes of what begins here: a comment, a quoted text or one character. A doubled quote reads
/// as two quoted texts, which is as good for counting.
fn span(rest: &str, first: char) -> usize {
    let one = first.len_utf8();
    let until = |end: &str, from: usize| {
        rest.get(from..).and_then(|tail| tail.find(end)).map_or(rest.len(), |at| from + at + end.len())
    };
    if rest.starts_with("--") {
        until("\n", 2)
    } else if rest.starts_with("/*") {
        until("*/", 2)
    } else if first == '\'' {
        until("'", one)
    } else if first == '"' {
        until("\"", one)
    } else {
        one
    }
}

#[cfg(test)]
mod tests {
    //! Each rule on samples that break it and samples that keep it.

    use super::*;

    const QUERY: &str = "crates/sqlite/queries/order/insert.sql";

    fn ids(path: &str, text: &str) -> Vec<&'static str> {
        let file = SourceFile { path: path.to_owned(), text: text.to_owned() };
        check(&file).iter().map(|finding| finding.rule.id).collect()
    }

    #[test]
    fn one_statement_after_a_comment_passes() {
        for text in [
            "-- Guards nothing.\nSELECT 1;\n",
            "-- A ; in a comment.\nSELECT ';' /* ; */ AS \"a;b\"; -- and ; here\n",
            "-- It's.\nSELECT 'it''s;';\n",
        ] {
            assert_eq!(ids(QUERY, text), [""; 0], "{text:?}");
        }
    }

    #[test]
    fn none_two_or_an_unfinished_statement_fails() {
        for text in ["-- Nothing.\n", "-- No end.\nSELECT 1\n", "-- Two.\nSELECT 1;\nSELECT 2;\n"] {
            assert_eq!(ids(QUERY, text), ["sql-one-statement"], "{text:?}");
        }
        assert_eq!(ids(QUERY, "-- More.\nSELECT 1;\nSELECT 2\n"), ["sql-one-statement"]);
    }

    #[test]
    fn the_line_is_that_of_the_surplus() {
        let file = SourceFile { path: QUERY.to_owned(), text: "-- Two.\nSELECT\n1;\nSELECT 2;\n".to_owned() };
        assert_eq!(check(&file)[0].line, 4);
    }

    #[test]
    fn a_query_begins_with_a_comment() {
        assert_eq!(ids(QUERY, "SELECT 1;\n"), ["sql-comment"]);
        assert_eq!(ids("crates/sqlite/src/a/queries/b.sql", "SELECT 1;\n"), ["sql-comment"]);
    }

    #[test]
    fn migrations_are_not_queries() {
        assert_eq!(ids("crates/sqlite/migrations/0001.sql", "SELECT 1; SELECT 2;"), [""; 0]);
    }
}
