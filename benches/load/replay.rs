//! B9: a client attaches and receives a long journal.

use std::time::Instant;

use serde_json::json;
use sqlx::{Connection as _, Row as _, SqliteConnection};

use super::Outcome;
use super::daemon::DaemonSetup;
use super::figures::{Figure, Sample, Target};

const RUNS: usize = 5;
const EVENTS: usize = 100_000;
/// The daemon reads the same number of rows at a time.
const PAGE_ROWS: i64 = 500;

pub fn run() -> Outcome<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let setup = DaemonSetup::new(None)?;
    let daemon = setup.start_daemon()?;
    let created = daemon.connect()?.call("session.create", &json!({"cwd": setup.workspace()}))?;
    let session = created["session"]["session_id"].as_str().ok_or("no session id")?.to_owned();
    daemon.stop()?;
    let last = runtime.block_on(append_notices(&setup, &session))?;

    let daemon = setup.start_daemon()?;
    // Load the session before the measurement.
    daemon.connect()?.create_session(&setup.workspace())?;
    let (mut speeds, mut bare, mut cpu) = (Sample::default(), Sample::default(), Sample::default());
    let mark = format!("\"seq\":{last},");
    for run in 0..=RUNS {
        let began = Instant::now();
        let rows = runtime.block_on(read_rows(&setup))?;
        let bare_speed = rows as f64 / began.elapsed().as_secs_f64();

        let mut client = daemon.connect()?;
        let before = daemon.cpu_time()?;
        let began = Instant::now();
        client.send("session.subscribe", &json!({"session_id": session, "after_seq": 0}))?;
        let mut lines = 0;
        loop {
            let line = client.read_line()?;
            lines += 1;
            let head = &line[..line.len().min(200)];
            if head.windows(mark.len()).any(|at| at == mark.as_bytes()) {
                break;
            }
        }
        let speed = lines as f64 / began.elapsed().as_secs_f64();
        if lines < EVENTS {
            return Err(format!("{lines} of {EVENTS} events arrived").into());
        }
        if run > 0 {
            speeds.push(speed);
            bare.push(bare_speed);
            cpu.push(daemon.cpu_time()?.saturating_sub(before).as_secs_f64() * 1e6 / lines as f64);
        }
    }
    daemon.stop()?;
    let target = 150_000.0_f64.min(bare.median() / 2.0);
    Figure::new("B9 replay of 100,000 events", "events/s", &speeds)
        .with_reference("rows/s read bare", bare.median())
        .with_target(Target::AtLeast(target))
        .print();
    Figure::new("B9 daemon CPU per event", "us", &cpu).print();
    Ok(())
}

async fn open_database(setup: &DaemonSetup) -> Outcome<SqliteConnection> {
    Ok(SqliteConnection::connect(&format!("sqlite://{}", setup.database().display())).await?)
}

/// Appends notices to the session's journal. Returns the last seq.
async fn append_notices(setup: &DaemonSetup, session: &str) -> Outcome<usize> {
    let mut database = open_database(setup).await?;
    let mut transaction = database.begin().await?;
    let row = sqlx::query("select id, last_seq from session where session_id = ?")
        .bind(session)
        .fetch_one(&mut *transaction)
        .await?;
    let (key, after): (i64, i64) = (row.try_get("id")?, row.try_get("last_seq")?);
    let last = after + EVENTS as i64;
    for seq in after + 1..=last {
        let body = json!({"seq": seq, "session_id": session, "at_ms": 1_790_000_000_000_i64, "type": "notice",
            "kind": "load", "text": "a sentence about as long as most of what is said in a journal"});
        sqlx::query(
            "insert into event (session, seq, at_ms, kind, delta_of, body) values (?, ?, ?, ?, null, ?)",
        )
        .bind(key)
        .bind(seq)
        .bind(1_790_000_000_000_i64)
        .bind("notice")
        .bind(body.to_string())
        .execute(&mut *transaction)
        .await?;
    }
    sqlx::query("update session set last_seq = ? where id = ?")
        .bind(last)
        .bind(key)
        .execute(&mut *transaction)
        .await?;
    transaction.commit().await?;
    database.close().await?;
    Ok(usize::try_from(last)?)
}

/// Reads every row in pages, as a bare client would, and counts them.
async fn read_rows(setup: &DaemonSetup) -> Outcome<usize> {
    let mut database = open_database(setup).await?;
    let (mut after, mut rows) = (0_i64, 0);
    loop {
        let page = sqlx::query(
            "select seq, kind, body from event where session = 1 and seq > ? order by seq limit ?",
        )
        .bind(after)
        .bind(PAGE_ROWS)
        .fetch_all(&mut database)
        .await?;
        let Some(last) = page.last() else { return Ok(rows) };
        after = last.try_get("seq")?;
        for row in &page {
            let body: String = row.try_get("body")?;
            rows += usize::from(!body.is_empty());
        }
    }
}
