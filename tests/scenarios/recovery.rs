//! Backups, damaged databases, and databases of other versions.

use std::fs::File;
use std::path::Path;

use serde_json::{Value, json};

use super::bash;
use super::storage::status;
use crate::support::client::Session;
use crate::support::daemon::TestDaemon;
use crate::support::model_server::{Gate, Step};
use crate::support::wait::{poll_until, with_deadline};

/// Runs agentctl against a test daemon until it exits: exit code, standard output and error output.
async fn agentctl(daemon: &TestDaemon, arguments: &[&str]) -> (i32, String, String) {
    let mut command = tokio::process::Command::new(env!("CARGO_BIN_EXE_agentctl"));
    command
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("HOME", daemon.path("home"))
        .env("XDG_RUNTIME_DIR", daemon.path("run"))
        .env("XDG_DATA_HOME", daemon.path("data"))
        .env("XDG_CONFIG_HOME", daemon.path("config"))
        .arg("--config")
        .arg(daemon.path("config.toml"))
        .arg("--no-start")
        .args(arguments)
        .current_dir(daemon.workspace())
        .stdin(std::process::Stdio::null())
        .kill_on_drop(true);
    let output =
        with_deadline("agentctl to end", || daemon.log(), command.output()).await.expect("agentctl starts");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("UTF-8");
    (output.status.code().expect("an exit"), text(output.stdout), text(output.stderr))
}

/// A session with a completed turn that wrote a file and needed permission.
async fn finish_turn(daemon: &TestDaemon) -> Session {
    let session = daemon.client("alice").await.create(daemon).await;
    let mut seen = session.follow().await;
    daemon
        .models
        .push(Step::calls([bash("echo once >> log.txt"), ("LS", json!({"path": "."}))]).say("I log it."));
    daemon.models.push(Step::text("It is logged."));
    session.submit_with(json!({"input": "log it", "idempotency_key": "k"})).await;
    let asked = seen.wait_for("permission.requested").await;
    session.allow(&asked).await;
    seen.turn_ends("success").await;
    session
}

/// Overwrites bytes of a file in place.
fn overwrite(file: &Path, at: u64, bytes: &[u8]) {
    use std::os::unix::fs::FileExt as _;
    let file = File::options().write(true).open(file).expect("opened");
    file.write_all_at(bytes, at).expect("written");
}

#[tokio::test]
async fn backup_during_turn_is_complete_and_starts_daemon() {
    let mut daemon = TestDaemon::start().await;
    let session = finish_turn(&daemon).await;
    let gate = Gate::new();
    daemon.models.push(Step::text("One two three.").hold_after(1, &gate));
    let mut seen = session.follow().await;
    session.submit("count").await;
    gate.wait_reached().await;
    let (code, said, complaint) = agentctl(&daemon, &["backup", "copy.db"]).await;
    assert_eq!((code, complaint.as_str()), (0, ""));
    let copy = daemon.workspace().join("copy.db");
    assert!(said.starts_with(&format!("{} written, ", copy.display())), "{said}");
    gate.open();
    seen.wait_for("turn.completed").await;
    seen.wait_for("turn.completed").await;
    let expected = session.items().await;

    // A backup never overwrites a file, and its path must not be in the folder of the database.
    let (code, _, complaint) = agentctl(&daemon, &["backup", "copy.db"]).await;
    assert!(code == 64 && complaint.contains("there already"), "{code}: {complaint}");
    for (path, word) in [
        (json!("relative.db"), "absolute"),
        (json!(daemon.path("data/agentd/x.db")), "another folder"),
        (json!("/no/where.db"), "/no"),
    ] {
        let refusal = session.client.refused("daemon.backup", json!({"path": path})).await;
        assert_eq!((refusal.kind.as_str(), &refusal.data["path"]), ("invalid_params", &json!("path")));
        assert!(refusal.message.contains(word), "{refusal:?}");
    }

    // The copy works as a replacement of the database.
    assert!(daemon.stop().await.success());
    std::fs::rename(&copy, daemon.path("data/agentd/agentd.db")).expect("moved");
    daemon.models.set_fallback(|_| Step::text("One two three."));
    daemon.launch().await;
    let session = daemon.client("bob").await.join(&session);
    session.follow().await.turn_ends("success").await;
    let items = session.items().await;
    assert_eq!(items[..3], expected[..3]);
    assert_eq!(status(&session.client).await, "ok");
}

#[tokio::test]
async fn damaged_database_is_set_aside_and_readable_sessions_continue() {
    let mut daemon = TestDaemon::start().await;
    let session = finish_turn(&daemon).await;
    let (events, items, view) = (session.events().await, session.items().await, session.view().await);
    let turn = session.submit_with(json!({"input": "log it", "idempotency_key": "k"})).await;
    assert!(daemon.stop().await.success());

    // An index that every start reads.
    let database = daemon.path("data/agentd/agentd.db");
    let bytes = std::fs::read(&database).expect("read");
    let page = root_page(&database, "session_by_state").await;
    overwrite(&database, (page - 1) * 4_096, &[0xA5; 4_096]);
    let (code, report, _) = agentctl(&daemon, &["doctor"]).await;
    assert!(code == 4 && report.contains("the database is damaged"), "{report}");

    daemon.launch().await;
    let alice = daemon.client("alice").await;
    let session = alice.join(&session);
    assert_eq!(session.events().await[..events.len()], events);
    assert_eq!(session.items().await, items);
    let mut now = session.view().await;
    for name in ["last_seq", "updated_at_ms", "clients", "attached"] {
        now[name] = view[name].clone();
    }
    assert_eq!(now, view, "the summary is computed again");
    assert_eq!(session.submit_with(json!({"input": "log it", "idempotency_key": "k"})).await, turn);
    let told = alice.call("daemon.status", json!({})).await;
    assert_eq!(told["storage"], "ok");
    let notice = told["storage_notices"][0].as_str().expect("a notice").to_owned();
    assert!(notice.contains("1 sessions were saved whole") && !notice.contains("cut"), "{notice}");
    let aside =
        notice.split(" is stored as ").nth(1).and_then(|rest| rest.split(": ").next()).expect("a name");
    assert_eq!(std::fs::metadata(aside).expect("kept").len(), bytes.len() as u64);
    assert!(daemon.log().contains("the database was damaged on"));
    let (code, report, _) = agentctl(&daemon, &["doctor"]).await;
    assert!(
        report.contains("the database was damaged") && report.contains("the database is intact"),
        "{report}"
    );
    assert_eq!(code, 0, "{report}");

    let mut seen = session.follow_after(now["last_seq"].as_u64().expect("a number")).await;
    daemon.models.push(Step::text("Still here."));
    session.submit("are you there?").await;
    seen.turn_ends("success").await;
    daemon.models.assert_no_breach();
}

#[tokio::test]
async fn damage_found_by_read_is_repaired_at_next_start() {
    let mut daemon = TestDaemon::start().await;
    let good = finish_turn(&daemon).await;
    let long = daemon.client("alice").await.create(&daemon).await;
    let mut seen = long.follow().await;
    for _ in 0..4 {
        daemon.models.push(Step::text(&"word ".repeat(2_000)));
        long.submit("write").await;
        seen.turn_ends("success").await;
    }
    let (expected, all) = (good.events().await, long.events().await);
    // A turn that is running when the damage is found may have ended in the lost part.
    let gate = Gate::new();
    daemon.models.push(Step::text("On and on.").hold_after(1, &gate));
    long.submit("go on").await;
    gate.wait_reached().await;
    daemon.kill().await;
    // Without free pages that still contain old content.
    let mut connection = open_database(&daemon.path("data/agentd/agentd.db")).await;
    // The copy of the text for search is not part of the journal.
    sqlx::query("delete from message_text").execute(&mut connection).await.expect("removed");
    sqlx::query("vacuum").execute(&mut connection).await.expect("vacuumed");
    sqlx::Connection::close(connection).await.expect("closed");
    checkpoint(&daemon.path("data/agentd/agentd.db")).await;
    let requests = daemon.models.requests().len();

    // The last page that contains text of the long session.
    let database = daemon.path("data/agentd/agentd.db");
    let bytes = std::fs::read(&database).expect("read");
    let needle = b"word word word word word";
    let at = bytes.windows(needle.len()).rposition(|window| window == needle).expect("its text is there");
    // Its first bytes give the page type and the positions of its rows.
    overwrite(&database, (at / 4_096 * 4_096) as u64, &[0xA5; 4_096]);

    daemon.launch().await;
    let alice = daemon.client("alice").await;
    assert_eq!(alice.join(&good).events().await[..expected.len()], expected, "others are served");
    let long_now = alice.join(&long);
    if let Err(refusal) =
        alice.try_call("session.events", json!({"session_id": long.id, "limit": 1000})).await
    {
        assert!(refusal.message.contains("damaged"), "{refusal:?}");
        assert!(status(&alice).await.contains("damaged"), "{}", status(&alice).await);
        assert!(daemon.stop().await.success());
        daemon.launch().await;
    }
    let alice = daemon.client("bob").await;
    let long_now = alice.join(&long_now);
    let events = long_now.events().await;
    let lost = events.iter().position(|event| event["kind"] == "history_lost").expect("a notice");
    assert_eq!(events[..lost], all[..lost], "the events before the loss are complete");
    assert!(lost > 5 && lost < all.len(), "{lost} of {}", all.len());
    assert!(events[lost]["seq"].as_u64() > Some(1_000_000));
    assert_eq!(alice.join(&good).events().await[..expected.len()], expected);
    assert_eq!(daemon.models.requests().len(), requests, "a turn that may have ended is not resumed");

    // It continues when the user asks it to.
    let mut seen = long_now.follow_after(events[lost]["seq"].as_u64().expect("a number")).await;
    daemon.models.set_fallback(|_| Step::text("Where were we?"));
    long_now.submit("hello?").await;
    let is_end = |event: &Value| event["type"] == "turn.completed" && event["result"]["subtype"] == "success";
    seen.find("the end of the turn", is_end).await;
    daemon.models.assert_no_breach();
    let told = alice.call("daemon.status", json!({})).await["storage_notices"].to_string();
    assert!(told.contains("1 are cut short") && told.contains(&long.id), "{told}");
}

#[tokio::test]
async fn command_with_lost_start_event_has_unknown_outcome() {
    let mut daemon = TestDaemon::builder().config("[permissions]\nallow = [\"Bash\"]").start().await;
    let session = daemon.client("alice").await.create(&daemon).await;
    let mut seen = session.follow().await;
    daemon.models.push(Step::calls([bash("echo ran >> count; sleep 1000")]));
    session.submit("go").await;
    seen.wait_for("tool.started").await;
    poll_until("the command to run", || daemon.log(), || (daemon.read("count") == "ran\n").then_some(()))
        .await;
    daemon.kill().await;
    let database = daemon.path("data/agentd/agentd.db");
    let mut connection = open_database(&database).await;
    sqlx::query("update event set body = 'z' || substr(body, 2) where kind = 'tool.started'")
        .execute(&mut connection)
        .await
        .expect("damaged");
    sqlx::Connection::close(connection).await.expect("closed");

    // The first start finds the damage and the second repairs it.
    daemon.launch().await;
    let alice = daemon.client("alice").await;
    alice
        .try_call("session.submit", json!({"session_id": session.id, "input": "on"}))
        .await
        .expect_err("damaged");
    assert!(status(&alice).await.contains("cannot be read"), "{}", status(&alice).await);
    let listed = alice.try_call("session.events", json!({"session_id": session.id, "limit": 1000})).await;
    assert!(listed.expect_err("an incomplete journal").message.contains("cannot be read"));
    daemon.stop().await;
    daemon.launch().await;
    let session = daemon.client("alice").await.join(&session);
    daemon.models.push(Step::text("I see."));
    let mut seen = session.follow().await;
    session.submit("what became of it?").await;
    let is_end = |event: &Value| event["type"] == "turn.completed" && event["result"]["subtype"] == "success";
    seen.find("the end of the turn", is_end).await;
    let asked = daemon.models.requests().pop().expect("asked").body.to_string();
    assert!(asked.contains("outcome is unknown") && !asked.contains("was not run"), "{asked}");
    assert_eq!(daemon.read("count"), "ran\n", "the command does not run again");
    daemon.models.assert_no_breach();
}

#[tokio::test]
async fn daily_backup_exists_soon_after_start() {
    let daemon = TestDaemon::start().await;
    let alice = daemon.client("alice").await;
    alice.create(&daemon).await;
    let folder = daemon.path("data/agentd/backups");
    let made = poll_until(
        "a backup",
        || daemon.log(),
        || {
            let entries = std::fs::read_dir(&folder).ok()?;
            entries
                .flatten()
                .map(|entry| entry.path())
                .find(|path| path.extension().is_some_and(|end| end == "db"))
        },
    )
    .await;
    let told = alice.call("daemon.status", json!({})).await;
    assert_eq!(told["backups"], json!([made]), "status names it");
    let sessions: i64 = sqlx::query_scalar("select count(*) from session")
        .fetch_one(&mut open_database(&made).await)
        .await
        .expect("it can be read");
    assert_eq!(sessions, 1);
}

async fn open_database(database: &Path) -> sqlx::SqliteConnection {
    use sqlx::ConnectOptions as _;
    sqlx::sqlite::SqliteConnectOptions::new().filename(database).connect().await.expect("it opens")
}

/// Runs a WAL checkpoint, as a start and a stop do.
async fn checkpoint(database: &Path) {
    let mut connection = open_database(database).await;
    sqlx::query("pragma wal_checkpoint(truncate)").execute(&mut connection).await.expect("done");
    sqlx::Connection::close(connection).await.expect("closed");
}

/// The number of an index's root page.
async fn root_page(database: &Path, index: &str) -> u64 {
    let mut connection = open_database(database).await;
    let page: i64 = sqlx::query_scalar("select rootpage from sqlite_master where name = ?")
        .bind(index)
        .fetch_one(&mut connection)
        .await
        .expect("there is one");
    sqlx::Connection::close(connection).await.expect("closed");
    u64::try_from(page).expect("a page")
}
