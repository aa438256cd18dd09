//! Runs seeds and prints what they found: `seeds <first> <count>`.

use std::collections::BTreeMap;

use onceward_testkit::sim::{SimOptions, run};

#[expect(clippy::print_stdout, reason = "an example speaks to a person")]
fn main() {
    let mut numbers = std::env::args().skip(1).filter_map(|text| text.parse::<u64>().ok());
    let (first, count) = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(100));
    let tail = numbers.next().and_then(|number| usize::try_from(number).ok()).unwrap_or(0);
    let options = SimOptions { tail, ..SimOptions::default() };
    let mut cases: BTreeMap<&str, u64> = BTreeMap::new();
    let (mut steps, mut bad) = (0, 0);
    for seed in first..first + count {
        let report = run(seed, &options);
        steps += report.steps;
        for (case, times) in report.sometimes {
            *cases.entry(case).or_default() += times;
        }
        if !report.violations.is_empty() {
            bad += 1;
            println!("{:#?}", report.tail);
            println!("seed {seed}, {} steps: {:#?}", report.steps, report.violations);
        }
    }
    println!("{count} seeds, {bad} bad, {steps} steps, {cases:#?}");
}
