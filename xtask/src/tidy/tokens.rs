//! Rules on what Rust source may contain, checked on its tokens.
//!
//! Tokens and not lines, so that a word in a comment or in a text is never mistaken for code, and so that
//! code under `#[cfg(test)]` is known as such. The source need not compile: it only has to be Rust.

use std::str::FromStr;

use proc_macro2::{Delimiter, Group, Literal, TokenStream, TokenTree};

use super::finding::{Finding, Rule};
use super::layout::{EMPTY_NAME, empty_word};
use crate::workspace::SourceFile;

static UNREADABLE: Rule =
    Rule { id: "unreadable", reason: "No rule can be checked in a file that is not Rust." };

static IGNORED_TEST: Rule = Rule {
    id: "ignored-test",
    reason: "Nobody runs it: assert what happens today, even if it is wrong, and say why it is wrong.",
};

static UNFINISHED: Rule = Rule {
    id: "unfinished",
    reason: "It panics in front of a customer: leave the feature out until it is written, and file an issue.",
};

static TEST_SLEEP: Rule = Rule {
    id: "test-sleep",
    reason: "A sleep hides a race and is either too short or too long: wait for a signal or a condition.",
};

static SQL_IN_RUST: Rule = Rule {
    id: "sql-in-rust",
    reason: "Nobody explains it or compares it with its twin there: put it into `queries/<noun>/<verb>.sql`.",
};

/// Benchmarks measure the plain way beside ours, and the plain way is SQL in the code.
const SQL_ALLOWED_IN: &str = "crates/cli/src/bench";

pub(super) fn check(file: &SourceFile) -> Vec<Finding> {
    if !file.is_rust() {
        return Vec::new();
    }
    let mut scan = Scan { file, findings: Vec::new() };
    match TokenStream::from_str(&file.text) {
        Ok(tokens) => scan.walk(tokens, is_test_file(&file.path)),
        Err(cause) => scan.report(&UNREADABLE, cause.span().start().line, cause.to_string()),
    }
    scan.ignored_examples();
    scan.findings
}

fn is_test_file(path: &str) -> bool {
    path.split('/').any(|part| part == "tests" || part == "tests.rs")
}

struct Scan<'a> {
    file: &'a SourceFile,
    findings: Vec<Finding>,
}

impl Scan<'_> {
    /// Reads one level of the token tree. An attribute that marks a test holds until its item ends, which is
    /// at the first `{…}` or `;` of this level.
    fn walk(&mut self, stream: TokenStream, mut in_test: bool) {
        let tokens: Vec<TokenTree> = stream.into_iter().collect();
        let mut item_is_test = false;
        let mut at = 0;
        while let Some(token) = tokens.get(at) {
            if let Some(attribute) = Attribute::at(&tokens, at) {
                self.attribute(&attribute);
                let marks_test = attribute.marks_test();
                in_test |= marks_test && attribute.inner;
                item_is_test |= marks_test && !attribute.inner;
                at += attribute.length;
                continue;
            }
            let here_is_test = in_test || item_is_test;
            self.words(&tokens, at, here_is_test);
            if let TokenTree::Literal(literal) = token {
                self.literal(literal, here_is_test);
            }
            if let TokenTree::Group(group) = token {
                self.walk(group.stream(), here_is_test);
            }
            if ends_item(token) {
                item_is_test = false;
            }
            at += 1;
        }
    }

    fn attribute(&mut self, attribute: &Attribute) {
        if attribute.ignores_test() {
            self.report(&IGNORED_TEST, attribute.line, "a test that is never run".to_owned());
        }
    }

    /// What is found by a word and its neighbours.
    fn words(&mut self, tokens: &[TokenTree], at: usize, in_test: bool) {
        let Some(TokenTree::Ident(ident)) = tokens.get(at) else { return };
        let (word, line) = (ident.to_string(), ident.span().start().line);
        let before = at.checked_sub(1).and_then(|index| tokens.get(index));
        let after = tokens.get(at + 1);

        let is_macro = is_punct(after, '!') && matches!(tokens.get(at + 2), Some(TokenTree::Group(_)));
        if is_macro && (word == "todo" || word == "unimplemented") {
            self.report(&UNFINISHED, line, format!("`{word}!`"));
        }

        // A method of that name belongs to a clock that a test steers; a function is the real thing.
        let is_call =
            is_group(after, Delimiter::Parenthesis) && !is_punct(before, '.') && !is_word(before, "fn");
        let sleeps = matches!(word.as_str(), "sleep" | "sleep_until" | "sleep_ms");
        if in_test && sleeps && is_call {
            self.report(&TEST_SLEEP, line, format!("`{word}(`"));
        }

        // A module in a file of its own is judged by the name of the file.
        let is_inline_module = is_word(before, "mod") && is_group(after, Delimiter::Brace);
        if let Some(empty) = empty_word(&word).filter(|_| is_inline_module) {
            self.report(&EMPTY_NAME, line, format!("the module name contains `{empty}`"));
        }
    }

    fn literal(&mut self, literal: &Literal, in_test: bool) {
        let source = literal.to_string();
        let is_text = source.ends_with(['"', '#']);
        if is_text && !in_test && !self.file.path.starts_with(SQL_ALLOWED_IN) && holds_sql(&source) {
            self.report(&SQL_IN_RUST, literal.span().start().line, "an SQL statement in a text".to_owned());
        }
    }

    /// An example in the documentation that is not compiled is an ignored test too.
    fn ignored_examples(&mut self) {
        for (index, line) in self.file.text.lines().enumerate() {
            let line = line.trim_start();
            let Some(text) = line.strip_prefix("///").or_else(|| line.strip_prefix("//!")) else { continue };
            let Some(fence) = text.trim_start().strip_prefix("```") else { continue };
            if fence.split(',').any(|word| word.trim() == "ignore") {
                self.report(&IGNORED_TEST, index + 1, "an example that is never run".to_owned());
            }
        }
    }

    fn report(&mut self, rule: &'static Rule, line: usize, detail: String) {
        self.findings.push(Finding { rule, path: self.file.path.clone(), line, detail });
    }
}

/// `#[…]`, or `#![…]` which speaks about what it stands in.
struct Attribute {
    inner: bool,
    content: Vec<TokenTree>,
    line: usize,
    /// How many tokens it takes.
    length: usize,
}

impl Attribute {
    fn at(tokens: &[TokenTree], at: usize) -> Option<Self> {
        let hash = tokens.get(at).filter(|token| is_punct(Some(token), '#'))?;
        let inner = is_punct(tokens.get(at + 1), '!');
        let length = if inner { 3 } else { 2 };
        let group = bracket(tokens.get(at + length - 1)?)?;
        let line = hash.span().start().line;
        Some(Self { inner, content: group.stream().into_iter().collect(), line, length })
    }

    /// `#[test]`, `#[tokio::test(…)]`, `#[cfg(test)]`, `#[cfg(all(test, …))]`.
    fn marks_test(&self) -> bool {
        if is_word(self.content.first(), "cfg") {
            return self.content.get(1).is_some_and(requires_test);
        }
        let path_end = self.content.iter().rposition(|token| matches!(token, TokenTree::Ident(_)));
        path_end.is_some_and(|end| is_word(self.content.get(end), "test") && !self.has_value())
    }

    /// `#[ignore]`, `#[ignore = "…"]`, `#[cfg_attr(…, ignore)]`.
    fn ignores_test(&self) -> bool {
        let conditional = is_word(self.content.first(), "cfg_attr")
            && self.content.get(1).is_some_and(|token| names_directly(token, "ignore"));
        is_word(self.content.first(), "ignore") || conditional
    }

    fn has_value(&self) -> bool {
        self.content.iter().any(|token| is_punct(Some(token), '='))
    }
}

/// Whether a `cfg` predicate can only hold in tests: `test` itself, or all of several with `test` among them.
fn requires_test(predicate: &TokenTree) -> bool {
    let TokenTree::Group(group) = predicate else { return false };
    let tokens: Vec<TokenTree> = group.stream().into_iter().collect();
    match tokens.as_slice() {
        [only] => is_word(Some(only), "test"),
        [all, predicates] if is_word(Some(all), "all") => names_directly(predicates, "test"),
        _ => false,
    }
}

fn names_directly(group: &TokenTree, word: &str) -> bool {
    let TokenTree::Group(group) = group else { return false };
    group.stream().into_iter().any(|token| is_word(Some(&token), word))
}

fn ends_item(token: &TokenTree) -> bool {
    is_punct(Some(token), ';') || is_group(Some(token), Delimiter::Brace)
}

fn is_punct(token: Option<&TokenTree>, sign: char) -> bool {
    matches!(token, Some(TokenTree::Punct(punct)) if punct.as_char() == sign)
}

fn is_word(token: Option<&TokenTree>, word: &str) -> bool {
    matches!(token, Some(TokenTree::Ident(ident)) if ident == word)
}

fn is_group(token: Option<&TokenTree>, delimiter: Delimiter) -> bool {
    matches!(token, Some(TokenTree::Group(group)) if group.delimiter() == delimiter)
}

fn bracket(token: &TokenTree) -> Option<&Group> {
    match token {
        TokenTree::Group(group) if group.delimiter() == Delimiter::Bracket => Some(group),
        TokenTree::Group(_) | TokenTree::Ident(_) | TokenTree::Punct(_) | TokenTree::Literal(_) => None,
    }
}

/// Capitals anywhere, or a whole statement in small letters. Prose with "select" or "update" in it passes.
fn holds_sql(source: &str) -> bool {
    let text = source.split_whitespace().collect::<Vec<_>>().join(" ");
    let pair = |first: &str, second: &str| {
        text.find(&format!("{first} ")).is_some_and(|at| text[at..].contains(&format!(" {second}")))
    };
    let shouted = text.contains(concat!("SELECT", " "))
        || text.contains(concat!("INSERT", " INTO"))
        || text.contains(concat!("DELETE", " FROM"))
        || pair("UPDATE", "SET ");

    let opening = text.trim_start_matches(['r', 'b', 'c', '#', '"', '\\', ' ']).to_lowercase();
    let whole = |verb: &str, second: &str, third: &str| {
        opening.starts_with(verb) && opening.contains(second) && opening.contains(third)
    };
    shouted
        || whole("select ", " from ", " ")
        || whole("insert into ", "(", ")")
        || whole("update ", " set ", "=")
        || whole("delete from ", " where ", "=")
}

#[cfg(test)]
mod tests {
    //! Each rule on samples that break it and samples that keep it.

    use super::*;

    fn ids(path: &str, text: &str) -> Vec<&'static str> {
        let file = SourceFile { path: path.to_owned(), text: text.to_owned() };
        check(&file).iter().map(|finding| finding.rule.id).collect()
    }

    fn passes(path: &str, text: &str) {
        assert_eq!(ids(path, text), [""; 0], "{text}");
    }

    #[test]
    fn a_file_that_is_not_rust_is_reported() {
        assert_eq!(ids("src/a.rs", "fn a( {"), ["unreadable"]);
    }

    #[test]
    fn ignored_tests_and_examples_are_found() {
        for text in [
            "#[test] #[ignore] fn a() {}",
            "#[test] #[ignore = \"slow\"] fn a() {}",
            "#[cfg_attr(windows, ignore)] fn a() {}",
            "/// ```ignore\n/// a();\n/// ```\nfn a() {}",
            "/// ```rust,ignore\n/// a();\n/// ```\nfn a() {}",
        ] {
            assert_eq!(ids("src/a.rs", text), ["ignored-test"], "{text}");
        }
        passes("src/a.rs", "/// We ignore it. #[ignore]\n#[test] fn ignore() { let a = \"#[ignore]\"; }");
    }

    #[test]
    fn unfinished_code_is_found() {
        assert_eq!(ids("src/a.rs", "fn a() { todo!() }"), ["unfinished"]);
        assert_eq!(ids("src/a.rs", "fn a() { if b { unimplemented!(\"c\") } }"), ["unfinished"]);
        passes("src/a.rs", "// todo!()\nfn todo() { let a = \"todo!()\"; todo != 1; }");
    }

    #[test]
    fn tests_do_not_sleep() {
        let call = "fn a() { tokio::time::sleep(b).await; }";
        assert_eq!(ids("crates/a/tests/b.rs", call), ["test-sleep"]);
        assert_eq!(ids("crates/a/src/b/tests.rs", call), ["test-sleep"]);
        for mark in ["#[cfg(test)] mod tests", "#[cfg(all(test, unix))] mod tests", "#![cfg(test)] mod b"] {
            assert_eq!(ids("src/a.rs", &format!("{mark} {{ {call} }}")), ["test-sleep"], "{mark}");
        }
        for mark in ["#[test]", "#[tokio::test]", "#[tokio::test(start_paused)]"] {
            assert_eq!(ids("src/a.rs", &format!("{mark} {call}")), ["test-sleep"], "{mark}");
        }
    }

    #[test]
    fn a_sleep_elsewhere_or_on_a_steered_clock_passes() {
        passes("src/a.rs", "#[test] fn a() {} fn b() { sleep(c); }");
        passes("src/a.rs", "#[cfg(not(test))] fn b() { sleep(c); }");
        passes("src/a.rs", "#[cfg(any(test, feature = \"d\"))] fn b() { sleep(c); }");
        passes("tests/a.rs", "fn a() { clock.sleep(b); } // sleep(c)");
        passes("tests/a.rs", "fn sleep(a: u8) {}");
    }

    #[test]
    fn statements_in_texts_are_found() {
        for sql in [
            "SELECT a FROM b",
            "WITH c AS (SELECT a FROM b)",
            "INSERT INTO b VALUES (1)",
            "UPDATE b\n SET a = 1",
            "DELETE FROM b",
            "select a from b",
            "update b set a = 1",
        ] {
            assert_eq!(ids("src/a.rs", &format!("const A: &str = \"{sql}\";")), ["sql-in-rust"], "{sql}");
            assert_eq!(ids("src/a.rs", &format!("const A: &str = r#\"{sql}\"#;")), ["sql-in-rust"], "{sql}");
        }
    }

    #[test]
    fn tests_benchmarks_comments_and_prose_may_name_statements() {
        let sql = "const A: &str = \"SELECT a FROM b\";";
        passes("crates/a/tests/b.rs", sql);
        passes("src/a.rs", &format!("#[cfg(test)] mod tests {{ {sql} }}"));
        passes("crates/cli/src/bench/plain.rs", sql);
        passes("src/a.rs", "/// SELECT a FROM b\nfn a() {} // DELETE FROM b");
        passes("src/a.rs", "const A: &str = \"please select one from the list, or update the set\";");
        passes("src/a.rs", "const A: &str = \"PRAGMA journal_mode = WAL\"; const B: char = 'S';");
    }

    #[test]
    fn inline_modules_have_names_that_say_something() {
        assert_eq!(ids("src/a.rs", "mod test_helpers { }"), ["empty-name"]);
        passes("src/a.rs", "mod relay { }");
    }

    #[test]
    fn the_line_is_that_of_the_word() {
        let file = SourceFile {
            path: "src/a.rs".to_owned(),
            text: "//! A.\n\nfn a() {\n    todo!()\n}\n".to_owned(),
        };
        assert_eq!(check(&file)[0].line, 4);
    }
}
