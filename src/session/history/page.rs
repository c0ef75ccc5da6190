//! The parts of a readable export: the header, the entries of the conversation, and the costs.

use std::collections::HashMap;

use serde_json::Value;

use types::ids::BlobId;
use types::ledger::ModelUsage;
use types::session::{Item, SessionView};
use types::tool::FileChange;

/// The head of a readable export.
pub(super) struct PageHeader {
    pub title: String,
    view: SessionView,
}

impl PageHeader {
    pub fn new(view: SessionView) -> Self {
        let title =
            if view.summary.title.trim().is_empty() { "Session".into() } else { view.summary.title.clone() };
        Self { title, view }
    }

    /// Names and values of the header, in display order.
    pub fn facts(&self) -> Vec<(&'static str, String)> {
        let view = &self.view;
        let mut facts = vec![
            ("Session", view.session_id.to_string()),
            ("Folder", view.cwd.clone()),
            ("Model", view.summary.model.clone()),
            ("Created", view.created_at_ms.date()),
            ("Cost", money(view.summary.cost_usd_micros, view.summary.cost_at_least_usd_micros)),
        ];
        if let Some(from) = &view.forked_from {
            facts.push(("Forked from", from.session_id.to_string()));
        }
        facts
    }
}

/// An item with the values that a page shows.
pub(super) struct PageItem {
    pub item: Item,
    /// Changes of files that the call made.
    pub changes: Vec<FileChange>,
    /// Pictures as `data:` addresses.
    pub pictures: HashMap<BlobId, String>,
}

/// The usage by model.
pub(super) struct UsageTable {
    pub rows: Vec<[String; 4]>,
}

impl UsageTable {
    pub const COLUMN_TITLES: [&'static str; 4] = ["Model", "Input tokens", "Output tokens", "Cost"];

    pub fn new(view: &SessionView) -> Self {
        let row = |name: &str, spent: &ModelUsage| {
            [
                name.to_owned(),
                spent.usage.input_tokens.to_string(),
                spent.usage.output_tokens.to_string(),
                money(spent.cost_usd_micros, spent.cost_at_least_usd_micros),
            ]
        };
        let mut rows: Vec<_> = view.models.iter().map(|(model, spent)| row(model, spent)).collect();
        rows.push([
            "all".into(),
            view.summary.usage.input_tokens.to_string(),
            view.summary.usage.output_tokens.to_string(),
            money(view.summary.cost_usd_micros, view.summary.cost_at_least_usd_micros),
        ]);
        Self { rows }
    }
}

fn money(cost: Option<u64>, at_least: u64) -> String {
    let dollars = |micros: u64| format!("${}.{:04}", micros / 1_000_000, micros % 1_000_000 / 100);
    match cost {
        Some(cost) => dollars(cost),
        None if at_least > 0 => format!("at least {}", dollars(at_least)),
        None => "unknown".into(),
    }
}

/// Escapes text for HTML, also inside an attribute in double quotes.
pub(super) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + text.len() / 16);
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            // Control characters are not allowed in HTML, and could reorder the text.
            c if c.is_control() && c != '\n' && c != '\t' => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

/// The arguments of a call for readers. The command of a shell call stays unchanged; all other
/// arguments are shown as JSON.
pub(super) fn input_text(input: &Value) -> String {
    match input.as_object() {
        Some(fields) if fields.len() == 1 => match fields.values().next() {
            Some(Value::String(text)) => text.clone(),
            _ => serde_json::to_string_pretty(input).unwrap_or_default(),
        },
        _ => serde_json::to_string_pretty(input).unwrap_or_default(),
    }
}
