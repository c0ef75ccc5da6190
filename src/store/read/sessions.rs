//! Reading: the summaries of sessions, what waits in them, and replies that were given.

use std::collections::BTreeMap;

use sqlx::Row as _;
use sqlx::sqlite::SqliteRow;

use crate::store::error::StoreError;
use crate::store::open::Store;
use crate::store::read::events::unsigned;
use crate::store::rows::SessionKey;
use crate::store::writer::statements::WITHOUT_SESSION_MS;
use crate::types::ids::{RequestId, SessionId};
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

/// Which sessions are listed; by default all.
#[derive(Clone, Copy, Debug, Default)]
pub struct SessionQuery<'q> {
    /// In one of these states; none stands for any.
    pub states: &'q [SessionState],
    /// Whose folder is this.
    pub cwd: Option<&'q str>,
    /// Whose title, folder or last line holds this text, in whatever case.
    pub search: Option<&'q str>,
}

impl Store {
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
        wanted: SessionQuery<'_>,
    ) -> Result<Vec<(i64, SessionView)>, StoreError> {
        let SessionQuery { states, cwd, search } = wanted;
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

    /// A reply that was kept under this key.
    ///
    /// # Errors
    /// The database could not be read.
    pub async fn remembered(&self, method: &str, key: &str) -> Result<Option<IdempotentReply>, StoreError> {
        self.kept_since(method, key, i64::MIN).await
    }

    /// The same, unless it belongs to no session and was kept for more than a day.
    ///
    /// # Errors
    /// The database could not be read.
    pub async fn remembered_today(
        &self,
        method: &str,
        key: &str,
        now: Timestamp,
    ) -> Result<Option<IdempotentReply>, StoreError> {
        self.kept_since(method, key, now.0 - WITHOUT_SESSION_MS).await
    }

    async fn kept_since(
        &self,
        method: &str,
        key: &str,
        since_ms: i64,
    ) -> Result<Option<IdempotentReply>, StoreError> {
        let read = async {
            let query = "select digest, reply from idempotency where method = ? and key = ? \
                         and (session is not null or at_ms >= ?)";
            let row = sqlx::query(query)
                .bind(method)
                .bind(key)
                .bind(since_ms)
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
