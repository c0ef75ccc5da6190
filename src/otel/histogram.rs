//! Histograms by attributes.

use std::collections::BTreeMap;

/// The value of an attribute.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Attribute {
    Text(String),
    Texts(Vec<String>),
    Count(u64),
    Real(f64),
}

/// Maximal number of attribute sets; further ones count as `_OTHER`. Clients choose model names, so the number
/// must be bounded.
const MAX_ATTRIBUTE_SETS: usize = 200;
/// Replaces the text attributes of further sets.
const OTHER: &str = "_OTHER";

/// Key of a data point.
type Attributes = Vec<(&'static str, Attribute)>;

/// A histogram with the bounds that the semantic conventions recommend.
#[derive(Debug)]
pub(super) struct Histogram {
    pub name: &'static str,
    pub unit: &'static str,
    pub bounds: &'static [f64],
    points: BTreeMap<String, (Attributes, Point)>,
}

/// The data of one set of attributes.
#[derive(Clone, Debug)]
pub(super) struct Point {
    pub count: u64,
    pub sum: f64,
    pub buckets: Vec<u64>,
}

impl Histogram {
    /// `gen_ai.client.token.usage`
    pub fn tokens() -> Self {
        const BOUNDS: &[f64] = &[
            1.0,
            4.0,
            16.0,
            64.0,
            256.0,
            1_024.0,
            4_096.0,
            16_384.0,
            65_536.0,
            262_144.0,
            1_048_576.0,
            4_194_304.0,
            16_777_216.0,
            67_108_864.0,
        ];
        Self { name: "gen_ai.client.token.usage", unit: "{token}", bounds: BOUNDS, points: BTreeMap::new() }
    }

    /// `gen_ai.client.operation.duration`
    pub fn durations() -> Self {
        const BOUNDS: &[f64] =
            &[0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92];
        Self { name: "gen_ai.client.operation.duration", unit: "s", bounds: BOUNDS, points: BTreeMap::new() }
    }

    /// Adds a value.
    pub fn record(&mut self, attributes: Attributes, value: f64) {
        let mut attributes = attributes;
        let mut key = format!("{attributes:?}");
        if !self.points.contains_key(&key) && self.points.len() >= MAX_ATTRIBUTE_SETS {
            for (name, attribute) in &mut attributes {
                if *name == "gen_ai.request.model" {
                    *attribute = Attribute::Text(OTHER.into());
                }
            }
            key = format!("{attributes:?}");
        }
        let empty = || Point { count: 0, sum: 0.0, buckets: vec![0; self.bounds.len() + 1] };
        let (_, point) = self.points.entry(key).or_insert_with(|| (attributes, empty()));
        point.count += 1;
        point.sum += value;
        // A bound belongs to the bucket below it.
        let bucket = self.bounds.iter().position(|bound| value <= *bound).unwrap_or(self.bounds.len());
        point.buckets[bucket] += 1;
    }

    /// All data points.
    pub fn points(&self) -> impl Iterator<Item = (&[(&'static str, Attribute)], &Point)> {
        self.points.values().map(|(attributes, point)| (attributes.as_slice(), point))
    }

    /// Whether there are no data points.
    pub fn is_empty(&self) -> bool {
        self.points.is_empty()
    }
}
