//! A daemon and an `agentctl` of different versions: they work together, or say which of the two to update.

use serde_json::{Value, json};
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions as _, Connection as _};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::UnixListener;
use tokio::task::{JoinHandle, JoinSet};

use super::agentctl::ctl;
use crate::support::daemon::TestDaemon;

type Answer = fn(&Value, &str) -> Result<Value, Value>;

/// A scripted daemon at the socket of `daemon`, which does not run. It answers from `known` replies.
struct OtherDaemon(JoinHandle<()>);

impl Drop for OtherDaemon {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl OtherDaemon {
    fn start(daemon: &TestDaemon, known: Value, answer: Answer) -> Self {
        let socket = daemon.socket();
        std::fs::create_dir_all(socket.parent().expect("a folder")).expect("made");
        let listener = UnixListener::bind(socket).expect("bound");
        Self(tokio::spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                let known = known.clone();
                connections.spawn(async move {
                    let (read, mut write) = stream.into_split();
                    let mut lines = BufReader::new(read).lines();
                    while let Ok(Some(line)) = lines.next_line().await {
                        let request: Value = serde_json::from_str(&line).expect("a request");
                        let mut reply = json!({"jsonrpc": "2.0", "id": request["id"]});
                        match answer(&known, request["method"].as_str().expect("a method")) {
                            Ok(result) => reply["result"] = result,
                            Err(error) => reply["error"] = error,
                        }
                        if write.write_all(format!("{reply}\n").as_bytes()).await.is_err() {
                            return;
                        }
                    }
                });
            }
        }))
    }
}

fn error(code: i64, kind: &str, message: &str) -> Value {
    json!({"code": code, "message": message, "data": {"kind": kind, "retryable": false}})
}

fn hello(version: &str) -> Result<Value, Value> {
    Ok(json!({"protocol_version": 1, "event_version": 9, "version": version, "name": "agentctl",
        "role": "controller", "of_a_later_version": {"a": [1]}}))
}

/// Runs a command against such a daemon and returns the exit code and what it said.
async fn run_against(known: Value, answer: Answer, args: &[&str]) -> (i32, String) {
    let daemon = TestDaemon::builder().build().await;
    let _other = OtherDaemon::start(&daemon, known, answer);
    let output = ctl(&daemon, args).await;
    (output.code, output.out + &output.err)
}

#[tokio::test]
async fn daemon_of_other_protocol_names_the_program_to_update() {
    let newer: Answer = |_, _| {
        let mut refusal =
            error(-32016, "unsupported_version", "protocol version 1 is not served; this daemon speaks 2");
        refusal["data"]["supported"] = json!([2]);
        refusal["data"]["version"] = json!("9.0.0");
        Err(refusal)
    };
    let older: Answer = |_, _| {
        // The first release did not name its version.
        let mut refusal =
            error(-32016, "unsupported_version", "protocol version 1 is not served; this daemon speaks 0");
        refusal["data"]["supported"] = json!([0]);
        Err(refusal)
    };
    for (answer, words) in [
        (newer, "the running agentd 9.0.0 is newer than agentctl"),
        (older, "update agentd, then `agentctl daemon restart`"),
    ] {
        for args in [&["ps"][..], &["run", "hello"], &["attach", "1"], &["jobs"], &["daemon", "status"]] {
            let (code, text) = run_against(Value::Null, answer, args).await;
            assert!(
                code == 4 && text.contains(words) && text.lines().count() == 1,
                "{args:?} {code}: {text}"
            );
        }
    }
}

#[tokio::test]
async fn real_daemon_names_its_versions_when_it_refuses_a_protocol() {
    let daemon = TestDaemon::start().await;
    let client = daemon.anonymous_client().await;
    let refusal = client.refused("daemon.hello", json!({"protocol_version": 99})).await;
    assert_eq!((refusal.kind.as_str(), &refusal.data["supported"]), ("unsupported_version", &json!([1])));
    assert_eq!(refusal.data["version"], env!("CARGO_PKG_VERSION"));
    // A client that names no version, or one more parameter than the daemon knows, is told so.
    client.call("daemon.hello", json!({})).await;
    let unknown = client.refused("daemon.hello", json!({"of_a_later_version": 1})).await;
    assert_eq!(unknown.data["path"], "of_a_later_version");
}

#[tokio::test]
async fn unknown_method_of_older_daemon_names_the_program_to_update() {
    let older: Answer = |_, method| match method {
        "daemon.hello" => hello("0.0.1"),
        method => Err(error(-32601, "method_not_found", &format!("there is no method {method}"))),
    };
    let (code, text) = run_against(Value::Null, older, &["jobs"]).await;
    let words = "the running agentd 0.0.1 is older than agentctl";
    assert!(code == 4 && text.contains("job.list") && text.contains(words), "{code}: {text}");
    // What a user typed is not the daemon's fault.
    let (code, text) = run_against(Value::Null, older, &["rpc", "no.method"]).await;
    assert!(code == 64 && !text.contains("older"), "{code}: {text}");
}

#[tokio::test]
async fn newer_daemon_is_listed_or_asks_to_update_agentctl() {
    let daemon = TestDaemon::start().await;
    let client = daemon.client("alice").await;
    client.create_with(&daemon, json!({"title": "mine"})).await;
    let mut listed = client.call("session.list", json!({})).await;
    let newer: Answer = |known, method| match method {
        "daemon.hello" => hello("9.0.0"),
        "session.list" => Ok(known.clone()),
        _ => Err(error(-32601, "method_not_found", "there is no such method")),
    };
    listed["of_a_later_version"] = json!({"a": 1});
    listed["sessions"][0]["of_a_later_version"] = json!([1, 2]);
    let (code, text) = run_against(listed.clone(), newer, &["ps", "-a", "-A"]).await;
    assert!(code == 0 && text.contains("mine"), "{code}: {text}");
    listed["sessions"][0]["state"] = json!("of_a_later_version");
    let (code, text) = run_against(listed, newer, &["ps", "-a", "-A"]).await;
    let words = "the running agentd 9.0.0 is newer than agentctl";
    assert!(code == 4 && text.contains("session.list") && text.contains(words), "{code}: {text}");
}

#[tokio::test]
async fn database_of_newer_agentd_is_refused_with_kind_and_unchanged() {
    let mut daemon = TestDaemon::start().await;
    daemon.client("alice").await.create(&daemon).await;
    assert!(daemon.stop().await.success());
    let database = daemon.path("data/agentd/agentd.db");
    let mut db = SqliteConnectOptions::new().filename(&database).connect().await.expect("it opens");
    let newer = "insert into _sqlx_migrations (version, description, success, checksum, execution_time) \
                 values (99999999, 'later', 1, x'00', 0)";
    sqlx::query(newer).execute(&mut db).await.expect("inserted");
    db.close().await.expect("closed");
    let before = std::fs::read(&database).expect("read");
    let check = |output: std::process::Output| {
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(78), "a restart does not help: {said}");
        for words in ["a newer agentd wrote it (schema 99999999)", "update agentd", "(newer_database)\n"] {
            assert!(said.contains(words), "{words}: {said}");
        }
    };
    check(daemon.run_until_exit().await);
    let mut checked = daemon.command();
    checked.arg("--check-database");
    check(checked.output().await.expect("it ran"));
    // agentctl passes the reason on.
    let said = ctl(&daemon, &["ps"]).await;
    assert!(
        said.code == 69 && said.err.contains("update agentd") && said.err.contains("(newer_database)"),
        "{said:?}"
    );
    assert_eq!(std::fs::read(&database).expect("read"), before, "the database is unchanged");
}
