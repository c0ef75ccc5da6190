//! Accepts connections within the limits, and ends them in an orderly way.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, RwLock};
use std::time::Duration;

use jsonrpsee::{MethodCallback, Methods};
use nix::errno::Errno;
use nix::sys::resource::{Resource, getrlimit};
use tokio::net::{UnixListener, UnixStream};
use tokio::task::JoinSet;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::envelope::NO_ID;
use super::limits::Limits;
use super::reply::{Fault, Kind};
use super::socket::{BoundSocket, SocketFile};
use crate::connection_task::serve_connection;
use crate::server_state::ServerState;
use base::sync::{lock, read, write};

/// Pauses after the system had no free descriptor or memory for a further connection.
const MIN_ACCEPT_PAUSE: Duration = Duration::from_millis(10);
const MAX_ACCEPT_PAUSE: Duration = Duration::from_secs(1);

/// Interval of the checks whether the socket's file is there. A client waits a little longer for it.
const FILE_CHECK_INTERVAL: Duration = Duration::from_millis(500);

/// Minimum number of descriptors that are not used for connections.
const SPARE_DESCRIPTORS: usize = 46;

/// The state for new connections. It is replaced when the limits change.
#[derive(Clone)]
struct CurrentState(Arc<RwLock<Arc<ServerState>>>);

impl CurrentState {
    fn get(&self) -> Arc<ServerState> {
        Arc::clone(&read(&self.0))
    }
}

/// The file of the socket, unless it was inherited. The task that accepts connections makes it again if it is lost.
type SharedFile = Arc<Mutex<Option<SocketFile>>>;

/// A socket being served. Dropping it ends everything at once; [`RunningServer::wait_finished`] ends it in an
/// orderly way.
pub struct RunningServer {
    current: CurrentState,
    accepting: CancellationToken,
    /// One task, which owns all the others.
    task: JoinSet<()>,
    file: SharedFile,
    path: Option<PathBuf>,
}

impl std::fmt::Debug for RunningServer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RunningServer").field("path", &self.path).finish_non_exhaustive()
    }
}

/// Serves `methods` on a bound socket until `stop` is cancelled. Must be called inside a tokio runtime.
///
/// When `stop` is cancelled, the server accepts no further call, subscriptions end, and running calls
/// are answered. Connections close after their peers have received all queued data.
///
/// Methods must be plain ones (`register_method`, `register_async_method`, `register_blocking_method`).
/// Subscriptions go through [`Connection::subscribe`](super::Connection::subscribe); a subscription
/// method of jsonrpsee replies with an error.
///
/// Connections never use all descriptors of the process, because their calls need some as well.
pub fn serve(
    bound: BoundSocket,
    methods: impl Into<Methods>,
    limits: Limits,
    stop: CancellationToken,
) -> RunningServer {
    let methods = methods.into();
    for name in methods.method_names() {
        if let Some(MethodCallback::Subscription(_) | MethodCallback::Unsubscription(_)) =
            methods.method(name)
        {
            tracing::error!(name, "a method is registered as a jsonrpsee subscription; it cannot be called");
        }
    }
    let path = bound.path().map(Path::to_owned);
    let (listener, file, (mark, page)) = bound.into_parts();
    let accepting = stop.child_token();
    let uid = nix::unistd::geteuid().as_raw();
    let limits = limit_to_descriptors(limits);
    let server = Arc::new(ServerState { methods, limits, stop, uid, mark, page, open: Arc::default() });
    let current = CurrentState(Arc::new(RwLock::new(server)));
    let file: SharedFile = Arc::new(Mutex::new(file));
    let mut task = JoinSet::new();
    task.spawn(accept_all(listener, Arc::clone(&file), current.clone(), accepting.clone()));
    RunningServer { current, accepting, task, file, path }
}

impl RunningServer {
    /// Number of open connections.
    pub fn connections(&self) -> usize {
        self.current.get().open.load(Ordering::Relaxed)
    }

    /// Path of the socket, unless it was inherited.
    pub fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// Sets the limits for new connections; open connections keep theirs.
    pub fn set_limits(&self, limits: Limits) {
        let limits = limit_to_descriptors(limits);
        let mut current = write(&self.current.0);
        let old = &**current;
        let (methods, stop, open) = (old.methods.clone(), old.stop.clone(), Arc::clone(&old.open));
        let (mark, page) = (old.mark.clone(), old.page.clone());
        *current = Arc::new(ServerState { methods, limits, stop, uid: old.uid, mark, page, open });
    }

    /// Accepts no further connection; open ones are still served.
    pub fn stop_accepting(&self) {
        self.accepting.cancel();
    }

    /// Waits for `stop`, then at most `grace` until every connection has ended. Then it closes the
    /// remaining ones and removes the socket. Returns true if no connection had to be closed.
    pub async fn wait_finished(mut self, grace: Duration) -> bool {
        self.current.get().stop.cancelled().await;
        let in_time = tokio::time::timeout(grace, self.task.join_next()).await.is_ok();
        self.task.shutdown().await;
        drop(lock(&self.file).take());
        in_time
    }
}

/// Makes a lost socket again. Warns at the first of several failures.
fn renew_lost_socket(file: &SharedFile, has_warned: &mut bool) -> Option<UnixListener> {
    let mut file = lock(file);
    let file = file.as_mut().filter(|file| file.is_lost())?;
    match file.bind_again() {
        Ok(listener) => {
            tracing::warn!("the socket was removed; made it again");
            *has_warned = false;
            Some(listener)
        }
        Err(error) => {
            if !*has_warned {
                tracing::warn!(%error, "the socket was removed and could not be made again; trying further");
            }
            *has_warned = true;
            None
        }
    }
}

async fn accept_all(
    mut listener: UnixListener,
    file: SharedFile,
    current: CurrentState,
    accepting: CancellationToken,
) {
    let mut connections = JoinSet::new();
    let mut file_checks = tokio::time::interval(FILE_CHECK_INTERVAL);
    file_checks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let has_file = lock(&file).is_some();
    let mut has_warned = false;
    let mut pause = MIN_ACCEPT_PAUSE;
    let mut number = 0u64;
    loop {
        let accepted = tokio::select! {
            biased;
            () = accepting.cancelled() => break,
            Some(ended) = connections.join_next() => {
                log_panic(ended);
                continue;
            }
            accepted = listener.accept() => accepted,
            _ = file_checks.tick(), if has_file => {
                if let Some(renewed) = renew_lost_socket(&file, &mut has_warned) {
                    listener = renewed;
                }
                continue;
            }
        };
        let server = current.get();
        match accepted {
            Ok((socket, _)) if connections.len() >= server.limits.max_connections => {
                refuse_connection(&socket, server.limits.max_connections);
            }
            Ok((socket, _)) => {
                pause = MIN_ACCEPT_PAUSE;
                number += 1;
                connections.spawn(serve_connection(socket, number, server));
            }
            Err(e) if is_shortage(&e) => {
                if pause == MIN_ACCEPT_PAUSE {
                    tracing::warn!(error = %e, open = connections.len(), "could not accept connections; trying again");
                }
                tokio::select! {
                    () = accepting.cancelled() => break,
                    () = sleep(pause) => {}
                    Some(ended) = connections.join_next() => log_panic(ended),
                }
                pause = (pause * 2).min(MAX_ACCEPT_PAUSE);
            }
            // This peer has disconnected; accept the next one.
            Err(e) => {
                tracing::debug!(error = %e, "could not accept a connection");
                sleep(MIN_ACCEPT_PAUSE).await;
            }
        }
    }
    drop(listener);
    while let Some(ended) = connections.join_next().await {
        log_panic(ended);
    }
}

/// Reserves descriptors for the database, models and tools: many connections must not stop the work.
fn limit_to_descriptors(mut limits: Limits) -> Limits {
    let Ok((soft, _)) = getrlimit(Resource::RLIMIT_NOFILE) else { return limits };
    let soft = usize::try_from(soft).unwrap_or(usize::MAX);
    let most = soft.saturating_sub((soft / 8).max(SPARE_DESCRIPTORS)).max(1);
    if most < limits.max_connections {
        tracing::info!(
            connections = most,
            descriptors = soft,
            "reached the limit of connections that the open-file limit allows"
        );
        limits.max_connections = most;
    }
    limits
}

/// Out of descriptors or memory: temporary, so accept again after a pause.
fn is_shortage(e: &io::Error) -> bool {
    e.raw_os_error()
        .map(Errno::from_raw)
        .is_some_and(|errno| matches!(errno, Errno::EMFILE | Errno::ENFILE | Errno::ENOBUFS | Errno::ENOMEM))
}

/// Sends the reason without waiting and closes the connection. The peer's framing is not known yet, but
/// a line of JSON is readable in any case.
fn refuse_connection(socket: &UnixStream, most: usize) {
    let fault = Fault::new(Kind::Overloaded, format!("there are already {most} connections; try again"));
    let mut line = fault.reply(NO_ID);
    line.push(b'\n');
    let _ = socket.try_write(&line);
}

fn log_panic(ended: Result<(), tokio::task::JoinError>) {
    if let Err(e) = ended
        && e.is_panic()
    {
        tracing::error!(error = %e, "a connection ended unexpectedly");
    }
}
