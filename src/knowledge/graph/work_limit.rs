//! The limit of the work for one file: its time, and the end of its job.

use std::time::{Duration, Instant};

use base::proc::thread_cpu_time;
use tokio_util::sync::CancellationToken;

/// Processor time for the structure of one file. Some texts that are not code take very long; they are indexed as plain
/// text.
const STRUCTURE_TIMEOUT: Duration = Duration::from_secs(2);
/// Time for the structure of one file while other programs have the processors.
const MAX_WALL_TIME: Duration = Duration::from_secs(8);

/// The limit of the work for one file.
#[derive(Clone, Debug)]
pub struct WorkLimit {
    start: Instant,
    /// Processor time of the thread before the work; `None` if the kernel does not tell.
    cpu_start: Option<Duration>,
    cancel: CancellationToken,
}

impl WorkLimit {
    /// The limit of a file whose work begins now, in this thread.
    #[must_use]
    pub fn start(cancel: &CancellationToken) -> Self {
        Self { start: Instant::now(), cpu_start: thread_cpu_time(), cancel: cancel.clone() }
    }

    /// Whether the work must stop.
    #[must_use]
    pub fn is_reached(&self) -> bool {
        let wall = self.start.elapsed();
        self.is_cancelled()
            || (wall >= STRUCTURE_TIMEOUT && (wall >= MAX_WALL_TIME || self.cpu_time() >= STRUCTURE_TIMEOUT))
    }

    /// The processor time of the work. On a busy machine it is shorter than the time that passes, so that the same file
    /// has its structure there as well.
    fn cpu_time(&self) -> Duration {
        let used = self.cpu_start.zip(thread_cpu_time()).map(|(start, now)| now.saturating_sub(start));
        used.unwrap_or(Duration::MAX)
    }

    /// Whether the job was cancelled.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.cancel.is_cancelled()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_of_other_programs_does_not_end_the_work() {
        let Some(now) = thread_cpu_time() else {
            base::skip_test!("this kernel does not tell the processor time of a thread");
            return;
        };
        let before = |time| Instant::now().checked_sub(time).expect("an earlier time");
        let limit = |wall, cpu: Option<Duration>| {
            let cpu_start = cpu.map(|cpu| now.saturating_sub(cpu));
            WorkLimit { start: before(wall), cpu_start, cancel: CancellationToken::new() }
        };
        assert!(!limit(Duration::ZERO, Some(Duration::ZERO)).is_reached());
        assert!(!limit(STRUCTURE_TIMEOUT, Some(Duration::ZERO)).is_reached(), "others had the processor");
        assert!(limit(MAX_WALL_TIME, Some(Duration::ZERO)).is_reached());
        assert!(limit(STRUCTURE_TIMEOUT, None).is_reached());
        let end = Instant::now() + Duration::from_secs(20);
        while thread_cpu_time().is_some_and(|used| used == now) {
            assert!(Instant::now() < end, "work takes processor time");
        }
    }
}
