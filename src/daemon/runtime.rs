//! The threads that the daemon lives on. Commands may use up what their user may have of processes, and a thread is one:
//! those that are needed to end such a command are there before it begins, and stay.

use std::io;
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};

/// As many as are at hand from the start for what may block: to look at processes and callers, files and folders.
const AT_HAND: usize = 4;

/// Longer than a daemon lives. By default tokio gives up a thread that had nothing to do for ten seconds; where none can
/// be made then, the next task panics (`spawn_blocking`). With one left, tasks wait for it.
const KEPT: Duration = Duration::from_secs(100 * 365 * 24 * 60 * 60);

/// So long each of the first tasks waits for the others at most, so that each gets a thread of its own.
const APART: Duration = Duration::from_secs(1);

/// The daemon's runtime, with threads at hand.
///
/// # Errors
/// There is no memory, no descriptor or no thread for it.
///
/// # Panics
/// There is not one thread for tasks that block.
pub fn runtime() -> io::Result<Runtime> {
    let runtime = Builder::new_multi_thread().enable_all().thread_keep_alive(KEPT).build()?;
    let met = Arc::new((Mutex::new(0), Condvar::new()));
    for _ in 0..AT_HAND {
        let met = Arc::clone(&met);
        drop(runtime.spawn_blocking(move || meet(&met)));
    }
    Ok(runtime)
}

/// Waits until all of the first tasks are here.
fn meet((count, came): &(Mutex<usize>, Condvar)) {
    let Ok(mut here) = count.lock() else { return };
    *here += 1;
    came.notify_all();
    drop(came.wait_timeout_while(here, APART, |here| *here < AT_HAND));
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use nix::sys::resource::{Resource, setrlimit};
    use nix::unistd::{Uid, setuid};

    use crate::daemon::runtime::*;

    const INSIDE: &str = "AGENTD_TEST_NO_MORE_THREADS";

    /// In a process of its own: what it does to itself cannot be taken back.
    #[test]
    fn tasks_run_without_permission_to_create_threads() {
        if std::env::var_os(INSIDE).is_some() {
            return without_more_threads();
        }
        let own = "daemon::runtime::tests::tasks_run_without_permission_to_create_threads";
        let program = std::env::current_exe().unwrap();
        let output =
            Command::new(program).args(["--exact", own, "--nocapture"]).env(INSIDE, "1").output().unwrap();
        assert!(output.status.success(), "{output:?}");
    }

    fn without_more_threads() {
        let runtime = runtime().unwrap();
        // Root may have as many as it likes.
        if Uid::effective().is_root() {
            setuid(Uid::from_raw(65_534)).unwrap();
        }
        setrlimit(Resource::RLIMIT_NPROC, 0, 0).unwrap();
        assert!(std::thread::Builder::new().spawn(|| ()).is_err(), "no thread can be made");
        let done = runtime.block_on(async {
            let mut tasks = tokio::task::JoinSet::new();
            for task in 0..4 * AT_HAND {
                tasks.spawn_blocking(move || task);
            }
            tasks.join_all().await.len()
        });
        assert_eq!(done, 4 * AT_HAND);
    }
}
