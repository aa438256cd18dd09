//! A dump as a stream of lines: what `onceward export` writes and `onceward import` reads.
//!
//! The first line is an object that says what it is: format, schema, the mark of the secret (never the secret), and where the
//! gate lay. Each line behind it is one row, an array of the table's name and the values in the order of its columns, bytes in
//! hexadecimal. The last line is an object with the number of rows of each table and the SHA-256 of every byte before it.
//! Invariants: what is cut off, changed, of another version, or no dump at all is refused, at the latest at its end, so whoever
//! restores from it commits nothing before; memory is bounded by a line and a page. Deliberately absent: compression and
//! encryption, which other programs in the pipe do better. Read next: [`onceward_domain::dump`].

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{BufRead, Read as _, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use onceward_domain::dump::{Kind, PAGE_ROWS, Page, Row, Table, Value, schema};
use onceward_domain::error::{Code, Error};
use onceward_domain::ports::archive::{Sink, Source};
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use sha2::{Digest, Sha256};

/// The version of the format that is written and read.
pub const FORMAT: u32 = 1;

/// Most bytes of a line. The longest rows are batches of hundreds of messages, a hundredth of this.
pub const LINE_LIMIT: usize = 32 * 1024 * 1024;

/// A page that is read has about as many bytes at most, and at least a row.
const PAGE_BYTES: usize = 4 * 1024 * 1024;

/// Where the gate of a store lay: its open reservations are in the dump, or were somewhere else.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum GatePlace {
    /// In the store.
    Store,
    /// In Redis.
    Redis,
}

/// What a dump says of itself, besides format and schema.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct About {
    /// The mark of the secret that the store's ids are derived with; it tells nothing about the secret.
    pub secret: String,
    /// Where its gate lay.
    pub gate: GatePlace,
    /// The version of the program that wrote it.
    pub made_by: String,
}

#[derive(Serialize, Deserialize)]
struct Header {
    onceward: String,
    format: u32,
    #[serde(flatten)]
    rest: Json,
}

#[derive(Serialize, Deserialize)]
struct Rest {
    schema: String,
    #[serde(flatten)]
    about: About,
}

#[derive(Serialize, Deserialize)]
struct Trailer {
    end: Counts,
}

/// What a dump came to.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Rows of each table that has any.
    pub rows: BTreeMap<String, u64>,
    /// SHA-256 of every byte before the last line, in hexadecimal.
    pub sha256: String,
}

impl Counts {
    /// All rows.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.rows.values().sum()
    }

    fn count(&mut self, table: &Table) {
        match self.rows.get_mut(table.name) {
            Some(rows) => *rows += 1,
            None => drop(self.rows.insert(table.name.to_owned(), 1)),
        }
    }
}

/// The word in the first line.
const MAGIC: &str = "dump";

struct Writing<W> {
    out: W,
    counts: Counts,
    digest: Sha256,
}

impl<W: Write> Writing<W> {
    fn line(&mut self, line: &[u8]) -> Result<(), Error> {
        self.digest.update(line);
        self.out.write_all(line).map_err(unwritten)
    }
}

/// Writes a dump. Its clones write the same one.
pub struct DumpWriter<W>(Arc<Mutex<Writing<W>>>);

impl<W> Clone for DumpWriter<W> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<W: Write> DumpWriter<W> {
    /// Writes the first line.
    ///
    /// # Errors
    /// `Unavailable` where it cannot be written.
    pub fn begin(out: W, about: About) -> Result<Self, Error> {
        let rest = json(&Rest { schema: schema(), about });
        let header = json(&Header { onceward: MAGIC.to_owned(), format: FORMAT, rest });
        let mut writing = Writing { out, counts: Counts::default(), digest: Sha256::new() };
        writing.line(format!("{header}\n").as_bytes())?;
        Ok(Self(Arc::new(Mutex::new(writing))))
    }

    /// Writes the last line; without it the dump is refused.
    ///
    /// # Errors
    /// `Unavailable` where it cannot be written.
    pub fn end(&self) -> Result<Counts, Error> {
        let mut writing = self.writing();
        writing.counts.sha256 = hex(&writing.digest.clone().finalize());
        let trailer = json(&Trailer { end: writing.counts.clone() });
        writeln!(writing.out, "{trailer}").and_then(|()| writing.out.flush()).map_err(unwritten)?;
        Ok(writing.counts.clone())
    }

    fn writing(&self) -> MutexGuard<'_, Writing<W>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<W: Write + Send> Sink for DumpWriter<W> {
    fn take(&mut self, page: Page) -> Result<(), Error> {
        let mut writing = self.writing();
        for row in &page.rows {
            let line = encode(page.table, row);
            if line.len() > LINE_LIMIT {
                let what = format!(
                    "a row of {} has {} bytes, the limit is {LINE_LIMIT}",
                    page.table.name,
                    line.len()
                );
                return Err(Error::new(Code::ConstraintViolated, what));
            }
            writing.line(line.as_bytes())?;
            writing.counts.count(page.table);
        }
        Ok(())
    }
}

/// Reads a dump.
pub struct DumpReader<R> {
    input: R,
    about: About,
    digest: Sha256,
    counts: Counts,
    line: u64,
    /// A row that was read and belongs to the next page.
    kept: Option<(&'static Table, Row)>,
    /// The place of the last table in the order of all.
    position: usize,
    is_over: bool,
}

/// One line behind the first.
enum Line {
    Row(&'static Table, Row),
    End(Counts),
}

impl<R: BufRead> DumpReader<R> {
    /// Reads the first line.
    ///
    /// # Errors
    /// `Invalid` where it is no dump, or one that this program cannot restore.
    pub fn open(input: R) -> Result<Self, Error> {
        let about = About { secret: String::new(), gate: GatePlace::Store, made_by: String::new() };
        let mut reader = Self {
            input,
            about,
            digest: Sha256::new(),
            counts: Counts::default(),
            line: 0,
            kept: None,
            position: 0,
            is_over: false,
        };
        let Some(first) = reader.read_line()? else { return Err(refused("this is no dump: it is empty")) };
        reader.about = about_of(&first)?;
        reader.digest.update(&first);
        Ok(reader)
    }

    /// What it says of itself.
    #[must_use]
    pub fn about(&self) -> &About {
        &self.about
    }

    /// A line with its end; none where there is no more.
    fn read_line(&mut self) -> Result<Option<Vec<u8>>, Error> {
        let mut line = Vec::new();
        let limit = u64::try_from(LINE_LIMIT).expect("it fits");
        let read = (&mut self.input).take(limit + 1).read_until(b'\n', &mut line);
        read.map_err(|cause| {
            Error::new(Code::Unavailable, format!("reading the dump: {cause}")).because(cause)
        })?;
        self.line += 1;
        if line.is_empty() {
            return Ok(None);
        }
        if line.last() != Some(&b'\n') {
            let what =
                if line.len() > LINE_LIMIT { "is longer than any that is written" } else { "is cut off" };
            return Err(self.wrong(what));
        }
        Ok(Some(line))
    }

    fn wrong(&self, what: &str) -> Error {
        refused(&format!("line {} of the dump {what}", self.line))
    }

    fn read(&mut self) -> Result<Line, Error> {
        let Some(line) = self.read_line()? else {
            return Err(refused(&format!("the dump is cut off after {} rows", self.counts.total())));
        };
        if line.first() == Some(&b'{') {
            let trailer: Trailer =
                serde_json::from_slice(&line).map_err(|_| self.wrong("is neither a row nor the end"))?;
            return Ok(Line::End(trailer.end));
        }
        self.digest.update(&line);
        let mut values: Vec<Json> = serde_json::from_slice(&line).map_err(|_| self.wrong("is no row"))?;
        let name = if values.is_empty() { Json::Null } else { values.remove(0) };
        let table = name.as_str().and_then(Table::named);
        let table = table.ok_or_else(|| self.wrong("is of a table that is not known"))?;
        let row = decode(table, values).ok_or_else(|| self.wrong("does not fit its table"))?;
        if table.position() < self.position {
            return Err(self.wrong("is out of its order"));
        }
        self.position = table.position();
        self.counts.count(table);
        Ok(Line::Row(table, row))
    }

    fn end(&mut self, said: &Counts) -> Result<(), Error> {
        self.counts.sha256 = hex(&self.digest.clone().finalize());
        if *said != self.counts {
            return Err(refused("the dump is not what was written: its checksum or its counts do not hold"));
        }
        if self.read_line()?.is_some() {
            return Err(self.wrong("follows after the end"));
        }
        self.is_over = true;
        Ok(())
    }
}

impl<R: BufRead + Send> Source for DumpReader<R> {
    fn next(&mut self) -> Result<Option<Page>, Error> {
        let (table, first) = match self.kept.take() {
            Some(kept) => kept,
            None if self.is_over => return Ok(None),
            None => match self.read()? {
                Line::Row(table, row) => (table, row),
                Line::End(said) => {
                    self.end(&said)?;
                    return Ok(None);
                }
            },
        };
        let (mut size, mut rows) = (weight_of(&first), vec![first]);
        while rows.len() < PAGE_ROWS && size < PAGE_BYTES {
            match self.read()? {
                Line::Row(next, row) if next == table => {
                    size += weight_of(&row);
                    rows.push(row);
                }
                Line::Row(next, row) => {
                    self.kept = Some((next, row));
                    break;
                }
                Line::End(said) => {
                    self.end(&said)?;
                    break;
                }
            }
        }
        Ok(Some(Page { table, rows }))
    }
}

fn about_of(line: &[u8]) -> Result<About, Error> {
    let header: Option<Header> = serde_json::from_slice(line).ok();
    let header = header.filter(|header| header.onceward == MAGIC);
    let header = header.ok_or_else(|| refused("this is no dump: it does not begin like one"))?;
    if header.format != FORMAT {
        let found = header.format;
        return Err(refused(&format!("this dump has format {found}, this program knows format {FORMAT}")));
    }
    let rest: Rest = serde_json::from_value(header.rest)
        .map_err(|_| refused("the first line of the dump is not whole"))?;
    if rest.schema != schema() {
        return Err(refused(&format!(
            "this dump has rows of another version (made by {}): export and import with the same version of the program, and \
             migrate before or after",
            rest.about.made_by
        )));
    }
    Ok(rest.about)
}

fn json<T: Serialize>(value: &T) -> Json {
    serde_json::to_value(value).expect("names are texts")
}

fn encode(table: &Table, row: &[Value]) -> String {
    let values = row.iter().map(|value| match value {
        Value::Nothing => Json::Null,
        Value::Number(number) => Json::from(*number),
        Value::Text(text) => Json::from(text.as_str()),
        Value::Bytes(bytes) => Json::from(hex(bytes)),
    });
    let line = Json::Array(std::iter::once(Json::from(table.name)).chain(values).collect());
    format!("{line}\n")
}

fn decode(table: &Table, values: Vec<Json>) -> Option<Row> {
    if values.len() != table.columns.len() {
        return None;
    }
    let row: Option<Row> = values
        .into_iter()
        .zip(table.columns)
        .map(|(value, column)| match (value, column.kind) {
            (Json::Null, _) => Some(Value::Nothing),
            (Json::Number(number), Kind::Number) => number.as_i64().map(Value::Number),
            (Json::String(text), Kind::Text) => Some(Value::Text(text)),
            (Json::String(text), Kind::Bytes) => bytes_of(&text).map(Value::Bytes),
            (Json::Bool(_) | Json::Number(_) | Json::String(_) | Json::Array(_) | Json::Object(_), _) => None,
        })
        .collect();
    row.filter(|row| table.admits(row))
}

fn weight_of(row: &[Value]) -> usize {
    row.iter()
        .map(|value| match value {
            Value::Nothing | Value::Number(_) => size_of::<Value>(),
            Value::Text(text) => text.len(),
            Value::Bytes(bytes) => bytes.len(),
        })
        .sum()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn bytes_of(text: &str) -> Option<Vec<u8>> {
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    let bytes: Option<Vec<u8>> =
        pairs.iter().map(|[high, low]| Some(digit(*high)? << 4 | digit(*low)?)).collect();
    bytes.filter(|_| rest.is_empty())
}

fn refused(what: &str) -> Error {
    Error::new(Code::Invalid, what)
}

fn unwritten(cause: std::io::Error) -> Error {
    Error::new(Code::Unavailable, format!("writing the dump: {cause}")).because(cause)
}

#[cfg(test)]
mod tests {
    //! What was written is read; whatever happened to it on its way is noticed.

    use super::*;

    fn about() -> About {
        About { secret: "ab".repeat(32), gate: GatePlace::Store, made_by: "0.1.0".to_owned() }
    }

    fn pages() -> Vec<Page> {
        let table = |name| Table::named(name).expect("it is listed");
        let word = |number: i64| vec![Value::Number(number), Value::Text(format!("w{number} \u{1}\"😀"))];
        let answer = |key: &str| {
            vec![
                Value::Text(key.to_owned()),
                Value::Bytes(vec![7; 32]),
                Value::Number(i64::MIN),
                Value::Bytes(b"{\n}".to_vec()),
                Value::Nothing,
                Value::Number(1),
            ]
        };
        vec![
            Page { table: table("word"), rows: (1..=500).map(word).collect() },
            Page { table: table("word"), rows: (501..=502).map(word).collect() },
            Page { table: table("answer"), rows: vec![answer("a"), answer("b")] },
            Page { table: table("counter"), rows: vec![vec![Value::Text("token".into()), Value::Number(9)]] },
        ]
    }

    fn written(pages: &[Page]) -> Vec<u8> {
        let mut writer = DumpWriter::begin(Vec::new(), about()).unwrap();
        for page in pages {
            writer.take(page.clone()).unwrap();
        }
        assert_eq!(
            writer.end().unwrap().total(),
            pages.iter().map(|page| page.rows.len() as u64).sum::<u64>()
        );
        let writing = writer.writing();
        writing.out.clone()
    }

    fn read(dump: &[u8]) -> Result<Vec<Page>, Error> {
        let mut reader = DumpReader::open(dump)?;
        assert_eq!(reader.about(), &about());
        let mut pages = Vec::new();
        while let Some(page) = reader.next()? {
            pages.push(page);
        }
        assert_eq!(reader.next()?, None, "and again none");
        Ok(pages)
    }

    #[test]
    fn what_was_written_is_read_page_by_page() {
        assert_eq!(read(&written(&pages())).unwrap(), pages());
        assert_eq!(read(&written(&[])).unwrap(), []);
    }

    #[test]
    fn a_dump_that_is_cut_anywhere_is_refused() {
        let whole = written(&pages());
        for end in (0..200).chain(whole.len() - 400..whole.len()) {
            let refused = read(&whole[..end]).expect_err("it is not whole");
            assert_eq!(refused.code(), Code::Invalid, "{end}: {refused}");
        }
    }

    #[test]
    fn a_byte_that_was_changed_is_noticed_wherever_it_is() {
        let whole = written(&pages()[2..]);
        for place in 0..whole.len() {
            let mut changed = whole.clone();
            changed[place] ^= 1;
            if changed == whole {
                continue;
            }
            let reader = DumpReader::open(&changed[..]).map(|mut reader| {
                while let Some(_page) = reader.next()? {}
                Ok::<_, Error>(reader.about().clone())
            });
            let refused = reader.and_then(|read| read).expect_err("a byte differs");
            assert_eq!(refused.code(), Code::Invalid, "{place}: {refused}");
        }
    }

    #[test]
    fn what_is_no_dump_of_ours_says_why() {
        let whole = String::from_utf8(written(&pages()[3..])).unwrap();
        let long = format!("{}\n", " ".repeat(LINE_LIMIT + 1));
        let lines: Vec<&str> = whole.lines().collect();
        let later = whole.replacen("\"format\":1", "\"format\":2", 1);
        let other = whole.replacen(&schema(), "0123456789abcdef", 1);
        let doubled = format!("{whole}{whole}");
        let row = |row: &str| format!("{}\n{row}\n", lines[0]);
        let table: [(&str, &str); 14] = [
            ("", "it is empty"),
            ("\n", "does not begin like one"),
            ("\0\0\0\0\n", "does not begin like one"),
            ("SQLite format 3\0", "line 1 of the dump is cut off"),
            ("{\"onceward\":\"backup\",\"format\":1}\n", "does not begin like one"),
            ("{\"onceward\":\"dump\",\"format\":1}\n", "is not whole"),
            (&long, "line 1 of the dump is longer"),
            (&later, "has format 2, this program knows format 1"),
            (&other, "another version (made by 0.1.0)"),
            (&doubled, "follows after the end"),
            (&row("[\"state\",1]"), "line 2 of the dump is of a table that is not known"),
            (&row("[\"counter\",\"token\"]"), "does not fit its table"),
            (&row("[\"counter\",\"to\\u0000ken\",1]"), "does not fit its table"),
            (&row("[\"counter\",\"token\",1.5]"), "does not fit its table"),
        ];
        for (dump, expected) in table {
            let read = DumpReader::open(dump.as_bytes()).and_then(|mut reader| {
                while let Some(_page) = reader.next()? {}
                Ok(())
            });
            let refused = read.expect_err(expected);
            assert!(refused.operator_text().contains(expected), "{expected}: {refused}");
            assert_eq!(refused.code(), Code::Invalid);
        }
        let unordered = written(&[pages()[3].clone(), pages()[2].clone()]);
        assert!(read(&unordered).unwrap_err().operator_text().contains("out of its order"));
    }
}
