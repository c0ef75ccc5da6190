//! A child process, independent of how it was started.

use std::io;
use std::process::ExitStatus;

use tokio::process;

use super::stat;
use crate::proc::spawn_in_cgroup::CgroupChild;

/// A child that is killed when it is dropped.
#[derive(Debug)]
pub enum Child {
    /// Started by the standard library, with `kill_on_drop`.
    Usual(process::Child),
    /// Started inside a cgroup.
    Inside(CgroupChild),
}

impl Child {
    /// Process id of the child; `None` once its end was awaited.
    #[must_use]
    pub fn id(&self) -> Option<i32> {
        match self {
            Child::Usual(child) => i32::try_from(child.id()?).ok(),
            Child::Inside(child) => Some(child.id()),
        }
    }

    /// Start time of the child in clock ticks since boot. Call this before its end is awaited.
    ///
    /// # Errors
    /// The start time cannot be read.
    pub fn start_time(&self) -> io::Result<u64> {
        let known = match self {
            Child::Usual(_) => None,
            Child::Inside(child) => child.started,
        };
        let no_id_error = || io::Error::other("no process id");
        known.map_or_else(|| Ok(stat::read_process(self.id().ok_or_else(no_id_error)?)?.started), Ok)
    }

    /// Waits until the child has ended. Cancel-safe; later calls return the same status.
    ///
    /// # Errors
    /// The kernel does not know the child.
    pub async fn wait(&mut self) -> io::Result<ExitStatus> {
        match self {
            Child::Usual(child) => child.wait().await,
            Child::Inside(child) => child.wait().await,
        }
    }
}
