//! Crash points: positions in the code where a test ends the process as abruptly as `kill -9`. The tests check
//! that the daemon loses nothing that it has confirmed (see the table of crash points in RELIABILITY.md).
//!
//! Crash points exist only in builds with debug assertions, which no release has. The variable `AGENTD_CRASH`
//! names one. `C5` ends the process when it first reaches the point, `C5:3` the third time. `C5:3:stop` stops
//! the process there instead (SIGSTOP), so that the test can kill it. `tool.Bash:0:panic` makes each call of
//! that tool panic.

/// A point where the process may end. Nothing is flushed and no destructor runs.
#[cfg(debug_assertions)]
pub fn point(name: &str) {
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicU32, Ordering};

    use nix::sys::signal::{Signal, raise};

    static SELECTED_CRASH: OnceLock<Option<CrashSelection>> = OnceLock::new();
    static PASSED_POINTS: AtomicU32 = AtomicU32::new(0);

    let wanted = SELECTED_CRASH.get_or_init(|| wanted(&std::env::var("AGENTD_CRASH").ok()?));
    let Some(wanted) = wanted else { return };
    if wanted.point != name {
        return;
    }
    let time = PASSED_POINTS.fetch_add(1, Ordering::SeqCst).saturating_add(1);
    if wanted.time != 0 && time != wanted.time {
        return;
    }
    match wanted.end {
        CrashMode::Abort => std::process::abort(),
        // The signal goes to this thread, so that it stops immediately.
        CrashMode::Stop => drop(raise(Signal::SIGSTOP)),
        CrashMode::Panic => panic!("at the point {name}, as a test wants it"),
    }
}

/// Does nothing: this build has no debug assertions.
#[cfg(not(debug_assertions))]
#[inline(always)]
pub fn point(_name: &str) {}

/// The crash point `tool.NAME`, at the start of each call of that tool.
pub fn tool(_name: &str) {
    #[cfg(debug_assertions)]
    point(&format!("tool.{_name}"));
}

/// The selected crash point and the way to crash.
#[cfg(any(test, debug_assertions))]
#[derive(Debug, PartialEq)]
struct CrashSelection {
    point: String,
    /// Counted from 1; 0 means each time.
    time: u32,
    end: CrashMode,
}

/// The way in which the process ends or stops.
#[cfg(any(test, debug_assertions))]
#[derive(Clone, Copy, Debug, PartialEq)]
enum CrashMode {
    Abort,
    Stop,
    Panic,
}

#[cfg(any(test, debug_assertions))]
fn wanted(text: &str) -> Option<CrashSelection> {
    let mut parts = text.split(':');
    let point = parts.next().filter(|name| !name.is_empty())?.to_owned();
    let time = parts.next().map_or(Ok(1), str::parse).ok()?;
    let end = match parts.next() {
        None => CrashMode::Abort,
        Some("stop") => CrashMode::Stop,
        Some("panic") => CrashMode::Panic,
        Some(_) => return None,
    };
    Some(CrashSelection { point, time, end })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn crash_point_setting_parses_name_count_and_end() {
        let read = |text| wanted(text).map(|w| (w.point, w.time, w.end));
        assert_eq!(read("C5"), Some(("C5".into(), 1, CrashMode::Abort)));
        assert_eq!(read("C5.a:3"), Some(("C5.a".into(), 3, CrashMode::Abort)));
        assert_eq!(read("C5:3:stop"), Some(("C5".into(), 3, CrashMode::Stop)));
        assert_eq!(read("tool.Bash:0:panic"), Some(("tool.Bash".into(), 0, CrashMode::Panic)));
        for nonsense in ["", ":1", "C5:x", "C5:1:run"] {
            assert_eq!(read(nonsense), None, "{nonsense}");
        }
    }
}
