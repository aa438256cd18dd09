//! What a step has to show besides its exit code.
//!
//! A run that ended well because it did nothing looks like one that found nothing. So the steps whose worth is
//! in how much they did must say it on standard output, and what they say is checked.

use serde_json::Value;

/// What counts as evidence.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Proof {
    /// The exit code says everything; the output goes straight to the terminal.
    ExitCode,
    /// A report of any kind.
    Report,
    /// One JSON object of the simulator: no violations, over at least this many seeds.
    Simulation { seeds: u64 },
}

impl Proof {
    /// Says what is missing in the output of a step that ended well.
    pub(super) fn check(self, output: &str) -> Result<(), String> {
        match self {
            Self::ExitCode => Ok(()),
            Self::Report if output.trim().is_empty() => Err("it printed no report".to_owned()),
            Self::Report => Ok(()),
            Self::Simulation { seeds } => simulation(output, seeds),
        }
    }
}

fn simulation(output: &str, seeds: u64) -> Result<(), String> {
    let report: Value = serde_json::from_str(output)
        .map_err(|cause| format!("its output is not one JSON object: {cause}"))?;
    let number = |name: &str| report.get(name).and_then(Value::as_u64).unwrap_or(0);
    let run = number("seeds");
    if run < seeds {
        return Err(format!("it ran {run} seeds of {seeds}"));
    }
    if number("steps") < run {
        return Err(format!("{} steps for {run} seeds: it simulated nothing", number("steps")));
    }
    match report.get("violations") {
        Some(Value::Number(count)) if count.as_u64() == Some(0) => Ok(()),
        Some(Value::Array(found)) if found.is_empty() => Ok(()),
        Some(found) => Err(format!("violations: {found}")),
        None => Err("it does not say whether there were violations".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    //! Reports that prove something and reports that do not.

    use super::*;

    const TORTURE: Proof = Proof::Simulation { seeds: 2000 };

    #[test]
    fn a_clean_simulation_of_enough_seeds_is_proof() {
        for violations in ["0", "[]"] {
            let report = format!(r#"{{"seeds": 2000, "steps": 90000, "violations": {violations}}}"#);
            assert_eq!(TORTURE.check(&report), Ok(()));
        }
    }

    #[test]
    fn silence_few_seeds_no_steps_and_violations_are_not() {
        for report in [
            "",
            "all is well",
            "{}",
            r#"{"seeds": 1999, "steps": 90000, "violations": 0}"#,
            r#"{"seeds": 2000, "steps": 0, "violations": 0}"#,
            r#"{"seeds": 2000, "steps": 90000}"#,
            r#"{"seeds": 2000, "steps": 90000, "violations": 1}"#,
            r#"{"seeds": 2000, "steps": 90000, "violations": ["oversold"]}"#,
        ] {
            assert!(TORTURE.check(report).is_err(), "{report}");
        }
    }

    #[test]
    fn a_report_must_not_be_empty() {
        assert!(Proof::Report.check("\n").is_err());
        assert_eq!(Proof::Report.check("winners 50\n"), Ok(()));
        assert_eq!(Proof::ExitCode.check(""), Ok(()));
    }
}
