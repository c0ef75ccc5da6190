//! Reads session summaries.

use std::collections::BTreeMap;

use sqlx::Row as _;
use sqlx::sqlite::SqliteRow;

use crate::error::StoreError;
use crate::handle::StoreReader;
use crate::rows::SessionKey;
use crate::sql_batch::integer;
use crate::sql_batch::unsigned;
use crate::tables::texts;
use types::event::Event;
use types::history::RewoundHistory;
use types::ids::{Seq, SessionId};
use types::sampling::{Sampling, Temperature, TopP};
use types::session::{SessionSpec, SessionState, SessionSummary, SessionView};
use types::subagent::HIDDEN_AGENT;
use types::time::Timestamp;
use types::todo::Todo;

/// Selects a session's summary. Some events do not change the summary, so the newest seq is taken from the
/// journal if it is higher there.
const VIEW: &str = "select *, max(last_seq, coalesce((select max(seq) from event where session = id), 0)) \
                    as newest_seq from session where ";

// Pages have a limit in bytes. The query reads lengths first, so it never loads a body that does not fit. Most
// pages fit, and a sum of the lengths shows that. Otherwise the query adds up row by row, which costs three
// times as much. Each statement sees the journal at one moment.

/// Filters of the session list. The default lists all sessions.
#[derive(Clone, Copy, Debug, Default)]
pub struct SessionQuery<'q> {
    /// Accepted states; an empty list accepts all.
    pub states: &'q [SessionState],
    /// Required folder.
    pub cwd: Option<&'q str>,
    /// Whether the sessions of sub-agents are listed.
    pub include_children: bool,
    /// Only the sub-agents of this session.
    pub parent: Option<SessionId>,
    /// Text that the title, folder or last line must contain, ignoring case; or words of one message.
    pub search: Option<&'q str>,
}

impl StoreReader {
    /// The key of a session; `None` if it does not exist.
    pub async fn find(&self, id: SessionId) -> Result<Option<SessionKey>, StoreError> {
        let read = async {
            let row = sqlx::query("select id from session where session_id = ?")
                .bind(id.to_string())
                .fetch_optional(&self.readers.current_pool().await)
                .await?;
            row.map(|row| Ok(SessionKey(row.try_get("id")?))).transpose()
        };
        self.report_damage(read.await)
    }

    /// One session's summary.
    pub async fn view(&self, id: SessionId) -> Result<Option<SessionView>, StoreError> {
        let read = async {
            let mut query = sqlx::QueryBuilder::<sqlx::Sqlite>::new(VIEW);
            query.push("session_id = ").push_bind(id.to_string());
            let row = query.build().fetch_optional(&self.readers.current_pool().await).await?;
            row.as_ref().map(view).transpose()
        };
        self.report_damage(read.await)
    }

    /// A page of summaries with a position below `before`, newest first.
    pub async fn views(
        &self,
        before: Option<i64>,
        limit: u32,
        wanted: SessionQuery<'_>,
    ) -> Result<Vec<(i64, SessionView)>, StoreError> {
        let SessionQuery { states, cwd, search, include_children, parent } = wanted;
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
            match parent {
                Some(parent) => _ = query.push(" and parent_session_id = ").push_bind(parent.to_string()),
                None if include_children => {}
                None => {
                    query.push(" and parent_session_id is null and (agent is null or agent <> ");
                    query.push_bind(HIDDEN_AGENT).push(")");
                }
            }
            if let Some(cwd) = cwd {
                query.push(" and cwd = ").push_bind(cwd);
            }
            if let Some(search) = search {
                query.push(" and (instr(lower(title || char(10) || cwd || char(10) || last_line), lower(");
                query.push_bind(search).push(")) > 0");
                if let Some(words) = texts::query(search) {
                    query.push(" or id in (").push(texts::MATCHING_SESSIONS).push_bind(words).push(")");
                }
                query.push(")");
            }
            query.push(" order by id desc limit ").push_bind(limit);
            let rows = query.build().persistent(false).fetch_all(&self.readers.current_pool().await).await?;
            rows.iter().map(|row| Ok((row.try_get("id")?, view(row)?))).collect()
        };
        self.report_damage(read.await)
    }

    /// The number of sessions, and the number of those that run or wait for a user.
    pub async fn counts(&self) -> Result<(u64, u64), StoreError> {
        let read = async {
            let row = sqlx::query(
                "select (select count(*) from session) as every, \
                 (select count(*) from session where state in ('running', 'requires_action')) as active",
            )
            .fetch_one(&self.readers.current_pool().await)
            .await?;
            Ok((unsigned(row.try_get("every")?), unsigned(row.try_get("active")?)))
        };
        self.report_damage(read.await)
    }

    /// Sessions with an open turn when the daemon last stopped.
    pub async fn unfinished(&self) -> Result<Vec<SessionId>, StoreError> {
        let read = async {
            let rows = sqlx::query(
                "select session_id from session where state in ('running', 'requires_action') \
                 or id in (select session from process) \
                 or session_id in (select parent_session_id from session \
                                   where state in ('running', 'requires_action')) order by id",
            )
            .fetch_all(&self.readers.current_pool().await)
            .await?;
            rows.iter().map(|row| parse(row.try_get("session_id")?)).collect()
        };
        self.report_damage(read.await)
    }

    /// Sessions that have not ended and have events at or after `since`.
    pub async fn in_use_since(&self, since: Timestamp) -> Result<Vec<SessionId>, StoreError> {
        let read = async {
            let rows = sqlx::query(
                "select session_id from session where state not in ('ended', 'archived') and (updated_at_ms >= ? or state <> 'idle')",
            )
            .bind(since.0)
            .fetch_all(&self.readers.current_pool().await)
            .await?;
            rows.iter().map(|row| parse(row.try_get("session_id")?)).collect()
        };
        self.report_damage(read.await)
    }

    /// Sessions with changes at or after `since`.
    pub async fn changed_since(&self, since: Timestamp) -> Result<Vec<SessionId>, StoreError> {
        let read = async {
            let rows = sqlx::query("select session_id from session where updated_at_ms >= ? order by id")
                .bind(since.0)
                .fetch_all(&self.readers.current_pool().await)
                .await?;
            rows.iter().map(|row| parse(row.try_get("session_id")?)).collect()
        };
        self.report_damage(read.await)
    }

    /// Bytes of the database that are in use, without free pages.
    pub async fn used_bytes(&self) -> Result<u64, StoreError> {
        let read = async {
            let row = sqlx::query(
                "select (p.page_count - f.freelist_count) * s.page_size as used \
                 from pragma_page_count p, pragma_freelist_count f, pragma_page_size s",
            )
            .fetch_one(&self.readers.current_pool().await)
            .await?;
            let used: i64 = row.try_get("used")?;
            Ok(u64::try_from(used).unwrap_or(0))
        };
        self.report_damage(read.await)
    }

    /// Sessions that ended before `before`, earliest first, at most `limit`.
    pub async fn ended_before(&self, before: Timestamp, limit: u32) -> Result<Vec<SessionId>, StoreError> {
        let read = async {
            let rows = sqlx::query(
                "select session_id from session where state = 'ended' and updated_at_ms < ? \
                 order by updated_at_ms limit ?",
            )
            .bind(before.0)
            .bind(limit)
            .fetch_all(&self.readers.current_pool().await)
            .await?;
            rows.iter().map(|row| parse(row.try_get("session_id")?)).collect()
        };
        self.report_damage(read.await)
    }

    /// The session with this number; `None` if there is none.
    pub async fn numbered(&self, number: u64) -> Result<Option<SessionId>, StoreError> {
        let read = async {
            let row = sqlx::query("select session_id from session where id = ?")
                .bind(integer(number))
                .fetch_optional(&self.readers.current_pool().await)
                .await?;
            row.map(|row| parse(row.try_get("session_id")?)).transpose()
        };
        self.report_damage(read.await)
    }

    /// Whether the ledger has calls of a session with this id, which may be deleted.
    pub async fn has_usage(&self, id: SessionId) -> Result<bool, StoreError> {
        let read = async {
            let row = sqlx::query("select 1 from ledger where session_id = ? limit 1")
                .bind(id.to_string())
                .fetch_optional(&self.readers.current_pool().await)
                .await?;
            Ok(row.is_some())
        };
        self.report_damage(read.await)
    }

    /// The settings of a session, from the events that hold them.
    pub async fn spec(&self, key: SessionKey) -> Result<SessionSpec, StoreError> {
        let read = async {
            // Without a hint SQLite would read all of the session. Titles that the daemon chose hold no setting.
            let rows = sqlx::query(
                "select seq, body from event indexed by event_of_settings \
                 where session = ? and kind in ('session.created', 'session.updated') \
                 and case when json_valid(body) then body ->> '$.titled_by' end is null order by seq",
            )
            .bind(key.0)
            .fetch_all(&self.readers.current_pool().await)
            .await?;
            let row = |row: &SqliteRow| Ok((unsigned(row.try_get("seq")?), row.try_get("body")?));
            rows.iter().map(row).collect::<Result<Vec<(Seq, String)>, StoreError>>()
        };
        let rows = self.report_damage(read.await)?;
        let mut spec = SessionSpec::default();
        for (seq, body) in rows {
            match self.restored_event(key, seq, &body).await?.map(|envelope| envelope.event) {
                Some(Event::SessionCreated(created)) => spec = *created,
                Some(Event::SessionUpdated { options, .. }) => spec.set(&options),
                _ => {}
            }
        }
        Ok(spec)
    }

    /// The todo list of a session.
    pub async fn todos(&self, key: SessionKey) -> Result<Vec<Todo>, StoreError> {
        let mut before = Seq::MAX;
        loop {
            let read = async {
                // Without a hint SQLite would read all of the session.
                let row = sqlx::query(
                    "select seq, body from event indexed by event_of_todos where session = ? and seq < ? \
                     and kind in ('todo.updated', 'session.cleared', 'session.rewound') order by seq desc limit 1",
                )
                .bind(key.0)
                .bind(integer(before))
                .fetch_optional(&self.readers.current_pool().await)
                .await?;
                let found = |row: &SqliteRow| Ok((unsigned(row.try_get("seq")?), row.try_get("body")?));
                row.as_ref().map(found).transpose()
            };
            let read: Result<Option<(Seq, String)>, StoreError> = read.await;
            let Some((seq, body)) = self.report_damage(read)? else { return Ok(Vec::new()) };
            match self.restored_event(key, seq, &body).await?.map(|envelope| envelope.event) {
                Some(Event::TodoUpdated { todos }) => return Ok(todos),
                Some(Event::SessionRewound(RewoundHistory { todos: Some(todos), .. })) => return Ok(todos),
                Some(Event::SessionCleared {}) => return Ok(Vec::new()),
                // The rewind did not change the list, so search before it.
                _ => before = seq,
            }
        }
    }
}

pub(super) fn parse(text: String) -> Result<SessionId, StoreError> {
    text.parse().map_err(|_| StoreError::Corrupt(format!("session id {text}")))
}

/// Parses a stored enum name.
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
        number: unsigned(row.try_get("id")?),
        summary: SessionSummary {
            title: row.try_get("title")?,
            state: word(&row.try_get::<String, _>("state")?)?,
            requires: requires.as_deref().map(word).transpose()?,
            model: row.try_get("model")?,
            mode: word(&row.try_get::<String, _>("mode")?)?,
            thinking: thinking.map(|text| text.parse().map_err(StoreError::Corrupt)).transpose()?,
            sampling: Sampling {
                temperature: row
                    .try_get::<Option<u16>, _>("temperature_thousandths")?
                    .and_then(Temperature::new),
                top_p: row.try_get::<Option<u16>, _>("top_p_thousandths")?.and_then(TopP::new),
            },
            updated_at_ms: Timestamp(row.try_get("updated_at_ms")?),
            usage: serde_json::from_str(&usage).map_err(|error| StoreError::Corrupt(error.to_string()))?,
            cost_usd_micros: row.try_get::<Option<i64>, _>("cost_usd_micros")?.map(unsigned),
            cost_at_least_usd_micros: unsigned(row.try_get("cost_at_least_usd_micros")?),
            turn_id: turn_id.as_deref().map(word).transpose()?,
            last_line: row.try_get("last_line")?,
            // Ignore a subtype that a newer version wrote, so that the list of sessions can still be read.
            last_turn: row
                .try_get::<Option<String>, _>("last_turn")?
                .and_then(|text| serde_json::from_str(&text).ok()),
            activity: row.try_get("activity")?,
            context_tokens: row.try_get::<Option<i64>, _>("context_tokens")?.map(unsigned),
            notice: row.try_get("notice")?,
        },
        cwd: row.try_get("cwd")?,
        background: row.try_get("background")?,
        created_at_ms: Timestamp(row.try_get("created_at_ms")?),
        last_seq: unsigned(row.try_get("newest_seq")?),
        models: BTreeMap::new(),
        clients: 0,
        background_commands: Vec::new(),
        forked_from: row
            .try_get::<Option<String>, _>("forked_from")?
            .and_then(|text| serde_json::from_str(&text).ok()),
        parent_session_id: row.try_get::<Option<String>, _>("parent_session_id")?.map(parse).transpose()?,
        parent_call_id: row
            .try_get::<Option<String>, _>("parent_call_id")?
            .and_then(|text| text.parse().ok()),
        agent: row.try_get("agent")?,
        job_id: row.try_get::<Option<String>, _>("job_id")?.and_then(|text| text.parse().ok()),
        matches: Vec::new(),
        details: None,
    })
}
