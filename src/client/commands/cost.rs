//! `agentctl cost`: tokens by session and model, and their costs.

use api::methods;
use std::collections::HashMap;

use crate::args::CostArgs;
use crate::connection::client::Client;
use crate::connection::connector::Connector;
use crate::failure::Failure;
use crate::resolve_id;
use crate::terminal::escape;
use crate::terminal::format::{cost, now, tokens};
use crate::terminal::out::OutputStreams;
use crate::terminal::style::Tone;
use crate::terminal::table::{Cell, SPARE_RANK, Table, column};
use api::params::{ListParams, ModelUsageParams, ModelUsageReply};
use types::ids::SessionId;
use types::ledger::{LedgerRow, ModelUsage};
use types::session::SessionView;
use types::time::Timestamp;

/// Rows per request.
const PAGE_ROWS: u32 = 500;

pub(crate) async fn cost_of(
    reach: &Connector,
    args: &CostArgs,
    out: &mut OutputStreams,
) -> Result<(), Failure> {
    let client = reach.as_observer().connect_or_start().await?;
    let all =
        resolve_id::all_sessions(&client, &ListParams { include_children: true, ..ListParams::default() })
            .await?;
    let session_id = match args.session.as_deref() {
        None => None,
        // A full id also identifies a deleted session.
        Some(name) => Some(match name.parse::<SessionId>() {
            Ok(id) => id,
            Err(_) => resolve_id::session(&client, name).await?.session_id,
        }),
    };
    let since_ms =
        args.since.map(|ms| Timestamp(now().0.saturating_sub(i64::try_from(ms).unwrap_or(i64::MAX))));
    let reply = every_page(
        &client,
        ModelUsageParams { session_id, since_ms, limit: Some(PAGE_ROWS), ..Default::default() },
    )
    .await?;
    if args.json {
        return Ok(out.json(&reply)?);
    }
    let sessions: Vec<&SessionView> = all.iter().collect();
    let shown: Vec<&LedgerRow> = reply
        .rows
        .iter()
        .filter(|row| {
            args.all || session_id.is_some() || sessions.iter().any(|one| one.session_id == row.session_id)
        })
        .collect();
    if reply.rows.is_empty() {
        return Ok(out.note("no model was called")?);
    }
    table(&shown, &reply.total, &all).print(out)?;
    let hidden = reply.rows.len() - shown.len();
    if hidden > 0 {
        out.note(&format!("the total has {hidden} more of deleted sessions; --all shows them"))?;
    }
    explain(&reply.total, out)
}

/// Explains those marks of the table that appear in it.
fn explain(total: &ModelUsage, out: &mut OutputStreams) -> Result<(), Failure> {
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
             are an upper estimate there (*)",
            total.estimated_calls, total.calls
        ))?;
    }
    Ok(())
}

async fn every_page(client: &Client, params: ModelUsageParams) -> Result<ModelUsageReply, Failure> {
    let mut pages = client.pages::<methods::model::Usage>(params);
    let mut all = ModelUsageReply::default();
    while let Some(mut page) = pages.next().await? {
        page.rows.splice(..0, all.rows);
        all = page;
    }
    Ok(all)
}

/// The rows and their sum. Without a terminal the table contains the full ids.
fn table(rows: &[&LedgerRow], total: &ModelUsage, sessions: &[SessionView]) -> Table {
    let mut table = Table::new([
        column("#").right(),
        column("TITLE").between(12, 40),
        column("MODEL").between(8, 32).rank(2),
        column("CALLS").right(),
        column("LOST").right().rank(5),
        column("INPUT").right().rank(1),
        column("OUTPUT").right().rank(1),
        column("CACHE READ").right().rank(3),
        column("CACHE WRITE").right().rank(4),
        column("COST").right(),
        column("ID").right().rank(SPARE_RANK),
    ]);
    let numbers: HashMap<SessionId, u64> = sessions.iter().map(|it| (it.session_id, it.number)).collect();
    for row in rows {
        let number = numbers.get(&row.session_id).map_or_else(|| "–".into(), ToString::to_string);
        let title = row.title.as_deref().map_or_else(|| "(deleted)".into(), |title| escape::line(title));
        let model = escape::line(&row.model).into_owned();
        table.push(cells(
            Tone::Plain,
            [number, title.into_owned(), model],
            &row.spent,
            row.session_id.to_string(),
        ));
    }
    table.push(cells(Tone::Bold, [String::new(), "TOTAL".into(), String::new()], total, String::new()));
    table
}

fn cells(tone: Tone, [number, title, model]: [String; 3], spent: &ModelUsage, id: String) -> [Cell; 11] {
    // The note below the table explains this mark.
    let about = if spent.estimated_calls > 0 { "*" } else { "" };
    let usage = &spent.usage;
    [
        (Tone::Bold, number),
        (tone, title),
        (tone, model),
        (tone, spent.calls.to_string()),
        (Tone::Dim, spent.lost_attempts.to_string()),
        (tone, format!("{}{about}", tokens(usage.input_tokens))),
        (tone, format!("{}{about}", tokens(usage.output_tokens))),
        (Tone::Dim, tokens(usage.cache_read_tokens)),
        (Tone::Dim, tokens(usage.cache_write_tokens)),
        (tone, format!("{}{about}", cost(spent.cost_usd_micros, spent.cost_at_least_usd_micros))),
        (Tone::Dim, id),
    ]
}

#[cfg(test)]
mod tests {
    use crate::commands::cost::*;
    use crate::fake_daemon::FakeDaemon;
    use crate::resolve_id::sample;
    use crate::terminal::out::testing::captured_output;
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

    async fn print_costs(args: CostArgs) -> (String, String) {
        let fake = FakeDaemon::start(|_, method, params| {
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
        let (mut out, text, notes) = captured_output();
        cost_of(&fake.connector(), &args, &mut out).await.expect("shown");
        (text.text(), notes.text())
    }

    #[tokio::test]
    async fn cost_table_shows_unknown_costs_and_deleted_sessions() {
        let (text, notes) = print_costs(CostArgs { all: true, ..CostArgs::default() }).await;
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 4, "{text}");
        for (line, parts) in [
            (lines[1], ["mine", "1.5k", "$1.50", KNOWN]),
            (lines[2], ["–", "(deleted)", "?", GONE]),
            (lines[3], ["TOTAL", "6", "≥$1.50", ""]),
        ] {
            assert!(parts.iter().all(|part| line.contains(part)), "{line}");
        }
        assert!(notes.contains("1 of 6 calls is unknown"), "{notes}");
        let (text, notes) = print_costs(CostArgs::default()).await;
        assert!(!text.contains("(deleted)") && notes.contains("1 more of deleted sessions"), "{text}{notes}");
    }

    #[tokio::test]
    async fn cost_json_keeps_unknown_cost_as_null() {
        let (text, _) = print_costs(CostArgs { json: true, ..CostArgs::default() }).await;
        let found: Value = serde_json::from_str(&text).expect("json");
        assert_eq!(found["rows"].as_array().map(Vec::len), Some(2));
        assert!(found["rows"][1]["cost_usd_micros"].is_null() && found["total"]["cost_usd_micros"].is_null());
        assert_eq!(found["total"]["cost_at_least_usd_micros"], 1_500_000);
    }
}
