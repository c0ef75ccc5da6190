//! Content that is too large for an event or for a model. It is written in the transaction that refers to it,
//! read in parts and removed with its session.
//!
//! Most blobs are in the database, in parts. The output of a command is a file in the folder `blobs` next to
//! the database; backups omit it. The file exists before the transaction that names it. It is removed after
//! the transaction that deletes its row. So a file without a row is garbage, and [`StoreReader::sweep_blobs`]
//! removes it.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sqlx::Row as _;
use sqlx::sqlite::SqliteConnection;

use crate::error::StoreError;
use crate::handle::StoreReader;
use crate::rows::{EventHead, SessionKey};
use crate::sql_batch::{SqlBatch, Value, integer, values};
use types::blob::{Blob, Content};
use types::event::Envelope;
use types::ids::{BlobId, Seq};
use types::wire;

const PART_BYTES: usize = 64 * 1024;

/// Properties of a stored blob.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredBlob {
    /// Media type, for example `image/png`.
    pub media_type: String,
    /// Length in bytes.
    pub bytes: u64,
    id: i64,
    file: Option<PathBuf>,
}

impl StoreReader {
    /// A blob of a session; `None` if the session does not have it.
    pub async fn blob(&self, key: SessionKey, blob_id: BlobId) -> Result<Option<StoredBlob>, StoreError> {
        let read = async {
            let row = sqlx::query(
                "select id, media_type, bytes, in_file from blob where session = ? and blob_id = ?",
            )
            .bind(key.0)
            .bind(blob_id.to_string())
            .fetch_optional(&self.readers.current_pool().await)
            .await?;
            row.map(|row| {
                let in_file: bool = row.try_get("in_file")?;
                Ok(StoredBlob {
                    media_type: row.try_get("media_type")?,
                    bytes: unsigned(row.try_get("bytes")?),
                    id: row.try_get("id")?,
                    file: in_file.then(|| self.blob_folder().join(blob_id.to_string())),
                })
            })
            .transpose()
        };
        self.report_damage(read.await)
    }

    /// At most `most` bytes of a blob from `offset` on. Fewer bytes are returned only at its end.
    ///
    /// # Errors
    /// The blob could not be read, or a part of it is missing.
    pub async fn read_blob(
        &self,
        blob: &StoredBlob,
        offset: u64,
        most: usize,
    ) -> Result<Vec<u8>, StoreError> {
        let wanted = usize::try_from(blob.bytes.saturating_sub(offset)).unwrap_or(usize::MAX).min(most);
        if wanted == 0 {
            return Ok(Vec::new());
        }
        if let Some(path) = blob.file.clone() {
            let read = tokio::task::spawn_blocking(move || read_file(&path, offset, wanted)).await;
            let read_error = |error: &dyn std::fmt::Display| {
                StoreError::Sql(format!("the file that holds this content could not be read: {error}"))
            };
            return read.map_err(|error| read_error(&error))?.map_err(|error| read_error(&error));
        }
        let first = offset / PART_BYTES as u64;
        let last = (offset + wanted as u64 - 1) / PART_BYTES as u64;
        let read = async {
            let parts: Vec<Vec<u8>> = sqlx::query_scalar(
                "select content from blob_part where blob = ? and nth between ? and ? order by nth",
            )
            .bind(blob.id)
            .bind(integer(first))
            .bind(integer(last))
            .fetch_all(&self.readers.current_pool().await)
            .await?;
            let skip = usize::try_from(offset - first * PART_BYTES as u64).unwrap_or(usize::MAX);
            let bytes = parts.concat();
            match bytes.get(skip..skip.saturating_add(wanted)) {
                Some(bytes) => Ok(bytes.to_vec()),
                None => Err(StoreError::Corrupt("a part of a blob is missing".into())),
            }
        };
        self.report_damage(read.await)
    }

    /// Records that a row does not contain a valid event. Returns the error for it.
    pub fn unreadable(&self, seq: Seq, why: &str) -> StoreError {
        let error = StoreError::Corrupt(format!("event {seq} cannot be read: {why}"));
        self.health.record_read::<()>(&Err(error.clone()));
        error
    }

    /// An event with all truncated values restored; `None` if this version does not know its kind.
    ///
    /// # Errors
    /// A truncated value could not be read.
    pub async fn restored_event(
        &self,
        key: SessionKey,
        seq: Seq,
        body: &str,
    ) -> Result<Option<Envelope>, StoreError> {
        let cuts = wire::truncated_fields(body);
        let known = match serde_json::from_str::<Envelope>(body) {
            Ok(envelope) => envelope,
            Err(error) if !EventHead::has_event_fields(body) => {
                return Err(self.unreadable(seq, &error.to_string()));
            }
            Err(error) => {
                tracing::warn!(seq, %error, "an event has an unknown type");
                return Ok(None);
            }
        };
        if cuts.is_empty() {
            return Ok(Some(known));
        }
        let missing = || StoreError::Corrupt(format!("what was cut out of event {seq} is missing"));
        let mut blobs: HashMap<BlobId, Vec<u8>> = HashMap::new();
        for cut in cuts {
            if let Entry::Vacant(place) = blobs.entry(cut.blob_id) {
                let Some(blob) = self.blob(key, cut.blob_id).await? else {
                    return self.report_damage(Err(missing()));
                };
                place.insert(self.read_blob(&blob, 0, usize::MAX).await?);
            }
        }
        let whole = wire::restore(body, &blobs).ok_or_else(missing);
        self.report_damage(whole.map(Some))
    }

    /// The folder of blobs that are files.
    #[must_use]
    pub fn blob_folder(&self) -> PathBuf {
        folder_of(&self.database_file.path)
    }

    /// Removes files that no session refers to. They remain if a daemon is killed while a command runs or while a
    /// session is deleted. Call it before the first command runs.
    ///
    /// # Errors
    /// The database could not be read. Nothing was removed then.
    pub async fn sweep_blobs(&self) -> Result<usize, StoreError> {
        let known: Vec<String> = sqlx::query_scalar("select blob_id from blob where in_file = 1")
            .fetch_all(&self.readers.current_pool().await)
            .await?;
        let known: HashSet<String> = known.into_iter().collect();
        let folder = self.blob_folder();
        let swept = tokio::task::spawn_blocking(move || {
            let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
            let left = entries.filter(|entry| {
                entry
                    .file_name()
                    .to_str()
                    .is_some_and(|name| name.parse::<BlobId>().is_ok() && !known.contains(name))
            });
            left.filter(|entry| std::fs::remove_file(entry.path()).is_ok()).count()
        });
        Ok(swept.await.unwrap_or(0))
    }
}

/// The folder of blob files of a database.
pub(crate) fn folder_of(database: &Path) -> PathBuf {
    database.with_file_name("blobs")
}

fn read_file(path: &Path, offset: u64, wanted: usize) -> std::io::Result<Vec<u8>> {
    let mut file = std::fs::File::open(path)?;
    file.seek(SeekFrom::Start(offset))?;
    let mut bytes = vec![0; wanted];
    file.read_exact(&mut bytes)?;
    Ok(bytes)
}

/// Writes blobs. A blob that the session already has stays unchanged.
pub(crate) fn insert(script: &mut SqlBatch, key: SessionKey, blobs: &[Blob]) {
    for blob in blobs {
        let blob_id = blob.blob_id.to_string();
        let in_file = matches!(blob.content, Content::File { .. });
        script.add(
            "insert into blob (session, blob_id, media_type, bytes, in_file) values (?, ?, ?, ?, ?) \
             on conflict (session, blob_id) do nothing",
            values![key.0, &blob_id, &blob.media_type, integer(blob.len()), in_file],
        );
        let Content::Bytes(bytes) = &blob.content else { continue };
        for (nth, from) in (0..bytes.len()).step_by(PART_BYTES).enumerate() {
            let part = Value::Part(Arc::clone(bytes), from..bytes.len().min(from + PART_BYTES));
            script.add(
                "insert into blob_part (blob, nth, content) select id, ?, ? from blob \
                 where session = ? and blob_id = ? on conflict (blob, nth) do nothing",
                values![nth as i64, part, key.0, &blob_id],
            );
        }
    }
}

/// Gives a session the blobs of another one. Both share the content of blobs that are files.
pub(crate) fn copy(script: &mut SqlBatch, from: SessionKey, to: SessionKey, ids: &[BlobId]) {
    for blob_id in ids {
        let blob_id = blob_id.to_string();
        script.add(
            "insert into blob (session, blob_id, media_type, bytes, in_file) \
             select ?, blob_id, media_type, bytes, in_file from blob where session = ? and blob_id = ? \
             on conflict (session, blob_id) do nothing",
            values![to.0, from.0, &blob_id],
        );
        script.add(
            "insert into blob_part (blob, nth, content) select b.id, p.nth, p.content \
             from blob a join blob_part p on p.blob = a.id join blob b on b.blob_id = a.blob_id \
             where a.session = ? and a.blob_id = ? and b.session = ? on conflict (blob, nth) do nothing",
            values![from.0, &blob_id, to.0],
        );
    }
}

/// The blob files of a session that will be deleted, except those that another session shares.
pub(crate) fn files_of(
    connection: &rusqlite::Connection,
    key: SessionKey,
) -> Result<Vec<String>, StoreError> {
    let mut files = connection.prepare(
        "select blob_id from blob where session = ?1 and in_file = 1 and blob_id not in \
         (select blob_id from blob where session <> ?1 and in_file = 1)",
    )?;
    let files = files.query_map([key.0], |row| row.get(0))?;
    Ok(files.collect::<Result<_, _>>()?)
}

/// Removes the files of a deleted session. [`StoreReader::sweep_blobs`] removes the files whose removal fails
/// here.
pub(crate) fn remove_files(database: &Path, files: &[String]) {
    for name in files {
        if let Err(error) = std::fs::remove_file(folder_of(database).join(name)) {
            tracing::debug!(name, %error, "could not delete a blob of a removed session");
        }
    }
}

/// Writes events of older versions in the current form, each in a separate transaction.
pub(crate) async fn renew_outdated_events(connection: &mut SqliteConnection) -> Result<(), StoreError> {
    loop {
        let next: Option<(i64, i64, String)> = sqlx::query_as(
            "select o.session, o.seq, e.body from outdated_event o \
             join event e on e.session = o.session and e.seq = o.seq limit 1",
        )
        .fetch_optional(&mut *connection)
        .await?;
        let Some((session, seq, body)) = next else { break };
        let mut script = SqlBatch::default();
        script.add("begin immediate", values![]);
        if let Some((renewed, blobs)) = wire::renew(&body) {
            insert(&mut script, SessionKey(session), &blobs);
            script.add(
                "update event set body = ? where session = ? and seq = ?",
                values![&*renewed, session, seq],
            );
        }
        script.add("delete from outdated_event where session = ? and seq = ?", values![session, seq]);
        script.add("commit", values![]);
        script.run_over(connection).await?;
    }
    Ok(())
}

fn unsigned(value: i64) -> u64 {
    u64::try_from(value).unwrap_or(0)
}
