//! A provider's statement on the wire: CSV in, a report out.
//!
//! Invariants: a statement with one bad line is refused whole, with the lines that are at fault; columns are found by their
//! names in the header, and those that are not named here are not looked at, such as a net sum that leaves something out
//! (C117). Deliberately absent: what follows from a line.

use std::collections::BTreeSet;
use std::sync::Arc;

use csv::{ErrorKind, ReaderBuilder, StringRecord, Trim};
use onceward::operations::statement::{Entry, Line, Reading, Said, Verdict};
use onceward_domain::id::{PaymentId, RefundId};
use onceward_domain::money::Money;
use onceward_domain::ports::sandbox::MoveKind;
use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

use super::money::MoneyView;
use crate::check::Faults;
use crate::problem::Problem;

/// Most faults that a refusal names.
const FAULTS_LIMIT: usize = 20;
/// Longest transaction id of a provider.
const TRANSACTION_LIMIT: usize = 200;
/// What spreadsheets write before the first byte.
const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// A statement that could be read.
#[derive(Debug)]
pub(crate) struct Statement {
    /// The lines that the book can be compared with.
    pub(crate) lines: Vec<Line>,
    /// How many lines are about other moves of money.
    pub(crate) other: u64,
}

/// Reads a statement.
///
/// # Errors
/// 422 `invalid` with the lines at fault: `/7/amount` is the amount on line 7.
pub(crate) fn parse(bytes: &[u8]) -> Result<Statement, Problem> {
    let bytes = bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(bytes);
    let mut reader = ReaderBuilder::new().trim(Trim::All).from_reader(bytes);
    let mut faults = Faults::default();
    let columns = match reader.headers() {
        Ok(head) => Columns::of(head, &mut faults),
        Err(error) => {
            unreadable(&mut faults, &error);
            None
        }
    };
    let columns = faults.finish(columns)?;
    let mut faults = Faults::default();
    let mut statement = Statement { lines: Vec::new(), other: 0 };
    for record in reader.records() {
        match record {
            Ok(record) => match entry(&columns, &record, &mut faults) {
                Some(Some(line)) => statement.lines.push(line),
                Some(None) => statement.other += 1,
                None => {}
            },
            Err(error) => unreadable(&mut faults, &error),
        }
        if faults.so_far() >= FAULTS_LIMIT {
            break;
        }
    }
    mark_returned(&mut statement.lines);
    faults.finish(Some(statement))
}

fn unreadable(faults: &mut Faults, error: &csv::Error) {
    let line = error.position().map_or(1, csv::Position::line);
    let detail = if let ErrorKind::UnequalLengths { expected_len, len, .. } = error.kind() {
        format!("line {line} has {len} columns, the header has {expected_len}")
    } else if matches!(error.kind(), ErrorKind::Utf8 { .. }) {
        format!("line {line} must be UTF-8")
    } else {
        format!("line {line} cannot be read as CSV")
    };
    faults.add(format!("/{line}"), detail);
}

/// Where the columns stand.
struct Columns {
    kind: usize,
    payment: usize,
    refund: usize,
    transaction: usize,
    amount: usize,
    currency: usize,
}

impl Columns {
    fn of(head: &StringRecord, faults: &mut Faults) -> Option<Self> {
        let mut find = |name: &str| {
            let mut places = head.iter().enumerate().filter(|(_, column)| *column == name);
            let found = (places.next(), places.next());
            match found {
                (Some((place, _)), None) => Some(place),
                (None, _) => {
                    faults
                        .add(format!("/1/{name}"), format!("line 1 must be a header with the column {name}"));
                    None
                }
                (Some(_), Some(_)) => {
                    faults.add(format!("/1/{name}"), format!("line 1 must not name {name} twice"));
                    None
                }
            }
        };
        let found =
            ["kind", "payment_id", "refund_id", "transaction_id", "amount", "currency"].map(&mut find);
        let [kind, payment, refund, transaction, amount, currency] = found;
        Some(Self {
            kind: kind?,
            payment: payment?,
            refund: refund?,
            transaction: transaction?,
            amount: amount?,
            currency: currency?,
        })
    }
}

/// One line; `Some(None)` where it is about another move of money, nothing where it is at fault.
fn entry(columns: &Columns, record: &StringRecord, faults: &mut Faults) -> Option<Option<Line>> {
    let number = record.position().map_or(0, csv::Position::line);
    let text = |place: usize| record.get(place).unwrap_or("");
    let kind = kind_of(text(columns.kind));
    let Some(kind) = kind else { return Some(None) };
    let mut at = |column: &str, detail: String| {
        faults.add(format!("/{number}/{column}"), format!("line {number}: {column} {detail}"));
    };
    let mut uuid = |column: &str, text: &str| {
        let found = Uuid::try_parse(text).ok();
        if found.is_none() {
            at(column, "must be a UUID".to_owned());
        }
        found
    };
    let payment = uuid("payment_id", text(columns.payment)).map(PaymentId);
    let refund = match kind {
        Kind::Payment => None,
        Kind::Refund | Kind::RefundReturned => Some(uuid("refund_id", text(columns.refund)).map(RefundId)),
    };
    let amount = match money(text(columns.amount), text(columns.currency)) {
        Ok(amount) => Some(amount),
        Err((column, detail)) => {
            at(column, detail);
            None
        }
    };
    let said = match (kind, refund) {
        (Kind::Payment, _) => {
            let transaction = transaction(text(columns.transaction));
            if transaction.is_none() {
                at("transaction_id", format!("must have 1 to {TRANSACTION_LIMIT} visible characters"));
            }
            transaction.map(|transaction| Said::Taken { transaction })
        }
        (Kind::Refund, refund) => refund.flatten().map(|refund| Said::WentBack { refund, came_back: false }),
        (Kind::RefundReturned, refund) => refund.flatten().map(|refund| Said::CameBack { refund }),
    };
    Some(Some(Line { number, entry: Entry { payment: payment?, said: said?, amount: amount? } }))
}

#[derive(Clone, Copy)]
enum Kind {
    Payment,
    Refund,
    RefundReturned,
}

/// The kinds that the book can be compared with.
fn kind_of(text: &str) -> Option<Kind> {
    let kinds = [
        (MoveKind::Payment, Kind::Payment),
        (MoveKind::Refund, Kind::Refund),
        (MoveKind::RefundReturned, Kind::RefundReturned),
    ];
    kinds.into_iter().find(|(kind, _)| kind.name() == text).map(|(_, kind)| kind)
}

fn money(amount: &str, currency: &str) -> Result<Money, (&'static str, String)> {
    use onceward_domain::money::MoneyError;
    let is_whole = !amount.is_empty() && amount.bytes().all(|byte| byte.is_ascii_digit());
    let number = amount.parse().ok().filter(|_| is_whole);
    let Some(number) = number else { return Err(("amount", MoneyError::OutOfRange.to_string())) };
    Money::parse(number, currency).map_err(|error| match error {
        MoneyError::OutOfRange => ("amount", error.to_string()),
        MoneyError::UnknownCurrency | MoneyError::MixedCurrencies => ("currency", error.to_string()),
    })
}

fn transaction(text: &str) -> Option<Arc<str>> {
    let length = text.chars().count();
    let is_visible = !text.chars().any(|one| one.is_control() || one.is_whitespace());
    ((1..=TRANSACTION_LIMIT).contains(&length) && is_visible).then(|| Arc::from(text))
}

/// Notes on each refund whether a later line says that it came back.
fn mark_returned(lines: &mut [Line]) {
    let mut returned: BTreeSet<RefundId> = BTreeSet::new();
    for line in lines.iter_mut().rev() {
        match &mut line.entry.said {
            Said::CameBack { refund } => drop(returned.insert(*refund)),
            Said::WentBack { refund, came_back } => *came_back = returned.contains(refund),
            Said::Taken { .. } => {}
        }
    }
}

/// What a statement came to.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = StatementReading)]
pub(crate) struct ReadingView {
    provider: String,
    /// Lines that were read, the header not counted.
    lines: u64,
    /// Lines that our book agrees with.
    matched: u64,
    /// Lines that were news; what follows from them has begun.
    newly_heard: u64,
    /// Lines about payments or refunds that are not known at this provider.
    unknown: u64,
    /// Lines that our book contradicts; each is an anomaly.
    mismatched: u64,
    /// Lines about other moves of money, which are not compared.
    other: u64,
    /// The lines that did not simply match; at most 1,000.
    findings: Vec<FindingView>,
}

/// A line that did not simply match.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = StatementFinding)]
pub(crate) struct FindingView {
    /// Its number, the header counted.
    line: u64,
    /// `newly_heard`, `unknown` or `mismatched`.
    verdict: &'static str,
    payment_id: String,
    #[schema(required = true)]
    refund_id: Option<String>,
    amount: MoneyView,
}

impl ReadingView {
    /// The report on a reading.
    pub(crate) fn new(provider: String, other: u64, reading: &Reading) -> Self {
        let Reading { matched, newly_heard, unknown, mismatched, findings } = reading;
        Self {
            provider,
            lines: matched + newly_heard + unknown + mismatched + other,
            matched: *matched,
            newly_heard: *newly_heard,
            unknown: *unknown,
            mismatched: *mismatched,
            other,
            findings: findings.iter().map(|(line, verdict)| FindingView::of(line, *verdict)).collect(),
        }
    }
}

impl FindingView {
    fn of(line: &Line, verdict: Verdict) -> Self {
        let refund = match &line.entry.said {
            Said::Taken { .. } => None,
            Said::WentBack { refund, .. } | Said::CameBack { refund } => Some(refund.to_string()),
        };
        Self {
            line: line.number,
            verdict: verdict.name(),
            payment_id: line.entry.payment.to_string(),
            refund_id: refund,
            amount: line.entry.amount.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "at,kind,payment_id,refund_id,transaction_id,amount,currency\n";
    const ID: &str = "0190a5c4-0000-8000-8000-000000000000";

    fn read(text: &[u8]) -> Result<(usize, u64), String> {
        match parse(text) {
            Ok(statement) => Ok((statement.lines.len(), statement.other)),
            Err(problem) => {
                assert_eq!(problem.status().as_u16(), 422);
                Err(String::from_utf8(problem.document("r")).unwrap())
            }
        }
    }

    #[test]
    fn se_04_a_bad_statement_is_refused_with_the_line_that_is_at_fault() {
        let line = |kind: &str, refund: &str, transaction: &str, amount: &str, currency: &str| {
            format!("{HEAD}t,{kind},{ID},{refund},{transaction},{amount},{currency}\n")
        };
        assert_eq!(read(line("payment", "", "tx", "5", "CNY").as_bytes()), Ok((1, 0)));
        assert_eq!(read(line("refund", ID, "", "5", "CNY").as_bytes()), Ok((1, 0)));
        assert_eq!(read(line("fee", "", "", "-5.00", "").as_bytes()), Ok((0, 1)));
        assert_eq!(read(HEAD.as_bytes()), Ok((0, 0)));
        let marked = [BYTE_ORDER_MARK, HEAD.as_bytes()].concat();
        assert_eq!(read(&marked), Ok((0, 0)));
        let reordered = format!(
            "currency,amount,transaction_id,refund_id,payment_id,kind,net\r\nCNY,5,tx,,{ID},payment,-9\r\n"
        );
        assert_eq!(read(reordered.as_bytes()), Ok((1, 0)));
        let long = "x".repeat(201);
        let table: [(Vec<u8>, &str); 15] = [
            (Vec::new(), "/1/kind"),
            (b"kind,payment_id\n".to_vec(), "/1/refund_id"),
            (HEAD.replace("at,", "kind,").into_bytes(), "must not name kind twice"),
            (format!("{HEAD}a,b\n").into_bytes(), "line 2 has 2 columns, the header has 7"),
            (line("payment", "", "tx", "5.00", "CNY").into_bytes(), "/2/amount"),
            (line("payment", "", "tx", "-5", "CNY").into_bytes(), "/2/amount"),
            (line("payment", "", "tx", "+5", "CNY").into_bytes(), "/2/amount"),
            (line("payment", "", "tx", "1000000000000001", "CNY").into_bytes(), "/2/amount"),
            (line("payment", "", "tx", "99999999999999999999", "CNY").into_bytes(), "/2/amount"),
            (line("payment", "", "tx", "5", "QQQ").into_bytes(), "/2/currency"),
            (line("payment", "", "", "5", "CNY").into_bytes(), "/2/transaction_id"),
            (line("payment", "", &long, "5", "CNY").into_bytes(), "/2/transaction_id"),
            (line("payment", "", "a\0b", "5", "CNY").into_bytes(), "/2/transaction_id"),
            (line("refund", "7", "tx", "5", "CNY").into_bytes(), "/2/refund_id"),
            ([HEAD.as_bytes(), b"t,payment,\xFF\xFE,,tx,5,CNY\n"].concat(), "line 2 must be UTF-8"),
        ];
        for (text, expected) in table {
            let refused = read(&text).expect_err(expected);
            assert!(refused.contains(expected), "{expected}: {refused}");
        }
    }

    #[test]
    fn se_03_a_refusal_names_so_many_lines_and_no_more() {
        let bad = format!("{HEAD}{}", "t,payment,7,,,x,y\n".repeat(1_000));
        let refused = read(bad.as_bytes()).unwrap_err();
        let faults = refused.matches("\"pointer\"").count();
        assert!((FAULTS_LIMIT..FAULTS_LIMIT + 4).contains(&faults), "{faults}");
    }

    #[test]
    fn ot_09_a_refund_that_came_back_is_known_on_the_line_before() {
        let text = format!("{HEAD}t,refund,{ID},{ID},tx,5,CNY\nt,refund_returned,{ID},{ID},tx,5,CNY\n");
        let lines = parse(text.as_bytes()).unwrap().lines;
        assert!(matches!(lines[0].entry.said, Said::WentBack { came_back: true, .. }));
        assert!(matches!(lines[1].entry.said, Said::CameBack { .. }));
    }
}
