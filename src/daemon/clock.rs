//! The system clock, which tests may move.

use types::time::{Clock, Timestamp};

/// The system clock. No other code reads the time.
pub(super) struct SystemClock;

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "this is the Clock that everybody else asks")]
    fn now(&self) -> Timestamp {
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        Timestamp(i64::try_from(since.as_millis()).unwrap_or(i64::MAX)).moved(test_offset())
    }
}

/// Milliseconds by which a test sets the clock of this process: the content of the file that `AGENTD_TEST_CLOCK` names.
/// A release has no such file.
fn test_offset() -> i64 {
    static FILE: std::sync::LazyLock<Option<String>> =
        std::sync::LazyLock::new(|| base::proc::variable("AGENTD_TEST_CLOCK"));
    if !cfg!(debug_assertions) {
        return 0;
    }
    let text = FILE.as_ref().and_then(|file| std::fs::read_to_string(file).ok());
    text.and_then(|text| text.trim().parse().ok()).unwrap_or(0)
}
