//! The tokio runtime of the daemon. Commands may use up the user's process limit, and each thread counts as a
//! process. So the threads that the daemon needs to stop such a command are created at the start and are kept.

use std::io;
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};

/// Number of blocking threads that are created at the start, for checks of processes, clients, files and
/// folders.
const START_THREADS: usize = 4;

/// Longer than any daemon runs. By default, tokio ends a thread after ten idle seconds. If no thread can be
/// created afterwards, the next `spawn_blocking` panics. While at least one thread exists, tasks wait for it.
const KEEP_ALIVE: Duration = Duration::from_secs(100 * 365 * 24 * 60 * 60);

/// How long each of the first tasks waits for the remaining ones, so that each task gets a separate thread.
const START_TIMEOUT: Duration = Duration::from_secs(1);

/// Creates the daemon's runtime with its blocking threads.
///
/// # Errors
/// The system has no memory, descriptor or thread left.
///
/// # Panics
/// Not a single blocking thread could be created.
pub fn runtime() -> io::Result<Runtime> {
    let runtime = Builder::new_multi_thread().enable_all().thread_keep_alive(KEEP_ALIVE).build()?;
    let met = Arc::new((Mutex::new(0), Condvar::new()));
    for _ in 0..START_THREADS {
        let met = Arc::clone(&met);
        drop(runtime.spawn_blocking(move || wait_for_all_threads(&met)));
    }
    Ok(runtime)
}

/// Waits until all of the first tasks are running.
fn wait_for_all_threads((count, came): &(Mutex<usize>, Condvar)) {
    let Ok(mut here) = count.lock() else { return };
    *here += 1;
    came.notify_all();
    drop(came.wait_timeout_while(here, START_TIMEOUT, |here| *here < START_THREADS));
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use nix::sys::resource::{Resource, setrlimit};
    use nix::unistd::{Uid, setuid};

    use crate::runtime::*;

    const CHILD_VARIABLE: &str = "AGENTD_TEST_NO_MORE_THREADS";

    /// Runs in a separate process, because the test changes limits permanently.
    #[test]
    fn tasks_run_without_permission_to_create_threads() {
        if std::env::var_os(CHILD_VARIABLE).is_some() {
            return without_more_threads();
        }
        let own = "runtime::tests::tasks_run_without_permission_to_create_threads";
        let program = std::env::current_exe().unwrap();
        let output = Command::new(program)
            .args(["--exact", own, "--nocapture"])
            .env(CHILD_VARIABLE, "1")
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
    }

    fn without_more_threads() {
        let runtime = runtime().unwrap();
        // The process limit does not apply to root.
        if Uid::effective().is_root() {
            setuid(Uid::from_raw(65_534)).unwrap();
        }
        setrlimit(Resource::RLIMIT_NPROC, 0, 0).unwrap();
        assert!(std::thread::Builder::new().spawn(|| ()).is_err(), "no thread can be made");
        let result = runtime.block_on(async {
            let mut tasks = tokio::task::JoinSet::new();
            for task in 0..4 * START_THREADS {
                tasks.spawn_blocking(move || task);
            }
            tasks.join_all().await.len()
        });
        assert_eq!(result, 4 * START_THREADS);
    }
}
