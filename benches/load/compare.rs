//! Whether one thing is slower than another, on a machine that is not equally fast all the time: short
//! windows of each in turn, pooled, and how far the answer could be off.

/// Cycles drawn anew, so many times, to see how far a ratio moves by chance.
const DRAWS: usize = 1_000;

/// Latencies in milliseconds, one list for each cycle.
#[derive(Clone, Debug, Default)]
pub struct Pool(Vec<Vec<f64>>);

/// One pool's quantile over another's, and where it lies with 95 % certainty.
#[derive(Clone, Copy, Debug)]
pub struct Ratio {
    pub value: f64,
    pub least: f64,
    pub most: f64,
}

impl Pool {
    /// Adds what one window of the next cycle gave.
    pub fn push(&mut self, window: Vec<f64>) {
        self.0.push(window);
    }

    /// Both of each cycle's windows as one.
    pub fn with(&self, other: &Self) -> Self {
        let both = |(a, b): (&Vec<f64>, &Vec<f64>)| a.iter().chain(b).copied().collect();
        Self(self.0.iter().zip(&other.0).map(both).collect())
    }

    pub fn len(&self) -> usize {
        self.0.iter().map(Vec::len).sum()
    }

    /// Of all windows together.
    pub fn quantile(&self, share: f64) -> f64 {
        let all: Vec<usize> = (0..self.0.len()).collect();
        self.quantile_of(&all, share)
    }

    /// How much larger this pool's quantile is than the other's, all windows taken together: a few stalls of
    /// the machine make it.
    pub fn over(&self, other: &Self, share: f64) -> Ratio {
        self.drawn(other, |cycles| self.quantile_of(cycles, share) / other.quantile_of(cycles, share))
    }

    /// How much larger this pool's quantile of a window is than the other's of the same cycle: the median of
    /// all cycles. Every cycle is a run of its own beside its own reference.
    pub fn typically_over(&self, other: &Self, share: f64) -> Ratio {
        self.typically_between(other, other, share)
    }

    /// The same over two windows of each cycle, each by itself: a quantile of both together is not what one of
    /// them has, since one stall of the machine makes it for both.
    pub fn typically_between(&self, one: &Self, other: &Self, share: f64) -> Ratio {
        let of = |cycle: usize| {
            let [own, one, other] = [self, one, other].map(|pool| pool.quantile_of(&[cycle], share));
            own / (one * other).sqrt()
        };
        let ratios: Vec<f64> = (0..self.cycles(other)).map(of).collect();
        self.drawn(other, |cycles| {
            let mut drawn: Vec<f64> = cycles.iter().map(|cycle| ratios[*cycle]).collect();
            drawn.sort_by(f64::total_cmp);
            drawn.get(drawn.len() / 2).copied().unwrap_or(f64::NAN)
        })
    }

    fn cycles(&self, other: &Self) -> usize {
        self.0.len().min(other.0.len())
    }

    /// A value of all cycles. The interval comes from drawing whole cycles: deltas of one window are no
    /// independent measurements.
    fn drawn(&self, other: &Self, value: impl Fn(&[usize]) -> f64) -> Ratio {
        let cycles = self.cycles(other);
        let mut random = Random(0x9e37_79b9_7f4a_7c15);
        let mut ratios: Vec<f64> = (0..DRAWS)
            .map(|_| value(&(0..cycles).map(|_| random.below(cycles)).collect::<Vec<_>>()))
            .collect();
        ratios.sort_by(f64::total_cmp);
        let at = |share: f64| ratios[(((DRAWS - 1) as f64) * share).round() as usize];
        Ratio { value: value(&(0..cycles).collect::<Vec<_>>()), least: at(0.025), most: at(0.975) }
    }

    fn quantile_of(&self, cycles: &[usize], share: f64) -> f64 {
        let mut all: Vec<f64> = cycles.iter().flat_map(|cycle| self.0[*cycle].iter().copied()).collect();
        let nth = (all.len().saturating_sub(1) as f64 * share).round() as usize;
        if all.is_empty() {
            return f64::NAN;
        }
        *all.select_nth_unstable_by(nth, f64::total_cmp).1
    }
}

/// Good enough to draw lots (Marsaglia's xorshift), and the same every time.
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % end as u64) as usize
    }
}
