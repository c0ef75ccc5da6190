//! Samples, their quantiles, and the rows of the result table.

use std::time::Duration;

use super::compare::Ratio;

/// Measurements of one value.
#[derive(Clone, Debug, Default)]
pub struct Sample(Vec<f64>);

impl Sample {
    pub fn new(values: &[f64]) -> Self {
        Self(values.to_vec())
    }

    pub fn push(&mut self, value: f64) {
        self.0.push(value);
    }

    pub fn push_ms(&mut self, time: Duration) {
        self.push(time.as_secs_f64() * 1e3);
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// The value below which this share of the measurements is.
    pub fn quantile(&self, share: f64) -> f64 {
        let mut sorted = self.0.clone();
        sorted.sort_by(f64::total_cmp);
        let last = sorted.len().saturating_sub(1);
        sorted.get((last as f64 * share).round() as usize).copied().unwrap_or(f64::NAN)
    }

    pub fn median(&self) -> f64 {
        self.quantile(0.5)
    }

    pub fn min(&self) -> f64 {
        self.quantile(0.0)
    }

    pub fn max(&self) -> f64 {
        self.quantile(1.0)
    }
}

/// The limit of a figure.
#[derive(Clone, Copy, Debug)]
pub enum Target {
    AtMost(f64),
    AtLeast(f64),
    /// Like `AtMost` for the whole interval. Without a verdict if the limit is inside the interval.
    IntervalAtMost(f64),
    /// Printed without a verdict.
    None,
}

/// One row of the table.
#[derive(Debug)]
pub struct Figure<'a> {
    pub name: &'a str,
    pub unit: &'a str,
    /// Median, minimum, maximum; or value and bounds of an interval.
    pub values: (f64, f64, f64),
    /// Unit and name of the reference from the same run, and its value.
    pub reference: Option<(&'a str, f64)>,
    pub target: Target,
}

impl<'a> Figure<'a> {
    /// The median of a sample with its range.
    pub fn new(name: &'a str, unit: &'a str, sample: &Sample) -> Self {
        let values = (sample.median(), sample.min(), sample.max());
        Self { name, unit, values, reference: None, target: Target::None }
    }

    /// A ratio with its interval.
    pub fn from_ratio(name: &'a str, unit: &'a str, ratio: Ratio) -> Self {
        let values = (ratio.value, ratio.lower, ratio.upper);
        Self { name, unit, values, reference: None, target: Target::None }
    }

    /// A single number.
    pub fn from_number(name: &'a str, unit: &'a str, value: f64) -> Self {
        Self { name, unit, values: (value, value, value), reference: None, target: Target::None }
    }

    pub fn with_reference(mut self, name: &'a str, value: f64) -> Self {
        self.reference = Some((name, value));
        self
    }

    pub fn with_target(mut self, target: Target) -> Self {
        self.target = target;
        self
    }

    pub fn print(&self) {
        let (median, min, max) = self.values;
        let (reference, ratio) = match self.reference {
            Some((name, value)) => {
                (format!("{} {name}", format_value(value)), format!("{:.2}", median / value))
            }
            None => ("-".into(), "-".into()),
        };
        let (target, is_met) = match self.target {
            Target::AtMost(limit) => (format!("<= {}", format_value(limit)), Some(median <= limit)),
            Target::AtLeast(limit) => (format!(">= {}", format_value(limit)), Some(median >= limit)),
            Target::IntervalAtMost(limit) => {
                let is_certain = max <= limit || min > limit;
                (format!("<= {}", format_value(limit)), is_certain.then_some(max <= limit))
            }
            Target::None => ("-".into(), None),
        };
        let uncertain = if matches!(self.target, Target::IntervalAtMost(_)) { "not shown" } else { "-" };
        let verdict = is_met.map_or(uncertain, |is_met| if is_met { "met" } else { "MISSED" });
        println!(
            "{:<46} | {:>9} {:<8} | {:>9} | {:>9} | {:<28} | {:>7} | {:>10} | {verdict}",
            self.name,
            format_value(median),
            self.unit,
            format_value(min),
            format_value(max),
            reference,
            ratio,
            target,
        );
    }
}

/// Prints the machine and the build, and the head of the table.
pub fn print_heading() {
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let load = load.split_whitespace().next().unwrap_or("?");
    let build =
        if cfg!(debug_assertions) { "debug build: the figures are not valid" } else { "release build" };
    println!("# {build}, {cores} cores, load average at the start {load}");
    println!(
        "{:<46} | {:>18} | {:>9} | {:>9} | {:<28} | {:>7} | {:>10} | verdict",
        "name", "median", "min", "max", "reference (same run)", "ratio", "target"
    );
}

/// Three significant digits; more for large numbers.
fn format_value(value: f64) -> String {
    match value.abs() {
        size if size >= 100.0 => format!("{value:.0}"),
        size if size >= 10.0 => format!("{value:.1}"),
        size if size >= 1.0 => format!("{value:.2}"),
        _ => format!("{value:.3}"),
    }
}
