//! Tests of damaged databases, backups and recovery.

use std::path::{Path, PathBuf};

use tempfile::TempDir;

use super::tests::{append, id, idempotency, new_session, summary, with_timeout};
use super::*;
use types::event::{Envelope, Event, HISTORY_LOST};
use types::ids::{Mint, Seed, Seq, SessionId};
use types::job::{JobEvent, JobEventKind, JobState};
use types::session::SessionSummary;
use types::time::{Clock, Timestamp};

const PAGE_BYTES: usize = 4_096;
const SESSION_COUNT: u128 = 3;
const EVENT_COUNT: u64 = 60;
/// A time on 2026-11-21.
const NOW: Timestamp = Timestamp(1_795_219_200_000 + 3_723_000);

struct FixedClock(Timestamp);

impl Clock for FixedClock {
    fn now(&self) -> Timestamp {
        self.0
    }
}

fn event(session: SessionId, seq: Seq, event: Event) -> Row {
    let envelope = Envelope {
        seq,
        session_id: session,
        turn_id: None,
        item_id: None,
        step: None,
        parent_call_id: None,
        at_ms: Timestamp(5),
        origin: None,
        truncated_fields: Vec::new(),
        event,
    };
    let body = serde_json::to_string(&envelope).expect("plain data");
    Row { seq, at: envelope.at_ms, kind: envelope.event.kind(), delta_of: None, body: body.into() }
}

fn notice_row(session: SessionId, seq: Seq) -> Row {
    event(session, seq, Event::Notice { kind: "test".into(), text: "word ".repeat(100) })
}

/// Creates sessions whose journals go from seq 1 to `events`.
async fn create_sessions(store: &Store, events: u64) {
    for number in 0..SESSION_COUNT {
        let mut new = new_session(number, Some(idempotency("session.create", &number.to_string())));
        new.rows = vec![event(id(number), 1, Event::SessionCreated(Box::new(new.spec.clone())))];
        let key = store.create(new).await.expect("made");
        append_events(store, key, number, 2, events).await;
    }
}

async fn append_events(store: &Store, key: SessionKey, number: u128, from: u64, to: u64) {
    let rows = (from..=to).map(|seq| notice_row(id(number), seq)).collect();
    let idle_summary = SessionSummary { state: types::session::SessionState::Idle, ..summary("told") };
    store.append(Append { summary: Some(idle_summary), ..append(key, rows) }).await.expect("written");
}

struct DatabaseFolder(TempDir);

impl DatabaseFolder {
    fn new() -> Self {
        Self(tempfile::tempdir().expect("a folder"))
    }
    fn db(&self) -> PathBuf {
        self.0.path().join("agentd.db")
    }
    fn backups(&self) -> PathBuf {
        self.0.path().join("backups")
    }
    async fn open(&self) -> (Store, StoreOwner) {
        let saved = |_: &[Envelope]| {
            Some(SessionSummary { state: types::session::SessionState::Idle, ..summary("saved") })
        };
        let opened = Store::open_or_recover(&self.db(), &self.backups(), NOW, &saved).await;
        opened.expect("whatever the damage, something opens")
    }
    fn moved_aside(&self, end: &str) -> PathBuf {
        self.0.path().join(format!("agentd.db.corrupt-20261121-010203{end}"))
    }
}

/// The readable part of the journals: the seqs, and whether the last event reports a loss.
async fn journals(store: &Store) -> Result<Vec<(Vec<Seq>, bool)>, StoreError> {
    let mut all = Vec::new();
    for number in 0..SESSION_COUNT {
        let Some(key) = store.find(id(number)).await? else {
            all.push((Vec::new(), true));
            continue;
        };
        let rows = store.events_after(key, 0, 10_000, usize::MAX).await?.rows;
        let is_cut = rows.last().is_some_and(|row| row.body.contains(HISTORY_LOST));
        let mut seqs: Vec<Seq> = rows.iter().map(|row| row.seq).collect();
        if is_cut {
            let last = seqs.pop().expect("one");
            assert!(last > 1_000_000, "numbers that may have been given out are not used: {last}");
        }
        all.push((seqs, is_cut));
        store.view(id(number)).await?;
    }
    Ok(all)
}

/// Opens the store and reads the journals. If a session cannot be read or the check finds a problem, opens
/// the store again, because the next start must repair it.
async fn open_until_it_reads(place: &DatabaseFolder, why: &str) -> Vec<(Vec<Seq>, bool)> {
    let (store, owner) = place.open().await;
    let read = journals(&store).await;
    // Damage can also hide rows without an error. The full check must find that.
    let found = store.problems().await.expect("it can be looked at");
    match read {
        Ok(read) if found.is_empty() => {
            with_timeout(owner.close()).await;
            return read;
        }
        read => {
            let check_result = store.check().await;
            assert!(matches!(check_result, Err(StoreError::Corrupt(_))), "{why}: {check_result:?}, {read:?}");
        }
    }
    with_timeout(owner.close()).await;
    let (store, owner) = place.open().await;
    let read = journals(&store).await.unwrap_or_else(|error| panic!("{why}: {error}"));
    assert_eq!(store.problems().await, Ok(Vec::new()), "{why}");
    with_timeout(owner.close()).await;
    read
}

#[tokio::test]
async fn salvage_of_any_damaged_page_has_no_gap() {
    let origin = DatabaseFolder::new();
    let (store, owner) = origin.open().await;
    create_sessions(&store, EVENT_COUNT).await;
    with_timeout(owner.close()).await;
    let bytes = std::fs::read(origin.db()).unwrap();
    let (mut rescued, mut untouched, mut whole) = (0, 0, 0);
    for page in 0..bytes.len() / PAGE_BYTES {
        for (kind, from, filler) in [("garbage", 0, 0xA5), ("zeros", 0, 0), ("half", PAGE_BYTES / 2, 0x5A)] {
            let why = format!("page {} of {}, {kind}", page + 1, bytes.len() / PAGE_BYTES);
            let place = DatabaseFolder::new();
            let mut damaged = bytes.clone();
            damaged[page * PAGE_BYTES + from..(page + 1) * PAGE_BYTES].fill(filler);
            std::fs::write(place.db(), &damaged).unwrap();
            let read = open_until_it_reads(&place, &why).await;
            for (seqs, is_cut) in &read {
                let expected: Vec<Seq> = (1..=seqs.len() as u64).collect();
                assert_eq!(*seqs, expected, "{why}: a hole");
                assert!(*is_cut || seqs.len() as u64 == EVENT_COUNT, "{why}: lost in silence: {read:?}");
            }
            whole += read.iter().filter(|(_, is_cut)| !is_cut).count();
            match std::fs::read(place.moved_aside("")) {
                Ok(moved_file) => {
                    assert_eq!(moved_file.len(), damaged.len(), "{why}");
                    assert_eq!(notices(&place.db()).len(), 1, "{why}");
                    rescued += 1;
                }
                Err(_) => untouched += 1,
            }
        }
    }
    assert!(rescued > 30, "{rescued} rescued, {untouched} not");
    assert!(whole > rescued, "{whole} sessions whole in {rescued} rescues");
}

/// Changes a byte of a text in the closed database.
fn change_byte(place: &DatabaseFolder, sql: &str) {
    let database = rusqlite::Connection::open(place.db()).expect("it opens");
    assert_eq!(database.execute(sql, []).expect("changed"), 1, "{sql}");
}

#[tokio::test]
async fn damaged_settings_of_a_session_are_reported_as_damage() {
    let place = DatabaseFolder::new();
    let (store, owner) = place.open().await;
    create_sessions(&store, EVENT_COUNT).await;
    with_timeout(owner.close()).await;
    change_byte(
        &place,
        "update event set body = 'z' || substr(body, 2) where session = 2 and kind = 'session.created'",
    );
    let (store, owner) = place.open().await;
    let key = store.find(id(1)).await.expect("read").expect("there");
    let read = store.spec(key).await;
    assert!(matches!(read, Err(StoreError::Corrupt(_))), "{read:?}");
    with_timeout(owner.close()).await;
}

#[tokio::test]
async fn changed_byte_in_row_is_repaired_at_next_start() {
    for sql in [
        // The three cases are: invalid JSON, missing kind, not a text.
        "update event set body = 'z' || substr(body, 2) where session = 2 and seq = 40",
        "update event set body = replace(body, '\"type\"', '\"uype\"') where session = 2 and seq = 40",
        "update event set body = cast(x'7bff7d' as text) where session = 2 and seq = 40",
    ] {
        let place = DatabaseFolder::new();
        let (store, owner) = place.open().await;
        create_sessions(&store, EVENT_COUNT).await;
        with_timeout(owner.close()).await;
        change_byte(&place, sql);

        let (store, owner) = place.open().await;
        let key = store.find(id(1)).await.expect("read").expect("there");
        assert_eq!(key, SessionKey(2), "the second session");
        let met = match store.events_after(key, 39, 1, usize::MAX).await {
            Err(error) => Err(error),
            Ok(page) => store.restored_event(key, 40, &page.rows[0].body).await,
        };
        assert!(matches!(met, Err(StoreError::Corrupt(_))), "{sql}: {met:?}");
        assert!(matches!(store.check().await, Err(StoreError::Corrupt(_))), "{sql}");
        with_timeout(owner.close()).await;

        let (store, owner) = place.open().await;
        let read = journals(&store).await.expect("read");
        let lengths: Vec<(usize, bool)> = read.iter().map(|(seqs, is_cut)| (seqs.len(), *is_cut)).collect();
        assert_eq!(lengths, [(60, false), (39, true), (60, false)], "{sql}");
        assert_eq!(notices(&place.db()).len(), 1);
        with_timeout(owner.close()).await;
    }
}

#[tokio::test]
async fn invalid_title_and_migration_checksum_are_repaired() {
    let place = DatabaseFolder::new();
    let (store, owner) = place.open().await;
    create_sessions(&store, EVENT_COUNT).await;
    with_timeout(owner.close()).await;
    change_byte(&place, "update session set title = cast(x'ff' as text) where id = 1");
    std::fs::write(place.0.path().join("agentd.db.suspect"), "as who lists sessions notes it").unwrap();
    for sql in ["", "update _sqlx_migrations set checksum = x'00' where version = 3"] {
        if !sql.is_empty() {
            change_byte(&place, sql);
        }
        let (store, owner) = place.open().await;
        let read = journals(&store).await.expect("read");
        assert!(read.iter().all(|(seqs, is_cut)| seqs.len() == 60 && !is_cut), "{sql}: {read:?}");
        assert_eq!(notices(&place.db()).len(), 1, "{sql}");
        with_timeout(owner.close()).await;
    }
}

#[tokio::test]
async fn missing_sessions_are_restored_from_newest_valid_backup() {
    let place = DatabaseFolder::new();
    let (store, owner) = place.open().await;
    create_sessions(&store, 20).await;
    let made = store.backup_of_the_day(&place.backups(), 3, &FixedClock(NOW)).await.unwrap();
    let made = made.expect("the first of the day");
    assert_eq!(store.backup_of_the_day(&place.backups(), 3, &FixedClock(NOW)).await, Ok(None));
    for number in 0..SESSION_COUNT {
        let key = store.find(id(number)).await.unwrap().expect("there");
        append_events(&store, key, number, 21, EVENT_COUNT).await;
    }
    with_timeout(owner.close()).await;
    // The backup with the newest date is damaged itself, so recovery skips it.
    std::fs::write(place.backups().join("agentd-20991231.db"), "nothing").unwrap();
    let damaged = "not a database at all ".repeat(4_000);
    std::fs::write(place.db(), &damaged).unwrap();

    let (store, owner) = place.open().await;
    let expected: Vec<Seq> = (1..=20).collect();
    for (seqs, is_cut) in journals(&store).await.unwrap() {
        assert_eq!((seqs, is_cut), (expected.clone(), true));
    }
    let reply = store.stored_reply("session.create", "1").await.unwrap();
    assert!(reply.is_some(), "replies are remembered");
    with_timeout(owner.close()).await;
    assert_eq!(std::fs::read_to_string(place.moved_aside("")).unwrap(), damaged, "set aside, not deleted");
    let notice_lines = notices(&place.db());
    assert!(
        notice_lines[0].contains(made.to_str().unwrap()) && notice_lines[0].contains("3 are cut short"),
        "{notice_lines:?}"
    );

    // The next start finds no problem.
    let (store, owner) = place.open().await;
    assert_eq!(store.counts().await, Ok((3, 0)));
    with_timeout(owner.close()).await;
    assert_eq!(notices(&place.db()).len(), 1);
}

/// The content of all tables of jobs, one text per row.
fn rows_of_jobs(place: &DatabaseFolder) -> Vec<Vec<String>> {
    let database = rusqlite::Connection::open(place.db()).expect("it opens");
    let tables =
        ["job", "job_event", "job_delivery", "daemon_setting", "worktree", "schedule", "schedule_firing"];
    let rows = |table: &str| {
        let mut query = database.prepare(&format!("select * from {table}")).expect("a table");
        let columns = query.column_count();
        let row = query.query_map([], |row| {
            (0..columns)
                .map(|index| row.get::<_, rusqlite::types::Value>(index))
                .collect::<Result<Vec<_>, _>>()
        });
        row.expect("rows").map(|row| format!("{:?}", row.expect("a row"))).collect::<Vec<_>>()
    };
    tables.into_iter().map(rows).collect()
}

/// Writes a job with an event and a message, and once a schedule that fired, a worktree and a setting.
async fn create_job(store: &Store, number: u128, with_others: bool) {
    let mut mint = Mint::new(0, Seed(number));
    let job_id = mint.job();
    let row = JobRow {
        job_id,
        state: JobState::Queued,
        cwd: "/w".into(),
        schedule_id: None,
        template: None,
        unique_key: Some(format!("k{number}")),
        created_at: NOW,
        started_at: None,
        ended_at: Some(NOW),
        cost_usd_micros: 7,
        record: "{}".into(),
    };
    let event = JobEvent { job_id, seq: 1, at_ms: NOW, event: JobEventKind::Created {} };
    let owed = OwedDelivery {
        job_id,
        message_id: mint.message(),
        target: "desk".into(),
        job_state: JobState::Failed,
        owed_at: NOW,
        body: "{}".into(),
    };
    let mut writes = vec![
        JobWrite::Insert(Box::new(row), "{\"prompt\": \"p\"}".into()),
        JobWrite::Event(Box::new(event)),
        JobWrite::Owe(Box::new(owed)),
    ];
    if with_others {
        let schedule_id = mint.schedule();
        let fire = ScheduleWrite::Fire { schedule_id, slot: NOW, job_id };
        let worktree = WorktreeRow {
            name: "w".into(),
            job_id: Some(job_id),
            session_id: None,
            path: "/d/w".into(),
            repository: "/r".into(),
            base_folder: "/r".into(),
            branch: "b".into(),
            is_new_branch: true,
            base: "c".into(),
            choice: Default::default(),
            uncommitted_in_base: 0,
            is_complete: true,
            created_at: NOW,
            finished_at: None,
            removed_at: None,
        };
        writes.extend([
            JobWrite::Schedule(ScheduleWrite::Insert(schedule_id, "{}".into())),
            JobWrite::Schedule(fire),
            JobWrite::Worktree(Box::new(worktree)),
            JobWrite::Setting("jobs.other", Some("x".into())),
        ]);
    }
    store.commit_job(JobCommit { writes, at: NOW, ..JobCommit::default() }).await.expect("written");
}

#[tokio::test]
async fn readable_rows_of_jobs_outlive_damage() {
    let place = DatabaseFolder::new();
    let (store, owner) = place.open().await;
    create_sessions(&store, 20).await;
    create_job(&store, 1, true).await;
    create_job(&store, 2, false).await;
    with_timeout(owner.close()).await;
    let before = rows_of_jobs(&place);
    assert!(before.iter().all(|rows| !rows.is_empty()), "{before:?}");
    let suspect = || std::fs::write(place.0.path().join("agentd.db.suspect"), "looked at").unwrap();
    change_byte(&place, "update session set title = cast(x'ff' as text) where id = 1");
    suspect();
    let (_, owner) = place.open().await;
    with_timeout(owner.close()).await;
    assert_eq!(notices(&place.db()).len(), 1, "it was recovered");
    assert_eq!(rows_of_jobs(&place), before);

    // A job whose row is damaged is lost with its events and messages; all others stay.
    change_byte(&place, "update job set record = cast(x'ff' as text) where id = 2");
    change_byte(&place, "update session set title = cast(x'ff' as text) where id = 1");
    suspect();
    let (store, owner) = place.open().await;
    assert_eq!(store.setting(JOBS_PAUSED).await, Ok(None), "nothing is as in a backup");
    with_timeout(owner.close()).await;
    let mut expected = before;
    expected[..3].iter_mut().for_each(|rows| rows.truncate(1));
    assert_eq!(rows_of_jobs(&place), expected);
}

#[tokio::test]
async fn jobs_of_a_backup_do_not_start_by_themselves() {
    let place = DatabaseFolder::new();
    let (store, owner) = place.open().await;
    create_sessions(&store, 3).await;
    create_job(&store, 1, true).await;
    store.backup_of_the_day(&place.backups(), 3, &FixedClock(NOW)).await.unwrap();
    with_timeout(owner.close()).await;
    std::fs::write(place.db(), "not a database at all ".repeat(4_000)).unwrap();
    let (store, owner) = place.open().await;
    assert_eq!(store.setting(JOBS_PAUSED).await, Ok(Some("true".into())));
    assert_eq!(store.unfinished_jobs().await.map(|jobs| jobs.len()), Ok(1));
    with_timeout(owner.close()).await;
    assert!(notices(&place.db())[0].contains("jobs are paused"), "{:?}", notices(&place.db()));
}

#[tokio::test]
async fn empty_database_is_set_aside_and_replaced_by_backup() {
    let place = DatabaseFolder::new();
    let (store, owner) = place.open().await;
    create_sessions(&store, 20).await;
    store.backup_of_the_day(&place.backups(), 3, &FixedClock(NOW)).await.unwrap();
    with_timeout(owner.close()).await;
    std::fs::write(place.db(), "").unwrap();
    std::fs::write(place.0.path().join("agentd.db-wal"), "what was written last").unwrap();

    let (store, owner) = place.open().await;
    let expected: Vec<Seq> = (1..=20).collect();
    for (seqs, is_cut) in journals(&store).await.unwrap() {
        assert_eq!((seqs, is_cut), (expected.clone(), true));
    }
    with_timeout(owner.close()).await;
    assert_eq!(std::fs::read_to_string(place.moved_aside("")).unwrap(), "");
    assert_eq!(std::fs::read_to_string(place.moved_aside("-wal")).unwrap(), "what was written last");
    let notice_lines = notices(&place.db());
    assert!(notice_lines.len() == 1 && notice_lines[0].contains("agentd-20261121.db"), "{notice_lines:?}");
    let of_rescue = |name: &std::ffi::OsString| name.to_string_lossy().contains(".rescue");
    let entries = std::fs::read_dir(place.0.path()).unwrap().flatten();
    let left: Vec<_> = entries.map(|entry| entry.file_name()).filter(of_rescue).collect();
    assert!(left.is_empty(), "{left:?}");
}

#[tokio::test]
async fn missing_database_with_backups_is_reported_at_every_start() {
    let place = DatabaseFolder::new();
    let (store, owner) = place.open().await;
    create_sessions(&store, 3).await;
    let made = store.backup_of_the_day(&place.backups(), 3, &FixedClock(NOW)).await.unwrap().unwrap();
    with_timeout(owner.close()).await;
    assert_eq!(notices(&place.db()), Vec::<String>::new());
    std::fs::remove_file(place.db()).unwrap();
    for _ in 0..2 {
        let (store, owner) = place.open().await;
        assert_eq!(store.counts().await, Ok((0, 0)));
        with_timeout(owner.close()).await;
        let notice_lines = notices(&place.db());
        assert!(
            notice_lines.len() == 1 && notice_lines[0].contains(made.to_str().unwrap()),
            "{notice_lines:?}"
        );
    }
}

#[tokio::test]
async fn interrupted_recovery_is_completed_at_next_start() {
    let place = DatabaseFolder::new();
    let (store, owner) = place.open().await;
    create_sessions(&store, 20).await;
    with_timeout(owner.close()).await;
    // The state after a crash before the last step: the recovered database is complete, the damaged one still
    // in place.
    std::fs::rename(place.db(), place.0.path().join("agentd.db.salvaged")).unwrap();
    std::fs::write(place.db(), "damaged ".repeat(1_000)).unwrap();
    std::fs::write(place.0.path().join("agentd.db-wal"), "of the damaged one").unwrap();
    // The state after an earlier crash.
    std::fs::write(place.0.path().join("agentd.db.rescue"), "half").unwrap();
    let (store, owner) = place.open().await;
    assert_eq!(store.counts().await, Ok((3, 0)));
    assert!(journals(&store).await.unwrap().iter().all(|(seqs, is_cut)| seqs.len() == 20 && !is_cut));
    with_timeout(owner.close()).await;
}

#[tokio::test]
async fn backup_is_private_complete_and_never_overwrites() {
    use std::os::unix::fs::PermissionsExt as _;
    let place = DatabaseFolder::new();
    let (store, owner) = place.open().await;
    create_sessions(&store, 20).await;
    let to = place.0.path().join("copy.db");
    let bytes = store.backup(&to).await.unwrap();
    let meta = std::fs::metadata(&to).unwrap();
    assert_eq!((meta.len(), meta.permissions().mode() & 0o777), (bytes, 0o600));
    assert_eq!(problems(&to).await, Ok(Vec::new()));
    let again = store.backup(&to).await;
    assert!(matches!(&again, Err(StoreError::Target(why)) if why.contains("there already")), "{again:?}");
    // Backups keep files of other programs, even if their names resemble a temporary copy.
    let others = [place.0.path().join("second.db.part"), place.0.path().join("second.part")];
    for other in &others {
        std::fs::write(other, "another's").unwrap();
    }
    store.backup(&place.0.path().join("second.db")).await.unwrap();
    for other in &others {
        assert_eq!(std::fs::read_to_string(other).unwrap(), "another's");
        std::fs::remove_file(other).unwrap();
    }
    let nowhere = store.backup(&place.0.path().join("no/where.db")).await;
    assert!(matches!(nowhere, Err(StoreError::Target(_))), "{nowhere:?}");
    assert_eq!(store.check().await, Ok(()), "a copy that fails says nothing of the database");
    with_timeout(owner.close()).await;

    let (copy, owner) = Store::open(&to).await.unwrap();
    assert_eq!(journals(&copy).await.unwrap().len(), 3);
    with_timeout(owner.close()).await;
    let left: Vec<_> = std::fs::read_dir(place.0.path()).unwrap().flatten().map(|e| e.file_name()).collect();
    assert!(left.iter().all(|name| !name.to_string_lossy().ends_with(".part")), "{left:?}");
}

#[tokio::test]
async fn daily_backups_keep_newest_and_skip_damaged_database() {
    const DAY: i64 = 86_400_000;
    let place = DatabaseFolder::new();
    let (store, owner) = place.open().await;
    create_sessions(&store, 3).await;
    std::fs::create_dir(place.backups()).unwrap();
    let left = place.backups().join(".agentd-backup-1-1.part");
    std::fs::write(&left, "of a daemon that was killed").unwrap();
    for day in 0..5 {
        let clock = FixedClock(Timestamp(NOW.0 + day * DAY));
        assert!(store.backup_of_the_day(&place.backups(), 3, &clock).await.unwrap().is_some());
    }
    let names = |folder: &Path| -> Vec<String> {
        backups(folder).iter().map(|path| path.file_name().unwrap().to_string_lossy().into_owned()).collect()
    };
    let expected = ["agentd-20261125.db", "agentd-20261124.db", "agentd-20261123.db"];
    assert_eq!(names(&place.backups()), expected);
    assert!(!left.exists());
    let _ = store.report_damage::<()>(Err(StoreError::Corrupt("seen by a read".into())));
    let clock = FixedClock(Timestamp(NOW.0 + 9 * DAY));
    let refused = store.backup_of_the_day(&place.backups(), 3, &clock).await;
    assert!(matches!(refused, Err(StoreError::Corrupt(_))), "{refused:?}");
    assert_eq!(names(&place.backups()), expected);
    with_timeout(owner.close()).await;
}
