//! The cost ledger: one row per model call, and sums over these rows.

use sqlx::Row as _;
use sqlx::sqlite::{SqliteConnection, SqliteRow};

use crate::error::StoreError;
use crate::handle::StoreReader;
use crate::sql_batch::integer;
use crate::sql_batch::{SqlBatch, values};
use types::ids::SessionId;
use types::ledger::{LedgerRow, ModelUsage, UsageRecord};
use types::time::Timestamp;
use types::usage::Usage;

/// The sums of a group. A sum that could exceed an integer uses real numbers, because SQLite's integer sum
/// would fail.
const SUMS: &str = "count(*) as calls, coalesce(sum(lost), 0) as lost, coalesce(sum(estimated), 0) as estimated, \
     coalesce(sum(cost_usd_micros is null), 0) as unpriced, \
     cast(min(total(input_tokens), 9e18) as integer) as input_tokens, \
     cast(min(total(output_tokens), 9e18) as integer) as output_tokens, \
     cast(min(total(cache_read_tokens), 9e18) as integer) as cache_read_tokens, \
     cast(min(total(cache_write_tokens), 9e18) as integer) as cache_write_tokens, \
     cast(min(total(cache_write_1h_tokens), 9e18) as integer) as cache_write_1h_tokens, \
     cast(min(total(reasoning_tokens), 9e18) as integer) as reasoning_tokens, \
     cast(min(total(web_search_requests), 9e18) as integer) as web_search_requests, \
     cast(min(total(cost_usd_micros), 9e18) as integer) as cost";

/// The ids of a session and of all its sub-agents, whose calls count for the session as well.
pub(crate) const TREE: &str = "with recursive tree (id) as (select ?1 union \
                    select s.session_id from session s join tree on s.parent_session_id = tree.id)";

/// Filters for ledger rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LedgerQuery {
    /// Only calls of this session and its sub-agents.
    pub session_id: Option<SessionId>,
    /// Only calls at or after this time.
    pub since: Option<Timestamp>,
    /// Only calls before this time.
    pub until: Option<Timestamp>,
}

impl StoreReader {
    /// A page of the ledger by session and model after the row `after`, newest sessions first. The context
    /// window and the output limit are each taken from the newest call that has a value for it.
    pub async fn ledger(
        &self,
        query: LedgerQuery,
        after: Option<(SessionId, String)>,
        limit: u32,
    ) -> Result<Vec<LedgerRow>, StoreError> {
        let (session, model) = match after {
            Some((session, model)) => (Some(session.to_string()), model),
            None => (None, String::new()),
        };
        let sql = format!(
            "{TREE} select l.*, s.title, \
             (select context_window from ledger n where n.session_id = l.session_id and n.model = l.model \
              and n.context_window is not null order by n.seq desc limit 1) as context_window, \
             (select max_output_tokens from ledger n where n.session_id = l.session_id and n.model = l.model \
              and n.max_output_tokens is not null order by n.seq desc limit 1) as max_output_tokens \
             from (select session_id, model, min(at_ms) as first, max(at_ms) as last, {SUMS} from ledger \
              where (?1 is null or session_id in (select id from tree)) and (?2 is null or at_ms >= ?2) and (?3 is null or at_ms < ?3) \
              and (?4 is null or session_id < ?4 or (session_id = ?4 and model > ?5)) \
              group by session_id, model order by session_id desc, model limit ?6) l \
             left join session s on s.session_id = l.session_id order by l.session_id desc, l.model"
        );
        let read = async {
            let rows = sqlx::query(sqlx::AssertSqlSafe(sql))
                .bind(query.session_id.map(|id| id.to_string()))
                .bind(query.since.map(|at| at.0))
                .bind(query.until.map(|at| at.0))
                .bind(session)
                .bind(model)
                .bind(limit)
                .fetch_all(&self.readers.current_pool().await)
                .await?;
            rows.iter().map(row).collect()
        };
        self.report_damage(read.await)
    }

    /// The sum of all calls that match the query.
    pub async fn ledger_total(&self, query: LedgerQuery) -> Result<ModelUsage, StoreError> {
        let sql = format!(
            "{TREE} select {SUMS}, null as context_window, null as max_output_tokens from ledger \
             where (?1 is null or session_id in (select id from tree)) and (?2 is null or at_ms >= ?2) and (?3 is null or at_ms < ?3)"
        );
        let read = async {
            let row = sqlx::query(sqlx::AssertSqlSafe(sql))
                .bind(query.session_id.map(|id| id.to_string()))
                .bind(query.since.map(|at| at.0))
                .bind(query.until.map(|at| at.0))
                .fetch_one(&self.readers.current_pool().await)
                .await?;
            spent(&row)
        };
        self.report_damage(read.await)
    }
}

fn count(row: &SqliteRow, name: &str) -> Result<u64, StoreError> {
    Ok(u64::try_from(row.try_get::<i64, _>(name)?).unwrap_or(0))
}

fn limit(row: &SqliteRow, name: &str) -> Result<Option<u32>, StoreError> {
    Ok(row.try_get::<Option<i64>, _>(name)?.and_then(|value| u32::try_from(value).ok()))
}

fn tokens(row: &SqliteRow) -> Result<Usage, StoreError> {
    Ok(Usage {
        input_tokens: count(row, "input_tokens")?,
        output_tokens: count(row, "output_tokens")?,
        cache_read_tokens: count(row, "cache_read_tokens")?,
        cache_write_tokens: count(row, "cache_write_tokens")?,
        cache_write_1h_tokens: count(row, "cache_write_1h_tokens")?,
        reasoning_tokens: count(row, "reasoning_tokens")?,
        web_search_requests: count(row, "web_search_requests")?,
        service_tier: None,
    })
}

fn row(row: &SqliteRow) -> Result<LedgerRow, StoreError> {
    let id: String = row.try_get("session_id")?;
    Ok(LedgerRow {
        session_id: id.parse().map_err(|_| StoreError::Corrupt(format!("session id {id}")))?,
        title: row.try_get("title")?,
        model: row.try_get("model")?,
        first_at_ms: Timestamp(row.try_get("first")?),
        last_at_ms: Timestamp(row.try_get("last")?),
        spent: spent(row)?,
    })
}

fn spent(row: &SqliteRow) -> Result<ModelUsage, StoreError> {
    let (cost, unpriced_calls) = (count(row, "cost")?, count(row, "unpriced")?);
    Ok(ModelUsage {
        usage: tokens(row)?,
        calls: count(row, "calls")?,
        lost_attempts: count(row, "lost")?,
        estimated_calls: count(row, "estimated")?,
        cost_usd_micros: (unpriced_calls == 0).then_some(cost),
        cost_at_least_usd_micros: cost,
        unpriced_calls,
        context_window: limit(row, "context_window")?,
        max_output_tokens: limit(row, "max_output_tokens")?,
    })
}

/// Inserts a call. An existing row is the same call, because a seq is never reused.
pub(crate) fn insert(script: &mut SqlBatch, booking: &UsageRecord) {
    let price = booking.model_snapshot.price.and_then(|price| serde_json::to_string(&price).ok());
    let usage = &booking.usage;
    script.add(
        "insert or ignore into ledger (session_id, seq, at_ms, model, input_tokens, output_tokens, \
         cache_read_tokens, cache_write_tokens, cache_write_1h_tokens, reasoning_tokens, web_search_requests, \
         cost_usd_micros, lost, estimated, context_window, max_output_tokens, price) \
         values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        values![
            booking.session_id.to_string(),
            integer(booking.seq),
            booking.at.0,
            &booking.model,
            integer(usage.input_tokens),
            integer(usage.output_tokens),
            integer(usage.cache_read_tokens),
            integer(usage.cache_write_tokens),
            integer(usage.cache_write_1h_tokens),
            integer(usage.reasoning_tokens),
            integer(usage.web_search_requests),
            booking.cost_usd_micros.map(integer),
            booking.is_lost,
            booking.is_estimated,
            booking.model_snapshot.context_window,
            booking.model_snapshot.max_output_tokens,
            price,
        ],
    );
}

/// Copies the readable rows of `source` to a new database that already has the rows of its journals. This keeps
/// the costs of deleted sessions and of lost journal parts.
pub(crate) async fn copy(
    source: &mut SqliteConnection,
    new: &mut SqliteConnection,
) -> Result<(), StoreError> {
    use futures_util::TryStreamExt as _;
    let mut rows = sqlx::query("select * from ledger").fetch(source);
    // The copy ends at the first unreadable row.
    while let Ok(Some(row)) = rows.try_next().await {
        let Ok(booking) = stored(&row) else { continue };
        let mut script = SqlBatch::default();
        insert(&mut script, &booking);
        script.run_over(new).await?;
    }
    Ok(())
}

fn stored(row: &SqliteRow) -> Result<UsageRecord, StoreError> {
    let id: String = row.try_get("session_id")?;
    let price: Option<String> = row.try_get("price")?;
    let cost: Option<i64> = row.try_get("cost_usd_micros")?;
    Ok(UsageRecord {
        session_id: id.parse().map_err(|_| StoreError::Corrupt(format!("session id {id}")))?,
        seq: count(row, "seq")?,
        at: Timestamp(row.try_get("at_ms")?),
        model: row.try_get("model")?,
        usage: tokens(row)?,
        cost_usd_micros: cost.and_then(|cost| u64::try_from(cost).ok()),
        model_snapshot: types::usage::ModelSnapshot {
            context_window: limit(row, "context_window")?,
            max_output_tokens: limit(row, "max_output_tokens")?,
            price: price.and_then(|price| serde_json::from_str(&price).ok()),
        },
        is_lost: row.try_get("lost")?,
        is_estimated: row.try_get("estimated")?,
    })
}
