//! Records calls that the client's role does not permit in the audit log. If there are very many such
//! calls, only their number is recorded.

use std::sync::Mutex;

use base::sync::lock;
use session::Registry;
use types::audit::{AuditKind, AuditNote};
use types::event::Origin;

/// Maximum number of audit rows per minute. The next row contains the number of omitted rows.
const MAX_ROWS_PER_MINUTE: u32 = 120;
const MINUTE_MS: i64 = 60_000;

/// Counts refused calls.
#[derive(Debug, Default)]
pub struct Refusals(Mutex<Window>);

#[derive(Clone, Copy, Debug, Default)]
struct Window {
    since_ms: i64,
    rows: u32,
    left_out: u64,
}

impl Window {
    /// Returns whether to write a row now, as the number of rows that were omitted before it.
    fn should_record(&mut self, now_ms: i64) -> Option<u64> {
        // A clock that was set back also begins a new minute.
        if !(0..MINUTE_MS).contains(&(now_ms - self.since_ms)) {
            (self.since_ms, self.rows) = (now_ms, 0);
        }
        if self.rows >= MAX_ROWS_PER_MINUTE {
            self.left_out += 1;
            return None;
        }
        self.rows += 1;
        Some(std::mem::take(&mut self.left_out))
    }
}

impl Refusals {
    /// Records one refused call. When this returns, the row survives a kill of the daemon.
    pub(super) async fn note(&self, registry: &Registry, origin: Origin, method: &'static str, why: &str) {
        let now = registry.shared().clock.now();
        tracing::warn!(method, client = origin.client, pid = origin.pid, exe = origin.exe, "{why}");
        let Some(left_out) = lock(&self.0).should_record(now.0) else {
            return;
        };
        let mut reason = why.to_owned();
        if left_out > 0 {
            reason.push_str(&format!("; {left_out} more were refused before this one and not written down"));
        }
        let note = AuditNote::new(now, AuditKind::Refused, "refused", reason).with_origin(Some(&origin));
        // The call is refused even if the row cannot be written, so only log the error.
        if let Err(error) = registry.note(AuditNote { tool: Some(method.into()), ..note }).await {
            tracing::error!(%error, "could not write a refusal to the audit log");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusal_flood_is_counted_in_next_audit_row() {
        let mut window = Window::default();
        for _ in 0..MAX_ROWS_PER_MINUTE {
            assert_eq!(window.should_record(1_000_000), Some(0));
        }
        assert_eq!((window.should_record(1_000_001), window.should_record(1_059_999)), (None, None));
        assert_eq!(window.should_record(1_060_000), Some(2));
        assert_eq!(window.should_record(1_060_000), Some(0));
        assert_eq!(window.should_record(5), Some(0), "the clock was set back");
    }
}
