//! B1: time from exec to the answer to `daemon.hello`.

use serde_json::json;
use sqlx::{Connection as _, Executor as _, SqliteConnection};

use super::Outcome;
use super::bare;
use super::daemon::{DaemonSetup, read_stages};
use super::figures::{Figure, Sample, Target};

const RUNS: usize = 15;
const STAGE_RUNS: usize = 5;
const SESSIONS: usize = 10_000;

pub fn run() -> Outcome<()> {
    let setup = DaemonSetup::new(None)?;
    // Create the database, and one session that is then copied.
    let first = setup.start_daemon()?;
    first.connect()?.call("session.create", &json!({"cwd": setup.workspace()}))?;
    first.stop()?;
    let empty = DaemonSetup::new(None)?;
    empty.start_daemon()?.stop()?;
    measure(&empty, "B1 cold start, empty database", "empty", 15.0)?;
    copy_sessions(&setup)?;
    measure(&setup, "B1 cold start, 10,000 sessions", "10,000", 50.0)
}

fn measure(setup: &DaemonSetup, name: &str, short: &str, target_ms: f64) -> Outcome<()> {
    let (mut starts, mut spawns, mut cpu) = (Sample::default(), Sample::default(), Sample::default());
    for _ in 0..RUNS {
        spawns.push_ms(bare::spawn_process()?);
        let daemon = setup.start_daemon()?;
        starts.push_ms(daemon.start_duration);
        cpu.push_ms(daemon.cpu_time()?);
        daemon.stop()?;
    }
    Figure::new(name, "ms", &starts)
        .with_reference("ms spawn of true", spawns.median())
        .with_target(Target::AtMost(target_ms))
        .print();
    Figure::new(&format!("B1 CPU of that, {short}"), "ms", &cpu).print();
    setup.enable_stage_log()?;
    let mut stage_samples: Vec<(String, Sample)> = Vec::new();
    for _ in 0..STAGE_RUNS {
        setup.start_daemon()?.stop()?;
        for (stage, us) in read_stages(&setup.log())? {
            match stage_samples.iter_mut().find(|(name, _)| *name == stage) {
                Some((_, sample)) => sample.push(us / 1e3),
                None => {
                    let mut sample = Sample::default();
                    sample.push(us / 1e3);
                    stage_samples.push((stage, sample));
                }
            }
        }
    }
    for (stage, sample) in &stage_samples {
        Figure::new(&format!("B1 after main: {stage}, {short}"), "ms", sample).print();
    }
    Ok(())
}

/// Copies the only session of the database until there are [`SESSIONS`].
pub fn copy_sessions(setup: &DaemonSetup) -> Outcome<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let url = format!("sqlite://{}", setup.database().display());
        let mut database = SqliteConnection::connect(&url).await?;
        let mut transaction = database.begin().await?;
        for number in 1..SESSIONS {
            let id = format!("ses_{}", uuid::Uuid::now_v7());
            sqlx::query(
                "insert into session (session_id, title, cwd, model, mode, background, state, created_at_ms, \
                 updated_at_ms, last_seq, usage, cost_usd_micros, last_line) \
                 select ?, 'session ' || ?, cwd, model, mode, background, state, created_at_ms + ?, \
                 updated_at_ms + ?, last_seq, usage, cost_usd_micros, last_line from session where id = 1",
            )
            .bind(id)
            .bind(number as i64)
            .bind(number as i64)
            .bind(number as i64)
            .execute(&mut *transaction)
            .await?;
        }
        transaction
            .execute(
                "insert into event (session, seq, at_ms, kind, delta_of, body) \
             select s.id, e.seq, e.at_ms, e.kind, e.delta_of, replace(e.body, f.session_id, s.session_id) \
             from session s, session f, event e where e.session = 1 and f.id = 1 and s.id > 1",
            )
            .await?;
        transaction.commit().await?;
        database.close().await?;
        Ok(())
    })
}
