//! The composition root. Read [`run`] from top to bottom for the order of the start.

mod config;
mod error;
mod file_watch;
mod index_files;
mod index_watch;
mod memory;
mod notifier;
mod old_worktrees;
mod orphans;
mod paths;
mod reload;
mod retention;
mod runtime;
mod shutdown;
mod systemd;
mod telemetry;
mod wiring;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::signal::unix::SignalKind;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use reload::Reloader;
use shutdown::SignalRequest;
use wiring::HostFacts;

use base::crash;
use jobs::Jobs;
use jobs::schedule::Schedules;
use knowledge::registry::Indexes;
use mcp::{Pool, PoolSettings};
use project::policy::Policies;
use rpc::{ConfigState, DaemonInfo, PlannedStop, RpcContext};
use session::{Registry, SessionEnvironments, Shared, summary_of_events};
use store::Store;
use transport::StateLock;
use types::daemon_event::RestartReason;
use types::time::{Clock, Timestamp};

pub use api::exit;
pub use config::{Config, ConfigError};
pub use error::DaemonError;
pub use runtime::runtime;
pub use shutdown::ignore_hangup;
pub use tools::{DOCUMENT_ARGUMENT, convert_document};

/// Options of the command line.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// `--config`
    pub config: Option<PathBuf>,
    /// `--socket`
    pub socket: Option<PathBuf>,
}

/// Time for parking the sessions after a stop request. With the replies and the last journal writes, the
/// shutdown takes less than 10 s.
const PARK_TIMEOUT: Duration = Duration::from_secs(8);
/// Time for the announcement of the stop to reach the send queues of clients. Sessions are parked meanwhile.
const ANNOUNCE_TIMEOUT: Duration = Duration::from_millis(500);
/// Time for sending pending replies.
const REPLY_TIMEOUT: Duration = Duration::from_secs(1);
/// Time for MCP servers to end, in addition to that of sessions.
const SERVERS_TIMEOUT: Duration = Duration::from_millis(800);
/// Time for the last writes of the journal.
const CLOSE_TIMEOUT: Duration = Duration::from_millis(500);
/// Capacity of the queue of reload requests. When it is full, clients wait.
const RELOAD_CAPACITY: usize = 8;

/// Checks the database that `options` and the environment select. Starts and changes nothing. Returns a
/// description of each problem.
///
/// # Errors
/// The database could not be found or read.
pub async fn check_database(options: Options) -> Result<Vec<String>, DaemonError> {
    let env = base::proc::variable;
    let config = Config::load(&env, options.config)?;
    let path = paths::find(&env, options.socket, &config)?.data_dir.join("agentd.db");
    if !path.exists() {
        return Ok(Vec::new());
    }
    if let Err(error @ store::StoreError::NewerSchema(_)) = store::check_schema(&path).await {
        return Err(error.into());
    }
    Ok(store::problems(&path).await?)
}

/// The system clock. No other code reads the time.
struct SystemClock;

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "this is the Clock that everybody else asks")]
    fn now(&self) -> Timestamp {
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        Timestamp(i64::try_from(since.as_millis()).unwrap_or(i64::MAX)).moved(test_offset())
    }
}

/// Milliseconds by which a test sets the clock of this process: the content of the file that `AGENTD_TEST_CLOCK` names.
/// A release has no such file.
fn test_offset() -> i64 {
    static FILE: std::sync::LazyLock<Option<String>> =
        std::sync::LazyLock::new(|| base::proc::variable("AGENTD_TEST_CLOCK"));
    if !cfg!(debug_assertions) {
        return 0;
    }
    let text = FILE.as_ref().and_then(|file| std::fs::read_to_string(file).ok());
    text.and_then(|text| text.trim().parse().ok()).unwrap_or(0)
}

/// The result of a configuration check.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConfigCheck {
    /// The files that the configuration consists of.
    pub files: Vec<PathBuf>,
    /// Keys that are set but have no effect yet, in dotted form.
    pub without_effect: Vec<String>,
}

/// Reads the configuration as a start does, but starts nothing.
///
/// # Errors
/// The error that a start would report.
pub async fn check_config(options: Options) -> Result<ConfigCheck, DaemonError> {
    let env = base::proc::variable;
    let config = Config::load(&env, options.config)?;
    let places = paths::find(&env, options.socket, &config)?;
    wiring::components(&config, &places, &HostFacts::default().with_sandboxes(&config).await, None)?;
    wiring::telemetry(&config, &env)?;
    Ok(ConfigCheck { without_effect: config::without_effect(&config), files: config.files })
}

/// Runs the daemon until a signal or `daemon.shutdown` stops it.
///
/// # Errors
/// The daemon could not start. It left nothing behind.
pub async fn run(options: Options) -> Result<(), DaemonError> {
    let start_time = std::time::Instant::now();
    let stage =
        |name: &str| tracing::debug!(stage = name, us = start_time.elapsed().as_micros() as u64, "start-up");
    // Install the handlers first, so that no later signal kills the daemon in the middle of a step.
    let mut signals = shutdown::Signals::listen()?;
    transport::set_process_name();
    // The environment may contain keys. Other processes of the user must not read it from /proc.
    if let Err(error) = nix::sys::prctl::set_dumpable(false) {
        tracing::warn!(%error, "could not protect the daemon's memory from other processes");
    }
    let env = base::proc::variable;
    // A write beyond the file size limit must return an error instead of killing the daemon. A handler, unlike
    // an ignored signal, is not inherited by tools: exec resets it (signal(7)).
    let file_too_large = SignalKind::from_raw(nix::libc::SIGXFSZ);
    let _file_too_large = tokio::signal::unix::signal(file_too_large)?;
    let config = Config::load(&env, options.config.clone())?;
    telemetry::start(&config);
    let without_effect = config::without_effect(&config);
    if !without_effect.is_empty() {
        tracing::warn!(keys = without_effect.join(", "), "configured, but without effect");
    }
    stage("loaded the configuration");
    let inherited = systemd::inherited_socket(&env)?;
    let is_socket_flag = options.socket.is_some();
    let mut places = paths::find(&env, options.socket, &config)?;
    let activated = inherited.as_ref().and_then(systemd::path);
    let is_activated = activated.is_some();
    if let Some(path) = activated {
        places.socket = path;
    }
    let overrides = paths::overrides(&env, is_socket_flag, is_activated, &places);
    // An inherited socket may have no path, or a path that clients cannot use.
    let is_found_by_path = inherited.as_ref().is_none_or(|listener| systemd::path(listener).is_some());
    let listens_at = is_found_by_path.then(|| places.socket.clone());
    // Check the configuration before anything is created, because it may not work.
    let found = HostFacts::default().with_sandboxes(&config).await;
    wiring::components(&config, &places, &found, None)?;
    wiring::telemetry(&config, &env)?;
    let ways = notifier::NotifyChannels::from_config(&config)?;
    paths::make_private(&places.data_dir)?;
    let lock = StateLock::try_lock(&places.data_dir.join("agentd.lock"))?;
    let instance = orphans::instance(&places.data_dir)?;
    let found = HostFacts { instance, open_files: orphans::raise_open_files(), ..found };
    let indexes = Indexes::new(places.data_dir.join("knowledge"));
    let components = wiring::components(&config, &places, &found, Some(&indexes))?;
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let (database, backups) = (places.data_dir.join("agentd.db"), places.data_dir.join("backups"));
    let (store, store_owner) =
        Store::open_or_recover(&database, &backups, clock.now(), &summary_of_events).await?;
    stage("database open");

    let copying = store.reader().keep_backups(backups.clone(), config.daemon.backups, Arc::clone(&clock));
    let policies = Policies::in_folder(places.data_dir.join("policy"));
    let pool = Pool::at(&places.data_dir, PoolSettings::default());
    let (database_of_jobs, database_of_schedules, database_of_retention) =
        (store.clone(), store.clone(), store.clone());
    let shared = Shared::new(store, Arc::clone(&clock), components).with_policies(policies).with_mcp(pool);
    let shared = shared.with_environments(SessionEnvironments::at(places.data_dir.join("session-env")));
    let (shared, exporter) = match wiring::telemetry(&config, &env)? {
        Some(settings) => {
            let started = otel::Exporter::start(&settings, Arc::clone(&clock));
            let (watcher, exporter) = started.map_err(DaemonError::Bug)?;
            (shared.with_observer(telemetry::ExportObserver(watcher)), Some(exporter))
        }
        None => (shared, None),
    };
    let registry = Registry::new(shared);
    registry.load_worktrees().await?;
    let (job_settings, settings_of_jobs) = watch::channel(config.jobs.clone());
    let retention_settings = settings_of_jobs.clone();
    let (jobs, mut job_runner) = Jobs::new(database_of_jobs, registry.clone(), settings_of_jobs);
    let (schedules, schedule_runner) =
        Schedules::new(database_of_schedules, jobs.clone(), Arc::clone(&clock));
    let changes_of_schedules = schedules.subscribe();
    registry.shared().mcp.set_launcher(Arc::new(wiring::ServerLauncher::new(registry.clone())));
    let index_services = wiring::IndexServices::new(registry.clone(), &config)?;
    indexes.set_services(index_services.clone());
    // Write pending grants before any call is judged.
    registry.flush_grants().await;
    // Adopt orphans before any process can be started or requested.
    let reaper = orphans::adopt_orphans()?;
    let leftovers = orphans::sweep(&registry).await;
    orphans::restore_files(&places.data_dir).await;
    orphans::sweep_spools(&registry).await;
    stage("leftovers ended");
    // Its processes have this instance's mark, so an earlier start would let the sweep end them.
    let _sandbox_probe = tools::AvailableLevels::probe_in_background();
    let (stop, hurry) = (PlannedStop::default(), CancellationToken::new());
    let started_at = clock.now();
    let info = DaemonInfo {
        socket: places.socket.display().to_string(),
        data_dir: places.data_dir.display().to_string(),
        backups,
        storage_notices: store::notices(&database),
        started_at,
        leftovers: leftovers.survivors.clone(),
        resident_bytes: base::proc::resident_bytes,
    };
    let (state, config_state) = watch::channel(ConfigState {
        files: reload::files(&config),
        values: reload::values(config.clone(), config.clone(), overrides.clone()),
        last_reload: None,
    });
    let (reload, mut reloads) = mpsc::channel(RELOAD_CAPACITY);
    let context = RpcContext {
        registry: registry.clone(),
        jobs: jobs.clone(),
        schedules,
        indexes: indexes.clone(),
        info: Arc::new(info),
        config: config_state,
        reload,
        stop: stop.clone(),
        hurry: hurry.clone(),
        refusals: Arc::default(),
    };
    let methods = rpc::methods(context).map_err(DaemonError::Bug)?;
    if signals.ask_to_stop() {
        tracing::info!("shutdown requested before the start was complete");
        store_owner.close().await;
        return Ok(());
    }
    let bound = match inherited {
        Some(listener) => transport::BoundSocket::adopt(listener)?,
        None => transport::bind(&places.socket)?,
    };
    let (counted, counted_jobs) = (registry.clone(), jobs.clone());
    let bound = bound
        .with_mark(&format!("AGENTD_INSTANCE={}", found.instance))
        .with_metrics(move || rpc::metrics_text(&rpc::metrics(&counted, &counted_jobs, started_at)));
    let accepting = CancellationToken::new();
    let serving = transport::serve(bound, methods, config.limits.transport_limits(), accepting.clone());
    if let Some(path) = &listens_at {
        lock.note_socket(path);
    }
    crate::systemd::report_ready();
    stage("socket answers");
    tracing::info!(socket = %places.socket.display(), pid = std::process::id(), "ready");

    job_runner.prepare().await;
    let (is_recovered, recovered) = oneshot::channel();
    let working = tokio::spawn(job_runner.run(recovered));
    let scheduling = tokio::spawn(schedule_runner.run());
    let recovering = registry.clone();
    let recovery = tokio::spawn(async move {
        if let Err(error) = recovering.sweep_worktrees().await {
            tracing::error!(%error, "could not list the worktrees");
        }
        match recovering.recover().await {
            Ok(0) => {}
            Ok(count) => tracing::info!(count, "resumed unfinished sessions"),
            Err(error) => tracing::error!(%error, "could not list unfinished sessions"),
        }
        leftovers.forget_processes(&recovering).await;
        // Fails only if the daemon is stopping.
        let _ = is_recovered.send(());
    });
    let warming = registry.clone();
    let warm = tokio::spawn(async move {
        let components = warming.shared().components();
        // Detect the sandboxes now, so that the first command does not wait for it.
        tokio::join!(components.models.prepare_clients(), tools::AvailableLevels::probe_once());
    });

    let copying = tokio::spawn(copying);
    let tidying = tokio::spawn(orphans::sweep_temp(registry.clone()));
    let removing = tokio::spawn(retention::run(registry.clone()));
    let releasing = tokio::spawn(memory::run(registry.clone()));
    let expiring = tokio::spawn(old_worktrees::run(registry.clone(), job_settings.subscribe()));
    let indexing = tokio::spawn(index_files::run(indexes.clone()));
    let updating = tokio::spawn(index_watch::run(indexes.clone()));
    let watching = tokio::spawn(file_watch::run(registry.clone()));
    let delivering = tokio::spawn(jobs.deliver());
    let forgetting =
        tokio::spawn(jobs::retention::run(database_of_retention, registry.clone(), retention_settings));
    let (notifier, notify_channels) = watch::channel(ways);
    let calling = tokio::spawn(notifier::run(registry.clone(), changes_of_schedules, notify_channels));

    let mut reloader = Reloader {
        flag: options.config,
        places,
        found,
        registry: registry.clone(),
        indexes: indexes.clone(),
        index_services,
        clock,
        at_start: config.clone(),
        in_force: config,
        state,
        overrides,
        notifier,
        jobs: job_settings,
    };
    let mut watchdog = systemd::Watchdog::from_env(&env);
    loop {
        tokio::select! {
            () = stop.requested().cancelled() => break,
            () = watchdog.due() => watchdog.beat(),
            wish = signals.next() => match wish {
                SignalRequest::Stop => {
                    stop.request(RestartReason::Signal);
                    break;
                }
                // The reload has logged its error.
                SignalRequest::Reload => drop(reloader.reload(&serving).await),
            },
            Some(reply) = reloads.recv() => drop(reply.send(reloader.reload(&serving).await)),
        }
    }
    tracing::info!("stopping");
    lock.note_stopping();
    stop.announce();
    // Drop the queue, so that waiting clients get an error.
    drop(reloads);
    crash::point("C23.told");
    let park_by = Instant::now() + PARK_TIMEOUT;
    serving.stop_accepting();
    crate::systemd::report_stopping();
    warm.abort();
    // Stop the jobs before sessions are parked. The next daemon goes on with them.
    scheduling.abort();
    working.abort();
    copying.abort();
    tidying.abort();
    removing.abort();
    releasing.abort();
    expiring.abort();
    indexing.abort();
    updating.abort();
    watching.abort();
    calling.abort();
    delivering.abort();
    forgetting.abort();
    // Stop the recovery. The next daemon loads the remaining sessions.
    recovery.abort();
    let _ = recovery.await;
    // Close the indexes while sessions are open, because the usage of their last model calls is booked in sessions.
    indexes.close().await;
    reloader.index_services.finish_bookings().await;
    tokio::join!(
        shutdown::park(&registry, &mut signals, &hurry, park_by),
        stop.wait_announced(ANNOUNCE_TIMEOUT)
    );
    if tokio::time::timeout(SERVERS_TIMEOUT, registry.shared().mcp.close()).await.is_err() {
        tracing::warn!("MCP servers did not end in time; the next start ends them");
    }
    crash::point("C23.parked");
    accepting.cancel();
    serving.wait_finished(REPLY_TIMEOUT).await;
    crash::point("C23.closing");
    reaper.abort();
    if tokio::time::timeout(CLOSE_TIMEOUT, store_owner.close()).await.is_err() {
        tracing::warn!("the journal did not close in time; no acknowledged event is lost");
    }
    crash::point("C23.closed");
    if let Some(exporter) = exporter {
        // Send the last spans. A receiver that is too slow does not get them.
        exporter.finish_within(CLOSE_TIMEOUT).await;
    }
    tracing::info!("stopped");
    Ok(())
}
