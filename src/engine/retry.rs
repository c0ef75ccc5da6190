//! Which faults are tried again, how often, after how long (Q26).

use super::state::Settings;
use crate::types::model::{FaultKind, ModelFault};

/// Attempts at a server that cannot be reached at all: it is most likely not running.
const UNREACHABLE_ATTEMPTS: u32 = 3;

impl Settings {
    /// The number of attempts and the wait before the next, or `None` if it is time to give up.
    /// `failures` counts failed attempts before this one; `random` spreads the waits.
    pub(super) fn retry(&self, fault: &ModelFault, failures: u32, random: u64) -> Option<(u32, u64)> {
        if !fault.kind.is_retryable() {
            return None;
        }
        let max = match fault.kind {
            FaultKind::Unreachable => self.retry_attempts.min(UNREACHABLE_ATTEMPTS),
            _ => self.retry_attempts,
        };
        if failures + 1 >= max {
            return None;
        }
        let ceiling = self.retry_base_ms.saturating_mul(1 << failures.min(20)).min(self.retry_max_ms);
        // Half fixed, half random: waits grow, and clients do not march in step.
        let jittered = ceiling / 2 + random % (ceiling / 2 + 1);
        Some((max, fault.retry_after_ms.unwrap_or(jittered)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_to_the_maximum_and_end() {
        let settings = Settings::default();
        let fault = ModelFault::new(FaultKind::Overloaded, "busy");
        for failures in 0..9 {
            let (max, delay) = settings.retry(&fault, failures, u64::MAX).expect("another try");
            assert_eq!(max, 10);
            assert!((250..=32_000).contains(&delay), "{delay}");
        }
        assert_eq!(settings.retry(&fault, 9, 0), None);
        assert_eq!(settings.retry(&ModelFault::new(FaultKind::BadRequest, "no"), 0, 0), None);
    }

    #[test]
    fn the_server_s_wish_to_wait_is_respected() {
        let fault = ModelFault {
            retry_after_ms: Some(7_000),
            ..ModelFault::new(FaultKind::RateLimited, "slow down")
        };
        assert_eq!(Settings::default().retry(&fault, 0, 0), Some((10, 7_000)));
    }
}
