//! C20 to C23: the daemon starts, resumes sessions, notifies clients, runs a checkpoint and stops.

use std::path::Path;

use nix::sys::signal::Signal;
use serde_json::{Value, json};
use sqlx::migrate::Migrator;
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions as _, Connection as _};

use super::client_log::{StreamCursor, is_delta};
use super::invariants::appended_once;
use super::matrix_ways;
use super::scenario::{CrashScenario, bash};
use super::tolerant_client::{AnswerPolicy, CrashTolerantClient};
use crate::support::client::Session;
use crate::support::daemon::{CrashMode, TestDaemon};
use crate::support::model_server::{Gate, Step};
use crate::support::wait::with_deadline;

matrix_ways! {
    c20_interrupted_migration_is_completed_by_next_start => c20,
    c21_interrupted_recovery_is_repeated_at_next_start => c21,
    c22_fifty_clients_continue_from_their_cursors => c22_fanout,
    c23_ten_turns_survive_crash_during_shutdown => c23,
}

/// Creates a database of the first schema version that contains a session with messages.
async fn first_version(daemon: &mut TestDaemon) -> String {
    daemon.models.push(Step::text("Hello."));
    daemon.launch().await;
    let session = daemon.client("alice").await.create(daemon).await;
    let mut log = session.follow().await;
    session.submit("hello").await;
    log.turn_ends("success").await;
    daemon.stop().await;
    let path = daemon.path("data/agentd/agentd.db");
    // Undo the later migrations and drop their records.
    let mut db = SqliteConnectOptions::new().filename(&path).connect().await.expect("it opens");
    let later = later_migrations().await;
    for statement in later.undo {
        sqlx::query(sqlx::AssertSqlSafe(statement)).execute(&mut db).await.expect("undone");
    }
    sqlx::query("delete from _sqlx_migrations where version > 1").execute(&mut db).await.expect("forgotten");
    db.close().await.expect("closed");
    session.id
}

/// The migrations after the first one.
struct LaterMigrations {
    /// Statements that undo them, in order.
    undo: Vec<String>,
    newest: i64,
}

async fn later_migrations() -> LaterMigrations {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("migrations");
    let all = Migrator::new(folder).await.expect("migrations");
    let newest = all.iter().map(|migration| migration.version).max().expect("some");
    let sql = all.iter().filter(|migration| migration.version > 1).map(|migration| migration.sql.as_str());
    let bare = |line: &str| line.split("--").next().unwrap_or_default().to_owned() + " ";
    let sql: Vec<String> = sql.map(|sql| sql.lines().map(bare).collect()).collect();
    let mut undo = Vec::new();
    for statement in sql.iter().flat_map(|sql| sql.split(';')) {
        let code = statement.trim();
        if let Some(rest) =
            code.strip_prefix("create table ").or_else(|| code.strip_prefix("create virtual table "))
        {
            undo.extend(rest.split_whitespace().next().map(|name| format!("drop table {name}")));
        } else if let Some(rest) =
            code.strip_prefix("create index ").or_else(|| code.strip_prefix("create unique index "))
        {
            // An index of a new table is dropped together with it.
            undo.extend(rest.split_whitespace().next().map(|name| format!("drop index if exists {name}")));
        } else if let Some((table, column)) =
            code.strip_prefix("alter table ").and_then(|rest| rest.split_once(" add column "))
        {
            let column = column.split_whitespace().next().expect("a name");
            undo.push(format!("alter table {table} drop column {column}"));
        } else if let Some((table, (old, new))) = code
            .strip_prefix("alter table ")
            .and_then(|rest| rest.split_once(" rename column "))
            .and_then(|(table, names)| Some((table, names.split_once(" to ")?)))
        {
            undo.push(format!("alter table {table} rename column {new} to {old}"));
        } else if let Some((old, new)) =
            code.strip_prefix("alter table ").and_then(|rest| rest.split_once(" rename to "))
        {
            undo.push(format!("alter table {new} rename to {old}"));
        } else {
            // Objects that are dropped together with their table, and changes of rows.
            let goes_along = [
                "create trigger",
                "select raise(",
                "end",
                "insert into message_text",
                "insert into oversized",
                "insert or ignore into outdated_event",
                "update event set",
                "insert into ledger",
                "update session set cost_at_least_usd_micros",
                "update session set thinking",
                "update session set last_turn",
            ];
            let is_undone = code.is_empty() || goes_along.iter().any(|known| code.starts_with(known));
            assert!(is_undone, "undo {code:?} in this test too");
        }
    }
    undo.reverse();
    LaterMigrations { undo, newest }
}

async fn c20(way: CrashMode) {
    let newest = later_migrations().await.newest;
    // Crash a number of SQLite virtual-machine steps later each time, until a start completes without a
    // crash. Each crash mode begins at a different step.
    let (mut step, stride) = if way == CrashMode::Abort { (1, 97) } else { (16, 211) };
    let mut crashes = 0;
    let mut daemon = TestDaemon::builder().build().await;
    let session = first_version(&mut daemon).await;
    let old = daemon.path("old.db");
    let database = daemon.path("data/agentd/agentd.db");
    std::fs::copy(&database, &old).expect("copied");
    loop {
        remove_database(&database, newest);
        std::fs::copy(&old, &database).expect("copied");
        daemon.crash_at(&format!("C20:{step}"), way);
        daemon.launch_to_crash();
        if !daemon.wait_crashed_or_ready().await {
            break;
        }
        crashes += 1;
        daemon.clear_crash_point();
        daemon.launch().await;
        let client = daemon.client("alice").await;
        let items = Session { client, id: session.clone() }.items().await;
        assert_eq!(items.len(), 2, "step {step}: the messages are kept");
        daemon.kill().await;
        is_whole(&database, newest, &format!("step {step}: the database")).await;
        let copy = daemon.path(&format!("data/agentd/agentd.db.before-{newest}"));
        is_whole(&copy, 1, &format!("step {step}: the copy")).await;
        step += stride;
    }
    assert!(crashes > 10, "{crashes} crashes");
}

/// Removes the database with its `-wal` and `-shm` files and the backup.
fn remove_database(path: &Path, newest: i64) {
    for ending in ["", "-wal", "-shm", &format!(".before-{newest}")] {
        let _ = std::fs::remove_file(format!("{}{ending}", path.display()));
    }
}

async fn is_whole(path: &Path, version: i64, what: &str) {
    let mut db = SqliteConnectOptions::new().filename(path).connect().await.expect("it opens");
    let verdict: Vec<String> =
        sqlx::query_scalar("pragma integrity_check").fetch_all(&mut db).await.expect("checked");
    assert_eq!(verdict, ["ok"], "{what}");
    let have: Result<i64, _> = sqlx::query_scalar("select max(version) from _sqlx_migrations where success")
        .fetch_one(&mut db)
        .await;
    assert_eq!(have.ok(), Some(version), "{what}: its schema");
    let said: i64 = sqlx::query_scalar("select count(*) from event where kind = 'message.completed'")
        .fetch_one(&mut db)
        .await
        .expect("counted");
    assert_eq!(said, 2, "{what}: its messages");
    db.close().await.expect("closed");
}

/// Three sessions are at different points: inside an answer, at a permission request, in a command. The
/// daemon dies twice in a row while it resumes them. A third crash would exceed the turns' resume
/// limit.
async fn c21(way: CrashMode) {
    for point in ["C21.listed", "C21.loaded", "C21.decided", "C21.committed", "C21.done"] {
        let mut scenario = CrashScenario::start_idle(
            TestDaemon::builder().config("[retry]\nbase_ms = 1\nresume_base_ms = 1"),
        )
        .await;
        let gate = Gate::new();
        let hold = gate.clone();
        scenario.daemon.models.set_fallback(move |request| match request.body.to_string() {
            body if body.contains("tool_result") => Step::text("Done."),
            body if body.contains("ask me") => Step::calls([bash("echo asked >> log.txt")]),
            body if body.contains("run it") => {
                Step::calls([("Bash", json!({"command": "echo ran >> log.txt; sleep 1000"}))])
            }
            _ => Step::text("one two").hold_after(1, &hold),
        });
        let mut pilots = Vec::new();
        for (input, sign) in [
            ("stream", "message.text_delta"),
            ("ask me", "permission.requested"),
            ("run it", "permission.requested"),
        ] {
            let tolerant = scenario.session().await;
            let mut log = tolerant.log(0).await.expect("a reply");
            tolerant.submit(input, "k").await.expect("a reply").expect("accepted");
            let seen = log.wait_for(sign).await;
            if input == "run it" {
                tolerant.approve(&seen, json!({"decision": "allow"})).await;
                let (read, log) = (|| scenario.daemon.read("log.txt"), || scenario.daemon.log());
                crate::support::wait::poll_until("the command", log, || (read() == "ran\n").then_some(()))
                    .await;
            }
            pilots.push(tolerant);
        }
        scenario.kill_and_check().await;
        for _ in 0..2 {
            scenario.daemon.crash_at(point, way);
            scenario.daemon.launch_to_crash();
            scenario.wait_crashed().await;
        }
        gate.open();
        scenario.restart().await;
        let (_, mut stream) = scenario.reopen_session(&pilots[0]).await;
        stream.turn_ends("success").await;
        let cut = stream.events_of("message.completed").into_iter();
        assert_eq!(
            cut.filter(|event| event["item"]["status"] == "interrupted").count(),
            1,
            "{point}: closed once"
        );

        let (session, mut ask) = scenario.reopen_session(&pilots[1]).await;
        let asked = ask.wait_for("permission.requested").await;
        session.allow(&asked).await;
        ask.turn_ends("success").await;
        assert_eq!(ask.events_of("permission.requested").len(), 1, "{point}: asked once");

        let tolerant = scenario.join(&pilots[2]).await;
        tolerant.run(StreamCursor::default(), AnswerPolicy::AnswersOneTurn).await.expect("no panic");
        let journals = scenario.check_alive(&pilots[2]).await;
        let of_kind = |kind: &str| journals[&tolerant.session].values().filter(|e| e["type"] == kind).count();
        assert_eq!(of_kind("question.requested"), 1, "{point}: asked once");
        assert_eq!(of_kind("tool.completed"), 1, "{point}");
        assert_eq!(scenario.daemon.read("log.txt"), "ran\nasked\n", "{point}: each ran once");
        scenario.finish_and_check().await;
    }
}

async fn c22_fanout(way: CrashMode) {
    for nth in [1, 60, 333] {
        let mut scenario =
            CrashScenario::begin(TestDaemon::builder(), &format!("C22.fanout:{nth}"), way).await;
        // The number of notifications per client is not guaranteed. So the test runs turn after turn
        // until the daemon is dead.
        let words: Vec<String> = (0..600).map(|n| format!("word{n} ")).collect();
        scenario.daemon.models.set_fallback(move |_| Step::pieces(words.clone()).drip(64));
        let tolerant = scenario.session().await;
        // Connect all clients before the first one subscribes, because the daemon may be dead from then
        // on.
        let mut pilots = Vec::new();
        for _ in 0..50 {
            pilots.push(CrashTolerantClient {
                client: scenario.daemon.anonymous_client().await,
                ..tolerant.clone()
            });
        }
        let flights: Vec<_> = pilots
            .iter()
            .map(|tolerant| tolerant.run(StreamCursor::default(), AnswerPolicy::Watches))
            .collect();
        let feeding = tokio::spawn(feed(tolerant.clone()));
        scenario.wait_crashed().await;
        with_deadline("the last submit to fail", || scenario.daemon.log(), feeding).await.expect("no panic");
        let mut readings = Vec::new();
        for flight in flights {
            readings.push(flight.await.expect("no panic"));
        }
        scenario.restart().await;
        // Run one more turn: the first one may have ended before the crash, and some clients have seen
        // that.
        let again = scenario.join(&tolerant).await;
        again.submit("count", "k").await.expect("a reply").expect("accepted");
        again.submit("count again", "last").await.expect("a reply").expect("accepted");
        let mut flights = Vec::new();
        for reading in readings {
            let tolerant =
                CrashTolerantClient { client: scenario.daemon.anonymous_client().await, ..tolerant.clone() };
            flights.push(tolerant.run(reading, AnswerPolicy::AnswersOneTurn));
        }
        let mut readings = Vec::new();
        for flight in flights {
            readings.push(
                with_deadline("a client to read on", || scenario.daemon.log(), flight)
                    .await
                    .expect("no panic"),
            );
        }
        let journal = &scenario.check_alive(&tolerant).await[&tolerant.session];
        for (n, reading) in readings.iter().enumerate() {
            let kept = journal.iter().filter(|(_, event)| !is_delta(event)).map(|(seq, _)| *seq);
            let expected: Vec<u64> = kept.take_while(|seq| *seq <= reading.cursor).collect();
            assert_eq!(reading.kept, expected, "crash at {nth}: client {n} missed something");
        }
        scenario.finish_and_check().await;
    }
}

/// Runs one turn after the other until the daemon dies.
async fn feed(tolerant: CrashTolerantClient) {
    let Some(mut log) = tolerant.log(0).await else { return };
    let mut key = "k".to_owned();
    while let Some(reply) = tolerant.submit("count", &key).await {
        let turn = reply.expect("accepted")["turn_id"].clone();
        loop {
            match log.next_or_end().await {
                Some(event) if event["type"] == "turn.completed" && event["turn_id"] == turn => break,
                Some(_) => {}
                None => return,
            }
        }
        key.push('k');
    }
}

/// A checkpoint takes long when the write-ahead log is long. An outside reader holds the log until it
/// is long enough. The test kills the daemon when the database file begins to change. The shared index
/// then shows an unfinished checkpoint.
#[tokio::test]
async fn c22_interrupted_checkpoint_loses_no_event() {
    let mut inside = 0;
    for _ in 0..6 {
        let mut scenario = CrashScenario::start_idle(TestDaemon::builder()).await;
        scenario.daemon.models.set_fallback(|_| Step::text("Hello."));
        let tolerant = scenario.session().await;
        let mut reader =
            SqliteConnectOptions::new().filename(scenario.database()).connect().await.expect("it opens");
        sqlx::query("begin").execute(&mut reader).await.expect("begun");
        sqlx::query("select count(*) from event").execute(&mut reader).await.expect("read");
        let flight = tolerant.run(StreamCursor::default(), AnswerPolicy::Watches);
        // More than the 1,000 pages at which SQLite starts a checkpoint by itself.
        let long = "long ".repeat(60_000);
        let mut turns = Vec::new();
        for n in 0..12 {
            let other = scenario.session().await;
            let mut log = other.log(0).await.expect("a reply");
            other.submit(&format!("{n} {long}"), "k").await.expect("a reply").expect("accepted");
            turns.push(tokio::spawn(async move { log.wait_for("turn.completed").await }));
        }
        for turn in turns {
            turn.await.expect("it ended");
        }
        let database = scenario.database();
        let pid = scenario.daemon.pid();
        let changed = || std::fs::metadata(&database).and_then(|meta| meta.modified()).expect("a file");
        let before = changed();
        sqlx::query("commit").execute(&mut reader).await.expect("ended");
        // Send without waiting: the commit of this input triggers the checkpoint. While a reader holds
        // the log, SQLite does not try it with every commit, so this text is long as well.
        let (last, text) = (tolerant.clone(), format!("the last one {long}"));
        let submit = tokio::spawn(async move { last.submit(&text, "last").await });
        let watch = async {
            while changed() == before {
                tokio::task::yield_now().await;
            }
            nix::sys::signal::kill(pid, Signal::SIGKILL).expect("killed");
        };
        with_deadline("the log to be written back", || scenario.daemon.log(), watch).await;
        scenario.kill_and_check().await;
        inside += usize::from(is_inside_checkpoint(&scenario.database()));
        let _ = submit.await.expect("no panic");
        let _ = reader.close().await;
        let reading = flight.await.expect("no panic");

        scenario.restart().await;
        let tolerant = scenario.join(&tolerant).await;
        let flight = tolerant.run(reading, AnswerPolicy::Watches);
        let text = format!("the last one {long}");
        let again = tolerant.submit(&text, "last").await.expect("a reply").expect("accepted");
        let (_, mut log) = scenario.reopen_session(&tolerant).await;
        let last = log.find("the end of all", |event| {
            event["type"] == "turn.completed" && event["turn_id"] == again["turn_id"]
        });
        last.await;
        scenario.finish_and_check().await;
        flight.await.expect("no panic");
        if inside > 1 {
            break;
        }
    }
    assert!(inside > 0, "no kill happened during a checkpoint");
}

/// The index shared by all readers stores how many frames are checkpointed and how many a checkpoint
/// has attempted (SQLite's file format, "WAL-Index File Format": bytes 96 and 128).
fn is_inside_checkpoint(database: &Path) -> bool {
    let index = std::fs::read(format!("{}-shm", database.display())).unwrap_or_default();
    let number = |at: usize| index.get(at..at + 4).map(|b| u32::from_ne_bytes([b[0], b[1], b[2], b[3]]));
    number(128) > number(96)
}

async fn c23(way: CrashMode) {
    for point in ["C23.told", "C23.parking", "C23.parking:7", "C23.parked", "C23.closing", "C23.closed"] {
        let plan = TestDaemon::builder().config("[permissions]\nallow = [\"Bash\"]");
        let mut scenario = CrashScenario::begin(plan, point, way).await;
        let gate = Gate::new();
        let hold = gate.clone();
        scenario.daemon.models.set_fallback(move |request| match request.body.to_string() {
            body if body.contains("tool_result") => Step::text("Done."),
            body if body.contains("use a tool") => Step::calls([bash("echo $AGENTD_SESSION >> log.txt")]),
            _ => Step::text("one two three").hold_after(1, &hold),
        });
        let mut flights = Vec::new();
        let mut pilots: Vec<(CrashTolerantClient, Value)> = Vec::new();
        for n in 0..10 {
            let tolerant = scenario.session().await;
            let uses_tool = n % 5 == 0;
            let mut log = tolerant.log(0).await.expect("a reply");
            let input = if uses_tool { "use a tool" } else { "speak" };
            let turn =
                tolerant.submit(input, "k").await.expect("a reply").expect("accepted")["turn_id"].clone();
            log.wait_for(if uses_tool { "turn.started" } else { "message.text_delta" }).await;
            flights.push(tolerant.run(StreamCursor::default(), AnswerPolicy::Watches));
            pilots.push((tolerant, turn));
        }
        scenario.daemon.signal(Signal::SIGTERM);
        scenario.wait_crashed().await;
        gate.open();
        let mut readings = Vec::new();
        for flight in flights {
            readings.push(flight.await.expect("no panic"));
        }
        scenario.restart().await;
        for ((tolerant, turn), reading) in pilots.iter().zip(readings) {
            let tolerant = scenario.join(tolerant).await;
            let cursor = reading.cursor;
            let flight = tolerant.run(reading, AnswerPolicy::AnswersOneTurn);
            let (_, mut log) = scenario.reopen_session(&tolerant).await;
            let ended = log.wait_for("turn.completed").await;
            assert_eq!(ended["turn_id"], *turn, "{point}");
            assert_eq!(ended["result"]["subtype"], "success", "{point}");
            if ended["seq"].as_u64().is_some_and(|seq| seq > cursor) {
                flight.await.expect("the events continue without a gap");
            }
        }
        // Each session has one call that uses a tool: at most one line of each.
        appended_once(&scenario.daemon.read("log.txt"), []);
        scenario.finish_and_check().await;
    }
}
