//! Moves a damaged database aside and continues with everything that can be read from it.
//!
//! ```text
//! agentd.db            damaged; read, never changed
//! agentd.db.rescue     the recovered data while it is written; worthless after a crash
//! agentd.db.corrupt-…  the damaged files under another name, never deleted; a .txt file describes the result
//! agentd.db.salvaged   the recovered data, checked and synced: from here on recovery continues after a crash
//! agentd.db            the recovered data in its final place
//! ```
//!
//! The journal is authoritative, so recovery copies one session after the other. For each session it takes
//! the longer of two journals: the damaged database's and the newest sound backup's. The summaries are
//! computed again from that journal. A journal is read from its beginning to the first row that cannot be
//! read or does not follow the previous row, so the recovered part has no gap. If more rows may have existed,
//! the last event reports the loss, and an interrupted turn of that session does not resume. A changed byte
//! inside a text is not detected.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use sqlx::sqlite::SqliteConnection;
use sqlx::{Connection as _, QueryBuilder, Sqlite};

use crate::database_file::{DatabaseFile, make_private, sibling_path, sync_folder};
use crate::error::StoreError;
use crate::handle::{Store, StoreOwner};
use crate::recovery::backup::problems;
use crate::recovery::daily_backups::backups;
use crate::recovery::salvage::{DamagedDatabase, SalvagedJournal, SalvagedRow};
use crate::recovery::summaries::Summaries;
use crate::rows::{MessageText, SessionKey};
use crate::sql_batch::SqlBatch;
use crate::sql_batch::{integer, to_text};
use crate::tables::audit;
use crate::tables::blobs;
use crate::tables::jobs::JOBS_PAUSED;
use crate::tables::ledger;
use crate::tables::texts;
use types::event::{Envelope, Event, HISTORY_LOST};
use types::ids::{Seq, SessionId};
use types::ledger::UsageRecord;
use types::session::{SessionSpec, SessionSummary};
use types::time::Timestamp;

/// Number of seqs that are skipped before the notice `HISTORY_LOST`. Lost events may have used these seqs,
/// and a seq is never reused.
const SKIPPED_SEQS: u64 = 1_000_000;

/// Computes a session's summary from its events; `None` if the events do not fit together.
pub type SummaryFn<'a> = &'a (dyn Fn(&[Envelope]) -> Option<SessionSummary> + std::marker::Sync);

impl Store {
    /// Opens the database like [`Store::open`]. If it is damaged, moves it aside, recovers what can be read and
    /// opens the result. `folder` holds the daily backups. If there are backups, an empty file counts as
    /// damaged, and a missing file is created again with a notice.
    ///
    /// # Errors
    /// Those of [`Store::open`]. `Corrupt` only if the damaged database could not be replaced.
    pub async fn open_or_recover(
        path: &Path,
        folder: &Path,
        at: Timestamp,
        summarise: SummaryFn<'_>,
    ) -> Result<(Self, StoreOwner), StoreError> {
        finish(path)?;
        let suspicion = sibling_path(path, ".suspect");
        let is_empty = std::fs::metadata(path).is_ok_and(|meta| meta.len() == 0);
        let known = backups(folder);
        if let (Some(newest), false) = (known.first(), path.exists()) {
            note_missing(path, newest, at)?;
        }
        if is_empty && !known.is_empty() {
            // SQLite would treat the empty file as a new database and ignore its log.
            tracing::error!("the database is empty but backups exist; restoring the newest intact one");
            recover_damaged_file(path, folder, at, summarise).await?;
            return Self::open(path).await;
        }
        let suspected = match suspicion.exists() {
            true => match check_sound(path).await {
                Ok(()) => check_readable(path).await,
                unsound => unsound,
            },
            false => Ok(()),
        };
        let opened = match suspected {
            Ok(()) => open_and_check(path).await,
            Err(error) => Err(error),
        };
        match opened {
            Err(StoreError::Corrupt(why)) => {
                tracing::error!(why, "the database is damaged; moved it aside, salvaging its readable rows");
                recover_damaged_file(path, folder, at, summarise).await?;
                Self::open(path).await
            }
            Ok(opened) => {
                let _ = std::fs::remove_file(suspicion);
                Ok(opened)
            }
            other => other,
        }
    }
}

/// The messages of earlier recoveries of the database at `path`, oldest first.
#[must_use]
pub fn notices(path: &Path) -> Vec<String> {
    let folder = path.parent().unwrap_or(Path::new("."));
    let database = path.file_name().unwrap_or_default().to_string_lossy();
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut found: Vec<(String, PathBuf)> = entries
        .filter_map(|entry| {
            let name = entry.file_name().into_string().ok()?;
            let end = name.strip_prefix(&*database)?.strip_suffix(".txt")?;
            let time = end.strip_prefix(CORRUPT_SUFFIX).or_else(|| end.strip_prefix(MISSING_SUFFIX))?;
            Some((time.to_owned(), entry.path()))
        })
        .collect();
    found.sort();
    found
        .iter()
        .filter_map(|(_, file)| std::fs::read_to_string(file).ok())
        .map(|text| text.trim().into())
        .collect()
}

/// Suffix of the name of a damaged file that was moved aside.
const CORRUPT_SUFFIX: &str = ".corrupt-";
/// Suffix of a note that the database was missing.
const MISSING_SUFFIX: &str = ".missing-";

/// Writes a permanent note that a new database is created although backups of another one exist.
fn note_missing(path: &Path, newest: &Path, at: Timestamp) -> Result<(), StoreError> {
    let text = format!(
        "on {} there was no database {path}, and a new one was made; there are backups, the newest is {}: to go \
         back to it, stop the daemon, move {path}, {path}-wal and {path}-shm away and copy the backup to {path}",
        at.date(),
        newest.display(),
        path = path.display(),
    );
    tracing::error!("{text}");
    let note = sibling_path(path, &format!("{MISSING_SUFFIX}{}.txt", file_time(at)));
    make_private(&note)?;
    std::fs::write(&note, text)
        .map_err(|error| StoreError::Unwritable(format!("{}: {error}", note.display())))
}

async fn check_sound(path: &Path) -> Result<(), StoreError> {
    match problems(path).await?.into_iter().next() {
        Some(problem) => Err(StoreError::Corrupt(problem)),
        None => Ok(()),
    }
}

/// Reads the whole database. SQLite does not detect a changed byte inside a row, but such a row cannot be
/// parsed.
async fn check_readable(path: &Path) -> Result<(), StoreError> {
    let cannot = |what: String| Err(StoreError::Corrupt(format!("{what} cannot be read")));
    let Some(mut source) = DamagedDatabase::open(path).await else { return cannot("the database".into()) };
    source.texts().await?;
    let (keys, all_known) = source.session_keys().await;
    if !all_known {
        return cannot("the list of sessions".into());
    }
    for key in keys {
        let journal = source.journal(key).await;
        if !journal.is_whole {
            return cannot(format!("the journal of session {key}, behind event {},", journal.last_seq()));
        }
    }
    Ok(())
}

/// Opens the database and reads everything that each start reads, so that damage there is found now.
async fn open_and_check(path: &Path) -> Result<(Store, StoreOwner), StoreError> {
    let (store, owner) = Store::open(path).await?;
    let check_result = match store.unfinished().await {
        Ok(_) => store.counts().await.map(|_| ()),
        Err(error) => Err(error),
    };
    match check_result {
        Err(error @ StoreError::Corrupt(_)) => {
            owner.close().await;
            Err(error)
        }
        _ => Ok((store, owner)),
    }
}

async fn recover_damaged_file(
    path: &Path,
    folder: &Path,
    at: Timestamp,
    summarise: SummaryFn<'_>,
) -> Result<(), StoreError> {
    let part = sibling_path(path, ".rescue");
    for end in ["", "-wal", "-shm"] {
        let _ = std::fs::remove_file(sibling_path(&part, end));
    }
    let mut new = DatabaseFile::create(&part)?.connect().await?;
    sqlx::migrate!("../../migrations").run(&mut new).await?;
    let mut report = RecoveryReport::default();
    // An empty file contains nothing to read, and SQLite would delete its log.
    let is_empty = std::fs::metadata(path).is_ok_and(|meta| meta.len() == 0);
    let mut damaged = if is_empty { None } else { DamagedDatabase::open(path).await };
    let mut backup = newest_sound_backup(folder).await;

    let known = match &mut damaged {
        Some(source) => source.session_keys().await,
        None => (BTreeSet::new(), false),
    };
    let (mut keys, all_known) = known;
    // If all keys are known, a session that only the backup contains was deleted after the backup. Otherwise,
    // recover the backup's sessions as well.
    if let (false, Some((_, source))) = (all_known, &mut backup) {
        keys.extend(source.session_keys().await.0);
    }
    for key in keys {
        let own = match &mut damaged {
            Some(source) => source.journal(key).await,
            None => SalvagedJournal::default(),
        };
        let (mut chosen, mut from_backup) = (own, false);
        if let (false, Some((_, source))) = (chosen.is_whole, &mut backup) {
            let other = source.journal(key).await;
            if other.last_seq() > chosen.last_seq() {
                let highest = chosen.highest.max(other.highest);
                chosen = SalvagedJournal { is_whole: false, highest, ..other };
                from_backup = true;
            }
        }
        save_journal(&mut new, key, chosen, from_backup, at, summarise, &mut report).await?;
    }
    if let Some(source) = &mut damaged {
        source.copy_side_tables(&mut new, &report.recovered).await?;
    }
    if let Some((_, source)) = &mut backup {
        // Jobs of a backup may have run after it, and slots of its schedules may have fired. They must not do so again
        // before a user has looked.
        report.old_jobs = source.copy_side_tables(&mut new, &report.recovered).await?;
        if report.old_jobs > 0 {
            let pause = "insert or replace into daemon_setting (name, value) values (?, 'true')";
            sqlx::query(pause).bind(JOBS_PAUSED).execute(&mut new).await?;
        }
    }
    let audit_ends_at = audit::record_recovery(&mut new, at).await?;
    new.close().await?;
    if let Some(problem) = problems(&part).await?.into_iter().next() {
        return Err(StoreError::Corrupt(format!("the salvaged data is not intact: {problem}")));
    }
    // The check has created these files again. Their removal loses nothing, because the log was checkpointed
    // when the last writer closed.
    for end in ["-wal", "-shm"] {
        let _ = std::fs::remove_file(sibling_path(&part, end));
    }

    let aside = set_aside(path, at)?;
    let text = report.text(&aside, at, backup.map(|(path, _)| path));
    tracing::error!("{text}");
    let note = sibling_path(&aside, ".txt");
    make_private(&note)?;
    let failed = |error: std::io::Error| StoreError::Unwritable(format!("{}: {error}", path.display()));
    std::fs::write(&note, text).map_err(failed)?;
    std::fs::File::open(&part).and_then(|file| file.sync_all()).map_err(failed)?;
    sync_folder(path).map_err(failed)?;
    std::fs::rename(&part, sibling_path(path, ".salvaged")).map_err(failed)?;
    sync_folder(path).map_err(failed)?;
    if let Err(error) = audit::note_head(path, &audit_ends_at) {
        tracing::warn!(%error, "could not record the newest row of the audit log");
    }
    finish(path)
}

/// Moves the recovered database to its final place, also after a crash during an earlier move. Removes the
/// old log first, because SQLite would apply it to the new database.
fn finish(path: &Path) -> Result<(), StoreError> {
    let saved = sibling_path(path, ".salvaged");
    if !saved.exists() {
        return Ok(());
    }
    for end in ["-wal", "-shm", ".suspect"] {
        let _ = std::fs::remove_file(sibling_path(path, end));
    }
    std::fs::rename(saved, path)
        .and_then(|()| sync_folder(path))
        .map_err(|error| StoreError::Unwritable(format!("{}: {error}", path.display())))
}

/// Gives the damaged files a second name. Returns the new path of the database.
fn set_aside(path: &Path, at: Timestamp) -> Result<PathBuf, StoreError> {
    let aside = sibling_path(path, &format!("{CORRUPT_SUFFIX}{}", file_time(at)));
    for end in ["", "-wal", "-shm"] {
        let (from, to) = (sibling_path(path, end), sibling_path(&aside, end));
        if from.exists() && !to.exists() {
            // Not every file system has hard links.
            let linked = std::fs::hard_link(&from, &to).or_else(|_| std::fs::copy(&from, &to).map(|_| ()));
            linked.map_err(|error| StoreError::Unwritable(format!("{}: {error}", to.display())))?;
        }
    }
    Ok(aside)
}

/// A time for file names: day and second.
fn file_time(at: Timestamp) -> String {
    let seconds = at.0.div_euclid(1_000).rem_euclid(86_400);
    let time = format!("{:02}{:02}{:02}", seconds / 3_600, seconds / 60 % 60, seconds % 60);
    format!("{}-{time}", at.date().replace('-', ""))
}

async fn newest_sound_backup(folder: &Path) -> Option<(PathBuf, DamagedDatabase)> {
    for path in backups(folder) {
        if problems(&path).await == Ok(Vec::new())
            && let Some(source) = DamagedDatabase::open(&path).await
        {
            return Some((path, source));
        }
    }
    None
}

/// The recovered part of each session.
#[derive(Default)]
struct RecoveryReport {
    /// Session key → last seq of the recovered journal; `None` if the journal is complete.
    recovered: BTreeMap<i64, Option<u64>>,
    cut: Vec<String>,
    from_backup: usize,
    lost: usize,
    /// Jobs and schedules that only the backup had.
    old_jobs: u64,
}

impl RecoveryReport {
    fn text(&self, aside: &Path, at: Timestamp, backup: Option<PathBuf>) -> String {
        let whole = self.recovered.values().filter(|cut| cut.is_none()).count();
        let mut text = format!(
            "the database was damaged on {} and is stored as {}: {whole} sessions were saved whole",
            at.date(),
            aside.display()
        );
        if !self.cut.is_empty() {
            let some = self.cut.iter().take(5).cloned().collect::<Vec<_>>().join(", ");
            text += &format!(", {} are cut short ({some})", self.cut.len());
        }
        if let (true, Some(backup)) = (self.from_backup > 0, backup) {
            text += &format!(", {} of them as of the backup {}", self.from_backup, backup.display());
        }
        if self.lost > 0 {
            text += &format!(", {} are lost", self.lost);
        }
        if self.old_jobs > 0 {
            let count = self.old_jobs;
            text += &format!(
                "; {count} jobs and schedules are as in the backup and may have run since, so jobs are paused \
                 (`agentctl jobs resume`)"
            );
        }
        text
    }
}

async fn save_journal(
    new: &mut SqliteConnection,
    key: i64,
    mut journal: SalvagedJournal,
    from_backup: bool,
    at: Timestamp,
    summarise: SummaryFn<'_>,
    report: &mut RecoveryReport,
) -> Result<(), StoreError> {
    let mut known = journal.events();
    let Some(Envelope { session_id, at_ms: created, event: Event::SessionCreated(spec), .. }) =
        known.first().cloned()
    else {
        report.lost += 1;
        return Ok(());
    };
    let last = journal.last_seq();
    if !journal.is_whole {
        let text =
            format!("a damaged database took a part of this history: what came after event {last} is lost");
        let notice = Envelope {
            seq: journal.highest.max(last) + SKIPPED_SEQS,
            session_id,
            turn_id: None,
            item_id: None,
            step: None,
            parent_call_id: None,
            at_ms: at,
            origin: None,
            truncated_fields: Vec::new(),
            event: Event::Notice { kind: HISTORY_LOST.into(), text },
        };
        journal.lines.push(SalvagedRow::from_envelope(&notice));
        known.push(notice);
        report.cut.push(session_id.to_string());
    }
    let Some(summary) = summarise(&known) else {
        report.lost += 1;
        return Ok(());
    };
    report.from_backup += usize::from(from_backup);
    report.recovered.insert(key, (!journal.is_whole).then_some(last));
    let summaries = Summaries::from_events(&known);

    sqlx::query("begin immediate").execute(&mut *new).await?;
    let last_seq = journal.last_seq().max(journal.highest);
    insert_session(new, key, (session_id, created), &spec, summary, last_seq).await?;
    insert_events(new, key, &journal.lines).await?;
    let mut rest = SqlBatch::default();
    blobs::insert(&mut rest, SessionKey(key), &journal.blobs);
    known
        .iter()
        .filter_map(UsageRecord::from_envelope)
        .for_each(|booking| ledger::insert(&mut rest, &booking));
    texts::insert(&mut rest, SessionKey(key), &MessageText::from_journal(&known));
    rest.run_over(new).await?;
    summaries.write(new, key).await?;
    sqlx::query("commit").execute(new).await?;
    Ok(())
}

async fn insert_session(
    new: &mut SqliteConnection,
    key: i64,
    (session_id, created): (SessionId, Timestamp),
    spec: &SessionSpec,
    summary: SessionSummary,
    last_seq: Seq,
) -> Result<(), StoreError> {
    let mut sql = QueryBuilder::<Sqlite>::new(
        "insert into session (id, session_id, cwd, background, created_at_ms, title, model, mode, thinking, \
         temperature_thousandths, top_p_thousandths, state, requires, turn_id, updated_at_ms, last_seq, usage, cost_usd_micros, cost_at_least_usd_micros, last_line, last_turn, activity, context_tokens, notice, forked_from, \
         parent_session_id, parent_call_id, agent) ",
    );
    sql.push_values([summary], |mut values, summary| {
        values
            .push_bind(key)
            .push_bind(session_id.to_string())
            .push_bind(spec.cwd.clone())
            .push_bind(spec.background)
            .push_bind(created.0)
            .push_bind(summary.title)
            .push_bind(summary.model)
            .push_bind(summary.mode.name())
            .push_bind(summary.thinking.map(|thinking| thinking.to_string()))
            .push_bind(summary.sampling.temperature.map(|it| it.get()))
            .push_bind(summary.sampling.top_p.map(|it| it.get()))
            .push_bind(summary.state.name())
            .push_bind(summary.requires.map(to_text))
            .push_bind(summary.turn_id.map(|id| id.to_string()))
            .push_bind(summary.updated_at_ms.0)
            .push_bind(integer(last_seq))
            .push_bind(serde_json::to_string(&summary.usage).unwrap_or_default())
            .push_bind(summary.cost_usd_micros.map(integer))
            .push_bind(integer(summary.cost_at_least_usd_micros))
            .push_bind(summary.last_line)
            .push_bind(summary.last_turn.as_ref().and_then(|turn| serde_json::to_string(turn).ok()))
            .push_bind(summary.activity)
            .push_bind(summary.context_tokens.map(integer))
            .push_bind(summary.notice)
            .push_bind(spec.forked_from.as_ref().and_then(|from| serde_json::to_string(from).ok()))
            .push_bind(spec.parent.map(|parent| parent.session_id.to_string()))
            .push_bind(spec.parent.map(|parent| parent.call_id.to_string()))
            .push_bind(spec.agent.as_ref().map(|agent| agent.name.clone()));
    });
    sql.build().execute(new).await?;
    Ok(())
}

async fn insert_events(
    new: &mut SqliteConnection,
    key: i64,
    lines: &[SalvagedRow],
) -> Result<(), StoreError> {
    for chunk in lines.chunks(64) {
        let mut sql =
            QueryBuilder::<Sqlite>::new("insert into event (session, seq, at_ms, kind, delta_of, body) ");
        sql.push_values(chunk, |mut values, line| {
            values
                .push_bind(key)
                .push_bind(integer(line.seq))
                .push_bind(line.at_ms)
                .push_bind(&line.kind)
                .push_bind(line.delta_of)
                .push_bind(&line.body);
        });
        sql.build().persistent(false).execute(&mut *new).await?;
    }
    Ok(())
}
