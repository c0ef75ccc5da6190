//! Crash points: places where a test may end the process as abruptly as `kill -9` does, to see that
//! nothing which was promised is lost (the table of crash points in RELIABILITY.md).
//!
//! They exist only with the feature `failpoints`, which no release has; without it a point is nothing.
//! The variable `AGENTD_CRASH` names one: `C5` ends the process the first time it comes there, `C5:3`
//! the third time, `C5:3:stop` stops it there instead (SIGSTOP), so that somebody else can end it.
//! `tool.Bash:0:panic` lets each job of that tool panic.

#[cfg(all(feature = "failpoints", not(debug_assertions)))]
compile_error!("the feature `failpoints` is for tests: it must not be in a release");

/// A place where the process may end. Nothing is flushed, no destructor runs.
#[cfg(feature = "failpoints")]
pub fn point(name: &str) {
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicU32, Ordering};

    use nix::sys::signal::{Signal, raise};

    static WANTED: OnceLock<Option<Wanted>> = OnceLock::new();
    static PASSED: AtomicU32 = AtomicU32::new(0);

    let wanted = WANTED.get_or_init(|| wanted(&std::env::var("AGENTD_CRASH").ok()?));
    let Some(wanted) = wanted else { return };
    if wanted.point != name {
        return;
    }
    let time = PASSED.fetch_add(1, Ordering::SeqCst).saturating_add(1);
    if wanted.time != 0 && time != wanted.time {
        return;
    }
    match wanted.end {
        End::Abort => std::process::abort(),
        // Sent to this very thread, so that it does not go one step further.
        End::Stop => drop(raise(Signal::SIGSTOP)),
        End::Panic => panic!("at the point {name}, as a test wants it"),
    }
}

/// Nothing: the feature `failpoints` is off.
#[cfg(not(feature = "failpoints"))]
#[inline(always)]
pub fn point(_name: &str) {}

/// The point `tool.NAME`: where a job of that tool begins.
pub fn tool(_name: &str) {
    #[cfg(feature = "failpoints")]
    point(&format!("tool.{_name}"));
}

/// Where to crash, and how.
#[cfg(any(test, feature = "failpoints"))]
#[derive(Debug, PartialEq)]
struct Wanted {
    point: String,
    /// Counted from 1; 0 is each time.
    time: u32,
    end: End,
}

/// What happens there.
#[cfg(any(test, feature = "failpoints"))]
#[derive(Clone, Copy, Debug, PartialEq)]
enum End {
    Abort,
    Stop,
    Panic,
}

#[cfg(any(test, feature = "failpoints"))]
fn wanted(text: &str) -> Option<Wanted> {
    let mut parts = text.split(':');
    let point = parts.next().filter(|name| !name.is_empty())?.to_owned();
    let time = parts.next().map_or(Ok(1), str::parse).ok()?;
    let end = match parts.next() {
        None => End::Abort,
        Some("stop") => End::Stop,
        Some("panic") => End::Panic,
        Some(_) => return None,
    };
    Some(Wanted { point, time, end })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn crash_point_setting_parses_name_count_and_end() {
        let read = |text| wanted(text).map(|w| (w.point, w.time, w.end));
        assert_eq!(read("C5"), Some(("C5".into(), 1, End::Abort)));
        assert_eq!(read("C5.a:3"), Some(("C5.a".into(), 3, End::Abort)));
        assert_eq!(read("C5:3:stop"), Some(("C5".into(), 3, End::Stop)));
        assert_eq!(read("tool.Bash:0:panic"), Some(("tool.Bash".into(), 0, End::Panic)));
        for nonsense in ["", ":1", "C5:x", "C5:1:run"] {
            assert_eq!(read(nonsense), None, "{nonsense}");
        }
    }
}
