//! The processor time of a thread.

use std::fs;
use std::time::Duration;

/// The processor time that the calling thread has used: the first number of its `schedstat` in proc(5). `None` if the
/// kernel does not tell.
pub fn thread_cpu_time() -> Option<Duration> {
    let text = fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    text.split_ascii_whitespace().next()?.parse().ok().map(Duration::from_nanos)
}
