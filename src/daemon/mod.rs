//! The composition root. Read [`run`] from top to bottom for the order of the start.

mod background;
mod clock;
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
mod start;
mod systemd;
mod telemetry;
mod wiring;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::signal::unix::{Signal, SignalKind};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use background::BackgroundTasks;
use reload::Reloader;
use shutdown::{SignalRequest, Signals};
use start::{CheckedStart, OpenDaemon, OpenSocket, StartLog};
use wiring::HostFacts;

use base::crash;
use rpc::{ConfigState, DaemonInfo, PlannedStop, ReloadRequest, RpcContext};
use transport::RunningServer;
use types::daemon_event::RestartReason;

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
/// Time for background tasks to end. It is a part of the time for parking.
const TASKS_TIMEOUT: Duration = Duration::from_secs(2);
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

/// Reads the configuration as a start does, but starts nothing. Returns the files that it consists of.
///
/// # Errors
/// The error that a start would report.
pub async fn check_config(options: Options) -> Result<Vec<PathBuf>, DaemonError> {
    let env = base::proc::variable;
    let config = Config::load(&env, options.config)?;
    let places = paths::find(&env, options.socket, &config)?;
    wiring::components(&config, &places, &HostFacts::default().with_sandboxes(&config).await, None)?;
    wiring::telemetry(&config, &env)?;
    Ok(config.files)
}

/// Runs the daemon until a signal or `daemon.shutdown` stops it.
///
/// # Errors
/// The daemon could not start. It left nothing behind.
pub async fn run(options: Options) -> Result<(), DaemonError> {
    let log = StartLog::begin();
    // Install the handlers first, so that no later signal kills the daemon in the middle of a step.
    let mut signals = Signals::listen()?;
    let _file_too_large = protect_process()?;
    let mut start = CheckedStart::read(&options, &log).await?;
    let lock = start.lock()?;
    let (daemon, runners) = OpenDaemon::open(&start, &log).await?;
    let (reaper, leftovers) = daemon.end_leftovers(&start.places).await?;
    log.passed("leftovers ended");
    // Its processes have this instance's mark, so an earlier start would let the sweep end them.
    let _sandbox_probe = tools::AvailableLevels::probe_in_background();

    let (stop, hurry) = (PlannedStop::default(), CancellationToken::new());
    let (reload, reloads) = mpsc::channel(RELOAD_CAPACITY);
    let (config_state, config) = watch::channel(ConfigState {
        files: reload::files(&start.config),
        values: reload::values(start.config.clone(), start.config.clone(), start.overrides.clone()),
        last_reload: None,
    });
    let info = Arc::new(DaemonInfo {
        socket: start.places.socket.display().to_string(),
        data_dir: start.places.data_dir.display().to_string(),
        backups: daemon.backups.clone(),
        storage_notices: store::notices(&daemon.database),
        started_at: daemon.clock.now(),
        leftovers: leftovers.survivors.clone(),
        resident_bytes: base::proc::resident_bytes,
    });
    let context = RpcContext {
        registry: daemon.registry.clone(),
        jobs: daemon.jobs.clone(),
        schedules: daemon.schedules.clone(),
        indexes: daemon.indexes.clone(),
        info,
        config,
        reload,
        stop: stop.clone(),
        hurry: hurry.clone(),
        refusals: Arc::default(),
    };
    if signals.ask_to_stop() {
        tracing::info!("shutdown requested before the start was complete");
        daemon.store_owner.close().await;
        return Ok(());
    }
    let socket = OpenSocket::open(&mut start, lock, context)?;
    systemd::report_ready();
    log.passed("socket answers");
    tracing::info!(socket = %start.places.socket.display(), pid = std::process::id(), "ready");

    let (notifier, channels) = watch::channel(start.channels);
    let backups = start.config.daemon.backups;
    let mut tasks = BackgroundTasks::spawn(&daemon, runners, leftovers, channels, backups).await;
    let mut reloader = Reloader {
        flag: options.config,
        places: start.places,
        host: start.host,
        registry: daemon.registry.clone(),
        indexes: daemon.indexes.clone(),
        index_services: Arc::clone(&daemon.index_services),
        clock: Arc::clone(&daemon.clock),
        at_start: start.config.clone(),
        in_force: start.config,
        state: config_state,
        overrides: start.overrides,
        notifier,
        jobs: daemon.job_settings.clone(),
    };
    wait_for_stop(&stop, &mut signals, &mut tasks, &mut reloader, &socket.server, reloads).await;
    stop_daemon(daemon, tasks, socket, (&mut signals, &stop, &hurry), reaper).await;
    Ok(())
}

/// Protects this process from others and from the file size limit. The limit stays harmless while the listener exists.
fn protect_process() -> std::io::Result<Signal> {
    transport::set_process_name();
    // The environment may contain keys. Other processes of the user must not read it from /proc.
    if let Err(error) = base::proc::refuse_inspection() {
        tracing::warn!(%error, "could not protect the daemon's memory from other processes");
    }
    // A write beyond the file size limit must return an error instead of killing the daemon. A handler, unlike
    // an ignored signal, is not inherited by tools: exec resets it (signal(7)).
    tokio::signal::unix::signal(SignalKind::from_raw(nix::libc::SIGXFSZ))
}

/// Reloads the configuration on request, until a signal or a client stops the daemon. Reload requests that still
/// wait get an error, because their queue is dropped.
async fn wait_for_stop(
    stop: &PlannedStop,
    signals: &mut Signals,
    tasks: &mut BackgroundTasks,
    reloader: &mut Reloader,
    serving: &RunningServer,
    mut reloads: mpsc::Receiver<ReloadRequest>,
) {
    let mut watchdog = systemd::Watchdog::from_env(&base::proc::variable);
    loop {
        tokio::select! {
            () = stop.requested().cancelled() => return,
            () = watchdog.due() => watchdog.beat(),
            () = tasks.log_panic() => {}
            wish = signals.next() => match wish {
                SignalRequest::Stop => {
                    stop.request(RestartReason::Signal);
                    return;
                }
                // The reload has logged its error.
                SignalRequest::Reload => drop(reloader.reload(serving).await),
            },
            Some(reply) = reloads.recv() => drop(reply.send(reloader.reload(serving).await)),
        }
    }
}

/// Stops the parts in order, so that no client gets a reply about something that is not stored.
async fn stop_daemon(
    daemon: OpenDaemon,
    tasks: BackgroundTasks,
    socket: OpenSocket,
    (signals, stop, hurry): (&mut Signals, &PlannedStop, &CancellationToken),
    reaper: JoinHandle<()>,
) {
    tracing::info!("stopping");
    socket.lock.note_stopping();
    stop.announce();
    crash::point("C23.told");
    let park_by = Instant::now() + PARK_TIMEOUT;
    socket.server.stop_accepting();
    systemd::report_stopping();
    // Stop the jobs before sessions are parked, and the recovery. The next daemon continues both.
    tasks.stop_within(TASKS_TIMEOUT).await;
    // Close the indexes while sessions are open, because the usage of their last model calls is booked in sessions.
    daemon.indexes.close().await;
    daemon.index_services.finish_bookings().await;
    tokio::join!(
        shutdown::park(&daemon.registry, signals, hurry, park_by),
        stop.wait_announced(ANNOUNCE_TIMEOUT)
    );
    if tokio::time::timeout(SERVERS_TIMEOUT, daemon.registry.shared().mcp.close()).await.is_err() {
        tracing::warn!("MCP servers did not end in time; the next start ends them");
    }
    crash::point("C23.parked");
    socket.close.cancel();
    socket.server.wait_finished(REPLY_TIMEOUT).await;
    crash::point("C23.closing");
    reaper.abort();
    if tokio::time::timeout(CLOSE_TIMEOUT, daemon.store_owner.close()).await.is_err() {
        tracing::warn!("the journal did not close in time; no acknowledged event is lost");
    }
    crash::point("C23.closed");
    if let Some(exporter) = daemon.exporter {
        // Send the last spans. A receiver that is too slow does not get them.
        exporter.finish_within(CLOSE_TIMEOUT).await;
    }
    tracing::info!("stopped");
}
