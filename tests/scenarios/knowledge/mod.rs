//! The index of a workspace: jobs, queries, edits, the tool, embedding servers, and bad input.

mod crashes;
mod edits;
mod files;
mod garbage;
mod jobs;
mod lost_calls;
mod queries;
mod servers;
mod watch;

use std::path::PathBuf;

use serde_json::{Value, json};

use crate::support::client::Client;
use crate::support::daemon::{TestDaemon, TestDaemonBuilder};
use crate::support::log::Log;
use crate::support::wait::{POLL_INTERVAL, with_deadline};

const PARSER: &str = "/// Reads tokens from the lexer and builds a tree.\npub struct Parser;\n\nimpl Parser {\n    /// \
    Parses one statement.\n    pub fn parse_statement(&self) -> Token {\n        next_token()\n    }\n}\n";
const LEXER: &str = "/// A word or a sign.\npub struct Token;\n\n/// Splits text into tokens.\npub fn next_token() -> Token \
    {\n    Token\n}\n";

/// A daemon whose workspace has a few files.
async fn start() -> TestDaemon {
    start_with(TestDaemon::builder()).await
}

/// Same as `start`, with these settings.
async fn start_with(builder: TestDaemonBuilder) -> TestDaemon {
    let daemon = builder.start().await;
    daemon.write("src/parser.rs", PARSER);
    daemon.write("src/lexer.rs", LEXER);
    daemon.write("README.md", "# Parsing\n\nThe parser uses the lexer, see [lexer](src/lexer.rs).\n\n# Caching\n\nNothing is cached.\n");
    daemon
}

/// Follows a job or a query.
async fn follow(client: &Client, daemon: &TestDaemon, work: Value) -> Log {
    let mut params = json!({ "workspace": daemon.workspace() });
    for (name, value) in work.as_object().expect("an object") {
        params[name] = value.clone();
    }
    let subscription = client.call("knowledge.subscribe", params).await;
    Log::new(client.clone(), subscription.as_str().expect("an id").to_owned())
}

/// Runs an index job to its end and returns its last event.
async fn index(client: &Client, daemon: &TestDaemon, more: Value) -> Value {
    let mut params = json!({ "workspace": daemon.workspace() });
    for (name, value) in more.as_object().expect("an object") {
        params[name] = value.clone();
    }
    let started = client.call("knowledge.index", params).await;
    let mut seen = follow(client, daemon, json!({ "job_id": started["job_id"] })).await;
    let is_last = |event: &Value| ["done", "failed", "cancelled"].iter().any(|kind| event["type"] == *kind);
    seen.find("the end of the job", is_last).await
}

async fn query(client: &Client, daemon: &TestDaemon, more: Value) -> Value {
    let mut params = json!({ "workspace": daemon.workspace(), "query": "where are statements parsed" });
    for (name, value) in more.as_object().expect("an object") {
        params[name] = value.clone();
    }
    client.call("knowledge.query", params).await
}

/// The files of all indexes.
fn index_files(daemon: &TestDaemon) -> Vec<PathBuf> {
    let data = std::fs::read_dir(daemon.path("data")).into_iter().flatten().flatten();
    let folders = data.map(|entry| entry.path().join("knowledge")).chain([daemon.path("data/knowledge")]);
    let files = folders.filter_map(|folder| std::fs::read_dir(folder).ok()).flatten().flatten();
    files.map(|entry| entry.path()).filter(|path| path.is_file()).collect()
}

fn names(list: &Value, field: &str) -> Vec<String> {
    let list = list.as_array().expect("a list").iter();
    list.map(|it| it[field].as_str().expect("a text").to_owned()).collect()
}

/// Status of the index.
async fn status(client: &Client, daemon: &TestDaemon) -> Value {
    client.call("knowledge.status", json!({ "workspace": daemon.workspace() })).await
}

/// Polls the status until `fits` accepts it.
async fn status_where(
    client: &Client,
    daemon: &TestDaemon,
    what: &str,
    fits: impl Fn(&Value) -> bool,
) -> Value {
    let wait = async {
        loop {
            let now = status(client, daemon).await;
            if fits(&now) {
                return now;
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    };
    with_deadline(what, || daemon.log(), wait).await
}

/// Waits until no job runs.
async fn idle(client: &Client, daemon: &TestDaemon) -> Value {
    status_where(client, daemon, "the job to end", |now| {
        now["job"]["job_id"].is_string() && now["job"]["state"] != "running"
    })
    .await
}
