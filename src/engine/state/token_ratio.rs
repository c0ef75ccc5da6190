//! The correction of token estimates for one model. `message.completed` stores the tokens that the
//! provider reported, and the estimate of the same request, which was counted from characters.

use types::usage::Usage;

/// Requests below this uncalibrated estimate are too short for calibration, because fixed costs of the
/// provider dominate.
const MIN_CALIBRATION_TOKENS: u64 = 200;
/// Limits of the ratio. Outside of them, the reported count is implausible.
const RATIO_RANGE: (u64, u64) = (250, 4_000);

/// Reported tokens of a request per thousand uncalibrated tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TokenRatio(u64);

impl Default for TokenRatio {
    fn default() -> Self {
        Self(1_000)
    }
}

impl TokenRatio {
    /// The ratio of a completed call, if its request was long enough.
    pub fn from_call(usage: &Usage, uncalibrated: u64) -> Option<Self> {
        let sent = usage.all_tokens().saturating_sub(usage.output_tokens);
        if uncalibrated < MIN_CALIBRATION_TOKENS || sent == 0 {
            return None;
        }
        Some(Self((sent.saturating_mul(1_000) / uncalibrated).clamp(RATIO_RANGE.0, RATIO_RANGE.1)))
    }

    /// The uncalibrated estimate of this many tokens.
    pub fn uncalibrated(self, tokens: u64) -> u64 {
        tokens.saturating_mul(1_000) / self.0
    }

    /// Corrects an uncalibrated estimate.
    pub fn tokens(self, uncalibrated: u64) -> u64 {
        uncalibrated.saturating_mul(self.0).div_ceil(1_000)
    }
}

#[cfg(test)]
mod tests {
    use crate::state::token_ratio::*;

    #[test]
    fn ratio_corrects_estimate_of_other_tokenizers() {
        let reported = |tokens| Usage { input_tokens: tokens, output_tokens: 77, ..Usage::default() };
        for (tokens, uncalibrated) in [(1_500, 1_000), (800, 1_000), (1_000, 1_000)] {
            let ratio = TokenRatio::from_call(&reported(tokens), uncalibrated).expect("a long request");
            assert_eq!(ratio.tokens(uncalibrated), tokens, "{tokens} of {uncalibrated}");
        }
        // A short request gives no reliable ratio, and an implausible count is limited.
        assert_eq!(TokenRatio::from_call(&reported(50), 100), None);
        assert_eq!(TokenRatio::from_call(&reported(0), 1_000), None);
        let absurd = TokenRatio::from_call(&reported(1_000_000), 1_000).expect("a ratio");
        assert_eq!(absurd.tokens(1_000), 4_000);
    }
}
