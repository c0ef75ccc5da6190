//! Reading: pages of the journal and the summaries. Each call takes a reader only for one page, so
//! that no slow client pins the write-ahead log.

use std::collections::BTreeMap;

use sqlx::Row as _;
use sqlx::sqlite::SqliteRow;

use super::error::StoreError;
use super::open::Store;
use super::rows::SessionKey;
use super::statements::integer;
use crate::types::ids::{RequestId, Seq, SessionId};
use crate::types::sampling::{Sampling, Temperature, TopP};
use crate::types::session::{SessionState, SessionView};
use crate::types::time::Timestamp;

/// A session's summary. Events that change nothing of it are not counted in it, so its newest
/// number is the journal's if that is higher.
const VIEW: &str = "select *, max(last_seq, coalesce((select max(seq) from event where session = id), 0)) \
                    as newest_seq from session where ";

// Pages are bounded in bytes. Lengths come first, so that a body that does not fit is never touched. Most
// pages fit as they are, and a sum is all that takes; only for others is each row weighed, which costs
// three times as much. Each statement sees the journal as it is at one moment.

/// A page of the journal that fits; nothing if it does not.
const WHOLE_PAGE: &str = "select seq, kind, body, null as total from event \
     where session = ?1 and seq > ?2 and ?4 >= \
     (select sum(size) from (select octet_length(body) as size from event \
      where session = ?1 and seq > ?2 order by seq limit ?3)) \
     order by seq limit ?3";
/// As much of a page as fits, at least one row, and how many rows it has.
const PART_OF_PAGE: &str = "select e.seq, e.kind, e.body, p.total from \
     (select seq, count(*) over () as total, row_number() over by_seq as nth, \
      sum(size) over by_seq as upto from \
      (select seq, octet_length(body) as size from event \
       where session = ?1 and seq > ?2 order by seq limit ?3) \
      window by_seq as (order by seq rows unbounded preceding)) p \
     cross join event e on e.session = ?1 and e.seq = p.seq \
     where p.upto <= ?4 or p.nth = 1 order by p.seq";
/// Rows that leave something behind: all of the turn that is under way, and of those before it what is
/// not passing.
macro_rules! lasting {
    () => {
        "session = ?1 and seq > ?2 and (seq > ?5 or kind not in (select value from json_each(?6)) \
         or seq in (select value from json_each(?7)))"
    };
}
/// A page of lasting rows that fits; nothing if it does not.
const WHOLE_PAGE_THAT_LASTS: &str = concat!(
    "select seq, kind, body, null as total from event where ",
    lasting!(),
    " and ?4 >= (select sum(size) from (select octet_length(body) as size from event where ",
    lasting!(),
    " order by seq limit ?3)) order by seq limit ?3"
);
/// As much of a page of lasting rows as fits, at least one row, and how many rows it has.
const PART_OF_PAGE_THAT_LASTS: &str = concat!(
    "select e.seq, e.kind, e.body, p.total from \
     (select seq, count(*) over () as total, row_number() over by_seq as nth, \
      sum(size) over by_seq as upto from \
      (select seq, octet_length(body) as size from event where ",
    lasting!(),
    " order by seq limit ?3) \
      window by_seq as (order by seq rows unbounded preceding)) p \
     cross join event e on e.session = ?1 and e.seq = p.seq \
     where p.upto <= ?4 or p.nth = 1 order by p.seq"
);
/// A page of items that fits; nothing if it does not.
const WHOLE_PAGE_OF_ITEMS: &str = "select i.first_seq, i.last_seq, i.status, a.body as first, \
     b.body as last, null as total from item i \
     join event a on a.session = i.session and a.seq = i.first_seq \
     join event b on b.session = i.session and b.seq = i.last_seq \
     where i.session = ?1 and i.first_seq > ?2 and ?4 >= \
     (select sum(size) from \
      (select octet_length(a.body) + octet_length(b.body) as size from item i \
       join event a on a.session = i.session and a.seq = i.first_seq \
       join event b on b.session = i.session and b.seq = i.last_seq \
       where i.session = ?1 and i.first_seq > ?2 order by i.first_seq limit ?3)) \
     order by i.first_seq limit ?3";
/// As much of a page of items as fits, at least one item, and how many items it has.
const PART_OF_PAGE_OF_ITEMS: &str = "select p.first_seq, p.last_seq, p.status, a.body as first, \
     b.body as last, p.total from \
     (select first_seq, last_seq, status, count(*) over () as total, \
      row_number() over by_seq as nth, sum(size) over by_seq as upto from \
      (select i.first_seq, i.last_seq, i.status, \
       octet_length(a.body) + octet_length(b.body) as size from item i \
       join event a on a.session = i.session and a.seq = i.first_seq \
       join event b on b.session = i.session and b.seq = i.last_seq \
       where i.session = ?1 and i.first_seq > ?2 order by i.first_seq limit ?3) \
      window by_seq as (order by first_seq rows unbounded preceding)) p \
     cross join event a on a.session = ?1 and a.seq = p.first_seq \
     cross join event b on b.session = ?1 and b.seq = p.last_seq \
     where p.upto <= ?4 or p.nth = 1 order by p.first_seq";

/// One row of the journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JournalRow {
    /// Its number.
    pub seq: Seq,
    /// The event's `type`.
    pub kind: String,
    /// The event as it stands on the wire.
    pub body: String,
}

/// A page of the journal or of items, bounded in rows and in bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page<T> {
    /// What is on it, oldest first; at least one entry if there is any.
    pub rows: Vec<T>,
    /// Whether nothing came after it when it was read.
    pub is_last: bool,
}

/// Where the settled turns of a journal end, and what of them to pass over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settled {
    /// The newest `turn.completed`; 0 if there is none.
    upto: Seq,
    /// Kinds to pass over, and rows to take all the same, as JSON.
    passing: String,
    newest: String,
}

/// An item with the bodies of the events that opened it and that came last.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredItem {
    /// Seq of the first.
    pub first_seq: Seq,
    /// Seq of the last.
    pub last_seq: Seq,
    /// `running`, `completed` or `interrupted`.
    pub status: String,
    /// The event that opened it.
    pub first: String,
    /// Its newest permanent event.
    pub last: String,
}

/// A pending permission request: its session and the event that raised it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredRequest {
    /// Where it stands in the list.
    pub request_id: String,
    /// The event.
    pub body: String,
}

/// Where a permission request or a question stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettledRequest {
    /// Its session.
    pub session_id: SessionId,
    /// The event that settled it; `None` while it is pending.
    pub settled: Option<String>,
}

/// A remembered reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdempotentReply {
    /// Digest of the parameters it belongs to.
    pub digest: String,
    /// The reply as JSON.
    pub reply: String,
}

impl Store {
    /// Transactions that were written since the start, and that could not be.
    #[must_use]
    pub fn writes(&self) -> (u64, u64) {
        self.health.writes()
    }

    /// Damage that a read meets is told by `daemon.status`.
    pub(super) fn noted<T>(&self, result: Result<T, StoreError>) -> Result<T, StoreError> {
        self.health.read(&result);
        result
    }

    async fn is_there(&self, key: SessionKey) -> Result<bool, StoreError> {
        let row = sqlx::query("select 1 from session where id = ?").bind(key.0);
        Ok(row.fetch_optional(&self.readers.now().await).await?.is_some())
    }

    async fn rows_after(
        &self,
        sql: &'static str,
        key: SessionKey,
        after: Seq,
        limit: u32,
        bytes: usize,
    ) -> Result<Vec<SqliteRow>, StoreError> {
        let query = sqlx::query(sql)
            .bind(key.0)
            .bind(integer(after))
            .bind(limit)
            .bind(i64::try_from(bytes).unwrap_or(i64::MAX));
        Ok(query.fetch_all(&self.readers.now().await).await?)
    }

    /// A page of the journal: rows after `after`, oldest first, at most `limit` and at most `bytes` of
    /// bodies; one row is always read, however long.
    ///
    /// # Errors
    /// The database could not be read.
    pub async fn events_after(
        &self,
        key: SessionKey,
        after: Seq,
        limit: u32,
        bytes: usize,
    ) -> Result<Page<JournalRow>, StoreError> {
        let read = async {
            let mut rows = self.rows_after(WHOLE_PAGE, key, after, limit, bytes).await?;
            if rows.is_empty() {
                rows = self.rows_after(PART_OF_PAGE, key, after, limit, bytes).await?;
            }
            if after == 0 && rows.is_empty() && self.is_there(key).await? {
                return Err(StoreError::Corrupt("a session without its first event".into()));
            }
            page(&rows, limit, journal_row)
        };
        self.noted(read.await)
    }

    /// Where the settled turns of a journal end. Up to there, rows of the kinds `passing` leave nothing
    /// behind, and of each of the kinds `replaced` only the newest does.
    ///
    /// # Errors
    /// The database could not be read.
    pub async fn settled(
        &self,
        key: SessionKey,
        passing: &[&str],
        replaced: &[&str],
    ) -> Result<Settled, StoreError> {
        let newest = async |kind: &str, upto: Option<Seq>| -> Result<Option<Seq>, StoreError> {
            let query = sqlx::query_scalar(
                "select seq from event where session = ?1 and kind = ?2 and seq <= ?3 order by seq desc limit 1",
            );
            let upto = upto.map_or(i64::MAX, integer);
            let seq: Option<i64> =
                query.bind(key.0).bind(kind).bind(upto).fetch_optional(&self.readers.now().await).await?;
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
            Ok(Settled { upto, passing, newest })
        };
        self.noted(read.await)
    }

    /// A page of the rows of a journal that leave something behind: like [`Store::events_after`], but
    /// without what is passing in its settled turns.
    ///
    /// # Errors
    /// The database could not be read.
    pub async fn lasting_after(
        &self,
        key: SessionKey,
        after: Seq,
        settled: &Settled,
        limit: u32,
        bytes: usize,
    ) -> Result<Page<JournalRow>, StoreError> {
        let rows = async |sql: &'static str| {
            let query = sqlx::query(sql).bind(key.0).bind(integer(after)).bind(limit);
            let query = query.bind(i64::try_from(bytes).unwrap_or(i64::MAX)).bind(integer(settled.upto));
            query.bind(&settled.passing).bind(&settled.newest).fetch_all(&self.readers.now().await).await
        };
        let read = async {
            let mut found = rows(WHOLE_PAGE_THAT_LASTS).await?;
            if found.is_empty() {
                found = rows(PART_OF_PAGE_THAT_LASTS).await?;
            }
            if after == 0 && found.is_empty() && self.is_there(key).await? {
                return Err(StoreError::Corrupt("a session without its first event".into()));
            }
            page(&found, limit, journal_row)
        };
        self.noted(read.await)
    }

    /// The newest seq in a session's journal; folded rows at its end are counted by `session.last_seq`.
    ///
    /// # Errors
    /// The database could not be read.
    pub async fn last_seq(&self, key: SessionKey) -> Result<Seq, StoreError> {
        let read = async {
            let row = sqlx::query(
                "select max(s.last_seq, coalesce((select max(seq) from event where session = s.id), 0)) as last \
                 from session s where s.id = ?",
            )
            .bind(key.0)
            .fetch_one(&self.readers.now().await)
            .await?;
            Ok(unsigned(row.try_get("last")?))
        };
        self.noted(read.await)
    }

    /// A page of items whose first event comes after `after`, oldest first, at most `limit` and at most
    /// `bytes` of bodies; one item is always read, however long.
    ///
    /// # Errors
    /// The database could not be read.
    pub async fn items_after(
        &self,
        key: SessionKey,
        after: Seq,
        limit: u32,
        bytes: usize,
    ) -> Result<Page<StoredItem>, StoreError> {
        let read = async {
            let mut rows = self.rows_after(WHOLE_PAGE_OF_ITEMS, key, after, limit, bytes).await?;
            if rows.is_empty() {
                rows = self.rows_after(PART_OF_PAGE_OF_ITEMS, key, after, limit, bytes).await?;
            }
            page(&rows, limit, stored_item)
        };
        self.noted(read.await)
    }

    /// The message whose first event is the last one at or before `seq`, if a message was opened
    /// there at all: the seq of its first event and its newest permanent event.
    ///
    /// # Errors
    /// The database could not be read.
    pub async fn message_around(&self, key: SessionKey, seq: Seq) -> Result<Option<StoredItem>, StoreError> {
        let read = async {
            let row = sqlx::query(
                "select i.first_seq, i.last_seq, i.status, a.body as first, b.body as last from item i \
                 join event a on a.session = i.session and a.seq = i.first_seq \
                 join event b on b.session = i.session and b.seq = i.last_seq \
                 where i.session = ? and i.first_seq <= ? and i.kind = 'assistant_message' \
                 order by i.first_seq desc limit 1",
            )
            .bind(key.0)
            .bind(integer(seq))
            .fetch_optional(&self.readers.now().await)
            .await?;
            row.as_ref().map(stored_item).transpose()
        };
        self.noted(read.await)
    }

    /// The key of a session, if there is one.
    ///
    /// # Errors
    /// The database could not be read.
    pub async fn find(&self, id: SessionId) -> Result<Option<SessionKey>, StoreError> {
        let read = async {
            let row = sqlx::query("select id from session where session_id = ?")
                .bind(id.to_string())
                .fetch_optional(&self.readers.now().await)
                .await?;
            row.map(|row| Ok(SessionKey(row.try_get("id")?))).transpose()
        };
        self.noted(read.await)
    }

    /// One session's summary.
    ///
    /// # Errors
    /// The database could not be read.
    pub async fn view(&self, id: SessionId) -> Result<Option<SessionView>, StoreError> {
        let read = async {
            let mut query = sqlx::QueryBuilder::<sqlx::Sqlite>::new(VIEW);
            query.push("session_id = ").push_bind(id.to_string());
            let row = query.build().fetch_optional(&self.readers.now().await).await?;
            row.as_ref().map(view).transpose()
        };
        self.noted(read.await)
    }

    /// A page of summaries, newest first: those with a position below `before`.
    ///
    /// # Errors
    /// The database could not be read.
    pub async fn views(
        &self,
        before: Option<i64>,
        limit: u32,
        states: &[SessionState],
        cwd: Option<&str>,
        search: Option<&str>,
    ) -> Result<Vec<(i64, SessionView)>, StoreError> {
        let read = async {
            let mut query = sqlx::QueryBuilder::<sqlx::Sqlite>::new(VIEW);
            query.push("id < ").push_bind(before.unwrap_or(i64::MAX));
            if !states.is_empty() {
                query.push(" and state in (");
                let mut list = query.separated(", ");
                for state in states {
                    list.push_bind(state.name());
                }
                query.push(")");
            }
            if let Some(cwd) = cwd {
                query.push(" and cwd = ").push_bind(cwd);
            }
            if let Some(search) = search {
                query.push(" and instr(lower(title || char(10) || cwd || char(10) || last_line), lower(");
                query.push_bind(search).push(")) > 0");
            }
            query.push(" order by id desc limit ").push_bind(limit);
            let rows = query.build().persistent(false).fetch_all(&self.readers.now().await).await?;
            rows.iter().map(|row| Ok((row.try_get("id")?, view(row)?))).collect()
        };
        self.noted(read.await)
    }

    /// How many sessions there are, and how many of them run or wait for a person.
    ///
    /// # Errors
    /// The database could not be read.
    pub async fn counts(&self) -> Result<(u64, u64), StoreError> {
        let read = async {
            let row = sqlx::query(
                "select (select count(*) from session) as every, \
                 (select count(*) from session where state in ('running', 'requires_action')) as active",
            )
            .fetch_one(&self.readers.now().await)
            .await?;
            Ok((unsigned(row.try_get("every")?), unsigned(row.try_get("active")?)))
        };
        self.noted(read.await)
    }

    /// Sessions whose turn was under way when the daemon last stopped.
    ///
    /// # Errors
    /// The database could not be read.
    pub async fn unfinished(&self) -> Result<Vec<SessionId>, StoreError> {
        let read = async {
            let rows = sqlx::query(
                "select session_id from session where state in ('running', 'requires_action') \
                 or id in (select session from process) order by id",
            )
            .fetch_all(&self.readers.now().await)
            .await?;
            rows.iter().map(|row| parse(row.try_get("session_id")?)).collect()
        };
        self.noted(read.await)
    }

    /// Sessions that have not ended and in which something has happened since then.
    ///
    /// # Errors
    /// The database could not be read.
    pub async fn in_use_since(&self, since: Timestamp) -> Result<Vec<SessionId>, StoreError> {
        let read = async {
            let rows = sqlx::query(
                "select session_id from session where state <> 'ended' and (updated_at_ms >= ? or state <> 'idle')",
            )
            .bind(since.0)
            .fetch_all(&self.readers.now().await)
            .await?;
            rows.iter().map(|row| parse(row.try_get("session_id")?)).collect()
        };
        self.noted(read.await)
    }

    /// How much of the database is in use, in bytes: what was removed and not used again does not count.
    ///
    /// # Errors
    /// The database could not be read.
    pub async fn used_bytes(&self) -> Result<u64, StoreError> {
        let read = async {
            let row = sqlx::query(
                "select (p.page_count - f.freelist_count) * s.page_size as used \
                 from pragma_page_count p, pragma_freelist_count f, pragma_page_size s",
            )
            .fetch_one(&self.readers.now().await)
            .await?;
            let used: i64 = row.try_get("used")?;
            Ok(u64::try_from(used).unwrap_or(0))
        };
        self.noted(read.await)
    }

    /// Sessions that ended before then, those first that ended first; at most so many.
    ///
    /// # Errors
    /// The database could not be read.
    pub async fn ended_before(&self, before: Timestamp, limit: u32) -> Result<Vec<SessionId>, StoreError> {
        let read = async {
            let rows = sqlx::query(
                "select session_id from session where state = 'ended' and updated_at_ms < ? \
                 order by updated_at_ms limit ?",
            )
            .bind(before.0)
            .bind(limit)
            .fetch_all(&self.readers.now().await)
            .await?;
            rows.iter().map(|row| parse(row.try_get("session_id")?)).collect()
        };
        self.noted(read.await)
    }

    /// A page of pending permission requests, oldest first, after the request id `after`.
    ///
    /// # Errors
    /// The database could not be read.
    pub async fn pending_requests(
        &self,
        session: Option<SessionKey>,
        after: Option<&str>,
        limit: u32,
    ) -> Result<Vec<StoredRequest>, StoreError> {
        let read = async {
            let rows = sqlx::query(
                "select p.request_id, e.body from permission_request p \
                 join event e on e.session = p.session and e.seq = p.seq \
                 where p.settled_seq is null and (?1 is null or p.session = ?1) and p.request_id > ?2 \
                 order by p.request_id limit ?3",
            )
            .bind(session.map(|key| key.0))
            .bind(after.unwrap_or(""))
            .bind(limit)
            .fetch_all(&self.readers.now().await)
            .await?;
            rows.iter()
                .map(|row| {
                    Ok(StoredRequest { request_id: row.try_get("request_id")?, body: row.try_get("body")? })
                })
                .collect()
        };
        self.noted(read.await)
    }

    /// Where one permission request or question stands.
    ///
    /// # Errors
    /// The database could not be read.
    pub async fn request(&self, id: RequestId) -> Result<Option<SettledRequest>, StoreError> {
        let sql = match id {
            RequestId::Permission(_) => {
                "select s.session_id, e.body from permission_request p join session s on s.id = p.session \
                 left join event e on e.session = p.session and e.seq = p.settled_seq where p.request_id = ?"
            }
            RequestId::Question(_) => {
                "select s.session_id, e.body from question p join session s on s.id = p.session \
                 left join event e on e.session = p.session and e.seq = p.settled_seq where p.request_id = ?"
            }
        };
        let read = async {
            let row = sqlx::query(sql).bind(id.to_string()).fetch_optional(&self.readers.now().await).await?;
            row.map(|row| {
                Ok(SettledRequest {
                    session_id: parse(row.try_get("session_id")?)?,
                    settled: row.try_get("body")?,
                })
            })
            .transpose()
        };
        self.noted(read.await)
    }

    /// A remembered reply.
    ///
    /// # Errors
    /// The database could not be read.
    pub async fn remembered(&self, method: &str, key: &str) -> Result<Option<IdempotentReply>, StoreError> {
        let read = async {
            let row = sqlx::query("select digest, reply from idempotency where method = ? and key = ?")
                .bind(method)
                .bind(key)
                .fetch_optional(&self.readers.now().await)
                .await?;
            row.map(|row| {
                Ok(IdempotentReply { digest: row.try_get("digest")?, reply: row.try_get("reply")? })
            })
            .transpose()
        };
        self.noted(read.await)
    }
}

fn page<T>(
    rows: &[SqliteRow],
    limit: u32,
    read: impl Fn(&SqliteRow) -> Result<T, StoreError>,
) -> Result<Page<T>, StoreError> {
    let total: Option<i64> = rows.first().map(|row| row.try_get("total")).transpose()?.flatten();
    let total = total.map_or(rows.len() as u64, unsigned);
    let is_last = total < u64::from(limit) && total == rows.len() as u64;
    Ok(Page { rows: rows.iter().map(read).collect::<Result<_, _>>()?, is_last })
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
        status: row.try_get("status")?,
        first: row.try_get("first")?,
        last: row.try_get("last")?,
    })
}

fn unsigned(value: i64) -> u64 {
    u64::try_from(value).unwrap_or(0)
}

fn parse(text: String) -> Result<SessionId, StoreError> {
    text.parse().map_err(|_| StoreError::Corrupt(format!("session id {text}")))
}

/// A stored word that must be one of ours.
fn word<T: serde::de::DeserializeOwned>(text: &str) -> Result<T, StoreError> {
    serde_json::from_value(serde_json::Value::from(text))
        .map_err(|error| StoreError::Corrupt(error.to_string()))
}

fn view(row: &SqliteRow) -> Result<SessionView, StoreError> {
    let requires: Option<String> = row.try_get("requires")?;
    let turn_id: Option<String> = row.try_get("turn_id")?;
    let usage: String = row.try_get("usage")?;
    let thinking: Option<String> = row.try_get("thinking")?;
    Ok(SessionView {
        session_id: parse(row.try_get("session_id")?)?,
        title: row.try_get("title")?,
        state: word(&row.try_get::<String, _>("state")?)?,
        requires: requires.as_deref().map(word).transpose()?,
        cwd: row.try_get("cwd")?,
        model: row.try_get("model")?,
        mode: word(&row.try_get::<String, _>("mode")?)?,
        thinking: thinking.map(|text| text.parse().map_err(StoreError::Corrupt)).transpose()?,
        sampling: Sampling {
            temperature: row.try_get::<Option<u16>, _>("temperature_thousandths")?.and_then(Temperature::new),
            top_p: row.try_get::<Option<u16>, _>("top_p_thousandths")?.and_then(TopP::new),
        },
        background: row.try_get("background")?,
        created_at_ms: Timestamp(row.try_get("created_at_ms")?),
        updated_at_ms: Timestamp(row.try_get("updated_at_ms")?),
        last_seq: unsigned(row.try_get("newest_seq")?),
        usage: serde_json::from_str(&usage).map_err(|error| StoreError::Corrupt(error.to_string()))?,
        cost_usd_micros: row.try_get::<Option<i64>, _>("cost_usd_micros")?.map(unsigned),
        cost_at_least_usd_micros: unsigned(row.try_get("cost_at_least_usd_micros")?),
        models: BTreeMap::new(),
        clients: 0,
        turn_id: turn_id.as_deref().map(word).transpose()?,
        last_line: row.try_get("last_line")?,
        background_commands: Vec::new(),
    })
}
