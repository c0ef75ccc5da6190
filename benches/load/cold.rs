//! B1: from exec to the answer to `daemon.hello`.

use serde_json::json;
use sqlx::{Connection as _, Executor as _, SqliteConnection};

use super::Outcome;
use super::bare;
use super::daemon::{Place, stages};
use super::figures::{Figure, Sample, Target};

const RUNS: usize = 15;
const TOLD: usize = 5;
const MANY: usize = 10_000;

pub fn run() -> Outcome<()> {
    let place = Place::new(None)?;
    // Makes the database and the session that the others are copies of.
    let first = place.start()?;
    first.client()?.call("session.create", &json!({"cwd": place.workspace()}))?;
    first.stop()?;
    let empty = Place::new(None)?;
    empty.start()?.stop()?;
    measure(&empty, "B1 cold start, empty database", "empty", 15.0)?;
    fill(&place)?;
    measure(&place, "B1 cold start, 10,000 sessions", "10,000", 50.0)
}

fn measure(place: &Place, name: &str, short: &str, target_ms: f64) -> Outcome<()> {
    let (mut starts, mut spawns, mut cpu) = (Sample::default(), Sample::default(), Sample::default());
    for _ in 0..RUNS {
        spawns.push_ms(bare::spawn()?);
        let daemon = place.start()?;
        starts.push_ms(daemon.took);
        cpu.push_ms(daemon.cpu()?);
        daemon.stop()?;
    }
    Figure::new(name, "ms", &starts)
        .with_reference("ms spawn of true", spawns.median())
        .target(Target::AtMost(target_ms))
        .print();
    Figure::new(&format!("B1 CPU of that, {short}"), "ms", &cpu).print();
    place.tell_stages()?;
    let mut told: Vec<(String, Sample)> = Vec::new();
    for _ in 0..TOLD {
        place.start()?.stop()?;
        for (stage, us) in stages(&place.log())? {
            match told.iter_mut().find(|(name, _)| *name == stage) {
                Some((_, sample)) => sample.push(us / 1e3),
                None => {
                    let mut sample = Sample::default();
                    sample.push(us / 1e3);
                    told.push((stage, sample));
                }
            }
        }
    }
    for (stage, sample) in &told {
        Figure::new(&format!("B1 after main: {stage}, {short}"), "ms", sample).print();
    }
    Ok(())
}

/// Copies the one session of the database until there are many.
pub fn fill(place: &Place) -> Outcome<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let url = format!("sqlite://{}", place.database().display());
        let mut database = SqliteConnection::connect(&url).await?;
        let mut all = database.begin().await?;
        for number in 1..MANY {
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
            .execute(&mut *all)
            .await?;
        }
        all.execute(
            "insert into event (session, seq, at_ms, kind, delta_of, body) \
             select s.id, e.seq, e.at_ms, e.kind, e.delta_of, replace(e.body, f.session_id, s.session_id) \
             from session s, session f, event e where e.session = 1 and f.id = 1 and s.id > 1",
        )
        .await?;
        all.commit().await?;
        database.close().await?;
        Ok(())
    })
}
