//! Reads file changes from a journal.

use sqlx::Row as _;

use crate::error::StoreError;
use crate::handle::StoreReader;
use crate::rows::{JournalRow, Page, SessionKey};
use crate::sql_batch::integer;
use types::ids::Seq;

/// The rows that fit into a page, at least one. Bodies of other events are not loaded.
const FILE_CHANGES_PAGE: &str = "select seq, body, total from \
     (select seq, body, count(*) over () as total, row_number() over by_seq as nth, \
      sum(octet_length(body)) over by_seq as upto from \
      (select seq, body from event where session = ?1 and seq > ?2 and kind = 'file.changed' order by seq limit ?3) \
      window by_seq as (order by seq rows unbounded preceding)) \
     where upto <= ?4 or nth = 1 order by seq";

/// Rows per read of the file history.
const FILE_HISTORY_ROWS: u32 = 100;

impl StoreReader {
    /// The next events after `after` about the content of files, oldest first: checkpoints, changes, rewinds.
    pub async fn file_history_after(
        &self,
        key: SessionKey,
        after: Seq,
    ) -> Result<Vec<JournalRow>, StoreError> {
        let read = async {
            let rows = sqlx::query(
                "select seq, kind, body from event where session = ? and seq > ? \
                 and kind in ('file.checkpointed', 'file.changed', 'session.rewound') order by seq limit ?",
            )
            .bind(key.0)
            .bind(integer(after))
            .bind(FILE_HISTORY_ROWS)
            .fetch_all(&self.readers.current_pool().await)
            .await?;
            let row = |row: &sqlx::sqlite::SqliteRow| {
                Ok(JournalRow {
                    seq: u64::try_from(row.try_get::<i64, _>("seq")?).unwrap_or(0),
                    kind: row.try_get("kind")?,
                    body: row.try_get("body")?,
                })
            };
            rows.iter().map(row).collect()
        };
        self.report_damage(read.await)
    }

    /// A page of the `file.changed` events after `after`, oldest first: at most `limit` rows and at most
    /// `bytes` of bodies. The first one is always read, whatever its length.
    pub async fn file_changes_after(
        &self,
        key: SessionKey,
        after: Seq,
        limit: u32,
        bytes: usize,
    ) -> Result<Page<JournalRow>, StoreError> {
        let read = async {
            let query = sqlx::query(FILE_CHANGES_PAGE)
                .bind(key.0)
                .bind(integer(after))
                .bind(limit)
                .bind(i64::try_from(bytes).unwrap_or(i64::MAX));
            let rows = query.fetch_all(&self.readers.current_pool().await).await?;
            let total = rows.first().map_or(Ok(0), |row| row.try_get::<i64, _>("total"))?;
            let is_last =
                total < i64::from(limit) && usize::try_from(total).is_ok_and(|total| total == rows.len());
            let rows = rows.iter().map(|row| {
                Ok(JournalRow {
                    seq: u64::try_from(row.try_get::<i64, _>("seq")?).unwrap_or(0),
                    kind: "file.changed".into(),
                    body: row.try_get("body")?,
                })
            });
            Ok(Page { rows: rows.collect::<Result<_, StoreError>>()?, is_last })
        };
        self.report_damage(read.await)
    }
}
