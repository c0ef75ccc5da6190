//! The stages of a start: read and check everything, open the database, end what a dead daemon left.

use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::clock::SystemClock;
use crate::config::{Config, Override};
use crate::error::DaemonError;
use crate::notifier::NotifyChannels;
use crate::orphans::{self, Leftovers};
use crate::paths::{self, DaemonPaths};
use crate::wiring::{self, HostFacts};
use crate::{Options, systemd, telemetry};
use jobs::schedule::{ScheduleRunner, Schedules};
use jobs::{JobRunner, JobSettings, Jobs};
use knowledge::registry::Indexes;
use mcp::{Pool, PoolSettings};
use otel::Exporter;
use project::policy::Policies;
use rpc::RpcContext;
use session::{Registry, SessionEnvironments, Shared, summary_of_events};
use store::{Store, StoreOwner};
use transport::{BoundSocket, RunningServer, StateLock};
use types::time::Clock;

/// Logs how long the start took until each stage.
pub(super) struct StartLog(Instant);

impl StartLog {
    pub fn begin() -> Self {
        Self(Instant::now())
    }

    pub fn passed(&self, stage: &str) {
        tracing::debug!(stage, us = self.0.elapsed().as_micros() as u64, "start-up");
    }
}

/// A configuration that was read and checked. Nothing was created yet.
pub(super) struct CheckedStart {
    pub config: Config,
    pub places: DaemonPaths,
    /// Values that did not come from a file.
    pub overrides: [Override; 2],
    /// The socket of the service manager.
    pub inherited: Option<UnixListener>,
    pub channels: NotifyChannels,
    pub host: HostFacts,
}

impl CheckedStart {
    /// Starts the log, and checks all that may not work before anything is created.
    pub async fn read(options: &Options, log: &StartLog) -> Result<Self, DaemonError> {
        let env = base::proc::variable;
        let config = Config::load(&env, options.config.clone())?;
        telemetry::start(&config);
        log.passed("loaded the configuration");
        let inherited = systemd::inherited_socket(&env)?;
        let mut places = paths::find(&env, options.socket.clone(), &config)?;
        let activated = inherited.as_ref().and_then(systemd::path);
        let is_activated = activated.is_some();
        if let Some(path) = activated {
            places.socket = path;
        }
        let overrides = paths::overrides(&env, options.socket.is_some(), is_activated, &places);
        let host = HostFacts::default().with_sandboxes(&config).await;
        wiring::components(&config, &places, &host, None)?;
        wiring::telemetry(&config, &env)?;
        let channels = NotifyChannels::from_config(&config)?;
        Ok(Self { config, places, overrides, inherited, channels, host })
    }

    /// Creates and locks the data folder, and takes the facts about this process.
    pub fn lock(&mut self) -> Result<StateLock, DaemonError> {
        let data_dir = &self.places.data_dir;
        paths::make_private(data_dir)?;
        let lock = StateLock::try_lock(&data_dir.join("agentd.lock"))?;
        self.host.instance = orphans::instance(data_dir)?;
        self.host.open_files = orphans::raise_open_files();
        Ok(lock)
    }
}

/// A daemon with an open database, which does not serve clients yet.
pub(super) struct OpenDaemon {
    pub clock: Arc<dyn Clock>,
    pub database: PathBuf,
    /// Folder of the daily backups.
    pub backups: PathBuf,
    pub store: Store,
    pub store_owner: StoreOwner,
    pub exporter: Option<Exporter>,
    pub registry: Registry,
    pub indexes: Indexes,
    pub index_services: Arc<wiring::IndexServices>,
    pub jobs: Jobs,
    pub job_settings: watch::Sender<JobSettings>,
    pub schedules: Schedules,
}

/// The tasks behind the handles of jobs and schedules. They must run for the handles to answer.
pub(super) struct Runners {
    pub jobs: JobRunner,
    pub schedules: ScheduleRunner,
}

impl OpenDaemon {
    /// Opens the database, and builds all parts around it. No process was started when this returns.
    pub async fn open(start: &CheckedStart, log: &StartLog) -> Result<(Self, Runners), DaemonError> {
        let CheckedStart { config, places, host, .. } = start;
        let data_dir = &places.data_dir;
        let indexes = Indexes::new(data_dir.join("knowledge"));
        let components = wiring::components(config, places, host, Some(&indexes))?;
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let (database, backups) = (data_dir.join("agentd.db"), data_dir.join("backups"));
        let (store, store_owner) =
            Store::open_or_recover(&database, &backups, clock.now(), &summary_of_events).await?;
        log.passed("database open");

        let shared = Shared::new(store.clone(), Arc::clone(&clock), components)
            .with_policies(Policies::in_folder(data_dir.join("policy")))
            .with_mcp(Pool::at(data_dir, PoolSettings::default()))
            .with_environments(SessionEnvironments::at(data_dir.join("session-env")));
        let (shared, exporter) = match wiring::telemetry(config, &base::proc::variable)? {
            Some(settings) => {
                let started = Exporter::start(&settings, Arc::clone(&clock));
                let (watcher, exporter) = started.map_err(DaemonError::Bug)?;
                (shared.with_observer(telemetry::ExportObserver(watcher)), Some(exporter))
            }
            None => (shared, None),
        };
        let registry = Registry::new(shared);
        registry.load_worktrees().await?;
        let (job_settings, settings_of_jobs) = watch::channel(config.jobs.clone());
        let (jobs, job_runner) = Jobs::new(store.clone(), registry.clone(), settings_of_jobs);
        let (schedules, schedule_runner) = Schedules::new(store.clone(), jobs.clone(), Arc::clone(&clock));
        registry.shared().mcp.set_launcher(Arc::new(wiring::ServerLauncher::new(registry.clone())));
        let index_services = wiring::IndexServices::new(registry.clone(), config)?;
        indexes.set_services(index_services.clone());
        let runners = Runners { jobs: job_runner, schedules: schedule_runner };
        let daemon = Self {
            clock,
            database,
            backups,
            store,
            store_owner,
            exporter,
            registry,
            indexes,
            index_services,
            jobs,
            job_settings,
            schedules,
        };
        Ok((daemon, runners))
    }

    /// Ends the processes and repairs the files that a dead daemon left. Returns the task that reaps orphans from now
    /// on.
    pub async fn end_leftovers(
        &self,
        places: &DaemonPaths,
    ) -> Result<(JoinHandle<()>, Leftovers), DaemonError> {
        // Write pending grants before any call is judged.
        self.registry.flush_grants().await;
        // Adopt orphans before any process can be started or requested.
        let reaper = orphans::adopt_orphans()?;
        let leftovers = orphans::sweep(&self.registry).await;
        orphans::restore_files(&places.data_dir).await;
        orphans::sweep_spools(&self.registry).await;
        Ok((reaper, leftovers))
    }
}

/// The socket, which serves clients.
pub(super) struct OpenSocket {
    pub server: RunningServer,
    /// Cancelled to close the connections.
    pub close: CancellationToken,
    pub lock: StateLock,
}

impl OpenSocket {
    /// Takes the socket of the service manager, or binds one.
    pub fn open(start: &mut CheckedStart, lock: StateLock, context: RpcContext) -> Result<Self, DaemonError> {
        let (registry, jobs, started_at) =
            (context.registry.clone(), context.jobs.clone(), context.info.started_at);
        let methods = rpc::methods(context).map_err(DaemonError::Bug)?;
        // An inherited socket may have no path, or a path that clients cannot use.
        let is_found_by_path = start.inherited.as_ref().is_none_or(|socket| systemd::path(socket).is_some());
        let bound = match start.inherited.take() {
            Some(listener) => BoundSocket::adopt(listener)?,
            None => transport::bind(&start.places.socket)?,
        };
        let bound = bound
            .with_mark(&format!("AGENTD_INSTANCE={}", start.host.instance))
            .with_metrics(move || rpc::metrics_text(&rpc::metrics(&registry, &jobs, started_at)));
        let close = CancellationToken::new();
        let limits = start.config.limits.transport_limits();
        let server = transport::serve(bound, methods, limits, close.clone());
        if is_found_by_path {
            lock.note_socket(&start.places.socket);
        }
        Ok(Self { server, close, lock })
    }
}
