//! Tests of the rows of jobs.

use super::*;
use types::ids::{JobId, Mint, Seed};
use types::job::JobState;
use types::time::Timestamp;

fn ended_job(job_id: JobId, unique_key: Option<&str>) -> JobWrite {
    let row = JobRow {
        job_id,
        state: JobState::Succeeded,
        cwd: "/w".into(),
        schedule_id: None,
        template: None,
        unique_key: unique_key.map(str::to_owned),
        created_at: Timestamp(1),
        started_at: Some(Timestamp(2)),
        ended_at: Some(Timestamp(3)),
        cost_usd_micros: 0,
        record: job_id.to_string(),
    };
    JobWrite::Insert(Box::new(row), "{}".into())
}

#[tokio::test]
async fn old_job_is_removed_when_the_day_of_its_key_is_over() {
    let folder = tempfile::tempdir().expect("a folder");
    let (store, _owner) = Store::open(&folder.path().join("journal.db")).await.expect("a new database");
    let mut mint = Mint::new(1, Seed(1));
    let keys =
        [None, Some("day:2026-11-28:k"), Some("day:2026-11-29:k"), Some("forever:k"), Some("forever:day:1")];
    let ids = keys.map(|_| mint.job());
    let writes = ids.into_iter().zip(keys).map(|(id, key)| ended_job(id, key)).collect();
    store.commit_job(JobCommit { writes, ..JobCommit::default() }).await.expect("written");
    let old = async |today: &str| {
        let jobs = store.jobs_ended_before(Timestamp(4), today, 9).await.expect("read");
        jobs.into_iter().map(|job| job.record).collect::<Vec<_>>()
    };
    let texts = ids.map(|id| id.to_string());
    assert_eq!(old("2026-11-29").await, texts[..2]);
    assert_eq!(old("2026-11-30").await, texts[..3]);
    assert!(store.jobs_ended_before(Timestamp(3), "2026-11-30", 9).await.expect("read").is_empty());
}
