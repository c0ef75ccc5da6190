//! Token limits: the part of a model's window for requests, and the limits that follow from this part.

use crate::state::Engine;
use types::compaction::CompactionSettings;

/// Divisor of the usable window: maximum length of all results of one message.
const RESULTS_PART: u64 = 3;
/// Divisor of the usable window: maximum length of one result.
const RESULT_PART: u64 = 4;
/// Divisor of the usable window: maximum length of the newest messages that stay.
const RECENT_PART: u64 = 4;
/// Bytes per token for limits in bytes. The value is lower than usual, so that a limit is not exceeded.
const BYTES_PER_TOKEN: u64 = 3;
/// Minimum limit of a result in bytes. A shorter result would show nothing useful.
const MIN_RESULT_BYTES: usize = 4 * 1024;
/// A compaction shrinks the request to this part of the threshold, in percent.
const TARGET_PERCENT: u64 = 60;
/// Divisor of the usable window: minimum tokens that an edit must save. A smaller edit is not worth a
/// changed beginning of the request.
const MIN_SAVING_PART: u64 = 20;

/// The window of a model for one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WindowSize {
    /// Tokens of the whole window.
    pub window: u64,
    /// Tokens that the answer may need.
    pub reserved_output: u64,
}

impl WindowSize {
    /// Computes the window, if its size is known. At most half of the window is reserved for the answer.
    pub fn new(window: Option<u32>, output_limit: Option<u32>, max_output: Option<u32>) -> Option<Self> {
        let window = u64::from(window?);
        let wanted = output_limit.or(max_output).map_or(window / 4, u64::from);
        Some(Self { window, reserved_output: wanted.min(window / 2) })
    }

    /// Tokens that a request may have.
    pub fn usable(self) -> u64 {
        self.window - self.reserved_output
    }

    /// Tokens of a request at which compaction starts.
    pub fn threshold(self, settings: &CompactionSettings) -> u64 {
        self.usable().saturating_mul(settings.threshold_percent()) / 100
    }

    /// Tokens that a request should have after a compaction.
    pub fn target(self, settings: &CompactionSettings) -> u64 {
        self.threshold(settings).saturating_mul(TARGET_PERCENT) / 100
    }

    /// Tokens of the newest messages, which the stages do not change.
    pub fn recent(self, settings: &CompactionSettings) -> u64 {
        settings.keep_recent_tokens.min(self.usable() / RECENT_PART)
    }

    /// Minimum tokens that an edit must save.
    pub fn min_saving(self) -> u64 {
        self.usable() / MIN_SAVING_PART
    }
}

/// Byte limits of tool results: for one result, and for all results of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ResultLimits {
    pub one: usize,
    pub all: usize,
}

impl ResultLimits {
    /// The configured limits, reduced for a small window.
    pub fn new(engine: &Engine, size: Option<WindowSize>) -> Self {
        if !engine.compaction().tool_results {
            return Self { one: usize::MAX, all: usize::MAX };
        }
        let part = |divisor: u64| {
            size.map_or(usize::MAX, |size| {
                let bytes = size.usable() / divisor * BYTES_PER_TOKEN;
                usize::try_from(bytes).unwrap_or(usize::MAX).max(MIN_RESULT_BYTES)
            })
        };
        let (one, all) = engine.result_bytes();
        Self { one: one.min(part(RESULT_PART)), all: all.min(part(RESULTS_PART)) }
    }
}
