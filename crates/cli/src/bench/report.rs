//! What `onceward bench` prints.
//!
//! Purpose: one JSON object per scenario for machines, one table for people, from the same figures.
//!
//! Invariants: the fixed fields of the JSON object are always there, `null` where nothing was measured; further
//! fields stand beside them and cannot replace them. No line of the table is wider than 80 columns. Both go to
//! the writer that the caller passes in, and nothing else does.
//!
//! Deliberately absent: judging the figures against targets.

use std::fs;
use std::io::{self, Write};

use serde::Serialize;
use serde_json::{Map, Value};

use super::histogram::Histogram;
use super::interleave::Interleaved;

/// The widest line of a table.
const WIDTH: usize = 80;
const INDENT: usize = 2;

/// The figures of one scenario.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Report {
    /// The scenario's name, as given on the command line.
    pub(crate) scenario: String,
    /// What it was run with.
    pub(crate) parameters: Map<String, Value>,
    /// Things done per second.
    pub(crate) per_second: f64,
    /// Median latency in microseconds, where latency was measured.
    pub(crate) p50_us: Option<u64>,
    /// 99th percentile of the latency in microseconds, where latency was measured.
    pub(crate) p99_us: Option<u64>,
    /// What the baseline did per second, where there is one.
    pub(crate) baseline_per_second: Option<f64>,
    /// `per_second / baseline_per_second`, of the medians of interleaved rounds.
    pub(crate) ratio: Option<f64>,
    /// Where it was measured.
    pub(crate) machine: Machine,
    /// Further figures of this scenario, beside the fixed ones.
    #[serde(flatten)]
    extra: Map<String, Value>,
}

impl Report {
    /// A report with its rate only; the rest is filled in by the caller.
    pub(crate) fn new(scenario: &str, per_second: f64, machine: &Machine) -> Self {
        Self {
            scenario: scenario.to_owned(),
            parameters: Map::new(),
            per_second,
            p50_us: None,
            p99_us: None,
            baseline_per_second: None,
            ratio: None,
            machine: machine.clone(),
            extra: Map::new(),
        }
    }

    /// A report of interleaved rounds: both medians, their ratio, and every round.
    pub(crate) fn against(scenario: &str, compared: Interleaved, machine: &Machine) -> Self {
        let mut report = Self::new(scenario, compared.measured_median, machine)
            .with_parameter("rounds", compared.measured.len())
            .with_extra("rounds_per_second", compared.measured)
            .with_extra("baseline_rounds_per_second", compared.baseline);
        report.baseline_per_second = Some(compared.baseline_median);
        report.ratio = compared.ratio;
        report
    }

    /// Adds how long single answers took.
    #[must_use]
    pub(crate) fn with_latency(mut self, latency: &Histogram) -> Self {
        self.p50_us = latency.percentile_us(50);
        self.p99_us = latency.percentile_us(99);
        self
    }

    /// Notes what the scenario was run with.
    #[must_use]
    pub(crate) fn with_parameter(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.parameters.insert(name.to_owned(), value.into());
        self
    }

    /// Adds a further figure. One that has the name of a fixed field is kept under `extra_<name>`: two fields of
    /// one name would make the object ambiguous.
    #[must_use]
    pub(crate) fn with_extra(mut self, name: &str, value: impl Into<Value>) -> Self {
        let name = if FIXED_FIELDS.contains(&name) { format!("extra_{name}") } else { name.to_owned() };
        self.extra.insert(name, value.into());
        self
    }
}

const FIXED_FIELDS: [&str; 8] =
    ["scenario", "parameters", "per_second", "p50_us", "p99_us", "baseline_per_second", "ratio", "machine"];

/// The machine of a measurement; a figure without it says nothing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Machine {
    /// Cores that this process may use.
    pub(crate) cores: usize,
    /// Memory of the machine in bytes, where it is known.
    pub(crate) memory_bytes: Option<u64>,
    /// The processor's name, where it is known.
    pub(crate) cpu: Option<String>,
}

impl Machine {
    /// This machine, as far as it tells.
    pub(crate) fn this() -> Self {
        Self {
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            memory_bytes: fs::read_to_string("/proc/meminfo").ok().and_then(|text| memory_bytes_of(&text)),
            cpu: fs::read_to_string("/proc/cpuinfo").ok().and_then(|text| cpu_of(&text)),
        }
    }
}

fn memory_bytes_of(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim_end().parse().ok()?;
    kibibytes.checked_mul(1024)
}

fn cpu_of(cpuinfo: &str) -> Option<String> {
    let line = cpuinfo.lines().find(|line| line.starts_with("model name"))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

/// Writes one JSON object per scenario, each on a line of its own.
///
/// # Errors
/// When the writer fails.
pub(crate) fn write_json(out: &mut dyn Write, reports: &[Report]) -> io::Result<()> {
    for report in reports {
        serde_json::to_writer(&mut *out, report)?;
        writeln!(out)?;
    }
    Ok(())
}

/// Writes a table for people: a line of figures per scenario, its parameters and further figures below it.
///
/// # Errors
/// When the writer fails.
pub(crate) fn write_table(out: &mut dyn Write, reports: &[Report]) -> io::Result<()> {
    let titles = ["scenario", "per second", "baseline", "ratio", "p50 us", "p99 us"].map(str::to_owned);
    write_row(out, &titles)?;
    for report in reports {
        write_row(
            out,
            &[
                report.scenario.clone(),
                rate(report.per_second),
                report.baseline_per_second.map_or_else(dash, rate),
                report.ratio.map_or_else(dash, |ratio| format!("{ratio:.2}")),
                report.p50_us.map_or_else(dash, |micros| micros.to_string()),
                report.p99_us.map_or_else(dash, |micros| micros.to_string()),
            ],
        )?;
        write_pairs(out, &report.parameters)?;
        write_pairs(out, &report.extra)?;
    }
    if let Some(report) = reports.first() {
        write_machine(out, &report.machine)?;
    }
    Ok(())
}

fn write_row(out: &mut dyn Write, cells: &[String; 6]) -> io::Result<()> {
    let [scenario, per_second, baseline, ratio, p50, p99] = cells;
    let scenario = shortened(scenario, 30);
    writeln!(out, "{scenario:<30}{per_second:>12}{baseline:>12}{ratio:>8}{p50:>9}{p99:>9}")
}

/// Writes `name=value` pairs, as many on a line as fit.
fn write_pairs(out: &mut dyn Write, pairs: &Map<String, Value>) -> io::Result<()> {
    let mut line = String::new();
    for (name, value) in pairs {
        let pair = shortened(&format!("{name}={}", plain_text(value)), WIDTH - INDENT);
        let is_full = line.chars().count() + 1 + pair.chars().count() > WIDTH - INDENT;
        if is_full && !line.is_empty() {
            writeln!(out, "{:INDENT$}{line}", "")?;
            line.clear();
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(&pair);
    }
    if line.is_empty() { Ok(()) } else { writeln!(out, "{:INDENT$}{line}", "") }
}

fn write_machine(out: &mut dyn Write, machine: &Machine) -> io::Result<()> {
    let memory = machine
        .memory_bytes
        .map_or_else(|| "unknown memory".to_owned(), |bytes| format!("{} MiB", bytes / (1024 * 1024)));
    let cpu = machine.cpu.as_deref().unwrap_or("unknown processor");
    let line = format!("on {} cores, {memory}, {cpu}", machine.cores);
    writeln!(out, "{}", shortened(&line, WIDTH))
}

fn plain_text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Number(number) => match number.as_f64().filter(|_| number.is_f64()) {
            Some(figure) => format!("{figure:.1}"),
            None => number.to_string(),
        },
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => value.to_string(),
    }
}

fn rate(per_second: f64) -> String {
    if per_second < 100.0 { format!("{per_second:.1}") } else { format!("{per_second:.0}") }
}

fn dash() -> String {
    "-".to_owned()
}

/// The text, cut with a mark where it is longer than `width`; a control character would break the table's lines.
fn shortened(text: &str, width: usize) -> String {
    let clean = text.chars().map(|c| if c.is_control() { ' ' } else { c });
    if text.chars().count() <= width {
        clean.collect()
    } else {
        clean.take(width - 1).chain(['…']).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine() -> Machine {
        Machine {
            cores: 2,
            memory_bytes: Some(4 << 30),
            cpu: Some("A processor with a long name ".repeat(5)),
        }
    }

    fn reports() -> Vec<Report> {
        let mut full = Report::new("reserve", 61_234.5, &machine())
            .with_parameter("connections", 64)
            .with_extra("refusals_per_second", 98_765.432)
            .with_extra("long", "x".repeat(200))
            .with_extra("per_round", vec![1, 2]);
        full.p50_us = Some(900);
        full.p99_us = Some(2_100);
        full.baseline_per_second = Some(100_000.0);
        full.ratio = Some(0.612_345);
        let bare = Report::new("a scenario with a name that is far too long", 9.87, &machine());
        vec![full, bare]
    }

    #[test]
    fn json_is_one_object_per_line_with_every_fixed_field() {
        let mut out = Vec::new();
        write_json(&mut out, &reports()).unwrap();
        let text = String::from_utf8(out).unwrap();
        let objects: Vec<Map<String, Value>> =
            text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(objects.len(), 2);
        for object in &objects {
            assert!(FIXED_FIELDS.iter().all(|field| object.contains_key(*field)), "{object:?}");
        }
        assert_eq!(objects[0]["refusals_per_second"], 98_765.432);
        assert_eq!(objects[0]["machine"]["cores"], 2);
        assert_eq!(objects[1]["ratio"], Value::Null);
    }

    #[test]
    fn a_further_figure_cannot_replace_a_fixed_one() {
        let report = Report::new("order", 1.5, &machine()).with_extra("per_second", 9);
        let value = serde_json::to_value(report).unwrap();
        assert_eq!((&value["per_second"], &value["extra_per_second"]), (&Value::from(1.5), &Value::from(9)));
    }

    #[test]
    fn the_table_fits_eighty_columns() {
        let mut out = Vec::new();
        write_table(&mut out, &reports()).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert!(text.lines().all(|line| line.chars().count() <= WIDTH), "{text}");
        for part in
            ["61234", "100000", "0.61", "2100", "connections=64", "refusals_per_second=98765.4", "9.9"]
        {
            assert!(text.contains(part), "{part} is missing in\n{text}");
        }
    }

    #[test]
    fn the_machine_is_read_from_what_the_kernel_says() {
        assert_eq!(memory_bytes_of("MemFree: 1 kB\nMemTotal:       16 kB\n"), Some(16_384));
        assert_eq!(memory_bytes_of("MemTotal: lots\n"), None);
        assert_eq!(
            cpu_of("processor\t: 0\nmodel name\t: Some CPU @ 2 GHz\n").as_deref(),
            Some("Some CPU @ 2 GHz")
        );
        assert!(Machine::this().cores >= 1);
    }
}
