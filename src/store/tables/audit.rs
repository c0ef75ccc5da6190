//! The audit log: an append-only table whose rows are chained by hashes.
//!
//! The writer computes the chain in the transaction of the decision, so both are written or neither. At
//! intervals it also writes the newest row's hash to a head file next to the database, so that missing rows at
//! the end can be detected. An attacker who can write both can rewrite the whole log. Only a hash that a user
//! stores elsewhere detects that.

use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use rusqlite::OptionalExtension as _;
use sha2::{Digest as _, Sha256};
use sqlx::Row as _;
use sqlx::sqlite::{SqliteConnection, SqliteRow};
use tokio::sync::oneshot;

use crate::command::WriterCommand;
use crate::database_file::sibling_path;
use crate::error::StoreError;
use crate::handle::{Store, StoreReader};
use crate::rows::Durability;
use crate::sql_batch::integer;
use crate::sql_batch::{SqlBatch, values};
use base::crash;
use types::audit::{AuditEntry, AuditHead, AuditKind, AuditNote};
use types::hex;
use types::ids::SessionId;
use types::time::Timestamp;

/// Rows per read of a check.
const PAGE_ROWS: i64 = 1_000;
/// Maximum number of faults that a check reports. More faults occur only if the whole log was rewritten.
const MAX_FAULTS: usize = 20;

const COLUMNS: &str = "id, at_ms, kind, session_id, seq, call_id, tool, digest, verdict, rule, reason, client, \
                       uid, pid, exe, sandbox, prev, hash";
/// Inserts one row of these columns.
const INSERT: &str = "insert into audit (id, at_ms, kind, session_id, seq, call_id, tool, digest, verdict, rule, \
                      reason, client, uid, pid, exe, sandbox, prev, hash) \
                      values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)";
const NEWEST: &str = "select id, hash from audit order by id desc limit 1";

/// Filters for audit rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AuditQuery {
    /// Only rows of this session.
    pub session_id: Option<SessionId>,
    /// Only rows at or after this time.
    pub since: Option<Timestamp>,
    /// Only rows with an id above this one.
    pub after: u64,
    /// Maximum number of rows.
    pub limit: u32,
}

/// The result of a check of the whole log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AuditCheck {
    /// Number of rows that were read.
    pub rows: u64,
    /// The newest row; `None` if the log is empty.
    pub head: Option<AuditHead>,
    /// Descriptions of the faults; empty if the log is intact.
    pub faults: Vec<String>,
}

impl Store {
    /// Writes decisions that belong to no journal. They survive a kill of the daemon.
    ///
    /// # Errors
    /// None of them was written.
    pub async fn record(&self, notes: Vec<AuditNote>, sync: Durability) -> Result<(), StoreError> {
        self.ask(|answer: oneshot::Sender<_>| WriterCommand::Record(notes, sync, answer)).await
    }
}

impl StoreReader {
    /// A page of the log, oldest first.
    pub async fn audit(&self, query: AuditQuery) -> Result<Vec<AuditEntry>, StoreError> {
        let rows = sqlx::query(
            "select id, at_ms, kind, session_id, seq, call_id, tool, digest, verdict, rule, reason, client, uid, pid, \
             exe, sandbox, prev, hash from audit \
             where id > ?1 and (?2 is null or session_id = ?2) and (?3 is null or at_ms >= ?3) order by id limit ?4",
        )
        .bind(integer(query.after))
        .bind(query.session_id.map(|id| id.to_string()))
        .bind(query.since.map(|at| at.0))
        .bind(query.limit)
        .fetch_all(&self.readers.current_pool().await)
        .await?;
        rows.iter().map(StoredRow::from_row).map(|row| row?.entry()).collect()
    }

    /// Reads the whole log and reports faults: rows that were changed, removed, inserted or moved. Missing
    /// rows at the end are found up to the row that the head file names. `known` is a row that the user
    /// stored elsewhere.
    pub async fn check_audit(&self, known: Option<AuditHead>) -> Result<AuditCheck, StoreError> {
        // Read the head file first, so that rows added meanwhile are no fault.
        let noted = recorded_head(&self.database_file.path);
        let marks = [
            (noted, "the file audit.head, which the daemon keeps in the folder of the database,"),
            (known, "the row that was given"),
        ];
        let mut chain = HashChain::default();
        let mut check = AuditCheck::default();
        loop {
            let rows = sqlx::query(sqlx::AssertSqlSafe(format!(
                "select {COLUMNS} from audit where id > ? order by id limit ?"
            )))
            .bind(integer(chain.last_read))
            .bind(PAGE_ROWS)
            .fetch_all(&self.readers.current_pool().await)
            .await?;
            let is_last = (rows.len() as i64) < PAGE_ROWS;
            for row in &rows {
                let row = StoredRow::from_row(row)?;
                chain.check_link(&row, &mut check);
                for (mark, whose) in &marks {
                    if let Some(mark) = mark.as_ref().filter(|mark| mark.id == row.id)
                        && mark.hash != row.hash
                    {
                        check.add_fault(format!("row {}: {whose} knows another row of this number", row.id));
                    }
                }
            }
            if is_last {
                break;
            }
        }
        let end = check.head.as_ref().map_or(0, |head| head.id);
        for (mark, whose) in &marks {
            if let Some(mark) = mark.as_ref().filter(|mark| mark.id > end) {
                check.add_fault(format!(
                    "rows {} to {} are missing: {whose} knows of them",
                    end + 1,
                    mark.id
                ));
            }
        }
        Ok(check)
    }
}

impl AuditCheck {
    fn add_fault(&mut self, fault: String) {
        if self.faults.len() < MAX_FAULTS {
            self.faults.push(fault);
        } else if self.faults.len() == MAX_FAULTS {
            self.faults.push("and more".into());
        }
    }
}

/// Follows the chain from row to row.
#[derive(Default)]
struct HashChain {
    last_read: u64,
    hash: String,
}

impl HashChain {
    fn check_link(&mut self, row: &StoredRow, check: &mut AuditCheck) {
        let expected = self.last_read + 1;
        if row.id != expected {
            check.add_fault(format!("rows {expected} to {} are missing", row.id - 1));
        } else if row.prev != self.hash {
            check.add_fault(format!("row {}: it does not follow the row before it", row.id));
        }
        if row.computed_hash() != row.hash {
            check.add_fault(format!("row {}: it was changed", row.id));
        }
        self.last_read = row.id;
        self.hash.clone_from(&row.hash);
        check.rows += 1;
        check.head = Some(AuditHead { id: row.id, hash: row.hash.clone() });
    }
}

/// A stored row, valid or not.
struct StoredRow {
    id: u64,
    at_ms: i64,
    texts: [Option<String>; 11],
    numbers: [Option<i64>; 3],
    prev: String,
    hash: String,
}

impl StoredRow {
    fn from_row(row: &SqliteRow) -> Result<Self, StoreError> {
        let id: i64 = row.try_get("id")?;
        Ok(Self {
            id: u64::try_from(id)
                .map_err(|_| StoreError::Corrupt("a negative number in the audit log".into()))?,
            at_ms: row.try_get("at_ms")?,
            texts: [
                row.try_get("kind")?,
                row.try_get("session_id")?,
                row.try_get("call_id")?,
                row.try_get("tool")?,
                row.try_get("digest")?,
                row.try_get("verdict")?,
                row.try_get("rule")?,
                row.try_get("reason")?,
                row.try_get("client")?,
                row.try_get("exe")?,
                row.try_get("sandbox")?,
            ],
            numbers: [row.try_get("seq")?, row.try_get("uid")?, row.try_get("pid")?],
            prev: row.try_get("prev")?,
            hash: row.try_get("hash")?,
        })
    }

    /// The hash that the row should have.
    fn computed_hash(&self) -> String {
        let [kind, session_id, call_id, tool, digest, verdict, rule, reason, client, exe, sandbox] =
            &self.texts;
        let [seq, uid, pid] = &self.numbers;
        hash_of(&serde_json::json!([
            self.prev, self.id, self.at_ms, kind, session_id, seq, call_id, tool, digest, verdict, rule,
            reason, client, uid, pid, exe, sandbox
        ]))
    }

    fn entry(self) -> Result<AuditEntry, StoreError> {
        let strange =
            |what: &str| StoreError::Corrupt(format!("a strange {what} in row {} of the audit log", self.id));
        let [kind, session_id, call_id, tool, digest, verdict, rule, reason, client, exe, sandbox] =
            self.texts.clone();
        let [seq, uid, pid] = self.numbers;
        let kind = AuditKind::ALL.into_iter().find(|known| Some(known.name()) == kind.as_deref());
        let note = AuditNote {
            at_ms: Timestamp(self.at_ms),
            kind: kind.ok_or_else(|| strange("kind"))?,
            session_id: session_id.map(|id| id.parse()).transpose().map_err(|_| strange("session"))?,
            seq: seq.map(u64::try_from).transpose().map_err(|_| strange("number"))?,
            call_id: call_id.map(|id| id.parse()).transpose().map_err(|_| strange("call"))?,
            tool,
            digest,
            verdict: verdict.unwrap_or_default(),
            rule,
            reason: reason.unwrap_or_default(),
            client,
            uid: uid.map(u32::try_from).transpose().map_err(|_| strange("user"))?,
            pid: pid.map(i32::try_from).transpose().map_err(|_| strange("process"))?,
            exe,
            sandbox: sandbox.unwrap_or_default(),
        };
        Ok(AuditEntry { id: self.id, note, prev: self.prev, hash: self.hash })
    }
}

/// The hash of a row with number `id` that follows `prev`.
fn hash(prev: &str, id: u64, note: &AuditNote) -> String {
    hash_of(&serde_json::json!([
        prev,
        id,
        note.at_ms.0,
        note.kind.name(),
        note.session_id,
        note.seq.map(integer),
        note.call_id,
        note.tool,
        note.digest,
        note.verdict,
        note.rule,
        note.reason,
        note.client,
        note.uid,
        note.pid,
        note.exe,
        note.sandbox
    ]))
}

fn hash_of(values: &serde_json::Value) -> String {
    hex::encode(&Sha256::digest(values.to_string().as_bytes()))
}

/// The newest row; an empty hash if the log is empty.
pub(crate) fn head(connection: &rusqlite::Connection) -> Result<AuditHead, StoreError> {
    let row = connection.query_row(NEWEST, [], |row| Ok((row.get(0)?, row.get(1)?))).optional()?;
    Ok(head_of(row))
}

/// Same as `head`, over a connection other than the writer's.
async fn newest_row(connection: &mut SqliteConnection) -> Result<AuditHead, StoreError> {
    Ok(head_of(sqlx::query_as(NEWEST).fetch_optional(connection).await?))
}

fn head_of(row: Option<(i64, String)>) -> AuditHead {
    let (id, hash) = row.unwrap_or_default();
    AuditHead { id: u64::try_from(id).unwrap_or(0), hash }
}

/// Adds rows after `head` and moves `head` to the last of them. The caller must discard `head` if the
/// transaction fails.
pub(crate) fn insert(script: &mut SqlBatch, head: &mut AuditHead, notes: &[AuditNote]) {
    for note in notes {
        crash::point("C24.deciding");
        let id = head.id + 1;
        let own = hash(&head.hash, id, note);
        script.add(
            INSERT,
            values![
                integer(id),
                note.at_ms.0,
                note.kind.name(),
                note.session_id.map(|id| id.to_string()),
                note.seq.map(integer),
                note.call_id.map(|id| id.to_string()),
                note.tool.as_ref(),
                note.digest.as_ref(),
                &note.verdict,
                note.rule.as_ref(),
                &note.reason,
                note.client.as_ref(),
                note.uid,
                note.pid,
                note.exe.as_ref(),
                &note.sandbox,
                &head.hash,
                &own,
            ],
        );
        *head = AuditHead { id, hash: own };
    }
}

/// Path of the head file.
fn anchor_path(database: &Path) -> PathBuf {
    database.parent().unwrap_or(Path::new(".")).join("audit.head")
}

/// The row in the head file; `None` if the file cannot be read.
fn recorded_head(database: &Path) -> Option<AuditHead> {
    let text = std::fs::read_to_string(anchor_path(database)).ok()?;
    serde_json::from_str(&text).ok()
}

/// Whether the log contains the row of the head file.
pub(crate) fn fits_note(connection: &rusqlite::Connection, database: &Path) -> bool {
    let Some(known) = recorded_head(database) else { return true };
    let hash = connection
        .query_row("select hash from audit where id = ?", [integer(known.id)], |row| row.get::<_, String>(0))
        .optional();
    // An unreadable row does not contradict the head file.
    hash.is_err() || hash.is_ok_and(|hash| hash.as_deref() == Some(&known.hash))
}

/// Writes the newest row to the head file. Blocking. The file is not synced. After a power loss it may
/// contain an older row, and then it detects fewer lost rows.
pub(crate) fn note_head(database: &Path, head: &AuditHead) -> std::io::Result<()> {
    let path = anchor_path(database);
    let part = sibling_path(&path, ".part");
    let mut file =
        std::fs::OpenOptions::new().create(true).truncate(true).write(true).mode(0o600).open(&part)?;
    file.write_all(serde_json::to_string(head)?.as_bytes())?;
    std::fs::rename(part, path)
}

/// Adds a row which says that this database was recovered from a damaged one. Returns that row.
pub(crate) async fn record_recovery(
    new: &mut SqliteConnection,
    at: Timestamp,
) -> Result<AuditHead, StoreError> {
    let mut end = newest_row(new).await?;
    let reason = format!("a damaged database was set aside; rows after {} may be lost", end.id);
    let note = AuditNote::new(at, AuditKind::Rescue, "rescued", reason);
    let mut script = SqlBatch::default();
    insert(&mut script, &mut end, &[note]);
    script.run_over(new).await?;
    Ok(end)
}

/// Copies the readable rows of `source` unchanged after the rows of `new`, and returns the last one.
pub(crate) async fn copy_rows(
    source: &mut SqliteConnection,
    new: &mut SqliteConnection,
) -> Result<u64, StoreError> {
    let mut last = newest_row(new).await?.id;
    loop {
        let query =
            sqlx::AssertSqlSafe(format!("select {COLUMNS} from audit where id > ? order by id limit 1"));
        let Ok(Some(row)) = sqlx::query(query).bind(integer(last)).fetch_optional(&mut *source).await else {
            return Ok(last);
        };
        let Ok(row) = StoredRow::from_row(&row) else { return Ok(last) };
        let [kind, session_id, call_id, tool, digest, verdict, rule, reason, client, exe, sandbox] =
            row.texts;
        let [seq, uid, pid] = row.numbers;
        let insert =
            sqlx::query(INSERT).bind(integer(row.id)).bind(row.at_ms).bind(kind).bind(session_id).bind(seq);
        let insert =
            insert.bind(call_id).bind(tool).bind(digest).bind(verdict).bind(rule).bind(reason).bind(client);
        let insert = insert.bind(uid).bind(pid).bind(exe).bind(sandbox).bind(row.prev).bind(row.hash);
        insert.execute(&mut *new).await?;
        last = row.id;
    }
}
