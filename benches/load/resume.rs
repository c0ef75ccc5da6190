//! B10: a long session that a client comes back to, in a daemon that has just started.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use sqlx::{Connection as _, Row as _, SqliteConnection};

use super::Outcome;
use super::daemon::{Daemon, Place};
use super::figures::{Figure, Sample, Target};
use super::model::{Model, Script};
use super::wire::{Chunks, answer};

const RUNS: usize = 7;
const ITEMS: i64 = 10_000;
const TARGET_MS: f64 = 50.0;

pub fn run() -> Outcome<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let model = Model::start()?;
    model.play(Script::AtOnce(answer(3, Chunks::Large)));
    let place = Place::new(Some(model.address))?;
    // One real turn, of which the others are copies.
    let daemon = place.start()?;
    let mut client = daemon.client()?;
    let session = client.session(&place.workspace())?;
    client.turn(&session)?;
    drop(client);
    daemon.stop()?;
    let (events, last) = runtime.block_on(fill(&place))?;

    let (mut end, mut start, mut loaded, mut bare, mut cpu) =
        (Sample::default(), Sample::default(), Sample::default(), Sample::default(), Sample::default());
    for _ in 0..RUNS {
        let began = Instant::now();
        runtime.block_on(read(&place))?;
        bare.push_ms(began.elapsed());
        let daemon = place.start()?;
        let before = daemon.cpu()?;
        end.push_ms(first_event(&daemon, &session, last)?);
        cpu.push_ms(daemon.cpu()?.saturating_sub(before));
        loaded.push_ms(first_event(&daemon, &session, 0)?);
        daemon.stop()?;
        let daemon = place.start()?;
        start.push_ms(first_event(&daemon, &session, 0)?);
        daemon.stop()?;
    }
    println!("# B10: {ITEMS} items are {events} events");
    Figure::new("B10 first event, from the end, cold daemon", "ms", &end)
        .with_reference("ms read of the rows, bare", bare.median())
        .target(Target::AtMost(TARGET_MS))
        .print();
    Figure::new("B10 first event, from the start, cold daemon", "ms", &start)
        .with_reference("ms read of the rows, bare", bare.median())
        .target(Target::AtMost(TARGET_MS))
        .print();
    Figure::new("B10 first event, from the start, loaded session", "ms", &loaded)
        .target(Target::AtMost(TARGET_MS))
        .print();
    Figure::new("B10 daemon CPU of the first of these", "ms", &cpu).print();
    Ok(())
}

/// From the call to the first event behind the cursor.
fn first_event(daemon: &Daemon, session: &str, after: i64) -> Outcome<Duration> {
    let mut client = daemon.client()?;
    let began = Instant::now();
    client.send("session.subscribe", &json!({"session_id": session, "after_seq": after}))?;
    client.until_event()?;
    Ok(began.elapsed())
}

async fn open(place: &Place) -> Outcome<SqliteConnection> {
    Ok(SqliteConnection::connect(&format!("sqlite://{}", place.database().display())).await?)
}

async fn read(place: &Place) -> Outcome<usize> {
    let mut database = open(place).await?;
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

/// Copies the session's one turn until there are enough items. Returns the number of events and of
/// the last.
pub async fn fill(place: &Place) -> Outcome<(i64, i64)> {
    let mut database = open(place).await?;
    let mut all = database.begin().await?;
    let first: i64 = sqlx::query_scalar(
        "select min(seq) from event where session = 1 and kind in ('turn.queued', 'turn.started')",
    )
    .fetch_one(&mut *all)
    .await?;
    let rows = sqlx::query("select seq, at_ms, kind, body from event where session = 1 and seq >= ?")
        .bind(first)
        .fetch_all(&mut *all)
        .await?;
    let items = sqlx::query("select first_seq, last_seq, kind, status from item where session = 1")
        .fetch_all(&mut *all)
        .await?;
    let mut last: i64 =
        sqlx::query_scalar("select max(seq) from event where session = 1").fetch_one(&mut *all).await?;
    let span = last + 1 - first;
    let copies = ITEMS / i64::try_from(items.len())? - 1;
    for copy in 1..=copies {
        let shift = copy * span;
        for row in &rows {
            let mut body: Value = serde_json::from_str(row.try_get("body")?)?;
            shifted(&mut body, shift, copy);
            sqlx::query(
                "insert into event (session, seq, at_ms, kind, delta_of, body) values (1, ?, ?, ?, null, ?)",
            )
            .bind(row.try_get::<i64, _>("seq")? + shift)
            .bind(row.try_get::<i64, _>("at_ms")?)
            .bind(row.try_get::<String, _>("kind")?)
            .bind(body.to_string())
            .execute(&mut *all)
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
            .execute(&mut *all)
            .await?;
        }
        last += span;
    }
    sqlx::query("update session set last_seq = ? where id = 1").bind(last).execute(&mut *all).await?;
    let events: i64 = sqlx::query_scalar("select count(*) from event").fetch_one(&mut *all).await?;
    let made: i64 = sqlx::query_scalar("select count(*) from item").fetch_one(&mut *all).await?;
    all.commit().await?;
    database.close().await?;
    if made < ITEMS * 9 / 10 {
        return Err(format!("only {made} items were made").into());
    }
    Ok((events, last))
}

/// Moves all numbers of events, and gives what has an id another one.
fn shifted(value: &mut Value, shift: i64, copy: i64) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                match (name.as_str(), &mut *value) {
                    ("seq" | "first_seq" | "last_seq" | "started_seq", Value::Number(number)) => {
                        *value = Value::from(number.as_i64().unwrap_or_default() + shift);
                    }
                    ("turn_id" | "item_id" | "call_id", Value::String(id)) => {
                        // The last digits of a UUID are random.
                        let kept = id.len() - 8;
                        *id = format!("{}{copy:08x}", &id[..kept]);
                    }
                    (_, value) => shifted(value, shift, copy),
                }
            }
        }
        Value::Array(values) => values.iter_mut().for_each(|value| shifted(value, shift, copy)),
        _ => {}
    }
}
