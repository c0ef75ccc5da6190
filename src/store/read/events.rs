//! Reads pages of the journal. Each call holds a reader for one page only, so that a slow client never delays a
//! checkpoint.

use futures_util::{Stream, TryStreamExt as _};
use sqlx::Row as _;
use sqlx::sqlite::SqliteRow;

use crate::error::StoreError;
use crate::handle::StoreReader;
use crate::rows::{JournalRow, Page, SessionKey};
use crate::sql_batch::{integer, unsigned};
use types::ids::{ItemId, Seq};

/// Reads the journal.
const EVENTS: &str =
    "select seq, kind, body from event where session = ?1 and seq > ?2 order by seq limit ?3";
/// Reads the rows that a replay needs: all rows of the open turn, and those rows of settled turns whose kind
/// is not transient.
const LASTING_EVENTS: &str = "select seq, kind, body from event where session = ?1 and seq > ?2 \
     and (seq > ?4 or kind not in (select value from json_each(?5)) \
     or seq in (select value from json_each(?6))) order by seq limit ?3";
/// Reads items.
const ITEMS: &str = "select i.first_seq, i.last_seq, i.kind, i.status, a.body as first, b.body as last from item i \
     join event a on a.session = i.session and a.seq = i.first_seq \
     join event b on b.session = i.session and b.seq = i.last_seq \
     where i.session = ?1 and i.first_seq > ?2 and (?4 is null or i.kind in (select value from json_each(?4))) \
     order by i.first_seq limit ?3";
/// Reads items backwards, newest first.
const ITEMS_BACKWARDS: &str = "select i.first_seq, i.last_seq, i.kind, i.status, a.body as first, b.body as last from item i \
     join event a on a.session = i.session and a.seq = i.first_seq \
     join event b on b.session = i.session and b.seq = i.last_seq \
     where i.session = ?1 and i.first_seq < ?2 and (?4 is null or i.kind in (select value from json_each(?4))) \
     order by i.first_seq desc limit ?3";

/// End of a journal's settled turns, and the kinds that a replay skips in them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettledTurns {
    /// Seq of the newest `turn.completed`; 0 if there is none.
    upto: Seq,
    /// `passing` is a JSON array of the kinds to skip. `newest` is a JSON array of seqs to read in spite of
    /// their kind.
    passing: String,
    newest: String,
}

/// An item with the bodies of its first and its last event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredItem {
    /// Seq of the first event.
    pub first_seq: Seq,
    /// Seq of the last event that is not a delta.
    pub last_seq: Seq,
    pub kind: String,
    /// `running`, `completed` or `interrupted`.
    pub status: String,
    /// Body of the event that opened the item.
    pub first: String,
    /// Body of the newest event that is not a delta.
    pub last: String,
}

/// Which items of a session are read, and in which order.
#[derive(Clone, Copy, Debug, Default)]
pub struct ItemQuery<'q> {
    /// Items whose first event comes after this one, oldest first.
    pub after: Seq,
    /// If set, `after` is ignored: only items whose first event comes before this one, newest first.
    pub before: Option<Seq>,
    /// Accepted kinds; an empty list accepts all.
    pub kinds: &'q [&'q str],
}

/// An item without its content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ItemHead {
    pub item_id: ItemId,
    /// Seq of the item's first event.
    pub first_seq: Seq,
    /// Seq of the item's newest permanent event.
    pub last_seq: Seq,
    /// Whether the item still runs.
    pub is_running: bool,
}

fn found_item(row: &SqliteRow) -> Result<ItemHead, StoreError> {
    let id: String = row.try_get("item_id")?;
    Ok(ItemHead {
        item_id: id.parse().map_err(|_| StoreError::Corrupt(format!("item id {id}")))?,
        first_seq: unsigned(row.try_get("first_seq")?),
        last_seq: unsigned(row.try_get("last_seq")?),
        is_running: row.try_get::<String, _>("status")? == "running",
    })
}

impl StoreReader {
    /// Number of transactions that succeeded and that failed since the start.
    #[must_use]
    pub fn writes(&self) -> (u64, u64) {
        self.health.writes()
    }

    /// Records damage that a read finds, so that `daemon.status` reports it.
    pub(crate) fn report_damage<T>(&self, result: Result<T, StoreError>) -> Result<T, StoreError> {
        self.health.record_read(&result);
        result
    }

    /// The id of an item, the seqs of its first and its newest permanent event, and whether it runs. `None`
    /// if the session has no such item. Without an id, the newest item.
    pub async fn find_item(
        &self,
        key: SessionKey,
        item_id: Option<ItemId>,
    ) -> Result<Option<ItemHead>, StoreError> {
        let read = async {
            let row = sqlx::query(
                "select i.first_seq, i.last_seq, i.status, json_extract(e.body, '$.item_id') as item_id \
                 from item i join event e on e.session = i.session and e.seq = i.first_seq \
                 where i.session = ?1 and (?2 is null or instr(e.body, ?2) > 0 \
                 and json_extract(e.body, '$.item_id') = ?2) order by i.first_seq desc limit 1",
            )
            .bind(key.0)
            .bind(item_id.map(|id| id.to_string()))
            .fetch_optional(&self.readers.current_pool().await)
            .await?;
            row.map(|row| found_item(&row)).transpose()
        };
        self.report_damage(read.await)
    }

    /// The items that began after `seq`, in their order.
    pub async fn items_begun_after(&self, key: SessionKey, seq: Seq) -> Result<Vec<ItemHead>, StoreError> {
        let read = async {
            let rows = sqlx::query(
                "select i.first_seq, i.last_seq, i.status, json_extract(e.body, '$.item_id') as item_id \
                 from item i join event e on e.session = i.session and e.seq = i.first_seq \
                 where i.session = ? and i.first_seq > ? order by i.first_seq",
            )
            .bind(key.0)
            .bind(integer(seq))
            .fetch_all(&self.readers.current_pool().await)
            .await?;
            rows.iter().map(found_item).collect()
        };
        self.report_damage(read.await)
    }

    /// The newest event of a kind; `None` if there is none.
    pub async fn newest_event(
        &self,
        key: SessionKey,
        kind: &'static str,
    ) -> Result<Option<JournalRow>, StoreError> {
        let read = async {
            let row = sqlx::query(
                "select seq, body from event where session = ? and kind = ? order by seq desc limit 1",
            )
            .bind(key.0)
            .bind(kind)
            .fetch_optional(&self.readers.current_pool().await)
            .await?;
            row.map(|row| {
                let seq = unsigned(row.try_get("seq")?);
                Ok(JournalRow { seq, kind: kind.into(), body: row.try_get("body")? })
            })
            .transpose()
        };
        self.report_damage(read.await)
    }

    /// Fails if the journal of an existing session is empty.
    async fn require_first_event(
        &self,
        key: SessionKey,
        after: Seq,
        page: &Page<JournalRow>,
    ) -> Result<(), StoreError> {
        if after > 0 || !page.rows.is_empty() {
            return Ok(());
        }
        let row = sqlx::query("select 1 from session where id = ?").bind(key.0);
        match row.fetch_optional(&self.readers.current_pool().await).await? {
            Some(_) => Err(StoreError::Corrupt("a session without its first event".into())),
            None => Ok(()),
        }
    }

    /// A page of the journal: rows after `after`, oldest first, at most `limit` rows and at most `bytes` of
    /// bodies. The first row is always read, whatever its length.
    pub async fn events_after(
        &self,
        key: SessionKey,
        after: Seq,
        limit: u32,
        bytes: usize,
    ) -> Result<Page<JournalRow>, StoreError> {
        let read = async {
            let query = sqlx::query(EVENTS).bind(key.0).bind(integer(after)).bind(limit);
            let pool = self.readers.current_pool().await;
            let page = read_page(query.fetch(&pool), limit, bytes, journal_row, |row| row.body.len()).await?;
            self.require_first_event(key, after, &page).await?;
            Ok(page)
        };
        self.report_damage(read.await)
    }

    /// Finds the end of the settled turns of a journal. Up to that end, a replay skips rows of the kinds
    /// `passing`, and needs only the newest row of each kind in `replaced`.
    pub async fn settled_turns(
        &self,
        key: SessionKey,
        passing: &[&str],
        replaced: &[&str],
    ) -> Result<SettledTurns, StoreError> {
        let newest = async |kind: &str, upto: Option<Seq>| -> Result<Option<Seq>, StoreError> {
            let query = sqlx::query_scalar(
                "select seq from event where session = ?1 and kind = ?2 and seq <= ?3 order by seq desc limit 1",
            );
            let upto = upto.map_or(i64::MAX, integer);
            let seq: Option<i64> = query
                .bind(key.0)
                .bind(kind)
                .bind(upto)
                .fetch_optional(&self.readers.current_pool().await)
                .await?;
            Ok(seq.map(unsigned))
        };
        let read = async {
            let upto = newest("turn.completed", None).await?.unwrap_or(0);
            let mut rows = Vec::new();
            for kind in replaced {
                rows.extend(newest(kind, Some(upto)).await?);
            }
            let passing: Vec<&str> = passing.iter().chain(replaced).copied().collect();
            let json = |value: Result<String, serde_json::Error>| {
                value.map_err(|error| StoreError::Sql(error.to_string()))
            };
            let (passing, newest) =
                (json(serde_json::to_string(&passing))?, json(serde_json::to_string(&rows))?);
            Ok(SettledTurns { upto, passing, newest })
        };
        self.report_damage(read.await)
    }

    /// A page of the rows that a replay needs. Like [`StoreReader::events_after`], but without transient rows of
    /// settled turns.
    pub async fn lasting_events_after(
        &self,
        key: SessionKey,
        after: Seq,
        settled: &SettledTurns,
        limit: u32,
        bytes: usize,
    ) -> Result<Page<JournalRow>, StoreError> {
        let read = async {
            let query = sqlx::query(LASTING_EVENTS).bind(key.0).bind(integer(after)).bind(limit);
            let query = query.bind(integer(settled.upto)).bind(&settled.passing).bind(&settled.newest);
            let pool = self.readers.current_pool().await;
            let page = read_page(query.fetch(&pool), limit, bytes, journal_row, |row| row.body.len()).await?;
            self.require_first_event(key, after, &page).await?;
            Ok(page)
        };
        self.report_damage(read.await)
    }

    /// The newest seq in a session's journal. `session.last_seq` covers pruned rows at its end.
    pub async fn last_seq(&self, key: SessionKey) -> Result<Seq, StoreError> {
        let read = async {
            let row = sqlx::query(
                "select max(s.last_seq, coalesce((select max(seq) from event where session = s.id), 0)) as last \
                 from session s where s.id = ?",
            )
            .bind(key.0)
            .fetch_one(&self.readers.current_pool().await)
            .await?;
            Ok(unsigned(row.try_get("last")?))
        };
        self.report_damage(read.await)
    }

    /// A page of items whose first event comes after `after`, oldest first: at most `limit` items and at most
    /// `bytes` of bodies. The first item is always read, whatever its length.
    pub async fn items_after(
        &self,
        key: SessionKey,
        after: Seq,
        limit: u32,
        bytes: usize,
    ) -> Result<Page<StoredItem>, StoreError> {
        self.items(key, ItemQuery { after, ..ItemQuery::default() }, limit, bytes).await
    }

    /// A page of items, oldest or newest first: at most `limit` items and at most `bytes` of bodies. The first item
    /// is always read, whatever its length.
    pub async fn items(
        &self,
        key: SessionKey,
        wanted: ItemQuery<'_>,
        limit: u32,
        bytes: usize,
    ) -> Result<Page<StoredItem>, StoreError> {
        let kinds = match wanted.kinds {
            [] => None,
            kinds => Some(serde_json::to_string(kinds).map_err(|error| StoreError::Sql(error.to_string()))?),
        };
        let read = async {
            let (query, from) = match wanted.before {
                Some(before) => (sqlx::query(ITEMS_BACKWARDS), i64::try_from(before).unwrap_or(i64::MAX)),
                None => (sqlx::query(ITEMS), integer(wanted.after)),
            };
            let query = query.bind(key.0).bind(from).bind(limit).bind(kinds);
            let length = |item: &StoredItem| item.first.len() + item.last.len();
            read_page(query.fetch(&self.readers.current_pool().await), limit, bytes, stored_item, length)
                .await
        };
        self.report_damage(read.await)
    }

    /// The last item that was opened at or before `seq`, if it is a message.
    pub async fn message_around(&self, key: SessionKey, seq: Seq) -> Result<Option<StoredItem>, StoreError> {
        let read = async {
            let row = sqlx::query(
                "select i.first_seq, i.last_seq, i.kind, i.status, a.body as first, b.body as last from item i \
                 join event a on a.session = i.session and a.seq = i.first_seq \
                 join event b on b.session = i.session and b.seq = i.last_seq \
                 where i.session = ? and i.first_seq <= ? and i.kind = 'assistant_message' \
                 order by i.first_seq desc limit 1",
            )
            .bind(key.0)
            .bind(integer(seq))
            .fetch_optional(&self.readers.current_pool().await)
            .await?;
            row.as_ref().map(stored_item).transpose()
        };
        self.report_damage(read.await)
    }
}

/// Reads rows until their bodies exceed `bytes`. The first row is always read, whatever its length. The bytes
/// are counted here and not in SQL: if the page does not fit, a query that compares the sum with a limit
/// visits all later rows.
async fn read_page<T>(
    rows: impl Stream<Item = Result<SqliteRow, sqlx::Error>>,
    limit: u32,
    bytes: usize,
    read: impl Fn(&SqliteRow) -> Result<T, StoreError>,
    length: impl Fn(&T) -> usize,
) -> Result<Page<T>, StoreError> {
    let mut rows = std::pin::pin!(rows);
    let (mut page, mut total) = (Vec::new(), 0);
    while let Some(row) = rows.try_next().await? {
        let row = read(&row)?;
        total += length(&row);
        if total > bytes && !page.is_empty() {
            return Ok(Page { rows: page, is_last: false });
        }
        page.push(row);
    }
    let is_last = (page.len() as u64) < u64::from(limit);
    Ok(Page { rows: page, is_last })
}

fn journal_row(row: &SqliteRow) -> Result<JournalRow, StoreError> {
    Ok(JournalRow {
        seq: unsigned(row.try_get("seq")?),
        kind: row.try_get("kind")?,
        body: row.try_get("body")?,
    })
}

fn stored_item(row: &SqliteRow) -> Result<StoredItem, StoreError> {
    Ok(StoredItem {
        first_seq: unsigned(row.try_get("first_seq")?),
        last_seq: unsigned(row.try_get("last_seq")?),
        kind: row.try_get("kind")?,
        status: row.try_get("status")?,
        first: row.try_get("first")?,
        last: row.try_get("last")?,
    })
}
