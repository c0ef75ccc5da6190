//! Reads pending requests and stored replies.

use sqlx::Row as _;

use crate::error::StoreError;
use crate::handle::StoreReader;
use crate::read::sessions::parse;
use crate::rows::{SessionKey, WITHOUT_SESSION_MS};
use crate::sql_batch::integer;
use types::ids::{RequestId, SessionId};
use types::time::Timestamp;

/// A pending permission request with its session and the event that raised it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredRequest {
    /// The request id, which is its position in the list.
    pub request_id: String,
    /// Number of the session, and the request's place among the requests and questions of that session, such
    /// as `12.1`.
    pub number: String,
    /// The body of the event as JSON.
    pub body: String,
}

/// The state of a permission request or a question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettledRequest {
    pub session_id: SessionId,
    /// Body of the event that settled it; `None` while it is pending.
    pub settled: Option<String>,
}

/// A stored reply of an idempotent call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdempotentReply {
    /// Digest of the call's parameters.
    pub digest: String,
    /// The reply as JSON.
    pub reply: String,
}

impl StoreReader {
    /// A page of pending permission requests, oldest first, after the request id `after`. The requests of a
    /// session include those of its sub-agents.
    pub async fn pending_requests(
        &self,
        session: Option<SessionKey>,
        after: Option<&str>,
        limit: u32,
    ) -> Result<Vec<StoredRequest>, StoreError> {
        let read = async {
            let rows = sqlx::query(
                "with recursive tree (id, session_id) as ( \
                   select id, session_id from session where id = ?1 union \
                   select s.id, s.session_id from session s join tree on s.parent_session_id = tree.session_id) \
                 select p.request_id, e.body, p.session, \
                 (select count(*) from permission_request q where q.session = p.session and q.seq <= p.seq) + \
                 (select count(*) from question q where q.session = p.session and q.seq <= p.seq) as nth \
                 from permission_request p \
                 join event e on e.session = p.session and e.seq = p.seq \
                 where p.settled_seq is null and (?1 is null or p.session in (select id from tree)) and p.request_id > ?2 \
                 order by p.request_id limit ?3",
            )
            .bind(session.map(|key| key.0))
            .bind(after.unwrap_or(""))
            .bind(limit)
            .fetch_all(&self.readers.current_pool().await)
            .await?;
            rows.iter()
                .map(|row| {
                    let (session, nth): (i64, i64) = (row.try_get("session")?, row.try_get("nth")?);
                    Ok(StoredRequest {
                        request_id: row.try_get("request_id")?,
                        number: format!("{session}.{nth}"),
                        body: row.try_get("body")?,
                    })
                })
                .collect()
        };
        self.report_damage(read.await)
    }

    /// The id of the `nth` permission request or question of a session, from 1.
    pub async fn numbered_request(&self, session: u64, nth: u64) -> Result<Option<String>, StoreError> {
        let read = async {
            let row = sqlx::query(
                "select request_id from \
                 (select request_id, seq from permission_request where session = ?1 \
                  union all select request_id, seq from question where session = ?1) \
                 order by seq limit 1 offset ?2",
            )
            .bind(integer(session))
            .bind(integer(nth.saturating_sub(1)))
            .fetch_optional(&self.readers.current_pool().await)
            .await?;
            Ok(row.map(|row| row.try_get("request_id")).transpose()?)
        };
        self.report_damage(read.await)
    }

    /// The state of one permission request or question.
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
            let row = sqlx::query(sql)
                .bind(id.to_string())
                .fetch_optional(&self.readers.current_pool().await)
                .await?;
            row.map(|row| {
                Ok(SettledRequest {
                    session_id: parse(row.try_get("session_id")?)?,
                    settled: row.try_get("body")?,
                })
            })
            .transpose()
        };
        self.report_damage(read.await)
    }

    /// The reply that was stored under this key.
    pub async fn stored_reply(&self, method: &str, key: &str) -> Result<Option<IdempotentReply>, StoreError> {
        self.reply_since(method, key, i64::MIN).await
    }

    /// Like `stored_reply`, but ignores replies without a session that are older than one day.
    pub async fn recent_reply(
        &self,
        method: &str,
        key: &str,
        now: Timestamp,
    ) -> Result<Option<IdempotentReply>, StoreError> {
        self.reply_since(method, key, now.0 - WITHOUT_SESSION_MS).await
    }

    async fn reply_since(
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
                .fetch_optional(&self.readers.current_pool().await)
                .await?;
            row.map(|row| {
                Ok(IdempotentReply { digest: row.try_get("digest")?, reply: row.try_get("reply")? })
            })
            .transpose()
        };
        self.report_damage(read.await)
    }
}
