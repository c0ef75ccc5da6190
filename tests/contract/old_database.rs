//! A database of an older version is migrated: clients see one name for each field, and its sessions continue.

use std::collections::BTreeSet;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::Path;

use agentd::types::permission::digest;
use serde_json::{Value, json};
use sqlx::migrate::Migrator;
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use sqlx::{ConnectOptions as _, Connection as _};

use crate::support::client::Session;
use crate::support::daemon::TestDaemon;
use crate::support::model_server::Step;

/// The folder in the fixture's paths. The test replaces it with its own.
const FOLDER: &str = "/tmp/agentd-FOLDER";
/// The command with a grant of the first session.
const GRANTED: &str = "echo ran >> runs; echo x > ../outside";

/// The schema of `tests/fixtures/journal-2026-11.db`.
const FIXTURE_SCHEMA: i64 = 8;
/// The schema with the first jobs, and that with the first schedules.
const JOB_SCHEMA: i64 = 23;
const SCHEDULE_SCHEMA: i64 = 24;

/// A daemon with a copy of the fixture, and its two sessions.
async fn upgraded() -> (TestDaemon, Session, Session) {
    let (mut daemon, db) = database_of(FIXTURE_SCHEMA).await;
    db.close().await.expect("closed");
    daemon.launch().await;
    let (one, other) = sessions(&daemon).await;
    (daemon, one, other)
}

/// The two sessions of the fixture.
async fn sessions(daemon: &TestDaemon) -> (Session, Session) {
    let client = daemon.client("alice").await;
    let listed = client.call("session.list", json!({})).await["sessions"].clone();
    let session = |title: &str| {
        let session = listed.as_array().expect("a list").iter().find(|session| session["title"] == title);
        let id = session.unwrap_or_else(|| panic!("{title}: {listed}"))["session_id"].as_str();
        Session { client: client.clone(), id: id.expect("an id").into() }
    };
    (session("Mend the test"), session("Two requests wait"))
}

/// The migrations up to a schema.
fn migrations(schema: i64) -> Migrator {
    let all = sqlx::migrate!("./migrations");
    let wanted = all.iter().filter(|migration| migration.version <= schema).cloned();
    Migrator { migrations: wanted.collect(), ..Migrator::DEFAULT }
}

/// A daemon that was not started yet, with a database of this schema and the rows of the fixture.
async fn database_of(schema: i64) -> (TestDaemon, SqliteConnection) {
    let daemon = TestDaemon::builder().build().await;
    daemon.write("notes/first.txt", "1\n2\n");
    std::fs::create_dir(daemon.path("data")).expect("created");
    std::fs::DirBuilder::new().mode(0o700).create(daemon.path("data/agentd")).expect("created");
    let database = daemon.path("data/agentd/agentd.db");
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/journal-2026-11.db");
    let options = SqliteConnectOptions::new().filename(&database).foreign_keys(false).create_if_missing(true);
    if schema >= FIXTURE_SCHEMA {
        std::fs::write(&database, std::fs::read(&fixture).expect("the fixture")).expect("copied");
    }
    let mut db = options.connect().await.expect("it opens");
    if schema >= FIXTURE_SCHEMA {
        place_in(&daemon, &mut db).await;
    }
    migrations(schema).run(&mut db).await.expect("migrated");
    if schema < FIXTURE_SCHEMA {
        copy_tables(&mut db, &fixture, |_| true).await;
        if schema < 3 {
            // There were no blobs, so no event was cut.
            execute(&mut db, "update event set body = json_remove(body, '$.cut')").await;
        }
        place_in(&daemon, &mut db).await;
    }
    (daemon, db)
}

async fn execute(db: &mut SqliteConnection, statement: &str) {
    sqlx::query(sqlx::AssertSqlSafe(statement.to_owned()))
        .execute(db)
        .await
        .unwrap_or_else(|error| panic!("{statement}: {error}"));
}

/// Copies the rows of another database into the tables that exist here, without columns that do not exist yet.
async fn copy_tables(db: &mut SqliteConnection, from: &Path, is_wanted: impl Fn(&str) -> bool) {
    execute(db, &format!("attach '{}' as source", from.display())).await;
    let tables: Vec<String> = sqlx::query_scalar(
        "select name from main.sqlite_master where type = 'table' and name in \
         (select name from source.sqlite_master where type = 'table') and name not glob '*sql*'",
    )
    .fetch_all(&mut *db)
    .await
    .expect("tables");
    for table in tables.iter().filter(|table| is_wanted(table)) {
        let columns: String = sqlx::query_scalar(
            "select group_concat(name) from pragma_table_info(?1, 'main') where name in \
             (select name from pragma_table_info(?1, 'source'))",
        )
        .bind(table)
        .fetch_one(&mut *db)
        .await
        .expect("columns");
        execute(db, &format!("insert into main.{table} ({columns}) select {columns} from source.{table}"))
            .await;
    }
    execute(db, "detach source").await;
}

/// Replaces the folder in the fixture's rows with that of the daemon.
async fn place_in(daemon: &TestDaemon, db: &mut SqliteConnection) {
    let folder = daemon.workspace().parent().expect("a parent").display().to_string();
    for statement in
        ["update event set body = replace(body, ?, ?)", "update session set cwd = replace(cwd, ?, ?)"]
    {
        sqlx::query(statement).bind(FOLDER).bind(&folder).execute(&mut *db).await.expect("replaced");
    }
    // The digest of a request contains the folder.
    let requests: Vec<(i64, i64, String)> =
        sqlx::query_as("select session, seq, body from event where kind = 'permission.requested'")
            .fetch_all(&mut *db)
            .await
            .expect("read");
    for (session, seq, body) in requests {
        let mut request: Value = serde_json::from_str(&body).expect("json");
        let text = |name: &str| request[name].as_str().expect("a text");
        let id = text("session_id").parse().expect("an id");
        request["digest"] = json!(digest(id, text("cwd"), text("tool"), &request["input"]));
        let update = sqlx::query("update event set body = ? where session = ? and seq = ?");
        update.bind(request.to_string()).bind(session).bind(seq).execute(&mut *db).await.expect("replaced");
    }
}

/// A database of this program with a job that waits to start and a schedule, and the workspace that they name.
async fn database_with_job() -> (TestDaemon, String) {
    let mut daemon = TestDaemon::start().await;
    let client = daemon.client("alice").await;
    client.call("job.pause", json!({})).await;
    let job = json!({"prompt": "Do it.", "cwd": daemon.workspace(), "title": "nightly"});
    client.call("job.create", job.clone()).await;
    let schedule = json!({"name": "rare", "cron": "0 0 1 1 *", "timezone": "UTC", "job": job});
    client.call("schedule.create", schedule).await;
    drop(client);
    assert!(daemon.stop().await.success());
    let workspace = daemon.workspace().display().to_string();
    (daemon, workspace)
}

#[tokio::test]
async fn database_of_each_schema_opens_and_its_work_continues() {
    let (source, workspace) = database_with_job().await;
    let source = source.path("data/agentd/agentd.db");
    let schemas: Vec<i64> = migrations(i64::MAX).iter().map(|migration| migration.version).collect();
    let newest = *schemas.last().expect("migrations");
    for schema in schemas {
        let (mut daemon, mut db) = database_of(schema).await;
        if schema >= JOB_SCHEMA {
            copy_tables(&mut db, &source, |table| matches!(table, "job" | "job_event" | "schedule")).await;
            let here = daemon.workspace().display().to_string();
            for column in ["job.cwd", "job.record", "job.request", "schedule.record"] {
                let (table, column) = column.split_once('.').expect("two names");
                if table == "schedule" && schema < SCHEDULE_SCHEMA {
                    continue;
                }
                let text =
                    format!("update {table} set {column} = replace({column}, '{workspace}', '{here}')");
                execute(&mut db, &text).await;
            }
        }
        db.close().await.expect("closed");
        daemon.launch().await;
        let copy = daemon.path(&format!("data/agentd/agentd.db.before-{newest}"));
        assert_eq!(copy.exists(), schema < newest, "schema {schema}: an older database is copied");

        daemon.models.set_fallback(|_| Step::text("It goes on."));
        let (one, other) = sessions(&daemon).await;
        assert!(one.items().await.len() > 20, "schema {schema}");
        assert!(one.events().await.len() > 200, "schema {schema}");
        let mut seen = one.follow_after(one.view().await["last_seq"].as_u64().expect("a seq")).await;
        one.submit("And now?").await;
        assert_eq!(seen.turn_ends("success").await["text"], "It goes on.", "schema {schema}");
        let pending = other.pending().await;
        assert_eq!(pending.len(), 2, "schema {schema}: {pending:?}");
        let mut seen = other.follow().await;
        for request in &pending {
            other.allow(request).await;
        }
        seen.turn_ends("success").await;
        assert_eq!(daemon.read("late.txt"), "late\n", "schema {schema}");
        if schema >= JOB_SCHEMA {
            let job = one.client.call("job.list", json!({})).await["jobs"][0].clone();
            let wait = json!({"job_id": job["job_id"], "timeout_ms": 20_000});
            let done = one.client.call("job.wait", wait).await["job"].clone();
            assert_eq!(
                (&done["title"], &done["state"]),
                (&json!("nightly"), &json!("succeeded")),
                "schema {schema}: {done}"
            );
        }
        if schema >= SCHEDULE_SCHEMA {
            let schedules = one.client.call("schedule.list", json!({})).await;
            assert_eq!(schedules["schedules"][0]["name"], "rare", "schema {schema}: {schedules}");
        }
        daemon.models.assert_no_breach();
    }
}

/// Adds the names of all fields of a value. Arguments of a call are the model's own names.
fn names(value: &Value, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                found.insert(name.clone());
                if name != "input" {
                    names(value, found);
                }
            }
        }
        Value::Array(entries) => entries.iter().for_each(|entry| names(entry, found)),
        _ => {}
    }
}

#[tokio::test]
async fn old_events_have_the_current_names_on_the_wire() {
    let (_daemon, one, other) = upgraded().await;
    let mut events = one.events().await;
    assert!(events.windows(2).all(|pair| pair[0]["seq"].as_u64() < pair[1]["seq"].as_u64()));
    let mut log = one.follow().await;
    log.wait_for("history.repaired").await;
    let streamed = log.events_of("permission.requested");
    let read: Vec<&Value> = events.iter().filter(|event| event["type"] == "permission.requested").collect();
    assert_eq!(streamed.iter().collect::<Vec<_>>(), read, "a subscription and a page show the same");

    events.extend(other.events().await);
    let mut found = BTreeSet::new();
    events.iter().for_each(|event| names(event, &mut found));
    for (old, new) in [
        ("cut", "truncated_fields"),
        ("at", "pointer"),
        ("told", "background_read"),
        ("only_looks", "read_only_command"),
        ("ruled", "matched_aliases"),
        ("care", "sensitivity"),
        ("most", "max_usage"),
        ("kept", "kept_messages"),
        ("outside", "unsandboxed"),
        ("terms", "model_snapshot"),
    ] {
        assert_eq!((found.contains(old), found.contains(new)), (false, true), "{old} → {new}");
    }
    let kinds: BTreeSet<&str> = events.iter().filter_map(|event| event["type"].as_str()).collect();
    assert!(kinds.contains("session.prompt_built") && !kinds.contains("session.context"), "{kinds:?}");
    let settled: Vec<&Value> = events.iter().map(|event| &event["by"]).collect();
    assert!(settled.contains(&&json!("no_approver")) && !settled.contains(&&json!("nobody")));
    let grant = events.iter().find_map(|event| event["grant"].as_str());
    assert_eq!(grant, Some(&*format!("Unsandboxed({GRANTED})")));
    let all = json!(events).to_string();
    assert!(!all.contains("Outside("), "no rule text has the old name");

    // Truncated values are still found in their blobs.
    let requested =
        |event: &&Value| event["type"] == "tool.requested" && event["truncated_fields"].is_array();
    let requested = events.iter().find(requested).expect("a truncated call");
    let field = &requested["truncated_fields"][0];
    assert_eq!(field["pointer"], "/input/content");
    let blob = one.call("blob", json!({"blob_id": field["blob_id"]})).await;
    assert_eq!(blob["content"].as_str().map(str::len), field["bytes"].as_u64().map(|bytes| bytes as usize));
    assert!(!one.items().await.is_empty());
}

#[tokio::test]
async fn old_pending_request_can_be_answered() {
    let (daemon, _, session) = upgraded().await;
    assert_eq!(session.view().await["state"], "requires_action");
    let pending = session.pending().await;
    assert_eq!(pending.len(), 2, "{pending:?}");
    assert_eq!(pending[0]["read_only_command"], true, "{}", pending[0]);
    daemon.models.push(Step::text("Both done."));
    let mut seen = session.follow().await;
    for request in &pending {
        session.allow(request).await;
    }
    assert_eq!(seen.turn_ends("success").await["text"], "Both done.");
    let results: Vec<Value> = seen.events_of("tool.completed");
    assert_eq!(daemon.read("late.txt"), "late\n", "{results:?}");
    daemon.models.assert_no_breach();
}

#[tokio::test]
async fn old_grant_still_lets_its_command_run_unsandboxed() {
    let (daemon, session, _) = upgraded().await;
    let rules = session.client.call("permission.rules", json!({"session_id": session.id})).await;
    assert!(rules.to_string().contains(&format!("Unsandboxed({GRANTED})")), "{rules}");
    if session.client.sandbox().await["landlock"] != "works" {
        base::skip_test!("landlock does not work here");
        return;
    }
    let mut seen = session.follow_after(session.view().await["last_seq"].as_u64().expect("a seq")).await;
    daemon.models.push(Step::calls([("Bash", json!({"command": GRANTED}))]));
    daemon.models.push(Step::text("Done."));
    session.submit("again").await;
    session.allow(&seen.wait_for("permission.requested").await).await;
    seen.turn_ends("success").await;
    let started = &seen.events_of("tool.started")[0];
    assert_eq!((&started["sandbox"]["unsandboxed"], daemon.path("outside").exists()), (&json!(true), true));
    daemon.models.assert_no_breach();
}
