//! Crash points: places where a test may end the process as abruptly as `kill -9` does, to see that
//! nothing which was promised is lost (the table of crash points C1–C24 in RELIABILITY.md).
//!
//! They exist only with the feature `failpoints`, which no release has; without it a point is nothing.

#[cfg(all(feature = "failpoints", not(debug_assertions)))]
compile_error!("the feature `failpoints` is for tests: it must not be in a release");

/// Ends the process here if the variable `AGENTD_CRASH` names this point: `C5` ends it the first
/// time, `C5:3` the third. Nothing is flushed, no destructor runs.
#[cfg(feature = "failpoints")]
pub fn point(name: &str) {
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicU32, Ordering};

    static WANTED: OnceLock<Option<(String, u32)>> = OnceLock::new();
    static PASSED: AtomicU32 = AtomicU32::new(0);

    let wanted = WANTED.get_or_init(|| wanted(&std::env::var("AGENTD_CRASH").ok()?));
    let Some((point, time)) = wanted else { return };
    if point == name && PASSED.fetch_add(1, Ordering::SeqCst) + 1 == *time {
        std::process::abort();
    }
}

/// Nothing: the feature `failpoints` is off.
#[cfg(not(feature = "failpoints"))]
#[inline(always)]
pub fn point(_name: &str) {}

/// A point's name, and which time it counts from 1.
#[cfg(any(test, feature = "failpoints"))]
fn wanted(text: &str) -> Option<(String, u32)> {
    match text.split_once(':') {
        None if text.is_empty() => None,
        None => Some((text.into(), 1)),
        Some((name, time)) => Some((name.into(), time.parse().ok()?)),
    }
}

#[cfg(test)]
mod tests {
    use super::wanted;

    #[test]
    fn a_point_is_named_with_the_time_that_counts() {
        assert_eq!(wanted("C5"), Some(("C5".into(), 1)));
        assert_eq!(wanted("C5:3"), Some(("C5".into(), 3)));
        assert_eq!(wanted("C5:x"), None);
        assert_eq!(wanted(""), None);
    }
}
