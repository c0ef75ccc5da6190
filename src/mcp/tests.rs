//! Tests of the start, restart and end of servers, with a launcher whose processes are tasks.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream};
use tokio::sync::Notify;
use tokio::task::JoinHandle;

use super::{
    LaunchedProcess, Launcher, Lease, Pool, PoolSettings, ServerConfig, ServerProcess, ServerSource,
    ServerUse,
};
use base::sync::lock;
use types::mcp::McpState;
use types::server_program::ServerProgram;
use types::session_environment::SessionEnvironment;

/// Longest wait for a state.
const STATE_TIMEOUT: Duration = Duration::from_secs(20);

#[derive(Default)]
struct ProcessCounts {
    starts: AtomicUsize,
    ends: AtomicUsize,
    /// Number of first starts that fail.
    failures: AtomicUsize,
    /// Whether processes answer only after `gate`.
    is_gated: AtomicBool,
    gate: Notify,
    /// The environments of the sessions for which processes were started.
    environments: Mutex<Vec<Option<SessionEnvironment>>>,
}

struct FakeLauncher(Arc<ProcessCounts>);

struct FakeProcess {
    work: Option<JoinHandle<()>>,
    counts: Arc<ProcessCounts>,
}

impl ServerProcess for FakeProcess {
    fn wait(&mut self) -> BoxFuture<'_, String> {
        Box::pin(async {
            match &mut self.work {
                Some(work) => _ = work.await,
                None => return "exited with status 7".into(),
            }
            self.work = None;
            "exited with status 0".into()
        })
    }

    fn end(self: Box<Self>) -> BoxFuture<'static, ()> {
        self.counts.ends.fetch_add(1, Ordering::SeqCst);
        Box::pin(async {})
    }
}

impl Launcher for FakeLauncher {
    fn variable(&self, _: &str, _: ServerSource) -> Result<Option<String>, String> {
        Ok(None)
    }

    fn launch(&self, program: ServerProgram) -> BoxFuture<'static, Result<LaunchedProcess, String>> {
        let counts = Arc::clone(&self.0);
        counts.starts.fetch_add(1, Ordering::SeqCst);
        lock(&counts.environments).push(program.session_environment);
        let fails = counts
            .failures
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1))
            .is_ok();
        let ((stdin, input), (output, stdout)) = (tokio::io::duplex(1 << 16), tokio::io::duplex(1 << 16));
        let gated = Arc::clone(&counts);
        let work = (!fails).then(|| {
            tokio::spawn(async move {
                if gated.is_gated.load(Ordering::SeqCst) {
                    gated.gate.notified().await;
                }
                serve(input, output).await;
            })
        });
        Box::pin(async move {
            Ok(LaunchedProcess {
                stdin: Box::new(stdin),
                stdout: Box::new(stdout),
                stderr: Box::new(tokio::io::empty()),
                process: Box::new(FakeProcess { work, counts }),
            })
        })
    }
}

/// A server with one tool, until its input ends.
async fn serve(input: DuplexStream, mut output: DuplexStream) {
    let mut lines = BufReader::new(input).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        let request: Value = serde_json::from_str(&line).expect("JSON");
        let Some(id) = request.get("id") else { continue };
        let result = match request["method"].as_str() {
            Some("initialize") => json!({
                "protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
                "serverInfo": {"name": "fake", "version": "1"},
            }),
            Some("tools/list") => json!({"tools": [{"name": "t", "inputSchema": {"type": "object"}}]}),
            _ => {
                let error = json!({"code": -32601, "message": "no such method"});
                let reply = json!({"jsonrpc": "2.0", "id": id, "error": error});
                let _ = output.write_all(format!("{reply}\n").as_bytes()).await;
                continue;
            }
        };
        let reply = json!({"jsonrpc": "2.0", "id": id, "result": result});
        let _ = output.write_all(format!("{reply}\n").as_bytes()).await;
    }
}

fn pool(settings: PoolSettings) -> (Pool, Arc<ProcessCounts>, PathBuf) {
    let counts: Arc<ProcessCounts> = Arc::default();
    let pool = Pool::at(Path::new("/nonexistent"), settings);
    pool.set_launcher(Arc::new(FakeLauncher(Arc::clone(&counts))));
    (pool, counts, PathBuf::from("/"))
}

fn acquire(pool: &Pool, workspace: &Path) -> Lease {
    acquire_with(pool, workspace, None)
}

fn acquire_with(pool: &Pool, workspace: &Path, environment: Option<&SessionEnvironment>) -> Lease {
    let config = ServerConfig { command: Some("fake".into()), ..ServerConfig::default() };
    let usage = ServerUse {
        name: "fake",
        config: &config,
        workspace,
        unattended: false,
        source: ServerSource::User,
        environment,
    };
    pool.acquire(&usage).expect("acquired")
}

/// Waits until a statement is true.
async fn wait_until(what: &str, is_true: impl Fn() -> bool) {
    let wait = async {
        while !is_true() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(STATE_TIMEOUT, wait).await.unwrap_or_else(|_| panic!("not in time: {what}"));
}

#[tokio::test]
async fn server_ends_some_time_after_its_last_user() {
    let (pool, counts, workspace) =
        pool(PoolSettings { linger: Duration::from_millis(50), ..PoolSettings::default() });
    let (one, two) = (acquire(&pool, &workspace), acquire(&pool, &workspace));
    assert_eq!(one.wait_settled(STATE_TIMEOUT).await.state, McpState::Ready);
    assert_eq!(two.wait_settled(STATE_TIMEOUT).await.state, McpState::Ready);
    assert_eq!((pool.running(), counts.starts.load(Ordering::SeqCst)), (1, 1), "both use one server");
    drop(one);
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert_eq!((pool.running(), two.view().state), (1, McpState::Ready), "it has a user");
    drop(two);
    wait_until("the end of the server", || pool.running() == 0).await;
    assert_eq!(counts.ends.load(Ordering::SeqCst), 1);
    let later = acquire(&pool, &workspace);
    assert_eq!(later.wait_settled(STATE_TIMEOUT).await.state, McpState::Ready);
    assert_eq!(counts.starts.load(Ordering::SeqCst), 2, "a later user starts a new one");
    drop(later);
    pool.close().await;
}

#[tokio::test]
async fn sessions_share_program_only_with_equal_environments() {
    let (pool, counts, workspace) = pool(PoolSettings::default());
    let environment = |path: &str| SessionEnvironment([("PATH".to_owned(), path.to_owned())].into());
    let (a, b) = (environment("/a"), environment("/b"));
    let mut leases = Vec::new();
    for used in [None, Some(&a), Some(&b), Some(&a), None] {
        leases.push(acquire_with(&pool, &workspace, used));
        assert_eq!(leases.last().expect("one").wait_settled(STATE_TIMEOUT).await.state, McpState::Ready);
    }
    assert_eq!(*lock(&counts.environments), [None, Some(a), Some(b)]);
    drop(leases);
    pool.close().await;
}

#[tokio::test]
async fn user_that_returns_in_time_keeps_server() {
    let (pool, counts, workspace) =
        pool(PoolSettings { linger: Duration::from_secs(600), ..PoolSettings::default() });
    let one = acquire(&pool, &workspace);
    one.wait_settled(STATE_TIMEOUT).await;
    drop(one);
    let two = acquire(&pool, &workspace);
    assert_eq!(two.wait_settled(STATE_TIMEOUT).await.state, McpState::Ready);
    assert_eq!(counts.starts.load(Ordering::SeqCst), 1);
    pool.close().await;
    assert_eq!(counts.ends.load(Ordering::SeqCst), 1, "a stop of the daemon does not linger");
}

#[tokio::test]
async fn failing_server_rests_after_several_failures_until_it_is_tried_again() {
    let settings = PoolSettings {
        backoff: Duration::from_millis(1),
        breaker_pause: Duration::from_secs(3_600),
        ..PoolSettings::default()
    };
    let (pool, counts, workspace) = pool(settings);
    // Each try starts twice: for the newest revision of the protocol and for older ones.
    counts.failures.store(10, Ordering::SeqCst);
    let lease = acquire(&pool, &workspace);
    let is_resting =
        || lease.view().error.is_some_and(|error| error.contains("failed several times in a row"));
    wait_until("the rest", is_resting).await;
    assert_eq!(counts.starts.load(Ordering::SeqCst), 10, "five tries");
    let error = lease.view().error.unwrap_or_default();
    assert!(error.contains("exited with status 7") && !error.contains("[agentd]"), "{error}");
    let log = lease.log();
    assert_eq!(log.iter().filter(|line| line.contains("next try in")).count(), 5, "{log:?}");
    lease.retry_now();
    wait_until("the retry", || lease.view().state == McpState::Ready).await;
    assert_eq!(counts.starts.load(Ordering::SeqCst), 11);
    drop(lease);
    pool.close().await;
}

#[tokio::test]
async fn server_that_was_never_ready_delays_only_first_turn() {
    let turn_wait = Duration::from_millis(50);
    let (pool, counts, workspace) = pool(PoolSettings { turn_wait, ..PoolSettings::default() });
    counts.is_gated.store(true, Ordering::SeqCst);
    let lease = acquire(&pool, &workspace);
    assert!(lease.turn_wait() <= turn_wait);
    assert_eq!(lease.wait_settled(lease.turn_wait()).await.state, McpState::Starting);
    wait_until("the end of the first wait", || lease.turn_wait().is_zero()).await;
    assert_eq!(
        lease.wait_settled(lease.turn_wait()).await.state,
        McpState::Starting,
        "the next turn does not wait"
    );
    counts.gate.notify_one();
    assert_eq!(lease.wait_settled(lease.start_limit()).await.state, McpState::Ready);
    assert_eq!(counts.starts.load(Ordering::SeqCst), 1, "it was started once");
    assert!(lease.turn_wait() > turn_wait, "a restart is short");
    drop(lease);
    pool.close().await;
}

#[tokio::test]
async fn server_beyond_its_startup_timeout_fails_with_advice() {
    let backoff = Duration::from_secs(3_600);
    let (pool, counts, workspace) = pool(PoolSettings { backoff, ..PoolSettings::default() });
    counts.is_gated.store(true, Ordering::SeqCst);
    let config = ServerConfig {
        command: Some("fake".into()),
        startup_timeout: Some(types::config_values::ConfigDuration::from_millis(20)),
        ..ServerConfig::default()
    };
    let usage = ServerUse {
        name: "fake",
        config: &config,
        workspace: &workspace,
        unattended: false,
        source: ServerSource::User,
        environment: None,
    };
    let lease = pool.acquire(&usage).expect("acquired");
    wait_until("the failure", || lease.view().state == McpState::Failed).await;
    let error = lease.view().error.unwrap_or_default();
    assert!(error.contains("not ready within 0.02 s") && error.contains("startup_timeout"), "{error}");
    assert_eq!(counts.starts.load(Ordering::SeqCst), 1);
    drop(lease);
    pool.close().await;
}
