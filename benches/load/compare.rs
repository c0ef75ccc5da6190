//! Compares latencies on a machine whose speed changes: short windows of each variant in turn, and an interval for the
//! ratio of their quantiles.

/// Number of random selections of cycles from which the interval of a ratio is computed.
const RESAMPLES: usize = 1_000;

/// Latencies in milliseconds, one list for each cycle.
#[derive(Clone, Debug, Default)]
pub struct Pool(Vec<Vec<f64>>);

/// One pool's quantile over another's, with the interval of 95 %.
#[derive(Clone, Copy, Debug)]
pub struct Ratio {
    pub value: f64,
    pub lower: f64,
    pub upper: f64,
}

impl Pool {
    /// Adds the window of the next cycle.
    pub fn push(&mut self, window: Vec<f64>) {
        self.0.push(window);
    }

    /// Joins the windows of each cycle.
    pub fn merge(&self, other: &Self) -> Self {
        let both = |(a, b): (&Vec<f64>, &Vec<f64>)| a.iter().chain(b).copied().collect();
        Self(self.0.iter().zip(&other.0).map(both).collect())
    }

    pub fn len(&self) -> usize {
        self.0.iter().map(Vec::len).sum()
    }

    /// The quantile of all windows together.
    pub fn quantile(&self, share: f64) -> f64 {
        let all: Vec<usize> = (0..self.0.len()).collect();
        self.quantile_of_cycles(&all, share)
    }

    /// This pool's quantile over the other's, each of all windows together. A few stalls of the machine change it.
    pub fn pooled_ratio(&self, other: &Self, share: f64) -> Ratio {
        self.bootstrap(other, |cycles| {
            self.quantile_of_cycles(cycles, share) / other.quantile_of_cycles(cycles, share)
        })
    }

    /// The median of the ratios of all cycles. The ratio of a cycle is this pool's quantile over the other's.
    pub fn median_ratio(&self, other: &Self, share: f64) -> Ratio {
        self.median_ratio_between(other, other, share)
    }

    /// Same as `median_ratio`, with two windows as reference: the geometric mean of their quantiles. One stall of
    /// the machine would determine a quantile of both windows together.
    pub fn median_ratio_between(&self, one: &Self, other: &Self, share: f64) -> Ratio {
        let ratio = |cycle: usize| {
            let [own, one, other] = [self, one, other].map(|pool| pool.quantile_of_cycles(&[cycle], share));
            own / (one * other).sqrt()
        };
        let ratios: Vec<f64> = (0..self.common_cycles(other)).map(ratio).collect();
        self.bootstrap(other, |cycles| {
            let mut selected: Vec<f64> = cycles.iter().map(|cycle| ratios[*cycle]).collect();
            selected.sort_by(f64::total_cmp);
            selected.get(selected.len() / 2).copied().unwrap_or(f64::NAN)
        })
    }

    fn common_cycles(&self, other: &Self) -> usize {
        self.0.len().min(other.0.len())
    }

    /// Computes a value of all cycles, and its interval from random selections of cycles (bootstrap). It selects whole
    /// cycles, because the deltas of one window are not independent measurements.
    fn bootstrap(&self, other: &Self, value: impl Fn(&[usize]) -> f64) -> Ratio {
        let cycles = self.common_cycles(other);
        let mut random = Random(0x9e37_79b9_7f4a_7c15);
        let mut ratios: Vec<f64> = (0..RESAMPLES)
            .map(|_| value(&(0..cycles).map(|_| random.below(cycles)).collect::<Vec<_>>()))
            .collect();
        ratios.sort_by(f64::total_cmp);
        let at = |share: f64| ratios[(((RESAMPLES - 1) as f64) * share).round() as usize];
        Ratio { value: value(&(0..cycles).collect::<Vec<_>>()), lower: at(0.025), upper: at(0.975) }
    }

    fn quantile_of_cycles(&self, cycles: &[usize], share: f64) -> f64 {
        let mut all: Vec<f64> = cycles.iter().flat_map(|cycle| self.0[*cycle].iter().copied()).collect();
        let nth = (all.len().saturating_sub(1) as f64 * share).round() as usize;
        if all.is_empty() {
            return f64::NAN;
        }
        *all.select_nth_unstable_by(nth, f64::total_cmp).1
    }
}

/// Pseudo-random numbers with a fixed seed (Marsaglia's xorshift).
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % end as u64) as usize
    }
}
