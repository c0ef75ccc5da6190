//! Attempts to reach the model that failed, as one line that counts. Pure.

use crate::terminal::format::format_ms;
use crate::terminal::style::{StyledLine, Tone};
use crate::ui::summary::one_line;

/// The failed attempts since the model answered last.
#[derive(Debug, Default)]
pub(super) struct Retries {
    count: u32,
    /// The last attempt in words, and its reason.
    last: String,
    reason: String,
}

impl Retries {
    /// Counts an attempt. Returns its line if this is the first attempt, or the first with this reason.
    pub(super) fn add(&mut self, attempt: u32, max: u32, delay_ms: u64, reason: &str) -> Option<StyledLine> {
        let reason = one_line(reason, 160);
        let is_new = self.count == 0 || self.reason != reason;
        // The daemon counts the attempts of each call. The client may have attached after some of them.
        self.count = attempt.max(self.count + 1);
        let of = if max == 0 { attempt.to_string() } else { format!("{attempt} of {max}") };
        let next = if delay_ms == 0 { "at once".to_owned() } else { format!("in {}", format_ms(delay_ms)) };
        // The reason comes last, because a narrow terminal cuts the line.
        self.last = format!("attempt {of} failed, next {next}: {reason}");
        self.reason = reason;
        is_new.then(|| self.line()).flatten()
    }

    /// Whether the last attempt failed, and the model has not answered since.
    pub(super) fn is_open(&self) -> bool {
        self.count > 0
    }

    /// The last attempt.
    pub(super) fn line(&self) -> Option<StyledLine> {
        self.is_open().then(|| StyledLine::new(Tone::Warn, format!("  {}", self.last)))
    }

    /// Forgets the attempts if this error ends them: it has their reason and says how often the model was tried.
    pub(super) fn end_with(&mut self, error: &str) {
        if error.starts_with(self.reason.trim_end_matches('…')) {
            *self = Self::default();
        }
    }

    /// Ends the count, because something else follows. Returns the line that stays: the number of all attempts, or
    /// nothing if the line of the only attempt was shown.
    pub(super) fn finish(&mut self, is_repainted: bool) -> Option<StyledLine> {
        let Self { count, reason, .. } = std::mem::take(self);
        let text = match (count, is_repainted) {
            (0, _) | (1, false) => return None,
            (1, true) => format!("  one attempt failed: {reason}"),
            (count, _) => format!("  {count} attempts failed: {reason}"),
        };
        Some(StyledLine::new(Tone::Warn, text))
    }
}
