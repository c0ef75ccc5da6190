//! Reads everything that a possibly damaged database still contains, in order, up to the first unreadable row.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::path::Path;

use sqlx::sqlite::SqliteConnection;

use crate::database_file::open_to_read;
use crate::error::StoreError;
use crate::rows::EventHead;
use crate::sql_batch::integer;
use crate::tables::audit;
use crate::tables::jobs;
use crate::tables::ledger;
use crate::tables::trust;
use types::blob::{Blob, Content};
use types::event::Envelope;
use types::ids::BlobId;
use types::wire;

/// Rows per read while no error occurs.
const PAGE_ROWS: i64 = 256;

/// One row of a journal.
#[derive(Clone, Debug)]
pub(crate) struct SalvagedRow {
    pub seq: u64,
    pub at_ms: i64,
    pub kind: String,
    pub delta_of: Option<i64>,
    pub body: String,
}

impl SalvagedRow {
    pub fn from_envelope(envelope: &Envelope) -> Self {
        Self {
            seq: envelope.seq,
            at_ms: envelope.at_ms.0,
            kind: envelope.event.kind().into(),
            delta_of: None,
            body: serde_json::to_string(envelope).unwrap_or_default(),
        }
    }
}

/// The readable part of one session.
#[derive(Debug, Default)]
pub(crate) struct SalvagedJournal {
    /// The rows from the first one on, without a gap.
    pub lines: Vec<SalvagedRow>,
    /// Whether the journal is complete.
    pub is_whole: bool,
    /// The highest seq that the session is known to have used.
    pub highest: u64,
    /// Blobs of the session, as far as they can be read.
    pub blobs: Vec<Blob>,
}

impl SalvagedJournal {
    /// Ends the journal before the first event with a lost part. Writes events of older versions in the current
    /// form.
    fn cut_at_loss(&mut self) {
        let blob_ids: HashSet<BlobId> = self.blobs.iter().map(|blob| blob.blob_id).collect();
        let has_all = |line: &SalvagedRow| {
            wire::truncated_fields(&line.body).iter().all(|cut| blob_ids.contains(&cut.blob_id))
        };
        if let Some(end) = self.lines.iter().position(|line| !has_all(line)) {
            self.lines.truncate(end);
            self.is_whole = false;
        }
        for line in self.lines.iter_mut().filter(|line| line.delta_of.is_none()) {
            if let Some((body, blobs)) = wire::renew(&line.body) {
                line.body = body;
                self.blobs.extend(blobs);
            }
        }
    }

    /// The events with all truncated values restored.
    pub fn events(&self) -> Vec<Envelope> {
        let bytes = self.blobs.iter().filter_map(|blob| match &blob.content {
            Content::Bytes(bytes) => Some((blob.blob_id, bytes.to_vec())),
            Content::File { .. } => None,
        });
        let blobs: HashMap<BlobId, Vec<u8>> = bytes.collect();
        self.lines.iter().filter_map(|line| wire::restore(&line.body, &blobs)).collect()
    }

    /// Seq of the last row; 0 if there is none.
    pub fn last_seq(&self) -> u64 {
        self.lines.last().map_or(0, |line| line.seq)
    }
}

/// A read-only connection to a database that may be damaged.
pub(crate) struct DamagedDatabase(SqliteConnection);

impl DamagedDatabase {
    /// Opens the database; `None` if that fails.
    pub async fn open(path: &Path) -> Option<Self> {
        match open_to_read(path).await {
            Ok(connection) => Some(Self(connection)),
            Err(error) => {
                tracing::warn!(path = %path.display(), %error, "could not read any of it");
                None
            }
        }
    }

    /// Checks that all text columns in the session table contain text.
    ///
    /// # Errors
    /// A column contains something else.
    pub async fn texts(&mut self) -> Result<(), StoreError> {
        use sqlx::{Row as _, TypeInfo as _, ValueRef as _};
        let rows = sqlx::query("select * from session").fetch_all(&mut self.0).await?;
        for row in &rows {
            for column in 0..row.len() {
                if row.try_get_raw(column)?.type_info().name() == "TEXT" {
                    row.try_get::<String, _>(column)?;
                }
            }
        }
        Ok(())
    }

    /// Keys of all sessions that a scan from either end finds, and whether the scans met no error.
    pub async fn session_keys(&mut self) -> (BTreeSet<i64>, bool) {
        let mut keys = BTreeSet::new();
        let mut all = true;
        for (up, down) in [
            (
                "select session from event where session > ? order by session limit 1",
                "select session from event where session < ? order by session desc limit 1",
            ),
            (
                "select id from session where id > ? order by id limit 1",
                "select id from session where id < ? order by id desc limit 1",
            ),
        ] {
            if !self.scan_keys(up, i64::MIN, &mut keys).await {
                all = false;
                self.scan_keys(down, i64::MAX, &mut keys).await;
            }
        }
        (keys, all)
    }

    async fn scan_keys(&mut self, query: &'static str, from: i64, keys: &mut BTreeSet<i64>) -> bool {
        let mut last_key = from;
        loop {
            let next: Result<Option<i64>, _> =
                sqlx::query_scalar(query).bind(last_key).fetch_optional(&mut self.0).await;
            match next {
                Ok(None) => return true,
                // Stop at a key that does not advance the scan, because damage can make the index circular.
                Ok(Some(key)) if (key > last_key) == (from == i64::MIN) && key != last_key => last_key = key,
                _ => return false,
            }
            keys.insert(last_key);
        }
    }

    /// Reads a session's journal as far as possible.
    pub async fn journal(&mut self, key: i64) -> SalvagedJournal {
        let mut journal = SalvagedJournal { is_whole: true, ..SalvagedJournal::default() };
        let mut session_id = None;
        let mut limit = PAGE_ROWS;
        loop {
            let after = journal.last_seq();
            match self.page(key, after, limit).await {
                Ok(lines) => {
                    let is_end = lines.is_empty() || (lines.len() as i64) < limit;
                    for line in lines {
                        if !is_next_row(&line, journal.last_seq(), &mut session_id) {
                            journal.is_whole = false;
                            break;
                        }
                        journal.lines.push(line);
                    }
                    if is_end || !journal.is_whole {
                        break;
                    }
                }
                Err(_) if limit > 1 => limit = 1,
                Err(_) => {
                    journal.is_whole = false;
                    break;
                }
            }
        }
        for query in
            ["select max(seq) from event where session = ?", "select last_seq from session where id = ?"]
        {
            let highest: Result<Option<i64>, _> =
                sqlx::query_scalar(query).bind(key).fetch_one(&mut self.0).await;
            let highest = highest.ok().flatten().and_then(|seq| u64::try_from(seq).ok()).unwrap_or(0);
            journal.highest = journal.highest.max(highest);
        }
        journal.blobs = self.blobs(key).await;
        journal.cut_at_loss();
        // Damage can also hide rows without an error. Then the last seq is lower than the highest known one.
        journal.is_whole &= !journal.lines.is_empty() && journal.highest <= journal.last_seq();
        journal
    }

    /// The blobs of a session that can be read completely.
    async fn blobs(&mut self, key: i64) -> Vec<Blob> {
        let sql = "select id, blob_id, media_type, bytes, in_file from blob where session = ?";
        let rows: Vec<(i64, String, String, i64, bool)> = self.rows_of(sql, key).await;
        let mut blobs = Vec::new();
        for (id, blob_id, media_type, bytes, in_file) in rows {
            let (Ok(blob_id), Ok(bytes)) = (blob_id.parse::<BlobId>(), u64::try_from(bytes)) else {
                continue;
            };
            if in_file {
                blobs.push(Blob { blob_id, media_type, content: Content::File { bytes } });
                continue;
            }
            let sql = "select content from blob_part where blob = ? order by nth";
            let parts: Vec<(Vec<u8>,)> = self.rows_of(sql, id).await;
            let content: Vec<u8> = parts.into_iter().flat_map(|(part,)| part).collect();
            if content.len() as u64 == bytes {
                blobs.push(Blob { blob_id, media_type, content: Content::Bytes(content.into()) });
            }
        }
        blobs
    }

    async fn page(&mut self, key: i64, after: u64, limit: i64) -> Result<Vec<SalvagedRow>, StoreError> {
        // `select *`, because an older schema has another name for the column `delta_of`.
        let rows: Vec<(i64, i64, i64, String, Option<i64>, String)> =
            sqlx::query_as("select * from event where session = ? and seq > ? order by seq limit ?")
                .bind(key)
                .bind(integer(after))
                .bind(limit)
                .fetch_all(&mut self.0)
                .await?;
        let line = |(_, seq, at_ms, kind, delta_of, body): (i64, i64, i64, String, Option<i64>, String)| {
            let seq = u64::try_from(seq).map_err(|_| StoreError::Corrupt("a negative number".into()))?;
            Ok(SalvagedRow { seq, at_ms, kind, delta_of, body })
        };
        rows.into_iter().map(line).collect()
    }

    /// Copies the readable replies, questions and processes of the sessions in `recovered_sessions`. If a
    /// journal was truncated, only the rows of its recovered part are copied. Existing rows stay unchanged. Returns how
    /// many jobs and schedules were added.
    pub async fn copy_side_tables(
        &mut self,
        new: &mut SqliteConnection,
        recovered_sessions: &BTreeMap<i64, Option<u64>>,
    ) -> Result<u64, StoreError> {
        audit::copy_rows(&mut self.0, new).await?;
        trust::copy(&mut self.0, new).await?;
        let added_jobs = jobs::copy(&mut self.0, new).await?;
        ledger::copy(&mut self.0, new).await?;
        type Reply = (String, String, Option<i64>, String, String, i64);
        let replies: Vec<Reply> =
            self.rows("select method, key, session, digest, reply, at_ms from idempotency").await;
        for (method, key, session, digest, reply, at_ms) in replies {
            let belongs = session.is_none_or(|session| match recovered_sessions.get(&session) {
                Some(None) => true,
                Some(Some(last)) => seq_of(&reply).is_none_or(|seq| seq <= *last),
                None => false,
            });
            if belongs {
                let insert = "insert or ignore into idempotency (method, key, session, digest, reply, at_ms) \
                              values (?, ?, ?, ?, ?, ?)";
                let row = sqlx::query(insert).bind(method).bind(key).bind(session).bind(digest);
                row.bind(reply).bind(at_ms).execute(&mut *new).await?;
            }
        }
        let questions: Vec<(String, i64, i64, Option<i64>)> =
            self.rows("select request_id, session, seq, settled_seq from question").await;
        for (id, session, seq, settled) in questions {
            let Some(cut) = recovered_sessions.get(&session) else { continue };
            let last = cut.map_or(i64::MAX, integer);
            if seq <= last {
                let insert = "insert or ignore into question (request_id, session, seq, settled_seq) values (?, ?, ?, ?)";
                let row = sqlx::query(insert).bind(id).bind(session).bind(seq);
                row.bind(settled.filter(|seq| *seq <= last)).execute(&mut *new).await?;
            }
        }
        let processes: Vec<(String, i64, i64, i64, String, i64)> =
            self.rows("select call_id, session, pid, started, boot_id, at_ms from process").await;
        for (call_id, session, pid, started, boot_id, at_ms) in processes {
            if recovered_sessions.contains_key(&session) {
                let insert = "insert or ignore into process (call_id, session, pid, started, boot_id, at_ms) \
                              values (?, ?, ?, ?, ?, ?)";
                let row = sqlx::query(insert).bind(call_id).bind(session).bind(pid).bind(started);
                row.bind(boot_id).bind(at_ms).execute(&mut *new).await?;
            }
        }
        Ok(added_jobs)
    }

    /// Rows of one key, up to the first unreadable one.
    async fn rows_of<T>(&mut self, query: &'static str, key: i64) -> Vec<T>
    where
        T: for<'r> sqlx::FromRow<'r, sqlx::sqlite::SqliteRow> + Send + Unpin,
    {
        use futures_util::TryStreamExt as _;
        let mut readable = Vec::new();
        let mut rows = sqlx::query_as::<_, T>(query).bind(key).fetch(&mut self.0);
        while let Ok(Some(row)) = rows.try_next().await {
            readable.push(row);
        }
        readable
    }

    /// All rows of a query, up to the first unreadable one.
    async fn rows<T>(&mut self, query: &'static str) -> Vec<T>
    where
        T: for<'r> sqlx::FromRow<'r, sqlx::sqlite::SqliteRow> + Send + Unpin,
    {
        use futures_util::TryStreamExt as _;
        let mut readable = Vec::new();
        let mut rows = sqlx::query_as::<_, T>(query).fetch(&mut self.0);
        while let Ok(Some(row)) = rows.try_next().await {
            readable.push(row);
        }
        readable
    }
}

/// Whether a row is the next one of this session's journal.
fn is_next_row(line: &SalvagedRow, last: u64, session_id: &mut Option<String>) -> bool {
    let Ok(head) = serde_json::from_str::<EventHead>(&line.body) else { return false };
    let is_first = last == 0;
    let is_known = *session_id.get_or_insert_with(|| head.session_id.clone()) == head.session_id;
    head.seq == line.seq
        && head.kind == line.kind
        && line.seq > last
        && is_known
        && (!is_first || (line.seq == 1 && line.kind == "session.created"))
}

/// The seq that a stored reply refers to.
fn seq_of(reply: &str) -> Option<u64> {
    serde_json::from_str::<serde_json::Value>(reply).ok()?.get("seq")?.as_u64()
}
