//! The tasks that run in parallel to the connections. One set owns them, so that a stop ends all of them.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{oneshot, watch};
use tokio::task::JoinSet;

use crate::notifier::{self, NotifyChannels};
use crate::orphans::{self, Leftovers};
use crate::start::{OpenDaemon, Runners};
use crate::{file_watch, index_files, index_watch, memory, old_worktrees, retention};
use session::Registry;

/// The background tasks. Dropping the set aborts them.
pub(super) struct BackgroundTasks(JoinSet<()>);

impl BackgroundTasks {
    /// Starts all tasks. `backups` is the number of daily backups to keep.
    pub async fn spawn(
        daemon: &OpenDaemon,
        runners: Runners,
        leftovers: Leftovers,
        channels: watch::Receiver<NotifyChannels>,
        backups: usize,
    ) -> Self {
        let OpenDaemon { registry, store, jobs, indexes, job_settings, .. } = daemon;
        let Runners { jobs: mut job_runner, schedules: schedule_runner } = runners;
        // Subscribe before schedules run, so that no change is missed.
        let schedule_changes = daemon.schedules.subscribe();
        job_runner.prepare().await;
        let (is_recovered, recovered) = oneshot::channel();
        let mut tasks = JoinSet::new();
        tasks.spawn(job_runner.run(recovered));
        tasks.spawn(schedule_runner.run());
        tasks.spawn(recover(registry.clone(), leftovers, is_recovered));
        tasks.spawn(warm_up(registry.clone()));
        tasks.spawn(store.reader().keep_backups(daemon.backups.clone(), backups, Arc::clone(&daemon.clock)));
        tasks.spawn(orphans::sweep_temp(registry.clone()));
        tasks.spawn(retention::run(registry.clone()));
        tasks.spawn(memory::run(registry.clone(), store.clone()));
        tasks.spawn(old_worktrees::run(registry.clone(), job_settings.subscribe()));
        tasks.spawn(index_files::run(indexes.clone()));
        tasks.spawn(index_watch::run(indexes.clone()));
        tasks.spawn(file_watch::run(registry.clone()));
        tasks.spawn(jobs.clone().deliver());
        tasks.spawn(jobs::unarchived::run(store.clone(), registry.clone()));
        tasks.spawn(jobs::retention::run(store.clone(), registry.clone(), job_settings.subscribe()));
        tasks.spawn(notifier::run(registry.clone(), schedule_changes, channels));
        Self(tasks)
    }

    /// Waits until a task ends. A panic is logged, because the rest of the daemon continues without the task.
    /// Cancel-safe; waits forever if no task runs.
    pub async fn log_panic(&mut self) {
        match self.0.join_next().await {
            Some(Ok(())) => {}
            Some(Err(error)) => tracing::error!(%error, "a background task failed"),
            None => std::future::pending().await,
        }
    }

    /// Aborts all tasks, and waits until they have ended.
    pub async fn stop_within(mut self, within: Duration) {
        if tokio::time::timeout(within, self.0.shutdown()).await.is_err() {
            tracing::warn!(left = self.0.len(), "some background tasks did not end in time");
        }
    }
}

/// Resumes the sessions of the last daemon. `is_recovered` lets jobs start afterwards.
async fn recover(registry: Registry, leftovers: Leftovers, is_recovered: oneshot::Sender<()>) {
    if let Err(error) = registry.sweep_worktrees().await {
        tracing::error!(%error, "could not list the worktrees");
    }
    match registry.recover().await {
        Ok(0) => {}
        Ok(count) => tracing::info!(count, "resumed unfinished sessions"),
        Err(error) => tracing::error!(%error, "could not list unfinished sessions"),
    }
    leftovers.forget_processes(&registry).await;
    // Fails only if the daemon is stopping.
    let _ = is_recovered.send(());
}

/// Builds the HTTP clients and detects the sandboxes, so that neither the first call nor the first command waits for it.
async fn warm_up(registry: Registry) {
    let components = registry.shared().components();
    tokio::join!(components.models.prepare_clients(), tools::AvailableLevels::probe_once());
}
