//! Computes the summary rows of a session from its events, as the engine does event by event.

use std::collections::{BTreeMap, HashMap};

use sqlx::sqlite::SqliteConnection;

use crate::error::StoreError;
use crate::rows::ItemRow;
use crate::sql_batch::integer;
use types::event::{Envelope, Event};
use types::session::{ItemKind, ItemStatus};

/// Rows of the tables `item` and `permission_request`.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Summaries {
    items: BTreeMap<u64, (u64, ItemKind, ItemStatus)>,
    requests: BTreeMap<String, (u64, Option<u64>)>,
}

impl Summaries {
    /// Computes the rows of a whole journal.
    pub fn from_events<'e>(events: impl IntoIterator<Item = &'e Envelope>) -> Self {
        let mut made = Self::default();
        let mut calls = HashMap::new();
        let mut compactions = HashMap::new();
        for Envelope { seq, event, item_id, .. } in events {
            let call = match event {
                Event::CompactStarted { .. } => {
                    compactions.insert(*item_id, *seq);
                    made.items.insert(*seq, (*seq, ItemKind::Compaction, ItemStatus::Running));
                    continue;
                }
                Event::CompactCompleted { error, .. } => {
                    let is_complete = error.is_none();
                    let status = if is_complete { ItemStatus::Completed } else { ItemStatus::Interrupted };
                    if let Some(first) = compactions.get(item_id) {
                        made.items.insert(*first, (*seq, ItemKind::Compaction, status));
                    }
                    continue;
                }
                Event::MessageStarted { .. } => {
                    made.items.insert(*seq, (*seq, ItemKind::AssistantMessage, ItemStatus::Running));
                    continue;
                }
                Event::Error { .. } if item_id.is_some() => {
                    made.items.insert(*seq, (*seq, ItemKind::Error, ItemStatus::Completed));
                    continue;
                }
                Event::MessageCompleted { item, reasoning_item_id, .. } => {
                    if reasoning_item_id.is_some() {
                        made.items.insert(*seq, (*seq, ItemKind::Reasoning, item.status));
                    }
                    made.items.insert(item.first_seq, (*seq, item.kind, item.status));
                    continue;
                }
                Event::ToolRequested { call_id, tool, .. } => {
                    calls.insert(*call_id, (*seq, ItemKind::of_tool(tool)));
                    Some((call_id, ItemStatus::Running))
                }
                Event::ToolStatus { call_id, .. }
                | Event::ToolStarted { call_id, .. }
                | Event::ToolBlocked { call_id, .. } => Some((call_id, ItemStatus::Running)),
                Event::ToolCompleted { call_id, .. } => Some((call_id, ItemStatus::Completed)),
                event if event.shows_request_of().is_some() => None,
                Event::PermissionRequested { request, .. } => {
                    made.requests.insert(request.request_id.to_string(), (*seq, None));
                    Some((&request.call_id, ItemStatus::Running))
                }
                Event::PermissionResolved { request_id, call_id, .. } => {
                    if let Some((_, settled)) = made.requests.get_mut(&request_id.to_string()) {
                        *settled = Some(*seq);
                    }
                    Some((call_id, ItemStatus::Running))
                }
                Event::SessionRewound(rewound) => {
                    made.items.retain(|first, _| *first <= rewound.last_item_seq);
                    None
                }
                _ => None,
            };
            if let Some((call_id, status)) = call
                && let Some((first, kind)) = calls.get(call_id)
            {
                made.items.insert(*first, (*seq, *kind, status));
            }
        }
        made
    }

    /// The rows of the items.
    pub fn items(&self) -> Vec<ItemRow> {
        let row = |(first, (last, kind, status)): (&u64, &(u64, ItemKind, ItemStatus))| ItemRow {
            first_seq: *first,
            last_seq: *last,
            kind: *kind,
            status: *status,
        };
        self.items.iter().map(row).collect()
    }

    /// Writes the rows of a session that has none yet.
    pub async fn write(&self, connection: &mut SqliteConnection, key: i64) -> Result<(), StoreError> {
        for (first, (last, kind, status)) in &self.items {
            sqlx::query(
                "insert into item (session, first_seq, last_seq, kind, status) values (?, ?, ?, ?, ?)",
            )
            .bind(key)
            .bind(integer(*first))
            .bind(integer(*last))
            .bind(kind.name())
            .bind(status.name())
            .execute(&mut *connection)
            .await?;
        }
        for (id, (seq, settled)) in &self.requests {
            sqlx::query(
                "insert into permission_request (request_id, session, seq, settled_seq) values (?, ?, ?, ?)",
            )
            .bind(id)
            .bind(key)
            .bind(integer(*seq))
            .bind(settled.map(integer))
            .execute(&mut *connection)
            .await?;
        }
        Ok(())
    }
}

impl ItemRow {
    /// The item rows of a whole journal.
    #[must_use]
    pub fn from_journal<'e>(events: impl IntoIterator<Item = &'e Envelope>) -> Vec<Self> {
        Summaries::from_events(events).items()
    }
}
