//! Floor 5: the composition root. [`run`] is the start-up story, read from top to bottom.

mod activation;
mod config;
mod error;
mod notify;
mod places;
mod shutdown;
mod telemetry;
mod wiring;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::crash;
use crate::rpc::{self, Info, Office};
use crate::session::Registry;
use crate::store::Store;
use crate::transport::{self, StateLock};
use crate::types::time::{Clock, Timestamp};

pub use config::{Config, ConfigError};
pub use error::DaemonError;

/// What the command line said.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// `--config`
    pub config: Option<PathBuf>,
    /// `--socket`
    pub socket: Option<PathBuf>,
}

/// Sessions get this long to stop; with the replies that follow, the whole stays under 10 s (S12).
const PARK_WITHIN: Duration = Duration::from_secs(8);
/// Pending replies get this long.
const REPLY_WITHIN: Duration = Duration::from_secs(1);

/// The system's clock: the only place that asks it.
struct SystemClock;

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "this is the Clock that everybody else asks")]
    fn now(&self) -> Timestamp {
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        Timestamp(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
    }
}

/// Runs the daemon until a signal or `daemon.shutdown` stops it.
///
/// # Errors
/// It could not start; nothing was left behind.
pub async fn run(options: Options) -> Result<(), DaemonError> {
    let began = std::time::Instant::now();
    let stage =
        |name: &str| tracing::debug!(stage = name, us = began.elapsed().as_micros() as u64, "start-up");
    // The environment may hold keys: no process of ours may read it out of /proc.
    if let Err(error) = nix::sys::prctl::set_dumpable(false) {
        tracing::warn!(%error, "the daemon's memory cannot be closed to other processes");
    }
    let env = |name: &str| std::env::var(name).ok();
    let config = Config::load(&env, options.config)?;
    telemetry::start(&config);
    stage("configuration read");
    let inherited = activation::inherited(&env)?;
    let mut places = places::find(&env, options.socket, &config)?;
    if let Some(path) = inherited.as_ref().and_then(activation::path) {
        places.socket = path;
    }
    places::make_private(&places.data_dir)?;
    let _lock = StateLock::try_lock(&places.data_dir.join("agentd.lock"))?;
    let (store, store_owner) = Store::open(&places.data_dir.join("agentd.db")).await?;
    stage("database open");

    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let house = wiring::house(&config, &places, store, Arc::clone(&clock))?;
    let registry = Registry::new(house);
    let stop = CancellationToken::new();
    let hurry = Arc::default();
    let info = Info {
        socket: places.socket.display().to_string(),
        data_dir: places.data_dir.display().to_string(),
        config_files: config.files.iter().map(|file| file.display().to_string()).collect(),
        started_at: clock.now(),
    };
    let office = Office {
        registry: registry.clone(),
        info: Arc::new(info),
        stop: stop.clone(),
        hurry: Arc::clone(&hurry),
    };
    let methods = rpc::methods(office).map_err(DaemonError::Bug)?;
    // Before anybody is told that we are ready: from then on a signal must not find us unprepared.
    let signals = shutdown::Signals::listen()?;
    let bound = match inherited {
        Some(listener) => transport::Bound::adopt(listener)?,
        None => transport::bind(&places.socket)?,
    };
    let accepting = CancellationToken::new();
    let serving = transport::serve(bound, methods, config.limits.of_transport(), accepting.clone());
    notify::ready();
    stage("socket answers");
    tracing::info!(socket = %places.socket.display(), pid = std::process::id(), "ready");

    let recovering = registry.clone();
    let recovery = tokio::spawn(async move {
        match recovering.recover().await {
            Ok(0) => {}
            Ok(count) => tracing::info!(count, "unfinished sessions picked up"),
            Err(error) => tracing::error!(%error, "unfinished sessions could not be listed"),
        }
    });
    let warming = registry.clone();
    let warm = tokio::spawn(async move { warming.house().models.warm().await });

    let signals = shutdown::wait(signals, &stop).await;
    tracing::info!("stopping");
    crash::point("C23.told");
    notify::stopping();
    serving.stop_accepting();
    warm.abort();
    // Loading what was unfinished must not hold up the end: it is still there at the next start.
    let recovery_stops = recovery.abort_handle();
    if tokio::time::timeout(Duration::from_secs(1), recovery).await.is_err() {
        recovery_stops.abort();
    }
    shutdown::park(&registry, signals, &hurry, PARK_WITHIN).await;
    crash::point("C23.parked");
    accepting.cancel();
    serving.finished(REPLY_WITHIN).await;
    crash::point("C23.closing");
    store_owner.close().await;
    crash::point("C23.closed");
    tracing::info!("stopped");
    Ok(())
}
