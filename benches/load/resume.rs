//! B10: a client attaches to a long session in a daemon that has just started.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use sqlx::{Connection as _, Row as _, SqliteConnection};

use super::Outcome;
use super::daemon::{Daemon, DaemonSetup};
use super::figures::{Figure, Sample, Target};
use super::model::{ModelServer, Script};
use super::wire::{Chunks, create_answer};

const RUNS: usize = 7;
const ITEMS: i64 = 10_000;
const TARGET_MS: f64 = 50.0;

pub fn run() -> Outcome<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let model = ModelServer::start()?;
    model.set_script(Script::Immediate(create_answer(3, Chunks::Large)));
    let setup = DaemonSetup::new(Some(model.address))?;
    // Run one real turn. The other turns are copies of it.
    let daemon = setup.start_daemon()?;
    let mut client = daemon.connect()?;
    let session = client.create_session(&setup.workspace())?;
    client.run_turn(&session)?;
    drop(client);
    daemon.stop()?;
    let (events, last) = runtime.block_on(copy_turns(&setup))?;

    let (mut end, mut start, mut loaded, mut bare, mut cpu) =
        (Sample::default(), Sample::default(), Sample::default(), Sample::default(), Sample::default());
    for _ in 0..RUNS {
        let began = Instant::now();
        runtime.block_on(read_rows(&setup))?;
        bare.push_ms(began.elapsed());
        let daemon = setup.start_daemon()?;
        let before = daemon.cpu_time()?;
        end.push_ms(time_first_event(&daemon, &session, last)?);
        cpu.push_ms(daemon.cpu_time()?.saturating_sub(before));
        loaded.push_ms(time_first_event(&daemon, &session, 0)?);
        daemon.stop()?;
        let daemon = setup.start_daemon()?;
        start.push_ms(time_first_event(&daemon, &session, 0)?);
        daemon.stop()?;
    }
    println!("# B10: {ITEMS} items are {events} events");
    Figure::new("B10 first event, from the end, cold daemon", "ms", &end)
        .with_reference("ms read of the rows, bare", bare.median())
        .with_target(Target::AtMost(TARGET_MS))
        .print();
    Figure::new("B10 first event, from the start, cold daemon", "ms", &start)
        .with_reference("ms read of the rows, bare", bare.median())
        .with_target(Target::AtMost(TARGET_MS))
        .print();
    Figure::new("B10 first event, from the start, loaded session", "ms", &loaded)
        .with_target(Target::AtMost(TARGET_MS))
        .print();
    Figure::new("B10 daemon CPU of the first of these", "ms", &cpu).print();
    Ok(())
}

/// Returns the time from the call to the first event after the cursor.
fn time_first_event(daemon: &Daemon, session: &str, after: i64) -> Outcome<Duration> {
    let mut client = daemon.connect()?;
    let began = Instant::now();
    client.send("session.subscribe", &json!({"session_id": session, "after_seq": after}))?;
    client.wait_for_any_event()?;
    Ok(began.elapsed())
}

async fn open_database(setup: &DaemonSetup) -> Outcome<SqliteConnection> {
    Ok(SqliteConnection::connect(&format!("sqlite://{}", setup.database().display())).await?)
}

async fn read_rows(setup: &DaemonSetup) -> Outcome<usize> {
    let mut database = open_database(setup).await?;
    let rows = sqlx::query("select seq, kind, body from event where session = 1 order by seq")
        .fetch_all(&mut database)
        .await?;
    let mut bytes = 0;
    for row in &rows {
        let body: &str = row.try_get("body")?;
        bytes += body.len();
    }
    Ok(bytes)
}

/// Copies the session's only turn until there are enough items. Returns the number of events and the last seq.
pub async fn copy_turns(setup: &DaemonSetup) -> Outcome<(i64, i64)> {
    let mut database = open_database(setup).await?;
    let mut transaction = database.begin().await?;
    let first: i64 = sqlx::query_scalar(
        "select min(seq) from event where session = 1 and kind in ('turn.queued', 'turn.started')",
    )
    .fetch_one(&mut *transaction)
    .await?;
    let rows = sqlx::query("select seq, at_ms, kind, body from event where session = 1 and seq >= ?")
        .bind(first)
        .fetch_all(&mut *transaction)
        .await?;
    let items = sqlx::query("select first_seq, last_seq, kind, status from item where session = 1")
        .fetch_all(&mut *transaction)
        .await?;
    let mut last: i64 = sqlx::query_scalar("select max(seq) from event where session = 1")
        .fetch_one(&mut *transaction)
        .await?;
    let span = last + 1 - first;
    let copies = ITEMS / i64::try_from(items.len())? - 1;
    for copy in 1..=copies {
        let shift = copy * span;
        for row in &rows {
            let mut body: Value = serde_json::from_str(row.try_get("body")?)?;
            shift_ids(&mut body, shift, copy);
            sqlx::query(
                "insert into event (session, seq, at_ms, kind, delta_of, body) values (1, ?, ?, ?, null, ?)",
            )
            .bind(row.try_get::<i64, _>("seq")? + shift)
            .bind(row.try_get::<i64, _>("at_ms")?)
            .bind(row.try_get::<String, _>("kind")?)
            .bind(body.to_string())
            .execute(&mut *transaction)
            .await?;
        }
        for item in &items {
            sqlx::query(
                "insert into item (session, first_seq, last_seq, kind, status) values (1, ?, ?, ?, ?)",
            )
            .bind(item.try_get::<i64, _>("first_seq")? + shift)
            .bind(item.try_get::<i64, _>("last_seq")? + shift)
            .bind(item.try_get::<String, _>("kind")?)
            .bind(item.try_get::<String, _>("status")?)
            .execute(&mut *transaction)
            .await?;
        }
        last += span;
    }
    sqlx::query("update session set last_seq = ? where id = 1").bind(last).execute(&mut *transaction).await?;
    let events: i64 = sqlx::query_scalar("select count(*) from event").fetch_one(&mut *transaction).await?;
    let item_count: i64 =
        sqlx::query_scalar("select count(*) from item").fetch_one(&mut *transaction).await?;
    transaction.commit().await?;
    database.close().await?;
    if item_count < ITEMS * 9 / 10 {
        return Err(format!("only {item_count} items were created").into());
    }
    Ok((events, last))
}

/// Adds `shift` to each seq, and gives each turn, item and call of a copy its own id.
fn shift_ids(value: &mut Value, shift: i64, copy: i64) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                match (name.as_str(), &mut *value) {
                    ("seq" | "first_seq" | "last_seq" | "started_seq", Value::Number(number)) => {
                        *value = Value::from(number.as_i64().unwrap_or_default() + shift);
                    }
                    ("turn_id" | "item_id" | "call_id", Value::String(id)) => {
                        // The last digits of a UUID are random.
                        let prefix = id.len() - 8;
                        *id = format!("{}{copy:08x}", &id[..prefix]);
                    }
                    (_, value) => shift_ids(value, shift, copy),
                }
            }
        }
        Value::Array(values) => values.iter_mut().for_each(|value| shift_ids(value, shift, copy)),
        _ => {}
    }
}
