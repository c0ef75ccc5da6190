//! Samples, their middle, and the lines of the table.

use std::time::Duration;

use super::compare::Ratio;

/// Measurements of one thing.
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

    /// The value below which this share of the measurements lies.
    pub fn quantile(&self, share: f64) -> f64 {
        let mut sorted = self.0.clone();
        sorted.sort_by(f64::total_cmp);
        let last = sorted.len().saturating_sub(1);
        sorted.get((last as f64 * share).round() as usize).copied().unwrap_or(f64::NAN)
    }

    pub fn median(&self) -> f64 {
        self.quantile(0.5)
    }

    pub fn least(&self) -> f64 {
        self.quantile(0.0)
    }

    pub fn most(&self) -> f64 {
        self.quantile(1.0)
    }
}

/// What is wanted of a figure.
#[derive(Clone, Copy, Debug)]
pub enum Target {
    AtMost(f64),
    AtLeast(f64),
    /// At most this, whatever chance did: the whole interval counts.
    SurelyAtMost(f64),
    /// Shown for its own sake.
    Open,
}

/// One line of the table.
#[derive(Debug)]
pub struct Figure<'a> {
    pub name: &'a str,
    pub unit: &'a str,
    /// Median, least, most.
    pub values: (f64, f64, f64),
    /// The reference of the same run, and its value in the same unit.
    pub reference: Option<(&'a str, f64)>,
    pub target: Target,
}

impl<'a> Figure<'a> {
    /// The median of a sample with its range.
    pub fn new(name: &'a str, unit: &'a str, sample: &Sample) -> Self {
        let values = (sample.median(), sample.least(), sample.most());
        Self { name, unit, values, reference: None, target: Target::Open }
    }

    /// A ratio with its interval.
    pub fn ranged(name: &'a str, unit: &'a str, ratio: Ratio) -> Self {
        let values = (ratio.value, ratio.least, ratio.most);
        Self { name, unit, values, reference: None, target: Target::Open }
    }

    /// A single number.
    pub fn number(name: &'a str, unit: &'a str, value: f64) -> Self {
        Self { name, unit, values: (value, value, value), reference: None, target: Target::Open }
    }

    pub fn with_reference(mut self, name: &'a str, value: f64) -> Self {
        self.reference = Some((name, value));
        self
    }

    pub fn target(mut self, target: Target) -> Self {
        self.target = target;
        self
    }

    pub fn print(&self) {
        let (median, least, most) = self.values;
        let (reference, ratio) = match self.reference {
            Some((name, value)) => (format!("{} {name}", short(value)), format!("{:.2}", median / value)),
            None => ("-".into(), "-".into()),
        };
        let (target, met) = match self.target {
            Target::AtMost(most) => (format!("<= {}", short(most)), Some(median <= most)),
            Target::AtLeast(least) => (format!(">= {}", short(least)), Some(median >= least)),
            Target::SurelyAtMost(wanted) => {
                let is_sure = most <= wanted || least > wanted;
                (format!("<= {}", short(wanted)), is_sure.then_some(most <= wanted))
            }
            Target::Open => ("-".into(), None),
        };
        let unsure = if matches!(self.target, Target::SurelyAtMost(_)) { "not shown" } else { "-" };
        let met = met.map_or(unsure, |met| if met { "met" } else { "MISSED" });
        println!(
            "{:<46} | {:>9} {:<8} | {:>9} | {:>9} | {:<28} | {:>7} | {:>10} | {met}",
            self.name,
            short(median),
            self.unit,
            short(least),
            short(most),
            reference,
            ratio,
            target,
        );
    }
}

/// What the figures were measured on, and the head of the table.
pub fn heading() {
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let load = load.split_whitespace().next().unwrap_or("?");
    let build = if cfg!(debug_assertions) { "debug build: no figure counts" } else { "release build" };
    println!("# {build}, {cores} cores, load average at the start {load}");
    println!(
        "{:<46} | {:>18} | {:>9} | {:>9} | {:<28} | {:>7} | {:>10} | verdict",
        "name", "median", "min", "max", "reference (same run)", "ratio", "target"
    );
}

/// Three digits that count; more for large numbers.
fn short(value: f64) -> String {
    match value.abs() {
        size if size >= 100.0 => format!("{value:.0}"),
        size if size >= 10.0 => format!("{value:.1}"),
        size if size >= 1.0 => format!("{value:.2}"),
        _ => format!("{value:.3}"),
    }
}
