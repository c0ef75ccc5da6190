//! A child, however it was started.

use std::io;
use std::process::ExitStatus;

use tokio::process::{self, ChildStderr, ChildStdout};

use super::stat;
use crate::proc::spawn_in_cgroup::CgroupChild;

/// A child that is killed when it is dropped.
#[derive(Debug)]
pub enum Child {
    /// By the standard library, with `kill_on_drop`.
    Usual(process::Child),
    /// In a cgroup from its first moment.
    Inside(CgroupChild),
}

impl Child {
    /// Its process id; `None` once its end was waited for.
    #[must_use]
    pub fn id(&self) -> Option<i32> {
        match self {
            Child::Usual(child) => i32::try_from(child.id()?).ok(),
            Child::Inside(child) => Some(child.id()),
        }
    }

    /// When it started, in clock ticks since boot. To be asked before its end is waited for.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn started(&self) -> io::Result<u64> {
        let known = match self {
            Child::Usual(_) => None,
            Child::Inside(child) => child.started,
        };
        let gone = || io::Error::other("no process id");
        known.map_or_else(|| Ok(stat::one(self.id().ok_or_else(gone)?)?.started), Ok)
    }

    /// Waits for its end. Cancel-safe; later calls give the same.
    ///
    /// # Errors
    /// The kernel does not know it.
    pub async fn wait(&mut self) -> io::Result<ExitStatus> {
        match self {
            Child::Usual(child) => child.wait().await,
            Child::Inside(child) => child.wait().await,
        }
    }

    /// The reading ends of what it says and of its complaints, once.
    pub fn streams(&mut self) -> (Option<ChildStdout>, Option<ChildStderr>) {
        match self {
            Child::Usual(child) => (child.stdout.take(), child.stderr.take()),
            Child::Inside(child) => (child.stdout.take(), child.stderr.take()),
        }
    }
}
