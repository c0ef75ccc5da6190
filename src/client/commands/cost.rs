//! `agentctl cost`: tokens by session and model, and their costs.

use std::collections::HashMap;
use std::io::{IsTerminal as _, stdout};

use crate::api::params::{ListParams, ModelUsageParams, ModelUsageReply};
use crate::client::args::CostArgs;
use crate::client::commands::ps::short_ids;
use crate::client::connection::client::Client;
use crate::client::connection::connector::Connector;
use crate::client::failure::Failure;
use crate::client::resolve_id;
use crate::client::terminal::escape;
use crate::client::terminal::format::{cost, now, tokens};
use crate::client::terminal::out::{Out, terminal_columns};
use crate::client::terminal::style::{Line, Tone, cut, pad, width};
use crate::types::ids::SessionId;
use crate::types::ledger::{LedgerRow, ModelUsage};
use crate::types::session::SessionView;
use crate::types::time::Timestamp;

/// Rows per request.
const PAGE: u32 = 500;
/// Maximum columns of a title and of a model.
const TEXT: usize = 28;

pub(in crate::client) async fn cost_of(
    reach: &Connector,
    args: &CostArgs,
    out: &mut Out,
) -> Result<(), Failure> {
    let client = reach.observing().connect_or_start().await?;
    let all =
        resolve_id::all_sessions(&client, &ListParams { include_children: true, ..ListParams::default() })
            .await?;
    let session_id = match args.session.as_deref() {
        None => None,
        // A deleted session is identified by its full id.
        Some(name) => Some(match name.parse::<SessionId>() {
            Ok(id) => id,
            Err(_) if name == "." => resolve_id::newest_here(&client).await?.session_id,
            Err(_) => resolve_id::session(&client, name).await?.session_id,
        }),
    };
    let since_ms =
        args.since.map(|ms| Timestamp(now().0.saturating_sub(i64::try_from(ms).unwrap_or(i64::MAX))));
    let found = every_page(
        &client,
        ModelUsageParams { session_id, since_ms, limit: Some(PAGE), ..Default::default() },
    )
    .await?;
    if args.json {
        return Ok(out.json(&found)?);
    }
    let known: Vec<&SessionView> = all.iter().collect();
    let shown: Vec<&LedgerRow> = found
        .rows
        .iter()
        .filter(|row| {
            args.all || session_id.is_some() || known.iter().any(|one| one.session_id == row.session_id)
        })
        .collect();
    if found.rows.is_empty() {
        return Ok(out.note("no model was called")?);
    }
    let columns = stdout().is_terminal().then(terminal_columns);
    for line in table(&shown, &found.total, &short_ids(&all), columns) {
        out.line(&line)?;
    }
    let hidden = found.rows.len() - shown.len();
    if hidden > 0 {
        out.note(&format!("the total has {hidden} more of deleted sessions; --all shows them"))?;
    }
    explain(&found.total, out)
}

/// Explains the marks in the table, if they appear.
fn explain(total: &ModelUsage, out: &mut Out) -> Result<(), Failure> {
    if total.unpriced_calls > 0 {
        out.note(&format!(
            "the price of {} of {} calls is unknown: what is shown is what the others cost at least. Set price \
             in [model.\"PROVIDER/MODEL\"] for calls to come",
            total.unpriced_calls, total.calls
        ))?;
    }
    if total.estimated_calls > 0 {
        out.note(&format!(
            "of {} of {} calls the provider did not report all tokens, for example since they broke off: tokens and cost \
             are an upper estimate there (~)",
            total.estimated_calls, total.calls
        ))?;
    }
    Ok(())
}

async fn every_page(client: &Client, mut params: ModelUsageParams) -> Result<ModelUsageReply, Failure> {
    let mut found: ModelUsageReply = client.call("model.usage", &params).await?;
    while let Some(cursor) = found.next_cursor.take() {
        params.cursor = Some(cursor);
        let page: ModelUsageReply = client.call("model.usage", &params).await?;
        found.rows.extend(page.rows);
        (found.total, found.next_cursor) = (page.total, page.next_cursor);
    }
    Ok(found)
}

const HEAD: [&str; 10] =
    ["SESSION", "TITLE", "MODEL", "CALLS", "LOST", "INPUT", "OUTPUT", "CACHE READ", "CACHE WRITE", "COST"];

fn table(
    rows: &[&LedgerRow],
    total: &ModelUsage,
    ids: &HashMap<String, String>,
    columns: Option<usize>,
) -> Vec<Line> {
    let mut cells: Vec<(Tone, [String; 10])> = vec![(Tone::Bold, HEAD.map(String::from))];
    let text =
        |raw: &str| cut(&escape::line(raw), if columns.is_some_and(|c| c < 130) { TEXT / 2 } else { TEXT });
    for row in rows {
        let id = row.session_id.to_string();
        let title = row.title.as_deref().map_or_else(|| "(deleted)".into(), text);
        let short = ids.get(&id).cloned().unwrap_or(id);
        cells.push((Tone::Plain, numbers([short, title, text(&row.model)], &row.spent)));
    }
    cells.push((Tone::Bold, numbers(["TOTAL".into(), String::new(), String::new()], total)));
    let wide: Vec<usize> =
        (0..HEAD.len()).map(|n| cells.iter().map(|(_, row)| width(&row[n])).max().unwrap_or(0)).collect();
    let line = |(tone, row): &(Tone, [String; 10])| {
        let mut line = Line::default();
        for (n, cell) in row.iter().enumerate() {
            let gap = if n + 1 == HEAD.len() { "" } else { "  " };
            // Text is aligned left, numbers right.
            let room = wide[n].saturating_sub(width(cell));
            let cell = if n < 3 { pad(cell, wide[n]) } else { format!("{}{cell}", " ".repeat(room)) };
            line = line.and(*tone, cell).and(Tone::Plain, gap);
        }
        line
    };
    cells.iter().map(line).collect()
}

fn numbers([first, title, model]: [String; 3], spent: &ModelUsage) -> [String; 10] {
    let about = if spent.estimated_calls > 0 { "~" } else { "" };
    let usage = &spent.usage;
    [
        first,
        title,
        model,
        spent.calls.to_string(),
        spent.lost_attempts.to_string(),
        format!("{about}{}", tokens(usage.input_tokens)),
        format!("{about}{}", tokens(usage.output_tokens)),
        tokens(usage.cache_read_tokens),
        tokens(usage.cache_write_tokens),
        format!("{about}{}", cost(spent.cost_usd_micros, spent.cost_at_least_usd_micros)),
    ]
}

#[cfg(test)]
mod tests {
    use crate::client::commands::cost::*;
    use crate::client::fake::Fake;
    use crate::client::resolve_id::sample;
    use crate::client::terminal::out::testing::papers;
    use serde_json::{Value, json};

    const KNOWN: &str = "ses_0190f2a4-0000-7000-8000-000000000001";
    const GONE: &str = "ses_0190f2a4-0001-7000-8000-000000000002";

    fn row(id: &str, title: Option<&str>, cost: Option<u64>) -> Value {
        let mut row = json!({
            "session_id": id, "model": "p/m", "first_at_ms": 1, "last_at_ms": 2, "input_tokens": 1_500,
            "output_tokens": 20, "cache_read_tokens": 7, "cache_write_tokens": 0, "cache_write_1h_tokens": 0,
            "reasoning_tokens": 0, "web_search_requests": 0, "calls": 3, "lost_attempts": 0, "estimated_calls": 0,
            "cost_usd_micros": cost, "cost_at_least_usd_micros": cost.unwrap_or(0),
            "unpriced_calls": u64::from(cost.is_none()),
        });
        if let Some(title) = title {
            row["title"] = json!(title);
        }
        row
    }

    async fn shown(args: CostArgs) -> (String, String) {
        let fake = Fake::start(|_, method, params| {
            Ok(match (method, params["cursor"].as_str()) {
                ("session.list", _) => json!({"sessions": [sample(KNOWN, "mine")]}),
                (_, None) => {
                    let total = row(KNOWN, None, Some(1));
                    json!({"rows": [row(KNOWN, Some("mine"), Some(1_500_000))], "total": total, "next_cursor": "more"})
                }
                (_, Some(_)) => {
                    let mut total = row(KNOWN, None, None);
                    total["cost_at_least_usd_micros"] = json!(1_500_000);
                    total["calls"] = json!(6);
                    json!({"rows": [row(GONE, None, None)], "total": total})
                }
            })
        });
        let (mut out, text, notes) = papers();
        cost_of(&fake.reach(), &args, &mut out).await.expect("shown");
        (text.text(), notes.text())
    }

    #[tokio::test]
    async fn cost_table_shows_unknown_costs_and_deleted_sessions() {
        let (text, notes) = shown(CostArgs { all: true, ..CostArgs::default() }).await;
        let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
        assert_eq!(
            lines,
            [
                "SESSION                                   TITLE      MODEL  CALLS  LOST  INPUT  OUTPUT  CACHE READ  CACHE WRITE    COST",
                "0190f2a4                                  mine       p/m        3     0   1.5k      20           7            0   $1.50",
                "ses_0190f2a4-0001-7000-8000-000000000002  (deleted)  p/m        3     0   1.5k      20           7            0       ?",
                "TOTAL                                                           6     0   1.5k      20           7            0  ≥$1.50",
            ]
        );
        assert!(notes.contains("1 of 6 calls is unknown"), "{notes}");
        let (text, notes) = shown(CostArgs::default()).await;
        assert!(!text.contains("(deleted)") && notes.contains("1 more of deleted sessions"), "{text}{notes}");
    }

    #[tokio::test]
    async fn cost_json_keeps_unknown_cost_as_null() {
        let (text, _) = shown(CostArgs { json: true, ..CostArgs::default() }).await;
        let found: Value = serde_json::from_str(&text).expect("json");
        assert_eq!(found["rows"].as_array().map(Vec::len), Some(2));
        assert!(found["rows"][1]["cost_usd_micros"].is_null() && found["total"]["cost_usd_micros"].is_null());
        assert_eq!(found["total"]["cost_at_least_usd_micros"], 1_500_000);
    }
}
